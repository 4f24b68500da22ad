//! The MPMC ring: any number of producers and consumers, one order for all elements.
//!
//! *State.* A power of two of slots, each with a stamp (`slot.rs`); position p lives in slot p mod
//! that. `tail`: the next position for a producer, and a bit that says closed. `head`: the next
//! position for a consumer, which only grows; `tail` also goes back over tickets that come back.
//!
//! *Rules.*
//! 1. A ticket is a position that one thread has claimed: producers advance `tail` by
//!    compare-and-swap, consumers `head`; by n for n tickets.
//! 2. A producer claims tickets only for positions whose slots it saw free for them (acquired), and
//!    then is the only one to access these slots until it stamps them: as element, after it wrote
//!    it, or as hole.
//! 3. A consumer claims tickets only for positions that it saw stamped as element or hole
//!    (acquired), and then is the only one to access these slots until it stamps them as free for
//!    the next lap, after it took the element.
//! 4. No code of the user runs between a consumer's ticket and its stamp.
//! 5. A producer gives back only tickets whose slots it neither wrote nor stamped, and only the
//!    last that were claimed: by a compare-and-swap of `tail` from their end to their start. A
//!    ticket that is given back counts as never claimed.
//!
//! *Why it works.* The stamp of a slot is changed only by the thread that holds the ticket that it
//! waits for: free for p by producer p, element or hole of p by consumer p. So what a side saw
//! there before it claimed its ticket still holds after, and a compare-and-swap that succeeds needs
//! no ordering of its own: rules 2 and 3 pass a slot on by a release store of the stamp that the
//! next one acquires. By rule 1 there is one producer p and one consumer p, so an element is
//! written once and taken once. One that has an old copy of `tail` or `head` finds a later stamp,
//! or its compare-and-swap fails; so an endpoint may begin where it was last ([`MpmcEnd`]). Only
//! before it reports that the ring is full or empty does it check whether the copy is right.
//!
//! *Why tickets can come back.* No thread holds or has stamped a position from `tail` on: claiming
//! keeps that so, and a swap back uncovers only the swapping producer's own. So it does no harm
//! that `tail` can be where it was before: a thread that then claims by an old copy saw slots free
//! that no thread has stamped since, and acquired their stamps itself; one that then gives back has
//! the last tickets, again. Consumers claim only stamped positions, so that `head` is never beyond
//! `tail`.
//!
//! *Exact capacity.* Position p is claimed only when p − capacity is out, which the stamp of that
//! slot shows: so tail − head ≤ capacity without reading `head` (`Slots::room`). For a power of two
//! this is the slot of p itself.
//!
//! *Close.* A bit in `tail`: the swap that sets it comes before or after each ticket, so a push has
//! its ticket before the close and is delivered, or is refused; and when `head` arrives at the tail
//! that has the bit, no element will come: no swap of a producer succeeds any more, so no ticket
//! comes back either. `closing` is the hint that makes consumers load `tail`, which they otherwise
//! leave to the producers.
//!
//! *Holes.* A claim gives the tickets of unwritten slots back (rule 5). Where it cannot, since
//! later tickets are claimed or the ring is closed, it stamps these slots as holes, and consumers
//! pass over them; so it does with slots that were written and are not committed. The end of a
//! claim passes over holes at the head as a consumer would, so that their slots are free even if no
//! consumer pops. A claim that is forgotten (`mem::forget`) leaves its slots waiting for ever, and
//! the ring delivers no element behind them, unless an endpoint remembers the claim and gives it up
//! ([`MpmcEnd`]).
//!
//! *Progress.* A push or pop that fails to claim tries again only because another one claimed or
//! gave back, so one of them always makes progress. A producer that is preempted between ticket and
//! stamp hides the elements behind its slot: consumers see an empty ring, and never wait in a loop
//! for it.
//!
//! *Tried and measured* (8-byte elements, 1024 of them, a virtual machine with two cores of an AMD
//! EPYC, in one thread; a loaded machine showed little about several): a push and a pop 7.6 ns; in
//! batches of 64 3.3 ns both together.
//! Slotted is the same within 15 %. A copy of base and mask in registers (`Slots`) took off a
//! quarter one by one (512 in, 512 out) and two fifths in batches: through the shared reference
//! they are loaded again after each atomic operation. Scrambled indices, adjacent ones on different
//! lines, were slower in ten of ten comparisons (2 × 2, 4 × 1, 1 × 4) on two loaded cores, and
//! were left out; many cores may say otherwise.
//!
//! The algorithm is Dmitry Vyukov's bounded MPMC queue
//! (<https://www.1024cores.net/home/lock-free-algorithms/queues/bounded-mpmc-queue>), also in
//! crossbeam's `ArrayQueue`. Ours differs in stamps that mark holes, in tickets by the batch, in
//! the closed bit, and in a capacity that is exact with positions that are plain counts.

