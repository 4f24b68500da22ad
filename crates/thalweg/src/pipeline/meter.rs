//! The meter of a stage, which records its work, and the reader of these records: statistics of the
//! stage, a breakdown of the events around a percentile, and the slowest events.
//!
//! Sampled events are grouped by their end-to-end time, two groups an octave, and each group has
//! the sums of its events' times. So any percentile has a breakdown, not only the ten slowest
//! events, and memory does not grow with the time for which a pipeline runs.

mod slowest;

use std::sync::atomic;
use std::sync::{Arc, Mutex};

use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Recorder, group_of};

use super::graph::Graph;
use super::timeline::{Samples, Timeline};
use crate::ring::broadcast::Progress;
use crate::ring::sync::{AtomicU64, Ordering};
use slowest::Slowest;
pub(super) use slowest::{SLOWEST, Slow};

/// Counters that a stage writes and [`Pipeline::stats`](super::Pipeline::stats) reads.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Time at work in ticks, estimated from the sampled chunks: see [`Meter::owe`].
    pub(super) busy: AtomicU64,
    /// The sums of the squared weights of the stage's samples, and of those that it saw the end of.
    pub(super) squares: AtomicU64,
    pub(super) end_squares: AtomicU64,
}

/// Adds to a counter that only this thread writes.
#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    // ORDERING: Relaxed twice; a single writer, and the readers want a figure, not an order.
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

/// The reading side of a meter.
#[derive(Debug, Clone)]
pub(super) struct Gauge {
    pub(super) name: Arc<str>,
    pub(super) progress: Progress,
    pub(super) counters: Arc<Counters>,
    pub(super) queueing: Arc<Recorder>,
    pub(super) service: Arc<Recorder>,
    pub(super) batch: Arc<Recorder>,
    pub(super) end_to_end: Option<Arc<Recorder>>,
    pub(super) slowest: Option<Arc<Mutex<Vec<Slow>>>>,
    pub(super) profile: Option<Arc<Profile>>,
}

/// Where the end of the pipeline is noted.
#[derive(Debug)]
struct End {
    end_to_end: Arc<Recorder>,
    slowest: Slowest,
    shared: Arc<Mutex<Vec<Slow>>>,
}

/// Measured, not yet in the histograms. Noting is cheap and happens between two stages, where it
/// would count as waiting; the histograms are written when the round is over.
#[derive(Debug, Clone, Copy)]
struct Note {
    wait: u64,
    service: u64,
    /// How often the sample counts.
    weight: u64,
}

/// The writing side, owned by the stage.
#[derive(Debug)]
pub(super) struct Meter {
    timeline: Arc<Timeline>,
    /// This stage's place in a row, and those of the stages before it.
    stage: usize,
    after: Box<[usize]>,
    counters: Arc<Counters>,
    queueing: Arc<Recorder>,
    service: Arc<Recorder>,
    batch: Arc<Recorder>,
    end: Option<End>,
    notes: Vec<Note>,
    /// The batches of samples, and how often each counts.
    batches: Vec<(u64, u64)>,
    closed: Vec<u64>,
    samples: Samples,
    /// Ticks at work by the samples that are not in `counters` yet.
    owed: u64,
}

/// Events that a stage worked on between two looks at the clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunked {
    pub(super) first: u64,
    pub(super) count: usize,
    /// How many of them were the stage's own: those of its shard.
    pub(super) own: usize,
}

impl Chunked {
    pub(super) fn one(sequence: u64) -> Self {
        Self {
            first: sequence,
            count: 1,
            own: 1,
        }
    }
}

/// The mark that the stages of a thread hand on to each other within a round.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// The last time that the thread read the clock, if nothing but measured work happened since:
    /// the end of one stage is the begin of the next, for one read instead of two.
    pub(super) ticks: Option<u64>,
    /// When a stage noted something for the last time, so that there is something to flush.
    pub(super) noted: Option<u64>,
}

impl Mark {
    /// Returns when the next segment begins.
    #[inline]
    pub(super) fn begin(&mut self, timeline: &Timeline) -> u64 {
        self.ticks.take().unwrap_or_else(|| timeline.watch.now())
    }
}

