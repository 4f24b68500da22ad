//! Readers that one thread leads through the elements together, also a single element.

use super::{Access, Published, Reader, Ring, Slot};
use crate::ring::sequence::Sequence;
use crate::ring::sync::{Arc, UnsafeCell, fault, is_model_over, order};

/// An element in the hands of one of a line's readers.
#[derive(Debug)]
pub(crate) enum Lent<'e, T> {
    /// The reader only looks.
    Look(&'e T),
    /// The reader may change it.
    Write(&'e mut T),
}

/// `N` elements on their way through a line.
pub(crate) struct Hand<'l, T, const N: usize> {
    slots: [&'l Slot<T>; N],
    first: u64,
    /// How many of them were given back.
    given: usize,
    writers: u64,
    /// The position up to which all readers of the line are done.
    done: &'l mut u64,
    early: &'l Sequence,
}

impl<T, const N: usize> Hand<'_, T, N> {
    /// Calls `work(sequence, element)` with one of the elements in the hands of the reader at this
    /// place in the line.
    #[inline(always)]
    pub(crate) fn lend(
        &mut self,
        reader: usize,
        element: usize,
        work: impl FnOnce(u64, Lent<'_, T>),
    ) {
        assert!(element >= self.given, "the element was given back");
        let (slot, sequence) = (&self.slots[element].0, self.first + element as u64);
        if self.writers >> reader & 1 == 0 {
            // SAFETY: a closed and level line stands before this element, which is below the first
            // reader's limit (`Line::lead`) and not given back (as asserted), so no thread writes
            // it, as the line's documentation says (rules 2 and 3).
            slot.with(|slot| work(sequence, Lent::Look(unsafe { &*slot })));
        } else {
            // SAFETY: as above, and a reader that writes has it alone (rule 3). A reference that
            // was lent before does not live on.
            slot.with_mut(|slot| work(sequence, Lent::Write(unsafe { &mut *slot })));
        }
    }

    /// Gives the first of the elements that are left back, since all readers are done with it: the
    /// publisher may have its slot at once
    /// ([`RingPublisher::free_early`](super::RingPublisher::free_early)). Only where no reader
    /// comes after the last one.
    #[inline(always)]
    pub(crate) fn give_back(&mut self) {
        assert!(self.given < N, "no element left in this hand");
        self.given += 1;
        *self.done = self.first + self.given as u64;
        // ORDERING: Release (order::release), pairs with the Acquire in
        // `RingPublisher::free_early`, as in `Reader::give_back`: the work of the line on this
        // element comes before the publisher's.
        self.early.store(*self.done, order::release());
    }

    /// All of them are done with by all readers.
    #[inline(always)]
    pub(crate) fn done(self) {
        *self.done = self.first + N as u64;
    }
}

/// Readers of one thread, in the order in which it gives them turns.
///
/// They can be led through an element one after the other, without being released in between, if
/// the line is *closed*: each comes only after readers earlier in the line and those that the first
/// one comes after, and none is a shard. Then whatever the first may touch is safe for all of them:
/// those before the line have released the element (rule 2 for the first reader), those in the line
/// are on this thread, those behind it wait until it is released, which happens afterwards, and one
/// that is none of these has no order with the readers of the line, so that all of them only look
/// (rule 3).
#[derive(Debug)]
pub(crate) struct Line<T> {
    readers: Vec<Reader<T>>,
    /// The ring of the first.
    ring: Option<Ring<T>>,
    is_closed: bool,
    /// The address of the ring whose publisher the line comes right behind.
    first_of: usize,
    /// Where all of them stand, if they can be led on from there; else [`NOWHERE`]. Elements
    /// through which they were led without being released show here only, until they
    /// [`settle`](Self::settle).
    at: u64,
    /// Which of them write, by bits.
    writers: u64,
}

/// Longer lines are not led.
const READERS_MAX: usize = 64;

impl<T> Line<T> {
    pub(crate) fn new() -> Self {
        Self {
            readers: Vec::new(),
            ring: None,
            is_closed: false,
            first_of: 0,
            at: NOWHERE,
            writers: 0,
        }
    }

    /// Puts a reader at the end.
    pub(crate) fn push(&mut self, reader: Reader<T>) {
        self.settle();
        self.readers.push(reader);
        self.changed();
    }

    /// Takes the readers from `at` on out.
    pub(crate) fn split_off(&mut self, at: usize) -> Vec<Reader<T>> {
        self.settle();
        let rest = self.readers.split_off(at);
        self.changed();
        rest
    }

    fn changed(&mut self) {
        let head = self.readers.first();
        self.ring = head.map(|head| Arc::clone(&head.ring));
        let first =
            head.filter(|head| head.befores().all(|b| Arc::ptr_eq(b, &head.ring.published)));
        self.first_of = first.map_or(0, |head| address(&head.ring));
        self.is_closed = is_closed(&self.readers);
        self.at = NOWHERE;
        let writes = |reader: &Reader<T>| u64::from(reader.access != Access::Look);
        let bits = self.readers.iter().rev().map(writes);
        self.writers = bits.fold(0, |writers, writes| writers << 1 | writes);
    }

    /// Returns whether it comes right behind the publisher: a single element is the last published
    /// then.
    pub(crate) fn is_first(&self) -> bool {
        self.first_of != 0
    }

    /// Returns whether its readers can be led together.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the reader at this place, to go on alone.
    #[inline(always)]
    pub(crate) fn reader(&mut self, at: usize) -> &mut Reader<T> {
        self.settle();
        self.at = NOWHERE;
        &mut self.readers[at]
    }

    /// Returns all of them, to go on alone.
    pub(crate) fn readers(&mut self) -> &mut [Reader<T>] {
        self.settle();
        self.at = NOWHERE;
        &mut self.readers
    }

    /// Returns the first element ahead, and how many there are that all readers can be led through.
    /// None if the line is not closed, or some reader has fallen behind.
    #[inline(always)]
    pub(crate) fn ahead(&mut self) -> (u64, usize) {
        if self.at == NOWHERE && !self.level() {
            return (0, 0);
        }
        self.settle();
        (self.at, self.readers[0].waiting())
    }

    /// Releases what the readers were led through.
    #[inline(always)]
    fn settle(&mut self) {
        if self.at != NOWHERE && self.readers[0].next != self.at {
            self.settle_all();
        }
    }

    #[inline(never)]
    fn settle_all(&mut self) {
        if fault::is("unsettled") {
            return;
        }
        for reader in &mut self.readers {
            reader.release_until(self.at);
        }
    }

    /// Publishes how far the readers are, for threads that watch their progress.
    pub(crate) fn show(&self) {
        if self.at != NOWHERE {
            for reader in &self.readers {
                reader.show(self.at);
            }
        }
    }

    /// Returns whether the readers can be led on from where they are.
    #[inline(never)]
    pub(crate) fn level(&mut self) -> bool {
        let mut next = self.readers.iter().map(Reader::next_sequence);
        let first = next.next();
        let level = first.filter(|&first| self.is_closed && next.all(|next| next == first));
        self.at = level.unwrap_or(NOWHERE);
        level.is_some()
    }

    /// Returns the element [`ahead`](Self::ahead), if there is exactly one, to be led through all
    /// readers.
    #[inline(always)]
    pub(crate) fn single(&mut self) -> Option<Single<'_, T>> {
        if self.at == NOWHERE && !self.level() {
            return None;
        }
        self.settle();
        let (head, ring) = (self.readers.first_mut()?, self.ring.as_ref()?);
        (head.waiting() == 1).then(|| Single {
            slot: ring.slot(self.at),
            sequence: self.at,
            readers: &mut self.readers,
            at: &mut self.at,
        })
    }

    /// Returns the element that was just published, if all readers stand before it and come right
    /// behind its publisher: there is no other then, and no look at what others have done is
    /// needed.
    #[inline(always)]
    pub(crate) fn published<'l>(
        &'l mut self,
        published: &Published<'l, T>,
    ) -> Option<Single<'l, T>> {
        if self.at == NOWHERE {
            self.level();
        }
        let is_here = self.at == published.sequence && self.first_of == address(published.ring);
        is_here.then(|| Single {
            slot: published.slot,
            sequence: published.sequence,
            readers: &mut self.readers,
            at: &mut self.at,
        })
    }

    /// Returns the first reader that has not come as far as the head of the line, or else the head:
    /// the one at work when a [`Single`] has panicked.
    #[cold]
    pub(crate) fn behind(&self) -> usize {
        let mut next = self.readers.iter().map(Reader::next_sequence);
        let head = next.next();
        next.position(|next| Some(next) < head)
            .map_or(0, |at| at + 1)
    }

    /// Leads the readers through up to `count` elements of those [`ahead`](Self::ahead).
    #[inline(always)]
    pub(crate) fn lead(&mut self, count: usize) -> Lead<'_, T> {
        self.settle();
        let (done, seen) = match self.readers.first() {
            Some(head) if self.at != NOWHERE => head.seen(),
            _ => (0, 0),
        };
        // Readers are led only from the place where all of them are.
        let readers = match seen {
            0 => &mut [],
            _ => &mut self.readers[..],
        };
        Lead {
            readers,
            at: &mut self.at,
            writers: self.writers,
            done,
            end: done + count.min(seen) as u64,
        }
    }
}

