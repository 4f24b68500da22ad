//! The operations of the thread that owns a pipeline: publishing, draining and ending.

use std::sync::Arc;

use super::Pipeline;
use super::control::{CALLER, Failure, ROUND, Stopped};
use super::lanes::Producer;
use super::stage_group::Round;
use super::stats::Stats;
use super::timeline::Timeline;
use crate::ring::broadcast::{RingPublisher, SlotClaim, SlotError};
use crate::ring::sync::{fence, order, yield_now};
use crate::state::Lifecycle;

/// Stands for the time of the call that publishes an event, as the time from which it counts.
pub(super) const AT_ONCE: u64 = u64::MAX;

impl<T> Pipeline<T> {
    /// Publishes an event as [`publish`](Self::publish) does, and measures its latency from `due`,
    /// the time at which it was meant to be published, in ticks of
    /// [`Clock::global`](thalweg_measure::clock::Clock::global) of the crate `thalweg-measure`.
    /// With several producers the latency counts from the call all the same.
    ///
    /// ```
    /// use thalweg::pipeline::{Pipeline, Placement};
    /// use thalweg_measure::{clock::Clock, load::{OpenLoop, Rate}};
    ///
    /// let mut pipeline = Pipeline::builder(64, || 0_u64)
    ///     .stage("double", |event, _| *event *= 2)
    ///     .placement(Placement::inline())
    ///     .sample_every(1)
    ///     .build()?;
    /// let mut load = OpenLoop::new(Clock::global(), Rate::per_second(100_000)?);
    /// for number in 0..1_000 {
    ///     let due = load.next_due();
    ///     load.wait_until(due);
    ///     pipeline.publish_due(due, |event| *event = number)?;
    /// }
    /// let stats = pipeline.join()?;
    /// // What the slowest 1 % spent their time on, being late among it.
    /// let tail = stats.breakdown(0.99).expect("events were sampled");
    /// assert!(tail.publish_delay_ns <= tail.end_to_end_ns);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn publish_due(&mut self, due: u64, write: impl FnOnce(&mut T)) -> Result<(), Stopped> {
        self.publish_from(due, write)
    }

    /// Writes and publishes `count` events, `write(at, event)` for `at` in `0..count`, in pieces of
    /// up to 64; blocks the thread while the ring is full. Cheaper per event than one by one.
    ///
    /// # Errors
    /// [`Stopped`] if a stage panicked; some of the events may have passed some of the stages.
    ///
    /// # Panics
    /// If `write` panics, or the `route` of a sharded stage does: the events of its piece are not
    /// published, those of earlier pieces are, and the pipeline can be used as before. With
    /// [`producers`](super::PipelineBuilder::producers) as [`Producer::publish_batch`].
    pub fn publish_batch(
        &mut self,
        count: usize,
        mut write: impl FnMut(usize, &mut T),
    ) -> Result<(), Stopped> {
        if let Intake::Lane(_) = self.intake {
            return (0..count).try_for_each(|at| self.publish(|event| write(at, event)));
        }
        let mut done = 0;
        while done < count {
            let mut due = AT_ONCE;
            self.make_room(&mut due)?;
            let wanted = (count - done).min(ROUND);
            let piece = wanted.min(self.intake.room(wanted));
            let Intake::Direct(direct) = &mut self.intake else {
                return Err(self.control.stopped());
            };
            let stamp = direct.publish(piece, due, |claim| {
                for at in 0..piece {
                    claim.write(at, |event| write(done + at, event));
                }
            });
            match stamp {
                Ok(stamp) => self.published(stamp)?,
                Err(_) => return Err(self.control.stopped()),
            }
            done += piece;
        }
        Ok(())
    }
}

/// The rows of sampled events are open, and the events are not written yet.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    now: u64,
    next_sample: u64,
}

impl Stamp {
    /// Advances to the next event to be sampled, and returns the time. To be called after the
    /// events were written: if `write` panics, a later call publishes the same events.
    #[inline]
    pub(super) fn written(self, next_sample: &mut u64) -> u64 {
        *next_sample = self.next_sample;
        self.now
    }
}

