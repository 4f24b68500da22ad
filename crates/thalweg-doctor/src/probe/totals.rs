//! Sums of what all threads did, over the time that is observed.

use crate::probe::procfs::Scheduled;

/// Sums over time. A thread-nanosecond is one thread for a nanosecond.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    /// The time in which at least one thread ran, or would have run without the doctor; in which
    /// none ran and one waited for a core; in which all were blocked.
    pub(crate) running_ns: u64,
    pub(crate) waiting_ns: u64,
    pub(crate) blocked_ns: u64,
    /// Sums in thread-nanoseconds.
    pub(crate) ran_ns: u64,
    pub(crate) waited_peers_ns: u64,
    pub(crate) waited_others_ns: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, more: Sums) {
        self.running_ns += more.running_ns;
        self.waiting_ns += more.waiting_ns;
        self.blocked_ns += more.blocked_ns;
        self.ran_ns += more.ran_ns;
        self.waited_peers_ns += more.waited_peers_ns;
        self.waited_others_ns += more.waited_others_ns;
    }

    /// Adds the increase since `before`, times `factor`.
    pub(crate) fn repeat(&mut self, before: &Sums, factor: f64) {
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

pub(crate) fn repeat(now: &mut u64, before: u64, factor: f64) {
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
}

impl Totals {
    /// Ends a span in which all threads were blocked.
    pub(crate) fn end_blocked(&mut self) {
        self.blocked_square += (self.blocked_since_ns as f64).powi(2);
        self.blocked_since_ns = 0;
    }

    /// Adds the increase of what switches show since `before`, times `factor`; switches are `often`
    /// times as frequent. Waits after wake-ups represent all of the time unchanged.
    pub(crate) fn repeat(&mut self, before: &Totals, factor: f64, often: f64) {
        self.all.repeat(&before.all, factor);
        self.blocked_square += (self.blocked_square - before.blocked_square) * factor;
        let (blocked, preempted) = (before.switches_blocked, before.switches_preempted);
        repeat(&mut self.switches_blocked, blocked, factor * often);
        repeat(&mut self.switches_preempted, preempted, factor * often);
        repeat(&mut self.others_ns, before.others_ns, factor);
    }

    /// Adds a gap in which threads got cores as the kernel counted it, and were blocked otherwise.
    pub(crate) fn add_gap(&mut self, gap_ns: u64, known: Scheduled) {
        let running_ns = known.ran_ns.min(gap_ns);
        let waiting_ns = known.waited_ns.min(gap_ns - running_ns);
        let spent = Sums {
            running_ns,
            waiting_ns,
            blocked_ns: gap_ns - running_ns - waiting_ns,
            ran_ns: known.ran_ns,
            waited_others_ns: known.waited_ns,
            ..Sums::default()
        };
        self.all.add(spent);
        self.known.add(spent);
        self.switches_blocked += known.runs;
        let pieces = known.runs + 1;
        for _ in 1..pieces {
            self.blocked_since_ns += spent.blocked_ns / pieces;
            self.end_blocked();
        }
        self.blocked_since_ns += spent.blocked_ns / pieces;
    }

    /// Returns the mean length of the spans in which all threads were blocked, weighted by that
    /// time, in ns.
    pub(crate) fn blocked_mean_ns(&self) -> Option<f64> {
        let squares = self.blocked_square + (self.blocked_since_ns as f64).powi(2);
        (self.all.blocked_ns > 0).then(|| squares / self.all.blocked_ns as f64)
    }
}
