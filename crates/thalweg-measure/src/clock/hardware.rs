//! The processor's own counter: the one place of this crate with `unsafe`.
//!
//! State: none. Rules:
//! 1. [`counter`] is called only where [`present`] returned true, else it answers 0.
//! 2. Reading the counter touches no memory and no other processor state.

use super::Source;

/// The source that [`counter`] reads on this architecture.
#[cfg(target_arch = "x86_64")]
pub(super) const SOURCE: Source = Source::Tsc;
/// The source that [`counter`] reads on this architecture.
#[cfg(target_arch = "aarch64")]
pub(super) const SOURCE: Source = Source::ArmCounter;
/// There is no counter that we know on this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const SOURCE: Source = Source::Os;

/// Returns whether the counter runs at one rate in every power state (CPUID 0x8000_0007, EDX bit
/// 8).
#[cfg(target_arch = "x86_64")]
pub(super) fn present() -> bool {
    use core::arch::x86_64::{__cpuid, CpuidResult};
    const LEAF_EXTENDED_MAX: u32 = 0x8000_0000;
    const LEAF_POWER: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    #[allow(unused_unsafe, reason = "older standard libraries have it as unsafe")]
    fn cpuid(leaf: u32) -> CpuidResult {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { __cpuid(leaf) }
    }
    // Miri interprets neither instruction.
    !cfg!(miri)
        && cpuid(LEAF_EXTENDED_MAX).eax >= LEAF_POWER
        && cpuid(LEAF_POWER).edx & INVARIANT_TSC != 0
}

/// The virtual counter of ARMv8 always has one rate.
#[cfg(target_arch = "aarch64")]
pub(super) fn present() -> bool {
    !cfg!(miri)
}

/// No counter that we know.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn present() -> bool {
    false
}

/// Returns the time stamp counter, not ordered against neighbouring loads (a fence would wait for
/// all of them).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn counter() -> u64 {
    // SAFETY: `rdtsc` is part of the x86_64 baseline and touches no memory (rule 2).
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns the virtual counter of ARMv8, not ordered against neighbouring loads.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: `cntvct_el0` is readable from user space on every supported system; the read
    // touches no memory, stack or flags (rule 2).
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks,
            options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// Works as [`counter`] when all instructions before it are done. `lfence` is what waits for them,
/// on every system that has it so: Linux sees to that on AMD's processors.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn counter_after() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both are part of the x86_64 baseline; the fence orders and the read touches no
    // memory (rule 2).
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Works as [`counter`] when all instructions before it are done.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn counter_after() -> u64 {
    // SAFETY: `isb` waits for what is under way and touches no memory, stack or flags (rule 2).
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
    counter()
}

/// Never called for its value: `present` returns false here (rule 1).
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) fn counter_after() -> u64 {
    0
}

/// Never called for its value: `present` returns false here (rule 1).
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) fn counter() -> u64 {
    0
}
