//! Lock-free rings, on which channels, pipelines and buses are built: they never wait. This is the
//! one module of the crate with `unsafe` code.
//!
//! | | producers | consumers | an element goes to |
//! |---|---|---|---|
//! | [`spsc()`] | one | one | the consumer |
//! | [`MpmcRing`] | many | many | one of them |
//! | [`oneshot()`] | one | one | the consumer, once |
//! | [`broadcast`] | one | many | all of them, in a declared order |
//!
//! Every operation is *claim → write → publish* on the sending side and *observe → read → release*
//! on the receiving side. Positions are 64-bit sequences; each index is on its own 128-byte line;
//! each side keeps a private copy of the other's index and looks again only when that copy says
//! full or empty.

pub(crate) use mpmc::{Claimed, MpmcEnd};
pub use mpmc::{MpmcClaim, MpmcRing};
#[cfg(feature = "std")]
pub use oneshot::{OneshotConsumer, OneshotProducer, oneshot};
pub use sequence::{CAPACITY_MAX, CapacityError};
pub(crate) use spsc::UsedByOneThreadAtATime;
pub use spsc::{
    Layout, PopError, PushError, RingClaimError, SpscBatch, SpscClaim, SpscConsumer, SpscProducer,
    spsc,
};

#[cfg(feature = "std")]
pub mod broadcast;
mod mpmc;
#[cfg(feature = "std")]
mod oneshot;
#[cfg(feature = "std")]
pub(crate) mod panics;
#[cfg(not(feature = "std"))]
#[path = "fatal.rs"]
pub(crate) mod panics;
pub(crate) mod sequence;
mod spsc;
pub(crate) mod sync;

/// Prefetches the cache line of `value`, which will be read soon: from memory that takes some
/// 100 ns, during which other work can go on.
///
/// One instruction on x86-64; nothing elsewhere.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: SSE is part of x86-64; the instruction changes nothing and faults at no address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = value;
}

/// Prefetches the line of a cell that will be written soon. A hint: any address will do.
#[inline(always)]
fn prefetch_for_writing<T>(cell: *const T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: changes neither memory nor flags, and faults at no address. Processors without the
    // feature take it for a `nop` (AMD64 manual, volume 3, "PREFETCHlevel"; all of them since
    // Nehalem and K8 do).
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) cell, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = cell;
}
