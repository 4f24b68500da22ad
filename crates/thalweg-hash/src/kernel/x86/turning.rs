//! The inner loop of the AVX2 hybrid, instruction by instruction.
//!
//! The chain of one stripe and the products of another are mixed so that integer and vector units
//! both have something to do in every cycle, and the loop begins at a line of the instruction
//! cache. Left to the compiler it is 2 to 8 % slower on Zen 3, differently in every build: where
//! the loop comes to lie, and which of the two comes first, decide on which port the additions
//! wait.

use core::arch::asm;
use core::arch::x86_64::{__m256i, _mm256_set1_epi64x};
use core::mem::MaybeUninit;

use super::super::hybrid::{GroupProducts, Products, finish_group, write_group};
use super::super::{GROUP_BYTES, Sectors};
use crate::accumulator::{Accumulators, PRIME_1, PRIME_2};

/// The chain over the slot at `$at`, and the products of the stripe `$group + $at` bytes behind
/// `from` into the same slot: its store is behind the four reads of the chain (rule 2).
macro_rules! stripe {
    ($group:literal, $at:literal) => {
        concat!(
            concat!("add {a}, [{slots} + ", $at, "]\n"),
            "rorx {a}, {a}, 33\n",
            concat!("vmovdqu {words}, [{from} + ", $group, " + ", $at, "]\n"),
            "imul {a}, {prime}\n",
            "vpsrlq {high}, {words}, 32\n",
            concat!("add {b}, [{slots} + ", $at, " + 8]\n"),
            "rorx {b}, {b}, 33\n",
            "vpmuludq {cross}, {high_prime}, {words}\n",
            "imul {b}, {prime}\n",
            "vpmuludq {words}, {low_prime}, {words}\n",
            concat!("add {c}, [{slots} + ", $at, " + 16]\n"),
            "rorx {c}, {c}, 33\n",
            "vpmuludq {high}, {low_prime}, {high}\n",
            "imul {c}, {prime}\n",
            "vpaddq {cross}, {cross}, {high}\n",
            concat!("add {d}, [{slots} + ", $at, " + 24]\n"),
            "rorx {d}, {d}, 33\n",
            "vpsllq {cross}, {cross}, 32\n",
            "imul {d}, {prime}\n",
            "vpaddq {words}, {words}, {cross}\n",
            concat!("vmovdqa [{slots} + ", $at, "], {words}\n"),
        )
    };
}

/// The chain over a group, and the products of the group `$group` bytes behind `from`.
macro_rules! group {
    ($group:literal) => {
        concat!(
            stripe!($group, "0"),
            stripe!($group, "32"),
            stripe!($group, "64"),
            stripe!($group, "96"),
        )
    };
}

/// Whole sectors into the accumulators.
///
/// # Safety
/// The processor has AVX2, BMI1 and BMI2.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn sectors<P: Products>(accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
    let mut ahead = GroupProducts(MaybeUninit::uninit());
    let products = ahead.0.as_mut_ptr().cast::<u64>();
    let Some(first) = sectors.data.first_chunk::<GROUP_BYTES>() else {
        return;
    };
    // SAFETY: the features are there, and `products` are those of `ahead`.
    unsafe { write_group::<P>(first, products) };
    let mut walk = Walk {
        from: sectors.data.as_ptr(),
        groups: sectors.take / GROUP_BYTES,
        count: sectors.count,
    };
    if walk.groups == 4 && walk.count > 1 {
        // SAFETY: the features are there; at `from` begins this number of sectors of four groups.
        unsafe { turn_sectors_of_four::<P>(accumulators, products, &mut walk, sectors.apart) };
    }
    let (each, gap_bytes) = (walk.groups, sectors.apart - sectors.take);
    // The first group has its products, and may have been all of its sector.
    walk.from = walk.from.wrapping_add(GROUP_BYTES);
    walk.groups -= 1;
    if walk.groups == 0 {
        walk.from = walk.from.wrapping_add(gap_bytes);
        (walk.groups, walk.count) = (each, walk.count - 1);
    }
    if walk.count > 0 {
        // SAFETY: the features are there; at `from` begins this number of groups of a sector, then
        // this number of sectors.
        unsafe { turn_groups::<P>(accumulators, products, walk, each, gap_bytes) };
    }
    // SAFETY: the products are those of the last group.
    unsafe { finish_group(accumulators, products) };
}

