//! Sending and receiving in tasks.

use crate::channel::crowds::{await_parked, check_all, element};
use crate::channel::flavour::{Flavour, Made};
use crate::channel::ledger::Ledger;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::thread;
use thalweg::channel::{
    ManyReceivers, ManySenders, RecvError, Select, SelectList, SendError, oneshot,
};
use thalweg_testkit::wakers::{Alarm, block_on};

pub(crate) fn ready_at_once<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let alarm = Alarm::new();
    assert_eq!(alarm.poll(&mut tx.send_async(1)), Poll::Ready(Ok(())));
    let mut place = Some(2);
    assert_eq!(
        alarm.poll(&mut tx.send_from_async(&mut place)),
        Poll::Ready(Ok(()))
    );
    assert_eq!(place, None);
    assert_eq!(
        alarm.poll(&mut tx.send_from_async(&mut place)),
        Poll::Ready(Ok(()))
    );
    assert_eq!(alarm.poll(&mut rx.recv_async()), Poll::Ready(Ok(1)));
    assert_eq!(alarm.poll(&mut rx.recv_async()), Poll::Ready(Ok(2)));
    assert!(alarm.poll(&mut rx.recv_async()).is_pending());
    drop(tx);
    assert_eq!(
        alarm.poll(&mut rx.recv_async()),
        Poll::Ready(Err(RecvError))
    );
    assert_eq!((alarm.count(), rx.counters().woken), (0, 0));
}

pub(crate) fn a_pending_receive_is_woken_once<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut future = rx.recv_async();
    assert!(first.poll(&mut future).is_pending());
    assert!(first.poll(&mut future).is_pending());
    // Another task has the future now.
    assert!(second.poll(&mut future).is_pending());
    tx.send(1).unwrap();
    tx.send(2).unwrap();
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(second.poll(&mut future), Poll::Ready(Ok(1)));
    drop(future);
    assert_eq!(first.poll(&mut rx.recv_async()), Poll::Ready(Ok(2)));
    assert_eq!((first.count(), second.count()), (0, 1));
    let counters = rx.counters();
    assert_eq!((counters.parked, counters.woken), (1, 1));
}

pub(crate) fn a_pending_send_is_woken_once<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(1);
    tx.send(1).unwrap();
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut future = tx.send_async(2);
    assert!(first.poll(&mut future).is_pending());
    assert!(second.poll(&mut future).is_pending());
    assert_eq!(rx.recv(), Ok(1));
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(first.poll(&mut future), Poll::Ready(Ok(())));
    drop(future);
    assert_eq!(rx.recv(), Ok(2));
    let counters = rx.counters();
    assert_eq!((counters.parked, counters.woken), (1, 1));
}

pub(crate) fn the_end_wakes_tasks<S: Made>(flavour: Flavour<S>) {
    let alarm = Alarm::new();
    let (tx, mut rx) = flavour.channel::<u32>(1);
    let mut future = rx.recv_async();
    assert!(alarm.poll(&mut future).is_pending());
    drop(tx);
    assert_eq!(alarm.count(), 1);
    assert_eq!(alarm.poll(&mut future), Poll::Ready(Err(RecvError)));
    drop(future);
    for by_close in [true, false] {
        let (mut tx, mut rx) = flavour.channel::<u32>(1);
        let _ = tx.try_send(1);
        let mut future = tx.send_async(2);
        assert!(alarm.poll(&mut future).is_pending());
        let before = alarm.count();
        match by_close {
            true => rx.close(),
            false => drop(rx),
        }
        assert_eq!(alarm.count(), before + 1);
        assert_eq!(
            alarm.poll(&mut future),
            Poll::Ready(Err(SendError::Disconnected(2)))
        );
    }
}

/// A receive that is given up takes nothing with it.
pub(crate) fn a_dropped_receive_loses_nothing<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let alarm = Alarm::new();
    for n in 0..50 {
        let mut future = rx.recv_async();
        assert!(alarm.poll(&mut future).is_pending());
        if n % 2 == 0 {
            tx.send(n).unwrap();
        }
        drop(future);
        if n % 2 == 1 {
            tx.send(n).unwrap();
        }
        assert_eq!(rx.try_recv(), Ok(n));
    }
    assert_eq!(alarm.count(), 25);
}

