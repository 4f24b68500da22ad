//! From what was seen to the figures.

use crate::evidence::{Evidence, Quality};
use crate::observe::Watch;
use crate::probe::calls::{self, Class};
use crate::probe::timeline::Thread;
use crate::probe::waits::Cause;
use crate::sys::Ended;

/// A thread that ran or wanted to this part of its life, and spun in that part of its ticks.
const SPINNER_BUSY_SHARE: f64 = 0.9;
const SPINNER_PAUSE_SHARE: f64 = 0.25;
const SPINNER_TICKS_MIN: u64 = 20;

struct Figures<'a> {
    watch: &'a Watch,
    evidence: Evidence,
    wall_s: f64,
    cpu_s: f64,
    system_s: f64,
}

pub(crate) fn evidence(watch: &Watch, ended: Option<&Ended>) -> Evidence {
    let timeline = &watch.timeline;
    let wall_s = (watch.to_ns.saturating_sub(timeline.from_ns) as f64 / 1e9).max(1e-9);
    let mut figures = Figures {
        watch,
        evidence: Evidence::new(),
        wall_s,
        cpu_s: timeline.totals.ran_ns as f64 / 1e9,
        system_s: 0.0,
    };
    figures.put("time.wall", wall_s, "CLOCK_MONOTONIC");
    if let Some(ended) = ended {
        figures.usage(ended);
    }
    figures.threads();
    figures.schedule();
    figures.ticks();
    figures.calls();
    figures.waits();
    figures.host();
    figures.evidence
}

