//! Several producers: a lane each, merged by the thread of the first stage.
//!
//! A producer writes into a lane of its own, so that no producer waits for another, not even for
//! one that was preempted in the middle of a publish. The merger takes from the lanes in turn, up
//! to a round from each, and swaps each element into the next slot of the pipeline's ring: the
//! order in which it takes them is the order of the events. Events of one producer stay in their
//! order.

use std::sync::Arc;

use thalweg_measure::clock::Clock;

use super::control::Control;
use super::crew::ROUND;
use super::publish::{Stopped, TryPublishError};
use super::timeline::Timeline;
use crate::ring::broadcast::{Builder, ClaimError, Polled, Publisher, Reader};
use crate::ring::sync::fault;
use crate::wait::Waiter;

/// The largest number of [`producers`](super::Builder::producers): each has a lane of its own, as
/// long as the ring.
pub const PRODUCERS_MAX: usize = 1_024;

/// An element on its way to the ring.
struct Laned<T> {
    value: T,
    /// When it was published, if its producer sampled it; else 0.
    published: u64,
}

/// The merging side, its event type forgotten.
pub(super) trait Merge: Send {
    /// Moves what is there, as far as there is room; gives whether anything moved.
    fn merge(&mut self) -> bool;
    /// Whether there is something to move and room for it, or the end has come.
    fn is_ready(&mut self) -> bool;
    /// Whether all producers are gone and everything was moved.
    fn is_done(&self) -> bool;
    /// Whose bells to ring when something moved.
    fn seat(&mut self, bells: Box<[usize]>);
}

/// One of several producers of a pipeline; see [`Builder::producers`](super::Builder::producers).
///
/// Dropping it says that no more events will come from it.
pub struct Producer<T> {
    lane: Publisher<Laned<T>>,
    merger: Farewell,
    clock: Clock,
    timeline: Arc<Timeline>,
    waiter: Waiter,
    bell: usize,
}

shown!([T] Producer<T>, "Producer", this, "lane": this.lane);

impl<T> Producer<T> {
    fn stopped(&self) -> Stopped {
        Stopped {
            failure: self.merger.control.failure().cloned(),
        }
    }

    /// Whether the pipeline has failed or was dropped: nobody may empty the lane any more.
    #[inline]
    fn is_stopped(&self) -> bool {
        let control = &self.merger.control;
        control.failure().is_some() || control.is_abandoned()
    }

    pub(super) fn room(&mut self, wanted: usize) -> usize {
        self.lane.free(wanted)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lane.is_closed()
    }

    /// Whether everything published here has been moved into the ring.
    pub(super) fn is_drained(&self) -> bool {
        self.lane.is_drained()
    }

    /// Writes and publishes one event if the lane has room.
    ///
    /// # Errors
    /// [`TryPublishError::Full`] (`write` is not called), or [`TryPublishError::Stopped`].
    #[inline]
    pub fn try_publish(&mut self, write: impl FnOnce(&mut T)) -> Result<(), TryPublishError> {
        if self.is_stopped() {
            return Err(TryPublishError::Stopped(self.stopped()));
        }
        let sequence = self.lane.next_sequence();
        let mut claim = match self.lane.claim(1) {
            Ok(claim) => claim,
            Err(ClaimError::Full) => return Err(TryPublishError::Full),
            Err(ClaimError::Closed) => return Err(TryPublishError::Stopped(self.stopped())),
        };
        let sampled = self.timeline.is_sampled(sequence);
        let clock = self.clock;
        claim.write(0, |laned| {
            write(&mut laned.value);
            laned.published = if sampled { clock.ticks() } else { 0 };
        });
        claim.commit();
        self.merger.control.ring(&self.merger.bells);
        Ok(())
    }

    /// Writes and publishes one event; waits while the lane is full.
    ///
    /// # Errors
    /// The pipeline has stopped; `write` was not called.
    pub fn publish(&mut self, write: impl FnOnce(&mut T)) -> Result<(), Stopped> {
        let lane = &mut self.lane;
        if lane.free(1) == 0 {
            let control = &self.merger.control;
            let bell = control.bell(self.bell);
            let plenty = lane.capacity() / 8;
            self.waiter.until_room(bell, plenty, |_| {
                let is_over =
                    lane.is_closed() || control.failure().is_some() || control.is_abandoned();
                lane.free(1).max(is_over.into())
            });
        }
        match self.try_publish(write) {
            Ok(()) => Ok(()),
            // There was room a moment ago, and only this producer uses it up.
            Err(TryPublishError::Full) => Err(self.stopped()),
            Err(TryPublishError::Stopped(stopped)) => Err(stopped),
        }
    }

    /// Publishes `count` events, `write(at, event)` for `at` in `0..count`; waits for room as
    /// needed.
    ///
    /// # Errors
    /// The pipeline has stopped; events written before that may be lost with it.
    pub fn publish_batch(
        &mut self,
        count: usize,
        mut write: impl FnMut(usize, &mut T),
    ) -> Result<(), Stopped> {
        (0..count).try_for_each(|at| self.publish(|event| write(at, event)))
    }
}

/// Rings the merger when a producer goes. A field declared after the lane, so that the lane is
/// closed by then.
struct Farewell {
    control: Arc<Control>,
    bells: Box<[usize]>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.control.ring(&self.bells);
    }
}

struct Lane<T> {
    reader: Reader<Laned<T>>,
    /// The producer's bell, rung when there is room again.
    bell: Box<[usize]>,
    closed: bool,
}

