//! Computes the figures of who ran, waited for a core and was blocked.

use super::Figures;
use crate::sys::Ended;

const SWITCH: &str = "PERF_RECORD_SWITCH";

impl Figures<'_> {
    pub(super) fn schedule(&mut self, ended: Option<&Ended>) {
        let watch = self.watch;
        let totals = watch.timeline.totals;
        if let Err(why) = &watch.perf {
            return self.schedule_by_state(&why.to_string(), ended);
        }
        let (all, known) = (totals.all, totals.known);
        let all_ns = (all.running_ns + all.waiting_ns + all.blocked_ns).max(1) as f64;
        let running = all.running_ns as f64 / all_ns;
        self.switched("state.running", running, SWITCH);
        // Where wake-ups were recorded for a part of the time, that part represents all of it.
        let idle_ns = (known.waiting_ns + known.blocked_ns).max(1) as f64;
        let waiting = known.waiting_ns as f64 / idle_ns * (1.0 - running);
        self.waited("state.waiting", waiting);
        self.waited("state.blocked", 1.0 - running - waiting);
        match totals.blocked_mean_ns() {
            Some(mean_ns) => self.switched("state.blocked_us", mean_ns / 1e3, SWITCH),
            None => (self.evidence).lack("state.blocked_us", "it was never wholly blocked"),
        }
        let waited_ns = known.waited_peers_ns + known.waited_others_ns;
        let busy_ns = (known.ran_ns + waited_ns).max(1) as f64;
        let busy = all.ran_ns as f64 * busy_ns / known.ran_ns.max(1) as f64;
        self.waited("threads.busy", busy / 1e9 / self.wall_s);
        self.waited("run.wait_share", waited_ns as f64 / busy_ns);
        self.waited("run.wait_peers", known.waited_peers_ns as f64 / busy_ns);
        // Where it is not recorded which thread has a core that another one had to leave, it may be
        // the doctor, or no thread during a switch: threads wait for others no longer than others
        // ran.
        let others = known.waited_others_ns as f64 / busy_ns;
        let is_known = (watch.perf.as_ref()).is_ok_and(|perf| perf.is_whole_machine());
        let most = if is_known { 1.0 } else { self.others_cores() };
        self.waited("host.wait_others", others.min(most));
        self.switches(ended);
    }

    /// Adds the numbers of switches. Where records paused, `wait4` gives the full number, unless
    /// the records show that there are processes which were not waited for.
    fn switches(&mut self, ended: Option<&Ended>) {
        let totals = self.watch.timeline.totals;
        let known = totals.switches_blocked + totals.switches_preempted;
        let waited = ended
            .filter(|_| self.watch.timeline.gaps_ns() > 0)
            .map(|ended| (ended.switches_voluntary, ended.switches_involuntary))
            .filter(|(voluntary, involuntary)| voluntary + involuntary >= known / 10 * 9);
        let (blocked, preempted) =
            waited.unwrap_or((totals.switches_blocked, totals.switches_preempted));
        let runs = (blocked + preempted).max(1) as f64;
        let (per_s, ran_us) = (1.0 / self.wall_s, totals.all.ran_ns as f64 / 1e3);
        for (name, value) in [
            ("switch.blocked", blocked as f64 * per_s),
            ("switch.preempted", preempted as f64 * per_s),
        ] {
            match waited {
                Some(_) => self.put(name, value, "wait4"),
                None => self.switched(name, value, SWITCH),
            }
        }
        self.switched("switch.run_us", ran_us / runs, SWITCH);
    }

    /// Adds a figure that includes waits for a core after a wake-up.
    fn waited(&mut self, name: &str, value: f64) {
        let wakes = self
            .watch
            .perf
            .as_ref()
            .is_ok_and(|perf| perf.missing("sched_wakeup").is_none());
        match (wakes, self.watch.ration.has_paused()) {
            (true, false) => self.recorded(name, value, "PERF_RECORD_SWITCH, sched_wakeup"),
            (true, true) => {
                let source = "PERF_RECORD_SWITCH, sched_wakeup for a part of the time";
                self.sampled(name, value, source);
            }
            (false, _) => {
                self.sampled(
                    name,
                    value,
                    "PERF_RECORD_SWITCH: without waits after a wake",
                );
            }
        }
    }

    /// Computes the schedule without events, from the thread states that were sampled from time to
    /// time.
    fn schedule_by_state(&mut self, why: &str, ended: Option<&Ended>) {
        let waits = &self.watch.waits;
        let rounds = waits.rounds.max(1) as f64;
        let (busy, threads) = (
            waits.busy_rounds as f64 / rounds,
            waits.busy_threads / rounds,
        );
        self.sampled("state.running", busy, "/proc/*/task/*/stat");
        self.sampled("state.blocked", 1.0 - busy, "/proc/*/task/*/stat");
        self.sampled("threads.busy", threads, "/proc/*/task/*/stat");
        if let Some(ended) = ended {
            let (voluntary, involuntary) = (ended.switches_voluntary, ended.switches_involuntary);
            let runs = (voluntary + involuntary).max(1) as f64;
            self.put("switch.blocked", voluntary as f64 / self.wall_s, "wait4");
            self.put(
                "switch.preempted",
                involuntary as f64 / self.wall_s,
                "wait4",
            );
            self.put("switch.run_us", self.cpu_s * 1e6 / runs, "wait4");
        }
        for name in [
            "state.waiting",
            "run.wait_share",
            "run.wait_peers",
            "host.wait_others",
            "switch.blocked",
            "switch.preempted",
            "switch.run_us",
        ] {
            self.evidence.lack(name, format!("perf_event_open: {why}"));
        }
    }
}
