//! Lists of buffers with gaps: a number of bytes is taken, a number is skipped, and so on.

use crate::stride::{Pattern, Stride};
use crate::{Kernel, Xxh64};

/// Something in a list of buffers: a reference to bytes, or to an [`IoSlice`](std::io::IoSlice).
pub trait Segment<'a> {
    /// Returns its bytes.
    fn bytes(self) -> &'a [u8];
}

impl<'a> Segment<'a> for &'a [u8] {
    fn bytes(self) -> &'a [u8] {
        self
    }
}

impl<'a> Segment<'a> for &&'a [u8] {
    fn bytes(self) -> &'a [u8] {
        self
    }
}

impl<'a, const N: usize> Segment<'a> for &'a [u8; N] {
    fn bytes(self) -> &'a [u8] {
        self
    }
}

#[cfg(feature = "std")]
impl<'a> Segment<'a> for &'a Vec<u8> {
    fn bytes(self) -> &'a [u8] {
        self
    }
}

#[cfg(feature = "std")]
impl<'a> Segment<'a> for &'a std::io::IoSlice<'_> {
    fn bytes(self) -> &'a [u8] {
        self
    }
}

/// Returns the XXH64 of the bytes that a stride selects from a list of buffers, as if they were
/// copied together.
///
/// Only stripes that are cut by a gap are copied; sectors and slices may end anywhere.
///
/// ```
/// use std::io::IoSlice;
/// use thalweg_hash::{Stride, xxh64, xxh64_strided};
///
/// let list = [IoSlice::new(b"header??"), IoSlice::new(b"body????")];
/// let stride = Stride { take: 6, skip: 2 };
/// assert_eq!(xxh64_strided(0, &list, stride), xxh64(0, b"headerbody??"));
/// ```
pub fn xxh64_strided<'a, I>(seed: u64, slices: I, stride: Stride) -> u64
where
    I: IntoIterator,
    I::Item: Segment<'a>,
{
    Kernel::best().xxh64_strided(seed, slices, stride)
}

impl Kernel {
    /// Works as [`xxh64_strided`], by this kernel.
    pub fn xxh64_strided<'a, I>(self, seed: u64, slices: I, stride: Stride) -> u64
    where
        I: IntoIterator,
        I::Item: Segment<'a>,
    {
        let mut hash = Xxh64::with_kernel(self, seed);
        let mut pattern = Pattern::new(stride);
        let pieces = slices.into_iter().map(Segment::bytes);
        hash.update_strided(pieces, &mut pattern);
        hash.digest()
    }
}

/// Computes [`xxh64_strided`] of a stream that comes in pieces; the pattern goes on from one to the
/// next.
///
/// ```
/// use thalweg_hash::{Stride, Strided, xxh64};
///
/// let mut hash = Strided::new(0, Stride { take: 2, skip: 3 });
/// hash.update(b"ab-");
/// hash.update(b"--c");
/// hash.update(b"d---e");
/// assert_eq!(hash.digest(), xxh64(0, b"abcde"));
/// ```
#[derive(Clone, Debug)]
pub struct Strided {
    hash: Xxh64,
    pattern: Pattern,
}

impl Strided {
    /// Returns an empty stream.
    #[must_use]
    pub fn new(seed: u64, stride: Stride) -> Self {
        Self::with_kernel(Kernel::best(), seed, stride)
    }

    /// Returns an empty stream that goes through this kernel, for tests and measurements.
    #[must_use]
    pub const fn with_kernel(kernel: Kernel, seed: u64, stride: Stride) -> Self {
        Self {
            hash: Xxh64::with_kernel(kernel, seed),
            pattern: Pattern::new(stride),
        }
    }

    /// Takes the next piece.
    pub fn update(&mut self, data: &[u8]) {
        let pieces = core::iter::once(data);
        self.hash.update_strided(pieces, &mut self.pattern);
    }

    /// Returns the hash of all that came so far. More may come afterwards.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.hash.digest()
    }
}
