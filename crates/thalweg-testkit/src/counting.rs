//! An allocator that counts the calls of each thread: the test harness has threads of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

std::thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// The allocator; see [`count_allocations!`](crate::count_allocations).
#[derive(Debug)]
pub struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counters beside it are
// constant-initialised thread-locals without destructors, so touching them allocates nothing.
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

/// Makes [`Counting`] the allocator of a test binary, with a test that it counts.
#[macro_export]
macro_rules! count_allocations {
    () => {
        #[global_allocator]
        static ALLOCATOR: $crate::counting::Counting = $crate::counting::Counting;

        #[test]
        fn the_counter_counts() {
            use $crate::counting::{calls, held};
            assert_eq!(calls(|| drop(std::hint::black_box(Box::new(1)))), 2);
            let before = held();
            let kept = std::hint::black_box(Box::new(1_u64));
            assert_eq!(held() - before, 8);
            drop(kept);
            assert_eq!(held(), before);
        }
    };
}

/// Returns the calls of this thread so far.
#[must_use]
pub fn so_far() -> u64 {
    CALLS.get()
}

/// Returns the bytes that this thread has allocated and not given back.
#[must_use]
pub fn held() -> i64 {
    HELD.get()
}

/// Returns how often `work` calls the allocator on this thread.
pub fn calls(work: impl FnOnce()) -> u64 {
    let before = so_far();
    work();
    so_far() - before
}
