//! `thalweg journal`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

use super::Format;

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
    /// Cut the end off a journal that no program writes: behind a cut everything is lost
    ///
    /// If it is interrupted, repeat it: until then the journal may be said to be damaged there.
    ///
    /// Exit code: 0 fine, also where there was no damage to cut; 2 misuse or failure.
    Cut(Cut),
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
    #[arg(long, value_name = "N", default_value = "0", value_parser = super::values::any)]
    pub(crate) from: u64,

    /// How many records to print at most
    #[arg(long, value_name = "N", default_value = "20", value_parser = super::values::any)]
    #[arg(requires = "records")]
    pub(crate) limit: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
#[group(id = "where_to_cut", required = true, multiple = false, args = ["at", "damaged"])]
pub(crate) struct Cut {
    #[command(flatten)]
    pub(crate) place: Place,

    /// Cut before this record, the first of a block
    #[arg(long, value_name = "N", value_parser = super::values::any)]
    pub(crate) at: Option<u64>,

    /// Cut before the first damage, if there is any
    #[arg(long)]
    pub(crate) damaged: bool,
}
