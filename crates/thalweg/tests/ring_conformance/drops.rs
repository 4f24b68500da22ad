//! Every element is dropped exactly once, whatever happens.

use crate::ring_conformance::shape::Shape;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Counts the drops of each of its elements.
struct Ledger(Arc<Vec<AtomicU32>>);

struct Item {
    id: usize,
    ledger: Arc<Vec<AtomicU32>>,
}

impl Drop for Item {
    fn drop(&mut self) {
        // ORDERING: Relaxed, a count that is read after the threads have joined.
        self.ledger[self.id].fetch_add(1, Relaxed);
    }
}

impl Ledger {
    fn new(items: usize) -> Self {
        Self(Arc::new((0..items).map(|_| AtomicU32::new(0)).collect()))
    }

    fn item(&self, id: usize) -> Item {
        Item {
            id,
            ledger: Arc::clone(&self.0),
        }
    }

    fn dropped(&self) -> Vec<u32> {
        // ORDERING: Relaxed, single-threaded tests.
        self.0.iter().map(|count| count.load(Relaxed)).collect()
    }
}

pub(crate) fn elements_left_inside_are_dropped_once<S: Shape>() {
    let ledger = Ledger::new(8);
    let (mut tx, mut rx) = S::ring(5);
    // Start away from cell 0, so that what is left wraps.
    tx.push_iter((0..3).map(|id| ledger.item(id)));
    assert_eq!(rx.batch(3).count(), 3);
    assert_eq!(tx.push_iter((3..8).map(|id| ledger.item(id))), 5);
    assert_eq!(rx.try_pop().unwrap().id, 3);
    drop(rx);
    assert_eq!(ledger.dropped(), [1, 1, 1, 1, 0, 0, 0, 0]);
    drop(tx);
    assert_eq!(ledger.dropped(), [1; 8]);
}

pub(crate) fn elements_left_behind_by_the_consumer_are_dropped_once<S: Shape>() {
    let ledger = Ledger::new(4);
    let (mut tx, rx) = S::ring(4);
    tx.push_iter((0..4).map(|id| ledger.item(id)));
    drop(tx);
    assert_eq!(ledger.dropped(), [0; 4]);
    drop(rx);
    assert_eq!(ledger.dropped(), [1; 4]);
}

pub(crate) fn an_uncommitted_claim_drops_what_was_written<S: Shape>() {
    let ledger = Ledger::new(3);
    let (mut tx, rx) = S::ring(4);
    let mut claim = tx.claim(4).unwrap();
    for id in 0..3 {
        claim.push(ledger.item(id)).ok().unwrap();
    }
    drop(claim);
    assert_eq!(ledger.dropped(), [1; 3]);
    drop((tx, rx));
    assert_eq!(ledger.dropped(), [1; 3]);
}

/// The memory of the forgotten elements. It is kept where a leak checker finds it: this leak is the
/// test's.
static FORGOTTEN: Mutex<Vec<Arc<Vec<AtomicU32>>>> = Mutex::new(Vec::new());

pub(crate) fn a_forgotten_batch_leaks_and_nothing_worse<S: Shape>() {
    let ledger = Ledger::new(7);
    FORGOTTEN
        .lock()
        .expect("no panic")
        .push(Arc::clone(&ledger.0));
    let (mut tx, mut rx) = S::ring(4);
    tx.push_iter((0..4).map(|id| ledger.item(id)));
    let mut batch = rx.batch(3);
    assert_eq!(batch.next().unwrap().id, 0);
    crate::forgotten::forget(batch);
    // 1 and 2 are leaked, their room is not.
    assert_eq!(rx.try_pop().unwrap().id, 3);
    assert_eq!(tx.push_iter((4..7).map(|id| ledger.item(id))), 3);
    crate::forgotten::forget(rx.batch(1));
    drop((rx, tx));
    assert_eq!(ledger.dropped(), [1, 0, 0, 1, 0, 1, 1]);
}

pub(crate) fn a_panic_while_iterating_a_batch_leaves_the_rest<S: Shape>() {
    let ledger = Ledger::new(5);
    let (mut tx, mut rx) = S::ring(5);
    tx.push_iter((0..5).map(|id| ledger.item(id)));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for item in rx.batch(5) {
            assert!(item.id < 2, "seeded panic");
        }
    }));
    assert!(outcome.is_err());
    assert_eq!(ledger.dropped(), [1, 1, 1, 0, 0]);
    assert_eq!(tx.len(), 2);
    assert_eq!(rx.batch(5).map(|item| item.id).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(ledger.dropped(), [1; 5]);
}

pub(crate) fn a_panic_in_a_pushed_iterator_publishes_what_came_before<S: Shape>() {
    let ledger = Ledger::new(5);
    let (mut tx, mut rx) = S::ring(5);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        tx.push_iter((0..5).map(|id| {
            assert!(id < 3, "seeded panic");
            ledger.item(id)
        }))
    }));
    assert!(outcome.is_err());
    assert_eq!(ledger.dropped(), [0; 5]);
    assert_eq!(
        rx.batch(5).map(|item| item.id).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(ledger.dropped(), [1, 1, 1, 0, 0]);
}

pub(crate) fn a_panic_between_claim_and_commit_publishes_nothing<S: Shape>() {
    let ledger = Ledger::new(2);
    let (mut tx, mut rx) = S::ring(5);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut claim = tx.claim(3).unwrap();
        claim.push(ledger.item(0)).ok().unwrap();
        panic!("seeded panic");
    }));
    assert!(outcome.is_err());
    assert_eq!(ledger.dropped(), [1, 0]);
    tx.try_push(ledger.item(1)).ok().unwrap();
    assert_eq!(rx.try_pop().unwrap().id, 1);
}

pub(crate) fn every_element_is_dropped_once_in_a_random_walk<S: Shape>() {
    const ITEMS: usize = 2000;
    let mut random = 0x9E37_79B9_u32;
    let mut below = |bound: usize| {
        // xorshift32: Marsaglia, "Xorshift RNGs".
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        random as usize % bound
    };
    let ledger = Ledger::new(ITEMS + 8);
    let (mut tx, mut rx) = S::ring(6);
    let mut next = 0;
    let mut out = Vec::new();
    while next < ITEMS {
        let count = below(8);
        let items = (next..next + count).map(|id| ledger.item(id));
        match below(4) {
            0 => next += tx.push_iter(items),
            1 => {
                // A refused element is dropped by us.
                drop(tx.try_push(ledger.item(next)));
                next += 1;
            }
            2 => {
                if let Ok(mut claim) = tx.claim_up_to(count) {
                    for item in items.take(claim.len()) {
                        claim.push(item).ok().unwrap();
                        next += 1;
                    }
                    if below(2) == 0 {
                        claim.commit();
                    }
                }
            }
            _ => drop(tx.claim(count)),
        }
        match below(4) {
            0 => drop(rx.try_pop()),
            1 => rx.batch(below(8)).take(below(8)).for_each(drop),
            2 => drop(rx.pop_into(&mut out, below(8))),
            _ => out.clear(),
        }
    }
    drop((tx, rx, out));
    let dropped = ledger.dropped();
    assert!(
        dropped[..next].iter().all(|&count| count == 1),
        "{dropped:?}"
    );
    assert!(dropped[next..].iter().all(|&count| count == 0));
}
