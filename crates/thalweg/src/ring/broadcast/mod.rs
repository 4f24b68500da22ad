//! One-to-many: the ring that a pipeline runs on.
//!
//! The slots are filled once by a factory and used again and again, so nothing is allocated, moved
//! or dropped while events flow. One [`RingPublisher`] writes; any number of readers follow, each
//! behind the readers that it names. A [`Reader`] either looks or changes the element in place.
//!
//! # State
//! - `published`: elements `0..published` have been written.
//! - per reader `done`: this reader is finished with elements `0..done`.
//! - per reader `early`: it has given elements `0..early` back before it says so in `done`, for a
//!   publisher that finds no room otherwise. On a line of its own: `done`, which publisher and
//!   later readers look at again and again, would go to and fro with each element.
//! - slot of element `s`: `slots[s & mask]`; per group of shards a table `route[s & mask]`.
//!
//! # Rules
//! 1. The publisher writes element `s` only while `s >= published`, and only after every last
//!    reader (one that no reader comes after) has `done > s - slots`, or `early`.
//! 2. A reader touches element `s` only while `done <= s < limit`, where `limit` is the smallest
//!    `done` of the readers that it comes after, or `published` if there are none.
//! 3. A reader that writes is ordered against every other reader: one comes after the other,
//!    directly or through others. [`RingBuilder::build`] refuses a graph where that does not hold.
//! 4. Shards of one group are the exception to rule 3: each touches only the elements whose route
//!    names it, and a route is written by the publisher before it publishes and not again until
//!    rule 1 gives it the slot back.
//! 5. Readers of one thread may stand in a `ReaderChain`, where each works on an element in its
//!    turn and all are released afterwards; `chain.rs` says when that comes to the same as rule 2.
//! 6. `published`, each `done` and each `early` have one writer, never fall, are stored with
//!    `Release` after the work on the elements and loaded with `Acquire` before it.
//!
//! # Why it works
//! Take two accesses to one slot, at least one of them a write. *RingPublisher and reader*: the
//! reader comes first in the slot's earlier life (rule 1: its `done`, or that of a last reader that
//! observed it, was acquired) or later in the same life (rule 2: its limit descends from
//! `published`). *Reader and reader*: rule 3 orders them, and rule 2 makes the later one wait for
//! the `done` of the earlier one, through a chain of release/acquire pairs (rule 6). *Shards of one
//! group*: never the same element (rule 4).

use super::sequence::Sequence;
use super::sync::{Arc, AtomicU32, Ordering, UnsafeCell, order};

pub(crate) use chain::{Lent, Loan, ReaderChain, Single};
pub use graph::{GraphError, ReaderId, RingBuilder};
pub(crate) use publisher::Published;
pub use publisher::{RingPublisher, SlotClaim, SlotError};
pub use reader::{Availability, Progress, Reader};

mod chain;
mod graph;
#[cfg(all(test, loom))]
mod models;
mod publisher;
mod reader;
#[cfg(all(test, not(loom)))]
mod tests;

/// One element on lines of its own, so that two stages at work on adjacent ones don't share a line.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<T>(UnsafeCell<T>);

const PUBLISHER_GONE: u32 = 1;
const READER_GONE: u32 = 2;

/// The part of a ring that its endpoints share.
#[derive(Debug)]
struct Shared<T> {
    published: Arc<Sequence>,
    done: Box<[Arc<Sequence>]>,
    /// The position up to which each reader gave slots back early; it means nothing unless it is
    /// above `done`.
    early: Box<[Arc<Sequence>]>,
    gone: AtomicU32,
    slots: Box<[Slot<T>]>,
    /// One table per group of shards.
    routes: Box<[Box<[AtomicU32]>]>,
}

// SAFETY: rules 1 to 4 let at most one thread write a slot at a time and none read it meanwhile;
// elements move between threads (`Send`), and several readers may look at one at once (`Sync`).
unsafe impl<T: Send + Sync> Sync for Shared<T> {}
// SAFETY: as above; the whole ring moves with the last endpoint that drops it.
unsafe impl<T: Send + Sync> Send for Shared<T> {}

impl<T> Shared<T> {
    fn new(slots: usize, readers: usize, groups: usize, mut factory: impl FnMut() -> T) -> Self {
        let sequences = || (0..readers).map(|_| Arc::new(Sequence::new(0))).collect();
        let table = || (0..slots).map(|_| AtomicU32::new(0)).collect();
        Self {
            published: Arc::new(Sequence::new(0)),
            done: sequences(),
            early: sequences(),
            gone: AtomicU32::new(0),
            slots: (0..slots)
                .map(|_| Slot(UnsafeCell::new(factory())))
                .collect(),
            routes: (0..groups).map(|_| table()).collect(),
        }
    }

    #[inline(always)]
    fn index(&self, sequence: u64) -> usize {
        self.slots().index(sequence)
    }

    #[inline(always)]
    fn slot(&self, sequence: u64) -> &UnsafeCell<T> {
        &self.slots().at(sequence).0
    }

    #[inline(always)]
    fn slots(&self) -> Slots<'_, T> {
        Slots(&self.slots)
    }

    fn leave(&self, who: u32) {
        // ORDERING: Release (order::close), pairs with the Acquire in `gone()`; what this endpoint
        // published or released before is seen by a thread that sees that it left.
        self.gone.fetch_or(who, order::close());
    }

    fn gone(&self) -> u32 {
        // ORDERING: Acquire (order::closed), pairs with `leave()`.
        self.gone.load(order::closed())
    }
}

/// All slots, to find one by its element.
struct Slots<'r, T>(&'r [Slot<T>]);

impl<'r, T> Slots<'r, T> {
    #[inline(always)]
    fn index(&self, sequence: u64) -> usize {
        // The cast keeps the low bits, which are all that the mask lets through.
        sequence as usize & (self.0.len() - 1)
    }

    #[inline(always)]
    fn at(&self, sequence: u64) -> &'r Slot<T> {
        &self.0[self.index(sequence)]
    }
}

/// Returns the smallest of several readers' `done`.
#[inline]
fn slowest(readers: &[Arc<Sequence>], order: Ordering) -> u64 {
    let mut slowest = u64::MAX;
    for reader in readers {
        // ORDERING: the caller's; pairs with the Release in `Reader::release_until`.
        slowest = slowest.min(reader.load(order));
    }
    slowest
}

type Ring<T> = Arc<Shared<T>>;

/// Calls that most tests make: a look at all elements, and then the release.
#[cfg(test)]
impl<T> Reader<T> {
    fn for_each(&mut self, max: usize, mut look: impl FnMut(u64, &T)) -> usize {
        let count = self.visit(max, |sequence, element| {
            look(sequence, element);
            true
        });
        self.release(count);
        count
    }

    fn change(&mut self, max: usize, mut work: impl FnMut(u64, &mut T)) -> usize {
        let count = self.visit_mut(max, |sequence, element| {
            work(sequence, element);
            true
        });
        self.release(count);
        count
    }
}

/// The access that a reader has to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Shard { group: usize, shard: u32 },
}

type Route<T> = Box<dyn Fn(&T) -> usize + Send>;

struct Group<T> {
    route: Route<T>,
    shards: usize,
}
