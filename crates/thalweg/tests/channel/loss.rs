//! Policies for a full channel: what is kept, what is counted, and what is reported to the
//! receiver.

use crate::channel::crowds::{check_order, element};
use crate::channel::flavour::{Flavour, Made};
use crate::channel::ledger::Ledger;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};
use thalweg::channel::{
    ManyReceivers, ManySenders, Overflow, Receiver, SendError, SendTimeoutError, Sender, Shape,
    TrySendError,
};
use thalweg_testkit::wakers::block_on;

fn lossy<S: Made, T: Send + 'static>(
    flavour: Flavour<S>,
    overflow: Overflow,
    capacity: usize,
) -> crate::channel::flavour::Ends<S, T> {
    flavour
        .make(flavour.options(capacity).overflow(overflow))
        .unwrap()
}

/// Returns the elements that are there, each with the loss before it.
fn with_losses<S: Shape>(rx: &mut Receiver<u64, S>) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    while let Ok(n) = rx.try_recv() {
        all.push((n, rx.lost_before()));
    }
    all
}

pub(crate) fn reject_gives_back<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = lossy::<S, u32>(flavour, Overflow::Reject, 2);
    tx.send(1).unwrap();
    tx.try_send(2).unwrap();
    let later = Instant::now() + Duration::from_secs(3600);
    assert_eq!(tx.send(3), Err(SendError::Full(3)));
    assert_eq!(tx.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(tx.send_deadline(3, later), Err(SendTimeoutError::Full(3)));
    assert_eq!(
        tx.send_timeout(3, Duration::MAX),
        Err(SendTimeoutError::Full(3))
    );
    assert_eq!(block_on(tx.send_async(3)), Err(SendError::Full(3)));
    let error = tx.send_many(3..6).unwrap_err();
    assert_eq!((error.sent, error.error), (0, SendError::Full(3)));
    assert_eq!((rx.counters().refused, tx.counters().refused), (6, 6));
    assert_eq!(rx.recv(), Ok(1));
    let error = tx.send_many([3, 4, 5]).unwrap_err();
    assert_eq!((error.sent, error.error), (1, SendError::Full(4)));
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), [2, 3]);
    let counters = rx.counters();
    assert_eq!(
        (counters.sent, counters.received, counters.refused),
        (3, 3, 7)
    );
    assert_eq!((counters.dropped, rx.lost_before()), (0, 0));
    drop(rx);
    assert_eq!(tx.send(1), Err(SendError::Disconnected(1)));
}

pub(crate) fn drop_oldest_keeps_the_last<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = lossy::<S, u64>(flavour, Overflow::DropOldest, 3);
    for n in 0..8 {
        tx.send(n).unwrap();
    }
    assert_eq!((tx.len(), tx.is_full(), tx.capacity()), (3, true, 3));
    assert_eq!((rx.recv(), rx.lost_before()), (Ok(5), 5));
    tx.try_send(8).unwrap();
    tx.send_timeout(9, Duration::ZERO).unwrap();
    assert_eq!(with_losses(&mut rx), [(7, 1), (8, 0), (9, 0)]);
    tx.send_many(10..19).unwrap();
    block_on(tx.send_async(19)).unwrap();
    assert_eq!(with_losses(&mut rx), [(17, 7), (18, 0), (19, 0)]);
    let counters = rx.counters();
    assert_eq!(
        (counters.sent, counters.received, counters.dropped),
        (20, 7, 13)
    );
    assert_eq!(tx.counters(), counters);
    drop(rx);
    assert_eq!(tx.send(1), Err(SendError::Disconnected(1)));
    assert_eq!(
        tx.try_send_many([1]).unwrap_err().error,
        SendError::Disconnected(1)
    );
}

pub(crate) fn dropped_elements_are_dropped_once<S: Made>(flavour: Flavour<S>) {
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let (mut tx, mut rx) = flavour.make(flavour.options(4).overflow(overflow)).unwrap();
        let ledger = Ledger::new(20);
        assert!(tx.send_many(ledger.items(0..9)).is_ok());
        assert_eq!(ledger.dropped().iter().sum::<u32>(), 5);
        drop(rx.recv());
        ledger
            .items(9..20)
            .for_each(|item| assert!(tx.send(item).is_ok()));
        assert_eq!(ledger.dropped().iter().sum::<u32>(), 16);
        drop(rx);
        assert_eq!(ledger.dropped(), [1; 20]);
    }
}

/// An iterator that panics or ends early leaves no gap that looks like a loss.
pub(crate) fn unused_room_is_not_a_loss<S: Made>(flavour: Flavour<S>) {
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let (mut tx, mut rx) = flavour
            .make::<u64>(flavour.options(4).overflow(overflow))
            .unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            tx.try_send_many((0..4).inspect(|_| panic!("seeded")))
        }));
        assert!(panic.is_err());
        tx.send_many((0..8).filter(|n| n % 3 == 0)).unwrap();
        let _ = tx.try_send_many((0..1).filter(|_| true));
        let lost: u64 = with_losses(&mut rx).iter().map(|(_, lost)| lost).sum();
        tx.send(1).unwrap();
        let rest: u64 = with_losses(&mut rx).iter().map(|(_, lost)| lost).sum();
        assert_eq!(lost + rest, rx.counters().dropped, "{overflow:?}");
    }
}

fn overrun<S: Shape>(tx: &mut Sender<u64, S>, sender: u64, each: u64) {
    for n in 0..each {
        tx.send(element(sender, n)).unwrap();
        if n % 64 == 0 {
            thread::yield_now();
        }
    }
}

