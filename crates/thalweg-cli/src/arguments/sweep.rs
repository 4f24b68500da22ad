//! The command line of `exchange sweep`.

use super::{Format, Intended, Place, Removed};
use clap::Args;
use std::str::FromStr;
use thalweg_measure::load::{Rate, RateError};

const SWEEP_EXAMPLES: &str = "\
Examples:
  thalweg exchange sweep --rate 125k,1M,max
      The made-up flow, inline, with one thread more, and automatic
  thalweg exchange sweep orders.csv --placement inline,threads:2,threads:4 --format json";

/// The rate at which commands are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    At(Rate),
    /// Twice the rate that the placement reaches.
    TwiceMax,
}

impl FromStr for Pace {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Pace, RateError> {
        match text {
            "2xmax" => Ok(Pace::TwiceMax),
            _ => text.parse().map(Pace::At),
        }
    }
}

/// The options of `exchange sweep`.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) input: Intended,

    /// Rates, with commas between them: commands a second, like 125k or 1.5M; max; or 2xmax, which
    /// is twice what the placement reaches
    #[arg(long, default_value = "max", value_delimiter = ',')]
    pub(crate) rate: Vec<Pace>,

    /// Placements, with commas between them: inline, threads:1, threads:2, or auto
    #[arg(long, default_value = "inline,threads:1,auto")]
    #[arg(value_parser = super::values::place, value_delimiter = ',')]
    pub(crate) placement: Vec<Place>,

    #[command(flatten)]
    pub(crate) removed: Removed,

    /// Format of the table on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress and no hints on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
