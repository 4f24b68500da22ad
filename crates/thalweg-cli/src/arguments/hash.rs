//! The command line of `hash`.

use super::{Format, values};
use clap::Args;
use std::path::PathBuf;
use thalweg_hash::Stride;

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
    #[arg(long, value_name = "N")]
    #[arg(default_value = "0", value_parser = values::any)]
    pub(crate) seed: u64,

    /// Hash only the first TAKE bytes of each TAKE + SKIP
    #[arg(long, value_name = "TAKE:SKIP")]
    pub(crate) stride: Option<Stride>,

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
    pub(crate) warn: bool,

    /// Skip files of the list that do not exist
    #[arg(long, requires = "check", conflicts_with = "files")]
    pub(crate) ignore_missing: bool,
}
