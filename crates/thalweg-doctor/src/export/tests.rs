use std::fs;
use std::path::Path;
use std::slice::from_ref;

use proptest::prelude::*;

use super::*;
use crate::evidence::Evidence;

/// Returns the example of the format's documentation.
fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export-format.md");
    let text = fs::read_to_string(path).expect("the document");
    let block = text.split("```json\n").nth(1).expect("an example");
    block.split("```").next().expect("its end").to_owned()
}

#[test]
fn latencies_are_the_programs_own_or_those_of_its_busiest_pipeline() {
    let with = |number, published, p99_ns| Exported {
        published,
        end_to_end: Latency {
            count: 10,
            p99_ns,
            max_ns: p99_ns,
            ..Latency::default()
        },
        ..pipeline(number, &[("match", 1, 100)])
    };
    let unused = Exported::default();
    let one = latencies(&[unused.clone(), with(1, 1_000, 700)]);
    assert_eq!((one[0].name.as_str(), one[0].at_ns[2]), ("end to end", 700));
    let two = latencies(&[with(1, 1_000, 700), with(2, 2_000, 900)]);
    assert_eq!(two[0].name, "pipeline 2 (PID 7), end to end");
    let own = Exported {
        latencies: vec![Named {
            name: "end_to_end".to_owned(),
            times: Latency {
                count: 3,
                p99_ns: 5_000,
                max_ns: 9_000,
                ..Latency::default()
            },
        }],
        ..Exported::default()
    };
    let own = latencies(&[with(1, 1_000, 700), own]);
    assert_eq!(own.len(), 1);
    let mut evidence = Evidence::new();
    fill_latency(&mut evidence, &own);
    assert_eq!(evidence.value("export.latency_p99"), Some(5.0));
    fill_latency(&mut evidence, &latencies(&[unused]));
    assert_eq!(evidence.value("export.latency_p99"), Some(5.0), "it stays");
}

/// Returns the figures that are read from these files.
fn written(files: &[(&str, &[u8])]) -> Vec<Exported> {
    let directory = Directory::new().expect("there is a place");
    for (name, content) in files {
        fs::write(directory.path().join(name), content).expect("it takes files");
    }
    read(directory.path())
}

fn filled(exported: &[Exported]) -> Evidence {
    let mut evidence = Evidence::new();
    fill(&mut evidence, exported);
    evidence
}

/// Creates a pipeline whose stages take this many ns for an event, on these threads, at a tenth of
/// the capacity of the busiest thread.
fn pipeline(number: u64, stages: &[(&str, u64, u64)]) -> Exported {
    let slowest = stages.iter().map(|&(_, _, ns)| ns).max().unwrap_or(1);
    let (events, active_ns) = (1_000, 10_000 * slowest);
    let stage = |&(name, thread, ns): &(&str, u64, u64)| Stage {
        name: name.to_owned(),
        thread,
        events,
        busy_ns: events * ns,
        ..Stage::default()
    };
    Exported {
        kind: "pipeline".to_owned(),
        process: 7,
        number,
        published: events,
        active_ns,
        queue: Queue {
            capacity: 64,
            looks: 100,
            full_looks: 25,
            ..Queue::default()
        },
        end_to_end: Latency {
            count: 10,
            mean_ns: 400.0,
            ..Latency::default()
        },
        waited_mean_ns: 300.0,
        stages: stages.iter().map(stage).collect(),
        ..Exported::default()
    }
}

fn source(evidence: &Evidence) -> &str {
    &evidence
        .reading("export.stage_share")
        .expect("it is there")
        .source
}

#[test]
fn the_documented_example_is_read_and_its_slowest_stage_named() {
    let exported = written(&[("4711-1", example().as_bytes())]);
    assert_eq!(exported.len(), 1);
    let evidence = filled(&exported);
    assert_eq!(source(&evidence), "stage match of pipeline 1 (PID 4711)");
    // These values were computed by hand from the figures of the example.
    let value = |name| evidence.value(name).expect("it is there");
    assert_eq!(value("export.arrival").round(), 1_000_000.0);
    assert_eq!(value("export.service").round(), 1_250_000.0);
    assert_eq!(value("export.stage_share"), 0.8);
    assert_eq!(value("export.full_share"), 0.25);
    assert_eq!(value("export.queue_share"), 1.0 - 280.0 / 1_100.0);
    assert_eq!(value("export.burst"), 64.0);
}

#[test]
fn stages_of_a_thread_share_its_time() {
    let alone = pipeline(1, &[("a", 1, 300), ("b", 2, 400), ("c", 3, 200)]);
    let evidence = filled(&[alone]);
    assert_eq!(source(&evidence), "stage b of pipeline 1 (PID 7)");
    assert_eq!(evidence.value("export.service"), Some(2_500_000.0));
    let together = pipeline(1, &[("a", 1, 300), ("b", 2, 400), ("c", 1, 200)]);
    let evidence = filled(&[together]);
    assert_eq!(source(&evidence), "stage a of pipeline 1 (PID 7)");
    assert_eq!(evidence.value("export.service"), Some(2_000_000.0));
    // The stage takes 500 ns of each 4,000.
    assert_eq!(evidence.value("export.stage_share"), Some(0.125));
}

