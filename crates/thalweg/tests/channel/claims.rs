//! Writing into a channel's memory.

use crate::channel::crowds::await_parked;
use crate::channel::flavour::{Flavour, Made};
use crate::channel::ledger::Ledger;
use std::thread;
use thalweg::channel::{ClaimError, ManySenders, Overflow, Receiver, Select, TryRecvError};
use thalweg_testkit::wakers::block_on;

pub(crate) fn a_claim_is_sent_by_its_commit<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(5);
    for _ in 0..20 {
        let mut claim = tx.claim(4).unwrap();
        assert_eq!((claim.capacity(), claim.remaining()), (4, 4));
        claim.push(1).unwrap();
        assert_eq!(claim.write(&[2, 3, 4, 5]), 3);
        assert_eq!((claim.push(9), claim.write(&[9])), (Err(9), 0));
        assert_eq!((claim.capacity(), claim.remaining()), (4, 0));
        assert_eq!(format!("{claim:?}"), "Claim { capacity: 4, remaining: 0 }");
        assert_eq!(
            rx.try_recv(),
            Err(TryRecvError::Empty),
            "not before the commit"
        );
        assert_eq!(claim.commit(), 4);
        assert_eq!((tx.len(), rx.len()), (4, 4));
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(tx.claim(0).unwrap().commit(), 0);
    }
}

/// Room that is not used comes back: at once, or when the receiver has come past it.
pub(crate) fn unused_room_comes_back<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    for _ in 0..20 {
        drop(tx.claim(4).unwrap());
        if !flavour.gives_back {
            assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        }
        let mut claim = tx.try_claim(4).unwrap();
        claim.push(1).unwrap();
        assert_eq!(claim.commit(), 1);
        if !flavour.gives_back {
            assert_eq!(rx.try_iter().next(), Some(1));
            assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        }
        tx.try_send(2).unwrap();
        assert_eq!(rx.try_iter().last(), Some(2));
        assert_eq!((tx.len(), rx.len()), (0, 0));
    }
}

/// As above, with the sender asleep when the receiver comes past.
pub(crate) fn unused_room_wakes_the_sender<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    drop(tx.claim(2).unwrap());
    thread::scope(|scope| {
        scope.spawn(move || {
            tx.send(1).unwrap();
            tx.send(2).unwrap();
        });
        assert_eq!(rx.iter().collect::<Vec<_>>(), [1, 2]);
    });
}

/// Room between elements becomes a hole, and comes back when the receiver passes it. For a ring
/// that is shared.
pub(crate) fn a_hole_that_is_passed_wakes_the_sender<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(3);
    let mut other = tx.clone();
    other.send(0).unwrap();
    let claim = tx.claim(1).unwrap();
    other.send(1).unwrap();
    drop(claim);
    thread::scope(|scope| {
        scope.spawn(move || tx.send(2).unwrap());
        drop(other);
        await_parked(|| rx.counters().parked);
        assert_eq!(rx.iter().collect::<Vec<_>>(), [0, 1, 2]);
    });
}

/// Room that was claimed and not used is no element, whichever end counts.
pub(crate) fn ring_room_left_unused_is_not_counted<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(8);
    for round in 1..4 {
        drop(tx.claim(2).unwrap());
        assert_eq!((tx.len(), rx.len(), rx.is_empty()), (0, 0, true));
        tx.send_many((0..9).filter(|n| n % 3 == 0)).unwrap();
        assert_eq!((tx.len(), rx.len()), (3, 3));
        assert_eq!(rx.counters().sent, 3 * round);
        assert_eq!(rx.try_iter().count(), 3);
        assert_eq!(
            (tx.counters().received, rx.counters().received),
            (3 * round, 3 * round)
        );
    }
}

/// A claim that is dropped while the others sleep: one for the room, one for an element. For a ring
/// that is shared.
pub(crate) fn a_dropped_claim_holds_no_other_back<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(1);
    let (mut other, watch) = (tx.clone(), tx.clone());
    thread::scope(|scope| {
        let receiver = scope.spawn(move || rx.recv());
        await_parked(|| watch.counters().parked);
        let claim = tx.claim(1).unwrap();
        scope.spawn(move || other.send(7).unwrap());
        crate::channel::crowds::await_parked_times(2, || watch.counters().parked);
        drop(claim);
        assert_eq!(receiver.join().unwrap(), Ok(7));
    });
}

pub(crate) fn a_commit_wakes_the_receiver<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    thread::scope(|scope| {
        let receiver = scope.spawn(move || rx.iter().collect::<Vec<_>>());
        await_parked(|| tx.counters().parked);
        let mut claim = tx.claim(2).unwrap();
        claim.write(&[1, 2]);
        claim.commit();
        drop(tx);
        assert_eq!(receiver.join().unwrap(), [1, 2]);
    });
}

