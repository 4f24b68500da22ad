//! Records where every command was at which time: the execute stage stamps each command, the sender
//! and the publish stage read the clock, and the parts of a command add up to its latency.

use crate::flow::kind;
use crate::report::facts::{Breakdown, Distribution, Part, Slow, SlowPart};
use crate::runner::timeline::{GROUPS, group};
use crate::runner::{Timed, UNSENT};
use thalweg::pipeline::Stats;
use thalweg_exchange::Command;
use thalweg_exchange::service::Stamps;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Recorder;

/// The parts that a command goes through before the publish stage takes it. The work of that stage
/// is not part of its time.
const PARTS: [&str; 7] = [
    UNSENT,
    "waiting for execute",
    "in risk",
    "in match",
    "in settle",
    // It waits for the disk.
    "waiting for journal",
    "waiting for publish",
];
/// The parts of execution, and their positions in the list above.
const EXECUTION: [(&str, usize); 3] = [("risk", 2), ("match", 3), ("settle", 4)];

/// The times, in ticks, at which a command reached each part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) due: u64,
    /// The time at which it was handed over.
    pub(crate) sent: u64,
    pub(crate) stamps: Option<Stamps>,
    /// The time at which the publish stage took it.
    pub(crate) done: u64,
}

impl Moments {
    /// Returns the latency of the command.
    pub(crate) fn took(&self) -> u64 {
        self.done.saturating_sub(self.due)
    }

    /// Returns the time of each part; the parts add up to the latency of the command. Returns
    /// `None` where the command was not stamped.
    pub(crate) fn parts(&self) -> Option<[u64; PARTS.len()]> {
        let stamps = self.stamps?;
        let ends = [
            self.sent,
            stamps.begun,
            stamps.checked,
            stamps.matched,
            stamps.settled,
            stamps.journaled,
            self.done,
        ];
        // A reading of the clock may be a few ticks below one that the program made earlier.
        let done = self.done.max(self.due);
        let mut from = self.due;
        Some(ends.map(|end| {
            let end = end.clamp(from, done);
            let part = end - from;
            from = end;
            part
        }))
    }

    /// Returns the parts with their names.
    pub(crate) fn named(&self) -> Vec<(&'static str, u64)> {
        let parts = self.parts().into_iter().flatten();
        PARTS.into_iter().zip(parts).collect()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    count: u64,
    ticks: [u64; PARTS.len()],
}

/// The parts of all commands: sums by the latency of the commands, and distributions.
#[derive(Debug)]
pub(crate) struct CommandTrace {
    groups: Box<[Group; GROUPS]>,
    parts: [Recorder; PARTS.len()],
    executed: Recorder,
}

impl CommandTrace {
    pub(crate) fn new() -> CommandTrace {
        CommandTrace {
            groups: Box::new([Group::default(); GROUPS]),
            parts: std::array::from_fn(|_| Recorder::new()),
            executed: Recorder::new(),
        }
    }

    /// Records a command that is done.
    #[inline]
    pub(crate) fn note(&mut self, moments: &Moments) {
        let Some(parts) = moments.parts() else { return };
        let group = &mut self.groups[group(moments.took())];
        group.count += 1;
        for (sum, part) in group.ticks.iter_mut().zip(parts) {
            *sum = sum.saturating_add(part);
        }
        for (times, part) in self.parts.iter().zip(parts) {
            times.record(part);
        }
        self.executed
            .record(EXECUTION.iter().map(|(_, at)| parts[*at]).sum());
    }

    /// Returns the mean time of each part: for all commands, and for those around the percentiles
    /// that have enough commands.
    pub(crate) fn breakdowns(&self, times: &Distribution, clock: Clock) -> Vec<Breakdown> {
        let all = self.all();
        let found = times.percentiles().into_iter();
        let found = found.filter(|(_, _, ns)| ns.is_some());
        let found = found.filter_map(|(name, quantile, _)| {
            let rank = (all.count as f64 * quantile).ceil().max(1.0) as u64;
            let mut below = 0;
            let found = self.groups.iter().find(|group| {
                below += group.count;
                below >= rank
            });
            Some((name, *found?))
        });
        let groups = [("mean", all)].into_iter().chain(found);
        let breakdowns = groups.map(|(of, group)| group.breakdown(of, clock));
        breakdowns.flatten().collect()
    }

    fn all(&self) -> Group {
        let mut all = Group::default();
        for group in self.groups.iter() {
            all.count += group.count;
            for (sum, more) in all.ticks.iter_mut().zip(group.ticks) {
                *sum = sum.saturating_add(more);
            }
        }
        all
    }

