//! The part of a one-to-one ring that its two endpoints share, and how its last owner frees it.
//!
//! *Two owners.* The allocation belongs to both endpoints. Each, as the last thing in its `drop`,
//! swaps `left` to true; the side that finds it true already is second, and frees. Why that is
//! sound:
//! - Exactly one frees. The two swaps are on one atomic, so one is first; it finds false. The
//!   second reads what the first wrote: true.
//! - The first never touches the allocation again. The swap is its last access, through a
//!   reference to the atomic alone: a `&Shared` held across the swap would claim that the rest is
//!   still there.
//! - The second sees all that the first did. The first's swap releases what came before it in its
//!   thread: the elements written, the last publish, the last head, every read of an element. The
//!   second's swap reads that very value and acquires. So its plain reads of head, published
//!   positions and elements race with nothing, and it drops exactly the elements from head to the
//!   last published one.
//! - `AcqRel` is needed on both swaps, since either can be first or second. A model weakens it and
//!   is caught (`models.rs`).
//!
//! *Late elements.* Without more, elements that were not taken stay until the second endpoint has
//! left. A channel wants them dropped at once when its receiver goes, also one that is published
//! after the consumer has looked for the last time. So the consumer's end passes from the consumer
//! to the producer, by two bits in `ending`:
//! - A producer that may have been too late sets `LATE` ([`come_late`](Shared::come_late)), and
//!   takes what is left only if it finds `DONE`.
//! - A consumer that found nothing more sets `DONE`, if `LATE` is not set
//!   ([`hand_over`](Shared::hand_over)); else it clears `LATE`, looks once more, and tries again.
//! - By the order of these changes of one word, an element that was published before `LATE` was
//!   set is met by a look of the consumer after it read that, or by the producer, which then reads
//!   `DONE`: nothing is left, and neither waits for the other.
//! - Before that, a consumer that goes on receiving asks whether a claim is `held`, which may still
//!   be published, and says so. A producer sets `held` before it looks whether the ring is closed,
//!   a consumer reads it after it has closed the ring, and both pass a barrier in between: either
//!   the claim is refused, or the consumer finds it. A claim is let go after it was published, and
//!   the consumer that acquires that looks once more.
//! - After `DONE` the consumer neither takes nor releases; the producer acquired its last head with
//!   it, and is then the only one to read and write `head` and the cells. Rules 3 and 4 hold with
//!   the producer in the consumer's place.

use std::ptr::NonNull;

use super::super::panics::drop_each;
use super::super::sequence::Sequence;
use super::super::sync::{AtomicBool, AtomicU32, Ordering, fault, order};
use super::Layout;
use super::distance::Keeper;
use super::store::{Cell, Cells, View};

/// In `ending`: something was published that the consumer may not have looked for.
const LATE: u32 = 1;
/// In `ending`: the consumer's end is the producer's now.
const DONE: u32 = 2;

/// The allocation that both endpoints point to.
// Sequences are 128-byte lines of their own; the rest is written at most twice and stays in both
// caches.
pub(super) struct Shared<T> {
    /// Positions below this are released. Stored by the consumer only.
    head: Sequence,
    /// In a packed ring, positions below this are published. Stored by the producer only.
    tail: Sequence,
    /// State that only the producer uses.
    pub(super) producer_keeper: Keeper,
    /// State that only the consumer uses.
    pub(super) consumer_keeper: Keeper,
    cells: Cells<T>,
    /// Elements that may be in the ring at once; at most the number of cells.
    pub(super) capacity: usize,
    closed: AtomicBool,
    left: AtomicBool,
    ending: AtomicU32,
    /// Written by the producer, for each of its claims: on a line of its own.
    held: Apart<AtomicBool>,
}

/// Alone on its lines.
#[repr(align(128))]
struct Apart<A>(A);

impl<T> Shared<T> {
    /// Where the cells are.
    #[inline(always)]
    pub(super) fn view(&self) -> &View<T> {
        self.cells.view()
    }

    pub(super) fn new(layout: Layout, capacity: usize, slots: usize) -> Self {
        debug_assert!(capacity <= slots);
        Self {
            head: Sequence::new(0),
            tail: Sequence::new(0),
            producer_keeper: Keeper::new(capacity),
            // A look at a slotted ring goes to the next slot, and one cell is enough for it.
            consumer_keeper: Keeper::new(match layout {
                Layout::Packed => capacity,
                Layout::Slotted => 0,
            }),
            cells: Cells::new(layout, slots),
            capacity,
            closed: AtomicBool::new(false),
            left: AtomicBool::new(false),
            ending: AtomicU32::new(0),
            held: Apart(AtomicBool::new(false)),
        }
    }

    #[inline(always)]
    pub(super) fn cell(&self, position: u64) -> &Cell<T> {
        self.view().cell(position)
    }

    /// In a packed ring: makes everything before `end` visible.
    #[inline(always)]
    pub(super) fn publish_packed(&self, end: u64) {
        // ORDERING: publish (Release), pairs with the observe in `published_packed`.
        self.tail.store(end, order::publish());
    }

    /// In a packed ring: the position up to which elements are published.
    #[inline(always)]
    fn published_packed(&self) -> u64 {
        // ORDERING: observe (Acquire), pairs with the publish in `publish_packed`.
        self.tail.load(order::observe())
    }

    /// Makes the positions from `start` up to `end` visible to the consumer, in this order.
    #[inline(always)]
    pub(super) fn publish(&self, start: u64, end: u64) {
        if !self.view().is_slotted {
            return self.publish_packed(end);
        }
        for position in start..end {
            // SAFETY: the ring is slotted.
            unsafe { self.view().slot(position) }.publish(position);
        }
    }

