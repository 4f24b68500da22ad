//! Waking a thread only if it sleeps.
//!
//! # State
//! `word` is [`AWAKE`] or [`ASLEEP`]; the sleeper sets it, and whoever rings clears it.
//!
//! # Rules
//! 1. A sleeper sets `ASLEEP`, then passes a sequentially consistent fence, then looks for work;
//!    only if there is none does it sleep, and only while the word is still `ASLEEP`.
//! 2. Whoever makes work publishes it, then passes a sequentially consistent fence, then looks at
//!    the word; if it is `ASLEEP`, it clears it and wakes.
//!
//! # Why it works
//! Of the two fences one comes first. If the sleeper's does, the ringer sees `ASLEEP` and wakes; if
//! the ringer's does, the sleeper sees the work (Dekker's argument). Without the fences both may
//! miss each other, and the sleeper sleeps for ever; the model in this file shows it.

use super::futex::Futex;
use crate::ring::sync::{Ordering, fence, order};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Wakes one sleeping thread; costs a fence and a load (some 7 ns) while nobody sleeps.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Bell {
    futex: Futex,
}

impl Bell {
    /// A bell that nobody sleeps on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sleeps until [`ring`](Self::ring) unless `ready` says that there is work. May return for no
    /// reason, so the caller looks again. One thread at a time.
    pub fn sleep_unless(&self, mut ready: impl FnMut() -> bool) {
        // ORDERING: Release, pairs with the Acquire in `ring_those`: what the sleeper wrote before
        // is seen by whoever sees it asleep. The order against `ready` comes from the fence (rule
        // 1).
        self.futex.0.store(ASLEEP, Ordering::Release);
        // ORDERING: SeqCst (order::dekker), pairs with the fence in `ring_all` (rules 1 and 2).
        fence(order::dekker());
        if !ready() {
            self.futex.sleep_while(ASLEEP);
        }
        // ORDERING: Relaxed; a ringer that still reads ASLEEP only wakes nobody.
        self.futex.0.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes the sleeper if there is one. What was published before is visible to it.
    #[inline]
    pub fn ring(&self) {
        Self::ring_all(std::iter::once(self));
    }

    /// As [`ring`](Self::ring) for several bells, with one fence for all of them; gives how many
    /// slept.
    #[inline]
    pub fn ring_all<'b>(bells: impl IntoIterator<Item = &'b Self>) -> usize {
        Self::ring_those(bells, |_| true)
    }

    /// As [`ring_all`](Self::ring_all), but only where `wanted(place)` says so of a sleeper. What
    /// that sleeper wrote before it went to sleep is visible to `wanted`.
    #[inline]
    pub fn ring_those<'b>(
        bells: impl IntoIterator<Item = &'b Self>,
        wanted: impl Fn(usize) -> bool,
    ) -> usize {
        // ORDERING: SeqCst (order::dekker), pairs with the fence in `sleep_unless` (rules 1 and 2).
        fence(order::dekker());
        let mut woken = 0;
        for (place, bell) in bells.into_iter().enumerate() {
            // ORDERING: Acquire, pairs with the Release in `sleep_unless`; against the work it is
            // ordered by the fence above.
            if bell.futex.0.load(Ordering::Acquire) == ASLEEP && wanted(place) {
                woken += usize::from(bell.wake());
            }
        }
        woken
    }

    #[cold]
    fn wake(&self) -> bool {
        // ORDERING: Relaxed; the exchange only makes sure that one ringer wakes. The sleeper's
        // visibility comes from what it acquires when it looks for work.
        let slept = self.futex.0.swap(AWAKE, Ordering::Relaxed) == ASLEEP;
        if slept {
            self.futex.wake();
        }
        slept
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ring::sync::{Arc, AtomicBool, fault};

    fn work_and_ring() {
        let shared = Arc::new((AtomicBool::new(false), Bell::new()));
        let maker = Arc::clone(&shared);
        let thread = loom::thread::spawn(move || {
            maker.0.store(true, order::publish());
            maker.1.ring();
        });
        // Sleeping for ever is a deadlock, which loom reports.
        while !shared.0.load(order::observe()) {
            shared.1.sleep_unless(|| shared.0.load(order::observe()));
        }
        thread.join().unwrap();
    }

    #[test]
    fn a_sleeper_is_always_woken() {
        loom::model(work_and_ring);
    }

    #[test]
    fn a_missing_full_fence_is_caught() {
        assert!(fault::caught("dekker", work_and_ring));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    #[test]
    fn two_threads_hand_a_turn_back_and_forth_asleep() {
        const TURNS: u64 = 2_000;
        let shared = Arc::new((AtomicU64::new(0), [Bell::new(), Bell::new()]));
        let play = |me: u64, shared: Arc<(AtomicU64, [Bell; 2])>| {
            move || {
                loop {
                    let turn = shared.0.load(SeqCst);
                    if turn >= TURNS {
                        break;
                    } else if turn % 2 == me {
                        shared.0.store(turn + 1, SeqCst);
                        shared.1[1 - me as usize].ring();
                    } else {
                        shared.1[me as usize].sleep_unless(|| shared.0.load(SeqCst) != turn);
                    }
                }
            }
        };
        let other = std::thread::spawn(play(1, Arc::clone(&shared)));
        play(0, Arc::clone(&shared))();
        shared.1[1].ring();
        other.join().unwrap();
        assert_eq!(shared.0.load(SeqCst), TURNS);
    }

    #[test]
    fn ringing_an_awake_thread_wakes_nobody() {
        let bell = Bell::new();
        assert_eq!(Bell::ring_all([&bell]), 0);
        bell.sleep_unless(|| true);
        assert_eq!(Bell::ring_all([&bell]), 0);
    }
}
