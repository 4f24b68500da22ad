//! When sampled events were published, and when each stage began and ended them.
//!
//! # State
//! Events are counted in blocks of a power of two; at most one event of a block is sampled. All
//! blocks have the same length, or they begin with one event and double it after every
//! [`BLOCKS_PER_PHASE`] blocks, until they have their final length: so a short run has samples,
//! too. A sample stands for the events of its block.
//!
//! A block has a row of words: the sampled sequence plus one (0 for none), when it was due and when
//! it was published, the number of last stages still to come, and per stage how long the event
//! waited for it and was served, and when it went on. There are rows for the blocks in four times
//! the events that the ring holds, and at least four: some for blocks of the final length, and
//! others for the shorter ones before.
//!
//! # Why it works
//! The words are plain relaxed atomics. The publisher writes a row before it publishes the sampled
//! event, and a stage writes its three words before it releases the event, so the ring's sequences
//! order each write before the reads further down. (A last stage may have given the slot back
//! before: only the publisher comes after it, which the number of rows keeps off.) A stage that
//! meets an old row sees a sequence outside its chunk.
//!
//! The last stage reads a row once more, after it has released the event: at the end of its chunk
//! or round, when it has released at most a ring's length of events from that one on. The publisher
//! is at most another ring's length ahead of that. A row is written again for a block four rings'
//! lengths (or four blocks, if that is more) later, of which at most one block is lost because the
//! two samples are at different places in theirs; three is more than two. Rows for two rings'
//! lengths would not do: with a ring of one block, two samples of one row may be only a block and
//! one event apart. Blocks never get shorter, so where the rows suffice for the first ones, they
//! suffice for all.
//!
//! # The clock
//! The meters of a pipeline read one that knows what a read of it costs.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use thalweg_measure::clock::Clock;

use crate::ring::broadcast::Progress;
use crate::ring::sync::{AtomicU64, IS_MODEL, Ordering, order};

const SEQUENCE: usize = 0;
const PUBLISHED: usize = 1;
const OPEN: usize = 2;
const DUE: usize = 3;
const STAGES: usize = 4;
const WAITED: usize = 0;
const SERVED: usize = 1;
const ENDED: usize = 2;
const WORDS_PER_STAGE: usize = 3;
/// In place of the service, for a shard that has another shard's event.
const PASSED_BY: u64 = u64::MAX;
const WORDS_PER_LINE: usize = 8;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; WORDS_PER_LINE]);

/// The number of rows that are read at a time; of more rows, this number evenly, and the last one
/// among them.
const ROWS_READ_MAX: u64 = 1_024;

/// Blocks of one length before longer ones. A percentile wants ten samples beyond it, and the
/// samples of these phases say as much as 1,365 of equal weight at least, once 4,096 events went
/// by: see `Stats::effective_samples`.
const BLOCKS_PER_PHASE: u64 = 512;

/// Blocks of one length.
#[derive(Debug, Clone, Copy)]
struct Phase {
    first_block: u64,
    first_event: u64,
    shift: u32,
}

impl Phase {
    fn block_of(&self, sequence: u64) -> u64 {
        self.first_block + ((sequence - self.first_event) >> self.shift)
    }

    fn start_of(&self, block: u64) -> u64 {
        self.first_event + ((block - self.first_block) << self.shift)
    }
}

/// The rows of all blocks.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) watch: Watch,
    pub(super) slots: usize,
    /// By length. The last one has no end.
    phases: Box<[Phase]>,
    /// How many rows the blocks of the last phase have, and those before.
    rows: usize,
    rows_before: usize,
    lines_per_row: usize,
    lines: Box<[Line]>,
    last_stages: u64,
    /// Whether the sampled events are where the rows say, not where `sampled_in` does: with several
    /// producers, which choose before they know an event's place.
    by_rows: bool,
}

/// The row of one block.
#[derive(Clone, Copy)]
pub(super) struct Row<'t>(&'t [Line]);

