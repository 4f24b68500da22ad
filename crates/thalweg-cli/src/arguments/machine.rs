//! The command line of `machine`.

use super::Format;
use clap::Args;
use std::path::PathBuf;

const MACHINE_EXAMPLES: &str = "\
Examples:
  thalweg machine
      What waiting costs here, and what that means for spinning and placement
  thalweg machine --dir /var/lib/journal
      The same, with the disk under that directory
  thalweg machine --output costs.json
  thalweg exchange run --costs costs.json
      The figures as JSON, and a run whose waits begin with them";

/// The options of `machine`.
#[derive(Debug, Args)]
#[command(after_help = MACHINE_EXAMPLES)]
pub(crate) struct Machine {
    /// Format of the figures on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Also write the figures as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Where the disk is measured, with a file that is removed [default: that of temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Fewer repetitions: less than 1 s, not 3, and wider intervals
    #[arg(long)]
    pub(crate) quick: bool,
}
