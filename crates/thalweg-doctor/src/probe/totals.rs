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
    /// Returns each sum with that of another.
    fn with<'s>(&'s mut self, other: &Sums) -> [(&'s mut u64, u64); 6] {
        [
            (&mut self.running_ns, other.running_ns),
            (&mut self.waiting_ns, other.waiting_ns),
            (&mut self.blocked_ns, other.blocked_ns),
            (&mut self.ran_ns, other.ran_ns),
            (&mut self.waited_peers_ns, other.waited_peers_ns),
            (&mut self.waited_others_ns, other.waited_others_ns),
        ]
    }

    pub(crate) fn add(&mut self, more: Sums) {
        for (sum, more) in self.with(&more) {
            *sum += more;
        }
    }

    /// Returns the time of all three states.
    pub(crate) fn all_ns(&self) -> u64 {
        self.running_ns + self.waiting_ns + self.blocked_ns
    }

    pub(crate) fn waited_ns(&self) -> u64 {
        self.waited_peers_ns + self.waited_others_ns
    }

    /// Returns the part that peers had of the time in which a thread wanted a core that no other
    /// program had.
    pub(crate) fn peers_share(&self) -> f64 {
        let wanted_ns = self.ran_ns + self.waited_peers_ns;
        self.waited_peers_ns as f64 / wanted_ns.max(1) as f64
    }

    /// Adds time that threads seemed to be blocked, and waited for a core: a part `alone` of it all
    /// threads were blocked, and in a part `others` other programs had the core.
    pub(crate) fn add_unseen(&mut self, unseen_ns: f64, alone: f64, others: f64) {
        let moved_ns = ((unseen_ns * alone) as u64).min(self.blocked_ns);
        self.blocked_ns -= moved_ns;
        self.waiting_ns += moved_ns;
        self.waited_others_ns += (unseen_ns * others) as u64;
        self.waited_peers_ns += (unseen_ns * (1.0 - others)) as u64;
    }

    /// Adds the increase since `before`, times `factor`.
    pub(crate) fn repeat(&mut self, before: &Sums, factor: f64) {
        for (now, before) in self.with(before) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A server without root, on a machine where others have the cores: it was BLOCKING-IO, as its
    /// waits for a core after a wake-up were taken for waits for the client.
    #[test]
    fn who_was_woken_and_has_no_core_is_not_blocked() {
        let mut sums = Sums {
            running_ns: 200,
            blocked_ns: 800,
            ran_ns: 200,
            ..Sums::default()
        };
        sums.add_unseen(600.0, 1.0, 0.75);
        assert_eq!((sums.waiting_ns, sums.blocked_ns), (600, 200));
        assert_eq!((sums.waited_others_ns, sums.waited_peers_ns), (450, 150));
        assert_eq!((sums.all_ns(), sums.waited_ns()), (1_000, 600));
        // Other threads ran for half of that time.
        sums.add_unseen(200.0, 0.5, 1.0);
        assert_eq!((sums.waiting_ns, sums.blocked_ns), (700, 100));
    }

    /// Eight processes that compute beside other programs, as recorded: each waits for its peers
    /// for most of the time that no other program has the core. It was CPU-COMPUTE.
    #[test]
    fn others_do_not_hide_a_crowd() {
        let sums = Sums {
            ran_ns: 57,
            waited_peers_ns: 225,
            waited_others_ns: 718,
            ..Sums::default()
        };
        assert!((sums.peers_share() - 0.8).abs() < 0.01, "{sums:?}");
        assert_eq!(Sums::default().peers_share(), 0.0);
    }
}
