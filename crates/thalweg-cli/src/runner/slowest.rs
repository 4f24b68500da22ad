//! The slowest commands of a run, all of them looked at, and where each spent its time.

use super::kind;
use super::measured::{UNSENT, named};
use super::passage::Moments;
use crate::report::facts::{Part, Slow, SlowPart};
use thalweg::pipeline::{SlowEvent, Stats};
use thalweg_exchange::Command;
use thalweg_measure::clock::Clock;

/// How many are kept.
const KEPT: usize = 10;
/// So many commands from each other, two had the same to wait for.
const NEAR: u64 = 128;
/// And if they took about as long in the stages, to such a part of it.
const ALIKE: f64 = 0.1;

/// One of the slowest, in ticks.
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

/// The slowest so far.
#[derive(Debug)]
pub(super) struct Slowest {
    room: usize,
    kept: Vec<Kept>,
    /// A command that took no longer than this is none of them.
    least: Option<u64>,
}

impl Slowest {
    pub(super) fn new() -> Slowest {
        Slowest::of(KEPT)
    }

    /// So many of the slowest.
    pub(super) fn of(room: usize) -> Slowest {
        Slowest {
            room,
            kept: Vec::with_capacity(room),
            least: None,
        }
    }

    /// A command is done, every one of them.
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

    /// The list with the parts of each: what the pipeline knows of it, or of one that was in flight
    /// at the same time and took as long in the stages; or else what the stages noted, or waiting
    /// to be sent and all stages together. `blocked` are the commands that waited longest for a
    /// slot. `noted`: the sender runs all stages, and what they noted of each command is all.
    pub(super) fn facts(
        &self,
        clock: Clock,
        (stats, noted): (&Stats, bool),
        blocked: &Slowest,
    ) -> Vec<Slow> {
        let first = stats.stages.first().map_or("", |stage| &stage.name);
        let slow = |kept: &Kept| {
            let took_ns = clock.ns(kept.took());
            let near = stats.slowest.iter().filter(|_| !noted);
            let near = nearest(near.map(|e| e.sequence), kept.sequence);
            let timed = near.map(|at| &stats.slowest[at]);
            let blocked = blocked.kept.iter().find(|b| b.sequence == kept.sequence);
            let blocked = blocked.map_or(0, Kept::took);
            let sent = kept.moments.sent + blocked;
            let own = Moments {
                sent,
                ..kept.moments
            }
            .named(first, !noted);
            let mut unsent_ns = clock
                .ns(kept.moments.sent - kept.moments.due + blocked)
                .min(took_ns);
            if let Some(event) = timed.filter(|event| event.sequence == kept.sequence) {
                unsent_ns = event.unsent_ns;
            }
            let timed =
                timed.filter(|event| is_alike(event, kept.sequence, took_ns - unsent_ns, took_ns));
            let mut parts = match (timed, own) {
                (Some(event), _) => parts_of(event, unsent_ns, took_ns),
                (None, Some(own)) => own
                    .map(|(what, ticks)| SlowPart::new(what, clock.ns(ticks)))
                    .into(),
                (None, None) => untimed(unsent_ns, took_ns, stats),
            };
            parts.retain(|part| part.ns > 0);
            let like = timed.filter(|event| event.sequence != kept.sequence);
            Slow {
                command: kept.sequence + 1,
                kind: kept.kind.to_owned(),
                end_to_end_ns: took_ns,
                parts,
                like: like.map(|event| event.sequence + 1),
            }
        };
        self.kept.iter().map(slow).collect()
    }
}

/// Whether this is the event itself, or one that took as long in the stages.
fn is_alike(event: &SlowEvent, sequence: u64, staged_ns: u64, took_ns: u64) -> bool {
    let staged = event.end_to_end_ns.saturating_sub(event.unsent_ns);
    let off = staged.abs_diff(staged_ns) as f64;
    event.sequence == sequence || off <= took_ns as f64 * ALIKE
}

