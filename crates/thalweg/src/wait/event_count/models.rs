//! loom models of the event count, each with the weakened ordering that it must catch. A lost
//! wake-up is a deadlock, which loom reports.

use super::*;
use crate::channel::models::cancelling::run;
use crate::ring::sync::{AtomicBool, AtomicU32, fault, models};
use crate::wait::barrier::simulated::{Simulation, over};
use crate::wait::{Registration, TimedOut, block_at_low_power, wait_until};
use loom::thread;
// Not the model's, which must not be touched once a model has failed.
use std::sync::Arc;
use std::time::Instant;

/// Elements that waiters take, and where they wait for them.
struct Stock {
    event_count: EventCount,
    left: AtomicU32,
    closed: AtomicBool,
}

impl Stock {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            event_count: EventCount::new(),
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
        block_at_low_power(&self.event_count, deadline, || self.look())
    }

    /// Has been waited on before.
    fn arm(&self) {
        let waker = std::task::Waker::noop();
        let entry = self.event_count.register(waker);
        // If it was notified: the caller looks next.
        let _ = self.event_count.unregister(entry);
    }
}

/// Runs a model of three threads that would take minutes under three preemptions.
fn model_of_two_preemptions(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2 + crate::channel::models::more_preemptions());
    builder.check(model);
}

/// Works as [`fault::check`], for such a model.
fn check_of_three(model: fn(), faults: &[&'static str]) {
    model_of_two_preemptions(model);
    for fault in faults {
        assert!(fault::caught(fault, model), "`{fault}` was not caught");
    }
}

models! { fault::check;
    a_waiter_is_always_woken: one_waiter, ["light", "dekker"];
    a_thread_is_woken_behind_a_task_that_never_looks: one_waiter_behind_a_task, ["task_trusted"];
    a_cancelled_task_passes_its_notification_on: a_cancelled_task, ["notification_kept"];
    an_event_count_may_be_cleared_while_someone_registers: cleared, ["heavy", "dekker"];
    closing_wakes_everybody: closing, ["dekker"];
}

models! { check_of_three;
    two_waiters_get_two: two_waiters, ["dekker"];
    two_notifiers_wake_one_waiter_twice: two_notifiers, ["dekker"];
    a_waiter_that_gives_up_loses_no_notification: a_leaver, ["dekker"];
    two_waiters_may_arm_at_the_same_time: two_arm, ["heavy"];
}

fn spawn(shared: &Arc<Stock>, work: impl FnOnce(&Stock) + 'static) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || work(&shared))
}

fn one_waiter() {
    let shared = Stock::new();
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.event_count.notify_one();
    });
    shared.wait(None).unwrap();
    notifier.join().unwrap();
    assert_eq!(shared.event_count.waiting(), 0);
}

/// Behind a task that was forgotten, or is kept unpolled (rule 8).
fn one_waiter_behind_a_task() {
    let shared = Stock::new();
    let _never_looks = shared.event_count.register(std::task::Waker::noop());
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.event_count.notify_one();
    });
    shared.wait(None).unwrap();
    notifier.join().unwrap();
}

fn two_waiters() {
    let shared = Stock::new();
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.event_count.notify_one();
        shared.put();
        shared.event_count.notify_one();
    });
    let waiter = spawn(&shared, |shared| shared.wait(None).unwrap());
    shared.wait(None).unwrap();
    waiter.join().unwrap();
    notifier.join().unwrap();
}

fn two_notifiers() {
    let shared = Stock::new();
    let give = |shared: &Stock| {
        shared.put();
        assert!(shared.event_count.notify(2) < 2);
    };
    let first = spawn(&shared, give);
    let second = spawn(&shared, give);
    shared.wait(None).unwrap();
    shared.wait(None).unwrap();
    first.join().unwrap();
    second.join().unwrap();
}

/// A waiter that gives up at some moment passes a notification on; the waiter that gets the element
/// gives it to the other.
fn a_leaver() {
    let shared = Stock::new();
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.event_count.notify_one();
    });
    let leaver = spawn(&shared, |shared| {
        if shared.wait(Some(Instant::now())).is_ok() {
            shared.put();
            shared.event_count.notify_one();
        }
    });
    shared.wait(None).unwrap();
    leaver.join().unwrap();
    notifier.join().unwrap();
}

/// As a dropped future does, which passes the notification on.
fn a_cancelled_task() {
    let shared = Stock::new();
    let entry = shared.event_count.register(std::task::Waker::noop());
    let notifier = spawn(&shared, |shared| {
        shared.put();
        shared.event_count.notify_one();
    });
    let task = spawn(&shared, move |shared| {
        if !shared.event_count.unregister(entry) && !fault::is("notification_kept") {
            shared.event_count.notify_one();
        }
    });
    // A task: a thread would be woken in any case.
    run(wait_until(
        &shared.event_count,
        Registration::default(),
        || shared.look(),
    ));
    task.join().unwrap();
    notifier.join().unwrap();
}

