//! The one writer of a log: appends a batch until it is known to be there.
//!
//! 1. One batch is under way at a time, and its bytes never change: whatever is tried again is
//!    equal to what was tried before.
//! 2. A batch is acknowledged when the log says so, or when it is read at its index. Where the
//!    outcome of an append is unknown, or it was refused, the index is read before anything else.
//! 3. An append that was refused, whose batch is not at its index, means that another replica has
//!    claimed the log: nothing is appended, or acknowledged, any more.
//!
//! A batch that arrives late, after it was tried again, finds its index taken by itself, or the
//! batch before it forgotten. One that arrives after another claim is refused by the log.

use std::sync::Arc;

use super::log::{Claim, CommandLog, WriteOutcome};

/// The next action of the sequencer.
#[derive(Debug)]
enum Next {
    Nothing,
    Append,
    /// Reads the index, since the outcome is not known, or the append was refused.
    Check {
        was_refused: bool,
    },
    Stopped,
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is no batch under way.
    Idle,
    /// The batch is in the log.
    Acked,
    /// It is not known yet; the text says why.
    Waiting(String),
    /// Another replica has claimed the log. Nothing comes after this.
    Fenced,
}

/// Appends a batch until it is known to be in the log, or another replica has claimed that.
#[derive(Debug)]
pub struct Sequencer {
    claim: Claim,
    /// The index of the newest batch that is in the log.
    newest: Option<u64>,
    index: u64,
    batch: Arc<Vec<u8>>,
    next: Next,
}

impl Sequencer {
    /// Returns the writer under a claim that was granted, behind the batch with this index.
    #[must_use]
    pub fn new(claim: Claim, newest: Option<u64>) -> Self {
        Self {
            claim,
            newest,
            index: 0,
            batch: Arc::default(),
            next: Next::Nothing,
        }
    }

    /// Returns the claim under which it writes.
    #[must_use]
    pub const fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Returns the index of the newest batch that is known to be in the log.
    #[must_use]
    pub const fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Returns the index and the length of the batch that was begun last.
    #[must_use]
    pub fn last(&self) -> (u64, usize) {
        (self.index, self.batch.len())
    }

    /// Begins with a batch.
    ///
    /// # Panics
    /// Another one is under way.
    pub fn begin(&mut self, index: u64, batch: Arc<Vec<u8>>) {
        match self.next {
            Next::Nothing => self.next = Next::Append,
            Next::Stopped => return,
            _ => panic!("a batch is under way"),
        }
        (self.index, self.batch) = (index, batch);
    }

    /// Makes at most one call to the log.
    pub fn step(&mut self, log: &mut dyn CommandLog) -> Step {
        match self.next {
            Next::Nothing => Step::Idle,
            Next::Stopped => Step::Fenced,
            Next::Append => match log.append(&self.claim, self.newest, self.index, &self.batch) {
                WriteOutcome::Acked => self.acked(),
                WriteOutcome::Fenced => self.check(true, "the append was refused".to_owned()),
                WriteOutcome::Unknown(why) => self.check(false, why),
            },
            Next::Check { was_refused } => match log.find(self.index) {
                Err(error) => Step::Waiting(error.to_string()),
                Ok(Some(found)) if found.index == self.index => match found.bytes == *self.batch {
                    true => self.acked(),
                    false => self.stop(),
                },
                Ok(_) if was_refused => self.stop(),
                Ok(_) => {
                    self.next = Next::Append;
                    Step::Waiting("the batch did not arrive".to_owned())
                }
            },
        }
    }

    fn acked(&mut self) -> Step {
        self.next = Next::Nothing;
        self.newest = Some(self.index);
        Step::Acked
    }

    fn check(&mut self, was_refused: bool, why: String) -> Step {
        self.next = Next::Check { was_refused };
        Step::Waiting(why)
    }

    fn stop(&mut self) -> Step {
        self.next = Next::Stopped;
        Step::Fenced
    }
}