    /// Returns the stages of a pipeline, and the parts of execution after the execute stage. The
    /// stamped times come from here and cover every command: execution, and the waits for it and
    /// for the publish stage. The other times are the pipeline's samples. The run took `elapsed`
    /// ticks.
    pub(crate) fn stages(&self, stats: &Stats, elapsed: u64, clock: Clock) -> Vec<Timed> {
        let ns = |times: &Recorder| {
            let times = times.snapshot(|ticks| clock.ns(ticks));
            let count = times.count();
            Some((times, count))
        };
        let [_, wait, .., publish] = &self.parts;
        let mut rows = Vec::new();
        for stage in &stats.stages {
            let mut row = Timed::of(stage);
            match &*stage.name {
                "execute" => {
                    (row.waited, row.served) = (ns(wait), ns(&self.executed));
                    let ticks = self.executed.sum() as f64;
                    row.utilisation = Some(ticks / elapsed.max(1) as f64);
                    rows.push(row);
                    let parts = EXECUTION.map(|(name, at)| Timed {
                        name: name.to_owned(),
                        part_of: Some("execute"),
                        served: ns(&self.parts[at]),
                        ..Timed::default()
                    });
                    rows.extend(parts);
                }
                "publish" => {
                    row.waited = ns(publish);
                    let busy = stage.busy_ns as f64 / clock.ns(elapsed).max(1) as f64;
                    row.utilisation = Some(busy.min(1.0));
                    rows.push(row);
                }
                // Commands wait until it has the disk; how long it worked is not measured.
                "journal" if stage.busy_ns == 0 => {
                    (row.served, row.utilisation) = (None, None);
                    rows.push(row);
                }
                _ => rows.push(row),
            }
        }
        rows
    }
}

impl Group {
    fn breakdown(&self, of: &str, clock: Clock) -> Option<Breakdown> {
        let parts = PARTS.iter().zip(self.ticks).map(|(what, ticks)| {
            // A scaled unit keeps three digits below the nanosecond.
            let mean = u128::from(ticks) * 1_000 / u128::from(self.count.max(1));
            Part {
                what: (*what).to_owned(),
                ns: clock.ns(u64::try_from(mean).unwrap_or(u64::MAX)) as f64 / 1_000.0,
            }
        });
        let parts: Vec<Part> = parts.filter(|part| part.ns > 0.0).collect();
        (self.count > 0).then(|| Breakdown {
            of: of.to_owned(),
            commands: self.count,
            end_to_end_ns: parts.iter().map(|part| part.ns).sum(),
            parts,
        })
    }
}

/// The number of commands that are kept.
const KEPT: usize = 10;

/// One of the slowest commands, in ticks.
#[derive(Clone, Copy, Debug)]
struct SlowCommand {
    sequence: u64,
    kind: &'static str,
    passed: Moments,
}

impl SlowCommand {
    fn took(&self) -> u64 {
        self.passed.took()
    }
}

/// The slowest commands so far.
#[derive(Debug)]
pub(crate) struct Slowest {
    room: usize,
    kept: Vec<SlowCommand>,
    /// The least latency of the list: a command that took no longer than this is not in it.
    least: Option<u64>,
}

impl Slowest {
    pub(crate) fn new() -> Slowest {
        Slowest::of(KEPT)
    }

    /// Creates a list of this number of slowest commands.
    pub(crate) fn of(room: usize) -> Slowest {
        Slowest {
            room,
            kept: Vec::with_capacity(room),
            least: None,
        }
    }

    /// Records a command that is done. The caller passes every command.
    #[inline]
    pub(crate) fn note(&mut self, (sequence, command): (u64, &Command), passed: Moments) {
        if self.least.is_none_or(|least| passed.took() > least) {
            let (due, done) = (passed.due, passed.done);
            self.keep(SlowCommand {
                sequence,
                kind: kind(command),
                passed: Moments {
                    sent: passed.sent.clamp(due, done.max(due)),
                    ..passed
                },
            });
        }
    }

    #[cold]
    fn keep(&mut self, kept: SlowCommand) {
        if self.kept.len() == self.room {
            self.kept.pop();
        }
        let at = self
            .kept
            .partition_point(|other| other.took() >= kept.took());
        self.kept.insert(at, kept);
        self.least = self.kept.get(self.room - 1).map(SlowCommand::took);
    }

