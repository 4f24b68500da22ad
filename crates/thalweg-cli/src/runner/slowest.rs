//! The slowest commands of a run, all of them looked at, and where each spent its time.

use super::kind;
use crate::report::facts::{Slow, SlowPart};
use crate::report::number::{grouped, span};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thalweg::pipeline::{SlowEvent, Spent, Stats};
use thalweg_exchange::Command;
use thalweg_measure::clock::Clock;

/// How many are kept.
const KEPT: usize = 10;
/// So many commands from each other, two had the same to wait for.
const NEAR: u64 = 64;

/// When each command in flight was handed over, in ticks: written by the sender, read by the
/// publish stage before it lets go of the command. There is room for twice as many as can be in
/// flight, so that the sender does not come round before that.
#[derive(Clone, Debug)]
pub(super) struct Sent(Arc<[AtomicU64]>);

impl Sent {
    /// For at most `capacity` commands in flight.
    pub(super) fn new(capacity: usize) -> Sent {
        let slots = 2 * capacity.next_power_of_two();
        Sent((0..slots).map(|_| AtomicU64::new(0)).collect())
    }

    fn slot(&self, sequence: u64) -> &AtomicU64 {
        &self.0[sequence as usize & (self.0.len() - 1)]
    }

    /// Before the command is handed over.
    #[inline]
    pub(super) fn at(&self, sequence: u64, ticks: u64) {
        // ORDERING: Relaxed; the pipeline orders it before the command's stages.
        self.slot(sequence).store(ticks, Ordering::Relaxed);
    }

    fn of(&self, sequence: u64) -> u64 {
        // ORDERING: Relaxed, as in `at`.
        self.slot(sequence).load(Ordering::Relaxed)
    }
}

/// One of the slowest, in ticks.
#[derive(Clone, Copy, Debug)]
struct Kept {
    sequence: u64,
    kind: &'static str,
    due: u64,
    sent: u64,
    done: u64,
}

impl Kept {
    fn took(&self) -> u64 {
        self.done.saturating_sub(self.due)
    }
}

/// The slowest so far.
#[derive(Debug)]
pub(super) struct Slowest {
    sent: Sent,
    kept: Vec<Kept>,
    /// A command that took no longer than this is none of them.
    least: Option<u64>,
}

impl Slowest {
    pub(super) fn new(sent: Sent) -> Slowest {
        Slowest {
            sent,
            kept: Vec::with_capacity(KEPT),
            least: None,
        }
    }

    /// A command is done, every one of them.
    #[inline]
    pub(super) fn note(&mut self, (sequence, command): (u64, &Command), due: u64, done: u64) {
        let took = done.saturating_sub(due);
        if self.least.is_none_or(|least| took > least) {
            self.keep(sequence, kind(command), due, done);
        }
    }

    #[cold]
    fn keep(&mut self, sequence: u64, kind: &'static str, due: u64, done: u64) {
        let sent = self.sent.of(sequence).clamp(due, done.max(due));
        if self.kept.len() == KEPT {
            self.kept.pop();
        }
        self.kept.push(Kept {
            sequence,
            kind,
            due,
            sent,
            done,
        });
        self.kept.sort_by_key(|kept| std::cmp::Reverse(kept.took()));
        self.least = self.kept.get(KEPT - 1).map(Kept::took);
    }

    /// The list with the parts of each: waiting to be sent, and what the pipeline knows of it, or
    /// else all stages together.
    pub(super) fn facts(&self, clock: Clock, stats: &Stats) -> Vec<Slow> {
        let slow = |kept: &Kept| {
            let wait_ns = clock.ns(kept.sent - kept.due);
            let mut parts = vec![SlowPart::new("waiting to be sent".to_owned(), wait_ns)];
            parts.extend(stages(kept, clock, stats));
            parts.retain(|part| part.ns > 0);
            Slow {
                command: kept.sequence + 1,
                kind: kept.kind.to_owned(),
                end_to_end_ns: clock.ns(kept.took()),
                parts,
            }
        };
        self.kept.iter().map(slow).collect()
    }
}