use alloc::vec::Vec;
use core::ops::Deref;

use super::panics::drop_each;
use super::sequence::{CapacityError, Tally};
use super::spsc::Layout;
use super::sync::{Arc, AtomicBool, AtomicU64, Ordering, fault, order, spin_hint};
use super::{PopError, PushError};
use slot::{Slots, State, Storage};

pub(crate) use push::Claimed;
pub use push::MpmcClaim;

#[cfg(all(test, loom))]
mod models;
mod push;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;

/// In `tail`: closed.
const CLOSED: u64 = 1 << 63;

/// A counter on lines of its own: 128 bytes, because the adjacent-line prefetcher of x86 pulls
/// lines in pairs.
#[repr(align(128))]
struct Apart(AtomicU64);

impl Apart {
    /// Claims the tickets from `start` up to `end`; fails with what the counter says instead.
    #[inline(always)]
    fn claim_tickets(&self, start: u64, end: u64) -> Result<u64, u64> {
        // ORDERING: Relaxed; the slots were acquired by their stamps before, and no thread without
        // these tickets touches them (rules 2 and 3).
        self.0
            .compare_exchange_weak(start, end, Ordering::Relaxed, Ordering::Relaxed)
    }

    /// Takes the tickets from `start` up to `end` back, if they are the last that were claimed and
    /// the ring is open; returns whether it is so. The caller has them, and touched none of their
    /// slots (rule 5).
    fn unclaim_tickets(&self, start: u64, end: u64) -> bool {
        if fault::is("unclaim_tickets") {
            // ORDERING: Relaxed; a fault, which does not ask whether others claimed.
            self.0.store(start, Ordering::Relaxed);
            return true;
        }
        // ORDERING: Relaxed; the slots of these tickets were not touched, so that the producer that
        // claims them next finds them as this one did, by their stamps.
        self.0
            .compare_exchange(end, start, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

/// A bounded ring for any number of producers and consumers, with one order for all elements.
///
/// It is shared by reference, for example in an `Arc`.
///
/// No operation blocks or makes a system call; only [`pop_into`](Self::pop_into) can allocate, in
/// the caller's vector. Elements that were not taken are dropped with the ring.
///
/// # Memory ordering
/// All that a thread did before a push is visible after the pop of that element; and what a
/// consumer did before a pop is visible after the push that uses the slot again.
/// [`PopError::Closed`](super::PopError::Closed) comes after what the closing thread did before.
///
/// ```
/// use std::sync::Arc;
/// use thalweg::ring::{Layout, PopError, MpmcRing};
///
/// let ring = Arc::new(MpmcRing::new(64, Layout::Packed)?);
/// let threads = [1, 2].map(|n| {
///     let ring = Arc::clone(&ring);
///     std::thread::spawn(move || ring.push_slice(&[n, n]))
/// });
/// threads.map(|thread| thread.join().expect("sender"));
/// ring.close();
/// let mut sum = 0;
/// while let Ok(n) = ring.try_pop() {
///     sum += n;
/// }
/// assert_eq!(sum, 6);
/// assert_eq!(ring.try_pop(), Err(PopError::Closed));
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
pub struct MpmcRing<T> {
    storage: Storage<T>,
    closing: AtomicBool,
    tail: Apart,
    head: Apart,
    /// Positions between `head` and `tail` that are claimed by a caller, or holes.
    absent: Tally,
    /// Holes that were passed.
    passed: Tally,
}

// SAFETY: elements move from one thread to another, and are never shared; the tickets settle which
// thread may touch a slot (rules 1 to 3).
unsafe impl<T: Send> Send for MpmcRing<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for MpmcRing<T> {}

impl<T> MpmcRing<T> {
    /// Makes a ring that holds up to `capacity` elements.
    ///
    /// All memory is allocated here: `capacity` rounded up to a power of two of slots, each with
    /// eight bytes for its stamp. Packed slots are zeros that the system may map when the first lap
    /// touches them. The ring never holds more than `capacity`.
    ///
    /// # Errors
    /// [`CapacityError`] if `capacity` is 0 or above [`CAPACITY_MAX`](super::CAPACITY_MAX), or
    /// there is no memory for that many.
    pub fn new(capacity: usize, layout: Layout) -> Result<Self, CapacityError> {
        Ok(Self {
            storage: Storage::new(layout, capacity)?,
            closing: AtomicBool::new(false),
            tail: Apart(AtomicU64::new(0)),
            head: Apart(AtomicU64::new(0)),
            absent: Tally::default(),
            passed: Tally::default(),
        })
    }

    #[inline(always)]
    fn slots(&self) -> Slots<'_, T> {
        self.storage.slots()
    }

    /// Closes the ring: later pushes fail, and consumers get what was pushed before, then
    /// [`PopError::Closed`](super::PopError::Closed). Gives `true` if it was open.
    ///
    /// Each push comes either before the close or is refused.
    pub fn close(&self) -> bool {
        // ORDERING: close (Release), pairs with the closed in `is_closing`. A swap, so that a later
        // close stays in the release sequence of an earlier one.
        self.closing.swap(true, order::close());
        // ORDERING: close (Release), pairs with the closed in `is_closed`.
        self.tail.0.fetch_or(CLOSED, order::close()) & CLOSED == 0
    }

    /// Returns whether the ring is closed. There may still be elements to take.
    pub fn is_closed(&self) -> bool {
        // ORDERING: closed (Acquire), pairs with the close in `close`.
        self.tail.0.load(order::closed()) & CLOSED != 0
    }

    /// Returns why a pop at `head` found nothing.
    #[cold]
    fn empty_or_closed(&self, head: u64) -> super::PopError {
        // ORDERING: closed (Acquire), pairs with the close in `close`.
        if !self.closing.load(order::closed()) {
            return super::PopError::Empty;
        }
        // ORDERING: closed (Acquire), pairs with the close in `close`.
        let tail = self.tail.0.load(order::closed());
        if tail == head | CLOSED {
            super::PopError::Closed
        } else {
            super::PopError::Empty
        }
    }

    /// Returns how many elements the ring holds at most.
    pub fn capacity(&self) -> usize {
        self.storage.capacity()
    }

    /// Returns the position of the next push, from 0: how many tickets producers have claimed. A
    /// claim that gives tickets back lowers it again.
    pub fn pushed(&self) -> u64 {
        // ORDERING: Relaxed, a count; elements are acquired by their stamps.
        self.tail.0.load(Ordering::Relaxed) & !CLOSED
    }

    /// Returns the position of the next pop, from 0: how many tickets consumers have claimed.
    pub fn popped(&self) -> u64 {
        // ORDERING: Relaxed, a count.
        self.head.0.load(Ordering::Relaxed)
    }

    /// Returns the number of elements in the ring, including those that are being pushed. Slots
    /// that are claimed and not committed, and skipped slots, do not count. Never above the
    /// capacity.
    pub fn len(&self) -> usize {
        let popped = self.popped();
        // All of them move between the looks, hence the bounds.
        let claimed = self.pushed().saturating_sub(popped);
        let len = claimed.saturating_sub(self.absent.get());
        len.min(self.capacity() as u64) as usize
    }

    /// Positions that producers have claimed and that hold no element: claimed, or holes, those
    /// that consumers have passed included.
    pub(crate) fn unsent(&self) -> u64 {
        self.absent.get() + self.passed.get()
    }

    /// Returns the number of elements that consumers have claimed.
    pub(crate) fn received(&self) -> u64 {
        // Both move between the looks: the one that is to be less first, and a bound, since other
        // processors may show them in another order.
        let passed = self.passed.get();
        self.popped().saturating_sub(passed)
    }

    /// Returns whether it is closed, and nothing is in it or under way.
    pub(crate) fn is_over(&self) -> bool {
        // ORDERING: closed (Acquire), pairs with the close in `close`.
        let tail = self.tail.0.load(order::closed());
        tail == self.popped() | CLOSED
    }

    /// Returns whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether no slot is free: all are taken by elements, claims and skipped slots.
    pub fn is_full(&self) -> bool {
        self.pushed().saturating_sub(self.popped()) >= self.capacity() as u64
    }

    /// Returns whether a pop would find an element (or a slot to skip) now.
    pub fn can_pop(&self) -> bool {
        let head = self.popped();
        !matches!(self.slots().content(head), State::Earlier | State::Free)
    }

    /// Returns whether the element of `position`, which was claimed, may still be there to take.
    /// Looks at its slot, which consumers reach later, and not at what they use now.
    pub(crate) fn is_waiting(&self, position: u64) -> bool {
        !matches!(self.slots().content(position), State::Later)
    }

    /// Returns whether a push would find a free slot now. In a closed ring it finds none.
    pub fn can_push(&self) -> bool {
        !self.is_closed() && {
            let tail = self.pushed();
            // A later stamp: others push meanwhile, so there was room.
            !matches!(self.slots().room(tail), State::Earlier)
        }
    }
}

impl<T> Drop for MpmcRing<T> {
    fn drop(&mut self) {
        if !core::mem::needs_drop::<T>() {
            return;
        }
        let slots = self.storage.slots();
        // A position that is not stamped as element is a hole or belongs to a forgotten claim.
        let is_element = |position: &u64| slots.content(*position) == State::Element;
        let mut positions = (self.popped()..self.pushed()).filter(is_element);
        // SAFETY: published, not taken, and no other thread is left (rule 3).
        let take = |position| unsafe { slots.take(position) };
        drop_each(|| positions.next().map(take));
    }
}

shown!([T] MpmcRing<T>, "MpmcRing", this,
    "capacity": this.capacity(), "len": this.len(),
    "closed": this.is_closed());

/// Pauses after a lost compare-and-swap: one at first, since on few cores the next try succeeds,
/// then more and more, so that on many the winners get through. (2-core Intel virtual machine,
/// 2 × 2 threads: 30.9 ns a message with none at first, 27.3 with one, 30.0 with four; 4 × 1: no
/// difference.)
struct Backoff {
    pauses: u32,
    pauses_max: u32,
}

impl Backoff {
    /// Up to 0.6 µs.
    fn new() -> Self {
        Self {
            pauses: 1,
            pauses_max: 63,
        }
    }

    /// From 0.6 to 5 µs, where producers publish in a stream: the winner has a run of pushes, and
    /// the lines change hands once for all of it. (2-core EPYC virtual machine, a bus's messages of
    /// 24 bytes, two publishers: 17.1 ns a message; 19.4 with 15 to 255 pauses, 29.1 with 1 to 63.)
    fn long() -> Self {
        Self {
            pauses: 63,
            pauses_max: 511,
        }
    }

    #[inline]
    fn wait(&mut self) {
        for _ in 0..self.pauses {
            spin_hint();
        }
        self.pauses = self.pauses_max.min(2 * self.pauses + 1);
    }
}

impl<T> MpmcRing<T> {
    /// Claims tickets for 1 to `max` elements, `max` being at least 1, and passes over holes; gives
    /// the first position and how many. Begins where `near` says, which becomes the position after
    /// them.
    #[inline(always)]
    fn claim_elements(
        &self,
        slots: Slots<'_, T>,
        near: &mut u64,
        max: u64,
    ) -> Result<(u64, u64), PopError> {
        let mut backoff = Backoff::new();
        let mut head = *near;
        loop {
            let (count, then) = slots.element_run(head, max);
            if count == 0 && then != State::Hole {
                let now = self.popped();
                if now == head && then != State::Later {
                    *near = head;
                    return Err(self.empty_or_closed(head));
                }
                // Others have claimed this ticket.
                head = now;
                continue;
            }
            let next = head + count.max(1);
            match self.head.claim_tickets(head, next) {
                Ok(_) if count > 0 => {
                    *near = next;
                    return Ok((head, count));
                }
                Ok(_) => {
                    slots.skip(head);
                    self.count_passed();
                    head = next;
                }
                Err(now) => {
                    head = now;
                    backoff.wait();
                }
            }
        }
    }

    /// Passes over holes at the head, as a consumer does: their room comes back though no thread
    /// pops. Returns how many there were.
    #[cold]
    pub(crate) fn pass_holes(&self) -> usize {
        let mut passed = 0;
        if fault::is("holes_kept") {
            return passed;
        }
        let slots = self.slots();
        let mut head = self.popped();
        while slots.content(head) == State::Hole {
            match self.head.claim_tickets(head, head + 1) {
                Ok(_) => {
                    slots.skip(head);
                    self.count_passed();
                    head += 1;
                    passed += 1;
                }
                Err(now) => head = now,
            }
        }
        passed
    }

    fn count_passed(&self) {
        self.absent.subtract(1);
        self.passed.add(1);
    }

    /// Takes the oldest element.
    ///
    /// Costs one compare-and-swap, and no look at the producers' side but the slot.
    ///
    /// # Errors
    /// [`PopError::Empty`] if nothing is published at the head now; [`PopError::Closed`] if the
    /// ring is closed and drained. Empty is also the answer while a producer that has its ticket
    /// has not yet published, even if others behind it have.
    #[inline]
    pub fn try_pop(&self) -> Result<T, PopError> {
        self.try_pop_at().map(|(_, value)| value)
    }

    /// Takes the oldest element, and returns it with its position.
    ///
    /// # Errors
    /// As [`try_pop`](Self::try_pop).
    #[inline]
    pub fn try_pop_at(&self) -> Result<(u64, T), PopError> {
        let mut near = self.popped();
        match self.pop_here(&mut near) {
            Ok(found) => Ok(found),
            Err(true) => Err(PopError::Empty),
            Err(false) => self.try_pop_near(&mut near),
        }
    }

    /// Takes the element at `near`, which is where the head is as far as the caller knows; fails if
    /// that is wrong or there is none, with `true` if the ring is open and nothing is at the head.
    #[inline(always)]
    fn pop_here(&self, near: &mut u64) -> Result<(u64, T), bool> {
        let (slots, position) = (self.slots(), *near);
        match slots.content(position) {
            State::Element => {}
            State::Hole | State::Later => return Err(false),
            State::Free | State::Earlier => return Err(self.is_nothing_at(position)),
        }
        if self.head.claim_tickets(position, position + 1).is_err() {
            return Err(false);
        }
        *near = position + 1;
        // SAFETY: our ticket, seen as element, taken once (rule 3).
        Ok((position, unsafe { slots.take(position) }))
    }

    /// Returns whether the head is at `position`, whose slot holds nothing, and the ring is open.
    #[inline(always)]
    fn is_nothing_at(&self, position: u64) -> bool {
        // ORDERING: Relaxed; `true` is the answer of an open ring, and follows from nothing.
        self.popped() == position && !self.closing.load(Ordering::Relaxed)
    }

    /// Works as [`try_pop_at`](Self::try_pop_at), by an endpoint that was at `near`.
    #[inline(never)]
    fn try_pop_near(&self, near: &mut u64) -> Result<(u64, T), PopError> {
        let slots = self.slots();
        let (position, _) = self.claim_elements(slots, near, 1)?;
        // SAFETY: our ticket, seen as element, taken once (rule 3).
        Ok((position, unsafe { slots.take(position) }))
    }

    /// Moves up to `max` elements to the end of `out` with one compare-and-swap, and returns their
    /// number.
    ///
    /// Unless `max` is 0, there is at least one. A batch ends before a hole, so that the positions
    /// are consecutive. Allocates only if `out` has no spare capacity for what is in the ring.
    ///
    /// # Errors
    /// As [`try_pop`](Self::try_pop).
    pub fn pop_into(&self, out: &mut Vec<T>, max: usize) -> Result<usize, PopError> {
        let max = self.reserve(out, max);
        if max == 0 {
            return Ok(0);
        }
        let slots = self.slots();
        let (first, count) = self.claim_elements(slots, &mut self.popped(), max)?;
        // SAFETY: our tickets, seen as elements, taken once (rule 3); `out` has room for `max`.
        unsafe { slots.take_into(first, count, out) };
        Ok(count as usize)
    }

    /// Makes room in `out` for what is in the ring, at most `max`, before any ticket is claimed;
    /// how many there is room for, at most `max`.
    #[inline]
    fn reserve(&self, out: &mut Vec<T>, max: usize) -> u64 {
        let max = max.min(self.capacity());
        if out.capacity() - out.len() < max {
            out.reserve(max.min(self.len().max(1)));
        }
        max.min(out.capacity() - out.len()) as u64
    }
}

/// The ring, and where this endpoint claimed its last ticket.
///
/// The next push or pop begins there: as long as no other endpoint has claimed since, it does not
/// have to load the counter that all share before it asks for the slot, and in a crowd it finds out
/// by the slot that others were faster.
pub(crate) struct MpmcEnd<T> {
    ring: Arc<MpmcRing<T>>,
    near: u64,
    /// Where consumers were when a push below a limit looked last.
    head: u64,
    /// The claim that this endpoint has out.
    claimed: Claimed,
}

impl<T> MpmcEnd<T> {
    pub(crate) fn new(ring: Arc<MpmcRing<T>>) -> Self {
        Self {
            ring,
            near: 0,
            head: 0,
            claimed: Claimed::default(),
        }
    }

    /// Appends an element, in one attempt. Gives it back, with `true` if the ring is open and full,
    /// and `false` if [`try_push`](Self::try_push) is to try again or say why not. An end pushes or
    /// pops, and does not do both.
    #[inline(always)]
    pub(crate) fn push_here(&mut self, value: T) -> Result<(), (T, bool)> {
        self.ring.push_here(&mut self.near, value)
    }

    /// Works as [`MpmcRing::try_push`].
    #[inline(always)]
    pub(crate) fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        self.ring.try_push_near(&mut self.near, value)
    }

    /// Appends an element below `limit`, in one attempt. Gives it back if
    /// [`try_push_within`](Self::try_push_within) is to try again or say why not.
    #[inline(always)]
    pub(crate) fn push_here_within(&mut self, value: T, limit: u64) -> Result<(), T> {
        self.ring
            .push_here_within(&mut self.near, self.head, value, limit)
    }

    /// Works as [`MpmcRing::try_push_within`].
    #[inline(always)]
    pub(crate) fn try_push_within(&mut self, value: T, limit: u64) -> Result<(), PushError<T>> {
        self.ring
            .try_push_within_near(&mut self.near, &mut self.head, value, limit)
    }

    /// Returns the ring, and where a claim is [remembered](MpmcClaim::remember).
    pub(crate) fn parts(&mut self) -> (&MpmcRing<T>, &mut Claimed) {
        (&self.ring, &mut self.claimed)
    }

    /// Returns the ring alone.
    pub(crate) fn ring(&self) -> Arc<MpmcRing<T>> {
        Arc::clone(&self.ring)
    }

    /// Returns a claim that was remembered here and forgotten, to be given up. No other endpoint
    /// has its tickets: a claim borrows the place where it is remembered for as long as it lives.
    pub(crate) fn end_forgotten(&mut self) -> MpmcClaim<'_, T> {
        MpmcClaim::again(&self.ring, self.ring.slots(), &mut self.claimed)
    }

    /// Claims room for one element below `limit`.
    pub(crate) fn claim_within(&mut self, limit: u64) -> Result<MpmcClaim<'_, T>, PushError<()>> {
        self.ring
            .claim_within_near(&mut self.near, &mut self.head, limit)
    }

    /// Takes the oldest element, in one attempt. Fails, with `true` if the ring is open and empty.
    #[inline(always)]
    pub(crate) fn pop_here(&mut self) -> Result<T, bool> {
        Ok(self.ring.pop_here(&mut self.near)?.1)
    }

    /// Works as [`MpmcRing::try_pop_at`].
    #[inline(always)]
    pub(crate) fn try_pop_at(&mut self) -> Result<(u64, T), PopError> {
        self.ring.try_pop_near(&mut self.near)
    }
}

impl<T> Clone for MpmcEnd<T> {
    fn clone(&self) -> Self {
        Self {
            ring: Arc::clone(&self.ring),
            near: self.near,
            head: self.head,
            claimed: Claimed::default(),
        }
    }
}

impl<T> Deref for MpmcEnd<T> {
    type Target = MpmcRing<T>;

    fn deref(&self) -> &MpmcRing<T> {
        &self.ring
    }
}