/// The time of a thread in which the samples of its stages must have their place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Ticks since the last one.
    pub(super) ticks: u64,
    /// Ticks that the samples of all stages stand for.
    pub(super) owed: u64,
}

impl Span {
    /// Returns the part of it that a stage gets which is owed `owed`.
    fn part(self, owed: u64) -> u64 {
        if self.owed <= self.ticks {
            return owed;
        }
        let part = u128::from(owed) * u128::from(self.ticks) / u128::from(self.owed);
        part as u64
    }
}

/// The longest time that a sample stands for, as a multiple of the time since the last one. One
/// that stands for more was interrupted: the rest is not carried on.
const SPANS_OWED_MAX: u64 = 16;

/// Notes kept before they are written out; more come only if a round has more samples.
const NOTES: usize = 64;

impl Meter {
    pub(super) fn new(
        name: Arc<str>,
        progress: Progress,
        timeline: Arc<Timeline>,
        stage: usize,
        graph: &Arc<Graph>,
    ) -> (Self, Gauge) {
        let [queueing, service, batch] = std::array::from_fn(|_| Arc::new(Recorder::new()));
        let counters = Arc::new(Counters::default());
        let mut gauge = Gauge {
            name,
            progress,
            counters: Arc::clone(&counters),
            queueing: Arc::clone(&queueing),
            service: Arc::clone(&service),
            batch: Arc::clone(&batch),
            end_to_end: None,
            slowest: None,
            profile: None,
        };
        let end = graph.last.contains(&stage).then(|| {
            let end_to_end = Arc::new(Recorder::new());
            let profile = Arc::new(Profile::new(graph.after.len()));
            let slowest = Slowest::new(Arc::clone(graph), Arc::clone(&profile));
            let shared = Arc::new(Mutex::new(slowest.shown()));
            gauge.end_to_end = Some(Arc::clone(&end_to_end));
            gauge.slowest = Some(Arc::clone(&shared));
            gauge.profile = Some(profile);
            End {
                end_to_end,
                slowest,
                shared,
            }
        });
        let samples = Samples::new(Arc::clone(&timeline));
        let meter = Self {
            timeline,
            stage,
            after: graph.after[stage].clone(),
            counters,
            queueing,
            service,
            batch,
            end,
            notes: Vec::with_capacity(NOTES),
            batches: Vec::with_capacity(NOTES),
            closed: Vec::with_capacity(NOTES),
            samples,
            owed: 0,
        };
        (meter, gauge)
    }

    /// Takes the names of all stages, for log events.
    #[cfg(feature = "tracing")]
    pub(super) fn name_stages(&mut self, names: &[String]) {
        if let Some(end) = &mut self.end {
            end.slowest.names = names.to_vec();
        }
    }

    /// Returns whether no stage comes after this one.
    pub(super) fn is_last(&self) -> bool {
        self.end.is_some()
    }

    #[inline]
    fn blocks(&self, first: u64, count: usize) -> std::ops::RangeInclusive<u64> {
        let last = first + count as u64 - 1;
        self.timeline.block_of(first)..=self.timeline.block_of(last)
    }

    /// Returns whether one of `count` events from `first` may be sampled.
    #[inline(always)]
    pub(super) fn is_sampled(&self, first: u64, count: usize) -> bool {
        self.samples.may_be(first, count)
    }

    /// Before work on `count` (at least 1) events from `first`: when it begins, if one of them is
    /// sampled.
    #[inline(always)]
    pub(super) fn before(&mut self, first: u64, count: usize, mark: &mut Mark) -> Option<u64> {
        if self.samples.next(first, count).is_none() {
            mark.ticks = None;
            return None;
        }
        Some(mark.begin(&self.timeline))
    }

