//! The end of a log, where blocks are written: one at a time, by the thread that holds it; its
//! segments are continued and given up here.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::Error;
use crate::fault::Seeded;
use crate::format::{
    BlockHeader, SegmentHeader, is_part, is_spare, padded, part_name, segment_name, spare_name,
};
use crate::lsn::{Durable, Lsn};
use crate::options::JournalOptions;
use crate::pages::OpenBlock;
use crate::prepare::{Demand, Prepared, Preparer, prepare};
use crate::recovery::{Directory, End, Known, Recovery, settle, spare_epoch_max, survey_to_write};
use crate::scan::{Segment, is_absent, open_segment};
use crate::storage::{Archived, Storage, StorageFile, WriteSync, write_fully};
use crate::unsynced::{Named, UnsyncedSegment, UnsyncedSegments};
use crate::watermark::Watermark;

#[derive(Debug)]
pub(crate) struct Tail<S: Storage> {
    storage: S,
    options: JournalOptions,
    preparer: Preparer<S>,
    unsynced: UnsyncedSegments<S>,
    used: VecDeque<Known>,
    /// Numbers of segments that an earlier run has prepared.
    prepared: VecDeque<u64>,
    /// The epoch of the next segment that is made.
    epoch: u64,
    segment: Segment<S::File>,
    durable: Lsn,
    watermark: Arc<Watermark>,
    /// Why nothing is written any more.
    stopped: Option<Error>,
    _lock: S::Lock,
}

impl<S: Storage> Tail<S> {
    /// Locks a directory, makes a journal there if there is none, and finds its end.
    pub(crate) fn open(
        storage: S,
        options: JournalOptions,
        record_bytes: u32,
    ) -> Result<(Tail<S>, Recovery), Error> {
        let location = storage.location();
        let failed = |what| {
            let location = location.clone();
            move |error| Error::io(location, what, error)
        };
        storage.create_directory().map_err(failed("be made"))?;
        let lock = storage.lock().map_err(failed("be locked"))?;
        let lock = lock.ok_or_else(|| Error::InUse {
            location: location.clone(),
        })?;
        let found = survey_to_write(&storage, options.faults)?;
        let mut found = match found {
            Some(found) => found,
            None => create(&storage, &options, record_bytes)?,
        };
        found.check_room()?;
        let stored = found.last.header.record_bytes;
        if stored != record_bytes {
            let asked = record_bytes;
            return Err(Error::RecordSizeMismatch {
                location,
                stored,
                asked,
            });
        }
        let (recovery, end) = found.recover()?;
        let mut tail = Tail {
            preparer: Preparer::new(&storage, &options),
            unsynced: UnsyncedSegments::new(options.resting_max()),
            storage,
            options,
            used: found.used,
            prepared: found.prepared.into(),
            epoch: found.epoch_max + 1,
            durable: found.last.next.before(),
            segment: found.last,
            watermark: Arc::default(),
            stopped: None,
            _lock: lock,
        };
        tail.tidy()?;
        tail.settle(&end)?;
        tail.watermark.set(tail.durable);
        tail.order(false);
        Ok((tail, recovery))
    }

