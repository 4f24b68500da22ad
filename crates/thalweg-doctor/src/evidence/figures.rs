//! Computes the figures from the observations of the probes.

use crate::evidence::{Evidence, Quality};
use crate::probe::blocked::Cause;
use crate::probe::perf::Perf;
use crate::probe::samples::{self, KernelShares, Samples};
use crate::probe::syscall::Class;
use crate::probe::thread::Thread;
use crate::probe::totals::Sums;
use crate::probe::watch::Watch;
use crate::sys::{Ended, Used};
use std::collections::HashMap;

/// The tracepoint of a switch.
const SWITCHES: &str = "sched_switch";

struct Collector<'a> {
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
        .then(|| {
            watch
                .samples
                .kernel_shares(&mut watch.symbols, &watch.memory)
        })
        .flatten();
    let has_goroutines = watch.symbols.has_goroutines(&watch.memory);
    watch.waits.words.has_goroutines = has_goroutines;
    (watch.samples).find_askers(&mut watch.symbols, &watch.memory);
    (watch.waits).find_monitors(&mut watch.symbols, &watch.memory);
    let watch = &*watch;
    let wall_s = watch.wall_s();
    let evidence = Evidence::new();
    let mut figures = Collector {
        watch,
        evidence,
        wall_s,
        cpu_s: 0.0,
        system_s: 0.0,
    };
    figures.put("time.wall", wall_s, "CLOCK_MONOTONIC");
    match ended {
        // A process that is not waited for is in no count of its parent.
        Some(ended) if watch.usage.total().cpu_s() <= 1.1 * ended.used.cpu_s() + 0.05 => {
            figures.usage(ended.used, "wait4");
        }
        _ => figures.usage(watch.usage.total(), "/proc/*/stat"),
    }
    figures.threads();
    figures.schedule(ended);
    figures.samples(kernel);
    figures.calls();
    figures.waits();
    figures.goroutines(has_goroutines);
    figures.host();
    if let Some((why, is_lost)) = figures.blindness() {
        figures.without_events(&why, is_lost, ended);
    }
    figures.evidence
}

/// The minimum share of the time in which the events must have shown a thread of the program, and
/// the maximum time for which they may have shown none after its end.
const SEEN_MIN: f64 = 0.5;
const LATE_S: f64 = 0.1;

/// Where records were lost, the others must cover this share of the processor time to be used.
const RAN_MIN: f64 = 0.5;

/// The figures that do not rest on events, and those that rest on the clock's samples alone, which
/// are lost no more often where the program does one thing than where it does another.
const WITHOUT_EVENTS: &str = "time. cpu. processes. host. fault.m";
const OF_SAMPLES: &str = "spin. yield. fault.cpu call.cpu futex.cpu disk.cpu poll.busy";

/// The figures of the schedule: those that have no value without events are absent.
const SCHEDULE: &str = "state.running state.waiting state.blocked threads.busy run.wait_peers \
                        host.wait_others switch.run_us";

const SWITCH: &str = "PERF_RECORD_SWITCH";

/// A thread is busy if it was running or runnable for this share of its life.
const BUSY_SHARE: f64 = 0.9;
/// The minimum number of samples beside calls for a statement on which calls they are.
const CALL_TICKS_MIN: u64 = 20;

/// Estimates the yields of a program that yields in a loop, which is sampled where it returns from
/// the call. The estimate is the share of its own time next to that call, plus, of the kernel's
/// time for calls, the share that this call has among all calls that the program is sampled next
/// to.
fn yields_by_code(ticks: &Samples, user_share: f64, call_share: f64) -> f64 {
    let of_user = ticks.yields as f64 / ticks.user.max(1) as f64;
    let of_calls = ticks.yields as f64 / ticks.calls.max(1) as f64;
    of_user * user_share + of_calls.min(1.0) * call_share
}

/// The kernel divides the time of a process by the ticks of its clock that found it in the kernel,
/// and gives all of it to the program where none did. A process of up to this time, in ns, may have
/// met none.
const BRIEF_NS: u64 = 5_000_000;
/// The least share of the kernel in the time of such processes: `true`, started by a shell and by
/// xargs, has 0.59 and 0.70 by kernel stacks (Zen, KVM).
const BRIEF_SYSTEM: f64 = 0.6;

