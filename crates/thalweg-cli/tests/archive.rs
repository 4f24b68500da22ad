//! Tests what an exchange keeps: its archive, and a backup and its restore as docs/serving.md says.

use crate::program;
use crate::serve::Serving;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use program::{Ended, Scratch, command, signal, thalweg};
use serde_json::Value;

/// The shortest segments that there are, and one snapshot.
const CONFIG: &str = "[exchange]\nclock_ms = 0\n[sessions]\nopen_orders_max = 0\n\
    [snapshots]\nkept = 1\n[journal]\nsegment_bytes = 331776\n";

fn config(scratch: &Scratch) -> String {
    let archive = scratch.path("archive");
    scratch.file("serve.toml", format!("{CONFIG}archive = \"{archive}\"\n"))
}

/// Users that one round adds: their commands are longer than a segment.
const USERS: usize = 8_000;

/// Adds users to a served exchange, which then ends in order, and writes a snapshot.
fn round(scratch: &Scratch, number: usize) -> String {
    let config = config(scratch);
    let directory = scratch.path("exchange");
    let serving = Serving::start_as(command(&[]), &directory, &["--config", &config]);
    let users = number * USERS..(number + 1) * USERS;
    let lines: String = users.map(|user| format!("user,{user}\n")).collect();
    let users = scratch.file("users.csv", lines);
    let admin = serving.admin.to_string();
    let send = [
        "exchange",
        "send",
        &users,
        "--admin",
        "1",
        "--connect",
        &admin,
    ];
    let sent = thalweg(&send);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    signal(serving.id(), 15);
    let (code, log) = serving.ended();
    assert_eq!(code, Some(0), "{log}");
    log
}

fn verified(arguments: &[&str]) -> (Ended, Value) {
    let ended = thalweg(&[&["exchange", "verify", "--format", "json"], arguments].concat());
    let facts = serde_json::from_str(&ended.stdout).unwrap_or_default();
    (ended, facts)
}

fn count(directory: &str, ending: &str) -> usize {
    let files = fs::read_dir(directory).expect("it is there");
    let names = files.map(|file| file.expect("it is read").file_name());
    names
        .filter(|name| name.to_string_lossy().ends_with(ending))
        .count()
}

#[test]
fn an_archive_has_all_that_the_exchange_no_longer_keeps() {
    let scratch = Scratch::new();
    let (directory, archive) = (scratch.path("exchange"), scratch.path("archive"));
    // The archive's disk is missing: the exchange goes on, keeps everything, and says so.
    let log = round(&scratch, 0);
    assert!(
        log.contains("journal.archive is not there: nothing is deleted"),
        "{log}"
    );
    assert!(log.contains("no keys are configured"), "{log}");
    assert_eq!(count(&directory, ".thw"), 2);
    fs::create_dir(&archive).expect("it can be made");
    for number in 1..4 {
        let log = round(&scratch, number);
        assert!(!log.contains("archive"), "{log}");
    }
    assert_eq!(count(&directory, ".thw"), 1);
    assert_eq!(count(&archive, ".thw"), 4);
    assert!(count(&archive, ".segment") > 1);
    let all = 4 * USERS as u64;
    // Alone, the directory has the end; with the archive, everything.
    let (ended, facts) = verified(&[&directory]);
    assert_eq!((ended.code, &facts["replayed"]), (Some(0), &0.into()));
    let (ended, facts) = verified(&[&directory, "--archive", &archive]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(facts["replayed"], all);
    assert_eq!(facts["snapshots_whole"], 5);
    let export = ["exchange", "export", &directory];
    let ended = thalweg(&export);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    let warning = format!("the beginning is no longer kept: the first command here is {all}");
    assert!(ended.stderr.contains(&warning), "{ended:?}");
    let ended = thalweg(&[&export[..], &["--archive", &archive, "-q"]].concat());
    let lines: Vec<&str> = ended.fine().lines().collect();
    assert_eq!(lines.len() as u64, all);
    assert!(
        lines[0].contains("\"command\":0,\"name\":\"user\",\"user\":0"),
        "{}",
        lines[0]
    );
    thalweg(&[
        "exchange",
        "verify",
        &directory,
        "--archive",
        &scratch.path("none"),
    ])
    .refused(&["No such file or directory"]);
}

/// Returns the commands of a section of a page in docs.
pub(crate) fn commands_of(page: &str, heading: &str) -> Vec<String> {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let text = fs::read_to_string(docs.join(page)).expect("the page is there");
    let (_, section) = text.split_once(heading).expect("there is such a section");
    let (section, _) = section.split_once("\n## ").expect("another one follows");
    let blocks = section.split("```sh\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// Runs lines of a shell in a directory, with the program in the path.
pub(crate) fn shell(place: &Path, lines: &str) -> Ended {
    let program = Path::new(env!("CARGO_BIN_EXE_thalweg"));
    let program = program.parent().expect("it is in a directory");
    let path = std::env::var("PATH").expect("there is a path");
    let mut shell = Command::new("sh");
    shell.args(["-euc", lines]).current_dir(place);
    shell.env("PATH", format!("{}:{path}", program.display()));
    shell.output().expect("there is a shell").into()
}

#[test]
fn a_backup_of_a_live_exchange_is_restored_as_the_page_for_operators_says() {
    let scratch = Scratch::new();
    let place = scratch.path("");
    let place = Path::new(&place);
    let [backup, restore] = &commands_of("serving.md", "\n### Backup and restore\n")[..] else {
        panic!("two blocks of commands");
    };
    // A first round leaves a snapshot that is not the first.
    round(&scratch, 0);
    let config = config(&scratch);
    let directory = scratch.path("exchange");
    let serving = Serving::start_as(command(&[]), &directory, &["--config", &config]);
    let admin = serving.admin.to_string();
    let send = ["exchange", "send", "--admin", "1", "--connect", &admin];
    let mut load = command(&send);
    let lines: String = (USERS..4 * USERS)
        .map(|user| format!("user,{user}\n"))
        .collect();
    let file = scratch.file("load.csv", lines);
    let load = load.stdin(fs::File::open(file).expect("it was made"));
    let mut load = load.stdout(Stdio::null()).spawn().expect("it starts");
    // Where a segment was begun meanwhile, it is copied again, as the page says.
    let copied = (0..100)
        .map(|_| {
            let _ = fs::remove_dir_all(place.join("backup"));
            shell(place, backup)
        })
        .find(|copied| !copied.stdout.contains("it is missing"))
        .expect("a copy is whole once the load has ended");
    assert_eq!(copied.code, Some(0), "{copied:?}");
    assert!(load.wait().expect("it ends").success());
    assert!(copied.stdout.contains("verified"), "{copied:?}");
    // The exchange is lost.
    drop(serving);
    fs::remove_dir_all(&directory).expect("it was there");
    let restored = shell(place, restore);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let mode = fs::metadata(&directory).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let serving = Serving::start_as(command(&[]), &directory, &["--config", &config]);
    let admin = serving.admin.to_string();
    let user = (USERS - 1).to_string();
    let account = ["exchange", "account", "--user", &user, "--admin", "1"];
    thalweg(&[&account[..], &["--connect", &admin]].concat()).fine();
}
