//! Models of the ticket ring, run by loom over the interleavings and reorderings of its threads.
//!
//! Each runs as it is, and then with orderings weakened one at a time, which it must catch.

use std::cell::Cell;

use loom::sync::Arc;
use loom::thread;

use super::{MpmcEnd, MpmcRing};
use crate::ring::sync::{UnsafeCell, fault};
use crate::ring::{Layout, PopError, PushError};

std::thread_local! {
    /// Whether the main thread of a model lets the others go first.
    static OTHERS_FIRST: Cell<bool> = const { Cell::new(false) };
    /// How many items were dropped in this execution. loom runs all threads of a model on one OS
    /// thread.
    static DROPS: Cell<usize> = const { Cell::new(0) };
    /// The fates of a claim's ticket, over all executions.
    static FATES: Cell<u8> = const { Cell::new(0) };
}

/// The model holds, and notices each of the `faults`, when begun by either side.
///
/// loom looks for other schedules where an access meets the *last* access of another thread. A
/// thread that loads a stamp and then stores it hides from it what was loaded before by others; the
/// other beginning brings that to light.
fn check(model: fn(), faults: &[&'static str]) {
    const BEGINNINGS: [bool; 2] = [false, true];
    for others_first in BEGINNINGS {
        OTHERS_FIRST.set(others_first);
        loom::model(model);
    }
    for fault in faults {
        let caught = BEGINNINGS.into_iter().any(|others_first| {
            OTHERS_FIRST.set(others_first);
            fault::caught(fault, model)
        });
        assert!(caught, "a weak `{fault}` was not caught");
    }
}

/// Called by the main thread of a model when the others are there.
fn begin() {
    if OTHERS_FIRST.get() {
        thread::yield_now();
    }
}

fn ring<T>(capacity: usize) -> Arc<MpmcRing<T>> {
    Arc::new(MpmcRing::new(capacity, Layout::Packed).expect("a capacity in range"))
}

/// Pushes, and waits while the ring is full; false if it is closed.
fn push<T>(mut value: T, mut try_push: impl FnMut(T) -> Result<(), PushError<T>>) -> bool {
    loop {
        match try_push(value) {
            Ok(()) => return true,
            Err(PushError::Full(back)) => value = back,
            Err(_) => return false,
        }
        thread::yield_now();
    }
}

/// Runs this on a thread that has the ring too.
fn beside<T: 'static, R: 'static>(
    ring: &Arc<MpmcRing<T>>,
    work: impl FnOnce(&MpmcRing<T>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let ring = Arc::clone(ring);
    thread::spawn(move || work(&ring))
}

fn joined<T>(thread: thread::JoinHandle<T>) -> T {
    thread.join().expect("no panic in the thread")
}

/// Pops, and waits while the ring is empty; `None` if it is closed.
fn pop<T>(mut try_pop: impl FnMut() -> Result<T, PopError>) -> Option<T> {
    loop {
        match try_pop() {
            Ok(value) => return Some(value),
            Err(PopError::Closed) => return None,
            Err(_) => thread::yield_now(),
        }
    }
}

struct Item;

impl Drop for Item {
    fn drop(&mut self) {
        DROPS.set(DROPS.get() + 1);
    }
}

#[test]
fn two_producers_deliver_each_element_once() {
    check(
        || {
            let ring = ring(2);
            let senders = [1_u8, 2]
                .map(|n| beside(&ring, move |ring| assert!(push(n, |n| ring.try_push(n)))));
            begin();
            let got = [(); 2].map(|()| pop(|| ring.try_pop()).expect("not closed"));
            assert!(got == [1, 2] || got == [2, 1]);
            assert_eq!(ring.try_pop(), Err(PopError::Empty));
            senders.into_iter().for_each(joined);
        },
        &["publish", "observe"],
    );
}

#[test]
fn ends_that_are_behind_find_their_place() {
    check(
        || {
            let ring = ring(2);
            let end = MpmcEnd::new(Arc::clone(&ring));
            let threads = [1_u8, 2].map(|n| {
                let (mut tx, mut rx) = (end.clone(), end.clone());
                thread::spawn(move || {
                    assert!(push(n, |n| tx.try_push(n)));
                    pop(|| rx.try_pop_at()).map_or(0, |(_, n)| n)
                })
            });
            begin();
            // Each takes one of the two that each put in.
            assert_eq!(threads.into_iter().map(joined).sum::<u8>(), 3);
            assert_eq!(ring.try_pop(), Err(PopError::Empty));
        },
        &["publish", "observe"],
    );
}

#[test]
fn two_consumers_take_each_element_once() {
    check(
        || {
            let ring = ring(2);
            let receivers =
                [(), ()].map(|()| beside(&ring, move |ring| ring.try_pop().unwrap_or(0)));
            begin();
            assert_eq!(ring.push_slice(&[1_u8, 2]), 2);
            let mut sum: u8 = receivers.into_iter().map(joined).sum();
            while let Ok(n) = ring.try_pop() {
                sum += n;
            }
            assert_eq!(sum, 3);
        },
        &["publish", "observe"],
    );
}

#[test]
fn a_slot_is_reused_after_its_release() {
    check(
        || {
            let ring = ring(1);
            let sender = beside(&ring, |ring| {
                (0..3_u8).all(|n| push(n, |n| ring.try_push(n)))
            });
            begin();
            for n in 0..3 {
                assert_eq!(pop(|| ring.try_pop_at()), Some((u64::from(n), n)));
            }
            assert!(joined(sender));
        },
        &["publish", "observe", "release", "reclaim"],
    );
}

#[test]
fn an_odd_capacity_is_exact() {
    check(
        || {
            let ring = ring(3);
            let data = Arc::new(UnsafeCell::new(0));
            assert_eq!(ring.push_slice(&[0_u8, 1, 2]), 3);
            let receiver = {
                let (ring, data) = (Arc::clone(&ring), Arc::clone(&data));
                thread::spawn(move || {
                    // SAFETY: read only by a thread that finds room, of which there was none
                    // before.
                    data.with_mut(|data| unsafe { *data = 1 });
                    assert_eq!(ring.try_pop(), Ok(0));
                })
            };
            begin();
            assert!(push(3, |n| ring.try_push(n)));
            // SAFETY: written before the pop that made room.
            data.with(|data| assert_eq!(unsafe { *data }, 1));
            assert_eq!(ring.try_push(4), Err(PushError::Full(4)));
            joined(receiver);
        },
        &["release", "reclaim"],
    );
}

#[test]
fn a_batch_is_taken_whole() {
    check(
        || {
            let ring = ring(2);
            let sender = beside(&ring, |ring| {
                let mut next = 0_u8;
                while next < 3 {
                    next += ring.push_slice(&[0, 1, 2][next as usize..]) as u8;
                    thread::yield_now();
                }
            });
            begin();
            let mut out = Vec::with_capacity(4);
            while out.len() < 3 {
                let before = out.len();
                if let Ok(taken) = ring.pop_into(&mut out, 2) {
                    assert_eq!(taken, out.len() - before);
                }
                thread::yield_now();
            }
            assert_eq!(out, [0, 1, 2]);
            joined(sender);
        },
        &["publish", "observe", "release", "reclaim"],
    );
}

#[test]
fn a_push_before_the_close_is_delivered_and_none_after() {
    check(
        || {
            DROPS.set(0);
            let ring = ring(2);
            let data = Arc::new(UnsafeCell::new(0));
            let sender = beside(&ring, |ring| ring.try_push(Item).is_ok());
            let closer = {
                let (ring, data) = (Arc::clone(&ring), Arc::clone(&data));
                thread::spawn(move || {
                    // SAFETY: read only by a thread that sees the close.
                    data.with_mut(|data| unsafe { *data = 1 });
                    assert!(ring.close());
                })
            };
            begin();
            let mut got = 0;
            while pop(|| ring.try_pop()).is_some() {
                got += 1;
            }
            // SAFETY: this thread sees the close, and the value was written before it.
            data.with(|data| assert_eq!(unsafe { *data }, 1));
            // Closed is final: the push either was delivered or is refused.
            assert_eq!(joined(sender), got == 1);
            assert_eq!(ring.try_pop().err(), Some(PopError::Closed));
            joined(closer);
            assert_eq!(DROPS.get(), 1);
        },
        &["close", "closed"],
    );
}

#[test]
fn a_refused_push_comes_after_the_close() {
    check(
        || {
            let ring = ring::<u8>(1);
            let data = Arc::new(UnsafeCell::new(0));
            let closer = {
                let (ring, data) = (Arc::clone(&ring), Arc::clone(&data));
                thread::spawn(move || {
                    // SAFETY: read only by a thread that sees the close.
                    data.with_mut(|data| unsafe { *data = 1 });
                    ring.close();
                })
            };
            begin();
            if ring.try_push(1) == Err(PushError::Closed(1)) {
                // SAFETY: this thread sees the close, and the value was written before it.
                data.with(|data| assert_eq!(unsafe { *data }, 1));
                assert!(ring.is_closed());
            }
            joined(closer);
        },
        &["close", "closed"],
    );
}

#[test]
fn holes_are_passed_over() {
    check(
        || {
            DROPS.set(0);
            let ring = ring(2);
            let sender = beside(&ring, |ring| {
                let mut claim = ring.claim(1).expect("an empty ring");
                claim.push(Item).ok().expect("room for one");
                // Behind the claim.
                assert!(ring.try_push(Item).is_ok());
                drop(claim);
                // The lap after: a slot whose element was taken back.
                push(Item, |item| ring.try_push(item));
                ring.close();
            });
            begin();
            for behind in [1, 2] {
                let got = pop(|| ring.try_pop_at()).map(|(position, _)| position);
                assert_eq!(got, Some(behind));
            }
            assert!(pop(|| ring.try_pop()).is_none());
            joined(sender);
            assert_eq!(DROPS.get(), 3);
        },
        &["publish", "observe"],
    );
}

#[test]
fn a_hole_hands_its_slot_to_the_next_lap() {
    check(
        || {
            let ring = ring(1);
            let sender = beside(&ring, |ring| {
                // A position that was written does not go back.
                let mut claim = ring.claim(1).expect("an empty ring");
                claim.push(1_u8).ok().expect("room for one");
            });
            begin();
            // Passes over the hole when it is there; then the slot is free.
            let mut tries = 0;
            while ring.popped() == 0 {
                assert_eq!(ring.try_pop(), Err(PopError::Empty));
                thread::yield_now();
                tries += 1;
                assert!(tries < 100, "the hole is not passed over");
            }
            // The claim may be about to pass it on itself.
            assert!(push(2, |value| ring.try_push(value)));
            assert_eq!(ring.try_pop_at(), Ok((1, 2)));
            joined(sender);
        },
        // The slot is passed on by the hole's stamp.
        &["publish", "observe"],
    );
}

/// The fates of a claim's ticket, as bits of `FATES`.
const WENT_BACK: u8 = 1;
const BECAME_A_HOLE: u8 = 2;

#[test]
fn an_unused_ticket_goes_back_or_becomes_a_hole() {
    FATES.set(0);
    check(
        || {
            let ring = ring(2);
            let claimer = beside(&ring, |ring| drop(ring.claim(1)));
            let sender = beside(&ring, |ring| assert!(push(1_u8, |n| ring.try_push(n))));
            begin();
            let (position, value) = pop(|| ring.try_pop_at()).expect("not closed");
            assert_eq!(value, 1);
            joined(claimer);
            joined(sender);
            // There is a hole only before the element, of a claim that it was claimed behind.
            assert_eq!(ring.try_pop(), Err(PopError::Empty));
            assert_eq!((ring.pushed(), ring.popped()), (position + 1, position + 1));
            FATES.set(FATES.get() | [WENT_BACK, BECAME_A_HOLE][position as usize]);
            // And the ring goes on, with all its room.
            assert_eq!(ring.push_slice(&[2, 3, 4]), 2);
            assert_eq!((ring.try_pop(), ring.try_pop()), (Ok(2), Ok(3)));
        },
        &["unclaim_tickets", "publish", "observe"],
    );
    assert_eq!(FATES.get(), WENT_BACK | BECAME_A_HOLE);
}

#[test]
fn a_ticket_that_went_back_is_claimed_again() {
    check(
        || {
            let ring = ring(1);
            // It may see the tail where the claim put it, and be ahead of it then.
            let mut end = MpmcEnd::new(Arc::clone(&ring));
            let claimer = beside(&ring, |ring| drop(ring.claim(1)));
            begin();
            for n in 0..2_u8 {
                // Waits while the claim has the only slot.
                assert!(push(n, |n| end.try_push(n)));
                assert_eq!(ring.try_pop_at(), Ok((u64::from(n), n)));
            }
            joined(claimer);
            assert_eq!((ring.pushed(), ring.popped()), (2, 2));
        },
        &["near"],
    );
}

#[test]
fn an_unused_ticket_goes_back_before_a_close_only() {
    check(
        || {
            let ring = ring::<u8>(2);
            let claimer = beside(&ring, |ring| drop(ring.claim(1)));
            begin();
            assert!(ring.close());
            assert!(pop(|| ring.try_pop()).is_none());
            joined(claimer);
            assert!(ring.is_closed());
            assert_eq!(ring.try_push(1), Err(PushError::Closed(1)));
        },
        // A ticket that goes back after the close opens the ring again.
        &["unclaim_tickets"],
    );
}

#[test]
fn elements_left_inside_are_dropped_once() {
    check(
        || {
            DROPS.set(0);
            let ring = ring(2);
            let threads = [(), ()].map(|()| beside(&ring, move |ring| drop(ring.try_push(Item))));
            begin();
            drop(ring.try_pop());
            drop(ring);
            threads.into_iter().for_each(joined);
            assert_eq!(DROPS.get(), 2);
        },
        &[],
    );
}

#[test]
fn a_hole_in_the_next_lap_is_passed_over() {
    check(
        || {
            let ring = ring(2);
            let sender = beside(&ring, |ring| {
                assert!(ring.try_push(1_u8).is_ok());
                let claim = ring.claim(1).expect("one is free");
                push(2, |n| ring.try_push(n));
                // Behind it there is one in the slot of the first.
                drop(claim);
                ring.close();
            });
            begin();
            assert_eq!(pop(|| ring.try_pop_at()), Some((0, 1)));
            assert_eq!(pop(|| ring.try_pop_at()), Some((2, 2)));
            assert_eq!(pop(|| ring.try_pop_at()), None);
            joined(sender);
        },
        &["publish", "observe", "release", "reclaim"],
    );
}

/// Two claims are given up beside each other, in any order, and no thread pops: all the room is
/// there.
fn two_claims_come_back() {
    let ring = ring::<u8>(2);
    let (first, second) = (ring.claim(1).expect("room"), Arc::clone(&ring));
    let other = thread::spawn(move || drop(second.claim(1)));
    begin();
    drop(first);
    joined(other);
    assert_eq!(
        (ring.len(), ring.claim(2).map(|claim| claim.len())),
        (0, Ok(2))
    );
}

#[test]
fn the_room_of_two_claims_comes_back() {
    check(two_claims_come_back, &["holes_kept"]);
}

mod within {
    //! Models of pushes below a limit: never one too many, never one too few.

    use super::{begin, beside, check, joined, pop, ring};
    use crate::ring::{MpmcEnd, PushError};
    use loom::sync::Arc;
    use loom::thread;

    /// Pushes below a limit, as the callers of an end do it.
    fn push<T>(end: &mut MpmcEnd<T>, value: T, limit: u64) -> Result<(), PushError<T>> {
        match end.push_here_within(value, limit) {
            Ok(()) => Ok(()),
            Err(value) => end.try_push_within(value, limit),
        }
    }

    #[test]
    fn two_producers_share_what_the_limit_allows() {
        check(
            || {
                let ring = ring(2);
                let other = beside(&ring, |ring| u8::from(ring.try_push_within(1, 1).is_ok()));
                begin();
                let own = u8::from(ring.try_push_within(2, 1).is_ok());
                assert_eq!(own + joined(other), 1, "one below the limit of 1");
                assert_eq!(ring.len(), 1);
            },
            &["limit_unasked"],
        );
    }

    /// Never more than one is in the ring besides what this thread pushes, so all are below 2.
    #[test]
    fn what_has_left_is_not_counted() {
        check(
            || {
                let ring = ring(2);
                let end = MpmcEnd::new(Arc::clone(&ring));
                let other = {
                    let mut end = end.clone();
                    thread::spawn(move || {
                        assert_eq!(push(&mut end, 1, 2), Ok(()));
                        // One of the two, as soon as the first is published.
                        assert!(pop(|| ring.try_pop()).is_some());
                        assert_eq!(push(&mut end, 2, 2), Ok(()));
                    })
                };
                begin();
                let mut end = end;
                assert_eq!(push(&mut end, 3, 2), Ok(()));
                joined(other);
            },
            &["head_old", "admit", "weigh"],
        );
    }
}
