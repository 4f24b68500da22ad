//! Not sleeping at once in a dense stream.
//!
//! An endpoint that is faster than the other finds the ring empty (or full) again and again, and
//! each look takes the line of a slot or an index away from the other, which needs it for the next
//! element: 100 to 200 ns for both. In a stream it pays to check less often: an end that has just
//! moved many elements without a wait, and now finds nothing, pauses for a moment before it looks
//! again, and then finds many. A message that comes alone is not kept waiting, since nothing moved
//! before it. (The slip of FastForward, Giacomoni, Moseley and Vachharajani, 2008; rings keep a
//! distance of their own where looks find little.)
//!
//! Where threads outnumber cores, the other side is at work on another core, or it waits for this
//! one. In the first case the pause finds elements, and the core is kept: so one sender and one
//! receiver stream from core to core, and the others wait for their time slice. An endpoint that
//! gave the core away at once would hand it to the other side on its own core, until there are two
//! receivers at work and no sender, or two senders and no receiver. In the second case the pause is
//! in vain, and the turn is given away: some times, and again for as long as others of its side
//! move elements (a thread that sleeps then is woken at once, which costs the other side 2 µs);
//! then it sleeps. After pauses in vain, the next waits do without.
//!
//! A receiver's turn is not given away where elements came so far apart that each could have had a
//! wake-up. Many have moved without a wait then only since it had no turn for long, and the next
//! time would be the same.

use crate::ring::sync::{spin_hint, yield_now};
use crate::wait::Pace;
use std::time::{Duration, Instant};

/// Elements since the last wait that make a stream.
const STREAM: u64 = 16;

/// How long to pause, in turns of some 10 to 40 ns: 32 of them take 32-byte elements through a ring
/// of 1024 in 6.2 ns instead of 8.7 (2-core EPYC virtual machine); 8 and 16 are between the two.
const PAUSES: u32 = 32;

/// The number of pauses where threads outnumber cores. (2-core Intel virtual machine, 22 November
/// 2026, a sender and a receiver pinned to each core: 65 ns a message with none and a turn given
/// away, 33 with 32, 22 to 28 with 96; with 192 the same, and on one core a sixth slower.)
const PAUSES_IN_CROWD: u32 = 96;

/// Waits that do without a pause after several in vain.
const AT_ONCE_MAX: u32 = 15;

/// How often to give the turn away where pausing alone is no use, before sleeping. A wake-up costs
/// ten turns.
const TURNS: u32 = 8;

/// Other programs have the core for so long: a sleeping thread gets it back sooner than one that
/// yields. Less would be what the threads of a crowd take together (2-core Intel virtual machine, 1
/// → 20: with 50 µs 65 ns a message, without a bound 31 to 48).
const LONG: Duration = Duration::from_millis(1);

/// Elements that are further apart can each have a wake-up.
const APART: Duration = Duration::from_micros(2);

#[derive(Debug, Default)]
pub(super) struct Slip {
    /// It is a receiver's: elements must not wait.
    is_receivers: bool,
    /// When it waited last where threads outnumber cores.
    waited: Option<Instant>,
    /// How many elements had moved when this endpoint waited last.
    moved_before: u64,
    /// Waits to come that do not pause in a crowd, and how many there were after the last pause.
    at_once: u32,
    in_vain: u32,
}

impl Slip {
    pub(super) fn of_receiver() -> Self {
        Self {
            is_receivers: true,
            ..Self::default()
        }
    }

    /// The endpoint, one of `endpoints`, has moved `moved` elements so far and has to wait now:
    /// keeps its distance in a stream. `attempt` looks again, and gives what it found or how many
    /// have moved by now; gives what was found, if that was enough of a wait. Does nothing where
    /// there is a deadline, since a turn that is given away may take milliseconds.
    #[inline]
    pub(super) fn wait<R>(
        &mut self,
        (moved, endpoints): (u64, u64),
        pace: &mut Pace,
        deadline: Option<Instant>,
        mut attempt: impl FnMut() -> Result<R, u64>,
    ) -> Option<R> {
        pace.has_waited(false);
        let run = moved.saturating_sub(std::mem::replace(&mut self.moved_before, moved));
        if run < STREAM || deadline.is_some() {
            return None;
        }
        if !pace.gives_way() && !pace.is_crowd(endpoints) {
            pause(pace, PAUSES);
            return None;
        }
        if self.is_receivers && self.is_sparse(run) {
            return None;
        }
        let found = self.stay(pace, &mut attempt);
        if found.is_some() {
            return found;
        }
        let began = Instant::now();
        let (mut turns, mut moved) = (TURNS, moved);
        while turns > 0 && began.elapsed() < LONG {
            yield_now();
            match attempt() {
                Ok(found) => return Some(found),
                Err(now) if now.saturating_sub(moved) >= STREAM => (turns, moved) = (TURNS, now),
                Err(_) => turns -= 1,
            }
        }
        pace.has_waited(true);
        None
    }

    /// Returns whether the `run` elements since the last wait came far apart.
    fn is_sparse(&mut self, run: u64) -> bool {
        let now = Instant::now();
        let last = self.waited.replace(now);
        let run = u32::try_from(run).unwrap_or(u32::MAX);
        last.is_none_or(|last| now - last > APART.saturating_mul(run))
    }

    /// Keeps the core for a moment and looks again, unless that was in vain the last times.
    fn stay<R>(&mut self, pace: &Pace, attempt: &mut impl FnMut() -> Result<R, u64>) -> Option<R> {
        if self.at_once > 0 || !pace.may_pause() {
            self.at_once = self.at_once.saturating_sub(1);
            return None;
        }
        pause(pace, PAUSES_IN_CROWD);
        let found = attempt().ok();
        self.in_vain = match found {
            Some(_) => 0,
            None => AT_ONCE_MAX.min(2 * self.in_vain + 1),
        };
        self.at_once = self.in_vain;
        found
    }
}

/// Pauses without a check, where other threads can run meanwhile.
fn pause(pace: &Pace, pauses: u32) {
    if pace.may_pause() {
        for _ in 0..pauses {
            spin_hint();
        }
    }
}
