use super::*;
use crate::wait::{Pace, TimedOut, WaitMode, block, block_at_low_power};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use thalweg_testkit::wakers::{Alarm, panicking};

/// Takes one of what is there.
fn take(left: &AtomicU64) -> Option<()> {
    left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
        .ok()
        .map(drop)
}

#[test]
fn waiters_are_woken_in_the_order_in_which_they_came() {
    let event_count = EventCount::new();
    let waiters: Vec<_> = (0..40).map(|_| Alarm::pair()).collect();
    let entries: Vec<_> = waiters
        .iter()
        .map(|(_, w)| event_count.register(w))
        .collect();
    let woken = || waiters.iter().map(|(c, _)| c.count()).collect::<Vec<_>>();
    let first = |n: usize| [vec![1; n], vec![0; 40 - n]].concat();
    assert_eq!(event_count.waiting(), 40);
    event_count.notify_one();
    assert_eq!(woken(), first(1));
    assert_eq!(event_count.notify(20), 20);
    assert_eq!(woken(), first(21));
    assert!(!event_count.unregister(entries[20]), "notified");
    assert!(event_count.unregister(entries[21]), "still listed");
    assert!(!event_count.unregister(entries[21]), "it left");
    assert_eq!(event_count.waiting(), 18);
    assert_eq!(event_count.notify_all(), 18);
    assert_eq!(woken()[20..24], [1, 0, 1, 1]);
    assert_eq!((event_count.notify(9), event_count.waiting()), (0, 0));
    assert_eq!((event_count.registrations(), event_count.woken()), (40, 39));
}

#[test]
fn a_task_polled_again_may_bring_another_waker() {
    let event_count = EventCount::new();
    let ((old, old_waker), (new, new_waker)) = (Alarm::pair(), Alarm::pair());
    let entry = event_count.register(&old_waker);
    assert!(event_count.update(entry, &old_waker));
    assert!(event_count.update(entry, &new_waker));
    assert_eq!(
        Arc::strong_count(&old),
        2,
        "the event_count let go of the old one"
    );
    event_count.notify_one();
    assert_eq!((old.count(), new.count()), (0, 1));
    assert!(!event_count.update(entry, &old_waker));
    assert!(!event_count.unregister(entry));
}

#[test]
fn wakers_are_let_go() {
    let (counter, waker) = Alarm::pair();
    let event_count = EventCount::new();
    let entries = [event_count.register(&waker), event_count.register(&waker)];
    assert!(event_count.unregister(entries[0]));
    event_count.notify_one();
    let _ = event_count.register(&waker);
    drop(event_count);
    assert_eq!((Arc::strong_count(&counter), counter.count()), (2, 1));
}

#[test]
fn a_panicking_waker_stops_no_other() {
    let event_count = EventCount::new();
    let (counter, waker) = Alarm::pair();
    let panics = panicking();
    for _ in 0..10 {
        let _ = (event_count.register(&panics), event_count.register(&waker));
    }
    assert_eq!(event_count.notify(20), 20);
    assert_eq!((counter.count(), event_count.waiting()), (10, 0));
    let _ = event_count.register(&waker);
    assert_eq!(event_count.notify(2), 1);
    assert_eq!(counter.count(), 11);
}

#[test]
fn an_idle_event_count_is_cleared_and_armed_again() {
    let event_count = EventCount::new();
    let word = || event_count.front.word.load(SeqCst);
    if word() != 0 {
        println!("skipped: this system has no membarrier");
        return;
    }
    let (_, waker) = Alarm::pair();
    for _ in 0..3 {
        let entry = event_count.register(&waker);
        assert_eq!(word(), ARMED + WAITER);
        // As long as there is a waiter it stays armed.
        assert!(event_count.unregister(entry));
        for _ in 1..IDLE_MAX {
            event_count.notify_one();
        }
        assert_eq!(word(), ARMED);
        event_count.notify_one();
        assert_eq!(word(), 0);
        event_count.notify_one();
        assert_eq!(event_count.notify_all(), 0);
    }
}

#[test]
fn a_notification_that_a_leaver_got_goes_on() {
    let event_count = EventCount::new();
    let (_, leaver) = Alarm::pair();
    let (other, waker) = Alarm::pair();
    let (first, _) = (event_count.register(&leaver), event_count.register(&waker));
    event_count.notify_one();
    if !event_count.unregister(first) {
        event_count.notify_one();
    }
    assert_eq!(other.count(), 1);
}

