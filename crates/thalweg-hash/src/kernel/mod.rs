//! The kernels: one algorithm in several instruction sets, one of them picked when the program
//! runs. All `unsafe` of this crate is in here.
//!
//! *Rules.*
//! 1. The functions of a [`Table`] may need features of the processor. A [`Kernel`] holds a table
//!    whose features were found, and is made nowhere but in [`Kernel::available`] and
//!    [`Kernel::best`], or for the scalar table, which needs none.

#[cfg(any(
    all(target_arch = "x86_64", has_avx2),
    all(target_arch = "aarch64", target_endian = "little")
))]
mod hybrid;
#[cfg(any(all(target_arch = "x86_64", has_avx2), test))]
mod lanes;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
pub(crate) mod scalar;
mod sectors;
#[cfg(test)]
mod tests;
#[cfg(any(all(target_arch = "x86_64", has_avx2), test))]
mod twin;
#[cfg(all(target_arch = "x86_64", has_avx2))]
mod x86;

use core::fmt;

use crate::accumulator::{Accumulators, Stripe};
pub(crate) use sectors::{GROUP_BYTES, Group, Sectors};

/// The functions of a kernel. The functions are unsafe because they need the features of `found`.
struct Table {
    name: &'static str,
    found: fn() -> bool,
    hash: unsafe fn(u64, &[u8]) -> u64,
    stripes: unsafe fn(&mut Accumulators, &[Stripe]),
    groups: unsafe fn(&mut Accumulators, &[&Group]),
    sectors: unsafe fn(&mut Accumulators, &Sectors<'_>),
    many: unsafe fn(u64, &[&[u8]], &mut [u64]),
    keys_8: unsafe fn(u64, &[[u8; 8]], &mut [u64]),
    keys_16: unsafe fn(u64, &[[u8; 16]], &mut [u64]),
    keys_32: unsafe fn(u64, &[[u8; 32]], &mut [u64]),
    keys_64: unsafe fn(u64, &[[u8; 64]], &mut [u64]),
}

/// Tables of this architecture, the best first, the scalar one last.
#[cfg(all(target_arch = "x86_64", has_avx2))]
static TABLES: &[&Table] = &[
    #[cfg(has_avx512)]
    &x86::AVX512,
    &x86::AVX2,
    &scalar::SCALAR,
];
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
static TABLES: &[&Table] = &[&neon::NEON, &scalar::SCALAR];
#[cfg(not(any(
    all(target_arch = "x86_64", has_avx2),
    all(target_arch = "aarch64", target_endian = "little")
)))]
static TABLES: &[&Table] = &[&scalar::SCALAR];

/// An implementation of XXH64 that this processor can run. All of them return the same hashes.
///
/// The functions of this crate use [`Kernel::best`]; choose another to test or measure it.
///
/// ```
/// use thalweg_hash::Kernel;
///
/// for kernel in Kernel::available() {
///     assert_eq!(kernel.xxh64(0, b"abc"), 0x44BC_2CF5_AD77_0999, "{kernel:?}");
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Kernel(&'static Table);

impl Kernel {
    /// The plain way, on every processor.
    pub const SCALAR: Kernel = Kernel(&scalar::SCALAR);

    /// Returns the kernels that this processor can run, from the one that is picked to the last
    /// resort.
    pub fn available() -> impl Iterator<Item = Kernel> {
        let found = TABLES.iter().filter(|table| (table.found)());
        found.map(|table| Kernel(table))
    }

    /// Returns the fastest one here: found once, then remembered. On 64-bit ARM that is by
    /// reckoning, not by measurement.
    #[inline]
    #[must_use]
    pub fn best() -> Kernel {
        picked::best()
    }

    /// Returns the name: `avx512`, `avx2`, `neon` or `scalar`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Works as [`xxh64`](crate::xxh64), by this kernel.
    #[must_use]
    #[inline]
    pub fn xxh64(self, seed: u64, data: &[u8]) -> u64 {
        // SAFETY: rule 1.
        unsafe { (self.0.hash)(seed, data) }
    }

    /// Works as [`xxh64_many`](crate::xxh64_many), by this kernel.
    ///
    /// # Panics
    /// There are not as many hashes as inputs.
    pub fn xxh64_many(self, seed: u64, inputs: &[&[u8]], hashes: &mut [u64]) {
        assert_eq!(inputs.len(), hashes.len(), "a hash for each input");
        // SAFETY: rule 1.
        unsafe { (self.0.many)(seed, inputs, hashes) }
    }

    #[inline]
    pub(crate) fn stripes(self, accumulators: &mut Accumulators, stripes: &[Stripe]) {
        // SAFETY: rule 1.
        unsafe { (self.0.stripes)(accumulators, stripes) }
    }

    #[inline]
    pub(crate) fn groups(self, accumulators: &mut Accumulators, groups: &[&Group]) {
        // SAFETY: rule 1.
        unsafe { (self.0.groups)(accumulators, groups) }
    }

    #[inline]
    pub(crate) fn sectors(self, accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
        // SAFETY: rule 1.
        unsafe { (self.0.sectors)(accumulators, sectors) }
    }

    pub(crate) fn keys_8(self, seed: u64, keys: &[[u8; 8]], hashes: &mut [u64]) {
        // SAFETY: rule 1.
        unsafe { (self.0.keys_8)(seed, keys, hashes) }
    }

    pub(crate) fn keys_16(self, seed: u64, keys: &[[u8; 16]], hashes: &mut [u64]) {
        // SAFETY: rule 1.
        unsafe { (self.0.keys_16)(seed, keys, hashes) }
    }

    pub(crate) fn keys_32(self, seed: u64, keys: &[[u8; 32]], hashes: &mut [u64]) {
        // SAFETY: rule 1.
        unsafe { (self.0.keys_32)(seed, keys, hashes) }
    }

    pub(crate) fn keys_64(self, seed: u64, keys: &[[u8; 64]], hashes: &mut [u64]) {
        // SAFETY: rule 1.
        unsafe { (self.0.keys_64)(seed, keys, hashes) }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.0.name)
    }
}

#[cfg(feature = "std")]
mod picked {
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::{Kernel, TABLES};

    /// One more than the index of the best table; 0 before it is known.
    static BEST: AtomicUsize = AtomicUsize::new(0);

    #[inline]
    pub(super) fn best() -> Kernel {
        // ORDERING: Relaxed, pairs with the store in `find`; the number is all there is, and
        // everyone finds the same.
        match TABLES.get(BEST.load(Ordering::Relaxed).wrapping_sub(1)) {
            Some(table) => Kernel(table),
            None => find(),
        }
    }

    #[cold]
    fn find() -> Kernel {
        let at = TABLES.iter().position(|table| (table.found)());
        let at = at.unwrap_or(TABLES.len() - 1);
        // ORDERING: Relaxed, pairs with the load in `best`, as said there.
        BEST.store(at + 1, Ordering::Relaxed);
        Kernel(TABLES[at])
    }
}

#[cfg(not(feature = "std"))]
mod picked {
    use super::Kernel;

    /// Returns the best kernel. It does not change, and is known to the compiler.
    #[inline]
    pub(super) fn best() -> Kernel {
        Kernel::available().next().unwrap_or(Kernel::SCALAR)
    }
}

/// Returns the word in a way that the compiler knows nothing of it any more. It joins accumulators
/// that it knows all about into one vector, with a multiply that is slower than four.
#[inline(always)]
fn alone(word: u64) -> u64 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut word = word;
        // SAFETY: there is no instruction.
        unsafe {
            core::arch::asm!(
                "/* {0} */",
                inout(reg) word,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        word
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    word
}
