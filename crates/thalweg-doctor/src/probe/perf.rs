//! The kernel's events: it determines which of them this user may open, and maps the ring buffers
//! that they are written to.

use crate::probe::btf::Layout;
use crate::probe::ebpf::EbpfPrograms;
use crate::probe::ebpf::Pace;
use crate::probe::overhead::CallCost;
use crate::probe::record::{Event, Kind, parse};
use crate::sys::{self, Ring};
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_BPF_OUTPUT, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY, PERF_SAMPLE_CALLCHAIN,
    PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_RAW, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// The size of the ring buffer of one core: with the right to lock memory, and without.
pub(crate) const RING_BYTES: usize = 4 << 20;
const RING_BYTES_FEW: usize = 512 << 10;
const RING_BYTES_MIN: usize = 64 << 10;

/// The scope of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The events are those of all programs, so it is known which thread has each core.
    Machine,
    /// The events are those of the program only.
    Program,
}

/// The open events and their ring buffers.
#[derive(Debug)]
pub(crate) struct Perf {
    scope: Scope,
    /// Whether the stacks contain kernel addresses.
    pub(crate) kernel: bool,
    rings: Vec<Ring>,
    /// For each core, the event that owns the ring buffer, and the events that write to it as well.
    carriers: Vec<File>,
    others: Vec<(Kind, File)>,
    kinds: Vec<(u64, Kind)>,
    programs: Option<EbpfPrograms>,
    /// The time of a system call before the programs at calls were attached.
    plain_call_s: f64,
    /// Whether switches come from an eBPF program rather than from an event.
    pub(crate) ebpf_switches: bool,
    /// The events that are unavailable, each with the reason.
    missing: Vec<(&'static str, String)>,
    bytes: Vec<u8>,
}

/// Returns the cores that exist, whether the program may use them or not.
pub(crate) fn cores() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut cores = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
            cores.extend(first..=last);
        }
    }
    cores
}

/// Returns whether the error means that the thread ended before it could be watched.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// Explains why eBPF programs are unavailable.
fn refused(why: io::Error) -> io::Error {
    let needs = match why.kind() {
        io::ErrorKind::PermissionDenied => ": needs root, or CAP_BPF and CAP_PERFMON",
        _ => "",
    };
    io::Error::new(why.kind(), format!("bpf: {why}{needs}"))
}

/// Returns whether this is the first PID namespace, whose thread ids the tracepoints report.
fn is_first_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

impl Perf {
    /// Opens the events that this user may have for the threads `tids`, and for all threads that
    /// they will start.
    pub(crate) fn open(tids: &[i32]) -> io::Result<Perf> {
        let cores = cores();
        let whole = Perf::with_carriers(Scope::Machine, true, &[-1], &cores);
        let kernel = || Perf::with_carriers(Scope::Program, true, tids, &cores);
        let user = |_| Perf::with_carriers(Scope::Program, false, tids, &cores);
        let mut perf = whole.or_else(|_| kernel()).or_else(user)?;
        let whole = perf.is_whole_machine();
        let tids = if whole { &[-1] } else { tids };
        perf.ebpf_switches = perf.add_ebpf_programs(&cores);
        let clocked = perf.add_clock(tids, &cores);
        if !perf.ebpf_switches && (whole || !clocked) {
            let mut attributes = switches(perf.kernel);
            attributes.set_inherit(u64::from(!whole));
            perf.add(&attributes, Kind::Switches, tids, &cores)?;
        }
        Ok(perf)
    }

    /// Returns no events, as if the user may have some.
    #[cfg(test)]
    pub(crate) fn none() -> Perf {
        Perf::with_carriers(Scope::Program, false, &[0], &[]).expect("no event is opened")
    }

    fn with_carriers(scope: Scope, kernel: bool, tids: &[i32], cores: &[i32]) -> io::Result<Perf> {
        let mut perf = Perf {
            scope,
            kernel,
            rings: Vec::new(),
            carriers: Vec::new(),
            others: Vec::new(),
            kinds: Vec::new(),
            programs: None,
            plain_call_s: 0.0,
            ebpf_switches: false,
            missing: Vec::new(),
            bytes: Vec::new(),
        };
        let mut attributes = carrier(kernel);
        attributes.set_inherit(u64::from(scope == Scope::Program));
        attributes.set_watermark(1);
        let mut bytes = if kernel { RING_BYTES } else { RING_BYTES_FEW };
        attributes.__bindgen_anon_2.wakeup_watermark = (RING_BYTES_FEW / 4) as u32;
        for &core in cores {
            let owner = sys::open_event(&attributes, tids[0], core)?;
            perf.rings.push(loop {
                match Ring::map(&owner, bytes) {
                    Err(_) if bytes > RING_BYTES_MIN => bytes /= 2,
                    ring => break ring?,
                }
            });
            perf.kinds.push((sys::event_id(&owner)?, Kind::Carrier));
            perf.carriers.push(owner);
        }
        perf.add(&attributes, Kind::Carrier, &tids[1..], cores)?;
        Ok(perf)
    }

