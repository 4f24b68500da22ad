//! Chained notifications (rule 4), one step at a time.

use super::{Counter, Panics, take};
use crate::wait::signal::Kind;
use crate::wait::signal::chain::HELD;
use crate::wait::signal::{ARMED, IDLE_MAX, OLD, Signal, WAITER, WAKING};
use crate::wait::{Mode, Pace, TimedOut, block};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Waker;
use std::time::{Duration, Instant};

fn word(signal: &Signal) -> u32 {
    signal.front.word.load(SeqCst)
}

#[test]
fn one_thread_is_woken_at_a_time() {
    let signal = Signal::new();
    let waiters = [Counter::new(), Counter::new(), Counter::new()];
    let woken = || waiters.each_ref().map(|(counter, _)| counter.woken());
    let entries = waiters
        .each_ref()
        .map(|(_, waker)| signal.list(waker, Kind::Thread));
    for _ in 0..3 {
        signal.notify_chained();
    }
    assert_eq!(woken(), [1, 0, 0]);
    assert_eq!(word(&signal), ARMED + WAKING + 2 * WAITER);
    assert_eq!((signal.parked(), signal.woken()), (3, 1));
    assert_eq!(signal.waiting(), 2, "the mark is no waiter");

    assert!(!signal.unregister(entries[0]), "notified");
    assert_eq!(word(&signal), ARMED + 2 * WAITER);
    assert!(!signal.unregister(entries[0]), "it left");
    signal.notify_chained();
    signal.notify_chained();
    assert_eq!((woken(), signal.woken()), ([1, 1, 0], 2));

    // A waiter that leaves without having been woken leaves the mark to the other.
    assert!(signal.unregister(entries[2]));
    assert_eq!(word(&signal), ARMED + WAKING);
    assert!(!signal.unregister(entries[1]));
    assert_eq!(word(&signal), ARMED);
    assert_eq!((signal.parked(), signal.woken()), (3, 2));
}

#[test]
fn a_task_does_not_hold_the_chain_up() {
    let signal = Signal::new();
    let waiters: Vec<_> = (0..5).map(|_| Counter::new()).collect();
    let woken = || waiters.iter().map(|(c, _)| c.woken()).collect::<Vec<_>>();
    // A task may be dropped, or polled much later.
    let _ = signal.register(&waiters[0].1);
    let thread = signal.list(&waiters[1].1, Kind::Thread);
    let _ = signal.register(&waiters[2].1);
    let _ = signal.register(&waiters[3].1);
    let last = signal.list(&waiters[4].1, Kind::Thread);
    signal.notify_chained();
    assert_eq!(woken(), [1, 1, 0, 0, 0], "with the first thread");
    signal.notify_chained();
    assert_eq!(woken(), [1, 1, 0, 0, 0], "the thread has not looked");
    assert!(!signal.unregister(thread));
    signal.notify_chained();
    signal.notify_chained();
    assert_eq!(woken(), [1, 1, 1, 0, 1]);
    assert!(!signal.unregister(last));
    signal.notify_chained();
    assert_eq!(woken(), [1; 5]);
    assert_eq!((word(&signal), signal.woken()), (ARMED, 5));
}

#[test]
fn a_task_that_never_looks_does_not_keep_a_thread_asleep() {
    for kind in [Kind::Select, Kind::Thread] {
        let signal = Signal::new();
        let waiters: Vec<_> = (0..4).map(|_| Counter::new()).collect();
        let woken = || waiters.iter().map(|(c, _)| c.woken()).collect::<Vec<_>>();
        for (at, (_, waker)) in waiters.iter().enumerate() {
            let _ = signal.list(waker, if at < 2 { Kind::Task } else { kind });
        }
        signal.notify_one();
        assert_eq!(woken(), [1, 0, 1, 0]);
        assert_eq!(signal.notify(1), 1);
        assert_eq!((woken(), signal.waiting()), (vec![1; 4], 0));
        assert_eq!(word(&signal) & WAKING, 0);
    }
}

