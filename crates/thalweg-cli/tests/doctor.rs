//! The doctor must not disturb a program, and must judge it.
#![cfg(target_os = "linux")]

use crate::program;

use program::{Ended, Scratch, command, thalweg};

#[test]
fn output_and_exit_code_are_the_programs() {
    let out = thalweg(&["doctor", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(out.code, Some(7));
    assert_eq!(out.stdout, "out\n");
    assert!(
        out.stderr
            .starts_with("err\n\nthalweg doctor: sh -c echo out;"),
        "{}",
        out.stderr
    );
    assert!(!out.stderr.contains('\x1b'));
}

#[test]
fn ends_have_the_codes_that_a_shell_gives() {
    let code = |command: &[&str]| thalweg(&[&["doctor", "--"], command].concat()).code;
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["/nonexistent/program"]), Some(127));
    assert_eq!(code(&["no-such-program-anywhere"]), Some(127));
    let text = Scratch::new();
    assert_eq!(code(&[&text.file("text", b"no program")]), Some(126));
    assert_eq!(code(&["true"]), Some(0));
    assert_eq!(thalweg(&["doctor"]).code, Some(2));
    let same = text.path("same");
    let both = [
        "doctor", "--output", &same, "--html", &same, "--", "echo", "ran",
    ];
    let out = thalweg(&both);
    assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""));
    let why = "the report and the page of --html would both go to";
    assert!(out.stderr.contains(why), "{}", out.stderr);
    let both = ["doctor", "--json", "--html", "-", "--", "echo", "ran"];
    assert_eq!(thalweg(&both).code, Some(2));
    let nowhere = ["doctor", "--output", "/nonexistent/report", "--", "true"];
    assert_eq!(thalweg(&nowhere).code, Some(2));
}

#[test]
fn a_page_that_cannot_be_written_is_reported_by_the_exit_code() {
    let into = |error: std::process::Stdio| {
        let status = command(&["doctor", "--", "true"]).stderr(error).status();
        status.expect("the program can be started").code()
    };
    let full = std::fs::File::options().write(true).open("/dev/full");
    assert_eq!(into(full.unwrap().into()), Some(2));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(into(writer.into()), Some(0), "nobody reads it");
}

#[test]
fn json_comes_behind_what_the_program_writes() {
    let out = thalweg(&["doctor", "--json", "--", "echo", "hello"]);
    assert_eq!(out.code, Some(0));
    let json = out
        .stdout
        .strip_prefix("hello\n")
        .expect("the program's output first");
    let report: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(report["command"], serde_json::json!(["echo", "hello"]));
    assert_eq!(report["exit"]["code"], 0);
    assert!(report["evidence"]["time.wall"]["value"].is_number());
}

#[test]
fn a_report_goes_to_a_file() {
    let scratch = Scratch::new();
    let file = scratch.path("report.json");
    let out = thalweg(&["doctor", "--json", "--output", &file, "--", "echo", "hello"]);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("hello\n", ""));
    let report = std::fs::read_to_string(file).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["exit"]["code"], 0);
}

#[test]
fn a_program_that_computes_is_reported_with_its_figures() {
    let busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let out = thalweg(&["doctor", "--evidence", "--", "sh", "-c", busy]);
    assert_eq!(out.code, Some(0));
    // Beside other programs they are the cause, and the page says that first.
    let verdicts = ["CPU-COMPUTE", "CONTAMINATED"];
    let is_named = verdicts
        .iter()
        .any(|id| out.stderr.contains(&format!("1. {id} (")));
    assert!(is_named, "{}", out.stderr);
    for part in ["   Next: ", "state.running", "\ntime.wall "] {
        assert!(out.stderr.contains(part), "{part} is not in {}", out.stderr);
    }
}

