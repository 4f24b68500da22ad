//! Tests the programs with a known bottleneck, and the score of a doctor on them. `timeout` and the
//! doctor itself exist on Linux only.
#![cfg(target_os = "linux")]

#[path = "../examples/score/scoring.rs"]
mod scoring;

use scoring::{Case, Folder, Options, Outcome, Row, Tally, heading, parse, read, score, verdicts};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use thalweg_testkit::Scratch;

/// A script that runs the program, and then reports the bottleneck that its arguments name.
const FAKE: &str = r#"id=$1 confidence=$2
shift 2
"$@"
code=$?
printf '{"verdicts": [{"id": "%s", "confidence": %s, "evidence": []}]}\n' "$id" "$confidence"
exit $code
"#;

/// A table of cases. The output of a program has braces, as that of any program may.
const TABLE: &str = r#"[
  {"name": "one", "folder": "known", "language": "sh", "expected": ["IDLE"],
   "run": ["sh", "-c", "echo '{not a report {}'"]},
  {"name": "two", "folder": "held-out", "language": "sh", "expected": ["PAGE-FAULTS", "IDLE"],
   "run": ["sh", "-c", "echo {seconds}"]},
  {"name": "three", "folder": "known", "language": "sh", "expected": ["THROTTLED"],
   "run": ["sh", "-c", "echo no quota >&2; exit 77"]},
  {"name": "four", "folder": "known", "language": "none", "expected": ["IDLE"],
   "build": ["no-such-compiler", "four"], "run": ["{out}"]}
]"#;

fn cases_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Makes a folder for a test, which is removed at its end.
fn folder(test: &str) -> Scratch {
    Scratch::within(env!("CARGO_TARGET_TMPDIR"), test)
}

fn options(out: &Path, doctor: &[&str]) -> Options {
    Options {
        doctor: doctor.iter().map(|&word| word.to_owned()).collect(),
        cases: cases_folder(),
        out: out.to_owned(),
        seconds: 1.0,
        repeat: 1,
        user: None,
    }
}

fn table() -> Vec<Case> {
    parse(TABLE).expect("a table")
}

/// Returns the score of a doctor that always gives the same answer: the last lines of the page, and
/// the exit code.
fn score_of_fake(test: &str, answer: &[&str]) -> (String, u8) {
    let folder = folder(test);
    let file = folder.join("fake.sh");
    fs::write(&file, FAKE).expect("the folder can be written");
    let mut doctor = vec!["sh", file.to_str().expect("a plain path")];
    doctor.extend(answer);
    let options = options(&folder, &doctor);
    let tally = score(&table(), &options, |row| println!("{row}")).expect("it runs");
    (tally.to_string(), tally.exit_code())
}

#[test]
fn a_doctor_that_is_right_gets_every_point() {
    let (page, code) = score_of_fake("right", &["IDLE", "0.9"]);
    let lines = [
        "known: first verdict right in 1 of 1, 0 wrong and sure, 2 skipped\n",
        "held-out: first verdict right in 1 of 1, 0 wrong and sure, 0 skipped\n",
    ];
    assert_eq!((page, code), (lines.concat(), 0));
}

#[test]
fn a_doctor_that_is_wrong_loses_them() {
    let (page, code) = score_of_fake("wrong", &["PAGE-FAULTS", "0.9"]);
    let lines = [
        "known: first verdict right in 0 of 1, 1 wrong and sure, 2 skipped\n",
        "held-out: first verdict right in 1 of 1, 0 wrong and sure, 0 skipped\n",
    ];
    assert_eq!((page, code), (lines.concat(), 1));
}

#[test]
fn a_wrong_doctor_that_is_not_sure_loses_its_points_only() {
    let (page, code) = score_of_fake("unsure", &["SYSCALL-BOUND", "0.6"]);
    assert!(
        page.contains("known: first verdict right in 0 of 1, 0 wrong and sure"),
        "{page}"
    );
    assert_eq!(code, 1);
    let sure = score_of_fake("sure", &["SYSCALL-BOUND", "0.61"]).0;
    assert!(sure.contains("1 wrong and sure"), "{sure}");
    // This answer is never wrong and sure, whatever its confidence.
    let declined = score_of_fake("declined", &["CONTAMINATED", "0.9"]).0;
    assert!(!declined.contains("1 wrong and sure"), "{declined}");
}

#[test]
fn a_doctor_without_a_report_is_wrong() {
    let cases = table();
    for (test, doctor) in [("mute", "env"), ("failing", "false")] {
        let folder = folder(test);
        let tally =
            score(&cases[..1], &options(&folder, &[doctor]), |_| {}).expect("each case builds");
        assert!(tally.to_string().contains("right in 0 of 1"), "{tally}");
        assert_eq!(tally.exit_code(), 1);
    }
}

#[test]
fn a_tally_of_skipped_cases_is_no_success() {
    let cases = table();
    let folder = folder("skipped");
    let tally = score(&cases[2..], &options(&folder, &["env"]), |_| {}).expect("each case builds");
    assert_eq!(tally.exit_code(), 2, "{tally}");
}