const TURNS: u64 = 600;

/// Two threads take turns. Gives how often one slept.
fn turns(mode: WaitMode) -> u64 {
    let shared = (AtomicU64::new(0), [EventCount::new(), EventCount::new()]);
    let play = |me: u64| {
        let mut pace = Pace::new(mode);
        for turn in (me..TURNS).step_by(2) {
            let mine = || (shared.0.load(SeqCst) == turn).then_some(());
            block(&shared.1[me as usize], &mut pace, None, mine).expect("no deadline");
            shared.0.store(turn + 1, SeqCst);
            shared.1[1 - me as usize].notify_one();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(1));
        play(0);
    });
    assert_eq!(shared.0.load(SeqCst), TURNS);
    let [a, b] = &shared.1;
    assert!(a.woken() <= a.registrations() && b.woken() <= b.registrations());
    assert_eq!(a.waiting() + b.waiting(), 0);
    a.registrations() + b.registrations()
}

#[test]
fn two_threads_hand_a_turn_back_and_forth() {
    for &mode in WaitMode::ALL {
        turns(mode);
    }
    // Where others have the processor, a turn is often back before any thread could sleep.
    assert!((0..20).any(|_| turns(WaitMode::LowPower) > TURNS / 2));
}

/// Four threads take 3,000 each of what two bring two by two, and leave often, sometimes with a
/// notification in the hand. `notify` follows each two that were brought; `pass_on` follows each
/// that was taken, with how many are left.
fn crowd(mode: WaitMode, notify: fn(&EventCount, u64), pass_on: fn(&EventCount, u64)) {
    const EACH: u64 = 3_000;
    let (event_count, left, taken) = (EventCount::new(), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut pace = Pace::new(mode);
                for n in 0..EACH {
                    let soon = Instant::now() + Duration::from_micros(n % 50);
                    let early = (n % 7 == 0)
                        .then(|| block(&event_count, &mut pace, Some(soon), || take(&left)));
                    if early != Some(Ok(())) {
                        block(&event_count, &mut pace, None, || take(&left)).expect("no deadline");
                    }
                    taken.fetch_add(1, SeqCst);
                    pass_on(&event_count, left.load(SeqCst));
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..EACH {
                    left.fetch_add(2, SeqCst);
                    notify(&event_count, n);
                    if n % 64 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!((left.load(SeqCst), taken.load(SeqCst)), (0, 4 * EACH));
    assert_eq!(
        (
            event_count.waiting(),
            event_count.front.word.load(SeqCst) & WAKING
        ),
        (0, 0)
    );
    assert!(event_count.woken() <= event_count.registrations());
}

#[test]
fn many_notifiers_and_many_waiters_lose_nothing() {
    for &mode in WaitMode::ALL {
        let notify = |event_count: &EventCount, n| {
            if n % 2 == 0 {
                event_count.notify(2);
            } else {
                event_count.notify_one();
                event_count.notify_one();
            }
        };
        crowd(mode, notify, |_, _| ());
        // In a chain a thread that was woken wakes the next.
        let notify = |event_count: &EventCount, _| {
            event_count.notify_chained();
            event_count.notify_chained();
        };
        crowd(mode, notify, |event_count, left| {
            if left > 0 {
                event_count.notify_chained();
            }
        });
    }
}

#[test]
fn a_wait_ends_at_its_deadline_and_not_before() {
    let event_count = EventCount::new();
    for &mode in WaitMode::ALL {
        let mut pace = Pace::new(mode);
        let deadline = Instant::now() + Duration::from_millis(7);
        let never = || None::<()>;
        assert_eq!(
            block(&event_count, &mut pace, Some(deadline), never),
            Err(TimedOut)
        );
        assert!(Instant::now() >= deadline);
        assert_eq!(
            block(&event_count, &mut pace, Some(deadline), never),
            Err(TimedOut)
        );
        assert_eq!(
            block(&event_count, &mut pace, Some(deadline), || Some(1)),
            Ok(1)
        );
    }
    assert_eq!(event_count.waiting(), 0);
    assert_eq!(TimedOut.to_string(), "nothing came before the deadline");
}

#[test]
fn a_panicking_attempt_leaves_no_wait_behind_and_passes_the_notification_on() {
    let event_count = EventCount::new();
    let (other, waker) = Alarm::pair();
    let mut looks = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        block_at_low_power(&event_count, None, || {
            looks += 1;
            // The second look comes after this thread has listed itself.
            if looks == 2 {
                let _ = event_count.register(&waker);
                event_count.notify_one();
                panic!("while looking");
            }
            None::<()>
        })
    }));
    assert!(outcome.is_err());
    assert_eq!((other.count(), event_count.waiting()), (1, 0));
}

