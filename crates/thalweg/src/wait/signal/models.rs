//! loom models of the signal, each with the weakened ordering that it must catch. A lost wake-up is
//! a deadlock, which loom reports.

mod chain;
mod shutting;

use super::*;
use crate::channel::models::cancelling::run;
use crate::ring::sync::{AtomicBool, AtomicU32, fault};
use crate::wait::barrier::simulated::{Simulation, over};
use crate::wait::{Listed, Mode, Pace, TimedOut, block, wait_on};
use loom::thread;
// Not the model's, which must not be touched once a model has failed.
use std::sync::Arc;
use std::time::Instant;

/// Elements that waiters take, and where they wait for them.
struct Shelf {
    signal: Signal,
    left: AtomicU32,
    closed: AtomicBool,
}

impl Shelf {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            signal: Signal::new(),
            left: AtomicU32::new(0),
            closed: AtomicBool::new(false),
        })
    }

    fn put(&self) {
        self.left.fetch_add(1, order::publish());
    }

    fn take(&self) -> Option<()> {
        let left = self.left.load(order::observe());
        let taken = left > 0
            && self
                .left
                .compare_exchange(left, left - 1, order::observe(), Ordering::Relaxed)
                .is_ok();
        taken.then_some(())
    }

    fn look(&self) -> Option<()> {
        loop {
            // Losing the race for one of several is not the same as nothing left.
            match self.take() {
                None if self.left.load(Ordering::Relaxed) > 0 => thread::yield_now(),
                found => return found,
            }
        }
    }

    fn wait(&self, deadline: Option<Instant>) -> Result<(), TimedOut> {
        let mut pace = Pace::new(Mode::Power);
        block(&self.signal, &mut pace, deadline, || self.look())
    }

    /// Has been waited on before.
    fn arm(&self) {
        let waker = std::task::Waker::noop();
        let entry = self.signal.register(waker);
        // If it was notified: the caller looks next.
        let _ = self.signal.unregister(entry);
    }
}

/// Runs a model of three threads that would take minutes under three preemptions.
fn model_of_two_preemptions(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2 + crate::channel::models::more_preemptions());
    builder.check(model);
}

fn spawn(shared: &Arc<Shelf>, work: impl FnOnce(&Shelf) + 'static) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || work(&shared))
}

fn one_waiter() {
    let shared = Shelf::new();
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.signal.notify_one();
    });
    shared.wait(None).unwrap();
    notifier.join().unwrap();
    assert_eq!(shared.signal.waiting(), 0);
}

#[test]
fn a_waiter_is_always_woken() {
    loom::model(one_waiter);
}

/// Behind a task that was forgotten, or is kept unpolled (rule 8).
fn one_waiter_behind_a_task() {
    let shared = Shelf::new();
    let _never_looks = shared.signal.register(std::task::Waker::noop());
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.signal.notify_one();
    });
    shared.wait(None).unwrap();
    notifier.join().unwrap();
}

#[test]
fn a_thread_is_woken_behind_a_task_that_never_looks() {
    fault::check(one_waiter_behind_a_task, &["task_trusted"]);
}

#[test]
fn a_missing_light_barrier_is_caught() {
    assert!(fault::caught("light", one_waiter));
}

#[test]
fn a_missing_full_fence_is_caught() {
    assert!(fault::caught("dekker", one_waiter));
}

fn two_waiters() {
    let shared = Shelf::new();
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.signal.notify_one();
        shared.put();
        shared.signal.notify_one();
    });
    let waiter = spawn(&shared, |shared| shared.wait(None).unwrap());
    shared.wait(None).unwrap();
    waiter.join().unwrap();
    notifier.join().unwrap();
}

#[test]
fn two_waiters_get_two() {
    model_of_two_preemptions(two_waiters);
}

#[test]
fn a_missing_full_fence_among_three_is_caught() {
    assert!(fault::caught("dekker", two_waiters));
}

fn two_notifiers() {
    let shared = Shelf::new();
    let give = |shared: &Shelf| {
        shared.put();
        assert!(shared.signal.notify(2) < 2);
    };
    let first = spawn(&shared, give);
    let second = spawn(&shared, give);
    shared.wait(None).unwrap();
    shared.wait(None).unwrap();
    first.join().unwrap();
    second.join().unwrap();
}

