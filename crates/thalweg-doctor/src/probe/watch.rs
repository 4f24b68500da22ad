//! Runs all probes.

use crate::probe::ebpf::Pace;
use crate::probe::futex::{InferredWakes, LockQueue, ThreadTotals, Wakes};
use crate::probe::host::{Host, Processes};
use crate::probe::memory::Memory;
use crate::probe::overhead::OverheadBudget;
use crate::probe::perf::Perf;
use crate::probe::procfs::{Scheduled, Usage};
use crate::probe::record::{Event, What};
use crate::probe::recorder::{Recorder, weighed};
use crate::probe::samples::Samples;
use crate::probe::symbols::Symbols;
use crate::probe::syscall::CallCounts;
use crate::probe::thread::Thread;
use crate::probe::timeline::Timeline;
use crate::probe::tree;
use crate::probe::waits::Waits;
use crate::recording::Recording;
use crate::sys::{self, cpu_s, now_ns};
use rustix::time::ClockId;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The share of one core that sampling `/proc` may cost.
const COST_SHARE: f64 = 0.02;
/// The minimum time between two samples of `/proc`.
const SAMPLE_NS_MIN: u64 = 10_000_000;
/// The factor by which samples are more frequent between two gaps in the records.
const WINDOW_SAMPLES: u64 = 5;
/// The maximum time between two readings of the records: mapped files are opened then.
const DRAIN_NS_MAX: u64 = 50_000_000;
/// The time between two samples of the machine and of the resources that processes used.
const HOST_NS: u64 = 200_000_000;
/// The maximum number of processes whose mappings are read again after records were lost.
const PROCESSES_MAX: usize = 64;
/// The maximum delay of records from other cores that belong before a record.
const LATE_NS: u64 = 2_000_000;

fn own_cpu_s() -> f64 {
    cpu_s(ClockId::ProcessCPUTime)
}

/// The options of an observation.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time that a program that was asked to end may take to do so before it is killed.
    pub grace: Duration,
    /// Whether the kernel's events are used. Without them, `/proc` is the only source.
    pub events: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            grace: Duration::from_secs(5),
            events: true,
        }
    }
}

/// The observations of all probes.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) perf: io::Result<Perf>,
    pub(crate) timeline: Timeline,
    pub(crate) waits: Waits,
    pub(crate) wakes: Wakes,
    /// The inferred wake-ups, where wake-ups are not recorded.
    turns: Option<InferredWakes>,
    pub(crate) samples: Samples,
    pub(crate) memory: Memory,
    pub(crate) symbols: Symbols,
    /// The counts of system calls; `None` where they are not counted.
    pub(crate) calls: Option<CallCounts>,
    pub(crate) usage: Usage,
    pub(crate) budget: OverheadBudget,
    /// The machine's figures at the start and at the end.
    pub(crate) host: (Host, Host),
    pub(crate) machine: Processes,
    pub(crate) usable_cores: f64,
    /// The processes that still existed at the end.
    pub(crate) left: Vec<i32>,
    /// The processor time of the doctor itself.
    pub(crate) own_s: f64,
    /// The time at which the program ended, or else the observation.
    pub(crate) to_ns: u64,
    /// The time at which the machine's figures were last read.
    host_ns: u64,
    recorder: Recorder,
    /// The run time of all threads at the end of the last span in which calls were counted or not
    /// counted.
    span_from_ns: u64,
    /// The records before which others may still have to be inserted.
    early: Vec<Event>,
    next_sample_ns: u64,
    next_host_ns: u64,
    /// The number of records that were lost when mappings were last read.
    lost: u64,
}