#[test]
fn the_latencies_that_an_exchange_exports_are_drawn() {
    let scratch = Scratch::new();
    let exports = scratch.path("exports");
    std::fs::create_dir(&exports).expect("a directory");
    let page = scratch.path("report.html");
    let own = env!("CARGO_BIN_EXE_thalweg");
    let out = command(&["doctor", "--html", &page, "--", own])
        .args(["exchange", "run", "--commands", "5000", "--quiet"])
        .args(["--format", "json"])
        .env("THALWEG_EXPORT", &exports)
        .output();
    let out = Ended::from(out.expect("the program can be started"));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let files = std::fs::read_dir(&exports).expect("a directory");
    assert!(files.count() >= 2, "they are the user's, and stay");
    let printed: serde_json::Value = serde_json::from_str(&out.stdout).expect("JSON");
    let times = &printed["latency"]["end_to_end"];
    let shown = |name: &str| {
        let ns = times[name].as_f64().expect("a time");
        thalweg_measure::table::Nanoseconds(ns).to_string()
    };
    let figures = format!(
        "Latency  p50 {}, p99 {}, max {}: end to end, 5000 messages\n",
        shown("p50_ns"),
        shown("p99_ns"),
        shown("max_ns")
    );
    assert!(
        out.stderr.contains(&figures),
        "{figures} is not in {}",
        out.stderr
    );
    let page = std::fs::read_to_string(page).expect("a page");
    let section = page.split("<h2>Latency</h2>").nth(1).expect("its section");
    let row = section
        .split("<td")
        .find(|cell| cell.contains("end to end"));
    assert!(row.is_some() && section.contains("class=\"curve total\""));
    // Too few commands ran for the exchange to print other percentiles.
    for name in ["p50_ns", "p90_ns", "p99_ns", "max_ns"] {
        let cell = format!(">{}<", shown(name));
        assert!(section.contains(&cell), "{cell} of {name} is not there");
    }
}

#[test]
fn help_says_what_the_exit_codes_mean() {
    let one_line = |words: &[&str]| {
        let help = thalweg(words).fine().to_owned();
        help.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let attach = one_line(&["doctor", "attach", "--help"]);
    for part in [
        "Exit code: 0 observed, in whole or in part; 2 misuse or failure",
        "all processes that descend from it",
        "JSON to standard output, after what a COMMAND wrote there",
    ] {
        assert!(attach.contains(part), "{attach}");
    }
    let run = one_line(&["doctor", "--help"]);
    let signal = "128 plus the number of the signal that ended it";
    assert!(run.contains(signal), "{run}");
    let tip = "tip: a program is run behind --: 'thalweg doctor -- ls -l'";
    thalweg(&["doctor", "ls", "-l"]).refused(&[tip]);
}

#[test]
fn capabilities_are_listed() {
    let out = thalweg(&["doctor", "caps"]);
    assert_eq!(out.code, Some(0));
    assert!(out.stdout.contains("works"), "{}", out.stdout);
    let out = thalweg(&["doctor", "caps", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&out.stdout).expect("JSON");
    assert!(all.as_array().is_some_and(|all| !all.is_empty()));
}

#[test]
fn other_tools_get_the_threads_of_the_program() {
    let scratch = Scratch::new();
    let (trace, profile) = (scratch.path("trace.json"), scratch.path("profile.json"));
    let files = ["doctor", "--perfetto", &trace, "--firefox", &profile, "--"];
    let out = thalweg(&[&files[..], &["sh", "-c", "exit 3"]].concat());
    assert_eq!(out.code, Some(3), "{out:?}");
    let read = |path: &str| -> serde_json::Value {
        let text = std::fs::read(path).expect("it was written");
        serde_json::from_slice(&text).expect("it is JSON")
    };
    let trace = read(&trace);
    assert_eq!(trace["otherData"]["command"], "sh -c exit 3");
    let events = trace["traceEvents"].as_array().expect("events");
    let has_slice = events
        .iter()
        .any(|event| event["ph"] == "X" && event["cat"] == "state");
    let profile = read(&profile);
    assert_eq!(profile["meta"]["preprocessedProfileVersion"], 48);
    let threads = profile["threads"].as_array().expect("threads");
    let spans = threads
        .iter()
        .map(|thread| thread["markers"]["length"].as_u64());
    assert_eq!(spans.flatten().any(|spans| spans > 0), has_slice);
    let same = [
        "doctor",
        "--perfetto",
        "-",
        "--firefox",
        "-",
        "--",
        "echo",
        "ran",
    ];
    let why = "the trace of --perfetto and the profile of --firefox would both go to";
    thalweg(&same).refused(&[why]);
}