    /// Opens an event for each thread on each core, which is written to the core's ring buffer.
    fn add(
        &mut self,
        attributes: &perf_event_attr,
        kind: Kind,
        tids: &[i32],
        cores: &[i32],
    ) -> io::Result<()> {
        for &tid in tids {
            for (&core, owner) in cores.iter().zip(&self.carriers) {
                let event = match sys::open_event(attributes, tid, core) {
                    Err(error) if is_gone(&error) => continue,
                    event => event?,
                };
                sys::redirect(&event, owner)?;
                self.kinds.push((sys::event_id(&event)?, kind));
                self.others.push((kind, event));
            }
        }
        Ok(())
    }

    /// Adds the clock. Returns whether it is available. A per-thread event has a cost at each
    /// switch of its thread, even while it does nothing, so the per-thread clock also records the
    /// switches.
    fn add_clock(&mut self, tids: &[i32], cores: &[i32]) -> bool {
        let is_program = u64::from(self.scope == Scope::Program);
        let mut attributes = clock(self.kernel);
        attributes.set_inherit(is_program);
        attributes.set_context_switch(is_program);
        let added = self.add(&attributes, Kind::Clock, tids, cores);
        self.note("cpu-clock", added)
    }

    /// Notes why something is unavailable, if it is. Returns whether it is available.
    fn note(&mut self, name: &'static str, done: io::Result<()>) -> bool {
        if let (Err(why), None) = (done, self.missing(name)) {
            self.missing.push((name, why.to_string()));
        }
        self.missing(name).is_none()
    }

    /// Attaches the eBPF programs. Returns whether switches come from them.
    fn add_ebpf_programs(&mut self, cores: &[i32]) -> bool {
        let mut programs = match self.new_ebpf_programs(cores) {
            Ok(programs) => programs,
            Err(why) => {
                self.missing.push(("sched_wakeup", why.to_string()));
                self.missing.push(("sys_enter", why.to_string()));
                return false;
            }
        };
        self.plain_call_s = call_s();
        let called = programs.add_calls();
        self.note("sys_enter", called);
        let layout = match is_first_namespace() {
            true => Layout::of_kernel(),
            false => Err(io::Error::other(
                "not in a container that has numbers of its own",
            )),
        };
        // Where the programs do not record switches, an event does.
        let mut switched = false;
        let woken = layout.and_then(|layout| {
            switched = programs.add_switches(&layout).is_ok();
            programs.add_wakes(&layout)
        });
        self.note("sched_wakeup", woken);
        self.programs = Some(programs);
        switched
    }

    fn new_ebpf_programs(&mut self, cores: &[i32]) -> io::Result<EbpfPrograms> {
        if self.scope != Scope::Machine {
            return Err(io::Error::other(
                "only where the events of all programs can be had",
            ));
        }
        self.add(&output(), Kind::Ebpf, &[-1], cores)?;
        let events = self.others.iter().filter(|(kind, _)| *kind == Kind::Ebpf);
        let events = events.map(|(_, event)| event);
        EbpfPrograms::new(cores.iter().copied().zip(events)).map_err(refused)
    }

    /// Returns the reason why an event is unavailable, if it is.
    pub(crate) fn missing(&self, name: &str) -> Option<&str> {
        self.missing
            .iter()
            .find(|(missing, _)| *missing == name)
            .map(|(_, why)| why.as_str())
    }

    /// Returns all that is unavailable, with the reasons.
    pub(crate) fn lacks(&self) -> impl Iterator<Item = String> {
        self.missing
            .iter()
            .map(|(name, why)| format!("{name}: {why}"))
    }

    /// Returns whether it is known which thread has each core.
    pub(crate) fn is_whole_machine(&self) -> bool {
        self.scope == Scope::Machine
    }

    /// Starts or stops all events.
    pub(crate) fn set_counting(&mut self, on: bool) {
        let pace = if on { Pace::Each } else { Pace::Blind };
        self.set_pace(pace, false);
        let others = self.others.iter().filter(|(kind, _)| !self.is_costly(kind));
        let others = others.map(|(_, event)| event);
        for event in self.carriers.iter().chain(others) {
            // An event of a thread that is gone has nothing to count.
            let _ = sys::set_counting(event, on);
        }
    }

