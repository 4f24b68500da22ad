//! A batch of the command log: a head, and records as the journal has them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_hash::xxh64;
use thiserror::Error;
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::packing::{LENGTH_BYTES, pack_records, split_record, unpack_records};

/// The version of packed batches, at byte 0.
pub const BATCH_VERSION: u16 = 2;
/// The version of batches whose records are as the journal has them.
const PLAIN_VERSION: u16 = 1;
/// Bytes of records up to which a batch collects commands.
pub const BATCH_BYTES: usize = 256 << 10;
/// The longest record that is replicated: every journal takes it, whose blocks have 320 KiB.
pub const RECORD_BYTES_MAX: usize = 319 << 10;
/// The most bytes of records that a batch has: above [`BATCH_BYTES`] where it has one of them.
const RECORDS_BYTES_MAX: usize = LENGTH_BYTES + RECORD_BYTES_MAX;

/// The head of a batch, little-endian.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BatchForm {
    version: U16,
    reserved: U16,
    /// How many records follow, each behind its length (32 bits).
    count: U32,
    /// The epoch of the writer's claim.
    epoch: U64,
    /// The number of the first command.
    index: U64,
    /// The checksum of the batch before.
    previous: U64,
    /// The digest of all commands before and of what came of them.
    digest: U64,
    /// The writer's clock when it sealed the batch, in milliseconds since 1970; for people.
    time: I64,
    /// The XXH64 of the fields above, in the plain form, seeded by that of the records.
    checksum: U64,
}

const HEAD_BYTES: usize = size_of::<BatchForm>();

/// The fields of a batch that its writer chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHead {
    /// The epoch of the writer's claim.
    pub epoch: u64,
    /// The number of the first command.
    pub index: u64,
    /// The checksum of the batch before; of the first one
    /// [`chain_start`](super::Claim::chain_start).
    pub previous: u64,
    /// The value of the [digest](crate::digest::Digest) of all commands before, and of what came of
    /// them.
    pub digest: u64,
    /// The writer's clock, in milliseconds since 1970.
    pub time: i64,
}

/// Why bytes are no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// They are shorter than a head.
    #[error("it has {bytes} bytes, a batch has {HEAD_BYTES} at least")]
    TooShort {
        /// Their length.
        bytes: usize,
    },
    /// The version is not known here.
    #[error("its version is {version}, only {PLAIN_VERSION} and {BATCH_VERSION} are known")]
    Version {
        /// The version.
        version: u16,
    },
    /// Its records are not packed as a writer packs them.
    #[error("it cannot be unpacked: {0}")]
    Packed(&'static str),
    /// The checksum is not that of the bytes.
    #[error("its checksum is {found:016x}, its bytes have {expected:016x}")]
    Checksum {
        /// The checksum in the head.
        found: u64,
        /// The checksum of the bytes.
        expected: u64,
    },
    /// The records are not as many, or not as long, as it says.
    #[error("its records do not end where it does")]
    Records,
}

/// A batch that was read and is whole.
#[derive(Clone, Debug)]
pub struct Batch<'b> {
    /// The fields that its writer has chosen.
    pub head: BatchHead,
    /// How many commands it has, at least one.
    pub count: u64,
    /// Its checksum.
    pub checksum: u64,
    records: Cow<'b, [u8]>,
}

fn checksum_of(head: &[u8], records: &[u8]) -> u64 {
    xxh64(xxh64(0, records), &head[..HEAD_BYTES - size_of::<U64>()])
}

impl<'b> Batch<'b> {
    /// Reads a batch. A packed one is unpacked into memory of its own: at most 320 KiB, and 64
    /// times its bytes.
    ///
    /// # Errors
    /// The bytes are those of no batch, or damaged.
    pub fn read(bytes: &'b [u8]) -> Result<Self, BatchError> {
        let too_short = BatchError::TooShort { bytes: bytes.len() };
        let (mut form, rest) = BatchForm::read_from_prefix(bytes).map_err(|_| too_short)?;
        let records = match form.version.get() {
            PLAIN_VERSION => Cow::Borrowed(rest),
            BATCH_VERSION => {
                let unpacked = unpack_records(rest, RECORDS_BYTES_MAX);
                Cow::Owned(unpacked.map_err(BatchError::Packed)?)
            }
            version => return Err(BatchError::Version { version }),
        };
        form.version = U16::new(PLAIN_VERSION);
        let expected = checksum_of(form.as_bytes(), &records);
        let found = form.checksum.get();
        if found != expected {
            return Err(BatchError::Checksum { found, expected });
        }
        let batch = Self {
            head: BatchHead {
                epoch: form.epoch.get(),
                index: form.index.get(),
                previous: form.previous.get(),
                digest: form.digest.get(),
                time: form.time.get(),
            },
            count: form.count.get().into(),
            checksum: found,
            records,
        };
        let (mut count, mut bytes) = (0, 0);
        for record in batch.records() {
            count += 1;
            bytes += LENGTH_BYTES + record.len();
        }
        let is_whole = count == batch.count && bytes == batch.records.len() && count > 0;
        let fits = batch.head.index.checked_add(count).is_some();
        match is_whole && fits && form.reserved.get() == 0 {
            true => Ok(batch),
            false => Err(BatchError::Records),
        }
    }

