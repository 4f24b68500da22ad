//! Claims, slices, iterators and batches, on one thread.

use crate::ring_conformance::shape::Shape;
use thalweg::ring::{PopError, RingClaimError};

pub(crate) fn a_claim_publishes_what_was_written<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    let mut claim = tx.claim(3).unwrap();
    assert_eq!((claim.len(), claim.remaining()), (3, 3));
    claim.push(1).unwrap();
    assert_eq!(rx.try_pop(), Err(PopError::Empty));
    assert_eq!(claim.write(&[2, 3, 4]), 2);
    assert_eq!(claim.push(5), Err(5));
    assert_eq!(claim.remaining(), 0);
    assert!(rx.is_empty());
    assert_eq!(claim.commit(), 3);
    assert_eq!(rx.len(), 3);

    // Less than claimed is fine.
    rx.batch(3).for_each(drop);
    let mut claim = tx.claim(4).unwrap();
    claim.push(6).unwrap();
    assert_eq!(claim.commit(), 1);
    assert_eq!(tx.claim(3).unwrap().commit(), 0);
    assert_eq!(rx.try_pop(), Ok(6));
    assert_eq!(rx.try_pop(), Err(PopError::Empty));
}

pub(crate) fn a_claim_is_exact_or_an_error<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    let error = tx.claim(5).unwrap_err();
    assert_eq!(
        error,
        RingClaimError::TooLarge {
            asked: 5,
            capacity: 4
        }
    );
    tx.push_slice(&[1, 2]);
    let error = tx.claim(3).unwrap_err();
    assert_eq!(error, RingClaimError::Full { asked: 3, free: 2 });
    assert_eq!(tx.claim(2).unwrap().len(), 2);
    rx.try_pop().unwrap();
    assert_eq!(tx.claim(3).unwrap().len(), 3);
    assert!(tx.claim(0).unwrap().is_empty());
}

pub(crate) fn claim_up_to_takes_what_is_free<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    assert_eq!(tx.claim_up_to(usize::MAX).unwrap().len(), 4);
    tx.push_slice(&[1, 2, 3]);
    assert_eq!(tx.claim_up_to(3).unwrap().len(), 1);
    tx.push_slice(&[4]);
    assert_eq!(
        tx.claim_up_to(3).unwrap_err(),
        RingClaimError::Full { asked: 3, free: 0 }
    );
    assert!(tx.claim_up_to(0).unwrap().is_empty());
    rx.batch(2).for_each(drop);
    assert_eq!(tx.claim_up_to(3).unwrap().len(), 2);
}

pub(crate) fn a_closed_ring_refuses_claims<S: Shape>() {
    let (mut tx, rx) = S::ring::<u8>(4);
    let mut claim = tx.claim(2).unwrap();
    claim.push(1).unwrap();
    drop(rx);
    // Claimed before the close: it goes in, and is dropped with the ring.
    assert_eq!(claim.commit(), 1);
    assert_eq!(tx.claim(1).unwrap_err(), RingClaimError::Closed);
    assert_eq!(tx.claim_up_to(1).unwrap_err(), RingClaimError::Closed);
    assert_eq!(tx.push_iter([1, 2]), 0);
}

pub(crate) fn an_uncommitted_claim_publishes_nothing<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    tx.try_push(1).unwrap();
    let mut claim = tx.claim(3).unwrap();
    claim.write(&[7, 8, 9]);
    drop(claim);
    tx.try_push(2).unwrap();
    assert_eq!(rx.batch(9).collect::<Vec<_>>(), [1, 2]);
}

