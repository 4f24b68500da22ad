//! Models of chained notifications (rule 4).

use super::{AtomicBool, Shelf, Simulation, fault, over, thread};
use super::{model_of_two_preemptions, spawn};
use crate::ring::sync::order;
use crate::wait::signal::Kind;
use crate::wait::signal::{Entry, Signal};
use crate::wait::{Mode, Pace, block};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool as Flag, Ordering::Relaxed};
use std::task::{Wake, Waker};
use std::time::Instant;

/// Two elements, and where waiters wait for either. Each has a cell, which is written once: a
/// change that reads would see the newest value by itself.
struct Pair {
    signal: Signal,
    cells: [AtomicBool; 2],
}

impl Pair {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            signal: Signal::new(),
            cells: [AtomicBool::new(false), AtomicBool::new(false)],
        })
    }

    fn put(&self, at: usize) {
        self.cells[at].store(true, order::publish());
        self.signal.notify_chained();
    }

    fn take(&self) -> Option<()> {
        let mut cells = self.cells.iter();
        let taken =
            |cell: &AtomicBool| cell.load(order::observe()) && cell.swap(false, order::observe());
        cells.any(taken).then_some(())
    }

    fn has_more(&self) -> bool {
        self.cells.iter().any(|cell| cell.load(order::observe()))
    }

    fn pass_on(&self) {
        if !fault::is("chain_broken") && self.signal.waiting() > 0 && self.has_more() {
            self.signal.notify_chained();
        }
    }

    /// Works as `block` does when it is woken, or has waited long enough.
    fn leave_and_look(&self, entry: Entry) {
        // It looks for what it was notified of.
        let _ = self.signal.unregister(entry);
        if self.take().is_some() {
            self.pass_on();
        }
    }

    /// Works as `block` does when it finds something after it has listed itself.
    fn look_and_leave(&self, entry: Entry) {
        if self.take().is_none() {
            return self.leave_and_look(entry);
        }
        self.leave(entry);
        self.pass_on();
    }

    /// Works as `block` does when a look panics.
    fn leave(&self, entry: Entry) {
        if !self.signal.unregister(entry) && !fault::is("chain_broken") {
            self.signal.notify_one();
        }
    }
}

/// A waiter behind the others: whether it was notified.
struct Witness(Flag);

