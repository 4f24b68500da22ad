//! Either side leaves, in every state.

use crate::channel::crowds::await_parked;
use crate::channel::flavour::{Flavour, Made};
use std::thread;
use std::time::{Duration, Instant};
use thalweg::channel::{
    ClaimError, RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError,
    TrySendError,
};
use thalweg_testkit::wakers::block_on;

const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn without_receivers_every_send_gives_back<S: Made>(flavour: Flavour<S>) {
    for left in [0, 1, 3] {
        let (mut tx, rx) = flavour.channel::<u8>(3);
        (0..left).for_each(|n| tx.send(n).unwrap());
        assert!(!tx.is_closed());
        drop(rx);
        assert!(tx.is_closed());
        assert_eq!(tx.send(7), Err(SendError::Disconnected(7)));
        assert_eq!(tx.try_send(7), Err(TrySendError::Disconnected(7)));
        let deadline = Instant::now() + LONG;
        assert_eq!(
            tx.send_timeout(7, LONG),
            Err(SendTimeoutError::Disconnected(7))
        );
        assert_eq!(
            tx.send_deadline(7, deadline),
            Err(SendTimeoutError::Disconnected(7))
        );
        assert_eq!(block_on(tx.send_async(7)), Err(SendError::Disconnected(7)));
        let mut values = 7..;
        let error = tx.send_many(&mut values).unwrap_err();
        assert_eq!((error.sent, error.error), (0, SendError::Disconnected(7)));
        assert_eq!(values.next(), Some(8));
        let error = tx.try_send_many(&mut values).unwrap_err();
        assert_eq!((error.sent, error.error), (0, SendError::Disconnected(9)));
        assert_eq!(values.next(), Some(10));
        if flavour.has_claims {
            assert_eq!(tx.claim(1).unwrap_err(), ClaimError::Disconnected);
            assert_eq!(tx.try_claim(3).unwrap_err(), ClaimError::Disconnected);
        }
    }
}

pub(crate) fn without_senders_every_receive_gets_the_end<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u8>(3);
    tx.send(1).unwrap();
    assert!(!rx.is_closed());
    drop(tx);
    assert!(rx.is_closed());
    assert_eq!(rx.recv(), Ok(1));
    // Again and again.
    for _ in 0..2 {
        assert_eq!(rx.recv(), Err(RecvError));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        let deadline = Instant::now() + LONG;
        assert_eq!(rx.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
        assert_eq!(
            rx.recv_deadline(deadline),
            Err(RecvTimeoutError::Disconnected)
        );
        assert_eq!(block_on(rx.recv_async()), Err(RecvError));
        let mut out = vec![];
        assert_eq!(rx.recv_many(&mut out, 5), Err(RecvError));
        assert_eq!(
            rx.try_recv_many(&mut out, 5),
            Err(TryRecvError::Disconnected)
        );
        assert_eq!(rx.recv_many(&mut out, 0), Ok(0));
        assert_eq!(
            rx.try_recv_each(5, |_| panic!("there is none")),
            Err(TryRecvError::Disconnected)
        );
        assert_eq!((rx.iter().next(), rx.try_iter().next()), (None, None));
        assert_eq!(rx.batch(5).count(), 0);
        assert_eq!((rx.len(), rx.is_closed()), (0, true));
    }
}

pub(crate) fn elements_left_are_delivered<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u8>(9);
    tx.send_many(0..9).unwrap();
    drop(tx);
    assert_eq!((rx.len(), rx.is_closed()), (9, true));
    assert_eq!(rx.recv(), Ok(0));
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.recv_timeout(Duration::ZERO), Ok(2));
    assert_eq!(block_on(rx.recv_async()), Ok(3));
    let mut out = vec![];
    assert_eq!(rx.try_recv_many(&mut out, 2), Ok(2));
    assert_eq!(rx.try_recv_each(1, |n| out.push(n)), Ok(1));
    assert_eq!(rx.batch(1).next(), Some(7));
    assert_eq!(rx.iter().collect::<Vec<_>>(), [8]);
    assert_eq!(out, [4, 5, 6]);
}

/// Every form of waiting for an element; each returns whether there was one.
fn receives<S: Made>(rx: &mut thalweg::channel::Receiver<u8, S>, form: usize) -> bool {
    match form {
        0 => rx.recv().is_ok(),
        1 => rx.recv_timeout(LONG).is_ok(),
        2 => rx.recv_many(&mut Vec::new(), 3).is_ok(),
        3 => rx.iter().next().is_some(),
        4 => block_on(rx.recv_async()).is_ok(),
        other => unreachable!("there is no form {other}"),
    }
}

