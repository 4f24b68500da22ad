//! What a timeline adds up.

/// Sums over time. A thread-nanosecond is one thread for a nanosecond.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    /// At least one thread ran; none did and one waited for a core; all were blocked.
    pub(crate) running_ns: u64,
    pub(crate) waiting_ns: u64,
    pub(crate) blocked_ns: u64,
    /// Thread-nanoseconds.
    pub(crate) ran_ns: u64,
    pub(crate) waited_peers_ns: u64,
    pub(crate) waited_others_ns: u64,
}

impl Sums {
    pub(super) fn add(&mut self, more: Sums) {
        self.running_ns += more.running_ns;
        self.waiting_ns += more.waiting_ns;
        self.blocked_ns += more.blocked_ns;
        self.ran_ns += more.ran_ns;
        self.waited_peers_ns += more.waited_peers_ns;
        self.waited_others_ns += more.waited_others_ns;
    }
}

/// All that is counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) all: Sums,
    /// While wakes were told.
    pub(crate) told: Sums,
    pub(crate) threads_max: usize,
    pub(crate) processes: u64,
    pub(crate) switches_blocked: u64,
    pub(crate) switches_preempted: u64,
    pub(crate) others_ns: u64,
    pub(crate) lost: u64,
    pub(crate) throttled: u64,
}
