//! loom models of the oneshot, each with what it must catch.

use std::task::{Wake, Waker};

use loom::thread;

use super::{Taker, oneshot};
use crate::ring::PopError;
use crate::ring::sync::{Arc, fault, models};

models! { fault::check;
    a_giver_that_goes_wakes_who_waits: goes, ["exchange", "oneshot_look_again", "oneshot_kept"];
    both_go_at_once: both_go, ["leave", "oneshot_kept"];
    a_wait_is_given_up: gives_up, ["exchange", "leave", "oneshot_taken_anyway", "oneshot_kept"];
    a_giver_learns_that_it_is_closed: closes, ["exchange", "oneshot_look_again", "oneshot_kept"];
    a_close_beside_a_send_decides: closes_beside_a_send, ["oneshot_closed"];
    a_wait_lists_another_waker: lists_again, ["exchange", "oneshot_listed_anyway"];
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// Lists this thread by `list` until that says that there is something.
fn park(mut list: impl FnMut(Waker) -> bool) {
    while list(Waker::from(std::sync::Arc::new(Unpark(thread::current())))) {
        thread::park();
    }
}

fn wait<T>(taker: &mut Taker<T>) -> Result<T, PopError> {
    park(|waker| !taker.is_closed() && taker.list(waker));
    taker.try_take()
}

/// A receiver that waits gets the element that is sent, and the memory is freed once.
fn waits() {
    let (giver, mut taker) = oneshot();
    let thread = thread::spawn(move || giver.send(Arc::new(7)).unwrap());
    assert_eq!(wait(&mut taker).map(|value| *value), Ok(7));
    drop(taker);
    thread.join().unwrap();
}

#[test]
fn an_element_reaches_who_waits() {
    let faults = [
        "publish",
        "observe",
        "exchange",
        "oneshot_look_again",
        "oneshot_kept",
    ];
    fault::check(waits, &faults);
}

/// A giver that goes wakes a taker that waits.
fn goes() {
    let (giver, mut taker) = oneshot::<Arc<u8>>();
    let thread = thread::spawn(move || drop(giver));
    assert_eq!(wait(&mut taker).err(), Some(PopError::Closed));
    drop(taker);
    thread.join().unwrap();
}

/// The taker goes while the giver sends: the element is one's or the other's, and is dropped once.
fn both_go() {
    let (giver, taker) = oneshot();
    let thread = thread::spawn(move || drop(taker));
    drop(giver.send(Arc::new(7)));
    thread.join().unwrap();
}

/// A wait that is given up while the element comes leaves its waker to one of the two.
fn gives_up() {
    let (giver, mut taker) = oneshot();
    assert!(taker.list(Waker::noop().clone()));
    let thread = thread::spawn(move || drop(giver.send(Arc::new(7))));
    taker.unlist();
    if let Ok(value) = taker.try_take() {
        assert_eq!(*value, 7);
    } else if taker.list(Waker::noop().clone()) {
        taker.unlist();
    }
    drop(taker);
    thread.join().unwrap();
}

/// Closed and not sent is never sent; a giver that waits for it is woken.
fn closes() {
    let (mut giver, mut taker) = oneshot::<Arc<u8>>();
    let thread = thread::spawn(move || {
        park(|waker| !giver.is_closed() && giver.list(waker));
        assert!(giver.send(Arc::new(7)).is_err());
    });
    taker.close();
    assert_eq!(taker.try_take().err(), Some(PopError::Closed));
    drop(taker);
    thread.join().unwrap();
}

/// A close beside a send: the taker has it, or the giver has it back.
fn closes_beside_a_send() {
    let (giver, mut taker) = oneshot();
    let thread = thread::spawn(move || giver.send(7).is_ok());
    taker.close();
    let taken = taker.try_take().ok();
    let is_sent = thread.join().unwrap();
    assert_eq!(taken, is_sent.then_some(7));
}

/// A task that is polled again lists another waker while the element comes.
fn lists_again() {
    let (giver, mut taker) = oneshot();
    assert!(taker.list(Waker::noop().clone()));
    let thread = thread::spawn(move || giver.send(Arc::new(7)).unwrap());
    assert_eq!(wait(&mut taker).map(|value| *value), Ok(7));
    drop(taker);
    thread.join().unwrap();
}
