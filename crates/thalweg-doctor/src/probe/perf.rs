//! The kernel's events: it determines which of them this user may open, and maps the ring buffers
//! that they are written to.

#[cfg(test)]
mod tests;

use super::attributes::{attributes, carrier, clock, output, switches};
use super::btf::Layout;
use super::hooks::Hooks;
use super::ration::Pace;
use super::record::{Event, Kind, parse};
use crate::sys::{self, Ring};
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
    PERF_TYPE_HARDWARE, perf_event_attr,
};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};

/// The size of the ring buffer of one core: with the right to lock memory, and without.
const RING_BYTES: usize = 4 << 20;
const RING_BYTES_FEW: usize = 512 << 10;
const RING_BYTES_MIN: usize = 64 << 10;

/// The scope of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The events are those of all programs, so it is known which thread has each core.
    Machine,
    /// The events are those of the program only.
    Program,
}

/// An event that is counted over all threads, and not recorded one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    Cycles,
    Instructions,
    Misses,
}

/// The open events and their ring buffers.
#[derive(Debug)]
pub(crate) struct Perf {
    pub(crate) scope: Scope,
    /// Whether the stacks contain kernel addresses.
    pub(crate) kernel: bool,
    rings: Vec<Ring>,
    /// For each core, the event that owns the ring buffer, and the events that write to it as well.
    carriers: Vec<File>,
    others: Vec<(Kind, File)>,
    kinds: Vec<(u64, Kind)>,
    counters: Vec<(Counter, File)>,
    hooks: Option<Hooks>,
    /// Whether switches come from an eBPF program rather than from an event.
    pub(crate) hooks_switches: bool,
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
        perf.hooks_switches = perf.add_hooks(&cores);
        let clocked = perf.add_clock(tids, &cores);
        if !perf.hooks_switches && (whole || !clocked) {
            let mut attributes = switches(perf.kernel);
            attributes.set_inherit(u64::from(!whole));
            perf.add(&attributes, Kind::Switches, tids, &cores)?;
        }
        perf.add_hardware(tids);
        Ok(perf)
    }

    fn with_carriers(scope: Scope, kernel: bool, tids: &[i32], cores: &[i32]) -> io::Result<Perf> {
        let mut perf = Perf {
            scope,
            kernel,
            rings: Vec::new(),
            carriers: Vec::new(),
            others: Vec::new(),
            kinds: Vec::new(),
            counters: Vec::new(),
            hooks: None,
            hooks_switches: false,
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
    fn add_hooks(&mut self, cores: &[i32]) -> bool {
        let mut hooks = match self.new_hooks(cores) {
            Ok(hooks) => hooks,
            Err(why) => {
                self.missing.push(("sched_wakeup", why.to_string()));
                self.missing.push(("sys_enter", why.to_string()));
                return false;
            }
        };
        let called = hooks.add_calls();
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
            switched = hooks.add_switches(&layout).is_ok();
            hooks.add_wakes(&layout)
        });
        self.note("sched_wakeup", woken);
        self.hooks = Some(hooks);
        switched
    }

    fn new_hooks(&mut self, cores: &[i32]) -> io::Result<Hooks> {
        if self.scope != Scope::Machine {
            return Err(io::Error::other(
                "only where the events of all programs can be had",
            ));
        }
        self.add(&output(), Kind::Hook, &[-1], cores)?;
        let events = self.others.iter().filter(|(kind, _)| *kind == Kind::Hook);
        let events = events.map(|(_, event)| event);
        Hooks::new(cores.iter().copied().zip(events)).map_err(refused)
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

    fn add_counter(
        &mut self,
        attributes: &perf_event_attr,
        counter: Counter,
        tids: &[i32],
    ) -> io::Result<()> {
        for &tid in tids {
            match sys::open_event(attributes, tid, -1) {
                Err(error) if is_gone(&error) => {}
                event => self.counters.push((counter, event?)),
            }
        }
        Ok(())
    }

    fn add_hardware(&mut self, tids: &[i32]) {
        let counters = [
            (Counter::Cycles, PERF_COUNT_HW_CPU_CYCLES),
            (Counter::Instructions, PERF_COUNT_HW_INSTRUCTIONS),
            (Counter::Misses, PERF_COUNT_HW_CACHE_MISSES),
        ];
        for (counter, config) in counters {
            let mut attributes = attributes(PERF_TYPE_HARDWARE, config.into());
            attributes.set_inherit(1);
            attributes.set_exclude_kernel(u64::from(!self.kernel));
            if let Err(error) = self.add_counter(&attributes, counter, tids) {
                self.missing.push(("hardware", error.to_string()));
            }
        }
    }

    /// Starts or stops all events.
    pub(crate) fn set_counting(&mut self, on: bool) {
        let pace = if on { Pace::Each } else { Pace::Blind };
        self.set_pace(pace, false);
        let others = self.others.iter().filter(|(kind, _)| !self.is_costly(kind));
        let counters = self.counters.iter().map(|(_, event)| event);
        let others = others.map(|(_, event)| event).chain(counters);
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
            Kind::Carrier | Kind::Hook => false,
        }
    }

    /// Starts or stops the events that cost time for each record. `for_long` is whether a pause is
    /// a long one.
    pub(crate) fn set_pace(&mut self, pace: Pace, for_long: bool) {
        if let Some(hooks) = &mut self.hooks {
            let asked = hooks.set_pace(pace, for_long);
            self.note("sys_enter", asked);
        }
        for (kind, event) in self.others.iter().filter(|(kind, _)| self.is_costly(kind)) {
            let is_kept = *kind == Kind::Switches && pace == Pace::Paused;
            let _ = sys::set_counting(event, pace.is_on() || is_kept);
        }
    }

    /// Returns the records since the last call, in order for each core.
    pub(crate) fn drain(&mut self, events: &mut Vec<Event>) {
        for ring in &mut self.rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            parse(&self.bytes, &self.kinds, events);
        }
    }

    /// Returns the count so far, if this is counted.
    pub(crate) fn count(&self, counter: Counter) -> Option<u64> {
        let mut total = None;
        for (_, event) in self.counters.iter().filter(|(of, _)| *of == counter) {
            let mut count = [0; 8];
            let mut event: &File = event;
            event.read_exact(&mut count).ok()?;
            total = Some(total.unwrap_or(0) + u64::from_ne_bytes(count));
        }
        total
    }

    /// Returns files that become readable when a ring buffer fills up.
    pub(crate) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.carriers.iter().map(|owner| owner.as_fd())
    }
}
