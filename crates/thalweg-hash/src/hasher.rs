//! The traits of `core::hash`.

use core::hash::{BuildHasher, Hasher};

use crate::Xxh64;

impl Hasher for Xxh64 {
    fn write(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }

    fn finish(&self) -> u64 {
        self.digest()
    }
}

/// Makes [`Xxh64`] for tables of the standard library.
///
/// A type decides by itself which bytes it feeds to a [`Hasher`]: a `str` ends with a byte more,
/// integers come in the order of bytes of the machine. So the hash of a `str` is not that of its
/// bytes, and hashes of values should not be stored: for that take [`xxh64`](crate::xxh64) of
/// bytes.
///
/// A seed does not protect a table: a party that knows it can find keys that collide.
///
/// ```
/// use std::collections::HashMap;
/// use thalweg_hash::BuildXxh64;
///
/// let mut map = HashMap::with_hasher(BuildXxh64::with_seed(7));
/// map.insert("depth", 12);
/// assert_eq!(map.get("depth"), Some(&12));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BuildXxh64 {
    seed: u64,
}

impl BuildXxh64 {
    /// Hashers with this seed. The default is 0.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self { seed }
    }
}

impl BuildHasher for BuildXxh64 {
    type Hasher = Xxh64;

    fn build_hasher(&self) -> Xxh64 {
        Xxh64::new(self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xxh64;

    #[test]
    fn what_is_written_is_hashed() {
        let mut hasher = BuildXxh64::with_seed(5).build_hasher();
        hasher.write(b"ab");
        hasher.write_u8(b'c');
        assert_eq!(hasher.finish(), xxh64(5, b"abc"));
        assert_eq!(BuildXxh64::default().build_hasher().finish(), xxh64(0, b""));
    }

    #[test]
    fn a_str_is_more_than_its_bytes() {
        let hash = BuildXxh64::default().hash_one("abc");
        assert_eq!(hash, xxh64(0, b"abc\xFF"));
    }
}
