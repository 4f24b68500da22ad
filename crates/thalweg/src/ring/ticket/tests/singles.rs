//! One thread, one call at a time.

use super::{LAYOUTS, ring};
use crate::ring::{CAPACITY_MAX, CapacityError, ClaimError, Layout, PopError, PushError, Ticket};

#[test]
fn holds_exactly_its_capacity() {
    for layout in LAYOUTS {
        for capacity in [1, 2, 3, 5, 8, 100] {
            let ring = ring(capacity, layout);
            assert_eq!(ring.capacity(), capacity);
            // Several laps, from every position.
            for lap in 0..2 * capacity {
                for n in 0..capacity {
                    assert_eq!(ring.len(), n);
                    assert!(ring.can_push() && !ring.is_full());
                    assert_eq!(ring.try_push(n), Ok(()));
                }
                assert!(!ring.can_push() && ring.is_full() && ring.can_pop());
                assert_eq!(ring.try_push(9), Err(PushError::Full(9)), "lap {lap}");
                let first = ring.popped();
                for n in 0..capacity {
                    assert_eq!(ring.try_pop_at(), Ok((first + n as u64, n)));
                }
                assert!(ring.is_empty() && !ring.can_pop());
                assert_eq!(ring.try_pop(), Err(PopError::Empty));
                // Shifts the next lap by one.
                assert_eq!((ring.try_push(7), ring.try_pop()), (Ok(()), Ok(7)));
            }
        }
    }
}

#[test]
fn refuses_capacities_out_of_range() {
    for asked in [0, CAPACITY_MAX + 1] {
        let error = Ticket::<u8>::new(asked, Layout::Packed).expect_err("out of range");
        assert_eq!(error, CapacityError { asked, bytes: 0 });
    }
}

#[test]
fn a_closed_ring_refuses_and_drains() {
    for layout in LAYOUTS {
        let ring = ring(3, layout);
        assert_eq!(ring.push_slice(&[1, 2]), 2);
        assert!(!ring.is_closed() && ring.close() && !ring.close() && ring.is_closed());
        assert!(!ring.can_push());
        assert_eq!(ring.try_push(3), Err(PushError::Closed(3)));
        assert_eq!(ring.claim(1).err(), Some(ClaimError::Closed));
        assert_eq!(ring.push_slice(&[3]), 0);
        assert_eq!((ring.len(), ring.pushed(), ring.popped()), (2, 2, 0));
        assert_eq!((ring.try_pop(), ring.try_pop()), (Ok(1), Ok(2)));
        assert_eq!(ring.try_pop(), Err(PopError::Closed));
        assert_eq!(ring.pop_into(&mut Vec::new(), 2), Err(PopError::Closed));
        assert_eq!((ring.len(), ring.pushed(), ring.popped()), (0, 2, 2));
    }
}

#[test]
fn batches_take_what_fits_and_say_where() {
    for layout in LAYOUTS {
        let ring = ring(5, layout);
        assert_eq!(ring.push_slice(&[0, 1, 2]), 3);
        assert_eq!(ring.push_slice(&[3, 4, 5]), 2);
        let mut out = Vec::new();
        let taken = ring.pop_into(&mut out, 2);
        assert_eq!(taken, Ok(2));
        assert_eq!(ring.push_slice(&[5, 7]), 2);
        let taken = ring.pop_into(&mut out, usize::MAX);
        assert_eq!(taken, Ok(5));
        assert_eq!(out, [0, 1, 2, 3, 4, 5, 7]);
        assert_eq!(ring.pop_into(&mut out, 5), Err(PopError::Empty));
        let taken = ring.pop_into(&mut out, 0);
        assert_eq!(taken, Ok(0));
    }
}

#[test]
fn a_vector_with_room_is_not_grown() {
    let ring = ring(8, Layout::Packed);
    ring.push_slice(&[1; 8]);
    let mut out = Vec::with_capacity(3);
    let room = out.capacity();
    assert_eq!(ring.pop_into(&mut out, room), Ok(room));
    assert_eq!(out.capacity(), room);
}

#[test]
fn what_a_claim_leaves_goes_back() {
    for layout in LAYOUTS {
        for capacity in [4, 5] {
            let ring = ring(capacity, layout);
            let all = capacity as u64;
            // Several laps: the slots that come back are at their places for the next producer.
            for lap in 0..3 * all {
                let (len, pushed) = (ring.len(), ring.pushed());
                drop(ring.claim(capacity).expect("an empty ring"));
                assert_eq!(
                    (ring.len(), ring.pushed(), ring.can_pop()),
                    (len, pushed, false)
                );
                let mut claim = ring.claim(3).expect("an empty ring");
                assert_eq!((ring.len(), claim.push(lap)), (0, Ok(())));
                assert_eq!(claim.commit(), 1);
                assert_eq!((ring.len(), ring.pushed()), (1, pushed + 1));
                // A claim behind goes back first; then the one before it is the last.
                let first = ring.claim(1).expect("room for four");
                drop(ring.claim(2).expect("room for four"));
                drop(first);
                assert_eq!((ring.len(), ring.pushed()), (1, pushed + 1));
                assert_eq!(ring.try_pop_at(), Ok((pushed, lap)));
                assert_eq!(ring.try_pop(), Err(PopError::Empty));
                assert_eq!(ring.popped(), pushed + 1);
            }
            let claim = ring.claim(2).expect("an empty ring");
            assert_eq!(ring.try_push(0), Ok(()));
            drop(ring.claim(1).expect("one is free"));
            assert_eq!(ring.len(), 1);
            // The push is still behind.
            drop(claim);
            assert_eq!(ring.try_pop_at(), Ok((3 * all + 2, 0)));
        }
    }
}