    /// Returns whether an event costs time for each record. The clock does where it belongs to
    /// threads, because it is then set at each switch.
    fn is_costly(&self, kind: &Kind) -> bool {
        match kind {
            Kind::Switches => true,
            Kind::Clock => self.scope == Scope::Program,
            Kind::Carrier | Kind::Ebpf => false,
        }
    }

    /// Starts or stops the events that cost time for each record. `for_long` is whether a pause is
    /// a long one.
    pub(crate) fn set_pace(&mut self, pace: Pace, for_long: bool) {
        if let Some(programs) = &mut self.programs {
            let asked = programs.set_pace(pace, for_long);
            self.note("sys_enter", asked);
        }
        for (kind, event) in self.others.iter().filter(|(kind, _)| self.is_costly(kind)) {
            let is_kept = *kind == Kind::Switches && pace == Pace::Paused;
            let _ = sys::set_counting(event, pace.is_on() || is_kept);
        }
    }

    /// Measures the time that the programs at calls add to each call of this thread, which takes
    /// some ms and leaves their records in the rings. Returns `None` where calls are not recorded.
    /// All events must count, and do so afterwards.
    pub(crate) fn measure_call_cost(&mut self) -> Option<CallCost> {
        if self.missing("sys_enter").is_some() {
            return None;
        }
        let mut added_s = |pace| {
            self.set_pace(pace, false);
            (call_s() - self.plain_call_s).max(0.0)
        };
        let (idle_s, few_s, each_s) = (
            added_s(Pace::Paused),
            added_s(Pace::Few),
            added_s(Pace::Each),
        );
        Some(CallCost {
            each_s,
            few_s,
            idle_s,
        })
    }

    /// Adds the records since the last call to `events`, in order for each core.
    pub(crate) fn drain(&mut self, events: &mut Vec<Event>) {
        for ring in &mut self.rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            parse(&self.bytes, &self.kinds, events);
        }
    }

    /// Returns the number of all records that were lost so far, if the kernel counts them. A record
    /// of a loss is written only before the next record.
    pub(crate) fn lost(&self) -> u64 {
        let others = self.others.iter().map(|(_, event)| event);
        let all = self.carriers.iter().chain(others);
        all.map(sys::lost_records).sum()
    }

    /// Returns files that become readable when a ring buffer fills up.
    pub(crate) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.carriers.iter().map(|owner| owner.as_fd())
    }
}

/// Returns the time of a cheap system call of this thread in seconds, as the median of some rounds.
fn call_s() -> f64 {
    const ROUNDS: usize = 15;
    const CALLS: u32 = 200;
    let mut rounds_s = [0.0; ROUNDS];
    for round_s in &mut rounds_s {
        let from_ns = sys::now_ns();
        for _ in 0..CALLS {
            std::hint::black_box(rustix::process::getppid());
        }
        *round_s = (sys::now_ns() - from_ns) as f64 / 1e9 / f64::from(CALLS);
    }
    thalweg_measure::statistics::median(&rounds_s).expect("there are rounds")
}

/// The number of clock samples per second on each busy core, which is not a multiple of common
/// program frequencies.
const TICKS_HZ: u64 = 997;
const STACK_DEPTH: u16 = 64;

pub(crate) fn attributes(config: u64) -> perf_event_attr {
    let mut attributes = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        config,
        sample_type: u64::from(
            PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        ),
        clockid: rustix::time::ClockId::Monotonic as i32,
        ..perf_event_attr::default()
    };
    attributes.set_disabled(1);
    attributes.set_use_clockid(1);
    attributes.set_sample_id_all(1);
    attributes
}

