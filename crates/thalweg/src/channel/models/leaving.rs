//! The last receiver goes while something is being sent: it is refused, or gone when both are done,
//! though the senders stay.

use super::{KeptEnds, begin, over_stores};
use crate::channel::models::kept::Kept;
use crate::channel::{ManySenders, Shape, TryRecvError};
use loom::thread;

/// All that the sender's store took was discarded, and nothing is in it.
fn check_gone<S: Shape>(tx: &crate::channel::Sender<u32, S>, sent: u64) {
    let counters = tx.counters();
    assert_eq!(
        (tx.len(), counters.discarded, counters.received),
        (0, sent, 0)
    );
}

fn what_is_sent_late_is_gone_at_once<S: Shape>((mut tx, rx): KeptEnds<S>) {
    let receiver = thread::spawn(move || drop(rx));
    begin();
    let sent = tx.send(7).is_ok();
    receiver.join().unwrap();
    check_gone(&tx, u64::from(sent));
}

over_stores! {
    what_is_sent_late_is_gone_at_once;
    ring, 3, ["shut", "light", "late_missed"];
    lanes, 3, ["shut", "light", "late_missed"];
    ticket, 3, ["shut", "light"];
    unbounded, 3, [];
}

fn a_claim_that_comes_late_is_gone_at_once<S: Shape>((mut tx, rx): KeptEnds<S>) {
    let receiver = thread::spawn(move || drop(rx));
    begin();
    let sent = tx.try_claim(1).map(|mut claim| {
        claim.push(7).unwrap();
        claim.commit()
    });
    receiver.join().unwrap();
    check_gone(&tx, sent.unwrap_or(0) as u64);
}

over_stores! {
    a_claim_that_comes_late_is_gone_at_once;
    ring, 3, ["shut", "late_missed"];
    lanes, 2, ["shut", "late_missed"];
    ticket, 2, ["shut"];
}

/// Checks what is received when the receiver has closed the channel and looks, and again when the
/// sender is done: all that was sent, except elements that come after the end. Those are discarded.
fn check_end<S: Shape>(
    rx: &mut crate::channel::Receiver<u32, S>,
    early: Result<u32, TryRecvError>,
    sent: bool,
) {
    let late = rx.try_recv();
    let is_over = early == Err(TryRecvError::Disconnected);
    assert!(!is_over || late == Err(TryRecvError::Disconnected));
    let counters = rx.counters();
    let (received, all) = (early.is_ok() || late.is_ok(), u64::from(sent));
    assert_eq!(
        (counters.sent, u64::from(received) + counters.discarded),
        (all, all)
    );
    assert_eq!(rx.len(), 0);
}

fn nothing_comes_after_the_end<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
    let sender = thread::spawn(move || (tx.send(7).is_ok(), tx));
    begin();
    rx.close();
    let early = rx.try_recv();
    let (sent, tx) = sender.join().unwrap();
    check_end(&mut rx, early, sent);
    drop(tx);
}

over_stores! {
    nothing_comes_after_the_end;
    ring, 3, ["shut", "light", "late_missed"];
    lanes, 3, ["shut", "light", "late_missed"];
    ticket, 3, [];
    unbounded, 3, [];
}

/// The receiver closes the channel and looks while a sender sends and leaves; another stays. An
/// element that was accepted is received, or discarded, though the lane is forgotten as soon as it
/// may be.
fn what_a_leaver_sent_is_there_after_the_close<S: ManySenders>((mut tx, mut rx): KeptEnds<S>) {
    let stays = Kept::new(tx.clone());
    let sender = thread::spawn(move || {
        let sent = tx.send(7).is_ok();
        drop(tx);
        sent
    });
    begin();
    rx.close();
    let early = rx.try_recv();
    let sent = sender.join().unwrap();
    check_end(&mut rx, early, sent);
    drop(stays);
}

over_stores! {
    what_a_leaver_sent_is_there_after_the_close;
    lanes, 3, ["left"];
    ticket, 3, [];
    unbounded, 3, [];
}

/// One of them may hide the element of the other.
fn two_that_come_late_are_gone_at_once<S: ManySenders>((mut tx, rx): KeptEnds<S>) {
    let mut other = Kept::new(tx.clone());
    let receiver = thread::spawn(move || drop(rx));
    let sender = thread::spawn(move || (u64::from(other.send(1).is_ok()), other));
    begin();
    let own = u64::from(tx.send(2).is_ok());
    receiver.join().unwrap();
    let (others, other) = sender.join().unwrap();
    let has_lanes = tx.end.is_own();
    let all = own + others;
    check_gone(&tx, if has_lanes { own } else { all });
    check_gone(&other, if has_lanes { others } else { all });
}

over_stores! {
    two_that_come_late_are_gone_at_once;
    lanes, 1, ["shut", "late_missed"];
    two_tickets, 2, ["shut"];
    unbounded, 1, [];
}

/// A weak end keeps the store, and no element.
fn a_weak_end_keeps_no_element<S: ManySenders>(
    (mut tx, rx): crate::channel::Ends<std::sync::Arc<()>, S>,
) {
    let weak = tx.downgrade();
    let element = std::sync::Arc::new(());
    let copy = std::sync::Arc::clone(&element);
    let sender = thread::spawn(move || drop(tx.send(copy)));
    drop(rx);
    sender.join().unwrap();
    assert_eq!(std::sync::Arc::strong_count(&element), 1, "kept");
    drop(weak);
}

fn weak_tickets() {
    let ends = crate::channel::Builder::new(2).mpsc();
    a_weak_end_keeps_no_element(ends.expect("a valid channel"));
}

#[test]
fn a_weak_end_keeps_nothing() {
    loom::model(weak_tickets);
    assert!(crate::ring::sync::fault::caught("all_left", weak_tickets));
}
