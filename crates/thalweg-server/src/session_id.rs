//! Ids of sessions.

/// A slot in the table of sessions, and its generation: how many sessions have had it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionId {
    slot: u32,
    generation: u32,
}

impl SessionId {
    pub(crate) const fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    pub(crate) const fn slot(self) -> usize {
        self.slot as usize
    }

    /// The tag of its commands.
    pub(crate) const fn tag(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    pub(crate) const fn of_tag(tag: u64) -> Self {
        Self::new(tag as u32, (tag >> 32) as u32)
    }
}
