//! Two vectors that go together, so that one has something to do while the other waits.
//!
//! A key is one long chain of multiplies, and a processor looks only so far ahead for others: keys
//! whose steps alternate in the program are found, keys that come one after another are not.

use super::lanes::Lanes;

/// The lanes of both, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Twin<L>(L, L);

impl<L: Lanes> Twin<L> {
    /// Applies `op` to each of the two.
    #[inline(always)]
    fn both(self, mut op: impl FnMut(L) -> L) -> Self {
        Self(op(self.0), op(self.1))
    }
}

// SAFETY: both read what they say, and the second one begins where the first one ends.
unsafe impl<L: Lanes> Lanes for Twin<L> {
    const COUNT: usize = 2 * L::COUNT;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: the caller's promise: so in all functions here.
        unsafe { Self(L::splat(word), L::splat(word)) }
    }

    #[inline(always)]
    unsafe fn read(from: *const u8, apart_bytes: usize) -> Self {
        // SAFETY: the caller's promise for the lanes of both.
        unsafe {
            let second = from.add(L::COUNT * apart_bytes);
            Self(L::read(from, apart_bytes), L::read(second, apart_bytes))
        }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut u64) {
        // SAFETY: the caller's promise for the lanes of both.
        unsafe {
            self.0.write(to);
            self.1.write(to.add(L::COUNT));
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { Self(self.0.add(other.0), self.1.add(other.1)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { Self(self.0.xor(other.0), self.1.xor(other.1)) }
    }

    #[inline(always)]
    unsafe fn times<const PRIME: u64>(self) -> Self {
        // SAFETY: as in `splat`.
        self.both(|lanes| unsafe { lanes.times::<PRIME>() })
    }

    #[inline(always)]
    unsafe fn rotate_left<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: as in `splat`.
        self.both(|lanes| unsafe { lanes.rotate_left::<LEFT, RIGHT>() })
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: u32>(self) -> Self {
        // SAFETY: as in `splat`.
        self.both(|lanes| unsafe { lanes.shift_right::<BITS>() })
    }
}