/// The ring's publisher with the stamping of sampled events.
pub(super) struct Direct<T> {
    pub(super) publisher: RingPublisher<T>,
    timeline: Arc<Timeline>,
    /// The next event to be sampled.
    pub(super) next_sample: u64,
}

impl<T> Direct<T> {
    pub(super) fn new(publisher: RingPublisher<T>, timeline: Arc<Timeline>) -> Self {
        let next_sample = timeline.sampled_in(0);
        Self {
            publisher,
            timeline,
            next_sample,
        }
    }

    /// Sets `due` to now if one of the next events is sampled: their wait for a free slot counts.
    pub(super) fn wait_begins(&self, due: &mut u64) {
        let is_sampled = self.next_sample < self.publisher.next_sequence() + ROUND as u64;
        if is_sampled && *due == AT_ONCE {
            *due = self.timeline.watch.now();
        }
    }

    /// Returns whether a slot is free for the next event, and nothing is to be measured. The event
    /// before a sampled one takes the slow path, too, which warms the caches and branch predictors
    /// for it: else their misses would count.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.publisher.has_room() && self.publisher.next_sequence() + 1 < self.next_sample
    }

    /// Opens the row of the next event if it is sampled.
    pub(super) fn stamp(&self, due: u64) -> Option<Stamp> {
        let end = self.publisher.next_sequence() + 1;
        stamp(&self.timeline, self.next_sample, end, due)
    }

    /// Writes and publishes `count` events; returns the time if one of them is sampled.
    #[inline]
    pub(super) fn publish(
        &mut self,
        count: usize,
        due: u64,
        write: impl FnOnce(&mut SlotClaim<'_, T>),
    ) -> Result<Option<u64>, SlotError> {
        let mut claim = self.publisher.claim(count)?;
        let end = claim.first_sequence() + count as u64;
        let stamp = stamp(&self.timeline, self.next_sample, end, due);
        write(&mut claim);
        claim.commit();
        Ok(stamp.map(|stamp| stamp.written(&mut self.next_sample)))
    }
}

/// Opens the rows of the sampled events from `next_sample` and before `end`, if there are any. It
/// comes before they are written: an event counts from when it was due, or from the call.
#[inline]
fn stamp(timeline: &Timeline, mut next_sample: u64, end: u64, due: u64) -> Option<Stamp> {
    if next_sample >= end {
        return None;
    }
    let now = timeline.watch.now();
    while next_sample < end {
        timeline.open_due(next_sample, due, now);
        let block = timeline.block_of(next_sample);
        next_sample = timeline.sampled_in(block + 1);
    }
    Some(Stamp { now, next_sample })
}

/// The way of the owner's events into the ring.
pub(super) enum Intake<T> {
    /// The owner is the only producer.
    Direct(Direct<T>),
    /// One of several lanes.
    Lane(Box<Producer<T>>),
    /// The owner publishes no more events.
    Closed,
}

impl<T> Intake<T> {
    /// Returns the owner's publisher, where it is the only producer.
    #[inline]
    pub(super) fn direct(&mut self) -> Option<&mut Direct<T>> {
        match self {
            Intake::Direct(direct) => Some(direct),
            Intake::Lane(_) | Intake::Closed => None,
        }
    }

    /// Returns a number of slots that are free, at least. It loads the readers' positions only if
    /// fewer than `wanted` are known to be free.
    #[inline]
    pub(super) fn room(&mut self, wanted: usize) -> usize {
        match self {
            Intake::Direct(direct) => direct.publisher.free(wanted),
            Intake::Lane(producer) => producer.lane.free(wanted),
            Intake::Closed => 0,
        }
    }

    /// Works as [`room`](Self::room) for one event, and counts the slots that the last stages gave
    /// back early.
    pub(super) fn any_room(&mut self) -> usize {
        #[cfg(shuttle)]
        if crate::ring::sync::fault::is("room_unseen") {
            return self.room(1);
        }
        match self {
            Intake::Direct(direct) => direct.publisher.free_including_early(1),
            _ => self.room(1),
        }
    }

