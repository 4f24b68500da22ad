//! Forgotten guards and futures (`mem::forget`): their endpoint, used again, undoes what they hold.
//! Both ends stay alive throughout: a drop would wake all waiters.

use crate::channel::crowds::await_parked_times;
use crate::channel::flavour::{Flavour, Made};
use crate::forgotten::forget;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use thalweg::channel::{
    ManyReceivers, ManySenders, Receiver, Select, Sender, TryRecvError, TrySendError,
};
use thalweg_testkit::wakers::Alarm;

/// Polls a future, which must have to wait.
pub(crate) fn waiting<F: Future>(alarm: &Arc<Alarm>, future: F) -> std::pin::Pin<Box<F>> {
    let mut future = Box::pin(future);
    assert!(alarm.poll(&mut future).is_pending());
    future
}

/// Calls `$then` with a future of each kind that waits for an element.
macro_rules! each_receive {
    ($rx:ident, $alarm:ident, $then:expr, $between:expr) => {{
        use $crate::channel::forgotten::waiting;
        $then(waiting(&$alarm, $rx.recv_async()));
        let () = $between;
        let mut out = Vec::new();
        $then(waiting(&$alarm, $rx.recv_many_async(&mut out, 4)));
        let () = $between;
        $then(waiting(
            &$alarm,
            Select::new().recv(&mut $rx, |_| ()).wait_async(),
        ));
        let () = $between;
        let mut select = Select::dynamic();
        select.push_recv(&mut $rx, |_, _| ());
        $then(waiting(&$alarm, select.wait_async()));
        let () = $between;
        let mut stream = $rx.stream();
        let waker = Waker::from(Arc::clone(&$alarm));
        assert!(
            stream
                .poll_recv(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(waker);
        $then(stream);
        let () = $between;
    }};
}

/// Calls `$then` with a future of each kind that waits for room, in a channel that is full.
macro_rules! each_send {
    ($tx:ident, $flavour:ident, $alarm:ident, $then:expr, $between:expr) => {{
        use $crate::channel::forgotten::waiting;
        $then(waiting(&$alarm, $tx.send_async(8)));
        let () = $between;
        let mut value = Some(8);
        $then(waiting(&$alarm, $tx.send_from_async(&mut value)));
        let () = $between;
        let mut value = Some(8);
        let select = Select::new().send(&mut $tx, &mut value, |_| ());
        $then(waiting(&$alarm, select.wait_async()));
        let () = $between;
        if $flavour.has_claims {
            for count in 1..=2 {
                $then(waiting(&$alarm, $tx.claim_async(count)));
                let () = $between;
            }
        }
    }};
}

pub(crate) use {each_receive, each_send};

/// Dropped futures let go of their waker and of their place.
pub(crate) fn dropped_futures_keep_no_waker<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let alarm = Alarm::new();
    let is_let_go = || assert_eq!(Arc::strong_count(&alarm), 1);
    each_receive!(rx, alarm, drop, is_let_go());
    drop(waiting(&alarm, tx.closed()));
    is_let_go();
    while tx.try_send(7).is_ok() {}
    each_send!(tx, flavour, alarm, drop, is_let_go());
    assert_eq!(alarm.count(), 0);
}

/// The receiver gets what comes, however it asks.
pub(crate) fn a_forgotten_receive_keeps_nothing_from_its_receiver<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let (alarm, again) = (Alarm::new(), Alarm::new());
    let mut woken = 0;
    each_receive!(rx, alarm, forget, {
        // The element that it was handed at a rendezvous is still there.
        tx.try_send(1).unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    });
    each_receive!(rx, alarm, forget, {
        let mut future = waiting(&again, rx.recv_async());
        tx.try_send(2).unwrap();
        woken += 1;
        assert_eq!(again.count(), woken);
        assert_eq!(again.poll(&mut future), Poll::Ready(Ok(2)));
    });
    each_receive!(rx, alarm, forget, {
        tx.try_send(3).unwrap();
        let mut out = Vec::new();
        assert_eq!((rx.try_recv_many(&mut out, 2), out), (Ok(1), vec![3]));
    });
    each_receive!(rx, alarm, forget, {
        tx.try_send(4).unwrap();
        assert_eq!(rx.batch(2).collect::<Vec<_>>(), [4]);
    });
}

/// As above, for a thread that sleeps.
pub(crate) fn a_receiver_sleeps_after_a_forgotten_receive<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let alarm = Alarm::new();
    let mut way = 0;
    each_receive!(rx, alarm, forget, {
        way += 1;
        let parked = tx.counters().parked;
        let waiter = thread::spawn(move || {
            let got = match way % 3 {
                0 => rx.recv(),
                1 => rx.recv_timeout(Duration::MAX).map_err(|_| unreachable!()),
                _ => Select::new().recv(&mut rx, |got| got).wait(),
            };
            (got, rx)
        });
        await_parked_times(parked + 1, || tx.counters().parked);
        tx.send(way).unwrap();
        let (got, back) = waiter.join().unwrap();
        assert_eq!(got, Ok(way));
        rx = back;
    });
    drop((tx, rx));
}

