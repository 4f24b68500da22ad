//! Computes the figures of what blocked threads waited for.

use super::Figures;
use crate::probe::files::Cause;
use crate::probe::timeline::Thread;
use crate::probe::words::Deeds;

const SYSCALL: &str = "/proc/*/task/*/syscall";
const NO_FUTEX: &str = "no thread was seen waiting at a futex, or for a file's lock";

impl Figures<'_> {
    pub(super) fn waits(&mut self) {
        let waits = &self.watch.waits;
        let all: f64 = waits.critical.values().sum();
        for (cause, name) in Cause::ALL {
            let part = waits.critical.get(&cause).copied().unwrap_or(0.0);
            match all > 0.0 {
                true => self.sampled(name, part / all, "/proc/*/task/*/syscall"),
                false => self.evidence.lack(name, "it was never seen wholly blocked"),
            }
        }
        self.lines();
        self.wake_share();
        self.timeout_us();
        self.timer_share();
        let timeline = &self.watch.timeline;
        match timeline.sleeps {
            0 => self
                .evidence
                .lack("sleep.us", "no thread was seen sleeping"),
            // A longer sleep is more likely to be sampled; the harmonic mean corrects this bias.
            sleeps => {
                let mean_us = sleeps as f64 / timeline.sleeps_per_ns / 1e3;
                let source = "/proc/*/task/*/syscall, PERF_RECORD_SWITCH";
                self.sampled("sleep.us", mean_us, source);
            }
        }
    }
    /// Adds the figures of threads that queue for a lock.
    fn lines(&mut self) {
        let (waits, wakes) = (&self.watch.waits, &self.watch.wakes);
        match waits.words.waiters_max() {
            Some(most) => self.sampled("lock.waiters_max", most, SYSCALL),
            None => (self.evidence).lack("lock.waiters_max", NO_FUTEX),
        }
        let deeds = |thread: &Thread| Deeds {
            ran_ns: thread.ran_ns,
            blocks: thread.blocks,
        };
        let threads = self.all_threads();
        let deeds = threads.map(|(tid, thread)| (tid, deeds(thread))).collect();
        let Some(line) = waits.words.line(wakes, &deeds, self.wall_s) else {
            self.evidence.lack("lock.waiters", NO_FUTEX);
            return self.evidence.lack("lock.held_share", NO_FUTEX);
        };
        self.sampled("lock.waiters", line.waiters, SYSCALL);
        match line.locked {
            Some(share) => {
                let source = "/proc/*/task/*/syscall, sched_waking or PERF_RECORD_SWITCH";
                self.sampled("lock.held_share", share, source);
            }
            None => {
                let why = "neither who wakes whom nor who ran how long is known";
                self.evidence.lack("lock.held_share", why);
            }
        }
    }

    fn wake_share(&mut self) {
        match self.watch.waits.wake_share() {
            Some(share) => {
                let source = "/proc/*/task/*/syscall: timeouts";
                self.sampled("futex.wake_share", share, source);
            }
            None => {
                let why = "it was never seen wholly blocked at a futex that tells who ended it";
                self.evidence.lack("futex.wake_share", why);
            }
        }
    }

    fn timeout_us(&mut self) {
        match self.watch.waits.timeout_us() {
            Some(us) => {
                let source = "/proc/*/task/*/syscall, PERF_RECORD_SWITCH";
                self.sampled("futex.timeout_us", us, source);
            }
            None => {
                let why = "no timeout was seen to end a wait at a futex";
                self.evidence.lack("futex.timeout_us", why);
            }
        }
    }

    fn timer_share(&mut self) {
        match self.watch.waits.timer_share() {
            Some(share) => {
                let source = "/proc/*/task/*/syscall, mem, fdinfo: timeouts and timers";
                self.sampled("poll.timer_share", share, source);
            }
            None => {
                let why = "it was never seen wholly blocked in a poll that tells what ended it";
                self.evidence.lack("poll.timer_share", why);
            }
        }
    }

    /// Adds whether goroutines may wait for locks. Such a wait is in no system call, so it is not
    /// seen.
    pub(super) fn goroutines(&mut self, has_goroutines: bool) {
        match has_goroutines {
            false => self.sampled("lock.goroutines", 0.0, "cpu-clock: no code of Go ran"),
            true => {
                let why = "waits of goroutines cannot be seen: the runtime of Go parks them itself";
                self.evidence.lack("lock.goroutines", why);
            }
        }
    }
}
