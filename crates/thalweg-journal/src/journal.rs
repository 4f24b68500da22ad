//! A journal with one writer.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::Error;
use crate::format::LENGTH_BYTES;
use crate::lsn::{Durable, Lsn};
use crate::options::JournalOptions;
use crate::pages::OpenBlock;
use crate::reader::Reader;
use crate::record::{Record, RecordType, content_in, record_in};
use crate::recovery::Recovery;
use crate::shared::{GroupCommit, Shared};
use crate::storage::{Storage, WriteSync};
use crate::tail::Tail;

/// A log of records on disk, written by one thread.
///
/// Records are built in place, in the block that is written next, and get their numbers in order.
/// They are durable once [`commit`](Journal::commit) has returned; a journal that is dropped
/// forgets what was not. A load may be 32 segments ahead of the disk; a program that is killed
/// loses these too, unless it has flushed. Several threads share one by [`Journal::share`].
///
/// After a failed write or sync it is not known what is on disk. From then on every call gives
/// [`Error::Stopped`]; the next open of the directory finds out. Where only room for a further
/// segment is missing, nothing has changed, and the call may be repeated.
///
/// # Cost
/// An append is a compare, zeroing that was done a block at a time, and the stores of its record. A
/// commit of up to some 4,000 bytes is one write of 4 KiB to a place that has been written before,
/// with `RWF_DSYNC` on Linux. Neither allocates, unless a segment is full.
///
/// ```
/// use thalweg_journal::{Journal, Lsn, JournalOptions, Reader, SimDisk};
///
/// # fn main() -> Result<(), thalweg_journal::Error> {
/// # let disk = SimDisk::new();
/// // A directory in earnest: `Journal::<[u64; 2]>::open("orders", JournalOptions::default())`.
/// let mut journal = Journal::<[u64; 2], _>::open_in(disk.clone(), JournalOptions::default())?;
/// for number in 0..1000 {
///     journal.append_with(|slot| *slot = [number, number * number])?;
/// }
/// let durable = journal.commit()?;
/// assert_eq!(durable.get(), Lsn::new(1000));
///
/// let mut reader = Reader::open_in(disk, Lsn::new(999))?;
/// let rest: Result<Vec<(Lsn, [u64; 2])>, _> = reader.records().collect();
/// assert_eq!(rest?, [(Lsn::new(999), [998, 996_004]), (Lsn::new(1000), [999, 998_001])]);
/// # Ok(())
/// # }
/// ```
pub struct Journal<K: RecordType + ?Sized, S: Storage = crate::DefaultStorage> {
    tail: Tail<S>,
    block: OpenBlock,
    /// The next record.
    next: Lsn,
    recovery: Recovery,
    kind: PhantomData<fn(&K)>,
}

impl<K: RecordType + ?Sized, S: Storage> fmt::Debug for Journal<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Journal");
        debug.field("location", &self.tail.storage().location());
        debug.field("next", &self.next);
        debug.field("durable", &self.tail.durable().get());
        debug.finish_non_exhaustive()
    }
}

#[cfg(unix)]
impl<K: RecordType + ?Sized> Journal<K> {
    /// Opens the journal in this directory, or makes one. Its end is found, and a write that a
    /// crash left unfinished there is cut off: [`Journal::recovery`] reports it.
    ///
    /// Only the last segment is read; [`Reader`] checks all that it reads.
    ///
    /// # Errors
    /// Another journal writes there; durable records are damaged; the directory holds records of
    /// another size, a newer format or not all segments; options that cannot be; the file system.
    pub fn open(
        directory: impl AsRef<std::path::Path>,
        options: JournalOptions,
    ) -> Result<Journal<K>, Error> {
        Journal::open_in(crate::Files::new(directory), options)
    }
}

impl<K: RecordType + ?Sized, S: Storage> Journal<K, S> {
    /// Works as [`Journal::open`], in any storage.
    ///
    /// # Errors
    /// As there.
    pub fn open_in(storage: S, options: JournalOptions) -> Result<Journal<K, S>, Error> {
        let options = options.checked()?;
        let (bytes, bytes_max) = (K::BYTES as usize, options.record_bytes_max());
        if bytes > bytes_max {
            return Err(Error::RecordTooLong { bytes, bytes_max });
        }
        let block = OpenBlock::new(options.block_bytes_max as usize);
        let (tail, recovery) = Tail::open(storage, options, K::BYTES)?;
        Ok(Journal {
            next: tail.written().after(1),
            tail,
            block,
            recovery,
            kind: PhantomData,
        })
    }

