//! Each experiment from the command line with tiny counts, and misuse.

use std::process::{Command, Output};

fn compare(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_compare");
    Command::new(program)
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

const TINY: [&str; 4] = ["--repetitions", "2", "--seconds", "0.002"];

/// What a tiny run with these arguments says, and what it notes on standard error.
fn tiny(arguments: &[&str]) -> (String, String) {
    let output = compare(&[arguments, &TINY[..]].concat());
    let (said, noted) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{noted}\n{said}");
    (said, noted)
}

/// The rows of a tiny run of these cases.
fn rows_of(experiment: &str, cases: &str) -> String {
    tiny(&[experiment, "--quick", "--cases", cases, "--format", "json"]).0
}

/// Each has a row of this case and subject, which goes on so.
fn assert_ran(rows: &str, expected: &[(&str, &str)], goes_on: &str) {
    for (case, subject) in expected {
        let row = format!(r#""case":"{case}","subject":"{subject}"{goes_on}"#);
        assert!(rows.contains(&row), "{row}\n{rows}");
    }
}

/// The same, with a metric.
fn assert_measured(rows: &str, expected: &[(&str, &str, &str)]) {
    for (case, subject, metric) in expected {
        let row = format!(r#""case":"{case}","subject":"{subject}","metric":"{metric}""#);
        assert!(rows.contains(&row), "{row}\n{rows}");
    }
}

/// Each has a line that begins so and has this limit.
fn assert_limits(report: &str, expected: &[(&str, &str)]) {
    for (what, limit) in expected {
        let mut lines = report.lines();
        let told = lines.any(|line| line.starts_with(what) && line.contains(limit));
        assert!(told, "{what} {limit}\n{report}");
    }
}

/// Rows of lost messages whose subject begins so, all of which must say 0.
fn losses(rows: &str, subject: &str) -> usize {
    let subject = format!(r#""subject":"{subject}"#);
    let lost = rows
        .lines()
        .filter(|row| row.contains(&subject) && row.contains(r#""metric":"lost""#));
    lost.inspect(|row| assert!(row.contains(r#""value":0.0"#), "{row}"))
        .count()
}

#[test]
fn the_pipeline_runs_every_subject_and_loses_nothing() {
    let rows = tiny(&["pipeline", "--cases", "1M/s,max", "--format", "json"]).0;
    for subject in [
        "thalweg inline",
        "thalweg auto",
        "thalweg threads:4 (4 stages)",
        "disruptor sleep:3",
    ] {
        assert!(
            rows.contains(&format!(r#""subject":"{subject}""#)),
            "{subject}\n{rows}"
        );
    }
    let ours = r#"{"experiment":"pipeline","case":""#;
    assert!(rows.lines().all(|row| row.starts_with(ours)), "{rows}");
    let lost = losses(&rows, "");
    assert!(lost >= 3 * 15, "{lost} rows of lost events");
    assert!(rows.contains(r#""subject":"thalweg threads:3","versus":"disruptor busy-spin:3""#));
}

#[test]
fn only_the_wanted_cases_run() {
    let report = tiny(&["pipeline", "--cases", "100k*inline"]).0;
    assert!(report.contains("Open loop, 100k/s"), "{report}");
    assert!(report.contains("thalweg inline"), "{report}");
    assert!(!report.contains("Open loop, 1M/s") && !report.contains("disruptor sleep:1 "));
    assert!(
        report.contains("not run"),
        "targets without figures say so\n{report}"
    );
}

#[test]
fn the_other_experiments_run() {
    for (experiment, part) in [
        ("progress", "side by side"),
        ("attribution", "cost of the default sampling"),
    ] {
        let report = tiny(&[experiment]).0;
        assert!(report.contains(part), "{report}");
    }
}

#[test]
fn channels_run_in_every_job_and_lose_nothing() {
    let cases = "one/8B/1024,batch/32B/1024,roundtrip/32B/thalweg,roundtrip/8B/crossbeam,paced/8B/\
                 thalweg,sparse/20us/regular*/std,sparse/20us/poisson/shared-core/crossbeam,\
                 fanin/4x1,fanout/1x20/crossbeam,many/2x2,oneshot/,idle/std";
    let rows = rows_of("channels", cases);
    assert!(losses(&rows, "thalweg") >= 15, "{rows}");
    let expected = [
        ("one/8B/1024", "disruptor"),
        ("batch/32B/1024", "gil spsc"),
        ("roundtrip/8B", "crossbeam blocking"),
        ("sparse/20us/regular/across", "std"),
        ("sparse/20us/poisson/shared-core", "crossbeam"),
        ("fanin/4x1", "gil mpsc sharded"),
        ("fanout/1x20", "crossbeam"),
        ("many/2x2", "kanal"),
        ("oneshot/alone", "tokio oneshot"),
        ("oneshot/across", "oneshot"),
        ("idle", "std"),
    ];
    assert_ran(&rows, &expected, "");
    assert!(rows.contains(r#""versus":"ringbuf","ratio":"#), "{rows}");
}

#[test]
fn a_burst_arrives_whole() {
    let rows = rows_of("burst", "5x1/thalweg,5x1/std,1x5/crossbeam");
    assert!(losses(&rows, "thalweg") >= 1, "{rows}");
    let expected = [("5x1", "std", "wall"), ("1x5", "crossbeam", "latency_p99")];
    assert_measured(&rows, &expected);
}

#[test]
fn the_goals_of_channels_and_bursts_are_told_with_their_limits() {
    let cases = "1x1/thalweg,1x1/crossbeam,5x1/thalweg,5x1/crossbeam";
    let report = tiny(&["burst", "--cases", cases]).0;
    let expected = [
        ("5x1 wall: thalweg over crossbeam", "≥ 1.05×"),
        ("5x1 latency_p99: thalweg over crossbeam", "≥ 2.00×"),
        ("1x1 wall: thalweg soft limit over crossbeam", "≥ 0.95×"),
        ("orders lost by this library", "≤ 0"),
    ];
    assert_limits(&report, &expected);
    assert!(!report.contains("not run"), "{report}");

    let cases = "roundtrip/32B/thalweg spsc,roundtrip/32B/std";
    let report = tiny(&["channels", "--quick", "--cases", cases]).0;
    for (what, limit) in [
        ("roundtrip/32B round_trip_p50: thalweg", "≥ 1.15×"),
        ("roundtrip/32B round_trip_p99: thalweg", "≥ 1.30×"),
    ] {
        let mut lines = report.lines();
        let told = lines.any(|line| {
            line.starts_with(what) && line.contains(" over std") && line.contains(limit)
        });
        // Both sides are pinned to a core of their own, or skipped.
        let told = told || report.contains("needs 2 cores");
        assert!(told, "{what} {limit}\n{report}");
    }
}

#[test]
fn the_exchange_runs_its_own_streams_and_tells_its_goals() {
    let cases = "core/sweeps,peers/place_cancel,cores/bytes/trading";
    let report = tiny(&["exchange", "--quick", "--cases", cases]).0;
    let expected = [
        (
            "core/sweeps: thalweg all parts, CPU time a trade",
            "≤ 20.0 ns",
        ),
        (
            "peers/place_cancel: thalweg matching alone over lobster",
            "≥ 1.00×",
        ),
        (
            "peers/place_cancel: thalweg matching alone over orderbook-rs",
            "≥ 1.00×",
        ),
        ("cores/bytes/trading: thalweg ", "≥ 1.30×"),
    ];
    assert_limits(&report, &expected);
    assert!(!report.contains("skipped"), "{report}");

    let cases = "open/1M/s/thalweg inline";
    let (rows, noted) = tiny(&["exchange", "--cases", cases, "--format", "json"]);
    if noted.contains("SKIPPED") {
        // The stream is not part of this repository.
        eprintln!("skipped: {noted}");
        return;
    }
    assert_eq!(losses(&rows, "thalweg"), 1);
    for row in [
        r#""subject":"thalweg inline","metric":"latency_max""#,
        r#""subject":"thalweg inline settle","metric":"service_mean""#,
    ] {
        assert!(rows.contains(row), "{row}\n{rows}");
    }
}

#[test]
fn hashes_are_those_of_the_reference_and_tell_their_goals() {
    let cases = "short/7,one/512B,scatter/1,many/512B,keys/8B";
    let report = tiny(&["hash", "--cases", cases]).0;
    let expected = [
        "short, the worst length: thalweg over C",
        "one/512B time: thalweg over C",
        "scatter/1 time: thalweg over C",
        "many/512B time: thalweg over ",
        "keys/8B time: thalweg over C",
    ];
    assert_limits(&report, &expected.map(|what| (what, "≥")));
}

#[test]
fn records_come_into_the_buffer_and_into_every_log() {
    let report = tiny(&["append"]).0;
    let told = "28 bytes in place over 28 bytes by value";
    assert!(report.contains(told), "{report}");
    assert!(!report.contains("skipped"), "{report}");

    let cases = "unsynced,commit/256,commit/4096/okaywal,producers/2";
    let rows = rows_of("journal", cases);
    let expected = [
        ("unsynced", "thalweg-journal"),
        ("unsynced", "BufWriter 64 KiB, no checksum"),
        ("commit/256", "thalweg-journal"),
        ("commit/256", "growing file + fdatasync"),
        ("commit/256", "commitlog"),
        ("commit/256", "fjall"),
        ("commit/256", "redb"),
        ("commit/4096", "okaywal"),
        ("producers/2", "ring to a journal's thread"),
        ("producers/2", "Shared"),
    ];
    assert_ran(&rows, &expected, r#","metric":""#);
}

#[test]
fn messages_to_coroutines_all_arrive() {
    let tiny = ["--repetitions", "2", "--seconds", "0.0002"];
    let output = compare(&[&["tasks", "--format", "json"], &tiny[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = text(&output.stdout);
    losses(&rows, "");
    let expected = [
        ("one", "thalweg Local, destructor"),
        ("many/random", "thalweg Shared"),
        ("many/in order", "thalweg fiber"),
        ("ends", "thalweg create, run, end"),
        ("panics", "thalweg panics"),
        ("timers", "thalweg sleep_until"),
        ("timers", "thalweg sleep"),
        ("timers", "thalweg task with a deadline"),
        ("one", "thalweg Local, by boxed call"),
        ("peers/one", "thalweg slot a message"),
        ("peers/one", "thalweg slot a message, by hand"),
        ("burst", "thalweg ring and slots"),
        ("peers/one", "tokio oneshot, by hand"),
        ("peers/in order", "futures unbounded, LocalSet"),
        ("peers/random", "oneshot, by hand"),
        ("burst", "tokio mpsc, one a task"),
        ("atomics", "locked read-modify-write"),
    ];
    assert_ran(&rows, &expected, r#","metric":"time"#);
}

#[test]
fn a_bus_runs_beside_others_and_accounts_for_every_message() {
    // It fails if a burst is not accounted for.
    let rows = tiny(&["bus", "--format", "json"]).0;
    losses(&rows, "thalweg");
    let expected = [
        ("publish/1/65536", "bus", "time_of_a_call"),
        ("publish/1/1024", "tokio broadcast", "time_of_a_call"),
        ("stream/1", "crossbeam, callbacks", "time_per_message"),
        ("stream/2", "thalweg bus", "time_per_message"),
        ("fan/2", "disruptor (try, yield)", "time_per_message"),
        ("fan/2", "thalweg bus, recv", "time_per_message"),
        ("burst/150k", "thalweg bus, default", "lost_low"),
        ("burst/300k", "thalweg bus, own reserves", "lost_high"),
        ("overload", "thalweg bus, slowed", "high_lost"),
        ("overload", "thalweg bus, blocked", "taken"),
    ];
    assert_measured(&rows, &expected);
}

#[test]
fn an_exchange_in_this_process_runs_beside_what_it_is_measured_against() {
    let cases = "in-process/,recovery,snapshot/";
    let rows = rows_of("serve", cases);
    let expected = [
        ("in-process/500k", "durable exchange", "acknowledged p99"),
        (
            "in-process/500k",
            "bare loop into thalweg-journal",
            "achieved",
        ),
        (
            "in-process/max",
            "service without a journal",
            "commands a second",
        ),
        ("in-process/max", "unsynced exchange", "commands a second"),
        ("in-process/max", "durable exchange", "commits a second"),
        (
            "in-process/max",
            "bare commits of the same size",
            "commands a second",
        ),
        ("recovery", "opened", "commands a second"),
        ("recovery", "read, decoded and applied", "commands a second"),
        ("snapshot/1m", "with snapshots", "acknowledged longest"),
        ("snapshot/1m", "without", "acknowledged longest"),
    ];
    assert_measured(&rows, &expected);
    let ratio = r#""subject":"unsynced exchange","versus":"service without a journal","ratio":"#;
    assert!(rows.contains(ratio), "{rows}");
}

#[test]
fn principles_run_on_one_core_and_on_two_and_make_a_page() {
    let page = std::env::temp_dir().join(format!("principles-{}.html", std::process::id()));
    let path = page.to_str().expect("UTF-8");
    let cases = "state/,waiting/20us,loss/,diagnosis,optimise/stream,optimise/lanes";
    let arguments = ["principles", "--cases", cases, "--html", path];
    let rows = tiny(&[&arguments[..], &["--format", "json"]].concat()).0;
    losses(&rows, "");
    let expected = [
        ("state/article", "four flags, result dropped"),
        ("state/path/1 core", "one word"),
        ("waiting/20us/1 core", "article's adaptive, as described"),
        ("waiting/20us/1 core", "thalweg balanced"),
        ("loss/burst/1 core", "9000 slots, by the formula"),
        ("loss/overload/1 core", "256 slots"),
        ("diagnosis/1 core", "lock convoy"),
        ("optimise/stream/1 core", "without the cached index"),
        ("optimise/lanes/1 core", "a lane for the urgent"),
    ];
    assert_ran(&rows, &expected, "");
    let html = std::fs::read_to_string(&page).expect("the page was written");
    std::fs::remove_file(&page).expect("it is there");
    for part in ["1. State", "5. Optimisations", "cannot tell", "</html>"] {
        assert!(html.contains(part), "{part}");
    }
    let none = compare(&["hash", "--html", path]);
    assert_eq!(none.status.code(), Some(2));
    assert_eq!(
        text(&none.stderr),
        "error: experiment \"hash\" has no page\n"
    );
}

#[test]
fn misuse_is_told() {
    let list = compare(&["--list"]);
    assert!(list.status.success());
    let lines = text(&list.stdout);
    let names: Vec<&str> = lines
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        names.contains(&"pipeline") && names.contains(&"serve"),
        "{lines}"
    );
    let unknown = compare(&["pipelines"]);
    assert_eq!(unknown.status.code(), Some(2));
    let there = names.join(", ");
    let told = format!("error: no experiment \"pipelines\"; there are {there}\n");
    assert_eq!(text(&unknown.stderr), told);
    for (experiment, cases) in [
        ("tasks", "burst, ends, many/in order"),
        ("hash", "one/512B"),
    ] {
        let none = compare(&[&[experiment, "--cases", "nosuch"], &TINY[..]].concat());
        assert_eq!(none.status.code(), Some(2), "{experiment}");
        let told = text(&none.stderr);
        let begins = format!("error: no case of \"{experiment}\" is asked for; there are ");
        assert!(told.contains(&begins) && told.contains(cases), "{told}");
        assert!(none.stdout.is_empty(), "{}", text(&none.stdout));
    }
    for wrong in [
        &["pipeline", "--repetitions", "0"][..],
        &["pipeline", "--seconds", "0"],
        &["pipeline", "--cases", ""],
        &[],
    ] {
        assert_eq!(compare(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
