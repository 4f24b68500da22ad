//! Accounts for the time of a switch, where it is not recorded which thread has a core.

use super::sums::Sums;
use super::timeline::{Core, Owner, Timeline};

/// The upper limit on the duration of a switch between two threads: 2 to 5 µs (Zen 4, KVM).
const SWITCH_NS: u64 = 10_000;

impl Timeline {
    /// Corrects the sums if a thread of the program gets a core so soon after another one that no
    /// other thread had it in between: the time was that of the switch.
    pub(super) fn end_switch(&mut self, core: usize) {
        let Core {
            owner,
            queued,
            left_ns,
            ..
        } = *self.core(core);
        let switch_ns = self.now_ns - left_ns;
        if owner != Owner::Other || self.whole_machine || switch_ns > SWITCH_NS {
            return;
        }
        let runs_elsewhere = self.running > 0;
        let amend = |sums: &mut Sums| {
            let waited_ns = switch_ns * queued;
            sums.waited_others_ns = sums.waited_others_ns.saturating_sub(waited_ns);
            if !runs_elsewhere {
                sums.waiting_ns = sums.waiting_ns.saturating_sub(switch_ns);
                sums.running_ns += switch_ns;
            }
        };
        self.totals.others_ns = self.totals.others_ns.saturating_sub(switch_ns);
        amend(&mut self.totals.all);
        if self.known {
            amend(&mut self.totals.known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Event, What};
    use super::*;

    /// Two threads on one core call `sched_yield` in turn; the other one gets the core after
    /// `switch_ns`.
    fn yielding(switch_ns: u64) -> (f64, f64) {
        let mut timeline = Timeline::new(0, false);
        for tid in [7, 8] {
            timeline.adopt(7, tid, "a");
        }
        for turn in 0..1_000_u64 {
            let at_ns = turn * (2_000 + switch_ns);
            let leaves = What::Out { preempted: true };
            for (time_ns, what) in [(at_ns, What::In), (at_ns + 2_000, leaves)] {
                let tid = 7 + (turn % 2) as i32;
                let event = Event {
                    time_ns,
                    core: 0,
                    pid: 7,
                    tid,
                    what,
                };
                timeline.apply(&event, &mut |_| {});
            }
        }
        let all = timeline.totals.all;
        let time_ns = timeline.now_ns as f64;
        (
            all.waited_others_ns as f64 / time_ns,
            all.waiting_ns as f64 / time_ns,
        )
    }

    /// Threads that yield run for 2 µs at a time. The verdict had been CONTAMINATED at 0.87 for a
    /// user who cannot see which thread has a core.
    #[test]
    fn nobody_has_the_core_while_it_switches() {
        let (others, waiting) = yielding(1_500);
        assert!(others < 0.01 && waiting < 0.01, "{others} {waiting}");
        let (others, waiting) = yielding(50_000);
        assert!(others > 0.9 && waiting > 0.9, "{others} {waiting}");
    }
}