pub(crate) fn a_claim_waits_for_all_of_its_room<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    tx.send_many(0..4).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut claim = tx.claim(3).unwrap();
            claim.write(&[4, 5, 6]);
            claim.commit();
        });
        for n in 0..4 {
            // Mostly asleep, but for the last, which may be free to go already.
            if n < 3 {
                await_parked(|| rx.counters().parked);
            }
            assert_eq!(rx.recv(), Ok(n));
        }
        assert_eq!(rx.iter().collect::<Vec<_>>(), [4, 5, 6]);
    });
}

/// Claims of several senders that want more than there is, and single sends between them.
pub(crate) fn claims_and_sends_compete<S: Made + ManySenders>(flavour: Flavour<S>) {
    const ROUNDS: usize = 500;
    let (tx, mut rx) = flavour.channel::<usize>(4);
    thread::scope(|scope| {
        for size in [1, 2, 3, 4] {
            let mut tx = tx.clone();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let mut claim = tx.claim(size).unwrap();
                    // Some room is left unused.
                    for _ in 0..size.div_ceil(2) {
                        claim.push(1).unwrap();
                    }
                    assert_eq!(claim.commit(), size.div_ceil(2));
                }
            });
        }
        let mut single = tx;
        scope.spawn(move || (0..ROUNDS).for_each(|_| single.send(1).unwrap()));
        assert_eq!(rx.iter().sum::<usize>(), ROUNDS * (1 + 1 + 2 + 2 + 1));
    });
}

/// A large claim that waits does not use up what wakes a single send. For a ring that is shared.
pub(crate) fn a_waiting_claim_leaves_room_to_a_send<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (mut first, mut rx) = flavour.channel::<u32>(4);
    let mut second = first.clone();
    first.send_many(0..4).unwrap();
    thread::scope(|scope| {
        let claimer = scope.spawn(move || first.claim(4).map(|claim| claim.commit()));
        await_parked(|| rx.counters().parked);
        let sender = scope.spawn(move || second.send(7));
        crate::channel::crowds::await_parked_times(2, || rx.counters().parked);
        rx.recv().unwrap();
        // No receiver takes elements meanwhile.
        assert_eq!(sender.join().unwrap(), Ok(()));
        rx.close();
        assert_eq!(claimer.join().unwrap(), Err(ClaimError::Disconnected));
    });
}

pub(crate) fn an_abandoned_claim_drops_what_was_written<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(4);
    let (mut tx, mut rx) = flavour.channel::<_>(4);
    let mut claim = tx.claim(3).unwrap();
    assert!(claim.push(ledger.item(0)).is_ok() && claim.push(ledger.item(1)).is_ok());
    drop(claim);
    assert_eq!(ledger.dropped(), [1, 1, 0, 0]);
    assert!(rx.try_recv().is_err());
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut claim = tx.claim(2).unwrap();
        let _ = claim.push(ledger.item(2));
        panic!("seeded");
    }));
    assert!(panic.is_err());
    assert_eq!(ledger.dropped(), [1, 1, 1, 0]);
    let _ = tx.send(ledger.item(3));
    assert_eq!(rx.recv().unwrap().id, 3);
    assert_eq!(ledger.dropped(), [1; 4]);
}

/// A commit after the channel was closed, with the receivers there or gone.
pub(crate) fn a_commit_into_a_closed_channel_loses_nothing<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(2);
    let (mut tx, mut rx) = flavour.channel::<_>(4);
    let mut claim = tx.claim(1).unwrap();
    rx.close();
    let _ = claim.push(ledger.item(0));
    assert_eq!(claim.commit(), 1);
    assert_eq!(rx.recv().unwrap().id, 0);
    drop(rx);
    let (mut tx, rx) = flavour.channel::<_>(4);
    let mut claim = tx.claim(1).unwrap();
    drop(rx);
    let _ = claim.push(ledger.item(1));
    claim.commit();
    drop(tx);
    assert_eq!(ledger.dropped(), [1, 1]);
}

pub(crate) fn policies_that_do_not_wait_say_that_it_is_full<S: Made>(flavour: Flavour<S>) {
    for overflow in [Overflow::Reject, Overflow::DropNewest] {
        let (mut tx, _rx) = flavour
            .make::<u32>(flavour.options(2).overflow(overflow))
            .unwrap();
        tx.send(1).unwrap();
        assert_eq!(
            tx.claim(2).unwrap_err(),
            ClaimError::Full { asked: 2, free: 1 }
        );
        assert_eq!(tx.claim(1).unwrap().capacity(), 1);
    }
}

/// A channel without memory to claim reports that at once, also when it is full.
pub(crate) fn no_claims<S: Made>(flavour: Flavour<S>) {
    let (mut tx, _rx) = flavour.channel::<u32>(1);
    assert!(matches!(
        tx.claim(1).unwrap_err(),
        ClaimError::Unsupported { .. }
    ));
    while tx.try_send(1).is_ok() {}
    assert!(matches!(
        tx.claim(1).unwrap_err(),
        ClaimError::Unsupported { .. }
    ));
    assert!(matches!(
        tx.try_claim(0).unwrap_err(),
        ClaimError::Unsupported { .. }
    ));
}