/// Two waiters find the event count not armed at the same time, and interrupts are all that orders
/// the notifier.
fn two_arm() {
    let simulation = Simulation::start();
    let shared = Stock::new();
    let notifier = spawn(&shared, |shared| {
        // One store for both, so that nothing but the interrupt drives it out.
        shared.left.store(2, order::publish());
        shared.event_count.notify(2);
        over();
    });
    let waiter = spawn(&shared, |shared| shared.wait(None).unwrap());
    shared.wait(None).unwrap();
    waiter.join().unwrap();
    notifier.join().unwrap();
    drop(simulation);
}

/// The notifier clears the event count while the waiter is about to list itself.
fn cleared() {
    let simulation = Simulation::start();
    let shared = Stock::new();
    let waiter = spawn(&shared, |shared| {
        shared.arm();
        shared.wait(None).unwrap();
    });
    // Clears the event count if it is armed and no waiter is listed.
    shared.event_count.notify_one();
    shared.put();
    shared.event_count.notify_one();
    over();
    waiter.join().unwrap();
    drop(simulation);
}

fn closing() {
    let shared = Stock::new();
    let wait = |shared: &Stock| {
        let closed = || shared.closed.load(order::closed()).then_some(());
        let found = block_at_low_power(&shared.event_count, None, closed);
        found.expect("it has no deadline");
    };
    let waiter = spawn(&shared, wait);
    let closer = spawn(&shared, |shared| {
        shared.closed.store(true, order::close());
        shared.event_count.notify_all();
    });
    wait(&shared);
    waiter.join().unwrap();
    closer.join().unwrap();
    assert_eq!(shared.event_count.waiting(), 0);
}

mod chain {
    //! Models of chained notifications (rule 4).

    use super::{AtomicBool, Simulation, Stock, fault, over, thread};
    use super::{check_of_three, model_of_two_preemptions, spawn};
    use crate::ring::sync::{models, order};
    use crate::wait::block_at_low_power;
    use crate::wait::event_count::{Entry, EventCount, Kind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool as Flag, Ordering::Relaxed};
    use std::task::{Wake, Waker};
    use std::time::Instant;

    /// Two elements, and where waiters wait for either. Each has a cell, which is written once: a
    /// change that reads would see the newest value by itself.
    struct Pair {
        event_count: EventCount,
        cells: [AtomicBool; 2],
    }

