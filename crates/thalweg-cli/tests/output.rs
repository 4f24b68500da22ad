//! Tests the output of the program: data for people and programs, and nothing else on standard
//! output.

use crate::program;

use program::{Scratch, command, thalweg, words};
use std::io::Read;
use std::process::Stdio;

const SHORT: [&str; 4] = ["exchange", "run", "--commands", "3000"];

#[test]
fn the_same_seed_gives_the_same_state() {
    let hash = |seed: &str| {
        let out = thalweg(&[&SHORT[..], &["--seed", seed, "--format", "json"]].concat()).json();
        out["state_hash"].as_str().unwrap().to_owned()
    };
    assert_eq!(hash("5"), hash("5"));
    assert_ne!(hash("5"), hash("6"));
}

#[test]
fn text_has_no_escapes_off_a_terminal() {
    let out = thalweg(&SHORT);
    assert!(!out.fine().contains('\x1b'));
    for part in [
        "3,000 commands",
        "state hash",
        "end to end",
        "settle, served",
        "Book of symbol 1",
        "trades",
    ] {
        assert!(out.stdout.contains(part), "{part} is not in {}", out.stdout);
    }
}

#[test]
fn json_has_units_in_its_keys() {
    let inline = words("--placement inline --rate 200k --format json");
    let facts = thalweg(&[&SHORT[..], &inline].concat()).json();
    assert_eq!(facts["version"], 3);
    assert_eq!(facts["input"]["rate_per_s"], 200_000);
    assert_eq!(facts["commands"]["total"], 3_000);
    let latency = &facts["latency"];
    assert_eq!(latency["end_to_end"]["count"], 3_000);
    assert!(
        latency["elapsed_ns"].as_u64().unwrap() >= 14_000_000,
        "3,000 at 200 k/s"
    );
    let stages = latency["stages"].as_array().unwrap();
    let names: Vec<&str> = stages.iter().filter_map(|s| s["name"].as_str()).collect();
    assert_eq!(
        names,
        ["send", "execute", "risk", "match", "settle", "publish"]
    );
    let has_p90 = |spent: &serde_json::Value| spent["p90_ns"].is_u64();
    assert!(has_p90(&stages[0]["waited"]));
    assert!(stages[1..5].iter().all(|s| has_p90(&s["served"])));
    let parts = stages.iter().filter(|s| s["part_of"] == "execute").count();
    assert_eq!(parts, 3);
    for stage in stages {
        for spent in [stage.get("waited"), stage.get("served")]
            .into_iter()
            .flatten()
        {
            // A p90 needs ten times beyond it.
            let is_reported = spent["count"].as_u64().unwrap() >= 100;
            assert_eq!(has_p90(spent), is_reported, "{}", stage["name"]);
        }
    }
    assert!(
        stages[0].get("served").is_none(),
        "what is not measured is left out"
    );
    // Only 3 of 3,000 commands are beyond the p99.9, which is too few for a percentile.
    assert!(latency["end_to_end"].get("p99_9_ns").is_none());
    let quantiles = ["p50_ns", "p90_ns", "p99_ns", "max_ns"];
    let values = quantiles.map(|q| latency["end_to_end"][q].as_u64().unwrap());
    assert!(values.is_sorted(), "{values:?}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    for format in ["text", "json"] {
        let line = [&SHORT[..], &["--format", format]].concat();
        let mut child = command(&line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        drop(child.stdout.take());
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
        assert_eq!(said, "");
    }
    let mut help = command(&["exchange", "run", "--help"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(help.stdout.take());
    assert_eq!(help.wait().unwrap().code(), Some(0));
}

#[test]
fn standard_input_is_a_file_too() {
    let scratch = Scratch::new();
    let orders = "thalweg-orders,1\nsymbol,1,10,20,1,1,0,0\nuser,7\ndeposit,7,20,1000\n\
        place,7,1,5,buy,gtc,100,3\n";
    let file = scratch.file("orders.csv", orders.as_bytes());
    let out = command(&["exchange", "run", "-", "--format", "json"])
        .stdin(std::fs::File::open(file).unwrap())
        .output()
        .unwrap();
    let facts = program::Ended::from(out).json();
    assert_eq!(facts["input"]["name"], "standard input");
    let bid = &facts["books"][0]["bids"][0];
    assert_eq!(
        (bid["price_ticks"].as_i64(), bid["size_lots"].as_i64()),
        (Some(100), Some(3))
    );
}

#[test]
fn a_pipe_is_read_where_no_file_is_named() {
    let run = |arguments: &[&str], input: &[u8]| {
        let scratch = Scratch::new();
        let file = scratch.file("input", input);
        let input = std::fs::File::open(file).unwrap();
        program::Ended::from(command(arguments).stdin(input).output().unwrap())
    };
    let line = ["exchange", "run", "--format", "json"];
    let facts = run(&line, b"\xef\xbb\xbfthalweg-orders,1\nuser,7\n").json();
    assert_eq!(facts["input"]["name"], "standard input");
    assert_eq!(facts["commands"]["total"], 1);
    run(&line, b"").refused(&["standard input: empty file"]);
    let short = run(&[&line[..], &["--commands", "1e2"]].concat(), b"").json();
    assert_eq!(short["commands"]["total"], 100, "a flow was asked for");
    let text = b"# marginTrading=ENABLED\nC,1,ADD_USER,7\nR,SUCCESS\n\
        +U,7,0,0\n# FINAL STATE\nU,7,0,0\n# END\n";
    let agrees = "standard input: agrees: 1 command, 0 events, 0 checkpoints, 4 lines compared\n";
    assert_eq!(run(&["exchange", "conform"], text).fine(), agrees);
}

#[test]
fn any_amount_of_comments_may_come_first() {
    let scratch = Scratch::new();
    let text = format!("{}thalweg-orders,1\nuser,7\n", "# comment\n".repeat(5_000));
    let file = scratch.file("orders.csv", text.as_bytes());
    let facts = thalweg(&["exchange", "run", &file, "--format", "json"]).json();
    assert_eq!(facts["commands"]["total"], 1);
}

#[test]
fn missing_rows_are_reported() {
    let scratch = Scratch::new();
    let messages = "34200.1,1,16,18,100,1\n34200.2,1,17,8,99,1\n34200.3,1,18,8,98,1\n";
    let messages = scratch.file("m.csv", messages.as_bytes());
    for (rows, name, count) in [
        ("200,1,100,18\n", "messages_without_a_row", 2),
        (&"200,1,100,18\n".repeat(4)[..], "rows_without_a_message", 1),
    ] {
        let rows = scratch.file("rows.csv", rows.as_bytes());
        let line = [
            "exchange", "run", &messages, "--books", &rows, "--format", "json",
        ];
        let facts = thalweg(&line).json();
        let counts = facts["check"]["counts"].as_array().unwrap();
        let found = counts.iter().find(|c| c["name"] == name).expect(name);
        assert_eq!(found["count"], count, "{facts}");
    }
}

#[test]
fn the_example_of_the_format_runs() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/orders-csv.md");
    let document = std::fs::read_to_string(document).unwrap();
    let example = document.split("```").nth(1).unwrap().trim_start();
    assert!(example.starts_with("thalweg-orders,1\n"));
    let scratch = Scratch::new();
    let file = scratch.file("orders.csv", example.as_bytes());
    let out = thalweg(&["exchange", "run", &file, "--format", "json"]);
    let facts = out.json();
    assert_eq!(facts["commands"]["by_result"][0]["name"], "SUCCESS");
    assert_eq!(
        facts["commands"]["by_result"][0]["count"],
        facts["commands"]["total"]
    );
    assert_eq!(facts["trades"]["volume_lots"], 8);
}

#[test]
fn the_example_of_wishes_runs() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/orders-csv.md");
    let document = std::fs::read_to_string(document).unwrap();
    let example = document.split("```").nth(5).unwrap().trim_start();
    assert!(example.starts_with("thalweg-orders,1\n"));
    let scratch = Scratch::new();
    let file = scratch.file("orders.csv", example.as_bytes());
    let facts = thalweg(&["exchange", "run", &file, "--format", "json"]).json();
    let results = &facts["commands"]["by_result"];
    assert_eq!(results[0]["name"], "SUCCESS");
    assert_eq!(results[0]["count"], facts["commands"]["total"]);
    // The volume is 2 lots at 500, and the 3 lots that this triggers.
    assert_eq!(facts["trades"]["volume_lots"], 5);
}

#[test]
fn operations_run_and_are_reported() {
    let orders = "thalweg-orders,1\nsymbol,1,10,20,1,1,0,0\nuser,7\ndeposit,7,20,1000\n\
        band,1,90,none\nplace,7,1,1,buy,gtc,89,1\nplace,7,1,2,buy,gtc,90,2,post_only\n\
        halt,1\nmove,7,1,2,91\nunhalt,1\ncancel_all,7,all\nremove,1\ncancel,7,1,2\n";
    let scratch = Scratch::new();
    let file = scratch.file("orders.csv", orders.as_bytes());
    let facts = thalweg(&["exchange", "run", &file, "--format", "json"]).json();
    let mut results: Vec<(&str, i64)> = facts["commands"]["by_result"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["name"].as_str().unwrap(), r["count"].as_i64().unwrap()))
        .collect();
    results.sort_unstable();
    let expected = [
        ("MATCHING_INVALID_ORDER_BOOK_ID", 1),
        ("RISK_PRICE_OUTSIDE_BAND", 1),
        ("SUCCESS", 9),
        ("SYMBOL_HALTED", 1),
    ];
    assert_eq!(results, expected);
    assert_eq!(facts["books"].as_array().unwrap().len(), 0);
}

