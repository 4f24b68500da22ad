//! The simulated log, and what happens to the calls of replicas.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use thalweg_measure::random::SplitMix;

use super::Seeded;
use crate::durable::replication::log::{
    Claim, CommandLog, LogError, StoredBatch, Tail, WriteOutcome,
};

/// A write on its way.
#[derive(Clone, Debug)]
enum Write {
    Claim(Option<Claim>, Claim),
    Append(Claim, Option<u64>, u64, Vec<u8>),
    Beat(Claim),
    Forget(Claim, u64),
}

impl Write {
    /// Returns who makes it.
    fn holder(&self) -> &str {
        match self {
            Self::Claim(_, claim)
            | Self::Append(claim, ..)
            | Self::Beat(claim)
            | Self::Forget(claim, _) => &claim.holder,
        }
    }
}

/// A batch as the observer knows it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) bytes: Vec<u8>,
    /// The epoch of the claim that was the present one when it was written.
    pub(super) written_under: u64,
}

#[derive(Debug)]
pub(in super::super) struct World {
    claim: Option<Claim>,
    batches: BTreeMap<u64, Vec<u8>>,
    /// All batches that were ever written.
    pub(super) history: BTreeMap<u64, Seen>,
    pub(in super::super) revision: u64,
    late: Vec<Write>,
    random: SplitMix,
    seeded: Option<Seeded>,
    /// Whether every call is answered, as it should be.
    pub(in super::super) is_well: bool,
    /// The holder whose calls do not arrive.
    pub(in super::super) cut_off: Option<String>,
    /// Whether a claim and the note of a halt are not answered.
    pub(in super::super) is_hung: bool,
    /// Whether calls panic that read or append.
    pub(in super::super) panics: bool,
    /// Whether its claim is one of another version.
    pub(in super::super) is_foreign: bool,
    /// Calls that have waited for that.
    pub(in super::super) waited: u64,
    /// Why replicas have halted.
    pub(in super::super) halts: Vec<String>,
    pub(in super::super) claims: u64,
    pub(super) unknown: u64,
    pub(super) late_writes: u64,
    pub(super) fenced: u64,
    pub(super) forgotten: u64,
}

/// The way of replicas to the log.
#[derive(Clone, Debug)]
pub(in super::super) struct SimLog(Arc<Mutex<World>>);

impl SimLog {
    /// Returns a log without faults that answers each call.
    pub(in super::super) fn well() -> Self {
        let log = Self::new(0, None);
        log.world().is_well = true;
        log
    }

    pub(in super::super) fn new(seed: u64, seeded: Option<Seeded>) -> Self {
        Self(Arc::new(Mutex::new(World {
            claim: None,
            batches: BTreeMap::new(),
            history: BTreeMap::new(),
            revision: 0,
            late: Vec::new(),
            random: SplitMix::new(seed ^ 0x10C),
            seeded,
            is_well: false,
            cut_off: None,
            is_hung: false,
            panics: false,
            is_foreign: false,
            waited: 0,
            halts: Vec::new(),
            claims: 0,
            unknown: 0,
            late_writes: 0,
            fenced: 0,
            forgotten: 0,
        })))
    }

    pub(in super::super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("no panic")
    }

    /// Waits while the log is hung.
    fn wait(&self) {
        let mut world = self.world();
        world.waited += u64::from(world.is_hung);
        drop(world);
        while self.world().is_hung {
            thread::yield_now();
        }
    }

    fn panic_if_asked(&self) {
        let panics = self.world().panics;
        assert!(!panics, "the simulation asks for it");
    }

    fn write(&self, write: Write) -> WriteOutcome {
        let mut world = self.world();
        let unknown = || WriteOutcome::Unknown("no answer in time".to_owned());
        if world.cut_off.as_deref() == Some(write.holder()) {
            return unknown();
        }
        let chance = match world.is_well {
            true => 0,
            false => world.random.below(24),
        };
        match chance {
            1 => {
                world.unknown += 1;
                let _ = world.apply(write);
                unknown()
            }
            2 => {
                world.unknown += 1;
                unknown()
            }
            3 | 4 => {
                world.unknown += 1;
                world.late.push(write);
                unknown()
            }
            _ => world.apply(write),
        }
    }
}

impl World {
    /// Lets a write arrive whose caller has given it up, if there is one.
    pub(super) fn arrive(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let at = self.random.below(self.late.len() as u64) as usize;
        let write = self.late.swap_remove(at);
        self.late_writes += u64::from(self.apply(write) == WriteOutcome::Acked);
    }

