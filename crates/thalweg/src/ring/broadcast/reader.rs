//! The reading ends: observe → work → release.

use super::{PUBLISHER_GONE, READER_GONE, Ring, slowest};
use crate::ring::sequence::Sequence;
use crate::ring::sync::{Arc, Ordering, is_model_over, order};

/// What a reader finds when it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// So many elements may be worked on, at least one.
    Ready(usize),
    /// Nothing now.
    Empty,
    /// Nothing now or ever: the publisher has gone and everything was worked on, or another reader
    /// has gone before the end.
    Closed,
}

/// How far a reader has come, for whoever wants to watch it.
#[derive(Debug, Clone)]
pub struct Progress(pub(super) Arc<Sequence>);

impl Progress {
    /// Elements that the reader has released.
    pub fn released(&self) -> u64 {
        // ORDERING: Relaxed; a figure for people, nothing is read on its strength.
        self.0.load(Ordering::Relaxed)
    }
}

/// A place in the ring, and how far it may go.
#[derive(Debug)]
pub(super) struct Cursor<T> {
    /// Our `done`; only this endpoint stores the shared one.
    pub(super) next: u64,
    /// Elements below this may be touched (rule 2), as last seen. Below `next` after a
    /// [`Line`](super::Line) has led this reader on.
    limit: u64,
    /// What we come after: `published`, or the `done` of the first reader that we name.
    source: Arc<Sequence>,
    /// The `done` of the others that we name.
    others: Box<[Arc<Sequence>]>,
    pub(super) done: Arc<Sequence>,
    pub(super) early: Arc<Sequence>,
    pub(super) ring: Ring<T>,
    /// The group and the number of the shard that this reader is. Here, so that both kinds of
    /// reader look the same.
    pub(super) shard: Option<(usize, u32)>,
}

impl<T> Cursor<T> {
    fn new(ring: Ring<T>, id: usize, after: Vec<usize>, shard: Option<(usize, u32)>) -> Self {
        let mut after = after.into_iter().map(|id| Arc::clone(&ring.done[id]));
        Self {
            next: 0,
            limit: 0,
            source: after.next().unwrap_or_else(|| Arc::clone(&ring.published)),
            others: after.collect(),
            done: Arc::clone(&ring.done[id]),
            early: Arc::clone(&ring.early[id]),
            ring,
            shard,
        }
    }

    /// Looks again at those before us.
    #[inline(always)]
    pub(super) fn look(&mut self) {
        // ORDERING: Acquire (order::observe), pairs with the Release in `Claim::commit_first` or in
        // `Cursor::release` of a reader before us: its work on the elements is done and visible
        // (rule 6).
        self.limit = self.source.load(order::observe());
        if !self.others.is_empty() {
            self.look_at_others();
        }
    }

    #[inline(never)]
    fn look_at_others(&mut self) {
        // ORDERING: Acquire (order::observe), as in `look`.
        self.limit = self.limit.min(slowest(&self.others, order::observe()));
    }

    #[inline(always)]
    pub(super) fn available(&mut self) -> usize {
        if self.limit <= self.next {
            self.look();
        }
        (self.limit - self.next) as usize
    }

    pub(super) fn poll(&mut self) -> Polled {
        match self.available() {
            0 => self.poll_end(),
            ready => Polled::Ready(ready),
        }
    }

    #[cold]
    fn poll_end(&mut self) -> Polled {
        let gone = self.ring.gone();
        if gone == 0 {
            return Polled::Empty;
        }
        // Whoever left had published or released before that, so one more look is the last word.
        self.look();
        if self.limit != self.next {
            return Polled::Ready((self.limit - self.next) as usize);
        }
        // ORDERING: Acquire (order::observe), pairs with `commit_first`; the final count, since
        // `gone` was acquired after the publisher's last store.
        let published = self.ring.published.load(order::observe());
        if gone & READER_GONE != 0 || (gone & PUBLISHER_GONE != 0 && self.next == published) {
            Polled::Closed
        } else {
            Polled::Empty
        }
    }

    #[inline(always)]
    pub(super) fn release(&mut self, until: u64) {
        self.next = until;
        // ORDERING: Release (order::release), pairs with the Acquire in `Cursor::look` of the
        // readers behind us and in `Publisher::free`; our work on the elements comes before theirs
        // (rule 6).
        self.done.store(until, order::release());
    }
}

impl<T> Cursor<T> {
    /// As [`release`](Self::release), but tells only a publisher that finds no room otherwise,
    /// until the next release. Only where nobody comes after this reader.
    #[inline(always)]
    pub(super) fn give_back(&mut self, until: u64) {
        self.next = until;
        // ORDERING: Release (order::release), pairs with the Acquire in `Publisher::free_early`;
        // our work on the elements comes before the publisher's (rule 6).
        self.early.store(until, order::release());
    }

    /// The next element, and how many are known to be there.
    #[inline(always)]
    pub(super) fn seen(&self) -> (u64, usize) {
        (self.next, self.limit.saturating_sub(self.next) as usize)
    }

    /// What this reader comes after.
    pub(super) fn befores(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        std::iter::once(&self.source).chain(&self.others)
    }
}

