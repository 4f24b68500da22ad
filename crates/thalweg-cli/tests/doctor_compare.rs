//! `thalweg doctor compare`.
#![cfg(target_os = "linux")]

use crate::program;

use program::{Scratch, command, signal, thalweg};
use std::process::Stdio;

fn compare(options: &[&str]) -> program::Ended {
    thalweg(&[&["doctor", "compare", "-n", "6", "--warmup", "0"], options].concat())
}

/// Returns a shell command that counts to this number.
fn counting(to: u32) -> String {
    format!("sh -c 'i=0; while [ $i -lt {to} ]; do i=$((i+1)); done'")
}

#[test]
fn a_command_that_does_a_hundred_times_as_much_uses_more() {
    let found = compare(&["--json", "--a", &counting(1_000), "--b", &counting(100_000)]);
    // Other programs may run beside this test: then there is no verdict, or none on the wall time.
    let json: serde_json::Value = serde_json::from_str(&found.stdout).expect("it is JSON");
    let user = &json["metrics"][1];
    let is_shown = user["shift"]["low"].as_f64().is_some_and(|low| low > 0.0);
    let is_sure = user["p_holm"].as_f64().is_some_and(|p| p < 0.05);
    assert!(is_shown && is_sure, "{user}");
    let wall = &json["metrics"][0];
    let is_sure = wall["p_holm"].as_f64().is_some_and(|p| p < 0.05);
    let (code, verdicts) = match json.get("contaminated") {
        Some(_) => (1, ["contaminated"; 2]),
        None if is_sure && wall["shift"]["value"].as_f64() > Some(0.0) => (0, ["slower"; 2]),
        None if is_sure => (0, ["faster", "slower"]),
        None => (0, ["not shown to differ", "slower"]),
    };
    assert_eq!(found.code, Some(code));
    let shown = [&json["verdict"], &user["verdict"]];
    assert_eq!(shown.map(|verdict| verdict.as_str()), verdicts.map(Some));
    assert_eq!(wall["verdict"], json["verdict"]);
    assert_eq!(
        (&json["a"]["shell"], &json["n"]),
        (&false.into(), &6.into())
    );
}

#[test]
fn a_page_names_both_commands_and_who_runs_them() {
    let said = compare(&["--a", "true", "--b", "true | cat", "--quiet"]);
    for part in [
        "A  true\n",
        "B  true | cat  (run by sh -c)\n",
        "6 runs of each",
        "max RSS",
    ] {
        assert!(said.stdout.contains(part), "{said:?}");
    }
    assert_eq!(
        said.stderr, "",
        "what the commands write is dropped, and nobody watches"
    );
}

#[test]
fn a_run_that_fails_is_an_error_that_names_it() {
    let failing = "sh -c 'echo no >&2; exit 3'";
    let both = ["--a", "true", "--b", failing];
    compare(&both).refused(&["B: run 1 failed: exit status: 3"]);
    let ignored = compare(&[&both[..], &["--ignore-failure", "--show-output"]].concat());
    assert!(ignored.code.is_some_and(|code| code < 2), "{ignored:?}");
    assert_eq!(ignored.stderr.matches("no\n").count(), 6, "{ignored:?}");
    compare(&["--a", "no-such-program-here", "--b", "true"])
        .refused(&["A: the command cannot be started"]);
}

#[test]
fn misuse_is_refused() {
    compare(&["--a", "echo 'x", "--b", "true"]).refused(&["--a 'echo 'x': a quote is not closed"]);
    compare(&["--a", "", "--b", "true"]).refused(&["the command is empty"]);
    for runs in ["5", "1001", "-1", "many"] {
        thalweg(&[
            "doctor", "compare", "--runs", runs, "--a", "true", "--b", "true",
        ])
        .refused(&[]);
    }
    thalweg(&["doctor", "compare", "--a", "true"]).refused(&["--b"]);
}

#[test]
fn an_interruption_ends_both() {
    let scratch = Scratch::new();
    let file = scratch.path("process");
    let a = format!("echo $$ > {file}; while :; do :; done");
    let child = command(&["doctor", "compare", "--a", &a, "--b", "true"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let runs = || std::fs::read_to_string(&file).is_ok_and(|id| id.ends_with('\n'));
    while !runs() {
        std::thread::yield_now();
    }
    let id = std::fs::read_to_string(&file).expect("it was written");
    signal(child.id(), 2);
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(
        !std::path::Path::new("/proc").join(id.trim()).exists(),
        "{id}"
    );
}
