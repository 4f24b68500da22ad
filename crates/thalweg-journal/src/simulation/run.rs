//! One run: some lives of one journal.

use super::model::{Entry, Model, random};
use crate::fault::{Faults, Seeded};
use crate::journal::Journal;
use crate::truncate::truncate_with;
use crate::{Error, Fault, JournalOptions, Lsn, Operation, Reader, SimDisk};
use thalweg_testkit::Random;

const LIVES: u64 = 6;
const SEGMENT_BYTES: u64 = 48 << 10;
const BLOCK_BYTES_MAX: u64 = 16 << 10;
/// Operations of the disk within which the power fails, counted from the begin of a life.
const LIFE_OPERATIONS: u64 = 160;

/// The events of a run, counted.
#[derive(Debug, Default)]
pub(super) struct Stats {
    pub(super) crashes: u64,
    pub(super) crashes_in_open: u64,
    pub(super) torn: u64,
    pub(super) records_lost: u64,
    pub(super) records_kept_unacknowledged: u64,
    pub(super) errors: u64,
    pub(super) truncations: u64,
    pub(super) segments_given_up: u64,
    pub(super) rolls: u64,
}

impl Stats {
    pub(super) fn add(&mut self, other: &Stats) {
        self.crashes += other.crashes;
        self.crashes_in_open += other.crashes_in_open;
        self.torn += other.torn;
        self.records_lost += other.records_lost;
        self.records_kept_unacknowledged += other.records_kept_unacknowledged;
        self.errors += other.errors;
        self.truncations += other.truncations;
        self.segments_given_up += other.segments_given_up;
        self.rolls += other.rolls;
    }
}

struct Run {
    /// Each block holds one short record, so that a block fits where another one was.
    is_even: bool,
    /// All records are the same, as those of a client that tries again.
    is_same: bool,
    /// Segments that may be continued before they are durable.
    unsynced_max: usize,
    /// Records that are there if only the program ends.
    flushed: usize,
    random: Random,
    disk: SimDisk,
    faults: Faults,
    model: Model,
    stats: Stats,
}

/// How a life ends.
enum End {
    PowerFailed,
    /// The disk gave an error, and the journal has to be opened again.
    Stopped,
    /// The program ended.
    Dropped,
}

pub(super) fn run(seed: u64, seeded: Option<Seeded>) -> Result<Stats, String> {
    let mut run = Run {
        is_even: seed.is_multiple_of(3),
        // Where the chain of sums is all that keeps stale blocks out, it needs blocks that differ.
        is_same: seed.is_multiple_of(6) && seeded != Some(Seeded::ForgetPreviousSum),
        unsynced_max: (seed % 4) as usize,
        flushed: 0,
        random: random(seed),
        disk: SimDisk::new(),
        faults: Faults { seeded },
        model: Model::default(),
        stats: Stats::default(),
    };
    for _ in 0..LIVES {
        run.life()?;
    }
    run.check()?;
    Ok(run.stats)
}

impl Run {
    fn options(&self) -> JournalOptions {
        let mut options = JournalOptions::default()
            .segment_bytes(SEGMENT_BYTES)
            .block_bytes_max(BLOCK_BYTES_MAX)
            .journal_number(7)
            .in_background(false);
        options.faults = self.faults;
        options.unsynced_here_max = self.unsynced_max;
        options
    }

    /// The power fails some time from now on.
    fn plan_failure(&mut self, within: u64) {
        let at = self.disk.operations() + 1 + self.random.below(within);
        self.disk.fail_power_at(at);
    }

    fn restart(&mut self) {
        self.disk.restart(self.random.next_u64());
        self.flushed = 0;
        self.stats.crashes += 1;
    }

    fn life(&mut self) -> Result<(), String> {
        let within = match self.random.below(4) {
            // Often while it is opened.
            0 => 25,
            _ => LIFE_OPERATIONS,
        };
        self.plan_failure(within);
        if self.random.one_in(3) {
            self.plan_error();
        }
        let mut end = self.live()?;
        while !matches!(end, End::PowerFailed) {
            // Without a loss of power in between: the page cache is as it was.
            end = self.live()?;
        }
        self.restart();
        if self.random.one_in(2) {
            self.check()?;
        }
        if self.random.one_in(4) {
            self.truncate()?;
        }
        Ok(())
    }

    fn plan_error(&mut self) {
        let (operation, fault) = match self.random.below(11) {
            0 => (Operation::WriteNow, Fault::Io),
            1 => (Operation::Sync, Fault::Io),
            2 => (Operation::Write, Fault::Io),
            3 => (Operation::Allocate, Fault::Full),
            4 => (Operation::WriteNow, Fault::Short),
            5 => (Operation::Write, Fault::Short),
            6 => (Operation::Read, Fault::Io),
            7 => (Operation::Open, Fault::Io),
            8 => (Operation::Rename, Fault::Io),
            9 => (Operation::Remove, Fault::Io),
            _ => (Operation::SyncNames, Fault::Io),
        };
        let countdown = self.random.below(6);
        self.disk.fail(operation, countdown, fault);
    }

