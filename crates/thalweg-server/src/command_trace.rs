//! The ways of single commands: noted by the publisher, while somebody watches, of those that the
//! exchange has stamped. It never waits for who reads them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use thalweg_exchange::Command;
use thalweg_exchange::service::Outcome;
use thalweg_measure::clock::Clock;

use crate::lock;

/// Commands that are noted between two readings at most.
const NOTED_MAX: usize = 1 << 14;

/// The parts of a command's way: the stage, and whether it waited there or was served.
pub(crate) const PARTS: [(&str, &str); 6] = [
    ("execute", "wait"),
    ("risk", "service"),
    ("match", "service"),
    ("settle", "service"),
    ("journal", "wait"),
    ("publish", "service"),
];

/// The trace of one command: its number, its name and the parts of its time, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandTrace {
    /// The number of the command.
    pub command: u64,
    /// Its name: `place`, `cancel` and so on.
    pub kind: &'static str,
    /// From submission to publishing.
    pub total: u64,
    /// The parts of that: see `PARTS`; in the JSON of a moment they have their names.
    pub parts: [u64; PARTS.len()],
}

impl CommandTrace {
    /// Returns the way of a command that is published now; `None` where it was not stamped.
    fn of(outcome: &Outcome<'_>) -> Option<Self> {
        let (stamps, clock) = (outcome.stamps?, Clock::global());
        let ends = [
            stamps.begun,
            stamps.checked,
            stamps.matched,
            stamps.settled,
            stamps.journaled,
            clock.ticks(),
        ];
        let mut from = outcome.due;
        let parts = ends.map(|end| {
            let spent = end.saturating_sub(from);
            from = end.max(from);
            clock.ns(spent)
        });
        Some(Self {
            command: outcome.sequence,
            kind: kind(outcome.command),
            total: parts.iter().sum(),
            parts,
        })
    }
}

const fn kind(command: &Command) -> &'static str {
    match command {
        Command::Place(_) => "place",
        Command::PlaceConditional(_) => "place with conditions",
        Command::Cancel { .. } => "cancel",
        Command::Move { .. } => "move",
        Command::Amend(_) => "amend",
        Command::Reduce { .. } => "reduce",
        Command::CancelAll { .. } => "cancel all",
        _ => "other",
    }
}

/// Commands that were noted and not read yet.
#[derive(Debug, Default)]
pub(crate) struct CommandTraces {
    is_watched: AtomicBool,
    noted: Mutex<Vec<CommandTrace>>,
}

impl CommandTraces {
    /// Notes a command that is published, if it was stamped and somebody watches.
    #[inline]
    pub(crate) fn note(&self, outcome: &Outcome<'_>) {
        // ORDERING: Relaxed, pairs with take() and stop(); a flag alone.
        if outcome.stamps.is_some() && self.is_watched.load(Ordering::Relaxed) {
            self.add(outcome);
        }
    }

    #[cold]
    fn add(&self, outcome: &Outcome<'_>) {
        let mut noted = lock(&self.noted);
        if noted.len() < NOTED_MAX {
            noted.extend(CommandTrace::of(outcome));
        }
    }

    /// Takes what was noted, and has more noted from now on.
    pub(crate) fn take(&self) -> Vec<CommandTrace> {
        // ORDERING: Relaxed; see note().
        self.is_watched.store(true, Ordering::Relaxed);
        std::mem::take(&mut lock(&self.noted))
    }

    /// Has nothing noted any more.
    pub(crate) fn stop(&self) {
        drop(self.take());
        // ORDERING: Relaxed; see note().
        self.is_watched.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::service::Stamps;
    use thalweg_exchange::{Events, ResultCode};

    use super::*;

    #[test]
    fn only_stamped_commands_are_noted_and_only_while_somebody_watches() {
        let (events, command) = (Events::default(), Command::Nop);
        let now = Clock::global().ticks();
        let stamps = Stamps {
            begun: now,
            checked: now,
            matched: now,
            settled: now,
            journaled: now,
        };
        let outcome = |sequence, stamps| Outcome {
            sequence,
            tag: 0,
            due: now,
            stamps,
            command: &command,
            result: ResultCode::Success,
            events: &events,
        };
        let traces = CommandTraces::default();
        traces.note(&outcome(1, Some(&stamps)));
        assert_eq!(traces.take(), []);
        traces.note(&outcome(2, None));
        traces.note(&outcome(3, Some(&stamps)));
        let noted = traces.take();
        assert_eq!(noted.len(), 1);
        assert_eq!((noted[0].command, noted[0].kind), (3, "other"));
        assert_eq!(noted[0].parts.iter().sum::<u64>(), noted[0].total);
        traces.note(&outcome(4, Some(&stamps)));
        traces.stop();
        traces.note(&outcome(5, Some(&stamps)));
        assert_eq!(traces.take(), []);
    }
}
