//! Reading a segment: where its blocks end, and what that end means.
//!
//! Each block carries what was durable when it was written. So the end of a log can be judged: a
//! whole block behind the end whose durable number covers the record at the end proves damage. A
//! whole block that does not is one whose write overtook an earlier one that the crash took; it was
//! never reported as durable, and is no part of the log.

use std::collections::BTreeMap;
use std::io;

use crate::error::Error;
use crate::fault::{Faults, Seeded};
use crate::format::BadHeader;
use crate::format::{
    BlockError, BlockHeader, Key, Layout, PAGE_BYTES, SUMMED_FROM, SegmentHeader, padded,
    segment_name,
};
use crate::lsn::Lsn;
use crate::pages::Pages;
use crate::storage::{Storage, StorageFile, WriteSync, read_fully, write_fully};

/// Bytes that a search for blocks reads at once.
const SEARCH_BYTES: usize = 256 << 10;

/// An open segment, and where in it the next block is expected.
#[derive(Debug)]
pub(crate) struct Segment<F> {
    pub(crate) file: F,
    /// With the directory, for messages.
    pub(crate) name: String,
    pub(crate) header: SegmentHeader,
    key: Key,
    /// Where the next block begins.
    pub(crate) offset: u64,
    /// The first record of the next block.
    pub(crate) next: Lsn,
    /// The sum of the last block.
    pub(crate) previous_crc: u32,
    faults: Faults,
}

/// The content of the place where a block is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The next block.
    Next(BlockHeader),
    /// A block was begun there, and it is not whole.
    Torn,
    /// Nothing that was written as the next block.
    Nothing,
    /// The checksum is right and the content cannot be.
    InvalidContent,
}

/// The content behind the end of a log.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// A block was begun at the very end, and is not whole.
    pub(crate) is_torn: bool,
    /// Where blocks of this segment begin that are no part of the log, whole or not.
    pub(crate) begun: Vec<u64>,
}

/// Reads a segment's header.
pub(crate) fn open_segment<S: Storage>(
    storage: &S,
    number: u64,
    writable: bool,
    faults: Faults,
) -> Result<Segment<S::File>, Error> {
    let short = segment_name(number);
    let name = format!("{}/{short}", storage.location());
    let file = storage
        .open(&short, writable)
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => Error::BadSegment {
                file: name.clone(),
                why: "is no regular file",
            },
            _ => Error::io(&name, "be opened", error),
        })?;
    let header = read_header(&file, &name)?;
    if header.number != number {
        let why = "its header has another number than its name";
        return Err(Error::BadSegment { file: name, why });
    }
    Ok(Segment::new(file, name, header, faults))
}

pub(crate) fn read_header(file: &impl StorageFile, name: &str) -> Result<SegmentHeader, Error> {
    let mut page = [0; PAGE_BYTES];
    let bytes = read_fully(file, 0, &mut page);
    let bytes = bytes.map_err(|error| Error::io(name, "be read", error))?;
    let header = SegmentHeader::decode(&page[..bytes]).map_err(|error| match error {
        BadHeader::Newer(version) => Error::NewerVersion {
            file: name.to_owned(),
            version,
            known: crate::format::VERSION,
        },
        BadHeader::Damaged(why) => Error::BadSegment {
            file: name.to_owned(),
            why,
        },
    })?;
    let length = file.length_bytes();
    let length = length.map_err(|error| Error::io(name, "be read", error))?;
    if length != header.segment_bytes || length % PAGE_BYTES as u64 != 0 {
        let why = "its length is not what its header says";
        return Err(Error::BadSegment {
            file: name.to_owned(),
            why,
        });
    }
    Ok(header)
}