/// The receivers beside it are woken for what comes, once its receiver is used, or gone.
pub(crate) fn a_forgotten_receive_passes_its_wake_up_on<S: Made + ManyReceivers>(
    flavour: Flavour<S>,
) {
    type Use<S> = fn(&mut Receiver<u32, S>);
    let uses: [Use<S>; 6] = [
        |rx| assert_eq!(rx.try_recv(), Err(TryRecvError::Empty)),
        |rx| assert!(rx.recv_timeout(Duration::ZERO).is_err()),
        |rx| assert!(rx.try_recv_many(&mut Vec::new(), 2).is_err()),
        |rx| assert_eq!(rx.batch(1).count(), 0),
        |rx| drop(rx.recv_async()),
        |rx| *rx = rx.clone(),
    ];
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let (alarm, mut other) = (Alarm::new(), rx.clone());
    for used in uses {
        each_receive!(rx, alarm, forget, {
            let beside = Alarm::new();
            let mut future = waiting(&beside, other.recv_async());
            used(&mut rx);
            tx.try_send(1).unwrap();
            assert_eq!(beside.count(), 1);
            assert_eq!(beside.poll(&mut future), Poll::Ready(Ok(1)));
        });
    }
    // It was notified, or handed the element, before that.
    each_receive!(rx, alarm, forget, {
        let beside = Alarm::new();
        let mut future = waiting(&beside, other.recv_async());
        tx.try_send(1).unwrap();
        assert_eq!(rx.batch(0).count(), 0);
        assert_eq!(beside.count(), 1);
        assert_eq!(beside.poll(&mut future), Poll::Ready(Ok(1)));
    });
}

/// The sender can send again, and its task is woken for room.
pub(crate) fn a_forgotten_send_keeps_nothing_from_its_sender<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let (alarm, again) = (Alarm::new(), Alarm::new());
    let mut woken = 0;
    while tx.try_send(7).is_ok() {}
    each_send!(tx, flavour, alarm, forget, {
        assert_eq!(tx.try_send(8), Err(TrySendError::Full(8)));
        let mut future = waiting(&again, tx.send_async(7));
        assert_eq!(rx.try_recv(), Ok(7));
        woken += 1;
        assert_eq!(again.count(), woken);
        assert_eq!(again.poll(&mut future), Poll::Ready(Ok(())));
    });
    each_send!(tx, flavour, alarm, forget, {
        let parked = rx.counters().parked;
        let sender = thread::spawn(move || {
            tx.send(7).unwrap();
            tx
        });
        await_parked_times(parked + 1, || rx.counters().parked);
        assert_eq!(rx.recv(), Ok(7));
        tx = sender.join().unwrap();
    });
}

/// At a rendezvous the element of a forgotten send waits on, until the sender is used again.
pub(crate) fn a_forgotten_offer_is_withdrawn<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(0);
    let alarm = Alarm::new();
    let mut value = Some(9);
    forget(waiting(&alarm, tx.send_async(8)));
    assert_eq!(rx.try_recv(), Ok(8));
    let select = Select::new().send(&mut tx, &mut value, |_| ());
    forget(waiting(&alarm, select.wait_async()));
    assert_eq!(tx.try_send(7), Err(TrySendError::Full(7)));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let mut future = waiting(&alarm, rx.recv_async());
    assert_eq!(tx.try_send(6), Ok(()));
    assert_eq!(alarm.poll(&mut future), Poll::Ready(Ok(6)));
}

/// The senders beside it are woken for room, once its sender is used, or gone.
pub(crate) fn a_forgotten_send_passes_its_wake_up_on<S: Made + ManySenders>(flavour: Flavour<S>) {
    type Use<S> = fn(&mut Sender<u32, S>);
    let uses: [Use<S>; 6] = [
        |tx| assert_eq!(tx.try_send(8), Err(TrySendError::Full(8))),
        |tx| assert!(tx.send_timeout(8, Duration::ZERO).is_err()),
        |tx| assert!(tx.try_send_many([8]).is_err()),
        |tx| assert!(tx.try_claim(1).is_err()),
        |tx| drop(tx.send_async(8)),
        |tx| *tx = tx.clone(),
    ];
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let (alarm, mut other) = (Alarm::new(), tx.clone());
    while tx.try_send(7).is_ok() {}
    for used in uses {
        each_send!(tx, flavour, alarm, forget, {
            let beside = Alarm::new();
            let mut future = waiting(&beside, other.send_async(7));
            used(&mut tx);
            assert_eq!(rx.try_recv(), Ok(7));
            assert_eq!(beside.count(), 1);
            assert_eq!(beside.poll(&mut future), Poll::Ready(Ok(())));
        });
    }
    each_send!(tx, flavour, alarm, forget, {
        let beside = Alarm::new();
        let mut future = waiting(&beside, other.send_async(7));
        assert_eq!(rx.try_recv(), Ok(7));
        let _ = tx.try_send_many([]);
        assert_eq!(beside.count(), 1, "notified before, and passed on");
        assert_eq!(beside.poll(&mut future), Poll::Ready(Ok(())));
    });
}

