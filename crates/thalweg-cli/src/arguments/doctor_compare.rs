//! The command line of `doctor compare`.

use super::{Format, values};
use clap::Args;

const COMPARE_EXAMPLES: &str = "\
Exit code: 0 fine, whether or not a difference is shown; 1 if others took more of one command than
of the other; 2 misuse or failure, also of a run; 130 after Ctrl-C, 143 after SIGTERM.

Examples:
  thalweg doctor compare --a './old input.txt' --b './new input.txt'
  thalweg doctor compare -n 50 --warmup 3 --a 'sort big' --b 'sort --parallel=1 big'
  thalweg doctor compare --format json --a 'zcat a.gz | wc -l' --b 'gunzip < a.gz | wc -l'
      Pipes, redirections and variables: these are run by sh -c";

/// The options of `doctor compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct Compare {
    /// The command that the other is compared with, as one string: split into words as a shell
    /// does, and run without a shell unless it needs one
    #[arg(long, value_name = "COMMAND")]
    pub(crate) a: String,

    /// The other command
    #[arg(long, value_name = "COMMAND")]
    pub(crate) b: String,

    /// Measured runs of each, from 6 to 1000: fewer can show nothing
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u64).range(6..=1000))]
    pub(crate) runs: u64,

    /// Runs of each before, which are not measured, up to 1000
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1000))]
    pub(crate) warmup: u64,

    /// Seed of the order of the runs
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = values::any)]
    pub(crate) seed: u64,

    /// Count runs whose exit code is not 0
    #[arg(long)]
    pub(crate) ignore_failure: bool,

    /// Show what the commands write, on standard error; else it is dropped
    #[arg(long)]
    pub(crate) show_output: bool,

    /// Format of the result on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
