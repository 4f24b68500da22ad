//! The readers of one thread, which it can take through each element one after the other.

use super::{Access, Published, Reader, Ring, Slot};
use crate::ring::sequence::Sequence;
use crate::ring::sync::{Arc, UnsafeCell, fault, is_model_over, order};

/// An element that is lent to one reader of a chain.
#[derive(Debug)]
pub(crate) enum Lent<'e, T> {
    /// The reader only reads it.
    Shared(&'e T),
    /// The reader may change it.
    Mut(&'e mut T),
}

/// `N` elements that are lent to the readers of a chain, one reader after the other.
pub(crate) struct Loan<'l, T, const N: usize> {
    slots: [&'l Slot<T>; N],
    first: u64,
    /// The number of elements that were given back.
    given: usize,
    writers: u64,
    /// The position up to which all readers of the chain are done.
    done: &'l mut u64,
    early: &'l Sequence,
}

impl<T, const N: usize> Loan<'_, T, N> {
    /// Calls `work(sequence, element)` with one of the elements, lent to the reader at this index
    /// in the chain.
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
            // SAFETY: all readers of a chain that can run stand before this element, which is below
            // the first reader's limit (`ReaderChain::run`) and not given back (as asserted), so no
            // thread writes it, as the chain's documentation says (rules 2 and 3).
            slot.with(|slot| work(sequence, Lent::Shared(unsafe { &*slot })));
        } else {
            // SAFETY: as above, and no other reader may access what this one writes (rule 3). A
            // reference that was lent before does not live on.
            slot.with_mut(|slot| work(sequence, Lent::Mut(unsafe { &mut *slot })));
        }
    }

    /// Releases the first element that is left early, since all readers are done with it: the
    /// publisher may write its slot at once
    /// ([`RingPublisher::free_including_early`](super::RingPublisher::free_including_early)). Only
    /// where no reader comes after the last one.
    #[inline(always)]
    pub(crate) fn release_early(&mut self) {
        assert!(self.given < N, "no element left in this loan");
        self.given += 1;
        *self.done = self.first + self.given as u64;
        // ORDERING: Release (order::release), pairs with the Acquire in
        // `RingPublisher::free_including_early`, as in `Reader::release_early`: the work of the
        // chain on this element comes before the publisher's.
        self.early.store(*self.done, order::release());
    }

    /// Marks that all readers are done with all of the elements.
    #[inline(always)]
    pub(crate) fn done(self) {
        *self.done = self.first + N as u64;
    }
}

/// Readers of one thread, in the order in which it gives them turns.
///
/// A chain *can run*: take all its readers through an element one after the other, and release it
/// afterwards, if each reader comes only after earlier readers of the chain and those that the
/// first one comes after, and none is a shard. Then an element that the first may access is safe
/// for all of them: readers before the chain have released it (rule 2 for the first reader), those
/// in the chain are on this thread, those behind the chain wait until it is released, and any other
/// reader is not ordered against those of the chain, so that all of them only read (rule 3).
#[derive(Debug)]
pub(crate) struct ReaderChain<T> {
    readers: Vec<Reader<T>>,
    /// The ring of the first reader.
    ring: Option<Ring<T>>,
    can_run: bool,
    /// The address of the ring, if the first reader depends on nothing but its publisher.
    first_of: usize,
    /// The element before which all readers stand, if the chain can run from there; else
    /// [`UNALIGNED`]. Elements that have passed the chain and are not released count here only,
    /// until [`settle`](Self::settle).
    at: u64,
    /// A bit for each reader that writes.
    writers: u64,
}

/// A chain of more readers cannot run.
const READERS_MAX: usize = 64;

impl<T> ReaderChain<T> {
    pub(crate) fn new() -> Self {
        Self {
            readers: Vec::new(),
            ring: None,
            can_run: false,
            first_of: 0,
            at: UNALIGNED,
            writers: 0,
        }
    }

    /// Appends a reader.
    pub(crate) fn push(&mut self, reader: Reader<T>) {
        self.settle();
        self.readers.push(reader);
        self.changed();
    }

