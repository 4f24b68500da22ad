//! The writing end: claim → write → publish.

use super::{Group, PUBLISHER_GONE, Progress, READER_GONE, Ring, slowest};
use crate::ring::prefetch_for_writing;
use crate::ring::sequence::Sequence;
use crate::ring::sync::{Arc, Ordering, UnsafeCell, order};

/// The reason why slots can't be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotError {
    /// Fewer slots are free than were asked for. A later try may succeed, when the slowest reader
    /// has released more.
    Full,
    /// A reader was dropped before it had read all elements, so no slot will be freed any more.
    Closed,
}

errors!(SlotError {
    Self::Full => "the ring has too few free slots";
    Self::Closed => "a reader of the ring has gone";
});

/// The one writer of a broadcast ring. Dropping it closes the ring: readers still get all published
/// elements.
///
/// # Memory ordering
/// A write through a [`SlotClaim`] before `commit` happens before any reader's access to it.
pub struct RingPublisher<T> {
    ring: Ring<T>,
    /// The next element to publish; only this endpoint stores `published`.
    next: u64,
    /// Elements below this may be written (rule 1), as last seen.
    free_until: u64,
    last: Box<[Arc<Sequence>]>,
    early: Box<[Arc<Sequence>]>,
    groups: Box<[Group<T>]>,
}

shown!([T] RingPublisher<T>, "RingPublisher", this, "next": this.next);

impl<T> RingPublisher<T> {
    pub(super) fn new(ring: Ring<T>, last: &[usize], groups: Vec<Group<T>>) -> Self {
        let free_until = ring.slots.len() as u64;
        let of = |sequences: &[Arc<Sequence>]| {
            let last = last.iter().map(|&reader| Arc::clone(&sequences[reader]));
            last.collect()
        };
        Self {
            next: 0,
            free_until,
            last: of(&ring.done),
            early: of(&ring.early),
            groups: groups.into(),
            ring,
        }
    }

    /// Returns the number of slots of the ring.
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// Returns the sequence that the next published element gets; equal to the number published so
    /// far.
    #[inline]
    pub fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Returns a handle to the number of published elements, for another thread.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.ring.published))
    }

    /// Returns whether a slot is known to be free.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.free_until > self.next
    }

    /// Returns a number of slots that are free, at least. It reads the readers' positions again
    /// only if fewer than `wanted` are known to be free.
    #[inline(always)]
    pub fn free(&mut self, wanted: usize) -> usize {
        if self.free_until - self.next < wanted as u64 {
            // ORDERING: Acquire (order::reclaim), pairs with the Release in
            // `Reader::release_until`: the last readers' accesses to a slot come before we write it
            // again (rules 1 and 6).
            let slowest = slowest(&self.last, order::reclaim());
            let until = slowest + self.ring.slots.len() as u64;
            self.free_until = self.free_until.max(until);
        }
        (self.free_until - self.next) as usize
    }

    /// Works as [`free`](Self::free), and counts the slots that readers released early
    /// ([`Reader::release_early`](super::Reader::release_early)). For a caller that finds no free
    /// slot otherwise: each call takes a cache line away from those readers.
    #[inline(never)]
    pub fn free_including_early(&mut self, wanted: usize) -> usize {
        if self.free(wanted) < wanted {
            let mut slowest = u64::MAX;
            for (done, early) in self.last.iter().zip(&self.early) {
                // ORDERING: Acquire (order::reclaim), pairs with the Release in
                // `Reader::release_early`, as in `free`.
                let early = early.load(order::reclaim());
                // ORDERING: Acquire (order::reclaim), as in `free`.
                slowest = slowest.min(early.max(done.load(order::reclaim())));
            }
            self.free_until = slowest + self.ring.slots.len() as u64;
        }
        (self.free_until - self.next) as usize
    }

    /// Returns whether every reader has released all published elements.
    pub fn is_drained(&self) -> bool {
        // ORDERING: Acquire (order::reclaim), pairs with `Reader::release_until`; the caller may
        // rely on the readers' work being visible.
        slowest(&self.last, order::reclaim()) == self.next
    }

    /// Returns whether a reader was dropped before it had read all elements.
    pub fn is_closed(&self) -> bool {
        self.ring.gone() & READER_GONE != 0
    }

    /// Claims the next `count` slots. Readers see nothing before [`SlotClaim::commit`]; a claim
    /// that is dropped publishes nothing, and the next claim overwrites its slots.
    ///
    /// # Errors
    /// [`SlotError::Full`] if fewer than `count` slots are free (always so above the capacity),
    /// [`SlotError::Closed`] if a reader was dropped before it had read all elements.
    #[inline(always)]
    pub fn claim(&mut self, count: usize) -> Result<SlotClaim<'_, T>, SlotError> {
        if self.free(count) < count {
            return Err(if self.is_closed() {
                SlotError::Closed
            } else {
                SlotError::Full
            });
        }
        Ok(SlotClaim {
            publisher: self,
            count,
        })
    }

    /// Writes and publishes one element.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    #[inline]
    pub fn publish(&mut self, write: impl FnOnce(&mut T)) -> Result<(), SlotError> {
        let mut claim = self.claim(1)?;
        claim.write(0, write);
        claim.commit();
        Ok(())
    }

    /// Writes and publishes one element. Takes fewer instructions than a claim.
    ///
    /// # Panics
    /// Unless a slot is [known to be free](Self::has_room).
    #[inline(always)]
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut T)) -> Published<'_, T> {
        assert!(self.has_room(), "no slot is known to be free");
        let (ring, sequence) = (&self.ring, self.next);
        let (slot, ahead) = (ring.slot(sequence), ring.slots().at(sequence + 1));
        // SAFETY: rule 1, as in `SlotClaim::write`.
        slot.with_mut(|slot| write(unsafe { &mut *slot }));
        if !self.groups.is_empty() {
            self.route(1);
        }
        self.next = sequence + 1;
        // ORDERING: Release (order::publish), as in `SlotClaim::commit_first`.
        ring.published.store(self.next, order::publish());
        if self.free_until > self.next {
            prefetch_for_writing(ahead);
        }
        Published {
            ring,
            slot,
            sequence,
        }
    }

    /// Notes for the next `count` elements which shard of each group they belong to.
    #[inline(never)]
    fn route(&self, count: usize) {
        for (group, table) in self.groups.iter().zip(&self.ring.routes) {
            for sequence in self.next..self.next + count as u64 {
                // SAFETY: rule 1, as in `write`.
                let shard = self
                    .ring
                    .slot(sequence)
                    .with(|slot| (group.route)(unsafe { &*slot }) % group.shards);
                // ORDERING: Relaxed; published by the Release below and not changed until the slot
                // is free again (rule 4).
                table[self.ring.index(sequence)].store(shard as u32, Ordering::Relaxed);
            }
        }
    }
}

