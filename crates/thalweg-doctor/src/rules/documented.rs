//! Checks that the table of thresholds in `docs/diagnosing.md` is that of the rules.

use super::*;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- thresholds -->\n";
const END: &str = "<!-- end of thresholds -->";

/// Returns the rules as a table: each clue once for each verdict and each way in which it counts.
fn table() -> String {
    let mut text = String::from("| figure | from | holds | counts | where it is from |\n");
    text += "|---|---|---|---|---|\n";
    for rule in rules() {
        let mut rows: Vec<String> = Vec::new();
        let mut add = |clue: &Clue, how: &str| {
            let figure = match clue.figure {
                Figure::One(name) => format!("`{name}`"),
                Figure::Ratio(over, under) => format!("`{over}` / `{under}`"),
            };
            let sign = if clue.to > clue.from { '>' } else { '<' };
            let kind = match clue.origin {
                Origin::Measured(_) => "measured: ",
                Origin::Kernel(_) => "kernel: ",
                Origin::Literature(_) => "literature: ",
                Origin::Definition(_) => "",
            };
            let (from, to) = (clue.from as f32, clue.to as f32);
            let text = clue.origin.text();
            let row = format!("| {figure} | {from} | {sign} {to} | {how} | {kind}{text} |\n");
            if !rows.contains(&row) {
                rows.push(row);
            }
        };
        if let Claim::Parts(parts) = rule.claim {
            for (part, clues) in parts {
                let how = format!("for its part *{}*", part.name());
                clues.iter().for_each(|clue| add(clue, &how));
            }
        }
        rule.needs.iter().for_each(|clue| add(clue, "needed"));
        for (list, how) in [(rule.raises, "raises"), (rule.contradicts, "against")] {
            for weighed in list {
                let how = format!("{how}, {}", weighed.weight);
                weighed.clues.iter().for_each(|clue| add(clue, &how));
            }
        }
        if !rows.is_empty() {
            text += &format!("| **{}** | | | | |\n", rule.id.name());
            text += &rows.concat();
        }
    }
    text
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/diagnosing.md");
    fs::read_to_string(path).expect("docs/diagnosing.md")
}

#[test]
fn thresholds_are_those_of_the_page() {
    let page = page();
    let (_, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (found, _) = rest.split_once(END).expect("where it ends");
    let expected = table();
    assert!(found == expected, "the table should be\n{expected}");
}

#[test]
fn every_verdict_is_on_the_page() {
    let page = page();
    for rule in rules() {
        let name = rule.id.name();
        let heads = page.lines().filter(|line| line.starts_with("### "));
        let named = heads.filter(|head| {
            head.trim_start_matches("### ")
                .split(", ")
                .any(|n| n == name)
        });
        assert_eq!(named.count(), 1, "{name}");
    }
}