/// Where in the sectors we are.
struct Walk {
    from: *const u8,
    /// Groups that this sector has left.
    groups: usize,
    /// Sectors that are left, this one included.
    count: usize,
}

/// All sectors but the last one, of 512 bytes each: a branch a sector, where two loops have one a
/// group. The last three groups of a sector, then the first one of the next.
///
/// # Safety
/// The processor has the features. `products` are those of the first group of `walk`, at which
/// whole sectors begin, `apart` bytes from each other.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn turn_sectors_of_four<P: Products>(
    accumulators: &mut Accumulators,
    products: *mut u64,
    walk: &mut Walk,
    apart: usize,
) {
    let low_prime: __m256i = _mm256_set1_epi64x(i64::from(PRIME_2 as u32));
    let high_prime: __m256i = _mm256_set1_epi64x((PRIME_2 >> 32) as i64);
    let [a, b, c, d] = accumulators;
    // SAFETY: all that is read is inside of the sectors, and the slots are the caller's.
    unsafe {
        asm!(
            ".p2align 6",
            "2:",
            group!("128"),
            group!("256"),
            group!("384"),
            "add {from}, {apart}",
            group!("0"),
            "dec {sectors}",
            "jnz 2b",
            a = inout(reg) *a,
            b = inout(reg) *b,
            c = inout(reg) *c,
            d = inout(reg) *d,
            prime = in(reg) PRIME_1,
            slots = in(reg) products,
            from = inout(reg) walk.from,
            sectors = inout(reg) walk.count - 1 => _,
            apart = in(reg) apart,
            low_prime = in(ymm_reg) low_prime,
            high_prime = in(ymm_reg) high_prime,
            words = out(ymm_reg) _,
            high = out(ymm_reg) _,
            cross = out(ymm_reg) _,
            options(nostack)
        );
    }
    walk.count = 1;
}

/// Groups of one sector after the other.
///
/// # Safety
/// The processor has the features. `products` are those of the group before `walk`, at which whole
/// groups begin: those that this sector has left, then sectors of `each` groups, with gaps between.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn turn_groups<P: Products>(
    accumulators: &mut Accumulators,
    products: *mut u64,
    walk: Walk,
    each: usize,
    gap_bytes: usize,
) {
    let low_prime: __m256i = _mm256_set1_epi64x(i64::from(PRIME_2 as u32));
    let high_prime: __m256i = _mm256_set1_epi64x((PRIME_2 >> 32) as i64);
    let [a, b, c, d] = accumulators;
    // SAFETY: all that is read is inside of the groups, and the slots are the caller's.
    unsafe {
        asm!(
            ".p2align 6",
            "2:",
            group!("0"),
            "sub {from}, -128",
            "dec {groups}",
            "jnz 2b",
            "add {from}, {gap_bytes}",
            "mov {groups}, {each}",
            "dec {count}",
            "jnz 2b",
            a = inout(reg) *a,
            b = inout(reg) *b,
            c = inout(reg) *c,
            d = inout(reg) *d,
            prime = in(reg) PRIME_1,
            slots = in(reg) products,
            from = inout(reg) walk.from => _,
            groups = inout(reg) walk.groups => _,
            count = inout(reg) walk.count => _,
            each = in(reg) each,
            gap_bytes = in(reg) gap_bytes,
            low_prime = in(ymm_reg) low_prime,
            high_prime = in(ymm_reg) high_prime,
            words = out(ymm_reg) _,
            high = out(ymm_reg) _,
            cross = out(ymm_reg) _,
            options(nostack)
        );
    }
}
