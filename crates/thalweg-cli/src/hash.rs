//! `thalweg hash`.

mod list;
mod reading;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use thalweg_hash::{Strided, Xxh64};

use crate::arguments::{Format, Hash};
use crate::failure::{self, Failure, Finding, reason};
use crate::terminal::Notes;
use list::{Entry, Line};
use reading::Input;

/// The maximum size of a list of checksums, in bytes: enough for about two million files.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// The checksum of a file, with the keys of the JSON output.
#[derive(Debug, Serialize)]
struct Sum {
    file: String,
    /// The bytes, in hexadecimal, of a name that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_hex: Option<String>,
    xxh64: String,
    bytes: u64,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stride: Option<String>,
}

/// A checked line of a list, with the keys of the JSON output.
#[derive(Debug, Serialize)]
struct Verdict {
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_hex: Option<String>,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
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
    /// The line is not a checksum.
    Improper,
}

/// Hashes files, or checks a list of checksums.
///
/// # Errors
/// Returns an error for files that cannot be read, after all others are done, and for a list
/// without checksums.
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
                let _ = writeln!(
                    io::stderr(),
                    "thalweg: {}: {}",
                    input.shown(),
                    reason(&error)
                );
                continue;
            }
        };
        match options.format {
            // Text is for people, who want to see the result of each file when it is done.
            Format::Text => failure::print(&list::line(hash, input.name().as_encoded_bytes()))?,
            Format::Json => sums.push(Sum {
                file: input.name().to_string_lossy().into_owned(),
                file_hex: not_utf8(input.name()),
                xxh64: format!("{hash:016x}"),
                bytes,
                seed: options.seed,
                stride: options.stride.map(|stride| stride.to_string()),
            }),
        }
    }
    if options.format == Format::Json {
        failure::print_json(&sums)?;
    }
    match unread {
        0 => Ok(Finding::Fine),
        files => Err(Failure::Unread { files }),
    }
}

/// Returns the hash of an input, and its length in bytes, skipped ones included.
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

/// Returns the bytes of a name in hexadecimal, if the name is not UTF-8.
fn not_utf8(name: &OsStr) -> Option<String> {
    let bytes = name.as_encoded_bytes().iter();
    name.to_str()
        .is_none()
        .then(|| bytes.map(|byte| format!("{byte:02x}")).collect())
}

/// The number of lines of a list with each result.
#[derive(Debug, Default)]
struct Tally {
    proper: usize,
    improper: usize,
    failed: usize,
    unreadable: usize,
    missing: usize,
}

fn check(list: &Path, options: &Hash) -> Result<Finding, Failure> {
    let notes = Notes::new(options.quiet || options.status);
    let input = Input::of(list);
    let failure = |what: String| Failure::List {
        list: input.shown(),
        what,
    };
    let text = input.whole(notes, LIST_BYTES_MAX);
    let text = text.map_err(|error| failure(reason(&error)))?;
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    let mut tally = Tally::default();
    let mut verdicts = Vec::new();
    for (at, line) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        let verdict = match list::parse(line) {
            Line::Comment => continue,
            Line::Entry(entry) => match judge(at, &entry, options, notes, &mut tally) {
                Some(verdict) => {
                    if options.format == Format::Text {
                        print_verdict(&verdict, &entry, &input, options)?;
                    }
                    verdict
                }
                None => continue,
            },
            Line::Improper => {
                tally.improper += 1;
                if options.warn && !options.status {
                    let message = format!(
                        "{}:{at}: Error: Improperly formatted checksum line.\n",
                        input.shown()
                    );
                    let _ = io::stderr().write_all(message.as_bytes());
                }
                Verdict::improper(at)
            }
        };
        if options.format == Format::Json {
            verdicts.push(verdict);
        }
    }
    if tally.proper == 0 {
        return Err(failure("no properly formatted XXH64 checksums".to_owned()));
    }
    if tally.missing == tally.proper {
        return Err(failure("no file was verified".to_owned()));
    }
    match options.format {
        _ if options.status => {}
        Format::Text => failure::print(summary(&tally).as_bytes())?,
        Format::Json => failure::print_json(&verdicts)?,
    }
    match tally {
        Tally {
            unreadable: 1.., ..
        } if options.status => Err(Failure::Reported),
        Tally {
            unreadable: 1.., ..
        } => Err(Failure::Unread {
            files: tally.unreadable,
        }),
        Tally { failed: 1.., .. } => Ok(Finding::Negative),
        Tally { improper: 1.., .. } if options.strict => Ok(Finding::Negative),
        _ => Ok(Finding::Fine),
    }
}