    impl Pair {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                event_count: EventCount::new(),
                cells: [AtomicBool::new(false), AtomicBool::new(false)],
            })
        }

        fn put(&self, at: usize) {
            self.cells[at].store(true, order::publish());
            self.event_count.notify_chained();
        }

        fn take(&self) -> Option<()> {
            let mut cells = self.cells.iter();
            let taken = |cell: &AtomicBool| {
                cell.load(order::observe()) && cell.swap(false, order::observe())
            };
            cells.any(taken).then_some(())
        }

        fn has_more(&self) -> bool {
            self.cells.iter().any(|cell| cell.load(order::observe()))
        }

        fn pass_on(&self) {
            if !fault::is("chain_broken") && self.event_count.waiting() > 0 && self.has_more() {
                self.event_count.notify_chained();
            }
        }

        /// Works as `block` does when it is woken, or has waited long enough.
        fn leave_and_look(&self, entry: Entry) {
            // It looks for what it was notified of.
            let _ = self.event_count.unregister(entry);
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
            if !self.event_count.unregister(entry) && !fault::is("chain_broken") {
                self.event_count.notify_one();
            }
        }
    }

    models! { fault::check;
        a_chain_goes_on_through_a_thread_that_looks_last:
            looks_last, ["chain_fence", "dekker", "chain_kept", "chain_broken"];
        a_chain_goes_on_through_a_thread_that_looks_first:
            looks_first, ["chain_kept", "chain_broken"];
        // It passes on in a way that does not mind the mark.
        a_chain_goes_on_past_one_that_gives_up: does_not_look, ["chain_broken"];
        an_event_count_is_not_cleared_under_the_mark: cleared_under_it, ["chain_cleared"];
        an_old_mark_is_passed_without_a_fence: passed_over, ["old_mark", "heavy"];
        the_next_is_woken_where_the_last_gets_no_core: no_core, ["overdue"];
        a_notifier_of_one_that_comes_late_does_not_arm:
            a_late_notifier_of_one, ["publish_unchanged"];
        a_notifier_of_a_chain_that_comes_late_does_not_arm:
            a_late_notifier_of_a_chain, ["publish_unchanged"];
    }

    models! { check_of_three;
        two_sleepers_get_two_of_a_chain: two_sleepers, ["chain_kept", "chain_broken"];
        a_sleeper_of_a_chain_may_give_up: a_leaver, ["chain_kept"];
        a_mark_may_pass_to_the_next: overdue, [];
    }

    /// A waiter behind the others: whether it was notified.
    struct Witness(Flag);

    impl Wake for Witness {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Relaxed);
        }
    }

    /// Two threads are listed, and two elements come, of one notifier or of two. The first thread
    /// does what `leaves` says, at any time. If it leaves anything, the second has been notified.
    fn a_chain(notifiers: usize, leaves: fn(&Pair, Entry)) {
        let pair = Pair::new();
        let first = pair.event_count.register_as(Waker::noop(), Kind::Thread);
        let witness = Arc::new(Witness(Flag::new(false)));
        let _behind = pair
            .event_count
            .register_as(&Waker::from(Arc::clone(&witness)), Kind::Thread);
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
    fn a_chain_of_two_notifiers_goes_on() {
        model_of_two_preemptions(|| a_chain(2, Pair::leave_and_look));
        model_of_two_preemptions(|| a_chain(2, Pair::look_and_leave));
    }

    /// Two threads wait, and get one element each.
    fn two_sleepers() {
        let pair = Pair::new();
        let wait = |pair: &Pair| {
            let taken = block_at_low_power(&pair.event_count, None, || pair.take());
            taken.expect("it has no deadline");
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
        assert_eq!(pair.event_count.waiting(), 0);
    }

    /// One that was woken may give up; if it gets the element, it gives it to the other.
    fn a_leaver() {
        let shared = Stock::new();
        let put = |shared: &Stock| {
            shared.put();
            shared.event_count.notify_chained();
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

    /// No waiter is listed, but a thread is on its way, while the notifier has had enough of
    /// fences.
    fn cleared_under_it() {
        let shared = Stock::new();
        let entry = shared.event_count.register_as(Waker::noop(), Kind::Thread);
        let simulation = Simulation::start();
        let waiter = spawn(&shared, move |shared| {
            // It looks next.
            let _ = shared.event_count.unregister(entry);
            shared.wait(None).unwrap();
        });
        shared.event_count.notify_chained();
        // Would clear the event count.
        shared.event_count.notify_one();
        shared.put();
        shared.event_count.notify_one();
        over();
        waiter.join().unwrap();
        drop(simulation);
    }

    /// The thread with an old mark looks, while a notifier passes that mark without a fence.
    fn passed_over() {
        let shared = Stock::new();
        let entry = shared.event_count.register_as(Waker::noop(), Kind::Thread);
        shared.event_count.notify_chained();
        shared.event_count.make_old();
        let simulation = Simulation::start();
        let notifier = spawn(&shared, |shared| {
            // A store, since a change that reads is a fence for some processors.
            shared.left.store(1, order::publish());
            shared.event_count.notify_chained();
            over();
        });
        // It was notified.
        let _ = shared.event_count.unregister(entry);
        shared.wait(None).unwrap();
        notifier.join().unwrap();
        drop(simulation);
    }

    /// The first that was woken gets no core, and the next is woken; then the first gets one.
    fn overdue() {
        let pair = Pair::new();
        let first = pair.event_count.register_as(Waker::noop(), Kind::Thread);
        let notifier = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || {
                pair.put(0);
                pair.put(1);
                pair.event_count.wake_next(true);
            })
        };
        let waiter = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || {
                let look = || pair.take();
                let taken = block_at_low_power(&pair.event_count, None, look);
                taken.expect("it has no deadline");
                pair.pass_on();
            })
        };
        pair.leave_and_look(first);
        waiter.join().unwrap();
        notifier.join().unwrap();
        assert_eq!(pair.event_count.waiting(), 0);
    }

    /// The first that was woken gets no core for as long as the next has not got the element.
    fn no_core() {
        let shared = Stock::new();
        let first = shared.event_count.register_as(Waker::noop(), Kind::Thread);
        shared.event_count.notify_chained();
        let notifier = spawn(&shared, |shared| {
            shared.put();
            shared.event_count.notify_chained();
            shared.event_count.wake_next(true);
        });
        shared.wait(None).unwrap();
        assert!(!shared.event_count.unregister(first));
        notifier.join().unwrap();
    }

    /// A notifier that has seen a waiter comes to the list when the waiter has left and another
    /// notifier has cleared the event count. It must not look armed then, since no heavy barrier
    /// has passed. It may be any thread: here it is the one that waits next.
    fn a_late_notifier(late: fn(&EventCount)) {
        let shared = Stock::new();
        shared.arm();
        // Clears the event count.
        shared.event_count.notify_one();
        let simulation = Simulation::start();
        let notifier = spawn(&shared, move |shared| {
            shared.put();
            shared.event_count.notify_one();
            over();
        });
        late(&shared.event_count);
        shared.wait(None).unwrap();
        notifier.join().unwrap();
        drop(simulation);
    }

    fn a_late_notifier_of_one() {
        a_late_notifier(|event_count| {
            event_count.wake(1);
        });
    }

    fn a_late_notifier_of_a_chain() {
        a_late_notifier(|event_count| event_count.wake_next(false));
    }
}

