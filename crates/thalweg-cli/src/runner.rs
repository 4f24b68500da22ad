//! Runs commands at a rate, and says what came of them and how long each part took.

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

/// What came of a run.
pub(crate) struct Outcome {
    /// The exchange after the last command.
    pub(crate) state: State,
    pub(crate) results: BTreeMap<ResultCode, u64>,
    pub(crate) trades: Trades,
    pub(crate) latency: Latency,
    /// How many commands were sent: all of them, unless the run was stopped.
    pub(crate) sent: u64,
    /// Nanoseconds: end to end of every command, then waits and services of the stages.
    pub(crate) histograms: Vec<(String, Histogram)>,
    /// The placement that was asked for.
    pub(crate) placement: String,
    /// What was journaled, where it was.
    pub(crate) journal: Option<Journal>,
    pub(crate) disturbance: Disturbance,
}

/// The exchange stopped before the last command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunError(pub(crate) String);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the exchange stopped: {}", self.0)
    }
}

impl std::error::Error for RunError {}

// A made-up flow keeps up to 20 million of them: `--commands` has its limit from this.
const _: () = assert!(size_of::<Command>() <= 56);

/// The kind of a command, in one word.
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
