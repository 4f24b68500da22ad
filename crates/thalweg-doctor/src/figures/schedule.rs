//! Who ran, waited and was blocked.

use super::Figures;

impl Figures<'_> {
    pub(super) fn schedule(&mut self) {
        let watch = self.watch;
        let totals = watch.timeline.totals;
        if let Err(why) = &watch.perf {
            return self.schedule_by_state(&why.to_string());
        }
        let all_ns = (totals.running_ns + totals.waiting_ns + totals.blocked_ns).max(1) as f64;
        let share = |ns: u64| ns as f64 / all_ns;
        self.recorded(
            "state.running",
            share(totals.running_ns),
            "PERF_RECORD_SWITCH",
        );
        self.recorded(
            "state.waiting",
            share(totals.waiting_ns),
            "PERF_RECORD_SWITCH",
        );
        self.recorded(
            "state.blocked",
            share(totals.blocked_ns),
            "PERF_RECORD_SWITCH",
        );
        if totals.blocked_ns > 0 {
            let mean_us = totals.blocked_square / totals.blocked_ns as f64 / 1e3;
            self.recorded("state.blocked_us", mean_us, "PERF_RECORD_SWITCH");
        } else {
            self.evidence
                .lack("state.blocked_us", "it was never wholly blocked");
        }
        let waited_ns = totals.waited_peers_ns + totals.waited_others_ns;
        let busy = (totals.ran_ns + waited_ns) as f64;
        self.recorded(
            "threads.busy",
            busy / 1e9 / self.wall_s,
            "PERF_RECORD_SWITCH",
        );
        let of_busy = |ns: u64| ns as f64 / busy.max(1.0);
        let (peers, others) = (
            of_busy(totals.waited_peers_ns),
            of_busy(totals.waited_others_ns),
        );
        let source = "PERF_RECORD_SWITCH, sched_wakeup";
        if watch
            .perf
            .as_ref()
            .is_ok_and(|perf| perf.missing("sched_wakeup").is_none())
        {
            self.recorded("run.wait_share", of_busy(waited_ns), source);
            self.recorded("run.wait_peers", peers, source);
            self.recorded("host.wait_others", others, source);
        } else {
            let source = "PERF_RECORD_SWITCH: without waits after a wake";
            self.sampled("run.wait_share", of_busy(waited_ns), source);
            self.sampled("run.wait_peers", peers, source);
            self.sampled("host.wait_others", others, source);
        }
        let per_s = |count: u64| count as f64 / self.wall_s;
        let (blocked, preempted) = (totals.switches_blocked, totals.switches_preempted);
        self.recorded("switch.blocked", per_s(blocked), "PERF_RECORD_SWITCH");
        let per_s = |count: u64| count as f64 / self.wall_s;
        self.recorded("switch.preempted", per_s(preempted), "PERF_RECORD_SWITCH");
        let runs = (blocked + preempted).max(1) as f64;
        self.recorded(
            "switch.run_us",
            totals.ran_ns as f64 / 1e3 / runs,
            "PERF_RECORD_SWITCH",
        );
    }

    /// Without events there are only the states that were seen now and then.
    fn schedule_by_state(&mut self, why: &str) {
        let waits = &self.watch.waits;
        let rounds = waits.rounds.max(1) as f64;
        let (busy, threads) = (
            waits.busy_rounds as f64 / rounds,
            waits.busy_threads / rounds,
        );
        self.sampled("state.running", busy, "/proc/*/task/*/stat");
        self.sampled("state.blocked", 1.0 - busy, "/proc/*/task/*/stat");
        self.sampled("threads.busy", threads, "/proc/*/task/*/stat");
        for name in [
            "state.waiting",
            "run.wait_share",
            "run.wait_peers",
            "host.wait_others",
        ] {
            self.evidence.lack(name, format!("perf_event_open: {why}"));
        }
        for name in ["switch.blocked", "switch.preempted", "switch.run_us"] {
            self.evidence.lack(name, format!("perf_event_open: {why}"));
        }
    }
}
