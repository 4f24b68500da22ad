//! Where the time of the events around a percentile went.
//!
//! Sampled events are put together by how long they took, two groups an octave, and each group has
//! the sums of what its events spent. So any percentile has its parts, not only the ten slowest
//! events, and the memory is the same however long a pipeline runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_measure::clock::Clock;

use super::meter::Gauge;

/// Two an octave.
const GROUPS: usize = 128;
const COUNT: usize = 0;
const UNSENT: usize = 1;
const STAGES: usize = 2;
const WORDS_PER_STAGE: usize = 2;

/// Returns the group of a time in ticks: an octave, and which half of it.
fn group(ticks: u64) -> usize {
    let ticks = ticks.max(2);
    let octave = ticks.ilog2();
    (2 * octave + (ticks >> (octave - 1) & 1) as u32) as usize
}

/// The sums of all groups, in ticks. One last stage writes, any thread reads.
#[derive(Debug)]
pub(super) struct Profile {
    words: Box<[AtomicU64]>,
    width: usize,
}

impl Profile {
    pub(super) fn new(stages: usize) -> Self {
        let width = STAGES + WORDS_PER_STAGE * stages;
        let words = (0..GROUPS * width).map(|_| AtomicU64::new(0)).collect();
        Self { words, width }
    }

    /// An event took `total`, of that `unsent` before it had a slot; `parts` are what it waited
    /// for each stage and was served. It counts `weight` times.
    pub(super) fn note(&self, total: u64, unsent: u64, parts: &[Option<(u64, u64)>], weight: u64) {
        let first = group(total) * self.width;
        let add = |word: usize, amount: u64| {
            let word = &self.words[first + word];
            // ORDERING: Relaxed twice; a single writer, and readers want figures, not an order.
            let sum = word.load(Ordering::Relaxed).saturating_add(amount * weight);
            word.store(sum, Ordering::Relaxed);
        };
        add(COUNT, 1);
        add(UNSENT, unsent);
        for (stage, part) in parts.iter().enumerate() {
            if let Some((waited, served)) = *part {
                add(STAGES + WORDS_PER_STAGE * stage, waited);
                add(STAGES + WORDS_PER_STAGE * stage + 1, served);
            }
        }
    }
}

/// The mean times of some events, by the parts that they spent it on. The parts add up to the
/// whole.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Breakdown {
    /// The number of sampled events of which this is the mean, counted as in
    /// [`Stats::end_to_end_ns`](super::Stats::end_to_end_ns).
    pub events: u64,
    /// The time from when they were due, or from the call that published them, to the end of the
    /// last stage, ns.
    pub end_to_end_ns: f64,
    /// The time that they waited to be sent: until they had a slot, ns.
    pub unsent_ns: f64,
    /// The stages, shards one by one. Where stages ran side by side, each event's time counts for
    /// the one that it left last.
    pub parts: Vec<PartStats>,
}

/// One stage's part in a [`Breakdown`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PartStats {
    /// The stage's name.
    pub stage: String,
    /// The time that the events waited for the stage, ns.
    pub queueing_ns: f64,
    /// The time that they were served, ns.
    pub service_ns: f64,
}

/// The sums at one moment.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    sums: Vec<u64>,
    names: Vec<Arc<str>>,
    clock: Clock,
}

impl Snapshot {
    /// No sums of no stages.
    pub(super) fn none() -> Self {
        Self {
            sums: vec![0; GROUPS * STAGES],
            names: Vec::new(),
            clock: Clock::global(),
        }
    }