impl Figures<'_> {
    fn put(&mut self, name: &str, value: f64, source: &str) {
        self.evidence.put(name, value, Quality::Exact, source);
    }

    fn sampled(&mut self, name: &str, value: f64, source: &str) {
        self.evidence.put(name, value, Quality::Sampled, source);
    }

    /// From records: exact, unless some were lost.
    fn recorded(&mut self, name: &str, value: f64, source: &str) {
        let lost = self.watch.timeline.totals.lost;
        match lost {
            0 => self.put(name, value, source),
            _ => self.sampled(name, value, &format!("{source}; {lost} records were lost")),
        }
    }

    fn usage(&mut self, ended: &Ended) {
        self.cpu_s = ended.user_s + ended.system_s;
        self.system_s = ended.system_s;
        let wall_s = self.wall_s;
        self.put(
            "cpu.used",
            self.cpu_s / wall_s,
            "wait4: ru_utime + ru_stime",
        );
        let share = if self.cpu_s > 0.0 {
            ended.system_s / self.cpu_s
        } else {
            0.0
        };
        self.put("cpu.system_share", share, "wait4: ru_stime");
        self.put(
            "fault.minor",
            ended.faults_minor as f64 / wall_s,
            "wait4: ru_minflt",
        );
        self.put(
            "fault.major",
            ended.faults_major as f64 / wall_s,
            "wait4: ru_majflt",
        );
        let bytes = |blocks: u64| blocks as f64 * 512.0 / wall_s;
        self.put("io.read", bytes(ended.blocks_read), "wait4: ru_inblock");
        self.put(
            "io.written",
            bytes(ended.blocks_written),
            "wait4: ru_oublock",
        );
    }

    fn all_threads(&self) -> impl Iterator<Item = (i32, &Thread)> {
        let timeline = &self.watch.timeline;
        let alive = timeline.threads.iter().map(|(&tid, thread)| (tid, thread));
        alive.chain(timeline.gone.iter().map(|(tid, thread)| (*tid, thread)))
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
        let affinity = self.watch.usable_cores;
        let quota = self.watch.host.1.quota;
        let usable = quota.map_or(affinity, |quota| quota.min(affinity));
        self.put("cpu.usable", usable, "sched_getaffinity, cpu.max");
    }

    fn schedule(&mut self) {
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

    fn ticks(&mut self) {
        let ticks = &self.watch.ticks;
        let kernel = self.watch.perf.as_ref().is_ok_and(|perf| perf.kernel);
        if ticks.all == 0 {
            for name in [
                "spin.cpu_share",
                "yield.cpu_share",
                "fault.cpu_share",
                "call.cpu_share",
            ] {
                self.evidence.lack(name, "cpu-clock: no sample");
            }
            self.evidence
                .lack("threads.spinners", "cpu-clock: no sample");
            return;
        }
        // Without the kernel's ticks, those of the program stand for its own time only.
        let user_share = 1.0 - self.system_s / self.cpu_s.max(1e-9);
        let scale = if kernel {
            1.0
        } else {
            user_share.clamp(0.0, 1.0)
        };
        let spin = ticks.pause as f64 / ticks.all as f64 * scale;
        self.sampled("spin.cpu_share", spin, "cpu-clock, bytes of the code");
        let spins = |(tid, thread): &(i32, &Thread)| {
            let busy_ns = thread.ran_ns + thread.waited_ns;
            let life_ns = busy_ns + thread.blocked_ns;
            let of = ticks.threads.get(tid).copied().unwrap_or_default();
            busy_ns as f64 > SPINNER_BUSY_SHARE * life_ns as f64
                && of.all >= SPINNER_TICKS_MIN
                && of.pause as f64 >= SPINNER_PAUSE_SHARE * of.all as f64
        };
        let spinners = self.all_threads().filter(spins).count();
        self.sampled(
            "threads.spinners",
            spinners as f64,
            "PERF_RECORD_SWITCH, cpu-clock",
        );
        let faults: &[&str] = &[
            "asm_exc_page_fault",
            "exc_page_fault",
            "handle_mm_fault",
            "el0_da",
        ];
        let calls: &[&str] = &[
            "do_syscall_64",
            "do_el0_svc",
            "entry_SYSCALL_64_after_hwframe",
        ];
        let yields: &[&str] = &[
            "__do_sys_sched_yield",
            "do_sched_yield",
            "__arm64_sys_sched_yield",
        ];
        let shares = kernel
            .then(|| ticks.kernel_shares([faults, calls, yields]))
            .flatten();
        let names = ["fault.cpu_share", "call.cpu_share", "yield.cpu_share"];
        match shares {
            Some(shares) => {
                for (name, share) in names.into_iter().zip(shares) {
                    self.sampled(name, share, "cpu-clock, stacks of the kernel");
                }
            }
            None => {
                for name in names {
                    self.evidence
                        .lack(name, "stacks of the kernel are for root only");
                }
            }
        }
    }

    fn calls(&mut self) {
        let watch = self.watch;
        let wall_s = self.wall_s;
        let Some(total) = watch.calls_total else {
            let why = match &watch.perf {
                Ok(perf) => perf
                    .missing("sys_enter")
                    .unwrap_or("it was not counted")
                    .to_string(),
                Err(why) => why.to_string(),
            };
            let names = ["all", "yield", "futex", "sleep", "poll", "io"];
            for name in names {
                self.evidence
                    .lack(&format!("call.{name}"), format!("sys_enter: {why}"));
            }
            return self.polls(watch.waits.polls as f64, watch.waits.polls_timed as f64);
        };
        self.put("call.all", total as f64 / wall_s, "raw_syscalls:sys_enter");
        let seen: f64 = watch.calls.values().sum();
        let of = |wanted: &[Class]| {
            let matching = |(number, count): (&u64, &f64)| {
                if wanted.contains(&calls::class(*number)) {
                    *count
                } else {
                    0.0
                }
            };
            let found: f64 = watch.calls.iter().map(matching).sum();
            found / seen.max(1.0) * total as f64 / wall_s
        };
        let classes: [(&str, &[Class]); 5] = [
            ("call.yield", &[Class::Yield]),
            ("call.futex", &[Class::Futex]),
            ("call.sleep", &[Class::Sleep]),
            ("call.poll", &[Class::Poll]),
            ("call.io", &[Class::File, Class::Stream, Class::Disk]),
        ];
        for (name, wanted) in classes {
            self.sampled(name, of(wanted), "raw_syscalls:sys_enter");
        }
        self.polls(watch.polls.0, watch.polls.1);
    }

    fn polls(&mut self, all: f64, timed: f64) {
        match all > 0.0 {
            true => self.sampled("poll.timed_share", timed / all, "arguments of system calls"),
            false => self
                .evidence
                .lack("poll.timed_share", "no call that polls was seen"),
        }
    }

    fn waits(&mut self) {
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
            self.recorded("host.others", cores, "PERF_RECORD_SWITCH_CPU_WIDE");
        } else {
            let busy_s = after.busy_s - before.busy_s - self.cpu_s - self.watch.own_s;
            self.sampled(
                "host.others",
                (busy_s / wall_s).max(0.0),
                "/proc/stat, less the program's",
            );
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
        for name in [
            "hardware.ipc",
            "hardware.miss_rate",
            "hardware.memory_share",
        ] {
            self.evidence
                .lack(name, "hardware counters are not read yet");
        }
        self.evidence
            .lack("io.delay_share", "kernel.task_delayacct is off");
    }
}