/// The room of a batch comes back, and wakes the sender that waits for it.
pub(crate) fn a_forgotten_batch_gives_its_room_back<S: Made>(flavour: Flavour<S>) {
    type Use<S> = fn(&mut Receiver<u32, S>);
    let uses: [Use<S>; 5] = [
        |rx| _ = rx.try_recv(),
        |rx| _ = rx.recv_timeout(Duration::ZERO),
        |rx| _ = rx.try_recv_many(&mut Vec::new(), 9),
        |rx| _ = rx.batch(9).count(),
        |rx| _ = Select::new().recv(rx, |_| ()).try_wait(),
    ];
    for taken in 0..=4 {
        for used in uses {
            let (mut tx, mut rx) = flavour.channel::<u32>(4);
            while tx.try_send(7).is_ok() {}
            let mut batch = rx.batch(4);
            assert_eq!(batch.by_ref().take(taken).count(), taken);
            forget(batch);
            let alarm = Alarm::new();
            let mut is_full = match tx.is_full() {
                true => Some(waiting(&alarm, tx.send_async(8))),
                false => None,
            };
            used(&mut rx);
            // In a store that others share it took nothing that it was not asked for.
            _ = rx.try_iter().count();
            if let Some(future) = &mut is_full {
                assert!(alarm.count() > 0);
                assert_eq!(alarm.poll(future), Poll::Ready(Ok(())));
            }
            drop(is_full);
            _ = rx.try_iter().count();
            for n in 0..4 {
                tx.try_send(n).unwrap();
            }
            assert_eq!(rx.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        }
    }
}

/// As above, where both sides sleep.
pub(crate) fn both_sides_sleep_after_a_forgotten_batch<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    tx.send_many([7; 4]).unwrap();
    forget(rx.batch(4));
    let before = rx.counters().parked;
    let sender = thread::spawn(move || {
        tx.send(8).unwrap();
        tx
    });
    await_parked_times(before + 1, || rx.counters().parked);
    while rx.recv() != Ok(8) {}
    drop(sender.join().unwrap());
}

/// A claim is given up when its sender is used again.
pub(crate) fn a_forgotten_claim_is_given_up<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    for round in 0..40 {
        let mut claim = tx.claim(1 + round as usize % 4).unwrap();
        claim.push(9).unwrap();
        forget(claim);
        if round % 2 == 0 {
            tx.send(round).unwrap();
            assert_eq!(rx.try_recv(), Ok(round));
        } else {
            let alarm = Alarm::new();
            let mut future = waiting(&alarm, rx.recv_async());
            tx.send(round).unwrap();
            assert!(alarm.count() > 0);
            assert_eq!(alarm.poll(&mut future), Poll::Ready(Ok(round)));
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        assert_eq!((tx.len(), tx.is_full()), (0, false));
    }
    // All of the room is there.
    assert_eq!(tx.try_send_many(0..4).unwrap(), 4);
}

/// Elements that others sent behind it are delivered, and they get its room, when its sender is
/// used, or gone.
pub(crate) fn a_forgotten_claim_hides_nothing_for_good<S: Made + ManySenders>(flavour: Flavour<S>) {
    for is_dropped in [false, true] {
        let (mut tx, mut rx) = flavour.channel::<u32>(4);
        let (mut other, mut third) = (tx.clone(), tx.clone());
        forget(tx.claim(2).unwrap());
        other.try_send_many([1, 2]).unwrap();
        let (reads, writes) = (Alarm::new(), Alarm::new());
        let mut receive = waiting(&reads, rx.recv_async());
        let mut send = waiting(&writes, third.send_async(3));
        match is_dropped {
            true => drop(tx),
            false => _ = tx.try_send_many([]),
        }
        assert!(reads.count() > 0 && writes.count() > 0);
        assert_eq!(reads.poll(&mut receive), Poll::Ready(Ok(1)));
        drop(receive);
        assert_eq!(writes.poll(&mut send), Poll::Ready(Ok(())));
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [2, 3]);
    }
}

/// The end of a closed channel comes when the sender of a forgotten claim is used.
pub(crate) fn a_forgotten_claim_does_not_keep_the_end_off<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    forget(tx.claim(2).unwrap());
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let alarm = Alarm::new();
    let mut future = waiting(&alarm, rx.recv_async());
    assert_eq!(tx.try_send(1), Err(TrySendError::Disconnected(1)));
    assert_eq!(alarm.count(), 1);
    assert!(matches!(alarm.poll(&mut future), Poll::Ready(Err(_))));
    drop(future);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}
