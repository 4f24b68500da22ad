//! Slots: an element, and beside it a stamp that says whose turn it is.
//!
//! ```text
//! packed   | stamp u64 | element | stamp u64 | element | ..      no gaps
//! slotted  | stamp u64 | element ........ | 64 bytes, or a multiple for elements over 56 bytes
//! ```
//! The stamp of a slot is 4 l + state, where p is the position whose turn it is, and l its lap: p
//! less the index of the slot. So slots begin as zeros, which the system has ready: a large ring
//! costs nothing to make, and the first lap touches its memory.
//!
//! | state     | meaning                          | access to the cell            |
//! |-----------|----------------------------------|-------------------------------|
//! | `FREE`    | position p may be written        | the producer with ticket p    |
//! | `ELEMENT` | position p holds an element      | the consumer with ticket p    |
//! | `HOLE`    | position p was given up          | none; consumer p passes on    |
//!
//! A stamp only grows: `FREE` of p, then `ELEMENT` or `HOLE` of p, then `FREE` of p + slots.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::super::sequence::{CapacityError, memory_for, slots_for};
use super::super::sync::{AtomicU64, IS_MODEL, UnsafeCell, order};
use super::Layout;

const FREE: u64 = 0;
const ELEMENT: u64 = 1;
const HOLE: u64 = 2;
/// Stamps a position has.
const STATES: u64 = 4;

/// The state of a position, by the stamp of its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// An earlier position has not left the slot.
    Earlier,
    /// To be written.
    Free,
    /// An element can be taken.
    Element,
    /// The position was given up.
    Hole,
    /// The position is past: the slot is at a later one.
    Later,
}

/// A stamp as it was read.
#[derive(Clone, Copy)]
pub(super) struct Stamp(u64);

impl Stamp {
    #[inline(always)]
    fn is_free(self, lap: u64) -> bool {
        self.0 == lap * STATES + FREE
    }

    #[inline(always)]
    fn is_element(self, lap: u64) -> bool {
        self.0 == lap * STATES + ELEMENT
    }

    /// Returns the rest of the answers, off the path of a push or pop that succeeds.
    #[inline]
    fn state(self, lap: u64) -> State {
        // A stamp is never further than a lap or two from a position, so the difference is small.
        match self.0.wrapping_sub(lap * STATES) as i64 {
            0 => State::Free,
            1 => State::Element,
            2 => State::Hole,
            lag if lag < 0 => State::Earlier,
            _ => State::Later,
        }
    }
}

