//! What the two endpoints of a one-to-one ring share, and how its last owner frees it.
//!
//! *Two owners.* The allocation belongs to both endpoints. Each, as the last thing in its `drop`,
//! swaps `left` to true; who finds it true already is second, and frees. Why that is sound:
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
//! *What comes late.* Without more, elements that nobody took stay until the second has left. A
//! channel wants them dropped at once when its receiver goes, also one that is published after the
//! consumer has looked for the last time. So the consumer's end passes from the consumer to the
//! producer, by two bits in `ending`:
//! - A producer that may have been too late sets `LATE` ([`come_late`](Shared::come_late)), and
//!   takes what is left only if it finds `DONE`.
//! - A consumer that found nothing more sets `DONE`, if `LATE` is not set
//!   ([`hand_over`](Shared::hand_over)); else it clears `LATE`, looks once more, and tries again.
//! - By the order of these changes of one word, an element that was published before `LATE` was
//!   set is met by a look of the consumer after it read that, or by the producer, which then reads
//!   `DONE`: nothing is left, and neither waits for the other.
//! - After `DONE` the consumer neither takes nor releases; the producer acquired its last head with
//!   it, and is then the only one to read and write `head` and the cells. Rules 3 and 4 hold with
//!   the producer in the consumer's place.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::super::sequence::Sequence;
use super::super::sync::{AtomicBool, AtomicU32, Ordering, UnsafeCell, fault, order};
use super::Layout;
use super::distance::Keeper;
use super::packed::Packed;
use super::slotted::Slotted;
use super::view::View;

/// In `ending`: something was published that the consumer may not have looked for.
const LATE: u32 = 1;
/// In `ending`: the consumer's end is the producer's now.
const DONE: u32 = 2;

/// Room for one element; who may touch it when is in the rules of `spsc`.
#[repr(transparent)]
pub(super) struct Cell<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Cell<T> {
    pub(super) fn empty() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// The caller is the producer and has claimed this cell (rule 2).
    #[inline(always)]
    pub(super) unsafe fn write(&self, value: T) {
        // SAFETY: claimed, so nobody else reads or writes here (rule 2).
        self.0.with_mut(|cell| unsafe { (*cell).write(value) });
    }

    /// # Safety
    /// The cell holds an element that the caller alone may take, and takes once (rules 3 and 4).
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> T {
        // SAFETY: initialised, and not written again before it is released (rule 3).
        self.0.with(|cell| unsafe { (*cell).assume_init_read() })
    }

    /// # Safety
    /// The cell holds an element, and the caller may take it but does not as long as the reference
    /// lives (rule 3).
    pub(super) unsafe fn peek(&self) -> &T {
        // SAFETY: initialised, and not written again before it is released (rule 3).
        self.0.with(|cell| unsafe { (*cell).assume_init_ref() })
    }
}

/// One of the two storage cores.
#[allow(clippy::large_enum_variant)] // one per ring, and in one allocation with it
enum Store<T> {
    Packed(Packed<T>),
    Slotted(Slotted<T>),
}

/// The allocation that both endpoints point to.
// Sequences are 128-byte lines of their own; the rest is written at most twice and stays in both
// caches.
pub(super) struct Shared<T> {
    /// Positions below this are released. Stored by the consumer only.
    head: Sequence,
    /// In a packed ring, positions below this are published. Stored by the producer only.
    tail: Sequence,
    /// Of the producer only.
    pub(super) producer_keeper: Keeper,
    /// Of the consumer only.
    pub(super) consumer_keeper: Keeper,
    store: Store<T>,
    /// Elements that may be in the ring at once; at most the number of cells.
    capacity: usize,
    closed: AtomicBool,
    left: AtomicBool,
    ending: AtomicU32,
}

impl<T> Shared<T> {
    /// Where the cells are.
    pub(super) fn view(&self) -> View<T> {
        match &self.store {
            Store::Packed(packed) => View::packed(packed),
            Store::Slotted(slotted) => View::slotted(slotted),
        }
    }