/// A send that is given up leaves its element to the caller, or drops it, once.
pub(crate) fn a_dropped_send_keeps_its_element<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(4);
    let (mut tx, mut rx) = flavour.channel::<_>(1);
    let alarm = Alarm::new();
    tx.send(ledger.item(0)).ok().unwrap();
    let mut future = tx.send_async(ledger.item(1));
    assert!(alarm.poll(&mut future).is_pending());
    drop(future);
    assert_eq!(ledger.dropped(), [0, 1, 0, 0]);
    let mut future = tx.send_async(ledger.item(2));
    assert!(alarm.poll(&mut future).is_pending());
    assert_eq!(future.take().map(|item| item.id), Some(2));
    assert!(future.take().is_none());
    // It has nothing left to send.
    assert!(matches!(alarm.poll(&mut future), Poll::Ready(Ok(()))));
    drop(future);
    let mut place = Some(ledger.item(3));
    for _ in 0..2 {
        let mut future = tx.send_from_async(&mut place);
        assert!(alarm.poll(&mut future).is_pending());
        drop(future);
        assert_eq!(place.as_ref().map(|item| item.id), Some(3));
    }
    assert_eq!(rx.recv().unwrap().id, 0);
    assert_eq!(alarm.count(), 0, "no waiter is left");
    assert!(alarm.poll(&mut tx.send_from_async(&mut place)).is_ready());
    assert!(place.is_none());
    assert_eq!(rx.recv().unwrap().id, 3);
    assert_eq!(ledger.dropped(), [1; 4]);
}

/// Two wait, one is woken and goes: the other is woken in its place.
pub(crate) fn a_dropped_receive_passes_its_wake_up_on<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    let mut other = rx.clone();
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut gone = rx.recv_async();
    let mut stays = other.recv_async();
    assert!(first.poll(&mut gone).is_pending());
    assert!(second.poll(&mut stays).is_pending());
    tx.send(1).unwrap();
    assert_eq!((first.count(), second.count()), (1, 0));
    drop(gone);
    assert_eq!((first.count(), second.count()), (1, 1));
    assert_eq!(second.poll(&mut stays), Poll::Ready(Ok(1)));
}

/// Two wait for one element: only one of them is bothered.
pub(crate) fn one_element_wakes_one_task<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    let mut other = rx.clone();
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut one = rx.recv_async();
    let mut two = other.recv_async();
    assert!(first.poll(&mut one).is_pending());
    assert!(second.poll(&mut two).is_pending());
    tx.send(1).unwrap();
    assert_eq!(first.poll(&mut one), Poll::Ready(Ok(1)));
    assert_eq!((first.count(), second.count()), (1, 0));
    tx.send(2).unwrap();
    assert_eq!((first.count(), second.count()), (1, 1));
    assert_eq!(second.poll(&mut two), Poll::Ready(Ok(2)));
}

/// Wake-ups are in order of arrival, but an element is not reserved: a newcomer may take it before
/// the one that was woken, which then waits behind the others.
pub(crate) fn a_newcomer_may_be_faster_than_one_that_was_woken<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    let (mut other, mut newcomer) = (rx.clone(), rx.clone());
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut one = rx.recv_async();
    let mut two = other.recv_async();
    assert!(first.poll(&mut one).is_pending());
    assert!(second.poll(&mut two).is_pending());
    tx.send(1).unwrap();
    assert_eq!((first.count(), second.count()), (1, 0));
    assert_eq!(newcomer.try_recv(), Ok(1));
    assert!(first.poll(&mut one).is_pending());
    tx.send(2).unwrap();
    assert_eq!((first.count(), second.count()), (1, 1));
    assert_eq!(second.poll(&mut two), Poll::Ready(Ok(2)));
    tx.send(3).unwrap();
    assert_eq!((first.count(), second.count()), (2, 1));
    assert_eq!(first.poll(&mut one), Poll::Ready(Ok(3)));
}

/// As above, for senders of one store.
pub(crate) fn a_dropped_send_passes_its_wake_up_on<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(1);
    let mut other = tx.clone();
    tx.send(0).unwrap();
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut gone = tx.send_async(1);
    let mut stays = other.send_async(2);
    assert!(first.poll(&mut gone).is_pending());
    assert!(second.poll(&mut stays).is_pending());
    assert_eq!(rx.recv(), Ok(0));
    assert_eq!((first.count(), second.count()), (1, 0));
    drop(gone);
    assert_eq!((first.count(), second.count()), (1, 1));
    assert_eq!(second.poll(&mut stays), Poll::Ready(Ok(())));
    drop(stays);
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), [2]);
}

/// A thread sleeps in line behind a task that goes.
pub(crate) fn a_task_passes_its_wake_up_on_to_a_thread<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    let mut other = rx.clone();
    let alarm = Alarm::new();
    let mut future = rx.recv_async();
    assert!(alarm.poll(&mut future).is_pending());
    thread::scope(|scope| {
        let thread = scope.spawn(move || other.recv());
        crate::channel::crowds::await_parked_times(2, || tx.counters().parked);
        tx.send(1).unwrap();
        assert_eq!(alarm.count(), 1);
        drop(future);
        assert_eq!(thread.join().unwrap(), Ok(1));
    });
}

