//! Senders that are cloned while the receiver goes to sleep, or leaves.

use super::kept::Kept;
use super::{KeptEnds, begin, over_stores};
use crate::channel::{ManySenders, RecvError, SendError, TryRecvError};
use loom::thread;

fn a_clone_is_heard_after_its_original_is_gone<S: ManySenders>((tx, mut rx): KeptEnds<S>) {
    let sender = thread::spawn(move || {
        let mut clone = Kept::new(tx.clone());
        drop(tx);
        clone.send(7).unwrap();
        drop(clone);
    });
    begin();
    assert_eq!(rx.recv(), Ok(7));
    assert_eq!(rx.recv(), Err(RecvError));
    sender.join().unwrap();
}

over_stores! {
    a_clone_is_heard_after_its_original_is_gone;
    lanes, 1, ["lane_look_again", "publish", "dekker"];
    ticket, 2, ["publish", "dekker"];
    unbounded, 2, ["locked_close"];
}

fn a_clone_is_heard_beside_its_original<S: ManySenders>((mut tx, mut rx): KeptEnds<S>) {
    let sender = thread::spawn(move || {
        let mut clone = Kept::new(tx.clone());
        clone.send(1).unwrap();
        tx.send(2).unwrap();
        (tx, clone)
    });
    begin();
    assert_eq!(rx.recv().unwrap() + rx.recv().unwrap(), 3);
    drop(sender.join().unwrap());
}

over_stores! {
    a_clone_is_heard_beside_its_original;
    lanes, 2, ["publish", "observe", "dekker"];
    ticket, 2, ["publish", "observe", "dekker"];
    unbounded, 2, ["locked_room"];
}

/// A sender waits for room, until it gets the error that no receiver is left.
fn a_clone_made_while_the_receiver_leaves_hears_of_it<S: ManySenders>((tx, rx): KeptEnds<S>) {
    let sender = thread::spawn(move || {
        let mut clone = Kept::new(tx.clone());
        // The first may come before the receiver leaves.
        let is_disconnected = (0..2).any(|_| clone.send(1) == Err(SendError::Disconnected(1)));
        assert!(is_disconnected);
        (tx, clone)
    });
    begin();
    drop(rx);
    drop(sender.join().unwrap());
}

over_stores! {
    a_clone_made_while_the_receiver_leaves_hears_of_it;
    lanes, 2, ["lane_shut", "dekker"];
    ticket, 2, ["dekker"];
    unbounded, 2, ["locked_close"];
}

/// A sender leaves, and a weak one is upgraded: the element that it sends is received, if there is
/// one.
fn an_upgrade_comes_in_time_or_not_at_all<S: ManySenders>((tx, mut rx): KeptEnds<S>) {
    let weak = Kept::new(tx.downgrade());
    let leaver = thread::spawn(move || drop(tx));
    let upgraded = thread::spawn(move || {
        let mut again = weak.upgrade().map(Kept::new);
        let sent = again.as_mut().map(|tx| tx.send(7).is_ok());
        drop(again);
        (sent, weak)
    });
    begin();
    let got = rx.recv();
    leaver.join().unwrap();
    let (sent, weak) = upgraded.join().unwrap();
    assert_ne!(sent, Some(false), "each sender sends");
    let outcome = if sent.is_some() {
        Ok(7)
    } else {
        Err(RecvError)
    };
    assert_eq!(got, outcome);
    drop(weak);
}

over_stores! {
    an_upgrade_comes_in_time_or_not_at_all;
    lanes, 1, ["revived"];
    ticket, 2, ["revived"];
    unbounded, 2, ["revived"];
}

/// A receiver gets the error of the end only when the end is true, though a weak sender is upgraded
/// meanwhile.
fn the_end_is_no_end_while_one_is_upgraded<S: ManySenders>((tx, mut rx): KeptEnds<S>) {
    let weak = Kept::new(tx.downgrade());
    let leaver = thread::spawn(move || drop(tx));
    let upgraded = thread::spawn(move || (weak.upgrade().map(Kept::new), weak));
    begin();
    let is_over = rx.try_recv() == Err(TryRecvError::Disconnected);
    leaver.join().unwrap();
    let (again, weak) = upgraded.join().unwrap();
    assert!(again.is_none() || !is_over);
    drop((again, weak));
}

over_stores! {
    the_end_is_no_end_while_one_is_upgraded;
    lanes, 2, ["enter", "revived", "lane_left_first"];
    ticket, 2, ["revived"];
}