fn parts_of(event: &SlowEvent, unsent_ns: u64, took_ns: u64) -> Vec<SlowPart> {
    let stages = event.parts.iter();
    let stages: Vec<_> = stages
        .map(|part| {
            let (waited, served) = (part.queueing_ns as f64, part.service_ns as f64);
            (part.stage.as_str(), waited, served)
        })
        .collect();
    let named = named(0.0, &stages);
    let known: f64 = named.iter().map(|part| part.ns).sum();
    // One that took a little longer is like it; what is missing is the clock's cost, and what it
    // takes to write down.
    let scale = ((took_ns - unsent_ns) as f64 / known.max(1.0)).min(1.0);
    let part = |part: Part| SlowPart::new(part.what, (part.ns * scale) as u64);
    let unsent = SlowPart::new(UNSENT.to_owned(), unsent_ns);
    let stages = named.into_iter().map(part);
    let mut parts: Vec<SlowPart> = [unsent].into_iter().chain(stages).collect();
    let known: u64 = parts.iter().map(|part| part.ns).sum();
    let rest = took_ns.saturating_sub(known);
    parts.push(SlowPart::unknown("being measured".to_owned(), rest));
    parts
}

fn untimed(unsent_ns: u64, took_ns: u64, stats: &Stats) -> Vec<SlowPart> {
    let name = |stage: Option<&thalweg::pipeline::StageStats>| {
        stage.map_or("", |stage| stage.name.as_str()).to_owned()
    };
    let (first, last) = (name(stats.stages.first()), name(stats.stages.last()));
    vec![
        SlowPart::new(UNSENT.to_owned(), unsent_ns),
        SlowPart::unknown(
            format!("from {first} to {last}"),
            took_ns.saturating_sub(unsent_ns),
        ),
    ]
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
            // All take 50, but for every 70th, which takes 100 and more.
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
    fn what_a_command_far_away_waited_for_is_not_told() {
        assert_eq!(nearest([100, 900, 5_000].into_iter(), 880), Some(1));
        assert_eq!(nearest([100, 900].into_iter(), 900 + NEAR + 1), None);
        assert_eq!(nearest([].into_iter(), 1), None);
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
    fn parts_have_names_or_do_not_cover_anything() {
        let slow = Slow {
            command: 1,
            kind: "place".into(),
            end_to_end_ns: 1_000,
            parts: vec![
                SlowPart::new("waiting to be sent".into(), 900),
                SlowPart::unknown("from risk to publish".into(), 100),
            ],
            like: None,
        };
        assert!((slow.covered() - 0.9).abs() < 1e-9);
    }

    #[test]
    fn what_the_stages_noted_names_the_parts_of_one_that_was_not_timed() {
        let pipeline = thalweg::pipeline::Pipeline::builder(64, || ())
            .stage("risk", |(), _| ())
            .placement(thalweg::pipeline::Placement::inline())
            .build()
            .expect("a valid pipeline");
        let stats = pipeline.join().expect("no panic");
        let [mut slowest, mut blocked] = [Slowest::new(), Slowest::of(1)];
        let noted = Moments {
            checked: 1_500,
            matched: 1_900,
            ..moments(1_000, 1_000, 2_000)
        };
        slowest.note((7, &Command::Nop), noted);
        // It waited for a slot for 300 of that.
        blocked.note((7, &Command::Nop), moments(1_000, 1_000, 1_300));
        let found = slowest.facts(Clock::with_os(), (&stats, false), &blocked);
        let parts: Vec<_> = (found[0].parts.iter())
            .map(|part| (&part.what[..], part.ns))
            .collect();
        let expected = [
            (UNSENT, 300),
            ("waiting for and in risk", 200),
            ("waiting for and in match", 400),
            ("waiting for and in settle", 100),
        ];
        assert_eq!(parts, expected);
        assert!((found[0].covered() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn only_one_that_took_as_long_in_the_stages_speaks_for_another() {
        let mut pipeline = thalweg::pipeline::Pipeline::builder(64, || ())
            .stage("a", |(), _| ())
            .placement(thalweg::pipeline::Placement::inline())
            .sample_every(1)
            .build()
            .expect("a valid pipeline");
        pipeline.publish_due(1, |()| ()).expect("it runs");
        let stats = pipeline.join().expect("no panic");
        let event = &stats.slowest[0];
        let staged = event.end_to_end_ns - event.unsent_ns;
        let took = 10 * staged.max(1_000);
        assert!(is_alike(event, 0, took, took), "it is the event itself");
        assert!(is_alike(event, 7, staged + took / 10, took));
        assert!(!is_alike(event, 7, staged + took / 5, took));
        // What the other waited to be sent is its own.
        let parts = parts_of(event, took - staged, took);
        assert_eq!(parts[0], SlowPart::new(UNSENT.into(), took - staged));
        assert_eq!(parts.iter().map(|part| part.ns).sum::<u64>(), took);
    }
}
