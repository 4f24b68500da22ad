//! Records of 64 bytes into a log: not synced, in commits of 1, 256 and 4,096, as a load of many
//! segments, and from several threads.
//!
//! Every subject writes to a directory of its own under the system's one for temporary files
//! (`TMPDIR` names another one), and to a new log in each run. In commits, ours is in one segment,
//! which is prepared before the clock starts: in a program a thread prepares the next one, or a
//! file is used again. A load is written with the defaults: segments of 32 MiB, which are made
//! ready meanwhile.

mod producers;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fjall::{KeyspaceCreateOptions, PersistMode};
use okaywal::{Configuration, Entry, EntryId, LogManager, SegmentReader, WriteAheadLog};
use thalweg_journal::{Journal, Options};
use thalweg_measure::statistics::quantile;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Ran, Run, Subjects, subject, text};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "journal",
    shows: "records into a log: not synced, in commits, as a load, and from several threads",
    peers: &["fjall", "okaywal"],
    notes: "",
    cases,
};

type Record = [u64; 8];
const RECORD_BYTES: u64 = size_of::<Record>() as u64;
const BUFFER_BYTES: usize = 64 << 10;
const SEGMENT_BYTES: u64 = 48 << 20;

const METRICS: &[Metric] = &[
    Metric::lower("time of a record", "ns"),
    Metric::lower("commit p50", "ns"),
    Metric::lower("commit p99", "ns"),
];

const OURS: &str = "thalweg-journal";
const BUFFERED: &str = "BufWriter 64 KiB, no checksum";
const GROWING: &str = "growing file + fdatasync";

/// Commits, and records of each; less than a segment in all.
struct Load {
    group: u64,
    groups: u64,
    is_synced: bool,
}

fn cases(settings: &Settings) -> Vec<Case> {
    let commits = [
        ("unsynced", 4_096, 160, false),
        ("commit/1", 1, 4_000, true),
        ("commit/256", 256, 1_200, true),
        ("commit/4096", 4_096, 150, true),
    ];
    let commits = commits.map(|(case, group, groups, is_synced)| {
        let groups = settings.count(groups);
        let load = Load {
            group,
            groups,
            is_synced,
        };
        let heading = format!("{group} records of 64 bytes a commit");
        let case = Case::of(case, heading, METRICS, logs(is_synced), load);
        let goal = |peer, least| Goal::ratio([OURS, peer], 0, least);
        if is_synced {
            let least = if group == 4_096 { 1.0 } else { 2.0 };
            case.judged(&[0]).goal(goal(GROWING, least))
        } else {
            case.goal(goal(BUFFERED, 2.0))
        }
    });
    let loads = [("load/unsynced", false, 1.5), ("load/synced", true, 1.0)];
    let loads = loads.map(|(case, is_synced, least)| {
        let groups = settings.count((512 << 20) / RECORD_BYTES);
        let load = Load {
            group: 1,
            groups,
            is_synced,
        };
        let heading = format!("{} MiB, synced at their end or not", (groups * 64) >> 20);
        let case = Case::of(case, heading, &METRICS[..1], loads_of(), load);
        case.goal(Goal::ratio([OURS, BUFFERED], 0, least))
    });
    let producers = producers::cases(settings);
    commits.into_iter().chain(loads).chain(producers).collect()
}

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

    /// Creates the directory, and a file in it.
    pub(super) fn file(&self) -> Result<File, String> {
        fs::create_dir_all(&self.0)
            .and_then(|()| File::create(self.0.join("log")))
            .map_err(text)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn logs(is_synced: bool) -> Subjects<Load> {
    let way = |name, open: fn(&Scratch, &Load) -> Opened| {
        subject(name, move |load: &Load| {
            let place = Scratch::new(name);
            commit_all(&mut *open(&place, load)?, load)
        })
    };
    match is_synced {
        false => vec![way(OURS, ours), way(BUFFERED, buffered)],
        true => vec![
            way(OURS, ours),
            way(GROWING, growing),
            way("okaywal", okaywal),
            way("fjall", fjall),
        ],
    }
}

fn commit_all(log: &mut dyn Log, load: &Load) -> Ran {
    let mut times = Vec::with_capacity(load.groups as usize);
    let begin = Instant::now();
    for group in 0..load.groups {
        let begin = Instant::now();
        log.group(group * load.group, load.group)?;
        times.push(begin.elapsed().as_nanos() as f64);
    }
    let ns = begin.elapsed().as_nanos() as f64;
    let of = |q| quantile(&times, q).unwrap_or(f64::NAN);
    let records = load.group * load.groups;
    Ok(Run::of([ns / records as f64, of(0.5), of(0.99)]))
}

struct Ours {
    journal: Journal<Record>,
    is_synced: bool,
}

impl Log for Ours {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        for number in first..first + group {
            let appended = self.journal.append_with(|slot| *slot = record(number));
            appended.map_err(text)?;
        }
        if self.is_synced {
            let _ = self.journal.commit().map_err(text)?;
        }
        Ok(())
    }
}

