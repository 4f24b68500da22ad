//! Computes the figures of where the processor time went.

use super::Figures;
use crate::probe::calls::Class;
use crate::probe::perf::Counter;
use crate::probe::ticks::{KernelShares, Ticks};
use crate::probe::{fault, timeline::Thread};

/// A thread counts as a spinner if it was running or runnable for this share of its life, and spun
/// in the following share of its samples.
const SPINNER_BUSY_SHARE: f64 = 0.9;
const SPINNER_PAUSE_SHARE: f64 = 0.25;
const SPINNER_TICKS_MIN: u64 = 20;

const CALLS: &[(&str, &[Class])] = &[
    ("call.yield", &[Class::Yield]),
    ("call.futex", &[Class::Futex]),
    ("call.sleep", &[Class::Sleep]),
    ("call.poll", &[Class::Poll]),
    ("call.io", &[Class::File, Class::Stream, Class::Disk]),
];

/// Estimates the yields of a program that yields in a loop, which is sampled where it returns from
/// the call. The estimate is the share of its own time next to that call, plus, of the kernel's
/// time for calls, the share that this call has among all calls that the program is sampled next
/// to.
fn yields_by_code(ticks: &Ticks, user_share: f64, call_share: f64) -> f64 {
    let of_user = ticks.yields as f64 / ticks.user.max(1) as f64;
    let of_calls = ticks.yields as f64 / ticks.calls.max(1) as f64;
    of_user * user_share + of_calls.min(1.0) * call_share
}

fn is_busy(thread: &Thread) -> bool {
    let busy_ns = thread.ran_ns + thread.waited_ns;
    busy_ns as f64 > SPINNER_BUSY_SHARE * (busy_ns + thread.blocked_ns) as f64
}