    /// Returns the number of the command after its last.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.head.index + self.count
    }

    /// Returns its records in order, as the journal has them.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.records[..];
        std::iter::from_fn(move || {
            let (record, others) = split_record(rest)?;
            rest = others;
            Some(record)
        })
    }
}

/// Returns how many commands a batch has, as its head says: that is not checked.
pub(super) fn count_of(bytes: &[u8]) -> Option<u64> {
    let (form, _) = BatchForm::ref_from_prefix(bytes).ok()?;
    let is_known = matches!(form.version.get(), PLAIN_VERSION | BATCH_VERSION);
    is_known.then(|| form.count.get().into())
}

/// Returns the packed form of a plain batch, or that one where it is no longer.
#[must_use]
pub fn pack(batch: &Arc<Vec<u8>>) -> Arc<Vec<u8>> {
    packed(batch).map_or_else(|| Arc::clone(batch), Arc::new)
}

fn packed(batch: &[u8]) -> Option<Vec<u8>> {
    let (head, records) = batch.split_at_checked(HEAD_BYTES)?;
    let rest = head.strip_prefix(&PLAIN_VERSION.to_le_bytes())?;
    if records.len() > RECORDS_BYTES_MAX {
        return None;
    }
    let packed = pack_records(records)?;
    // A defect must not have the log hold what no replica can read.
    let is_read = unpack_records(&packed, RECORDS_BYTES_MAX).is_ok_and(|plain| plain == records);
    is_read.then(|| [&BATCH_VERSION.to_le_bytes()[..], rest, &packed].concat())
}

/// Executed commands that are in no batch yet: their records, and the digest before each.
#[derive(Debug, Default)]
pub(in crate::durable) struct Pending {
    bytes: Vec<u8>,
    digests: VecDeque<u64>,
}

impl Pending {
    /// Appends a record of `bytes` bytes, which `write` fills in. Its command is to be
    /// [executed](Self::note_executed) before anything else is done here.
    pub(in crate::durable) fn push_with(&mut self, bytes: usize, write: impl FnOnce(&mut [u8])) {
        let length = u32::try_from(bytes).expect("a record is shorter than its greatest length");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        let at = self.bytes.len();
        self.bytes.resize(at + bytes, 0);
        write(&mut self.bytes[at..]);
    }

    /// Notes the value of the digest before the next command that was executed.
    pub(in crate::durable) fn note_executed(&mut self, digest: u64) {
        self.digests.push_back(digest);
    }

    /// Returns the value of the digest before its first command; `None` where it has none.
    pub(in crate::durable) fn digest(&self) -> Option<u64> {
        self.digests.front().copied()
    }

    /// Takes all of another one, which is left empty.
    pub(super) fn append(&mut self, other: &mut Self) {
        if self.bytes.is_empty() {
            std::mem::swap(self, other);
        } else {
            self.bytes.append(&mut other.bytes);
            self.digests.append(&mut other.digests);
        }
    }

