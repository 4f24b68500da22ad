//! Channels of capacity 0. Cases that need something stored have their counterpart here.

use crate::channel::crowds::await_parked;
use crate::channel::flavour::{Flavour, Made};
use crate::channel::ledger::Ledger;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};
use thalweg::channel::{
    ClaimError, ManyReceivers, Overflow, RecvError, RecvTimeoutError, SendError, SendTimeoutError,
    TryRecvError, TrySendError,
};
use thalweg_testkit::wakers::{Alarm, block_on};

const SOON: Duration = Duration::from_millis(15);

pub(crate) fn smoke<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(0);
    assert_eq!((tx.capacity(), rx.capacity()), (0, 0));
    assert_eq!(
        (tx.len(), rx.len(), tx.is_full(), rx.is_empty()),
        (0, 0, true, true)
    );
    assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    thread::scope(|scope| {
        scope.spawn(move || (0..100).for_each(|n| tx.send(n).unwrap()));
        assert!(rx.iter().eq(0..100));
    });
}

pub(crate) fn nothing_is_there_to_wait_for<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(0);
    let began = Instant::now();
    assert_eq!(rx.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    assert_eq!(tx.send_timeout(1, SOON), Err(SendTimeoutError::Timeout(1)));
    assert!(began.elapsed() >= 2 * SOON);
    assert_eq!(
        tx.send_deadline(2, began),
        Err(SendTimeoutError::Timeout(2))
    );
    assert_eq!(tx.try_send_many([1]).unwrap_err().sent, 0);
    let mut out = vec![];
    assert_eq!(rx.try_recv_many(&mut out, 3), Err(TryRecvError::Empty));
    let none = Err(TryRecvError::Empty);
    assert_eq!((rx.try_recv_each(3, drop), rx.batch(3).count()), (none, 0));
    assert!(matches!(
        tx.claim(1).unwrap_err(),
        ClaimError::Unsupported { .. }
    ));
    let counters = rx.counters();
    assert_eq!(
        (counters.sent, counters.received, counters.refused),
        (0, 0, 3)
    );
}

/// One that waits is met by one that only tries.
pub(crate) fn tries_meet_those_who_wait<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(0);
    let (mut tx, mut rx) = thread::scope(|scope| {
        let receiver = scope.spawn(move || (rx.recv(), rx));
        await_parked(|| tx.counters().parked);
        while tx.try_send(1).is_err() {
            thread::yield_now();
        }
        let (got, rx) = receiver.join().unwrap();
        assert_eq!(got, Ok(1));
        (tx, rx)
    });
    thread::scope(|scope| {
        scope.spawn(move || {
            tx.send(2).unwrap();
            tx.send_many(3..7).unwrap();
        });
        let mut got = Vec::new();
        while got.len() < 5 {
            match got.len() % 3 {
                0 => got.extend(rx.try_recv()),
                1 => got.extend(rx.batch(1)),
                _ => drop(rx.try_recv_each(1, |n| got.push(n))),
            }
            thread::yield_now();
        }
        assert_eq!(got, [2, 3, 4, 5, 6]);
    });
}

pub(crate) fn without_receivers_every_send_gives_back<S: Made>(flavour: Flavour<S>) {
    let (mut tx, rx) = flavour.channel::<u32>(0);
    drop(rx);
    assert!(tx.is_closed());
    assert_eq!(tx.send(7), Err(SendError::Disconnected(7)));
    assert_eq!(tx.try_send(7), Err(TrySendError::Disconnected(7)));
    assert_eq!(
        tx.send_timeout(7, SOON),
        Err(SendTimeoutError::Disconnected(7))
    );
    assert_eq!(block_on(tx.send_async(7)), Err(SendError::Disconnected(7)));
    assert_eq!(
        tx.send_many([7, 8]).unwrap_err().error,
        SendError::Disconnected(7)
    );
}

pub(crate) fn without_senders_every_receive_gets_the_end<S: Made>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u32>(0);
    drop(tx);
    assert!(rx.is_closed());
    assert_eq!(rx.recv(), Err(RecvError));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(rx.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    assert_eq!(block_on(rx.recv_async()), Err(RecvError));
    let mut out = vec![];
    assert_eq!(rx.recv_many(&mut out, 3), Err(RecvError));
    assert_eq!(
        rx.try_recv_many(&mut out, 3),
        Err(TryRecvError::Disconnected)
    );
    assert_eq!(rx.recv_many(&mut out, 0), Ok(0));
    assert_eq!((rx.iter().next(), rx.batch(1).next()), (None, None));
}