    /// Returns the findings of the recovery when the journal was opened.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Returns the number that distinguishes this journal from any other:
    /// [`JournalOptions::journal_number`](crate::JournalOptions::journal_number).
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.tail.journal()
    }

    /// Returns the number that the next record gets.
    #[must_use]
    pub fn next(&self) -> Lsn {
        self.next
    }

    /// Returns the last record that is durable.
    pub fn durable(&self) -> Durable<Lsn> {
        self.tail.durable()
    }

    #[inline]
    fn append_raw(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8])) -> Result<Lsn, Error> {
        if !self.block.fits(bytes) {
            self.make_room(bytes)?;
        }
        match self.block.claim(bytes) {
            Some(slot) => fill(slot),
            None => return Err(self.too_long(bytes)),
        }
        self.block.finish();
        let lsn = self.next;
        self.next = lsn.after(1);
        Ok(lsn)
    }

    #[cold]
    fn too_long(&self, bytes: usize) -> Error {
        let bytes_max = self.tail.options().record_bytes_max();
        Error::RecordTooLong { bytes, bytes_max }
    }

    /// Writes the block that is full.
    #[cold]
    fn make_room(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > self.tail.options().record_bytes_max() {
            return Err(self.too_long(bytes));
        }
        self.write(WriteSync::Deferred)
    }

    #[inline(always)]
    fn write(&mut self, sync: WriteSync) -> Result<(), Error> {
        match self.tail.write(&mut self.block, sync) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    #[cold]
    fn failed(&mut self, error: Error) -> Error {
        if self.tail.check().is_err() {
            // So that the next append gets the error as well.
            self.block.close();
        }
        error
    }

    /// Writes the appended records, without waiting for the disk: readers see them then, and they
    /// survive a crash of the program, but not always one of the machine. Where a segment has
    /// filled up since, it waits until the disk has that.
    ///
    /// # Errors
    /// As [`Journal::commit`].
    pub fn flush(&mut self) -> Result<(), Error> {
        let flushed = self.tail.flush(&mut self.block);
        flushed.map_err(|error| self.failed(error))
    }

    /// Makes everything durable that was appended.
    ///
    /// # Errors
    /// Writing failed, now or earlier: see [`Error::Stopped`]. Or there is no room for another
    /// segment: then nothing has changed, and it may be tried again.
    pub fn commit(&mut self) -> Result<Durable<Lsn>, Error> {
        self.write(WriteSync::Immediate)?;
        Ok(self.tail.durable())
    }

    /// Gives up segments that hold only records before `lsn`, and returns the first record that is
    /// left: `lsn` or an earlier one, since segments are given up as a whole.
    ///
    /// # Errors
    /// The file system.
    pub fn truncate_before(&mut self, lsn: Lsn) -> Result<Lsn, Error> {
        self.tail.truncate_before(lsn)
    }

    /// Returns a reader that follows this journal: it gives durable records, and goes on when there
    /// are more. It does not wait; [`Reader::is_final`] reports when there will be no more.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn follow(&self, from: Lsn) -> Result<Reader<S>, Error> {
        let watermark = Arc::clone(self.tail.watermark());
        Reader::following(self.tail.storage().clone(), from, watermark)
    }

    /// Lets several threads append and commit.
    #[must_use]
    pub fn share(self, group: GroupCommit) -> Shared<K, S> {
        Shared::new(self.tail, self.block, self.next, group)
    }
}

impl<R: Record, S: Storage> Journal<R, S> {
    /// Appends a record that is built in place. The slot is zeroed.
    ///
    /// # Errors
    /// The block was full and could not be written: see [`Journal::commit`].
    #[inline]
    pub fn append_with(&mut self, build: impl FnOnce(&mut R)) -> Result<Lsn, Error> {
        self.append_raw(size_of::<R>(), |slot| build(record_in(slot)))
    }

    /// Appends a copy. Where the record is made for this, [`Journal::append_with`] is faster.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn append(&mut self, record: &R) -> Result<Lsn, Error> {
        self.append_raw(size_of::<R>(), |slot| {
            slot.copy_from_slice(record.as_bytes())
        })
    }
}

impl<S: Storage> Journal<[u8], S> {
    /// Appends a record of `bytes` bytes, built in place. The slot is zeroed.
    ///
    /// # Errors
    /// It is too long, or the block was full and could not be written: see [`Journal::commit`].
    #[inline]
    pub fn append_bytes_with(
        &mut self,
        bytes: usize,
        build: impl FnOnce(&mut [u8]),
    ) -> Result<Lsn, Error> {
        let room = bytes.saturating_add(LENGTH_BYTES);
        let appended = self.append_raw(room, |slot| build(content_in(slot)));
        appended.map_err(|error| error.of_content(bytes))
    }

    /// Appends a copy of these bytes.
    ///
    /// # Errors
    /// As [`Journal::append_bytes_with`].
    #[inline]
    pub fn append_bytes(&mut self, record: &[u8]) -> Result<Lsn, Error> {
        self.append_bytes_with(record.len(), |slot| slot.copy_from_slice(record))
    }
}