#[test]
fn a_wait_within_a_wait_does_not_take_its_notification() {
    let (outer, inner) = (EventCount::new(), EventCount::new());
    let (state, begun) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while begun.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            // The outer wait is listed, the inner one about to be.
            state.store(1, SeqCst);
            outer.notify_one();
            state.store(2, SeqCst);
            inner.notify_one();
        });
        let mut looks = 0;
        let found = block_at_low_power(&outer, None, || {
            looks += 1;
            if looks == 2 {
                begun.store(1, SeqCst);
                let second = || (state.load(SeqCst) == 2).then_some(());
                let found = block_at_low_power(&inner, None, second);
                found.expect("it has no deadline");
                return None;
            }
            (state.load(SeqCst) > 0).then_some(looks)
        });
        assert_eq!(found, Ok(3));
    });
}

/// An entry is of one event count; another's waiter, which has the same number there, stays.
#[test]
fn an_entry_of_another_event_count_takes_no_waiter_off() {
    let (mine, other) = (EventCount::new(), EventCount::new());
    let waker = std::task::Waker::noop();
    let (entry, foreign) = (mine.register(waker), other.register(waker));
    assert!(!mine.unregister(foreign) && !mine.update(foreign, waker));
    assert_eq!((mine.waiting(), other.waiting()), (1, 1));
    assert!(mine.unregister(entry) && other.unregister(foreign));
}

mod chain {
    //! Chained notifications (rule 4), one step at a time.

    use super::{Alarm, panicking};
    use crate::wait::event_count::{
        ARMED, EventCount, IDLE_MAX, Kind, OLD, SUPPRESSED_MAX, WAITER, WAKING,
    };
    use crate::wait::{TimedOut, block_at_low_power};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::Instant;

    fn word(event_count: &EventCount) -> u32 {
        event_count.front.word.load(SeqCst)
    }

    #[test]
    fn one_thread_is_woken_at_a_time() {
        let event_count = EventCount::new();
        let waiters = [Alarm::pair(), Alarm::pair(), Alarm::pair()];
        let woken = || waiters.each_ref().map(|(counter, _)| counter.count());
        let entries = waiters
            .each_ref()
            .map(|(_, waker)| event_count.register_as(waker, Kind::Thread));
        for _ in 0..3 {
            event_count.notify_chained();
        }
        assert_eq!(woken(), [1, 0, 0]);
        assert_eq!(word(&event_count), ARMED + WAKING + 2 * WAITER);
        assert_eq!((event_count.registrations(), event_count.woken()), (3, 1));
        assert_eq!(event_count.waiting(), 2, "the mark is no waiter");

        assert!(!event_count.unregister(entries[0]), "notified");
        assert_eq!(word(&event_count), ARMED + 2 * WAITER);
        assert!(!event_count.unregister(entries[0]), "it left");
        event_count.notify_chained();
        event_count.notify_chained();
        assert_eq!((woken(), event_count.woken()), ([1, 1, 0], 2));

        // A waiter that leaves without having been woken leaves the mark to the other.
        assert!(event_count.unregister(entries[2]));
        assert_eq!(word(&event_count), ARMED + WAKING);
        assert!(!event_count.unregister(entries[1]));
        assert_eq!(word(&event_count), ARMED);
        assert_eq!((event_count.registrations(), event_count.woken()), (3, 2));
    }

    #[test]
    fn a_task_does_not_hold_the_chain_up() {
        let event_count = EventCount::new();
        let waiters: Vec<_> = (0..5).map(|_| Alarm::pair()).collect();
        let woken = || waiters.iter().map(|(c, _)| c.count()).collect::<Vec<_>>();
        // A task may be dropped, or polled much later.
        let _ = event_count.register(&waiters[0].1);
        let thread = event_count.register_as(&waiters[1].1, Kind::Thread);
        let _ = event_count.register(&waiters[2].1);
        let _ = event_count.register(&waiters[3].1);
        let last = event_count.register_as(&waiters[4].1, Kind::Thread);
        event_count.notify_chained();
        assert_eq!(woken(), [1, 1, 0, 0, 0], "with the first thread");
        event_count.notify_chained();
        assert_eq!(woken(), [1, 1, 0, 0, 0], "the thread has not looked");
        assert!(!event_count.unregister(thread));
        event_count.notify_chained();
        event_count.notify_chained();
        assert_eq!(woken(), [1, 1, 1, 0, 1]);
        assert!(!event_count.unregister(last));
        event_count.notify_chained();
        assert_eq!(woken(), [1; 5]);
        assert_eq!((word(&event_count), event_count.woken()), (ARMED, 5));
    }

