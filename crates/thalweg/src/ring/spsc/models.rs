//! Models of the one-to-one ring, run by loom over the interleavings and reorderings of two
//! threads.
//!
//! Each runs for both layouts as it is, and then with orderings weakened one at a time, which it
//! must catch.

use std::cell::Cell;

use loom::thread;

use super::{Layout, PopError, PushError, SpscConsumer, SpscProducer, spsc};
use crate::ring::sync::fault;
#[cfg(feature = "std")]
use crate::wait::barrier;

/// The model holds, and notices each of the `faults`.
fn check(model: fn(Layout), faults: &[&'static str]) {
    for layout in [Layout::Packed, Layout::Slotted] {
        fault::check(move || model(layout), faults);
    }
}

fn ring<T>(capacity: usize, layout: Layout) -> (SpscProducer<T>, SpscConsumer<T>) {
    spsc(capacity, layout).expect("a capacity in range")
}

fn push<T>(tx: &mut SpscProducer<T>, mut value: T) {
    while let Err(PushError::Full(back)) = tx.try_push(value) {
        value = back;
        thread::yield_now();
    }
}

fn pop<T>(rx: &mut SpscConsumer<T>) -> Option<T> {
    loop {
        match rx.try_pop() {
            Ok(value) => return Some(value),
            Err(PopError::Closed) => return None,
            Err(PopError::Empty) => thread::yield_now(),
        }
    }
}

std::thread_local! {
    /// How many items were dropped in this execution. loom runs all threads of a model on one OS
    /// thread. Not a pointer in the item: a seeded fault may drop one twice, which must be
    /// counted, not crash.
    static DROPS: Cell<usize> = const { Cell::new(0) };
}

struct Item(u8);

impl Drop for Item {
    fn drop(&mut self) {
        DROPS.set(DROPS.get() + usize::from(self.0));
    }
}

#[test]
fn a_published_element_is_whole() {
    fn model(layout: Layout) {
        let (mut tx, mut rx) = ring(2, layout);
        let sender = thread::spawn(move || {
            push(&mut tx, 1);
            push(&mut tx, 2);
        });
        assert_eq!((pop(&mut rx), pop(&mut rx)), (Some(1), Some(2)));
        sender.join().expect("sender");
    }
    check(model, &["publish", "observe"]);
}

#[test]
fn a_batch_is_published_whole() {
    fn model(layout: Layout) {
        let (mut tx, mut rx) = ring(3, layout);
        let sender = thread::spawn(move || {
            let mut claim = tx.claim(2).expect("an empty ring");
            claim.write(&[1, 2]);
            claim.commit();
        });
        let mut next = 1;
        while next <= 2 {
            for value in rx.batch(2) {
                assert_eq!(value, next);
                next += 1;
            }
            thread::yield_now();
        }
        sender.join().expect("sender");
    }
    check(model, &["publish", "observe"]);
}

#[test]
fn a_cell_is_reused_after_its_release() {
    fn model(layout: Layout) {
        let (mut tx, mut rx) = ring(1, layout);
        let sender = thread::spawn(move || {
            for value in 0..3 {
                push(&mut tx, value);
            }
        });
        for value in 0..3 {
            assert_eq!(pop(&mut rx), Some(value));
        }
        sender.join().expect("sender");
    }
    check(model, &["release", "reclaim"]);
}

#[test]
fn a_batch_gives_its_cells_back() {
    fn model(layout: Layout) {
        let (mut tx, mut rx) = ring(2, layout);
        tx.push_slice(&[0, 1]);
        let receiver = thread::spawn(move || {
            let mut taken = Vec::with_capacity(2);
            rx.pop_into(&mut taken, 1);
            taken.extend(rx.batch(1));
            assert_eq!(taken, [0, 1]);
            rx
        });
        push(&mut tx, 2);
        push(&mut tx, 3);
        let mut rx = receiver.join().expect("receiver");
        assert_eq!((rx.try_pop(), rx.try_pop()), (Ok(2), Ok(3)));
    }
    check(model, &["release", "reclaim"]);
}

#[test]
fn a_close_comes_after_what_was_published() {
    fn model(layout: Layout) {
        let (mut tx, mut rx) = ring(2, layout);
        let sender = thread::spawn(move || {
            push(&mut tx, 1);
            drop(tx);
        });
        assert_eq!((pop(&mut rx), pop(&mut rx)), (Some(1), None));
        sender.join().expect("sender");
    }
    check(model, &["close", "closed"]);
}

#[test]
fn the_later_of_two_closes_keeps_what_came_before_the_earlier() {
    fn model(layout: Layout) {
        DROPS.set(0);
        let (mut tx, mut rx) = ring(2, layout);
        let sender = thread::spawn(move || {
            drop(tx.try_push(Item(1)));
            tx.close();
        });
        let sender_was_first = rx.shared().close();
        let popped = pop(&mut rx);
        assert!(popped.is_some() || !sender_was_first);
        drop((popped, rx));
        sender.join().expect("sender");
        assert_eq!(DROPS.get(), 1);
    }
    check(model, &["close", "closed", "leave"]);
}

#[test]
fn a_close_during_a_claim_drops_each_element_once() {
    fn model(layout: Layout) {
        DROPS.set(0);
        let (mut tx, mut rx) = ring(2, layout);
        let mut claim = tx.claim(2).expect("an empty ring");
        claim.push(Item(1)).ok().expect("room for two");
        claim.commit();
        let sender = thread::spawn(move || {
            let Ok(mut claim) = tx.claim(1) else {
                return DROPS.set(DROPS.get() + 1);
            };
            claim.push(Item(1)).ok().expect("room for one");
            claim.commit();
        });
        drop(rx.try_pop());
        drop(rx);
        sender.join().expect("sender");
        assert_eq!(DROPS.get(), 2);
    }
    check(model, &["leave"]);
}

#[test]
fn elements_left_inside_are_dropped_by_the_last_owner() {
    fn model(layout: Layout) {
        DROPS.set(0);
        let (mut tx, mut rx) = ring(2, layout);
        push(&mut tx, Item(1));
        let sender = thread::spawn(move || {
            push(&mut tx, Item(1));
            drop(tx);
        });
        drop(rx.try_pop());
        drop(rx);
        sender.join().expect("sender");
        assert_eq!(DROPS.get(), 2);
    }
    check(model, &["leave"]);
}

/// The consumer looks for the last time while something is published: one of the two takes it.
#[test]
fn what_comes_late_is_taken_once() {
    fn model(layout: Layout) {
        DROPS.set(0);
        let (mut tx, mut rx) = ring(2, layout);
        assert!(tx.try_push(Item(1)).is_ok());
        let consumer = thread::spawn(move || {
            rx.close();
            while let Some(item) = rx.take_last() {
                drop(item);
            }
        });
        for _ in 0..2 {
            if tx.try_push(Item(1)).is_ok() {
                tx.come_late();
                while let Some(item) = tx.take_left() {
                    drop(item);
                }
            }
        }
        consumer.join().expect("consumer");
        // Before the ring goes; those that were refused are among them.
        assert_eq!((DROPS.get(), tx.len()), (3, 0));
        drop(tx);
        assert_eq!(DROPS.get(), 3);
    }
    check(model, &["late", "done", "late_missed", "reclaim"]);
}

/// A consumer that closed the ring says that nothing comes, or gets what a claim publishes later.
#[cfg(feature = "std")] // channels alone hold claims
#[test]
fn a_claim_that_is_held_puts_the_end_off() {
    fn model(layout: Layout) {
        let (mut tx, mut rx) = ring(1, layout);
        let sender = thread::spawn(move || {
            let mut sent = 0;
            if let Ok(mut claim) = tx.claim(1) {
                claim.hold();
                barrier::light();
                if !claim.producer().is_closed() {
                    claim.push(1).expect("room for one");
                    sent = claim.publish();
                }
                claim.producer().let_go();
            }
            (sent, tx)
        });
        rx.close();
        barrier::heavy();
        let mut received = 0;
        loop {
            match rx.end() {
                Ok(()) => received += rx.try_pop().expect("it is there"),
                Err(PopError::Closed) => break,
                Err(_) => thread::yield_now(),
            }
        }
        let (sent, _tx) = sender.join().expect("sender");
        assert_eq!(received, sent);
    }
    check(
        model,
        &["light", "heavy", "publish", "observe", "claim_unseen"],
    );
}