    /// Takes the first records out, up to [`BATCH_BYTES`] and at least one, and makes a batch of
    /// them. There is a command that was executed. Returns the batch with its checksum and the
    /// number of the command after its last.
    pub(super) fn seal(&mut self, head: BatchHead) -> (Vec<u8>, u64, u64) {
        let (mut rest, mut count) = (&self.bytes[..], 0);
        while (count as usize) < self.digests.len()
            && let Some((_, others)) = split_record(rest)
        {
            if count > 0 && self.bytes.len() - others.len() > BATCH_BYTES {
                break;
            }
            rest = others;
            count += 1;
        }
        let end = self.bytes.len() - rest.len();
        let mut form = BatchForm {
            version: U16::new(PLAIN_VERSION),
            reserved: U16::ZERO,
            count: U32::new(count),
            epoch: U64::new(head.epoch),
            index: U64::new(head.index),
            previous: U64::new(head.previous),
            digest: U64::new(head.digest),
            time: I64::new(head.time),
            checksum: U64::ZERO,
        };
        let records = &self.bytes[..end];
        let checksum = checksum_of(form.as_bytes(), records);
        form.checksum = U64::new(checksum);
        let batch = [form.as_bytes(), records].concat();
        self.bytes.drain(..end);
        self.digests.drain(..count as usize);
        (batch, checksum, head.index + u64::from(count))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const HEAD: BatchHead = BatchHead {
        epoch: 1,
        index: 10,
        previous: 3,
        digest: 4,
        time: 5,
    };

    /// Returns a batch of records, and what is left of them.
    pub(in super::super) fn sealed<R: AsRef<[u8]>>(records: &[R]) -> (Vec<u8>, Pending) {
        let mut pending = Pending::default();
        for record in records.iter().map(AsRef::as_ref) {
            pending.push_with(record.len(), |out| out.copy_from_slice(record));
            pending.note_executed(HEAD.digest);
        }
        (pending.seal(HEAD).0, pending)
    }

    #[test]
    fn a_batch_is_read_as_it_was_sealed() {
        let (bytes, pending) = sealed(&[&b"one"[..], b"", b"three"]);
        assert_eq!((bytes.len(), pending.digest()), (HEAD_BYTES + 20, None));
        assert_eq!(HEAD_BYTES, 56);
        let batch = Batch::read(&bytes).expect("it is whole");
        assert_eq!((batch.head, batch.count, batch.end()), (HEAD, 3, 13));
        let records: Vec<&[u8]> = batch.records().collect();
        assert_eq!(records, [&b"one"[..], b"", b"three"]);
    }

    #[test]
    fn a_batch_ends_before_it_is_too_long_and_has_one_record_at_least() {
        let long = vec![7; BATCH_BYTES - 10];
        let (bytes, mut pending) = sealed(&[&long[..], &long, b"x"]);
        assert_eq!(Batch::read(&bytes).expect("whole").count, 1);
        let (bytes, _, end) = pending.seal(HEAD);
        let batch = Batch::read(&bytes).expect("whole");
        assert_eq!((batch.count, end, pending.digest()), (2, 12, None));
        let longer = vec![7; BATCH_BYTES + 1];
        assert_eq!(Batch::read(&sealed(&[&longer]).0).expect("whole").count, 1);
    }

    #[test]
    fn a_command_that_was_not_executed_is_in_no_batch() {
        let mut pending = Pending::default();
        pending.push_with(1, |out| out.fill(1));
        pending.note_executed(7);
        pending.push_with(1, |out| out.fill(2));
        let (bytes, _, end) = pending.seal(HEAD);
        assert_eq!((Batch::read(&bytes).expect("whole").count, end), (1, 11));
        assert_eq!(pending.digest(), None);
    }

    #[test]
    fn bytes_that_are_no_batch_are_refused_and_say_why() {
        let (good, _) = sealed(&[b"one", b"two"]);
        let refused = |bytes: &[u8]| Batch::read(bytes).expect_err("no batch").to_string();
        let text = "it has 55 bytes, a batch has 56 at least";
        assert_eq!(refused(&good[..55]), text);
        for at in 2..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            assert!(refused(&bytes).starts_with("its checksum is"), "byte {at}");
        }
        let mut bytes = good.clone();
        bytes[0] = 3;
        assert_eq!(refused(&bytes), "its version is 3, only 1 and 2 are known");
        let text = "its records do not end where it does";
        let resealed = |change: fn(&mut BatchForm), cut: usize| {
            let mut bytes = good[..good.len() - cut].to_vec();
            let (form, records) = BatchForm::mut_from_prefix(&mut bytes).expect("a head");
            change(form);
            form.checksum = U64::new(checksum_of(form.as_bytes(), records));
            bytes
        };
        assert_eq!(refused(&resealed(|_| (), 1)), text);
        assert_eq!(refused(&resealed(|form| form.count = U32::new(3), 0)), text);
        assert_eq!(
            refused(&resealed(|form| form.count = U32::new(0), 14)),
            text
        );
        assert_eq!(
            refused(&resealed(|form| form.reserved = U16::new(1), 0)),
            text
        );
        let last = |form: &mut BatchForm| form.index = U64::new(u64::MAX - 1);
        assert_eq!(refused(&resealed(last, 0)), text);
    }
}
