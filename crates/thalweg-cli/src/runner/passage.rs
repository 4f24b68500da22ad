//! Where every command was when, where the sender runs all stages: from moments that the stages
//! note as they go on, without a stop for the clock.
//!
//! One command in 64 is timed at every stage by the pipeline, too, which waits for the work before
//! each look at the clock to be done. That is right for the command as it is, and more than a
//! command takes that nobody looks at, whose parts overlap. Here every command is looked at in the
//! same way, the parts of each add up to what it took, and so do their means.

use super::measured::UNSENT;
use super::timeline::{GROUPS, group};
use crate::report::facts::{Breakdown, Distribution, Part};
use thalweg::pipeline::Stats;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Histogram, Recorder};

/// One command in so many is in the distributions of the parts, in a run that is not short.
const SERVED_EVERY: u64 = 8;
/// Waiting to be sent, and three stages.
const PARTS: usize = 4;
/// The stages; what comes after the last is no part of a command's time.
const STAGES: [&str; PARTS - 1] = ["risk", "match", "settle"];

/// When a command was where, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    pub(super) due: u64,
    /// Handed over.
    pub(super) sent: u64,
    /// Through the risk check, and matched; 0 where that was not noted.
    pub(super) checked: u64,
    pub(super) matched: u64,
    /// In the hands of the publish stage.
    pub(super) done: u64,
}

impl Moments {
    /// How long it took.
    pub(super) fn took(&self) -> u64 {
        self.done.saturating_sub(self.due)
    }

    /// What it waited to be sent, and was in each stage; they add up to what it took. None where
    /// that was not noted.
    pub(super) fn parts(&self) -> Option<[u64; PARTS]> {
        if self.checked == 0 || self.matched == 0 {
            return None;
        }
        // A look at the clock may come a few ticks before one that the program has earlier.
        let done = self.done.max(self.due);
        let sent = self.sent.clamp(self.due, done);
        let checked = self.checked.clamp(sent, done);
        let matched = self.matched.clamp(checked, done);
        Some([
            sent - self.due,
            checked - sent,
            matched - checked,
            done - matched,
        ])
    }

    /// The parts with their names. `first` is the first stage, `waits` says that there may be
    /// waiting in them.
    pub(super) fn named(&self, first: &str, waits: bool) -> Option<[(String, u64); PARTS]> {
        let [unsent, stages @ ..] = self.parts()?;
        let [risk, matching, settle] = stage_names(first).map(|name| match waits {
            true => format!("waiting for and in {name}"),
            false => format!("in {name}"),
        });
        let [a, b, c] = stages;
        Some([
            (UNSENT.to_owned(), unsent),
            (risk, a),
            (matching, b),
            (settle, c),
        ])
    }
}

/// Where there is a front stage, it is one with the risk check.
fn stage_names(first: &str) -> [String; PARTS - 1] {
    let mut names = STAGES.map(str::to_owned);
    if first != STAGES[0] {
        names[0] = format!("{first} and {}", STAGES[0]);
    }
    names
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    count: u64,
    ticks: [u64; PARTS],
}

/// The sums of all commands, by how long they took.
#[derive(Debug)]
pub(super) struct Passage {
    groups: Box<[Group; GROUPS]>,
    served: [Recorder; PARTS - 1],
    every: u64,
}

impl Passage {
    /// `is_short`: every command is in all distributions.
    pub(super) fn new(is_short: bool) -> Passage {
        Passage {
            every: if is_short { 1 } else { SERVED_EVERY },
            groups: Box::new([Group::default(); GROUPS]),
            served: std::array::from_fn(|_| Recorder::new()),
        }
    }

    /// One command in so many is in the distributions of the parts.
    pub(super) fn every(&self) -> u64 {
        self.every
    }

    /// A command is done.
    #[inline]
    pub(super) fn note(&mut self, sequence: u64, moments: &Moments) {
        let Some(parts) = moments.parts() else { return };
        let group = &mut self.groups[group(moments.took())];
        group.count += 1;
        for (sum, part) in group.ticks.iter_mut().zip(parts) {
            *sum = sum.saturating_add(part);
        }
        if sequence.is_multiple_of(self.every) {
            for (served, part) in self.served.iter().zip(&parts[1..]) {
                served.record(*part);
            }
        }
    }

