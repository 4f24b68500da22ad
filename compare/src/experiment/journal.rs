//! Records of 64 bytes into a log: not synced, and in commits of 1, 256 and 4,096.
//!
//! Every subject writes to a directory of its own under the system's one for temporary files, and
//! to a new log in each run. Ours is in one segment, which is prepared before the clock starts: in
//! a program a thread prepares the next one, or a file is used again.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use thalweg_journal::{Journal, Options};
use thalweg_measure::statistics::quantile;

use super::{Experiment, Settings, progress_note};
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, Trial, interleave};
use crate::target::{Limit, Target};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "journal",
    shows: "records into a log: not synced, and in commits of 1, 256 and 4,096",
    run,
};

/// Repetitions, `[full, quick]`.
const REPETITIONS: [usize; 2] = [11, 5];
/// The least that is worth a log, in parts of the full length.
const QUICK_PART: u64 = 10;

type Record = [u64; 8];
const BUFFER_BYTES: usize = 64 << 10;
const SEGMENT_BYTES: u64 = 48 << 20;

const METRICS: &[Metric] = &[
    Metric::lower("time of a record", "ns"),
    Metric::lower("commit p50", "ns"),
    Metric::lower("commit p99", "ns"),
];
const TIME: usize = 0;

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

struct Ours {
    journal: Journal<Record>,
    is_synced: bool,
}

impl Log for Ours {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        let told = |error: thalweg_journal::Error| error.to_string();
        for number in first..first + group {
            self.journal
                .append_with(|slot| *slot = record(number))
                .map_err(told)?;
        }
        if self.is_synced {
            let _ = self.journal.commit().map_err(told)?;
        }
        Ok(())
    }
}

struct Buffered(BufWriter<File>);

impl Log for Buffered {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        for number in first..first + group {
            let record = record(number);
            for word in record {
                let written = self.0.write_all(&word.to_le_bytes());
                written.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// A block with a checksum in front, and a sync.
struct Growing {
    file: File,
    block: Vec<u8>,
}

impl Log for Growing {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        self.block.resize(8, 0);
        for number in first..first + group {
            let record = record(number);
            for word in record {
                self.block.extend_from_slice(&word.to_le_bytes());
            }
        }
        let sum = crc32c::crc32c(&self.block[8..]);
        self.block[..4].copy_from_slice(&sum.to_le_bytes());
        let written = self.file.write_all(&self.block);
        let synced = written.and_then(|()| self.file.sync_data());
        self.block.clear();
        synced.map_err(|error| error.to_string())
    }
}

type Opened = Result<Box<dyn Log>, String>;

struct Way {
    name: &'static str,
    open: fn(&Path, &Load) -> Opened,
}

fn ours(place: &Path, load: &Load) -> Opened {
    let options = Options::default()
        .segment_bytes(SEGMENT_BYTES)
        .in_background(false);
    let journal = Journal::open(place, options).map_err(|error| error.to_string())?;
    let is_synced = load.is_synced;
    Ok(Box::new(Ours { journal, is_synced }))
}

fn file(place: &Path) -> Result<File, String> {
    fs::create_dir_all(place)
        .and_then(|()| File::create(place.join("log")))
        .map_err(|error| error.to_string())
}

fn buffered(place: &Path, _: &Load) -> Opened {
    let file = file(place)?;
    Ok(Box::new(Buffered(BufWriter::with_capacity(
        BUFFER_BYTES,
        file,
    ))))
}

fn growing(place: &Path, _: &Load) -> Opened {
    let (file, block) = (file(place)?, Vec::new());
    Ok(Box::new(Growing { file, block }))
}

/// A directory that goes when its run ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
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

impl Subject<Load> for Way {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let place = Scratch::new(self.name);
        let mut log = (self.open)(&place.0, load)?;
        let mut times = Vec::with_capacity(load.groups as usize);
        let begin = Instant::now();
        for group in 0..load.groups {
            let begin = Instant::now();
            log.group(group * load.group, load.group)?;
            times.push(begin.elapsed().as_nanos() as f64);
        }
        let ns = begin.elapsed().as_nanos() as f64;
        let of = |q| quantile(&times, q).unwrap_or(f64::NAN);
        Ok(Run {
            values: vec![ns / (load.group * load.groups) as f64, of(0.5), of(0.99)],
            disturbance: 0.0,
            lost: 0,
            cut: false,
        })
    }
}

fn subjects(is_synced: bool) -> Vec<Box<dyn Subject<Load>>> {
    let other = match is_synced {
        true => Way {
            name: GROWING,
            open: growing,
        },
        false => Way {
            name: BUFFERED,
            open: buffered,
        },
    };
    vec![
        Box::new(Way {
            name: OURS,
            open: ours,
        }),
        Box::new(other),
    ]
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
        let wanted = settings.wanted(case, &subjects);
        if wanted.is_empty() {
            continue;
        }
        progress_note(&format!(
            "{case}: {} subjects, {repetitions} runs",
            wanted.len()
        ));
        let parts = if settings.quick { QUICK_PART } else { 1 };
        let load = Load {
            groups: load.groups.div_ceil(parts),
            ..load
        };
        let trial: Trial = interleave(case, METRICS, &wanted, &load, repetitions);
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
    }
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
                assert_eq!(ran.values.len(), METRICS.len(), "{}", subject.name());
            }
        }
    }
}
