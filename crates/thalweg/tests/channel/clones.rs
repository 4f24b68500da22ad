//! Endpoints that come and go.

use crate::channel::crowds::{await_parked, check_all, element};
use crate::channel::flavour::{Flavour, Made};
use std::thread;
use thalweg::channel::{ManyReceivers, ManySenders, RecvError, SendError, TryRecvError};

pub(crate) fn a_clone_sends_and_keeps_the_channel_open<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u32>(4);
    let mut clone = tx.clone();
    // Before anything was sent.
    drop(tx);
    assert!(!rx.is_closed());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let mut second = clone.clone();
    clone.send(1).unwrap();
    drop(clone);
    second.send(2).unwrap();
    let mut got = [rx.recv().unwrap(), rx.recv().unwrap()];
    got.sort_unstable();
    assert_eq!(got, [1, 2]);
    assert!(!rx.is_closed());
    drop(second);
    assert!(rx.is_closed());
    assert_eq!(rx.recv(), Err(RecvError));
}

/// The receiver sees a new sender's elements and room before it has taken anything from it.
pub(crate) fn lengths_count_every_sender<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    let mut clones = [tx.clone(), tx.clone()];
    assert_eq!((tx.capacity(), rx.capacity()), (4, 4));
    assert!(rx.is_empty());
    clones[0].send(1).unwrap();
    clones[1].send(2).unwrap();
    assert_eq!((rx.len(), rx.is_empty()), (2, false));
    tx.send(3).unwrap();
    assert_eq!(rx.len(), 3);
    assert_eq!(tx.len(), 3);
    assert_eq!(rx.counters().sent, 3);
    assert_eq!(rx.try_iter().sum::<u32>(), 6);
    assert_eq!((rx.len(), tx.len(), rx.counters().received), (0, 0, 3));
    for clone in &mut clones {
        while clone.try_send(1).is_ok() {}
    }
    while tx.try_send(1).is_ok() {}
    assert_eq!(rx.len(), 4);
    assert_eq!(rx.counters().refused, 3);
}

/// A busy sender does not hold back a new one.
pub(crate) fn a_new_sender_is_heard_beside_a_busy_one<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (mut busy, mut rx) = flavour.channel::<u32>(4);
    for _ in 0..3 {
        busy.send(0).unwrap();
    }
    rx.recv().unwrap();
    let mut new = busy.clone();
    new.send(1).unwrap();
    for _ in 0..200 {
        if rx.recv() == Ok(1) {
            return;
        }
        busy.send(0).unwrap();
    }
    panic!("the new sender's element does not come out");
}

/// Each sender is made by the one before, which then goes: there is always one.
pub(crate) fn senders_hand_over_while_the_receiver_waits<S: Made + ManySenders>(
    flavour: Flavour<S>,
) {
    const CHAIN: u64 = 3000;
    let (mut tx, mut rx) = flavour.channel::<u64>(2);
    thread::scope(|scope| {
        let receiver = scope.spawn(move || rx.iter().collect::<Vec<_>>());
        await_parked(|| tx.counters().parked);
        for n in 0..CHAIN {
            let next = tx.clone();
            if n % 3 == 0 {
                tx.send(n).unwrap();
            }
            tx = next;
        }
        drop(tx);
        let mut seen = receiver.join().unwrap();
        // They are of different senders, so in any order.
        seen.sort_unstable();
        assert!(seen.into_iter().eq((0..CHAIN).step_by(3)));
    });
}

/// Senders that go at the same time: the receiver always gets the end.
pub(crate) fn the_last_of_several_senders_ends_the_wait<S: Made + ManySenders>(
    flavour: Flavour<S>,
) {
    for round in 0..300 {
        let (tx, mut rx) = flavour.channel::<u64>(2);
        thread::scope(|scope| {
            let others = [tx.clone(), tx.clone()];
            for mut other in others {
                scope.spawn(move || {
                    if round % 2 == 0 {
                        other.send(1).unwrap();
                    }
                });
            }
            drop(tx);
            assert_eq!(rx.iter().count(), if round % 2 == 0 { 2 } else { 0 });
        });
    }
}

