//! Tests that the exchange reproduces the recorded flow of real markets.

use crate::program;

use program::{shared, thalweg};
use serde_json::Value;

/// Returns the agreement of that name, as (agreements, comparisons).
pub(crate) fn score(facts: &Value, name: &str) -> (u64, u64) {
    let scores = facts["check"]["scores"]
        .as_array()
        .expect("there are scores");
    let score = scores.iter().find(|s| s["name"] == name);
    let score = score.unwrap_or_else(|| panic!("no score {name} in {scores:?}"));
    (
        score["agree"]
            .as_u64()
            .expect("as the program and its formats promise"),
        score["of"]
            .as_u64()
            .expect("as the program and its formats promise"),
    )
}

pub(crate) fn count(facts: &Value, name: &str) -> u64 {
    let counts = facts["check"]["counts"]
        .as_array()
        .expect("there are counts");
    let count = counts.iter().find(|c| c["name"] == name);
    count.unwrap_or_else(|| panic!("no count {name} in {counts:?}"))["count"]
        .as_u64()
        .expect("as the program and its formats promise")
}

fn run(messages: &str, books: &str) -> Option<Value> {
    let (messages, books) = (shared(messages)?, shared(books)?);
    let line = [
        "exchange", "run", &messages, "--books", &books, "--format", "json",
    ];
    Some(thalweg(&line).json())
}

#[test]
fn bitstamp() {
    let name = |what| format!("data/bitstamp_2015-05-01.{what}.csv.gz");
    let Some(facts) = run(&name("messages"), &name("books")) else {
        return;
    };
    assert_eq!(facts["input"]["format"], "bitstamp");
    let (found, of) = score(&facts, "trades");
    assert_eq!(of, 575);
    assert!(found >= 525, "{found} trades of 575");
    let not_there = count(&facts, "trades_not_recorded");
    assert!(not_there <= 8, "{not_there} trades that were not recorded");
    let (exact, of) = score(&facts, "best_levels");
    assert_eq!(of, 5_010);
    assert!(
        exact * 1_000 >= of * 996,
        "{exact} of {of} at the exact position"
    );
    let (slack, _) = score(&facts, "best_levels_with_slack");
    assert!(slack * 1_000 >= of * 999, "{slack} of {of} with slack");
    assert_eq!(facts["commands"]["by_result"][0]["name"], "SUCCESS");
    assert_eq!(facts["commands"]["by_result"].as_array().unwrap().len(), 1);
}

#[test]
fn lobster() {
    let name = |what| format!("data/lobster_aapl_2012-06-21_{what}_10.csv");
    let Some(facts) = run(&name("message"), &name("orderbook")) else {
        return;
    };
    assert_eq!(facts["input"]["format"], "lobster");
    assert_eq!(score(&facts, "best_levels"), (999, 999));
    assert_eq!(score(&facts, "makers"), (98, 98));
    assert_eq!(count(&facts, "makers_older_than_the_file"), 4);
    assert_eq!(count(&facts, "trades_not_recorded"), 0);
}

#[test]
fn messages_without_books_hint_at_them() {
    let Some(messages) = shared("data/lobster_aapl_2012-06-21_message_10.csv") else {
        return;
    };
    let out = thalweg(&["exchange", "run", &messages]);
    assert_eq!(out.code, Some(0));
    assert!(
        out.stderr.contains("--books") && out.stderr.contains("orderbook_10.csv"),
        "{out:?}"
    );
    assert!(
        !thalweg(&["exchange", "run", &messages, "--quiet"])
            .fine()
            .is_empty()
    );
}

#[test]
fn recorded_and_load_streams() {
    for name in ["edge_nomargin", "exchange_20k"] {
        let Some(stream) = shared(&format!("conformance/{name}.txt.gz")) else {
            return;
        };
        let out = thalweg(&["exchange", "conform", &stream]);
        assert!(out.fine().contains(": agrees: "), "{out:?}");
        let facts = thalweg(&["exchange", "run", &stream, "--format", "json"]).json();
        assert_eq!(facts["input"]["format"], "recorded");
    }
    let Some(load) = shared("streams/perf_exchange_1m.csv.gz") else {
        return;
    };
    let facts = thalweg(&["exchange", "run", &load, "--format", "json"]).json();
    assert_eq!(score(&facts, "final_asks"), (257, 257));
    assert_eq!(score(&facts, "final_bids"), (247, 247));
}