#[test]
fn of_several_the_one_nearest_to_its_limit_counts() {
    let mut busy = pipeline(2, &[("slow", 1, 100)]);
    busy.active_ns /= 9;
    let idle = || pipeline(1, &[("idle", 1, 5_000)]);
    let evidence = filled(&[idle(), busy.clone(), idle()]);
    assert_eq!(source(&evidence), "stage slow of pipeline 2 (PID 7)");
    // A pipeline that stands still gives no figures.
    let idle = Exported {
        stages: vec![Stage::default()],
        ..busy.clone()
    };
    assert_eq!(filled(&[idle, busy]), evidence);
}

#[test]
fn what_is_lacking_is_said() {
    let evidence = filled(&[]);
    assert_eq!(evidence.value("export.arrival"), None);
    assert!(source(&evidence).contains("not built on Thalweg"));
    let mut quick = pipeline(1, &[("a", 1, 300)]);
    quick.queue.looks = 4;
    let evidence = filled(&[quick]);
    assert_eq!(evidence.value("export.full_share"), None);
    assert_eq!(evidence.value("export.queue_share"), Some(0.75));
}

#[test]
fn a_queue_that_is_full_while_nobody_serves_it_is_no_burst() {
    let mut served = pipeline(1, &[("a", 1, 300)]);
    served.queue.burst = 900;
    served.active_ns /= 5;
    assert_eq!(filled(&[served.clone()]).value("export.burst"), Some(900.0));
    // The thread is at work for half the time, and the queue is full for four fifths.
    served.queue.full_looks = 80;
    assert_eq!(filled(&[served.clone()]).value("export.burst"), Some(900.0));
    // There is no room between two bursts.
    served.queue.full_looks = 81;
    let evidence = filled(&[served.clone()]);
    let burst = evidence.reading("export.burst").expect("it is there");
    assert_eq!(burst.value, None);
    assert!(burst.source.ends_with("nearly all the time"), "{burst:?}");
    // The thread is at work for a tenth of the time.
    served.active_ns *= 5;
    let evidence = filled(&[served]);
    let burst = evidence.reading("export.burst").expect("it is there");
    assert_eq!(burst.value, None);
    assert!(burst.source.ends_with("nobody served it"), "{burst:?}");
    assert_eq!(evidence.value("export.full_share"), Some(0.81));
}

#[test]
fn a_stall_that_few_messages_meet_is_no_queueing() {
    let mut stalled = pipeline(1, &[("a", 1, 300), ("b", 2, 100)]);
    stalled.end_to_end.mean_ns = 90_000.0;
    stalled.waited_mean_ns = 89_600.0;
    stalled.end_to_end.p50_ns = 500;
    for (stage, ns) in stalled.stages.iter_mut().zip([300, 100]) {
        stage.service.p50_ns = ns;
    }
    let evidence = filled(&[stalled.clone()]);
    let share = evidence.value("export.queue_share").expect("it is there");
    assert!((share - 0.2).abs() < 1e-9, "{share}");
    // Where most messages wait, the stage that they wait for is named.
    stalled.end_to_end.p50_ns = 80_000;
    stalled.stages[1].queueing.mean_ns = 89_000.0;
    let evidence = filled(&[stalled]);
    let queue = evidence.reading("export.queue_share").expect("it is there");
    assert!(queue.value > Some(0.99), "{queue:?}");
    assert_eq!(queue.source, "stage b of pipeline 1 (PID 7)");
    assert_eq!(source(&evidence), "stage a of pipeline 1 (PID 7)");
}

#[test]
fn an_inbox_is_a_queue_with_consumers() {
    let inbox = Inbox {
        inbox: 3,
        events: 1_000,
        busy_ns: 800_000,
        consumers: 2,
        active_ns: 1_000_000,
        ..Inbox::default()
    };
    let bus = Exported {
        kind: "bus".to_owned(),
        inboxes: vec![Inbox::default(), inbox],
        ..Exported::default()
    };
    let evidence = filled(&[bus]);
    assert_eq!(source(&evidence), "inbox 3 of bus 0 (PID 0)");
    assert_eq!(evidence.value("export.arrival"), Some(1e6));
    assert_eq!(evidence.value("export.service"), Some(2.5e6));
    assert_eq!(evidence.value("export.stage_share"), Some(0.4));
    assert_eq!(evidence.value("export.queue_share"), None);
}

