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

/// Counts each command once.
#[derive(Debug, Default)]
pub(super) struct Counter {
    waits: Waits,
    /// The last command that had to wait, plus one.
    waited: u64,
}

impl Counter {
    /// A command waits for what it is about; for nothing but that it was refused, if `None`.
    #[cold]
    pub(super) fn note(&mut self, sequence: u64, concern: Option<Concern>) {
        if self.waited == sequence + 1 {
            return;
        }
        self.waited = sequence + 1;
        let count = match concern {
            Some(Concern::Administration) => &mut self.waits.administration,
            Some(Concern::Futures) => &mut self.waits.futures,
            Some(Concern::Quirk) => &mut self.waits.quirk,
            None => &mut self.waits.refusal,
        };
        *count += 1;
    }

    pub(super) const fn waits(&self) -> Waits {
        self.waits
    }
}