/// Spreads block numbers, so that the sampled place in a block has no period (SplitMix64's
/// finaliser).
#[inline]
fn scatter(block: u64) -> u64 {
    let mixed = (block ^ (block >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

impl Timeline {
    /// Rows for a ring of `slots` (a power of two), one sample in `2^shift` events, `stages` stages
    /// of which `last_stages` have no stage behind them.
    #[cfg(test)]
    pub(super) fn new(
        slots: usize,
        shift: u32,
        stages: usize,
        last_stages: usize,
        by_rows: bool,
    ) -> Self {
        Self::thinning(slots, shift..=shift, stages, last_stages, by_rows)
    }

    /// Works as `new`, which the tests call, with one sample in `2^shift` events for the first of
    /// these shifts at the beginning, and for the last one in the long run.
    pub(super) fn thinning(
        slots: usize,
        shifts: RangeInclusive<u32>,
        stages: usize,
        last_stages: usize,
        by_rows: bool,
    ) -> Self {
        let (first_shift, shift) = shifts.into_inner();
        let phase = |longer: u32| Phase {
            first_block: u64::from(longer) * BLOCKS_PER_PHASE,
            first_event: ((1 << longer) - 1) * BLOCKS_PER_PHASE,
            shift: first_shift + longer,
        };
        let phases: Box<[Phase]> = (0..=shift - first_shift).map(phase).collect();
        let lines_per_row = (STAGES + WORDS_PER_STAGE * stages).div_ceil(WORDS_PER_LINE);
        let mut timeline = Self {
            watch: Watch::new(),
            slots,
            phases,
            rows: 4 * (slots >> shift).max(1),
            rows_before: 0,
            lines_per_row,
            lines: Box::default(),
            last_stages: last_stages as u64,
            by_rows,
        };
        let blocks_before = timeline.last_phase().first_block;
        let needed = timeline.block_of(4 * slots as u64) + 1;
        timeline.rows_before = blocks_before.min(needed.max(4)) as usize;
        let lines = (timeline.rows + timeline.rows_before) * lines_per_row;
        timeline.lines = (0..lines).map(|_| Line::default()).collect();
        timeline
    }

    fn last_phase(&self) -> &Phase {
        &self.phases[self.phases.len() - 1]
    }

    /// Returns the number of events of which one is sampled in the long run.
    pub(super) fn every(&self) -> u64 {
        1 << self.last_phase().shift
    }

    /// Returns how many events end before the long run begins.
    pub(super) fn denser_until(&self) -> u64 {
        self.last_phase().first_event
    }

    /// Returns the phase after `others` others, or the last one.
    #[inline]
    fn phase(&self, others: u64) -> &Phase {
        let last = self.phases.len() - 1;
        &self.phases[(others as usize).min(last)]
    }

    #[inline]
    fn phase_of(&self, block: u64) -> &Phase {
        self.phase(block / BLOCKS_PER_PHASE)
    }

    #[inline]
    pub(super) fn block_of(&self, sequence: u64) -> u64 {
        // Each phase has twice the events of the one before.
        let others = (sequence / BLOCKS_PER_PHASE + 1).ilog2();
        self.phase(others.into()).block_of(sequence)
    }

    /// Returns the first event of a block.
    fn start_of(&self, block: u64) -> u64 {
        self.phase_of(block).start_of(block)
    }

    /// Returns the events of a block, all of which its sample stands for.
    pub(super) fn length_of(&self, block: u64) -> u64 {
        1 << self.phase_of(block).shift
    }

    /// Returns how often the sample of a block counts: once where blocks are shortest.
    pub(super) fn weight_of(&self, block: u64) -> u64 {
        self.length_of(block) >> self.phases[0].shift
    }

    #[inline]
    pub(super) fn row(&self, block: u64) -> Row<'_> {
        let row = match block.checked_sub(self.last_phase().first_block) {
            Some(block) => block as usize & (self.rows - 1),
            None => self.rows + block as usize % self.rows_before,
        };
        let first = row * self.lines_per_row;
        Row(&self.lines[first..first + self.lines_per_row])
    }

    /// Returns the event of `block` to sample.
    #[inline]
    pub(super) fn sampled_in(&self, block: u64) -> u64 {
        let phase = self.phase_of(block);
        phase.start_of(block) + (scatter(block) & ((1 << phase.shift) - 1))
    }

    /// Returns whether this event is the one of its block to sample.
    #[inline]
    pub(super) fn is_sampled(&self, sequence: u64) -> bool {
        self.sampled_in(self.block_of(sequence)) == sequence
    }

    /// Returns the first place at or after `first` where a sampled event may be: every event from
    /// `first` up to there is certainly not sampled.
    fn unsampled_until(&self, first: u64) -> u64 {
        let block = self.block_of(first);
        let sampled = if self.by_rows {
            let taken = self.row(block).sequence();
            match taken.filter(|&taken| self.block_of(taken) == block) {
                Some(sampled) => sampled,
                None => return first,
            }
        } else {
            self.sampled_in(block)
        };
        if sampled >= first {
            sampled
        } else if self.by_rows {
            self.start_of(block + 1)
        } else {
            self.sampled_in(block + 1)
        }
    }

    /// Opens the row of a sampled event that was due when it is published. Only the publisher calls
    /// this, before it publishes.
    #[inline]
    pub(super) fn open(&self, sequence: u64, published: u64) {
        self.open_due(sequence, published, published);
    }

    /// Works as [`open`](Self::open), of an event that was due before, or had to wait for room.
    #[inline]
    pub(super) fn open_due(&self, sequence: u64, due: u64, published: u64) {
        let row = self.row(self.block_of(sequence));
        row.set(DUE, due.min(published));
        row.set(PUBLISHED, published);
        row.set(OPEN, self.last_stages);
        row.set(SEQUENCE, sequence + 1);
    }

    /// Calls `visit(event, due)` for the sampled events from `first` on whose rows are there still.
    /// Any thread may call it while the rows are written: one that may be written again meanwhile
    /// is left out, and so is one that was never opened.
    pub(super) fn samples_since(
        &self,
        first: u64,
        published: &Progress,
        mut visit: impl FnMut(u64, u64),
    ) {
        let Some(last) = published.released().checked_sub(1) else {
            return;
        };
        // A row is opened for the events of a claim before they are published.
        let ahead = |published: u64| self.block_of(published + self.slots as u64);
        let blocks = self.block_of(first).max(self.oldest(ahead(last + 1)));
        let behind = self.block_of(last).saturating_sub(blocks);
        let step = 1 + behind / ROWS_READ_MAX;
        let begin = blocks + behind % step;
        for block in (begin..=self.block_of(last)).step_by(step as usize) {
            let row = self.row(block);
            let (sequence, due) = (row.sequence(), row.get(DUE));
            if block < self.oldest(ahead(published.released())) {
                continue;
            }
            if let Some(sequence) = sequence
                && self.block_of(sequence) == block
                && (first..=last).contains(&sequence)
            {
                visit(sequence, due);
            }
        }
    }

    /// Returns the oldest block with a row of its own still when that of `newest` is opened.
    fn oldest(&self, newest: u64) -> u64 {
        let last_phase = self.last_phase().first_block;
        let in_last_phase = (newest + 1).saturating_sub(self.rows as u64);
        if newest >= last_phase && in_last_phase >= last_phase {
            return in_last_phase;
        }
        (newest + 1)
            .min(last_phase)
            .saturating_sub(self.rows_before as u64)
    }

    /// Returns whether the row of this event's block is already taken by an event of the same
    /// block.
    pub(super) fn is_open(&self, sequence: u64) -> bool {
        let block = self.block_of(sequence);
        self.row(block)
            .sequence()
            .is_some_and(|taken| self.block_of(taken) == block)
    }
}

/// Where the next sampled event is, for a group that works on published events in their order.
#[derive(Debug)]
pub(super) struct Samples {
    timeline: Arc<Timeline>,
    /// No event before this one is sampled.
    unsampled_until: u64,
}

impl Samples {
    pub(super) fn new(timeline: Arc<Timeline>) -> Self {
        Self {
            timeline,
            unsampled_until: 0,
        }
    }

    /// Returns whether one of `count` events from `first` may be sampled.
    #[inline(always)]
    pub(super) fn may_be(&self, first: u64, count: usize) -> bool {
        first + count as u64 > self.unsampled_until
    }

    /// Returns the first sampled one of `count` published events from `first`.
    #[inline(always)]
    pub(super) fn next(&mut self, first: u64, count: usize) -> Option<u64> {
        if self.may_be(first, count) {
            self.find_sampled(first, count)
        } else {
            None
        }
    }

    #[inline(never)]
    fn find_sampled(&mut self, first: u64, count: usize) -> Option<u64> {
        let end = first + count as u64;
        let mut sampled = first;
        loop {
            let next = self.timeline.unsampled_until(sampled);
            self.unsampled_until = next;
            if next >= end {
                return None;
            }
            let block = self.timeline.block_of(next);
            if self.timeline.row(block).sequence() == Some(next) {
                return Some(next);
            }
            // Either no sample of this block was reported yet, though one may come, or it is the
            // next block's turn.
            let is_later = block > self.timeline.block_of(sampled);
            sampled = if is_later {
                next
            } else {
                self.timeline.start_of(block + 1)
            };
            if sampled >= end {
                // These are published, reported or not, and will not be sampled any more.
                self.unsampled_until = end;
                return None;
            }
        }
    }
}

impl Row<'_> {
    #[inline]
    fn get(&self, word: usize) -> u64 {
        // ORDERING: Relaxed; ordered by the ring's sequences, see the module.
        self.0[word / WORDS_PER_LINE].0[word % WORDS_PER_LINE].load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, word: usize, value: u64) {
        // ORDERING: Relaxed; ordered by the ring's sequences, see the module.
        self.0[word / WORDS_PER_LINE].0[word % WORDS_PER_LINE].store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn sequence(&self) -> Option<u64> {
        self.get(SEQUENCE).checked_sub(1)
    }

    #[inline]
    pub(super) fn published(&self) -> u64 {
        self.get(PUBLISHED)
    }

    /// Returns how long before it was published the event was due.
    #[inline]
    pub(super) fn publish_delay(&self) -> u64 {
        self.published().saturating_sub(self.get(DUE))
    }

    #[inline]
    fn word(&self, stage: usize, word: usize) -> u64 {
        self.get(STAGES + WORDS_PER_STAGE * stage + word)
    }

    /// Returns how long the event waited for `stage`, and how long it was served; `None` for a
    /// shard that only passed it by, which serves nothing.
    #[inline]
    pub(super) fn spent(&self, stage: usize) -> (u64, Option<u64>) {
        let served = self.word(stage, SERVED);
        let is_served = served != PASSED_BY;
        (self.word(stage, WAITED), is_served.then_some(served))
    }

    /// Writes down how long the event waited for `stage` and was served.
    #[inline]
    pub(super) fn spend(&self, stage: usize, waited: u64, served: Option<u64>) {
        let first = STAGES + WORDS_PER_STAGE * stage;
        self.set(first + WAITED, waited);
        self.set(first + SERVED, served.unwrap_or(PASSED_BY));
    }

    /// From now on the event waits for those behind `stage`.
    #[inline]
    pub(super) fn go_on(&self, stage: usize, now: u64) {
        self.set(STAGES + WORDS_PER_STAGE * stage + ENDED, now);
    }

    /// Returns when the event was ready for a stage behind `after`.
    #[inline]
    pub(super) fn ready(&self, after: &[usize]) -> u64 {
        let mut ready = self.published();
        for &stage in after {
            ready = ready.max(self.word(stage, ENDED));
        }
        ready
    }

    /// Notes that a last stage is done; returns whether it was the last of them.
    #[inline]
    pub(super) fn close(&self) -> bool {
        let open = &self.0[OPEN / WORDS_PER_LINE].0[OPEN % WORDS_PER_LINE];
        // ORDERING: Acquire (order::all_left), pairs with the AcqRel of the other last stages: the
        // stage that finds 1 left sees their times. With one last stage only this thread touches
        // the word.
        if open.load(order::all_left()) == 1 {
            return true;
        }
        // ORDERING: AcqRel (order::leave), pairs with itself in the other last stages: the last one
        // sees the times of all.
        open.fetch_sub(1, order::leave()) == 1
    }
}

/// A clock that knows its own cost. In tests it may be one that is driven by hand.
#[derive(Debug)]
pub(super) struct Watch {
    clock: Clock,
    read_cost: u64,
    #[cfg(all(test, not(any(loom, shuttle))))]
    driven: Option<driven::Driven>,
}

impl Watch {
    fn new() -> Self {
        #[cfg(all(test, not(any(loom, shuttle))))]
        if let Some(driven) = driven::installed() {
            return Self {
                clock: Clock::with_os(),
                read_cost: driven.read_cost,
                driven: Some(driven),
            };
        }
        Self {
            clock: Clock::global(),
            read_cost: clock_read_cost(),
            #[cfg(all(test, not(any(loom, shuttle))))]
            driven: None,
        }
    }

    /// Returns the present time in ticks, when all work before is done.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        #[cfg(all(test, not(any(loom, shuttle))))]
        if let Some(driven) = &self.driven {
            return driven.read();
        }
        self.clock.ticks_after()
    }

    /// Ticks between two reads of the clock without the cost of one: half of the first and half of
    /// the second are between them.
    #[inline(always)]
    pub(super) fn between(&self, from: u64, to: u64) -> u64 {
        to.saturating_sub(from).saturating_sub(self.read_cost)
    }

    /// Returns the clock, for what its ticks mean.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }
}

/// Returns the cost of a read of the clock on this machine, measured once; in a model time does not
/// count.
fn clock_read_cost() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    if IS_MODEL {
        return 0;
    }
    *COST.get_or_init(|| {
        let clock = Clock::global();
        // In picoseconds, so that less than a nanosecond counts.
        let picoseconds = (clock.read_after_cost_ns() * 1_000.0) as u64;
        (clock.ticks_from_ns(picoseconds) + 500) / 1_000
    })
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod driven {
    //! A clock that stands still but for what a test lets pass, and what looks at it cost.

    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock whose ticks are nanoseconds.
    #[derive(Debug, Clone)]
    pub(in crate::pipeline) struct Driven {
        now: Arc<AtomicU64>,
        pub(in crate::pipeline) read_cost: u64,
    }

    impl Driven {
        /// For the pipelines that this thread builds from now on, a clock that takes `read_cost`
        /// ticks to read.
        pub(in crate::pipeline) fn install(read_cost: u64) -> Self {
            let now = Arc::new(AtomicU64::new(1_000));
            let driven = Self { now, read_cost };
            INSTALLED.set(Some(driven.clone()));
            driven
        }

        pub(in crate::pipeline) fn pass(&self, ticks: u64) {
            // ORDERING: Relaxed; a test drives the clock from one thread.
            self.now.fetch_add(ticks, Ordering::Relaxed);
        }

        /// Returns the time without looking at it.
        pub(in crate::pipeline) fn peek(&self) -> u64 {
            // ORDERING: Relaxed, as in `pass`.
            self.now.load(Ordering::Relaxed)
        }

        pub(super) fn read(&self) -> u64 {
            self.pass(self.read_cost.div_ceil(2));
            let now = self.peek();
            self.pass(self.read_cost / 2);
            now
        }
    }

    thread_local! {
        static INSTALLED: RefCell<Option<Driven>> = const { RefCell::new(None) };
    }

    pub(super) fn installed() -> Option<Driven> {
        INSTALLED.with_borrow(Clone::clone)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_event_of_every_block_is_sampled_and_not_always_the_same_place() {
        let timeline = Timeline::new(1024, 5, 3, 1, false);
        let mut places = std::collections::BTreeSet::new();
        for block in 0..1000 {
            let sampled = timeline.sampled_in(block);
            assert_eq!(timeline.block_of(sampled), block);
            places.insert(sampled % 32);
        }
        assert_eq!(places.len(), 32);
    }

    #[test]
    fn the_next_sample_is_found_where_it_is_and_not_missed_where_it_is_reported_late() {
        let timeline = Timeline::new(64, 3, 1, 1, false);
        let sampled: Vec<u64> = (0..8).map(|block| timeline.sampled_in(block)).collect();
        for first in 0..sampled[7] {
            let next = sampled.iter().find(|&&sampled| sampled >= first);
            assert_eq!(Some(&timeline.unsampled_until(first)), next);
        }
        let by_rows = Timeline::new(64, 3, 1, 1, true);
        assert_eq!(by_rows.unsampled_until(2), 2, "not reported yet");
        by_rows.open(5, 1);
        assert_eq!(by_rows.unsampled_until(2), 5);
        assert_eq!(by_rows.unsampled_until(6), 8, "one sample a block");
    }

    #[test]
    fn a_row_belongs_to_one_event_until_four_rings_later() {
        let timeline = Timeline::new(64, 5, 1, 1, false);
        timeline.open(3, 100);
        assert!(timeline.is_open(31));
        assert!(!timeline.is_open(32));
        assert!(!timeline.is_open(64), "the next lap has other rows");
        timeline.row(0).spend(0, 10, Some(20));
        timeline.row(0).go_on(0, 130);
        assert_eq!(timeline.row(0).spent(0), (10, Some(20)));
        assert_eq!(timeline.row(0).ready(&[]), 100);
        assert_eq!(timeline.row(0).ready(&[0]), 130);
        assert!(timeline.row(0).close());
        timeline.open(128, 500);
        assert_eq!(timeline.row(0).sequence(), Some(3));
        timeline.open(256, 900);
        assert_eq!(timeline.row(0).sequence(), Some(256));
    }

    #[test]
    fn samples_are_read_with_when_they_were_due_while_their_rows_are_there() {
        let mut ring = crate::ring::broadcast::RingBuilder::new(64);
        ring.reader(&[]);
        let (mut publisher, mut readers) = ring.build(|| ()).expect("a valid ring");
        let timeline = Timeline::new(64, 3, 1, 1, false);
        let progress = publisher.progress();
        let samples = |first| {
            let mut found = Vec::new();
            timeline.samples_since(first, &progress, |event, due| found.push((event, due)));
            found
        };
        assert_eq!(samples(0), []);
        let mut expected = Vec::new();
        for event in 0..1_000 {
            if timeline.is_sampled(event) {
                timeline.open_due(event, 10 * event, 10 * event + 3);
                expected.push((event, 10 * event));
            }
            publisher.publish(|()| ()).expect("there is room");
            readers[0].poll();
            readers[0].release(1);
            // Three rings' lengths are there, and less a block for where the samples are in theirs.
            let from = (event + 1).saturating_sub(3 * 64 - 8);
            let here: Vec<_> = (expected.iter().copied())
                .filter(|&(event, _)| event >= from)
                .collect();
            assert_eq!(samples(from), here, "at {event}");
        }
        let all = samples(0);
        assert!(
            all.len() < expected.len() && expected.ends_with(&all),
            "{all:?}"
        );
    }

    #[test]
    fn a_row_outlasts_the_chunk_in_which_its_event_is_released() {
        for slots in [1, 4, 64, 1024] {
            for shift in 0..8 {
                let timeline = Timeline::new(slots, shift, 1, 1, false);
                // The worst place for it: the last event of a block, and the first of a full ring
                // that is released at once. The publisher fills the ring again meanwhile.
                let sequence = timeline.every() - 1;
                timeline.open(sequence, 1);
                for later in sequence + 1..sequence + 2 * slots as u64 {
                    if timeline.block_of(later) != 0 {
                        timeline.open(later, 2);
                    }
                }
                let row = timeline.row(0);
                assert_eq!(
                    row.sequence(),
                    Some(sequence),
                    "{slots} slots, shift {shift}"
                );
            }
        }
    }

    /// Returns the timeline of a pipeline whose sampling was not set.
    fn thinning(slots: usize) -> Timeline {
        Timeline::thinning(slots, 0..=9, 1, 1, false)
    }

    #[test]
    fn the_first_events_are_sampled_more_densely_and_every_event_is_stood_for() {
        let timeline = thinning(64);
        let (mut samples, mut stood_for, mut squares) = (0_u64, 0_u64, 0_u64);
        for event in 0..1_000_000_u64 {
            let block = timeline.block_of(event);
            let (start, length) = (timeline.start_of(block), timeline.length_of(block));
            assert!((start..start + length).contains(&event), "event {event}");
            assert_eq!(start + length, timeline.start_of(block + 1));
            assert_eq!(timeline.weight_of(block), length);
            if timeline.is_sampled(event) {
                samples += 1;
                stood_for += length;
                squares += length * length;
            }
            let events = event + 1;
            assert!(samples >= events.min(BLOCKS_PER_PHASE), "{events} events");
            // A block whose sample is still to come, or stands for events to come.
            assert!(stood_for.abs_diff(events) <= length, "{events} events");
            let worth = stood_for * stood_for / squares;
            assert!(worth >= (events / 4).min(1_000), "{events} events: {worth}");
        }
        assert_eq!(timeline.denser_until(), 511 * BLOCKS_PER_PHASE);
        assert_eq!(timeline.every(), 512);
    }

    #[test]
    fn every_place_of_a_block_is_as_likely_to_be_sampled() {
        // Values with a period of any power of two have the right mean.
        let timeline = thinning(64);
        for period in [2, 8, 64, 512, 4096] {
            let (mut sum, mut count) = (0, 0);
            for block in 0..30_000 {
                let weight = timeline.weight_of(block);
                sum += timeline.sampled_in(block) % period * weight;
                count += weight;
            }
            let (mean, expected) = (sum as f64 / count as f64, (period - 1) as f64 / 2.0);
            assert!((mean / expected - 1.0).abs() < 0.03, "{period}: {mean}");
        }
    }

    /// Rule: a row is written again three rings' lengths later at the earliest.
    #[test]
    fn rows_of_shorter_blocks_last_as_long() {
        for slots in [1, 2, 4, 64, 1024, 4096, 1 << 20] {
            let timeline = thinning(slots);
            let row_of = |block: u64| timeline.row(block).0.as_ptr() as usize;
            let mut last_events = std::collections::BTreeMap::new();
            for block in 0..20_000 {
                let end = timeline.start_of(block + 1) - 1;
                if let Some(before) = last_events.insert(row_of(block), end) {
                    let between = timeline.start_of(block) - before;
                    assert!(between > 2 * slots as u64, "{slots} slots, block {block}");
                }
                let oldest = timeline.oldest(block);
                assert!(oldest <= block);
                if block % 512 == 0 {
                    let kept = (oldest..=block).map(row_of);
                    let kept = kept.collect::<std::collections::BTreeSet<_>>();
                    assert_eq!(kept.len() as u64, block - oldest + 1, "{slots}, {block}");
                }
            }
        }
    }

    #[test]
    fn only_the_last_of_several_last_stages_closes() {
        let timeline = Timeline::new(64, 0, 2, 2, false);
        timeline.open(0, 1);
        assert!(!timeline.row(0).close());
        assert!(timeline.row(0).close());
    }
}
