//! The sums of a timeline.

use crate::recording::State;

/// Sums over time. A thread-nanosecond is one thread for a nanosecond.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    /// The time in which at least one thread ran; in which none ran and one waited for a core; in
    /// which all were blocked.
    pub(crate) running_ns: u64,
    pub(crate) waiting_ns: u64,
    pub(crate) blocked_ns: u64,
    /// Sums in thread-nanoseconds.
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

    /// Adds the increase since `before`, times `factor`.
    fn repeat(&mut self, before: &Sums, factor: f64) {
        for (now, before) in [
            (&mut self.running_ns, before.running_ns),
            (&mut self.waiting_ns, before.waiting_ns),
            (&mut self.blocked_ns, before.blocked_ns),
            (&mut self.ran_ns, before.ran_ns),
            (&mut self.waited_peers_ns, before.waited_peers_ns),
            (&mut self.waited_others_ns, before.waited_others_ns),
        ] {
            repeat(now, before, factor);
        }
    }
}

fn repeat(now: &mut u64, before: u64, factor: f64) {
    *now += (now.saturating_sub(before) as f64 * factor).round() as u64;
}

/// All sums and counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) all: Sums,
    /// The sums over the time in which wake-ups were recorded.
    pub(crate) known: Sums,
    /// The sum of the squares of the spans in which all threads were blocked, in ns, and the
    /// current span.
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
    /// Ends a span in which all threads were blocked.
    pub(crate) fn end_blocked(&mut self) {
        self.blocked_square += (self.blocked_since_ns as f64).powi(2);
        self.blocked_since_ns = 0;
    }

    /// Adds the increase of what switches show since `before`, times `factor`; switches are `often`
    /// times as frequent. Waits after wake-ups represent all of the time unchanged.
    pub(super) fn repeat(&mut self, before: &Totals, factor: f64, often: f64) {
        self.all.repeat(&before.all, factor);
        self.blocked_square += (self.blocked_square - before.blocked_square) * factor;
        let (blocked, preempted) = (before.switches_blocked, before.switches_preempted);
        repeat(&mut self.switches_blocked, blocked, factor * often);
        repeat(&mut self.switches_preempted, preempted, factor * often);
        repeat(&mut self.others_ns, before.others_ns, factor);
    }

    /// Returns the mean length of the spans in which all threads were blocked, weighted by that
    /// time, in ns.
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
    /// The time at which it was first sampled asleep, in a span that the records have not ended
    /// yet.
    pub(crate) slept_ns: Option<u64>,
    /// The number of times that it blocked.
    pub(crate) blocks: u64,
    /// Its times of running, waiting and being blocked, and its number of blocks, when switches
    /// were last recorded again.
    pub(super) before: ([u64; 3], u64),
}

impl Thread {
    fn lived_ns(&self) -> [u64; 3] {
        [self.ran_ns, self.waited_ns, self.blocked_ns]
    }

    /// Marks the time from which on switches are recorded again.
    pub(super) fn mark(&mut self) {
        self.before = (self.lived_ns(), self.blocks);
    }

    /// Divides the time since the last span as the time since the mark was divided. Returns the
    /// time in each state; blocks are `often` times as frequent.
    pub(super) fn repeat(&mut self, now_ns: u64, often: f64) -> [(State, u64); 3] {
        let (before, blocks) = self.before;
        let lived_ns = self.lived_ns();
        let window_ns: [u64; 3] = std::array::from_fn(|at| lived_ns[at] - before[at]);
        let all_ns = window_ns.iter().sum::<u64>();
        let span_ns = now_ns.saturating_sub(self.since_ns);
        let factor = span_ns as f64 / all_ns.max(1) as f64;
        repeat(&mut self.ran_ns, before[0], factor);
        repeat(&mut self.waited_ns, before[1], factor);
        repeat(&mut self.blocks, blocks, factor * often);
        let ran_ns = self.ran_ns - lived_ns[0];
        let waited_ns = self.waited_ns - lived_ns[1];
        let blocked_ns = span_ns.saturating_sub(ran_ns + waited_ns);
        self.blocked_ns += blocked_ns;
        [
            (State::Running, ran_ns),
            (State::Runnable, waited_ns),
            (State::Blocked, blocked_ns),
        ]
    }

    pub(super) fn add(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.since_ns);
        match self.state {
            State::Running => self.ran_ns += span_ns,
            State::Runnable => self.waited_ns += span_ns,
            State::Blocked => self.blocked_ns += span_ns,
        }
    }
}
