//! `thalweg hash`: XXH64 checksums, and lists of them in the format of `xxhsum -H64`.
//!
//! A line of a list has sixteen hexadecimal digits, a space, any character (a space, when this
//! program writes it), and the name to the end of the line; or it has the form `XXH64 (NAME) =
//! DIGITS`. In a name that contains a backslash or an end of line, these are escaped, and a
//! backslash precedes the whole line. Lines that begin with `#` are comments.

mod reading;

use crate::arguments::values::{self, Format};
use crate::failure::{Failure, Finding};
use crate::hash::reading::Input;
use crate::message::reason;
use crate::terminal::Notes;
use clap::Args;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use thalweg_hash::{Stride, Strided, Xxh64};

const HASH_EXAMPLES: &str = "\
Examples:
  thalweg hash *.iso > SUMS
      A line for each file, as xxhsum -H64 writes it
  thalweg hash --check SUMS
      OK or FAILED for each file of the list
  thalweg hash --stride 512:8 disk.img
      Sectors of 512 bytes, without the 8 bytes of protection behind each
  tar c src | thalweg hash --format json";

/// The options of `hash`.
#[derive(Debug, Args)]
#[command(after_help = HASH_EXAMPLES)]
pub(crate) struct Hash {
    /// Files to hash, `-` for standard input
    pub(crate) files: Vec<PathBuf>,

    /// Check the files of a list, as this command or xxhsum -H64 has written it; `-` for standard
    /// input
    #[arg(long, short, value_name = "LIST", conflicts_with = "files")]
    pub(crate) check: Option<PathBuf>,

    /// Seed; the lists of xxhsum are made with 0
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::any)]
    pub(crate) seed: u64,

    /// Hash only the first TAKE bytes of each TAKE + SKIP
    #[arg(long, value_name = "TAKE:SKIP")]
    stride: Option<Stride>,

    /// Format of the checksums or findings on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress, and no OK for files that match
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print nothing: the exit code says it all
    #[arg(long, requires = "check", conflicts_with = "files")]
    pub(crate) status: bool,

    /// Exit with 1 if a line of the list is improperly formatted
    #[arg(long, requires = "check", conflicts_with = "files")]
    pub(crate) strict: bool,

    /// Name each line of the list that is improperly formatted
    #[arg(long, short, requires = "check", conflicts_with = "files")]
    warn: bool,

    /// Skip files of the list that do not exist
    #[arg(long, requires = "check", conflicts_with = "files")]
    ignore_missing: bool,
}

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
#[derive(Debug, Default, Serialize)]
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

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Failed,
    Unreadable,
    /// The line is not a checksum.
    #[default]
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
            Format::Text => crate::output::print(&line(hash, input.name().as_encoded_bytes()))?,
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
        crate::output::print_json(&sums)?;
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
    let text = input.whole(LIST_BYTES_MAX);
    let text = text.map_err(|error| failure(reason(&error)))?;
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    let mut tally = Tally::default();
    let mut verdicts = Vec::new();
    for (at, line) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        let verdict = match parse(line) {
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
                Verdict {
                    line: at,
                    ..Verdict::default()
                }
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
        Format::Text => crate::output::print(summary(&tally).as_bytes())?,
        Format::Json => crate::output::print_json(&verdicts)?,
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
            let file = crate::message::shown(&entry.name);
            let message = format!("{list}:{line}: Could not open or read '{file}': {why}.\n");
            return crate::output::print(message.as_bytes());
        }
    };
    let mut line = escaped(entry.name.as_encoded_bytes());
    line.extend_from_slice(format!(": {said}\n").as_bytes());
    crate::output::print(&line)
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

/// A file of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) hash: u64,
    pub(crate) name: OsString,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Entry(Entry),
    Comment,
    Improper,
}