    pub(super) fn of<'p>(
        profiles: impl Iterator<Item = &'p Profile>,
        gauges: &[Gauge],
        clock: Clock,
    ) -> Self {
        let names: Vec<_> = gauges.iter().map(|gauge| Arc::clone(&gauge.name)).collect();
        let mut sums = vec![0_u64; GROUPS * (STAGES + WORDS_PER_STAGE * names.len())];
        for profile in profiles {
            for (sum, word) in sums.iter_mut().zip(&profile.words) {
                // ORDERING: Relaxed; a figure for people.
                *sum = sum.saturating_add(word.load(Ordering::Relaxed));
            }
        }
        Self { sums, names, clock }
    }

    fn groups(&self) -> impl Iterator<Item = &[u64]> {
        let width = STAGES + WORDS_PER_STAGE * self.names.len();
        self.sums.chunks_exact(width)
    }

    pub(super) fn all(&self) -> Option<Breakdown> {
        let mut sums = vec![0_u64; STAGES + WORDS_PER_STAGE * self.names.len()];
        for group in self.groups() {
            for (sum, word) in sums.iter_mut().zip(group) {
                *sum = sum.saturating_add(*word);
            }
        }
        self.breakdown(&sums)
    }

    /// Returns the group in which this quantile is.
    pub(super) fn around(&self, quantile: f64) -> Option<Breakdown> {
        let count: u64 = self.groups().map(|group| group[COUNT]).sum();
        let rank = (quantile.clamp(0.0, 1.0) * count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.groups().find(|group| {
            below += group[COUNT];
            below >= rank
        });
        self.breakdown(found?)
    }

    fn breakdown(&self, sums: &[u64]) -> Option<Breakdown> {
        let events = sums[COUNT];
        let mean = |sum: u64| {
            // A scaled unit keeps three digits below the nanosecond.
            let mean = u128::from(sum) * 1_000 / u128::from(events.max(1));
            self.clock.ns(u64::try_from(mean).unwrap_or(u64::MAX)) as f64 / 1_000.0
        };
        let stages = self.names.iter().zip(sums[STAGES..].chunks_exact(2));
        let parts: Vec<_> = stages
            .map(|(name, spent)| PartStats {
                stage: name.to_string(),
                queueing_ns: mean(spent[0]),
                service_ns: mean(spent[1]),
            })
            .collect();
        let unsent_ns = mean(sums[UNSENT]);
        let stages: f64 = parts.iter().map(|p| p.queueing_ns + p.service_ns).sum();
        (events > 0).then_some(Breakdown {
            events,
            end_to_end_ns: unsent_ns + stages,
            unsent_ns,
            parts,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn groups_are_half_octaves() {
        let groups = [0, 2, 3, 4, 5, 6, 7, 8, u64::MAX].map(group);
        assert_eq!(groups, [2, 2, 3, 4, 4, 5, 5, 6, 127]);
    }

    #[test]
    fn a_percentile_has_the_parts_of_its_own_events() {
        let profile = Profile::new(2);
        for _ in 0..980 {
            profile.note(100, 0, &[Some((10, 40)), Some((0, 50))], 1);
        }
        // One in fifty was late; it took as long in the stages as the others.
        for _ in 0..20 {
            profile.note(10_100, 10_000, &[Some((10, 40)), Some((0, 50))], 1);
        }
        let snapshot = Snapshot {
            sums: profile
                .words
                .iter()
                .map(|w| w.load(Ordering::Relaxed))
                .collect(),
            names: vec!["a".into(), "b".into()],
            clock: Clock::with_os(),
        };
        let typical = snapshot.around(0.5).expect("there are events");
        assert_eq!((typical.events, typical.end_to_end_ns), (980, 100.0));
        assert_eq!(typical.parts[0].queueing_ns, 10.0);
        let tail = snapshot.around(0.99).expect("there are events");
        assert_eq!((tail.events, tail.unsent_ns), (20, 10_000.0));
        assert_eq!(tail.end_to_end_ns, 10_100.0);
        let all = snapshot.all().expect("there are events");
        assert_eq!(
            (all.events, all.unsent_ns, all.end_to_end_ns),
            (1_000, 200.0, 300.0)
        );
    }

    #[test]
    fn without_events_there_is_nothing_to_report() {
        let none = Snapshot {
            sums: vec![0; GROUPS * 2],
            names: Vec::new(),
            clock: Clock::with_os(),
        };
        assert_eq!((none.around(0.99), none.all()), (None, None));
    }
}
