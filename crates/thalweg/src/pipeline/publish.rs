//! Publishing from the thread that owns the pipeline.

use std::sync::Arc;

use super::control::Failure;
use super::lanes::Producer;
use super::timeline::Timeline;
use crate::ring::broadcast::{Claim, ClaimError, Publisher};

/// The pipeline takes no more events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The stage that panicked, if that is why.
    pub failure: Option<Failure>,
}

/// Why an event was not published.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryPublishError {
    /// Every slot holds an event that some stage still needs.
    Full,
    /// No event will be taken any more.
    Stopped(Stopped),
}

errors! {
    Stopped {
        Self { failure: Some(failure) } => "the pipeline has stopped: {failure}";
        Self { failure: None } => "the pipeline has stopped";
    }
    TryPublishError {
        Self::Full => "the pipeline is full";
        Self::Stopped(stopped) => "{stopped}";
    }
}

/// The ring's publisher with the stamping of sampled events.
pub(super) struct Direct<T> {
    pub(super) publisher: Publisher<T>,
    timeline: Arc<Timeline>,
    /// The next event to be sampled.
    next_sample: u64,
}

impl<T> Direct<T> {
    pub(super) fn new(publisher: Publisher<T>, timeline: Arc<Timeline>) -> Self {
        let next_sample = timeline.sampled_in(0);
        Self {
            publisher,
            timeline,
            next_sample,
        }
    }

    /// Whether there is room for the next event, and nothing to measure. The event before a sampled
    /// one goes the same way, so that this is not the first time in a while: its code and what the
    /// processor foresees of it would else count.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.publisher.has_room() && self.publisher.next_sequence() + 1 < self.next_sample
    }

    /// Opens the row of the next event if it is sampled, and gives the time then. Before it is
    /// written: an event counts from the call that publishes it.
    pub(super) fn stamp(&mut self) -> Option<u64> {
        let end = self.publisher.next_sequence() + 1;
        stamp(&self.timeline, &mut self.next_sample, end)
    }

    /// Writes and publishes `count` events; gives the time if one of them is sampled.
    #[inline]
    pub(super) fn publish(
        &mut self,
        count: usize,
        write: impl FnOnce(&mut Claim<'_, T>),
    ) -> Result<Option<u64>, ClaimError> {
        let mut claim = self.publisher.claim(count)?;
        let end = claim.first_sequence() + count as u64;
        let stamp = stamp(&self.timeline, &mut self.next_sample, end);
        write(&mut claim);
        claim.commit();
        Ok(stamp)
    }
}

/// Opens the rows of the sampled events before `end`; gives the time if there is one.
#[inline]
fn stamp(timeline: &Timeline, next_sample: &mut u64, end: u64) -> Option<u64> {
    if *next_sample >= end {
        return None;
    }
    let now = timeline.watch.now();
    while *next_sample < end {
        timeline.open(*next_sample, now);
        let block = timeline.block_of(*next_sample);
        *next_sample = timeline.sampled_in(block + 1);
    }
    Some(now)
}

/// How the owner's events get into the ring.
pub(super) enum Intake<T> {
    /// The owner is the only producer.
    Direct(Direct<T>),
    /// One of several lanes.
    Lane(Box<Producer<T>>),
    /// No more events from the owner.
    Closed,
}

impl<T> Intake<T> {
    /// Free slots, at least; looks anew only if fewer than `wanted` are known.
    #[inline]
    pub(super) fn room(&mut self, wanted: usize) -> usize {
        match self {
            Intake::Direct(direct) => direct.publisher.free(wanted),
            Intake::Lane(producer) => producer.lane.free(wanted),
            Intake::Closed => 0,
        }
    }

    /// As [`room`](Self::room) for one event, and counts each slot that the last stages gave back.
    pub(super) fn any_room(&mut self) -> usize {
        #[cfg(shuttle)]
        if crate::ring::sync::fault::is("room_unseen") {
            return self.room(1);
        }
        match self {
            Intake::Direct(direct) => direct.publisher.free_early(1),
            _ => self.room(1),
        }
    }

    /// Whether nothing will be taken any more.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Intake::Direct(direct) => direct.publisher.is_closed(),
            Intake::Lane(producer) => producer.lane.is_closed(),
            Intake::Closed => true,
        }
    }
}