    /// Removes and returns the readers from index `at` on.
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
        self.can_run = can_run(&self.readers);
        self.at = UNALIGNED;
        let writes = |reader: &Reader<T>| u64::from(reader.access != Access::Read);
        let bits = self.readers.iter().rev().map(writes);
        self.writers = bits.fold(0, |writers, writes| writers << 1 | writes);
    }

    /// Returns whether the chain depends on nothing but the publisher: a single element is the last
    /// published then.
    pub(crate) fn is_first(&self) -> bool {
        self.first_of != 0
    }

    /// Returns whether the chain can run; see [`ReaderChain`].
    pub(crate) fn can_run(&self) -> bool {
        self.can_run
    }

    /// Returns the reader at index `at`, to advance it alone.
    #[inline(always)]
    pub(crate) fn reader(&mut self, at: usize) -> &mut Reader<T> {
        self.settle();
        self.at = UNALIGNED;
        &mut self.readers[at]
    }

    /// Returns all readers, to advance each alone.
    pub(crate) fn readers(&mut self) -> &mut [Reader<T>] {
        self.settle();
        self.at = UNALIGNED;
        &mut self.readers
    }

    /// Returns the next element, and the number of elements with which the chain can run; 0 if it
    /// cannot, or a reader is behind the others.
    #[inline(always)]
    pub(crate) fn ahead(&mut self) -> (u64, usize) {
        if self.at == UNALIGNED && !self.align() {
            return (0, 0);
        }
        self.settle();
        (self.at, self.readers[0].waiting())
    }

    /// Releases the elements that have passed the chain.
    #[inline(always)]
    fn settle(&mut self) {
        if self.at != UNALIGNED && self.readers[0].next != self.at {
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

    /// Publishes the progress of the readers, for threads that watch it.
    pub(crate) fn publish_progress(&self) {
        if self.at != UNALIGNED {
            for reader in &self.readers {
                reader.publish_progress(self.at);
            }
        }
    }

    /// Finds out whether the chain can run from where its readers stand, and returns it.
    #[inline(never)]
    pub(crate) fn align(&mut self) -> bool {
        let mut next = self.readers.iter().map(Reader::next_sequence);
        let first = next.next();
        let aligned = first.filter(|&first| self.can_run && next.all(|next| next == first));
        self.at = aligned.unwrap_or(UNALIGNED);
        aligned.is_some()
    }

    /// Returns the element [`ahead`](Self::ahead), if there is exactly one, to take all readers
    /// through it.
    #[inline(always)]
    pub(crate) fn single(&mut self) -> Option<Single<'_, T>> {
        if self.at == UNALIGNED && !self.align() {
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

    /// Returns the element that was just published, if all readers stand before it and depend on
    /// nothing but its publisher: then it is the only one, and no sequence of other readers has to
    /// be loaded.
    #[inline(always)]
    pub(crate) fn published<'l>(
        &'l mut self,
        published: &Published<'l, T>,
    ) -> Option<Single<'l, T>> {
        if self.at == UNALIGNED {
            self.align();
        }
        let is_here = self.at == published.sequence && self.first_of == address(published.ring);
        is_here.then(|| Single {
            slot: published.slot,
            sequence: published.sequence,
            readers: &mut self.readers,
            at: &mut self.at,
        })
    }

    /// Returns the index of the first reader that is behind the first of the chain, or else 0: the
    /// reader at work when a [`Single`] has panicked.
    #[cold]
    pub(crate) fn behind(&self) -> usize {
        let mut next = self.readers.iter().map(Reader::next_sequence);
        let head = next.next();
        next.position(|next| Some(next) < head)
            .map_or(0, |at| at + 1)
    }

    /// Takes the readers through up to `count` elements of those [`ahead`](Self::ahead).
    #[inline(always)]
    pub(crate) fn run(&mut self, count: usize) -> ChainRun<'_, T> {
        self.settle();
        let (done, seen) = match self.readers.first() {
            Some(head) if self.at != UNALIGNED => head.seen(),
            _ => (0, 0),
        };
        // The chain runs only from an element before which all readers stand.
        let readers = match seen {
            0 => &mut [],
            _ => &mut self.readers[..],
        };
        ChainRun {
            readers,
            at: &mut self.at,
            writers: self.writers,
            done,
            end: done + count.min(seen) as u64,
        }
    }
}

