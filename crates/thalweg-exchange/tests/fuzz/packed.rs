//! Any bytes: a batch that is read has one packed form, and what was packed is read as it was.

use std::sync::Arc;

use thalweg_exchange::durable::replication::{Batch, BatchError, pack};

pub(crate) const HEAD_BYTES: usize = 56;
const CHECKSUM_AT: usize = 48;

/// Returns a batch with its checksum, if one of this version has these bytes behind the head.
fn batch(version: u8, count: u8, rest: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = [&[0; HEAD_BYTES], rest].concat();
    (bytes[0], bytes[4]) = (version, count);
    if let Err(BatchError::Checksum { expected, .. }) = Batch::read(&bytes) {
        bytes[CHECKSUM_AT..HEAD_BYTES].copy_from_slice(&expected.to_le_bytes());
    }
    Batch::read(&bytes).is_ok().then_some(bytes)
}

/// Returns the packed batch of records.
pub(crate) fn packed<'r>(records: impl Iterator<Item = &'r [u8]>) -> Vec<u8> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    for record in records.take(usize::from(u8::MAX)) {
        bytes.extend((record.len() as u32).to_le_bytes());
        bytes.extend(record);
        count += 1;
    }
    let plain = batch(1, count, &bytes).expect("it is whole");
    pack(&Arc::new(plain)).to_vec()
}

/// Checks the property for any bytes; with a fault, that the last byte of a packed batch changes.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    if let Some(one) = batch(2, *first, rest) {
        let read = Batch::read(&one).expect("it was read before");
        assert!(packed(read.records()) == one, "there is another form");
    }
    let records = rest.split(|byte| byte % 8 == first % 8);
    let mut bytes = packed(records.clone());
    if has_fault && bytes[0] == 2 {
        *bytes.last_mut().expect("it has a head") ^= 1;
    }
    let read = Batch::read(&bytes).expect("it was packed");
    let records = records.take(usize::from(u8::MAX));
    assert!(read.records().eq(records), "other records");
}