    /// Removes what an earlier run left half done, and prepared segments of another size.
    fn tidy(&mut self) -> Result<(), Error> {
        let sizes: Result<Vec<bool>, Error> = self
            .prepared
            .iter()
            .map(|number| {
                let segment = open_segment(&self.storage, *number, false, self.options.faults)?;
                Ok(segment.header.segment_bytes == self.options.segment_bytes)
            })
            .collect();
        let names = self.storage.list();
        let names = names.map_err(|error| Error::io(self.storage.location(), "be read", error))?;
        let mut leftover: Vec<String> = names.into_iter().filter(|name| is_part(name)).collect();
        if sizes?.contains(&false) {
            // From the last one on, so that there is never a gap.
            leftover.extend(self.prepared.drain(..).rev().map(segment_name));
        }
        for name in leftover {
            match self.storage.remove(&name) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                removed => removed.map_err(|error| {
                    Error::io(
                        format!("{}/{name}", self.storage.location()),
                        "be removed",
                        error,
                    )
                })?,
            }
            self.sync_names()?;
        }
        Ok(())
    }

    fn settle(&mut self, end: &End) -> Result<(), Error> {
        let settled = match self.options.faults.has(Seeded::TrustTheCache) {
            true => self.segment.file.sync(),
            false => settle(&self.segment, end),
        };
        settled.map_err(|error| Error::io(&self.segment.name, "be written", error))?;
        self.sync_names()
    }

    fn sync_names(&self) -> Result<(), Error> {
        let synced = self.storage.sync_names();
        synced.map_err(|error| Error::io(self.storage.location(), "be synced", error))
    }

    pub(crate) fn storage(&self) -> &S {
        &self.storage
    }

    pub(crate) fn options(&self) -> &JournalOptions {
        &self.options
    }

    /// Returns the number of the journal.
    pub(crate) fn journal(&self) -> u64 {
        self.segment.header.journal
    }

    pub(crate) fn watermark(&self) -> &Arc<Watermark> {
        &self.watermark
    }

    /// Returns the last record that was written, durable or not.
    pub(crate) fn written(&self) -> Lsn {
        self.segment.next.before()
    }

    pub(crate) fn durable(&self) -> Durable<Lsn> {
        Durable::promise(self.durable)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.stopped {
            None => Ok(()),
            Some(error) => Err(error.stopped()),
        }
    }

    /// Runs work that the storage has a part in. If that panics, what it did is not known, and the
    /// log stops.
    fn or_stop<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        struct Stops<'t, S: Storage>(&'t mut Tail<S>);
        impl<S: Storage> Drop for Stops<'_, S> {
            fn drop(&mut self) {
                let error = std::io::Error::other("the storage has panicked");
                let error = Error::io(&self.0.segment.name, "be written", error);
                self.0.stop(error);
            }
        }
        let stops = Stops(self);
        let result = work(stops.0);
        std::mem::forget(stops);
        result
    }

    fn stop(&mut self, error: Error) -> Error {
        if !self.options.faults.has(Seeded::TrustTheNextSync) {
            self.stopped = Some(error.clone());
            self.watermark.close();
        }
        error
    }

    /// Writes a block and empties it. With [`WriteSync::Immediate`], it and all before it are
    /// durable then.
    ///
    /// # Errors
    /// There is no room for the next segment: nothing has changed, and it may be tried again.
    /// Or writing failed, and nothing is written any more.
    pub(crate) fn write(&mut self, block: &mut OpenBlock, sync: WriteSync) -> Result<(), Error> {
        self.check()?;
        self.or_stop(|tail| tail.write_block(block, sync))
    }

    fn write_block(&mut self, block: &mut OpenBlock, sync: WriteSync) -> Result<(), Error> {
        if block.count() == 0 {
            return match sync {
                WriteSync::Deferred => Ok(()),
                WriteSync::Immediate => self.sync(),
            };
        }
        if self.segment.room() < padded(block.length()) as u64 {
            self.next_segment()?;
        }
        let header = BlockHeader {
            first: self.segment.next,
            durable: self.durable,
            count: block.count(),
            length_bytes: block.length() as u32,
            previous_crc: self.segment.previous_crc,
            crc: 0,
        };
        let (bytes, crc) = block.seal(&header, self.segment.key());
        // A durable write says nothing of the writes before it.
        let is_first =
            self.durable >= self.written() || self.options.faults.has(Seeded::SyncOnlyTheLastBlock);
        let one_write = match sync {
            WriteSync::Immediate if is_first && !self.acknowledges_early() => WriteSync::Immediate,
            _ => WriteSync::Deferred,
        };
        let written = write_fully(&self.segment.file, self.segment.offset, bytes, one_write);
        if let Err(error) = written {
            let error = Error::io(&self.segment.name, "be written", error);
            return Err(self.stop(error));
        }
        self.segment.pass(&BlockHeader { crc, ..header });
        block.clear();
        match (sync, one_write) {
            (WriteSync::Deferred, _) if self.unsynced.waiting() > 0 => {
                self.settle_unsynced(usize::MAX)?
            }
            (WriteSync::Deferred, _) => {}
            (WriteSync::Immediate, WriteSync::Immediate) => self.all_is_durable(),
            (WriteSync::Immediate, WriteSync::Deferred) => self.sync()?,
        }
        Ok(())
    }

    fn acknowledges_early(&self) -> bool {
        self.options.faults.has(Seeded::AcknowledgeBeforeSync)
    }

    fn all_is_durable(&mut self) {
        self.durable = self.written();
        self.watermark.set(self.durable);
    }

    /// Makes all that was written durable.
    fn sync(&mut self) -> Result<(), Error> {
        if self.durable < self.written() && !self.acknowledges_early() {
            if !self.options.faults.has(Seeded::ForgetUnsynced) {
                self.settle_unsynced(0)?;
            }
            if let Err(error) = self.segment.file.sync() {
                let error = Error::io(&self.segment.name, "be synced", error);
                return Err(self.stop(error));
            }
        }
        self.all_is_durable();
        Ok(())
    }
}

