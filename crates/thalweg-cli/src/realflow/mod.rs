//! Recorded order flow of real markets, put through the exchange as orders and compared with the
//! books and trades that were recorded beside it.
//!
//! The messages of a market say what happened, not what was asked for, so each driver turns them
//! into commands, with one account per side. The remainder of an order must be known before the
//! order can be reduced to the recorded amount, so an engine runs along while the commands are made
//! (the [`replay`]). The resulting commands are then an ordinary stream, which can be run at any
//! rate and placement, and which must end in the same state.

pub(crate) mod bitstamp;
pub(crate) mod lobster;
pub(crate) mod replay;
mod score;

use crate::report::facts::Check;
use thalweg_exchange::{Command, OrderId, UserId};

/// An order has this much left in the recording, once a number of its commands are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remainder {
    pub(crate) after_commands: usize,
    pub(crate) time_ns: u64,
    pub(crate) uid: UserId,
    pub(crate) order_id: OrderId,
    pub(crate) left: i64,
}

/// The parts of a recording, besides its commands, that a market beside users needs.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// When each command came, in nanoseconds.
    pub(crate) times_ns: Vec<u64>,
    pub(crate) remainders: Vec<Remainder>,
}

/// The result of a driver for a recording.
pub(crate) struct RealFlow {
    /// The commands that the exchange was given, set-up included.
    pub(crate) commands: Vec<Command>,
    /// The line of the message that each command was made for; 0 for a command made beforehand.
    pub(crate) lines: Vec<u64>,
    pub(crate) recorded: Recorded,
    /// The extent to which the exchange agreed with the recording.
    pub(crate) check: Check,
    /// The hash of the state that the commands led to.
    pub(crate) state_hash: u64,
    /// The number of rows that were skipped, and the line of the first of them.
    pub(crate) passed_over: Option<(u64, u64)>,
}

/// Numbers messages as if they stood in a file, one on each line.
#[cfg(test)]
fn numbered<T: Copy>(messages: &[T]) -> Vec<(u64, T)> {
    (1..).zip(messages.iter().copied()).collect()
}

#[cfg(test)]
impl RealFlow {
    /// Returns the number of agreements and the number of comparisons in the score of that name.
    fn score(&self, name: &str) -> (u64, u64) {
        score::named(&self.check.scores, name)
    }

    /// Returns the count of that name.
    fn count(&self, name: &str) -> u64 {
        let count = self.check.counts.iter().find(|c| c.name == name);
        count.expect("the check has the count").count
    }
}