mod shutting {
    //! Models of the end of an event count (rule 6).

    use super::{Simulation, Stock, fault, over, spawn};
    use crate::ring::sync::{AtomicBool, Ordering, models, order};
    use crate::wait::event_count::{EventCount, Kind};
    use std::sync::Arc;
    use std::task::Waker;

    models! { fault::check;
        // Where it is not armed, the barriers order all of it; where it is, the fences.
        an_element_is_seen_by_the_last_look_or_by_who_put_it_down:
            || a_late_element(false, false), ["shut", "light"];
        an_element_is_seen_where_the_event_count_is_armed:
            || a_late_element(true, false), ["shut", "dekker"];
        an_interrupt_stands_for_the_fence_of_the_notifier:
            || a_late_element(false, true), ["heavy"];
        an_element_beside_an_old_mark_is_seen: a_late_element_beside_an_old_mark, ["old_mark"];
        a_notifier_that_sees_the_end_sees_the_close: || a_close_is_seen(false), ["end", "ended"];
        a_notifier_that_sees_the_end_beside_a_waiter_sees_the_close:
            || a_close_is_seen(true), ["carry_end"];
    }

    models! { super::check_of_three;
        of_two_late_elements_somebody_sees_both: two_late_elements, ["shut", "light"];
    }

    /// A notifier puts something down while the last waiter looks for the last time: one of the two
    /// sees it.
    fn a_late_element(is_armed: bool, is_interrupted: bool) {
        let simulation = is_interrupted.then(Simulation::start);
        let shared = Stock::new();
        if is_armed {
            shared.arm();
        }
        let notifier = spawn(&shared, |shared| {
            // One store, so that nothing but the barriers drives it out.
            shared.left.store(1, order::publish());
            if shared.event_count.notify_one() {
                let _ = shared.take();
            }
            over();
        });
        shared.event_count.shut();
        let _ = shared.take();
        notifier.join().expect("the notifier");
        assert!(shared.take().is_none(), "no thread saw it");
        drop(simulation);
    }

    /// Works as [`a_late_element`], beside a thread of a chain that gets no core.
    fn a_late_element_beside_an_old_mark() {
        let shared = Stock::new();
        let _gets_no_core = shared.event_count.register_as(Waker::noop(), Kind::Thread);
        shared.event_count.notify_chained();
        shared.event_count.make_old();
        let simulation = Simulation::start();
        let notifier = spawn(&shared, |shared| {
            shared.left.store(1, order::publish());
            if shared.event_count.notify_chained() {
                let _ = shared.take();
            }
            over();
        });
        shared.event_count.shut();
        shared.event_count.make_old();
        let _ = shared.take();
        notifier.join().expect("the notifier");
        assert!(shared.take().is_none(), "no thread saw it");
        drop(simulation);
    }

    /// Two notifiers that come late: one of them at least sees what both put down, as where one
    /// element hides the other.
    fn two_late_elements() {
        struct Cells(EventCount, [AtomicBool; 2], [AtomicBool; 2]);
        let cell = || AtomicBool::new(false);
        let shared = Arc::new(Cells(EventCount::new(), [cell(), cell()], [cell(), cell()]));
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

    /// Many notifications on end clear an event count, but not one that is shut.
    #[test]
    fn an_event_count_stays_shut() {
        let model = || {
            let event_count = EventCount::new();
            event_count.shut();
            for _ in 0..3 {
                assert!(event_count.notify_one() && event_count.notify_chained());
            }
        };
        fault::check(model, &["shut_cleared"]);
    }

    /// A thread that finds an event count shut sees what was done before; also where a waiter that
    /// came since has changed the word.
    fn a_close_is_seen(with_a_waiter: bool) {
        struct Closed(EventCount, AtomicBool);
        let shared = Arc::new(Closed(EventCount::new(), AtomicBool::new(false)));
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
}
