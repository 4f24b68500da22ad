//! Counts the calls of each thread to the allocator, in a test binary of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

std::thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        HELD.set(HELD.get() + memory.size() as i64);
        // SAFETY: as the caller of this promises.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, start: *mut u8, memory: Layout) {
        CALLS.set(CALLS.get() + 1);
        HELD.set(HELD.get() - memory.size() as i64);
        // SAFETY: as the caller of this promises.
        unsafe { System.dealloc(start, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls of this thread so far.
pub(crate) fn so_far() -> u64 {
    CALLS.get()
}

/// Bytes that this thread has allocated and not given back.
pub(crate) fn held() -> i64 {
    HELD.get()
}

/// How often `work` calls the allocator on this thread; the test harness has threads of its own.
pub(crate) fn calls(work: impl FnOnce()) -> u64 {
    let before = so_far();
    work();
    so_far() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(calls(|| drop(std::hint::black_box(Box::new(1)))), 2);
    let before = held();
    let kept = std::hint::black_box(Box::new(1_u64));
    assert_eq!(held() - before, 8);
    drop(kept);
    assert_eq!(held(), before);
}
