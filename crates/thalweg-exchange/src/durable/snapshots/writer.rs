//! Makes a snapshot, and gives up what it replaces.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use thalweg_journal::{Archived, Error as JournalError, Lsn, Shared, Storage};

use super::disk::{self, list, newest, snapshot_name};
use super::file::{self, Moment};
use super::file_error::Skipped;
use super::lock;
use crate::digest::Digest;
use crate::durable::error::{OpenError, SnapshotWriteError};
use crate::durable::faults::{Faults, Seeded};
use crate::durable::options::SessionLimits;
use crate::durable::replay::{Image, Replayer};
use crate::durable::stats::{ArchiveStats, SnapshotMade};
use crate::durable::tables::{Reports, Tables};
use crate::engine::state::State;

/// The writer of snapshots.
#[derive(Debug)]
pub(in crate::durable) struct Writer<S: Storage> {
    pub(in crate::durable) storage: S,
    pub(in crate::durable) journal: Shared<[u8], S>,
    pub(in crate::durable) identity: u64,
    pub(in crate::durable) limits: SessionLimits,
    pub(in crate::durable) kept: usize,
    pub(in crate::durable) faults: Faults,
    /// Snapshots that are known to be damaged, by how many commands they hold.
    pub(in crate::durable) damaged: Arc<Mutex<BTreeSet<u64>>>,
    pub(in crate::durable) archive: Arc<Mutex<ArchiveStats>>,
    /// No further work is wanted.
    pub(in crate::durable) is_closing: Arc<AtomicBool>,
}

impl<S: Storage> Clone for Writer<S> {
    fn clone(&self) -> Self {
        Self {
            storage: self.storage.clone(),
            journal: self.journal.clone(),
            damaged: Arc::clone(&self.damaged),
            archive: Arc::clone(&self.archive),
            is_closing: Arc::clone(&self.is_closing),
            ..*self
        }
    }
}

impl<S: Storage> Writer<S> {
    /// Makes the snapshot of an exchange with these tables. Returns `None` where there is one as
    /// new.
    pub(super) fn make(&self, live: &Reports) -> Result<Option<SnapshotMade>, SnapshotWriteError> {
        let began = Instant::now();
        assert!(!self.faults.has(Seeded::PanicInSnapshot), "a seeded fault");
        let place = self.storage.location();
        let found = newest(&self.storage, self.identity, &self.limits)?;
        let found = found.ok_or_else(|| OpenError::NoRules {
            place: place.clone(),
        })?;
        self.note_damaged(&found.skipped);
        let mut image = found.image;
        if image.number >= live.lock().noted.outcomes() {
            return Ok(None);
        }
        // They were whole, and give their memory to the copy.
        image.tables = Tables::new(&self.limits);
        let copy = live.copied(&self.limits, || self.is_closing());
        let (from, tables) = copy.ok_or(SnapshotWriteError::Closed)?;
        let live = tables.noted;
        let commands = live.outcomes();
        image.tables = tables;
        // Commands that are not synced may be ahead of the disk.
        let _durable = self.journal.commit(Lsn::new(commands))?;
        let mut reader = self.journal.follow(Lsn::new(image.number + 1))?;
        let mut replayer = Replayer::with_tables_from(from);
        while image.number < commands {
            if self.is_closing() {
                return Err(SnapshotWriteError::Closed);
            }
            let is_final = reader.is_final();
            let executed = replayer.block(&mut image, &mut reader, commands, &place, None)?;
            // It is durable, so it is there, unless the journal has stopped.
            if executed.is_none() && is_final {
                return Err(SnapshotWriteError::Closed);
            }
        }
        if image.digest != live {
            return Err(SnapshotWriteError::Digest {
                commands,
                live,
                replayed: image.digest,
            });
        }
        let Image { state, tables, .. } = &image;
        self.write(state, tables, live, began).map(Some)
    }