#[test]
fn two_notifiers_wake_one_waiter_twice() {
    model_of_two_preemptions(two_notifiers);
}

#[test]
fn a_missing_full_fence_with_two_notifiers_is_caught() {
    assert!(fault::caught("dekker", two_notifiers));
}

/// A waiter that gives up at some moment passes a notification on; the waiter that gets the element
/// gives it to the other.
fn a_leaver() {
    let shared = Shelf::new();
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.signal.notify_one();
    });
    let leaver = spawn(&shared, |shared| {
        if shared.wait(Some(Instant::now())).is_ok() {
            shared.put();
            shared.signal.notify_one();
        }
    });
    shared.wait(None).unwrap();
    leaver.join().unwrap();
    notifier.join().unwrap();
}

#[test]
fn a_waiter_that_gives_up_loses_no_notification() {
    model_of_two_preemptions(a_leaver);
}

#[test]
fn a_missing_full_fence_beside_a_leaver_is_caught() {
    assert!(fault::caught("dekker", a_leaver));
}

/// As a dropped future does, with the canary that it forgets to pass the notification on.
fn a_cancelled_task(passes_on: bool) {
    let shared = Shelf::new();
    let entry = shared.signal.register(std::task::Waker::noop());
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.signal.notify_one();
    });
    let task = spawn(&shared, move |shared| {
        if !shared.signal.unregister(entry) && passes_on {
            shared.signal.notify_one();
        }
    });
    // A task: a thread would be woken in any case.
    run(wait_on(&shared.signal, Listed::default(), || shared.look()));
    task.join().unwrap();
    notifier.join().unwrap();
}

#[test]
fn a_cancelled_task_passes_its_notification_on() {
    loom::model(|| a_cancelled_task(true));
}

#[test]
fn a_cancelled_task_that_keeps_its_notification_is_caught() {
    assert!(fault::caught("none", || a_cancelled_task(false)));
}

/// Two waiters find the signal not armed at the same time, and interrupts are all that orders the
/// notifier.
fn two_arm() {
    let simulation = Simulation::start();
    let shared = Shelf::new();
    let notifier = spawn(&shared, |shared| {
        // One store for both, so that nothing but the interrupt drives it out.
        shared.left.store(2, order::publish());
        shared.signal.notify(2);
        over();
    });
    let waiter = spawn(&shared, |shared| shared.wait(None).unwrap());
    shared.wait(None).unwrap();
    waiter.join().unwrap();
    notifier.join().unwrap();
    drop(simulation);
}

#[test]
fn two_waiters_may_arm_at_the_same_time() {
    model_of_two_preemptions(two_arm);
}

#[test]
fn a_missing_interrupt_while_two_arm_is_caught() {
    assert!(fault::caught("heavy", two_arm));
}

/// The notifier clears the signal while the waiter is about to list itself.
fn cleared() {
    let simulation = Simulation::start();
    let shared = Shelf::new();
    let waiter = spawn(&shared, |shared| {
        shared.arm();
        shared.wait(None).unwrap();
    });
    // Clears the signal if it is armed and no waiter is listed.
    shared.signal.notify_one();
    shared.put();
    shared.signal.notify_one();
    over();
    waiter.join().unwrap();
    drop(simulation);
}

#[test]
fn a_signal_may_be_cleared_while_someone_registers() {
    loom::model(cleared);
}

#[test]
fn a_missing_interrupt_after_clearing_is_caught() {
    assert!(fault::caught("heavy", cleared));
}

#[test]
fn a_missing_full_fence_while_armed_is_caught() {
    assert!(fault::caught("dekker", cleared));
}

fn closing() {
    let shared = Shelf::new();
    let wait = |shared: &Shelf| {
        let closed = || shared.closed.load(order::closed()).then_some(());
        block(&shared.signal, &mut Pace::new(Mode::Power), None, closed).unwrap();
    };
    let waiter = spawn(&shared, wait);
    let closer = spawn(&shared, |shared| {
        shared.closed.store(true, order::close());
        shared.signal.notify_all();
    });
    wait(&shared);
    waiter.join().unwrap();
    closer.join().unwrap();
    assert_eq!(shared.signal.waiting(), 0);
}

#[test]
fn closing_wakes_everybody() {
    loom::model(closing);
}

#[test]
fn a_missing_full_fence_while_closing_is_caught() {
    assert!(fault::caught("dekker", closing));
}
