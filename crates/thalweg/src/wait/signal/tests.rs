use super::*;
use crate::wait::{Mode, Pace, TimedOut, block};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::Wake;
use std::time::{Duration, Instant};

/// Counts how often it is woken.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Counter {
    fn new() -> (Arc<Self>, Waker) {
        let counter = Arc::new(Self::default());
        (Arc::clone(&counter), Waker::from(counter))
    }

    fn woken(&self) -> usize {
        self.0.load(SeqCst)
    }
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

/// Takes one of what is there.
fn take(left: &AtomicU64) -> Option<()> {
    left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
        .ok()
        .map(drop)
}

#[test]
fn waiters_are_woken_in_the_order_in_which_they_came() {
    let signal = Signal::new();
    let waiters: Vec<_> = (0..40).map(|_| Counter::new()).collect();
    let entries: Vec<_> = waiters.iter().map(|(_, w)| signal.register(w)).collect();
    let woken = || waiters.iter().map(|(c, _)| c.woken()).collect::<Vec<_>>();
    let first = |n: usize| [vec![1; n], vec![0; 40 - n]].concat();
    assert_eq!(signal.waiting(), 40);
    signal.notify_one();
    assert_eq!(woken(), first(1));
    assert_eq!(signal.notify(20), 20);
    assert_eq!(woken(), first(21));
    assert!(!signal.unregister(entries[20]), "notified");
    assert!(signal.unregister(entries[21]), "still listed");
    assert!(!signal.unregister(entries[21]), "it left");
    assert_eq!(signal.waiting(), 18);
    assert_eq!(signal.notify_all(), 18);
    assert_eq!(woken()[20..24], [1, 0, 1, 1]);
    assert_eq!((signal.notify(9), signal.waiting()), (0, 0));
    assert_eq!((signal.registrations(), signal.woken()), (40, 39));
}

#[test]
fn a_task_polled_again_may_bring_another_waker() {
    let signal = Signal::new();
    let ((old, old_waker), (new, new_waker)) = (Counter::new(), Counter::new());
    let entry = signal.register(&old_waker);
    assert!(signal.update(entry, &old_waker));
    assert!(signal.update(entry, &new_waker));
    assert_eq!(
        Arc::strong_count(&old),
        2,
        "the signal let go of the old one"
    );
    signal.notify_one();
    assert_eq!((old.woken(), new.woken()), (0, 1));
    assert!(!signal.update(entry, &old_waker));
    assert!(!signal.unregister(entry));
}

#[test]
fn wakers_are_let_go() {
    let (counter, waker) = Counter::new();
    let signal = Signal::new();
    let entries = [signal.register(&waker), signal.register(&waker)];
    assert!(signal.unregister(entries[0]));
    signal.notify_one();
    let _ = signal.register(&waker);
    drop(signal);
    assert_eq!((Arc::strong_count(&counter), counter.woken()), (2, 1));
}

#[test]
fn a_panicking_waker_stops_no_other() {
    let signal = Signal::new();
    let (counter, waker) = Counter::new();
    let panics = Waker::from(Arc::new(Panics));
    for _ in 0..10 {
        let _ = (signal.register(&panics), signal.register(&waker));
    }
    assert_eq!(signal.notify(20), 20);
    assert_eq!((counter.woken(), signal.waiting()), (10, 0));
    let _ = signal.register(&waker);
    assert_eq!(signal.notify(2), 1);
    assert_eq!(counter.woken(), 11);
}

#[test]
fn an_idle_signal_is_cleared_and_armed_again() {
    let signal = Signal::new();
    let word = || signal.front.word.load(SeqCst);
    if word() != 0 {
        println!("skipped: this system has no membarrier");
        return;
    }
    let (_, waker) = Counter::new();
    for _ in 0..3 {
        let entry = signal.register(&waker);
        assert_eq!(word(), ARMED + WAITER);
        // As long as there is a waiter it stays armed.
        assert!(signal.unregister(entry));
        for _ in 1..IDLE_MAX {
            signal.notify_one();
        }
        assert_eq!(word(), ARMED);
        signal.notify_one();
        assert_eq!(word(), 0);
        signal.notify_one();
        assert_eq!(signal.notify_all(), 0);
    }
}

