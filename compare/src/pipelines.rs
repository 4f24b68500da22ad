//! Every subject of the pipeline experiments does this work, whichever library moves events.
//!
//! A stage is a chain of dependent multiplications, each some 1.5 ns, that begins with what the
//! stage before left in the event and with this stage's own last result. So neither two stages of
//! one event nor two events in one stage can overlap in the processor, and a stage costs what it
//! says.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Recorder;

/// A pipeline has this many stages.
pub(crate) const STAGES: usize = 3;
/// Every ring has this many slots, each of one cache line.
pub(crate) const CAPACITY: usize = 4096;
/// A stage should take this long, ns: the middle of 35 to 40.
pub(crate) const STAGE_NS: f64 = 37.5;

/// The producer's part of an event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stamp {
    /// The event's number, from 0.
    pub number: u64,
    /// The time at which it should be sent, in ticks; 0 where its latency does not count.
    pub intended_ticks: u64,
}

impl Stamp {
    /// Makes the stamp of an event whose latency does not count.
    pub fn untimed(number: u64) -> Self {
        Self {
            number,
            intended_ticks: 0,
        }
    }
}

/// An event is one cache line. The stages write through a shared reference, since one of the
/// subjects lends nothing else; a relaxed store is a plain store on the machines in question.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Event {
    stamp: Stamp,
    results: [AtomicU64; STAGES],
}

impl Event {
    /// Writes the producer's part.
    #[inline]
    pub fn set(&mut self, stamp: Stamp) {
        self.stamp = stamp;
    }
}

/// The work of one stage.
#[derive(Debug)]
pub struct Step {
    place: usize,
    rounds: u32,
    /// The result of the event before.
    pub last: u64,
}

impl Step {
    /// Makes the stage at this place, of this many multiplications.
    pub fn new(place: usize, rounds: u32) -> Self {
        Self {
            place,
            rounds,
            last: 1,
        }
    }

    /// Does the stage's work on an event.
    #[inline]
    pub fn work(&mut self, event: &Event) {
        let before = match self.place.checked_sub(1) {
            // ORDERING: Relaxed; the ring's sequence orders it after the store of the stage before.
            Some(before) => event.results[before].load(Ordering::Relaxed),
            None => event.stamp.number,
        };
        self.last = chain(before ^ self.last, self.rounds);
        // ORDERING: Relaxed; the ring's sequence publishes it to the next stage.
        event.results[self.place].store(self.last, Ordering::Relaxed);
    }
}

#[inline]
fn chain(mut value: u64, rounds: u32) -> u64 {
    for _ in 0..rounds {
        value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // Without this the compiler would fold several factors into one.
        value ^= value >> 32;
    }
    value
}

/// The counts of the last stage, complete once the pipeline has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of events that came.
    pub events: u64,
    /// The number of events that did not have the next number.
    pub misplaced: u64,
}

/// The tail is the end of the last stage: it measures the latency, and counts.
#[derive(Debug)]
pub struct Tail {
    clock: Clock,
    latency_ticks: Arc<Recorder>,
    tally: Tally,
    shared: Arc<Mutex<Tally>>,
}

impl Tail {
    /// Makes a tail, and the place where its counts are when it has ended.
    pub fn new(latency_ticks: Arc<Recorder>) -> (Self, Arc<Mutex<Tally>>) {
        let shared = Arc::new(Mutex::new(Tally::default()));
        let tail = Self {
            clock: Clock::global(),
            latency_ticks,
            tally: Tally::default(),
            shared: Arc::clone(&shared),
        };
        (tail, shared)
    }

    /// Counts an event at the end of the last stage.
    #[inline]
    pub fn end(&mut self, event: &Event) {
        self.take(event.stamp);
    }

    /// Counts an event by its stamp.
    #[inline]
    pub(crate) fn take(&mut self, stamp: Stamp) {
        if stamp.number != self.tally.events {
            self.tally.misplaced += 1;
        }
        self.tally.events += 1;
        if stamp.intended_ticks != 0 {
            let latency = self.clock.ticks().saturating_sub(stamp.intended_ticks);
            self.latency_ticks.record(latency);
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = self.tally;
    }
}

/// Returns the rounds of a stage that takes this long; the search takes some 20 ms.
pub(crate) fn rounds_for(ns: f64) -> u32 {
    let (short, long) = (stage_ns(16), stage_ns(48));
    let round_ns = ((long - short) / 32.0).max(0.05);
    (16.0 + (ns - short) / round_ns).round().clamp(1.0, 1e4) as u32
}

/// Returns how long a stage takes: the best of several tries, since noise only adds.
pub(crate) fn stage_ns(rounds: u32) -> f64 {
    const TRIES: usize = 20;
    const EVENTS: u32 = 10_000;
    let clock = Clock::global();
    let event = Event::default();
    let mut step = Step::new(0, rounds);
    let mut best = u64::MAX;
    for _ in 0..TRIES {
        let begin = clock.ticks();
        for _ in 0..EVENTS {
            step.work(black_box(&event));
        }
        best = best.min(clock.ticks().saturating_sub(begin));
    }
    clock.ns(best) as f64 / f64::from(EVENTS)
}
