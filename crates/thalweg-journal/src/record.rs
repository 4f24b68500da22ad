//! Records: of a fixed size, or byte strings.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::format::{BLOCK_HEADER_BYTES, LENGTH_BYTES};

/// A record of fixed size, which is in the journal as it is in memory.
///
/// Every type is one for which [`zerocopy`] derives these traits: it has no padding, and any bytes
/// are a value. Use `zerocopy`'s little-endian integers where the file should mean the same
/// everywhere.
pub trait Record: FromBytes + IntoBytes + Immutable + KnownLayout {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Record for T {}

/// The records of a journal: a [`Record`] type, or `[u8]` for byte strings of any length.
pub trait RecordType {
    /// The size of a record; 0 if it varies.
    #[doc(hidden)]
    const BYTES: u32;
}

impl<R: Record> RecordType for R {
    const BYTES: u32 = {
        assert!(size_of::<R>() > 0, "a record has at least one byte");
        assert!(
            align_of::<R>() <= BLOCK_HEADER_BYTES,
            "alignments go up to 64 bytes"
        );
        assert!(size_of::<R>() < 1 << 26, "a record has less than 64 MiB");
        size_of::<R>() as u32
    };
}

impl RecordType for [u8] {
    const BYTES: u32 = 0;
}

/// Returns the record in a slot of its size.
#[inline]
pub(crate) fn record_in<R: Record>(slot: &mut [u8]) -> &mut R {
    R::mut_from_bytes(slot).expect("blocks are aligned, and the slot is as long as the record")
}

/// Writes the length in front, and gives what is behind it.
#[inline]
pub(crate) fn content_in(slot: &mut [u8]) -> &mut [u8] {
    let (length, content) = slot
        .split_first_chunk_mut::<LENGTH_BYTES>()
        .expect("there is room for the length");
    *length = (content.len() as u32).to_le_bytes();
    content
}
