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

use super::super::Sectors;
use super::super::hybrid::{Ahead, GROUP_BYTES, finish_group, write_group};
use super::avx2::Avx2;
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
pub(super) unsafe fn sectors(accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
    let mut ahead = Ahead(MaybeUninit::uninit());
    let products = ahead.0.as_mut_ptr().cast::<u64>();
    let Some(first) = sectors.data.first_chunk::<GROUP_BYTES>() else {
        return;
    };
    // SAFETY: the features are there, and `products` are those of `ahead`.
    unsafe { write_group::<Avx2>(first, products) };
    let low_prime: __m256i = _mm256_set1_epi64x(i64::from(PRIME_2 as u32));
    let high_prime: __m256i = _mm256_set1_epi64x((PRIME_2 >> 32) as i64);
    let [a, b, c, d] = accumulators;
    let each = sectors.take / GROUP_BYTES;
    let mut from = sectors.data.as_ptr();
    let mut count = sectors.count;
    if each == 4 && count > 1 {
        // Sectors of 512 bytes: a branch a sector, where two loops have one a group. The last
        // three groups of a sector, then the first one of the next.
        //
        // SAFETY: `from` runs over the sectors but the last one. All that is read is inside of the
        // data (so `Sectors` says), and the slots are inside of `ahead`.
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
                from = inout(reg) from,
                sectors = inout(reg) count - 1 => _,
                apart = in(reg) sectors.apart,
                low_prime = in(ymm_reg) low_prime,
                high_prime = in(ymm_reg) high_prime,
                words = out(ymm_reg) _,
                high = out(ymm_reg) _,
                cross = out(ymm_reg) _,
                options(nostack)
            );
        }
        count = 1;
    }
    // What comes after the first group, which may have been all of its sector.
    let gap_bytes = sectors.apart - sectors.take;
    from = from.wrapping_add(GROUP_BYTES);
    let mut groups = each - 1;
    if groups == 0 {
        from = from.wrapping_add(gap_bytes);
        (groups, count) = (each, count - 1);
    }
    if count > 0 {
        // SAFETY: `from` runs over the groups of all sectors that are left, each of which is inside
        // of the data (so `Sectors` says), and the slots are inside of `ahead`.
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
                from = inout(reg) from => _,
                groups = inout(reg) groups => _,
                count = inout(reg) count => _,
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
    // SAFETY: the products are those of the last group.
    unsafe { finish_group(accumulators, products) };
}
