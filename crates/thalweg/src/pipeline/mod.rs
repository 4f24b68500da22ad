//! Pipelines: stages and their dependencies are declared once, and run on any number of threads.
//!
//! ```
//! use thalweg::channel::unbounded;
//! use thalweg::pipeline::{Pipeline, Placement};
//!
//! #[derive(Default)]
//! struct Order { size: u64, accepted: bool, filled: u64 }
//!
//! let (mut fills, mut filled) = unbounded(1_000);
//! let mut pipeline = Pipeline::builder(4096, Order::default)
//!     .stage("risk", |order, _| order.accepted = order.size <= 100)
//!     .stage("match", |order, _| order.filled = if order.accepted { order.size } else { 0 })
//!     .after("risk")
//!     .observe("report", move |order, _| fills.send(order.filled).expect("it is received below"))
//!     .after("match")
//!     .placement(Placement::inline())
//!     .build()?;
//! for size in [10, 1000] {
//!     pipeline.publish(|order| order.size = size)?;
//! }
//! let stats = pipeline.join()?;
//! assert_eq!(stats.stages[0].events, 2);
//! assert_eq!(filled.iter().collect::<Vec<_>>(), [10, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Events live in the slots of a ring, which are made once and reused; a stage gets a reference. A
//! stage that changes events must be ordered against every other stage, directly or through others:
//! [`PipelineBuilder::build`] checks that and names the two stages that conflict. Stages that only
//! read may run side by side. The order in which stages are declared is not the order in which they
//! run: without [`after`](PipelineBuilder::after), a stage depends on the producer only.
//!
//! # Order
//! The order of the pipeline, in which placements divide the stages and statistics list them, is a
//! topological one: again and again the first declared stage whose dependencies all come before.
//!
//! All stages see all events in one order. Events of one [`Producer`] are in the order in which it
//! published them; between several producers, and the owner, there is none but that in which their
//! events are merged.
//!
//! # Threads
//! The [`Placement`] determines which thread runs which stage; it changes latencies, not results.
//! The default is [`Placement::auto`].
//!
//! | placement | OS threads made | threads that run the stages |
//! |---|---|---|
//! | [`inline()`] | 0 | the publishing thread, in `publish` |
//! | [`threads(n)`] | n | those; neighbouring stages share one |
//! | [`caller_and_threads(k, n)`] | n | the publishing thread the first k, those the others |
//! | [`explicit()`] | one per `on_thread`, `on_core` | as named |
//! | [`auto()`] | 1 (0 on one core) | the publishing thread; under load, both threads |
//! | `auto()` with [`producers(n)`] | 1 to cores − 1 | those |
//!
//! [`inline()`]: Placement::inline
//! [`threads(n)`]: Placement::threads
//! [`caller_and_threads(k, n)`]: Placement::caller_and_threads
//! [`explicit()`]: Placement::explicit
//! [`auto()`]: Placement::auto
//! [`producers(n)`]: PipelineBuilder::producers
//!
//! When [`Pipeline::publish`] returns, the stages of the publishing thread have run, unless one
//! depends on a stage of another thread or retries; those of other threads may not have.
//! [`Pipeline::flush`] waits for all of them.
//!
//! # Results
//! Closures are `Send + 'static`, so they return results through what they own: the sender of a
//! channel, an `Arc` of an atomic or a lock. [`Pipeline::join`] drops the closures, and with them
//! the senders, so that a loop of receives ends. A closure that sends into a bounded channel needs
//! a receiver on another thread: one that runs on the publishing thread, and waits for what that
//! thread receives later, waits for ever; see [`Placement`].
//!
//! [`Pipeline::stats`] returns at any time how long sampled events waited for each stage, and the
//! stages' service time:
//!
//! ```
//! # use thalweg::pipeline::Pipeline;
//! let mut pipeline = Pipeline::builder(64, || 0_u64).stage("double", |n, _| *n *= 2).build()?;
//! for number in 0..1_000 {
//!     pipeline.publish(|n| *n = number)?;
//! }
//! let stats = pipeline.join()?;
//! let stage = &stats.stages[0];
//! let (waited, served) = (stage.queueing_ns.summary(), stage.service_ns.summary());
//! println!("{}: p99 {} ns waiting, {} ns served", stage.name, waited.p99, served.p99);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Its histograms, and the ticks of [`Pipeline::publish_due`], are types and
//! units of the crate `thalweg-measure`: depend on it to name them. [`SAMPLE_EVERY`] has the cost
//! of sampling.

use std::sync::Arc;

