//! Temporal slip: the pause before a wait in a dense stream, which keeps an endpoint at a distance
//! from the other side. (FastForward: Giacomoni, Moseley and Vachharajani, 2008. Rings keep a
//! distance of their own where checks find few elements.)
//!
//! An endpoint that is faster than the other side finds the ring empty (or full) again and again,
//! and each check takes the cache line of a slot or an index away from the other side, which needs
//! it for the next element: 100 to 200 ns for both. In a stream it pays to check less often: an
//! endpoint that has just moved many elements without a wait, and now finds none, pauses for a
//! moment before it checks again, and then finds many. A single message is not delayed, since no
//! element moved before it.
//!
//! Where threads outnumber cores, the other side runs on another core, or it waits for this one. In
//! the first case the pause finds elements, and the thread keeps its core: so one sender and one
//! receiver stream from core to core, and the others wait for their time slice. An endpoint that
//! yielded before it pauses would hand its core to the other side, until two receivers run and no
//! sender, or two senders and no receiver. In the second case the pause finds nothing, and the
//! thread yields: a few times, and again for as long as others of its side move elements (a thread
//! that slept would soon be woken, which costs the other side 2 µs); then it sleeps. After pauses
//! that found nothing, the next waits skip the pause.
//!
//! A receiver does not yield if elements came so far apart that each could have had a wake-up. Then
//! many have moved without a wait only because the receiver did not run for long, and yielding
//! would repeat that.

use crate::ring::sync::{spin_hint, yield_now};
use crate::wait::Pace;
use std::time::{Duration, Instant};

/// The number of elements since the last wait from which on they are a stream.
const STREAM: u64 = 16;

/// The length of the pause, in spin hints of some 10 to 40 ns. (A ring of 1,024 32-byte elements,
/// 2-core EPYC virtual machine: 6.2 ns an element with 32, 8.7 without; with 8 and 16 between
/// these.)
const PAUSES: u32 = 32;

/// The length of the pause where threads outnumber cores. (2-core Intel virtual machine, 22
/// November 2026, a sender and a receiver pinned to each core: 65 ns a message with no pause and a
/// yield, 33 with 32, 22 to 28 with 96; with 192 the same, and on one core a sixth slower.)
const PAUSES_IN_CROWD: u32 = 96;

/// The largest number of waits that skip the pause, after pauses that found nothing.
const SKIPPED_MAX: u32 = 15;

/// The number of yields without progress before the thread sleeps. A wake-up costs as much as ten.
const YIELDS: u32 = 8;

/// The time after which yielding ends: other programs have the core for so long, and a sleeping
/// thread gets it back sooner than one that yields. Less would be what the threads of a crowd take
/// together (2-core Intel virtual machine, 1 → 20: with 50 µs 65 ns a message, without a bound 31
/// to 48).
const YIELD_TIME_MAX: Duration = Duration::from_millis(1);

/// The distance between elements from which on each can have a wake-up.
const APART: Duration = Duration::from_micros(2);

#[derive(Debug, Default)]
pub(super) struct Slip {
    /// The endpoint is a receiver, which must not delay elements.
    is_receivers: bool,
    /// The time of the last wait where threads outnumber cores.
    waited: Option<Instant>,
    /// The number of elements that had moved when this endpoint waited last.
    moved_before: u64,
    /// The number of coming waits that skip the pause.
    skips_left: u32,
    /// The number of waits that skipped it after the last pause.
    skipped: u32,
}

impl Slip {
    pub(super) fn of_receiver() -> Self {
        Self {
            is_receivers: true,
            ..Self::default()
        }
    }

    /// Pauses, and yields, before a wait, if the endpoint moved a stream of elements since its last
    /// wait. It is one of `endpoints`, and has moved `moved` elements so far. `attempt` returns
    /// what it found, or the number of elements that have moved by now. Returns what was found, so
    /// that the caller need not wait. Does nothing if there is a deadline, since a yield may take
    /// milliseconds.
    #[inline]
    pub(super) fn wait<R>(
        &mut self,
        (moved, endpoints): (u64, u64),
        pace: &mut Pace,
        deadline: Option<Instant>,
        mut attempt: impl FnMut() -> Result<R, u64>,
    ) -> Option<R> {
        pace.set_skips_spinning(false);
        let run = moved.saturating_sub(std::mem::replace(&mut self.moved_before, moved));
        if run < STREAM || deadline.is_some() {
            return None;
        }
        if !pace.would_yield() && !pace.is_crowd(endpoints) {
            pause(pace, PAUSES);
            return None;
        }
        if self.is_receivers && self.is_sparse(run) {
            return None;
        }
        let found = self.pause_and_check(pace, &mut attempt);
        if found.is_some() {
            return found;
        }
        let began = Instant::now();
        let (mut yields, mut moved) = (YIELDS, moved);
        while yields > 0 && began.elapsed() < YIELD_TIME_MAX {
            yield_now();
            match attempt() {
                Ok(found) => return Some(found),
                Err(now) if now.saturating_sub(moved) >= STREAM => (yields, moved) = (YIELDS, now),
                Err(_) => yields -= 1,
            }
        }
        pace.set_skips_spinning(true);
        None
    }

    /// Returns whether the `run` elements since the last wait came far apart.
    fn is_sparse(&mut self, run: u64) -> bool {
        let now = Instant::now();
        let last = self.waited.replace(now);
        let run = u32::try_from(run).unwrap_or(u32::MAX);
        last.is_none_or(|last| now - last > APART.saturating_mul(run))
    }

    /// Pauses and checks again, unless that found nothing the last times.
    fn pause_and_check<R>(
        &mut self,
        pace: &Pace,
        attempt: &mut impl FnMut() -> Result<R, u64>,
    ) -> Option<R> {
        if self.skips_left > 0 || !pace.may_pause() {
            self.skips_left = self.skips_left.saturating_sub(1);
            return None;
        }
        pause(pace, PAUSES_IN_CROWD);
        let found = attempt().ok();
        self.skipped = match found {
            Some(_) => 0,
            None => SKIPPED_MAX.min(2 * self.skipped + 1),
        };
        self.skips_left = self.skipped;
        found
    }
}

/// Pauses, if other threads can run meanwhile.
fn pause(pace: &Pace, pauses: u32) {
    if pace.may_pause() {
        for _ in 0..pauses {
            spin_hint();
        }
    }
}