    /// After the work on a chunk that may have a sampled event, before its release. `owns` says
    /// whether an event was this shard's; `batch` is the number of events that the stage found
    /// waiting, and counts once for each sample, as the times do.
    ///
    /// Each of its events was served for its share of the chunk's time, and waited for the rest.
    /// The time that this takes belongs to no event and no stage: the next segment begins when it
    /// is over.
    #[inline(never)]
    pub(super) fn after(
        &mut self,
        begin: u64,
        chunk: Chunked,
        batch: usize,
        owns: impl Fn(u64) -> bool,
        mark: &mut Mark,
    ) {
        let end = self.timeline.watch.now();
        let Chunked { first, count, own } = chunk;
        let (mut stood_for, mut weight) = (0, 0);
        for block in self.blocks(first, count) {
            let sampled = self.timeline.row(block).sequence();
            if let Some(sampled) = sampled.filter(|s| s.wrapping_sub(first) < count as u64) {
                stood_for += self.timeline.length_of(block);
                weight += self.timeline.weight_of(block);
                let own = owns(sampled).then_some(own);
                self.sampled(block, (begin, end), own);
            }
        }
        if stood_for == 0 {
            mark.ticks = Some(self.timeline.watch.now());
            return;
        }
        self.owe(self.timeline.watch.between(begin, end), count, stood_for);
        self.batches.push((batch as u64, weight));
        let now = self.timeline.watch.now();
        for block in self.blocks(first, count) {
            let row = self.timeline.row(block);
            let sampled = row.sequence();
            if sampled.is_some_and(|s| s.wrapping_sub(first) < count as u64) {
                row.go_on(self.stage, now);
                if self.end.is_some() && row.close() {
                    self.closed.push(block);
                }
            }
        }
        mark.ticks = Some(now);
        mark.noted = Some(now);
    }

    /// A sampled event is done, one of `own` that share the chunk's time if it is this stage's.
    fn sampled(&mut self, block: u64, (begin, end): (u64, u64), own: Option<usize>) {
        let row = self.timeline.row(block);
        // The begin may be older than the moment when the event became ready: the mark of a stage
        // that ran before, or the counter of another core that runs ahead. The wait is 0 then, and
        // the parts still add up.
        let ready = row.ready(&self.after);
        let begin = begin.max(ready);
        let watch = &self.timeline.watch;
        let (wait, work) = (watch.between(ready, begin), watch.between(begin, end));
        let served = own.map(|own| work / own as u64);
        let waited = wait + work - served.unwrap_or(0);
        row.spend(self.stage, waited, served);
        if let Some(served) = served {
            self.note(waited, served, self.timeline.weight_of(block));
        }
    }

    /// Time at work is estimated without bias from sampled chunks: each event of a block is as
    /// likely to be its sample, so a chunk's samples stand for its `count` events on average, and
    /// for `stood_for/count` of the chunk's time.
    fn owe(&mut self, work: u64, count: usize, stood_for: u64) {
        let owed = stood_for * work / count as u64;
        self.owed = self.owed.saturating_add(owed);
    }

    /// Ticks at work by the samples that are not counted yet.
    pub(super) fn owed(&self) -> u64 {
        self.owed
    }

    /// Counts the time at work that there is room for in the time that went by. So a thread's
    /// stages were never at work for longer than it ran; what a sample has too much is left for
    /// later spans, whose samples have too little.
    pub(super) fn count(&mut self, span: Span) {
        let part = span.part(self.owed);
        add(&self.counters.busy, part);
        let left = self.owed - part;
        self.owed = left.min(SPANS_OWED_MAX.saturating_mul(span.ticks));
    }

    #[inline]
    fn note(&mut self, wait: u64, service: u64, weight: u64) {
        add(&self.counters.squares, weight * weight);
        match self.notes.last_mut() {
            Some(note) if note.wait == wait && note.service == service => note.weight += weight,
            _ => self.notes.push(Note {
                wait,
                service,
                weight,
            }),
        }
    }

    /// Writes the notes into the histograms. At the end of the round or chunk that made them: the
    /// rows of closed events are read here, and [`timeline`](super::timeline) says how long they
    /// last.
    #[inline]
    pub(super) fn flush(&mut self) {
        if !self.batches.is_empty() {
            self.flush_notes();
        }
    }

