//! From one segment to the next.

use super::Tail;
use crate::error::Error;
use crate::fault::Seeded;
use crate::format::{SegmentHeader, part_name, segment_name};
use crate::pages::OpenBlock;
use crate::prepare::Prepared;
use crate::recovery::Known;
use crate::scan::{Segment, open_segment};
use crate::storage::{Storage, WriteSync, write_fully};
use crate::unsynced::{Named, UnsyncedSegment};

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
    pub(super) fn settle_unsynced(&mut self, unsynced_max: usize) -> Result<(), Error> {
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
    pub(super) fn order(&mut self, is_load: bool) {
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
    pub(super) fn next_segment(&mut self) -> Result<(), Error> {
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