pub(crate) fn clones_of_a_closed_channel_are_closed<S: Made + ManySenders>(flavour: Flavour<S>) {
    for receiver_stays in [true, false] {
        let (tx, mut rx) = flavour.channel::<u32>(2);
        let mut before = tx.clone();
        rx.close();
        let stays = receiver_stays.then_some(rx);
        let mut after = tx.clone();
        assert!(before.is_closed() && after.is_closed() && tx.is_closed());
        assert_eq!(before.send(1), Err(SendError::Disconnected(1)));
        assert_eq!(after.send(2), Err(SendError::Disconnected(2)));
        if let Some(mut rx) = stays {
            assert_eq!(rx.recv(), Err(RecvError));
        }
    }
}

pub(crate) fn the_last_receiver_wakes_every_sender<S: Made + ManySenders>(flavour: Flavour<S>) {
    for by_close in [false, true] {
        let (tx, mut rx) = flavour.channel::<u32>(1);
        thread::scope(|scope| {
            let threads = [(); 4].map(|()| {
                let mut tx = tx.clone();
                scope.spawn(move || while tx.send(1).is_ok() {})
            });
            crate::channel::crowds::await_parked_times(4, || rx.counters().parked);
            match by_close {
                true => rx.close(),
                false => drop(rx),
            }
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        assert!(tx.is_closed());
    }
}

pub(crate) fn each_element_goes_to_one_receiver<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    let (mut tx, mut first) = flavour.channel::<u32>(4);
    let mut second = first.clone();
    tx.send_many(0..3).unwrap();
    assert_eq!((first.len(), second.len()), (3, 3));
    assert_eq!(
        (first.recv(), second.recv(), first.recv()),
        (Ok(0), Ok(1), Ok(2))
    );
    assert_eq!(second.try_recv(), Err(TryRecvError::Empty));
    drop(first);
    assert!(!tx.is_closed(), "one is left");
    tx.send(3).unwrap();
    assert_eq!(second.recv(), Ok(3));
    let third = second.clone();
    drop(second);
    tx.send(4).unwrap();
    drop(third);
    assert_eq!(tx.send(5), Err(SendError::Disconnected(5)));
}

pub(crate) fn close_by_one_receiver_ends_all<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    let (tx, mut rx) = flavour.channel::<u32>(4);
    thread::scope(|scope| {
        let threads = [(); 3].map(|()| {
            let mut rx = rx.clone();
            scope.spawn(move || rx.recv())
        });
        crate::channel::crowds::await_parked_times(3, || tx.counters().parked);
        rx.close();
        assert_eq!(
            threads.map(|thread| thread.join().unwrap()),
            [Err(RecvError); 3]
        );
    });
}

/// As many elements as receivers that wait: each gets one.
pub(crate) fn every_waiting_receiver_is_woken<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    for in_one_go in [true, false] {
        let (mut tx, rx) = flavour.channel::<u32>(4);
        thread::scope(|scope| {
            let threads = [(); 4].map(|()| {
                let mut rx = rx.clone();
                scope.spawn(move || rx.recv().unwrap())
            });
            crate::channel::crowds::await_parked_times(4, || tx.counters().parked);
            match in_one_go {
                true => tx.send_many(0..4).unwrap(),
                false => (0..4).for_each(|n| tx.send(n).unwrap()),
            }
            let mut got = threads.map(|thread| thread.join().unwrap());
            got.sort_unstable();
            assert_eq!(got, [0, 1, 2, 3]);
        });
    }
}

/// Senders and receivers come and go in the middle of it all.
pub(crate) fn ends_come_and_go<S: Made + ManySenders + ManyReceivers>(flavour: Flavour<S>) {
    const EACH: u64 = 20;
    const SENDERS: u64 = 60;
    let (tx, rx) = flavour.channel::<u64>(3);
    let seen = thread::scope(|scope| {
        for group in 0..3 {
            let mut tx = tx.clone();
            scope.spawn(move || {
                for sender in (group..SENDERS).step_by(3) {
                    (0..EACH).for_each(|n| tx.send(element(sender, n)).unwrap());
                    tx = tx.clone();
                }
            });
        }
        drop(tx);
        let threads = [(); 3].map(|()| {
            let mut rx = rx.clone();
            scope.spawn(move || {
                let mut seen = Vec::new();
                loop {
                    seen.extend(rx.recv());
                    seen.extend(rx.try_iter().take(5));
                    let Ok(value) = rx.recv() else {
                        return seen;
                    };
                    seen.push(value);
                    rx = rx.clone();
                }
            })
        });
        drop(rx);
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    check_all(seen, SENDERS, EACH);
}
