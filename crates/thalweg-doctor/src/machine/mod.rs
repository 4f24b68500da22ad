//! Measures the costs of this machine: its clock, its caches, its scheduler and its disk, and what
//! they mean for programs whose threads wait for each other.
//!
//! Each figure is the median of several repetitions, with the interval that holds the true median
//! in 95 of 100 runs or more.

pub(crate) mod measure;

use crate::machine::measure::{Effort, Values};
use serde::{Serialize, Serializer};
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};
use thalweg_measure::clock::Clock;
use thalweg_measure::noise::GapLoop;
use thalweg_measure::statistics::{Interval, median_interval};
use thalweg_measure::table::{Cell, Nanoseconds, Table};

/// The options of a measurement.
#[derive(Debug, Clone)]
pub struct MeasureOptions {
    /// Whether to measure in less than 1 s instead of 3.
    pub is_quick: bool,
    /// The directory on whose disk writes are measured.
    pub directory: PathBuf,
}

/// A median with its interval, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The median and its bounds.
    #[serde(flatten)]
    pub interval: Interval,
    /// The number of repetitions.
    pub n: usize,
}

impl Estimate {
    fn of(values: &[f64]) -> Option<Estimate> {
        Some(Estimate {
            interval: median_interval(values)?,
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
    pub figure: Estimate,
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
    pub costs: Vec<(Cost, Estimate)>,
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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The directory for the disk cannot be used.
    #[error("{}: cannot be written to: {}", .0.display(), .1)]
    Directory(PathBuf, #[source] io::Error),
    /// The system refuses to list the cores, or to pin a thread to one.
    #[error("threads cannot be kept on cores: {0}")]
    Cores(#[source] io::Error),
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
    pub fn measure(options: &MeasureOptions) -> Result<Machine, MeasureError> {
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
        let cores = measure::cores().map_err(MeasureError::Cores)?;
        let mut values = Values::new(&cores);
        let watched = &cores[..cores.len().min(2)];
        let mut disturbance = 0.0;
        for _ in 0..PASSES {
            let on_cores = |values: &mut Values| -> io::Result<f64> {
                let mut taken = 0.0;
                for &core in watched {
                    let idle = || GapLoop::new(Clock::global(), GAP_NS).run(IDLE_NS);
                    taken += measure::alone(core, idle)?.disturbance();
                }
                values.measure_single(&cores, effort)?;
                values.measure_between(&cores, effort)?;
                values.measure_shared(&cores, effort)?;
                Ok(taken / (PASSES * watched.len()) as f64)
            };
            disturbance += on_cores(&mut values).map_err(MeasureError::Cores)?;
            let syncs = measure::syncs(&options.directory, effort.samples, effort.at_most);
            let syncs =
                syncs.map_err(|error| MeasureError::Directory(options.directory.clone(), error))?;
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
        costs.find_map(|(found, figure)| (*found == cost).then_some(figure.interval.value))
    }
}

macro_rules! costs {
    ($($name:ident $json:literal $title:literal;)*) => {
        /// An operation whose cost on this machine is measured.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Cost {
            $(#[doc = $title] $name,)*
        }

        impl Cost {
            /// Returns the name in JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Cost::$name => $json,)*
                }
            }

            /// Returns the name for people.
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
    Clock "clock" "clock, the processor's counter";
    ClockOs "clock_os" "clock, the operating system's";
    Pause "pause" "pause instruction";
    HandOff "hand_off" "cache line to another core, one way, median of pairs";
    YieldAlone "yield_alone" "sched_yield, nobody else on the core";
    YieldPeer "yield_peer" "core handed over by sched_yield";
    Switch0 "switch_0" "core handed over by futex, no working set";
    Switch64K "switch_64k" "the same, each thread uses 64 KB";
    Switch1M "switch_1m" "the same, each thread uses 1 MB";
    Wake5 "wake_5us" "futex wake until the thread runs, asleep for 5 µs";
    Wake50 "wake_50us" "the same, asleep for 50 µs";
    Wake1000 "wake_1ms" "the same, asleep for 1 ms";
    Waker "waker" "futex wake, what it costs the waker";
    Slack "sleep_late" "how late a sleep of 100 µs ends";
    DiskSync "disk_sync" "write of 4 KB and fdatasync";
}

/// Returns three or four sentences with figures, preceded by a warning if the figures are
/// unreliable.
pub(crate) fn meaning_of(machine: &Machine) -> Vec<String> {
    let sentences = [
        caveat(machine),
        spinning(machine),
        placement(machine),
        sharing(machine),
        pausing(machine),
    ];
    sentences.into_iter().flatten().collect()
}

fn caveat(machine: &Machine) -> Option<String> {
    let percent = machine.disturbed_percent()?;
    Some(format!(
        "Do not go by what follows before you have measured again while nothing else runs: others \
         took {percent:.0} % of the cores, and every figure here is too high."
    ))
}

/// Explains how long to spin before sleeping.
fn spinning(machine: &Machine) -> Option<String> {
    if machine.cores.len() < 2 {
        return Some(
            "There is one core: a thread that spins keeps the one it waits for from running, so \
             park, and do not spin."
                .to_owned(),
        );
    }
    let (wake, waker) = (machine.cost(Cost::Wake50)?, machine.cost(Cost::Waker)?);
    let (pause, later) = (machine.cost(Cost::Pause)?, machine.cost(Cost::Wake1000)?);
    Some(format!(
        "Waking a thread takes {} until it runs, and costs its waker {}: spin for up to {} ({:.0} \
         pauses) where a core is free, then sleep, and no wait costs more than twice the best. One \
         that slept for 1 ms needs {}.",
        Nanoseconds(wake),
        Nanoseconds(waker),
        Nanoseconds(wake),
        wake / pause.max(0.1),
        Nanoseconds(later),
    ))
}

/// Explains which work belongs on a core of its own.
fn placement(machine: &Machine) -> Option<String> {
    let hand_off = machine.cost(Cost::HandOff)?;
    let by_value =
        |x: &&Pair, y: &&Pair| x.figure.interval.value.total_cmp(&y.figure.interval.value);
    let near = machine.pairs.iter().min_by(by_value)?;
    let far = machine.pairs.iter().max_by(by_value)?;
    let spread = if far.figure.interval.value > near.figure.interval.value * 1.5 {
        format!(
            " Cores {} and {} are {} apart, cores {} and {} {}: keep stages that follow each other \
             on near ones.",
            near.from,
            near.to,
            Nanoseconds(near.figure.interval.value),
            far.from,
            far.to,
            Nanoseconds(far.figure.interval.value),
        )
    } else {
        String::new()
    };
    Some(format!(
        "A cache line takes {} to another core: a stage that works for less than some {} on an \
         event is better on the thread of the stage before it, or takes events in batches.{spread}",
        Nanoseconds(hand_off),
        Nanoseconds(2.0 * hand_off),
    ))
}

/// Explains the cost for threads that share a core.
fn sharing(machine: &Machine) -> Option<String> {
    let (futex, large) = (machine.cost(Cost::Switch0)?, machine.cost(Cost::Switch1M)?);
    let yielding = machine.cost(Cost::YieldPeer)?;
    let advice = if yielding > 3.0 * futex {
        "sleep rather than yield there"
    } else if futex > 3.0 * yielding {
        "yield once there before sleeping"
    } else {
        "either will do there"
    };
    Some(format!(
        "Threads that share a core hand it over in {} by sleeping ({} more with 1 MB in use each) \
         and in {} by yielding: {advice}.",
        Nanoseconds(futex),
        Nanoseconds((large - futex).max(0.0)),
        Nanoseconds(yielding),
    ))
}

/// Explains the use of timed sleeps, and the cost of a synced write.
fn pausing(machine: &Machine) -> Option<String> {
    let (late, sync) = (machine.cost(Cost::Slack)?, machine.cost(Cost::DiskSync)?);
    let disk = if machine.is_memory {
        "the directory is in memory, so nothing is known of a disk (--dir names another)".to_owned()
    } else {
        format!(
            "a synced write takes {}, so one that acknowledges each event by itself handles {:.0} \
             a second",
            Nanoseconds(sync),
            1e9 / sync.max(1.0),
        )
    };
    Some(format!(
        "A sleep of 100 µs ends {} late, so polling by sleeping reacts no sooner; {disk}.",
        Nanoseconds(late),
    ))
}

/// The maximum number of pairs that are shown one by one.
const PAIRS_SHOWN_MAX: usize = 6;

fn cells(title: String, figure: Estimate) -> [Cell; 4] {
    [
        Cell::Text(title),
        Cell::Number(Nanoseconds(figure.interval.value).to_string()),
        Cell::Number(figure.interval.bounds(|ns| Nanoseconds(ns).to_string())),
        Cell::Number(figure.n.to_string()),
    ]
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processor = self.processor.as_deref().unwrap_or("an unnamed processor");
        let count = self.cores.len();
        let cores = if count == 1 { "core" } else { "cores" };
        writeln!(f, "{processor}, {count} usable {cores}")?;
        if let Some(percent) = self.disturbed_percent() {
            writeln!(
                f,
                "Others took {percent:.0} % of its cores meanwhile: the figures are too high."
            )?;
        }
        let mut table = Table::new(["what it costs", "median", "interval of 95 %", "n"]);
        for &(cost, figure) in &self.costs {
            table.row(cells(cost.title().to_owned(), figure));
        }
        if (2..=PAIRS_SHOWN_MAX).contains(&self.pairs.len()) {
            for &Pair { from, to, figure } in &self.pairs {
                table.row(cells(
                    format!("cache line, core {from} to core {to}"),
                    figure,
                ));
            }
        }
        write!(f, "\n{table}")?;
        for (cost, why) in &self.absent {
            writeln!(f, "not measured: {}: {why}", cost.title())?;
        }
        if self.pairs.len() < self.pairs_all {
            let (some, all) = (self.pairs.len(), self.pairs_all);
            writeln!(f, "{some} of the {all} pairs of cores were measured")?;
        }
        let directory = self.directory.display();
        let kind = if self.is_memory {
            ": in memory, no disk (--dir names another place)"
        } else {
            ""
        };
        writeln!(f, "disk: {directory}{kind}\n")?;
        self.meaning
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::measure::pairs;

    fn figure(value: f64) -> Estimate {
        Estimate {
            interval: Interval {
                value,
                low: value * 0.9,
                high: value * 1.1,
            },
            n: 31,
        }
    }

    /// Creates a machine with these cores and made-up costs.
    fn made_up(cores: usize) -> Machine {
        let costs = [
            (Cost::Clock, 11.0),
            (Cost::Pause, 10.0),
            (Cost::HandOff, 60.0),
            (Cost::YieldPeer, 2e6),
            (Cost::Switch0, 1_500.0),
            (Cost::Switch1M, 40_000.0),
            (Cost::Wake50, 4_300.0),
            (Cost::Wake1000, 30_000.0),
            (Cost::Waker, 1_900.0),
            (Cost::Slack, 56_000.0),
            (Cost::DiskSync, 1e6),
        ];
        let numbers: Vec<usize> = (0..cores).collect();
        let pair = |(from, to)| Pair {
            from,
            to,
            figure: figure(if to < 2 { 60.0 } else { 200.0 }),
        };
        let mut machine = Machine {
            processor: Some("Example 1".to_owned()),
            clock: "processor",
            disturbance: 0.0,
            costs: costs.map(|(cost, value)| (cost, figure(value))).to_vec(),
            absent: Vec::new(),
            pairs: pairs(&numbers).into_iter().map(pair).collect(),
            pairs_all: cores * (cores - 1) / 2,
            directory: PathBuf::from("/var/lib"),
            is_memory: false,
            meaning: Vec::new(),
            cores: numbers,
        };
        machine.meaning = meaning_of(&machine);
        machine
    }

    #[test]
    fn the_figures_say_how_long_to_spin_and_where() {
        let meaning = made_up(2).meaning;
        assert_eq!(meaning.len(), 4);
        for (line, part) in [
            (0, "spin for up to 4.30 µs (430 pauses)"),
            (0, "costs its waker 1.90 µs"),
            (1, "less than some 120 ns"),
            (
                2,
                "in 1.50 µs by sleeping (38.5 µs more with 1 MB in use each)",
            ),
            (2, "in 2.00 ms by yielding: sleep rather than yield there."),
            (3, "56.0 µs late"),
            (3, "handles 1000 a second"),
        ] {
            assert!(meaning[line].contains(part), "{part}: {}", meaning[line]);
        }
        assert!(!meaning[1].contains("apart"), "{}", meaning[1]);
        let three = &made_up(3).meaning[1];
        let apart = "Cores 0 and 1 are 60 ns apart, cores 1 and 2 200 ns";
        assert!(three.contains(apart), "{three}");
    }

    #[test]
    fn one_core_and_a_directory_in_memory_change_the_advice() {
        let mut machine = made_up(1);
        machine.is_memory = true;
        let meaning = meaning_of(&machine);
        assert!(meaning[0].contains("do not spin"), "{meaning:?}");
        assert!(
            meaning.iter().any(|line| line.contains("in memory")),
            "{meaning:?}"
        );
        let page = machine.to_string();
        for part in [
            "Example 1, 1 usable core\n",
            "disk: /var/lib: in memory",
            "[9.90 ns, 12.1 ns]",
        ] {
            assert!(page.contains(part), "{page}");
        }
    }

    #[test]
    fn advice_from_a_disturbed_machine_says_so_first() {
        let mut machine = made_up(2);
        machine.disturbance = 0.124;
        let meaning = meaning_of(&machine);
        assert!(
            meaning[0].contains("Do not go by what follows"),
            "{meaning:?}"
        );
        assert!(
            meaning[0].contains("others took 12 % of the cores"),
            "{meaning:?}"
        );
        assert_eq!(meaning[1..], made_up(2).meaning[..]);
        let head = "Others took 12 % of its cores meanwhile: the figures are too high.\n";
        assert!(machine.to_string().contains(head), "{machine}");
        machine.disturbance = 0.01;
        assert_eq!(meaning_of(&machine), made_up(2).meaning);
    }

    #[test]
    fn pairs_are_all_or_those_that_show_the_shape() {
        assert_eq!(pairs(&[3]), []);
        assert_eq!(pairs(&[0, 2, 5]), [(0, 2), (0, 5), (2, 5)]);
        let many: Vec<usize> = (0..64).collect();
        let chosen = pairs(&many);
        assert_eq!(chosen.len(), 63 + 62);
        assert!(chosen.contains(&(0, 63)) && chosen.contains(&(31, 32)));
        let mut machine = made_up(64);
        assert!(machine.to_string().contains("125 of the 2016 pairs"));
        machine.pairs_all = 125;
        assert!(!machine.to_string().contains("pairs of cores"));
    }

    #[test]
    fn this_machine_is_measured_and_said_as_json() {
        let options = MeasureOptions {
            is_quick: true,
            directory: std::env::temp_dir(),
        };
        let machine = Machine::measure(&options).expect("the directory can be written to");
        for cost in [Cost::ClockOs, Cost::Pause, Cost::YieldAlone] {
            let ns = machine.cost(cost).expect("it can be measured anywhere");
            assert!(ns > 0.0, "{}: {ns}", cost.title());
        }
        // On a busy machine one repetition may take longer than all of them may.
        let late = "no repetition ended in time".to_owned();
        let is_late = |cost| machine.absent.contains(&(cost, late.clone()));
        for cost in [Cost::Switch0, Cost::DiskSync] {
            match machine.cost(cost) {
                Some(ns) => assert!(ns > 0.0, "{}: {ns}", cost.title()),
                None => assert!(is_late(cost), "{}: {:?}", cost.title(), machine.absent),
            }
        }
        let is_measured = machine.cost(Cost::Wake50).is_some();
        assert_eq!(
            is_measured || is_late(Cost::Wake50),
            machine.cores.len() > 1
        );
        let json = serde_json::to_value(&machine).expect("it serializes");
        assert_eq!(
            json["costs"]["pause"]["value"].as_f64(),
            machine.cost(Cost::Pause)
        );
        assert_eq!(
            json["cores"].as_array().map(Vec::len),
            Some(machine.cores.len())
        );
        let names = machine.costs.iter().map(|(cost, _)| cost.name());
        let mut names: Vec<&str> = names
            .chain(machine.absent.iter().map(|(cost, _)| cost.name()))
            .collect();
        names.sort_unstable();
        names.dedup();
        assert!(names.len() >= 14, "{names:?}");
        let nowhere = MeasureOptions {
            directory: PathBuf::from("/no/such/place"),
            ..options
        };
        let refused = Machine::measure(&nowhere).expect_err("there is no such place");
        assert!(
            refused
                .to_string()
                .starts_with("/no/such/place: cannot be written to: ")
        );
    }
}