    #[test]
    fn a_task_that_never_looks_does_not_keep_a_thread_asleep() {
        for kind in [Kind::Select, Kind::Thread] {
            let event_count = EventCount::new();
            let waiters: Vec<_> = (0..4).map(|_| Alarm::pair()).collect();
            let woken = || waiters.iter().map(|(c, _)| c.count()).collect::<Vec<_>>();
            for (at, (_, waker)) in waiters.iter().enumerate() {
                let _ = event_count.register_as(waker, if at < 2 { Kind::Task } else { kind });
            }
            event_count.notify_one();
            assert_eq!(woken(), [1, 0, 1, 0]);
            assert_eq!(event_count.notify(1), 1);
            assert_eq!((woken(), event_count.waiting()), (vec![1; 4], 0));
            assert_eq!(word(&event_count) & WAKING, 0);
        }
    }

    #[test]
    fn other_notifications_wake_while_a_thread_is_on_its_way() {
        let event_count = EventCount::new();
        let waiters: Vec<_> = (0..12).map(|_| Alarm::pair()).collect();
        let woken = || waiters.iter().map(|(c, _)| c.count()).sum::<usize>();
        let entries: Vec<_> = (waiters.iter())
            .map(|(_, waker)| event_count.register_as(waker, Kind::Thread))
            .collect();
        event_count.notify_chained();
        event_count.notify_one();
        assert_eq!(woken(), 2);
        // A thread that another notification woke is not the one of the chain.
        assert!(!event_count.unregister(entries[1]));
        assert_eq!(word(&event_count), ARMED + WAKING + 10 * WAITER);
        assert_eq!(event_count.notify(3), 3);
        assert_eq!((event_count.notify_all(), woken()), (7, 12));
        assert_eq!(word(&event_count), ARMED + WAKING);
        assert!(!event_count.unregister(entries[0]));
        assert_eq!(word(&event_count), ARMED);
    }

    /// The mark is as old as the clock.
    fn age(event_count: &EventCount) {
        event_count.back.since.store(0, SeqCst);
    }

    #[test]
    fn the_next_is_woken_where_the_last_is_overdue() {
        let event_count = EventCount::new();
        let waiters: Vec<_> = (0..4).map(|_| Alarm::pair()).collect();
        let woken = || waiters.iter().map(|(c, _)| c.count()).collect::<Vec<_>>();
        let entries: Vec<_> = (waiters.iter())
            .map(|(_, waker)| event_count.register_as(waker, Kind::Thread))
            .collect();
        // The first gets no core.
        event_count.notify_chained();
        event_count.notify_chained();
        assert_eq!(woken(), [1, 0, 0, 0]);
        age(&event_count);
        event_count.notify_chained();
        assert_eq!(woken(), [1, 1, 0, 0]);
        assert_eq!(word(&event_count), ARMED + WAKING + 2 * WAITER);
        // Its mark is the second's now, and that is on its way.
        assert!(!event_count.unregister(entries[0]));
        assert_eq!(word(&event_count), ARMED + WAKING + 2 * WAITER);
        event_count.notify_chained();
        assert_eq!(woken(), [1, 1, 0, 0]);
        // Neither has the second, for long enough to be passed without a fence.
        (0..2 * SUPPRESSED_MAX).for_each(|_| _ = event_count.notify_chained());
        assert_eq!(word(&event_count) & !ARMED, WAKING + OLD + 2 * WAITER);
        age(&event_count);
        (0..SUPPRESSED_MAX).for_each(|_| _ = event_count.notify_chained());
        assert_eq!(woken(), [1, 1, 1, 0]);
        assert_eq!(word(&event_count), ARMED + WAKING + OLD + WAITER);
        assert!(!event_count.unregister(entries[1]) && !event_count.unregister(entries[2]));
        assert_eq!(word(&event_count), ARMED + WAITER);
        event_count.notify_chained();
        assert_eq!(woken(), [1; 4]);
        assert_eq!(word(&event_count), ARMED + WAKING, "fresh");
        assert!(!event_count.unregister(entries[3]));
        assert_eq!((word(&event_count), event_count.woken()), (ARMED, 4));
    }

