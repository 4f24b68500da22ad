//! A thread of the program: its state, and the time that it spent in each.

use crate::probe::procfs::Scheduled;
use crate::probe::totals::repeat;
use crate::recording::State;

/// A span of a thread's life that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedSpan {
    pub(crate) tid: i32,
    pub(crate) state: State,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// A thread of the program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Thread {
    pub(crate) pid: i32,
    pub(crate) name: Box<str>,
    pub(crate) state: State,
    pub(crate) since_ns: u64,
    /// Whether its state began at an unknown time up to `since_ns`: no switch was seen.
    pub(crate) began_before: bool,
    /// Whether it has begun to run another program, and has not mapped code of that yet.
    pub(crate) is_loading: bool,
    /// The time up to which the sums of its states count.
    pub(super) counted_ns: u64,
    /// The kernel's counts of it when the gap began.
    pub(super) scheduled: Option<Scheduled>,
    pub(crate) core: usize,
    pub(crate) gone_ns: Option<u64>,
    pub(crate) ran_ns: u64,
    pub(crate) waited_ns: u64,
    pub(crate) blocked_ns: u64,
    /// The time for which it waited for a core that no switch shows, as it had been woken, and what
    /// the kernel had counted beyond the switches at the first sample.
    pub(crate) unseen_ns: u64,
    pub(super) counted_before_ns: Option<u64>,
    /// The time at which it was first sampled asleep, in a span that the records have not ended
    /// yet.
    pub(crate) slept_ns: Option<u64>,
    /// The number of times that it blocked.
    pub(crate) blocks: u64,
    /// Its times of running, waiting and being blocked, and its number of blocks, when switches
    /// were last recorded again.
    pub(crate) before: ([u64; 3], u64),
}

impl Thread {
    /// Returns the current span, which ends at `to_ns`.
    pub(crate) fn span(&self, tid: i32, to_ns: u64) -> EndedSpan {
        EndedSpan {
            tid,
            state: self.state,
            from_ns: self.counted_ns,
            to_ns,
        }
    }

    /// Sets what the kernel counts of it, where switches are not recorded. What it counted before
    /// the observation is left out.
    pub(crate) fn account(&mut self, now: Scheduled) {
        let since = now.since(self.scheduled.unwrap_or_default());
        (self.ran_ns, self.waited_ns, self.blocks) = (since.ran_ns, since.waited_ns, since.runs);
    }

    /// Compares the time that it waited for a core with what the kernel counts.
    pub(crate) fn see_waits(&mut self, now: Scheduled) {
        let more_ns = now.waited_ns.saturating_sub(self.waited_ns);
        let before_ns = *self.counted_before_ns.get_or_insert(more_ns);
        self.unseen_ns = more_ns.saturating_sub(before_ns);
    }

    /// Begins the observation of a thread where switches are not recorded.
    pub(crate) fn begin_account(&mut self, now: Option<Scheduled>) {
        self.scheduled = now;
    }

    fn lived_ns(&self) -> [u64; 3] {
        [self.ran_ns, self.waited_ns, self.blocked_ns]
    }

    /// Marks the time from which on switches are recorded again.
    pub(crate) fn mark(&mut self) {
        self.before = (self.lived_ns(), self.blocks);
    }

    /// Divides the time since the last span as the time since the mark was divided. Returns the
    /// time in each state; blocks are `often` times as frequent.
    pub(crate) fn repeat(&mut self, now_ns: u64, often: f64) -> [(State, u64); 3] {
        let (before, blocks) = self.before;
        let lived_ns = self.lived_ns();
        let window_ns: [u64; 3] = std::array::from_fn(|at| lived_ns[at] - before[at]);
        let all_ns = window_ns.iter().sum::<u64>();
        let span_ns = now_ns.saturating_sub(self.counted_ns);
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

    pub(crate) fn add(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = self.counted_ns.max(now_ns);
        match self.state {
            State::Running => self.ran_ns += span_ns,
            State::Runnable => self.waited_ns += span_ns,
            State::Blocked => self.blocked_ns += span_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_no_switch_shows_are_what_the_kernel_counts_more() {
        let counted = |waited_ns| Scheduled {
            waited_ns,
            ..Scheduled::default()
        };
        let mut thread = Thread::default();
        thread.see_waits(counted(5_000));
        assert_eq!(thread.unseen_ns, 0, "it was before the observation");
        thread.see_waits(counted(7_000));
        assert_eq!(thread.unseen_ns, 2_000);
        thread.waited_ns = 1_500;
        thread.see_waits(counted(8_000));
        assert_eq!(thread.unseen_ns, 1_500, "it was preempted for the rest");
    }
}
