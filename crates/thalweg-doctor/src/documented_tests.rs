//! Checks that the pages under `docs` agree with the program.

use crate::compare::{CommandLine, Comparison, Plan, Run, Taken};
use crate::evidence::{Evidence, METRICS, Quality, Topic};
use crate::machine::{Cost, Machine, MeasureOptions};
use crate::report::{Ending, Report};
use crate::rules::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the lines of the page between the marks of this name.
fn section(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor-json.md");
    let page = fs::read_to_string(path).expect("docs/doctor-json.md");
    let (_, rest) = page
        .split_once(&format!("<!-- {name} -->\n"))
        .expect("where it begins");
    let (found, _) = rest
        .split_once(&format!("<!-- end of {name} -->"))
        .expect("where it ends");
    found.to_owned()
}

/// Returns the keys that the table of this name documents.
fn documented(name: &str) -> BTreeSet<String> {
    let section = section(name);
    let keys = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    keys.map(|(key, _)| key.to_owned()).collect()
}

/// Collects the paths of all values that are neither objects nor lists, and of lists and nulls. The
/// keys of the objects at the paths in `named` are arbitrary names.
fn keys(value: &Value, path: &str, named: &[&str], found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let key = if named.contains(&path) { "NAME" } else { key };
                let dot = if path.is_empty() { "" } else { "." };
                keys(value, &format!("{path}{dot}{key}"), named, found);
            }
        }
        Value::Array(list) => {
            for value in list {
                keys(value, &format!("{path}[]"), named, found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// Checks that every documented key exists, and that every key is documented. A key of the page
/// whose members are documented as well describes a null or an element.
fn compare(name: &str, values: &[Value], named: &[&str]) {
    let mut found = BTreeSet::new();
    values
        .iter()
        .for_each(|value| keys(value, "", named, &mut found));
    let documented = documented(name);
    let missing: Vec<&String> = found.difference(&documented).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    let is_there = |key: &String| {
        let inside = format!("{key}.");
        found.iter().any(|it| it == key || it.starts_with(&inside))
    };
    let lost: Vec<&String> = documented.iter().filter(|key| !is_there(key)).collect();
    assert!(lost.is_empty(), "not in the JSON: {lost:?}");
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("it can be written")
}

fn report(value: f64, exit: Option<Ending>) -> Value {
    let mut evidence = Evidence::new();
    for metric in METRICS {
        match (metric.name, metric.unit) {
            ("lock.goroutines", _) => evidence.lack(metric.name, "none"),
            (name, "share") => evidence.put(name, value, Quality::Exact, "by hand"),
            (name, _) => evidence.put(name, 50_000.0, Quality::Exact, "by hand"),
        }
    }
    for topic in [Topic::Calls, Topic::Waits, Topic::Others] {
        evidence.put_places(topic, vec!["somewhere 9 %".to_owned()]);
    }
    json(&Report::new(vec!["a".to_owned()], exit, evidence))
}

#[test]
fn a_report_is_documented() {
    let exits = [
        None,
        Some(Ending::Code(0)),
        Some(Ending::Signal(9)),
        Some(Ending::Unknown),
    ];
    compare(
        "report",
        &exits.map(|exit| report(0.5, exit)),
        &["evidence"],
    );
}

#[test]
fn figures_have_their_units_and_meanings() {
    let mut table = "| figure | unit | meaning |\n|---|---|---|\n".to_owned();
    for metric in METRICS {
        let (name, unit, meaning) = (metric.name, metric.unit, metric.meaning);
        table += &format!("| `{name}` | {unit} | {meaning} |\n");
    }
    let found = section("figures");
    assert!(found == table, "the table should be\n{table}");
}

#[test]
fn a_comparison_is_documented() {
    let run = |wall: f64| Run {
        wall,
        user: wall,
        system: 0.0,
        max_rss: 4096.0,
        minor_faults: 1.0,
        major_faults: 0.0,
        voluntary_switches: 1.0,
        involuntary_switches: 0.0,
        queue_wait: Some(0.0),
        taken: Taken::default(),
    };
    let plan = Plan {
        a: CommandLine::parse("a").expect("a command"),
        b: CommandLine::parse("b").expect("a command"),
        runs: 8,
        warmup: 1,
        seed: 1,
        ignores_failure: false,
        shows_output: false,
    };
    let compared = |taken: f64| {
        let pair = |at: u32| {
            let of_b = Taken {
                wait_share: taken * f64::from(at),
                steal_share: 0.0,
            };
            let wall = f64::from(at);
            (
                run(wall),
                Run {
                    taken: of_b,
                    ..run(wall)
                },
            )
        };
        let pairs: Vec<(Run, Run)> = (1..9).map(pair).collect();
        let mut value = json(&Comparison::of(&plan, ["a", "b"], &pairs));
        value.as_object_mut().and_then(|object| object.remove("b"));
        value
    };
    compare("compare", &[compared(0.0), compared(0.5)], &[]);
}

#[test]
fn capabilities_are_documented() {
    compare("caps", &[json(&crate::caps::capabilities())], &[]);
}

#[test]
fn the_costs_of_a_machine_are_documented() {
    let options = MeasureOptions {
        is_quick: true,
        directory: std::env::temp_dir(),
    };
    let mut machine = Machine::measure(&options).expect("it can be written to");
    let why = "one core only".to_owned();
    machine.absent.push((Cost::Clock, why));
    let (cost, figure) = machine.costs[0];
    assert!(figure.n > 0, "{cost:?}");
    let (from, to) = (0, 1);
    machine
        .pairs
        .push(crate::machine::Pair { from, to, figure });
    compare("machine", &[json(&machine)], &["costs", "absent"]);
}

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
                Quantity::One(name) => format!("`{name}`"),
                Quantity::Ratio(over, under) => format!("`{over}` / `{under}`"),
            };
            let sign = if clue.to > clue.from { '>' } else { '<' };
            let (from, to, text) = (clue.from as f32, clue.to as f32, clue.origin);
            let row = format!("| {figure} | {from} | {sign} {to} | {how} | {text} |\n");
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
        for weighed in rule.contradicts {
            let how = format!("against, {}", weighed.weight);
            weighed.clues.iter().for_each(|clue| add(clue, &how));
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

#[test]
fn the_confidence_of_a_share_is_that_of_the_page() {
    let page = page();
    let lines: Vec<&str> = page.lines().collect();
    let numbers = |line: &str| -> Vec<f64> {
        let cells = line.split('|').skip(2);
        let numbers = cells.filter_map(|cell| cell.trim().trim_end_matches(" %").parse().ok());
        numbers.collect()
    };
    for (curve, name) in [
        (Curve::Overhead, "| what a program could do without |"),
        (Curve::Residue, "| what is left: "),
        (Curve::Disturbance, "| what others do to it: "),
    ] {
        let at = lines.iter().position(|line| line.starts_with(name));
        let at = at.expect("there is a row for the curve");
        let (shares, expected) = (numbers(lines[at - 2]), numbers(lines[at]));
        let found: Vec<f64> = shares.iter().map(|share| curve.at(share / 100.0)).collect();
        assert_eq!((found.len(), &found), (4, &expected), "{name}");
    }
}