    /// In a slotted ring.
    #[inline(always)]
    fn is_published(&self, position: u64) -> bool {
        debug_assert!(self.view().is_slotted);
        // SAFETY: the ring is slotted; this is asked by `published` and `published_len` alone.
        unsafe { self.view().slot(position) }.is_published(position)
    }

    /// Returns the position up to which elements are published, at least `known`, which is not
    /// released. A slotted ring looks no further than `far`.
    #[inline(always)]
    pub(super) fn published(&self, known: u64, far: u64) -> u64 {
        if !self.view().is_slotted {
            return self.published_packed();
        }
        let mut end = known;
        while end < far && self.is_published(end) {
            end += 1;
        }
        end
    }

    /// Returns how many elements are published from `start` on, which is not released. In a slotted
    /// ring by bisection: published positions are a prefix of those after `start`, and stay
    /// published, since only the caller could release them.
    pub(super) fn published_len(&self, start: u64) -> usize {
        if !self.view().is_slotted {
            return (self.published_packed() - start) as usize;
        }
        let (mut known, mut beyond) = (start, start + self.capacity as u64);
        while known < beyond {
            let middle = known + (beyond - known) / 2;
            if self.is_published(middle) {
                known = middle + 1;
            } else {
                beyond = middle;
            }
        }
        (known - start) as usize
    }

    /// Gives the cells before `head` back to the producer.
    #[inline(always)]
    pub(super) fn release(&self, head: u64) {
        // ORDERING: release (Release), pairs with the reclaim in `released`; elements were taken
        // before.
        self.head.store(head, order::release());
    }

    /// Returns the position up to which cells are free again.
    #[inline(always)]
    pub(super) fn released(&self) -> u64 {
        // ORDERING: reclaim (Acquire), pairs with the release in `release`.
        self.head.load(order::reclaim())
    }

    /// Says that no more will be published, or taken. Gives back whether the ring was closed
    /// already.
    pub(super) fn close(&self) -> bool {
        // A swap, not a store: when both sides close, the later one stays in the release sequence
        // of the earlier, and the consumer still acquires what the producer published before.
        // ORDERING: close (Release), pairs with the closed in `is_closed`.
        self.closed.swap(true, order::close())
    }

    #[inline(always)]
    pub(super) fn is_closed(&self) -> bool {
        // ORDERING: closed (Acquire), pairs with the close in `close`: what was published before
        // is seen.
        self.closed.load(order::closed())
    }

    /// The producer has published something for which the consumer may have looked too early.
    pub(super) fn come_late(&self) {
        // ORDERING: late (AcqRel), pairs with the swaps in `hand_over`: the consumer sees what was
        // published before, or this has seen all that the consumer did.
        self.ending.fetch_or(LATE, order::late());
    }

    /// The consumer has found nothing and has released all that it took. Returns whether its end is
    /// now the producer's; if not, something was published meanwhile, and it must look again.
    pub(super) fn hand_over(&self) -> bool {
        if fault::is("late_missed") {
            // ORDERING: done (AcqRel); wrong with any.
            self.ending.fetch_or(DONE, order::done());
            return true;
        }
        // ORDERING: done (AcqRel), pairs with the one in `come_late` and the load in
        // `is_handed_over`: the last head; Relaxed where it fails, since the next line acquires.
        let outcome = (self.ending).compare_exchange(0, DONE, order::done(), Ordering::Relaxed);
        match outcome {
            Ok(_) | Err(DONE) => true,
            Err(_) => {
                // ORDERING: done (AcqRel), pairs with the one in `come_late`: the element that is
                // late.
                self.ending.fetch_and(!LATE, order::done());
                false
            }
        }
    }

    /// The producer holds a claim from now on, or does not any more.
    pub(super) fn hold(&self, is_held: bool) {
        // ORDERING: publish (Release), pairs with the observe in `is_held`: what the claim has
        // published.
        self.held.0.store(is_held, order::publish());
    }

    /// Returns whether the producer holds a claim; if not, what its claims have published is
    /// visible.
    pub(super) fn is_held(&self) -> bool {
        // ORDERING: observe (Acquire), pairs with the publish in `hold`.
        self.held.0.load(order::observe())
    }

    /// Returns whether the consumer's end is the producer's. The consumer knows by itself.
    pub(super) fn is_handed_over(&self) -> bool {
        // ORDERING: closed (Acquire), pairs with the done in `hand_over`: what the consumer took
        // and released.
        self.ending.load(order::closed()) & DONE != 0
    }

    /// Leaves the ring; frees it if the other endpoint has left before.
    ///
    /// # Safety
    /// Called once per endpoint, as its last access. The endpoint has released all that it took.
    pub(super) unsafe fn leave(this: NonNull<Self>) {
        // SAFETY: the other endpoint frees only after this swap; the reference covers the atomic
        // alone.
        let left = unsafe { &(*this.as_ptr()).left };
        // ORDERING: leave (AcqRel), pairs with itself in the other endpoint; see "Two owners"
        // above.
        if left.swap(true, order::leave()) {
            // SAFETY: came from `Box::leak` in `spsc`; the other endpoint is gone, this is the
            // second and last swap, so no endpoint frees it again.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        if !std::mem::needs_drop::<T>() {
            return;
        }
        // ORDERING: Relaxed; both endpoints are gone, and `leave` has acquired what they did.
        let head = self.head.load(Ordering::Relaxed);
        let mut positions = head..head + self.published_len(head) as u64;
        // SAFETY: published, not released, and no other thread is left to take it (rules 3 and 4).
        let take = |position| unsafe { self.cell(position).take() };
        drop_each(|| positions.next().map(take));
    }
}
