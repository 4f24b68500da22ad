//! `thalweg exchange recover`, `verify` and `export`.

use crate::arguments::values::{self, Format};
use crate::failure::{self, Failure, Finding};
use crate::message::counted;
use crate::results::Record;
use crate::terminal::Notes;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use thalweg_exchange::codec::{command_bytes, encode_command};
use thalweg_exchange::durable::{
    Exchange, Executed, Files, History, HistoryFault, Options, Origin, SnapshotOptions, Storage,
    SyncMode, newest_header,
};
use thalweg_exchange::session::ReportNumber;

#[derive(Debug, Subcommand)]
pub(crate) enum Durable {
    /// The keys with which programs connect to a served exchange
    #[command(subcommand)]
    Key(crate::serve::Key),
    /// Bring a served exchange to where it was: snapshot, journal, and a new snapshot
    ///
    /// Opens the exchange in DIR, executes the commands behind its newest whole snapshot again, and
    /// writes a snapshot of all. The exchange must not be in use.
    ///
    /// Exit code: 0 fine; 1 if a snapshot is damaged, or none could be written; 2 misuse, or the
    /// exchange cannot be recovered.
    Recover(Recover),
    /// Execute all that an exchange has kept, and compare it with every snapshot on the way
    ///
    /// Changes nothing.
    ///
    /// Exit code: 0 all agrees; 1 a snapshot or the journal is damaged, or they differ; 2 misuse or
    /// failure.
    Verify(Verify),
    /// Write the commands of an exchange and what came of them as lines of JSON
    ///
    /// From the oldest snapshot that is kept on, which standard error names where it is not the
    /// beginning. A line for each command: its number, who sent it,
    /// the bytes of its frame in hexadecimal (docs/exchange-codec.md) and its result; then a line
    /// for each execution report, with its number among those of its user. The other keys are those
    /// of docs/orders-csv.md.
    ///
    /// Exit code: 0 fine; 1 if something is damaged, after what is before it; 2 misuse or failure.
    Export(Export),
}

/// A directory of an exchange.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The directory of the exchange
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Recover {
    #[command(flatten)]
    pub(crate) place: Place,

    /// Format of standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// An exchange to be read, with what it has given up.
#[derive(Debug, Args)]
pub(crate) struct StoredExchange {
    #[command(flatten)]
    pub(crate) place: Place,

    /// The exchange's archive (journal.archive): what it holds is read, too
    #[arg(long, value_name = "DIR")]
    pub(crate) archive: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) kept: StoredExchange,

    /// Format of standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) kept: StoredExchange,

    /// The first command to export, by its number; those before are executed all the same
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::any)]
    pub(crate) from: u64,

    /// How many commands to export at most [default: all]
    #[arg(long, value_name = "N", value_parser = values::any)]
    pub(crate) limit: Option<u64>,

    /// Format of standard output: both are lines of JSON
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(crate) format: Format,
}

/// The journal of `exchange run`.
#[derive(Debug, Args)]
pub(crate) struct Journaling {
    /// Put the commands through a durable exchange in DIR: each is on disk before its outcome
    /// counts. DIR is made if it is not there, and is then good for `exchange recover`, `verify`,
    /// `export` and `serve`; a last snapshot is written at the end. Orders of our own CSV go on
    /// where an exchange in DIR has ended; all else needs an empty one, or goes on with --from
    /// where it was interrupted
    #[arg(long, value_name = "DIR")]
    pub(crate) journal: Option<PathBuf>,

    /// Whether outcomes wait for the disk
    #[arg(long, value_enum, default_value_t, requires = "journal")]
    pub(crate) sync: Sync,
}

/// Whether outcomes wait for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sync {
    /// Every command is on disk before its outcome counts
    #[default]
    Always,
    /// When the system sees fit; a crash may take back the last commands
    Never,
}

impl From<Sync> for SyncMode {
    fn from(sync: Sync) -> SyncMode {
        match sync {
            Sync::Always => SyncMode::Always,
            Sync::Never => SyncMode::Never,
        }
    }
}

/// Recovers, verifies or exports an exchange, or makes a key for it.
///
/// # Errors
/// Returns an error if there is no exchange, if it cannot be read, or if it is in use and must not
/// be.
pub(crate) fn durable(command: &Durable) -> Result<Finding, Failure> {
    match command {
        Durable::Key(command) => crate::serve::key(command),
        Durable::Recover(asked) => recover(asked),
        Durable::Verify(asked) => verify(asked),
        Durable::Export(asked) => export(asked),
    }
}

