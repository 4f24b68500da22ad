//! A block: a header of 64 bytes, and the records of one write.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BLOCK_BYTES_LIMIT, BLOCK_HEADER_BYTES, LENGTH_BYTES};
use crate::lsn::Lsn;

const MAGIC: [u8; 4] = *b"tlwB";
/// The sum is over what comes after it.
pub(crate) const SUMMED_FROM: usize = 8;

/// The key that the blocks of one segment have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The start value of the sum. It is made of the journal's number, which the author of records
    /// need not know: so no record can be made to look like a block.
    pub(crate) seed: u32,
    /// The epoch of the segment.
    pub(crate) epoch: u64,
    /// The size of a record; 0 where records say how long they are.
    pub(crate) record_bytes: u32,
}

impl Key {
    /// Returns the key of the blocks in a segment with this header.
    #[must_use]
    pub fn of(header: &super::SegmentHeader) -> Key {
        Key {
            seed: crc32c::crc32c(&header.journal.to_le_bytes()),
            epoch: header.epoch,
            record_bytes: header.record_bytes,
        }
    }
}

/// The header of a block, once its checksum is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Its first record.
    pub first: Lsn,
    /// The end of what was durable when it was written.
    pub durable: Lsn,
    /// The number of records that it holds: at least one.
    pub count: u32,
    /// The bytes of header and records, without the padding.
    pub length_bytes: u32,
    /// The checksum of the block before it.
    pub previous_crc: u32,
    /// The checksum of this block.
    pub crc: u32,
}

/// The reason why there is no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockError {
    /// It does not begin as a block of this segment does: nothing was written here, or before the
    /// file was used for this segment.
    Unwritten,
    /// A block was begun: its checksum is wrong, or its length cannot be.
    Torn,
    /// The checksum is right, and yet the records are not such as the journal has.
    InvalidContent,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 4],
    crc32c: U32,
    epoch: U64,
    first: U64,
    durable: U64,
    count: U32,
    length_bytes: U32,
    previous_crc: U32,
    zero: [u8; 20],
}

const _: () = assert!(size_of::<Raw>() == BLOCK_HEADER_BYTES);

/// The part of a block's header that can be known before the whole block is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) length: usize,
    /// The durable number that the block carries.
    pub(crate) durable: Lsn,
    crc: u32,
}

impl Layout {
    /// Looks at a block's header alone; `room` is how many bytes the segment has from there on.
    pub(crate) fn of(
        page: &[u8],
        key: &Key,
        room: u64,
        any_epoch: bool,
    ) -> Result<Layout, BlockError> {
        let Ok((raw, _)) = Raw::ref_from_prefix(page) else {
            return Err(BlockError::Unwritten);
        };
        if raw.magic != MAGIC || raw.epoch.get() != key.epoch && !any_epoch {
            return Err(BlockError::Unwritten);
        }
        let length = raw.length_bytes.get();
        let length_max = room.min(BLOCK_BYTES_LIMIT);
        if u64::from(length) > length_max || (length as usize) <= BLOCK_HEADER_BYTES {
            return Err(BlockError::Torn);
        }
        Ok(Layout {
            length: length as usize,
            durable: Lsn::new(raw.durable.get()),
            crc: raw.crc32c.get(),
        })
    }

    /// Returns whether its checksum is right, by the sums of what is before each end of what it
    /// covers.
    pub(crate) fn is_sum_of(&self, before: u32, with: u32, key: &Key) -> bool {
        let bytes = self.length - SUMMED_FROM;
        let own = with ^ crc32c::crc32c_combine(before, 0, bytes);
        self.crc == crc32c::crc32c_combine(key.seed, own, bytes)
    }
}

impl BlockHeader {
    /// Reads a block: its header, and the records up to the end of `bytes` or of the block.
    ///
    /// # Errors
    /// [`BlockError`]: there is no such block in `bytes`.
    ///
    /// # Cost
    /// The checksum, for which many processors have an instruction.
    pub fn decode(bytes: &[u8], key: &Key) -> Result<BlockHeader, BlockError> {
        Self::decode_from(bytes, key, false)
    }

    /// With `any_epoch`, as a decoder that forgets to look at it.
    pub(crate) fn decode_from(
        bytes: &[u8],
        key: &Key,
        any_epoch: bool,
    ) -> Result<BlockHeader, BlockError> {
        let Layout { length, .. } = Layout::of(bytes, key, bytes.len() as u64, any_epoch)?;
        let Ok((raw, _)) = Raw::ref_from_prefix(bytes) else {
            return Err(BlockError::Unwritten);
        };
        let crc = crc32c::crc32c_append(key.seed, &bytes[SUMMED_FROM..length]);
        if crc != raw.crc32c.get() {
            return Err(BlockError::Torn);
        }
        let count = raw.count.get();
        let records = &bytes[BLOCK_HEADER_BYTES..length];
        let last = raw.first.get().checked_add(u64::from(count));
        let is_sound = raw.zero == [0; 20]
            && count > 0
            && raw.first.get() > raw.durable.get()
            && last.is_some_and(|last| last < u64::MAX)
            && lengths_add_up(records, count, key.record_bytes);
        if !is_sound {
            return Err(BlockError::InvalidContent);
        }
        Ok(BlockHeader {
            first: Lsn::new(raw.first.get()),
            durable: Lsn::new(raw.durable.get()),
            count,
            length_bytes: raw.length_bytes.get(),
            previous_crc: raw.previous_crc.get(),
            crc,
        })
    }

