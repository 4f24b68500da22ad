//! Watching a program from its start to its end.

use crate::evidence::Evidence;
use crate::figures;
use crate::probe::host::Host;
use crate::probe::perf::Perf;
use crate::probe::record::{Event, What};
use crate::probe::ticks::Ticks;
use crate::probe::timeline::Timeline;
use crate::probe::waits::Waits;
use crate::probe::{calls, tree};
use crate::sys::{self, Ended};
use crate::target::{Error, Exit, Keeper, Started, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// How to watch.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a program that was asked to end may take to do so.
    pub grace: Duration,
    /// The part of one core that looking at `/proc` may cost.
    pub cost_share: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            grace: Duration::from_secs(5),
            cost_share: 0.02,
        }
    }
}

/// What was seen of a program.
#[derive(Debug)]
pub struct Observation {
    /// The figures.
    pub evidence: Evidence,
    /// How it ended.
    pub exit: Exit,
}

/// Runs a command to its end and watches it. Its input, output and terminal are ours.
///
/// # Errors
/// There is no such program, it cannot be run, or the system refuses what nothing goes without.
pub fn observe(target: &Target, options: &Options) -> Result<Observation, Error> {
    let system = |what| move |why| Error::System(what, why);
    let mut keeper = Keeper::new(options.grace).map_err(system("signals"))?;
    let (started, mut watch) = Started::start(target, &keeper.signals, |pid| {
        Watch::begin(&[(pid, pid)], options.clone())
    })?;
    let (exit, ended) = loop {
        if let Some(end) = started.reap()? {
            break end;
        }
        let files = [keeper.file(), started.file()];
        watch
            .wait(&files)
            .map_err(|why| Error::System("poll", why))?;
        watch.round(started.pid);
        if keeper.pass(started.pid) {
            tree::kill(started.pid, &watch.timeline);
        }
    };
    watch.end();
    drop(keeper);
    Ok(Observation {
        evidence: watch.evidence(Some(&ended)),
        exit,
    })
}

/// All probes at work.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) perf: Result<Perf, std::io::Error>,
    pub(crate) timeline: Timeline,
    pub(crate) waits: Waits,
    pub(crate) ticks: Ticks,
    pub(crate) calls: HashMap<u64, f64>,
    pub(crate) polls: (f64, f64),
    pub(crate) calls_total: Option<u64>,
    pub(crate) host: (Host, Host),
    pub(crate) usable_cores: f64,
    pub(crate) own_s: f64,
    pub(crate) to_ns: u64,
    events: Vec<Event>,
    early: VecDeque<Event>,
    next_look_ns: u64,
    next_host_ns: u64,
    options: Options,
}

const LOOK_NS_MIN: u64 = 10_000_000;
const HOST_NS: u64 = 200_000_000;
/// Records of other cores that belong before one may come so much later.
const LATE_NS: u64 = 2_000_000;

pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