// From one segment to the next.

impl<S: Storage> Tail<S> {
    /// Writes a block, so that it is there if the program ends: none of those before it may be in a
    /// segment whose header does not say so yet.
    pub(crate) fn flush(&mut self, block: &mut OpenBlock) -> Result<(), Error> {
        self.write(block, WriteSync::Deferred)?;
        match self.options.faults.has(Seeded::FlushWithoutHeader) {
            true => Ok(()),
            false => self.settle_unsynced(0),
        }
    }

    /// Writes a block as [`flush`](Self::flush) does, but has a thread make the segments durable
    /// that are not synced, where there is one. Returns whether they are, so that the block is
    /// there if the program ends.
    pub(crate) fn begin_flush(&mut self, block: &mut OpenBlock) -> Result<bool, Error> {
        self.write(block, WriteSync::Deferred)?;
        let unsynced_max = match self.unsynced.hand_over_all() {
            true => usize::MAX,
            false => 0,
        };
        self.settle_unsynced(unsynced_max)?;
        Ok(self.unsynced.waiting() == 0)
    }

    /// Collects the segments that have become durable since they were continued, and waits until at
    /// most `unsynced_max` have not.
    #[cold]
    fn settle_unsynced(&mut self, unsynced_max: usize) -> Result<(), Error> {
        let next = |tail: &mut Self| {
            tail.unsynced
                .finished(tail.unsynced.waiting() > unsynced_max)
        };
        while let Some(finished) = self.or_stop(next) {
            match finished {
                Ok(last) => {
                    self.durable = self.durable.max(last);
                    self.watermark.set(self.durable);
                }
                Err(error) => return Err(self.stop(error)),
            }
        }
        Ok(())
    }

    fn header(&self, number: u64, epoch: u64) -> SegmentHeader {
        SegmentHeader {
            journal: self.segment.header.journal,
            number,
            epoch,
            first: None,
            segment_bytes: self.options.segment_bytes,
            record_bytes: self.segment.header.record_bytes,
            previous_crc: 0,
        }
    }

    /// Lets the next segment be made ready, unless one is.
    fn order(&mut self, is_load: bool) {
        if self.prepared.is_empty() {
            let header = self.header(self.segment.header.number + 1, self.epoch);
            self.preparer.order(header, is_load);
        }
    }

