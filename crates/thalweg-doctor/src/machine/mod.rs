//! What this machine costs: its clock, its caches, its scheduler and its disk, and what that means
//! for programs whose threads wait for each other.
//!
//! Each figure is the median of several repetitions, with the interval that holds the true median
//! in 95 of 100 runs or more.

mod meaning;
mod page;
mod single;
mod threads;

use serde::{Serialize, Serializer};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thalweg_measure::clock::{Clock, Source};
use thalweg_measure::noise::GapLoop;
use thalweg_measure::statistics::median_interval;
use threads::{Length, Way};

/// How it is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// In some 1 s, not 4.
    pub is_quick: bool,
    /// Where the disk is measured.
    pub directory: PathBuf,
}

/// A median with its interval, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The median.
    pub value: f64,
    /// The lower bound; nothing for few repetitions.
    pub low: Option<f64>,
    /// The upper bound.
    pub high: Option<f64>,
    /// Repetitions.
    pub n: usize,
}

impl Figure {
    fn of(values: &[f64]) -> Option<Figure> {
        let interval = median_interval(values)?;
        let finite = |bound: f64| bound.is_finite().then_some(bound);
        Some(Figure {
            value: interval.value,
            low: finite(interval.low),
            high: finite(interval.high),
            n: values.len(),
        })
    }
}

macro_rules! costs {
    ($($name:ident $title:literal;)*) => {
        /// Something that costs time here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Cost {
            $(#[doc = $title] $name,)*
        }

        impl Cost {
            /// What it is, for people.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self {
                    $(Cost::$name => $title,)*
                }
            }
        }
    };
}

costs! {
    Clock "clock, the processor's counter";
    ClockOs "clock, the operating system's";
    Pause "pause instruction";
    HandOff "cache line to another core, one way, median of pairs";
    YieldAlone "sched_yield, nobody else on the core";
    YieldPeer "core handed over by sched_yield";
    Switch0 "core handed over by futex, no working set";
    Switch64K "the same, each thread uses 64 KB";
    Switch1M "the same, each thread uses 1 MB";
    Wake5 "futex wake until the thread runs, asleep for 5 µs";
    Wake50 "the same, asleep for 50 µs";
    Wake1000 "the same, asleep for 1 ms";
    Waker "futex wake, what it costs the waker";
    Slack "how late a sleep of 100 µs ends";
    DiskSync "write of 4 KB and fdatasync";
}

impl Cost {
    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cost::Clock => "clock",
            Cost::ClockOs => "clock_os",
            Cost::Pause => "pause",
            Cost::HandOff => "hand_off",
            Cost::YieldAlone => "yield_alone",
            Cost::YieldPeer => "yield_peer",
            Cost::Switch0 => "switch_0",
            Cost::Switch64K => "switch_64k",
            Cost::Switch1M => "switch_1m",
            Cost::Wake5 => "wake_5us",
            Cost::Wake50 => "wake_50us",
            Cost::Wake1000 => "wake_1ms",
            Cost::Waker => "waker",
            Cost::Slack => "sleep_late",
            Cost::DiskSync => "disk_sync",
        }
    }
}

/// A cache line's way between two cores, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pair {
    /// One core.
    pub from: usize,
    /// The other.
    pub to: usize,
    /// Half of the way there and back.
    #[serde(flatten)]
    pub figure: Figure,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The processor, if the system names it.
    pub processor: Option<String>,
    /// The cores that this program may use.
    pub cores: Vec<usize>,
    /// What the library's clock reads.
    pub clock: &'static str,
    /// Part of the time that others took of an idle core before the measurement, 0 to 1.
    pub disturbance: f64,
    /// All costs that could be measured, in ns.
    #[serde(serialize_with = "by_name")]
    pub costs: Vec<(Cost, Figure)>,
    /// Those that could not, and why.
    #[serde(serialize_with = "by_name")]
    pub absent: Vec<(Cost, String)>,
    /// The way between the cores, pair by pair.
    pub pairs: Vec<Pair>,
    /// Pairs that there are.
    pub pairs_all: usize,
    /// Where the disk was measured.
    pub directory: PathBuf,
    /// That directory is in memory: its figure is not that of a disk.
    pub is_memory: bool,
    /// What it means.
    pub meaning: Vec<String>,
}