impl<F: StorageFile> Segment<F> {
    pub(crate) fn new(file: F, name: String, header: SegmentHeader, faults: Faults) -> Self {
        Segment {
            file,
            name,
            key: Key::of(&header),
            offset: PAGE_BYTES as u64,
            next: header.first.unwrap_or(Lsn::ZERO),
            previous_crc: header.previous_crc,
            header,
            faults,
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Returns how many bytes the segment has from the next block on.
    pub(crate) fn room(&self) -> u64 {
        self.header.segment_bytes.saturating_sub(self.offset)
    }

    /// A block was written or read: the next one is behind it.
    pub(crate) fn pass(&mut self, block: &BlockHeader) {
        self.offset += padded(block.length_bytes as usize) as u64;
        self.next = block.last().after(1);
        self.previous_crc = block.crc;
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let bytes = read_fully(&self.file, offset, into);
        bytes.map_err(|error| Error::io(&self.name, "be read", error))
    }

    fn any_epoch(&self) -> bool {
        self.faults.has(Seeded::ForgetEpoch)
    }

    /// Reads what is at `offset` into `pages`, if it can be a block, and checks it.
    fn whole_at(
        &self,
        offset: u64,
        pages: &mut Pages,
    ) -> Result<Result<BlockHeader, BlockError>, Error> {
        let room = self.header.segment_bytes.saturating_sub(offset);
        if room < PAGE_BYTES as u64 {
            return Ok(Err(BlockError::Unwritten));
        }
        pages.grow(PAGE_BYTES);
        let read = self.read(offset, &mut pages.bytes_mut()[..PAGE_BYTES])?;
        let layout = Layout::of(&pages.bytes()[..read], &self.key, room, self.any_epoch());
        let length = match layout {
            Ok(Layout { length, .. }) => length,
            Err(flaw) => return Ok(Err(flaw)),
        };
        if length > read {
            pages.grow(length);
            let rest = &mut pages.bytes_mut()[read..length];
            if self.read(offset + read as u64, rest)? < length - read {
                return Ok(Err(BlockError::Torn));
            }
        }
        let block = &pages.bytes()[..length];
        Ok(BlockHeader::decode_from(block, &self.key, self.any_epoch()))
    }

    /// Looks for the next block. If it is there, its bytes are in `pages`; it is not passed yet.
    pub(crate) fn find_next(&self, pages: &mut Pages) -> Result<Found, Error> {
        Ok(match self.whole_at(self.offset, pages)? {
            Ok(block) if self.continues(&block) => Found::Next(block),
            // Whole, and of a write that the log did not keep.
            Ok(_) => Found::Nothing,
            Err(BlockError::Unwritten) => Found::Nothing,
            Err(BlockError::Torn) => Found::Torn,
            Err(BlockError::InvalidContent) => Found::InvalidContent,
        })
    }

    fn continues(&self, block: &BlockHeader) -> bool {
        let follows = block.previous_crc == self.previous_crc;
        block.first == self.next && (follows || self.faults.has(Seeded::ForgetPreviousSum))
    }

    /// Looks at all that is behind the end.
    ///
    /// # Errors
    /// A whole block proves that the next record was durable.
    fn look_behind(&self) -> Result<Behind, Error> {
        let mut window = vec![0; SEARCH_BYTES];
        let mut behind = Behind::default();
        let mut claims = Vec::new();
        let mut offset = self.offset;
        while offset < self.header.segment_bytes {
            let bytes = self.read(offset, &mut window)?;
            if bytes == 0 {
                break;
            }
            for (at, page) in window[..bytes].chunks(PAGE_BYTES).enumerate() {
                let offset = offset + (at * PAGE_BYTES) as u64;
                let room = self.header.segment_bytes - offset;
                match Layout::of(page, &self.key, room, self.any_epoch()) {
                    Err(BlockError::Unwritten) => continue,
                    Ok(layout) if layout.durable >= self.next => claims.push((offset, layout)),
                    _ => {}
                }
                behind.begun.push(offset);
            }
            offset += bytes as u64;
        }
        if self.proves(&claims)? {
            return Err(self.corrupt("later blocks are whole and say so"));
        }
        let mut pages = Pages::new(PAGE_BYTES);
        behind.is_torn = behind.begun.first() == Some(&self.offset)
            && self.whole_at(self.offset, &mut pages)?.is_err();
        if self.leaves_stale_blocks() {
            let mut torn = Vec::new();
            for offset in behind.begun {
                if self.whole_at(offset, &mut pages)?.is_err() {
                    torn.push(offset);
                }
            }
            behind.begun = torn;
        }
        Ok(behind)
    }

    /// Returns whether one of these blocks is whole, which say that the next record was durable.
    ///
    /// Records may hold what looks like blocks, of any length and on every page. So that this takes
    /// no longer than reading once, their sums come from one over everything, taken at each end.
    fn proves(&self, claims: &[(u64, Layout)]) -> Result<bool, Error> {
        let ends = |(offset, layout): &(u64, Layout)| {
            [offset + SUMMED_FROM as u64, offset + layout.length as u64]
        };
        let mut sums: BTreeMap<u64, u32> =
            claims.iter().flat_map(ends).map(|end| (end, 0)).collect();
        let mut window = vec![0; SEARCH_BYTES];
        let (mut at, mut sum) = (self.offset, 0);
        let mut loaded = at..at;
        for (end, sum_at_end) in &mut sums {
            while at < *end {
                if at == loaded.end {
                    let bytes = self.read(at, &mut window)?;
                    if bytes == 0 {
                        return Ok(false);
                    }
                    loaded = at..at + bytes as u64;
                }
                let to = loaded.end.min(*end);
                let [from, upto] = [at, to].map(|at| (at - loaded.start) as usize);
                sum = crc32c::crc32c_append(sum, &window[from..upto]);
                at = to;
            }
            *sum_at_end = sum;
        }
        let mut pages = Pages::new(PAGE_BYTES);
        for claim in claims {
            let [before, with] = ends(claim).map(|end| sums[&end]);
            if claim.1.is_sum_of(before, with, &self.key)
                && self.whole_at(claim.0, &mut pages)?.is_ok()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn leaves_stale_blocks(&self) -> bool {
        self.faults.has(Seeded::LeaveStaleBlocks) || self.faults.has(Seeded::ForgetPreviousSum)
    }

    /// Judges the end of the last segment, where `found` is what is there instead of a block.
    /// Nothing was lost that was durable.
    ///
    /// # Errors
    /// Something was.
    pub(crate) fn judge_end(&self, found: Found) -> Result<Behind, Error> {
        if found == Found::InvalidContent {
            return Err(self.corrupt("its checksum is right and its records cannot be"));
        }
        self.look_behind()
    }

    /// Returns the error for damage where the next block should be.
    pub(crate) fn corrupt(&self, why: &'static str) -> Error {
        Error::Corrupt {
            file: self.name.clone(),
            offset_bytes: self.offset,
            lsn: self.next,
            why,
        }
    }

    /// Checks that the header of the segment behind this one continues it, which ends here.
    ///
    /// # Errors
    /// Blocks at the end of this one are missing: they were durable before the next was begun.
    pub(crate) fn check_successor(&self, next: &SegmentHeader) -> Result<(), Error> {
        if next.first == Some(self.next) && next.previous_crc == self.previous_crc {
            return Ok(());
        }
        Err(self.corrupt("the next segment begins with a later record"))
    }

    /// Returns whether the segment says that the log goes on in the next one.
    pub(crate) fn is_continued(&self) -> Result<bool, Error> {
        let mut page = [0; PAGE_BYTES];
        let bytes = self.read(0, &mut page)?;
        Ok(self.header.is_continued(&page[..bytes]))
    }

    /// Writes that the log goes on in the next segment, whose header must be durable. The mark need
    /// not be durable: without it, a loss may not be seen.
    pub(crate) fn mark_continued(&self) -> Result<(), Error> {
        mark_continued(&self.file, &self.header, &self.name)
    }

    /// Reads the header again: a file that is used again has another epoch.
    pub(crate) fn is_still_itself(&self) -> Result<bool, Error> {
        let mut page = [0; PAGE_BYTES];
        let bytes = self.read(0, &mut page)?;
        let header = SegmentHeader::decode(&page[..bytes]);
        Ok(header.is_ok_and(|header| header.epoch == self.header.epoch))
    }
}

/// Works as [`Segment::mark_continued`].
pub(crate) fn mark_continued(
    file: &impl StorageFile,
    header: &SegmentHeader,
    name: &str,
) -> Result<(), Error> {
    let written = write_fully(file, 0, &header.encode_continued(), WriteSync::Deferred);
    written.map_err(|error| Error::io(name, "be written", error))
}

/// Returns the end of a file that is not there.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}
