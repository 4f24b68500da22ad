//! The reading ends: observe → work → release.

use super::{Access, PUBLISHER_GONE, READER_GONE, Ring, slowest};
use crate::ring::sequence::Sequence;
use crate::ring::sync::{Arc, Ordering, is_model_over, order};

/// Whether a reader has elements to visit, from [`Reader::poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// The number of elements that the reader may visit, at least 1.
    Ready(usize),
    /// No element may be visited now.
    Empty,
    /// No element will come any more: the publisher was dropped and the reader has released all
    /// elements, or another reader was dropped before it had.
    Closed,
}

/// A handle to the progress of a reader, or of the publisher, for another thread.
#[derive(Debug, Clone)]
pub struct Progress(pub(super) Arc<Sequence>);

impl Progress {
    /// Returns the number of elements that the reader has released, or the publisher has published.
    pub fn released(&self) -> u64 {
        // ORDERING: Relaxed; a figure for people, nothing is read on its strength.
        self.0.load(Ordering::Relaxed)
    }
}

/// A reader of a broadcast ring: it reads elements, or changes them in place (all of them, or those
/// of its shard), as it was declared.
#[derive(Debug)]
pub struct Reader<T> {
    /// Our `done`; only this endpoint stores the shared one.
    pub(super) next: u64,
    /// Elements below this may be touched (rule 2), as last seen. Below `next` after a
    /// [`ReaderChain`](super::ReaderChain) has led this reader on.
    limit: u64,
    /// The sequence that we come after: `published`, or the `done` of the first reader that we
    /// name.
    source: Arc<Sequence>,
    /// The `done` of the others that we name.
    others: Box<[Arc<Sequence>]>,
    pub(super) done: Arc<Sequence>,
    pub(super) early: Arc<Sequence>,
    pub(super) ring: Ring<T>,
    pub(super) access: Access,
}

impl<T> Reader<T> {
    pub(super) fn new(ring: Ring<T>, id: usize, after: Vec<usize>, access: Access) -> Self {
        let mut after = after.into_iter().map(|id| Arc::clone(&ring.done[id]));
        Self {
            next: 0,
            limit: 0,
            source: after.next().unwrap_or_else(|| Arc::clone(&ring.published)),
            others: after.collect(),
            done: Arc::clone(&ring.done[id]),
            early: Arc::clone(&ring.early[id]),
            ring,
            access,
        }
    }

    /// Reads the progress of those before us again.
    #[inline(always)]
    fn refresh(&mut self) {
        // ORDERING: Acquire (order::observe), pairs with the Release in `SlotClaim::commit_first`
        // or in `Reader::release_until` of a reader before us: its work on the elements is done and
        // visible (rule 6).
        self.limit = self.source.load(order::observe());
        if !self.others.is_empty() {
            self.refresh_by_others();
        }
    }

    #[inline(never)]
    fn refresh_by_others(&mut self) {
        // ORDERING: Acquire (order::observe), as in `refresh`.
        self.limit = self.limit.min(slowest(&self.others, order::observe()));
    }

    /// Returns whether there are elements to visit. It costs one load per reader that this one
    /// depends on, and none while elements found earlier are left.
    #[inline]
    pub fn poll(&mut self) -> Availability {
        match self.waiting() {
            0 => self.poll_end(),
            ready => Availability::Ready(ready),
        }
    }

    #[cold]
    fn poll_end(&mut self) -> Availability {
        let gone = self.ring.gone();
        if gone == 0 {
            return Availability::Empty;
        }
        // An endpoint that left had published or released before that, so what it sees now is
        // final.
        self.refresh();
        if self.limit != self.next {
            return Availability::Ready((self.limit - self.next) as usize);
        }
        // ORDERING: Acquire (order::observe), pairs with `commit_first`; the final count, since
        // `gone` was acquired after the publisher's last store.
        let published = self.ring.published.load(order::observe());
        if gone & READER_GONE != 0 || (gone & PUBLISHER_GONE != 0 && self.next == published) {
            Availability::Closed
        } else {
            Availability::Empty
        }
    }

    /// Returns the number of elements that may be visited now, as [`poll`](Self::poll) finds them;
    /// 0 also when no more will come.
    #[inline(always)]
    pub fn waiting(&mut self) -> usize {
        if self.limit <= self.next {
            self.refresh();
        }
        (self.limit - self.next) as usize
    }

    /// Works as [`waiting`](Self::waiting), but checks again even if elements found earlier are
    /// left.
    #[inline]
    pub fn waiting_now(&mut self) -> usize {
        self.refresh();
        self.waiting()
    }

    /// Returns the next element's sequence; equal to the number of elements released so far.
    #[inline(always)]
    pub fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Returns the next element, and how many are known to be there.
    #[inline(always)]
    pub(super) fn seen(&self) -> (u64, usize) {
        (self.next, self.limit.saturating_sub(self.next) as usize)
    }

