//! `thalweg journal`.

use crate::arguments::values::{self, Format};
use crate::failure::{Failure, Finding};
use crate::message::{counted, plural};
use crate::terminal::Notes;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::PathBuf;
use thalweg_journal::{Error, Files, Lsn, Reader, TornWrite, first_readable_after, truncate};

#[derive(Debug, Subcommand)]
pub(crate) enum Journal {
    /// Show what a journal holds: its records in number, or with --records one by one
    ///
    /// The journal may be in use. What is read is checked as verify does.
    ///
    /// Exit code: 0 fine; 1 if durable records are damaged, after those before them; 2 misuse or
    /// failure.
    Show(Show),
    /// Read all of a journal, and check that nothing durable is damaged or missing
    ///
    /// A write that a crash left unfinished at the end is reported, and is no damage.
    ///
    /// Exit code: 0 whole; 1 damaged; 2 misuse or failure.
    Verify(Verify),
    /// Truncate a journal that no program writes: remove its end
    ///
    /// If it is interrupted, repeat it: until then the journal may be said to be damaged there.
    ///
    /// Exit code: 0 fine, also where there was no damage; 2 misuse or failure.
    Truncate(Truncate),
}

/// A journal, and how to speak of it.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The directory of the journal
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Format of standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) place: Place,

    /// Print the records too, in hexadecimal
    #[arg(long)]
    pub(crate) records: bool,

    /// The first record to show, by its number
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::any)]
    pub(crate) from: u64,

    /// How many records to print at most
    #[arg(long, value_name = "N", default_value = "20", value_parser = values::any)]
    #[arg(requires = "records")]
    pub(crate) limit: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
#[group(id = "where_to_truncate", required = true, multiple = false, args = ["at", "damaged"])]
pub(crate) struct Truncate {
    #[command(flatten)]
    pub(crate) place: Place,

    /// Truncate before this record, the first of a block
    #[arg(long, value_name = "N", value_parser = values::any)]
    pub(crate) at: Option<u64>,

    /// Truncate before the first damage, if there is any
    #[arg(long)]
    pub(crate) damaged: bool,
}

/// Shows, verifies or truncates a journal.
///
/// # Errors
/// Returns an error if there is no journal, if it cannot be read, or if it is in use and must not
/// be.
pub(crate) fn journal(command: &Journal) -> Result<Finding, Failure> {
    match command {
        Journal::Show(options) => show(options),
        Journal::Verify(options) => verify(options),
        Journal::Truncate(options) => truncated(options),
    }
}

/// The contents of a journal, with the keys of the JSON output.
#[derive(Debug, Serialize)]
struct Contents {
    place: String,
    /// The size of a record; 0 where it varies, `None` where no segment could be read.
    record_bytes: Option<u32>,
    /// The first record; `None` where there is no record.
    first: Option<u64>,
    last: Option<u64>,
    blocks: u64,
    segments: u64,
    whole: bool,
    torn: Option<Unfinished>,
    damage: Option<Damage>,
}

#[derive(Debug, Serialize)]
struct Unfinished {
    file: String,
    offset_bytes: u64,
    lsn: u64,
}

#[derive(Debug, Serialize)]
struct Damage {
    file: String,
    offset_bytes: u64,
    /// The first record that cannot be read; `None` where a segment is damaged or missing as a
    /// whole.
    lsn: Option<u64>,
    why: String,
    /// The first record behind the damage from which on the journal can be read.
    readable_from: Option<u64>,
    #[serde(skip)]
    message: String,
}

impl From<&TornWrite> for Unfinished {
    fn from(torn: &TornWrite) -> Unfinished {
        Unfinished {
            file: torn.file.clone(),
            offset_bytes: torn.offset_bytes,
            lsn: torn.lsn.number(),
        }
    }
}

