//! How a thread waits, as the user chooses it: see the table of [`wait`](super).
//!
//! A pipeline has all its threads wait in one way, so there it may be one that never sleeps. An
//! endpoint of a channel waits for a thread or task that it knows nothing of, so it always sleeps
//! in the end.

/// The way in which the threads of a pipeline wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// The thread spins for the whole wait, even on one core and where threads outnumber the cores.
    /// It has the shortest reaction (a cache line from core to core, 0.1 to 0.2 µs) if the thread
    /// has a core of its own, and is many times slower than the other strategies if it has not.
    Spin,
    /// The thread yields its core, repeatedly. It uses all CPU time that other threads leave.
    Yield,
    /// The thread sleeps at once. It costs nothing while idle; a wake-up takes some 5 µs across
    /// cores, of which the waking thread pays 2.
    Park,
    /// The thread spins for about as long as a wake-up takes (some 5 µs, measured by its
    /// [`Pace`](super::Pace)), then sleeps. Where threads outnumber the cores, it yields for 0.2 ms
    /// instead of spinning, then sleeps; on one core it sleeps at once, or after one yield where
    /// that has paid. A thread that waits for a free slot of the ring spins for 50 µs where a core
    /// is free.
    #[default]
    Adaptive,
}

impl WaitStrategy {
    /// All of the values.
    pub const ALL: &[Self] = &[Self::Spin, Self::Yield, Self::Park, Self::Adaptive];

    /// Returns whether a waiting thread may sleep, so that another thread must wake it.
    pub fn may_sleep(self) -> bool {
        match self {
            Self::Spin | Self::Yield => false,
            Self::Park | Self::Adaptive => true,
        }
    }
}

/// The way in which an endpoint of a channel or bus, or a task's thread, waits: for short latency
/// or for little CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WaitMode {
    /// It spins for up to 5 ms before it sleeps: the shortest reaction. The ends of a busy channel
    /// never sleep, and react within 0.1 to 0.5 µs; those of an idle one cost nothing after those 5
    /// ms. On one core, or where both threads are pinned to the same, it waits as
    /// [`Balanced`](Self::Balanced) does.
    Latency,
    /// It spins only where that is about as cheap as sleeping, and never for longer than two
    /// wake-ups take (some 10 µs).
    #[default]
    Balanced,
    /// A wait never spins: the least CPU time, and a wake-up (some 5 µs) for every wait. A send or
    /// receive that need not wait still pauses briefly (0.3 µs, at most 5) where it would disturb
    /// another thread on the same slots.
    LowPower,
}

impl WaitMode {
    /// All of the values.
    pub const ALL: &[Self] = &[Self::Latency, Self::Balanced, Self::LowPower];

    /// Returns whether a wait may spin or yield before it sleeps.
    pub(super) const fn may_spin(self) -> bool {
        match self {
            Self::Latency | Self::Balanced => true,
            Self::LowPower => false,
        }
    }
}