impl<T> Drop for RingPublisher<T> {
    fn drop(&mut self) {
        self.ring.leave(PUBLISHER_GONE);
    }
}

/// An element that this thread has published last: its publisher is borrowed.
pub(crate) struct Published<'p, T> {
    pub(super) ring: &'p Ring<T>,
    pub(super) slot: &'p UnsafeCell<T>,
    pub(super) sequence: u64,
}

/// Slots that the publisher has claimed and may write; no other thread can see them.
#[derive(Debug)]
#[must_use = "a claim that is not committed publishes nothing"]
pub struct SlotClaim<'p, T> {
    publisher: &'p mut RingPublisher<T>,
    count: usize,
}

impl<T> SlotClaim<'_, T> {
    /// Returns the sequence of the first slot.
    #[inline]
    pub fn first_sequence(&self) -> u64 {
        self.publisher.next
    }

    /// Writes slot `at` of the claim, from 0. The slot holds what an earlier element left there.
    ///
    /// # Panics
    /// If `at` is not below the number of claimed slots; and if `write` panics, which publishes
    /// nothing.
    #[inline(always)]
    pub fn write<R>(&mut self, at: usize, write: impl FnOnce(&mut T) -> R) -> R {
        assert!(at < self.count, "slot {at} of a claim of {}", self.count);
        let slot = self.publisher.ring.slot(self.publisher.next + at as u64);
        // SAFETY: rule 1: the slot is at or above `published`, below `free_until`, and we are the
        // publisher, borrowed mutably.
        slot.with_mut(|slot| write(unsafe { &mut *slot }))
    }

    /// Publishes the whole claim.
    #[inline(always)]
    pub fn commit(self) {
        let count = self.count;
        self.commit_first(count);
    }

    /// Publishes the first `count` slots of the claim and releases the others.
    ///
    /// # Panics
    /// If `count` is above the number of claimed slots.
    #[inline(always)]
    pub fn commit_first(self, count: usize) {
        assert!(
            count <= self.count,
            "commit of {count} in a claim of {}",
            self.count
        );
        let publisher = self.publisher;
        if !publisher.groups.is_empty() {
            publisher.route(count);
        }
        publisher.next += count as u64;
        // ORDERING: Release (order::publish), pairs with the Acquire in `Reader::refresh`;
        // publishes slots and routes (rule 6).
        publisher
            .ring
            .published
            .store(publisher.next, order::publish());
        if publisher.has_room() {
            prefetch_for_writing(publisher.ring.slots().at(publisher.next));
        }
    }
}
