//! The packed form of batches: each record as its difference to the last one of its length.
//!
//! Behind the head, whose version is 2, are the bytes of the plain records (64 bits). Then comes
//! for each record:
//! 1. A *tag*. The last record of the batch whose length is the same modulo 64, if it has the same
//!    length, is the *reference*, and the tag is that length modulo 64. If not, the tag is 64, the
//!    length (32 bits) follows, and the reference is zeros. The first record without bytes has the
//!    tag 0.
//! 2. For each 64 bytes, and for what is left: a byte of flags, one for each 8 bytes that differ
//!    from the reference's, lowest bit first. For each of these, a mask with a bit for each byte
//!    that differs, and the XOR of those bytes.
//!
//! No batch refers to another one, and a reader keeps 64 references. Records are combined by XOR,
//! since a difference of numbers would borrow from the field beside (`docs/notes/replication.md`).
//!
//! The checksum is that of the plain form: chain, digest and journals do not depend on packing. A
//! batch has one packed form, which is shorter than the plain one; a reader refuses all others.

use std::mem;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, transmute};

pub(super) const LENGTH_BYTES: usize = size_of::<U32>();
const WORD_BYTES: usize = size_of::<u64>();
const WORDS: usize = 8;
const GROUP_BYTES: usize = WORDS * WORD_BYTES;
const PACKED_GROUP_BYTES_MAX: usize = 1 + WORDS * (1 + WORD_BYTES);
const SLOTS: usize = 64;
/// In place of a slot: its length follows.
const NEW: u8 = SLOTS as u8;

/// The last record of each length modulo their number: its length, and where it is.
struct References([(usize, usize); SLOTS]);

impl References {
    const NONE: Self = Self([(0, 0); SLOTS]);

    /// Notes a record. Returns where its reference is.
    fn replace(&mut self, length: usize, at: usize) -> Option<usize> {
        let (of, before) = mem::replace(&mut self.0[slot_of(length)], (length, at));
        (of == length).then_some(before)
    }
}

const fn slot_of(length: usize) -> usize {
    length % SLOTS
}

/// Splits the first record off, if there is a whole one.
pub(super) fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = U32::read_from_prefix(bytes).ok()?;
    let length = usize::try_from(length.get()).ok()?;
    rest.split_at_checked(length)
}

/// Returns the bytes at a place, those behind the end as zeros.
#[inline]
fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.first_chunk()
        .copied()
        .unwrap_or_else(|| filled_up(rest))
}

#[cold]
fn filled_up<const N: usize>(rest: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..rest.len()].copy_from_slice(rest);
    bytes
}

fn group_at(bytes: &[u8], at: usize) -> [u64; WORDS] {
    let words: [U64; WORDS] = transmute!(bytes_at::<GROUP_BYTES>(bytes, at));
    words.map(U64::get)
}

