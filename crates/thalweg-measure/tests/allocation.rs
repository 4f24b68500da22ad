//! Recording allocates nothing, whatever the value.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use thalweg_measure::histogram::recorder;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counter beside it is a
// constant-initialised thread-local without destructor, so touching it allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise for `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise for `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn recording_allocates_nothing() {
    let before = ALLOCATIONS.get();
    let (writer, reader) = recorder();
    let made = ALLOCATIONS.get();
    assert!(made > before, "the counter counts");
    for bits in 0..64 {
        writer.record(1 << bits);
        writer.record_n(u64::MAX >> bits, 1 << bits);
    }
    let (count, sum) = (reader.count(), reader.sum());
    assert_eq!(ALLOCATIONS.get(), made, "count {count}, sum {sum}");
}
