//! Sending, receiving, and the end of either side.

use super::{KeptEnds, begin, over_stores};
use crate::channel::models::kept::Kept;
use crate::channel::{ManySenders, RecvError, SendError, SendTimeoutError, Shape};
use loom::thread;
use std::time::Instant;

/// Through room for one, so that both sides wait for each other.
fn all_arrives_in_order<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
    let sender = thread::spawn(move || {
        tx.send(1).unwrap();
        tx.send(2).unwrap();
        tx
    });
    begin();
    assert_eq!(rx.recv(), Ok(1));
    assert_eq!(rx.recv(), Ok(2));
    drop(sender.join().unwrap());
}

over_stores! {
    all_arrives_in_order;
    ring, 2, ["publish", "observe", "release", "reclaim", "dekker"];
    lanes, 2, ["publish", "observe", "release", "reclaim", "dekker"];
    ticket, 2, ["publish", "observe", "release", "reclaim", "dekker"];
    unbounded, 2, ["locked_room"];
}

fn the_last_sender_wakes_the_receiver<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
    let sender = thread::spawn(move || {
        tx.send(7).unwrap();
        drop(tx);
    });
    begin();
    assert_eq!(rx.recv(), Ok(7));
    assert_eq!(rx.recv(), Err(RecvError));
    sender.join().unwrap();
}

over_stores! {
    the_last_sender_wakes_the_receiver;
    ring, 3, ["publish", "observe", "dekker"];
    lanes, 2, ["publish", "observe", "dekker"];
    ticket, 3, ["publish", "observe", "dekker"];
    unbounded, 3, ["locked_close"];
}

fn the_later_of_two_senders_wakes_the_receiver<S: ManySenders>((tx, mut rx): KeptEnds<S>) {
    let other = Kept::new(tx.clone());
    let one = thread::spawn(move || drop(tx));
    let two = thread::spawn(move || drop(other));
    begin();
    assert_eq!(rx.recv(), Err(RecvError));
    one.join().unwrap();
    two.join().unwrap();
}

over_stores! {
    the_later_of_two_senders_wakes_the_receiver;
    lanes, 1, ["dekker"];
    ticket, 2, ["dekker", "light", "count_torn"];
    unbounded, 2, ["count_torn"];
}

fn a_sender_gets_its_element_back_from_a_receiver_that_goes<S: Shape>((mut tx, rx): KeptEnds<S>) {
    tx.send(1).unwrap();
    let sender = thread::spawn(move || {
        assert_eq!(tx.send(2), Err(SendError::Disconnected(2)));
        tx
    });
    begin();
    drop(rx);
    drop(sender.join().unwrap());
}

over_stores! {
    a_sender_gets_its_element_back_from_a_receiver_that_goes;
    ring, 3, ["dekker"];
    lanes, 2, ["dekker"];
    ticket, 3, ["dekker", "light"];
    unbounded, 3, ["locked_close"];
}

fn a_sender_gets_its_element_back_when_the_channel_is_closed<S: Shape>(
    (mut tx, mut rx): KeptEnds<S>,
) {
    tx.send(1).unwrap();
    let sender = thread::spawn(move || {
        assert_eq!(tx.send(2), Err(SendError::Disconnected(2)));
        tx
    });
    begin();
    rx.close();
    drop(sender.join().unwrap());
    assert_eq!(rx.recv(), Ok(1));
    assert_eq!(rx.recv(), Err(RecvError));
}

over_stores! {
    a_sender_gets_its_element_back_when_the_channel_is_closed;
    ring, 3, ["dekker", "light"];
    lanes, 3, ["dekker", "light"];
    ticket, 3, ["dekker", "light"];
    unbounded, 3, ["locked_close"];
}

/// In a model a deadline may be reached at any moment.
fn a_receiver_that_gives_up_leaves_the_element<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
    let sender = thread::spawn(move || {
        tx.send(7).unwrap();
        tx
    });
    begin();
    let got = rx.recv_deadline(Instant::now()).ok();
    let tx = sender.join().unwrap();
    let left = rx.try_recv().ok();
    assert!(matches!((got, left), (Some(7), None) | (None, Some(7))));
    drop(tx);
}

over_stores! {
    a_receiver_that_gives_up_leaves_the_element;
    ring, 3, ["publish", "observe"];
    lanes, 3, ["publish", "observe"];
    ticket, 3, ["publish", "observe"];
    unbounded, 3, [];
}

fn a_sender_that_gives_up_has_its_element<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
    tx.send(1).unwrap();
    let receiver = thread::spawn(move || {
        assert_eq!(rx.recv(), Ok(1));
        rx
    });
    begin();
    let sent = tx.send_deadline(2, Instant::now());
    let mut rx = receiver.join().unwrap();
    match sent {
        Ok(()) => assert_eq!(rx.try_recv(), Ok(2)),
        Err(error) => {
            assert_eq!(error, SendTimeoutError::Timeout(2));
            assert!(rx.try_recv().is_err());
        }
    }
}

over_stores! {
    a_sender_that_gives_up_has_its_element;
    ring, 3, ["release", "reclaim"];
    lanes, 3, ["release", "reclaim"];
    ticket, 3, ["release", "reclaim"];
    unbounded, 3, [];
}
