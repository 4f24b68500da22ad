//! Blocks and single records, as a reader gives them.

use std::marker::PhantomData;

use zerocopy::FromBytes;

use super::Reader;
use crate::error::Error;
use crate::format::{BLOCK_HEADER_BYTES, BlockHeader, LENGTH_BYTES};
use crate::lsn::Lsn;
use crate::record::Record;
use crate::storage::Storage;

/// Returns the records after the first `skipped`.
pub(super) fn past(records: &[u8], skipped: u64, record_bytes: u32) -> &[u8] {
    let skipped = skipped as usize;
    match record_bytes {
        0 => {
            let mut each = Lengths(records);
            each.by_ref().take(skipped).for_each(drop);
            each.0
        }
        bytes => records.get(skipped * bytes as usize..).unwrap_or_default(),
    }
}

/// Records with their lengths in front.
struct Lengths<'b>(&'b [u8]);

impl<'b> Iterator for Lengths<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let (length, rest) = self.0.split_first_chunk::<LENGTH_BYTES>()?;
        let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(record)
    }
}

/// Records that were written together.
#[derive(Debug)]
pub struct Block<'r> {
    pub(super) header: BlockHeader,
    pub(super) records: &'r [u8],
    pub(super) first: Lsn,
    pub(super) offset_bytes: u64,
    pub(super) record_bytes: u32,
}

impl<'r> Block<'r> {
    /// Returns its first record, of those asked for.
    #[must_use]
    pub fn first(&self) -> Lsn {
        self.first
    }

    /// Returns its last record.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.header.last()
    }

    /// Returns the header of the block.
    #[must_use]
    pub fn header(&self) -> &BlockHeader {
        &self.header
    }

    /// Returns the offset at which the block begins in its file, bytes.
    #[must_use]
    pub fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// Returns its records, from [`Block::first`] on, where they are. None if their size is another
    /// one, or varies.
    #[must_use]
    pub fn records<R: Record>(&self) -> Option<&'r [R]> {
        let is_size = size_of::<R>() as u64 == u64::from(self.record_bytes);
        is_size
            .then(|| <[R]>::ref_from_bytes(self.records).ok())
            .flatten()
    }

    /// Returns its records as bytes with their numbers, whatever their size.
    pub fn bytes(&self) -> impl Iterator<Item = (Lsn, &'r [u8])> + use<'r> {
        let numbers = (self.first.number()..).map(Lsn::new);
        let fixed = match self.record_bytes as usize {
            0 => &[],
            _ => self.records,
        };
        let varying = match self.record_bytes {
            0 => self.records,
            _ => &[],
        };
        let fixed = fixed.chunks_exact((self.record_bytes as usize).max(1));
        numbers.zip(fixed.chain(Lengths(varying)))
    }
}

/// The iterator of [`Reader::records`]. It ends for good after an error; at the end of a reader
/// that follows, it may be called again.
#[derive(Debug)]
pub struct Records<'r, R, S: Storage> {
    reader: &'r mut Reader<S>,
    block: Option<BlockHeader>,
    at: u64,
    record: PhantomData<fn() -> R>,
}

impl<'r, R: Record, S: Storage> Records<'r, R, S> {
    pub(super) fn new(reader: &'r mut Reader<S>) -> Self {
        Records {
            reader,
            block: None,
            at: 0,
            record: PhantomData,
        }
    }

    fn following(&mut self) -> Result<Option<(Lsn, R)>, Error> {
        let stored = self.reader.record_bytes();
        if u64::from(stored) != size_of::<R>() as u64 {
            return Err(Error::RecordSizeMismatch {
                location: self.reader.storage.location(),
                stored,
                asked: size_of::<R>() as u32,
            });
        }
        if self.block.is_none_or(|b| self.at == u64::from(b.count)) {
            self.block = self.reader.advance()?;
            let first = self.block.map_or(0, |block| block.first.number());
            self.at = self.reader.from.number().saturating_sub(first);
        }
        let Some(block) = &self.block else {
            return Ok(None);
        };
        let from = BLOCK_HEADER_BYTES + self.at as usize * size_of::<R>();
        let lsn = block.first.after(self.at);
        self.at += 1;
        let bytes = &self.reader.pages.bytes()[from..from + size_of::<R>()];
        let record = R::read_from_bytes(bytes).ok();
        Ok(record.map(|record| (lsn, record)))
    }
}

impl<R: Record, S: Storage> Iterator for Records<'_, R, S> {
    type Item = Result<(Lsn, R), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.following();
        if next.is_err() {
            self.reader.done = true;
            self.block = None;
        }
        next.transpose()
    }
}
