//! The least that any durable server does: takes what is due, writes it, waits for the disk.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use thalweg_exchange::codec::session::{encode_submit, submit_bytes};
use thalweg_exchange::session::ClientSequence;
use thalweg_journal::{Journal, Options};
use thalweg_measure::clock::Clock;

use super::loader::Ran;
use super::venue::Orders;
use super::{Told, told};

/// A record of the exchange's journal has so many bytes more than the submit of its command.
const MORE_BYTES: usize = 8;
/// Written and synced before the run, and written over from its beginning where it is full.
const FILE_BYTES: usize = 64 << 20;

/// Where records go.
pub(super) trait Log {
    fn append(&mut self, record: &[u8]) -> Told<()>;
    fn commit(&mut self) -> Told<()>;
}

impl Log for Journal<[u8]> {
    fn append(&mut self, record: &[u8]) -> Told<()> {
        self.append_bytes(record).map(drop).map_err(told)
    }

    fn commit(&mut self) -> Told<()> {
        Journal::commit(self).map(drop).map_err(told)
    }
}

/// The journal as the exchange has it.
pub(super) fn journal(place: &Path) -> Told<Box<dyn Log>> {
    let journal = Journal::<[u8]>::open(place, Options::default()).map_err(told)?;
    Ok(Box::new(journal))
}

/// A file that has its length already, written at its end.
struct Prepared {
    file: File,
    at: u64,
    group: Vec<u8>,
}

impl Log for Prepared {
    fn append(&mut self, record: &[u8]) -> Told<()> {
        self.group.extend_from_slice(record);
        Ok(())
    }

    fn commit(&mut self) -> Told<()> {
        if self.at as usize + self.group.len() > FILE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(&self.group, self.at).map_err(told)?;
        self.file.sync_data().map_err(told)?;
        self.at += self.group.len() as u64;
        self.group.clear();
        Ok(())
    }
}

pub(super) fn prepared(place: &Path) -> Told<Box<dyn Log>> {
    fs::create_dir_all(place).map_err(told)?;
    let file = File::create(place.join("log")).map_err(told)?;
    file.write_all_at(&vec![0; FILE_BYTES], 0).map_err(told)?;
    file.sync_all().map_err(told)?;
    let group = Vec::new();
    Ok(Box::new(Prepared { file, at: 0, group }))
}

/// Records at a fixed rate; one thread appends what is due and commits it. Gives how many commits
/// there were, too.
pub(super) fn open(
    log: &mut dyn Log,
    per_s: u64,
    [warm_up, span]: [Duration; 2],
) -> Told<(Ran, u64)> {
    let mut ran = Ran::default();
    let mut commits = 0;
    let mut orders = Orders::of(1);
    let mut record = Vec::new();
    let clock = Clock::global();
    let ticks = |time: Duration| clock.ticks_from_ns(time.as_nanos() as u64);
    let begin = clock.ticks();
    let (counts_from, end) = (begin + ticks(warm_up), begin + ticks(warm_up + span));
    let due_of = |number: u64| begin + clock.ticks_from_ns(number * 1_000_000_000 / per_s);
    let mut next = 0;
    while due_of(next) < end {
        let now = clock.ticks();
        let first = next;
        while due_of(next) <= now {
            let command = orders.next();
            record.resize(submit_bytes(&command) + MORE_BYTES, 0);
            encode_submit(ClientSequence(next + 1), &command, &mut record).map_err(told)?;
            log.append(&record)?;
            next += 1;
        }
        if next == first {
            pause(clock.ns(due_of(next).saturating_sub(now)))?;
            continue;
        }
        log.commit()?;
        let now = clock.ticks();
        for number in (first..next).filter(|number| due_of(*number) >= counts_from) {
            ran.latency_ns.record(clock.ns(now - due_of(number)));
        }
        ran.answers += next - first;
        commits += u64::from(now >= counts_from);
    }
    ran.ns = clock.ns(clock.ticks() - counts_from);
    Ok((ran, commits))
}

pub(super) fn pause(ns: u64) -> Told<()> {
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: ns.min(1_000_000) as i64,
    };
    poll(&mut [], Some(&limit)).map(drop).map_err(told)
}