impl Figures<'_> {
    pub(super) fn all_threads(&self) -> impl Iterator<Item = (i32, &Thread)> {
        let timeline = &self.watch.timeline;
        let alive = timeline.threads.iter().map(|(&tid, thread)| (tid, thread));
        alive.chain(timeline.gone.iter().map(|(tid, thread)| (*tid, thread)))
    }

    pub(super) fn ticks(&mut self, kernel: Option<KernelShares>) {
        let ticks = &self.watch.ticks;
        if ticks.all == 0 {
            let why = match &self.watch.perf {
                Ok(perf) => perf.missing("cpu-clock").unwrap_or("no tick").to_string(),
                Err(why) => why.to_string(),
            };
            for name in ["spin.cpu_share", "threads.spinners", "yield.cpu_share"] {
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
        let spins = |(tid, thread): &(i32, &Thread)| {
            let of = ticks.threads.get(tid).copied().unwrap_or_default();
            is_busy(thread)
                && of.all >= SPINNER_TICKS_MIN
                && of.pause as f64 >= SPINNER_PAUSE_SHARE * of.all as f64
        };
        let spinners = self.all_threads().filter(spins).count();
        self.sampled(
            "threads.spinners",
            spinners as f64,
            "PERF_RECORD_SWITCH, cpu-clock",
        );
        if let Some(shares) = kernel {
            let source = "cpu-clock, stacks of the kernel";
            self.sampled("fault.cpu_share", shares.fault, source);
            self.sampled("call.cpu_share", shares.call, source);
            self.sampled("yield.cpu_share", shares.yields, source);
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
        let Some(cost_s) = fault::cost_s() else {
            self.evidence.lack(
                "fault.cpu_share",
                "the cost of a page fault could not be measured",
            );
            return self
                .evidence
                .lack("call.cpu_share", "the part of page faults is not known");
        };
        let system = self.system_share();
        let faults = self.evidence.value("fault.minor").unwrap_or(0.0) * self.wall_s;
        let share = (faults * cost_s / self.cpu_s.max(1e-9)).min(system);
        let source = format!("faults, at {:.2} µs each as measured here", cost_s * 1e6);
        self.sampled("fault.cpu_share", share, &source);
        self.sampled(
            "call.cpu_share",
            system - share,
            "time in the kernel, less page faults",
        );
    }

    pub(super) fn calls(&mut self) {
        let watch = self.watch;
        let Some(calls) = &watch.calls else {
            let why = match &watch.perf {
                Ok(perf) => perf
                    .missing("sys_enter")
                    .unwrap_or("it was not counted")
                    .to_string(),
                Err(why) => why.to_string(),
            };
            let why = format!("sys_enter: {why}");
            for name in ["call.all", "call.yield", "call.io"] {
                self.evidence.lack(name, &why);
            }
            self.polls_by_code(&why);
            return self.calls_by_blocks(&why);
        };
        self.called("call.all", calls.count());
        for &(name, classes) in CALLS {
            self.called(name, calls.count_of(classes));
        }
        let busy = calls.busy_share();
        self.sampled("poll.busy_share", busy, "raw_syscalls:sys_enter: timeouts");
    }

    /// Estimates polls without a count of calls: threads that hardly ever block poll without
    /// waiting, and the calls that they are sampled next to are the calls that they make.
    fn polls_by_code(&mut self, why: &str) {
        let ticks = &self.watch.ticks;
        if ticks.calls < SPINNER_TICKS_MIN {
            return self.evidence.lack("poll.busy_share", why);
        }
        let of = |tid: i32| ticks.threads.get(&tid).map_or(0, |of| of.polls);
        let busy = self.all_threads().filter(|(_, thread)| is_busy(thread));
        let polls: u64 = busy.map(|(tid, _)| of(tid)).sum();
        let share = polls as f64 / ticks.calls as f64;
        let source = "cpu-clock, bytes of the code beside system calls";
        self.sampled("poll.busy_share", share.min(1.0), source);
    }

    /// Estimates calls without a count of them: a thread blocks in the calls in which it is seen,
    /// and another thread calls futex once more to wake it, unless a timeout does.
    fn calls_by_blocks(&mut self, why: &str) {
        let watch = self.watch;
        let wakes = watch.waits.wake_share().unwrap_or(1.0);
        let mut counts = [0.0; 3];
        for (tid, thread) in self.all_threads() {
            if let Some(habit) = watch.waits.habits.get(&tid) {
                let blocks = thread.blocks as f64 / habit.blocked;
                counts[0] += (1.0 + wakes) * blocks * habit.futex;
                counts[1] += blocks * habit.sleep;
                counts[2] += blocks * habit.poll;
            }
        }
        for (name, count) in ["call.futex", "call.sleep", "call.poll"].iter().zip(counts) {
            match watch.perf.is_ok() {
                true => {
                    let source = "PERF_RECORD_SWITCH, /proc/*/task/*/syscall: calls that block";
                    self.sampled(name, count / self.wall_s, source);
                }
                false => self.evidence.lack(name, why),
            }
        }
    }

    /// Adds a total count of calls.
    fn called(&mut self, name: &str, count: f64) {
        let per_s = count / self.wall_s;
        match self.watch.ration.has_paused() {
            true => {
                let source = "raw_syscalls:sys_enter for a part of the time";
                self.sampled(name, per_s, source);
            }
            false => self.recorded(name, per_s, "raw_syscalls:sys_enter"),
        }
    }

    pub(super) fn hardware(&mut self) {
        let count = |counter| {
            self.watch
                .perf
                .as_ref()
                .ok()?
                .count(counter)
                .map(|n| n as f64)
        };
        let cycles = count(Counter::Cycles).filter(|&cycles| cycles > 0.0);
        let instructions = count(Counter::Instructions).zip(cycles);
        let misses = count(Counter::Misses).filter(|_| self.cpu_s > 0.0);
        let why = match &self.watch.perf {
            Ok(perf) => perf
                .missing("hardware")
                .unwrap_or("it did not run")
                .to_string(),
            Err(why) => why.to_string(),
        };
        match instructions {
            Some((instructions, cycles)) => {
                self.put(
                    "hardware.ipc",
                    instructions / cycles,
                    "PERF_COUNT_HW_INSTRUCTIONS",
                );
            }
            None => self
                .evidence
                .lack("hardware.ipc", format!("hardware counters: {why}")),
        }
        match misses {
            Some(misses) => {
                let per_s = misses / self.cpu_s;
                self.put("hardware.miss_rate", per_s, "PERF_COUNT_HW_CACHE_MISSES");
            }
            None => self
                .evidence
                .lack("hardware.miss_rate", format!("hardware counters: {why}")),
        }
        let why = "the top-down events of the processor are not read";
        self.evidence.lack("hardware.memory_share", why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Java program that waits by `Thread.yield`: its own time is mostly in the virtual machine,
    /// but nearly all calls that it is sampled next to are this one. The estimate was 0.44, and
    /// 0.85 as root.
    #[test]
    fn the_kernels_time_goes_by_the_calls_it_is_for() {
        let ticks = |yields, calls| {
            let mut ticks = Ticks::default();
            (ticks.user, ticks.yields, ticks.calls) = (100, yields, calls);
            ticks
        };
        let share = yields_by_code(&ticks(44, 46), 0.15, 0.85);
        assert!((share - 0.88).abs() < 0.01, "{share}");
        let half = yields_by_code(&ticks(10, 20), 0.5, 0.5);
        assert!((half - 0.3).abs() < 1e-9, "{half}");
        assert_eq!(yields_by_code(&Ticks::default(), 1.0, 0.0), 0.0);
    }
}
