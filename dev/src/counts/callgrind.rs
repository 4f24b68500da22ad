//! The counter: valgrind's callgrind, which looks at one function only, and writes a file each
//! time that it returns.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::baseline::Counts;

/// The function inside which instructions count, as callgrind shows its name. It takes `*` for any
/// letters in one of the two options, but not in the other.
const COUNTED: &str = "counts::counted";

/// A call of that function, as the counted program tells of it.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    name: String,
    rounds: u64,
}

/// Options that make callgrind write `out.1`, `out.2`… into `folder`, one file a call.
pub(super) fn options(folder: &Path) -> [OsString; 4] {
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(folder.join("out"));
    [
        "--tool=callgrind".into(),
        format!("--toggle-collect={COUNTED}").into(),
        format!("--dump-after={COUNTED}").into(),
        file,
    ]
}

/// Reads the lines `NAME ROUNDS` of the counted program.
pub(super) fn calls(report: &str) -> Result<Vec<Call>, String> {
    let call = |line: &str| {
        let (name, rounds) = line.split_once(' ')?;
        Some(Call {
            name: name.to_owned(),
            rounds: rounds.parse().ok()?,
        })
    };
    let line = |line| call(line).ok_or_else(|| format!("`{line}` is not `NAME ROUNDS`"));
    report.lines().map(line).collect()
}

/// The cost of each of the calls, in instructions.
pub(super) fn totals(folder: &Path, calls: usize) -> Result<Vec<u64>, String> {
    if folder.join(format!("out.{}", calls + 1)).exists() {
        return Err(format!(
            "callgrind saw more calls of {COUNTED} than {calls}"
        ));
    }
    let read = |number| {
        let path = folder.join(format!("out.{number}"));
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("call {number} of {COUNTED}: {}: {error}", path.display()))?;
        total(&text).ok_or_else(|| format!("{}: no total", path.display()))
    };
    (1..=calls).map(read).collect()
}

fn total(dump: &str) -> Option<u64> {
    let total = dump.lines().find_map(|line| line.strip_prefix("totals: "));
    total?.trim().parse().ok()
}

/// The cost of a round of each case: its two calls differ in rounds, and in nothing else.
pub(super) fn per_round(calls: &[Call], totals: &[u64]) -> Result<Counts, String> {
    let mut counts = Counts::new();
    for (pair, totals) in calls.chunks(2).zip(totals.chunks(2)) {
        let ([few, many], [less, more]) = (pair, totals) else {
            return Err(format!("{} is there once", pair[0].name));
        };
        let name = &few.name;
        if *name != many.name || few.rounds >= many.rounds || less >= more {
            return Err(format!(
                "{name}, {} rounds: {less} instructions; {}, {} rounds: {more}",
                few.rounds, many.name, many.rounds
            ));
        }
        let cost = (more - less) as f64 / (many.rounds - few.rounds) as f64;
        if counts.insert(name.clone(), cost).is_some() {
            return Err(format!("{name} is there twice"));
        }
    }
    if counts.is_empty() {
        return Err("nothing was counted".to_owned());
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(report: &str, totals: &[u64]) -> Result<Counts, String> {
        per_round(&calls(report)?, totals)
    }

    #[test]
    fn a_round_costs_the_difference() {
        let counts = counted("b 10\nb 30\na 1\na 2", &[150, 350, 7, 9]).unwrap();
        let expected = [("a".to_owned(), 2.0), ("b".to_owned(), 10.0)];
        assert_eq!(counts, expected.into());
    }

    #[test]
    fn calls_that_do_not_fit_are_refused() {
        let error = |report, totals| counted(report, totals).unwrap_err();
        assert_eq!(error("a", &[]), "`a` is not `NAME ROUNDS`");
        assert_eq!(error("", &[]), "nothing was counted");
        assert_eq!(error("a 1", &[5]), "a is there once");
        assert_eq!(
            error("a 1\nb 2", &[5, 6]),
            "a, 1 rounds: 5 instructions; b, 2 rounds: 6"
        );
        assert_eq!(
            error("a 1\na 2", &[5, 5]),
            "a, 1 rounds: 5 instructions; a, 2 rounds: 5"
        );
        assert_eq!(
            error("a 1\na 2\na 1\na 2", &[5, 6, 5, 6]),
            "a is there twice"
        );
    }

    #[test]
    fn the_total_of_a_file_is_found() {
        let dump = "events: Ir\nsummary: 189472\n\nfn=(1)\n58 189472\n\ntotals: 189472\n";
        assert_eq!(total(dump), Some(189_472));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn a_call_that_was_not_seen_is_named() {
        let error = totals(Path::new("/nowhere"), 1).unwrap_err();
        assert!(
            error.starts_with("call 1 of counts::counted: /nowhere/out.1: "),
            "{error}"
        );
    }
}