/// A run of a chain through several elements. Its drop, also in a panic, releases the elements that
/// all readers are done with.
pub(crate) struct ChainRun<'l, T> {
    readers: &'l mut [Reader<T>],
    at: &'l mut u64,
    writers: u64,
    done: u64,
    end: u64,
}

impl<T> ChainRun<'_, T> {
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
    /// turn, and then marked as [`done`](Loan::done). Without the mark, the next call returns the
    /// same elements.
    #[inline(always)]
    pub(crate) fn loan<const N: usize>(&mut self) -> Option<Loan<'_, T, N>> {
        if self.end - self.done < N as u64 {
            return None;
        }
        let last = self.readers.last()?;
        let (slots, first) = (last.ring.slots(), self.done);
        Some(Loan {
            slots: std::array::from_fn(|at| slots.at(first + at as u64)),
            first,
            given: 0,
            writers: self.writers,
            done: &mut self.done,
            early: &last.early,
        })
    }
}

impl<T> Drop for ChainRun<'_, T> {
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

/// Returns whether a chain of `readers` can run; see [`ReaderChain`].
fn can_run<T>(readers: &[Reader<T>]) -> bool {
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

/// Stands for no element: the readers of a chain do not all stand before the same one.
const UNALIGNED: u64 = u64::MAX;

/// A run of a chain through the only element that waits. It takes fewer instructions than
/// [`ChainRun`].
pub(crate) struct Single<'l, T> {
    pub(super) slot: &'l UnsafeCell<T>,
    pub(super) sequence: u64,
    readers: &'l mut [Reader<T>],
    /// The field of the chain.
    pub(super) at: &'l mut u64,
}

impl<T> Single<'_, T> {
    /// Calls `work(state, sequence, element)` for each reader, with the state at its index. With
    /// `EACH`, it releases the element of each reader at once; without, the chain does when it
    /// settles, which is only for readers that no other thread waits for.
    ///
    /// # Panics
    /// If there are fewer `states` than readers.
    #[inline(always)]
    pub(crate) fn run<const EACH: bool, M>(
        self,
        states: &mut [M],
        mut work: impl FnMut(&mut M, u64, Lent<'_, T>),
    ) {
        let (slot, sequence) = (self.slot, self.sequence);
        let states = &mut states[..self.readers.len()];
        let mut unfinished = Unfinished {
            single: self,
            passed: 0,
        };
        for (reader, state) in unfinished.single.readers.iter_mut().zip(states) {
            let mut work = |element: Lent<'_, T>| work(state, sequence, element);
            match reader.access {
                // SAFETY: as in `Loan::lend`: all readers of a chain that can run stood before this
                // element, which is below the first reader's limit, or would be if that reader had
                // loaded the sequence since this thread published it (`ReaderChain::published`).
                // This reader has not released it.
                Access::Read => slot.with(|slot| work(Lent::Shared(unsafe { &*slot }))),
                // SAFETY: as above, and no other reader may access what this one writes (rule 3).
                _ => slot.with_mut(|slot| work(Lent::Mut(unsafe { &mut *slot }))),
            }
            if EACH {
                reader.release_until(sequence + 1);
            }
            unfinished.passed += 1;
        }
        *unfinished.single.at = sequence + 1;
        std::mem::forget(unfinished);
    }
}

/// A [`Single`] that is under way: dropped by a panic, it stores how far the readers came.
struct Unfinished<'l, T> {
    single: Single<'l, T>,
    passed: usize,
}

impl<T> Drop for Unfinished<'_, T> {
    #[inline(always)] // else it would be in memory
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        *self.single.at = UNALIGNED;
        for (at, reader) in self.single.readers.iter_mut().enumerate() {
            reader.release_until(self.single.sequence + u64::from(at < self.passed));
        }
    }
}