    /// Returns the sequences that this reader comes after.
    pub(super) fn befores(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        std::iter::once(&self.source).chain(&self.others)
    }

    pub(crate) fn is_shard(&self) -> bool {
        matches!(self.access, Access::Shard { .. })
    }

    /// Returns whether element `sequence`, which this reader must be able to visit, is this
    /// reader's: always, unless it is a shard.
    #[inline(always)]
    pub fn owns(&self, sequence: u64) -> bool {
        let Access::Shard { group, shard } = self.access else {
            return true;
        };
        let route = &self.ring.routes[group][self.ring.index(sequence)];
        // ORDERING: Relaxed; made visible by the Acquire in `refresh` (rule 4).
        route.load(Ordering::Relaxed) == shard
    }

    /// Calls `look(sequence, element)` for up to `max` elements until it returns `false`; returns
    /// the number of elements for which it returned `true`. It releases none.
    ///
    /// # Panics
    /// If this reader is a shard: that needs [`visit_mut`](Self::visit_mut).
    #[inline(always)]
    pub fn visit(&mut self, max: usize, mut look: impl FnMut(u64, &T) -> bool) -> usize {
        assert!(!self.is_shard(), "a shard has not all elements to look at");
        let first = self.next;
        let count = self.waiting().min(max);
        for sequence in first..first + count as u64 {
            let slot = self.ring.slot(sequence);
            // SAFETY: rule 2: `sequence` is below our limit and not yet released; rule 3: no thread
            // writes it.
            if !slot.with(|slot| look(sequence, unsafe { &*slot })) {
                return (sequence - first) as usize;
            }
        }
        count
    }

    /// Calls `work(sequence, element)` for those of up to `max` elements that are this reader's
    /// until it returns `false`; returns the number of elements passed, including those of other
    /// shards. It releases none.
    ///
    /// # Panics
    /// If this reader was declared to only read.
    #[inline(always)]
    pub fn visit_mut(&mut self, max: usize, mut work: impl FnMut(u64, &mut T) -> bool) -> usize {
        assert!(self.access != Access::Read, "this reader only reads");
        let first = self.next;
        let count = self.waiting().min(max);
        for sequence in first..first + count as u64 {
            if !self.owns(sequence) {
                continue;
            }
            let slot = self.ring.slot(sequence);
            // SAFETY: rule 2: `sequence` is below our limit and not yet released; rules 3 and 4:
            // this reader writes, so no other thread may touch it until we release it.
            if !slot.with_mut(|slot| work(sequence, unsafe { &mut *slot })) {
                return (sequence - first) as usize;
            }
        }
        count
    }

    /// Releases the next `count` elements: readers that depend on this one may visit them from now
    /// on, whether or not this one did.
    ///
    /// # Panics
    /// If `count` is more than [`poll`](Self::poll) or a visit found.
    #[inline(always)]
    pub fn release(&mut self, count: usize) {
        let (next, seen) = self.seen();
        assert!(count <= seen, "release of {count} elements, {seen} seen");
        self.release_until(next + count as u64);
    }

    #[inline(always)]
    pub(super) fn release_until(&mut self, until: u64) {
        self.next = until;
        self.publish_progress(until);
    }

    /// Publishes that elements below `until` are released.
    #[inline(always)]
    pub(super) fn publish_progress(&self, until: u64) {
        // ORDERING: Release (order::release), pairs with the Acquire in `refresh` of the readers
        // behind us and in `RingPublisher::free`; our work on the elements comes before theirs
        // (rule 6).
        self.done.store(until, order::release());
    }

    /// Releases the next element as [`release`](Self::release) does, at a lower cost: before the
    /// next release (of 0 elements, for example) only a publisher that [finds no free
    /// slot](super::RingPublisher::free_including_early) sees it. It is only for a reader on which
    /// no other depends.
    ///
    /// # Panics
    /// If no element was found.
    #[inline(always)]
    pub fn release_early(&mut self) {
        assert!(self.seen().1 > 0, "no element to release");
        self.next += 1;
        // ORDERING: Release (order::release), pairs with the Acquire in
        // `RingPublisher::free_including_early`; our work on the elements comes before the
        // publisher's (rule 6).
        self.early.store(self.next, order::release());
    }

    /// Returns a handle to the number of elements that this reader has released.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.done))
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        // A reader that leaves at the end is no loss; one that leaves earlier stops the ring, since
        // the elements that it will never release can't be used again.
        let gone = self.ring.gone();
        // ORDERING: Acquire (order::observe), pairs with `commit_first`.
        let published = self.ring.published.load(order::observe());
        if gone & PUBLISHER_GONE == 0 || self.next != published {
            self.ring.leave(READER_GONE);
        }
    }
}
