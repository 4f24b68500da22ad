//! loom models of the oneshot, each with what it must catch.

use std::task::{Wake, Waker};

use loom::thread;

use super::{OneshotConsumer, oneshot};
use crate::ring::PopError;
use crate::ring::sync::{Arc, fault, models};

models! { fault::check;
    a_dropped_producer_wakes_a_waiter: goes, ["exchange", "oneshot_look_again", "oneshot_kept"];
    both_go_at_once: both_go, ["leave", "oneshot_kept"];
    a_wait_is_given_up: gives_up, ["exchange", "leave", "oneshot_taken_anyway", "oneshot_kept"];
    a_producer_learns_that_it_is_closed: closes, ["exchange", "oneshot_look_again", "oneshot_kept"];
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

fn wait<T>(consumer: &mut OneshotConsumer<T>) -> Result<T, PopError> {
    park(|waker| !consumer.is_closed() && consumer.register(waker));
    consumer.try_pop()
}

/// A consumer that waits gets the element that is sent, and the memory is freed once.
fn waits() {
    let (producer, mut consumer) = oneshot();
    let thread = thread::spawn(move || producer.send(Arc::new(7)).expect("it is open"));
    assert_eq!(wait(&mut consumer).map(|value| *value), Ok(7));
    drop(consumer);
    thread.join().unwrap();
}

#[test]
fn an_element_reaches_a_waiter() {
    let faults = [
        "publish",
        "observe",
        "exchange",
        "oneshot_look_again",
        "oneshot_kept",
    ];
    fault::check(waits, &faults);
}

/// A producer that is dropped wakes a consumer that waits.
fn goes() {
    let (producer, mut consumer) = oneshot::<Arc<u8>>();
    let thread = thread::spawn(move || drop(producer));
    assert_eq!(wait(&mut consumer).err(), Some(PopError::Closed));
    drop(consumer);
    thread.join().unwrap();
}

/// The consumer is dropped while the producer sends: one of them has the element, and drops it
/// once.
fn both_go() {
    let (producer, consumer) = oneshot();
    let thread = thread::spawn(move || drop(consumer));
    drop(producer.send(Arc::new(7)));
    thread.join().unwrap();
}

/// A wait that is given up while the element comes leaves its waker to one of the two.
fn gives_up() {
    let (producer, mut consumer) = oneshot();
    assert!(consumer.register(Waker::noop().clone()));
    let thread = thread::spawn(move || drop(producer.send(Arc::new(7))));
    consumer.unregister();
    if let Ok(value) = consumer.try_pop() {
        assert_eq!(*value, 7);
    } else if consumer.register(Waker::noop().clone()) {
        consumer.unregister();
    }
    drop(consumer);
    thread.join().unwrap();
}

/// Closed and not sent is never sent; a producer that waits for it is woken.
fn closes() {
    let (mut producer, mut consumer) = oneshot::<Arc<u8>>();
    let thread = thread::spawn(move || {
        park(|waker| !producer.is_closed() && producer.register(waker));
        assert!(producer.send(Arc::new(7)).is_err());
    });
    consumer.close();
    assert_eq!(consumer.try_pop().err(), Some(PopError::Closed));
    drop(consumer);
    thread.join().unwrap();
}

/// A close beside a send: the consumer has it, or the producer has it back.
fn closes_beside_a_send() {
    let (producer, mut consumer) = oneshot();
    let thread = thread::spawn(move || producer.send(7).is_ok());
    consumer.close();
    let taken = consumer.try_pop().ok();
    let is_sent = thread.join().unwrap();
    assert_eq!(taken, is_sent.then_some(7));
}

/// A task that is polled again lists another waker while the element comes.
fn lists_again() {
    let (producer, mut consumer) = oneshot();
    assert!(consumer.register(Waker::noop().clone()));
    let thread = thread::spawn(move || producer.send(Arc::new(7)).expect("it is open"));
    assert_eq!(wait(&mut consumer).map(|value| *value), Ok(7));
    drop(consumer);
    thread.join().unwrap();
}
