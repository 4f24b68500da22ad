//! Computes the figures from the observations of the probes.

mod code;
mod schedule;
mod waits;

use crate::evidence::{Evidence, Quality};
use crate::probe::usage::Used;
use crate::sys::Ended;
use crate::watch::Watch;

/// The tracepoint of a switch.
const SWITCHES: &str = "sched_switch";

struct Figures<'a> {
    watch: &'a Watch,
    evidence: Evidence,
    wall_s: f64,
    cpu_s: f64,
    system_s: f64,
}

/// Returns the figures of a watch that has ended; `ended` is given for a program that was waited
/// for.
pub(crate) fn evidence(watch: &mut Watch, ended: Option<&Ended>) -> Evidence {
    let has_kernel = watch.perf.as_ref().is_ok_and(|perf| perf.kernel);
    let kernel = has_kernel
        .then(|| watch.ticks.kernel_shares(&mut watch.symbols, &watch.memory))
        .flatten();
    let has_goroutines = watch.symbols.has_goroutines(&watch.memory);
    (watch.ticks).find_askers(&mut watch.symbols, &watch.memory);
    (watch.waits).find_monitors(&mut watch.symbols, &watch.memory);
    let watch = &*watch;
    let timeline = &watch.timeline;
    let wall_s = (watch.to_ns.saturating_sub(timeline.from_ns) as f64 / 1e9).max(1e-9);
    let evidence = Evidence::new();
    let mut figures = Figures {
        watch,
        evidence,
        wall_s,
        cpu_s: 0.0,
        system_s: 0.0,
    };
    figures.put("time.wall", wall_s, "CLOCK_MONOTONIC");
    match ended {
        Some(ended) => figures.usage(ended.used, "wait4"),
        None => figures.usage(watch.usage.total(), "/proc/*/stat and io"),
    }
    figures.threads();
    figures.schedule(ended);
    figures.ticks(kernel);
    figures.calls();
    figures.waits();
    figures.goroutines(has_goroutines);
    figures.host();
    figures.hardware();
    match figures.blindness() {
        Some(why) => without_events(&figures.evidence, &why),
        None => figures.evidence,
    }
}

/// The minimum share of the time in which the events must have shown a thread of the program, and
/// the maximum time for which they may have shown none after its end.
const SEEN_MIN: f64 = 0.5;
const LATE_S: f64 = 0.1;

/// Where records were lost, the others must cover this share of the processor time to be used.
const RAN_MIN: f64 = 0.5;

/// Returns the figures that remain where the events did not show the program's activity, with the
/// reason `why` they did not.
fn without_events(evidence: &Evidence, why: &str) -> Evidence {
    let stays = |name: &str| {
        let groups = ["time.", "cpu.", "io.", "processes.", "host.", "fault.m"];
        groups.iter().any(|group| name.starts_with(group)) && name != "host.wait_others"
    };
    let mut left = Evidence::new();
    for (name, reading) in evidence.readings() {
        match reading.value.filter(|_| stays(name)) {
            Some(value) => left.put(name, value, reading.quality, reading.source.clone()),
            None => left.lack(name, why),
        }
    }
    left
}