    pub(super) fn new(layout: Layout, capacity: usize, slots: usize) -> Self {
        debug_assert!(capacity <= slots);
        let store = match layout {
            Layout::Packed => Store::Packed(Packed::new(slots)),
            Layout::Slotted => Store::Slotted(Slotted::new(slots)),
        };
        Self {
            head: Sequence::new(0),
            tail: Sequence::new(0),
            producer_keeper: Keeper::new(capacity),
            // A look at a slotted ring goes to the next slot.
            consumer_keeper: match layout {
                Layout::Packed => Keeper::new(capacity),
                Layout::Slotted => Keeper::of_one_cell(),
            },
            store,
            capacity,
            closed: AtomicBool::new(false),
            left: AtomicBool::new(false),
            ending: AtomicU32::new(0),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn layout(&self) -> Layout {
        match &self.store {
            Store::Packed(_) => Layout::Packed,
            Store::Slotted(_) => Layout::Slotted,
        }
    }

    #[inline(always)]
    pub(super) fn cell(&self, position: u64) -> &Cell<T> {
        match &self.store {
            Store::Packed(packed) => packed.cell(position),
            Store::Slotted(slotted) => slotted.cell(position),
        }
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

    /// Makes the positions from `start` up to `end` visible to the consumer.
    #[inline(always)]
    pub(super) fn publish(&self, start: u64, end: u64) {
        match &self.store {
            Store::Packed(_) => self.publish_packed(end),
            Store::Slotted(slotted) => slotted.publish(start, end),
        }
    }

    /// The position up to which elements are published, at least `known`, which is not released. A
    /// slotted ring looks no further than `far`.
    #[inline(always)]
    pub(super) fn published(&self, known: u64, far: u64) -> u64 {
        match &self.store {
            Store::Packed(_) => self.published_packed(),
            Store::Slotted(slotted) => slotted.published(known, far),
        }
    }

    /// How many elements are published from `start` on, which is not released.
    pub(super) fn published_len(&self, start: u64) -> usize {
        let end = match &self.store {
            Store::Packed(_) => self.published_packed(),
            Store::Slotted(slotted) => slotted.published_by_bisection(start, self.capacity as u64),
        };
        (end - start) as usize
    }

    /// Gives the cells before `head` back to the producer.
    #[inline(always)]
    pub(super) fn release(&self, head: u64) {
        // ORDERING: release (Release), pairs with the reclaim in `released`; elements were taken
        // before.
        self.head.store(head, order::release());
    }

    /// The position up to which cells are free again.
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

    /// The consumer has found nothing and has released all that it took. Gives whether its end is
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

    /// Whether the consumer's end is the producer's. The consumer knows by itself.
    pub(super) fn is_handed_over(&self) -> bool {
        // ORDERING: closed (Acquire), pairs with the done in `hand_over`: what the consumer took
        // and released.
        self.ending.load(order::closed()) & DONE != 0
    }

    /// Moves `values` into the claimed cells from `position` on.
    ///
    /// # Safety
    /// The caller is the producer and has claimed `values.len()` cells there (rule 2).
    pub(super) unsafe fn write_slice(&self, position: u64, values: &[T])
    where
        T: Copy,
    {
        let write = |cells: &[Cell<T>], values: &[T]| {
            for (cell, value) in cells.iter().zip(values) {
                // SAFETY: claimed, says the caller (rule 2).
                unsafe { cell.write(*value) };
            }
        };
        match &self.store {
            Store::Packed(packed) => {
                let (front, back) = packed.runs(position, values.len());
                let (first, second) = values.split_at(front.len());
                write(front, first);
                write(back, second);
            }
            Store::Slotted(slotted) => {
                for (at, value) in (position..).zip(values) {
                    // SAFETY: claimed, says the caller (rule 2).
                    unsafe { slotted.cell(at).write(*value) };
                }
            }
        }
    }

    /// Moves `count` published elements from `position` on to the end of `out`.
    ///
    /// # Safety
    /// The caller is the consumer, they are published and not released (rule 3), and it counts
    /// them as taken before anything can panic (rule 4).
    pub(super) unsafe fn take_into(&self, position: u64, count: usize, out: &mut [MaybeUninit<T>]) {
        debug_assert!(out.len() >= count);
        let take = |cells: &[Cell<T>], out: &mut [MaybeUninit<T>]| {
            for (cell, room) in cells.iter().zip(out) {
                // SAFETY: published and taken once, says the caller (rules 3 and 4).
                room.write(unsafe { cell.take() });
            }
        };
        match &self.store {
            Store::Packed(packed) => {
                let (front, back) = packed.runs(position, count);
                let (first, second) = out.split_at_mut(front.len());
                take(front, first);
                take(back, second);
            }
            Store::Slotted(slotted) => {
                for (at, room) in (position..position + count as u64).zip(out) {
                    // SAFETY: published and taken once, says the caller (rules 3 and 4).
                    room.write(unsafe { slotted.cell(at).take() });
                }
            }
        }
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
            // second and last swap, so nobody frees it again.
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
        for position in head..head + self.published_len(head) as u64 {
            // SAFETY: published, not released, and nobody else is left to take it (rules 3 and 4).
            // Should the element's own drop panic, the rest leak.
            drop(unsafe { self.cell(position).take() });
        }
    }
}
