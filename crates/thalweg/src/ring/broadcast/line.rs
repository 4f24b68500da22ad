//! Readers that one thread leads through the elements together.

use super::{Reader, Slots};
use crate::ring::sequence::Sequence;
use crate::ring::sync::{Arc, is_model_over, order};
use std::cell::Cell;

/// An element in the hands of one of a line's readers.
#[derive(Debug)]
pub(crate) enum Lent<'e, T> {
    /// The reader only looks.
    Look(&'e T),
    /// The reader may change it.
    Write(&'e mut T),
}

/// Some elements on their way through a line.
pub(crate) struct Hand<'l, T> {
    slots: Slots<'l, T>,
    first: u64,
    count: usize,
    writers: u64,
    /// What all readers of the line are done with.
    done: &'l Cell<u64>,
    early: &'l Sequence,
}

impl<T> Hand<'_, T> {
    /// How many elements there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Calls `work(sequence, element)` with one of the elements in the hands of the reader at this
    /// place in the line.
    #[inline(always)]
    pub(crate) fn lend(
        &mut self,
        reader: usize,
        element: usize,
        work: impl FnOnce(u64, Lent<'_, T>),
    ) {
        assert!(element < self.count, "no such element in this hand");
        let sequence = self.first + element as u64;
        let slot = &self.slots.at(sequence).0;
        if self.writers >> reader & 1 == 0 {
            // SAFETY: a closed and level line stands before this element, which is below the first
            // reader's limit (`Line::lead`) and not given back (`give_back` keeps count), so nobody
            // writes it, as the line's documentation says (rules 2 and 3).
            slot.with(|slot| work(sequence, Lent::Look(unsafe { &*slot })));
        } else {
            // SAFETY: as above, and a reader that writes has it alone (rule 3). What was lent
            // before does not live on.
            slot.with_mut(|slot| work(sequence, Lent::Write(unsafe { &mut *slot })));
        }
    }

    /// The first of the elements is done with by all readers: the publisher may have its slot at
    /// once ([`Publisher::free_early`](super::Publisher::free_early)). Only where nobody comes
    /// after the last reader.
    #[inline(always)]
    pub(crate) fn give_back(&mut self) {
        assert!(self.count > 0, "no element left in this hand");
        self.count -= 1;
        self.first += 1;
        self.done.set(self.first);
        // ORDERING: Release (order::release), pairs with the Acquire in `Publisher::free_early`, as
        // in `Cursor::give_back`: the work of the line on this element comes before the
        // publisher's.
        self.early.store(self.first, order::release());
    }
}

/// Readers of one thread, in the order in which it gives them turns.
///
/// They can be led through an element one after the other, without being released in between, if
/// the line is *closed*: each comes after nobody but readers earlier in the line and those that the
/// first one comes after, and none is a shard. Then whatever the first may touch is safe for all of
/// them: those before the line have released the element (rule 2 for the first reader), those in
/// the line are on this thread, those behind it wait until it is released, which happens
/// afterwards, and one that is none of these has no order with the readers of the line, so that all
/// of them only look (rule 3).
#[derive(Debug)]
pub(crate) struct Line<T> {
    readers: Vec<Reader<T>>,
    is_closed: bool,
    /// All stand at the same element.
    is_level: bool,
    /// Which of them write, by bits.
    writers: u64,
}

/// Longer lines are not led.
const READERS_MAX: usize = 64;

impl<T> Line<T> {
    pub(crate) fn new() -> Self {
        Self {
            readers: Vec::new(),
            is_closed: false,
            is_level: false,
            writers: 0,
        }
    }

    /// Puts a reader at the end.
    pub(crate) fn push(&mut self, reader: Reader<T>) {
        self.readers.push(reader);
        self.changed();
    }

    /// Takes the readers from `at` on out.
    pub(crate) fn split_off(&mut self, at: usize) -> Vec<Reader<T>> {
        let rest = self.readers.split_off(at);
        self.changed();
        rest
    }

