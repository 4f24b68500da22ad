//! What blocked threads waited for.

use super::Figures;
use crate::probe::waits::Cause;

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
        if waits.futex_rounds > 0 {
            let rounds = waits.futex_rounds as f64;
            self.sampled(
                "lock.waiters",
                waits.waiters / rounds,
                "/proc/*/task/*/syscall",
            );
            self.sampled(
                "lock.waiters_max",
                waits.waiters_max,
                "/proc/*/task/*/syscall",
            );
            self.sampled(
                "lock.same_share",
                waits.same_share / rounds,
                "/proc/*/task/*/syscall",
            );
        } else {
            for name in ["lock.waiters", "lock.waiters_max", "lock.same_share"] {
                self.evidence
                    .lack(name, "no thread was seen waiting at a futex");
            }
        }
        let timeline = &self.watch.timeline;
        match timeline.sleeps {
            0 => self
                .evidence
                .lack("sleep.us", "no thread was seen sleeping"),
            // The longer a sleep, the likelier it is seen: the harmonic mean sets that right.
            sleeps => {
                let mean_us = sleeps as f64 / timeline.sleeps_per_ns / 1e3;
                let source = "/proc/*/task/*/syscall, PERF_RECORD_SWITCH";
                self.sampled("sleep.us", mean_us, source);
            }
        }
    }
}
