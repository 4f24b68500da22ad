//! Where the bytes of a state go: all of them into a list, or through a hash.

use thalweg_hash::Xxh64;

/// Bytes that are kept before they are hashed together.
const TOGETHER: usize = 1 << 15;

/// Takes fields one after another.
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

    /// The hash of all.
    pub(super) fn digest(self) -> u64 {
        let mut hash = self.hash.unwrap_or_else(|| Xxh64::new(0));
        hash.update(self.out);
        hash.digest()
    }

    #[inline]
    pub(super) fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(hash) = &mut self.hash
            && self.out.len() > TOGETHER
        {
            hash.update(self.out);
            self.out.clear();
        }
        self.out.extend_from_slice(&bytes);
    }

    pub(super) fn byte(&mut self, value: u8) {
        self.bytes([value]);
    }

    pub(super) fn int(&mut self, value: i32) {
        self.bytes(value.to_le_bytes());
    }

    pub(super) fn long(&mut self, value: i64) {
        self.bytes(value.to_le_bytes());
    }

    pub(super) fn wide(&mut self, value: i128) {
        self.bytes(value.to_le_bytes());
    }

    #[inline]
    pub(super) fn longs<const N: usize>(&mut self, values: [i64; N]) {
        for value in values {
            self.long(value);
        }
    }

    /// The length of a list. The items of a list have slots, whose numbers have 32 bits.
    pub(super) fn count(&mut self, count: usize) {
        let count = u32::try_from(count).expect("slots have numbers of 32 bits");
        self.bytes(count.to_le_bytes());
    }
}