/// Reads a journal from a record to its end or its first damage, and passes its records to `rows`.
fn read(place: &Place, from: u64, mut rows: Option<&mut Rows>) -> Result<Contents, Failure> {
    let name = crate::message::shown(place.directory.as_os_str());
    let mut contents = Contents {
        place: name.clone(),
        record_bytes: None,
        first: None,
        last: None,
        blocks: 0,
        segments: 0,
        whole: true,
        torn: None,
        damage: None,
    };
    let mut reader = match Reader::open(&place.directory, Lsn::new(from)) {
        Ok(reader) => reader,
        Err(error) => {
            contents.damaged(place, error)?;
            return Ok(contents);
        }
    };
    let (_, total) = reader.progress_bytes();
    // The progress bar would be drawn between the rows.
    let is_quiet = place.quiet || rows.is_some() && io::stdout().is_terminal();
    let bar = Notes::new(is_quiet).progress_bytes(total, name);
    contents.record_bytes = Some(reader.record_bytes());
    contents.segments = 1;
    let mut file = reader.file().to_owned();
    loop {
        match reader.next_block() {
            Ok(None) => break,
            Ok(Some(block)) => {
                contents.first.get_or_insert(block.first().number());
                contents.last = Some(block.last().number());
                contents.blocks += 1;
                if let Some(rows) = &mut rows {
                    rows.take(block.bytes().map(|(lsn, bytes)| (lsn.number(), bytes)))?;
                }
            }
            Err(error) => {
                contents.damaged(place, error)?;
                break;
            }
        }
        if reader.file() != file {
            reader.file().clone_into(&mut file);
            contents.segments += 1;
        }
        bar.set_position(reader.progress_bytes().0);
    }
    bar.finish_and_clear();
    contents.torn = reader.torn().map(Unfinished::from);
    Ok(contents)
}

impl Contents {
    /// Records damage. Damage is a finding, and so is a segment that cannot be read; other errors
    /// are failures.
    fn damaged(&mut self, place: &Place, error: Error) -> Result<(), Failure> {
        let message = error.to_string();
        let (file, offset_bytes, lsn, why) = match error {
            error @ (Error::Io { .. } | Error::NewerVersion { .. }) if self.last.is_none() => {
                return Err(error.into());
            }
            Error::Io { ref file, .. } | Error::NewerVersion { ref file, .. } => (
                file.clone(),
                0,
                None,
                message.replacen(&format!("{file}: "), "", 1),
            ),
            Error::Corrupt {
                file,
                offset_bytes,
                lsn,
                why,
            } => (file, offset_bytes, Some(lsn.number()), why.to_owned()),
            Error::BadSegment { file, why } => (file, 0, None, why.to_owned()),
            Error::MissingSegment { file, .. } => {
                (file, 0, None, "this segment is missing".to_owned())
            }
            error => return Err(error.into()),
        };
        self.whole = false;
        let behind = lsn.or(self.last).map_or(Lsn::ZERO, Lsn::new);
        // No record can be read there if the directory cannot be read.
        let readable = first_readable_after(&Files::new(&place.directory), behind);
        self.damage = Some(Damage {
            readable_from: readable.ok().flatten().map(Lsn::number),
            file,
            offset_bytes,
            lsn,
            why,
            message,
        });
        Ok(())
    }

    fn summary(&self) -> String {
        let size = match self.record_bytes {
            None => String::new(),
            Some(0) => ", of any length".to_owned(),
            Some(bytes) => format!(", of {}", counted(u64::from(bytes), "byte")),
        };
        let state = match self.whole {
            true => "whole",
            false => "DAMAGED",
        };
        let mut text = match (self.first, self.last) {
            (Some(first), Some(last)) => format!(
                "{}: {state}: record{} {first} to {last}{size}, in {} and {}\n",
                self.place,
                plural(last - first + 1),
                counted(self.blocks, "block"),
                counted(self.segments, "segment"),
            ),
            _ => format!("{}: {state}: no records{size}\n", self.place),
        };
        if let Some(Unfinished {
            file,
            offset_bytes,
            lsn,
        }) = &self.torn
        {
            let _ = writeln!(
                text,
                "{file}: an unfinished write at byte {offset_bytes} (record {lsn}); it was never \
                 acknowledged"
            );
        }
        if let Some(damage) = &self.damage {
            let _ = writeln!(text, "{}", damage.message);
            let hint = match self.last {
                Some(last) => format!(
                    ", or give up what is behind record {last}: thalweg journal truncate \
                     --damaged {}",
                    self.place
                ),
                None => String::new(),
            };
            let _ = writeln!(text, "Restore this file from a copy{hint}");
            if let Some(from) = damage.readable_from {
                let place = &self.place;
                let _ = writeln!(
                    text,
                    "Records from {from} on can be read: thalweg journal show {place} --from {from}"
                );
            }
        }
        text
    }

    fn finding(&self) -> Finding {
        match self.whole {
            true => Finding::Fine,
            false => Finding::Negative,
        }
    }
}

fn show(options: &Show) -> Result<Finding, Failure> {
    if !options.records {
        return look(&options.place, options.from);
    }
    let mut rows = Rows::new(options.place.format, options.limit);
    let contents = read(&options.place, options.from, Some(&mut rows))?;
    rows.end(&contents, &contents.summary())?;
    Ok(contents.finding())
}

fn verify(options: &Verify) -> Result<Finding, Failure> {
    look(&options.place, 0)
}