fn carrier(kernel: bool) -> perf_event_attr {
    let mut attributes = attributes(PERF_COUNT_SW_DUMMY.into());
    attributes.set_task(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    attributes.set_exclude_kernel(u64::from(!kernel));
    attributes
}

pub(crate) fn switches(kernel: bool) -> perf_event_attr {
    let mut attributes = attributes(PERF_COUNT_SW_DUMMY.into());
    attributes.set_context_switch(1);
    attributes.set_exclude_kernel(u64::from(!kernel));
    attributes
}

pub(crate) fn clock(kernel: bool) -> perf_event_attr {
    let mut attributes = attributes(PERF_COUNT_SW_CPU_CLOCK.into());
    attributes.sample_type |= u64::from(PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
    attributes.set_freq(1);
    attributes.__bindgen_anon_1.sample_freq = TICKS_HZ;
    attributes.sample_max_stack = STACK_DEPTH;
    attributes.set_exclude_idle(1);
    attributes.set_exclude_kernel(u64::from(!kernel));
    attributes
}

/// Returns the attributes of the event that eBPF programs write to.
pub(crate) fn output() -> perf_event_attr {
    let mut attributes = attributes(PERF_COUNT_SW_BPF_OUTPUT.into());
    attributes.sample_type |= u64::from(PERF_SAMPLE_RAW);
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes
}

#[cfg(test)]
#[expect(clippy::disallowed_methods)] // sleeps that an interrupt ends are tested
mod tests {
    use super::*;
    use crate::probe::ebpf::CALLS_EVERY;
    use crate::probe::record::What;
    use rustix::fs::{Advice, fadvise};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use std::num::NonZeroU64;
    use std::os::fd::AsRawFd as _;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    /// Opens the events with eBPF programs, or skips the test.
    fn with_ebpf(name: &str) -> Option<Perf> {
        match Perf::open(&[tid()]).map(|perf| (perf.missing(name).map(String::from), perf)) {
            Ok((None, mut perf)) => {
                perf.set_counting(true);
                perf.set_pace(Pace::Blind, false);
                return Some(perf);
            }
            Ok((Some(why), _)) => println!("skipped: {why}"),
            Err(why) => println!("skipped: {why}"),
        }
        None
    }

    fn tid() -> i32 {
        rustix::thread::gettid().as_raw_nonzero().get()
    }

    fn drained(perf: &mut Perf) -> Vec<Event> {
        let mut events = Vec::new();
        perf.drain(&mut events);
        events
    }

    /// Skips the rest of a test if records were lost, as on a machine where others make many.
    fn skips_after_losses(perf: &Perf, events: &[Event]) -> bool {
        let reported = events.iter().filter_map(|it| match it.what {
            What::Lost(records) => Some(records),
            _ => None,
        });
        let lost = perf.lost().max(reported.sum());
        if lost > 0 {
            println!("skipped: {lost} records were lost");
        }
        lost > 0
    }

    #[test]
    fn each_call_is_reported_with_its_arguments_while_it_is_asked_for() {
        let Some(mut perf) = with_ebpf("sys_enter") else {
            return;
        };
        let own = tid();
        let file = File::open("/dev/null").unwrap();
        let mut seen = |pace, count: u64| -> Option<Vec<(u64, [u64; 4])>> {
            perf.set_pace(pace, true);
            for round in 0..count {
                fadvise(&file, round, NonZeroU64::new(7), Advice::Random).unwrap();
            }
            perf.set_pace(Pace::Blind, false);
            let events = drained(&mut perf);
            if skips_after_losses(&perf, &events) {
                return None;
            }
            let ours = events.into_iter().filter(|it| it.tid == own);
            let sent = ours.filter_map(|it| match it.what {
                What::Called {
                    number,
                    arguments,
                    weight,
                } if number == libc::SYS_fadvise64 as u64 => {
                    Some((weight, arguments[..4].try_into().unwrap()))
                }
                _ => None,
            });
            Some(sent.collect())
        };
        let Some(each) = seen(Pace::Each, 100) else {
            return;
        };
        let random = Advice::Random as u64;
        let descriptor = file.as_raw_fd() as u64;
        let expected = |round| (1, [descriptor, round, 7, random]);
        assert_eq!(each, (0..100).map(expected).collect::<Vec<_>>());
        let Some(none) = seen(Pace::Paused, 100) else {
            return;
        };
        assert_eq!(none, []);
        let Some(few) = seen(Pace::Few, 10_000) else {
            return;
        };
        assert!(few.iter().all(|it| it.0 == u64::from(CALLS_EVERY)));
        let weight: u64 = few.iter().map(|it| it.0).sum();
        // Calls of others on this core shift the sampling as well: if they come at random, a sum of
        // 10,000 varies by 360.
        assert!((7_000..13_000).contains(&weight), "{weight}");
    }

    fn is_blocked(tid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        stat.contains(") S ")
    }

    /// Waits until a thread is blocked. Each look makes calls, as do other programs, whose records
    /// would fill the rings if the thread had no core for long.
    fn await_blocked(tid: i32, perf: &mut Perf, events: &mut Vec<Event>) {
        loop {
            perf.drain(events);
            events.retain(|it| !matches!(it.what, What::Called { .. }));
            if is_blocked(tid) {
                break;
            }
            thread::yield_now();
        }
    }

    fn spin(is_over: &AtomicBool) {
        // ORDERING: Relaxed: nothing else depends on it.
        while !is_over.load(Ordering::Relaxed) {
            (0..20_000).for_each(|_| std::hint::spin_loop());
            thread::yield_now();
        }
    }

    #[test]
    fn wakes_are_reported_with_waker_and_core() {
        let Some(mut perf) = with_ebpf("sched_wakeup") else {
            return;
        };
        let (begun, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (mut peer, mut spinners, mut events) = (0, Vec::new(), Vec::new());
        thread::scope(|scope| {
            let (to_other, from_here) = channel();
            let (to_here, from_other) = channel();
            scope.spawn(move || {
                let answer = |()| to_here.send(tid()).unwrap();
                answer(());
                from_here.into_iter().for_each(answer);
            });
            // Timers expire while these threads have the cores, and run no call.
            let (names, named) = channel();
            for _ in 0..cores().len() {
                let (names, begun, is_over) = (names.clone(), &begun, &is_over);
                scope.spawn(move || {
                    names.send(tid()).unwrap();
                    // ORDERING: Release, pairs with the Acquire below: its wake-ups are done.
                    begun.fetch_add(1, Ordering::Release);
                    spin(is_over);
                });
            }
            spinners.extend(named.iter().take(cores().len()));
            // ORDERING: Acquire, pairs with the Release above.
            while begun.load(Ordering::Acquire) < spinners.len() {
                thread::yield_now();
            }
            peer = from_other.recv().unwrap();
            perf.set_pace(Pace::Each, false);
            for _ in 0..200 {
                thread::sleep(Duration::from_micros(200));
                await_blocked(peer, &mut perf, &mut events);
                to_other.send(()).unwrap();
                from_other.recv().unwrap();
            }
            perf.set_pace(Pace::Blind, false);
            // ORDERING: Relaxed, pairs with the load of `spin`.
            is_over.store(true, Ordering::Relaxed);
        });
        let (own, cores) = (tid(), cores());
        perf.drain(&mut events);
        if skips_after_losses(&perf, &events) {
            return;
        }
        let count = |of: i32, wanted: &dyn Fn(&What) -> bool| {
            let is_it = |it: &&Event| it.tid == of && wanted(&it.what);
            events.iter().filter(is_it).count()
        };
        let roused = |of, by| count(of, &|what| *what == What::Waking { waker: by });
        let by_us = roused(peer, Some(own));
        assert!((200..600).contains(&by_us), "{by_us}");
        assert!(roused(own, None) >= 100, "sleeps are ended by interrupts");
        for spinner in spinners {
            assert_eq!(roused(own, Some(spinner)), 0, "it only had the core");
        }
        let woken = count(peer, &|what| matches!(what, What::Woken { .. }));
        assert!((200..600).contains(&woken), "{woken}");
        assert!(events.iter().all(|it| is_at(it, &cores)));
    }

    /// Returns whether an event is no wake-up, or one on one of these cores.
    fn is_at(event: &Event, cores: &[i32]) -> bool {
        match event.what {
            What::Woken { target } => cores.contains(&target.cast_signed()),
            _ => true,
        }
    }

    /// This is a user who may open the events of the machine, but may not load eBPF programs.
    #[test]
    fn where_programs_are_refused_events_tell_switches() {
        // Capabilities belong to a thread, and end with this one.
        let seen = thread::spawn(|| {
            let mut rights = capabilities(None).unwrap();
            (rights.effective).remove(CapabilitySet::BPF | CapabilitySet::SYS_ADMIN);
            set_capabilities(None, rights).unwrap();
            let mut perf = Perf::open(&[tid()]).ok()?;
            if !perf.is_whole_machine() {
                return None;
            }
            perf.set_counting(true);
            (0..20).for_each(|_| thread::sleep(Duration::from_micros(200)));
            perf.set_counting(false);
            let own = tid();
            let events = drained(&mut perf);
            if skips_after_losses(&perf, &events) {
                return None;
            }
            let blocked = What::Out { preempted: false };
            let blocks = (events.iter()).filter(|it| it.tid == own && it.what == blocked);
            let why = perf.missing("sys_enter").unwrap_or_default().to_string();
            Some((perf.ebpf_switches, blocks.count(), why))
        });
        let Some((ebpf, blocks, why)) = seen.join().expect("it does not panic") else {
            return println!("skipped: no events of the machine without programs");
        };
        assert!(!ebpf && blocks >= 15, "{ebpf} {blocks}");
        assert!(
            why.ends_with("needs root, or CAP_BPF and CAP_PERFMON"),
            "{why}"
        );
    }
}
