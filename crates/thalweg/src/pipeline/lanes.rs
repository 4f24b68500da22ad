//! Several producers: a lane each, merged by the thread of the first stage.
//!
//! A producer writes into a lane of its own, so that no producer waits for another, not even for
//! one that was preempted in the middle of a publish. The merger takes elements from the lanes in
//! turn, up to a round from each, and swaps each element into the next slot of the pipeline's ring:
//! that is the order of the events. Events of one producer keep their order.

use std::sync::Arc;

use super::control::{Control, ROUND, Stopped, TryPublishError};
use super::stage_wait::StageWait;
use super::timeline::Timeline;
use crate::ring::broadcast::{
    Availability, GraphError, Reader, RingBuilder, RingPublisher, SlotError,
};
use crate::ring::sync::fault;
use crate::state::Lifecycle;

/// An element of a lane.
pub(super) struct Laned<T> {
    value: T,
    /// The time when it was published, in ticks, if its producer sampled it; else 0.
    published: u64,
}

/// One of several producers of a pipeline; see
/// [`PipelineBuilder::producers`](super::PipelineBuilder::producers).
///
/// The events of one producer keep their order; between several producers there is none. Dropping
/// it ends its lane: [`Pipeline::join`](super::Pipeline::join) waits for that.
pub struct Producer<T> {
    pub(super) lane: RingPublisher<Laned<T>>,
    merger: NotifyMerger,
    timeline: Arc<Timeline>,
    wait: StageWait,
    /// The index of the event count that this producer waits on.
    thread: usize,
}

shown!([T] Producer<T>, "Producer", this, "lane": this.lane);

impl<T> Producer<T> {
    /// Writes and publishes one event if the lane has a free slot.
    ///
    /// # Errors
    /// [`TryPublishError::Full`] or [`TryPublishError::Paused`] (`write` is not called), or
    /// [`TryPublishError::Stopped`].
    ///
    /// # Panics
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn try_publish(&mut self, write: impl FnOnce(&mut T)) -> Result<(), TryPublishError> {
        if !self.merger.control.state.is(Lifecycle::Running) {
            return Err(self.held_back());
        }
        self.put(write)
    }

    #[cold]
    fn held_back(&self) -> TryPublishError {
        let control = &self.merger.control;
        match control.is_ending() {
            true => TryPublishError::Stopped(control.stopped()),
            false => TryPublishError::Paused,
        }
    }

    /// Works as [`try_publish`](Self::try_publish), whatever the pipeline's state is.
    #[inline]
    pub(super) fn put(&mut self, write: impl FnOnce(&mut T)) -> Result<(), TryPublishError> {
        let sequence = self.lane.next_sequence();
        let mut claim = match self.lane.claim(1) {
            Ok(claim) => claim,
            Err(SlotError::Full) => return Err(TryPublishError::Full),
            Err(SlotError::Closed) => {
                return Err(TryPublishError::Stopped(self.merger.control.stopped()));
            }
        };
        let is_sampled = self.timeline.is_sampled(sequence);
        // It counts from the call, as in `Direct::stamp`.
        let published = if is_sampled {
            self.timeline.watch.now()
        } else {
            0
        };
        claim.write(0, |laned| {
            write(&mut laned.value);
            laned.published = published;
        });
        claim.commit();
        self.merger.control.notify(&self.merger.waiters);
        Ok(())
    }

