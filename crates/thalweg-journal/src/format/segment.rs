//! The header of a segment: the first 64 bytes of its first page.
//!
//! It is within one sector, which a disk writes whole or not at all; so it can be written in place.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{NUMBER_LIMIT, PAGE_BYTES, SEGMENT_BYTES_LIMIT, VERSION};
use crate::lsn::Lsn;

const MAGIC: [u8; 8] = *b"thalwegJ";
/// The sum is over what comes after it.
const SUMMED_FROM: usize = 16;

/// Where the mark is that a segment is continued in the next one, in a sector of its own.
const CONTINUED_AT: usize = 512;
const CONTINUED_MAGIC: [u8; 4] = *b"tlwL";

/// Says that the log goes on in the next segment, whose header is durable.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ContinuedMark {
    magic: [u8; 4],
    /// The checksum of the journal's number and of the epoch.
    crc32c: U32,
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The journal, by a number drawn when it was made.
    pub journal: u64,
    /// The place of the segment in the journal, and the number in the file's name.
    pub number: u64,
    /// The number of segments that were made before it, files used again included.
    pub epoch: u64,
    /// Its first record. None while it is only prepared.
    pub first: Option<Lsn>,
    /// The length of the file.
    pub segment_bytes: u64,
    /// The size of a record; 0 where records say how long they are.
    pub record_bytes: u32,
    /// The checksum of the last block of the segment before it.
    pub previous_crc: u32,
}

/// The reason why a page is not the header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHeader {
    Newer(u32),
    Damaged(&'static str),
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 8],
    version: U32,
    crc32c: U32,
    journal: U64,
    number: U64,
    epoch: U64,
    first: U64,
    segment_bytes: U64,
    record_bytes: U32,
    previous_crc: U32,
}

const RAW_BYTES: usize = size_of::<Raw>();
const _: () = assert!(RAW_BYTES == 64);
/// The value that stands for the first record of a segment that is only prepared.
const PREPARED: u64 = u64::MAX;

impl SegmentHeader {
    /// Returns the page that a segment begins with.
    #[must_use]
    pub fn encode(&self) -> [u8; PAGE_BYTES] {
        let mut raw = Raw {
            magic: MAGIC,
            version: VERSION.into(),
            crc32c: 0.into(),
            journal: self.journal.into(),
            number: self.number.into(),
            epoch: self.epoch.into(),
            first: self.first.map_or(PREPARED, Lsn::number).into(),
            segment_bytes: self.segment_bytes.into(),
            record_bytes: self.record_bytes.into(),
            previous_crc: self.previous_crc.into(),
        };
        raw.crc32c = crc32c::crc32c(&raw.as_bytes()[SUMMED_FROM..]).into();
        let mut page = [0; PAGE_BYTES];
        page[..RAW_BYTES].copy_from_slice(raw.as_bytes());
        page
    }

    /// Returns the page of a segment that is continued: the next one is used, durably. Without the
    /// mark, a tail of the journal that was deleted from the begin of a segment on would not be
    /// missed.
    pub(crate) fn encode_continued(&self) -> [u8; PAGE_BYTES] {
        let mut page = self.encode();
        let mark = ContinuedMark {
            magic: CONTINUED_MAGIC,
            crc32c: self.continued_crc().into(),
        };
        let bytes = mark.as_bytes();
        page[CONTINUED_AT..CONTINUED_AT + bytes.len()].copy_from_slice(bytes);
        page
    }

    /// Returns whether a page with this header says that the segment is continued in the next one.
    pub(crate) fn is_continued(&self, page: &[u8]) -> bool {
        let mark = page
            .get(CONTINUED_AT..)
            .and_then(|mark| ContinuedMark::ref_from_prefix(mark).ok());
        mark.is_some_and(|(mark, _)| {
            mark.magic == CONTINUED_MAGIC && mark.crc32c.get() == self.continued_crc()
        })
    }

    fn continued_crc(&self) -> u32 {
        let journal = crc32c::crc32c(&self.journal.to_le_bytes());
        crc32c::crc32c_append(journal, &self.epoch.to_le_bytes())
    }

    /// Returns whether both are of one journal.
    pub(crate) fn is_of_journal(&self, other: &SegmentHeader) -> bool {
        (self.journal, self.record_bytes) == (other.journal, other.record_bytes)
    }

    pub(crate) fn decode(page: &[u8]) -> Result<SegmentHeader, BadHeader> {
        let Ok((raw, _)) = Raw::ref_from_prefix(page) else {
            return Err(BadHeader::Damaged("shorter than a segment's header"));
        };
        if raw.magic != MAGIC {
            return Err(BadHeader::Damaged("does not begin as a segment does"));
        }
        // Before the sum: what a newer version sums up is its own affair.
        if raw.version.get() > VERSION {
            return Err(BadHeader::Newer(raw.version.get()));
        }
        if raw.version.get() == 0
            || crc32c::crc32c(&raw.as_bytes()[SUMMED_FROM..]) != raw.crc32c.get()
        {
            return Err(BadHeader::Damaged("its header is damaged"));
        }
        let first = raw.first.get();
        let first = (first != PREPARED).then_some(Lsn::new(first));
        let used = first.map_or(0, Lsn::number);
        let greatest = raw.number.get().max(raw.epoch.get()).max(used);
        if greatest >= NUMBER_LIMIT || raw.segment_bytes.get() > SEGMENT_BYTES_LIMIT {
            return Err(BadHeader::Damaged(
                "its header has numbers beyond the limits",
            ));
        }
        Ok(SegmentHeader {
            journal: raw.journal.get(),
            number: raw.number.get(),
            epoch: raw.epoch.get(),
            first,
            segment_bytes: raw.segment_bytes.get(),
            record_bytes: raw.record_bytes.get(),
            previous_crc: raw.previous_crc.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            journal: 0x0123_4567_89AB_CDEF,
            number: 3,
            epoch: 9,
            first: Some(Lsn::new(77)),
            segment_bytes: 1 << 20,
            record_bytes: 28,
            previous_crc: 0xDEAD_BEEF,
        }
    }

    #[test]
    fn a_header_goes_both_ways() {
        for first in [Some(Lsn::new(77)), None] {
            let header = SegmentHeader { first, ..header() };
            assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
        }
    }

    #[test]
    fn every_changed_bit_is_detected() {
        let page = header().encode();
        for bit in 0..RAW_BYTES * 8 {
            let mut page = page;
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&page).is_err(), "bit {bit}");
        }
        assert!(SegmentHeader::decode(&page[..63]).is_err());
    }

    #[test]
    fn numbers_beyond_the_limits_are_refused() {
        let changes: [fn(&mut SegmentHeader); 4] = [
            |header| header.number = NUMBER_LIMIT,
            |header| header.epoch = u64::MAX,
            |header| header.first = Some(Lsn::new(u64::MAX - 1)),
            |header| header.segment_bytes = SEGMENT_BYTES_LIMIT + 4096,
        ];
        for change in changes {
            let mut header = header();
            change(&mut header);
            let why = "its header has numbers beyond the limits";
            assert_eq!(
                SegmentHeader::decode(&header.encode()),
                Err(BadHeader::Damaged(why))
            );
        }
    }

    #[test]
    fn a_newer_version_is_reported_as_such_whatever_its_checksum() {
        let mut page = header().encode();
        page[8] = 2;
        assert_eq!(SegmentHeader::decode(&page), Err(BadHeader::Newer(2)));
    }
}
