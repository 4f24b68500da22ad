//! `thalweg top`: queues of programs on a terminal and as lines.

use crate::program::pty::OnTerminal;
use crate::program::{Ended, Scratch, command, signal, thalweg};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use thalweg::bus::{Bus, Message, TopicId, TopicInfo, TopicOverflow, Topics};

/// The figures that the format's document has as its example.
fn example() -> String {
    let document = include_str!("../../../docs/export-format.md");
    let begin = document.find("```json\n").expect("an example") + 8;
    let text = &document[begin..];
    text[..text.find("```").expect("it ends")].to_owned()
}

/// Writes the example into a file that stays new, however long a program takes to start: figures
/// that are older than 3 s are silent.
fn write_live(scratch: &Scratch, name: &str) {
    let file = File::options()
        .append(true)
        .open(scratch.file(name, example()));
    let later = SystemTime::now() + Duration::from_secs(3_600);
    let changed = file.and_then(|file| file.set_modified(later));
    changed.expect("it is ours");
}

/// Returns the figures of a pipeline with another number.
fn numbered(number: u64) -> String {
    example().replace("\"number\": 1,", &format!("\"number\": {number},"))
}

fn on_terminal(directory: &str, size: (u16, u16)) -> OnTerminal {
    OnTerminal::start(command(&["top", directory]), size)
}

#[test]
fn a_page_follows_a_program_that_writes_and_gives_the_terminal_back() {
    let scratch = Scratch::new();
    let directory = scratch.path("");
    let mut on = on_terminal(&directory, (110, 24));
    on.await_text("No program has written figures here yet.");
    write_live(&scratch, "4711-1");
    on.await_text("1 program, by wait");
    on.await_text("4711-1 match");
    on.await_text("work 300 ns");
    on.press("d");
    on.await_text("by depth");
    on.press("n");
    on.await_text("why: ");
    on.resize((40, 20));
    on.await_text("\x1b[2J");
    on.await_text("wait   depth");
    scratch.file("4711-1", example().replace("false", "true"));
    on.await_text("it has ended");
    on.press("q");
    on.await_text("\x1b[?25h\x1b[?1049l");
    assert_eq!(on.ended(), (Some(0), true));
}

#[test]
fn a_page_says_that_its_directory_is_gone_and_goes_on_when_it_is_there_again() {
    let scratch = Scratch::new();
    let directory = scratch.path("figures");
    std::fs::create_dir(&directory).expect("it can be made");
    write_live(&scratch, "figures/4711-1");
    let mut on = on_terminal(&directory, (80, 24));
    on.await_text("4711-1 match");
    std::fs::remove_dir_all(&directory).expect("it is there");
    on.await_text("STALE: No such file or directory; trying again");
    std::fs::create_dir(&directory).expect("it can be made");
    scratch.file("figures/4711-2", numbered(2));
    on.await_text("4711-2");
    signal(on.child.id(), 15);
    assert_eq!(on.ended(), (Some(143), true));
}

#[test]
fn colours_are_shown_unless_they_are_not_wanted() {
    let scratch = Scratch::new();
    let directory = scratch.path("");
    write_live(&scratch, "4711-1");
    let mut coloured = on_terminal(&directory, (80, 24));
    coloured.await_text("\x1b[1m> 4711-1");
    let mut plain = command(&["top", &directory]);
    plain.env("NO_COLOR", "1");
    let mut plain = OnTerminal::start(plain, (80, 24));
    plain.await_text("H> 4711-1");
    plain.press("q");
    assert_eq!(plain.ended(), (Some(0), true));
}

#[test]
fn once_prints_all_queues_and_files_that_are_none() {
    let scratch = Scratch::new();
    let directory = scratch.path("");
    let once = ["top", &directory, "--once"];
    let empty = thalweg(&once);
    assert_eq!(empty.code, Some(1));
    assert!(
        empty
            .stdout
            .contains("No program has written figures here yet."),
        "{empty:?}"
    );
    write_live(&scratch, "4711-1");
    scratch.file("4711-2", "{ \"format\": ");
    scratch.file(
        "4711-3",
        numbered(3).replace("\"version\": 1", "\"version\": 2"),
    );
    scratch.file("notes.txt", "no figures");
    let text = thalweg(&once);
    for part in [
        "2 queues of 1 program, by wait",
        "slowest 4711-1 match: 800 ns, a hand-over between threads\n",
        "2 files left out that no export of version 1 is in: 4711-2, 4711-3\n",
        "> 4711-1 match     800 ns      60      -  2.50 µs",
        "lost: a pipeline loses nothing\n",
    ] {
        assert!(
            text.fine().contains(part),
            "`{part}` is not in\n{}",
            text.stdout
        );
    }
    assert!(!text.stdout.contains('\x1b'));
    let json = thalweg(&[&once[..], &["--format", "json", "--order", "id"]].concat());
    let rows: Vec<Value> = json
        .fine()
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect();
    let names: Vec<&Value> = rows.iter().map(|row| &row["queue"]).collect();
    assert_eq!(names, ["(send)", "match"]);
    let figures = (
        &rows[1]["depth"],
        &rows[1]["wait_p99_ns"],
        &rows[1]["state"],
    );
    assert_eq!(figures, (&60.into(), &2_500.into(), &"live".into()));
    let csv = thalweg(&[&once[..], &["--format", "csv", "--limit", "1"]].concat());
    let lines: Vec<&str> = csv.fine().lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("at_ms,process,number,kind,queue,state,depth,"));
}

