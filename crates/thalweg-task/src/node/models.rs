//! loom models of what other threads do with a task: wake it, keep its waker beyond its end and
//! its executor's. Each has seeded faults that it must catch.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use thalweg::wait::{Pace, WaitMode, block};

use super::{NodeRef, Scheduler};
use crate::sync::fault::caught;
use crate::time::Time;

fn scheduler() -> Rc<Scheduler> {
    Scheduler::new(Time::new(Box::new(Instant::now)))
}

/// Returns a task that leaves its waker, and is over when it is polled again.
fn leaving_a_waker(scheduler: &Rc<Scheduler>) -> (NodeRef, Waker) {
    let left: Rc<RefCell<Option<Waker>>> = Rc::default();
    let kept = Rc::clone(&left);
    let future = poll_fn(
        move |context| match kept.borrow_mut().replace(context.waker().clone()) {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        },
    );
    let node = NodeRef::spawn(scheduler, future);
    node.wake();
    assert!(scheduler.run_one());
    let waker = left.borrow().clone().expect("the first poll left it");
    (node, waker)
}

/// Sleeps until a task has been woken elsewhere, and polls it.
fn run_one(scheduler: &Scheduler) {
    while !scheduler.run_one() {
        let event_count = &scheduler.hub().event_count;
        let look = || scheduler.hub().has_pushed().then_some(());
        block(event_count, &mut Pace::new(WaitMode::LowPower), None, look)
            .expect("there is no deadline");
        scheduler.take_pushed();
    }
}

/// Two threads wake a task once each: no wake-up is lost, and a poll sees what was done before it.
/// A poll that does not see it waits for ever, which loom reports.
fn two_wake_one() {
    let scheduler = scheduler();
    let done = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let flags = Arc::clone(&done);
    let left: Rc<RefCell<Vec<Waker>>> = Rc::default();
    let kept = Rc::clone(&left);
    let mut polls = 0;
    let future = poll_fn(move |context| {
        polls += 1;
        if polls == 1 {
            let waker = context.waker();
            kept.borrow_mut().extend([waker.clone(), waker.clone()]);
            return Poll::Pending;
        }
        // ORDERING: Relaxed: the wake-ups alone must order what was done before them.
        match flags.iter().all(|flag| flag.load(Ordering::Relaxed)) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    });
    let node = NodeRef::spawn(&scheduler, future);
    node.wake();
    assert!(scheduler.run_one());
    for which in 0..2 {
        let waker = left.borrow_mut().pop().expect("two were left");
        let done = Arc::clone(&done);
        thread::spawn(move || {
            // ORDERING: Relaxed: as above.
            done[which].store(true, Ordering::Relaxed);
            waker.wake();
        });
    }
    while scheduler.task_count() > 0 {
        run_one(&scheduler);
    }
    drop(node);
    scheduler.close();
}

/// A waker is used and dropped elsewhere while its task ends, and its executor goes.
fn a_waker_outlives_its_core() {
    let scheduler = scheduler();
    let (node, waker) = leaving_a_waker(&scheduler);
    let thread = thread::spawn(move || waker.wake());
    node.cancel(false);
    drop(node);
    scheduler.close();
    drop(scheduler);
    thread.join().expect("it only wakes");
}

/// Two wakers go elsewhere, one of them as the last hold on a task that is over; the executor takes
/// back what it can.
fn wakers_end_a_frame() {
    let scheduler = scheduler();
    let (node, waker) = leaving_a_waker(&scheduler);
    let thread = thread::spawn(move || {
        let other = waker.clone();
        other.wake();
        drop(waker);
    });
    node.resume();
    drop(node);
    scheduler.take_pushed();
    thread.join().expect("it only wakes");
    scheduler.take_pushed();
    assert_eq!(scheduler.frames(), 0, "the pool has all back");
    scheduler.close();
}

/// A waker is dropped elsewhere while its task ends: the last of the two has the frame alone.
fn a_frame_ends_once() {
    let scheduler = scheduler();
    let (node, waker) = leaving_a_waker(&scheduler);
    let thread = thread::spawn(move || drop(waker));
    node.resume();
    drop(node);
    thread.join().expect("it only drops");
    scheduler.take_pushed();
    assert_eq!(scheduler.frames(), 0, "the pool has it back");
    scheduler.close();
}

macro_rules! models {
    ($($name:ident, faults $($fault:literal)+;)+) => {
        mod holds {
            $(#[test]
            fn $name() {
                let mut builder = loom::model::Builder::new();
                // One fewer than elsewhere: three take a minute for the model with two wakers, and
                // every fault shows within two.
                builder.preemption_bound = builder.preemption_bound.map(|bound| bound - 1);
                builder.check(super::$name);
            })+
        }

        $(mod $name {
            #[test]
            fn notices_faults() {
                $(assert!(super::caught($fault, super::$name), $fault);)+
            }
        })+
    };
}

models! {
    two_wake_one, faults "push" "take" "mark" "again";
    a_waker_outlives_its_core, faults "leave" "take";
    wakers_end_a_frame, faults "leave";
    a_frame_ends_once, faults "leave" "alone";
}
