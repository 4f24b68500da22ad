//! Records of 64 bytes into a log: not synced, in commits of 1, 256 and 4,096, as a load of many
//! segments, and from several threads.
//!
//! Every subject writes to a directory of its own under the system's one for temporary files
//! (`TMPDIR` names another one), and to a new log in each run. Ours is in one segment, which is
//! prepared before the clock starts: in a program a thread prepares the next one, or a file is used
//! again. Where the system counts what the disk is asked for, that is shown per commit: a log that
//! asks for no flush has made nothing durable.

mod device;
pub(super) mod load;
mod logs;
mod peers;
mod producers;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use thalweg_measure::statistics::quantile;

use device::Device;

use super::{Experiment, Settings};
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, subject};
use crate::target::{Limit, Target};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "journal",
    shows: "records into a log: not synced, in commits, as a load, and from several threads",
    run,
};

/// Repetitions, `[full, quick]`.
const REPETITIONS: [usize; 2] = [11, 5];
/// The least that is worth a log, in parts of the full length.
const QUICK_PART: u64 = 10;

type Record = [u64; 8];
const RECORD_BYTES: u64 = size_of::<Record>() as u64;

/// The last two where the system counts them.
const METRICS: &[Metric] = &[
    Metric::lower("time of a record", "ns"),
    Metric::lower("commit p50", "ns"),
    Metric::lower("commit p99", "ns"),
    Metric::lower("writes to the disk a commit", "requests"),
    Metric::lower("flushes of the disk a commit", "requests"),
];
const TIME: usize = 0;

fn metrics() -> &'static [Metric] {
    match Device::of(&std::env::temp_dir()) {
        Some(_) => METRICS,
        None => &METRICS[..3],
    }
}

const OURS: &str = "thalweg-journal";
const BUFFERED: &str = "BufWriter 64 KiB, no checksum";
const GROWING: &str = "growing file + fdatasync";

struct Load {
    /// Records of a commit.
    group: u64,
    groups: u64,
    is_synced: bool,
}

/// Name, records of a commit, commits: each less than a segment.
const CASES: [(&str, Load); 4] = [
    (
        "unsynced",
        Load {
            group: 4_096,
            groups: 160,
            is_synced: false,
        },
    ),
    (
        "commit/1",
        Load {
            group: 1,
            groups: 4_000,
            is_synced: true,
        },
    ),
    (
        "commit/256",
        Load {
            group: 256,
            groups: 1_200,
            is_synced: true,
        },
    ),
    (
        "commit/4096",
        Load {
            group: 4_096,
            groups: 150,
            is_synced: true,
        },
    ),
];

/// Appends `group` records and commits.
trait Log {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String>;
}

fn record(number: u64) -> Record {
    std::array::from_fn(|at| number + at as u64)
}

fn bytes_of(record: &Record) -> [[u8; 8]; 8] {
    record.map(u64::to_le_bytes)
}

type Opened = Result<Box<dyn Log>, String>;

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A directory that goes when its run ends.
#[derive(Debug)]
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Scratch {
        let name = name.split(' ').next().unwrap_or(name);
        let id = std::process::id();
        let place = std::env::temp_dir().join(format!("thalweg-compare-{id}-{name}"));
        let _ = fs::remove_dir_all(&place);
        Scratch(place)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn ran(name: &str, open: fn(&Path, &Load) -> Opened, load: &Load) -> Result<Run, String> {
    let place = Scratch::new(name);
    let mut log = open(&place.0, load)?;
    let mut times = Vec::with_capacity(load.groups as usize);
    let device = Device::of(&std::env::temp_dir());
    let before = device.as_ref().and_then(Device::asked);
    let begin = Instant::now();
    for group in 0..load.groups {
        let begin = Instant::now();
        log.group(group * load.group, load.group)?;
        times.push(begin.elapsed().as_nanos() as f64);
    }
    let ns = begin.elapsed().as_nanos() as f64;
    let of = |q| quantile(&times, q).unwrap_or(f64::NAN);
    let mut values = vec![ns / (load.group * load.groups) as f64, of(0.5), of(0.99)];
    let after = device.as_ref().and_then(Device::asked);
    if let (Some(before), Some(after)) = (before, after) {
        let a_commit = |now: u64, then: u64| (now - then) as f64 / load.groups as f64;
        values.push(a_commit(after.writes, before.writes));
        values.push(a_commit(after.flushes, before.flushes));
    }
    Ok(Run::of(values))
}

fn subjects(is_synced: bool) -> Vec<Box<dyn Subject<Load>>> {
    let way = |name, open| subject(name, move |load: &Load| ran(name, open, load));
    let ours = way(OURS, logs::ours);
    match is_synced {
        false => vec![ours, way(BUFFERED, logs::buffered)],
        true => vec![
            ours,
            way(GROWING, logs::growing),
            way("okaywal", peers::okaywal),
            way("commitlog", peers::commitlog),
            way("fjall", peers::fjall),
            way("redb", peers::redb),
        ],
    }
}

/// So many times the throughput of the other one.
fn goal(case: &str) -> f64 {
    match case {
        "commit/4096" => 1.0,
        _ => 2.0,
    }
}

fn run(settings: &Settings) -> Report {
    let mut report = Report::new(EXPERIMENT.name);
    let repetitions = settings.repetitions_or(REPETITIONS);
    report.say(format!(
        "{repetitions} interleaved runs of each; records of 64 bytes"
    ));
    let mut targets = Vec::new();
    for (case, load) in CASES {
        let subjects = subjects(load.is_synced);
        let parts = if settings.quick { QUICK_PART } else { 1 };
        let load = Load {
            groups: load.groups.div_ceil(parts),
            ..load
        };
        let Some(trial) = settings.trial(case, metrics(), &subjects, &load, REPETITIONS) else {
            continue;
        };
        report.figures(&format!("{case}: {} records a commit", load.group), &trial);
        let sides = match load.is_synced {
            true => [OURS, GROWING],
            false => [OURS, BUFFERED],
        };
        let ratio = report.compare(&trial, sides, TIME);
        let what = format!("{case} time of a record");
        targets.push(Target::ratio(
            &what,
            sides,
            Limit::AtLeast(goal(case)),
            ratio,
        ));
        let ran = trial.series.iter().map(|series| &series.subject[..]);
        for peer in ran.filter(|subject| !sides.contains(subject)) {
            report.compare(&trial, [OURS, peer], TIME);
        }
    }
    load::run(&mut report, settings, &mut targets);
    producers::run(&mut report, settings);
    report.targets(&targets, settings);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_writes_its_records() {
        for is_synced in [true, false] {
            let load = Load {
                group: 3,
                groups: 4,
                is_synced,
            };
            for subject in subjects(is_synced) {
                let ran = subject.run(&load).expect("the disk is well");
                assert_eq!(ran.values.len(), metrics().len(), "{}", subject.name());
            }
        }
    }
}
