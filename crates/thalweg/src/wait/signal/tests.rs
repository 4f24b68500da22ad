mod chain;
mod shutting;

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
    assert_eq!((signal.parked(), signal.woken()), (40, 39));
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
    assert!(a.woken() <= a.parked() && b.woken() <= b.parked());
    assert_eq!(a.waiting() + b.waiting(), 0);
    a.parked() + b.parked()
}

#[test]
fn two_threads_hand_a_turn_back_and_forth() {
    turns(Mode::Balanced);
    turns(Mode::Latency);
    // Where others have the processor, a turn is often back before any thread could sleep.
    assert!((0..20).any(|_| turns(Mode::Power) > TURNS / 2));
}

#[test]
fn many_notifiers_and_many_waiters_lose_nothing() {
    const EACH: u64 = 3_000;
    for mode in [Mode::Power, Mode::Balanced] {
        let (signal, left, taken) = (Signal::new(), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut pace = Pace::new(mode);
                    for n in 0..EACH {
                        if n % 7 == 0 {
                            // Leaves often, sometimes with a notification in the hand.
                            let soon = Instant::now() + Duration::from_micros(n % 50);
                            if block(&signal, &mut pace, Some(soon), || take(&left)).is_ok() {
                                taken.fetch_add(1, SeqCst);
                                continue;
                            }
                        }
                        block(&signal, &mut pace, None, || take(&left)).unwrap();
                        taken.fetch_add(1, SeqCst);
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for n in 0..EACH {
                        left.fetch_add(2, SeqCst);
                        if n % 2 == 0 {
                            signal.notify(2);
                        } else {
                            signal.notify_one();
                            signal.notify_one();
                        }
                        if n % 64 == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!((left.load(SeqCst), taken.load(SeqCst)), (0, 4 * EACH));
        assert_eq!(signal.waiting(), 0);
    }
}

#[test]
fn a_wait_ends_at_its_deadline_and_not_before() {
    let signal = Signal::new();
    for mode in [Mode::Power, Mode::Balanced, Mode::Latency] {
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
        block(&signal, &mut Pace::new(Mode::Power), None, || {
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
        let found = block(&outer, &mut Pace::new(Mode::Power), None, || {
            looks += 1;
            if looks == 2 {
                begun.store(1, SeqCst);
                let second = || (state.load(SeqCst) == 2).then_some(());
                block(&inner, &mut Pace::new(Mode::Power), None, second).unwrap();
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