use self::stage_wait::StageWait;
use crate::export::Export;
use crate::ring::broadcast::SlotError;
use crate::ring::sync::thread::JoinHandle;
use crate::ring::sync::yield_now;
use auto::{Auto, WORKER};
use control::{CALLER, Control};
use figures::Meters;
use meter::Mark;
use publish::{AT_ONCE, Intake};
use stage_group::{Round, StageGroup};

pub use builder::PipelineBuilder;
pub use control::{Failure, Stopped, TryPublishError};
pub use error::PipelineError;
pub use figures::Handle;
pub use lanes::Producer;
pub use placement::{ParsePlacementError, Placement};
pub use stage::{Chunk, Context, Flow, Processed};
pub use stats::{
    Breakdown, PartStats, PlacementChange, SlowEvent, SlowPart, StageStats, Stats, TimeKind,
};

mod assembly;
mod auto;
mod builder;
mod control;
mod error;
mod figures;
mod graph;
mod lanes;
mod meter;
#[cfg(all(test, loom))]
mod models;
mod placement;
mod publish;
mod stage;
mod stage_group;
mod stage_wait;
mod stats;
mod timeline;

/// The default sampling interval: one event in this number is sampled, and more of the first
/// 261,632: see [`PipelineBuilder::sample_every`](PipelineBuilder::sample_every).
///
/// # Cost
/// Sampling one event in 512 costs 0.5 to 0.8 ns an event in the long run, for three stages on one
/// thread. Sampling every event costs 117 to 236 ns an event, the less the larger the batches.
/// (AMD, two cores, 22 November 2026: [the
/// measurement](https://github.com/thalweg-rs/thalweg/blob/main/docs/notes/results-pipelines.md#attribution-cargo-compare-attribution).)
/// A single sample among events that are not sampled costs more, 0.3 to 0.6 µs, and more still
/// where the stages run on several cores.
pub const SAMPLE_EVERY: u64 = 512;

/// The largest sampling interval: one event in this number.
pub const SAMPLE_EVERY_MAX: u64 = 1 << 20;

/// The largest number of [`producers`](PipelineBuilder::producers): each has a lane of its
/// own, as long as the ring.
pub const PRODUCERS_MAX: usize = 1_024;

/// A running pipeline, whose owner publishes the events.
///
/// Dropping it finishes all published events, as [`join`](Self::join) does, but reports no failure
/// and does not wait for [`Producer`]s: they get [`Stopped`], and an event that one publishes at
/// that instant may be lost.
pub struct Pipeline<T> {
    // Dropped first to last: the intake closes the ring, then the group drops its readers.
    intake: Intake<T>,
    group: StageGroup<T>,
    threads: Vec<JoinHandle<()>>,
    producers: Vec<Producer<T>>,
    /// The threads to notify after publishing.
    first_waiters: Box<[usize]>,
    /// The caller has all stages for now, and they run to completion for single events.
    is_alone: bool,
    wait: StageWait,
    auto: Option<Auto<T>>,
    figures: Arc<Meters>,
    control: Arc<Control>,
    /// Ends with the pipeline, when everything is done.
    export: Option<Export>,
}

shown!([T] Pipeline<T>, "Pipeline", this,
    "stages": this.figures.gauges.iter().map(|gauge| &*gauge.name).collect::<Vec<_>>(),
    "threads": this.threads.len());

impl<T: Send + Sync + 'static> Pipeline<T> {
    /// Returns a builder of a pipeline with at least `capacity` slots, the next power of two.
    /// [`build`](PipelineBuilder::build) calls `factory` once for each of them.
    pub fn builder(capacity: usize, factory: impl FnMut() -> T + 'static) -> PipelineBuilder<T> {
        PipelineBuilder::new(capacity, factory)
    }
}

impl<T> Pipeline<T> {
    /// Takes the producers that [`PipelineBuilder::producers`] made; returns none the second time.
    pub fn take_producers(&mut self) -> Vec<Producer<T>> {
        std::mem::take(&mut self.producers)
    }

    /// Writes and publishes one event, and runs the caller's stages, if any. If the ring is full,
    /// it blocks the thread until one slot is free.
    ///
    /// A stage may wait for something that the publishing thread does after `publish` returns, if
    /// it frees the slot of each event before it gets the next one. It does so if
    /// - no other stage depends on it,
    /// - it runs on another thread, as the last stage there, and
    /// - it does not take chunks.
    ///
    /// The slot holds what an earlier event left there. It costs some 3 ns besides `write` and the
    /// stages.
    ///
    /// # Errors
    /// [`Stopped`] if a stage panicked; the event may have passed some of the stages.
    ///
    /// # Panics
    /// If `write` panics, or the `route` of a sharded stage does (in a pipeline without
    /// [`producers`](PipelineBuilder::producers)): the event is not published, and the pipeline can
    /// be used as before. A panic of a stage is an error, not a panic.
    #[inline]
    pub fn publish(&mut self, write: impl FnOnce(&mut T)) -> Result<(), Stopped> {
        self.publish_from(AT_ONCE, write)
    }

