//! Faults that the crash simulation seeds, to see that it finds them. Outside tests there are none.

/// The faults that this build has on purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    #[cfg(test)]
    pub(crate) seeded: Option<Seeded>,
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "only tests seed faults"))]
pub(crate) enum Seeded {
    /// A commit does not wait for the disk.
    AcknowledgeBeforeSync,
    /// A durable write is taken to sync the writes before it too.
    SyncOnlyTheLastBlock,
    /// Blocks need not continue those before them, and stale ones are not wiped either.
    ForgetPreviousSum,
    /// Blocks of what the file held before count.
    ForgetEpoch,
    /// After a failed sync, the next one is trusted.
    TrustTheNextSync,
    /// Data that is read back after a failed sync is taken to be on disk once a sync succeeds.
    TrustTheCache,
    /// A segment is continued before its last blocks are durable.
    LeaveUnsynced,
    /// A commit does not wait for segments that were continued before they were durable.
    ForgetUnsynced,
    /// A flush does not wait for the header of the segment that it wrote to.
    FlushWithoutHeader,
    /// Whole blocks that overtook one that the crash took stay behind the end.
    LeaveStaleBlocks,
    /// A new segment is used before its name is durable.
    LeaveNameUnsynced,
    /// A leader wakes one of those that wait, and not all.
    NotifyOne,
    /// A leader that gathers is not notified that a record did not fit.
    SkipFullNotification,
    /// A leader that gathers is not notified that the group is large enough.
    SkipEnoughNotification,
    /// Several segments are given up before the first of them is durably gone.
    GiveUpAtOnce,
}

impl Faults {
    #[cfg(test)]
    pub(crate) fn has(self, fault: Seeded) -> bool {
        self.seeded == Some(fault)
    }

    #[cfg(not(test))]
    #[inline(always)]
    pub(crate) const fn has(self, _fault: Seeded) -> bool {
        false
    }
}