#[test]
fn a_notification_that_a_leaver_got_goes_on() {
    let signal = Signal::new();
    let (_, leaver) = Counter::new();
    let (other, waker) = Counter::new();
    let (first, _) = (signal.register(&leaver), signal.register(&waker));
    signal.notify_one();
    if !signal.unregister(first) {
        signal.notify_one();
    }
    assert_eq!(other.woken(), 1);
}

const TURNS: u64 = 600;

/// Two threads take turns. Gives how often one slept.
fn turns(mode: Mode) -> u64 {
    let shared = (AtomicU64::new(0), [Signal::new(), Signal::new()]);
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
    turns(Mode::Balanced);
    turns(Mode::Latency);
    // Where others have the processor, a turn is often back before any thread could sleep.
    assert!((0..20).any(|_| turns(Mode::LowPower) > TURNS / 2));
}

/// Four threads take 3,000 each of what two bring two by two, and leave often, sometimes with a
/// notification in the hand. `notify` follows each two that were brought; `pass_on` follows each
/// that was taken, with how many are left.
fn crowd(mode: Mode, notify: fn(&Signal, u64), pass_on: fn(&Signal, u64)) {
    const EACH: u64 = 3_000;
    let (signal, left, taken) = (Signal::new(), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut pace = Pace::new(mode);
                for n in 0..EACH {
                    let soon = Instant::now() + Duration::from_micros(n % 50);
                    let early =
                        (n % 7 == 0).then(|| block(&signal, &mut pace, Some(soon), || take(&left)));
                    if early != Some(Ok(())) {
                        block(&signal, &mut pace, None, || take(&left)).expect("no deadline");
                    }
                    taken.fetch_add(1, SeqCst);
                    pass_on(&signal, left.load(SeqCst));
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..EACH {
                    left.fetch_add(2, SeqCst);
                    notify(&signal, n);
                    if n % 64 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!((left.load(SeqCst), taken.load(SeqCst)), (0, 4 * EACH));
    assert_eq!(
        (signal.waiting(), signal.front.word.load(SeqCst) & WAKING),
        (0, 0)
    );
    assert!(signal.woken() <= signal.registrations());
}

#[test]
fn many_notifiers_and_many_waiters_lose_nothing() {
    for mode in [Mode::LowPower, Mode::Balanced] {
        let notify = |signal: &Signal, n| {
            if n % 2 == 0 {
                signal.notify(2);
            } else {
                signal.notify_one();
                signal.notify_one();
            }
        };
        crowd(mode, notify, |_, _| ());
        // In a chain a thread that was woken wakes the next.
        let notify = |signal: &Signal, _| {
            signal.notify_chained();
            signal.notify_chained();
        };
        crowd(mode, notify, |signal, left| {
            if left > 0 {
                signal.notify_chained();
            }
        });
    }
}

#[test]
fn a_wait_ends_at_its_deadline_and_not_before() {
    let signal = Signal::new();
    for mode in [Mode::LowPower, Mode::Balanced, Mode::Latency] {
        let mut pace = Pace::new(mode);
        let deadline = Instant::now() + Duration::from_millis(7);
        let never = || None::<()>;
        assert_eq!(
            block(&signal, &mut pace, Some(deadline), never),
            Err(TimedOut)
        );
        assert!(Instant::now() >= deadline);
        assert_eq!(
            block(&signal, &mut pace, Some(deadline), never),
            Err(TimedOut)
        );
        assert_eq!(block(&signal, &mut pace, Some(deadline), || Some(1)), Ok(1));
    }
    assert_eq!(signal.waiting(), 0);
    assert_eq!(TimedOut.to_string(), "nothing came before the deadline");
}

#[test]
fn a_panicking_attempt_leaves_no_wait_behind_and_passes_the_notification_on() {
    let signal = Signal::new();
    let (other, waker) = Counter::new();
    let mut looks = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        block(&signal, &mut Pace::new(Mode::LowPower), None, || {
            looks += 1;
            // The second look comes after this thread has listed itself.
            if looks == 2 {
                let _ = signal.register(&waker);
                signal.notify_one();
                panic!("while looking");
            }
            None::<()>
        })
    }));
    assert!(outcome.is_err());
    assert_eq!((other.woken(), signal.waiting()), (1, 0));
}