/// Room for one element, and its stamp.
#[repr(C)]
pub(super) struct Slot<T> {
    stamp: AtomicU64,
    cell: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Slot<T> {
    /// Free for the first lap.
    fn free() -> Self {
        Self {
            stamp: AtomicU64::new(FREE),
            cell: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Returns the stamp, for a producer.
    #[inline(always)]
    fn for_push(&self) -> Stamp {
        // ORDERING: reclaim (Acquire), pairs with the release in `release`: the element of the lap
        // before is out.
        Stamp(self.stamp.load(order::reclaim()))
    }

    /// Returns the stamp, for a consumer.
    #[inline(always)]
    fn for_pop(&self) -> Stamp {
        // ORDERING: observe (Acquire), pairs with the publish in `publish`: the element is in.
        Stamp(self.stamp.load(order::observe()))
    }

    /// # Safety
    /// The caller has the producer's ticket for the position that the slot is free for, and has not
    /// published it (rule 2).
    #[inline(always)]
    pub(super) unsafe fn write(&self, value: T) {
        // SAFETY: the caller guarantees that no other thread may touch the cell (rule 2).
        self.cell.with_mut(|cell| unsafe { (*cell).write(value) });
    }

    /// # Safety
    /// The cell holds an element, and the caller alone may take it, once (rule 3).
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> T {
        // SAFETY: the caller guarantees that it is initialised, and that no other thread may touch
        // it (rule 3).
        self.cell.with(|cell| unsafe { (*cell).assume_init_read() })
    }

    /// Hands the slot of `lap` to the consumer with that ticket, with what is in it.
    #[inline(always)]
    fn publish(&self, lap: u64, state: u64) {
        // ORDERING: publish (Release), pairs with the observe in `for_pop`.
        self.stamp.store(lap * STATES + state, order::publish());
    }

    /// Frees the slot for the lap `next`.
    #[inline(always)]
    fn release(&self, next: u64) {
        // ORDERING: release (Release), pairs with the reclaim in `for_push`.
        self.stamp.store(next * STATES + FREE, order::release());
    }
}

/// A slot in lines of its own.
#[repr(C, align(64))]
struct Line<T>(Slot<T>);

enum Store<T> {
    Packed(Box<[Slot<T>]>),
    Slotted(Box<[Line<T>]>),
}

/// Allocates `slots` slots, free for the first lap, for a capacity that was `asked` for.
///
/// # Safety
/// The value that `free` returns is, outside of a model, valid as zeros and equal to them.
unsafe fn zeroed<S>(
    asked: usize,
    slots: usize,
    free: fn() -> S,
) -> Result<Box<[S]>, CapacityError> {
    memory_for::<S>(asked, slots)?;
    // A model's atomics are more than their bytes.
    if IS_MODEL {
        return Ok((0..slots).map(|_| free()).collect());
    }
    let memory = alloc::alloc::Layout::array::<S>(slots).expect("memory_for has allocated as much");
    // SAFETY: a slot has a stamp, and there is one at least, so the size is not 0. The memory is
    // the global allocator's, of that layout, and zeros are slots: the caller says so.
    unsafe {
        let first = alloc::alloc::alloc_zeroed(memory).cast::<S>();
        if first.is_null() {
            alloc::alloc::handle_alloc_error(memory);
        }
        let all = core::ptr::slice_from_raw_parts_mut(first, slots);
        Ok(Box::from_raw(all))
    }
}

/// Owns a power of two of slots.
pub(super) struct Storage<T> {
    store: Store<T>,
    mask: u64,
    slack: u64,
}

impl<T> Storage<T> {
    pub(super) fn new(layout: Layout, capacity: usize) -> Result<Self, CapacityError> {
        let slots = slots_for(capacity)?;
        debug_assert!(slots.is_power_of_two() && capacity <= slots);
        // SAFETY: a slot, and a line of one, is valid as zeros: an integer, which says free for lap
        // 0, and room for an element that need not be there.
        let store = unsafe {
            match layout {
                Layout::Packed => Store::Packed(zeroed(capacity, slots, Slot::free)?),
                Layout::Slotted => Store::Slotted(zeroed(capacity, slots, || Line(Slot::free()))?),
            }
        };
        Ok(Self {
            store,
            mask: slots as u64 - 1,
            slack: (slots - capacity) as u64,
        })
    }

    pub(super) fn capacity(&self) -> usize {
        (self.mask + 1 - self.slack) as usize
    }

    #[inline(always)]
    pub(super) fn slots(&self) -> Slots<'_, T> {
        let (base, slotted) = match &self.store {
            Store::Packed(slots) => (slots.as_ptr(), false),
            Store::Slotted(lines) => (lines.as_ptr().cast(), true),
        };
        Slots {
            base,
            slotted,
            mask: self.mask,
            slack: self.slack,
            storage: PhantomData,
        }
    }
}

/// The slots; that of position p is the one at p mod their number.
// A copy of what `Storage` knows: read through a reference it would have to be loaded again after
// each atomic operation.
pub(super) struct Slots<'a, T> {
    base: *const Slot<T>,
    /// `base` points to lines.
    slotted: bool,
    mask: u64,
    /// Slots that the capacity leaves unused.
    slack: u64,
    storage: PhantomData<&'a Storage<T>>,
}

impl<T> Clone for Slots<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<'_, T> {}

impl<'a, T> Slots<'a, T> {
    #[inline(always)]
    pub(super) fn slot(self, position: u64) -> &'a Slot<T> {
        let index = (position & self.mask) as usize;
        // SAFETY: the mask is the number of slots, a power of two, less one; so the index is in
        // bounds of the storage, which is borrowed. A line begins with its slot.
        unsafe {
            if self.slotted {
                &(*self.base.cast::<Line<T>>().add(index)).0
            } else {
                &*self.base.add(index)
            }
        }
    }

