//! Any bytes, as a block: the decoder says what a plain one says.

use thalweg_journal::format::{BlockHeader, Key, SegmentHeader};

const HEAD_BYTES: usize = 64;
const JOURNAL: u64 = 5;
const EPOCH: u64 = 3;

/// CRC-32C, bit by bit.
fn sum(mut crc: u32, bytes: &[u8]) -> u32 {
    crc = !crc;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82F6_3B78 & 0_u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Returns whether the records fill their room; with a fault, whatever is behind the last one.
fn fit(records: &[u8], count: u32, record_bytes: u32, has_fault: bool) -> bool {
    if record_bytes > 0 {
        return u64::from(count) * u64::from(record_bytes) == records.len() as u64;
    }
    let mut at = 0;
    for _ in 0..count {
        if at + 4 > records.len() {
            return false;
        }
        at += 4 + word(records, at) as usize;
        if at > records.len() {
            return false;
        }
    }
    at == records.len() || has_fault
}

/// First record, count and checksum, as `docs/journal-format.md` has them.
fn plain(bytes: &[u8], record_bytes: u32, has_fault: bool) -> Option<(u64, u32, u32)> {
    if bytes.len() < HEAD_BYTES || bytes[..4] != *b"tlwB" || long(bytes, 8) != EPOCH {
        return None;
    }
    let length = word(bytes, 36) as usize;
    if length <= HEAD_BYTES || length > bytes.len() {
        return None;
    }
    let crc = sum(sum(0, &JOURNAL.to_le_bytes()), &bytes[8..length]);
    let (first, durable, count) = (long(bytes, 16), long(bytes, 24), word(bytes, 32));
    let is_sound = word(bytes, 4) == crc
        && bytes[44..64] == [0; 20]
        && count > 0
        && first > durable
        && first < u64::MAX - u64::from(count)
        && fit(&bytes[HEAD_BYTES..length], count, record_bytes, has_fault);
    is_sound.then_some((first, count, crc))
}

/// Checks what must hold of any bytes. The first says how the others are made into nearly a block.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let Some((mode, bytes)) = bytes.split_first() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    if mode & 1 == 1 && bytes.len() > HEAD_BYTES {
        bytes[..4].copy_from_slice(b"tlwB");
        bytes[8..16].copy_from_slice(&EPOCH.to_le_bytes());
        bytes[44..64].fill(0);
        let length = bytes.len() - usize::from(mode >> 4).min(bytes.len() - HEAD_BYTES);
        bytes[36..40].copy_from_slice(&(length as u32).to_le_bytes());
        bytes[20..24].fill(0);
        bytes[25..32].fill(0);
        if mode & 2 == 2 {
            bytes[33..36].fill(0);
        }
        let crc = sum(sum(0, &JOURNAL.to_le_bytes()), &bytes[8..length]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    }
    let record_bytes = match mode & 4 {
        0 => 0,
        _ => 8,
    };
    let header = SegmentHeader {
        journal: JOURNAL,
        number: 1,
        epoch: EPOCH,
        first: None,
        segment_bytes: 0,
        record_bytes,
        previous_crc: 0,
    };
    let found = BlockHeader::decode(&bytes, &Key::of(&header)).ok();
    let found = found.map(|block| (block.first.number(), block.count, block.crc));
    assert_eq!(found, plain(&bytes, record_bytes, has_fault), "{bytes:?}");
}