fn stages(kept: &Kept, clock: Clock, stats: &Stats) -> Vec<SlowPart> {
    let ns = clock.ns(kept.done.saturating_sub(kept.sent));
    let sampled = stats.slowest.iter().find(|e| e.sequence == kept.sequence);
    if let Some(event) = sampled {
        let parts = event.parts.iter().flat_map(|part| {
            [
                SlowPart::new(format!("waiting for {}", part.stage), part.queueing_ns),
                SlowPart::new(format!("in {}", part.stage), part.service_ns),
            ]
        });
        let mut parts: Vec<SlowPart> = parts.collect();
        // The pipeline leaves out what the clock costs and what it takes to write down.
        let known: u64 = parts.iter().map(|part| part.ns).sum();
        parts.push(SlowPart::new(
            "being measured".to_owned(),
            ns.saturating_sub(known),
        ));
        return parts;
    }
    let name = |stage: Option<&thalweg::pipeline::StageStats>| {
        stage.map_or("", |stage| stage.name.as_str()).to_owned()
    };
    let (first, last) = (name(stats.stages.first()), name(stats.stages.last()));
    let near = nearest(stats.slowest.iter().map(|e| e.sequence), kept.sequence);
    let like = near.and_then(|at| like(&stats.slowest[at]));
    vec![SlowPart::new(
        format!("from {first} to {last}{}", like.unwrap_or_default()),
        ns,
    )]
}

/// What a slow command nearby, which was timed at each stage, has most of.
fn like(event: &SlowEvent) -> Option<String> {
    let (stage, spent, ns) = event.longest()?;
    let spent = match spent {
        Spent::Waiting => "waiting for",
        Spent::Served => "in",
    };
    let (command, took) = (grouped(event.sequence + 1), span(ns as f64));
    Some(format!(" (command {command}: {took} {spent} {stage})"))
}

/// The place of the number next to this one, if there is one so near that both were in flight
/// together.
fn nearest(numbers: impl Iterator<Item = u64>, number: u64) -> Option<usize> {
    let near = numbers.map(|other| other.abs_diff(number)).enumerate();
    let (at, distance) = near.min_by_key(|&(_, distance)| distance)?;
    (distance <= NEAR).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_all_are_kept_with_when_they_were_sent() {
        let sent = Sent::new(100);
        assert_eq!(sent.0.len(), 256);
        let mut slowest = Slowest::new(sent.clone());
        for sequence in 0..1_000 {
            let due = 1_000 * sequence;
            sent.at(sequence, due + 7);
            // All take 50, but for every 70th, which takes 100 and more.
            let took = if sequence % 70 == 69 {
                100 + sequence
            } else {
                50
            };
            slowest.note((sequence, &Command::Nop), due, due + took);
        }
        let found: Vec<_> = slowest.kept.iter().map(|kept| kept.sequence).collect();
        let expected: Vec<u64> = (0..10).map(|at| 69 + 70 * (13 - at)).collect();
        assert_eq!(found, expected);
        let kept = slowest.kept[0];
        assert_eq!((kept.took(), kept.sent - kept.due), (1_079, 7));
    }

    #[test]
    fn what_a_command_far_away_waited_for_is_not_told() {
        assert_eq!(nearest([100, 900, 5_000].into_iter(), 880), Some(1));
        assert_eq!(nearest([100, 900].into_iter(), 900 + NEAR + 1), None);
        assert_eq!(nearest([].into_iter(), 1), None);
    }

    #[test]
    fn one_that_was_sent_late_is_slow_however_quick_the_stages_are() {
        let sent = Sent::new(1);
        let mut slowest = Slowest::new(sent.clone());
        sent.at(0, 9_990);
        slowest.note((0, &Command::Reset), 10, 10_000);
        let kept = slowest.kept[0];
        assert_eq!((kept.took(), kept.sent - kept.due), (9_990, 9_980));
        assert_eq!(kept.kind, "reset");
    }
}