    /// Returns its last record.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.first.after(u64::from(self.count) - 1)
    }

    /// Writes the header into the first bytes of `block`, which is as long as the header says, and
    /// gives the block's checksum. That of `self` is not looked at.
    pub(crate) fn encode(&self, block: &mut [u8], key: &Key) -> u32 {
        let raw = Raw {
            magic: MAGIC,
            crc32c: 0.into(),
            epoch: key.epoch.into(),
            first: self.first.number().into(),
            durable: self.durable.number().into(),
            count: self.count.into(),
            length_bytes: self.length_bytes.into(),
            previous_crc: self.previous_crc.into(),
            zero: [0; 20],
        };
        block[..BLOCK_HEADER_BYTES].copy_from_slice(raw.as_bytes());
        let crc = crc32c::crc32c_append(key.seed, &block[SUMMED_FROM..]);
        block[4..SUMMED_FROM].copy_from_slice(&crc.to_le_bytes());
        crc
    }
}

/// Returns whether `count` records take exactly these bytes.
pub(crate) fn lengths_add_up(records: &[u8], count: u32, record_bytes: u32) -> bool {
    match record_bytes {
        0 => records_are_whole(records, count),
        bytes => u64::from(count) * u64::from(bytes) == records.len() as u64,
    }
}

/// Returns whether `count` records with their lengths in front take exactly these bytes.
pub(crate) fn records_are_whole(records: &[u8], count: u32) -> bool {
    let mut rest = records;
    for _ in 0..count {
        let Some((length, after)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            return false;
        };
        let Some(after) = after.get(u32::from_le_bytes(*length) as usize..) else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key {
        seed: 0x1234_5678,
        epoch: 4,
        record_bytes: 8,
    };

    fn block() -> Vec<u8> {
        let mut bytes = vec![7; BLOCK_HEADER_BYTES + 3 * 8];
        let header = BlockHeader {
            first: Lsn::new(11),
            durable: Lsn::new(10),
            count: 3,
            length_bytes: bytes.len() as u32,
            previous_crc: 99,
            crc: 0,
        };
        header.encode(&mut bytes, &KEY);
        bytes
    }

    #[test]
    fn a_block_goes_both_ways() {
        let mut bytes = block();
        bytes.resize(4096, 0);
        let header = BlockHeader::decode(&bytes, &KEY).expect("it is whole");
        assert_eq!((header.first, header.last()), (Lsn::new(11), Lsn::new(13)));
        assert_eq!((header.durable.number(), header.previous_crc), (10, 99));
        assert_eq!(header.length_bytes, 88);
    }

    #[test]
    fn a_sum_is_checked_from_those_of_a_longer_text() {
        let mut text = b"what is before it".to_vec();
        let begin = text.len() + SUMMED_FROM;
        text.extend(block());
        let layout = Layout::of(&block(), &KEY, 4096, false).expect("it is one");
        let before = crc32c::crc32c(&text[..begin]);
        let with = crc32c::crc32c(&text);
        assert!(layout.is_sum_of(before, with, &KEY));
        assert!(!layout.is_sum_of(before, with ^ 1, &KEY));
        assert!(!layout.is_sum_of(before ^ 1, with, &KEY));
    }

    #[test]
    fn every_changed_bit_is_detected() {
        let bytes = block();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(BlockHeader::decode(&bytes, &KEY).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(BlockHeader::decode(&bytes[..length], &KEY).is_err());
        }
    }

    #[test]
    fn a_block_of_another_journal_epoch_or_record_is_none() {
        let bytes = block();
        let other = |change: fn(&mut Key)| {
            let mut key = KEY;
            change(&mut key);
            BlockHeader::decode(&bytes, &key).unwrap_err()
        };
        assert_eq!(other(|key| key.seed += 1), BlockError::Torn);
        assert_eq!(other(|key| key.epoch += 1), BlockError::Unwritten);
        assert_eq!(
            other(|key| key.record_bytes = 12),
            BlockError::InvalidContent
        );
        assert_eq!(
            other(|key| key.record_bytes = 0),
            BlockError::InvalidContent
        );
    }

    /// Bytes that say that they are 4 GiB long are not given so much memory.
    #[test]
    fn a_length_beyond_the_limit_is_none() {
        let mut page = block();
        let longest = (BLOCK_BYTES_LIMIT as u32, BLOCK_BYTES_LIMIT as u32 + 1);
        page[36..40].copy_from_slice(&longest.0.to_le_bytes());
        assert!(Layout::of(&page, &KEY, u64::MAX, false).is_ok());
        page[36..40].copy_from_slice(&longest.1.to_le_bytes());
        assert_eq!(
            Layout::of(&page, &KEY, u64::MAX, false),
            Err(BlockError::Torn)
        );
    }

    #[test]
    fn lengths_in_front_of_records_are_checked() {
        let mut records = Vec::new();
        for length in [0_u32, 5, 1] {
            records.extend_from_slice(&length.to_le_bytes());
            records.resize(records.len() + length as usize, 1);
        }
        assert!(records_are_whole(&records, 3));
        assert!(!records_are_whole(&records, 2));
        assert!(!records_are_whole(&records, 4));
        assert!(!records_are_whole(&records[..records.len() - 1], 3));
        assert!(!records_are_whole(&u32::MAX.to_le_bytes(), 1));
    }
}