    /// Publishes an event that counts from `due`.
    #[inline(always)]
    fn publish_from(&mut self, due: u64, write: impl FnOnce(&mut T)) -> Result<(), Stopped> {
        match &mut self.intake {
            Intake::Direct(direct) if self.is_alone && direct.is_plain() => {
                let published = direct.publisher.put(write);
                match self.group.step::<false>(&published, &self.control) {
                    Some(true) => Ok(()),
                    Some(false) => self.published(None),
                    None => Err(self.control.stopped()),
                }
            }
            _ => self.publish_slow(due, write),
        }
    }

    #[inline(never)]
    fn publish_slow(&mut self, mut due: u64, write: impl FnOnce(&mut T)) -> Result<(), Stopped> {
        match &mut self.intake {
            Intake::Direct(direct) if self.group.is_ready_to_step() && direct.is_plain() => {
                let published = direct.publisher.put(write);
                self.control.notify(&self.first_waiters);
                match self.group.step::<true>(&published, &self.control) {
                    Some(true) if self.control.failure().is_none() => {
                        self.group.notify();
                        Ok(())
                    }
                    Some(false) => self.published(None),
                    _ => Err(self.control.stopped()),
                }
            }
            Intake::Direct(direct)
                if self.group.is_ready_to_step() && direct.publisher.has_room() =>
            {
                let stamp = direct.stamp(due);
                let published = direct.publisher.put(write);
                let stamp = stamp.map(|stamp| stamp.written(&mut direct.next_sample));
                self.control.notify(&self.first_waiters);
                match self.group.step_measured(&published, &self.control) {
                    Some(true) if self.control.failure().is_none() => {
                        self.group.notify();
                        stamp.map_or(Ok(()), |now| self.watch(now))
                    }
                    Some(false) => self.published(stamp),
                    _ => Err(self.control.stopped()),
                }
            }
            Intake::Direct(direct) if direct.publisher.has_room() => {
                match direct.publish(1, due, |claim| claim.write(0, write)) {
                    Ok(stamp) => self.published(stamp),
                    Err(_) => Err(self.control.stopped()),
                }
            }
            _ => {
                self.make_room(&mut due)?;
                // A slot was free, and only this thread uses the ring's slots.
                self.try_publish_from(due, write)
                    .map_err(|error| match error {
                        TryPublishError::Stopped(stopped) => stopped,
                        _ => self.control.stopped(),
                    })
            }
        }
    }

    /// Writes and publishes one event if a slot is free, and runs the caller's stages, if any.
    ///
    /// # Errors
    /// [`TryPublishError::Full`] (`write` is not called), or [`TryPublishError::Stopped`].
    ///
    /// # Panics
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn try_publish(&mut self, write: impl FnOnce(&mut T)) -> Result<(), TryPublishError> {
        self.try_publish_from(AT_ONCE, write)
    }

    fn try_publish_from(
        &mut self,
        due: u64,
        write: impl FnOnce(&mut T),
    ) -> Result<(), TryPublishError> {
        if self.intake.room(1) == 0 {
            // The slots may be held by the caller's own stages.
            self.run().map_err(TryPublishError::Stopped)?;
            self.intake.any_room();
        }
        let stamp = match &mut self.intake {
            Intake::Direct(direct) => match direct.publish(1, due, |claim| claim.write(0, write)) {
                Ok(stamp) => stamp,
                Err(SlotError::Full) if self.control.failure().is_none() => {
                    return Err(TryPublishError::Full);
                }
                Err(_) => return Err(TryPublishError::Stopped(self.control.stopped())),
            },
            Intake::Lane(producer) if !self.control.is_ending() => {
                producer.put(write)?;
                None
            }
            Intake::Lane(_) | Intake::Closed => {
                return Err(TryPublishError::Stopped(self.control.stopped()));
            }
        };
        self.published(stamp).map_err(TryPublishError::Stopped)
    }

    /// Returns the number of slots of the ring: the capacity that was asked for, rounded up to a
    /// power of two.
    pub fn capacity(&self) -> usize {
        match &self.intake {
            Intake::Direct(direct) => direct.publisher.capacity(),
            Intake::Lane(_) | Intake::Closed => self.figures.timeline.slots,
        }
    }

