//! How often commands had to wait, and what for.

use std::ops::AddAssign;

use crate::risk::Concern;

/// Commands that waited for the settlement of everything before them, by reason. A command that
/// waited counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// It changes users, balances, symbols or everything.
    pub administration: u64,
    /// It is about futures, or what it needs to know hangs on unsettled futures.
    pub futures: u64,
    /// Something unsettled before it may lower a balance by a quirk, or it may itself, and the
    /// shards must be seen together.
    pub quirk: u64,
    /// It was refused, and might be accepted after the settlements.
    pub refusal: u64,
}

impl Waits {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.administration + self.futures + self.quirk + self.refusal
    }
}

impl AddAssign for Waits {
    fn add_assign(&mut self, other: Self) {
        self.administration += other.administration;
        self.futures += other.futures;
        self.quirk += other.quirk;
        self.refusal += other.refusal;
    }
}

/// Why a command waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Administration,
    Futures,
    Quirk,
    Refusal,
}

impl From<Concern> for Reason {
    fn from(concern: Concern) -> Self {
        match concern {
            Concern::Administration => Self::Administration,
            Concern::Futures => Self::Futures,
            Concern::Quirk => Self::Quirk,
        }
    }
}

/// Counts each command once.
#[derive(Debug, Default)]
pub(super) struct Counter {
    waits: Waits,
    /// The last command that had to wait, plus one.
    waited: u64,
}

impl Counter {
    #[cold]
    pub(super) fn note(&mut self, sequence: u64, reason: Reason) {
        if self.waited == sequence + 1 {
            return;
        }
        self.waited = sequence + 1;
        let count = match reason {
            Reason::Administration => &mut self.waits.administration,
            Reason::Futures => &mut self.waits.futures,
            Reason::Quirk => &mut self.waits.quirk,
            Reason::Refusal => &mut self.waits.refusal,
        };
        *count += 1;
    }

    pub(super) const fn waits(&self) -> Waits {
        self.waits
    }
}
