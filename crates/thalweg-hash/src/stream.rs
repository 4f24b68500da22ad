//! A stream that comes in pieces, and the traits of `core::hash`.

use core::hash::{BuildHasher, Hasher};

use crate::Kernel;
use crate::accumulator::{Accumulators, STRIPE_BYTES, Stripe, finish, merge, start, start_short};
use crate::kernel::{GROUP_BYTES, scalar};
use crate::runs::{Feed, Sink};
use crate::stride::Pattern;

/// Computes the XXH64 of a stream, piece by piece. Where it is cut does not matter.
///
/// Also a [`Hasher`], made by [`BuildXxh64`].
///
/// ```
/// use thalweg_hash::{Xxh64, xxh64};
///
/// let mut hash = Xxh64::new(1);
/// for piece in ["The line ", "of fastest ", "flow"] {
///     hash.update(piece.as_bytes());
/// }
/// assert_eq!(hash.digest(), xxh64(1, b"The line of fastest flow"));
/// ```
#[derive(Clone, Debug)]
pub struct Xxh64 {
    pub(crate) kernel: Kernel,
    pub(crate) accumulators: Accumulators,
    seed: u64,
    /// Modulo 2^64, as the algorithm has it.
    all_bytes: u64,
    /// The beginning of a stripe that is not whole yet.
    pending: Stripe,
    pending_bytes: usize,
}

impl Xxh64 {
    /// Returns an empty stream.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_kernel(Kernel::best(), seed)
    }

    /// Returns an empty stream that goes through this kernel, for tests and measurements.
    #[must_use]
    pub const fn with_kernel(kernel: Kernel, seed: u64) -> Self {
        Self {
            kernel,
            accumulators: start(seed),
            seed,
            all_bytes: 0,
            pending: [0; STRIPE_BYTES],
            pending_bytes: 0,
        }
    }

    /// Makes the stream empty again, with the seed that it began with.
    pub fn reset(&mut self) {
        *self = Self::with_kernel(self.kernel, self.seed);
    }

    /// Returns the number of bytes so far, modulo 2^64.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.all_bytes
    }

    /// Returns whether nothing has come yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all_bytes == 0
    }

    /// Takes the next piece.
    pub fn update(&mut self, mut data: &[u8]) {
        self.all_bytes = self.all_bytes.wrapping_add(data.len() as u64);
        if self.pending_bytes > 0 {
            let room = &mut self.pending[self.pending_bytes..];
            let now = room.len().min(data.len());
            room[..now].copy_from_slice(&data[..now]);
            self.pending_bytes += now;
            data = &data[now..];
            if self.pending_bytes < STRIPE_BYTES {
                return;
            }
            scalar::stripes(&mut self.accumulators, &[self.pending]);
        }
        let (stripes, tail) = data.as_chunks::<STRIPE_BYTES>();
        if data.len() < GROUP_BYTES {
            scalar::stripes(&mut self.accumulators, stripes);
        } else {
            self.kernel.stripes(&mut self.accumulators, stripes);
        }
        self.keep(tail);
    }

    /// Updates with the bytes of pieces that a pattern selects, as one flow: nothing stops where a
    /// piece ends.
    #[inline]
    pub(crate) fn update_strided<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [u8]>,
        pattern: &mut Pattern,
    ) {
        let mut feed: Option<Feed<'a>> = None;
        let mut sink = Sink {
            kernel: self.kernel,
            accumulators: &mut self.accumulators,
        };
        for piece in pieces {
            let mut rest = piece;
            while !rest.is_empty() {
                let even = match &feed {
                    Some(feed) => feed.is_even(),
                    None => self.pending_bytes == 0,
                };
                let sectors = if even {
                    pattern.whole_sectors(rest)
                } else {
                    None
                };
                if let Some(sectors) = sectors {
                    if let Some(feed) = &mut feed {
                        feed.flush(&mut sink);
                    }
                    self.all_bytes = self.all_bytes.wrapping_add(sectors.bytes());
                    sink.kernel.sectors(sink.accumulators, &sectors);
                    rest = pattern.behind(&sectors, rest);
                    continue;
                }
                let run;
                (run, rest) = pattern.next_run(rest);
                if run.is_empty() {
                    continue;
                }
                self.all_bytes = self.all_bytes.wrapping_add(run.len() as u64);
                let feed = feed.get_or_insert_with(|| {
                    let mut feed = Feed::new();
                    feed.push_copied(&mut sink, &self.pending[..self.pending_bytes]);
                    feed
                });
                feed.push(&mut sink, run);
            }
        }
        if let Some(mut feed) = feed {
            let tail = feed.end(&mut sink);
            self.pending[..tail.len()].copy_from_slice(tail);
            self.pending_bytes = tail.len();
        }
    }

    /// Less than a stripe, for later.
    fn keep(&mut self, tail: &[u8]) {
        self.pending[..tail.len()].copy_from_slice(tail);
        self.pending_bytes = tail.len();
    }

    /// Returns the hash of all that came so far. More may come afterwards.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let merged = if self.all_bytes < STRIPE_BYTES as u64 {
            start_short(self.seed)
        } else {
            merge(self.accumulators)
        };
        finish(merged, self.all_bytes, &self.pending[..self.pending_bytes])
    }
}

#[cfg(feature = "std")]
impl std::io::Write for Xxh64 {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.update(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

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
