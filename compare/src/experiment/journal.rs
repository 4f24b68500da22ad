//! Records of 64 bytes are appended to a log: not synced, in commits of 1, 256 and 4,096, and as a
//! load of many segments.
//!
//! Every run writes a new log in a directory of its own below that for temporary files (`TMPDIR`
//! names another one). Our commits go to one segment, which is prepared before the clock starts: in
//! a program a thread prepares the next one, or a file is used again. A load is written with the
//! defaults: segments of 32 MiB, which are prepared meanwhile.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::time::Instant;

use fjall::{KeyspaceCreateOptions, PersistMode};
use okaywal::{Configuration, Entry, EntryId, LogManager, SegmentReader, WriteAheadLog};
use thalweg_journal::{Journal, JournalOptions};
use thalweg_measure::statistics::quantile;
use thalweg_testkit::Scratch;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Ran, Run, Subjects, subject, text};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "journal",
    shows: "records into a log: not synced, in commits, and as a load",
    peers: &["fjall", "okaywal"],
    notes: "",
    cases,
};

type Record = [u64; 8];
const RECORD_BYTES: u64 = size_of::<Record>() as u64;
const BUFFER_BYTES: usize = 64 << 10;
const SEGMENT_BYTES: u64 = 48 << 20;

const METRICS: &[Metric] = &Metric::times(["time of a record", "commit p50", "commit p99"]);

const OURS: &str = "thalweg-journal";
const BUFFERED: &str = "BufWriter 64 KiB, no checksum";
const GROWING: &str = "growing file + fdatasync";

/// Commits of some records each: less than a segment in all, or a single commit of many segments.
struct Load {
    group: u64,
    groups: u64,
    is_synced: bool,
}

impl Load {
    fn is_large(&self) -> bool {
        self.group > COMMIT_MAX
    }
}

/// The largest commit has this many records; a load has more.
const COMMIT_MAX: u64 = 4_096;

fn cases(settings: &Settings) -> Vec<Case> {
    let case = |name, heading, group, groups, is_synced| {
        let load = Load {
            group,
            groups,
            is_synced,
        };
        let metrics = if load.is_large() { 1 } else { 3 };
        Case::of(name, heading, &METRICS[..metrics], logs(&load), load)
    };
    let goal = |peer, least| Goal::ratio([OURS, peer], 0, least);
    let commits = [
        ("unsynced", COMMIT_MAX, 160, false, goal(BUFFERED, 2.0)),
        ("commit/1", 1, 4_000, true, goal(GROWING, 2.0)),
        ("commit/256", 256, 1_200, true, goal(GROWING, 2.0)),
        ("commit/4096", COMMIT_MAX, 150, true, goal(GROWING, 1.0)),
    ];
    let commits = commits.map(|(name, group, groups, is_synced, goal)| {
        let heading = format!("{group} records of 64 bytes a commit");
        let case = case(name, heading, group, settings.count(groups), is_synced).goal(goal);
        if is_synced { case.judged(&[0]) } else { case }
    });
    let loads = [("load/unsynced", false, 1.5), ("load/synced", true, 1.0)];
    let loads = loads.map(|(name, is_synced, least)| {
        let records = settings.count((512 << 20) / RECORD_BYTES);
        let records = records.max(COMMIT_MAX + 1);
        let heading = format!("{} MiB, synced at their end or not", (records * 64) >> 20);
        case(name, heading, records, 1, is_synced).goal(goal(BUFFERED, least))
    });
    commits.into_iter().chain(loads).collect()
}

/// A log appends the records of these numbers, and commits them.
type Log = Box<dyn FnMut(Range<u64>) -> Result<(), String>>;

fn record(number: u64) -> Record {
    std::array::from_fn(|at| number + at as u64)
}

fn bytes_of(record: &Record) -> [[u8; 8]; 8] {
    record.map(u64::to_le_bytes)
}

/// Creates a file in the directory of a run.
fn file(place: &Scratch) -> Result<File, String> {
    File::create(place.join("log")).map_err(text)
}

fn logs(load: &Load) -> Subjects<Load> {
    let way = |name: &'static str, open: fn(&Scratch, &Load) -> Result<Log, String>| {
        subject(name, move |load: &Load| {
            if load.is_large() {
                settle()?;
            }
            let place = Scratch::new(name.split(' ').next().unwrap_or(name));
            commit_all(open(&place, load)?, load)
        })
    };
    let ours = way(OURS, ours);
    match load.is_synced && !load.is_large() {
        false => vec![ours, way(BUFFERED, buffered)],
        true => vec![
            ours,
            way(GROWING, growing),
            way("okaywal", okaywal),
            way("fjall", fjall),
        ],
    }
}