    fn changed(&mut self) {
        self.is_closed = is_closed(&self.readers);
        self.is_level = false;
        let writes = |reader: &Reader<T>| u64::from(matches!(reader, Reader::Write(_)));
        let bits = self.readers.iter().rev().map(writes);
        self.writers = bits.fold(0, |writers, writes| writers << 1 | writes);
    }

    /// The reader at this place, to go on alone.
    #[inline(always)]
    pub(crate) fn reader(&mut self, at: usize) -> &mut Reader<T> {
        self.is_level = false;
        &mut self.readers[at]
    }

    /// All of them, to go on alone.
    pub(crate) fn readers(&mut self) -> &mut [Reader<T>] {
        self.is_level = false;
        &mut self.readers
    }

    /// The first element ahead, and how many there are that all readers can be led through. None if
    /// the line is not closed, or some reader has fallen behind.
    #[inline(always)]
    pub(crate) fn ahead(&mut self) -> (u64, usize) {
        if !self.is_level && !self.level() {
            return (0, 0);
        }
        let head = self.readers[0].cursor();
        (head.next, head.available())
    }

    /// Whether the readers can be led on from where they are.
    #[inline(never)]
    pub(crate) fn level(&mut self) -> bool {
        let mut next = self.readers.iter().map(Reader::next_sequence);
        let first = next.next();
        self.is_level = self.is_closed && next.all(|next| Some(next) == first);
        self.is_level
    }

    /// Leads the readers through up to `count` elements of those [`ahead`](Self::ahead), a handful
    /// at a time: calls `work(hand)`, which lends each element to each reader in its turn. Releases
    /// the elements at the end, all together. Gives how many there were.
    ///
    /// If `work` panics, the elements of its hand stay, and those before are released.
    #[inline(always)]
    pub(crate) fn lead(
        &mut self,
        count: usize,
        handful: usize,
        mut work: impl FnMut(&mut Hand<'_, T>),
    ) -> usize {
        if !self.is_level {
            return 0;
        }
        let (first, seen) = self.readers[0].cursor().seen();
        let lead = Lead {
            readers: &mut self.readers,
            done: Cell::new(first),
        };
        let last = lead.readers[lead.readers.len() - 1].peek();
        let count = count.min(seen);
        let end = first + count as u64;
        while lead.done.get() < end {
            let first = lead.done.get();
            let count = ((end - first) as usize).min(handful);
            work(&mut Hand {
                slots: last.ring.slots(),
                first,
                count,
                writers: self.writers,
                done: &lead.done,
                early: &last.early,
            });
            lead.done.set(first + count as u64);
        }
        count
    }
}

/// Readers on their way. Dropped, also by a panic, it releases what all of them are done with.
struct Lead<'l, T> {
    readers: &'l mut [Reader<T>],
    done: Cell<u64>,
}

impl<T> Drop for Lead<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        for reader in &mut *self.readers {
            // May be above its own limit, which is not looked at here.
            reader.cursor().release(self.done.get());
        }
    }
}

/// Whether `readers` can be led through the elements together; see [`Line`].
fn is_closed<T>(readers: &[Reader<T>]) -> bool {
    let Some((head, followers)) = readers.split_first() else {
        return false;
    };
    let ring = &head.peek().ring;
    let mut known: Vec<&Arc<Sequence>> = vec![&ring.published];
    known.extend(head.peek().befores());
    known.push(&head.peek().done);
    for follower in followers {
        let is_known = |before| known.iter().any(|known| Arc::ptr_eq(known, before));
        #[cfg(loom)]
        let is_known = |before| crate::ring::sync::fault::is("line_open") || is_known(before);
        let cursor = follower.peek();
        if follower.is_shard()
            || !Arc::ptr_eq(&cursor.ring, ring)
            || !cursor.befores().all(is_known)
        {
            return false;
        }
        known.push(&cursor.done);
    }
    readers.len() <= READERS_MAX && !head.is_shard()
}