#[test]
fn other_notifications_wake_while_a_thread_is_on_its_way() {
    let signal = Signal::new();
    let waiters: Vec<_> = (0..12).map(|_| Counter::new()).collect();
    let woken = || waiters.iter().map(|(c, _)| c.woken()).sum::<usize>();
    let entries: Vec<_> = (waiters.iter())
        .map(|(_, waker)| signal.list(waker, Kind::Thread))
        .collect();
    signal.notify_chained();
    signal.notify_one();
    assert_eq!(woken(), 2);
    // A thread that another notification woke is not the one of the chain.
    assert!(!signal.unregister(entries[1]));
    assert_eq!(word(&signal), ARMED + WAKING + 10 * WAITER);
    assert_eq!(signal.notify(3), 3);
    assert_eq!((signal.notify_all(), woken()), (7, 12));
    assert_eq!(word(&signal), ARMED + WAKING);
    assert!(!signal.unregister(entries[0]));
    assert_eq!(word(&signal), ARMED);
}

/// The mark is as old as the clock.
fn age(signal: &Signal) {
    signal.back.since.store(0, SeqCst);
}

#[test]
fn the_next_is_woken_where_the_last_is_overdue() {
    let signal = Signal::new();
    let waiters: Vec<_> = (0..4).map(|_| Counter::new()).collect();
    let woken = || waiters.iter().map(|(c, _)| c.woken()).collect::<Vec<_>>();
    let entries: Vec<_> = (waiters.iter())
        .map(|(_, waker)| signal.list(waker, Kind::Thread))
        .collect();
    // The first gets no core.
    signal.notify_chained();
    signal.notify_chained();
    assert_eq!(woken(), [1, 0, 0, 0]);
    age(&signal);
    signal.notify_chained();
    assert_eq!(woken(), [1, 1, 0, 0]);
    assert_eq!(word(&signal), ARMED + WAKING + 2 * WAITER);
    // Its mark is the second's now, and that is on its way.
    assert!(!signal.unregister(entries[0]));
    assert_eq!(word(&signal), ARMED + WAKING + 2 * WAITER);
    signal.notify_chained();
    assert_eq!(woken(), [1, 1, 0, 0]);
    // Neither has the second, for long enough to be passed without a fence.
    (0..2 * HELD).for_each(|_| _ = signal.notify_chained());
    assert_eq!(word(&signal) & !ARMED, WAKING + OLD + 2 * WAITER);
    age(&signal);
    (0..HELD).for_each(|_| _ = signal.notify_chained());
    assert_eq!(woken(), [1, 1, 1, 0]);
    assert_eq!(word(&signal), ARMED + WAKING + OLD + WAITER);
    assert!(!signal.unregister(entries[1]) && !signal.unregister(entries[2]));
    assert_eq!(word(&signal), ARMED + WAITER);
    signal.notify_chained();
    assert_eq!(woken(), [1; 4]);
    assert_eq!(word(&signal), ARMED + WAKING, "fresh");
    assert!(!signal.unregister(entries[3]));
    assert_eq!((word(&signal), signal.woken()), (ARMED, 4));
}

#[test]
fn a_place_on_the_list_that_is_used_again_keeps_the_mark() {
    let signal = Signal::new();
    let (_, waker) = Counter::new();
    let first = signal.list(&waker, Kind::Thread);
    signal.notify_chained();
    let (counter, waker) = Counter::new();
    let second = signal.list(&waker, Kind::Thread);
    assert!(signal.unregister(second));
    assert_eq!(word(&signal), ARMED + WAKING, "in the same slot");
    let second = signal.list(&waker, Kind::Thread);
    signal.notify_chained();
    assert_eq!(counter.woken(), 0);
    assert!(!signal.unregister(first));
    signal.notify_chained();
    assert_eq!(counter.woken(), 1);
    assert!(!signal.unregister(second));
}

#[test]
fn a_waker_that_panics_leaves_the_chain_whole() {
    let signal = Signal::new();
    let (counter, waker) = Counter::new();
    let _ = signal.register(&Waker::from(Arc::new(Panics)));
    let _ = signal.register(&waker);
    signal.notify_chained();
    signal.notify_chained();
    assert_eq!((counter.woken(), signal.waiting()), (1, 0));
}

#[test]
fn a_signal_is_cleared_when_no_thread_is_on_the_way() {
    let signal = Signal::new();
    if word(&signal) != 0 {
        println!("skipped: this system has no membarrier");
        return;
    }
    let (_, waker) = Counter::new();
    let entry = signal.list(&waker, Kind::Thread);
    signal.notify_chained();
    for _ in 0..3 * IDLE_MAX {
        signal.notify_one();
        signal.notify_chained();
    }
    assert_eq!(word(&signal), ARMED + WAKING + OLD);
    assert!(!signal.unregister(entry));
    for _ in 0..IDLE_MAX {
        signal.notify_chained();
    }
    assert_eq!(word(&signal), 0);
}