/// Returns a bit for each byte of a word: whether it is not 0.
const fn mask_of(word: u64) -> u8 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let high = (((word & LOW) + LOW) | word) & !LOW;
    // Adds bit 8 × i, shifted by 56 - 7 × i: no two of the products meet.
    ((high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// Returns the number of the lowest bit, and takes it out.
const fn next_bit(bits: &mut u8) -> u32 {
    let bit = bits.trailing_zeros();
    *bits &= bits.wrapping_sub(1);
    bit
}

/// Returns the packed form of records; none where it is no shorter.
pub(super) fn pack_records(records: &[u8]) -> Option<Vec<u8>> {
    // Behind the longest that counts there is room for another group.
    let mut out = vec![0; records.len() + PACKED_GROUP_BYTES_MAX];
    let mut to = WORD_BYTES;
    out[..to].copy_from_slice(&(records.len() as u64).to_le_bytes());
    let (mut at, mut references) = (0, References::NONE);
    while at < records.len() {
        let (record, _) = split_record(&records[at..])?;
        let tag = out.get_mut(to..to + 1 + LENGTH_BYTES)?;
        tag[1..].copy_from_slice(&records[at..at + LENGTH_BYTES]);
        at += LENGTH_BYTES;
        let reference = references.replace(record.len(), at);
        tag[0] = reference.map_or(NEW, |_| slot_of(record.len()) as u8);
        to += reference.map_or(1 + LENGTH_BYTES, |_| 1);
        for start in (0..record.len()).step_by(GROUP_BYTES) {
            let mut words = group_at(records, at + start);
            if let Some(reference) = reference {
                let others = group_at(records, reference + start);
                let pairs = words.iter_mut().zip(others);
                pairs.for_each(|(word, other)| *word ^= other);
            }
            let left = record.len() - start;
            if left < GROUP_BYTES {
                let last = left / WORD_BYTES;
                words[last] &= (1 << (8 * (left % WORD_BYTES))) - 1;
                words[last + 1..].fill(0);
            }
            let flag = |(word, bit)| u8::from(word != 0) << bit;
            let mut flags = words.into_iter().zip(0..).map(flag).sum();
            let (group, mut used) = (out.get_mut(to..to + PACKED_GROUP_BYTES_MAX)?, 1);
            group[0] = flags;
            while flags != 0 {
                let word = words[next_bit(&mut flags) as usize];
                let mut mask = mask_of(word);
                group[used] = mask;
                used += 1;
                while mask != 0 {
                    group[used] = (word >> (8 * next_bit(&mut mask))) as u8;
                    used += 1;
                }
            }
            to += used;
        }
        at += record.len();
    }
    out.truncate(to);
    (to < records.len()).then_some(out)
}

/// Returns the plain records, which have `most` bytes at most.
///
/// Bytes behind the end of the stream are read as zeros: that gives other bytes than the stream
/// has, which are seen at the end.
pub(super) fn unpack_records(packed: &[u8], most: usize) -> Result<Vec<u8>, &'static str> {
    let (length, stream) = packed.split_first_chunk().ok_or("its head is cut off")?;
    let most = most.min(GROUP_BYTES * stream.len());
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if length > most || length <= packed.len() {
        return Err("its records cannot have the length that it says");
    }
    // A group is stored whole, also where the next one overwrites its end.
    let mut records = vec![0; length + GROUP_BYTES];
    let (mut at, mut from, mut wrong) = (0, 0, 0);
    let mut references = References::NONE;
    while at < length {
        let [tag, own @ ..]: [u8; 1 + LENGTH_BYTES] = bytes_at(stream, from);
        let (record, tag_bytes) = match references.0.get(usize::from(tag)) {
            Some((length, _)) => (*length, 1),
            None => (u32::from_le_bytes(own) as usize, 1 + LENGTH_BYTES),
        };
        from += tag_bytes;
        let room = (length - at).checked_sub(LENGTH_BYTES);
        if room.is_none_or(|room| record > room) {
            return Err("a record cannot have the length that it says");
        }
        records[at..at + LENGTH_BYTES].copy_from_slice(&(record as u32).to_le_bytes());
        at += LENGTH_BYTES;
        let reference = references.replace(record, at);
        wrong |= tag ^ reference.map_or(NEW, |_| slot_of(record) as u8);
        for start in (0..record).step_by(GROUP_BYTES) {
            let mut words = reference.map_or([0; WORDS], |one| group_at(&records, one + start));
            let [mut flags] = bytes_at(stream, from);
            from += 1;
            let left = record - start;
            while flags != 0 {
                let bit = next_bit(&mut flags) as usize;
                let [mask, bytes @ ..]: [u8; 1 + WORD_BYTES] = bytes_at(stream, from);
                let (mut left_over, mut differs, mut bytes) = (mask, 0, u64::from_le_bytes(bytes));
                from += 1;
                while left_over != 0 {
                    differs |= (bytes & 0xFF) << (8 * next_bit(&mut left_over));
                    bytes >>= 8;
                    from += 1;
                }
                let own = left.saturating_sub(WORD_BYTES * bit).min(WORD_BYTES);
                wrong |=
                    mask ^ mask_of(differs) | (u32::from(mask) >> own) as u8 | u8::from(mask == 0);
                words[bit] ^= differs;
            }
            let to = at + start;
            let words: [u8; GROUP_BYTES] = transmute!(words.map(U64::new));
            records[to..to + GROUP_BYTES].copy_from_slice(&words);
        }
        at += record;
    }
    records.truncate(length);
    match wrong == 0 && from == stream.len() {
        true => Ok(records),
        false => Err("it is not as a writer packs it"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::batch::tests::{HEAD, sealed};
    use super::super::batch::{Batch, BatchError, RECORD_BYTES_MAX, pack};

    /// Packs a batch of these records, and asserts that it is read as it was sealed.
    fn stored<R: AsRef<[u8]>>(records: &[R]) -> Vec<u8> {
        let plain = Arc::new(sealed(records).0);
        let stored = pack(&plain);
        let batch = Batch::read(&stored).expect("it is whole");
        let checksum = Batch::read(&plain).expect("it is whole").checksum;
        assert_eq!((batch.head, batch.checksum), (HEAD, checksum));
        let records = records.iter().map(AsRef::as_ref);
        assert!(batch.records().eq(records), "other records");
        match stored[0] {
            2 => assert!(stored.len() < plain.len(), "it is no shorter"),
            _ => assert_eq!(stored, plain),
        }
        stored.to_vec()
    }

    fn small() -> Vec<u8> {
        stored(&[
            &b"abcdefgh\0\0\0\0z"[..],
            b"abcdefgX\0\0\0\0z",
            &[0; 77],
            b"abcdefgX\0\0\0\0y",
        ])
    }

    #[test]
    fn a_packed_batch_has_these_bytes() {
        let stream = [
            &[64, 13, 0, 0, 0, 0b11, 0xFF][..],
            b"abcdefgh",
            &[0b1_0000, b'z'],
            &[13, 0b1, 0b1000_0000, b'h' ^ b'X'],
            &[64, 77, 0, 0, 0, 0, 0],
            // The one before had a length that is 13 modulo 64 as well.
            &[64, 13, 0, 0, 0, 0b11, 0xFF],
            b"abcdefgX",
            &[0b1_0000, b'y'],
        ];
        let batch = small();
        assert_eq!(batch[..2], [2, 0]);
        assert_eq!(batch[56..64], [4 * 4 + 3 * 13 + 77, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(batch[64..], stream.concat());
    }

    #[test]
    fn each_bit_that_changes_is_seen() {
        let batch = small();
        for bit in 0..8 * batch.len() {
            let mut bytes = batch.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            Batch::read(&bytes).expect_err("it was changed");
        }
        for length in 0..batch.len() {
            Batch::read(&batch[..length]).expect_err("it was cut off");
        }
    }

    const LENGTHS: BatchError =
        BatchError::Packed("its records cannot have the length that it says");

    #[test]
    fn there_is_one_packed_form() {
        let refused = |at: usize, from: &[u8], to: &[u8]| {
            let mut bytes = small();
            assert_eq!(bytes[at..at + from.len()], *from);
            bytes.splice(at..at + from.len(), to.iter().copied());
            Batch::read(&bytes).expect_err("it is another form")
        };
        // As long as the plain one; longer than such a stream can be; and its upper half is not 0.
        for (at, to) in [(56, [53, 0]), (56, [0x41, 0x0B]), (60, [1, 0])] {
            assert_eq!(refused(at, &[small()[at], 0], &to), LENGTHS, "{to:?}");
        }
        let one = BatchError::Packed("a record cannot have the length that it says");
        assert_eq!(refused(65, &[13], &[129]), one);
        assert_eq!(refused(56, &[132], &[131]), one);
        let other = BatchError::Packed("it is not as a writer packs it");
        for (at, from, to) in [
            // The length of a record that has a reference, and a tag that is none.
            (81, &[13][..], &[64, 13, 0, 0, 0][..]),
            (85, &[64], &[65]),
            // Flags, and masks, beyond its end.
            (97, b"\x03\xFFabcdefgX\x10y", b"\x07\xFFabcdefgX\x10y\x01y"),
            (107, b"\x10y", b"\x30yy"),
            (107, b"\x10y", b"\x20y"),
            // A mask, and a byte, of 0.
            (90, &[0], &[1, 0]),
            (84, &[b'h' ^ b'X'], &[0]),
            // It ends early, and late.
            (108, b"y", b""),
            (108, b"y", b"y\0"),
        ] {
            assert_eq!(refused(at, from, to), other, "{at}: {to:?}");
        }
    }

    #[test]
    fn records_have_no_byte_and_as_many_as_may_be() {
        let zeros = stored(&[vec![0; RECORD_BYTES_MAX]]);
        assert_eq!(zeros.len(), 64 + 5 + RECORD_BYTES_MAX / 64);
        let mut longer = [&zeros[..], &[0]].concat();
        longer[56] += 1;
        longer[65] += 1;
        assert_eq!(Batch::read(&longer).expect_err("too long"), LENGTHS);
        assert_eq!(stored(&[vec![0; RECORD_BYTES_MAX + 1]])[0], 1);
        assert_eq!(stored(&[vec![7; RECORD_BYTES_MAX]])[0], 1);
        assert_eq!(stored(&[b""; 1_000]).len(), 64 + 1_000);
        assert_eq!(stored(&[b""])[0], 1);
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read_as_it_was(
            records in vec(
                prop_oneof![Just(76), Just(52), 0..300_usize].prop_flat_map(|length| {
                    vec(prop_oneof![3 => Just(0), 1 => any::<u8>()], length)
                }),
                1..40,
            )
        ) {
            stored(&records);
        }
    }
}