    /// Writes and publishes one event; blocks the thread while the lane is full and while the
    /// pipeline is paused.
    ///
    /// # Errors
    /// [`Stopped`] if a stage panicked, or the pipeline was dropped; `write` was not called.
    ///
    /// # Panics
    /// If `write` panics: the event is not published, and the producer can be used as before. If
    /// the `route` of a sharded stage panics for an event of a producer, the pipeline stops: it is
    /// called by the thread that moves the event into the ring.
    pub fn publish(&mut self, write: impl FnOnce(&mut T)) -> Result<(), Stopped> {
        let lane = &mut self.lane;
        if lane.free(1) == 0 {
            let control = &self.merger.control;
            let event_count = control.event_count(self.thread);
            let plenty = lane.capacity() / 8;
            self.wait.until_room(event_count, plenty, |_| {
                let is_over = lane.is_closed() || control.is_ending();
                lane.free(1).max(is_over.into())
            });
        }
        let control = &self.merger.control;
        while !control.state.is(Lifecycle::Running) {
            if control.is_ending() {
                return Err(control.stopped());
            }
            // Every state leads there.
            let _ = control.state.wait_for(Lifecycle::RUNNING_OR_ENDING);
        }
        // A slot was free, and only this producer uses the lane's slots.
        self.put(write).map_err(|_| self.merger.control.stopped())
    }

    /// Publishes `count` events, `write(at, event)` for `at` in `0..count`, one by one as
    /// [`publish`](Self::publish) does.
    ///
    /// # Errors
    /// [`Stopped`], as [`publish`](Self::publish); events published before that may be lost with
    /// the pipeline.
    ///
    /// # Panics
    /// If `write` panics: that event and later ones are not published, and earlier ones are.
    pub fn publish_batch(
        &mut self,
        count: usize,
        mut write: impl FnMut(usize, &mut T),
    ) -> Result<(), Stopped> {
        (0..count).try_for_each(|at| self.publish(|event| write(at, event)))
    }
}

/// Notifies the merger when a producer is dropped. It is declared after the lane, which is closed
/// by then.
struct NotifyMerger {
    control: Arc<Control>,
    /// The merger's thread.
    waiters: Box<[usize]>,
}

impl Drop for NotifyMerger {
    fn drop(&mut self) {
        self.control.notify(&self.waiters);
    }
}

struct Lane<T> {
    reader: Reader<Laned<T>>,
    /// The producer's thread, which waits for free slots.
    producer: Box<[usize]>,
    closed: bool,
}

pub(super) struct Merger<T> {
    lanes: Vec<Lane<T>>,
    /// The lane to begin with, so that no lane is always the last.
    turn: usize,
    publisher: Option<RingPublisher<T>>,
    timeline: Arc<Timeline>,
    control: Arc<Control>,
    waiters: Box<[usize]>,
}

impl<T> Merger<T> {
    /// Returns a merger without lanes.
    pub(super) fn new(
        publisher: RingPublisher<T>,
        timeline: &Arc<Timeline>,
        control: &Arc<Control>,
    ) -> Self {
        Self {
            lanes: Vec::new(),
            turn: 0,
            publisher: Some(publisher),
            timeline: Arc::clone(timeline),
            control: Arc::clone(control),
            waiters: Box::default(),
        }
    }

    /// Adds a lane of `capacity` events, whose producer waits on the event count of `thread`;
    /// `waiters` are the threads that the merger notifies, and those that the producer notifies.
    pub(super) fn lane(
        &mut self,
        capacity: usize,
        mut factory: impl FnMut() -> T,
        thread: usize,
        waiters: (Box<[usize]>, Box<[usize]>),
        wait: StageWait,
    ) -> Result<Producer<T>, GraphError> {
        let mut builder = RingBuilder::new(capacity);
        builder.reader_mut(&[]);
        let (lane, readers) = builder.build(|| Laned {
            value: factory(),
            published: 0,
        })?;
        self.lanes.extend(readers.into_iter().map(|reader| Lane {
            reader,
            producer: waiters.0.clone(),
            closed: false,
        }));
        let merger = NotifyMerger {
            control: Arc::clone(&self.control),
            waiters: waiters.1,
        };
        Ok(Producer {
            lane,
            merger,
            timeline: Arc::clone(&self.timeline),
            wait,
            thread,
        })
    }

