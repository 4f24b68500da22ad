//! Appends, commits and reads allocate nothing once they have begun, apart from a new segment.

#![cfg(unix)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use thalweg_journal::{AppendBuffer, GroupCommit, Journal, Lsn, Options, Reader};

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

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn a_journal_allocates_nothing_on_its_way() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("allocation");
    let _ = std::fs::remove_dir_all(&place);
    let options = Options::default().segment_bytes(4 << 20);
    let mut journal = Journal::<u64>::open(&place, options).expect("nobody else writes");
    let mut append = |records: u64| {
        for number in 0..records {
            journal
                .append_with(|slot| *slot = number)
                .expect("there is room");
            if number.is_multiple_of(1_000) {
                let _ = journal.commit().expect("the disk is well");
            }
        }
    };
    append(10);
    assert_eq!(allocations(|| append(50_000)), 0);
    let journal = journal.share(GroupCommit::default());
    let commit = || {
        let lsn = journal.append_with(|slot| *slot = 1);
        let durable = journal.commit(lsn.expect("there is room"));
        assert!(durable.is_ok());
    };
    commit();
    assert_eq!(allocations(|| (0..50).for_each(|_| commit())), 0);
    let mut reader = Reader::open(&place, Lsn::FIRST).expect("it is there");
    // The buffer grows to the longest block so far: that of 1,000 records is among these.
    for _ in 0..10 {
        reader.next_block().expect("it is whole");
    }
    let read = || {
        for _ in 0..30 {
            let block = reader.next_block().expect("it is whole");
            assert!(block.is_some());
        }
    };
    assert_eq!(allocations(read), 0);
}

#[test]
fn a_buffer_allocates_nothing_on_its_way() {
    let mut sum = 0;
    let full = |records: &mut [u64]| sum += records.iter().sum::<u64>();
    let mut buffer = AppendBuffer::new(100, || 0, full);
    let append = || (0..1_000).for_each(|number| buffer.append_with(|slot| *slot = number));
    assert_eq!(allocations(append), 0);
}
