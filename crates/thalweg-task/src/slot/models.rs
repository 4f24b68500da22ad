//! loom models of a shared slot: between two threads no value and no wake-up is lost, and what was
//! done before a send is seen after its receive. A lost wake-up is a deadlock, which loom reports.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::cell::UnsafeCell;
use loom::thread::{self, Thread};

use super::{RecvError, slot, slot_many};
use crate::Shared;
use crate::sync::fault::caught;

/// Unparks the thread that waits. loom's own `block_on` does not outlive a model that fails.
struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let (waker, mut future) = (
        Waker::from(Arc::new(Unparks(thread::current()))),
        pin!(future),
    );
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A value whose making is watched, and its use.
struct Made(Arc<UnsafeCell<u32>>);

// SAFETY: what is tested; loom checks each access.
#[allow(unsafe_code)] // loom's cell is the means to see an order
unsafe impl Send for Made {}

impl Made {
    fn new(number: u32) -> Self {
        let cell = Arc::new(UnsafeCell::new(0));
        // SAFETY: loom checks that no other thread is there.
        #[allow(unsafe_code)] // as above
        cell.with_mut(|word| unsafe { *word = number });
        Self(cell)
    }

    fn number(&self) -> u32 {
        // SAFETY: as above.
        #[allow(unsafe_code)] // as above
        self.0.with(|word| unsafe { *word })
    }
}

/// Two values, each sent when there is room, then the end.
fn values_cross() {
    let (mut tx, mut rx) = slot::<Made, Shared>();
    let sender = thread::spawn(move || {
        for number in 1..=2 {
            block_on(tx.wait_empty()).expect("the receiver is there");
            assert!(tx.send(Made::new(number)).is_ok(), "there is room");
        }
        tx
    });
    let got = block_on(rx.recv()).map(|made| made.number());
    assert_eq!(got, Ok(1));
    assert_eq!(block_on(rx.recv()).map(|made| made.number()), Ok(2));
    drop(sender.join().expect("it ends"));
    assert_eq!(
        block_on(rx.recv()).map(|made| made.number()),
        Err(RecvError::Closed)
    );
}

/// A sender that cancels while its receiver waits, or before.
fn the_end_is_reported() {
    let (tx, mut rx) = slot::<Made, Shared>();
    let sender = thread::spawn(move || tx.cancel());
    let outcome = block_on(rx.recv()).map(|made| made.number());
    assert_eq!(outcome, Err(RecvError::Cancelled));
    sender.join().expect("it ends");
}

/// Two receivers wait for a value, and the first gives up, notified or not: the second gets it.
fn notified_and_gone() {
    let (tx, rx) = slot_many::<Made, Shared>();
    let (mut one, mut other) = (rx.clone(), rx);
    let mut receive = Box::pin(one.recv());
    let mut context = Context::from_waker(Waker::noop());
    assert!(receive.as_mut().poll(&mut context).is_pending());
    let second = thread::spawn(move || {
        let got = block_on(other.recv()).map(|made| made.number());
        assert_eq!(got, Ok(1));
        other
    });
    let sender = thread::spawn(move || {
        assert!(tx.send(Made::new(1)).is_ok(), "there is room");
        tx
    });
    drop(receive);
    drop((
        second.join().expect("it ends"),
        sender.join().expect("it ends"),
        one,
    ));
}

macro_rules! models {
    ($($name:ident, faults $($fault:literal)*;)+) => {$(
        mod $name {
            #[test]
            fn holds() {
                loom::model(super::$name);
            }

            #[test]
            fn notices_faults() {
                $(assert!(super::caught($fault, super::$name), $fault);)*
            }
        }
    )+};
}

models! {
    values_cross, faults "slot_look_again" "slot_vacancy";
    the_end_is_reported, faults "slot_end";
    notified_and_gone, faults "slot_pass_on";
}