/// The result, with the keys of the JSON output.
#[derive(Debug, Serialize)]
struct Found {
    place: String,
    /// The number of commands that were ever executed.
    commands: u64,
    /// The number of commands that were executed again.
    replayed: u64,
    /// The digest in hexadecimal.
    digest: String,
    state_hash: String,
    /// The number of commands in the snapshot that recovery began with; `None` where no snapshot
    /// was whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshots_whole: Option<usize>,
    /// The number of commands in the snapshot that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<u64>,
    torn: Option<String>,
    wrong: Vec<String>,
    took_ms: u64,
}

impl StoredExchange {
    fn open(&self) -> Result<History, Failure> {
        let files = Files::new(&self.place.directory);
        let files = match &self.archive {
            Some(archive) => files.with_archive(archive),
            None => files,
        };
        Ok(History::open_in(files)?)
    }
}

fn name(place: &Place) -> String {
    crate::message::shown(place.directory.as_os_str())
}

/// Opens an exchange, executes the commands behind its newest snapshot, and writes a new one.
fn recover(asked: &Recover) -> Result<Finding, Failure> {
    let files = Files::new(&asked.place.directory);
    let options = Options {
        sessions: newest_header(&files)?.sessions,
        snapshot: snapshots(&files),
        ..Options::default()
    };
    let notes = Notes::new(asked.place.quiet);
    let bar = notes.progress_bytes(0, name(&asked.place));
    let opened = Exchange::open_showing(files, options, |_| (), &mut |read, total| {
        bar.set_length(total);
        bar.set_position(read);
    });
    bar.finish_and_clear();
    let (exchange, recovered) = opened?;
    let finished = exchange.close().map_err(Failure::Durable)?;
    let mut wrong: Vec<String> = recovered.skipped.iter().map(ToString::to_string).collect();
    let written = match finished.snapshot {
        Ok(made) => made.map(|made| made.commands),
        Err(failed) => {
            wrong.push(failed.to_string());
            None
        }
    };
    let state = &finished.service.state;
    let found = Found {
        place: name(&asked.place),
        commands: recovered.commands,
        replayed: recovered.replayed,
        digest: format!("{:016x}", recovered.digest.value()),
        state_hash: format!("{:016x}", thalweg_exchange::snapshot::state_hash(state)),
        snapshot: recovered.snapshot.map(|header| header.commands),
        snapshots_whole: None,
        written,
        torn: recovered.torn.map(|torn| torn.to_string()),
        wrong,
        took_ms: recovered.took.as_millis() as u64,
    };
    found.print(asked.format, "recovered")
}

/// Returns options that keep the existing snapshots, and with them the journal, beside a new one:
/// the number of snapshots to keep is the decision of the operator who serves the exchange.
pub(crate) fn snapshots(storage: &impl Storage) -> SnapshotOptions {
    let defaults = SnapshotOptions::default();
    let mut names = storage.list().unwrap_or_default();
    names.retain(|name| name.starts_with("snapshot-"));
    SnapshotOptions {
        kept: (names.len() + 1).clamp(defaults.kept, 1 << 10),
        ..defaults
    }
}

/// Executes all commands that are kept, and compares the state with each snapshot on the way.
fn verify(asked: &Verify) -> Result<Finding, Failure> {
    let began = std::time::Instant::now();
    let (mut history, place) = (asked.kept.open()?, &asked.kept.place);
    let (_, total) = history.progress_bytes();
    let bar = Notes::new(place.quiet).progress_bytes(total, name(place));
    while history.step(|_| ()) {
        bar.set_position(history.progress_bytes().0);
    }
    bar.finish_and_clear();
    let advice = history.wrong().iter().find_map(|wrong| match wrong {
        HistoryFault::Journal(error) => failure::advice_on_exchange(error),
        _ => None,
    });
    let found = Found {
        place: name(place),
        commands: history.number(),
        replayed: history.number() - history.first(),
        digest: format!("{:016x}", history.digest().value()),
        state_hash: format!("{:016x}", history.state_hash()),
        snapshot: Some(history.first()),
        snapshots_whole: Some(history.snapshots()),
        written: None,
        torn: history.torn().map(ToString::to_string),
        wrong: history.wrong().iter().map(ToString::to_string).collect(),
        took_ms: began.elapsed().as_millis() as u64,
    };
    let finding = found.print(asked.format, "verified");
    if let Some(advice) = advice {
        Notes::new(place.quiet).hint(advice);
    }
    finding
}