/// Readers on their way. Dropped, also by a panic, it releases what all of them are done with.
pub(crate) struct Lead<'l, T> {
    readers: &'l mut [Reader<T>],
    at: &'l mut u64,
    writers: u64,
    done: u64,
    end: u64,
}

impl<T> Lead<'_, T> {
    /// Returns the next element.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.done
    }

    /// Returns how many elements are left.
    #[inline(always)]
    pub(crate) fn left(&self) -> usize {
        (self.end - self.done) as usize
    }

    /// Returns the next `N` elements, if there are that many: to be lent to each reader in its
    /// turn, and then marked as [`done`](Hand::done). They are returned again if they are not
    /// marked.
    #[inline(always)]
    pub(crate) fn hand<const N: usize>(&mut self) -> Option<Hand<'_, T, N>> {
        if self.end - self.done < N as u64 {
            return None;
        }
        let last = self.readers.last()?;
        let (slots, first) = (last.ring.slots(), self.done);
        Some(Hand {
            slots: std::array::from_fn(|at| slots.at(first + at as u64)),
            first,
            given: 0,
            writers: self.writers,
            done: &mut self.done,
            early: &last.early,
        })
    }
}

impl<T> Drop for Lead<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        for reader in &mut *self.readers {
            // May be above its own limit, which is not looked at here.
            reader.release_until(self.done);
            *self.at = self.done;
        }
    }
}

