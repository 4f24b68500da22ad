//! When commands were through a stage, noted where it costs next to nothing.
//!
//! A command by itself has the time in its slot. Of a chunk the stage reads the clock once, and
//! leaves a mark: from which command to which, and when. The publish stage finds it.
//!
//! # Why it works
//! A mark is kept in the place of its first command, one place for each slot of the ring. The stage
//! writes it before it releases the chunk, and the publish stage reads it before it releases that
//! first command, so that the ring's sequences order both, and nothing is written there meanwhile.
//! An old mark begins with another command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg::pipeline::{Chunk, Handled};
use thalweg_measure::clock::Clock;

use super::slot::Slot;

/// The first command of a chunk, the first one behind it, and when it was done.
#[derive(Debug, Default)]
struct Mark([AtomicU64; 3]);

/// The noting of a stage; of none, where nobody asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    clock: Option<Clock>,
    /// None for one of several shards, whose chunks have gaps.
    marks: Option<Arc<[Mark]>>,
}

/// A chunk that is being worked on.
pub(super) struct Noting {
    first: u64,
    /// The clock, where it is a single command.
    one: Option<Clock>,
}

impl Times {
    pub(super) fn new(is_timed: bool, shards: usize, capacity: usize) -> Self {
        let slots = capacity.next_power_of_two();
        let is_marked = is_timed && shards == 1;
        Self {
            clock: is_timed.then(Clock::global),
            marks: is_marked.then(|| (0..slots).map(|_| Mark::default()).collect()),
        }
    }

    /// Before a stage works on a chunk.
    #[inline(always)]
    pub(super) fn begin(&self, chunk: &Chunk<'_, Slot>) -> Noting {
        Noting {
            first: chunk.first_sequence(),
            one: self.clock.filter(|_| chunk.len() == 1),
        }
    }

    /// After it.
    #[inline(always)]
    pub(super) fn end(&self, noting: &Noting, handled: Handled) -> Handled {
        if let (Some(clock), Some(marks), None) = (self.clock, &self.marks, noting.one) {
            mark(marks, noting.first, handled.count(), clock.ticks());
        }
        handled
    }

    /// For the publish stage.
    pub(super) fn reader(&self) -> TimesReader {
        TimesReader {
            marks: self.marks.clone(),
            chunk: [0; 3],
        }
    }
}

#[inline(never)]
fn mark(marks: &[Mark], first: u64, count: usize, now: u64) {
    if count == 0 {
        return;
    }
    let mark = &marks[first as usize & (marks.len() - 1)];
    for (word, value) in mark.0.iter().zip([first, first + count as u64, now]) {
        // ORDERING: Relaxed; ordered by the ring's sequences, see the module.
        word.store(value, Ordering::Relaxed);
    }
}

impl Noting {
    /// The time, if the command is by itself; else 0.
    #[inline(always)]
    pub(super) fn time(&self) -> u64 {
        self.one.map_or(0, Clock::ticks)
    }
}

/// Finds the times of commands in their order.
#[derive(Debug)]
pub(super) struct TimesReader {
    marks: Option<Arc<[Mark]>>,
    /// The chunk at hand.
    chunk: [u64; 3],
}

impl TimesReader {
    /// When this command was done, of which the slot says `own`; 0 where that was not noted.
    #[inline(always)]
    pub(super) fn of(&mut self, sequence: u64, own: u64) -> u64 {
        match &self.marks {
            Some(marks) if own == 0 => {
                let [_, end, at] = self.chunk;
                if sequence < end {
                    return at;
                }
                let mark = &marks[sequence as usize & (marks.len() - 1)];
                // ORDERING: Relaxed; ordered by the ring's sequences, see the module.
                let found = mark.0.each_ref().map(|word| word.load(Ordering::Relaxed));
                if found[0] != sequence || sequence >= found[1] {
                    return 0;
                }
                self.chunk = found;
                found[2]
            }
            _ => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_chunk_have_its_time_and_others_their_own_or_none() {
        let times = Times::new(true, 1, 6);
        let marks = times.marks.as_ref().expect("one shard");
        let mut reader = times.reader();
        for lap in 0..5 {
            // Eight slots: 3 together, one by itself, none, and 4 of which 2 had to come again.
            let first = 8 * lap;
            mark(marks, first, 3, 100 + lap);
            mark(marks, first + 4, 0, 999);
            mark(marks, first + 4, 2, 200 + lap);
            mark(marks, first + 6, 2, 300 + lap);
            let found: Vec<u64> = (0..8)
                .map(|at| reader.of(first + at, if at == 3 { 7 } else { 0 }))
                .collect();
            let [a, b, c] = [100, 200, 300].map(|time| time + lap);
            assert_eq!(found, [a, a, a, 7, b, b, c, c]);
        }
        // What is there is of the lap before.
        assert_eq!(reader.of(40, 0), 0);
        assert_eq!(Times::new(true, 2, 8).reader().of(0, 5), 5);
        assert_eq!(Times::default().reader().of(0, 0), 0);
    }
}