    /// What commands spent their time on: the mean of all, and of those around the percentiles that
    /// are told. `first` is the first stage.
    pub(super) fn breakdowns(
        &self,
        first: &str,
        times: &Distribution,
        clock: Clock,
    ) -> Vec<Breakdown> {
        let all = self.all();
        let told = times.percentiles().into_iter();
        let told = told.filter(|(_, _, ns)| ns.is_some());
        let told = told.filter_map(|(name, quantile, _)| {
            let rank = (all.count as f64 * quantile).ceil().max(1.0) as u64;
            let mut below = 0;
            let found = self.groups.iter().find(|group| {
                below += group.count;
                below >= rank
            });
            Some((name, *found?))
        });
        let groups = [("mean", all)].into_iter().chain(told);
        let breakdowns = groups.map(|(of, group)| group.breakdown(of, first, clock));
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

    /// Puts what the stages took into the figures of the pipeline, where it has the same stages.
    /// The run took `elapsed` ticks.
    pub(super) fn fill_in(&self, stats: &mut Stats, elapsed: u64, clock: Clock) {
        let [_, ticks @ ..] = self.all().ticks;
        let mut left = 1.0;
        for ((name, served), ticks) in STAGES.iter().zip(&self.served).zip(ticks) {
            if let Some(stage) = stats.stages.iter_mut().find(|stage| stage.name == **name)
                && served.count() > 0
            {
                stage.service_ns = served.snapshot(|ticks| clock.ns(ticks));
                stage.samples = served.count();
                // The sender goes from stage to stage: nobody waits.
                stage.queueing_ns = Histogram::new();
                stage.utilisation = ticks as f64 / elapsed.max(1) as f64;
                left -= stage.utilisation;
            }
        }
        // What came after a command was done is known from samples, and had the rest at most.
        if let Some(last) = stats.stages.last_mut() {
            last.utilisation = last.utilisation.min(left.max(0.0));
        }
    }
}

impl Group {
    fn breakdown(&self, of: &str, first: &str, clock: Clock) -> Option<Breakdown> {
        let [unsent, stages @ ..] = self.ticks.map(|ticks| {
            // A scaled unit keeps three digits below the nanosecond.
            let mean = u128::from(ticks) * 1_000 / u128::from(self.count.max(1));
            clock.ns(u64::try_from(mean).unwrap_or(u64::MAX)) as f64 / 1_000.0
        });
        let names = stage_names(first);
        let parts = names.iter().zip(stages);
        let parts = parts.map(|(name, ns)| Part {
            what: format!("in {name}"),
            ns,
        });
        let unsent = Part {
            what: UNSENT.to_owned(),
            ns: unsent,
        };
        let parts: Vec<Part> = [unsent]
            .into_iter()
            .chain(parts)
            .filter(|part| part.ns > 0.0)
            .collect();
        (self.count > 0).then(|| Breakdown {
            of: of.to_owned(),
            commands: self.count,
            end_to_end_ns: parts.iter().map(|part| part.ns).sum(),
            parts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::distribution;

    fn moments(due: u64, parts: [u64; PARTS]) -> Moments {
        let [unsent, risk, matching, settle] = parts;
        let sent = due + unsent;
        Moments {
            due,
            sent,
            checked: sent + risk,
            matched: sent + risk + matching,
            done: sent + risk + matching + settle,
        }
    }

    #[test]
    fn the_parts_of_every_command_add_up_and_so_do_their_means() {
        let (clock, mut passage, mut times) =
            (Clock::with_os(), Passage::new(true), Histogram::new());
        for sequence in 0..10_000 {
            // One in twenty is late, and one in fifty takes long to match.
            let unsent = [0, 20_000][usize::from(sequence % 20 == 3)];
            let matching = [50, 70_000][usize::from(sequence % 50 == 7)];
            let moments = moments(1_000 * sequence, [unsent, 20, matching, 30]);
            passage.note(sequence, &moments);
            times.record(moments.took());
        }
        let found = passage.breakdowns("risk", &distribution(&times), clock);
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
        let sharded = passage.breakdowns("front", &distribution(&times), clock);
        assert_eq!(sharded[0].parts[1].what, "in front and risk");
    }

    #[test]
    fn looks_that_overtake_each_other_make_no_part_negative_and_unnoted_ones_make_none() {
        let mut late = moments(100, [5, 20, 50, 30]);
        late.matched = late.checked - 3;
        late.done = late.matched - 2;
        let parts = late.parts().expect("all was noted");
        assert_eq!(parts.iter().sum::<u64>(), late.took(), "{parts:?}");
        late.matched = 0;
        assert_eq!(late.parts(), None);
        let none =
            Passage::new(true).breakdowns("risk", &Distribution::default(), Clock::with_os());
        assert!(none.is_empty());
    }
}
