//! Recorded order flow of real markets, put through the exchange as orders and compared with what
//! was recorded beside it.
//!
//! The messages of a market say what happened, not what was asked for; each driver turns them
//! into commands, one account per side. What an order has left must be known before it can be
//! reduced to what was recorded, so the commands are made by an engine that runs along (the
//! [`desk`]). The commands it made are then an ordinary stream, to be run at any rate and
//! placement, and must end in the same state.

pub(crate) mod bitstamp;
pub(crate) mod desk;
mod learning;
pub(crate) mod lobster;
mod score;

use crate::report::facts::Check;
use thalweg_exchange::Command;

/// What a driver makes of a recording.
pub(crate) struct RealFlow {
    /// The commands that the exchange was given, set-up included.
    pub(crate) commands: Vec<Command>,
    /// The line of the message that each was made for; 0: it was made beforehand.
    pub(crate) lines: Vec<u64>,
    /// How far the exchange agreed with the recording.
    pub(crate) check: Check,
    /// Hash of the state that the commands led to.
    pub(crate) state_hash: u64,
    /// How many rows were passed over, and the line of the first of them.
    pub(crate) passed_over: Option<(u64, u64)>,
}

/// Messages as if they stood in a file, one a line.
#[cfg(test)]
fn numbered<T: Copy>(messages: &[T]) -> Vec<(u64, T)> {
    (1..).zip(messages.iter().copied()).collect()
}

#[cfg(test)]
impl RealFlow {
    /// How many agree, and of how many, in the score of that name.
    fn score(&self, name: &str) -> (u64, u64) {
        score::named(&self.check.scores, name)
    }

    /// The count of that name.
    fn count(&self, name: &str) -> u64 {
        let count = self.check.counts.iter().find(|c| c.name == name);
        count.expect("the check has the count").count
    }
}
