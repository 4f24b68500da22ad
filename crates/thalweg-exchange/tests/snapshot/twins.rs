//! Two states that are meant to be one: the original, and one that was written and read again.

use proptest::prelude::*;
use thalweg_exchange::digest::Digest;
use thalweg_exchange::snapshot::{decode_state, state_hash};
use thalweg_exchange::{Command, Events, ResultCode, Rules, State, apply};
use thalweg_hash::xxh64;

use crate::one_state::{encoded as bytes, text};
use crate::snapshot::open_orders::open_orders;
use crate::snapshot::totals::{kept, totals_hold};

/// Returns a state that was written and read again: all that can be seen of it is as before.
pub(crate) fn reopened(state: &State) -> Result<State, TestCaseError> {
    let written = bytes(state);
    prop_assert_eq!(state_hash(state), xxh64(0, &written));
    let again = decode_state(&written);
    let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{}", text(state))))?;
    prop_assert!(bytes(&again) == written, "other bytes");
    prop_assert_eq!(text(&again), text(state));
    totals_hold(&again)?;
    let totals = |state: &State| format!("{:?}", kept(state));
    prop_assert_eq!(totals(&again), totals(state));
    prop_assert_eq!(open_orders(&again), open_orders(state));
    Ok(again)
}

/// The original and its copy, which are given the same commands.
pub(crate) struct Twins {
    pub(crate) state: State,
    copy: State,
    events: [Events; 2],
    digests: [Digest; 2],
}

impl Twins {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            state: State::new(rules),
            copy: State::new(rules),
            events: [Events::new(), Events::new()],
            digests: [Digest::new(); 2],
        }
    }

    /// The copy is read again: from its own bytes, or from those of the original.
    pub(crate) fn reopen(&mut self, own: bool) -> Result<(), TestCaseError> {
        prop_assert!(bytes(&self.state) == bytes(&self.copy), "bytes differ");
        self.copy = reopened(if own { &self.copy } else { &self.state })?;
        Ok(())
    }

    /// Returns the events of the last command.
    pub(crate) const fn events(&self) -> &Events {
        &self.events[0]
    }

    /// Both execute the command.
    pub(crate) fn execute(&mut self, command: &Command) -> Result<ResultCode, TestCaseError> {
        let [events, others] = &mut self.events;
        let result = apply(&mut self.state, command, events);
        let other = apply(&mut self.copy, command, others);
        prop_assert_eq!(result, other, "{:?}", command);
        prop_assert_eq!(&*events, &*others, "{:?}", command);
        self.digests[0].fold(command, result, events);
        self.digests[1].fold(command, other, others);
        Ok(result)
    }

    /// At the end both are the same.
    pub(crate) fn end(mut self) -> Result<State, TestCaseError> {
        self.reopen(true)?;
        prop_assert_eq!(text(&self.state), text(&self.copy));
        prop_assert_eq!(self.digests[0], self.digests[1]);
        Ok(self.state)
    }
}
