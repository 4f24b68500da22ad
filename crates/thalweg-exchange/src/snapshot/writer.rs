//! Where the bytes of a state go: all of them into a list, or through a hash.

use thalweg_hash::Xxh64;
use zerocopy::little_endian::U32;
use zerocopy::{Immutable, IntoBytes};

/// Bytes that are kept before they are hashed together.
const TOGETHER: usize = 1 << 15;

/// Takes structs one after another.
#[derive(Debug)]
pub(super) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    hash: Option<Xxh64>,
}

impl<'o> Writer<'o> {
    /// Appends to `out`.
    pub(super) const fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, hash: None }
    }

    /// Hashes what is written. `room` is used in between.
    pub(super) fn hashing(room: &'o mut Vec<u8>) -> Self {
        Self {
            out: room,
            hash: Some(Xxh64::new(0)),
        }
    }

    /// Returns the hash of all.
    pub(super) fn digest(self) -> u64 {
        let mut hash = self.hash.unwrap_or_else(|| Xxh64::new(0));
        hash.update(self.out);
        hash.digest()
    }

    #[inline]
    pub(super) fn put<T: IntoBytes + Immutable>(&mut self, form: &T) {
        if let Some(hash) = &mut self.hash
            && self.out.len() > TOGETHER
        {
            hash.update(self.out);
            self.out.clear();
        }
        self.out.extend_from_slice(form.as_bytes());
    }

    /// The length of a list. The items of a list have slots, whose numbers have 32 bits.
    pub(super) fn count(&mut self, count: usize) {
        let count = u32::try_from(count).expect("slots have numbers of 32 bits");
        self.put(&U32::new(count));
    }
}
