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

#[test]
fn the_pipeline_runs_every_subject_and_loses_nothing() {
    let output = compare(
        &[
            &["pipeline", "--cases", "1M/s,max", "--format", "json"],
            &TINY[..],
        ]
        .concat(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = text(&output.stdout);
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
    let mut lost = 0;
    for row in rows.lines() {
        assert!(
            row.starts_with(r#"{"experiment":"pipeline","case":""#),
            "{row}"
        );
        if row.contains(r#""metric":"lost""#) {
            assert!(row.contains(r#""value":0.0"#), "{row}");
            lost += 1;
        }
    }
    assert!(lost >= 3 * 15, "{lost} rows of lost events");
    assert!(rows.contains(r#""subject":"thalweg threads:3","versus":"disruptor busy-spin:3""#));
}

#[test]
fn only_the_wanted_cases_run() {
    let cases = ["pipeline", "--cases", "100k*inline"];
    let output = compare(&[&cases, &TINY[..]].concat());
    assert!(output.status.success());
    let report = text(&output.stdout);
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
        let output = compare(&[&[experiment], &TINY[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report = text(&output.stdout);
        assert!(report.contains(part), "{report}");
    }
}

#[test]
fn misuse_is_told() {
    let unknown = compare(&["pipelines"]);
    assert_eq!(unknown.status.code(), Some(2));
    let told = "error: no experiment \"pipelines\"; there are pipeline, progress, attribution\n";
    assert_eq!(text(&unknown.stderr), told);
    for wrong in [
        &["pipeline", "--repetitions", "0"][..],
        &["pipeline", "--seconds", "0"],
        &["pipeline", "--cases", ""],
        &[],
    ] {
        assert_eq!(compare(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let list = compare(&["--list"]);
    assert!(list.status.success());
    assert_eq!(text(&list.stdout).lines().count(), 3);
}