fn own_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Watch {
    /// Begins with the threads (process, thread) that are there.
    pub(crate) fn begin(threads: &[(i32, i32)], options: Options) -> Watch {
        let tids: Vec<i32> = threads.iter().map(|&(_, tid)| tid).collect();
        let perf = Perf::open(&tids);
        let whole = perf.as_ref().is_ok_and(Perf::is_whole_machine);
        let host = Host::look(threads[0].0);
        let mut watch = Watch {
            timeline: Timeline::new(now_ns(), whole),
            perf,
            waits: Waits::default(),
            ticks: Ticks::default(),
            calls: HashMap::new(),
            polls: (0.0, 0.0),
            calls_total: None,
            host: (host.clone(), host),
            usable_cores: 1.0,
            own_s: own_cpu_s(),
            to_ns: 0,
            events: Vec::new(),
            early: VecDeque::new(),
            next_look_ns: 0,
            next_host_ns: 0,
            options,
        };
        for &(pid, tid) in threads {
            watch.timeline.adopt(pid, tid, &tree::name(pid, tid));
        }
        if let Ok(perf) = &watch.perf {
            perf.set_counting(true);
        }
        watch
    }

    /// Until a file can be read, a ring fills up, or it is time to look again.
    pub(crate) fn wait(&self, files: &[BorrowedFd<'_>]) -> std::io::Result<()> {
        let rings = self.perf.iter().flat_map(Perf::files);
        let mut files: Vec<_> = files
            .iter()
            .copied()
            .chain(rings)
            .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
            .collect();
        let wait_ns = self
            .next_look_ns
            .saturating_sub(now_ns())
            .min(1_000_000_000);
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: wait_ns.min(999_999_999).cast_signed(),
        };
        match poll(&mut files, Some(&wait)) {
            Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Takes in what happened, and looks at `/proc` if it is time to.
    pub(crate) fn round(&mut self, pid: i32) {
        let began_ns = now_ns();
        self.take_in(began_ns.saturating_sub(LATE_NS));
        if began_ns < self.next_look_ns {
            return;
        }
        if self.perf.is_err() || self.timeline.totals.lost > 0 {
            tree::adopt_children(&mut self.timeline);
        }
        self.waits.look(&mut self.timeline, self.perf.is_err());
        if began_ns >= self.next_host_ns {
            self.host.1 = Host::look(pid);
            if let Some(cores) = tree::usable_cores(&self.timeline) {
                self.usable_cores = cores;
            }
            self.next_host_ns = began_ns + HOST_NS;
        }
        let cost_ns = now_ns() - began_ns;
        let pause_ns = (cost_ns as f64 / self.options.cost_share) as u64;
        self.next_look_ns = began_ns + pause_ns.max(LOOK_NS_MIN);
    }

    /// Takes in the records up to a time.
    fn take_in(&mut self, until_ns: u64) {
        let Ok(perf) = &mut self.perf else { return };
        self.events.extend(self.early.drain(..));
        perf.drain(&mut self.events);
        self.events.sort_by_key(|event| event.time_ns);
        let now = self
            .events
            .partition_point(|event| event.time_ns <= until_ns);
        self.early.extend(self.events.drain(now..));
        for event in std::mem::take(&mut self.events) {
            self.timeline.apply(&event, &mut |_| {});
            if !self.timeline.processes.contains(&event.pid) {
                continue;
            }
            match event.what {
                What::Ticked(stack) => self.ticks.add(event.pid, event.tid, &stack),
                What::Called {
                    number,
                    arguments,
                    weight,
                } => {
                    let weight = weight as f64;
                    *self.calls.entry(number).or_default() += weight;
                    if calls::class(number) == calls::Class::Poll {
                        let timeout = calls::poll_timeout_ms(number, &arguments);
                        let timed = timeout.is_some_and(|ms| (0..100).contains(&ms));
                        self.polls.0 += weight;
                        self.polls.1 += if timed { weight } else { 0.0 };
                    }
                }
                _ => {}
            }
        }
    }

    /// Stops, and takes in what is left.
    pub(crate) fn end(&mut self) {
        self.to_ns = now_ns();
        if let Ok(perf) = &self.perf {
            perf.set_counting(false);
            self.calls_total = perf.calls();
        }
        let usable = self.usable_cores;
        self.take_in(u64::MAX);
        self.timeline.close(self.to_ns, &mut |_| {});
        let pid = std::process::id().cast_signed();
        let groups = std::mem::take(&mut self.host.1.throttled_s);
        let quota = self.host.1.quota;
        self.host.1 = Host {
            throttled_s: groups,
            quota,
            ..Host::look(pid)
        };
        self.usable_cores = usable.max(1.0);
        self.own_s = own_cpu_s() - self.own_s;
    }

    /// The figures; `ended` for a program that was waited for.
    pub(crate) fn evidence(&self, ended: Option<&Ended>) -> Evidence {
        figures::evidence(self, ended)
    }
}

/// Sends a signal to a process, if it is there.
pub(crate) fn kill(pid: i32) {
    // One that is gone needs none.
    let _ = sys::send(pid, libc::SIGKILL);
}
