//! When commands were where: looks at the clock inside the execute stage.
//!
//! A command that is stamped is executed part by part, by
//! [`apply_in_parts`], with a look at the clock after each part. Where
//! several in a row are stamped, each begins where the one before has ended, and the first of a
//! chunk where the stage began with it: so together they have all the time that the stage took.

use thalweg_measure::clock::Clock;

use super::ServiceOptions;
use crate::command::Command;
use crate::engine::state::{State, apply_in_parts};
use crate::event::Events;
use crate::result_code::ResultCode;

/// When a command was where, in ticks of [`Clock::global`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// When its execution began.
    pub begun: u64,
    /// When its risk check was done.
    pub checked: u64,
    /// When its matching was done.
    pub matched: u64,
    /// When its settlement was done, and with it its execution.
    pub settled: u64,
    /// When it was durable, as far as it has to be; 0 without a journal.
    pub journaled: u64,
}

/// Decides which commands are stamped, and stamps them.
#[derive(Debug)]
pub(crate) struct Stamping {
    clock: Clock,
    /// One command in this number is stamped.
    every: u64,
    /// Commands up to the next one that is stamped, itself included.
    left: u64,
    /// When the command before was done, if it was stamped, or when the chunk began; else 0.
    last: u64,
}

impl Stamping {
    pub(crate) fn new(options: &ServiceOptions) -> Self {
        Self {
            clock: Clock::global(),
            every: if options.is_timed {
                1
            } else {
                options.sample_every
            },
            left: 1,
            last: 0,
        }
    }

    /// Returns the number of commands of which one is stamped.
    pub(crate) const fn every(&self) -> u64 {
        self.every
    }

    /// The stage begins with a chunk.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.last = if self.every == 1 {
            self.clock.ticks()
        } else {
            0
        };
    }

    /// Returns whether the next command is stamped.
    #[inline(always)]
    pub(crate) const fn is_due(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            self.last = 0;
            return false;
        }
        self.left = self.every;
        true
    }

    /// Returns how many commands there are up to the next one that is stamped, which is the last.
    pub(crate) const fn until_due(&self) -> u64 {
        self.left
    }

    /// Passes as many commands, or less. Returns whether the last of them is stamped.
    pub(crate) const fn pass(&mut self, count: u64) -> bool {
        self.left -= count;
        if self.left > 0 {
            return false;
        }
        self.left = self.every;
        true
    }

    /// Executes a command that is stamped.
    #[inline(never)]
    pub(crate) fn apply(
        &mut self,
        state: &mut State,
        command: &Command,
        events: &mut Events,
    ) -> (ResultCode, Stamps) {
        let begun = match self.last {
            0 => self.clock.ticks(),
            last => last,
        };
        let (mut ends, mut at) = ([0; 3], 0);
        let result = apply_in_parts(state, command, events, || {
            ends[at] = self.clock.ticks();
            at += 1;
        });
        let [checked, matched, settled] = ends;
        self.last = settled;
        let stamps = Stamps {
            begun,
            checked,
            matched,
            settled,
            journaled: 0,
        };
        (result, stamps)
    }
}