    fn live(&mut self) -> Result<End, String> {
        let opened = Journal::<[u8], SimDisk>::open_in(self.disk.clone(), self.options());
        let mut journal = match opened {
            Ok(journal) => journal,
            Err(error) => {
                self.stats.crashes_in_open += 1;
                return self.ended(error);
            }
        };
        self.stats.torn += u64::from(journal.recovery().torn.is_some());
        let last = journal.recovery().last.number() as usize;
        if last < self.flushed.max(self.model.acknowledged) || last > self.model.appended.len() {
            let (acknowledged, appended) = (self.model.acknowledged, self.model.appended.len());
            let flushed = self.flushed;
            return Err(format!(
                "opened with {last} records; {acknowledged} acknowledged, {flushed} flushed, \
                 {appended} appended"
            ));
        }
        self.stats.records_lost += (self.model.appended.len() - last) as u64;
        self.stats.records_kept_unacknowledged += (last - self.model.acknowledged) as u64;
        self.model.end_at(last);
        loop {
            let done = match self.random.below(40) {
                0..=24 => self.append(&mut journal),
                25..=33 => self.commit(&mut journal),
                34..=36 => self.flush(&mut journal),
                37..=38 => self.retain(&mut journal),
                _ => return Ok(End::Dropped),
            };
            match done {
                Ok(()) => {}
                // Nothing has changed: it goes on.
                Err(_) if journal.flush().is_ok() => self.stats.errors += 1,
                Err(error) => return self.ended(error),
            }
        }
    }

    /// An error is no fault where the disk gave one, or has no power.
    fn ended(&mut self, error: Error) -> Result<End, String> {
        let text = error.to_string();
        if text.contains("the power is off") {
            return Ok(End::PowerFailed);
        }
        let is_from_disk = matches!(error, Error::Io { .. } | Error::Stopped { .. });
        self.stats.errors += 1;
        is_from_disk.then_some(End::Stopped).ok_or(text)
    }

    fn append(&mut self, journal: &mut Journal<[u8], SimDisk>) -> Result<(), Error> {
        let records = match self.is_even {
            true => 1,
            false => 1 + self.random.below(12),
        };
        for _ in 0..records {
            let bytes = match self.random.below(8) {
                _ if self.is_even => 40,
                0 => self.random.below(6_000),
                _ => self.random.below(100),
            };
            let entry = Entry {
                salt: match self.is_same {
                    true => 0,
                    false => self.random.next_u64(),
                },
                bytes: bytes as usize,
            };
            journal.append_bytes_with(entry.bytes, |slot| entry.fill(slot))?;
            self.model.appended.push(entry);
        }
        // Some are written only when a segment is full of them.
        match self.is_even && !self.random.one_in(4) {
            true => self.flush(journal),
            false => Ok(()),
        }
    }

    fn flush(&mut self, journal: &mut Journal<[u8], SimDisk>) -> Result<(), Error> {
        journal.flush()?;
        self.flushed = self.model.appended.len();
        Ok(())
    }

    fn commit(&mut self, journal: &mut Journal<[u8], SimDisk>) -> Result<(), Error> {
        let durable = journal.commit()?;
        self.model.acknowledged = durable.get().number() as usize;
        self.flushed = self.model.acknowledged;
        Ok(())
    }

    fn retain(&mut self, journal: &mut Journal<[u8], SimDisk>) -> Result<(), Error> {
        let lsn = self.random.below(self.model.acknowledged as u64 + 1);
        self.model.kept_from = self.model.kept_from.max(lsn);
        let before = journal.recovery().first;
        let first = journal.truncate_before(Lsn::new(self.model.kept_from))?;
        self.stats.segments_given_up += u64::from(first > before);
        self.stats.rolls += u64::from(first.number() > 1);
        Ok(())
    }

    /// Reads all that there is; the power is on.
    fn check(&mut self) -> Result<(), String> {
        let mut reader = match Reader::new(self.disk.clone(), Lsn::ZERO, None, self.faults) {
            Ok(reader) => reader,
            Err(Error::NoJournal { .. }) if self.model.acknowledged == 0 => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let first = reader.next().number();
        let mut records = Vec::new();
        while let Some(block) = reader.next_block().map_err(|error| error.to_string())? {
            for (lsn, record) in block.bytes() {
                if lsn.number() != first + records.len() as u64 {
                    return Err(format!("record {lsn} comes after {}", records.len()));
                }
                records.push(record.to_vec());
            }
        }
        self.model.recovered(first, &records)
    }

    /// Truncates before some block; the power may fail meanwhile, and then it does so again.
    fn truncate(&mut self) -> Result<(), String> {
        let Some(at) = self.block_to_truncate()? else {
            return Ok(());
        };
        if self.random.one_in(2) {
            self.plan_failure(30);
        }
        while let Err(error) = truncate_with(&self.disk, Some(at), self.faults) {
            if !error.to_string().contains("the power is off") {
                return Err(format!("truncate at {at}: {error}"));
            }
            self.restart();
        }
        self.disk.fail_power_at(0);
        self.stats.truncations += 1;
        self.model.end_at(at.number() as usize - 1);
        self.model.kept_from = self.model.kept_from.min(at.number());
        Ok(())
    }

    fn block_to_truncate(&mut self) -> Result<Option<Lsn>, String> {
        self.check()?;
        let reader = Reader::new(self.disk.clone(), Lsn::ZERO, None, self.faults);
        let Ok(mut reader) = reader else {
            return Ok(None);
        };
        let mut firsts = Vec::new();
        while let Some(block) = reader.next_block().map_err(|error| error.to_string())? {
            firsts.push(block.first());
        }
        let blocks = firsts.len() as u64;
        Ok((blocks > 0).then(|| firsts[self.random.below(blocks) as usize]))
    }
}