    /// Returns the index of the oldest batch that is kept.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.batches.first_key_value().map(|(index, _)| *index)
    }

    /// Writes the bytes of an early batch once more, as the newest.
    pub(super) fn replay(&mut self) {
        let newest = self.batches.last_key_value().map(|(index, _)| *index);
        let oldest = self
            .batches
            .first_key_value()
            .map(|(_, bytes)| bytes.clone());
        if let (Some(newest), Some(bytes)) = (newest, oldest) {
            let count = super::observer::count_of(&self.batches[&newest]);
            self.batches.insert(newest + count, bytes);
            self.revision += 1;
        }
    }

    fn apply(&mut self, write: Write) -> WriteOutcome {
        let is_present = |claim: &Claim| self.claim.as_ref() == Some(claim);
        let holds = match &write {
            Write::Claim(seen, _) => self.claim == *seen,
            Write::Append(claim, previous, index, _) => {
                let compares = self.seeded != Some(Seeded::SkipClaim);
                let is_next = match previous {
                    _ if self.seeded == Some(Seeded::SkipPrevious) => true,
                    Some(previous) => self.batches.contains_key(previous),
                    None => self.history.is_empty(),
                };
                (!compares || is_present(claim)) && is_next && !self.batches.contains_key(index)
            }
            Write::Beat(claim) | Write::Forget(claim, _) => is_present(claim),
        };
        if !holds {
            self.fenced += 1;
            return WriteOutcome::Fenced;
        }
        self.revision += 1;
        match write {
            Write::Claim(_, new) => {
                self.claim = Some(new);
                self.claims += 1;
            }
            Write::Append(_, _, index, bytes) => {
                let written_under = self.claim.as_ref().map_or(0, |claim| claim.epoch);
                let seen = Seen {
                    bytes: bytes.clone(),
                    written_under,
                };
                self.history.insert(index, seen);
                self.batches.insert(index, bytes);
            }
            Write::Beat(_) => {}
            Write::Forget(_, before) => {
                self.batches = self.batches.split_off(&before);
                self.forgotten += 1;
            }
        }
        WriteOutcome::Acked
    }

    fn answers(&mut self) -> Result<(), LogError> {
        match self.is_well || self.random.below(16) > 0 {
            true => Ok(()),
            false => Err(LogError::Silent("no answer in time".to_owned())),
        }
    }
}

impl CommandLog for SimLog {
    fn claim(&mut self, seen: Option<&Claim>, new: &Claim) -> WriteOutcome {
        self.wait();
        self.write(Write::Claim(seen.cloned(), new.clone()))
    }

    fn append(
        &mut self,
        claim: &Claim,
        previous: Option<u64>,
        index: u64,
        batch: &[u8],
    ) -> WriteOutcome {
        self.panic_if_asked();
        let batch = batch.to_vec();
        self.write(Write::Append(claim.clone(), previous, index, batch))
    }

    fn heartbeat(&mut self, claim: &Claim) -> WriteOutcome {
        self.write(Write::Beat(claim.clone()))
    }

    fn read(&mut self, from: u64) -> Result<Tail, LogError> {
        self.panic_if_asked();
        let mut world = self.world();
        world.answers()?;
        if world.is_foreign {
            return Err(LogError::Foreign("a claim of version 3".to_owned()));
        }
        let most = 1 + world.random.below(4) as usize;
        let batches = world.batches.range(from..).take(most);
        let batches = batches.map(|(index, bytes)| StoredBatch {
            index: *index,
            bytes: bytes.clone(),
        });
        Ok(Tail {
            batches: batches.collect(),
            claim: world.claim.clone(),
            revision: world.revision,
            newest: world.batches.last_key_value().map(|(index, _)| *index),
        })
    }

    fn find(&mut self, at: u64) -> Result<Option<StoredBatch>, LogError> {
        let mut world = self.world();
        world.answers()?;
        let found = world.batches.range(..=at).next_back();
        Ok(found.map(|(index, bytes)| StoredBatch {
            index: *index,
            bytes: bytes.clone(),
        }))
    }

    fn indices(&mut self, from: u64, before: u64) -> Result<Vec<u64>, LogError> {
        let mut world = self.world();
        world.answers()?;
        let found = world.batches.range(from..before.max(from));
        Ok(found.take(3).map(|(index, _)| *index).collect())
    }

    fn delete_before(&mut self, claim: &Claim, before: u64) -> WriteOutcome {
        self.write(Write::Forget(claim.clone(), before))
    }

    fn note_position(&mut self, _: &str, _: u64) -> WriteOutcome {
        WriteOutcome::Acked
    }

    fn note_halt(&mut self, _: &str, _: u64, why: &str) -> WriteOutcome {
        self.wait();
        self.world().halts.push(why.to_owned());
        WriteOutcome::Acked
    }

    fn positions(&mut self) -> Result<Vec<(String, u64)>, LogError> {
        Ok(Vec::new())
    }

    fn note_peer(&mut self, _: &str, _: &str) -> WriteOutcome {
        WriteOutcome::Acked
    }

    fn peers(&mut self) -> Result<Vec<(String, String)>, LogError> {
        Ok(Vec::new())
    }
}
