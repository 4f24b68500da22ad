//! How a thread waits, as the user chooses it: see the table of [`wait`](super).
//!
//! A pipeline has all its threads wait in one way, so there it may be one that never sleeps. An
//! endpoint of a channel waits for a thread or task that it knows nothing of, so it always sleeps
//! in the end.

/// The way in which a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Burn the core. The shortest reaction (a cache-line hand-off, 0.1 to 0.2 µs), for a thread
    /// that has a core of its own; many times slower than the others where it has not.
    Spin,
    /// Give the turn away, again and again. Burns what is left of the core and lets others on it
    /// run.
    Yield,
    /// Sleep at once. Costs nothing while idle; a wake-up takes some 5 µs across cores, of which
    /// the waking thread pays 2.
    Park,
    /// Spin or yield for about as long as a wake-up takes, then sleep.
    #[default]
    Adaptive,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Spin, Self::Yield, Self::Park, Self::Adaptive];

    /// Returns whether a waiting thread may sleep, so that another one must wake it.
    pub fn may_sleep(self) -> bool {
        match self {
            Self::Spin | Self::Yield => false,
            Self::Park | Self::Adaptive => true,
        }
    }
}

/// How an endpoint of a channel or bus, or a task's thread, waits: what it should save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Mode {
    /// The shortest reaction: spin for up to 5 ms before sleeping. A busy stream never sleeps, and
    /// reacts within 0.1 to 0.5 µs; an idle one costs nothing after those 5 ms. On one core, or
    /// where both threads are pinned to the same, it waits as [`Balanced`](Self::Balanced) does.
    Latency,
    /// Spin only where that is about as cheap as sleeping, and never for longer than two wake-ups
    /// take (some 10 µs).
    #[default]
    Balanced,
    /// Never spin: the least processor time, a wake-up (some 5 µs) for every wait.
    Power,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Latency, Self::Balanced, Self::Power];

    /// Returns whether a wait may spin or yield before it sleeps.
    pub(super) const fn may_spin(self) -> bool {
        match self {
            Self::Latency | Self::Balanced => true,
            Self::Power => false,
        }
    }
}
