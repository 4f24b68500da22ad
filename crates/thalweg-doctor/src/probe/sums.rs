//! What a timeline adds up.

use crate::recording::State;

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
    /// The squares of the spans in which all threads were blocked, in ns, and the one that lasts.
    blocked_square: f64,
    pub(crate) blocked_since_ns: u64,
    pub(crate) threads_max: usize,
    pub(crate) processes: u64,
    pub(crate) switches_blocked: u64,
    pub(crate) switches_preempted: u64,
    pub(crate) others_ns: u64,
    pub(crate) lost: u64,
    pub(crate) throttled: u64,
}

impl Totals {
    /// Not all threads are blocked any more.
    pub(crate) fn end_blocked(&mut self) {
        self.blocked_square += (self.blocked_since_ns as f64).powi(2);
        self.blocked_since_ns = 0;
    }

    /// How long all threads were blocked at a time, as an average over that time, in ns.
    pub(crate) fn blocked_mean_ns(&self) -> Option<f64> {
        let squares = self.blocked_square + (self.blocked_since_ns as f64).powi(2);
        (self.all.blocked_ns > 0).then(|| squares / self.all.blocked_ns as f64)
    }
}

/// A thread of the program.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) pid: i32,
    pub(crate) name: Box<str>,
    pub(crate) state: State,
    pub(crate) since_ns: u64,
    pub(crate) core: usize,
    pub(crate) gone_ns: Option<u64>,
    pub(crate) ran_ns: u64,
    pub(crate) waited_ns: u64,
    pub(crate) blocked_ns: u64,
    /// When it was first seen to sleep, in a span that the records have not ended yet.
    pub(crate) slept_ns: Option<u64>,
    /// How often it blocked.
    pub(crate) blocks: u64,
}

impl Thread {
    pub(super) fn add(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.since_ns);
        match self.state {
            State::Running => self.ran_ns += span_ns,
            State::Runnable => self.waited_ns += span_ns,
            State::Blocked => self.blocked_ns += span_ns,
        }
    }
}
