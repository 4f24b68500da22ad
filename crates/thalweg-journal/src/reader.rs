//! Reading a journal, forward from any record.

mod records;

use std::sync::Arc;

use crate::error::Error;
use crate::fault::Faults;
use crate::format::{BLOCK_HEADER_BYTES, BlockHeader, PAGE_BYTES, padded};
use crate::lsn::Lsn;
use crate::pages::Pages;
use crate::record::Record;
use crate::recovery::{Directory, TornWrite, run_to_end, survey};
use crate::scan::{Behind, Found, Segment, is_absent, open_segment};
use crate::storage::Storage;
use crate::watermark::Watermark;
use records::past;
pub use records::{Block, Records};

/// How often a directory is looked at again that changes meanwhile.
const SURVEYS_MAX: usize = 100;

/// Reads records in order, and checks all that it reads: checksums, order, that no record between
/// is missing, and at the end that no durable one is.
///
/// A journal may be read while it is written, by the same process or another. A reader of
/// [`Journal::follow`](crate::Journal::follow) returns durable records, and may be called again
/// after it has reached the end; any other returns all whole records, which may be a few more, and
/// its end is final.
pub struct Reader<S: Storage = crate::DefaultStorage> {
    storage: S,
    segment: Segment<S::File>,
    pages: Pages,
    from: Lsn,
    watermark: Option<Arc<Watermark>>,
    done: bool,
    torn: Option<TornWrite>,
    bytes: u64,
    bytes_total: u64,
    faults: Faults,
}

impl<S: Storage> std::fmt::Debug for Reader<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Reader");
        debug.field("segment", &self.segment.name);
        debug.field("next", &self.segment.next);
        debug.finish_non_exhaustive()
    }
}

#[cfg(unix)]
impl Reader {
    /// Reads the journal in a directory from this record on; from the first that is kept with
    /// [`Lsn::ZERO`].
    ///
    /// # Errors
    /// There is no journal, the segment with the record is damaged as a whole, the record is no
    /// longer kept, or the file system fails. Damage further on is an error of
    /// [`Reader::next_block`], behind the records before it.
    pub fn open(directory: impl AsRef<std::path::Path>, from: Lsn) -> Result<Reader, Error> {
        Reader::open_in(crate::Files::new(directory), from)
    }
}

impl<S: Storage> Reader<S> {
    /// Works as [`Reader::open`], in any storage.
    ///
    /// # Errors
    /// As there.
    pub fn open_in(storage: S, from: Lsn) -> Result<Reader<S>, Error> {
        Reader::new(storage, from, None, Faults::default())
    }

    pub(crate) fn following(
        storage: S,
        from: Lsn,
        watermark: Arc<Watermark>,
    ) -> Result<Reader<S>, Error> {
        Reader::new(storage, from, Some(watermark), Faults::default())
    }

    pub(crate) fn new(
        storage: S,
        from: Lsn,
        watermark: Option<Arc<Watermark>>,
        faults: Faults,
    ) -> Result<Reader<S>, Error> {
        let Directory {
            used,
            mut last,
            flaws,
            ..
        } = steady_survey(&storage, faults)?;
        if used[0].first > from
            && let Some((_, error)) = flaws.into_iter().find(|(at, _)| *at < used[0].number)
        {
            return Err(error);
        }
        let at = match from {
            Lsn::ZERO => 0,
            from => match used.iter().rposition(|known| known.first <= from) {
                Some(at) => at,
                None => {
                    run_to_end(&mut last)?;
                    let (first, last) = (used[0].first, last.next.before());
                    let lsn = from;
                    return Err(Error::NoRecord { lsn, first, last });
                }
            },
        };
        let segment = match at + 1 == used.len() {
            true => last,
            false => open_segment(&storage, used[at].number, false, faults)?,
        };
        Ok(Reader {
            bytes_total: (used.len() - at) as u64 * segment.header.segment_bytes,
            storage,
            segment,
            pages: Pages::new(PAGE_BYTES),
            from,
            watermark,
            done: false,
            torn: None,
            bytes: 0,
            faults,
        })
    }

    /// Returns the size of a record; 0 if it varies.
    #[must_use]
    pub fn record_bytes(&self) -> u32 {
        self.segment.header.record_bytes
    }

    /// Returns the next record that will be read.
    #[must_use]
    pub fn next(&self) -> Lsn {
        self.segment.next.max(self.from)
    }