fn address<T>(ring: &Ring<T>) -> usize {
    Arc::as_ptr(ring) as usize
}

/// Returns whether `readers` can be led through the elements together; see [`Line`].
fn is_closed<T>(readers: &[Reader<T>]) -> bool {
    let Some((head, followers)) = readers.split_first() else {
        return false;
    };
    let ring = &head.ring;
    let mut known: Vec<&Arc<Sequence>> = vec![&ring.published];
    known.extend(head.befores());
    known.push(&head.done);
    for follower in followers {
        let is_known =
            |before| known.iter().any(|known| Arc::ptr_eq(known, before)) || fault::is("line_open");
        if follower.is_shard()
            || !Arc::ptr_eq(&follower.ring, ring)
            || !follower.befores().all(is_known)
        {
            return false;
        }
        known.push(&follower.done);
    }
    readers.len() <= READERS_MAX && !head.is_shard()
}

/// Not an element: the readers of a line do not all stand at the same one.
const NOWHERE: u64 = u64::MAX;

/// Readers before the only element that is there. Takes fewer instructions than `Lead`.
pub(crate) struct Single<'l, T> {
    pub(super) slot: &'l UnsafeCell<T>,
    pub(super) sequence: u64,
    readers: &'l mut [Reader<T>],
    /// The line's.
    pub(super) at: &'l mut u64,
}

impl<T> Single<'_, T> {
    /// Calls `work(its mate, sequence, element)` for each reader, and releases it (`EACH`), or all
    /// of them when another thread looks: only where no other thread waits for them.
    ///
    /// # Panics
    /// If there are fewer `mates` than readers.
    #[inline(always)]
    pub(crate) fn lead<const EACH: bool, M>(
        self,
        mates: &mut [M],
        mut work: impl FnMut(&mut M, u64, Lent<'_, T>),
    ) {
        let (slot, sequence) = (self.slot, self.sequence);
        let mates = &mut mates[..self.readers.len()];
        let mut way = Way {
            single: self,
            passed: 0,
        };
        for (reader, mate) in way.single.readers.iter_mut().zip(mates) {
            let mut work = |element: Lent<'_, T>| work(mate, sequence, element);
            match reader.access {
                // SAFETY: as in `Hand::lend`: a closed and level line stood before this element,
                // which is below the first reader's limit, or would be if that had looked since
                // this thread published it (`Line::published`). This reader has not released it.
                Access::Look => slot.with(|slot| work(Lent::Look(unsafe { &*slot }))),
                // SAFETY: as above, and a reader that writes has it alone (rule 3).
                _ => slot.with_mut(|slot| work(Lent::Write(unsafe { &mut *slot }))),
            }
            if EACH {
                reader.release_until(sequence + 1);
            }
            way.passed += 1;
        }
        *way.single.at = sequence + 1;
        std::mem::forget(way);
    }
}

/// How far a [`Single`] has come, for a panic: there is nothing to write down without one.
struct Way<'l, T> {
    single: Single<'l, T>,
    passed: usize,
}

impl<T> Drop for Way<'_, T> {
    #[inline(always)] // else it would be in memory
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        *self.single.at = NOWHERE;
        for (at, reader) in self.single.readers.iter_mut().enumerate() {
            reader.release_until(self.single.sequence + u64::from(at < self.passed));
        }
    }
}