#[test]
fn lines_come_each_second_where_there_is_no_terminal() {
    let scratch = Scratch::new();
    let directory = scratch.path("");
    write_live(&scratch, "4711-1");
    let mut child = command(&["top", &directory])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut lines = lines.map(|line| line.expect("it is read"));
    let starts = [
        "at_ms 0 process 4711 number 1 kind stage queue match state live depth 60",
        "",
    ];
    for start in starts {
        assert!(lines.next().expect("a line").starts_with(start));
    }
    // The second look.
    let later = lines.find(|line| !line.starts_with("at_ms 0 "));
    assert!(later.expect("it goes on").contains(" out_per_s 0.0 "));
    signal(child.id(), 15);
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
}

#[test]
fn wrong_directories_are_refused() {
    let scratch = Scratch::new();
    let none = scratch.path("none");
    thalweg(&["top", &none]).refused(&["none: no directory that can be read: No such file"]);
    let file = scratch.file("file", "x");
    thalweg(&["top", &file, "--once"]).refused(&["no directory that can be read: Not a directory"]);
    thalweg(&["top"]).refused(&["<DIRECTORY>"]);
    thalweg(&["top", &none, "--limit", "0"]).refused(&["--limit"]);
}

#[test]
fn ten_thousand_queues_are_bounded_by_what_fits() {
    let scratch = Scratch::new();
    let directory = scratch.path("");
    let inbox = |number| {
        format!(
            "{{\"inbox\": {number}, \"capacity\": 64, \"waiting\": {}, \"events\": 10}}",
            number % 64
        )
    };
    for bus in 1..=40 {
        let inboxes: Vec<String> = (0..250).map(inbox).collect();
        let text = format!(
            "{{\"format\": \"thalweg-export\", \"version\": 1, \"kind\": \"bus\", \"process\": 7, \
             \"number\": {bus}, \"snapshot\": 1, \"inboxes\": [{}]}}",
            inboxes.join(",")
        );
        scratch.file(&format!("7-{bus}"), text);
    }
    let once = thalweg(&["top", &directory, "--once", "--order", "depth"]);
    let text = once.fine();
    assert!(
        text.contains("1000 queues of 1 program, by depth"),
        "{text}"
    );
    assert!(text.contains("9000 queues left out by --limit"), "{text}");
    assert!(text.lines().count() < 1_020);
    let mut on = on_terminal(&directory, (80, 24));
    on.await_text("10000 queues of 1 program, by wait");
    on.press("q");
    assert_eq!(on.ended(), (Some(0), true));
}

/// A program on Thalweg, which is this test with another environment.
#[test]
fn a_program_with_a_bus_is_seen() {
    const NAME: &str = "top::a_program_with_a_bus_is_seen";
    const SEEDED: &str = "THALWEG_TEST_TOP_PROGRAM";
    if std::env::var_os(SEEDED).is_some() {
        let bus = Bus::<Job>::builder().capacity(8).build();
        let bus = bus.expect("a valid bus");
        let mut consumer = bus.subscribe(Topics::ALL).expect("it is open");
        let mut publisher = bus.publisher("test").expect("it is open");
        for _ in 0..20 {
            let _ = publisher.publish(Job);
        }
        consumer.recv().expect("there is one");
        drop((publisher, consumer, bus));
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.path("");
    let mut program = Command::new(std::env::current_exe().expect("it has a path"));
    let program = program.args(["--exact", NAME]).env(SEEDED, "1");
    let ended = program.env("THALWEG_EXPORT", &directory).output();
    assert!(ended.expect("it runs").status.success());
    let json: Ended = thalweg(&["top", &directory, "--once", "--format", "json"]);
    let row: Value = serde_json::from_str(json.fine().trim()).expect("one inbox");
    assert_eq!(
        (&row["kind"], &row["state"]),
        (&"inbox".into(), &"ended".into())
    );
    let lost = row["lost"].as_u64().expect("a count");
    assert_eq!(row["refused"], lost);
    assert_eq!(lost + row["discarded"].as_u64().expect("a count") + 1, 20);
}

#[derive(Clone)]
struct Job;

impl Message for Job {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo {
        overflow: TopicOverflow::Reject,
        ..TopicInfo::new("job")
    }];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}
