//! What a stage writes down about its own work, and who reads it.

use std::sync::{Arc, Mutex};

use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Reader, Writer, recorder};

use super::graph::Graph;
use super::slowest::{Slow, Slowest};
use super::timeline::{Samples, Timeline};
use crate::ring::broadcast::Progress;
use crate::ring::sync::{AtomicU64, Ordering};

/// Counters that a stage writes and [`Pipeline::stats`](super::Pipeline::stats) reads.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Time at work in ticks, estimated from the sampled chunks: see [`Meter::count`].
    pub(super) busy: AtomicU64,
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
    pub(super) queueing: Reader,
    pub(super) service: Reader,
    pub(super) batch: Reader,
    pub(super) end_to_end: Option<Reader>,
    pub(super) slowest: Option<Arc<Mutex<Vec<Slow>>>>,
}

/// Where the end of the pipeline is noted.
#[derive(Debug)]
struct End {
    end_to_end: Writer,
    slowest: Slowest,
    shared: Arc<Mutex<Vec<Slow>>>,
}

/// Measured, not yet in the histograms. Noting is cheap and happens between two stages, where it
/// would count as waiting; the histograms are written when the round is over.
#[derive(Debug, Clone, Copy)]
struct Note {
    wait: u64,
    service: u64,
    events: u64,
}

/// The writing side, owned by the stage.
#[derive(Debug)]
pub(super) struct Meter {
    timeline: Arc<Timeline>,
    clock: Clock,
    /// This stage's place in a row, and those of the stages before it.
    stage: usize,
    after: Box<[usize]>,
    counters: Arc<Counters>,
    queueing: Writer,
    service: Writer,
    batch: Writer,
    end: Option<End>,
    notes: Vec<Note>,
    batches: Vec<u64>,
    closed: Vec<u64>,
    samples: Samples,
}

/// A chunk that contains a sampled event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    begin: u64,
}

/// What the stages of a thread hand on to each other within a round.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// The last time that the thread read the clock, if nothing but measured work happened since:
    /// the end of one stage is the begin of the next, for one read instead of two.
    pub(super) ticks: Option<u64>,
    /// A stage has noted something, so that there is something to flush.
    pub(super) noted: bool,
}