    #[test]
    fn a_place_on_the_list_that_is_used_again_keeps_the_mark() {
        let event_count = EventCount::new();
        let (_, waker) = Alarm::pair();
        let first = event_count.register_as(&waker, Kind::Thread);
        event_count.notify_chained();
        let (counter, waker) = Alarm::pair();
        let second = event_count.register_as(&waker, Kind::Thread);
        assert!(event_count.unregister(second));
        assert_eq!(word(&event_count), ARMED + WAKING, "in the same slot");
        let second = event_count.register_as(&waker, Kind::Thread);
        event_count.notify_chained();
        assert_eq!(counter.count(), 0);
        assert!(!event_count.unregister(first));
        event_count.notify_chained();
        assert_eq!(counter.count(), 1);
        assert!(!event_count.unregister(second));
    }

    #[test]
    fn a_waker_that_panics_leaves_the_chain_whole() {
        let event_count = EventCount::new();
        let (counter, waker) = Alarm::pair();
        let _ = event_count.register(&panicking());
        let _ = event_count.register(&waker);
        event_count.notify_chained();
        event_count.notify_chained();
        assert_eq!((counter.count(), event_count.waiting()), (1, 0));
    }

    #[test]
    fn an_event_count_is_cleared_when_no_thread_is_on_the_way() {
        let event_count = EventCount::new();
        if word(&event_count) != 0 {
            println!("skipped: this system has no membarrier");
            return;
        }
        let (_, waker) = Alarm::pair();
        let entry = event_count.register_as(&waker, Kind::Thread);
        event_count.notify_chained();
        for _ in 0..3 * IDLE_MAX {
            event_count.notify_one();
            event_count.notify_chained();
        }
        assert_eq!(word(&event_count), ARMED + WAKING + OLD);
        assert!(!event_count.unregister(entry));
        for _ in 0..IDLE_MAX {
            event_count.notify_chained();
        }
        assert_eq!(word(&event_count), 0);
    }

    #[test]
    fn a_notifier_that_comes_late_does_not_arm() {
        let event_count = EventCount::new();
        if word(&event_count) != 0 {
            println!("skipped: this system has no membarrier");
            return;
        }
        let (_, waker) = Alarm::pair();
        // Two notifiers see a waiter here, and come to the list only after it was cleared.
        assert!(event_count.unregister(event_count.register(&waker)));
        for _ in 0..IDLE_MAX {
            event_count.notify_one();
        }
        assert_eq!(word(&event_count), 0);
        assert_eq!(event_count.wake(1), 0);
        assert_eq!(word(&event_count), 0, "armed without the heavy barrier");
        event_count.wake_next(false);
        assert_eq!(word(&event_count), 0, "armed without the heavy barrier");
    }

    #[test]
    fn one_that_gives_up_passes_the_chain_on() {
        let event_count = EventCount::new();
        let (counter, waker) = Alarm::pair();
        let mut looks = 0;
        let deadline = Some(Instant::now());
        let outcome = block_at_low_power(&event_count, deadline, || {
            looks += 1;
            // The second look comes after this thread has listed itself.
            if looks == 2 {
                let _ = event_count.register_as(&waker, Kind::Thread);
                event_count.notify_chained();
                event_count.notify_chained();
                assert_eq!((counter.count(), word(&event_count) & WAKING), (0, WAKING));
            }
            None::<()>
        });
        // It looked after it was woken, and found nothing: there was nothing for the other, either.
        // (Its deadline had passed by then, so that it did not sleep once more.)
        assert_eq!((outcome, looks), (Err(TimedOut), 3));
        assert_eq!((counter.count(), word(&event_count) & WAKING), (0, 0));
        event_count.notify_chained();
        assert_eq!(counter.count(), 1);
    }