/// Reads the whole journal, and prints the counts.
fn look(place: &Place, from: u64) -> Result<Finding, Failure> {
    let contents = read(place, from, None)?;
    match place.format {
        Format::Json => crate::output::print_json(&contents)?,
        Format::Text => crate::output::print(contents.summary().as_bytes())?,
    }
    Ok(contents.finding())
}

/// The result of a truncation, with the keys of the JSON output.
#[derive(Debug, Serialize)]
struct Done {
    place: String,
    truncated: bool,
    last: Option<u64>,
    file: Option<String>,
    offset_bytes: Option<u64>,
    segments_removed: usize,
}

fn truncated(options: &Truncate) -> Result<Finding, Failure> {
    let place = crate::message::shown(options.place.directory.as_os_str());
    if options.damaged && read(&options.place, 0, None)?.whole {
        let done = Done {
            place,
            truncated: false,
            last: None,
            file: None,
            offset_bytes: None,
            segments_removed: 0,
        };
        return done.print(options.place.format);
    }
    let files = Files::new(&options.place.directory);
    let done = truncate(&files, options.at.map(Lsn::new))?;
    let done = Done {
        place,
        truncated: true,
        last: Some(done.last.number()),
        file: Some(done.file),
        offset_bytes: Some(done.offset_bytes),
        segments_removed: done.segments_removed,
    };
    done.print(options.place.format)
}

impl Done {
    fn print(&self, format: Format) -> Result<Finding, Failure> {
        let Done {
            place,
            last,
            file,
            offset_bytes,
            segments_removed,
            ..
        } = self;
        match (format, last, file, offset_bytes) {
            (Format::Json, ..) => crate::output::print_json(self)?,
            (Format::Text, Some(last), Some(file), Some(at)) => {
                let segments = counted(*segments_removed as u64, "segment");
                let text = format!(
                    "{place}: truncated behind record {last}, in {file} at byte {at}; {segments} \
                     removed\n"
                );
                crate::output::print(text.as_bytes())?;
            }
            _ => crate::output::print(
                format!("{place}: no damage, nothing was truncated\n").as_bytes(),
            )?,
        }
        Ok(Finding::Fine)
    }
}

const BUFFER_BYTES: usize = 64 << 10;

/// Records on their way to the output: lines of text, or a list that is the first field of a JSON
/// object.
///
/// Nothing is written before the first record or the end, so that a journal that cannot be read at
/// all leaves no incomplete object behind.
#[derive(Debug)]
pub(crate) struct Rows {
    out: BufWriter<StdoutLock<'static>>,
    format: Format,
    taken: u64,
    taken_max: u64,
}

impl Rows {
    /// Creates rows that print at most `taken_max` records on standard output.
    pub(crate) fn new(format: Format, taken_max: u64) -> Rows {
        Rows {
            out: BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()),
            format,
            taken: 0,
            taken_max,
        }
    }

    /// Takes the records that there is room for.
    pub(crate) fn take<'r>(
        &mut self,
        records: impl Iterator<Item = (u64, &'r [u8])>,
    ) -> Result<(), Failure> {
        let left = usize::try_from(self.taken_max - self.taken).unwrap_or(usize::MAX);
        let mut records = records.take(left);
        let written = records.try_for_each(|(lsn, bytes)| self.write(lsn, bytes));
        written.map_err(Failure::Output)
    }

    fn write(&mut self, lsn: u64, bytes: &[u8]) -> io::Result<()> {
        let (begin, end) = match self.format {
            Format::Text => (format!("{lsn} "), "\n"),
            Format::Json => {
                let before = match self.taken {
                    0 => "{\n  \"records\": [\n",
                    _ => ",\n",
                };
                let begin = format!("{before}    {{ \"lsn\": {lsn}, \"hex\": \"");
                (begin, "\" }")
            }
        };
        self.taken += 1;
        self.out.write_all(begin.as_bytes())?;
        for byte in bytes {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            self.out.write_all(&[high, low])?;
        }
        self.out.write_all(end.as_bytes())
    }

    /// Writes the part that follows the records: the text, or the other fields of the object.
    pub(crate) fn end(mut self, facts: &impl Serialize, text: &str) -> Result<(), Failure> {
        let end = match self.format {
            Format::Text => text.to_owned(),
            Format::Json => {
                let list_end = match self.taken {
                    0 => "{\n  \"records\": [],",
                    _ => "\n  ],",
                };
                let fields = crate::output::json(facts)?;
                list_end.to_owned() + fields.trim_start_matches('{')
            }
        };
        let written = self.out.write_all(end.as_bytes());
        written
            .and_then(|()| self.out.flush())
            .map_err(Failure::Output)
    }
}