/// Returns the line for a file.
pub(crate) fn line(hash: u64, name: &[u8]) -> Vec<u8> {
    let escaped = escaped(name);
    let (mark, name) = match escaped.len() == name.len() {
        true => (&b""[..], &escaped[..]),
        false => escaped.split_at(1),
    };
    let digits = format!("{hash:016x}  ");
    [mark, digits.as_bytes(), name, b"\n"].concat()
}

/// Returns the name; if it needs escapes, a backslash and then the name with its backslashes and
/// ends of lines escaped.
fn escaped(name: &[u8]) -> Vec<u8> {
    if !name.iter().any(|byte| b"\\\n\r".contains(byte)) {
        return name.to_vec();
    }
    let mut escaped = vec![b'\\'];
    for &byte in name {
        match byte {
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            _ => escaped.push(byte),
        }
    }
    escaped
}

/// Reverses the escapes of a name. Returns `None` if an escape is unknown.
fn unescaped(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match (byte, byte == b'\\') {
            (_, false) => byte,
            (_, true) => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
        });
    }
    Some(plain)
}

/// Parses a line of a list, with or without its line end.
pub(crate) fn parse(line: &[u8]) -> Line {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.starts_with(b"#") {
        return Line::Comment;
    }
    let (line, escaped) = match line.strip_prefix(b"\\") {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    let entry = || {
        let (hash, name) = tagged(line).or_else(|| plain(line))?;
        let name = match escaped {
            true => unescaped(name)?,
            false => name.to_vec(),
        };
        Some(Entry {
            hash,
            name: OsString::from_vec(name),
        })
    };
    entry().map_or(Line::Improper, Line::Entry)
}

/// Parses a line of the form `DIGITS  NAME`.
fn plain(line: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = line.split_at_checked(16)?;
    match rest {
        [b' ', _, name @ ..] if !name.is_empty() => Some((hexadecimal(digits)?, name)),
        _ => None,
    }
}

/// Parses a line of the form `XXH64 (NAME) = DIGITS`.
fn tagged(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.strip_prefix(b"XXH64 (")?;
    let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(16)?)?;
    let name = rest.strip_suffix(b") = ")?;
    (!name.is_empty()).then_some((hexadecimal(digits)?, name))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
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

    const HASH: u64 = 0x00ab_cdef_0123_4567;

    fn entry(line: &[u8]) -> Option<(u64, String)> {
        match parse(line) {
            Line::Entry(entry) => Some((entry.hash, entry.name.into_string().unwrap())),
            _ => None,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for name in [
            "a",
            "two words",
            " b ",
            "back\\slash",
            "end\nof\rline",
            "\\n",
            "(x) = y",
        ] {
            let written = line(HASH, name.as_bytes());
            assert_eq!(entry(&written), Some((HASH, name.to_owned())), "{name:?}");
            assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1);
        }
        assert_eq!(line(HASH, b"a"), b"00abcdef01234567  a\n");
        assert_eq!(line(HASH, b"a\\b"), b"\\00abcdef01234567  a\\\\b\n");
    }

    #[test]
    fn other_forms_are_read() {
        let a = Some((HASH, "a".to_owned()));
        assert_eq!(entry(b"00ABCDEF01234567 *a\r\n"), a);
        assert_eq!(entry(b"XXH64 (a) = 00abcdef01234567"), a);
        assert_eq!(parse(b"# no line\n"), Line::Comment);
    }

    #[test]
    fn what_is_no_line_is_reported() {
        for line in [
            &b""[..],
            b"\n",
            b"00abcdef01234567",
            b"00abcdef01234567 ",
            b"00abcdef01234567  \n",
            b"00abcdef0123456  a\n",
            b"00abcdef012345678  a\n",
            b"+0abcdef01234567  a\n",
            b"00abcdef0123456g  a\n",
            b"XXH32 (a) = 01234567\n",
            b"XXH64 () = 00abcdef01234567",
            b"\\00abcdef01234567  a\\x",
            b"\\00abcdef01234567  a\\",
        ] {
            assert_eq!(parse(line), Line::Improper, "{line:?}");
        }
    }
}