fn ours(place: &Scratch, load: &Load) -> Opened {
    let options = Options::default().segment_bytes(SEGMENT_BYTES);
    let journal = Journal::open(&place.0, options.in_background(false)).map_err(text)?;
    let is_synced = load.is_synced;
    Ok(Box::new(Ours { journal, is_synced }))
}

struct Buffered(BufWriter<File>);

impl Log for Buffered {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        for number in first..first + group {
            let written = self.0.write_all(bytes_of(&record(number)).as_flattened());
            written.map_err(text)?;
        }
        Ok(())
    }
}

fn buffered(place: &Scratch, _: &Load) -> Opened {
    let file = BufWriter::with_capacity(BUFFER_BYTES, place.file()?);
    Ok(Box::new(Buffered(file)))
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
            let bytes = bytes_of(&record(number));
            self.block.extend_from_slice(bytes.as_flattened());
        }
        let sum = crc32c::crc32c(&self.block[8..]);
        self.block[..4].copy_from_slice(&sum.to_le_bytes());
        let written = self.file.write_all(&self.block);
        let synced = written.and_then(|()| self.file.sync_data());
        self.block.clear();
        synced.map_err(text)
    }
}

fn growing(place: &Scratch, _: &Load) -> Opened {
    let (file, block) = (place.file()?, Vec::new());
    Ok(Box::new(Growing { file, block }))
}

/// Neither recovers nor checkpoints: a run only appends.
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

struct Okaywal(WriteAheadLog);

impl Log for Okaywal {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        let mut entry = self.0.begin_entry().map_err(text)?;
        for number in first..first + group {
            let bytes = bytes_of(&record(number));
            entry.write_chunk(bytes.as_flattened()).map_err(text)?;
        }
        entry.commit().map(drop).map_err(text)
    }
}

/// An entry a group. The segment is prepared before the clock starts, as ours is.
fn okaywal(place: &Scratch, load: &Load) -> Opened {
    // A chunk has 9 bytes of its own; an entry some more.
    let bytes = load.groups * (load.group * (RECORD_BYTES + 16) + 64);
    let bytes = u32::try_from(bytes + (1 << 20)).map_err(text)?;
    let wal = Configuration::default_for(&place.0)
        .preallocate_bytes(bytes)
        .checkpoint_after_bytes(bytes.into())
        .open(Manager);
    Ok(Box::new(Okaywal(wal.map_err(text)?)))
}

struct Fjall {
    database: fjall::Database,
    records: fjall::Keyspace,
}

impl Log for Fjall {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        let batch = self.database.batch();
        let mut batch = batch.durability(Some(PersistMode::SyncData));
        for number in first..first + group {
            let bytes = bytes_of(&record(number));
            batch.insert(&self.records, number.to_be_bytes(), bytes.as_flattened());
        }
        batch.commit().map_err(text)
    }
}

/// A batch a group, with `PersistMode::SyncData`.
fn fjall(place: &Scratch, _: &Load) -> Opened {
    let database = fjall::Database::builder(&place.0).open().map_err(text)?;
    let records = database.keyspace("records", KeyspaceCreateOptions::default);
    let records = records.map_err(text)?;
    Ok(Box::new(Fjall { database, records }))
}

/// Lets the system write what earlier runs left; what it does for files that were removed (a
/// discard) may still go on.
#[cfg(target_os = "linux")]
pub(super) fn settle() -> Result<(), String> {
    let place = File::open(std::env::temp_dir()).map_err(text)?;
    rustix::fs::syncfs(place).map_err(text)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn settle() -> Result<(), String> {
    Ok(())
}

/// Append all records of a load, and sync at its end if it is synced.
fn loads_of() -> Subjects<Load> {
    let way = |name, append: fn(&Scratch, &Load) -> Result<Duration, String>| {
        subject(name, move |load: &Load| {
            settle()?;
            let took = append(&Scratch::new(name), load)?;
            Ok(Run::of([took.as_nanos() as f64 / load.groups as f64]))
        })
    };
    let ours = |place: &Scratch, load: &Load| {
        let journal = Journal::<Record>::open(&place.0, Options::default());
        let mut journal = journal.map_err(text)?;
        let begin = Instant::now();
        for number in 0..load.groups {
            let appended = journal.append_with(|slot| *slot = record(number));
            appended.map_err(text)?;
        }
        if load.is_synced {
            let _ = journal.commit().map_err(text)?;
        }
        Ok(begin.elapsed())
    };
    let buffered = |place: &Scratch, load: &Load| {
        let mut log = Buffered(BufWriter::with_capacity(BUFFER_BYTES, place.file()?));
        let begin = Instant::now();
        log.group(0, load.groups)?;
        if load.is_synced {
            log.0.flush().map_err(text)?;
            log.0.get_ref().sync_data().map_err(text)?;
        }
        Ok(begin.elapsed())
    };
    vec![way(OURS, ours), way(BUFFERED, buffered)]
}