impl Watch {
    /// Begins with the existing threads (process, thread), of which there is at least one.
    pub(crate) fn begin(threads: &[(i32, i32)], options: &Options) -> Watch {
        let tids: Vec<i32> = threads.iter().map(|&(_, tid)| tid).collect();
        let perf = match options.events {
            true => Perf::open(&tids),
            false => Err(io::Error::other("not asked for")),
        };
        let whole = perf.as_ref().is_ok_and(Perf::is_whole_machine);
        let is_missing = |perf: &Perf| perf.missing("sched_wakeup").is_some();
        let turns = perf
            .as_ref()
            .is_ok_and(is_missing)
            .then(InferredWakes::default);
        let host = Host::read(threads[0].0);
        let usage = Usage::begin(threads.iter().map(|&(pid, _)| pid));
        let from_ns = now_ns();
        let mut watch = Watch {
            timeline: Timeline::new(from_ns, whole),
            perf,
            waits: Waits::default(),
            wakes: Wakes::default(),
            turns,
            samples: Samples::default(),
            memory: Memory::default(),
            symbols: Symbols::default(),
            calls: None,
            usage,
            budget: OverheadBudget::new(from_ns, whole),
            host: (host.clone(), host),
            machine: Processes::now(),
            usable_cores: 1.0,
            left: Vec::new(),
            own_s: own_cpu_s(),
            to_ns: from_ns,
            host_ns: from_ns,
            recorder: Recorder::new(from_ns),
            span_from_ns: 0,
            early: Vec::new(),
            next_sample_ns: 0,
            next_host_ns: 0,
            lost: 0,
        };
        for &(pid, tid) in threads {
            if watch.timeline.adopt(pid, tid, &tree::name(pid, tid)) {
                watch.memory.adopt(pid);
            }
            if let (true, Some(it)) = (watch.perf.is_err(), watch.timeline.threads.get_mut(&tid)) {
                it.begin_account(Scheduled::of(pid, tid));
            }
        }
        watch.usable_cores = tree::usable_cores(&watch.timeline).unwrap_or(1.0);
        if let Ok(perf) = &mut watch.perf {
            watch.calls = perf
                .missing("sys_enter")
                .is_none()
                .then(CallCounts::default);
            perf.set_counting(true);
            // From now on there is a record when one of these blocks.
            tree::adopt_wanting(&mut watch.timeline, threads);
            if let Some(cost) = perf.measure_call_cost() {
                watch.budget.set_call_cost(cost);
                // The records of the measurement are not a cost of the observation; those of the
                // program are kept.
                perf.drain(&mut watch.early);
            }
        }
        watch
    }