#[test]
fn help_completions_and_manual_are_there() {
    let help = thalweg(&["exchange", "run", "--help"]);
    for part in [
        "Examples:",
        "--placement",
        "threads:2",
        "--books",
        "docs/orders-csv.md",
    ] {
        assert!(help.fine().contains(part), "{part} is not in the help");
    }
    assert!(thalweg(&["exchange", "--help"]).fine().contains("conform"));
    assert!(thalweg(&["--version"]).fine().starts_with("thalweg "));
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            thalweg(&["completions", shell]).fine().contains("conform"),
            "{shell}"
        );
    }
    assert_eq!(thalweg(&["help", "exchange", "run"]).fine(), help.stdout);
    let overview = thalweg(&["help"]);
    for command in ["exchange", "hash", "completions", "man", "help"] {
        assert!(
            overview.fine().contains(&format!("\n  {command} ")),
            "{overview:?}"
        );
    }
    for words in [
        help.fine(),
        thalweg(&["help", "exchange", "conform"]).fine(),
    ] {
        assert!(words.contains("exchange-core 0.5"), "{words}");
        assert!(!words.contains("the reference"), "{words}");
    }
    assert!(thalweg(&["man"]).fine().contains(".TH thalweg 1"));
    let scratch = Scratch::new();
    let pages = scratch.path("man1");
    let listed = thalweg(&["man", &pages]);
    let names = [
        "thalweg",
        "thalweg-exchange",
        "thalweg-exchange-run",
        "thalweg-exchange-sweep",
        "thalweg-exchange-conform",
        "thalweg-hash",
        "thalweg-journal-verify",
        "thalweg-completions",
        "thalweg-man",
    ];
    for page in names {
        let path = format!("{pages}/{page}.1\n");
        assert!(listed.fine().contains(&path), "{path} is not in {listed:?}");
        let text = std::fs::read_to_string(format!("{pages}/{page}.1")).unwrap();
        let name = page.replace('-', "\\-");
        assert!(text.contains(&name), "{name} is not in {page}.1");
    }
    thalweg(&["man", "/proc/no"]).refused(&["/proc/no: cannot be written"]);
    thalweg(&[]).refused(&["Usage"]);
}