    /// Returns the list with the parts of each command. `blocked` are the commands that waited
    /// longest for a slot.
    pub(crate) fn facts(&self, clock: Clock, blocked: &Slowest) -> Vec<Slow> {
        let slow = |kept: &SlowCommand| {
            let blocked = blocked.kept.iter().find(|b| b.sequence == kept.sequence);
            let passed = Moments {
                sent: kept.passed.sent + blocked.map_or(0, SlowCommand::took),
                ..kept.passed
            };
            // Ends are rounded, not parts, so that the parts add up to the whole.
            let mut end = 0;
            let parts = passed.named().into_iter().map(|(what, ticks)| {
                let begin = clock.ns(end);
                end += ticks;
                SlowPart {
                    what: what.to_owned(),
                    ns: clock.ns(end) - begin,
                }
            });
            Slow {
                command: kept.sequence + 1,
                kind: kept.kind.to_owned(),
                end_to_end_ns: clock.ns(kept.took()),
                parts: parts.filter(|part| part.ns > 0).collect(),
            }
        };
        self.kept.iter().map(slow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::distribution;
    use thalweg_exchange::service::Stamps;
    use thalweg_measure::histogram::Histogram;

    fn moments(due: u64, parts: [u64; PARTS.len()]) -> Moments {
        let mut at = due;
        let ends = parts.map(|part| {
            at += part;
            at
        });
        let [sent, begun, checked, matched, settled, journaled, done] = ends;
        let stamps = Stamps {
            begun,
            checked,
            matched,
            settled,
            journaled,
        };
        Moments {
            due,
            sent,
            stamps: Some(stamps),
            done,
        }
    }

    #[test]
    fn the_parts_of_every_command_add_up_and_so_do_their_means() {
        let (clock, mut trace, mut times) =
            (Clock::with_os(), CommandTrace::new(), Histogram::new());
        for sequence in 0..10_000 {
            // One command in twenty is late, and one in fifty takes long to match.
            let publish_delay = [0, 20_000][usize::from(sequence % 20 == 3)];
            let matching = [50, 70_000][usize::from(sequence % 50 == 7)];
            let moments = moments(1_000 * sequence, [publish_delay, 5, 20, matching, 30, 0, 2]);
            trace.note(&moments);
            times.record(moments.took());
        }
        let found = trace.breakdowns(&distribution(&times), clock);
        let of: Vec<_> = found.iter().map(|found| &found.of[..]).collect();
        assert_eq!(of, ["mean", "p50", "p90", "p99", "p99.9"]);
        assert_eq!(found[0].commands, 10_000);
        assert!(
            (found[0].end_to_end_ns - times.summary().mean).abs() < 0.01,
            "{found:?}"
        );
        let part = |at: usize, what: &str| {
            let mut parts = found[at].parts.iter();
            parts
                .find(|part| part.what == what)
                .map_or(0.0, |part| part.ns)
        };
        assert_eq!([part(0, UNSENT), part(0, "in match")], [1_000.0, 1_449.0]);
        assert_eq!([part(1, UNSENT), part(1, "in match")], [0.0, 50.0]);
        assert_eq!([part(3, UNSENT), part(3, "in match")], [0.0, 70_000.0]);
    }

    #[test]
    fn looks_that_overtake_each_other_make_no_part_negative_and_what_is_not_stamped_has_none() {
        let mut late = moments(100, [5, 1, 20, 50, 30, 0, 4]);
        let stamps = late.stamps.as_mut().expect("it is stamped");
        stamps.matched = stamps.checked - 3;
        // This run has no journal.
        stamps.journaled = 0;
        late.done = stamps.settled - 2;
        let parts = late.parts().expect("it is stamped");
        assert_eq!(parts.iter().sum::<u64>(), late.took(), "{parts:?}");
        late.stamps = None;
        assert_eq!(late.parts(), None);
        let none = CommandTrace::new().breakdowns(&Distribution::default(), Clock::with_os());
        assert!(none.is_empty());
    }

    fn passed(due: u64, sent: u64, done: u64) -> Moments {
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
            slowest.note((sequence, &Command::Nop), passed(due, due + 7, due + took));
        }
        let found: Vec<_> = slowest.kept.iter().map(|kept| kept.sequence).collect();
        let expected: Vec<u64> = (0..10).map(|at| 69 + 70 * (13 - at)).collect();
        assert_eq!(found, expected);
        let kept = slowest.kept[0];
        assert_eq!(
            (kept.took(), kept.passed.sent - kept.passed.due),
            (1_079, 7)
        );
    }

    #[test]
    fn one_that_was_sent_late_is_slow_however_quick_the_stages_are() {
        let mut slowest = Slowest::new();
        slowest.note((0, &Command::Reset), passed(10, 9_990, 10_000));
        let kept = slowest.kept[0];
        assert_eq!(
            (kept.took(), kept.passed.sent - kept.passed.due),
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
            ..passed(1_000, 1_000, 2_000)
        };
        slowest.note((7, &Command::Nop), noted);
        // The command waited for a slot for 300 of these ticks.
        blocked.note((7, &Command::Nop), passed(1_000, 1_000, 1_300));
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