pub(crate) fn a_slice_goes_in_as_far_as_there_is_room<S: Shape>() {
    let (mut tx, mut rx) = S::ring(5);
    assert_eq!(tx.push_slice(&[]), 0);
    assert_eq!(tx.push_slice(&[1, 2, 3]), 3);
    assert_eq!(tx.push_slice(&[4, 5, 6, 7]), 2);
    assert_eq!(tx.push_slice(&[8]), 0);
    assert_eq!(rx.batch(9).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

pub(crate) fn an_iterator_is_asked_only_for_what_fits<S: Shape>() {
    let (mut tx, mut rx) = S::ring(5);
    let mut asked = 0;
    // No lower bound in its size hint, so room is claimed piecemeal.
    let mut numbers = std::iter::from_fn(|| {
        asked += 1;
        Some(asked)
    });
    assert_eq!(tx.push_iter(&mut numbers), 5);
    assert_eq!(tx.push_iter(&mut numbers), 0);
    assert_eq!(rx.try_pop(), Ok(1));
    assert_eq!(tx.push_iter(&mut numbers), 1);
    assert_eq!(asked, 6);
    assert_eq!(rx.batch(9).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    assert_eq!(tx.push_iter(7..9), 2);
    assert_eq!(tx.push_iter([]), 0);
    assert_eq!(rx.batch(9).collect::<Vec<_>>(), [7, 8]);
}

pub(crate) fn a_batch_is_what_was_published<S: Shape>() {
    let (mut tx, mut rx) = S::ring(8);
    tx.push_slice(&[1, 2, 3, 4]);
    let mut batch = rx.batch(3);
    assert_eq!(batch.len(), 3);
    assert_eq!(batch.next(), Some(1));
    // Published later: in the next batch, though the last one was shorter than it could have been.
    tx.push_slice(&[5, 6]);
    assert_eq!(batch.collect::<Vec<_>>(), [2, 3]);
    assert_eq!(rx.batch(usize::MAX).collect::<Vec<_>>(), [4, 5, 6]);
    let mut none = rx.batch(4);
    assert_eq!((none.next(), none.next()), (None, None));
    drop(none);
    tx.push_slice(&[7]);
    assert_eq!(rx.batch(0).count(), 0);
    assert_eq!(rx.try_pop(), Ok(7));
}

pub(crate) fn a_batch_dropped_early_leaves_the_rest<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    tx.push_slice(&[1, 2, 3, 4]);
    assert_eq!(rx.batch(4).next(), Some(1));
    assert_eq!(rx.len(), 3);
    assert_eq!(tx.push_slice(&[5, 6]), 1);
    assert_eq!(rx.batch(4).take(2).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(rx.batch(4).collect::<Vec<_>>(), [4, 5]);
}

pub(crate) fn pop_into_appends<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    let mut out = vec![String::from("before")];
    assert_eq!(rx.pop_into(&mut out, 4), 0);
    tx.push_iter(["a", "b", "c"].map(String::from));
    assert_eq!(rx.pop_into(&mut out, 2), 2);
    assert_eq!(tx.push_iter(["d", "e", "f", "g"].map(String::from)), 3);
    assert_eq!(rx.pop_into(&mut out, usize::MAX), 4);
    assert_eq!(out, ["before", "a", "b", "c", "d", "e", "f"]);
}

pub(crate) fn batches_across_the_end_of_the_array<S: Shape>() {
    for capacity in [3, 4, 7] {
        let (mut tx, mut rx) = S::ring(capacity);
        let mut out = Vec::new();
        let mut next = 0_u32;
        for round in 0..50 {
            let values: Vec<u32> = (next..).take(1 + round % capacity).collect();
            next += values.len() as u32;
            match round % 3 {
                0 => assert_eq!(tx.push_slice(&values), values.len()),
                1 => assert_eq!(tx.push_iter(values.iter().copied()), values.len()),
                _ => {
                    let mut claim = tx.claim(values.len()).unwrap();
                    claim.write(&values);
                    claim.commit();
                }
            }
            match round % 2 {
                0 => assert_eq!(rx.pop_into(&mut out, capacity), values.len()),
                _ => out.extend(rx.batch(capacity)),
            }
        }
        assert_eq!(out, (0..next).collect::<Vec<_>>());
    }
}
