//! A parker: the word that a thread sleeps on, and a `Waker` for it.
//!
//! A waker stores the time just before it wakes a thread that sleeps, and the core that it runs on.
//! The woken thread derives from these how long the wake-up took, and whether both share a core.
//!
//! Parkers, and other values, are [`Lent`]: a thread keeps them from one use to the next, so that
//! only the first use allocates.

use std::cell::Cell;
// `Wake` needs the standard library's `Arc` under models, too; its count is not modelled.
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::LocalKey;
use std::time::Instant;

use thalweg_measure::clock::Clock;

use super::cores;
use crate::ring::sync::{AtomicU32, AtomicU64, IS_MODEL, Ordering, order, parking, yield_now};

/// Awake, and not notified.
const AWAKE: u32 = 0;
/// Asleep, or about to.
const ASLEEP: u32 = 1;
/// Notified, and the thread does not know yet.
const NOTIFIED: u32 = 2;

/// The word that a thread sleeps on.
#[derive(Debug)]
#[repr(align(128))]
struct ParkState {
    word: AtomicU32,
    thread: parking::Thread,
    /// The time when it was woken, in ticks.
    woken: AtomicU64,
    /// The core of the waker.
    core: AtomicU32,
    clock: Clock,
}

/// The number that stands for a core that the system does not report.
const NO_CORE: u32 = u32::MAX;

impl Wake for ParkState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: Relaxed; decides only whether to store time and core, which takes some 20 ns.
        if self.word.load(Ordering::Relaxed) == ASLEEP {
            // ORDERING: Relaxed; made visible by the swap below.
            self.woken.store(self.clock.ticks(), Ordering::Relaxed);
            let core = cores::current().and_then(|core| u32::try_from(core).ok());
            // ORDERING: Relaxed; as the time.
            self.core.store(core.unwrap_or(NO_CORE), Ordering::Relaxed);
        }
        // ORDERING: Release (order::wake), pairs with the Acquire in `Parker::wake_up`: what came
        // before is visible to the woken thread.
        if self.word.swap(NOTIFIED, order::wake()) == ASLEEP {
            self.thread.unpark();
        }
    }
}

/// How a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The deadline is reached, and no other thread has woken this one.
    TimedOut,
    /// It was notified before it slept.
    Awake,
    /// It slept, and was woken.
    Asleep(Woken),
}

/// How a waker ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Woken {
    /// When it did, in ticks.
    pub(super) at: u64,
    /// The core that it ran on, where the system says so.
    pub(super) core: Option<usize>,
}

/// A thread's parking state, with a waker for it. One wait uses it at a time.
#[derive(Debug)]
pub(super) struct Parker {
    state: Arc<ParkState>,
    waker: Waker,
}

impl Parker {
    fn new() -> Self {
        let state = Arc::new(ParkState {
            word: AtomicU32::new(AWAKE),
            thread: parking::current(),
            woken: AtomicU64::new(0),
            core: AtomicU32::new(NO_CORE),
            clock: Clock::global(),
        });
        let waker = Waker::from(Arc::clone(&state));
        Self { state, waker }
    }

    /// Returns the waker of this thread. A clone from an earlier wait may be woken during a later
    /// one, which then ends spuriously.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Discards earlier notifications.
    pub(super) fn reset(&self) {
        // ORDERING: Relaxed; a discarded notification orders nothing. One for the coming wait comes
        // after the waker was listed, under a lock.
        self.state.word.store(AWAKE, Ordering::Relaxed);
    }

    /// Returns whether it was woken since the last [`reset`](Self::reset); for a thread that spins
    /// before it sleeps.
    pub(super) fn is_woken(&self) -> bool {
        // ORDERING: Acquire (order::woken), pairs with the Release in `wake_by_ref`.
        self.state.word.load(order::woken()) == NOTIFIED
    }

