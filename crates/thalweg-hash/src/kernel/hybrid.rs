//! The hybrid kernels: products in SIMD some stripes ahead, the chain in scalar registers.
//!
//! *Why.* A stripe costs eight 64-bit multiplies, and processors start one a cycle: 4 bytes a
//! cycle. Four of them, word × `PRIME_2`, do not depend on the accumulators. Done in the vector
//! unit they leave four, and the chain of add, rotate and multiply (5 cycles a stripe, 6.4 bytes a
//! cycle) is the limit.
//!
//! *State.* Products of one group of four stripes, in memory: [`GroupProducts`].
//!
//! *Rules.*
//! 1. `GroupProducts` holds the products of group g, word by word, when the chain of g begins.
//! 2. The slot of a stripe is written again, for group g + 1, only after the chain has read it.
//! 3. A [`Products`] is used only in a function that was compiled for its features, and such a
//!    function is called only through a [`Kernel`](super::Kernel), that is, where they were found.
//!
//! *Against the compiler.* LLVM's vectorizer joins the four chains into one vector with a much
//! slower multiply: [`alone`] takes each accumulator out of its sight. And it would keep the
//! products in vector registers and extract lane by lane, three instructions a word instead of an
//! addition from memory: [`keep_in_memory`] makes it write and read them.

use core::mem::MaybeUninit;

use super::sectors::{GROUP, Group, Sectors};
use super::{alone, scalar};
use crate::accumulator::{Accumulators, STRIPE_BYTES, Stripe, chain, finish, merge, start};

/// Products of a group, aligned for whole vectors.
#[repr(C, align(64))]
pub(super) struct GroupProducts(pub(super) MaybeUninit<[[u64; 4]; GROUP]>);

/// Multiplies the four words of a stripe by `PRIME_2`.
///
/// # Safety
/// `write` fills all four words of `slot`.
pub(super) unsafe trait Products {
    /// # Safety
    /// The processor has the features of this kind. `slot` is valid for writing 32 bytes and
    /// aligned to 32.
    unsafe fn write(stripe: &Stripe, slot: *mut u64);

    /// Whole sectors into the accumulators. A kernel may know better than the compiler how.
    ///
    /// # Safety
    /// As [`groups`].
    #[inline(always)]
    unsafe fn sectors(accumulators: &mut Accumulators, sectors: &Sectors<'_>)
    where
        Self: Sized,
    {
        // SAFETY: the caller's promise.
        unsafe { groups::<Self>(accumulators, sectors.groups()) };
    }
}

/// Ends what the compiler knows about the bytes behind `products`, so that they stay in memory.
#[inline(always)]
fn keep_in_memory(products: *mut u64) {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: there is no instruction.
    unsafe {
        core::arch::asm!("/* {0} */", in(reg) products, options(nostack, preserves_flags));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    core::hint::black_box(products);
}

/// Whole groups into the accumulators, in order. The products run one group ahead of the chain,
/// across whatever gap lies between two groups.
///
/// # Safety
/// Rule 3.
#[inline(always)]
pub(super) unsafe fn groups<'a, P: Products>(
    accumulators: &mut Accumulators,
    mut groups: impl Iterator<Item = &'a Group>,
) {
    let Some(first) = groups.next() else {
        return;
    };
    let mut ahead = GroupProducts(MaybeUninit::uninit());
    let products = ahead.0.as_mut_ptr().cast::<u64>();
    let mut lanes = *accumulators;
    // SAFETY: the caller has P's features, and `products` are those of `ahead`.
    unsafe { write_group::<P>(first, products) };
    for group in groups {
        for (slot, stripe) in stripes_of(group).iter().enumerate() {
            // SAFETY: rule 1, and the slot is inside of `ahead`, as above.
            unsafe { turn(&mut lanes, products.add(4 * slot)) };
            // SAFETY: as in the loop above. The chain has read the slot (rule 2).
            unsafe { P::write(stripe, products.add(4 * slot)) };
            keep_in_memory(products);
        }
    }
    // SAFETY: rule 1.
    unsafe { finish_group(&mut lanes, products) };
    *accumulators = lanes;
}

/// The products of a group.
///
/// # Safety
/// Rule 3. `products` are those of a [`GroupProducts`].
#[inline(always)]
pub(super) unsafe fn write_group<P: Products>(group: &Group, products: *mut u64) {
    for (slot, stripe) in stripes_of(group).iter().enumerate() {
        // SAFETY: the caller has P's features. The slot is inside of the `GroupProducts`, whose
        // size is four slots and whose alignment is 64.
        unsafe { P::write(stripe, products.add(4 * slot)) };
    }
    keep_in_memory(products);
}

/// The chain of a group, after which nothing follows.
///
/// # Safety
/// Rule 1, of the [`GroupProducts`] of these products.
#[inline(always)]
pub(super) unsafe fn finish_group(lanes: &mut Accumulators, products: *const u64) {
    for slot in 0..GROUP {
        // SAFETY: the slot is inside of the `GroupProducts`.
        unsafe { turn(lanes, products.add(4 * slot)) };
    }
}

#[inline(always)]
fn stripes_of(group: &Group) -> &[Stripe] {
    group.as_chunks().0
}

/// The chain of one stripe.
///
/// # Safety
/// Four products lie behind `products`.
#[inline(always)]
unsafe fn turn(lanes: &mut Accumulators, products: *const u64) {
    for (lane, accumulator) in lanes.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let product = unsafe { products.add(lane).read() };
        *accumulator = alone(chain(*accumulator, product));
    }
}

/// Stripes that follow each other into the accumulators.
///
/// Those that do not fill a group go first, by the scalar way: they have no products to wait for.
///
/// # Safety
/// Rule 3.
#[inline(always)]
pub(super) unsafe fn stripes<P: Products>(accumulators: &mut Accumulators, stripes: &[Stripe]) {
    let (lead, rest) = stripes.split_at(stripes.len() % GROUP);
    scalar::stripes(accumulators, lead);
    if let Some(sectors) = Sectors::one(rest.as_flattened()) {
        // SAFETY: the caller's promise.
        unsafe { P::sectors(accumulators, &sectors) };
    }
}

/// Returns the hash of one buffer.
///
/// # Safety
/// Rule 3.
#[inline(always)]
pub(super) unsafe fn hash<P: Products>(seed: u64, data: &[u8]) -> u64 {
    let (whole, tail) = data.as_chunks::<STRIPE_BYTES>();
    if whole.len() < GROUP {
        return scalar::hash(seed, data);
    }
    let mut accumulators = start(seed);
    // SAFETY: the caller's promise.
    unsafe { stripes::<P>(&mut accumulators, whole) };
    finish(merge(accumulators), data.len() as u64, tail)
}
