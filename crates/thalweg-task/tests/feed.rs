//! Feeds: who has a turn while messages come.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use thalweg_task::{Core, TaskError, yield_now};

/// Each message brings the next, so the channel is never empty when the feed looks.
#[test]
fn others_have_their_turn_after_64_messages() {
    const MESSAGES: u64 = 10_000;
    let core = Core::new();
    let (mut tx, rx) = thalweg::channel::spsc::<u64>(4);
    tx.send(0).unwrap();
    let sender = Rc::new(RefCell::new(Some(tx)));
    let (seen, again) = (Rc::new(Cell::new(0)), Rc::clone(&sender));
    let within = Rc::clone(&seen);
    let fed = core.handle().feed(rx, move |n| {
        assert_eq!(n, within.get());
        within.set(n + 1);
        if n + 1 < MESSAGES {
            let mut sender = again.borrow_mut();
            sender.as_mut().unwrap().try_send(n + 1).unwrap();
        } else {
            again.borrow_mut().take();
        }
    });
    let other = core.spawn(async move {
        let mut before = 0;
        while before < MESSAGES {
            let now = seen.get();
            assert!(now - before <= 64, "{} without a turn", now - before);
            before = now;
            yield_now().await;
        }
    });
    assert_eq!(core.block_on(fed), Ok(MESSAGES));
    assert_eq!(core.block_on(other), Ok(()));
}

#[test]
fn a_handler_that_panics_ends_the_feed_and_the_channel() {
    let core = Core::new();
    let (mut tx, rx) = thalweg::channel::spsc::<u32>(8);
    let fed = core.handle().feed(rx, |n| assert!(n != 2, "not this one"));
    (0..4).for_each(|n| tx.send(n).unwrap());
    let told = TaskError::Panicked("not this one".to_owned());
    assert_eq!(core.block_on(fed), Err(told));
    assert!(tx.send(9).is_err(), "nobody receives any more");
}
