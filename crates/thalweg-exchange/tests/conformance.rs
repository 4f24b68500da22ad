//! Recorded streams of the reference, line by line.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use thalweg_exchange::State;
use thalweg_exchange::conformance::{CheckError, Checker, Mismatch, Summary};
use thalweg_exchange::stream::Recording;
use thalweg_testkit::shared;

fn text(path: &Path) -> String {
    let file = BufReader::new(File::open(path).expect("the stream can be opened"));
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("the stream can be unpacked");
    text
}

fn own(name: &str) -> String {
    text(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name),
    )
}

fn run(text: &str) -> Result<Summary, CheckError> {
    let recorded = Recording::new(text.as_bytes())?;
    let engine = State::new(recorded.rules());
    Checker::new(recorded, engine).run()
}

fn disagreement(text: &str) -> Mismatch {
    match run(text) {
        Err(CheckError::Mismatch(difference)) => *difference,
        other => panic!("expected a disagreement, got {other:?}"),
    }
}

#[test]
fn streams_of_currency_pairs_agree_to_the_end() {
    for (name, commands) in [
        ("edge_nomargin.txt.gz", 16),
        ("exchange_20k.txt.gz", 22_756),
    ] {
        let summary = run(&own(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(summary.commands, commands, "{name}");
        assert!(
            summary.checkpoints > 10 && summary.events > 3,
            "{name}: {summary:?}"
        );
    }
}

#[test]
fn all_recorded_streams_agree_to_the_end() {
    let Some(folder) = shared("conformance") else {
        return;
    };
    for (name, commands) in [
        ("edge.txt.gz", 200),
        ("edge_nomargin.txt.gz", 16),
        ("edge_quirks.txt.gz", 39),
        ("exchange_20k.txt.gz", 22_756),
        ("margin_20k.txt.gz", 22_441),
        ("multi_40k.txt.gz", 44_671),
    ] {
        let text = text(&folder.join(name));
        let summary = run(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(summary.commands, commands, "{name}");
    }
}

/// The stream with line `number` (from 1) replaced by `lines`.
fn with(text: &str, number: usize, lines: &[&str]) -> String {
    let mut all: Vec<&str> = text.lines().collect();
    all.splice(number - 1..number, lines.iter().copied());
    all.join("\n") + "\n"
}

/// The line with one digit changed: the one at the `pick`-th place that has one.
fn other_digit(line: &str, pick: usize) -> Option<String> {
    let digits: Vec<usize> = line
        .match_indices(|c: char| c.is_ascii_digit())
        .map(|m| m.0)
        .collect();
    let place = *digits.get(pick % digits.len().max(1))?;
    let mut bytes = line.as_bytes().to_vec();
    bytes[place] = if bytes[place] == b'9' {
        b'8'
    } else {
        bytes[place] + 1
    };
    String::from_utf8(bytes).ok()
}

fn is_output(line: &str) -> bool {
    !line.starts_with(['#', 'C', 'S', 'W'])
}

/// Every fault that can be put into one line of the recorded output of the reference.
fn assert_caught(text: &str, number: usize, pick: usize) {
    let line = text.lines().nth(number - 1).expect("the line exists");
    let at = number as u64;
    let changed = other_digit(line, pick).unwrap_or_else(|| format!("{line}X"));
    let difference = disagreement(&with(text, number, &[&changed]));
    assert_eq!(
        (difference.line, difference.expected),
        (at, Some(changed)),
        "changed: {line}"
    );
    if line.starts_with("K,") {
        return; // A stream may have as many checkpoints as it likes.
    }
    let difference = disagreement(&with(text, number, &[]));
    let next = text
        .lines()
        .skip(number)
        .find(|line| !line.starts_with("# case"));
    // Where this and the next line are equal, the last of them is missed, not this one.
    if next != Some(line) {
        assert_eq!(difference.line, at, "missing: {line}: {difference}");
    }
    let difference = disagreement(&with(text, number, &[line, line]));
    assert_eq!(difference.line, at + 1, "doubled: {line}: {difference}");
}

#[test]
fn every_fault_in_a_line_is_caught_in_that_line() {
    let text = own("edge_nomargin.txt.gz");
    let outputs = text.lines().enumerate().filter(|(_, line)| is_output(line));
    for (pick, (index, _)) in outputs.enumerate() {
        assert_caught(&text, index + 1, pick);
    }
}

#[test]
fn seeded_faults_in_a_long_stream_are_caught_in_their_line() {
    let text = own("exchange_20k.txt.gz");
    let lines: Vec<&str> = text.lines().collect();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut kinds = std::collections::BTreeMap::new();
    while kinds.values().sum::<usize>() < 16 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let number = usize::try_from(random >> 33).expect("31 bits") % lines.len() + 1;
        let kind = lines[number - 1].split(',').next().unwrap_or_default();
        // Results are most of the lines; take a few of each kind.
        let seen: &mut usize = kinds.entry(kind).or_default();
        if is_output(lines[number - 1]) && *seen < 3 {
            *seen += 1;
            assert_caught(&text, number, number);
        }
    }
    assert!(kinds.len() > 6, "{kinds:?}");
}

#[test]
fn a_stream_that_records_no_changes_agrees_and_one_that_hides_the_first_does_not() {
    let text = own("exchange_20k.txt.gz");
    let is_change = |line: &&str| line.starts_with(['+', '-']);
    let without: String = text
        .lines()
        .filter(|line| !is_change(line))
        .map(|line| format!("{line}\n"))
        .collect();
    run(&without).unwrap_or_else(|error| panic!("{error}"));

    let lines: Vec<&str> = text.lines().collect();
    let first = lines
        .iter()
        .position(is_change)
        .expect("it records changes");
    let difference = disagreement(&with(&text, first + 1, &[]));
    assert_eq!(difference.line, first as u64 + 1);
    assert_eq!(difference.got.as_deref(), Some(lines[first]));
}

#[test]
fn ends_that_come_early_or_late_are_reported() {
    let text = own("edge_nomargin.txt.gz");
    let lines = text.lines().count();
    let difference = disagreement(&with(&text, lines, &[]));
    assert_eq!((difference.line, difference.expected), (lines as u64, None));
    assert_eq!(difference.got.as_deref(), Some("# END"));
    let difference = disagreement(&with(&text, lines, &["# END", "R,SUCCESS"]));
    assert_eq!(difference.line, lines as u64 + 1);
    let difference = disagreement(text.lines().next().expect("a header"));
    assert_eq!(difference.got.as_deref(), Some("# FINAL STATE"));
    let message = difference.to_string();
    assert_eq!(message, "line 2: expected (end of file), got # FINAL STATE");
}

#[test]
fn both_dialects_agree_where_the_stream_meets_no_quirk() {
    use thalweg_exchange::stream::Item;
    use thalweg_exchange::{
        Command, Events, OrderType, Rules, apply, report::state_text::state_text_hash,
    };

    let text = own("exchange_20k.txt.gz");
    let recorded = Recording::new(text.as_bytes()).expect("the stream is whole");
    // Its users share their orders' ids: a quirk, too.
    let mended = Rules {
        ids_per_user: false,
        refuse_rejected: false,
        trigger_passed_stops: false,
        bound_work: false,
        ..Rules::default()
    };
    let mut states = [State::new(Rules::REFERENCE), State::new(mended)];
    let mut events = [Events::new(), Events::new()];
    let mut commands = 0;
    for item in recorded {
        let (line, item) = item.expect("the stream is whole");
        let Item::Command { command, .. } = item else {
            continue;
        };
        let quirk = |place: &thalweg_exchange::Place| {
            matches!(place.order_type, OrderType::Fok | OrderType::IocBudget)
        };
        if matches!(&command, Command::Place(place) if quirk(place)) {
            continue;
        }
        commands += 1;
        let results = [0, 1].map(|i| apply(&mut states[i], &command, &mut events[i]));
        assert_eq!(results[0], results[1], "line {line}");
        assert_eq!(events[0], events[1], "line {line}");
    }
    assert!(commands > 22_000);
    assert_eq!(state_text_hash(&states[0]), state_text_hash(&states[1]));
}
