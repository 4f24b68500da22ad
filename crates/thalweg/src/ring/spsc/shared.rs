//! The part of a one-to-one ring that its two endpoints share: how its last owner frees it, where
//! the elements lie, and the distance between the ends.
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
//!
//! # Two storage cores behind one view
//! *Packed*: elements side by side, one shared index (the tail, in `Shared`) for what is published.
//! ```text
//! tail   | u64 ......................................| one 128-byte line
//! cells  | e0 e1 e2 e3 e4 e5 e6 e7 | e8 e9 ..        | no gaps
//! ```
//! A batch of n elements costs one store of `tail` and moves ⌈n × size / 64⌉ lines, so this core
//! wins throughput. A single hop moves two lines, the tail's and the element's.
//!
//! *Slotted*: the sequence beside the element.
//! ```text
//! slot 0 | sequence u64 | element ........ | 64 bytes, or a multiple for elements over 56 bytes
//! slot 1 | sequence u64 | element ........ |
//! ```
//! Position p is published when its slot's sequence is p + 1; before that it is 0, or p + 1 −
//! slots from the lap before. Only the producer writes a slot, so a hop moves one line, once: the
//! consumer finds the element on the line it was watching, and gives slots back through the shared
//! head, which the producer reads about once a lap. This core wins latency; eight-byte elements
//! take eight times the room.
//!
//! # A distance between the two ends of a dense stream
//! Where both ends are about as fast, one follows right behind the other: each look at the other's
//! index finds a few elements (or a little room) more, and takes that line, and those of the
//! elements, away from a side that is just writing them. Looks that are further apart find more,
//! and the two sides work on different lines. So an endpoint whose looks find little, one after
//! another, pauses before the next; if that does not bring more, it lets it be for a while. After
//! the slip of FastForward (Giacomoni, Moseley and Vachharajani, 2008), without its clock.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::NonNull;

