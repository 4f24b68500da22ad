//! The money, shared by the risk and the settle stage under a lock that each takes once a chunk.

use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg::pipeline::Flow;

use crate::command::Command;
use crate::event::Events;
use crate::result_code::ResultCode;
use crate::risk::Risk;

/// Risk state, and how far it is settled.
#[derive(Debug)]
pub(super) struct Ledger {
    risk: Risk,
    /// Commands below this number are settled.
    settled: u64,
    /// Unsettled commands below this number may lower a balance.
    lowering_until: u64,
    /// The last command that had to wait, plus one.
    waited: u64,
    waits: u64,
}

pub(super) fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    // A stage that panics stops the pipeline, so nobody builds on what it left.
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    pub(super) const fn new(risk: Risk) -> Self {
        Self {
            risk,
            settled: 0,
            lowering_until: 0,
            waited: 0,
            waits: 0,
        }
    }

    pub(super) const fn waits(&self) -> u64 {
        self.waits
    }

    pub(super) fn into_risk(self) -> Risk {
        self.risk
    }

    /// The risk stage: checks command `sequence`, if its time has come.
    pub(super) fn check(
        &mut self,
        command: &Command,
        sequence: u64,
        checked: &mut ResultCode,
    ) -> Flow {
        let is_settled = self.settled == sequence;
        let must_wait = self.lowering_until > self.settled || self.risk.is_barrier(command);
        if !is_settled && must_wait {
            return self.wait(sequence);
        }
        let code = self.risk.check(command);
        let is_accepted = matches!(
            code,
            ResultCode::ValidForMatchingEngine | ResultCode::Success
        );
        if !is_settled && !is_accepted {
            return self.wait(sequence);
        }
        if is_accepted && self.risk.settlement_may_lower(command) {
            self.lowering_until = sequence + 1;
        }
        *checked = code;
        Flow::Next
    }

    /// The seeded fault of the simulation: a check that does not wait.
    #[cfg(test)]
    pub(super) fn check_regardless(&mut self, command: &Command) -> ResultCode {
        self.risk.check(command)
    }

    fn wait(&mut self, sequence: u64) -> Flow {
        if self.waited != sequence + 1 {
            self.waited = sequence + 1;
            self.waits += 1;
        }
        Flow::Retry
    }

    /// The settle stage.
    pub(super) fn settle(
        &mut self,
        command: &Command,
        result: ResultCode,
        events: &Events,
        sequence: u64,
    ) {
        self.risk.settle(command, result, events);
        self.settled = sequence + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CurrencyId, UserId};
    use crate::rules::Rules;

    fn deposit(uid: i64) -> Command {
        Command::Balance {
            uid: UserId(uid),
            currency: CurrencyId(1),
            amount: 5,
            transaction_id: 1,
            kind: crate::command::AdjustmentKind::Adjustment,
        }
    }

    #[test]
    fn a_barrier_waits_for_everything_before_it_and_is_counted_once() {
        let mut ledger = Ledger::new(Risk::new(Rules::default()));
        let mut code = ResultCode::New;
        let add = Command::AddUser { uid: UserId(1) };
        assert_eq!(ledger.check(&add, 0, &mut code), Flow::Next);
        for _ in 0..3 {
            assert_eq!(ledger.check(&deposit(1), 1, &mut code), Flow::Retry);
        }
        ledger.settle(&add, ResultCode::Success, &Events::new(), 0);
        assert_eq!(ledger.check(&deposit(1), 1, &mut code), Flow::Next);
        assert_eq!(code, ResultCode::Success);
        assert_eq!(ledger.waits(), 1);
    }
}
