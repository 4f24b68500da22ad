//! Asking for a cache line before it is needed. Hints only: nothing changes but the time.

/// Asks for the line of `value`, which will be read soon: where it comes from memory, that takes
/// some 100 ns during which other work can go on.
///
/// One instruction on x86-64; nothing elsewhere.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: SSE is part of x86-64; the instruction changes nothing and faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = value;
}

/// Asks for the line of a cell that will be written soon. A hint: any address will do.
#[inline(always)]
pub(in crate::ring) fn prefetch_for_writing<T>(cell: *const T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: changes neither memory nor flags, and faults at no address. Processors without the
    // feature take it for a `nop` (AMD64 manual, volume 3, "PREFETCHlevel"; all of them since
    // Nehalem and K8 do).
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) cell, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = cell;
}