/// Returns the share of the time in processes that ran briefly, from the time of each thread.
fn brief_share(threads: impl Iterator<Item = (i32, u64)>) -> f64 {
    let mut processes: HashMap<i32, u64> = HashMap::new();
    for (pid, ran_ns) in threads {
        *processes.entry(pid).or_default() += ran_ns;
    }
    let all: u64 = processes.values().sum();
    let brief: u64 = processes.values().filter(|ns| **ns <= BRIEF_NS).sum();
    brief as f64 / all.max(1) as f64
}

fn is_busy(thread: &Thread) -> bool {
    let busy_ns = thread.ran_ns + thread.waited_ns;
    busy_ns as f64 > BUSY_SHARE * (busy_ns + thread.blocked_ns) as f64
}

const SYSCALL: &str = "/proc/*/task/*/syscall";
const NO_FUTEX: &str = "no thread was seen waiting at a futex, or for a file's lock";

impl Collector<'_> {
    /// Returns the reason why the events do not represent the time of the observation: they show no
    /// thread of the program for most of it, or most of its processor time is in records that were
    /// lost, which is the flag.
    fn blindness(&self) -> Option<(String, bool)> {
        let totals = self.watch.timeline.totals;
        let (all, lost) = (totals.all, totals.lost);
        let seen_s = all.all_ns() as f64 / 1e9;
        let ran_s = all.ran_ns as f64 / 1e9;
        if self.watch.perf.is_err() {
            None
        } else if seen_s < SEEN_MIN * self.wall_s && self.wall_s - seen_s > LATE_S {
            let why = "the kernel ended the events, as it does where a program gets the rights of \
                       another user";
            Some((why.to_owned(), false))
        } else if lost > 0 && ran_s < RAN_MIN * self.cpu_s - LATE_S {
            let (ran, used) = (ran_s, self.cpu_s);
            let why = format!(
                "{lost} records were lost, and the others show {ran:.1} s of {used:.1} s of \
                 processor time"
            );
            Some((why, true))
        } else {
            None
        }
    }

    /// Leaves the figures that hold where the events did not show the program's activity, and adds
    /// what states of threads show where records were lost.
    fn without_events(&mut self, why: &str, is_lost: bool, ended: Option<&Ended>) {
        let more = if is_lost { OF_SAMPLES } else { "" };
        let all = std::mem::take(&mut self.evidence);
        for (name, reading) in all.readings() {
            let mut groups = WITHOUT_EVENTS.split(' ').chain(more.split_terminator(' '));
            let stays = groups.any(|group| name.starts_with(group)) && name != "host.wait_others";
            if let Some(value) = reading.value.filter(|_| stays) {
                (self.evidence).put(name, value, reading.quality, reading.source.clone());
            }
        }
        if is_lost {
            self.schedule_by_state(why, ended);
            self.switches_by_share(ended);
        }
        for (name, _) in all.readings() {
            self.lack(name, why);
        }
    }

    fn put(&mut self, name: &str, value: f64, source: &str) {
        self.evidence
            .put(name, value, Quality::Exact, self.named(source));
    }

    fn lack(&mut self, name: &str, why: &str) {
        self.evidence.lack(name, why);
    }

    /// Adds a sampled figure, or the reason why it is absent.
    fn sampled_or(&mut self, name: &str, value: Option<f64>, source: &str, why: &str) {
        match value {
            Some(value) => self.sampled(name, value, source),
            None => self.lack(name, why),
        }
    }

    /// Returns the reason why an event gave no figure.
    fn why_missing(&self, event: &str, otherwise: &str) -> String {
        match &self.watch.perf {
            Ok(perf) => perf.missing(event).unwrap_or(otherwise).to_string(),
            Err(why) => why.to_string(),
        }
    }

    fn is_whole_machine(&self) -> bool {
        (self.watch.perf.as_ref()).is_ok_and(Perf::is_whole_machine)
    }

    fn sampled(&mut self, name: &str, value: f64, source: &str) {
        self.evidence
            .put(name, value, Quality::Sampled, self.named(source));
    }

    /// Replaces the name of the record by that of the tracepoint, where an eBPF program records
    /// switches.
    fn named(&self, source: &str) -> String {
        let perf = self.watch.perf.as_ref();
        match perf.is_ok_and(|perf| perf.ebpf_switches) {
            true => source
                .replace("PERF_RECORD_SWITCH_CPU_WIDE", SWITCHES)
                .replace("PERF_RECORD_SWITCH", SWITCHES),
            false => source.into(),
        }
    }

    /// Adds a figure from records of switches, as [`Collector::recorded`] does; it is exact only if
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
        (self.cpu_s, self.system_s) = (used.cpu_s(), used.system_s);
        let share = self.system_share();
        // Processes that are not waited for have their time in the records only.
        let ran_s = self.watch.timeline.totals.all.ran_ns as f64 / 1e9;
        let slack = match self.watch.timeline.gaps_ns() {
            0 => 1.05,
            _ => 1.25,
        };
        let all = ran_s <= self.cpu_s * slack + 0.02;
        let quality = match all {
            true => Quality::Exact,
            false => Quality::Sampled,
        };
        for (name, value) in [
            ("cpu.system_share", share),
            ("fault.minor", used.faults_minor as f64 / wall_s),
            ("fault.major", used.faults_major as f64 / wall_s),
        ] {
            self.evidence.put(name, value, quality, source);
        }
        // Where records were lost, a thread may count as running though it slept.
        if all || self.watch.timeline.totals.lost > 0 {
            self.evidence
                .put("cpu.used", self.cpu_s / wall_s, quality, source);
        } else {
            self.system_s *= ran_s / self.cpu_s.max(1e-9);
            self.cpu_s = ran_s;
            self.switched("cpu.used", ran_s / wall_s, "PERF_RECORD_SWITCH");
        }
    }

    fn threads(&mut self) {
        let totals = self.watch.timeline.totals;
        let source = match self.watch.perf.is_ok() {
            true => "PERF_RECORD_FORK",
            false => "/proc/*/task",
        };
        self.recorded("threads.max", totals.threads_max as f64, source);
        self.recorded("processes.started", totals.processes as f64, source);
        let left = &self.watch.left;
        let such = left.first().map(|pid| format!(", such as {pid}"));
        let source = format!("/proc/*/stat{}", such.unwrap_or_default());
        self.put("processes.left", left.len() as f64, &source);
        let affinity = self.watch.usable_cores;
        let quota = self.watch.host.1.quota.unwrap_or(affinity);
        self.put(
            "cpu.usable",
            quota.min(affinity),
            "sched_getaffinity, cpu.max",
        );
    }

    /// Returns the number of cores that others used, from the machine's total.
    fn others_cores(&self) -> f64 {
        let (before, after) = &self.watch.host;
        let busy_s = after.busy_s - before.busy_s - self.cpu_s - self.watch.own_s;
        (busy_s / self.watch.host_s()).max(0.0)
    }

    fn host(&mut self) {
        let (before, after) = &self.watch.host;
        let total_s = (after.total_s - before.total_s).max(1e-9);
        let steal_s = (after.steal_s - before.steal_s).max(0.0);
        let steal = (steal_s / total_s).min(1.0);
        self.put("host.steal_share", steal, "/proc/stat: steal");
        if self.is_whole_machine() {
            let cores = self.watch.timeline.totals.others_ns as f64 / 1e9 / self.wall_s;
            self.switched("host.others", cores, "PERF_RECORD_SWITCH_CPU_WIDE");
        } else {
            let cores = self.others_cores();
            self.sampled("host.others", cores, "/proc/stat, less the program's");
        }
        let throttled = (after.throttled_since(before) / self.watch.host_s()).clamp(0.0, 1.0);
        self.put("host.throttled_share", throttled, "cpu.stat of its groups");
    }

    fn schedule(&mut self, ended: Option<&Ended>) {
        let watch = self.watch;
        let totals = watch.timeline.totals;
        if let Err(why) = &watch.perf {
            return self.schedule_by_state(&format!("perf_event_open: {why}"), ended);
        }
        let (all, mut known) = (totals.all, totals.known);
        let all_ns = all.all_ns().max(1) as f64;
        if !self.has_wakes() {
            self.add_unseen_waits(all, &mut known);
        }
        let running = all.running_ns as f64 / all_ns;
        self.switched("state.running", running, SWITCH);
        // Where wake-ups were recorded for a part of the time, that part represents all of it.
        let idle_ns = (known.waiting_ns + known.blocked_ns).max(1) as f64;
        let waiting = known.waiting_ns as f64 / idle_ns * (1.0 - running);
        self.waited("state.waiting", waiting);
        self.waited("state.blocked", 1.0 - running - waiting);
        match totals.blocked_mean_ns() {
            Some(mean_ns) => self.switched("state.blocked_us", mean_ns / 1e3, SWITCH),
            None => self.lack("state.blocked_us", "it was never wholly blocked"),
        }
        let busy_ns = (known.ran_ns + known.waited_ns()).max(1) as f64;
        let busy = all.ran_ns as f64 * busy_ns / known.ran_ns.max(1) as f64;
        let threads_busy = busy / 1e9 / self.wall_s;
        self.waited("threads.busy", threads_busy);
        self.waited("run.wait_peers", known.peers_share());
        // A core that another thread had to leave may be the doctor's, or none's during a switch.
        let most = self.others_most(threads_busy);
        let others = known.waited_others_ns as f64 / busy_ns;
        self.waited("host.wait_others", others.min(most));
        self.switches(ended);
    }

    /// Adds the figures of switches. Where records paused, `wait4` gives the full number, unless
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
        self.switched("switch.run_us", ran_us / runs, SWITCH);
        let to_disk = self.blocks_for(Cause::Disk) / (totals.switches_blocked.max(1)) as f64;
        let handed = blocked as f64 * per_s * (1.0 - to_disk).max(0.0);
        self.sampled(
            "switch.handed",
            handed,
            "PERF_RECORD_SWITCH, /proc/*/task/*/syscall",
        );
    }

    /// Adds a figure that includes waits for a core after a wake-up.
    fn waited(&mut self, name: &str, value: f64) {
        let source = match (self.has_wakes(), self.watch.budget.has_paused()) {
            (true, false) => {
                return self.recorded(name, value, "PERF_RECORD_SWITCH, sched_wakeup");
            }
            (true, true) => "PERF_RECORD_SWITCH, sched_wakeup for a part of the time",
            (false, _) => "PERF_RECORD_SWITCH, /proc/*/task/*/schedstat",
        };
        self.sampled(name, value, source);
    }

    fn has_wakes(&self) -> bool {
        let perf = self.watch.perf.as_ref();
        perf.is_ok_and(|perf| perf.missing("sched_wakeup").is_none())
    }

    /// Adds the waits for a core after a wake-up, which only the kernel's counts show: switches
    /// show them as blocked. The program waited with its threads as often as it was blocked with
    /// them.
    fn add_unseen_waits(&self, all: Sums, known: &mut Sums) {
        let (mut unseen_ns, mut blocked_ns, mut lived_ns) = (0, 0, 0);
        for (_, thread) in self.all_threads() {
            unseen_ns += thread.unseen_ns;
            blocked_ns += thread.blocked_ns;
            lived_ns += thread.ran_ns + thread.waited_ns + thread.blocked_ns;
        }
        let threads = lived_ns as f64 / all.all_ns().max(1) as f64;
        let alone = all.blocked_ns as f64 * threads / blocked_ns.max(1) as f64;
        let part = known.all_ns() as f64 / all.all_ns().max(1) as f64;
        let unseen_ns = unseen_ns.min(blocked_ns) as f64 * part;
        let wanted_ns = (known.ran_ns + known.waited_ns()) as f64 + unseen_ns;
        let others = self.others_part(wanted_ns / known.all_ns().max(1) as f64);
        known.add_unseen(unseen_ns, alone.min(1.0), others);
    }

    /// Returns the part that others have in the cores that a thread may wait for, where `busy`
    /// threads of the program want one.
    fn others_part(&self, busy: f64) -> f64 {
        let peers = self.cpu_s / self.wall_s * (1.0 - 1.0 / busy.max(1.0));
        let others = self.others_cores();
        others / (others + peers).max(1e-9)
    }

    /// Returns the largest share of their time in which threads that wanted this number of cores
    /// can have waited for other programs: no longer than those ran, while one of these wanted one.
    fn others_most(&self, threads_busy: f64) -> f64 {
        match self.is_whole_machine() {
            true => 1.0,
            false => (self.others_cores() / threads_busy.clamp(1e-9, 1.0)).min(1.0),
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
        // A sample shows a thread that wants a core, and the processor time whether it has one.
        let used = self.cpu_s / self.wall_s;
        let running = busy.min(used);
        for (name, value) in [
            ("state.running", running),
            ("state.waiting", busy - running),
            ("state.blocked", 1.0 - busy),
            ("threads.busy", threads),
        ] {
            if waits.rounds > 0 {
                self.sampled(name, value, "/proc/*/task/*/stat");
            }
        }
        let times = |thread: &Thread| (thread.ran_ns as f64, thread.waited_ns as f64);
        let times = self.all_threads().map(|(_, thread)| times(thread));
        let (ran, waited) = times.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        if ran > 0.0 && self.watch.perf.is_err() {
            let wait = waited / (ran + waited);
            let by_others = (wait * self.others_part(threads)).min(self.others_most(threads));
            for (name, value) in [
                (
                    "run.wait_peers",
                    (wait - by_others) / (1.0 - by_others).max(1e-9),
                ),
                ("host.wait_others", by_others),
            ] {
                self.sampled(name, value, "/proc/*/task/*/schedstat");
            }
        }
        if let Some(ended) = ended {
            let [voluntary, involuntary] =
                [ended.switches_voluntary, ended.switches_involuntary].map(|count| count as f64);
            let run_us = self.cpu_s * 1e6 / (voluntary + involuntary).max(1.0);
            self.put("switch.run_us", run_us, "wait4");
        }
        for name in SCHEDULE.split(' ') {
            self.evidence.lack(name, why);
        }
    }

    fn all_threads(&self) -> impl Iterator<Item = (i32, &Thread)> {
        self.watch.timeline.all_threads()
    }

    fn samples(&mut self, kernel: Option<KernelShares>) {
        let ticks = &self.watch.samples;
        if ticks.all == 0 {
            let why = self.why_missing("cpu-clock", "no tick");
            for name in ["spin.cpu_share", "yield.cpu_share"] {
                self.evidence.lack(name, format!("cpu-clock: {why}"));
            }
            return self.kernel_by_cost();
        }
        // Without samples in the kernel, the samples of the program represent only its own time.
        let has_kernel = self.watch.perf.as_ref().is_ok_and(|perf| perf.kernel);
        let user_share = (1.0 - self.system_share()).clamp(0.0, 1.0);
        let scale = if has_kernel { 1.0 } else { user_share };
        let spin = ticks.pause as f64 / ticks.all as f64 * scale;
        self.sampled("spin.cpu_share", spin, "cpu-clock, bytes of the code");
        if let Some(shares) = kernel {
            let source = "cpu-clock, stacks of the kernel";
            self.sampled("fault.cpu_share", shares.fault, source);
            self.sampled("call.cpu_share", shares.call, source);
            self.sampled("yield.cpu_share", shares.yields, source);
            let calls = self.watch.calls.as_ref();
            let counted = calls.map(|it| (it.count_of(Class::Futex), it.count()));
            self.sampled("futex.cpu_share", shares.futex(counted), source);
            self.sampled("disk.cpu_share", shares.disk, source);
        } else {
            self.kernel_by_cost();
            let call = self.evidence.value("call.cpu_share").unwrap_or(0.0);
            let yields = yields_by_code(ticks, user_share, call);
            let source = "cpu-clock, bytes of the code beside system calls";
            self.sampled("yield.cpu_share", yields, source);
        }
    }

    fn system_share(&self) -> f64 {
        if self.cpu_s > 0.0 {
            self.system_s / self.cpu_s
        } else {
            0.0
        }
    }

    /// Estimates the figures without stacks of the kernel: page faults from the cost of one on this
    /// machine, and calls from the remaining time in the kernel.
    fn kernel_by_cost(&mut self) {
        for name in ["futex.cpu_share", "disk.cpu_share"] {
            self.lack(name, "there are no stacks of the kernel");
        }
        let Some(cost_s) = samples::fault_cost_s() else {
            let why = "the cost of a page fault could not be measured";
            self.lack("fault.cpu_share", why);
            return self.lack("call.cpu_share", "the part of page faults is not known");
        };
        let processes = self.all_threads().map(|(_, it)| (it.pid, it.ran_ns));
        let system = self
            .system_share()
            .max(BRIEF_SYSTEM * brief_share(processes));
        let faults = self.evidence.value("fault.minor").unwrap_or(0.0) * self.wall_s;
        let share = (faults * cost_s / self.cpu_s.max(1e-9)).min(system);
        let source = format!("faults, at {:.2} µs each as measured here", cost_s * 1e6);
        self.sampled("fault.cpu_share", share, &source);
        let source = "time in the kernel, less page faults";
        self.sampled("call.cpu_share", system - share, source);
    }

    fn calls(&mut self) {
        let watch = self.watch;
        let Some(calls) = &watch.calls else {
            let why = self.why_missing("sys_enter", "it was not counted");
            let why = format!("sys_enter: {why}");
            for name in ["call.all", "call.yield"] {
                self.evidence.lack(name, &why);
            }
            self.polls_by_code(&why);
            return self.futex_by_blocks(&why);
        };
        self.called("call.all", calls.count());
        self.called("call.yield", calls.count_of(Class::Yield));
        self.called("call.futex", calls.count_of(Class::Futex));
        let busy = calls.busy_share();
        self.sampled("poll.busy_share", busy, "raw_syscalls:sys_enter: timeouts");
    }

    /// Estimates polls without a count of calls: threads that hardly ever block poll without
    /// waiting, and the calls that they are sampled next to are the calls that they make.
    fn polls_by_code(&mut self, why: &str) {
        let ticks = &self.watch.samples;
        if ticks.calls < CALL_TICKS_MIN {
            return self.evidence.lack("poll.busy_share", why);
        }
        let of = |tid: i32| ticks.threads.get(&tid).map_or(0, |of| of.polls);
        let busy = self.all_threads().filter(|(_, thread)| is_busy(thread));
        let polls: u64 = busy.map(|(tid, _)| of(tid)).sum();
        let share = polls as f64 / ticks.calls as f64;
        let source = "cpu-clock, bytes of the code beside system calls";
        self.sampled("poll.busy_share", share.min(1.0), source);
    }

    /// Estimates calls of futex without a count of them: a thread blocks in the calls in which it
    /// is seen, and another thread calls futex once more to wake it, unless a timeout does.
    fn futex_by_blocks(&mut self, why: &str) {
        if self.watch.perf.is_err() {
            return self.lack("call.futex", why);
        }
        let timed = self.watch.waits.timed_share(Cause::Futex).unwrap_or(0.0);
        let count = (2.0 - timed) * self.blocks_for(Cause::Futex);
        let source = "PERF_RECORD_SWITCH, /proc/*/task/*/syscall: calls that block";
        self.sampled("call.futex", count / self.wall_s, source);
    }

    /// Estimates how often threads blocked from the kernel's count, where records were lost, and in
    /// which calls from the records that were not.
    fn switches_by_share(&mut self, ended: Option<&Ended>) {
        let blocks: u64 = self.all_threads().map(|(_, thread)| thread.blocks).sum();
        let Some(ended) = ended.filter(|_| blocks > 0) else {
            return;
        };
        let per_s = ended.switches_voluntary as f64 / self.wall_s;
        let share = |cause| (self.blocks_for(cause) / blocks as f64).min(1.0);
        let timed = self.watch.waits.timed_share(Cause::Futex).unwrap_or(0.0);
        let handed = per_s * (1.0 - share(Cause::Disk));
        let futex = per_s * (2.0 - timed) * share(Cause::Futex);
        for (name, value) in [("switch.handed", handed), ("call.futex", futex)] {
            self.sampled(name, value, "wait4, /proc/*/task/*/syscall");
        }
    }

    /// Estimates how often threads blocked for a cause, by the samples of each thread.
    fn blocks_for(&self, cause: Cause) -> f64 {
        let habits = &self.watch.waits.habits;
        let of = |(tid, thread): (i32, &Thread)| {
            Some(thread.blocks as f64 * habits.get(&tid)?.share(cause))
        };
        self.all_threads().filter_map(of).sum::<f64>() + 0.0
    }

    /// Adds a total count of calls.
    fn called(&mut self, name: &str, count: f64) {
        let (per_s, source) = (count / self.wall_s, "raw_syscalls:sys_enter");
        match self.watch.budget.has_paused() {
            true => self.sampled(name, per_s, &format!("{source} for a part of the time")),
            false => self.recorded(name, per_s, source),
        }
    }

    fn waits(&mut self) {
        let watch = self.watch;
        let (waits, timeline) = (&watch.waits, &watch.timeline);
        let all: f64 = waits.critical.values().sum();
        for (cause, name) in Cause::ALL {
            let part = waits.critical.get(&cause).copied().unwrap_or(0.0);
            let share = (all > 0.0).then_some(part / all);
            self.sampled_or(
                name,
                share,
                SYSCALL,
                "no look at /proc found it wholly blocked",
            );
        }
        self.lock_queues();
        // A longer sleep is more likely to be sampled; the harmonic mean corrects this bias.
        let sleep_us = timeline.sleeps as f64 / timeline.sleeps_per_ns / 1e3;
        for (name, value, source, why) in [
            (
                "futex.wake_share",
                waits.timed_share(Cause::Futex).map(|timed| 1.0 - timed),
                "/proc/*/task/*/syscall: timeouts",
                "no look at /proc found it wholly blocked at a futex that tells who ended it",
            ),
            (
                "futex.timeout_us",
                waits.timeout_us(),
                "/proc/*/task/*/syscall, PERF_RECORD_SWITCH",
                "no timeout was seen to end a wait at a futex",
            ),
            (
                "poll.timer_share",
                waits.timed_share(Cause::Poll),
                "/proc/*/task/*/syscall, mem, fdinfo: timeouts and timers",
                "no look at /proc found it wholly blocked in a poll that tells what ended it",
            ),
            (
                "sleep.us",
                (timeline.sleeps > 0).then_some(sleep_us),
                "/proc/*/task/*/syscall, PERF_RECORD_SWITCH",
                "no thread was seen sleeping",
            ),
        ] {
            self.sampled_or(name, value, source, why);
        }
    }
    /// Adds the figures of threads that queue for a lock.
    fn lock_queues(&mut self) {
        let queue = self.watch.queue();
        let waiters = queue.as_ref().map(|queue| queue.waiters);
        self.sampled_or("lock.waiters", waiters, SYSCALL, NO_FUTEX);
        let source = "/proc/*/task/*/syscall, sched_waking or PERF_RECORD_SWITCH";
        let (locked, why) = match &queue {
            Some(queue) => (
                queue.locked,
                "neither who wakes whom nor who ran how long is known",
            ),
            None => (None, NO_FUTEX),
        };
        self.sampled_or("lock.held_share", locked, source, why);
    }

    /// Adds whether goroutines may wait for locks. Such a wait is in no system call, so it is not
    /// seen.
    fn goroutines(&mut self, has_goroutines: bool) {
        let why = "waits of goroutines cannot be seen: the runtime of Go parks them itself";
        let none = (!has_goroutines).then_some(0.0);
        self.sampled_or("lock.goroutines", none, "cpu-clock: no code of Go ran", why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::record::{Event, What};
    use crate::probe::timeline::Timeline;
    use crate::probe::watch::Options;
    use crate::sys::now_ns;

    /// A program that ended before the first look at it was blocked for all of its time.
    #[test]
    fn without_a_look_no_state_is_known() {
        let own = std::process::id().cast_signed();
        let options = Options {
            events: false,
            ..Options::default()
        };
        let mut watch = Watch::begin(&[(own, own)], &options);
        watch.end();
        let evidence = evidence(&mut watch, None);
        for name in ["state.running", "state.blocked", "threads.busy"] {
            assert_eq!(evidence.value(name), None, "{name}");
        }
    }

    /// Returns the figures of a program that computed for 1 s, where the doctor had no core for 9 s
    /// after the last record. Without a mapping, the kernel ended the events at that record, as the
    /// program got the rights of another user.
    fn seen_late(is_mapped: bool) -> Evidence {
        let own = std::process::id().cast_signed();
        let options = Options {
            events: false,
            ..Options::default()
        };
        let mut watch = Watch::begin(&[(own, own)], &options);
        watch.perf = Ok(Perf::none());
        let from_ns = now_ns() - 10_000_000_000;
        watch.timeline = Timeline::new(from_ns, false);
        watch.timeline.adopt(7, 7, "a");
        let (name, exec) = ("b".into(), true);
        let mapping = is_mapped.then(|| What::Mapped(Box::default()));
        let begins = [What::In, What::Named { name, exec }];
        let events = begins.into_iter().chain(mapping).map(|what| (0, what));
        for (after_ns, what) in events.chain([(1_000_000_000, What::Exited)]) {
            let event = Event {
                time_ns: from_ns + after_ns,
                core: 0,
                pid: 7,
                tid: 7,
                what,
            };
            watch.timeline.apply(&event, &mut |_| {});
        }
        watch.end();
        let used = Used {
            user_s: 1.0,
            ..Used::default()
        };
        let ended = Ended {
            used,
            ..Ended::default()
        };
        evidence(&mut watch, Some(&ended))
    }

    /// Where the doctor noticed the end late, it said that the kernel had ended the events, or its
    /// rates were too low.
    #[test]
    fn a_doctor_that_is_late_is_not_blind() {
        let evidence = seen_late(true);
        for name in ["time.wall", "cpu.used", "threads.busy", "state.running"] {
            assert_eq!(evidence.value(name), Some(1.0), "{name}");
        }
        let blind = seen_late(false);
        assert!(blind.value("time.wall") >= Some(10.0));
        let state = blind.reading("state.running").expect("it is a figure");
        assert_eq!(state.value, None);
        assert!(
            state.source.starts_with("the kernel ended the events"),
            "{state:?}"
        );
    }

    /// 2,700 processes that `xargs` started in 5 s, as a user without kernel stacks sees them: the
    /// system share was 0.20, where kernel stacks have 0.70.
    #[test]
    fn brief_processes_are_mostly_the_kernels() {
        let started = (2..2_702).map(|pid| (pid, 900_000));
        let share = brief_share(started.chain([(1, 200_000_000), (1, 300_000_000)]));
        assert!((0.8..0.9).contains(&share), "{share}");
        // Threads of one process are not brief each.
        let threads = (0..100).map(|_| (1, 900_000));
        assert_eq!(brief_share(threads), 0.0);
        assert_eq!(brief_share([].into_iter()), 0.0);
    }

    /// A Java program that waits by `Thread.yield`: its own time is mostly in the virtual machine,
    /// but nearly all calls that it is sampled next to are this one. The estimate was 0.44, and
    /// 0.85 as root.
    #[test]
    fn the_kernels_time_goes_by_the_calls_it_is_for() {
        let ticks = |yields, calls| {
            let mut ticks = Samples::default();
            (ticks.user, ticks.yields, ticks.calls) = (100, yields, calls);
            ticks
        };
        let share = yields_by_code(&ticks(44, 46), 0.15, 0.85);
        assert!((share - 0.88).abs() < 0.01, "{share}");
        let half = yields_by_code(&ticks(10, 20), 0.5, 0.5);
        assert!((half - 0.3).abs() < 1e-9, "{half}");
        assert_eq!(yields_by_code(&Samples::default(), 1.0, 0.0), 0.0);
    }
}