    /// Waits until a file is readable, a ring buffer fills up, the next sample is due, or
    /// `until_ns`.
    pub(crate) fn wait(&self, files: &[BorrowedFd<'_>], until_ns: u64) -> io::Result<()> {
        let rings = self.perf.iter().flat_map(Perf::files);
        let files = files.iter().copied().chain(rings);
        sys::wait_readable(files, self.wait_ns(until_ns, now_ns())).map(drop)
    }

    fn wait_ns(&self, until_ns: u64, now_ns: u64) -> u64 {
        let due_ns = self.next_sample_ns.min(self.budget.next_ns()).min(until_ns);
        due_ns.saturating_sub(now_ns).min(DRAIN_NS_MAX)
    }

    /// Reads the records, and samples `/proc` if it is time to. `pid` is the first process.
    pub(crate) fn round(&mut self, pid: i32) {
        let began_ns = now_ns();
        self.read_records(began_ns.saturating_sub(LATE_NS));
        self.set_pace();
        if began_ns < self.next_sample_ns {
            return;
        }
        // The processor time is measured, not the elapsed time: on a busy machine a sample of 1 ms
        // takes 35, and the next one would be due after 1.8 s.
        let before_s = cpu_s(ClockId::ThreadCPUTime);
        let host = began_ns >= self.next_host_ns;
        if self.perf.is_err() || (host && self.timeline.totals.lost > 0) {
            tree::adopt_children(&mut self.timeline, self.perf.is_ok());
        }
        let lost = self.timeline.totals.lost;
        if host && std::mem::replace(&mut self.lost, lost) < lost {
            // Records of mappings may be among these.
            let processes = self.timeline.processes.iter().take(PROCESSES_MAX);
            processes.for_each(|&pid| self.memory.adopt(pid));
        }
        let by_state = self.perf.is_err();
        (self.waits).sample(&mut self.timeline, &mut self.memory, by_state);
        self.early.extend(self.waits.seen_blocked(&self.timeline));
        if host {
            self.host.1.read_for(pid, &self.timeline.processes);
            self.host.0.begin_with(&self.host.1);
            self.usage.sample(self.timeline.processes.iter().copied());
            self.usable_cores = tree::usable_cores(&self.timeline).unwrap_or(self.usable_cores);
            self.next_host_ns = began_ns + HOST_NS;
        }
        let cost_s = cpu_s(ClockId::ThreadCPUTime) - before_s;
        let pause_ns = (cost_s * 1e9 / COST_SHARE) as u64;
        // Samples between two gaps are more frequent, as samples in gaps do not count.
        let is_window = self.timeline.gaps_ns() > 0 && self.budget.is_on();
        let pause_ns = pause_ns.max(SAMPLE_NS_MIN) / if is_window { WINDOW_SAMPLES } else { 1 };
        self.next_sample_ns = began_ns + pause_ns;
    }

    /// Starts or pauses the events that cost time for each record.
    fn set_pace(&mut self) {
        let call_ns = self.budget.call_s() * 1e9;
        let was_on = self.budget.is_on();
        let (spent_ns, besides_ns) = self.budget.spent_ns();
        let Some(pace) = self.budget.turn(now_ns()) else {
            return;
        };
        let Ok(perf) = &mut self.perf else { return };
        perf.set_pace(pace, self.budget.pauses_for_long());
        if perf.missing("sys_enter").is_some() {
            // If calls are no longer counted, their numbers are unknown.
            self.calls = None;
        }
        let now_ns = now_ns();
        self.read_records(now_ns);
        self.timeline.set_known(pace.is_on(), now_ns);
        let mut span = |span| self.recorder.add(span);
        if pace == Pace::Blind {
            (self.timeline).begin_gap(now_ns, spent_ns, Scheduled::of, &mut span);
        } else if self.timeline.in_gap() {
            if !self
                .timeline
                .end_gap(now_ns, Scheduled::with_state, &mut span)
            {
                self.waits.lose_sight();
            }
            self.next_sample_ns = now_ns;
        }
        self.end_span(was_on, call_ns, besides_ns);
    }

    /// Ends a span in which calls were counted, or were not; other records cost the program
    /// `besides_ns`.
    fn end_span(&mut self, counted: bool, call_ns: f64, besides_ns: f64) {
        let Some(calls) = &mut self.calls else { return };
        let ran_ns = self.timeline.totals.all.ran_ns;
        let span_ns = ran_ns - std::mem::replace(&mut self.span_from_ns, ran_ns);
        if !counted {
            return calls.end_pause(span_ns, call_ns);
        }
        let counted = calls.recorded();
        let each_ns = call_ns + besides_ns / counted.max(1) as f64;
        calls.end_window(counted, span_ns, each_ns);
    }

    /// Handles the records up to a time.
    fn read_records(&mut self, until_ns: u64) {
        let Ok(perf) = &mut self.perf else { return };
        let (whole, began_s) = (perf.is_whole_machine(), own_cpu_s());
        let mut events = std::mem::take(&mut self.early);
        let old = events.len();
        perf.drain(&mut events);
        self.budget.add_all(&events[old..], whole);
        events.sort_by_key(|event| event.time_ns);
        let now = events.partition_point(|event| event.time_ns <= until_ns);
        self.early = events.split_off(now);
        for event in events {
            self.waits.pass(event.time_ns, &self.timeline);
            self.add_wake(&event);
            let mut span = |span| self.recorder.add(span);
            if self.timeline.apply(&event, &mut span).is_some() {
                self.waits.end_idle(Some(event.tid), &self.timeline);
            }
            if self.timeline.processes.contains(&event.pid) {
                self.keep(event);
            } else if event.what == What::Exited {
                self.memory.clear(event.pid);
            }
        }
        self.waits.pass(until_ns, &self.timeline);
        self.budget.add_own(own_cpu_s() - began_s);
    }

    /// Handles a wake-up between two threads of the program, which a record reports or suggests.
    fn add_wake(&mut self, event: &Event) {
        let threads = &self.timeline.threads;
        let Some(woken) = threads.get(&event.tid) else {
            return;
        };
        let recorded = match event.what {
            What::Waking { waker } => waker.filter(|waker| threads.contains_key(waker)),
            _ => None,
        };
        let suggested = self.turns.as_mut().and_then(|turns| turns.see(event));
        for waker in recorded.into_iter().chain(suggested) {
            self.wakes.add(waker, event.tid);
            let words = &mut self.waits.words;
            words.wake(waker, event.tid, woken.since_ns, event.time_ns);
        }
    }

    fn keep(&mut self, event: Event) {
        let Event { pid, tid, .. } = event;
        match event.what {
            What::Sampled(stack) => {
                let name = self
                    .timeline
                    .threads
                    .get(&tid)
                    .map_or("", |thread| &*thread.name);
                self.samples.add((pid, tid), name, &stack, &mut self.memory);
            }
            What::Called {
                number,
                arguments,
                weight,
            } => {
                if let Some(calls) = &mut self.calls {
                    calls.add(number, &arguments, weight as f64);
                }
            }
            What::Mapped(mapping) => self.memory.add(pid, *mapping, event.time_ns),
            What::Forked { parent } => self.memory.fork(parent, pid),
            What::Named { exec: true, .. } => self.memory.clear(pid),
            _ => {}
        }
    }

    /// Returns the length of the observation.
    pub(crate) fn wall_s(&self) -> f64 {
        let wall_ns = self.to_ns.saturating_sub(self.timeline.from_ns);
        (wall_ns as f64 / 1e9).max(1e-9)
    }

    /// Returns the length of the time that the machine's figures are of. It ends when the doctor
    /// has noticed the program's end, which on a busy machine is some time later.
    pub(crate) fn host_s(&self) -> f64 {
        let host_ns = self.host_ns.saturating_sub(self.timeline.from_ns);
        (host_ns as f64 / 1e9).max(1e-9)
    }

    /// Handles that the program is asked to end, or is killed. The last look came before that, and
    /// so did the records up to it.
    pub(crate) fn interrupt(&mut self) {
        if let Some(looked_ns) = self.waits.last_look_ns() {
            self.read_records(looked_ns + 1);
        }
        self.waits.interrupt(&self.timeline);
    }

    /// Stops the probes, and handles the remaining records.
    pub(crate) fn end(&mut self) {
        self.host_ns = now_ns();
        if let Ok(perf) = &mut self.perf {
            perf.set_counting(false);
        }
        self.read_records(u64::MAX);
        self.add_lost_last();
        self.to_ns = self.timeline.end_ns().unwrap_or(self.host_ns);
        self.waits.end_idle(None, &self.timeline);
        self.timeline
            .close(self.to_ns, &mut |span| self.recorder.add(span));
        let (_, besides_ns) = self.budget.spent_ns();
        self.end_span(self.budget.is_on(), self.budget.call_s() * 1e9, besides_ns);
        if let Some(calls) = &mut self.calls {
            calls.end();
        }
        self.usage.sample(self.timeline.processes.iter().copied());
        let known = self.timeline.processes.iter().copied();
        let is_alive = |pid: &i32| tree::state(*pid, *pid) == Some(tree::State::Alive);
        self.left = known.filter(is_alive).collect();
        self.left.sort_unstable();
        // The control groups of the program can be found only while it exists.
        let host = Host::read(std::process::id().cast_signed());
        let (quota, throttled_s) = (
            self.host.1.quota,
            std::mem::take(&mut self.host.1.throttled_s),
        );
        self.host.1 = Host {
            quota,
            throttled_s,
            ..host
        };
        self.host.1.reread();
        self.own_s = own_cpu_s() - self.own_s;
    }

    /// Adds the records that were lost at the very end: no record follows that would report them.
    fn add_lost_last(&mut self) {
        let lost = self.perf.as_ref().map_or(0, Perf::lost);
        let more = lost.saturating_sub(self.timeline.totals.lost);
        if more > 0 {
            let (core, pid, tid) = (0, 0, 0);
            let event = Event {
                time_ns: self.host_ns,
                core,
                pid,
                tid,
                what: What::Lost(more),
            };
            self.timeline.apply(&event, &mut |_| {});
        }
    }

    /// Returns the longest queue at a lock; if there is none, the longest queue at a futex.
    pub(crate) fn queue(&self) -> Option<LockQueue> {
        let totals = |(tid, thread): (i32, &Thread)| {
            let (ran_ns, blocks) = (thread.ran_ns, thread.blocks);
            (tid, ThreadTotals { ran_ns, blocks })
        };
        let threads = self.timeline.all_threads().map(totals).collect();
        let words = &self.waits.words;
        words.queue(&self.wakes, &threads, self.wall_s())
    }

    /// Returns the data that a report draws.
    pub(crate) fn recording(mut self) -> Recording {
        let totals = self.timeline.totals;
        let on_cpu = self.samples.stacks(&mut self.symbols, &self.memory);
        let mut recording = self.recorder.finish(&self.timeline);
        recording.on_cpu = weighed(on_cpu, totals.all.ran_ns as f64);
        recording.off_cpu = weighed(
            (self.waits).stacks(&mut self.symbols, &self.memory),
            totals.all.blocked_ns as f64,
        );
        match &self.perf {
            Ok(perf) => recording.lacks.extend(perf.lacks()),
            Err(why) => recording.lacks.push(format!("perf_event_open: {why}")),
        }
        let gaps_ns = self.timeline.gaps_ns();
        if gaps_ns > 0 {
            let share = 100.0 * gaps_ns as f64 / recording.length_ns.max(1) as f64;
            recording.lacks.push(format!(
                "switches for {share:.0} % of the time, as they are too many: the spans of these \
                 times are estimates"
            ));
        }
        if totals.lost > 0 {
            recording
                .lacks
                .push(format!("{} records, as a ring was full", totals.lost));
        }
        recording
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::measure::alone;
    use crate::probe::blocked::{Cause, Files, Seen};
    use crate::probe::perf;
    use std::sync::atomic::{AtomicBool, Ordering};

    const WITHOUT_EVENTS: Options = Options {
        grace: Duration::ZERO,
        events: false,
    };

    /// A program that was looked at once, as it ended soon or the machine was busy, had used no
    /// time.
    #[test]
    fn without_events_one_look_shows_what_a_thread_used() {
        let own = std::process::id().cast_signed();
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let mut watch = Watch::begin(&[(own, tid)], &WITHOUT_EVENTS);
        let ran_ns = || Scheduled::of(own, tid).map_or(u64::MAX, |it| it.ran_ns);
        let before_ns = ran_ns();
        while ran_ns() == before_ns {
            std::hint::spin_loop();
        }
        watch.round(own);
        assert_eq!(watch.waits.rounds, 1);
        assert!(watch.timeline.threads[&tid].ran_ns > 0);
    }

    /// On a busy machine there were three looks in 9 s, and the one before each signal was dropped.
    #[test]
    fn the_look_before_a_signal_counts() {
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("1000").spawn().expect("there is sleep");
        let pid = child.id().cast_signed();
        let seen = || Files::default().wait(pid, pid);
        while !matches!(seen(), Seen::Blocked(wait) if wait.cause == Cause::Sleep) {
            std::thread::yield_now();
        }
        let mut watch = Watch::begin(&[(pid, pid)], &Options::default());
        watch.round(pid);
        watch.interrupt();
        child.kill().expect("it sleeps");
        child.wait().expect("it is killed");
        let critical = &watch.waits.critical;
        assert!(critical.contains_key(&Cause::Sleep), "{critical:?}");
    }

    /// A count that lacked them was called exact.
    #[test]
    fn records_that_are_lost_at_the_very_end_are_counted() {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let major = release.split('.').next().and_then(|word| word.parse().ok());
        if major < Some(6) {
            return println!("skipped: kernel {release} does not count them");
        }
        let core = perf::cores()[0].cast_unsigned() as usize;
        let own = std::process::id().cast_signed();
        // All of its records go to the ring of one core.
        let lost = alone(core, || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            let mut watch = Watch::begin(&[(own, tid)], &Options::default());
            for _ in 0..2 * FIT_MAX {
                rustix::thread::set_name(c"a").expect("a thread can name itself");
            }
            watch.end();
            watch.perf.is_ok().then_some(watch.timeline.totals.lost)
        });
        match lost.expect("it can be pinned") {
            None => println!("skipped: no events for this user"),
            Some(lost) => assert!(lost >= FIT_MAX, "{lost}"),
        }
    }

    /// The maximum number of records of a name of one byte that fit into a ring: header, process
    /// and thread, name, and the trailer take 56 bytes.
    const FIT_MAX: u64 = perf::RING_BYTES as u64 / 56;

    /// A thread that computed was blocked for as long as it had no record.
    #[test]
    fn a_thread_that_runs_already_is_not_blocked() {
        let (is_over, (named, name)) = (AtomicBool::new(false), std::sync::mpsc::channel());
        let watch = std::thread::scope(|scope| {
            scope.spawn(|| {
                let tid = rustix::thread::gettid().as_raw_nonzero().get();
                named.send(tid).expect("it is waited for");
                // ORDERING: Relaxed: nothing else depends on it.
                while !is_over.load(Ordering::Relaxed) {
                    (0..20_000).for_each(|_| std::hint::spin_loop());
                    std::thread::yield_now();
                }
            });
            let tid = name.recv().expect("it has an id");
            let own = std::process::id().cast_signed();
            let watch = Watch::begin(&[(own, tid)], &Options::default());
            // ORDERING: Relaxed, as above.
            is_over.store(true, Ordering::Relaxed);
            watch
        });
        if watch.perf.is_err() {
            return println!("skipped: no events for this user");
        }
        assert!(watch.timeline.is_busy());
    }

    /// A program whose records of mappings were lost had no function names.
    #[test]
    fn mappings_are_read_again_after_records_were_lost() {
        let own = std::process::id().cast_signed();
        let mut watch = Watch::begin(&[(own, own)], &WITHOUT_EVENTS);
        watch.memory.clear(own);
        watch.timeline.totals.lost = 7;
        watch.round(own);
        assert!(watch.memory.mapped(own, "/libc.so.6").is_some());
    }

    /// The doctor used to wait for the next sample, up to 1 s: programs that were replaced
    /// meanwhile had no names.
    #[test]
    fn records_are_read_although_no_sample_is_due() {
        let own = std::process::id().cast_signed();
        let mut watch = Watch::begin(&[(own, own)], &Options::default());
        watch.next_sample_ns = u64::MAX;
        assert_eq!(watch.wait_ns(u64::MAX, now_ns()), DRAIN_NS_MAX);
        let now_ns = now_ns();
        watch.next_sample_ns = now_ns + 7;
        assert_eq!(watch.wait_ns(u64::MAX, now_ns), 7);
    }
}