fn commit_all(mut log: Log, load: &Load) -> Ran {
    let mut times = Vec::with_capacity(load.groups as usize);
    let begin = Instant::now();
    for group in 0..load.groups {
        let begin = Instant::now();
        log(group * load.group..(group + 1) * load.group)?;
        times.push(begin.elapsed().as_nanos() as f64);
    }
    let ns = begin.elapsed().as_nanos() as f64;
    let mut figures = figures(ns, load.group * load.groups, &times);
    if load.is_large() {
        figures.truncate(1);
    }
    Ok(Run::of(figures))
}

/// Returns the time of a record, and p50 and p99 of these times.
fn figures(ns: f64, records: u64, times: &[f64]) -> Vec<f64> {
    let of = |q| quantile(times, q).unwrap_or(f64::NAN);
    vec![ns / records as f64, of(0.5), of(0.99)]
}

fn ours(place: &Scratch, load: &Load) -> Result<Log, String> {
    let mut options = JournalOptions::default();
    if !load.is_large() {
        options = options.segment_bytes(SEGMENT_BYTES).in_background(false);
    }
    let mut journal = Journal::open(place, options).map_err(text)?;
    let is_synced = load.is_synced;
    Ok(Box::new(move |numbers| {
        for number in numbers {
            let appended = journal.append_with(|slot| *slot = record(number));
            appended.map_err(text)?;
        }
        if is_synced {
            let _ = journal.commit().map_err(text)?;
        }
        Ok(())
    }))
}

fn buffered(place: &Scratch, load: &Load) -> Result<Log, String> {
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, file(place)?);
    let is_synced = load.is_synced;
    Ok(Box::new(move |numbers| {
        for number in numbers {
            let written = file.write_all(bytes_of(&record(number)).as_flattened());
            written.map_err(text)?;
        }
        if is_synced {
            file.flush().map_err(text)?;
            file.get_ref().sync_data().map_err(text)?;
        }
        Ok(())
    }))
}

/// Writes a block with a checksum in front, and syncs it.
fn growing(place: &Scratch, _: &Load) -> Result<Log, String> {
    let (mut file, mut block) = (file(place)?, Vec::new());
    Ok(Box::new(move |numbers| {
        block.resize(8, 0);
        for number in numbers {
            block.extend_from_slice(bytes_of(&record(number)).as_flattened());
        }
        let sum = crc32c::crc32c(&block[8..]);
        block[..4].copy_from_slice(&sum.to_le_bytes());
        let written = file.write_all(&block);
        let synced = written.and_then(|()| file.sync_data());
        block.clear();
        synced.map_err(text)
    }))
}

/// A run only appends: it neither recovers nor checkpoints.
#[derive(Debug)]
struct Manager;

impl LogManager for Manager {
    fn recover(&mut self, _: &mut Entry<'_>) -> io::Result<()> {
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _: EntryId,
        _: &mut SegmentReader,
        _: &WriteAheadLog,
    ) -> io::Result<()> {
        Ok(())
    }
}

/// Writes an entry for each commit. The segment is prepared before the clock starts, as ours is.
fn okaywal(place: &Scratch, load: &Load) -> Result<Log, String> {
    // A chunk has 9 bytes of its own; an entry some more.
    let bytes = load.groups * (load.group * (RECORD_BYTES + 16) + 64);
    let bytes = u32::try_from(bytes + (1 << 20)).map_err(text)?;
    let wal = Configuration::default_for(place)
        .preallocate_bytes(bytes)
        .checkpoint_after_bytes(bytes.into())
        .open(Manager)
        .map_err(text)?;
    Ok(Box::new(move |numbers| {
        let mut entry = wal.begin_entry().map_err(text)?;
        for number in numbers {
            let bytes = bytes_of(&record(number));
            entry.write_chunk(bytes.as_flattened()).map_err(text)?;
        }
        entry.commit().map(drop).map_err(text)
    }))
}

/// Writes a batch for each commit, with `PersistMode::SyncData`.
fn fjall(place: &Scratch, _: &Load) -> Result<Log, String> {
    let database = fjall::Database::builder(place).open().map_err(text)?;
    let records = database.keyspace("records", KeyspaceCreateOptions::default);
    let records = records.map_err(text)?;
    Ok(Box::new(move |numbers| {
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        for number in numbers {
            let bytes = bytes_of(&record(number));
            batch.insert(&records, number.to_be_bytes(), bytes.as_flattened());
        }
        batch.commit().map_err(text)
    }))
}

/// Waits until the system has written the data of earlier runs; the discard of files that were
/// removed may still go on.
#[cfg(target_os = "linux")]
pub(crate) fn settle() -> Result<(), String> {
    let place = File::open(std::env::temp_dir()).map_err(text)?;
    rustix::fs::syncfs(place).map_err(text)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn settle() -> Result<(), String> {
    Ok(())
}