    /// Returns the next segment, and its header, which says that it is prepared. For a load, it has
    /// no segment's name: its blocks must be worthless after a crash until it is a used one.
    fn next_file(&mut self, is_load: bool) -> Result<(Prepared<S::File>, SegmentHeader), Error> {
        let number = self.segment.header.number + 1;
        if self.prepared.is_empty() {
            let header = self.header(number, self.epoch);
            let taken = self.preparer.take(&header, is_load)?;
            self.epoch += 1;
            if !is_load || taken.part.is_some() {
                return Ok((taken, header));
            }
            self.prepared.push_back(number);
        }
        let Segment {
            file, name, header, ..
        } = open_segment(&self.storage, number, true, self.options.faults)?;
        let mut part = None;
        if is_load {
            let short = segment_name(number);
            let second = self.storage.open(&short, true);
            part = Some(second.map_err(|error| Error::io(&name, "be opened", error))?);
            if let Err(error) = self.storage.rename(&short, &part_name(number)) {
                return Err(self.stop(Error::io(name, "be renamed", error)));
            }
            if !self.options.faults.has(Seeded::LeaveNameUnsynced)
                && let Err(error) = self.sync_names()
            {
                return Err(self.stop(error));
            }
        }
        self.prepared.pop_front();
        Ok((Prepared { file, part }, header))
    }

    /// Goes on in the next segment. Its header says where it begins, and that it is used, once this
    /// one is durable.
    fn next_segment(&mut self) -> Result<(), Error> {
        if self.prepared.len() > 1 {
            // If the first of them lost its name, there would be a gap before the second.
            self.sync()?;
        }
        let is_load = self.durable < self.written();
        let (Prepared { file, part }, mut header) = self.next_file(is_load)?;
        let number = header.number;
        let name = format!("{}/{}", self.storage.location(), segment_name(number));
        header.first = Some(self.segment.next);
        header.previous_crc = self.segment.previous_crc;
        let next = Segment::new(file, name.clone(), header, self.options.faults);
        let segment = std::mem::replace(&mut self.segment, next);
        let first = self.segment.next;
        if let Some(file) = part {
            self.unsynced.push(UnsyncedSegment {
                storage: self.storage.clone(),
                last: first.before(),
                segment,
                next: Named { file, name },
                header,
                faults: self.options.faults,
            });
            let unsynced_max = self.options.unsynced_max();
            self.settle_unsynced(if is_load { unsynced_max } else { 0 })?;
        } else if let Err(error) = write_fully(
            &self.segment.file,
            0,
            &header.encode(),
            WriteSync::Immediate,
        ) {
            let error = Error::io(&name, "be written", error);
            return Err(self.stop(error));
        } else if let Err(error) = segment.mark_continued() {
            return Err(self.stop(error));
        }
        self.used.push_back(Known { number, first });
        self.order(is_load);
        Ok(())
    }
}

// Segments that are no longer needed are given up: kept to be used again, or removed.

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

    /// Removes a segment that was given up from the list of used ones.
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

impl<S: Storage> Drop for Tail<S> {
    fn drop(&mut self) {
        if self.stopped.is_none() {
            // It was promised to no caller, so none needs to get an error.
            let _ = self.settle_unsynced(0);
        }
        self.watermark.close();
    }
}

/// Makes the first segment of a new journal.
fn create<S: Storage>(
    storage: &S,
    options: &JournalOptions,
    record_bytes: u32,
) -> Result<Directory<S::File>, Error> {
    let epoch = spare_epoch_max(storage)? + 1;
    let header = SegmentHeader {
        journal: options.number(),
        number: 1,
        epoch,
        first: Some(options.first),
        segment_bytes: options.segment_bytes,
        record_bytes,
        previous_crc: 0,
    };
    let Prepared { file, .. } = prepare(storage, &header, Demand::COMMIT, options.faults)?;
    let name = format!("{}/{}", storage.location(), segment_name(1));
    let first = options.first;
    Ok(Directory {
        used: VecDeque::from([Known { number: 1, first }]),
        prepared: Vec::new(),
        epoch_max: epoch,
        last: Segment::new(file, name, header, options.faults),
        flaws: Vec::new(),
    })
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
