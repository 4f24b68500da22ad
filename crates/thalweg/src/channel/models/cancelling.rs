//! Tasks that wait, and futures that are dropped before they are done.

use super::kept::Kept;
use super::{KeptEnds, begin, over_stores};
use crate::channel::{ManyReceivers, Shape};
use loom::thread;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a task on this thread of the model.
pub(crate) fn run<F: Future + Unpin>(task: F) -> F::Output {
    let mut task = Kept::new(task);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        let outcome = Pin::new(&mut *task).poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(outcome) = outcome {
            return outcome;
        }
        thread::park();
    }
}

fn poll_once<F: Future + Unpin>(task: &mut F) -> Poll<F::Output> {
    Pin::new(task).poll(&mut Context::from_waker(Waker::noop()))
}

fn tasks_wait_for_each_other<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
    let sender = thread::spawn(move || {
        run(tx.send_async(1)).unwrap();
        run(tx.send_async(2)).unwrap();
        tx
    });
    begin();
    assert_eq!(run(rx.recv_async()), Ok(1));
    assert_eq!(run(rx.recv_async()), Ok(2));
    drop(sender.join().unwrap());
}

over_stores! {
    tasks_wait_for_each_other;
    ring, 2, ["publish", "observe", "release", "reclaim", "dekker", "future_look_again"];
    lanes, 2, ["publish", "observe", "release", "reclaim", "dekker", "future_look_again"];
    ticket, 2, ["publish", "observe", "release", "reclaim", "dekker", "future_look_again"];
    unbounded, 2, ["future_look_again", "locked_room"];
}

fn a_dropped_future_passes_its_wake_up_on<S: ManyReceivers>((mut tx, mut rx): KeptEnds<S>) {
    let mut other = Kept::new(rx.clone());
    let mut listed = Kept::new(rx.recv_async());
    assert_eq!(poll_once(&mut *listed), Poll::Pending);
    let sender = thread::spawn(move || {
        tx.send(7).unwrap();
        tx
    });
    // A thread would be woken in any case.
    let receiver = thread::spawn(move || {
        assert_eq!(run(other.recv_async()), Ok(7));
        other
    });
    begin();
    drop(listed);
    drop((receiver.join().unwrap(), sender.join().unwrap()));
}

over_stores! {
    a_dropped_future_passes_its_wake_up_on;
    ticket, 2, ["dekker", "future_pass_on"];
    unbounded, 2, ["future_pass_on"];
}

fn a_dropped_future_loses_no_element<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
    let sender = thread::spawn(move || {
        tx.send(7).unwrap();
        tx
    });
    begin();
    let early = {
        let mut future = Kept::new(rx.recv_async());
        match poll_once(&mut *future) {
            Poll::Pending => poll_once(&mut *future),
            ready => ready,
        }
    };
    match early {
        Poll::Ready(got) => assert_eq!(got, Ok(7)),
        Poll::Pending => assert_eq!(rx.recv(), Ok(7)),
    }
    drop(sender.join().unwrap());
}

over_stores! {
    a_dropped_future_loses_no_element;
    ring, 3, ["publish", "observe", "dekker"];
    lanes, 3, ["publish", "observe", "dekker"];
    ticket, 3, ["publish", "observe", "dekker"];
    unbounded, 3, [];
}

/// A sending task that is dropped while the receiver makes room, beside a task that waits for room
/// as well.
fn a_dropped_sending_future_passes_its_wake_up_on<S: crate::channel::ManySenders>(
    (mut tx, mut rx): KeptEnds<S>,
) {
    tx.send(1).unwrap();
    let mut other = Kept::new(tx.clone());
    let mut value = Some(2);
    let mut listed = Kept::new(tx.send_from_async(&mut value));
    assert_eq!(poll_once(&mut *listed), Poll::Pending);
    let sender = thread::spawn(move || {
        run(other.send_async(3)).unwrap();
        other
    });
    let receiver = thread::spawn(move || {
        assert_eq!(rx.recv(), Ok(1));
        rx
    });
    begin();
    drop(listed);
    drop((sender.join().unwrap(), receiver.join().unwrap()));
    assert_eq!(value, Some(2));
}

over_stores! {
    a_dropped_sending_future_passes_its_wake_up_on;
    ticket, 2, ["dekker", "future_pass_on"];
    unbounded, 2, ["future_pass_on"];
}

/// A task that waits for room, and is given up or not, beside a task that waits for room.
fn a_dropped_claim_passes_its_wake_up_on<S: crate::channel::ManySenders>(
    (mut tx, mut rx): KeptEnds<S>,
) {
    tx.send(1).unwrap();
    let mut other = Kept::new(tx.clone());
    let mut listed = Kept::new(Box::pin(tx.claim_async(1)));
    assert!(poll_once(&mut *listed).is_pending());
    let sender = thread::spawn(move || {
        run(other.send_async(3)).unwrap();
        other
    });
    let receiver = thread::spawn(move || {
        assert_eq!(rx.recv(), Ok(1));
        rx
    });
    begin();
    drop(listed);
    drop((sender.join().unwrap(), receiver.join().unwrap()));
}

over_stores! {
    a_dropped_claim_passes_its_wake_up_on;
    ticket, 2, ["dekker", "future_pass_on"];
}

fn a_claim_in_a_task_waits<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
    tx.send(1).unwrap();
    let sender = thread::spawn(move || {
        let mut claim = Kept::new(run(Box::pin(tx.claim_async(1))).unwrap());
        claim.push(2).unwrap();
        claim.take().commit();
        tx
    });
    begin();
    assert_eq!((rx.recv(), rx.recv()), (Ok(1), Ok(2)));
    drop(sender.join().unwrap());
}

over_stores! {
    a_claim_in_a_task_waits;
    ring, 2, ["dekker", "future_look_again"];
    lanes, 2, ["dekker", "future_look_again"];
    ticket, 2, ["reclaim", "dekker", "future_look_again"];
}

fn closed_is_awaited<S: Shape>((tx, rx): KeptEnds<S>) {
    let receiver = thread::spawn(move || drop(rx));
    begin();
    run(tx.closed());
    receiver.join().unwrap();
}

over_stores! {
    closed_is_awaited;
    ring, 3, ["closed_unnotified", "future_look_again"];
    ticket, 2, ["closed_unnotified", "future_look_again"];
}
