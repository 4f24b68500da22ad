//! The seam between the program and whatever runs commands: given all of them and a rate, it
//! says what came of them and how long each part took.

mod direct;
mod measured;
mod tally;

pub(crate) use direct::Direct;

use crate::report::facts::{Latency, Trades};
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use thalweg_exchange::{Command, ResultCode, State};
use thalweg_measure::load::Rate;

/// What came of a run.
pub(crate) struct Outcome {
    /// The exchange after the last command.
    pub(crate) state: State,
    pub(crate) results: BTreeMap<ResultCode, u64>,
    pub(crate) trades: Trades,
    pub(crate) latency: Latency,
    /// Where the stages really ran.
    pub(crate) placement: String,
}

/// Runs commands through an exchange.
pub(crate) trait Runner {
    /// Sends every command at its time, and waits until the last one is through. The progress
    /// counts commands.
    fn run(self: Box<Self>, commands: &[Command], rate: Rate, progress: &ProgressBar) -> Outcome;
}

// A made-up flow keeps up to 20 million of them: `--commands` has its limit from this.
const _: () = assert!(size_of::<Command>() <= 56);

/// The kind of a command, in one word.
pub(crate) fn kind(command: &Command) -> &'static str {
    match command {
        Command::Place(_) => "place",
        Command::Cancel { .. } => "cancel",
        Command::Move { .. } => "move",
        Command::Reduce { .. } => "reduce",
        Command::AddUser { .. } => "add_user",
        Command::Balance { .. } => "balance",
        Command::Suspend { .. } => "suspend",
        Command::Resume { .. } => "resume",
        Command::AddSymbols(_) => "add_symbols",
        Command::AddAccounts(_) => "add_accounts",
        Command::Nop => "nop",
        Command::Reset => "reset",
    }
}
