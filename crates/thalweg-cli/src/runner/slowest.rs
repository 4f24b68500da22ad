//! Finds the slowest commands of a run, among all of them, and the parts each spent its time on.

use super::kind;
use super::passage::Moments;
use crate::report::facts::{Slow, SlowPart};
use thalweg_exchange::Command;
use thalweg_measure::clock::Clock;

/// The number of commands that are kept.
const KEPT: usize = 10;

/// One of the slowest commands, in ticks.
#[derive(Clone, Copy, Debug)]
struct Kept {
    sequence: u64,
    kind: &'static str,
    moments: Moments,
}

impl Kept {
    fn took(&self) -> u64 {
        self.moments.took()
    }
}

/// The slowest commands so far.
#[derive(Debug)]
pub(super) struct Slowest {
    room: usize,
    kept: Vec<Kept>,
    /// The least latency of the list: a command that took no longer than this is not in it.
    least: Option<u64>,
}

impl Slowest {
    pub(super) fn new() -> Slowest {
        Slowest::of(KEPT)
    }

    /// Creates a list of this number of slowest commands.
    pub(super) fn of(room: usize) -> Slowest {
        Slowest {
            room,
            kept: Vec::with_capacity(room),
            least: None,
        }
    }

    /// Records a command that is done. The caller passes every command.
    #[inline]
    pub(super) fn note(&mut self, (sequence, command): (u64, &Command), moments: Moments) {
        if self.least.is_none_or(|least| moments.took() > least) {
            let (due, done) = (moments.due, moments.done);
            self.keep(Kept {
                sequence,
                kind: kind(command),
                moments: Moments {
                    sent: moments.sent.clamp(due, done.max(due)),
                    ..moments
                },
            });
        }
    }

    #[cold]
    fn keep(&mut self, kept: Kept) {
        if self.kept.len() == self.room {
            self.kept.pop();
        }
        let at = self
            .kept
            .partition_point(|other| other.took() >= kept.took());
        self.kept.insert(at, kept);
        self.least = self.kept.get(self.room - 1).map(Kept::took);
    }

    /// Returns the list with the parts of each command. `blocked` are the commands that waited
    /// longest for a slot.
    pub(super) fn facts(&self, clock: Clock, blocked: &Slowest) -> Vec<Slow> {
        let slow = |kept: &Kept| {
            let blocked = blocked.kept.iter().find(|b| b.sequence == kept.sequence);
            let moments = Moments {
                sent: kept.moments.sent + blocked.map_or(0, Kept::took),
                ..kept.moments
            };
            let parts = moments.named().into_iter();
            let parts = parts.filter(|(_, ticks)| *ticks > 0);
            Slow {
                command: kept.sequence + 1,
                kind: kept.kind.to_owned(),
                end_to_end_ns: clock.ns(kept.took()),
                parts: parts
                    .map(|(what, ticks)| SlowPart {
                        what: what.to_owned(),
                        ns: clock.ns(ticks),
                    })
                    .collect(),
            }
        };
        self.kept.iter().map(slow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_exchange::service::Stamps;

    fn moments(due: u64, sent: u64, done: u64) -> Moments {
        Moments {
            due,
            sent,
            done,
            ..Moments::default()
        }
    }

    #[test]
    fn the_slowest_of_all_are_kept_with_when_they_were_sent() {
        let mut slowest = Slowest::new();
        for sequence in 0..1_000 {
            let due = 1_000 * sequence;
            // All commands take 50, except every 70th, which takes 100 and more.
            let took = if sequence % 70 == 69 {
                100 + sequence
            } else {
                50
            };
            slowest.note((sequence, &Command::Nop), moments(due, due + 7, due + took));
        }
        let found: Vec<_> = slowest.kept.iter().map(|kept| kept.sequence).collect();
        let expected: Vec<u64> = (0..10).map(|at| 69 + 70 * (13 - at)).collect();
        assert_eq!(found, expected);
        let kept = slowest.kept[0];
        assert_eq!(
            (kept.took(), kept.moments.sent - kept.moments.due),
            (1_079, 7)
        );
    }

    #[test]
    fn one_that_was_sent_late_is_slow_however_quick_the_stages_are() {
        let mut slowest = Slowest::new();
        slowest.note((0, &Command::Reset), moments(10, 9_990, 10_000));
        let kept = slowest.kept[0];
        assert_eq!(
            (kept.took(), kept.moments.sent - kept.moments.due),
            (9_990, 9_980)
        );
        assert_eq!(kept.kind, "reset");
    }

    #[test]
    fn stamps_name_the_parts() {
        let [mut slowest, mut blocked] = [Slowest::new(), Slowest::of(1)];
        let stamps = Stamps {
            begun: 1_350,
            checked: 1_500,
            matched: 1_900,
            settled: 1_960,
            journaled: 0,
        };
        let noted = Moments {
            stamps: Some(stamps),
            ..moments(1_000, 1_000, 2_000)
        };
        slowest.note((7, &Command::Nop), noted);
        // The command waited for a slot for 300 of these ticks.
        blocked.note((7, &Command::Nop), moments(1_000, 1_000, 1_300));
        let found = slowest.facts(Clock::with_os(), &blocked);
        let parts: Vec<_> = (found[0].parts.iter())
            .map(|part| (&part.what[..], part.ns))
            .collect();
        let expected = [
            ("waiting to be sent", 300),
            ("waiting for execute", 50),
            ("in risk", 150),
            ("in match", 400),
            ("in settle", 60),
            ("waiting for publish", 40),
        ];
        assert_eq!(parts, expected);
        assert_eq!(found[0].end_to_end_ns, 1_000);
    }
}