impl Mark {
    pub(super) fn at(ticks: Option<u64>) -> Self {
        Self {
            ticks,
            ..Self::default()
        }
    }
}

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
        let (queueing, queueing_reader) = recorder();
        let (service, service_reader) = recorder();
        let (batch, batch_reader) = recorder();
        let counters = Arc::new(Counters::default());
        let mut gauge = Gauge {
            name,
            progress,
            counters: Arc::clone(&counters),
            queueing: queueing_reader,
            service: service_reader,
            batch: batch_reader,
            end_to_end: None,
            slowest: None,
        };
        let end = graph.last.contains(&stage).then(|| {
            let (end_to_end, reader) = recorder();
            let slowest = Slowest::new(Arc::clone(graph));
            let shared = Arc::new(Mutex::new(slowest.shown()));
            gauge.end_to_end = Some(reader);
            gauge.slowest = Some(Arc::clone(&shared));
            End {
                end_to_end,
                slowest,
                shared,
            }
        });
        let samples = Samples::new(Arc::clone(&timeline));
        let meter = Self {
            timeline,
            clock: Clock::global(),
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
        };
        (meter, gauge)
    }

    /// Whether nobody comes after this stage.
    pub(super) fn is_last(&self) -> bool {
        self.end.is_some()
    }

    #[inline]
    fn blocks(&self, first: u64, count: usize) -> std::ops::RangeInclusive<u64> {
        let last = first + count as u64 - 1;
        self.timeline.block_of(first)..=self.timeline.block_of(last)
    }

    /// Whether one of `count` events from `first` may be sampled.
    #[inline(always)]
    pub(super) fn is_sampled(&self, first: u64, count: usize) -> bool {
        self.samples.may_be(first, count)
    }

    /// Before work on `count` (at least 1) events from `first`: reads the clock if one of them is
    /// sampled.
    #[inline(always)]
    pub(super) fn before(&mut self, first: u64, count: usize, mark: &mut Mark) -> Option<Begun> {
        if self.samples.next(first, count).is_none() {
            mark.ticks = None;
            return None;
        }
        Some(self.begin(mark))
    }

    /// Before work on a sampled event.
    #[inline]
    pub(super) fn begin(&self, mark: &mut Mark) -> Begun {
        let begin = mark.ticks.take().unwrap_or_else(|| self.clock.ticks());
        Begun { begin }
    }

    /// After work on one sampled event of `batch` that the stage found waiting, before its release.
    #[inline]
    pub(super) fn one(&mut self, begun: Begun, sequence: u64, batch: usize, mark: &mut Mark) {
        let end = self.clock.ticks();
        self.sampled(begun, end, sequence, true);
        self.count(begun, end, 1, 1, batch, mark);
    }

    /// After the work, before the release, if the chunk was sampled. `owns` says whether a sampled
    /// event was this shard's; `batch` is the number of events that the stage found waiting.
    #[inline(never)]
    pub(super) fn after(
        &mut self,
        begun: Begun,
        first: u64,
        count: usize,
        batch: usize,
        owns: impl Fn(u64) -> bool,
        mark: &mut Mark,
    ) {
        let end = self.clock.ticks();
        let mut samples = 0;
        for block in self.blocks(first, count) {
            let sampled = self.timeline.row(block).sequence();
            if let Some(sampled) = sampled.filter(|s| s.wrapping_sub(first) < count as u64) {
                samples += 1;
                self.sampled(begun, end, sampled, owns(sampled));
            }
        }
        self.count(begun, end, count, samples, batch, mark);
    }

    /// After one event of a sampled chunk, before its release; gives how many samples it is.
    #[inline]
    pub(super) fn event(&mut self, begun: Begun, sequence: u64, owns: impl Fn(u64) -> bool) -> u64 {
        let block = self.timeline.block_of(sequence);
        if self.timeline.row(block).sequence() != Some(sequence) {
            return 0;
        }
        let end = self.clock.ticks();
        self.sampled(begun, end, sequence, owns(sequence));
        1
    }

    /// After a sampled chunk of which each event was told by [`event`](Self::event).
    pub(super) fn over(
        &mut self,
        begun: Begun,
        count: usize,
        samples: u64,
        batch: usize,
        mark: &mut Mark,
    ) {
        let end = self.clock.ticks();
        self.count(begun, end, count, samples, batch, mark);
    }

    /// A sampled event is done.
    fn sampled(&mut self, begun: Begun, end: u64, sequence: u64, owned: bool) {
        let block = self.timeline.block_of(sequence);
        let row = self.timeline.row(block);
        // The begin may be older than the moment when the event became ready: the mark of a stage
        // that ran before, or the counter of another core that runs ahead. The wait is 0 then, and
        // the parts still add up.
        let ready = row.ready(&self.after);
        let begin = begun.begin.max(ready);
        let end = end.max(begin);
        row.worked(self.stage, owned.then_some(begin), end);
        if self.end.is_some() && row.close() {
            self.closed.push(block);
        }
        if owned {
            self.note(begin - ready, end - begin);
        }
    }

    /// Time at work is estimated without bias from sampled chunks: a chunk of `count` events has
    /// `count/every` samples on average, so each sample stands for `every/count` of the chunk's
    /// time.
    fn count(
        &mut self,
        begun: Begun,
        end: u64,
        count: usize,
        samples: u64,
        batch: usize,
        mark: &mut Mark,
    ) {
        mark.ticks = Some(end);
        mark.noted = true;
        let service = end.saturating_sub(begun.begin);
        let stands_for = samples * self.timeline.every() * service / count as u64;
        add(&self.counters.busy, stands_for);
        self.batches.push(batch as u64);
    }

    #[inline]
    fn note(&mut self, wait: u64, service: u64) {
        match self.notes.last_mut() {
            Some(note) if note.wait == wait && note.service == service => note.events += 1,
            _ => self.notes.push(Note {
                wait,
                service,
                events: 1,
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
            self.queueing.record_n(note.wait, note.events);
            self.service.record_n(note.service, note.events);
        }
        for batch in self.batches.drain(..) {
            self.batch.record(batch);
        }
        let Some(end) = &mut self.end else { return };
        for block in self.closed.drain(..) {
            let row = self.timeline.row(block);
            let Some(sequence) = row.sequence() else {
                continue;
            };
            let total = end.slowest.note(sequence, row);
            end.end_to_end.record(total);
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