#[test]
fn another_user_is_compared_with_the_first() {
    let case = &table()[0];
    let outcome = |id: &str| {
        let text = format!(r#"noise {{ {{"verdicts": [{{"id": "{id}", "confidence": 0.5}}]}}"#);
        Outcome::Verdicts(verdicts(&text).unwrap())
    };
    let mut tally = Tally::default();
    for (number, other) in ["IDLE", "IDLE", "IDLE", "IDLE", "BURST"]
        .into_iter()
        .enumerate()
    {
        tally.add(Row::new(case, None, outcome("IDLE")));
        tally.add(Row::new(case, Some("nobody"), outcome(other)));
        assert_eq!(tally.same(), ((number + 1).min(4), number + 1));
        assert_eq!(tally.exit_code(), 0, "4 of 5 is enough");
    }
    tally.add(Row::new(case, None, outcome("IDLE")));
    tally.add(Row::new(case, Some("nobody"), outcome("BURST")));
    assert_eq!((tally.same(), tally.exit_code()), ((4, 6), 1));
    assert!(heading().contains("first verdict"));
}

#[test]
fn a_report_is_the_last_object_and_sane() {
    let report = r#"{"verdicts": [{"id": "IDLE", "confidence": 1.0, "evidence": [{}]}]}"#;
    assert!(verdicts(&format!("{{\"verdicts\": []}}\n{report}\n")).is_some());
    assert!(verdicts(&format!("{report} and more")).is_none());
    assert!(verdicts(&report.replace("1.0", "1.1")).is_none());
    assert!(verdicts("{}").is_none());
}

#[test]
fn a_bad_table_is_refused() {
    let twice = TABLE.replace("\"two\"", "\"one\"");
    assert_eq!(parse(&twice).unwrap_err(), "two cases are called one");
    let mute = TABLE.replace("[\"THROTTLED\"]", "[]");
    assert_eq!(
        parse(&mute).unwrap_err(),
        "case three lacks a command or a verdict"
    );
    assert!(parse(&TABLE.replace("held-out", "elsewhere")).is_err());
    assert!(
        read(Path::new("nowhere"))
            .unwrap_err()
            .starts_with("nowhere/cases.json: ")
    );
}

#[test]
fn every_program_is_in_the_table_and_in_the_page() {
    let cases = read(&cases_folder()).unwrap();
    let page = fs::read_to_string(cases_folder().join("README.md")).unwrap();
    for case in &cases {
        let row = format!("| {} |", case.name);
        assert!(page.contains(&row), "cases/README.md has no row {row}");
        for id in &case.expected {
            assert!(IDS.contains(&id.as_str()), "{} expects {id}", case.name);
        }
    }
    let named = |case: &Case| {
        let words = case.build.iter().chain(&case.run).chain(&case.beside);
        let in_folder = words.filter_map(|word| word.strip_prefix("{folder}/"));
        let path = |file: &str| format!("{}/{file}", case.folder);
        in_folder.map(path).collect::<Vec<_>>()
    };
    let named: BTreeSet<String> = cases.iter().flat_map(named).collect();
    for folder in [Folder::Known, Folder::HeldOut] {
        let prefix = format!("{folder}/");
        let listed = named
            .iter()
            .filter(|path| path.starts_with(&prefix))
            .cloned();
        let there = match fs::read_dir(cases_folder().join(folder.name())) {
            Ok(files) => files.map(|file| file.unwrap().file_name()).collect(),
            Err(_) => Vec::new(),
        };
        let there = there
            .iter()
            .map(|name| format!("{prefix}{}", name.to_string_lossy()));
        assert_eq!(listed.collect::<BTreeSet<_>>(), there.collect(), "{folder}");
    }
}

/// The verdicts that cases may expect, as reports write them.
const IDS: [&str; 15] = [
    "BLOCKING-IO",
    "PAGE-FAULTS",
    "YIELD-STORM",
    "SPIN-STARVES-PEER",
    "SPIN-BURNS-CPU",
    "FUTEX-PARKING",
    "LOCK-CONVOY",
    "SLEEP-POLLING",
    "SYSCALL-BOUND",
    "OVERSUBSCRIBED",
    "THROTTLED",
    "CPU-COMPUTE",
    "SCHED-CHURN",
    "IDLE",
    "STAGE-BOUND",
];

/// Returns the path of the program that this workspace builds, if it has the command.
fn doctor() -> Option<PathBuf> {
    let this = std::env::current_exe().expect("this runs");
    let program = this.parent()?.parent()?.join("thalweg");
    let help = Command::new(&program).args(["doctor", "--help"]).output();
    help.is_ok_and(|output| output.status.success())
        .then_some(program)
}

#[test]
fn no_wrong_verdict_is_sure() {
    let Some(program) = doctor() else {
        println!("skipped: no `thalweg doctor` beside this test; build thalweg-cli first");
        return;
    };
    let chosen = [
        "touch-and-free",
        "spin-two",
        "queens",
        "poll-list",
        "accept",
    ];
    let mut cases = read(&cases_folder()).unwrap();
    cases.retain(|case| chosen.contains(&case.name.as_str()));
    assert_eq!(cases.len(), chosen.len());
    let doctor = [program.to_str().unwrap(), "doctor", "--json", "--"];
    let folder = folder("doctor");
    let tally = score(&cases, &options(&folder, &doctor), |row| println!("{row}"))
        .expect("each case builds");
    for ((folder, _), score) in tally.scores() {
        assert_eq!(score.wrong_and_sure, 0, "{folder}: {tally}");
    }
}