/// Every form of waiting for room; each returns whether the element was sent.
fn sends<S: Made>(
    flavour: Flavour<S>,
    tx: &mut thalweg::channel::Sender<u8, S>,
    form: usize,
) -> bool {
    match form {
        0 => tx.send(1).is_ok(),
        1 => tx.send_timeout(1, LONG).is_ok(),
        2 | 3 => tx.send_many([1]).is_ok(),
        4 => block_on(tx.send_async(1)).is_ok(),
        5 if flavour.has_claims => tx.claim(1).is_ok(),
        5 => tx.send(1).is_ok(),
        other => unreachable!("there is no form {other}"),
    }
}

pub(crate) fn the_last_sender_wakes_the_receiver<S: Made>(flavour: Flavour<S>) {
    for form in 0..5 {
        let (tx, mut rx) = flavour.channel::<u8>(2);
        thread::scope(|scope| {
            let receiver = scope.spawn(move || receives(&mut rx, form));
            await_parked(|| tx.counters().parked);
            drop(tx);
            assert!(!receiver.join().unwrap(), "form {form}");
        });
    }
}

pub(crate) fn an_element_wakes_the_receiver<S: Made>(flavour: Flavour<S>) {
    for form in 0..5 {
        let (mut tx, mut rx) = flavour.channel::<u8>(2);
        thread::scope(|scope| {
            let receiver = scope.spawn(move || receives(&mut rx, form));
            await_parked(|| tx.counters().parked);
            tx.send(1).unwrap();
            assert!(receiver.join().unwrap(), "form {form}");
        });
    }
}

pub(crate) fn the_last_receiver_wakes_the_sender<S: Made>(flavour: Flavour<S>) {
    for form in 0..6 {
        let (mut tx, rx) = flavour.channel::<u8>(2);
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                while tx.try_send(0).is_ok() {}
                sends(flavour, &mut tx, form)
            });
            await_parked(|| rx.counters().parked);
            drop(rx);
            assert!(!sender.join().unwrap(), "form {form}");
        });
    }
}

pub(crate) fn room_wakes_the_sender<S: Made>(flavour: Flavour<S>) {
    for form in 0..6 {
        let (mut tx, mut rx) = flavour.channel::<u8>(2);
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                while tx.try_send(0).is_ok() {}
                sends(flavour, &mut tx, form)
            });
            await_parked(|| rx.counters().parked);
            rx.recv().unwrap();
            assert!(sender.join().unwrap(), "form {form}");
            drop(rx);
        });
    }
}

pub(crate) fn close_ends_sending_and_keeps_what_is_there<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u8>(3);
    tx.send_many([1, 2]).unwrap();
    rx.close();
    assert_eq!((tx.is_closed(), rx.is_closed(), rx.len()), (true, true, 2));
    assert_eq!(tx.send(3), Err(SendError::Disconnected(3)));
    assert_eq!(tx.try_send(3), Err(TrySendError::Disconnected(3)));
    assert_eq!(rx.recv(), Ok(1));
    rx.close();
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(rx.recv(), Err(RecvError));
    drop(tx);
    assert_eq!(rx.recv(), Err(RecvError));
}

pub(crate) fn close_wakes_the_sender<S: Made>(flavour: Flavour<S>) {
    for form in 0..6 {
        let (mut tx, mut rx) = flavour.channel::<u8>(2);
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                while tx.try_send(0).is_ok() {}
                sends(flavour, &mut tx, form)
            });
            await_parked(|| rx.counters().parked);
            rx.close();
            assert!(!sender.join().unwrap(), "form {form}");
            let left = rx.capacity();
            assert_eq!(rx.iter().count(), left);
        });
    }
}

/// An element whose send succeeded comes out, also when the channel is closed at that moment.
pub(crate) fn close_loses_nothing_that_was_sent<S: Made>(flavour: Flavour<S>) {
    for round in 0..300_usize {
        let (mut tx, mut rx) = flavour.channel::<usize>(8);
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                let mut sent = 0;
                while tx.send(sent).is_ok() {
                    sent += 1;
                }
                sent
            });
            let mut received = rx.iter().take(round % 20).count();
            rx.close();
            received += rx.iter().count();
            let sent = sender.join().unwrap();
            // A send that was under way may have come after the look above. Behind the end that was
            // reported it is counted as discarded, and nothing comes.
            received += rx.try_iter().count();
            let discarded = rx.counters().discarded as usize;
            assert_eq!(received + discarded, sent, "round {round}");
        });
    }
}
