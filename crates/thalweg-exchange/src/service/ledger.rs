//! The money, shared by the risk and the settle stage under a lock that each takes once a chunk.

use thalweg::pipeline::Flow;

use super::waits::{Counter, Waits};
use crate::command::Command;
use crate::event::{Events, UserHint};
use crate::result_code::ResultCode;
use crate::risk::{Concern, Risk, Unsettled};

/// What a risk check answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked {
    pub(super) code: ResultCode,
    /// Where the command's user is kept, which spares settlement a look-up.
    pub(super) owner: UserHint,
}

impl Checked {
    pub(super) const NOT_YET: Self = Self {
        code: ResultCode::New,
        owner: UserHint::UNKNOWN,
    };
}

/// Risk state, and how far it is settled.
#[derive(Debug)]
pub(super) struct Ledger {
    risk: Risk,
    /// Commands below this number are settled.
    settled: u64,
    /// Unsettled commands below this number may lower a balance.
    lowering_until: u64,
    /// Unsettled commands below this number may be in futures.
    futures_until: u64,
    /// What those may add to the ledger's bound: see [`Unsettled::worst`].
    worst: i128,
    counter: Counter,
}

impl Ledger {
    pub(super) fn new(risk: Risk) -> Self {
        Self {
            risk,
            settled: 0,
            lowering_until: 0,
            futures_until: 0,
            worst: 0,
            counter: Counter::default(),
        }
    }

    pub(super) const fn waits(&self) -> Waits {
        self.counter.waits()
    }

    pub(super) const fn risk(&self) -> &Risk {
        &self.risk
    }

    pub(super) const fn risk_mut(&mut self) -> &mut Risk {
        &mut self.risk
    }

    pub(super) fn into_risk(self) -> Risk {
        self.risk
    }

    /// Whether everything before this command is settled.
    pub(super) const fn is_settled(&self, sequence: u64) -> bool {
        self.settled == sequence
    }

    /// The risk stage: checks command `sequence`, if its time has come.
    pub(super) fn check(
        &mut self,
        command: &Command,
        sequence: u64,
        checked: &mut Checked,
    ) -> Flow {
        let is_settled = self.is_settled(sequence);
        if !is_settled && let Some(concern) = self.must_wait(command) {
            return self.wait(sequence, Some(concern));
        }
        let (code, owner) = self.risk.check_hinted(command);
        if !is_settled && code.is_refusal() {
            return self.wait(sequence, None);
        }
        if !code.is_refusal() {
            self.note(command, sequence);
        }
        *checked = Checked { code, owner };
        Flow::Next
    }

    /// The seeded fault of the simulation: a check that does not wait.
    #[cfg(test)]
    pub(super) fn check_regardless(&mut self, command: &Command) -> ResultCode {
        self.risk.check(command)
    }

    /// A seeded fault: unsettled futures hold nobody up.
    #[cfg(test)]
    pub(super) const fn forget_futures(&mut self) {
        self.futures_until = 0;
    }

    /// A seeded fault: unsettled futures need no room.
    #[cfg(test)]
    pub(super) const fn forget_room(&mut self) {
        self.worst = 0;
    }

    fn must_wait(&self, command: &Command) -> Option<Concern> {
        let unsettled = Unsettled {
            lowers: self.lowering_until > self.settled,
            futures: self.futures_until > self.settled,
            worst: self.worst,
        };
        self.risk.must_wait(command, &unsettled)
    }

    /// Remembers what an accepted command, once it is settled, may do to those behind it.
    #[inline]
    fn note(&mut self, command: &Command, sequence: u64) {
        if self.risk.settlement_may_lower(command) {
            self.note_lowering(command, sequence);
        }
    }

    #[inline(never)]
    fn note_lowering(&mut self, command: &Command, sequence: u64) {
        let Some(worst) = self.risk.in_futures(command) else {
            self.lowering_until = sequence + 1;
            return;
        };
        if self.futures_until <= self.settled {
            self.worst = 0;
        }
        self.futures_until = sequence + 1;
        self.worst += worst;
    }

    fn wait(&mut self, sequence: u64, concern: Option<Concern>) -> Flow {
        self.counter.note(sequence, concern);
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

    /// The settle stage, at a command that was settled before it came here.
    pub(super) const fn pass(&mut self, sequence: u64) {
        self.settled = sequence + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CurrencyId, UserId};
    use crate::rules::Rules;

    fn deposit(uid: i64) -> Command {
        Command::deposit(UserId(uid), CurrencyId(1), 5, 1)
    }

    #[test]
    fn a_barrier_waits_for_everything_before_it_and_is_counted_once() {
        let mut ledger = Ledger::new(Risk::new(Rules::default()));
        let mut code = Checked::NOT_YET;
        let add = Command::AddUser { uid: UserId(1) };
        assert_eq!(ledger.check(&add, 0, &mut code), Flow::Next);
        for _ in 0..3 {
            assert_eq!(ledger.check(&deposit(1), 1, &mut code), Flow::Retry);
        }
        ledger.settle(&add, ResultCode::Success, &Events::new(), 0);
        assert_eq!(ledger.check(&deposit(1), 1, &mut code), Flow::Next);
        assert_eq!(code.code, ResultCode::Success);
        assert_eq!(ledger.waits().administration, 1);
        assert_eq!(ledger.waits().total(), 1);
    }
}