#[test]
fn a_wait_within_a_wait_does_not_take_its_notification() {
    let (outer, inner) = (Signal::new(), Signal::new());
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
        let found = block(&outer, &mut Pace::new(Mode::LowPower), None, || {
            looks += 1;
            if looks == 2 {
                begun.store(1, SeqCst);
                let second = || (state.load(SeqCst) == 2).then_some(());
                block(&inner, &mut Pace::new(Mode::LowPower), None, second).unwrap();
                return None;
            }
            (state.load(SeqCst) > 0).then_some(looks)
        });
        assert_eq!(found, Ok(3));
    });
}

/// An entry is of one signal; another's waiter, which has the same number there, stays.
#[test]
fn an_entry_of_another_signal_takes_no_waiter_off() {
    let (mine, other) = (Signal::new(), Signal::new());
    let waker = std::task::Waker::noop();
    let (entry, foreign) = (mine.register(waker), other.register(waker));
    assert!(!mine.unregister(foreign) && !mine.update(foreign, waker));
    assert_eq!((mine.waiting(), other.waiting()), (1, 1));
    assert!(mine.unregister(entry) && other.unregister(foreign));
}

mod chain {
    //! Chained notifications (rule 4), one step at a time.

    use super::{Counter, Panics};
    use crate::wait::signal::{ARMED, HELD, IDLE_MAX, Kind, OLD, Signal, WAITER, WAKING};
    use crate::wait::{Mode, Pace, TimedOut, block};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;
    use std::task::Waker;
    use std::time::Instant;

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
        assert_eq!((signal.registrations(), signal.woken()), (3, 1));
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
        assert_eq!((signal.registrations(), signal.woken()), (3, 2));
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
        let outcome = block(&signal, &mut Pace::new(Mode::LowPower), deadline, || {
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
                block(&signal, &mut Pace::new(Mode::LowPower), None, || {
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
        let found = block(&signal, &mut Pace::new(Mode::LowPower), None, || {
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
}

mod shutting {
    //! A signal that is shut reports that to every notifier, for ever, and works as before.

    use super::{Counter, IDLE_MAX, Signal};
    use crate::wait::signal::Kind;

    fn is_shut(signal: &Signal) -> bool {
        let reported = signal.notify_one();
        assert_eq!(signal.notify_chained(), reported);
        signal.notify(3);
        assert_eq!(signal.is_shut(), reported);
        reported
    }

    #[test]
    fn only_a_shut_signal_reports_it() {
        let signal = Signal::new();
        assert!(!is_shut(&signal), "new");
        let (counter, waker) = Counter::new();
        let entry = signal.register(&waker);
        assert!(!is_shut(&signal), "armed");
        assert_eq!(counter.woken(), 1);
        assert!(!signal.unregister(entry));
        signal.shut();
        assert!(is_shut(&signal));
        signal.shut();
        assert!(is_shut(&signal), "twice does no harm");
    }

    #[test]
    fn it_stays_shut_whatever_comes() {
        let signal = Signal::new();
        signal.shut();
        for _ in 0..3 * IDLE_MAX {
            assert!(signal.notify_one());
        }
        let (counter, waker) = Counter::new();
        let entry = signal.register(&waker);
        assert_eq!(signal.waiting(), 1);
        assert!(is_shut(&signal));
        assert_eq!((counter.woken(), signal.waiting()), (1, 0));
        assert!(!signal.unregister(entry));
        let entry = signal.list(&waker, Kind::Thread);
        assert!(signal.notify_chained() && signal.notify_chained());
        assert!(!signal.unregister(entry));
        assert!(is_shut(&signal), "also after a chain");
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