    /// Returns the position less the index of its slot.
    #[inline(always)]
    fn lap(self, position: u64) -> u64 {
        position & !self.mask
    }

    /// Hands the written element of `position` to the consumer with that ticket.
    #[inline(always)]
    pub(super) fn publish(self, position: u64) {
        self.slot(position).publish(self.lap(position), ELEMENT);
    }

    /// Says that there will be no element at `position`.
    #[inline]
    pub(super) fn give_up(self, position: u64) {
        // With a release although there is no element: the consumer passes the slot on to the
        // producer of the next lap, and what this producer wrote there and took out again comes
        // before.
        self.slot(position).publish(self.lap(position), HOLE);
    }

    /// Returns whether a producer may have `position`: its slot is free for it, and so is the one
    /// `slack` further. That one is free when position − capacity is out, so the ring never holds
    /// more than its capacity; and without slack it is the same slot.
    #[inline(always)]
    pub(super) fn room(self, position: u64) -> State {
        let own = self.slot(position).for_push();
        let lap = self.lap(position);
        if !own.is_free(lap) {
            return own.state(lap);
        }
        if self.slack == 0 {
            return State::Free;
        }
        let far = position + self.slack;
        self.slot(far).for_push().state(self.lap(far))
    }

    /// Returns the state that a consumer would find at `position`.
    #[inline(always)]
    pub(super) fn content(self, position: u64) -> State {
        let stamp = self.slot(position).for_pop();
        let lap = self.lap(position);
        if stamp.is_element(lap) {
            return State::Element;
        }
        stamp.state(lap)
    }

    /// Returns how many positions from `start` on, at most `max`, a producer may have, and what
    /// stands in the way of the next.
    #[inline(always)]
    pub(super) fn free_run(self, start: u64, max: u64) -> (u64, State) {
        let mut count = 0;
        while count < max {
            let state = self.room(start + count);
            if state != State::Free {
                return (count, state);
            }
            count += 1;
        }
        (count, State::Free)
    }

    /// Returns how many elements from `start` on, at most `max`, can be taken, and what comes
    /// after.
    #[inline(always)]
    pub(super) fn element_run(self, start: u64, max: u64) -> (u64, State) {
        let mut count = 0;
        while count < max {
            let state = self.content(start + count);
            if state != State::Element {
                return (count, state);
            }
            count += 1;
        }
        (count, State::Element)
    }

    /// Takes the element of `position` and frees its slot.
    ///
    /// # Safety
    /// The caller has the consumer's ticket for `position`, saw an element there and takes it once
    /// (rule 3).
    #[inline(always)]
    pub(super) unsafe fn take(self, position: u64) -> T {
        let slot = self.slot(position);
        // SAFETY: the caller's to take (rule 3).
        let value = unsafe { slot.take() };
        slot.release(self.lap(position) + self.mask + 1);
        value
    }

    /// Frees the slot of the hole at `position`, for the consumer with its ticket.
    #[inline]
    pub(super) fn skip(self, position: u64) {
        self.slot(position)
            .release(self.lap(position) + self.mask + 1);
    }

    /// Moves the `count` elements from `start` on to the end of `out`, which has room for them, and
    /// frees their slots.
    ///
    /// # Safety
    /// As for [`take`](Self::take), for each of them.
    pub(super) unsafe fn take_into(self, start: u64, count: u64, out: &mut Vec<T>) {
        let room = &mut out.spare_capacity_mut()[..count as usize];
        for (position, place) in (start..).zip(room) {
            // SAFETY: the caller's to take (rule 3).
            place.write(unsafe { self.take(position) });
        }
        // SAFETY: `count` more are initialised, and there was room.
        unsafe { out.set_len(out.len() + count as usize) };
    }
}