pub(super) struct Merger<T> {
    lanes: Vec<Lane<T>>,
    /// The lane to begin with, so that none comes last each time.
    turn: usize,
    publisher: Option<Publisher<T>>,
    timeline: Arc<Timeline>,
    control: Arc<Control>,
    bells: Box<[usize]>,
}

/// Makes `count` lanes of `capacity` elements each and their merger. Lane `i` waits on bell
/// `first_bell + i`, or on the caller's for lane 0.
pub(super) fn lanes<T: Send + Sync + 'static>(
    setup: Setup<'_, T>,
    mut factory: impl FnMut() -> T,
) -> Result<(Vec<Producer<T>>, Merger<T>), crate::ring::broadcast::BuildError> {
    let mut producers = Vec::new();
    let mut lanes = Vec::new();
    let rung = |bell| -> Box<[usize]> {
        match setup.rings {
            true => [bell].into(),
            false => Box::default(),
        }
    };
    for &bell in setup.bells {
        let mut builder = Builder::new(setup.capacity);
        builder.writer(&[]);
        let (lane, readers) = builder.build(|| Laned {
            value: factory(),
            published: 0,
        })?;
        producers.push(Producer {
            lane,
            clock: Clock::global(),
            merger: Farewell {
                control: Arc::clone(setup.control),
                bells: rung(setup.merger_bell),
            },
            timeline: Arc::clone(setup.timeline),
            waiter: (setup.waiter)(),
            bell,
        });
        lanes.extend(readers.into_iter().map(|reader| Lane {
            reader,
            bell: rung(bell),
            closed: false,
        }));
    }
    let merger = Merger {
        lanes,
        turn: 0,
        publisher: Some(setup.publisher),
        timeline: Arc::clone(setup.timeline),
        control: Arc::clone(setup.control),
        bells: Box::default(),
    };
    Ok((producers, merger))
}

/// What lanes are made from.
pub(super) struct Setup<'s, T> {
    pub(super) publisher: Publisher<T>,
    pub(super) capacity: usize,
    pub(super) timeline: &'s Arc<Timeline>,
    pub(super) control: &'s Arc<Control>,
    /// A bell per lane.
    pub(super) bells: &'s [usize],
    pub(super) merger_bell: usize,
    /// Whether anybody may sleep.
    pub(super) rings: bool,
    pub(super) waiter: &'s dyn Fn() -> Waiter,
}

impl<T: Send + Sync> Merger<T> {
    /// Moves up to a round of elements from one lane.
    fn take(&mut self, at: usize) -> bool {
        let (Some(publisher), lane) = (&mut self.publisher, &mut self.lanes[at]) else {
            return false;
        };
        let waiting = match lane.reader.poll() {
            Polled::Ready(waiting) => waiting,
            Polled::Empty => return false,
            Polled::Closed => {
                lane.closed = true;
                return false;
            }
        };
        let wanted = waiting.min(ROUND);
        let mut count = publisher.free(wanted).min(wanted);
        if count == 0 {
            count = publisher.free_early(1).min(wanted);
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
        if fault::is("lane_unrung") {
            return moved > 0;
        }
        self.control.ring(&lane.bell);
        moved > 0
    }
}

impl<T: Send + Sync> Merger<T> {
    /// Whether the ring can be closed: every lane is empty, and no producer is left or waited for.
    fn is_over(&mut self) -> bool {
        if fault::is("abandon_order") {
            let mut lanes = self.lanes.iter_mut();
            let is_empty = lanes.all(|lane| !matches!(lane.reader.poll(), Polled::Ready(_)));
            return is_empty && self.control.is_abandoned();
        }
        // First this, then the lanes: what the owner put there before is seen.
        let is_abandoned = self.control.is_abandoned();
        let is_abandoned = is_abandoned && !fault::is("abandon_unseen");
        self.lanes.iter_mut().all(|lane| {
            lane.closed || (is_abandoned && !matches!(lane.reader.poll(), Polled::Ready(_)))
        })
    }
}

impl<T: Send + Sync> Merge for Merger<T> {
    fn merge(&mut self) -> bool {
        let mut moved = false;
        for step in 0..self.lanes.len() {
            let at = (self.turn + step) % self.lanes.len();
            moved |= self.take(at);
        }
        self.turn = (self.turn + 1) % self.lanes.len().max(1);
        if !moved && self.is_over() {
            moved |= self.publisher.take().is_some();
        }
        if moved {
            self.control.ring(&self.bells);
        }
        moved
    }

    fn is_ready(&mut self) -> bool {
        let Some(publisher) = &mut self.publisher else {
            return false;
        };
        let room = publisher.free_early(1) > 0;
        // First this, as in `is_over`.
        let is_abandoned = self.control.is_abandoned();
        let (mut is_open, mut is_full) = (false, false);
        for lane in self.lanes.iter_mut().filter(|lane| !lane.closed) {
            is_open = true;
            match lane.reader.poll() {
                Polled::Ready(_) if !room => is_full = true,
                Polled::Empty => {}
                _ => return true,
            }
        }
        // An abandoned pipeline has its end behind what is in the lanes.
        !is_open || (is_abandoned && (!is_full || fault::is("abandon_full")))
    }

    fn is_done(&self) -> bool {
        self.publisher.is_none()
    }

    fn seat(&mut self, bells: Box<[usize]>) {
        self.bells = bells;
    }
}