impl<T> Drop for Cursor<T> {
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

macro_rules! common {
    ($name:ident) => {
        impl<T> $name<T> {
            /// Looks for elements. Costs one load per reader that this one comes after, and none
            /// while elements seen earlier are left.
            #[inline]
            pub fn poll(&mut self) -> Polled {
                self.cursor.poll()
            }

            /// Elements that may be worked on now, as [`poll`](Self::poll) finds them; 0 also at
            /// the end.
            #[inline(always)]
            pub fn waiting(&mut self) -> usize {
                self.cursor.available()
            }

            /// As [`waiting`](Self::waiting), and looks anew though elements seen earlier are left.
            #[inline]
            pub fn waiting_now(&mut self) -> usize {
                self.cursor.look();
                self.waiting()
            }

            /// The next element's sequence; equal to the number of elements released so far.
            #[inline]
            pub fn next_sequence(&self) -> u64 {
                self.cursor.next
            }

            /// Gives back the next `count` elements: readers behind this one may touch them from
            /// now on, whether or not this one did.
            ///
            /// # Panics
            /// If `count` is more than [`poll`](Self::poll) or a visit found.
            #[inline(always)]
            pub fn release(&mut self, count: usize) {
                let seen = self.cursor.limit.saturating_sub(self.cursor.next);
                assert!(
                    count as u64 <= seen,
                    "release of {count} elements, {seen} seen"
                );
                let until = self.cursor.next + count as u64;
                self.cursor.release(until);
            }

            /// A handle that tells how far this reader has come.
            pub fn progress(&self) -> Progress {
                Progress(Arc::clone(&self.cursor.done))
            }
        }
    };
}

/// A reader that looks at elements while others may look too.
#[derive(Debug)]
pub struct ReadOnly<T> {
    pub(super) cursor: Cursor<T>,
}

common!(ReadOnly);

impl<T> ReadOnly<T> {
    pub(super) fn new(ring: Ring<T>, id: usize, after: Vec<usize>) -> Self {
        Self {
            cursor: Cursor::new(ring, id, after, None),
        }
    }

    /// Calls `look(sequence, element)` for up to `max` elements until it says `false`; gives the
    /// number of elements for which it said `true`. Releases nothing.
    #[inline(always)]
    pub fn visit(&mut self, max: usize, mut look: impl FnMut(u64, &T) -> bool) -> usize {
        let first = self.cursor.next;
        let count = self.cursor.available().min(max);
        for sequence in first..first + count as u64 {
            let slot = self.cursor.ring.slot(sequence);
            // SAFETY: rule 2: `sequence` is below our limit and not yet released; rule 3: nobody
            // writes it.
            if !slot.with(|slot| look(sequence, unsafe { &*slot })) {
                return (sequence - first) as usize;
            }
        }
        count
    }

    /// Calls `look(sequence, element)` for up to `max` elements, then releases them together; gives
    /// their number. If `look` panics, none of them is released.
    #[inline]
    pub fn for_each(&mut self, max: usize, mut look: impl FnMut(u64, &T)) -> usize {
        let count = self.visit(max, |sequence, element| {
            look(sequence, element);
            true
        });
        self.release(count);
        count
    }
}

/// A reader that changes elements in place: all of them, or those of its shard.
#[derive(Debug)]
pub struct ReadWrite<T> {
    pub(super) cursor: Cursor<T>,
}

common!(ReadWrite);

impl<T> ReadWrite<T> {
    pub(super) fn new(
        ring: Ring<T>,
        id: usize,
        after: Vec<usize>,
        shard: Option<(usize, u32)>,
    ) -> Self {
        Self {
            cursor: Cursor::new(ring, id, after, shard),
        }
    }

    /// Whether element `sequence`, which must be within reach, is this reader's to change.
    #[inline]
    pub fn owns(&self, sequence: u64) -> bool {
        let Some((group, shard)) = self.cursor.shard else {
            return true;
        };
        let route = &self.cursor.ring.routes[group][self.cursor.ring.index(sequence)];
        // ORDERING: Relaxed; made visible by the Acquire in `look` (rule 4).
        route.load(Ordering::Relaxed) == shard
    }

    /// Calls `work(sequence, element)` for those of up to `max` elements that are this reader's
    /// until it says `false`; gives the number of elements passed, other shards' included. Releases
    /// nothing.
    #[inline(always)]
    pub fn visit(&mut self, max: usize, mut work: impl FnMut(u64, &mut T) -> bool) -> usize {
        let first = self.cursor.next;
        let count = self.cursor.available().min(max);
        for sequence in first..first + count as u64 {
            if !self.owns(sequence) {
                continue;
            }
            let slot = self.cursor.ring.slot(sequence);
            // SAFETY: rule 2: `sequence` is below our limit and not yet released; rules 3 and 4:
            // nobody else may touch it until we release it.
            if !slot.with_mut(|slot| work(sequence, unsafe { &mut *slot })) {
                return (sequence - first) as usize;
            }
        }
        count
    }

    /// Calls `work(sequence, element)` for those of up to `max` elements that are this reader's,
    /// then releases all of them together; gives their number, other shards' included. If `work`
    /// panics, none is released.
    #[inline]
    pub fn for_each(&mut self, max: usize, mut work: impl FnMut(u64, &mut T)) -> usize {
        let count = self.visit(max, |sequence, element| {
            work(sequence, element);
            true
        });
        self.release(count);
        count
    }
}