    /// Moves up to a round of elements from one lane.
    fn take(&mut self, at: usize) -> bool {
        let (Some(publisher), lane) = (&mut self.publisher, &mut self.lanes[at]) else {
            return false;
        };
        let waiting = match lane.reader.poll() {
            Availability::Ready(waiting) => waiting,
            Availability::Empty => return false,
            Availability::Closed => {
                lane.closed = true;
                return false;
            }
        };
        let wanted = waiting.min(ROUND);
        let mut count = publisher.free(wanted).min(wanted);
        if count == 0 {
            count = publisher.free_including_early(1).min(wanted);
        }
        if count == 0 {
            return false;
        }
        let Ok(mut claim) = publisher.claim(count) else {
            return false;
        };
        let first = claim.first_sequence();
        let mut moved = 0;
        lane.reader.visit_mut(count, |_, laned| {
            claim.write(moved, |slot| std::mem::swap(slot, &mut laned.value));
            let sequence = first + moved as u64;
            if laned.published != 0 && !self.timeline.is_open(sequence) {
                self.timeline.open(sequence, laned.published);
            }
            moved += 1;
            true
        });
        claim.commit_first(moved);
        self.control.set_merged(first + moved as u64);
        lane.reader.release(moved);
        if fault::is("lane_unnotified") {
            return moved > 0;
        }
        self.control.notify(&lane.producer);
        moved > 0
    }

    /// Returns whether the ring can be closed: every lane is empty, and no producer is left or
    /// waited for.
    fn is_over(&mut self) -> bool {
        if fault::is("abandon_order") {
            let mut lanes = self.lanes.iter_mut();
            let is_empty = lanes.all(|lane| !matches!(lane.reader.poll(), Availability::Ready(_)));
            return is_empty && self.control.is_ending();
        }
        // The state is loaded before the lanes, so that elements that the owner published before it
        // changed the state are seen.
        let is_abandoned = self.control.is_ending();
        let is_abandoned = is_abandoned && !fault::is("abandon_unseen");
        self.lanes.iter_mut().all(|lane| {
            lane.closed || (is_abandoned && !matches!(lane.reader.poll(), Availability::Ready(_)))
        })
    }

    /// Moves elements from the lanes into the ring while slots are free; returns whether it moved
    /// any.
    pub(super) fn merge(&mut self) -> bool {
        let mut moved = false;
        for step in 0..self.lanes.len() {
            let at = (self.turn + step) % self.lanes.len();
            moved |= self.take(at);
        }
        self.turn = (self.turn + 1) % self.lanes.len().max(1);
        if !moved && self.is_over() {
            self.control
                .enter(Lifecycle::Draining, "no producer is left");
            moved |= self.publisher.take().is_some();
        }
        if moved {
            self.control.notify(&self.waiters);
        }
        moved
    }

    /// Returns whether an element waits and a slot is free, or the end has come.
    pub(super) fn is_ready(&mut self) -> bool {
        let Some(publisher) = &mut self.publisher else {
            return false;
        };
        let room = publisher.free_including_early(1) > 0;
        // The state is loaded first, as in `is_over`.
        let is_abandoned = self.control.is_ending();
        let (mut is_open, mut is_full) = (false, false);
        for lane in self.lanes.iter_mut().filter(|lane| !lane.closed) {
            is_open = true;
            match lane.reader.poll() {
                Availability::Ready(_) if !room => is_full = true,
                Availability::Empty => {}
                _ => return true,
            }
        }
        // An abandoned pipeline ends after the elements that are in the lanes.
        !is_open || (is_abandoned && (!is_full || fault::is("abandon_full")))
    }

    /// Returns whether all producers are gone and everything was moved.
    pub(super) fn is_done(&self) -> bool {
        self.publisher.is_none()
    }

    /// Sets the threads to notify when elements were moved.
    pub(super) fn attach(&mut self, waiters: Box<[usize]>) {
        self.waiters = waiters;
    }
}
