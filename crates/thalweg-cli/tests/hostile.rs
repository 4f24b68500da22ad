//! Tests what a hostile user might try: outputs that overwrite inputs, full disks, negative
//! numbers, other compression formats, signals.

use crate::program;

use program::{Ended, Scratch, command, thalweg, words};
use std::process::Stdio;

pub(crate) const ORDERS: &str = "thalweg-orders,1\nsymbol,1,10,20,1,1,0,0\nuser,7\n";

#[test]
fn outputs_are_not_written_over_the_input_or_each_other() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS.as_bytes());
    let (alias, other) = (scratch.path("./orders.csv"), scratch.path("other.csv"));
    let run = |options: &[&str]| thalweg(&[&["exchange", "run", &orders], options].concat());
    for option in ["--output", "--html"] {
        run(&[option, &alias]).refused(&[option, "orders.csv: this is the input"]);
    }
    run(&["--books", &other]).refused(&["--books goes with"]);
    let said = run(&["--output", &other, "--html", &other]);
    said.refused(&["--html", " and ", " both write to ", "other.csv"]);
    run(&["--output", "-", "--html", "-"]).refused(&[" both write to standard output"]);
    assert_eq!(std::fs::read_to_string(&orders).unwrap(), ORDERS);
}

#[test]
fn facts_give_way_to_any_output_on_standard_output() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS.as_bytes());
    for (option, begin) in [("--html", "<!DOCTYPE"), ("--output", "{\"")] {
        let said = thalweg(&["exchange", "run", &orders, option, "-", "--format", "json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stdout.starts_with(begin), "{said:?}");
        assert!(!said.stdout.contains("state_hash"), "{said:?}");
        let facts: serde_json::Value = serde_json::from_str(&said.stderr).unwrap();
        assert_eq!(facts["commands"]["total"], 2);
    }
}

#[test]
fn numbers_below_the_least_name_it() {
    let run = |options: &[&str]| thalweg(&[&["exchange", "run"], options].concat());
    for option in ["--from", "--limit", "--seed", "--commands"] {
        let said = run(&[option, "-1"]);
        said.refused(&["invalid value '-1'", option]);
        assert!(!said.stderr.contains("unexpected"), "{said:?}");
    }
    thalweg(&["hash", "--seed", "-1"]).refused(&["invalid value '-1'", "below 0"]);
    run(&["--fail-if", "max>99999999999s"]).refused(&["a time is at most 18446744073s"]);
    run(&["--commands", "5", "--format-in", "orders"]).refused(&["--format-in needs a FILE"]);
}

#[test]
fn other_packers_and_first_lines_are_recognised() {
    let scratch = Scratch::new();
    let run = |content: &[u8]| {
        let file = scratch.file("input", content);
        thalweg(&["exchange", "run", &file])
    };
    for (name, magic) in [
        ("zip", &b"PK\x03\x04\n"[..]),
        ("bzip2", b"BZh91AY&SY"),
        ("zstd", b"\x28\xb5\x2f\xfd\x04"),
        ("xz", b"\xfd7zXZ\0\0"),
    ] {
        let message = format!("input:1: this is compressed with {name}, and only gzip is read");
        run(magic).refused(&[&message]);
    }
    run(b"user,7\n").refused(&["orders (whose first line is `thalweg-orders,1`)"]);
    run(b"thalweg-orders,1 \r\nuser,7\n").fine();
    run(b"thalweg-orders,1,\nuser,7\n").refused(&["it must be `thalweg-orders,1`"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS.as_bytes());
    let full = "No space left on device";
    let said = thalweg(&["exchange", "run", &orders, "--html", "/dev/full"]);
    said.refused(&["/dev/full: cannot be written", full]);
    for arguments in [
        &["help"][..],
        &["--version"],
        &["man"],
        &["completions", "bash"],
        &["hash", &orders],
        &["exchange", "run", &orders],
        &["exchange", "run", &orders, "--output", "-", "-q"],
        &["exchange", "sweep", &orders],
    ] {
        let out = std::fs::File::options().write(true).open("/dev/full");
        let mut program = command(arguments);
        let said: Ended = program
            .stdout(out.unwrap())
            .stderr(Stdio::piped())
            .output()
            .unwrap()
            .into();
        said.refused(&["standard output cannot be written", full]);
    }
}

#[test]
fn one_is_no_plural() {
    let scratch = Scratch::new();
    let rest = format!("{ORDERS}deposit,7,20,50\nplace,7,1,1,buy,gtc,5,2\n");
    let (orders, page) = (
        scratch.file("orders.csv", rest.as_bytes()),
        scratch.path("a.html"),
    );
    let said = thalweg(&["exchange", "run", &orders, "-q", "--html", &page]);
    assert!(
        said.fine().contains("1 bid level, 0 ask levels"),
        "{said:?}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("1 bid level and 0 ask levels"));
}

#[test]
fn percentiles_of_too_few_commands_are_not_shown() {
    let line = words("exchange sweep --commands 99 --placement inline");
    let text = thalweg(&line);
    let row: Vec<&str> = text
        .fine()
        .lines()
        .nth(2)
        .unwrap()
        .split_whitespace()
        .collect();
    // The columns are placement, rate, commands a second, the p50 and its unit.
    let [_, _, _, _, _, p99, p999, ..] = row[..] else {
        panic!("{row:?}");
    };
    assert_eq!((p99, p999), ("-", "-"), "{row:?}");
    let rows = thalweg(&[&line[..], &["--format", "json"]].concat()).json();
    assert!(
        rows[0]["p50_ns"].is_u64() && rows[0].get("p99_ns").is_none(),
        "{rows}"
    );
}

/// `timeout 60 thalweg …` sends SIGTERM.
#[cfg(target_os = "linux")]
#[test]
fn sigterm_ends_a_run_and_reports_what_there_is() {
    let line = ["exchange", "run", "--rate", "1k", "--format", "json"];
    let mut program = command(&line);
    let child = program
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program::signal(child.id(), 15);
    let said = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(143), "{said:?}");
    assert!(said.stderr.contains("ended by SIGTERM after"), "{said:?}");
    let facts: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(facts["input"]["interrupted"], true);
}