    /// Returns whether no event will be accepted any more.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Intake::Direct(direct) => direct.publisher.is_closed(),
            Intake::Lane(producer) => producer.lane.is_closed(),
            Intake::Closed => true,
        }
    }
}

impl<T> Pipeline<T> {
    /// Blocks the thread until all events that this handle has published, and those that were
    /// merged from the producers' lanes, have passed all stages. The pipeline can be used as before
    /// afterwards. If other producers go on publishing, it waits for an instant at which no event
    /// is left.
    ///
    /// # Errors
    /// The pipeline has stopped.
    pub fn flush(&mut self) -> Result<(), Stopped> {
        loop {
            let round = self.run()?;
            if self.control.failure().is_some() {
                return Err(self.control.stopped());
            }
            let drained = match &self.intake {
                Intake::Direct(direct) => direct.publisher.is_drained(),
                Intake::Lane(producer) => producer.lane.is_drained() && self.is_drained(),
                Intake::Closed => true,
            };
            if drained {
                return Ok(());
            }
            if !matches!(round, Round::Worked { .. }) {
                yield_now();
            }
        }
    }

    /// Returns whether all events that were merged have passed all stages.
    fn is_drained(&self) -> bool {
        let passed = self
            .figures
            .gauges
            .iter()
            .map(|gauge| gauge.progress.released());
        have_passed(passed, self.control.merged())
    }

    /// Closes the pipeline, blocks until all published events have passed all stages, ends the
    /// threads, and returns the statistics. With several producers it first waits until they are
    /// dropped, and resumes them if they are paused; those not taken are dropped here.
    ///
    /// # Errors
    /// [`Failure`] with the stage that panicked. That event and later ones have not passed all
    /// stages.
    pub fn join(mut self) -> Result<Stats, Failure> {
        self.finish();
        match self.control.failure() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.stats()),
        }
    }

    fn finish(&mut self) {
        self.producers.clear();
        match self.intake {
            // This waits for the producers, so they must not stay paused.
            Intake::Lane(_) => {
                let state = &self.control.state;
                let _ = state.change(Lifecycle::Paused, Lifecycle::Running, "joined");
            }
            _ => self.control.enter(Lifecycle::Draining, "joined"),
        }
        if let Some(auto) = &mut self.auto {
            auto.close();
        }
        self.intake = Intake::Closed;
        self.control.notify_all();
        while !self.group.is_empty() {
            match self.run() {
                Ok(Round::Worked { .. }) => {}
                Ok(Round::Blocked) if self.control.failure().is_none() => yield_now(),
                Ok(Round::Idle) => {
                    let group = &mut self.group;
                    self.wait
                        .until(self.control.event_count(CALLER), || group.is_ready());
                }
                Ok(Round::Blocked | Round::Done) | Err(_) => break,
            }
        }
        self.group.flush();
        self.group.dismiss(&self.control);
        for thread in self.threads.drain(..) {
            // A stage thread catches its stages' panics, so there is no error left to collect.
            let _ = thread.join();
        }
        self.control.enter(Lifecycle::Stopped, "everything is done");
    }
}

/// Returns whether stages that have `passed` these numbers of events have all passed `merged`.
pub(super) fn have_passed(mut passed: impl Iterator<Item = u64>, merged: u64) -> bool {
    let have_passed = passed.all(|passed| passed == merged);
    // ORDERING: Acquire (order::level), pairs with the Release in `Reader::release_until`, whose
    // values `passed` has read relaxed: what the stages did is visible to the caller when `flush`
    // returns.
    fence(order::level());
    have_passed
}

impl<T> Drop for Pipeline<T> {
    fn drop(&mut self) {
        // It does not wait for producers: one might never end.
        self.control.enter(Lifecycle::Draining, "dropped");
        self.finish();
    }
}