    /// Sleeps until woken (since the last [`reset`](Self::reset)), or until the deadline.
    pub(super) fn park_until(&self, deadline: Option<Instant>) -> Ended {
        let word = &self.state.word;
        let begin = self.state.clock.ticks();
        // ORDERING: Relaxed where it succeeds, since going to sleep publishes nothing; else Acquire
        // (order::woken), pairs with the Release in `wake_by_ref`.
        if word
            .compare_exchange(AWAKE, ASLEEP, Ordering::Relaxed, order::woken())
            .is_err()
        {
            self.reset();
            return Ended::Awake;
        }
        loop {
            match deadline {
                None => parking::park(),
                // A model has no time.
                Some(_) if IS_MODEL => yield_now(),
                Some(deadline) => {
                    std::thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
                }
            }
            // ORDERING: Relaxed; `wake_up` acquires.
            let is_over = word.load(Ordering::Relaxed) == NOTIFIED
                || deadline.is_some_and(|deadline| IS_MODEL || Instant::now() >= deadline);
            if is_over {
                let ended = self.wake_up(begin);
                if !IS_MODEL {
                    // Its token may be of an unpark that was for another `park` of this thread.
                    self.state.thread.unpark();
                } else if deadline.is_some() && ended != Ended::TimedOut {
                    // It consumes the unpark that comes, so that no later sleep does.
                    parking::park();
                }
                return ended;
            }
        }
    }

    /// Ends the sleep that began at `begin`; returns how it ended.
    fn wake_up(&self, begin: u64) -> Ended {
        // ORDERING: Acquire (order::woken), pairs with the Release in `wake_by_ref`.
        if self.state.word.swap(AWAKE, order::woken()) != NOTIFIED {
            return Ended::TimedOut;
        }
        // ORDERING: Relaxed; acquired by the swap.
        match self.state.woken.load(Ordering::Relaxed) {
            // The time is of an earlier sleep: the waker loaded the word before this one began.
            stamp if stamp < begin => Ended::Awake,
            at => {
                // ORDERING: Relaxed; acquired by the swap.
                let core = self.state.core.load(Ordering::Relaxed);
                Ended::Asleep(Woken {
                    at,
                    core: (core != NO_CORE).then_some(core as usize),
                })
            }
        }
    }
}

std::thread_local! {
    static KEPT: Cell<Option<Parker>> = const { Cell::new(None) };
}

/// Allocates this thread's parker, so that no wait allocates later, except a wait within a wait.
pub(crate) fn prepare() {
    with(|_| ());
}

/// Calls `wait` with this thread's parker. A wait within a wait gets a parker of its own, since
/// each would miss the other's notification; it is allocated, as is the first of a thread.
pub(super) fn with<R>(wait: impl FnOnce(&Parker) -> R) -> R {
    wait(Lent::new(&KEPT, Parker::new).fetch())
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ring::sync::{Arc as Shared, UnsafeCell, fault};

    /// The notification alone orders the accesses.
    fn hand_over() {
        with(|parker| {
            let cell = Shared::new(UnsafeCell::new(0));
            let (waker, theirs) = (parker.waker().clone(), Shared::clone(&cell));
            let thread = loom::thread::spawn(move || {
                // SAFETY: the other thread reads only after it was woken.
                #[allow(unsafe_code, reason = "loom's cell checks the order of accesses")]
                theirs.with_mut(|value| unsafe { *value = 1 });
                waker.wake();
            });
            assert_ne!(parker.park_until(None), Ended::TimedOut);
            // SAFETY: the other thread wrote before it woke this one.
            #[allow(unsafe_code, reason = "loom's cell checks the order of accesses")]
            let value = cell.with(|value| unsafe { *value });
            assert_eq!(value, 1);
            thread.join().unwrap();
        });
    }

    #[test]
    fn a_woken_thread_sees_what_came_before() {
        loom::model(hand_over);
    }

    #[test]
    fn a_relaxed_wake_is_caught() {
        assert!(fault::caught("wake", hand_over));
    }

    #[test]
    fn a_relaxed_wake_up_is_caught() {
        assert!(fault::caught("woken", hand_over));
    }
}

