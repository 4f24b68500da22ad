//! Tests `thalweg exchange run --journal`: it must have the same outcome as a run without it, and
//! leave a directory that the other commands can use.

use crate::program;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use program::{LISTEN, Scratch, command, signal, thalweg};
use serde_json::Value;

const FLOW: [&str; 7] = [
    "exchange",
    "run",
    "--seed",
    "5",
    "--commands",
    "6000",
    "--quiet",
];

fn flow(more: &[&str]) -> program::Ended {
    thalweg(&[&FLOW, more].concat())
}

fn on(command: &str, directory: &str) -> Value {
    thalweg(&["exchange", command, directory, "--format", "json"]).json()
}

/// Checks that figures of one report that say the same thing agree.
fn figures_agree(latency: &Value) {
    let ns = |value: &Value| value.as_u64().expect("a number");
    for slow in latency["slowest"].as_array().expect("a list") {
        let parts = slow["parts"].as_array().expect("a list").iter();
        let sum: u64 = parts.map(|part| ns(&part["ns"])).sum();
        assert_eq!(sum, ns(&slow["end_to_end_ns"]), "{slow}");
    }
    assert_eq!(latency["sampled_every"], 1);
    let stages = latency["stages"].as_array().expect("a list");
    let stage = |name| stages.iter().find(|stage| stage["name"] == name);
    let (journal, publish) = (stage("journal").expect("it is there"), stage("publish"));
    assert!(
        journal["waited"]["mean_ns"].as_f64() > Some(0.0),
        "{journal}"
    );
    assert!(journal.get("served").is_none() && journal.get("utilisation").is_none());
    let publish = publish.expect("it is there");
    let served = &publish["served"];
    let mean_ns = served["mean_ns"].as_f64().expect("a number");
    let served_ns = mean_ns * served["count"].as_f64().expect("a number");
    let busy = publish["utilisation"].as_f64().expect("a number");
    let busy_ns = busy * latency["elapsed_ns"].as_f64().expect("a number");
    assert!((0.9..=1.1).contains(&(busy_ns / served_ns)), "{publish}");
}

