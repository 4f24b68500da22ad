//! An exchange whose settlements come late, as in a pipeline.

use proptest::prelude::*;
use thalweg_exchange::matching::Matching;
use thalweg_exchange::risk::Risk;
use thalweg_exchange::{Command, Events, ResultCode, Rules, State, apply};

use crate::properties::text;

/// An engine that settles late: checks early where the rules of `Risk` allow it.
struct Late {
    risk: Risk,
    matching: Matching,
    unsettled: Vec<(Command, ResultCode, Events)>,
    /// Accepted while something was unsettled.
    early: usize,
}

impl Late {
    fn new(rules: Rules) -> Self {
        let State { risk, matching } = State::new(rules);
        Self {
            risk,
            matching,
            unsettled: Vec::new(),
            early: 0,
        }
    }

    fn settle(&mut self, count: usize) {
        for (command, result, events) in self.unsettled.drain(..count) {
            self.risk.settle(&command, result, &events);
        }
    }

    fn execute(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let lowers = |late: &Self| {
            late.unsettled
                .iter()
                .any(|(command, ..)| late.risk.settlement_may_lower(command))
        };
        let waits = self.risk.is_barrier(command) || lowers(self);
        if waits {
            self.settle(self.unsettled.len());
        }
        let mut checked = self.risk.check(command);
        if checked.is_refusal() && !self.unsettled.is_empty() {
            self.settle(self.unsettled.len());
            checked = self.risk.check(command);
        } else if !checked.is_refusal() && !self.unsettled.is_empty() {
            self.early += 1;
        }
        let result = self.matching.execute(command, checked, events);
        self.unsettled
            .push((command.clone(), result, events.clone()));
        result
    }
}

/// Both kinds of exchange do the same; gives how many commands were accepted early. `pace`: how
/// many are settled before each command.
pub(crate) fn late_agrees(
    rules: Rules,
    commands: &[Command],
    pace: &[u8],
) -> Result<usize, TestCaseError> {
    let mut state = State::new(rules);
    let mut late = Late::new(rules);
    let mut events = Events::new();
    let mut late_events = Events::new();
    for (command, pace) in commands.iter().zip(pace.iter().cycle()) {
        let result = apply(&mut state, command, &mut events);
        late.settle(late.unsettled.len().min(usize::from(*pace)));
        let late_result = late.execute(command, &mut late_events);
        prop_assert_eq!(
            (late_result, &late_events),
            (result, &events),
            "{:?}",
            command
        );
    }
    late.settle(late.unsettled.len());
    let Late {
        risk,
        matching,
        early,
        ..
    } = late;
    prop_assert_eq!(text(&State { risk, matching }), text(&state));
    Ok(early)
}