    /// Ends a publish: wakes sleeping threads, runs the caller's stages, checks the load.
    #[inline(never)]
    fn published(&mut self, stamp: Option<u64>) -> Result<(), Stopped> {
        self.control.notify(&self.first_waiters);
        let has_stages = !self.group.is_empty();
        if has_stages {
            self.run()?;
        }
        // Without threads only the caller's own stages can fail, and `run_from` has returned that.
        if !(has_stages && self.threads.is_empty()) && self.control.failure().is_some() {
            return Err(self.control.stopped());
        }
        match stamp {
            Some(now) if self.auto.is_some() => self.watch(now),
            _ => Ok(()),
        }
    }

    /// Has the automatic placement check the load.
    #[cold]
    fn watch(&mut self, now: u64) -> Result<(), Stopped> {
        if let Some(auto) = &mut self.auto
            && auto.watch(now, &mut self.group)
        {
            let worker: &[usize] = if auto.is_split() { &[WORKER] } else { &[] };
            self.first_waiters = worker.into();
            self.stages_moved();
            // Events may wait for the stages that came back.
            self.run()?;
        }
        Ok(())
    }

    /// Updates what depends on which stages the caller has.
    fn stages_moved(&mut self) {
        self.is_alone =
            self.group.is_ready_to_step() && self.group.len() == self.figures.gauges.len();
        self.figures.moved(self.group.len());
    }

    /// Runs the caller's stages until no event is known to wait for them.
    #[inline(never)]
    fn run(&mut self) -> Result<Round, Stopped> {
        let mut mark = Mark::default();
        let outcome = self.group.guarded(&self.control, |group| {
            let round = group.round(&mut mark);
            match round {
                Round::Worked { more: true } => group.rounds(),
                round => round,
            }
        });
        outcome.ok_or_else(|| self.control.stopped())
    }

    /// Runs the caller's stages on all events that are ready for them; returns whether there were
    /// any.
    ///
    /// [`publish`](Self::publish) and [`flush`](Self::flush) do so as well. Between those calls it
    /// is needed where events become ready for the caller's stages by other threads: by a stage on
    /// another thread that they depend on, by other producers, or by a [`Flow::Retry`] that waits
    /// for another thread's progress. Nothing wakes the caller, so call it repeatedly, or the
    /// events wait for the next publish.
    ///
    /// # Errors
    /// [`Stopped`] if a stage panicked.
    pub fn drive(&mut self) -> Result<bool, Stopped> {
        let mut worked = false;
        while let Round::Worked { .. } = self.run()? {
            worked = true;
        }
        if self.control.failure().is_some() {
            return Err(self.control.stopped());
        }
        Ok(worked)
    }

    /// Waits until a slot is free.
    #[inline]
    fn make_room(&mut self, due: &mut u64) -> Result<(), Stopped> {
        if self.intake.room(1) > 0 {
            Ok(())
        } else {
            self.wait_for_room(due)
        }
    }

    #[cold]
    fn wait_for_room(&mut self, due: &mut u64) -> Result<(), Stopped> {
        let capacity = self.capacity();
        if let Some(direct) = self.intake.direct() {
            direct.wait_begins(due);
        }
        loop {
            let round = self.run()?;
            if self.intake.room(1) > 0 {
                return Ok(());
            }
            let (intake, group, control) = (&mut self.intake, &mut self.group, &self.control);
            // Where the caller merges, a failure of another thread does not close its own lane.
            let is_over = |intake: &Intake<T>| intake.is_closed() || control.failure().is_some();
            if is_over(intake) {
                return Err(self.control.stopped());
            }
            if round == Round::Blocked {
                if intake.any_room() > 0 {
                    return Ok(());
                }
                yield_now();
                continue;
            }
            let plenty = capacity / 8;
            self.wait
                .until_room(control.event_count(CALLER), plenty, |is_long| {
                    let room = match is_long {
                        true => intake.any_room(),
                        false => intake.room(1),
                    };
                    let is_awaited = room == 0 && !is_over(intake) && !group.is_ready();
                    if is_awaited { 0 } else { room.max(1) }
                });
        }
    }

    /// Returns the statistics up to now. It takes some 20 µs a stage on the calling thread, and
    /// costs the stages nothing.
    pub fn stats(&self) -> Stats {
        self.group.publish_progress();
        let mut stats = self.figures.stats();
        if let Some(auto) = &self.auto {
            stats.placement_change_count = auto.placement_change_count;
            let clock = self.figures.timeline.watch.clock();
            stats.placement_changes = auto.placement_changes(clock, self.figures.began);
        }
        stats
    }

    /// Returns the failure that has stopped the pipeline, if a stage panicked.
    pub fn failure(&self) -> Option<&Failure> {
        self.control.failure()
    }
}