#[test]
fn a_notifier_that_comes_late_does_not_arm() {
    let signal = Signal::new();
    if word(&signal) != 0 {
        println!("skipped: this system has no membarrier");
        return;
    }
    let (_, waker) = Counter::new();
    // Two notifiers see a waiter here, and come to the list only after it was cleared.
    assert!(signal.unregister(signal.register(&waker)));
    for _ in 0..IDLE_MAX {
        signal.notify_one();
    }
    assert_eq!(word(&signal), 0);
    assert_eq!(signal.wake(1), 0);
    assert_eq!(word(&signal), 0, "armed without the heavy barrier");
    signal.wake_next(false);
    assert_eq!(word(&signal), 0, "armed without the heavy barrier");
}

#[test]
fn one_that_gives_up_passes_the_chain_on() {
    let signal = Signal::new();
    let (counter, waker) = Counter::new();
    let mut looks = 0;
    let deadline = Some(Instant::now());
    let outcome = block(&signal, &mut Pace::new(Mode::Power), deadline, || {
        looks += 1;
        // The second look comes after this thread has listed itself.
        if looks == 2 {
            let _ = signal.list(&waker, Kind::Thread);
            signal.notify_chained();
            signal.notify_chained();
            assert_eq!((counter.woken(), word(&signal) & WAKING), (0, WAKING));
        }
        None::<()>
    });
    // It looked after it was woken, and found nothing: there was nothing for the other, either.
    // (Its deadline had passed by then, so that it did not sleep once more.)
    assert_eq!((outcome, looks), (Err(TimedOut), 3));
    assert_eq!((counter.woken(), word(&signal) & WAKING), (0, 0));
    signal.notify_chained();
    assert_eq!(counter.woken(), 1);
}

#[test]
fn one_that_panics_passes_the_chain_on() {
    // In the look while it is listed, and in the look after it was woken.
    for panics_in in [2, 3] {
        let signal = Signal::new();
        let (counter, waker) = Counter::new();
        let mut looks = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            block(&signal, &mut Pace::new(Mode::Power), None, || {
                looks += 1;
                if looks == 2 {
                    let _ = signal.list(&waker, Kind::Thread);
                    signal.notify_chained();
                    signal.notify_chained();
                }
                assert!(looks < panics_in, "while looking");
                None::<()>
            })
        }));
        assert!(outcome.is_err());
        assert_eq!((counter.woken(), signal.waiting()), (1, 0), "{panics_in}");
        assert_eq!(word(&signal) & WAKING, 0);
    }
}

#[test]
fn one_that_found_something_before_it_left_passes_the_chain_on() {
    let signal = Signal::new();
    let (counter, waker) = Counter::new();
    let mut looks = 0;
    let found = block(&signal, &mut Pace::new(Mode::Power), None, || {
        looks += 1;
        (looks == 2).then(|| {
            let _ = signal.list(&waker, Kind::Thread);
            signal.notify_chained();
            signal.notify_chained();
        })
    });
    assert_eq!(found, Ok(()));
    assert_eq!((counter.woken(), word(&signal) & WAKING), (1, 0));
}

#[test]
fn a_chain_of_many_loses_nothing() {
    const EACH: u64 = 3_000;
    for mode in [Mode::Power, Mode::Balanced] {
        let (signal, left, taken) = (Signal::new(), AtomicU64::new(0), AtomicU64::new(0));
        let pass_on = || {
            if left.load(SeqCst) > 0 {
                signal.notify_chained();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut pace = Pace::new(mode);
                    for n in 0..EACH {
                        let soon = Instant::now() + Duration::from_micros(n % 50);
                        let early = (n % 7 == 0)
                            .then(|| block(&signal, &mut pace, Some(soon), || take(&left)));
                        if early != Some(Ok(())) {
                            block(&signal, &mut pace, None, || take(&left)).unwrap();
                        }
                        taken.fetch_add(1, SeqCst);
                        pass_on();
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for n in 0..2 * EACH {
                        left.fetch_add(1, SeqCst);
                        signal.notify_chained();
                        if n % 64 == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!((left.load(SeqCst), taken.load(SeqCst)), (0, 4 * EACH));
        assert_eq!((signal.waiting(), word(&signal) & WAKING), (0, 0));
        assert!(signal.woken() <= signal.parked());
    }
}