fn by_name<T: Serialize, S: Serializer>(
    costs: &[(Cost, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(costs.iter().map(|(cost, value)| (cost.name(), value)))
}

/// Why a machine cannot be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The directory for the disk cannot be used.
    Directory(PathBuf, io::Error),
    /// The system refuses to tell the cores, or to keep a thread on one.
    Cores(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Directory(directory, error) => {
                write!(f, "{}: cannot be written to: {error}", directory.display())
            }
            Error::Cores(error) => write!(f, "threads cannot be kept on cores: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Directory(_, error) | Error::Cores(error) => Some(error),
        }
    }
}

/// How much of each thing is measured.
#[derive(Debug, Clone, Copy)]
struct Effort {
    repetitions: usize,
    samples: usize,
    at_most: Duration,
}

/// As many pairs of cores as are measured; with more, only neighbours and those of the first core.
const PAIRS_MAX: usize = 66;
/// How long an idle core is watched, and what counts as taken from it.
const IDLE_NS: u64 = 20_000_000;
const GAP_NS: u64 = 5_000;

impl Machine {
    /// Measures this machine: some 4 s, quickly some 1 s, and more with many cores.
    ///
    /// # Errors
    /// The directory cannot be written to, or the system does not let threads be kept on cores.
    pub fn measure(options: &Options) -> Result<Machine, Error> {
        let effort = match options.is_quick {
            true => Effort {
                repetitions: 9,
                samples: 40,
                at_most: Duration::from_millis(100),
            },
            false => Effort {
                repetitions: 31,
                samples: 200,
                at_most: Duration::from_millis(500),
            },
        };
        let cores = threads::cores().map_err(Error::Cores)?;
        let mut machine = Machine {
            processor: processor(),
            clock: match Clock::global().source() {
                Source::Os => "operating system",
                _ => "processor",
            },
            disturbance: GapLoop::new(Clock::global(), GAP_NS)
                .run(IDLE_NS)
                .disturbance(),
            costs: Vec::new(),
            absent: Vec::new(),
            pairs: Vec::new(),
            pairs_all: cores.len() * (cores.len() - 1) / 2,
            directory: options.directory.clone(),
            is_memory: false,
            meaning: Vec::new(),
            cores,
        };
        machine.measure_single(effort).map_err(Error::Cores)?;
        machine.measure_between(effort).map_err(Error::Cores)?;
        machine.measure_shared(effort).map_err(Error::Cores)?;
        let syncs = single::syncs(&options.directory, effort.samples, effort.at_most);
        let syncs = syncs.map_err(|error| Error::Directory(options.directory.clone(), error))?;
        machine.is_memory = syncs.is_memory;
        machine.put(Cost::DiskSync, &syncs.values_ns);
        machine.meaning = meaning::of(&machine);
        Ok(machine)
    }

    /// A cost in ns, if it could be measured.
    #[must_use]
    pub fn cost(&self, cost: Cost) -> Option<f64> {
        let mut costs = self.costs.iter();
        costs.find_map(|(found, figure)| (*found == cost).then_some(figure.value))
    }

    fn put(&mut self, cost: Cost, values: &[f64]) {
        match Figure::of(values) {
            Some(figure) => self.costs.push((cost, figure)),
            None => self
                .absent
                .push((cost, "no repetition ended in time".to_owned())),
        }
    }

    fn measure_single(&mut self, effort: Effort) -> io::Result<()> {
        let (core, clock) = (self.cores[0], Clock::global());
        let calls = |calls, work: fn()| single::calls(core, effort.repetitions, calls, work);
        if clock.source() != Source::Os {
            self.put(
                Cost::Clock,
                &calls(20_000, || {
                    std::hint::black_box(Clock::global().ticks());
                })?,
            );
        }
        self.put(
            Cost::ClockOs,
            &calls(10_000, || {
                std::hint::black_box(std::time::Instant::now());
            })?,
        );
        self.put(Cost::Pause, &calls(10_000, std::hint::spin_loop)?);
        self.put(Cost::YieldAlone, &single::yields(core, effort.repetitions)?);
        let sleep = Duration::from_micros(100);
        self.put(Cost::Slack, &single::lateness(core, effort.samples, sleep)?);
        Ok(())
    }

    /// Threads on different cores.
    fn measure_between(&mut self, effort: Effort) -> io::Result<()> {
        if self.cores.len() < 2 {
            let between = [
                Cost::HandOff,
                Cost::Wake5,
                Cost::Wake50,
                Cost::Wake1000,
                Cost::Waker,
            ];
            let why = || "this program may use one core only".to_owned();
            self.absent.extend(between.map(|cost| (cost, why())));
            return Ok(());
        }
        let length = Length {
            repetitions: effort.repetitions,
            rounds: 1_000,
            at_most: effort.at_most,
        };
        for (from, to) in pairs(&self.cores) {
            let values = threads::relay([from, to], Way::Spin, length, [|| (), || ()])?;
            let figure = Figure::of(&values);
            self.pairs
                .extend(figure.map(|figure| Pair { from, to, figure }));
        }
        let values: Vec<f64> = self.pairs.iter().map(|pair| pair.figure.value).collect();
        match self.pairs[..] {
            [Pair { figure, .. }] => self.costs.push((Cost::HandOff, figure)),
            _ => self.put(Cost::HandOff, &values),
        }
        let pair = [self.cores[0], self.cores[1]];
        for (cost, asleep_us, part) in [
            (Cost::Wake5, 5, 1),
            (Cost::Wake50, 50, 1),
            (Cost::Wake1000, 1_000, 4),
        ] {
            let asleep = Duration::from_micros(asleep_us);
            let wakes = threads::wakes(pair, effort.samples / part, asleep)?;
            self.put(cost, &wakes.latency_ns);
            if cost == Cost::Wake50 {
                self.put(Cost::Waker, &wakes.waker_ns);
            }
        }
        Ok(())
    }

    /// Threads on the same core.
    fn measure_shared(&mut self, effort: Effort) -> io::Result<()> {
        let core = self.cores[0];
        let length = |rounds| Length {
            repetitions: effort.repetitions,
            rounds,
            at_most: effort.at_most,
        };
        // Some kernels hand over by a yield only when the time slice ends, after milliseconds.
        let values = threads::relay([core; 2], Way::Yield, length(5), [|| (), || ()])?;
        self.put(Cost::YieldPeer, &values);
        for (cost, set_bytes) in [
            (Cost::Switch0, 0),
            (Cost::Switch64K, 64 << 10),
            (Cost::Switch1M, 1 << 20),
        ] {
            self.put(cost, &single::switches(core, length(100), set_bytes)?);
        }
        Ok(())
    }
}

/// All pairs; where these are too many, those of neighbours and of the first core.
fn pairs(cores: &[usize]) -> Vec<(usize, usize)> {
    let all = cores.iter().enumerate().flat_map(|(at, &from)| {
        let others = cores[at + 1..].iter().enumerate();
        others.map(move |(apart, &to)| (at, apart, from, to))
    });
    let is_few = cores.len() * cores.len().saturating_sub(1) / 2 <= PAIRS_MAX;
    all.filter(|&(at, apart, _, _)| is_few || at == 0 || apart == 0)
        .map(|(_, _, from, to)| (from, to))
        .collect()
}

fn processor() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests;
