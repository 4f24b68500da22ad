//! Policies for a full channel: every loss is counted, and reported to one receiver.

use crate::channel_shuttle::explore;
use crate::channel_shuttle::ledger::{Item, Ledger, Seen, joined, on_threads, seen_once};
use crate::channel_shuttle::store::{Ends, many_to_many, many_to_one, one_to_one};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use thalweg::channel::{Builder, Overflow, SendError, Sender, Shape, TryRecvError};

/// Elements that each sender offers; far more than fit in.
const EACH: usize = 5;

/// Sends without ever waiting; returns how many were refused.
fn offer<S: Shape>(tx: &mut Sender<Item, S>, ledger: &Ledger, sender: usize) -> usize {
    let refused = ledger
        .items(sender)
        .take(EACH)
        .map(|item| match tx.send(item) {
            Ok(()) => 0,
            Err(SendError::Full(_)) => 1,
            Err(_) => unreachable!("receivers stay until the end"),
        });
    refused.sum()
}

/// Receivers sleep in between, until the end.
fn all_is_counted<S: Shape>(overflow: Overflow, ends: Ends<S>) {
    let offered = ends.senders.len() * EACH;
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| offer(&mut tx, &ledger, n));
    let is_alone = ends.receivers.len() == 1 && senders.len() == 1;
    let receivers = on_threads(ends.receivers, move |_, mut rx| {
        let (mut seen, mut reported, mut next) = (Seen::default(), 0, 0);
        while let Ok(item) = rx.recv() {
            reported += rx.lost_before() as usize;
            next += 1 + rx.lost_before() as usize;
            let is_exact = item.number + 1 == next || overflow == Overflow::Reject;
            assert!(is_exact || !is_alone, "{item:?} instead of {}", next - 1);
            seen.see(&item);
        }
        (seen, reported, rx)
    });
    let refused: usize = joined(senders).into_iter().sum();
    let mut reported = 0;
    let all = joined(receivers)
        .into_iter()
        .map(|(seen, reported_here, rx)| {
            reported += reported_here;
            (seen, rx)
        });
    let (seen, receivers): (Vec<_>, Vec<_>) = all.unzip();
    let received = seen_once(&seen);
    let counters = receivers[0].counters();
    assert_eq!(counters.received, received as u64);
    assert_eq!(counters.refused, refused as u64);
    let sent = match overflow {
        Overflow::DropNewest => counters.received,
        _ => counters.received + counters.dropped,
    };
    assert_eq!(counters.sent, sent);
    assert_eq!(received + refused + counters.dropped as usize, offered);
    // The last loss would have been reported with an element that never came.
    assert!(reported <= counters.dropped as usize);
    drop(receivers);
    ends.ledger.check_all_gone(offered);
}

/// Receivers look and look; then each sender sends one more, which reports the last loss.
fn all_is_reported<S: Shape>(ends: Ends<S>) {
    let count = ends.senders.len();
    let done = Arc::new(AtomicUsize::new(0));
    let (ledger, count_up) = (ends.ledger.clone(), Arc::clone(&done));
    let senders = on_threads(ends.senders, move |n, mut tx| {
        offer(&mut tx, &ledger, n);
        // ORDERING: SeqCst; a test's count.
        count_up.fetch_add(1, SeqCst);
        tx
    });
    let receivers = on_threads(ends.receivers, move |_, mut rx| {
        let (mut seen, mut reported) = (0, 0);
        loop {
            // ORDERING: SeqCst; a test's count.
            let is_last_look = done.load(SeqCst) == count;
            match rx.try_recv() {
                Ok(_) => {
                    seen += 1;
                    reported += rx.lost_before() as usize;
                }
                Err(TryRecvError::Empty) if !is_last_look => thread::yield_now(),
                Err(_) => return (seen, reported, rx),
            }
        }
    });
    let mut senders = joined(senders);
    let (mut seen, mut reported, mut rest) = (0, 0, Vec::new());
    for (seen_here, reported_here, rx) in joined(receivers) {
        seen += seen_here;
        reported += reported_here;
        rest.push(rx);
    }
    let rx = &mut rest[0];
    for (n, tx) in senders.iter_mut().enumerate() {
        tx.send(ends.ledger.item(n, EACH)).unwrap();
        assert_eq!(rx.recv().unwrap().number, EACH);
        reported += rx.lost_before() as usize;
    }
    let counters = rx.counters();
    assert_eq!(counters.received as usize, seen + count);
    assert_eq!(counters.dropped as usize, reported, "dropped and reported");
    assert_eq!(seen + reported, count * EACH);
}

/// The ring is full, a receiver takes one out, and one is sent: no more than one is dropped for it,
/// whatever the receiver is about.
fn one_is_dropped_for_one<S: Shape>(mut ends: Ends<S>) {
    let (mut tx, mut rx) = (ends.senders.pop().unwrap(), ends.receivers.pop().unwrap());
    let room = tx.capacity();
    let mut items = ends.ledger.items(0);
    items
        .by_ref()
        .take(room)
        .for_each(|item| tx.send(item).unwrap());
    let receiver = thread::spawn(move || {
        drop(rx.recv().unwrap());
        rx
    });
    tx.send(items.next().unwrap()).unwrap();
    let rx = receiver.join().unwrap();
    assert!(rx.counters().dropped <= 1, "{:?}", rx.counters());
    assert!(rx.len() + 1 >= room);
    drop((tx, ends.senders));
}

#[test]
fn one_is_dropped_for_one_position() {
    let builder = || Builder::new(4).overflow(Overflow::DropOldest);
    explore(move || one_is_dropped_for_one(many_to_many(builder())));
}

#[test]
fn one_is_dropped_for_one_locked() {
    let builder = || Builder::unbounded(4).overflow(Overflow::DropOldest);
    explore(move || one_is_dropped_for_one(many_to_many(builder())));
}

/// A test for each policy that a store can have, of its models.
macro_rules! over_policies {
    ($($name:ident: $ends:expr, $overflow:ident;)+) => { $(
        mod $name {
            use super::*;

            fn ends() -> Ends<impl Shape> {
                let ends = $ends;
                ends(|builder: Builder| builder.overflow(Overflow::$overflow))
            }

            #[test]
            fn counted() {
                explore(|| all_is_counted(Overflow::$overflow, ends()));
            }

            #[test]
            fn reported() {
                if Overflow::$overflow.is_lossy() {
                    explore(|| all_is_reported(ends()));
                }
            }
        }
    )+ };
}

type With = fn(Builder) -> Builder;

over_policies! {
    ring_rejects: |with: With| one_to_one(with(Builder::new(2))), Reject;
    mpmc_reject: |with: With| many_to_many(with(Builder::new(2))), Reject;
    unbounded_rejects: |with: With| many_to_many(with(Builder::unbounded(2))), Reject;
    one_ring_drops_newest: |with: With| one_to_one(with(Builder::new(2))), DropNewest;
    ring_drops_newest: |with: With| many_to_one(with(Builder::new(2))), DropNewest;
    mpmc_drop_newest: |with: With| many_to_many(with(Builder::new(2))), DropNewest;
    unbounded_drops_newest: |with: With| many_to_many(with(Builder::unbounded(2))), DropNewest;
    one_ring_drops_oldest: |with: With| one_to_one(with(Builder::new(2))), DropOldest;
    ring_drops_oldest: |with: With| many_to_one(with(Builder::new(3))), DropOldest;
    mpmc_drop_oldest: |with: With| many_to_many(with(Builder::new(2))), DropOldest;
    unbounded_drops_oldest: |with: With| many_to_many(with(Builder::unbounded(2))), DropOldest;
}
