//! Models of the end of a signal (rule 6).

use super::{Shelf, Simulation, fault, over, spawn};
use crate::ring::sync::{AtomicBool, Ordering, order};
use crate::wait::signal::Kind;
use crate::wait::signal::Signal;
use std::sync::Arc;
use std::task::Waker;

/// A notifier puts something down while the last waiter looks for the last time: one of the two
/// sees it.
fn a_late_element(is_armed: bool, is_interrupted: bool) {
    let simulation = is_interrupted.then(Simulation::start);
    let shared = Shelf::new();
    if is_armed {
        shared.arm();
    }
    let notifier = spawn(&shared, |shared| {
        // One store, so that nothing but the barriers drives it out.
        shared.left.store(1, order::publish());
        if shared.signal.notify_one() {
            let _ = shared.take();
        }
        over();
    });
    shared.signal.shut();
    let _ = shared.take();
    notifier.join().expect("the notifier");
    assert!(shared.take().is_none(), "no thread saw it");
    drop(simulation);
}

#[test]
fn an_element_is_seen_by_the_last_look_or_by_who_put_it_down() {
    // Where it is not armed, the barriers order all of it; where it is, the fences.
    for (is_armed, faults) in [(false, ["shut", "light"]), (true, ["shut", "dekker"])] {
        let model = move || a_late_element(is_armed, false);
        loom::model(model);
        for fault in faults {
            assert!(fault::caught(fault, model), "{fault}");
        }
    }
}

#[test]
fn an_interrupt_stands_for_the_fence_of_the_notifier() {
    loom::model(|| a_late_element(false, true));
    assert!(fault::caught("heavy", || a_late_element(false, true)));
}

/// Works as [`a_late_element`], beside a thread of a chain that gets no core.
fn a_late_element_beside_an_old_mark() {
    let shared = Shelf::new();
    let _gets_no_core = shared.signal.list(Waker::noop(), Kind::Thread);
    shared.signal.notify_chained();
    shared.signal.make_old();
    let simulation = Simulation::start();
    let notifier = spawn(&shared, |shared| {
        shared.left.store(1, order::publish());
        if shared.signal.notify_chained() {
            let _ = shared.take();
        }
        over();
    });
    shared.signal.shut();
    shared.signal.make_old();
    let _ = shared.take();
    notifier.join().expect("the notifier");
    assert!(shared.take().is_none(), "no thread saw it");
    drop(simulation);
}

#[test]
fn an_element_beside_an_old_mark_is_seen() {
    loom::model(a_late_element_beside_an_old_mark);
    assert!(fault::caught("old_mark", a_late_element_beside_an_old_mark));
}

/// Two notifiers that come late: one of them at least sees what both put down, as where one element
/// hides the other.
fn two_late_elements() {
    struct Cells(Signal, [AtomicBool; 2], [AtomicBool; 2]);
    let cell = || AtomicBool::new(false);
    let shared = Arc::new(Cells(Signal::new(), [cell(), cell()], [cell(), cell()]));
    let late = |at: usize| {
        let shared = Arc::clone(&shared);
        loom::thread::spawn(move || {
            shared.1[at].store(true, order::publish());
            let is_late = shared.0.notify_one();
            let sees_both = is_late && shared.1.iter().all(|cell| cell.load(order::observe()));
            shared.2[at].store(sees_both, order::publish());
        })
    };
    let both = [late(0), late(1)];
    shared.0.shut();
    let last = shared.1.iter().all(|cell| cell.load(order::observe()));
    for thread in both {
        thread.join().expect("a notifier");
    }
    let seen = shared.2.iter().any(|cell| cell.load(order::observe()));
    assert!(last || seen, "no thread saw both");
}

#[test]
fn of_two_late_elements_somebody_sees_both() {
    super::model_of_two_preemptions(two_late_elements);
    assert!(fault::caught("shut", two_late_elements));
    assert!(fault::caught("light", two_late_elements));
}

/// Many notifications on end clear a signal, but not one that is shut.
#[test]
fn a_signal_stays_shut() {
    let model = || {
        let signal = Signal::new();
        signal.shut();
        for _ in 0..3 {
            assert!(signal.notify_one() && signal.notify_chained());
        }
    };
    loom::model(model);
    assert!(fault::caught("shut_cleared", model));
}

/// A thread that finds a signal shut sees what was done before; also where a waiter that came since
/// has changed the word.
fn a_close_is_seen(with_a_waiter: bool) {
    struct Closed(Signal, AtomicBool);
    let shared = Arc::new(Closed(Signal::new(), AtomicBool::new(false)));
    // Armed, so that no heavy barrier is passed.
    assert!(shared.0.unregister(shared.0.register(Waker::noop())));
    let spawn = |work: fn(&Closed)| {
        let shared = Arc::clone(&shared);
        loom::thread::spawn(move || work(&shared))
    };
    let closing = spawn(|shared| {
        shared.1.store(true, Ordering::Relaxed);
        shared.0.shut();
    });
    let waiting = with_a_waiter.then(|| spawn(|shared| _ = shared.0.register(Waker::noop())));
    let notifying = spawn(|shared| {
        if shared.0.notify_one() {
            assert!(
                shared.1.load(Ordering::Relaxed),
                "closed before it was shut"
            );
        }
    });
    for thread in [Some(closing), waiting, Some(notifying)] {
        thread.map(|thread| thread.join().expect("a thread"));
    }
}

#[test]
fn a_notifier_that_sees_the_end_sees_the_close() {
    loom::model(|| a_close_is_seen(false));
    for fault in ["end", "ended"] {
        assert!(fault::caught(fault, || a_close_is_seen(false)), "{fault}");
    }
}

#[test]
fn a_notifier_that_sees_the_end_beside_a_waiter_sees_the_close() {
    loom::model(|| a_close_is_seen(true));
    assert!(fault::caught("carry_end", || a_close_is_seen(true)));
}
