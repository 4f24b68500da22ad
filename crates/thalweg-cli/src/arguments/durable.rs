//! `thalweg exchange key`, `recover`, `verify` and `export`, and the journal of `run`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use thalweg_exchange::durable::SyncMode;

use super::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum Durable {
    /// The keys with which programs connect to a served exchange
    #[command(subcommand)]
    Key(super::serve::Key),
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
    /// From the oldest snapshot that is kept on. A line for each command: its number, who sent it,
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

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) place: Place,

    /// Format of standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) place: Place,

    /// The first command to export, by its number; those before are executed all the same
    #[arg(long, value_name = "N", default_value = "0", value_parser = super::values::any)]
    pub(crate) from: u64,

    /// How many commands to export at most [default: all]
    #[arg(long, value_name = "N", value_parser = super::values::any)]
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
