//! The last transitions.

use std::collections::VecDeque;

use super::declare::{Group, States};

/// The default number of changes that are logged.
pub const LOGGED: usize = 32;

/// One transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<S> {
    /// The number of the transition, from 1 on. Transitions for which the log has no room are
    /// missing.
    pub number: u64,
    /// The state before.
    pub from: S,
    /// The state after.
    pub to: S,
    /// The time of the change, in ns of the cell's clock. It does not decrease.
    pub at_ns: u64,
    /// The cause of the change, or the part of the program that made it.
    pub why: &'static str,
}

/// The part of a cell that is behind its lock.
#[derive(Debug)]
pub(super) struct Book<S> {
    /// For each state, at which version it was entered last; the initial one at 0.
    entered: Box<[u64]>,
    changes: u64,
    last_ns: u64,
    log: VecDeque<Change<S>>,
    log_max: usize,
}

impl<S: States> Book<S> {
    pub(super) fn new(log_max: usize) -> Self {
        Self {
            entered: S::TABLE.iter().map(|_| 0).collect(),
            changes: 0,
            last_ns: 0,
            log: VecDeque::with_capacity(log_max),
            log_max,
        }
    }

    pub(super) fn enter(&mut self, version: u64, from: S, to: S, at_ns: u64, why: &'static str) {
        self.entered[usize::from(to.number())] = version;
        self.changes += 1;
        // The clock was read before the lock was taken, and may have been overtaken.
        self.last_ns = self.last_ns.max(at_ns);
        if self.log.len() == self.log_max {
            self.log.pop_front();
        }
        if self.log_max > 0 {
            self.log.push_back(Change {
                number: self.changes,
                from,
                to,
                at_ns: self.last_ns,
                why,
            });
        }
    }

    /// Returns whether one of these states was entered after a version.
    pub(super) fn has_entered(&self, group: Group<S>, since: u64) -> bool {
        let mut states = group.states();
        states.any(|state| self.entered[usize::from(state.number())] > since)
    }

    pub(super) fn changes(&self) -> Vec<Change<S>> {
        self.log.iter().copied().collect()
    }
}
