//! Faults that the simulation seeds, to see that it finds them. Outside tests there are none.

/// The faults that this build has on purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Faults {
    #[cfg(test)]
    pub(super) seeded: Option<Seeded>,
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "only tests seed faults"))]
pub(super) enum Seeded {
    /// Commands are published before they are durable.
    PublishUnsynced,
    /// Commands are published after the disk has failed, which the committing thread lets pass.
    PublishFailed,
    /// A snapshot has no sessions and no reports.
    ForgetSessions,
    /// The journal is given up to the newest snapshot, not the oldest that is kept.
    RetainTooLittle,
    /// The journal is never given up.
    RetainTooMuch,
    /// Making a snapshot panics.
    PanicInSnapshot,
}

impl Faults {
    #[cfg(test)]
    pub(super) fn has(self, fault: Seeded) -> bool {
        self.seeded == Some(fault)
    }

    #[cfg(not(test))]
    #[inline(always)]
    pub(super) const fn has(self, _fault: Seeded) -> bool {
        false
    }
}