/// One receiver: the elements that it got, and the losses that were reported to it, are all that
/// was sent.
pub(crate) fn every_loss_is_reported<S: Made>(flavour: Flavour<S>) {
    const EACH: u64 = 20_000;
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let (mut tx, mut rx) = flavour
            .make::<u64>(flavour.options(8).overflow(overflow))
            .unwrap();
        // The exact place of each gap, unless others might have received, too.
        let is_exact = !(overflow == Overflow::DropOldest && S::SHARES_RECEIVER);
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                overrun(&mut tx, 0, EACH);
                tx
            });
            let (mut next, mut seen, mut reported) = (0, 0, 0);
            while seen + reported < EACH {
                let Ok(n) = rx.recv_timeout(Duration::from_millis(1)) else {
                    if !sender.is_finished() {
                        continue;
                    }
                    break;
                };
                next += rx.lost_before();
                assert!(
                    n == next || !is_exact,
                    "{overflow:?}: {n} instead of {next}"
                );
                next = n + 1;
                seen += 1;
                reported += rx.lost_before();
            }
            let mut tx = sender.join().unwrap();
            // The last loss is reported with the next element.
            while let Ok(n) = rx.try_recv() {
                assert!(n == next + rx.lost_before() || !is_exact);
                next = n + 1;
                seen += 1;
                reported += rx.lost_before();
            }
            tx.send(EACH).unwrap();
            rx.recv().unwrap();
            reported += rx.lost_before();
            let counters = rx.counters();
            assert_eq!(
                (seen + reported, reported),
                (EACH, counters.dropped),
                "{overflow:?}"
            );
            assert_eq!(counters.received, seen + 1);
        });
    }
}

/// Several senders: what was received and what was dropped is all that was sent, and all that was
/// dropped is reported.
pub(crate) fn losses_add_up<S: Made + ManySenders>(flavour: Flavour<S>) {
    const SENDERS: u64 = 3;
    const EACH: u64 = 5000;
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let (tx, mut rx) = flavour
            .make::<u64>(flavour.options(4).overflow(overflow))
            .unwrap();
        let (mut seen, mut reported) = (Vec::new(), 0);
        let mut last = Vec::new();
        thread::scope(|scope| {
            let threads = (0..SENDERS).map(|sender| {
                let mut tx = tx.clone();
                scope.spawn(move || {
                    overrun(&mut tx, sender, EACH);
                    tx
                })
            });
            let threads: Vec<_> = threads.collect();
            while !threads.iter().all(|thread| thread.is_finished()) {
                if let Ok(n) = rx.recv_timeout(Duration::from_millis(1)) {
                    seen.push(n);
                    reported += rx.lost_before();
                }
            }
            last.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        });
        while let Ok(n) = rx.try_recv() {
            seen.push(n);
            reported += rx.lost_before();
        }
        for (sender, tx) in last.iter_mut().enumerate() {
            // This one reports the loss at the very end.
            let n = element(sender as u64, EACH);
            tx.send(n).unwrap();
            assert_eq!(rx.recv(), Ok(n));
            seen.push(n);
            reported += rx.lost_before();
        }
        let counters = rx.counters();
        assert_eq!(counters.received, seen.len() as u64, "{overflow:?}");
        assert_eq!(
            counters.received + reported,
            SENDERS * (EACH + 1),
            "{overflow:?}"
        );
        assert_eq!(counters.dropped, reported, "{overflow:?}");
        check_order(&seen, SENDERS);
    }
}

/// Several receivers: each loss is reported to one of them.
pub(crate) fn several_receivers_share_what_is_reported<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    const EACH: u64 = 10_000;
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let (mut tx, mut rx) = flavour
            .make::<u64>(flavour.options(4).overflow(overflow))
            .unwrap();
        thread::scope(|scope| {
            let threads = [(); 2].map(|()| {
                let mut rx = rx.clone();
                scope.spawn(move || {
                    let mut reported = 0;
                    let mut seen = 0;
                    while rx.recv() != Ok(u64::MAX) {
                        seen += 1;
                        reported += rx.lost_before();
                    }
                    (seen, reported + rx.lost_before())
                })
            });
            overrun(&mut tx, 0, EACH);
            for _ in 0..2 {
                // Not one that is dropped.
                while !tx.is_empty() {
                    thread::yield_now();
                }
                tx.send(u64::MAX).unwrap();
            }
            let both = threads.map(|thread| thread.join().unwrap());
            let (seen, reported) = (both[0].0 + both[1].0, both[0].1 + both[1].1);
            tx.send(0).unwrap();
            rx.recv().unwrap();
            let reported = reported + rx.lost_before();
            assert_eq!(
                (seen + reported, reported),
                (EACH, rx.counters().dropped),
                "{overflow:?}"
            );
        });
    }
}

/// A loss while a claim has all the room comes before the elements that are sent into room of the
/// claim.
pub(crate) fn a_loss_beside_a_claim_is_reported_in_its_place<S: Made + ManySenders>(
    flavour: Flavour<S>,
) {
    let options = flavour.options(4).overflow(Overflow::DropNewest);
    let (mut tx, mut rx) = flavour.make::<u32>(options).unwrap();
    let mut other = tx.clone();
    for written in [0, 1, 2] {
        for commits in [true, false] {
            let mut claim = tx.try_claim(4).unwrap();
            for n in 0..written {
                claim.push(n).unwrap();
            }
            other.send(9).unwrap();
            if commits {
                claim.commit();
                for n in 0..written {
                    assert_eq!((rx.recv(), rx.lost_before()), (Ok(n), 0));
                }
            } else {
                drop(claim);
            }
            tx.send(7).unwrap();
            assert_eq!((rx.recv(), rx.lost_before()), (Ok(7), 1));
        }
    }
}