pub(crate) fn elements_are_dropped_once<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(6);
    let (mut tx, mut rx) = flavour.channel::<_>(0);
    drop(tx.try_send(ledger.item(0)));
    drop(tx.send_timeout(ledger.item(1), Duration::ZERO));
    let alarm = Alarm::new();
    let mut future = tx.send_async(ledger.item(2));
    assert!(alarm.poll(&mut future).is_pending());
    drop(future);
    assert_eq!(ledger.dropped(), [1, 1, 1, 0, 0, 0]);
    let mut place = Some(ledger.item(3));
    let mut future = tx.send_from_async(&mut place);
    assert!(alarm.poll(&mut future).is_pending());
    drop(future);
    assert_eq!(place.as_ref().map(|item| item.id), Some(3));
    let mut future = tx.send_from_async(&mut place);
    assert!(alarm.poll(&mut future).is_pending());
    assert_eq!(rx.try_recv().unwrap().id, 3);
    assert!(alarm.poll(&mut future).is_ready());
    drop(future);
    assert!(place.is_none());
    // Handed over to a receive that is given up.
    let mut future = rx.recv_async();
    assert!(alarm.poll(&mut future).is_pending());
    assert!(tx.try_send(ledger.item(4)).is_ok());
    drop(future);
    assert_eq!(ledger.dropped(), [1, 1, 1, 1, 0, 0]);
    assert_eq!(rx.try_recv().unwrap().id, 4);
    // Another one, and then the receiver is dropped, too.
    let mut future = rx.recv_async();
    assert!(alarm.poll(&mut future).is_pending());
    assert!(tx.try_send(ledger.item(5)).is_ok());
    drop(future);
    drop(rx);
    assert_eq!(ledger.dropped(), [1; 6]);
    drop(tx);
    assert_eq!(ledger.dropped(), [1; 6]);
}

pub(crate) fn a_pending_receive_is_woken_once<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(0);
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut future = rx.recv_async();
    assert!(first.poll(&mut future).is_pending());
    assert!(second.poll(&mut future).is_pending());
    tx.send(1).unwrap();
    assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(second.poll(&mut future), Poll::Ready(Ok(1)));
    drop(future);
    assert_eq!((rx.counters().sent, rx.counters().received), (1, 1));
    assert_eq!((rx.counters().parked, rx.counters().woken), (1, 1));
}

pub(crate) fn a_pending_send_is_woken_once<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(0);
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut future = tx.send_async(1);
    assert!(first.poll(&mut future).is_pending());
    assert!(second.poll(&mut future).is_pending());
    assert_eq!(rx.recv(), Ok(1));
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(second.poll(&mut future), Poll::Ready(Ok(())));
    drop(future);
    assert_eq!((tx.counters().parked, tx.counters().woken), (1, 1));
}

pub(crate) fn reject_gives_back<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour
        .make::<u32>(flavour.options(0).overflow(Overflow::Reject))
        .unwrap();
    assert_eq!(tx.send(1), Err(SendError::Full(1)));
    assert_eq!(
        tx.send_timeout(1, Duration::MAX),
        Err(SendTimeoutError::Full(1))
    );
    assert_eq!(block_on(tx.send_async(1)), Err(SendError::Full(1)));
    assert_eq!(tx.send_many([1]).unwrap_err().error, SendError::Full(1));
    assert_eq!(rx.counters().refused, 4);
    let alarm = Alarm::new();
    let mut future = rx.recv_async();
    assert!(alarm.poll(&mut future).is_pending());
    assert_eq!(tx.send(2), Ok(()));
    assert_eq!(alarm.poll(&mut future), Poll::Ready(Ok(2)));
}

/// An element is handed to the receiver that has waited longest, and no newcomer gets it.
pub(crate) fn receivers_are_served_in_the_order_in_which_they_came<S>(flavour: Flavour<S>)
where
    S: Made + ManyReceivers,
{
    let (mut tx, mut rx) = flavour.channel::<u32>(0);
    let (mut other, mut newcomer) = (rx.clone(), rx.clone());
    let (first, second) = (Alarm::new(), Alarm::new());
    let (mut one, mut two) = (rx.recv_async(), other.recv_async());
    assert!(first.poll(&mut one).is_pending());
    assert!(second.poll(&mut two).is_pending());
    tx.send(1).unwrap();
    assert_eq!(newcomer.try_recv(), Err(TryRecvError::Empty));
    tx.send(2).unwrap();
    assert_eq!(newcomer.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(second.poll(&mut two), Poll::Ready(Ok(2)));
    assert_eq!(first.poll(&mut one), Poll::Ready(Ok(1)));
}
