//! Processes that run already.

use crate::doctor::{see, this};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("a_process_that_runs_is_watched_for_a_while", spinner),
    ("a_process_that_ends_ends_the_watch", ends),
    ("a_process_that_is_not_there_is_an_error", missing),
];

fn spinner() {
    let mut patient = this("as-patient")
        .args(["spin", "1000000"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(patient.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let seen = see(&["--attach", &patient.id().to_string(), "500"]);
    patient.kill().unwrap();
    patient.wait().unwrap();
    assert_eq!(seen.code, 0, "{}", seen.stderr);
    assert_eq!(seen.value("threads.max"), 1.0);
    assert!(seen.value("time.wall") >= 0.5);
    // It always runs or waits for a core that others have.
    assert!(seen.value("threads.busy") > 0.5, "{}", seen.stderr);
    if seen.quality("spin.cpu_share") == "sampled" {
        assert!(seen.value("spin.cpu_share") > 0.3, "{}", seen.stderr);
    }
    assert_eq!(seen.report()["exit"], "running");
}

fn ends() {
    let mut patient = this("as-patient")
        .args(["spin", "200"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let seen = see(&["--attach", &patient.id().to_string(), "1000000"]);
    patient.wait().unwrap();
    assert_eq!(seen.code, 0, "{}", seen.stderr);
}

fn missing() {
    let seen = see(&["--attach", "2147483000", "10"]);
    assert_eq!(
        (seen.code, seen.stderr.as_str()),
        (2, "doctor: there is no process 2147483000\n")
    );
}
