//! `thalweg hash`.

mod list;
mod reading;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use thalweg_hash::{Strided, Xxh64};

use crate::arguments::{Format, Hash};
use crate::failure::{self, Failure, Finding};
use crate::terminal::Notes;
use list::{Entry, Line};
use reading::Input;

/// The checksum of a file, as JSON has it.
#[derive(Debug, Serialize)]
struct Sum {
    file: String,
    xxh64: String,
    bytes: u64,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stride: Option<String>,
}

/// A line of a list, checked, as JSON has it.
#[derive(Debug, Serialize)]
struct Verdict {
    file: String,
    status: Status,
    expected: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    got: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Failed,
    Unreadable,
}

/// Hashes files, or checks a list of checksums.
///
/// # Errors
/// Files that cannot be read, after all that can; a list without checksums.
pub(crate) fn hash(options: &Hash) -> Result<Finding, Failure> {
    match &options.check {
        Some(list) => check(list, options),
        None => sums(options),
    }
}

fn sums(options: &Hash) -> Result<Finding, Failure> {
    let only_input = [Path::new("-").to_owned()];
    let files = match options.files.is_empty() {
        true => &only_input,
        false => &options.files[..],
    };
    let notes = Notes::new(options.quiet);
    let mut sums = Vec::new();
    let mut unread = 0;
    for file in files {
        let input = Input::of(file);
        let (hash, bytes) = match sum(&input, options, notes) {
            Ok(found) => found,
            Err(error) => {
                unread += 1;
                let _ = writeln!(io::stderr(), "thalweg: {}: {error}", input.shown());
                continue;
            }
        };
        match options.format {
            // Text is for people, who want to see each file when it is done.
            Format::Text => failure::print(&list::line(hash, input.name().as_encoded_bytes()))?,
            Format::Json => sums.push(Sum {
                file: input.shown(),
                xxh64: format!("{hash:016x}"),
                bytes,
                seed: options.seed,
                stride: options.stride.map(|stride| stride.to_string()),
            }),
        }
    }
    if options.format == Format::Json {
        print_json(&sums)?;
    }
    match unread {
        0 => Ok(Finding::Fine),
        files => Err(Failure::Unread { files }),
    }
}

fn print_json(rows: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(rows);
    let json = json.map_err(|error| Failure::Output(io::Error::other(error)))?;
    failure::print(format!("{json}\n").as_bytes())
}

/// The hash of an input, and its length in bytes, skipped ones included.
fn sum(input: &Input<'_>, options: &Hash, notes: Notes) -> io::Result<(u64, u64)> {
    if let Some(stride) = options.stride {
        let mut hash = Strided::new(options.seed, stride);
        let bytes = input.read(notes, |piece| hash.update(piece))?;
        return Ok((hash.digest(), bytes));
    }
    let mut hash = Xxh64::new(options.seed);
    let bytes = input.read(notes, |piece| hash.update(piece))?;
    Ok((hash.digest(), bytes))
}

/// How many lines of a list came out how.
#[derive(Debug, Default)]
struct Tally {
    proper: usize,
    improper: usize,
    failed: usize,
    unreadable: usize,
}

fn check(list: &Path, options: &Hash) -> Result<Finding, Failure> {
    let notes = Notes::new(options.quiet);
    let input = Input::of(list);
    let failure = |what: String| Failure::List {
        list: input.shown(),
        what,
    };
    let mut text = Vec::new();
    let read = input.read(Notes::new(true), |piece| text.extend_from_slice(piece));
    read.map_err(|error| failure(error.to_string()))?;
    let mut tally = Tally::default();
    let mut verdicts = Vec::new();
    for (at, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let entry = match list::parse(line) {
            Line::Entry(entry) => entry,
            Line::Comment => continue,
            Line::Improper => {
                tally.improper += 1;
                continue;
            }
        };
        tally.proper += 1;
        let verdict = judge(&entry, options, notes, &mut tally);
        match options.format {
            Format::Text => {
                let place = format!("{}:{}", input.shown(), at + 1);
                print_verdict(&verdict, &entry, &place, options.quiet)?;
            }
            Format::Json => verdicts.push(verdict),
        }
    }
    if tally.proper == 0 {
        return Err(failure("no properly formatted XXH64 checksums".to_owned()));
    }
    match options.format {
        Format::Text => failure::print(summary(&tally).as_bytes())?,
        Format::Json => print_json(&verdicts)?,
    }
    match tally {
        Tally {
            unreadable: 1.., ..
        } => Err(Failure::Unread {
            files: tally.unreadable,
        }),
        Tally { failed: 1.., .. } => Ok(Finding::Negative),
        _ => Ok(Finding::Fine),
    }
}

fn judge(entry: &Entry, options: &Hash, notes: Notes, tally: &mut Tally) -> Verdict {
    let input = Input::named(&entry.name);
    let (status, got, error) = match sum(&input, options, notes) {
        Ok((hash, _)) if hash == entry.hash => (Status::Ok, Some(hash), None),
        Ok((hash, _)) => (Status::Failed, Some(hash), None),
        Err(error) => (Status::Unreadable, None, Some(error.to_string())),
    };
    match status {
        Status::Ok => {}
        Status::Failed => tally.failed += 1,
        Status::Unreadable => tally.unreadable += 1,
    }
    Verdict {
        file: input.shown(),
        status,
        expected: format!("{:016x}", entry.hash),
        got: got.map(|hash| format!("{hash:016x}")),
        error,
    }
}

fn print_verdict(
    verdict: &Verdict,
    entry: &Entry,
    place: &str,
    quiet: bool,
) -> Result<(), Failure> {
    let said = match (verdict.status, &verdict.error) {
        (Status::Ok, _) if quiet => return Ok(()),
        (Status::Ok, _) => "OK",
        (Status::Failed, _) => "FAILED",
        (Status::Unreadable, error) => {
            let why = error.as_deref().unwrap_or_default();
            let told = format!(
                "{place}: Could not open or read '{}': {why}.\n",
                verdict.file
            );
            return failure::print(told.as_bytes());
        }
    };
    let mut line = list::escaped(entry.name.as_encoded_bytes());
    line.extend_from_slice(format!(": {said}\n").as_bytes());
    failure::print(&line)
}

/// The closing lines of a check, as `xxhsum` has them.
fn summary(tally: &Tally) -> String {
    let told = |count: usize, one: &str, more: &str, what: &str| match count {
        0 => String::new(),
        1 => format!("1 {one} {what}\n"),
        _ => format!("{count} {more} {what}\n"),
    };
    [
        told(
            tally.improper,
            "line is",
            "lines are",
            "improperly formatted",
        ),
        told(
            tally.unreadable,
            "listed file",
            "listed files",
            "could not be read",
        ),
        told(
            tally.failed,
            "computed checksum",
            "computed checksums",
            "did NOT match",
        ),
    ]
    .concat()
}

/// A name for people and JSON.
fn shown(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_one_and_more() {
        let tally = Tally {
            proper: 9,
            improper: 1,
            failed: 2,
            unreadable: 1,
        };
        let expected = "1 line is improperly formatted\n1 listed file could not be read\n\
                        2 computed checksums did NOT match\n";
        assert_eq!(summary(&tally), expected);
        assert_eq!(summary(&Tally::default()), "");
    }
}