#[test]
fn between_two_readings_only_what_happened_then_counts() {
    let old = pipeline(1, &[("a", 1, 300), ("b", 2, 400)]);
    let mut new = old.clone();
    new.published += 500;
    new.active_ns += 1_000_000;
    new.end_to_end.count += 10;
    new.end_to_end.mean_ns = 600.0;
    new.waited_mean_ns = 310.0;
    for stage in &mut new.stages {
        stage.events += 500;
    }
    new.stages[0].busy_ns += 900_000;
    let ended = Exported {
        has_ended: true,
        ..pipeline(2, &[("gone", 1, 100)])
    };
    let born = pipeline(3, &[("born", 1, 100)]);
    let now = between(&[old, ended.clone()], &[new, ended, born.clone()]);
    assert_eq!(now.len(), 2);
    assert_eq!(now[1], born);
    let evidence = filled(&now[..1]);
    assert_eq!(source(&evidence), "stage a of pipeline 1 (PID 7)");
    assert_eq!(evidence.value("export.arrival"), Some(500_000.0));
    assert_eq!(evidence.value("export.stage_share"), Some(0.9));
    // The share is (310 · 20 − 300 · 10) of (600 · 20 − 400 · 10).
    assert_eq!(evidence.value("export.queue_share"), Some(0.4));
}

#[test]
fn what_is_no_such_file_is_left_out() {
    let example = example();
    let content = example.as_bytes();
    let other_version = example.replace("\"version\": 1", "\"version\": 2");
    let other_format = example.replace("thalweg-export", "other-export");
    let large = [content, &vec![b' '; 1 << 20][..]].concat();
    let deep = [b'['; 100_000];
    let infinite = example.replace("\"waited_mean_ns\": 900.000", "\"waited_mean_ns\": 1e999");
    assert_ne!(infinite, example);
    let directory = Directory::new().expect("there is a place");
    let write = |name: &str, content: &[u8]| {
        fs::write(directory.path().join(name), content).expect("it takes files");
    };
    for (name, content) in [
        ("4711-2", content),
        ("4712-1", content),
        (".4711-1.new", content),
        ("4711", content),
        ("x-1", content),
        ("99999999999999999999-1", content),
    ] {
        write(name, content);
    }
    fs::create_dir(directory.path().join("1-1")).expect("it takes directories");
    let elsewhere = Directory::new().expect("there is a place");
    fs::write(elsewhere.path().join("x"), content).expect("it takes files");
    let link = directory.path().join("4711-1");
    std::os::unix::fs::symlink(elsewhere.path().join("x"), &link).expect("it takes links");
    let everybody = rustix::fs::Mode::from_raw_mode(0o600);
    let pipe = directory.path().join("5-5");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        everybody,
        0,
    )
    .expect("it takes pipes");
    assert_eq!(read(directory.path()), []);
    fs::remove_file(&link).expect("it goes");
    let half = &content[..content.len() / 2];
    let version = other_version.as_bytes();
    for bad in [
        version,
        other_format.as_bytes(),
        &large,
        &deep,
        infinite.as_bytes(),
        half,
        b"",
    ] {
        write("4711-1", bad);
        assert_eq!(read(directory.path()), []);
    }
    write("4711-1", content);
    assert_eq!(
        read(directory.path()).len(),
        1,
        "the others are in nobody's way"
    );
    assert_eq!(read(&directory.path().join("nowhere")), []);
}

proptest! {
    /// Bytes of the example are changed, cut out, or duplicated; any file that can still be read
    /// must give valid evidence.
    #[test]
    fn damaged_files_make_no_trouble(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8),
            1..20,
        )
    ) {
        let mut content = example().into_bytes();
        for (at, byte, kind) in changes {
            let at = at.index(content.len());
            match kind {
                0 => content[at] = byte,
                1 => _ = content.remove(at),
                _ => content.insert(at, b'0' + byte % 10),
            }
        }
        if let Some(exported) = Exported::parse(&content) {
            let _ = filled(&between(from_ref(&exported), from_ref(&exported)));
            let _ = filled(&[exported]);
        }
    }

    /// All figures are arbitrary.
    #[test]
    fn figures_that_cannot_be_make_no_trouble(
        numbers in prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 12),
        mean in any::<f64>(),
        name in ".*",
    ) {
        let queue = Queue {
            looks: numbers[0],
            full_looks: numbers[1],
            arrived: numbers[2],
            arrived_ns: numbers[3],
            ..Queue::default()
        };
        let stage = Stage {
            name,
            thread: numbers[4],
            events: numbers[5],
            busy_ns: numbers[6],
            ..Stage::default()
        };
        let inbox = Inbox {
            events: numbers[7],
            busy_ns: numbers[8],
            consumers: numbers[9],
            waiting: numbers[10],
            active_ns: numbers[11],
            queue: queue.clone(),
            ..Inbox::default()
        };
        for kind in ["pipeline", "bus"] {
            let exported = Exported {
                kind: kind.to_owned(),
                published: numbers[10],
                active_ns: numbers[11],
                queue: queue.clone(),
                end_to_end: Latency { count: 1, mean_ns: mean, ..Latency::default() },
                waited_mean_ns: mean,
                stages: vec![stage.clone(), stage.clone()],
                inboxes: vec![inbox.clone()],
                ..Exported::default()
            };
            let evidence = filled(&[exported]);
            for (name, reading) in evidence.readings().filter(|(_, it)| it.value.is_some()) {
                prop_assert!(!reading.source.contains(char::is_control));
                let is_share = name.ends_with("share");
                let range = 0.0..=if is_share { 1.0 } else { f64::MAX };
                prop_assert!(reading.value.is_some_and(|it| range.contains(&it)), "{name}");
            }
        }
    }
}
