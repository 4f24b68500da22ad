//! A load of many segments, with and without a sync at its end.
//!
//! Ours as it is by default: segments of 32 MiB, which are made ready meanwhile. What earlier runs
//! left to write is written before the clock starts; what the system does for files that were
//! removed (a discard) may still go on.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use thalweg_journal::{Journal, Options};

use super::{
    BUFFERED, OURS, RECORD_BYTES, REPETITIONS, Record, Scratch, Settings, bytes_of, record, told,
};
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, subject};
use crate::target::{Limit, Target};

/// Length of a run in bytes, `[full, quick]`: 16 segments, and 3.
const BYTES: [u64; 2] = [512 << 20, 96 << 20];
const BUFFER_BYTES: usize = 64 << 10;

const METRICS: &[Metric] = &[Metric::lower("time of a record", "ns")];
const TIME: usize = 0;

/// Name, whether it ends with a sync, and how many times the throughput of the other one it is to
/// have.
const CASES: [(&str, bool, f64); 2] = [("load/unsynced", false, 1.5), ("load/synced", true, 1.0)];

struct Load {
    records: u64,
    is_synced: bool,
}

/// Appends all, and gives the time that it took, ns.
fn ours(place: &Path, load: &Load) -> Result<f64, String> {
    let mut journal = Journal::<Record>::open(place, Options::default()).map_err(told)?;
    let begin = Instant::now();
    for number in 0..load.records {
        let appended = journal.append_with(|slot| *slot = record(number));
        appended.map_err(told)?;
    }
    if load.is_synced {
        let _ = journal.commit().map_err(told)?;
    }
    Ok(begin.elapsed().as_nanos() as f64)
}

fn buffered(place: &Path, load: &Load) -> Result<f64, String> {
    fs::create_dir_all(place).map_err(told)?;
    let file = File::create(place.join("log")).map_err(told)?;
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
    let begin = Instant::now();
    for number in 0..load.records {
        let written = file.write_all(bytes_of(&record(number)).as_flattened());
        written.map_err(told)?;
    }
    if load.is_synced {
        file.flush().map_err(told)?;
        file.get_ref().sync_data().map_err(told)?;
    }
    Ok(begin.elapsed().as_nanos() as f64)
}

/// Lets the system write what it has to write.
#[cfg(target_os = "linux")]
pub(in crate::experiment) fn settle() -> Result<(), String> {
    let place = File::open(std::env::temp_dir()).map_err(told)?;
    rustix::fs::syncfs(place).map_err(told)
}

#[cfg(not(target_os = "linux"))]
pub(in crate::experiment) fn settle() -> Result<(), String> {
    Ok(())
}

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    let way = |name, append: fn(&Path, &Load) -> Result<f64, String>| {
        subject(name, move |load: &Load| {
            settle()?;
            let place = Scratch::new(name);
            let ns = append(&place.0, load)?;
            Ok(Run::of(vec![ns / load.records as f64]))
        })
    };
    vec![way(OURS, ours), way(BUFFERED, buffered)]
}

/// The cases `load/unsynced` and `load/synced`.
pub(super) fn run(report: &mut Report, settings: &Settings, targets: &mut Vec<Target>) {
    let subjects = subjects();
    let bytes = BYTES[usize::from(settings.quick)];
    for (case, is_synced, goal) in CASES {
        let records = bytes / RECORD_BYTES;
        let load = Load { records, is_synced };
        let Some(trial) = settings.trial(case, METRICS, &subjects, &load, REPETITIONS) else {
            continue;
        };
        report.figures(&format!("{case}: {} MiB", bytes >> 20), &trial);
        let sides = [OURS, BUFFERED];
        let ratio = report.compare(&trial, sides, TIME);
        let what = format!("{case} time of a record");
        targets.push(Target::ratio(&what, sides, Limit::AtLeast(goal), ratio));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_takes_its_load() {
        for is_synced in [true, false] {
            let records = 1_000;
            let load = Load { records, is_synced };
            for subject in subjects() {
                let ran = subject.run(&load).expect("the disk is well");
                assert!(ran.values[TIME] > 0.0, "{}", subject.name());
            }
        }
    }
}
