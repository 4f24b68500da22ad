//! The work that every subject of the pipeline experiments does, whichever library moves events.
//!
//! A stage is a chain of dependent multiplications, each some 1.5 ns, that begins with what the
//! stage before left in the event and with this stage's own last result. So neither two stages of
//! one event nor two events in one stage can overlap in the processor, and a stage costs what it
//! says.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Writer;

/// Stages of the pipelines.
pub(crate) const STAGES: usize = 3;
/// Slots of every ring, events of one cache line each.
pub(crate) const CAPACITY: usize = 4096;
/// What a stage should cost, ns: the middle of 35 to 40.
pub(crate) const STAGE_NS: f64 = 37.5;

/// What the producer writes into an event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp {
    /// The event's number, from 0.
    pub(crate) number: u64,
    /// When it should be sent, in ticks; 0 where its latency does not count.
    pub(crate) intended_ticks: u64,
}

impl Stamp {
    /// Makes the stamp of an event whose latency does not count.
    pub(crate) fn untimed(number: u64) -> Self {
        Self {
            number,
            intended_ticks: 0,
        }
    }
}

/// One cache line. The stages write through a shared reference, since one of the subjects lends
/// nothing else; an atomic's relaxed store is a plain store on the machines in question.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Event {
    stamp: Stamp,
    results: [AtomicU64; STAGES],
}

impl Event {
    #[inline]
    pub(crate) fn set(&mut self, stamp: Stamp) {
        self.stamp = stamp;
    }
}

/// One stage's work.
#[derive(Debug)]
pub(crate) struct Step {
    place: usize,
    rounds: u32,
    last: u64,
}

impl Step {
    pub(crate) fn new(place: usize, rounds: u32) -> Self {
        Self {
            place,
            rounds,
            last: 1,
        }
    }

    #[inline]
    pub(crate) fn work(&mut self, event: &Event) {
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

/// What the last stage saw, known once the pipeline has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Events that came.
    pub(crate) events: u64,
    /// Events that did not have the next number.
    pub(crate) misplaced: u64,
}

/// The end of the last stage: takes the time and counts.
#[derive(Debug)]
pub(crate) struct Tail {
    clock: Clock,
    latency_ticks: Writer,
    tally: Tally,
    shared: Arc<Mutex<Tally>>,
}

impl Tail {
    pub(crate) fn new(latency_ticks: Writer) -> (Self, Arc<Mutex<Tally>>) {
        let shared = Arc::new(Mutex::new(Tally::default()));
        let tail = Self {
            clock: Clock::global(),
            latency_ticks,
            tally: Tally::default(),
            shared: Arc::clone(&shared),
        };
        (tail, shared)
    }

    #[inline]
    pub(crate) fn end(&mut self, event: &Event) {
        self.take(event.stamp);
    }

    /// Counts an event that is through.
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

/// Returns the rounds of a stage that costs this much; takes some 20 ms.
pub(crate) fn rounds_for(ns: f64) -> u32 {
    let (short, long) = (stage_ns(16), stage_ns(48));
    let round_ns = ((long - short) / 32.0).max(0.05);
    (16.0 + (ns - short) / round_ns).round().clamp(1.0, 1e4) as u32
}

/// Returns the cost of a stage: the best of several tries, since noise only adds.
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

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_measure::histogram::recorder;

    #[test]
    fn an_event_is_one_cache_line() {
        assert_eq!(size_of::<Event>(), 64);
    }

    #[test]
    fn the_tail_counts_what_came_and_what_was_out_of_place() {
        let (writer, reader) = recorder();
        let (mut tail, tally) = Tail::new(writer);
        let mut event = Event::default();
        for (number, intended_ticks) in [(0, 0), (1, 1), (3, 1)] {
            event.set(Stamp {
                number,
                intended_ticks,
            });
            tail.end(&event);
        }
        drop(tail);
        let expected = Tally {
            events: 3,
            misplaced: 1,
        };
        assert_eq!(*tally.lock().unwrap(), expected);
        assert_eq!(reader.count(), 2);
    }

    #[test]
    fn a_result_depends_on_every_stage_and_on_earlier_events() {
        let result = |rounds: u32, events: u64| {
            let mut steps = [Step::new(0, rounds), Step::new(1, rounds)];
            let mut event = Event::default();
            for number in 0..events {
                event.set(Stamp::untimed(number));
                for step in &mut steps {
                    step.work(&event);
                }
            }
            steps[1].last
        };
        assert_eq!(result(5, 3), result(5, 3));
        assert_ne!(result(5, 3), result(6, 3));
        assert_ne!(result(5, 3), result(5, 4));
    }
}