    fn is_closing(&self) -> bool {
        // ORDERING: Relaxed; a wish, by which nothing else is read.
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Writes the last snapshot of an exchange, unless there is one that is as new.
    pub(in crate::durable) fn last(
        &self,
        state: &State,
        tables: &Tables,
        digest: Digest,
    ) -> Result<Option<SnapshotMade>, SnapshotWriteError> {
        let commands = digest.outcomes();
        if self.is_whole(commands) {
            return Ok(None);
        }
        self.write(state, tables, digest, Instant::now()).map(Some)
    }

    /// Writes the snapshot of this state, and gives up older ones and the journal before them.
    pub(in crate::durable) fn write(
        &self,
        state: &State,
        tables: &Tables,
        digest: Digest,
        began: Instant,
    ) -> Result<SnapshotMade, SnapshotWriteError> {
        let moment = Moment {
            journal: self.identity,
            digest,
            sessions: self.limits,
        };
        let none = Tables::new(&self.limits);
        let tables = match self.faults.has(Seeded::ForgetSessions) {
            true => &none,
            false => tables,
        };
        let (bytes, header) = file::encode(state, tables, moment);
        file::decode(&bytes, &self.limits).map_err(SnapshotWriteError::Unreadable)?;
        disk::write(&self.storage, header.commands, &bytes)?;
        lock(&self.damaged).remove(&header.commands);
        self.note_archived(self.give_up(header.commands))?;
        Ok(SnapshotMade {
            commands: header.commands,
            state_hash: header.state_hash,
            bytes: bytes.len() as u64,
            took: began.elapsed(),
        })
    }

    /// Notes whether what was given up is in the archive. If it is not, it stays, and the snapshot
    /// is written all the same.
    fn note_archived(
        &self,
        given_up: Result<(), SnapshotWriteError>,
    ) -> Result<(), SnapshotWriteError> {
        let mut archive = lock(&self.archive);
        archive.failed = match given_up {
            Err(SnapshotWriteError::Journal(error @ JournalError::Archive { .. })) => Some(error),
            Err(error) => return Err(error),
            Ok(()) => None,
        };
        archive.failures += u64::from(archive.failed.is_some());
        Ok(())
    }

    /// Gives up all snapshots but this one and the newest before it, and the journal before those.
    fn give_up(&self, newest: u64) -> Result<(), SnapshotWriteError> {
        let mut whole: Vec<u64> = Vec::new();
        for commands in list(&self.storage)?.into_iter().rev() {
            let is_kept = whole.len() < self.kept
                && commands <= newest
                && (commands == newest || self.is_whole(commands));
            if is_kept {
                whole.push(commands);
                continue;
            }
            let name = snapshot_name(commands);
            // Those that are damaged are of no use in an archive.
            let is_worth = commands < newest && self.is_whole(commands);
            let archived = match is_worth {
                true => self.storage.archive(&name).map_err(|error| {
                    let file = format!("{}/{name}", self.storage.location());
                    JournalError::archive(file, error)
                })?,
                false => Archived::No,
            };
            if archived == Archived::Moved {
                continue;
            }
            let removed = disk::remove(&self.storage, &name);
            removed.map_err(disk::io_error(&self.storage, &name, "be removed"))?;
        }
        let oldest = match self.faults.has(Seeded::RetainTooLittle) {
            true => newest,
            false => whole.last().copied().unwrap_or(0),
        };
        if self.faults.has(Seeded::RetainTooMuch) {
            return Ok(());
        }
        self.journal.truncate_before(Lsn::new(oldest + 1))?;
        Ok(())
    }

    /// Those are no longer kept, once there is a new one.
    pub(in crate::durable) fn note_damaged(&self, skipped: &[Skipped]) {
        lock(&self.damaged).extend(skipped.iter().map(|one| one.commands));
    }

    /// Returns whether a snapshot is one of ours, and its checksum agrees.
    fn is_whole(&self, commands: u64) -> bool {
        let name = snapshot_name(commands);
        !lock(&self.damaged).contains(&commands)
            && disk::checked_header(&self.storage, &name)
                .is_ok_and(|header| header.commands == commands && header.journal == self.identity)
    }
}