#[test]
fn a_journaled_run_ends_as_one_without_and_its_directory_is_an_exchange() {
    let scratch = Scratch::new();
    let directory = &scratch.path("exchange");
    let plain = flow(&["--format", "json"]).json();
    let facts = flow(&["--format", "json", "--journal", directory]).json();
    figures_agree(&facts["latency"]);
    for same in ["state_hash", "commands", "trades", "books"] {
        assert_eq!(facts[same], plain[same], "{same}");
    }
    let journal = &facts["journal"];
    assert_eq!(plain.get("journal"), None);
    let commands = &facts["commands"]["total"];
    assert_eq!(&journal["commands"], commands);
    assert_eq!(
        (&journal["commands_before"], &journal["snapshot"]),
        (&0.into(), commands)
    );
    assert!(journal["commits"].as_u64() > Some(0), "{journal}");
    for command in ["verify", "recover"] {
        let found = on(command, directory);
        for same in ["commands", "digest", "state_hash"] {
            assert_eq!(found[same], journal[same], "{command}: {same}");
        }
    }
    let text = flow(&["--journal", &scratch.path("other"), "--sync", "never"]);
    let line = format!("journal {}: ", scratch.path("other"));
    assert!(text.fine().contains(&line), "{text:?}");
    assert!(text.stdout.contains("sync never"), "{text:?}");

    // The directory can be served, too.
    let mut serving = command(&[&["exchange", "serve", directory], &LISTEN[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let mut line = String::new();
    let mut out = BufReader::new(serving.stdout.take().expect("it is piped"));
    out.read_line(&mut line).expect("it is text");
    assert!(line.starts_with("listening: "), "{line}");
    signal(serving.id(), 15);
    assert_eq!(serving.wait().expect("it ends").code(), Some(0));
}

#[test]
fn an_interrupted_run_goes_on_where_it_ended() {
    let scratch = Scratch::new();
    let directory = &scratch.path("exchange");
    let whole = flow(&["--format", "json"]).json();
    flow(&["--limit", "2500", "--journal", directory]).fine();
    let again = flow(&["--journal", directory]);
    again.refused(&[
        directory,
        "its exchange has 2500 commands, and made-up flow begins with an empty one",
        "--from 2501",
    ]);
    flow(&["--from", "2600", "--journal", directory]).refused(&[
        "--from 2600: its exchange has 2500 commands, and is not where made-up flow is before \
         command 2600",
    ]);
    let rest = ["--from", "2501", "--journal", directory, "--format", "json"];
    let facts = flow(&rest).json();
    assert_eq!(facts["state_hash"], whole["state_hash"]);
    assert_eq!(facts["journal"]["commands_before"], 2500);
    assert_eq!(
        facts["journal"]["commands"].as_u64(),
        whole["commands"]["total"].as_u64()
    );
}

/// Two users with 3,000 orders at a price, all of which are cancelled, and one more each.
fn orders_and_a_mass_cancel() -> String {
    let mut rows = "thalweg-orders,1\nsymbol,1,1,2,1,1,0,0\n".to_owned();
    for user in 1..3 {
        rows += &format!("user,{user}\ndeposit,{user},2,1000000\n");
        for order in 0..1_500 {
            rows += &format!("place,{user},1,{order},buy,gtc,10,1\n");
        }
    }
    rows + "cancel_all,all,all\nremove,1\nuser,3\n"
}

#[test]
fn a_run_goes_on_by_itself_with_what_a_row_leaves_over() {
    let scratch = Scratch::new();
    let (file, directory) = (&scratch.path("orders.csv"), &scratch.path("exchange"));
    fs::write(file, orders_and_a_mass_cancel()).expect("it can be written");
    let run = |more: &[&str]| {
        let base = ["exchange", "run", file, "--quiet", "--format", "json"];
        thalweg(&[&base, more].concat()).json()
    };
    let records = &scratch.path("records.csv");
    let whole = run(&["--output", records]);
    assert_eq!(whole["commands"]["total"], 3_008);
    // The symbol can be removed: no order is left.
    let records = fs::read_to_string(records).expect("it was written");
    let is_cancel =
        |record: &&str| record.starts_with("command,") && record.contains(",cancel_all,");
    assert_eq!(records.lines().filter(is_cancel).count(), 3);
    assert!(!records.contains("WORK_LIMIT"));
    // Ended behind the mass cancel, and gone on with.
    let part = run(&["--limit", "3006", "--journal", directory]);
    assert_eq!(part["journal"]["commands"], 3_008);
    let rest = run(&["--from", "3007", "--journal", directory]);
    assert_eq!(rest["journal"]["commands_before"], 3_008);
    assert_eq!(rest["journal"]["commands"], 3_010);
    assert_eq!(rest["state_hash"], whole["state_hash"]);
}

#[test]
fn orders_of_our_own_format_go_on_behind_others() {
    let scratch = Scratch::new();
    let directory = &scratch.path("exchange");
    let first = "thalweg-orders,1\nsymbol,1,10,20,100,10,30,10\nuser,8\ndeposit,8,20,9000000\n\
                 place,8,1,1,buy,gtc,500,2\n";
    let second = "thalweg-orders,1\nplace,8,1,2,buy,gtc,499,1\n";
    let (one, two) = (
        scratch.file("one.csv", first.as_bytes()),
        scratch.file("two.csv", second.as_bytes()),
    );
    let run = |file: &str, more: &[&str]| {
        let run = ["exchange", "run", file, "--journal", directory, "--quiet"];
        thalweg(&[&run, more].concat())
    };
    run(&one, &[]).fine();
    let out = scratch.path("two.jsonl");
    let facts = run(&two, &["--format", "json", "--output", &out]).json();
    assert_eq!(facts["journal"]["commands_before"], 4);
    assert_eq!(facts["books"][0]["bid_levels"], 2);
    let lines = fs::read_to_string(out).expect("it was written");
    assert_eq!(lines.matches("\"record\":\"open\"").count(), 2, "{lines}");
    run(&two, &["--rules", "reference"]).refused(&["made under other rules than --rules says"]);
    assert_eq!(on("verify", directory)["commands"], 5);
}

#[test]
fn places_that_hold_no_exchange_or_are_in_use_are_refused() {
    let scratch = Scratch::new();
    let file = scratch.file("file", b"mine");
    flow(&["--journal", &file]).refused(&[&file, "not a directory"]);
    let other = scratch.path("");
    flow(&["--journal", &other]).refused(&["no exchange is here, and the directory is not empty"]);
    let empty = scratch.path("empty");
    flow(&["--journal", &empty, "--from", "3"])
        .refused(&["--from 3: its exchange has no commands"]);
    let held = scratch.path("held");
    let options = thalweg_exchange::durable::Options::default();
    let held_by = thalweg_exchange::durable::Exchange::open(&held, options, |_| ());
    flow(&["--journal", &held]).refused(&["another journal writes here"]);
    drop(held_by);
    flow(&["--sync", "never"]).refused(&["--journal"]);
}

#[test]
fn a_run_that_is_killed_leaves_what_can_be_gone_on_with() {
    let scratch = Scratch::new();
    let directory = &scratch.path("exchange");
    let whole = flow(&["--format", "json"]).json();
    let slow = ["--rate", "3k", "--journal", directory];
    let mut running = command(&[&FLOW, &slow[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let segment = scratch.path("exchange/00000000000000000001.segment");
    let has_blocks = || fs::read(&segment).is_ok_and(|bytes| bytes[4096..].iter().any(|b| *b > 0));
    while !has_blocks() {
        std::thread::yield_now();
    }
    running.kill().expect("it runs");
    running.wait().expect("it ended");
    let durable = on("recover", directory)["commands"].as_u64();
    let durable = durable.expect("a number");
    assert!(durable > 0);
    if durable < 6_000 {
        let next = (durable + 1).to_string();
        let rest = ["--from", &next, "--journal", directory, "--format", "json"];
        assert_eq!(flow(&rest).json()["state_hash"], whole["state_hash"]);
    }
}