/// A sender that sleeps since an open claim has all the room wakes when that is given up, though
/// no receiver is there to pass it.
pub(crate) fn unused_room_wakes_another_sender<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(1);
    let (mut other, watch) = (tx.clone(), tx.clone());
    thread::scope(|scope| {
        let claim = tx.claim(1).unwrap();
        let sender = scope.spawn(move || other.send(7));
        await_parked(|| watch.counters().parked);
        drop(claim);
        sender.join().unwrap().unwrap();
    });
    assert_eq!(rx.try_recv(), Ok(7));
}

/// Claims of three senders that are given up in any order: all the room is there at once, though no
/// receiver looks. For a ring that is shared.
pub(crate) fn claims_come_back_in_any_order<S: Made + ManySenders>(flavour: Flavour<S>) {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for writes in [false, true] {
            let (tx, mut rx) = flavour.channel::<u32>(3);
            let (mut senders, mut other) = ([tx.clone(), tx.clone(), tx.clone()], tx);
            let mut claims = senders.each_mut().map(|tx| tx.claim(1).ok());
            if writes {
                claims
                    .iter_mut()
                    .flatten()
                    .for_each(|claim| claim.push(9).unwrap());
            }
            assert!(other.try_send(1).is_err() && other.is_full());
            for at in order {
                drop(claims[at].take());
            }
            (0..3).for_each(|n| other.try_send(n).unwrap());
            assert_eq!(rx.try_iter().collect::<Vec<_>>(), [0, 1, 2], "{order:?}");
            drop(claims);
        }
    }
}

/// Room that is claimed and not committed is no element, and neither is a hole, whichever end
/// counts. This is for a ring that is shared.
pub(crate) fn what_is_claimed_is_no_element<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(5);
    let mut other = tx.clone();
    let mut claim = tx.claim(4).unwrap();
    claim.push(1).unwrap();
    assert_eq!((rx.len(), rx.is_empty(), other.is_empty()), (0, true, true));
    other.send(2).unwrap();
    assert_eq!((rx.len(), other.len(), other.is_full()), (1, 1, true));
    assert_eq!((rx.counters().sent, other.counters().sent), (1, 1));
    assert_eq!(claim.commit(), 1);
    // Three holes in between.
    assert_eq!((rx.len(), other.len(), rx.counters().sent), (2, 2, 2));
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 2]);
    let (counters, others) = (rx.counters(), other.counters());
    assert_eq!((counters.sent, counters.received), (2, 2));
    assert_eq!((others.sent, others.received), (2, 2));
    (0..5).for_each(|n| other.try_send(n).unwrap());
    assert!(other.is_full());
}

/// Too much for a channel that has ended: it has ended.
pub(crate) fn a_claim_in_a_channel_that_ended_is_an_error<S: Made>(flavour: Flavour<S>) {
    let (mut tx, rx) = flavour.channel::<u32>(8);
    drop(rx);
    for count in [0, 1, 8, 9, usize::MAX] {
        assert_eq!(tx.claim(count).unwrap_err(), ClaimError::Disconnected);
        assert_eq!(tx.try_claim(count).unwrap_err(), ClaimError::Disconnected);
    }
}

/// A channel that its receiver closed is empty while a claim is held, and over after that. The
/// sender stays.
pub(crate) fn a_held_claim_puts_the_end_off<S: Made>(flavour: Flavour<S>) {
    type Receive<S> = fn(&mut Receiver<u32, S>) -> Option<u32>;
    let ways: [Receive<S>; 4] = [
        |rx| rx.recv().ok(),
        |rx| rx.recv_many(&mut Vec::new(), 1).ok().map(|_| 5),
        |rx| block_on(rx.recv_async()).ok(),
        |rx| Select::new().recv(rx, |got| got.ok()).wait(),
    ];
    for receive in ways {
        for commits in [true, false] {
            let (mut tx, mut rx) = flavour.channel(4);
            tx.send(1).unwrap();
            let mut claim = tx.claim(2).unwrap();
            claim.push(5).unwrap();
            rx.close();
            assert_eq!(rx.try_recv(), Ok(1));
            for _ in 0..3 {
                assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
                assert_eq!(
                    rx.try_recv_many(&mut Vec::new(), 2),
                    Err(TryRecvError::Empty)
                );
                assert_eq!(rx.batch(2).count(), 0);
            }
            thread::scope(|scope| {
                let receiver = scope.spawn(move || (receive(&mut rx), rx));
                thread::yield_now();
                let sent = if commits {
                    claim.commit()
                } else {
                    drop(claim);
                    0
                };
                let (got, mut rx) = receiver.join().unwrap();
                assert_eq!((got, sent), (commits.then_some(5), usize::from(commits)));
                for _ in 0..3 {
                    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
                    assert_eq!(rx.batch(2).count(), 0);
                    assert_eq!((rx.len(), rx.is_closed()), (0, true));
                }
                let counters = rx.counters();
                assert_eq!(
                    (counters.sent, counters.received),
                    (1 + sent as u64, 1 + sent as u64)
                );
            });
            assert!(tx.try_send(3).is_err());
        }
    }
}
