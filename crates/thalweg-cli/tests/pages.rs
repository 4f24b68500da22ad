//! Checks that the program reads and writes what the README and the pages of the formats show.

use crate::program;

use program::{Scratch, thalweg};
use std::path::PathBuf;

/// Reads a page of the repository. It does not exist where the crate is built from its package.
fn page(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    let text = std::fs::read_to_string(path);
    if text.is_err() {
        println!("skipped: {name} is not beside this crate");
    }
    text.ok()
}

/// Returns the fenced code blocks of a page, each with the word behind its fence.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.filter_map(|part| part.split_once('\n')).collect()
}

#[test]
fn every_example_of_a_format_is_read_as_that_format() {
    let Some(formats) = page("docs/formats.md") else {
        return;
    };
    let scratch = Scratch::new();
    let blocks = blocks(&formats);
    let names: Vec<&str> = blocks.iter().map(|block| block.0).collect();
    assert_eq!(
        names,
        ["orders", "bitstamp", "lobster", "recorded", "load"],
        "one example of each format"
    );
    for (name, text) in blocks {
        let file = scratch.file(&format!("{name}.txt"), text.as_bytes());
        let facts = thalweg(&["exchange", "run", &file, "-q", "--format", "json"]).json();
        assert_eq!(facts["input"]["format"], name);
        let results = facts["commands"]["by_result"].as_array();
        assert_eq!(results.map(Vec::len), Some(1), "{facts}");
        if name == "recorded" {
            thalweg(&["exchange", "conform", &file]).fine();
        }
    }
}

#[test]
fn every_example_of_the_orders_format_runs() {
    let scratch = Scratch::new();
    for name in [
        "docs/orders-csv.md",
        "docs/guide/src/exchange.md",
        "crates/thalweg-cli/README.md",
    ] {
        let Some(page) = page(name) else { continue };
        let blocks = blocks(&page);
        let mut orders = blocks
            .iter()
            .filter(|block| block.1.starts_with("thalweg-orders,"))
            .peekable();
        assert!(orders.peek().is_some(), "{name} has an example");
        for (_, text) in orders {
            let file = scratch.file("orders.csv", text.as_bytes());
            let facts = thalweg(&["exchange", "run", &file, "-q", "--format", "json"]).json();
            let results = &facts["commands"]["by_result"];
            assert_eq!(results[0]["name"], "SUCCESS", "{name}: {facts}");
            assert_eq!(results.as_array().map(Vec::len), Some(1), "{name}: {facts}");
        }
    }
}

/// The sample must produce the trades that the README shows, and so must a user's own order.
#[test]
fn the_readme_shows_what_comes_out() {
    let (Some(readme), Some(sample)) = (page("README.md"), page("docs/samples/orders.csv")) else {
        return;
    };
    let scratch = Scratch::new();
    let own = readme
        .lines()
        .find_map(|line| line.strip_prefix("echo '")?.strip_suffix("' >> mine.csv"))
        .expect("the README adds an order");
    let shown: Vec<&str> = blocks(&readme)
        .iter()
        .filter(|block| block.0 == "text")
        .flat_map(|block| block.1.lines())
        .collect();
    let file = scratch.file("orders.csv", sample.as_bytes());
    let out = scratch.path("trades.csv");
    thalweg(&["exchange", "run", &file, "-q", "--output", &out]).fine();
    let trades = std::fs::read_to_string(out).expect("the run has just written it");
    let trades: Vec<&str> = trades
        .lines()
        .filter(|line| line.starts_with("trade,"))
        .collect();
    assert_eq!(trades[..2], shown[..2]);

    let file = scratch.file("mine.csv", format!("{sample}{own}\n").as_bytes());
    let ended = thalweg(&["exchange", "run", &file, "-q", "--output", "-"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    for line in &shown[2..] {
        assert!(lines.contains(line), "{line} is not in {lines:#?}");
    }
}