    #[test]
    fn one_that_panics_passes_the_chain_on() {
        // In the look while it is listed, and in the look after it was woken.
        for panics_in in [2, 3] {
            let event_count = EventCount::new();
            let (counter, waker) = Alarm::pair();
            let mut looks = 0;
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                block_at_low_power(&event_count, None, || {
                    looks += 1;
                    if looks == 2 {
                        let _ = event_count.register_as(&waker, Kind::Thread);
                        event_count.notify_chained();
                        event_count.notify_chained();
                    }
                    assert!(looks < panics_in, "while looking");
                    None::<()>
                })
            }));
            assert!(outcome.is_err());
            assert_eq!(
                (counter.count(), event_count.waiting()),
                (1, 0),
                "{panics_in}"
            );
            assert_eq!(word(&event_count) & WAKING, 0);
        }
    }

    #[test]
    fn one_that_found_something_before_it_left_passes_the_chain_on() {
        let event_count = EventCount::new();
        let (counter, waker) = Alarm::pair();
        let mut looks = 0;
        let found = block_at_low_power(&event_count, None, || {
            looks += 1;
            (looks == 2).then(|| {
                let _ = event_count.register_as(&waker, Kind::Thread);
                event_count.notify_chained();
                event_count.notify_chained();
            })
        });
        assert_eq!(found, Ok(()));
        assert_eq!((counter.count(), word(&event_count) & WAKING), (1, 0));
    }
}

mod shutting {
    //! An event count that is shut reports that to every notifier, for ever, and works as before.

    use super::{Alarm, EventCount, IDLE_MAX};
    use crate::wait::event_count::Kind;

    fn is_shut(event_count: &EventCount) -> bool {
        let reported = event_count.notify_one();
        assert_eq!(event_count.notify_chained(), reported);
        event_count.notify(3);
        assert_eq!(event_count.is_shut(), reported);
        reported
    }

    #[test]
    fn only_a_shut_event_count_reports_it() {
        let event_count = EventCount::new();
        assert!(!is_shut(&event_count), "new");
        let (counter, waker) = Alarm::pair();
        let entry = event_count.register(&waker);
        assert!(!is_shut(&event_count), "armed");
        assert_eq!(counter.count(), 1);
        assert!(!event_count.unregister(entry));
        event_count.shut();
        assert!(is_shut(&event_count));
        event_count.shut();
        assert!(is_shut(&event_count), "twice does no harm");
    }

    #[test]
    fn it_stays_shut_whatever_comes() {
        let event_count = EventCount::new();
        event_count.shut();
        for _ in 0..3 * IDLE_MAX {
            assert!(event_count.notify_one());
        }
        let (counter, waker) = Alarm::pair();
        let entry = event_count.register(&waker);
        assert_eq!(event_count.waiting(), 1);
        assert!(is_shut(&event_count));
        assert_eq!((counter.count(), event_count.waiting()), (1, 0));
        assert!(!event_count.unregister(entry));
        let entry = event_count.register_as(&waker, Kind::Thread);
        assert!(event_count.notify_chained() && event_count.notify_chained());
        assert!(!event_count.unregister(entry));
        assert!(is_shut(&event_count), "also after a chain");
    }
}

mod list {
    use super::super::*;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::task::Wake;

    /// A waker that is identified by its address.
    struct Numbered;

    impl Wake for Numbered {
        fn wake(self: Arc<Self>) {}
    }

    fn waker() -> Waker {
        Waker::from(Arc::new(Numbered))
    }

    #[test]
    fn waiters_are_served_as_they_came_and_may_leave_from_anywhere() {
        let mut list = List::default();
        // A reference in the simplest form.
        let mut queue: VecDeque<(Entry, Waker)> = VecDeque::new();
        let mut random = 1_u64;
        for round in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let choice = (random >> 40) as usize;
            match choice % 4 {
                0 | 1 if queue.len() < 40 => {
                    let waker = waker();
                    let entry = list.push(waker.clone(), Kind::Task);
                    queue.push_back((entry, waker));
                }
                2 => {
                    let (got, want) = (list.pop(false), queue.pop_front());
                    assert_eq!(got.is_some(), want.is_some(), "round {round}");
                    if let (Some([got, None]), Some((entry, want))) = (got, want) {
                        assert!(got.unwrap().will_wake(&want));
                        assert!(list.remove(entry).is_none(), "it was popped");
                    }
                }
                _ if !queue.is_empty() => {
                    let (entry, want) = queue.remove(choice / 4 % queue.len()).unwrap();
                    let left = list.remove(entry).and_then(|wait| wait.waker);
                    assert!(left.unwrap().will_wake(&want));
                    assert!(list.remove(entry).is_none(), "it left");
                }
                _ => assert!(list.pop(false).is_none()),
            }
            assert_eq!(list.len() as usize, queue.len());
        }
        assert!(list.listed() > list.woken && list.woken > 0);
    }
}