/// Begun by one thread, ended by another.
pub(crate) fn futures_move_between_threads<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(1);
    let alarm = Alarm::new();
    let mut future = rx.recv_async();
    assert!(alarm.poll(&mut future).is_pending());
    thread::scope(|scope| {
        let receiver = scope.spawn(move || block_on(future));
        tx.send(1).unwrap();
        assert_eq!(receiver.join().unwrap(), Ok(1));
    });
    let room = rx.capacity();
    for n in 0..room {
        tx.send(n as u32).unwrap();
    }
    let mut future = tx.send_async(7);
    assert!(alarm.poll(&mut future).is_pending());
    thread::scope(|scope| {
        let sender = scope.spawn(move || block_on(future));
        let last = (0..=room).map(|_| rx.recv().unwrap()).last();
        assert_eq!(last, Some(7));
        assert_eq!(sender.join().unwrap(), Ok(()));
    });
}

pub(crate) fn tasks_and_threads_ping_pong<S: Made>(flavour: Flavour<S>) {
    let (mut ping, mut pinged) = flavour.channel::<u32>(1);
    let (mut pong, mut ponged) = flavour.channel::<u32>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            block_on(async move {
                while let Ok(n) = pinged.recv_async().await {
                    pong.send_async(n + 1).await.unwrap();
                }
            });
        });
        for n in 0..1500 {
            ping.send(n).unwrap();
            assert_eq!(ponged.recv(), Ok(n + 1));
        }
        drop(ping);
    });
}

/// Futures are dropped at random, on both sides, all the time; nothing is lost, doubled or left
/// asleep.
pub(crate) fn cancelled_all_the_time<S: Made + ManySenders + ManyReceivers>(flavour: Flavour<S>) {
    const SENDERS: u64 = 2;
    const EACH: u64 = 1500;
    let (tx, rx) = flavour.channel::<u64>(2);
    let seen = thread::scope(|scope| {
        for sender in 0..SENDERS {
            let mut tx = tx.clone();
            scope.spawn(move || {
                let alarm = Alarm::new();
                for n in 0..EACH {
                    let mut place = Some(element(sender, n));
                    for _ in 0..n % 4 {
                        let mut future = tx.send_from_async(&mut place);
                        if alarm.poll(&mut future) == Poll::Pending {
                            thread::yield_now();
                        }
                    }
                    block_on(tx.send_from_async(&mut place)).unwrap();
                }
            });
        }
        drop(tx);
        let threads = [0, 1].map(|form| {
            let mut rx = rx.clone();
            scope.spawn(move || {
                let (alarm, mut seen) = (Alarm::new(), Vec::new());
                loop {
                    for _ in 0..(seen.len() + form) % 4 {
                        if let Poll::Ready(Ok(n)) = alarm.poll(&mut rx.recv_async()) {
                            seen.push(n);
                        }
                        thread::yield_now();
                    }
                    match block_on(rx.recv_async()) {
                        Ok(n) => seen.push(n),
                        Err(_) => return seen,
                    }
                }
            })
        });
        drop(rx);
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    check_all(seen, SENDERS, EACH);
}

/// A task that waits on a channel that no other receiver drains is woken by room, whichever thread
/// makes it.
pub(crate) fn a_task_waits_beside_threads<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    thread::scope(|scope| {
        scope.spawn(move || {
            block_on(async {
                for n in 0..300 {
                    tx.send_async(n).await.unwrap();
                }
            });
        });
        await_parked(|| rx.counters().parked);
        assert!(rx.iter().eq(0..300));
    });
}

/// Polls until it is ready, which it is at once, and once more: that is an error of the caller that
/// polls.
fn done_once(future: impl Future) {
    let (alarm, mut future) = (Alarm::new(), Box::pin(future));
    assert!(alarm.poll(&mut future).is_ready());
    let again = catch_unwind(AssertUnwindSafe(|| drop(alarm.poll(&mut future))));
    let message = again.expect_err("it is done").downcast::<&str>().unwrap();
    assert!(
        message.contains("polled that is done") || message.contains("resumed after completion")
    );
}

/// Every future of a channel, with two elements at each side of the first poll.
pub(crate) fn a_future_that_is_done_is_not_polled_again<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(8);
    done_once(tx.send_async(1));
    done_once(tx.send_from_async(&mut Some(2)));
    done_once(tx.claim_async(1));
    tx.send_many(3..7).unwrap();
    done_once(rx.recv_async());
    done_once(rx.recv_many_async(&mut Vec::new(), 1));
    done_once(rx.recv_many_async(&mut Vec::new(), 0));
    done_once(Select::new().recv(&mut rx, drop).wait_async());
    done_once(SelectList::<()>::dynamic().wait_async());
    assert!(rx.try_iter().eq([4, 5, 6]), "nothing was taken twice");
    rx.close();
    done_once(tx.closed());
    done_once(tx.send_async(7));
    done_once(tx.claim_async(1));
    done_once(rx.recv_async());
    // An end, which is asked as often as one likes.
    let (reply, mut answer) = oneshot();
    reply.send(1).unwrap();
    let alarm = Alarm::new();
    assert_eq!(alarm.poll(&mut answer), Poll::Ready(Ok(1)));
    assert_eq!(alarm.poll(&mut answer), Poll::Ready(Err(RecvError)));
}
