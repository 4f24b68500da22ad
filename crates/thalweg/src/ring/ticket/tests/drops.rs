//! Every element is dropped exactly once, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{LAYOUTS, ring};
use crate::ring::{Layout, PopError};

/// Adds its weight to a sum when it is dropped, and panics if it is set to.
struct Item {
    weight: usize,
    dropped: Arc<AtomicUsize>,
    panics: bool,
}

impl Drop for Item {
    fn drop(&mut self) {
        // ORDERING: Relaxed, a sum that is read after the threads have joined.
        self.dropped.fetch_add(self.weight, Relaxed);
        assert!(!self.panics, "seeded panic");
    }
}

/// Items 1, 10, 100 and so on: the sum of their drops says which were dropped how often.
#[derive(Clone, Default)]
struct Ledger(Arc<AtomicUsize>);

impl Ledger {
    fn item(&self, nth: u32) -> Item {
        let dropped = Arc::clone(&self.0);
        let weight = 10_usize.pow(nth);
        Item {
            weight,
            dropped,
            panics: false,
        }
    }

    fn panicking(&self, nth: u32) -> Item {
        let mut item = self.item(nth);
        item.panics = true;
        item
    }

    fn sum(&self) -> usize {
        // ORDERING: Relaxed, the threads have joined.
        self.0.load(Relaxed)
    }
}

#[test]
fn elements_left_inside_are_dropped_once() {
    for layout in LAYOUTS {
        for capacity in [4, 5] {
            let ledger = Ledger::default();
            let ring = ring(capacity, layout);
            // Start away from slot 0, so that what is left wraps.
            (0..3).for_each(|n| assert!(ring.try_push(ledger.item(n)).is_ok()));
            let mut out = Vec::new();
            ring.pop_into(&mut out, 2).expect("three are in");
            assert_eq!(ledger.sum(), 0);
            drop(out);
            assert_eq!(ledger.sum(), 11);
            let mut claim = ring.claim(2).expect("two are free");
            claim.push(ledger.item(3)).ok().expect("room for two");
            claim.commit();
            ring.try_push(ledger.item(4)).expect("one is free");
            drop(ring);
            assert_eq!(ledger.sum(), 11_111);
        }
    }
}

#[test]
fn a_dropped_claim_drops_what_was_written() {
    let ledger = Ledger::default();
    let ring = ring(4, Layout::Packed);
    let mut claim = ring.claim(3).expect("an empty ring");
    claim.push(ledger.item(0)).ok().expect("room for three");
    claim.push(ledger.item(1)).ok().expect("room for three");
    drop(claim);
    assert_eq!(ledger.sum(), 11);
    // The written positions became holes, the third went back.
    assert_eq!((ring.len(), ring.pushed(), ring.popped()), (0, 2, 2));
    ring.try_push(ledger.item(2)).expect("two are free");
    assert_eq!(ring.try_pop_at().expect("one is in").0, 2);
    drop(ring);
    assert_eq!(ledger.sum(), 111);
}

#[test]
fn a_claim_that_is_dropped_before_a_push_drops_what_was_written() {
    let ledger = Ledger::default();
    let ring = ring(4, Layout::Packed);
    let mut claim = ring.claim(3).expect("an empty ring");
    claim.push(ledger.item(0)).ok().expect("room for three");
    ring.try_push(ledger.item(1)).expect("one is free");
    drop(claim);
    assert_eq!(ledger.sum(), 1);
    assert_eq!((ring.len(), ring.pushed(), ring.popped()), (1, 4, 3));
    assert_eq!(ring.try_pop_at().expect("one is in").0, 3);
    assert_eq!(ledger.sum(), 11);
}

#[test]
fn a_panicking_drop_in_a_claim_leaves_no_gap() {
    let ledger = Ledger::default();
    let ring = ring(4, Layout::Packed);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut claim = ring.claim(4).expect("an empty ring");
        claim.push(ledger.item(0)).ok().expect("room for four");
        claim.push(ledger.panicking(1)).ok().expect("room for four");
        claim.push(ledger.item(2)).ok().expect("room for four");
    }));
    assert!(outcome.is_err());
    // All are dropped, and the ring goes on.
    assert_eq!(ledger.sum(), 111);
    assert_eq!(ring.try_pop().err(), Some(PopError::Empty));
    // The three that were written became holes, which the pop passed over; the fourth went back.
    assert_eq!((ring.len(), ring.pushed()), (0, 3));
    ring.try_push(ledger.item(3)).expect("all are free");
    assert_eq!(ring.try_pop_at().expect("one is in").0, 3);
    drop(ring);
    assert_eq!(ledger.sum(), 1111);
}

#[test]
fn a_forgotten_claim_leaks_and_nothing_worse() {
    let ledger = Ledger::default();
    let ring = ring(4, Layout::Packed);
    ring.try_push(ledger.item(0)).expect("an empty ring");
    let mut claim = ring.claim(2).expect("three are free");
    // Not owned by what is forgotten: a leak checker would complain rightly.
    let mut leaked = ledger.item(1);
    leaked.dropped = Arc::default();
    let kept = Arc::clone(&leaked.dropped);
    claim.push(leaked).ok().expect("room for two");
    std::mem::forget(claim);
    ring.try_push(ledger.item(2)).expect("one is free");
    drop(ring);
    assert_eq!(ledger.sum(), 101);
    // SAFETY: the forgotten item's own reference, which is given up for it.
    unsafe { Arc::decrement_strong_count(Arc::as_ptr(&kept)) };
}

#[test]
fn a_panicking_drop_in_the_ring_is_passed_on() {
    let ledger = Ledger::default();
    let ring = ring(4, Layout::Packed);
    ring.try_push(ledger.item(0)).expect("an empty ring");
    ring.try_push(ledger.panicking(1)).expect("room for four");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(ring))).is_err());
    assert_eq!(ledger.sum(), 11);
}

#[test]
fn zero_sized_elements_are_counted() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            // ORDERING: Relaxed, one thread.
            DROPS.fetch_add(1, Relaxed);
        }
    }
    for layout in LAYOUTS {
        // ORDERING: Relaxed, one thread.
        DROPS.store(0, Relaxed);
        let ring = ring(3, layout);
        (0..3).for_each(|_| assert!(ring.try_push(Nothing).is_ok()));
        let mut out = Vec::new();
        assert_eq!(ring.pop_into(&mut out, 9), Ok(3));
        assert_eq!(out.len(), 3);
        assert!(ring.try_push(Nothing).is_ok());
        drop((ring, out));
        // ORDERING: Relaxed, one thread.
        assert_eq!(DROPS.load(Relaxed), 4);
    }
}