impl Found {
    fn print(&self, format: Format, done: &str) -> Result<Finding, Failure> {
        match format {
            Format::Json => crate::output::print_json(self)?,
            Format::Text => crate::output::print(self.text(done).as_bytes())?,
        }
        Ok(match self.wrong.is_empty() {
            true => Finding::Fine,
            false => Finding::Negative,
        })
    }

    fn text(&self, done: &str) -> String {
        let again = match self.snapshot {
            Some(commands) => format!(
                "{} of them executed again from the snapshot after {commands} on",
                self.replayed
            ),
            None => "all of them executed again: no snapshot was whole".to_owned(),
        };
        let commands = counted(self.commands, "command");
        let mut text = format!("{}: {done}: {commands}, {again}\n", self.place);
        text += &format!("digest {}, state hash {}\n", self.digest, self.state_hash);
        if let Some(whole) = self.snapshots_whole {
            text += &format!("{} whole\n", counted(whole as u64, "snapshot"));
        }
        if let Some(written) = self.written {
            text += &format!("snapshot after {} written\n", counted(written, "command"));
        }
        for line in self.torn.iter().chain(&self.wrong) {
            text += line;
            text.push('\n');
        }
        text
    }
}

/// Writes lines of JSON: each command with its sender, its bytes and its result, and the reports to
/// users.
fn export(asked: &Export) -> Result<Finding, Failure> {
    let (mut history, place) = (asked.kept.open()?, &asked.kept.place);
    let (_, total) = history.progress_bytes();
    let bar = Notes::new(place.quiet).progress_bytes(total, name(place));
    let first = history.first();
    if asked.from < first {
        Notes::new(false).hint(&format!(
            "the beginning is no longer kept: the first command here is {first}{}",
            match asked.kept.archive {
                Some(_) => "",
                None => "; --archive DIR reads what was archived",
            }
        ));
    }
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let end = asked.from.saturating_add(asked.limit.unwrap_or(u64::MAX));
    let (mut line, mut frame, mut written) = (String::new(), Vec::new(), Ok(()));
    while history.number() < end {
        let goes_on = history.step(|recorded| {
            if written.is_ok() && (asked.from..end).contains(&recorded.outcome.sequence) {
                line.clear();
                lines_of(&recorded, &mut frame, &mut line);
                written = out.write_all(line.as_bytes());
            }
        });
        bar.set_position(history.progress_bytes().0);
        if !goes_on || written.is_err() {
            break;
        }
    }
    bar.finish_and_clear();
    written
        .and_then(|()| out.flush())
        .map_err(Failure::Output)?;
    let notes = Notes::new(false);
    let wrong = history.wrong();
    wrong
        .iter()
        .for_each(|wrong| notes.hint(&wrong.to_string()));
    Ok(match wrong.is_empty() {
        true => Finding::Fine,
        false => Finding::Negative,
    })
}

fn lines_of(recorded: &Executed<'_>, frame: &mut Vec<u8>, out: &mut String) {
    let outcome = recorded.outcome;
    let sender = match recorded.origin {
        Origin::Engine => "\"origin\":\"exchange\"".to_owned(),
        Origin::Session { key, sequence } => format!(
            "\"origin\":\"{}\",\"holder\":{},\"session\":{},\"sequence\":{sequence}",
            key.role, key.holder, key.number
        ),
    };
    frame.resize(command_bytes(outcome.command), 0);
    let bytes = encode_command(outcome.command, frame).unwrap_or_default();
    let hex: String = frame[..bytes]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut record = Record::of_command(outcome.command, None);
    record.command = Some(outcome.sequence);
    record.result = Some(outcome.result.name());
    let fields = record.json(None);
    let fields = fields.trim_end_matches('}');
    *out += &format!("{fields},{sender},\"frame\":\"{hex}\"}}\n");
    for report in recorded.reports {
        let ReportNumber(number) = report.number;
        *out += &Record::of_report(&report.report(), None).json(Some(("report", number)));
        out.push('\n');
    }
}