    fn flush_notes(&mut self) {
        for note in self.notes.drain(..) {
            self.queueing.record_n(note.wait, note.weight);
            self.service.record_n(note.service, note.weight);
        }
        for (batch, weight) in self.batches.drain(..) {
            self.batch.record_n(batch, weight);
        }
        let Some(end) = &mut self.end else { return };
        for block in self.closed.drain(..) {
            let row = self.timeline.row(block);
            let Some(sequence) = row.sequence() else {
                continue;
            };
            let weight = self.timeline.weight_of(block);
            let total = end.slowest.note(sequence, row, weight);
            #[cfg(feature = "tracing")]
            end.slowest
                .log(sequence, total, self.timeline.watch.clock());
            end.end_to_end.record_n(total, weight);
            add(&self.counters.end_squares, weight * weight);
        }
        if end.slowest.is_changed() {
            // A reader of the statistics may hold the lock; the list is shown after a later round
            // then.
            match end.shared.try_lock() {
                Ok(mut shared) => end.slowest.show(&mut shared),
                Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                    end.slowest.show(&mut poisoned.into_inner());
                }
                Err(std::sync::TryLockError::WouldBlock) => {}
            }
        }
    }
}

/// Two an octave.
const GROUPS: usize = 128;
const COUNT: usize = 0;
const PUBLISH_DELAY: usize = 1;
const STAGES: usize = 2;
const WORDS_PER_STAGE: usize = 2;

/// The sums of all groups, in ticks. One last stage writes, any thread reads.
#[derive(Debug)]
pub(super) struct Profile {
    words: Box<[atomic::AtomicU64]>,
    width: usize,
}

impl Profile {
    fn new(stages: usize) -> Self {
        let width = STAGES + WORDS_PER_STAGE * stages;
        let words = (0..GROUPS * width)
            .map(|_| atomic::AtomicU64::new(0))
            .collect();
        Self { words, width }
    }

    /// An event took `total`, of that `publish_delay` before it had a slot; `parts` are what it
    /// waited for each stage and was served. It counts `weight` times.
    fn note(&self, total: u64, publish_delay: u64, parts: &[Option<(u64, u64)>], weight: u64) {
        let first = group_of::<1>(total) * self.width;
        let add = |word: usize, amount: u64| {
            let word = &self.words[first + word];
            // ORDERING: Relaxed twice; a single writer, and readers want figures, not an order.
            let sum = word.load(Ordering::Relaxed).saturating_add(amount * weight);
            word.store(sum, Ordering::Relaxed);
        };
        add(COUNT, 1);
        add(PUBLISH_DELAY, publish_delay);
        for (stage, part) in parts.iter().enumerate() {
            if let Some((waited, served)) = *part {
                add(STAGES + WORDS_PER_STAGE * stage, waited);
                add(STAGES + WORDS_PER_STAGE * stage + 1, served);
            }
        }
    }
}

/// The mean end-to-end time of some events, broken down by stage. The parts add up to the total.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Breakdown {
    /// The number of sampled events of which this is the mean, counted as in
    /// [`Stats::end_to_end_ns`](super::Stats::end_to_end_ns).
    pub events: u64,
    /// The time from when they were due, or from the call that published them, to the end of the
    /// last stage, ns.
    pub end_to_end_ns: f64,
    /// The publish delay: the time until they had a slot, ns.
    pub publish_delay_ns: f64,
    /// The stages, shards one by one. Where stages ran side by side, each event's time counts for
    /// the one that it left last.
    pub parts: Vec<PartStats>,
}

/// One stage's part in a [`Breakdown`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
        let publish_delay_ns = mean(sums[PUBLISH_DELAY]);
        let stages: f64 = parts.iter().map(|p| p.queueing_ns + p.service_ns).sum();
        (events > 0).then_some(Breakdown {
            events,
            end_to_end_ns: publish_delay_ns + stages,
            publish_delay_ns,
            parts,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tail_tests {
    use super::*;

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
        assert_eq!((tail.events, tail.publish_delay_ns), (20, 10_000.0));
        assert_eq!(tail.end_to_end_ns, 10_100.0);
        let all = snapshot.all().expect("there are events");
        assert_eq!(
            (all.events, all.publish_delay_ns, all.end_to_end_ns),
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
