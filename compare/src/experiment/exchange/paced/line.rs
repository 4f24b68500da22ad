//! The ways from a schedule to where results arrive.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::{Placement, Stats};
use thalweg_exchange::service::{Options, Outcome, Service};
use thalweg_exchange::{Command, Events, State, apply};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Writer;

use crate::sender::Gate;
use crate::workload::Stamp;

/// Commands in flight at most: few enough that the warm-up goes round the ring, and that the ring
/// stays in a core's own cache.
const CAPACITY: usize = 512;
/// Commands that do nothing, which go through a service one by one before the schedule begins.
pub(super) const HELLOS: u64 = 128;

/// What came out of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) commands: u64,
    /// Commands that did not come in their turn.
    pub(super) misplaced: u64,
    /// Those whose latency counts.
    pub(super) measured: u64,
    pub(super) first_due_ticks: u64,
    pub(super) last_ticks: u64,
}

impl Seen {
    /// From the first measured command's time to the last one's end.
    pub(super) fn reached_per_s(&self) -> f64 {
        let span = self.last_ticks.saturating_sub(self.first_due_ticks);
        let span_ns = Clock::global().ns(span).max(1);
        self.measured.saturating_sub(1) as f64 * 1e9 / span_ns as f64
    }
}

/// Where results arrive.
pub(super) struct End {
    clock: Clock,
    latency_ticks: Writer,
    seen: Seen,
    told: Arc<Mutex<Seen>>,
}

impl End {
    pub(super) fn new(latency_ticks: Writer) -> (Self, Arc<Mutex<Seen>>) {
        let told = Arc::default();
        let end = Self {
            clock: Clock::global(),
            latency_ticks,
            seen: Seen::default(),
            told: Arc::clone(&told),
        };
        (end, told)
    }

    #[inline]
    fn take(&mut self, number: u64, due_ticks: u64) {
        let seen = &mut self.seen;
        seen.misplaced += u64::from(number != seen.commands);
        seen.commands += 1;
        if due_ticks != 0 {
            let now = self.clock.ticks();
            self.latency_ticks.record(now.saturating_sub(due_ticks));
            seen.last_ticks = now;
            if seen.measured == 0 {
                seen.first_due_ticks = due_ticks;
            }
            seen.measured += 1;
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = self.seen;
    }
}

/// What a run leaves.
pub(super) struct Left {
    pub(super) state: State,
    pub(super) stats: Option<Stats>,
}

/// Where it is left.
pub(super) type Leaving = Arc<Mutex<Option<Left>>>;

fn leave(leaving: &Leaving, state: State, stats: Option<Stats>) {
    let left = Left { state, stats };
    *leaving.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
}

/// The engine in the sender's loop.
pub(super) struct Looped<'c> {
    state: State,
    events: Events,
    commands: &'c [Command],
    end: End,
    left: Leaving,
}

impl<'c> Looped<'c> {
    pub(super) fn new(state: State, commands: &'c [Command], end: End, left: &Leaving) -> Self {
        Self {
            state,
            events: Events::with_capacity(1024),
            commands,
            end,
            left: Arc::clone(left),
        }
    }
}

impl Gate for Looped<'_> {
    #[inline]
    fn publish(&mut self, due: &[Stamp]) -> bool {
        for stamp in due {
            let command = &self.commands[stamp.number as usize];
            apply(&mut self.state, command, &mut self.events);
            self.end.take(stamp.number, stamp.intended_ticks);
        }
        true
    }

    fn finish(self) {
        leave(&self.left, self.state, None);
    }
}

/// The service.
pub(super) struct Submitted<'c> {
    service: Service,
    commands: &'c [Command],
    left: Leaving,
}

impl<'c> Submitted<'c> {
    pub(super) fn start(
        state: State,
        commands: &'c [Command],
        (placement, mut end): (&Placement, End),
        left: &Leaving,
    ) -> Result<Self, String> {
        let options = Options {
            capacity: CAPACITY,
            placement: placement.clone(),
            ..Options::default()
        };
        let publish = move |outcome: Outcome<'_>| {
            end.take(outcome.sequence, outcome.tag);
        };
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let service = Service::start(state, options, publish);
        let mut service = service.map_err(|error| text(&error))?;
        // A new thread may wait for its core for milliseconds: not what is measured here.
        for _ in 0..HELLOS {
            let hello = service.submit(&Command::Nop, 0);
            hello.map_err(|error| text(&error))?;
            service.drain().map_err(|error| text(&error))?;
        }
        Ok(Self {
            service,
            commands,
            left: Arc::clone(left),
        })
    }
}

impl Gate for Submitted<'_> {
    #[inline]
    fn publish(&mut self, due: &[Stamp]) -> bool {
        let commands = self.commands;
        let write = |at: usize, command: &mut Command| {
            let stamp: &Stamp = &due[at];
            command.clone_from(&commands[stamp.number as usize]);
            stamp.intended_ticks
        };
        self.service.submit_with(due.len(), write).is_ok()
    }

    fn finish(self) {
        if let Ok(finished) = self.service.join() {
            leave(&self.left, finished.state, Some(finished.stats));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_that_was_reached_is_of_the_measured_commands() {
        let clock = Clock::global();
        let seen = Seen {
            commands: 5_000,
            measured: 1_001,
            first_due_ticks: 70,
            last_ticks: 70 + clock.ticks_from_ns(2_000_000),
            ..Seen::default()
        };
        let error = (seen.reached_per_s() / 500_000.0 - 1.0).abs();
        assert!(error < 0.001, "{error}");
    }
}
