//! Segments that are no longer needed are given up: kept to be used again, or removed.

use super::Tail;
use crate::error::Error;
use crate::fault::Seeded;
use crate::format::{is_spare, segment_name, spare_name};
use crate::lsn::Lsn;
use crate::options::JournalOptions;
use crate::scan::{is_absent, open_segment};
use crate::storage::{Archived, Storage};

impl<S: Storage> Tail<S> {
    /// Gives up segments that hold only records before `lsn`. The last one is kept in any case.
    pub(crate) fn truncate_before(&mut self, lsn: Lsn) -> Result<Lsn, Error> {
        self.check()?;
        // The segment that follows one that is given up must be a used one.
        self.settle_unsynced(0)?;
        while let Some(number) = self.dispensable(lsn) {
            give_up(&self.storage, &self.options, number)?;
            self.forget(number);
        }
        Ok(self.first())
    }

    /// Returns the first segment, if it holds only records before `lsn` and a used one follows it:
    /// one that begins behind what is durable.
    pub(crate) fn dispensable(&self, lsn: Lsn) -> Option<u64> {
        let second = self.used.get(1)?;
        let is_used = second.first.before() <= self.durable;
        (second.first <= lsn && is_used).then(|| self.used[0].number)
    }

    /// This segment was given up.
    pub(crate) fn forget(&mut self, number: u64) {
        if self.used[0].number == number {
            self.used.pop_front();
        }
    }

    /// Returns the first record that is kept.
    pub(crate) fn first(&self) -> Lsn {
        self.used[0].first
    }
}

/// Gives up the first segment. A thread that writes the last one meanwhile is not affected.
pub(crate) fn give_up<S: Storage>(
    storage: &S,
    options: &JournalOptions,
    number: u64,
) -> Result<(), Error> {
    let name = segment_name(number);
    let full = format!("{}/{name}", storage.location());
    let archived = storage.archive(&name);
    let archived = archived.map_err(|error| Error::archive(full.clone(), error))?;
    let spares = storage.list();
    let spares = spares.map_err(|error| Error::io(storage.location(), "be read", error))?;
    let spares = spares.iter().filter(|name| is_spare(name)).count();
    let done = match spares < options.recycled_files_max {
        _ if archived == Archived::Moved => Ok(()),
        true => open_segment(storage, number, false, options.faults).and_then(|old| {
            let renamed = storage.rename(&name, &spare_name(old.header.epoch));
            renamed.map_err(|error| Error::io(&full, "be given up", error))
        }),
        false => {
            let removed = storage.remove(&name);
            removed.map_err(|error| Error::io(&full, "be given up", error))
        }
    };
    match done {
        // It went the last time, and the names could not be synced.
        Err(error) if is_absent(&error) => {}
        done => done?,
    }
    // One after the other, so that a crash leaves no gap.
    if options.faults.has(Seeded::GiveUpAtOnce) {
        return Ok(());
    }
    let synced = storage.sync_names();
    synced.map_err(|error| Error::io(storage.location(), "be synced", error))
}