impl Wake for Witness {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// Two threads are listed, and two elements come, of one notifier or of two. The first thread does
/// what `leaves` says, at any time. If it leaves anything, the second has been notified.
fn a_chain(notifiers: usize, leaves: fn(&Pair, Entry)) {
    let pair = Pair::new();
    let first = pair.signal.list(Waker::noop(), Kind::Thread);
    let witness = Arc::new(Witness(Flag::new(false)));
    let _behind = pair
        .signal
        .list(&Waker::from(Arc::clone(&witness)), Kind::Thread);
    let put = |cells: std::ops::Range<usize>| {
        let pair = Arc::clone(&pair);
        thread::spawn(move || cells.for_each(|at| pair.put(at)))
    };
    let threads = if notifiers == 1 {
        vec![put(0..2)]
    } else {
        vec![put(0..1), put(1..2)]
    };
    leaves(&pair, first);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(!pair.has_more() || witness.0.load(Relaxed));
}

fn looks_last() {
    a_chain(1, Pair::leave_and_look);
}

fn looks_first() {
    a_chain(1, Pair::look_and_leave);
}

fn does_not_look() {
    a_chain(1, Pair::leave);
}

#[test]
fn a_chain_goes_on_through_any_thread_that_was_woken() {
    loom::model(looks_last);
    loom::model(looks_first);
}

#[test]
fn a_chain_goes_on_past_one_that_gives_up() {
    loom::model(does_not_look);
}

#[test]
fn a_chain_of_two_notifiers_goes_on() {
    model_of_two_preemptions(|| a_chain(2, Pair::leave_and_look));
    model_of_two_preemptions(|| a_chain(2, Pair::look_and_leave));
}

#[test]
fn a_missing_fence_behind_the_mark_is_caught() {
    assert!(fault::caught("chain_fence", looks_last));
    assert!(fault::caught("dekker", looks_last));
}

#[test]
fn a_mark_that_stays_is_caught() {
    // The third passes on in a way that does not mind the mark.
    for model in [looks_last, looks_first] {
        assert!(fault::caught("chain_kept", model));
    }
}

#[test]
fn a_broken_chain_is_caught() {
    for model in [looks_last, looks_first, does_not_look] {
        assert!(fault::caught("chain_broken", model));
    }
}

/// Two threads wait, and get one element each.
fn two_sleepers() {
    let pair = Pair::new();
    let wait = |pair: &Pair| {
        block(&pair.signal, &mut Pace::new(Mode::Power), None, || {
            pair.take()
        })
        .unwrap();
        pair.pass_on();
    };
    let notifier = {
        let pair = Arc::clone(&pair);
        thread::spawn(move || (0..2).for_each(|at| pair.put(at)))
    };
    let waiter = {
        let pair = Arc::clone(&pair);
        thread::spawn(move || wait(&pair))
    };
    wait(&pair);
    waiter.join().unwrap();
    notifier.join().unwrap();
    assert_eq!(pair.signal.waiting(), 0);
}

#[test]
fn two_sleepers_get_two_of_a_chain() {
    model_of_two_preemptions(two_sleepers);
}

#[test]
fn faults_of_a_chain_between_sleepers_are_caught() {
    for fault in ["chain_kept", "chain_broken"] {
        assert!(fault::caught(fault, two_sleepers), "{fault}");
    }
}

/// One that was woken may give up; if it gets the element, it gives it to the other.
fn a_leaver() {
    let shared = Shelf::new();
    let put = |shared: &Shelf| {
        shared.put();
        shared.signal.notify_chained();
    };
    let notifier = spawn(&shared, put);
    let leaver = spawn(&shared, move |shared| {
        if shared.wait(Some(Instant::now())).is_ok() {
            put(shared);
        }
    });
    shared.wait(None).unwrap();
    leaver.join().unwrap();
    notifier.join().unwrap();
}

#[test]
fn a_sleeper_of_a_chain_may_give_up() {
    model_of_two_preemptions(a_leaver);
}

#[test]
fn a_mark_that_a_leaver_forgets_is_caught() {
    assert!(fault::caught("chain_kept", a_leaver));
}

/// No waiter is listed, but a thread is on its way, while the notifier has had enough of fences.
fn cleared_on_the_way() {
    let shared = Shelf::new();
    let entry = shared.signal.list(Waker::noop(), Kind::Thread);
    let simulation = Simulation::start();
    let waiter = spawn(&shared, move |shared| {
        // It looks next.
        let _ = shared.signal.unregister(entry);
        shared.wait(None).unwrap();
    });
    shared.signal.notify_chained();
    // Would clear the signal.
    shared.signal.notify_one();
    shared.put();
    shared.signal.notify_one();
    over();
    waiter.join().unwrap();
    drop(simulation);
}

#[test]
fn a_signal_is_not_cleared_under_a_thread_on_its_way() {
    loom::model(cleared_on_the_way);
}

#[test]
fn clearing_under_a_thread_on_its_way_is_caught() {
    assert!(fault::caught("chain_cleared", cleared_on_the_way));
}

/// The thread with an old mark looks, while a notifier passes that mark without a fence.
fn passed_over() {
    let shared = Shelf::new();
    let entry = shared.signal.list(Waker::noop(), Kind::Thread);
    shared.signal.notify_chained();
    shared.signal.make_old();
    let simulation = Simulation::start();
    let notifier = spawn(&shared, |shared| {
        // A store, since a change that reads is a fence for some processors.
        shared.left.store(1, order::publish());
        shared.signal.notify_chained();
        over();
    });
    // It was notified.
    let _ = shared.signal.unregister(entry);
    shared.wait(None).unwrap();
    notifier.join().unwrap();
    drop(simulation);
}

#[test]
fn an_old_mark_is_passed_without_a_fence() {
    loom::model(passed_over);
}

#[test]
fn an_old_mark_without_an_interrupt_is_caught() {
    assert!(fault::caught("old_mark", passed_over));
    assert!(fault::caught("heavy", passed_over));
}

/// The first that was woken gets no core, and the next is woken; then the first gets one.
fn overdue() {
    let pair = Pair::new();
    let first = pair.signal.list(Waker::noop(), Kind::Thread);
    let notifier = {
        let pair = Arc::clone(&pair);
        thread::spawn(move || {
            pair.put(0);
            pair.put(1);
            pair.signal.wake_next(true);
        })
    };
    let waiter = {
        let pair = Arc::clone(&pair);
        thread::spawn(move || {
            let look = || pair.take();
            block(&pair.signal, &mut Pace::new(Mode::Power), None, look).unwrap();
            pair.pass_on();
        })
    };
    pair.leave_and_look(first);
    waiter.join().unwrap();
    notifier.join().unwrap();
    assert_eq!(pair.signal.waiting(), 0);
}

#[test]
fn a_mark_may_pass_to_the_next() {
    model_of_two_preemptions(overdue);
}

/// The first that was woken gets no core for as long as the next has not got the element.
fn no_core() {
    let shared = Shelf::new();
    let first = shared.signal.list(Waker::noop(), Kind::Thread);
    shared.signal.notify_chained();
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.signal.notify_chained();
        shared.signal.wake_next(true);
    });
    shared.wait(None).unwrap();
    assert!(!shared.signal.unregister(first));
    notifier.join().unwrap();
}

#[test]
fn the_next_is_woken_where_the_last_gets_no_core() {
    loom::model(no_core);
    assert!(fault::caught("overdue", no_core));
}

/// A notifier that has seen a waiter comes to the list when the waiter has left and another
/// notifier has cleared the signal. It must not look armed then, since no heavy barrier has passed.
/// It may be any thread: here it is the one that waits next.
fn a_late_notifier(late: fn(&Signal)) {
    let shared = Shelf::new();
    shared.arm();
    // Clears the signal.
    shared.signal.notify_one();
    let simulation = Simulation::start();
    let notifier = spawn(&shared, move |shared| {
        shared.put();
        shared.signal.notify_one();
        over();
    });
    late(&shared.signal);
    shared.wait(None).unwrap();
    notifier.join().unwrap();
    drop(simulation);
}

fn a_late_notifier_of_one() {
    a_late_notifier(|signal| {
        signal.wake(1);
    });
}

fn a_late_notifier_of_a_chain() {
    a_late_notifier(|signal| signal.wake_next(false));
}

#[test]
fn a_notifier_that_comes_late_does_not_arm() {
    loom::model(a_late_notifier_of_one);
    loom::model(a_late_notifier_of_a_chain);
}

#[test]
fn arming_without_an_interrupt_is_caught() {
    assert!(fault::caught("publish_unchanged", a_late_notifier_of_one));
    assert!(fault::caught(
        "publish_unchanged",
        a_late_notifier_of_a_chain
    ));
}