impl Verdict {
    fn improper(line: usize) -> Verdict {
        Verdict {
            line,
            file: None,
            file_hex: None,
            status: Status::Improper,
            expected: None,
            got: None,
            error: None,
        }
    }
}

/// Checks one file of a list. Returns `None` for a missing file where missing files are ignored.
fn judge(
    line: usize,
    entry: &Entry,
    options: &Hash,
    notes: Notes,
    tally: &mut Tally,
) -> Option<Verdict> {
    let input = Input::named(&entry.name);
    tally.proper += 1;
    let (status, got, error) = match sum(&input, options, notes) {
        Ok((hash, _)) if hash == entry.hash => (Status::Ok, Some(hash), None),
        Ok((hash, _)) => (Status::Failed, Some(hash), None),
        Err(error) if options.ignore_missing && error.kind() == io::ErrorKind::NotFound => {
            tally.missing += 1;
            return None;
        }
        Err(error) => (Status::Unreadable, None, Some(reason(&error))),
    };
    match status {
        Status::Failed => tally.failed += 1,
        Status::Unreadable => tally.unreadable += 1,
        Status::Ok | Status::Improper => {}
    }
    Some(Verdict {
        line,
        file: Some(input.name().to_string_lossy().into_owned()),
        file_hex: not_utf8(input.name()),
        status,
        expected: Some(format!("{:016x}", entry.hash)),
        got: got.map(|hash| format!("{hash:016x}")),
        error,
    })
}

fn print_verdict(
    verdict: &Verdict,
    entry: &Entry,
    list: &Input<'_>,
    options: &Hash,
) -> Result<(), Failure> {
    let said = match (verdict.status, &verdict.error) {
        _ if options.status => return Ok(()),
        (Status::Ok, _) if options.quiet => return Ok(()),
        (Status::Ok, _) => "OK",
        (_, None) => "FAILED",
        (_, Some(why)) => {
            let (list, line) = (list.shown(), verdict.line);
            let file = failure::shown(&entry.name);
            let message = format!("{list}:{line}: Could not open or read '{file}': {why}.\n");
            return failure::print(message.as_bytes());
        }
    };
    let mut line = list::escaped(entry.name.as_encoded_bytes());
    line.extend_from_slice(format!(": {said}\n").as_bytes());
    failure::print(&line)
}

/// Returns the closing lines of a check, in the wording of `xxhsum`.
fn summary(tally: &Tally) -> String {
    let message = |count: usize, one: &str, more: &str, what: &str| match count {
        0 => String::new(),
        1 => format!("1 {one} {what}\n"),
        _ => format!("{count} {more} {what}\n"),
    };
    [
        message(
            tally.improper,
            "line is",
            "lines are",
            "improperly formatted",
        ),
        message(
            tally.unreadable,
            "listed file",
            "listed files",
            "could not be read",
        ),
        message(
            tally.failed,
            "computed checksum",
            "computed checksums",
            "did NOT match",
        ),
    ]
    .concat()
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
            missing: 3,
        };
        let expected = "1 line is improperly formatted\n1 listed file could not be read\n\
                        2 computed checksums did NOT match\n";
        assert_eq!(summary(&tally), expected);
        assert_eq!(summary(&Tally::default()), "");
    }
}