impl Figures<'_> {
    /// Returns the reason why the events do not represent the time of the observation: they show no
    /// thread of the program for most of it, or most of its processor time is in records that were
    /// lost.
    fn blindness(&self) -> Option<String> {
        let totals = self.watch.timeline.totals;
        let (all, lost) = (totals.all, totals.lost);
        let seen_s = (all.running_ns + all.waiting_ns + all.blocked_ns) as f64 / 1e9;
        let ran_s = all.ran_ns as f64 / 1e9;
        if self.watch.perf.is_err() {
            None
        } else if seen_s < SEEN_MIN * self.wall_s && self.wall_s - seen_s > LATE_S {
            let why = "the kernel ended the events, as it does where a program gets the rights of \
                       another user";
            Some(why.to_owned())
        } else if lost > 0 && ran_s < RAN_MIN * self.cpu_s - LATE_S {
            let (ran, used) = (ran_s, self.cpu_s);
            Some(format!(
                "{lost} records were lost, and the others show {ran:.1} s of {used:.1} s of \
                 processor time"
            ))
        } else {
            None
        }
    }

    fn put(&mut self, name: &str, value: f64, source: &str) {
        let source = self.named(source);
        self.evidence.put(name, value, Quality::Exact, source);
    }

    fn sampled(&mut self, name: &str, value: f64, source: &str) {
        let source = self.named(source);
        self.evidence.put(name, value, Quality::Sampled, source);
    }

    /// Replaces the name of the record by that of the tracepoint, where an eBPF program records
    /// switches.
    fn named(&self, source: &str) -> String {
        let hooked = self.watch.perf.as_ref();
        match hooked.is_ok_and(|perf| perf.hooks_switches) {
            true => source
                .replace("PERF_RECORD_SWITCH_CPU_WIDE", SWITCHES)
                .replace("PERF_RECORD_SWITCH", SWITCHES),
            false => source.into(),
        }
    }

    /// Adds a figure from records of switches, as [`Figures::recorded`] does; it is exact only if
    /// the records never paused.
    fn switched(&mut self, name: &str, value: f64, source: &str) {
        match self.watch.timeline.gaps_ns() {
            0 => self.recorded(name, value, source),
            _ => self.sampled(name, value, &format!("{source} for a part of the time")),
        }
    }

    /// Adds a figure from records, which is exact unless some were lost.
    fn recorded(&mut self, name: &str, value: f64, source: &str) {
        let lost = self.watch.timeline.totals.lost;
        match lost {
            0 => self.put(name, value, source),
            _ => self.sampled(name, value, &format!("{source}; {lost} records were lost")),
        }
    }

    fn usage(&mut self, used: Used, source: &str) {
        let wall_s = self.wall_s;
        (self.cpu_s, self.system_s) = (used.user_s + used.system_s, used.system_s);
        let share = if self.cpu_s > 0.0 {
            used.system_s / self.cpu_s
        } else {
            0.0
        };
        // Some processes are not waited for, and their time is in the records only: their other
        // resource usage is missing.
        let ran_s = self.watch.timeline.totals.all.ran_ns as f64 / 1e9;
        let slack = match self.watch.timeline.gaps_ns() {
            0 => 1.05,
            _ => 1.25,
        };
        let all = ran_s <= self.cpu_s * slack + 0.02;
        let quality = if all {
            Quality::Exact
        } else {
            Quality::Sampled
        };
        for (name, value) in [
            ("cpu.system_share", share),
            ("fault.minor", used.faults_minor as f64 / wall_s),
            ("fault.major", used.faults_major as f64 / wall_s),
            ("io.read", used.bytes_read as f64 / wall_s),
            ("io.written", used.bytes_written as f64 / wall_s),
        ] {
            self.evidence.put(name, value, quality, source);
        }
        if !all {
            self.system_s *= ran_s / self.cpu_s.max(1e-9);
            self.cpu_s = ran_s;
            self.switched("cpu.used", ran_s / wall_s, "PERF_RECORD_SWITCH");
        } else {
            self.put("cpu.used", self.cpu_s / wall_s, source);
        }
    }

    fn threads(&mut self) {
        let totals = self.watch.timeline.totals;
        let source = if self.watch.perf.is_ok() {
            "PERF_RECORD_FORK"
        } else {
            "/proc/*/task"
        };
        self.recorded("threads.max", totals.threads_max as f64, source);
        self.recorded("processes.started", totals.processes as f64, source);
        let left = &self.watch.left;
        let such = left
            .first()
            .map_or_else(String::new, |pid| format!(", such as {pid}"));
        let source = format!("/proc/*/stat{such}");
        self.put("processes.left", left.len() as f64, &source);
        let affinity = self.watch.usable_cores;
        let quota = self.watch.host.1.quota;
        let usable = quota.map_or(affinity, |quota| quota.min(affinity));
        self.put("cpu.usable", usable, "sched_getaffinity, cpu.max");
    }

    /// Returns the number of cores that others used, from the machine's total.
    fn others_cores(&self) -> f64 {
        let (before, after) = &self.watch.host;
        let busy_s = after.busy_s - before.busy_s - self.cpu_s - self.watch.own_s;
        (busy_s / self.wall_s).max(0.0)
    }

    fn host(&mut self) {
        let (before, after) = &self.watch.host;
        let wall_s = self.wall_s;
        let total_s = (after.total_s - before.total_s).max(1e-9);
        let steal_s = (after.steal_s - before.steal_s).max(0.0);
        self.put(
            "host.steal_share",
            (steal_s / total_s).min(1.0),
            "/proc/stat: steal",
        );
        let totals = self.watch.timeline.totals;
        if self
            .watch
            .perf
            .as_ref()
            .is_ok_and(|perf| perf.is_whole_machine())
        {
            let cores = totals.others_ns as f64 / 1e9 / wall_s;
            self.switched("host.others", cores, "PERF_RECORD_SWITCH_CPU_WIDE");
        } else {
            let cores = self.others_cores();
            self.sampled("host.others", cores, "/proc/stat, less the program's");
        }
        match (before.pressure_s, after.pressure_s) {
            (Some(before), Some(after)) => {
                let share = ((after - before) / wall_s).clamp(0.0, 1.0);
                self.put("host.pressure", share, "/proc/pressure/cpu: some");
            }
            _ => self
                .evidence
                .lack("host.pressure", "the kernel has no /proc/pressure/cpu"),
        }
        let throttled = (after.throttled_since(before) / wall_s).clamp(0.0, 1.0);
        self.put("host.throttled_share", throttled, "cpu.stat of its groups");
        self.evidence.lack(
            "io.delay_share",
            "the kernel's delay accounting is not read",
        );
    }
}
