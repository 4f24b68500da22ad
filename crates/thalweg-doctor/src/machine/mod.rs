//! Measures the costs of this machine: its clock, its caches, its scheduler and its disk, and what
//! they mean for programs whose threads wait for each other.
//!
//! Each figure is the median of several repetitions, with the interval that holds the true median
//! in 95 of 100 runs or more.

mod cost;
mod meaning;
mod page;
mod single;
mod threads;
mod values;

pub use cost::Cost;

use serde::{Serialize, Serializer};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thalweg_measure::clock::Clock;
use thalweg_measure::noise::GapLoop;
use thalweg_measure::statistics::median_interval;
use values::{Effort, Values};

/// The options of a measurement.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether to measure in less than 1 s instead of 3.
    pub is_quick: bool,
    /// The directory on whose disk writes are measured.
    pub directory: PathBuf,
}

/// A median with its interval, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The median.
    pub value: f64,
    /// The lower bound; `None` for few repetitions.
    pub low: Option<f64>,
    /// The upper bound.
    pub high: Option<f64>,
    /// The number of repetitions.
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

/// The time of transferring a cache line between two cores, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pair {
    /// One core, by its number.
    pub from: usize,
    /// The other core, by its number.
    pub to: usize,
    /// Half of the round-trip time.
    #[serde(flatten)]
    pub figure: Figure,
}

/// The results of a measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The processor, if the system names it.
    pub processor: Option<String>,
    /// The cores that this program may use.
    pub cores: Vec<usize>,
    /// The name of the clock source that the library reads.
    pub clock: &'static str,
    /// The share of the time, from 0 to 1, that others took of the first two cores between the
    /// measurements.
    pub disturbance: f64,
    /// All costs that could be measured, in ns.
    #[serde(serialize_with = "by_name")]
    pub costs: Vec<(Cost, Figure)>,
    /// The costs that could not be measured, each with the reason.
    #[serde(serialize_with = "by_name")]
    pub absent: Vec<(Cost, String)>,
    /// The transfer times between the cores, pair by pair.
    pub pairs: Vec<Pair>,
    /// The total number of pairs.
    pub pairs_all: usize,
    /// The directory on whose disk writes were measured.
    pub directory: PathBuf,
    /// Whether that directory is in memory, so that its figure is not that of a disk.
    pub is_memory: bool,
    /// The meaning of the costs, in sentences.
    pub meaning: Vec<String>,
}

fn by_name<T: Serialize, S: Serializer>(
    costs: &[(Cost, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(costs.iter().map(|(cost, value)| (cost.name(), value)))
}

/// The reason why a machine cannot be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The directory for the disk cannot be used.
    Directory(PathBuf, io::Error),
    /// The system refuses to list the cores, or to pin a thread to one.
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

/// The number of passes over all costs: influences that change within a second, such as where a
/// host runs the cores of a guest, show in the intervals.
const PASSES: usize = 4;

/// The time for which an idle core is watched in each pass, and the length of a gap that counts as
/// taken from it.
const IDLE_NS: u64 = 10_000_000;
const GAP_NS: u64 = 5_000;
/// The share of a core from which on other programs make all figures too high.
const DISTURBED: f64 = 0.01;

impl Machine {
    /// Measures this machine, which takes about 3 s, with `is_quick` less than 1 s, and more with
    /// many cores.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written to, or if the system does not allow
    /// pinning threads to cores.
    pub fn measure(options: &Options) -> Result<Machine, Error> {
        let effort = match options.is_quick {
            true => Effort {
                repetitions: 3,
                samples: 12,
                at_most: Duration::from_millis(25),
            },
            false => Effort {
                repetitions: 9,
                samples: 60,
                at_most: Duration::from_millis(150),
            },
        };
        let cores = threads::cores().map_err(Error::Cores)?;
        let mut values = Values::new(&cores);
        let watched = &cores[..cores.len().min(2)];
        let mut disturbance = 0.0;
        for _ in 0..PASSES {
            for &core in watched {
                let idle = || GapLoop::new(Clock::global(), GAP_NS).run(IDLE_NS);
                let gaps = threads::alone(core, idle).map_err(Error::Cores)?;
                disturbance += gaps.disturbance() / (PASSES * watched.len()) as f64;
            }
            values
                .measure_single(&cores, effort)
                .map_err(Error::Cores)?;
            values
                .measure_between(&cores, effort)
                .map_err(Error::Cores)?;
            values
                .measure_shared(&cores, effort)
                .map_err(Error::Cores)?;
            let syncs = single::syncs(&options.directory, effort.samples, effort.at_most);
            let syncs =
                syncs.map_err(|error| Error::Directory(options.directory.clone(), error))?;
            values.is_memory = syncs.is_memory;
            values.put(Cost::DiskSync, &syncs.values_ns);
        }
        Ok(values.summed_up(options, cores, disturbance))
    }

    /// Returns how much others took, in per cent, if that makes the figures too high.
    fn disturbed_percent(&self) -> Option<f64> {
        (self.disturbance > DISTURBED).then_some(self.disturbance * 100.0)
    }

    /// Returns a cost in ns, if it could be measured.
    #[must_use]
    pub fn cost(&self, cost: Cost) -> Option<f64> {
        let mut costs = self.costs.iter();
        costs.find_map(|(found, figure)| (*found == cost).then_some(figure.value))
    }
}

fn processor() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests;
