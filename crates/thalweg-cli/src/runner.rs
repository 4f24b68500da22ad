//! Runs commands at a rate, and measures their results and the time that each part took.

pub(crate) mod journaled;
mod measured;
pub(crate) mod parts;
mod passage;
mod pipelined;
mod slowest;
mod tally;
mod timeline;

pub(crate) use measured::distribution;
pub(crate) use pipelined::Pipelined;

use crate::report::facts::{Disturbance, Journal, Latency, Trades};
use std::collections::BTreeMap;
use std::fmt;
use thalweg_exchange::{Command, ResultCode, State};
use thalweg_measure::histogram::Histogram;

/// The result of a run.
pub(crate) struct Outcome {
    /// The state of the exchange after the last command.
    pub(crate) state: State,
    pub(crate) results: BTreeMap<ResultCode, u64>,
    pub(crate) trades: Trades,
    pub(crate) latency: Latency,
    /// The number of commands that were sent: all of them, unless the run was stopped.
    pub(crate) sent: u64,
    /// The histograms in nanoseconds: end to end of every command, then waits and service times of
    /// the stages.
    pub(crate) histograms: Vec<(String, Histogram)>,
    /// The placement that was requested.
    pub(crate) placement: String,
    /// The facts of the journal, where there was one.
    pub(crate) journal: Option<Journal>,
    pub(crate) disturbance: Disturbance,
}

/// An error: the exchange stopped before the last command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunError(pub(crate) String);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the exchange stopped: {}", self.0)
    }
}

impl std::error::Error for RunError {}

// A generated flow keeps up to 20 million commands in memory: the limit of `--commands` follows
// from this size.
const _: () = assert!(size_of::<Command>() <= 56);

/// Returns the kind of a command, in one word.
pub(crate) fn kind(command: &Command) -> &'static str {
    match command {
        Command::Place(_) => "place",
        Command::Cancel { .. } => "cancel",
        Command::Move { .. } => "move",
        Command::Reduce { .. } => "reduce",
        Command::Amend(_) => "amend",
        Command::AddUser { .. } => "add_user",
        Command::Balance { .. } => "balance",
        Command::PayFees { .. } => "pay_fees",
        Command::SetLimits { .. } => "set_limits",
        Command::Suspend { .. } => "suspend",
        Command::Resume { .. } => "resume",
        Command::AddSymbols(_) => "add_symbols",
        Command::AddAccounts(_) => "add_accounts",
        Command::PlaceWith(_) => "place_with",
        Command::CancelAll { .. } => "cancel_all",
        Command::Disconnect { .. } => "disconnect",
        Command::Clock { .. } => "clock",
        Command::SetPriceBand { .. } => "set_price_band",
        Command::SetMarketProtection { .. } => "set_market_protection",
        Command::StartAuction { .. } => "start_auction",
        Command::Uncross { .. } => "uncross",
        Command::RunStops { .. } => "run_stops",
        Command::Halt { .. } => "halt",
        Command::Unhalt { .. } => "unhalt",
        Command::RemoveSymbol { .. } => "remove_symbol",
        Command::Nop => "nop",
        Command::Reset => "reset",
    }
}
