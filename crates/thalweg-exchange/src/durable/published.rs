//! The outcomes, answers and ends that an exchange publishes.

use std::slice::Iter;

use super::error::ExchangeError;
use super::in_flight::Slot;
use super::record::Origin;
use super::tables::ReportFrame;
use crate::engine::state::State;
use crate::service::{Answered, Outcome};

/// A command that was executed and is durable.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'e> {
    /// Its outcome; the [`sequence`](Outcome::sequence) is the command's number.
    pub outcome: Outcome<'e>,
    /// The sender: a session or the exchange itself.
    pub origin: Origin,
    /// The execution reports that users get of it, in order, each with its number among those of
    /// its owner.
    pub reports: &'e [ReportFrame],
}

/// Commands in a row that were executed and are durable.
#[derive(Clone, Debug)]
pub struct Outcomes<'p> {
    slots: Iter<'p, Slot>,
    /// The reports of these and maybe of later ones.
    reports: &'p [ReportFrame],
}

impl<'p> Outcomes<'p> {
    /// Returns those of these commands, whose reports are the first of these.
    #[inline]
    pub(super) fn of(slots: &'p [Slot], reports: &'p [ReportFrame]) -> Self {
        let slots = slots.iter();
        Self { slots, reports }
    }
}

impl<'p> Iterator for Outcomes<'p> {
    type Item = Executed<'p>;

    #[inline(always)]
    fn next(&mut self) -> Option<Executed<'p>> {
        let slot = self.slots.next()?;
        let (reports, others) = self.reports.split_at(slot.reports);
        self.reports = others;
        Some(Executed {
            outcome: slot.outcome(),
            origin: slot.origin,
            reports,
        })
    }
}

/// The output of an exchange, in the order of the commands.
#[derive(Debug)]
#[non_exhaustive]
pub enum Published<'p> {
    /// The exchange is open, and has executed nothing since: published once, first.
    Started {
        /// The state that it continues from.
        state: &'p State,
        /// The number of the next command.
        number: u64,
    },
    /// Commands were executed. One with [stamps](Outcome::stamps) comes by itself.
    Outcomes(Outcomes<'p>),
    /// The [note](super::Notes) of the command whose outcome comes next, where a replica that
    /// follows executes it; again where the disk had no room for the command before.
    Noted(&'p [u8]),
    /// The exchange follows a command log: outcomes are of commands that others answer.
    Following,
    /// A claim of the command log, under which all commands from now on are. It is that of another
    /// replica, or of this one once it has executed everything before. Epochs never go back.
    Claimed {
        /// The number of the claim, higher than those of all claims before.
        epoch: u64,
        /// Whether this replica writes the log from now on.
        leads: bool,
    },
    /// A query was answered.
    Answer {
        /// The note of the caller that asked.
        tag: u64,
        /// The answer. Like an outcome, it shows nothing that is not durable.
        answered: Answered,
    },
    /// Nothing more for now: the moment to pass on what was gathered.
    ChunkEnd,
    /// The exchange has stopped; nothing comes after this.
    Failed(&'p ExchangeError),
}