#[test]
fn what_a_claim_leaves_before_others_becomes_holes() {
    for layout in LAYOUTS {
        let ring = ring(5, layout);
        let mut claim = ring.claim(4).expect("an empty ring");
        assert_eq!(
            (claim.len(), claim.remaining(), claim.is_empty()),
            (4, 4, false)
        );
        assert_eq!(claim.push(0), Ok(()));
        assert_eq!(claim.write(&[1]), 1);
        assert_eq!(claim.remaining(), 2);
        // Behind the claim, and not before it.
        assert_eq!(ring.try_push(4), Ok(()));
        assert_eq!(ring.try_pop(), Err(PopError::Empty));
        assert_eq!(claim.commit(), 2);
        assert_eq!((ring.len(), ring.is_full()), (3, true));
        let mut out = Vec::new();
        let taken = ring.pop_into(&mut out, 9);
        assert_eq!(taken, Ok(2));
        assert_eq!(ring.try_pop_at(), Ok((4, 4)));
        let first = ring.claim(3).expect("an empty ring");
        let behind = ring.claim(2).expect("two are free");
        drop(first);
        drop(behind);
        // The one behind went back; the first could not, and was passed over.
        assert_eq!((ring.len(), ring.pushed(), ring.popped()), (0, 8, 8));
        assert_eq!(ring.try_pop(), Err(PopError::Empty));
        assert_eq!(out, [0, 1]);
    }
}

#[test]
fn a_claim_is_exact_or_an_error() {
    let ring = ring(3, Layout::Packed);
    let error = ring.claim(4).expect_err("more than the capacity");
    let (asked, capacity) = (4, 3);
    assert_eq!(error, ClaimError::TooLarge { asked, capacity });
    ring.push_slice(&[1, 2]);
    let error = ring.claim(2).expect_err("one is free");
    assert_eq!(error, ClaimError::Full { asked: 2, free: 1 });
    assert_eq!(ring.claim(0).map(|claim| claim.commit()), Ok(0));
    let mut claim = ring.claim(1).expect("one is free");
    assert_eq!(
        (claim.len(), claim.push(3), claim.push(4)),
        (1, Ok(()), Err(4))
    );
    assert_eq!((claim.write(&[4]), claim.commit()), (0, 1));
}

#[test]
fn closed_is_reported_behind_holes() {
    let ring = ring::<u8>(4, Layout::Packed);
    let claim = ring.claim(2).expect("an empty ring");
    ring.close();
    assert_eq!(ring.try_pop(), Err(PopError::Empty));
    drop(claim);
    // After the close nothing goes back.
    assert_eq!((ring.len(), ring.pushed(), ring.is_closed()), (0, 2, true));
    assert_eq!(ring.try_pop(), Err(PopError::Closed));
}

#[test]
fn a_forgotten_claim_stops_the_ring() {
    let ring = ring(2, Layout::Packed);
    std::mem::forget(ring.claim(1));
    assert_eq!(ring.try_push(1), Ok(()));
    assert_eq!(ring.try_push(2), Err(PushError::Full(2)));
    ring.close();
    assert_eq!(ring.try_pop(), Err(PopError::Empty));
}

#[test]
fn debug_names_the_state() {
    let ring = ring(3, Layout::Packed);
    ring.push_slice(&[1_u8]);
    assert_eq!(
        format!("{ring:?}"),
        "Ticket { capacity: 3, len: 1, closed: false }"
    );
    let claim = ring.claim(2).expect("two are free");
    assert_eq!(format!("{claim:?}"), "TicketClaim { len: 2, written: 0 }");
}

#[test]
fn a_claim_that_could_not_go_back_once_never_does() {
    for layout in LAYOUTS {
        let ring = ring::<u8>(4, layout);
        let mut first = ring.claim(2).unwrap();
        let second = ring.claim(2).unwrap();
        first.give_back();
        drop(second);
        assert_eq!(ring.pushed(), 2, "the second went back");
        // The caller that gave the first back has noted that its positions are used.
        drop(first);
        assert_eq!((ring.pushed(), ring.popped(), ring.len()), (2, 2, 0));
    }
}