/// The thread-local cell that keeps a value.
type Kept<T> = LocalKey<Cell<Option<T>>>;

/// A thread-local value that is taken out at its first use and put back by the drop, also in a
/// panic. A use within a use makes a value of its own.
pub(crate) struct Lent<T: 'static> {
    kept: &'static Kept<T>,
    make: fn() -> T,
    value: Option<T>,
}

impl<T> Lent<T> {
    pub(crate) fn new(kept: &'static Kept<T>, make: fn() -> T) -> Self {
        let value = None;
        Self { kept, make, value }
    }

    /// Returns the value, if it was used.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Returns the value; takes it out, or makes one, at the first use.
    pub(crate) fn fetch(&mut self) -> &T {
        let (kept, make) = (self.kept, self.make);
        self.value.get_or_insert_with(|| match IS_MODEL {
            // The threads of a model share thread-local values.
            true => make(),
            false => kept
                .try_with(Cell::take)
                .ok()
                .flatten()
                .unwrap_or_else(make),
        })
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take().filter(|_| !IS_MODEL) {
            // While the thread's locals are destroyed, it can't be kept.
            let _ = self.kept.try_with(|kept| kept.set(Some(value)));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_wake_up_before_the_sleep_counts() {
        with(|parker| {
            parker.reset();
            parker.waker().wake_by_ref();
            parker.waker().wake_by_ref();
            assert_eq!(parker.park_until(None), Ended::Awake);
            let soon = Instant::now() + Duration::from_millis(5);
            assert_eq!(parker.park_until(Some(soon)), Ended::TimedOut, "used up");
            assert!(Instant::now() >= soon);
        });
    }

    #[test]
    fn an_old_wake_up_is_forgotten_and_a_deadline_may_be_over() {
        with(|parker| {
            parker.waker().wake_by_ref();
            parker.reset();
            assert_eq!(parker.park_until(Some(Instant::now())), Ended::TimedOut);
        });
    }

    #[test]
    fn a_sleeper_learns_when_it_was_woken() {
        let clock = Clock::global();
        with(|parker| {
            parker.reset();
            let begin = clock.ticks();
            let waker = parker.waker().clone();
            let other = std::thread::spawn(move || {
                // Mostly long enough that the other sleeps.
                for _ in 0..1_000 {
                    std::thread::yield_now();
                }
                waker.wake();
            });
            match parker.park_until(None) {
                Ended::Asleep(Woken { at: woken, core }) => {
                    assert_eq!(core.is_some(), cores::current().is_some());
                    // Ticks of two cores may differ by a few.
                    let slack = clock.ticks_from_ns(1_000);
                    assert!(woken + slack >= begin && woken <= clock.ticks() + slack);
                }
                Ended::Awake => println!("the waker was faster than the sleeper"),
                Ended::TimedOut => panic!("there was no deadline"),
            }
            other.join().unwrap();
        });
    }

    #[test]
    fn a_stamp_of_an_earlier_sleep_is_none_of_this() {
        with(|parker| {
            parker.reset();
            parker.state.woken.store(1, Ordering::Relaxed);
            let state = Arc::clone(&parker.state);
            // A waker that looked before the sleep, and wakes the sleeper after.
            let other = std::thread::spawn(move || {
                while state.word.load(Ordering::Relaxed) != ASLEEP {
                    std::thread::yield_now();
                }
                state.word.swap(NOTIFIED, order::wake());
                state.thread.unpark();
            });
            assert_eq!(parker.park_until(None), Ended::Awake);
            other.join().unwrap();
        });
    }

    #[test]
    fn a_wait_within_a_wait_has_a_parker_of_its_own_and_the_first_is_kept() {
        let outer = with(|outer| {
            let inner = with(|inner| Arc::as_ptr(&inner.state));
            assert_ne!(Arc::as_ptr(&outer.state), inner);
            Arc::as_ptr(&outer.state)
        });
        assert_eq!(with(|again| Arc::as_ptr(&again.state)), outer);
    }
}