use super::Layout;
use crate::ring::panics::drop_each;
use crate::ring::prefetch_for_writing;
use crate::ring::sequence::Sequence;
use crate::ring::sync::{
    AtomicBool, AtomicU32, AtomicU64, IS_MODEL, Ordering, UnsafeCell, fault, order, spin_hint,
};

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
    pub(super) producer_distance: DistanceCell,
    /// State that only the consumer uses.
    pub(super) consumer_distance: DistanceCell,
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
    /// Returns where the cells are.
    #[inline(always)]
    pub(super) fn view(&self) -> &View<T> {
        self.cells.view()
    }

    pub(super) fn new(layout: Layout, capacity: usize, slots: usize) -> Self {
        debug_assert!(capacity <= slots);
        Self {
            head: Sequence::new(0),
            tail: Sequence::new(0),
            producer_distance: DistanceCell::new(capacity),
            // A look at a slotted ring goes to the next slot, and one cell is enough for it.
            consumer_distance: DistanceCell::new(match layout {
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
    fn publish_packed(&self, end: u64) {
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
        if !core::mem::needs_drop::<T>() {
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

/// Room for one element; which side may touch it, and when, is in the rules of `spsc`.
#[repr(transparent)]
pub(super) struct Cell<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Cell<T> {
    fn empty() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// The caller is the producer and has claimed this cell (rule 2).
    #[inline(always)]
    pub(super) unsafe fn write(&self, value: T) {
        // SAFETY: claimed, so no other thread reads or writes here (rule 2).
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

/// An element that carries its own sequence.
#[repr(C, align(64))]
pub(super) struct Slot<T> {
    sequence: AtomicU64,
    cell: Cell<T>,
}

impl<T> Slot<T> {
    /// Makes the element at `position` visible.
    #[inline(always)]
    fn publish(&self, position: u64) {
        // ORDERING: publish (Release), pairs with the observe in `is_published`.
        self.sequence.store(position + 1, order::publish());
    }

    #[inline(always)]
    fn is_published(&self, position: u64) -> bool {
        // ORDERING: observe (Acquire), pairs with the publish in `publish`.
        self.sequence.load(order::observe()) == position + 1
    }
}

/// How far ahead the producer asks for lines, in bytes, in rings that are not larger than
/// `PREFETCHED_BYTES_MAX`: those stay in the consumer's cache from lap to lap, and a store has to
/// wait until the line is taken away from it.
const AHEAD_BYTES: usize = 8 * 64;
const PREFETCHED_BYTES_MAX: usize = 256 * 1024;

/// Where the cells are, which never changes. Each endpoint has its own copy: one load less on the
/// way to each. Valid as long as the allocation (rule 5).
pub(super) struct View<T> {
    /// The cell of the first slot.
    base: *mut u8,
    mask: usize,
    /// From one cell to the next, in bytes.
    stride: usize,
    /// How many cells ahead the producer asks for lines.
    ahead: usize,
    is_slotted: bool,
    element: PhantomData<T>,
}

impl<T> View<T> {
    /// Returns a copy of the view, for an endpoint.
    pub(super) fn copied(&self) -> Self {
        Self { ..*self }
    }

    /// Makes room for `slots` elements, a power of two.
    fn new(layout: Layout, slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        let (base, stride) = match layout {
            Layout::Packed => {
                let mut cells: Box<[Cell<T>]> = (0..slots).map(|_| Cell::empty()).collect();
                prefault(&mut cells);
                (Box::into_raw(cells).cast::<u8>(), size_of::<Cell<T>>())
            }
            Layout::Slotted => {
                let empty = |_| Slot {
                    sequence: AtomicU64::new(0),
                    cell: Cell::empty(),
                };
                let slots: Box<[Slot<T>]> = (0..slots).map(empty).collect();
                let first = Box::into_raw(slots).cast::<u8>();
                // SAFETY: within the first slot; there is at least one.
                let base = unsafe { first.add(offset_of!(Slot<T>, cell)) };
                (base, size_of::<Slot<T>>())
            }
        };
        let is_slotted = layout == Layout::Slotted;
        let mask = slots - 1;
        let is_small = !is_slotted && mask < PREFETCHED_BYTES_MAX / stride.max(1);
        Self {
            base,
            mask,
            stride,
            // Otherwise the line that is written anyway.
            ahead: if is_small {
                AHEAD_BYTES / stride.max(1)
            } else {
                0
            },
            is_slotted,
            element: PhantomData,
        }
    }

    /// In a slotted ring.
    #[inline(always)]
    fn first_slot(&self) -> *mut Slot<T> {
        (self.base.wrapping_sub(offset_of!(Slot<T>, cell))).cast()
    }

    /// # Safety
    /// The ring is slotted.
    #[inline(always)]
    pub(super) unsafe fn slot(&self, position: u64) -> &Slot<T> {
        let index = position as usize & self.mask;
        // SAFETY: slotted, says the caller: one of `mask + 1` slots, which live as long as the
        // endpoint that holds this (rule 5).
        unsafe { &*self.first_slot().add(index) }
    }

    #[inline(always)]
    pub(super) fn cell(&self, position: u64) -> &Cell<T> {
        let index = position as usize & self.mask;
        // SAFETY: `base` is the first of `mask + 1` cells that are `stride` bytes apart and live as
        // long as the endpoint that holds this (rule 5).
        unsafe { &*self.base.add(index * self.stride).cast::<Cell<T>>() }
    }

    /// In a packed ring, the cells of the positions from `start` up to `end`, as far as they lie
    /// side by side: at least one unless `start` is `end`. In a slotted one, none.
    #[inline(always)]
    pub(super) fn run(&self, start: u64, end: u64) -> &[Cell<T>] {
        if self.is_slotted {
            return &[];
        }
        let index = start as usize & self.mask;
        let count = ((end - start) as usize).min(self.mask + 1 - index);
        // SAFETY: `base` is the first of `mask + 1` cells side by side, which live as long as the
        // endpoint that holds this (rule 5); the caller decides which thread may touch their
        // content.
        unsafe { core::slice::from_raw_parts(self.base.cast::<Cell<T>>().add(index), count) }
    }

    /// Writes the element at `position`, and makes it and all before it visible to the consumer.
    ///
    /// # Safety
    /// The caller is the producer and has claimed that cell (rule 2).
    // A branch for each layout: with the stride, stores would wait for the multiplication.
    #[inline(always)]
    pub(super) unsafe fn put(&self, shared: &Shared<T>, position: u64, value: T) {
        if self.is_slotted {
            // SAFETY: just asked.
            let slot = unsafe { self.slot(position) };
            // SAFETY: claimed, says the caller (rule 2).
            unsafe { slot.cell.write(value) };
            slot.publish(position);
        } else {
            let index = position as usize & self.mask;
            let first = self.base.cast::<Cell<T>>();
            // SAFETY: one of `mask + 1` cells, and claimed, says the caller (rule 2).
            unsafe { (*first.add(index)).write(value) };
            prefetch_for_writing(first.wrapping_add((index + self.ahead) & self.mask));
            shared.publish_packed(position + 1);
        }
    }
}

/// The cells of a ring, which go with this. Elements that are in them are not dropped.
struct Cells<T>(View<T>);

impl<T> Cells<T> {
    /// Makes room for `slots` elements, a power of two.
    fn new(layout: Layout, slots: usize) -> Self {
        Self(View::new(layout, slots))
    }

    #[inline(always)]
    fn view(&self) -> &View<T> {
        &self.0
    }
}

impl<T> Drop for Cells<T> {
    fn drop(&mut self) {
        let View { base, mask, .. } = self.0;
        if self.0.is_slotted {
            let slots = core::ptr::slice_from_raw_parts_mut(self.0.first_slot(), mask + 1);
            // SAFETY: made by `View::new` as a box of this number of slots, and no thread uses it
            // any more (rule 5).
            drop(unsafe { Box::from_raw(slots) });
        } else {
            let cells = core::ptr::slice_from_raw_parts_mut(base.cast::<Cell<T>>(), mask + 1);
            // SAFETY: made by `View::new` as a box of this number of cells, and no thread uses it
            // any more (rule 5).
            drop(unsafe { Box::from_raw(cells) });
        }
    }
}

/// Touches every page now, so that the first lap does not pay a page fault per 4 KiB.
#[cfg(not(loom))]
fn prefault<T>(cells: &mut [Cell<T>]) {
    const PAGE_BYTES: usize = 4096;
    let size_bytes = core::mem::size_of_val(cells);
    let start = cells.as_mut_ptr().cast::<u8>();
    for offset in (0..size_bytes).step_by(PAGE_BYTES) {
        // SAFETY: in bounds of a slice that is borrowed mutably, and its cells are empty: any byte
        // is a valid byte of an uninitialised element. Volatile, so that it is not optimised away.
        unsafe { start.add(offset).write_volatile(0) };
    }
}

#[cfg(loom)]
fn prefault<T>(_: &mut [Cell<T>]) {}

/// How long to pause, in turns of some 10 ns.
const PAUSES: u32 = 32;
/// The number of cells that is enough at a check; a quarter of the ring if that is less.
const ENOUGH_MAX: u64 = 128;
/// The number that a check that found little adds to the score, from which one that found nothing
/// takes 1: with 8 and more of those between them, it is no dense stream.
const THIN_SCORE: u32 = 8;
/// The score at which pauses begin: four looks on end that found little.
const PAUSING_SCORE: u32 = 4 * THIN_SCORE;
/// The number of cells that a pause must bring to be worth it.
const GAIN_MIN: u64 = 8;
/// After a pause in vain, 2 looks that found little do not count, then 4, up to 2 to the power of
/// this.
const BACKOFF_MAX: u32 = 10;

/// The estimate of one endpoint of its distance to the other.
#[derive(Debug)]
struct Distance {
    enough: u64,
    pauses: bool,
    /// The next look is to be a closer one; `pauses` is set, too, so that others ask once.
    is_closer: bool,
    /// How much it looks like a dense stream without a distance.
    score: u32,
    /// The number of cells that looks found without a pause.
    unpaused: u64,
    /// Looks to pass without a pause, and the exponent of the next such time.
    skip: u32,
    backoff: u32,
}

impl Distance {
    fn new(capacity: usize) -> Self {
        Self {
            enough: (capacity as u64 / 4).min(ENOUGH_MAX),
            pauses: false,
            is_closer: false,
            score: 0,
            unpaused: 0,
            skip: 0,
            backoff: 0,
        }
    }

    /// Notes that a look has found `cells` cells.
    #[inline(always)]
    fn found(&mut self, cells: u64) {
        if cells == 0 {
            self.pauses = false;
            self.score = self.score.saturating_sub(1);
        } else if cells >= self.enough {
            if self.pauses {
                self.backoff = 0;
            }
            self.pauses = false;
            self.score = 0;
        } else {
            self.found_little(cells);
        }
    }

    fn found_little(&mut self, cells: u64) {
        if self.pauses {
            self.after_pause(cells);
        } else if self.skip > 0 {
            self.skip -= 1;
        } else {
            self.score += THIN_SCORE;
            if self.score >= PAUSING_SCORE {
                self.score = 0;
                self.unpaused = cells;
                self.pauses = true;
            }
        }
    }

    /// Not enough, even with a pause.
    fn after_pause(&mut self, cells: u64) {
        if cells >= self.unpaused + GAIN_MIN {
            self.backoff = 0;
        } else {
            self.pauses = false;
            self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
            self.skip = 1 << self.backoff;
        }
    }
}

/// The distance of one endpoint, on lines that the other never touches. It lives in the ring, not
/// in the endpoint, whose address is kept from functions on the way of a push or a pop.
#[repr(align(128))]
pub(super) struct DistanceCell(UnsafeCell<Distance>);

impl DistanceCell {
    fn new(capacity: usize) -> Self {
        Self(UnsafeCell::new(Distance::new(capacity)))
    }

    /// Makes the next [`observe`](Self::observe) give `None`. That costs the other looks nothing.
    ///
    /// # Safety
    /// As [`observe`](Self::observe).
    #[inline(always)]
    pub(super) unsafe fn observe_closer(&self) {
        // SAFETY: as in `observe`.
        self.0.with_mut(|distance| unsafe {
            (*distance).pauses = true;
            (*distance).is_closer = true;
        });
    }

    /// Checks where the other side is, after a pause if there should be one. `look` gives where the
    /// other side is and how many cells that makes. `None` after
    /// [`observe_closer`](Self::observe_closer), once.
    ///
    /// # Safety
    /// The caller is the endpoint that this belongs to.
    #[inline(always)]
    pub(super) unsafe fn observe(&self, look: impl FnOnce() -> (u64, u64)) -> Option<u64> {
        // SAFETY: the one endpoint that this belongs to is on one thread at a time, and `look` has
        // no way to get here.
        self.0.with_mut(|distance| unsafe {
            if (*distance).pauses {
                if core::mem::take(&mut (*distance).is_closer) {
                    (*distance).pauses = false;
                    return None;
                }
                // A model would try every pause.
                for _ in 0..if IS_MODEL { 0 } else { PAUSES } {
                    spin_hint();
                }
            }
            let (position, cells) = look();
            (*distance).found(cells);
            Some(position)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn after(capacity: usize, finds: &[u64]) -> Distance {
        let mut distance = Distance::new(capacity);
        for &cells in finds {
            distance.found(cells);
        }
        distance
    }

    #[test]
    fn pauses_after_thin_looks_on_end_and_only_then() {
        assert!(!after(1024, &[5, 5, 5]).pauses);
        assert!(after(1024, &[5, 5, 5, 5]).pauses);
        assert!(!after(1024, &[5, 5, 200, 5, 5]).pauses);
        // A few looks in vain between them: a reader that polls.
        assert!(after(1024, &[5, 0, 0, 5, 0, 5, 5, 5]).pauses);
        // Messages that come one by one, with time between them.
        let sparse = [1, 0, 0, 0, 0, 0, 0, 0, 0].repeat(10);
        assert!(!after(1024, &sparse).pauses);
    }

    #[test]
    fn goes_on_while_it_helps_and_stops_when_there_is_enough() {
        assert!(after(1024, &[5, 5, 5, 5, 40, 40]).pauses);
        assert!(!after(1024, &[5, 5, 5, 5, 40, 128]).pauses);
        assert!(!after(1024, &[5, 5, 5, 5, 0]).pauses);
    }

    #[test]
    fn a_pause_in_vain_is_tried_again_ever_more_rarely() {
        let mut distance = Distance::new(1024);
        let mut pauses = Vec::new();
        for look in 0..10_000 {
            distance.found(1);
            if distance.pauses {
                pauses.push(look);
            }
        }
        assert!(pauses.len() >= 8, "{pauses:?}");
        assert!(pauses.len() <= 20, "{pauses:?}");
        assert!(pauses[1] - pauses[0] < pauses[5] - pauses[4], "{pauses:?}");
    }

    #[test]
    fn a_small_ring_has_a_small_enough() {
        assert!(!after(8, &[2, 2, 2, 2, 2]).pauses);
        assert!(!after(1, &[1, 1, 1, 1, 1]).pauses);
        assert!(
            !after(0, &[1; 100]).pauses,
            "the consumer of a slotted ring"
        );
    }
}