    /// Returns whether the end is final, once [`Reader::next_block`] gives none. For a reader that
    /// follows: whether the journal was dropped or has stopped. Ask before the block, not after it,
    /// or what became durable in between is missed:
    ///
    /// ```
    /// # use thalweg_journal::{Error, Reader, Storage};
    /// # fn example<S: Storage>(reader: &mut Reader<S>) -> Result<(), Error> {
    /// loop {
    ///     let is_final = reader.is_final();
    ///     while let Some(block) = reader.next_block()? {
    ///         println!("records up to {}", block.last());
    ///     }
    ///     if is_final {
    ///         return Ok(());
    ///     }
    ///     std::thread::yield_now();
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.watermark.as_ref().is_none_or(|mark| mark.is_closed())
    }

    /// Returns the unfinished write at the end, once that was reached. In a journal that is written
    /// meanwhile, the write under way may be taken for one.
    #[must_use]
    pub fn torn(&self) -> Option<&TornWrite> {
        self.torn.as_ref()
    }

    /// Returns how many bytes have been read, of at most how many: for a progress bar.
    #[must_use]
    pub fn progress_bytes(&self) -> (u64, u64) {
        (self.bytes, self.bytes_total)
    }

    /// Returns the file of the last block that was read.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.segment.name
    }

    /// Returns the next block. None at the end.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: durable records cannot be read. [`Error::NoRecord`]: they were given up
    /// meanwhile. Or the file system fails.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, Error> {
        let Some(header) = self.advance()? else {
            return Ok(None);
        };
        let length = header.length_bytes as usize;
        let records = &self.pages.bytes()[BLOCK_HEADER_BYTES..length];
        let skipped = self.from.number().saturating_sub(header.first.number());
        let record_bytes = self.segment.header.record_bytes;
        Ok(Some(Block {
            header,
            records: past(records, skipped, record_bytes),
            first: header.first.max(self.from),
            offset_bytes: self.segment.offset - padded(length) as u64,
            record_bytes,
        }))
    }

    /// Returns the records, one after the other, copied; [`Block::records`] gives them where they
    /// are.
    pub fn records<R: Record>(&mut self) -> Records<'_, R, S> {
        Records::new(self)
    }

    fn advance(&mut self) -> Result<Option<BlockHeader>, Error> {
        loop {
            let is_ahead = |mark: &Arc<Watermark>| self.segment.next > mark.get();
            if self.done || self.watermark.as_ref().is_some_and(is_ahead) {
                return Ok(None);
            }
            match self.segment.find_next(&mut self.pages)? {
                Found::Next(block) => {
                    self.segment.pass(&block);
                    self.bytes += padded(block.length_bytes as usize) as u64;
                    if block.last() >= self.from {
                        return Ok(Some(block));
                    }
                }
                found => {
                    if !self.leave(found)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Here is no block: goes on in the next segment, or ends. Whether it goes on.
    fn leave(&mut self, found: Found) -> Result<bool, Error> {
        let next = self.segment.header.number + 1;
        let next = match open_segment(&self.storage, next, false, self.faults) {
            Ok(next) => Some(next).filter(|next| next.header.first.is_some()),
            Err(error) if is_absent(&error) => None,
            Err(error) => return Err(error),
        };
        let verdict = match &next {
            Some(next) => self
                .segment
                .check_successor(&next.header)
                .map(|()| Behind::default()),
            None if self.watermark.is_some() => Err(self.segment.corrupt("it is not there")),
            None => self.segment.judge_end(found),
        };
        if verdict.is_err() {
            // A writer may have been here since.
            if let Found::Next(_) = self.segment.find_next(&mut self.pages)? {
                return Ok(true);
            }
            self.check_kept()?;
        }
        let is_torn = verdict?.is_torn;
        self.bytes += self.segment.room();
        let Some(next) = next else {
            self.check_kept()?;
            self.done = true;
            self.torn = is_torn.then(|| TornWrite {
                file: self.segment.name.clone(),
                offset_bytes: self.segment.offset,
                lsn: self.segment.next,
            });
            return Ok(false);
        };
        self.segment = next;
        Ok(true)
    }

    /// Checks that the segment is still part of the journal.
    fn check_kept(&self) -> Result<(), Error> {
        let Directory {
            used,
            mut last,
            flaws,
            ..
        } = steady_survey(&self.storage, self.faults)?;
        let number = self.segment.header.number;
        if let Some((_, error)) = flaws.into_iter().find(|(at, _)| *at > number) {
            return Err(error);
        }
        let is_kept = used[0].number <= number;
        if is_kept && self.segment.is_still_itself()? {
            return Ok(());
        }
        run_to_end(&mut last)?;
        Err(Error::NoRecord {
            lsn: self.segment.next,
            first: used[0].first,
            last: last.next.before(),
        })
    }
}

/// Returns a survey of a directory that may change while it is read.
fn steady_survey<S: Storage>(storage: &S, faults: Faults) -> Result<Directory<S::File>, Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        match survey(storage, faults) {
            Ok(Some(found)) if tries < SURVEYS_MAX && may_pass_all(&found.flaws) => {}
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {
                let location = storage.location();
                return Err(Error::NoJournal { location });
            }
            Err(error) if may_pass(&error) && tries < SURVEYS_MAX => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether something is wrong, and a writer may be the cause of all of it.
fn may_pass_all(flaws: &[(u64, Error)]) -> bool {
    !flaws.is_empty() && flaws.iter().all(|(_, error)| may_pass(error))
}

/// Returns whether a writer may be the cause: what it renames meanwhile may be missed in a list of
/// names, and a header that it writes may be seen half.
fn may_pass(error: &Error) -> bool {
    is_absent(error)
        || matches!(
            error,
            Error::MissingSegment { .. } | Error::BadSegment { .. }
        )
}
