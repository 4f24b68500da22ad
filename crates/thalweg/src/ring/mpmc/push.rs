//! Pushing by any number of threads: one element, room that a producer claims and publishes later,
//! and admission below a limit.
//!
//! # Pushing below a limit
//! *Rule.* An element is admitted if and only if fewer than `limit` positions are claimed by
//! producers and not yet by consumers at the moment at which it claims its own, and its slot is
//! free.
//!
//! *Why it is exact.* `head` only grows, so an old copy of it makes the ring look fuller than it
//! is: position − copy < `limit` admits without a look at the consumers' line, and a swap that
//! succeeds says that `tail` is at that position then. A refusal needs a moment at which the ring
//! held `limit`: `tail` is read first and `head` after it, so at the moment of the first read there
//! were at least as many as the difference.
//!
//! *Orders.* Reads of two counters describe one moment only if the second is not older than the
//! first. So a push below a limit releases what its thread knew of `head` with the swap of `tail`,
//! and a thread that refuses acquires that: all that had left before the ring came to that tail is
//! known to have left.

use core::ops::Range;

use super::slot::{Slots, State};
use super::{Apart, Backoff, CLOSED, MpmcRing};
use crate::ring::panics::Panics;
use crate::ring::sync::{Ordering, fault, order};
use crate::ring::{PushError, RingClaimError};

/// The reason why no tickets were claimed.
enum Refused {
    /// This many positions are free, fewer than asked for.
    Full(u64),
    Closed,
}

impl Refused {
    fn push<T>(self, value: T) -> PushError<T> {
        match self {
            Self::Full(_) => PushError::Full(value),
            Self::Closed => PushError::Closed(value),
        }
    }

    fn claim(self, asked: usize) -> RingClaimError {
        match self {
            Self::Full(free) => RingClaimError::Full {
                asked,
                free: free as usize,
            },
            Self::Closed => RingClaimError::Closed,
        }
    }
}

impl<T> MpmcRing<T> {
    /// Claims tickets for `min` to `max` positions, as many as are free. Begins where `near` says,
    /// which becomes the position after them.
    #[inline(always)]
    fn claim_slots(
        &self,
        slots: Slots<'_, T>,
        near: &mut u64,
        min: u64,
        max: u64,
    ) -> Result<Range<u64>, Refused> {
        let mut backoff = Backoff::new();
        let mut tail = *near;
        loop {
            let (count, then) = slots.free_run(tail, max);
            let now = if count >= min {
                let next = tail + count;
                match self.tail.claim_tickets(tail, next) {
                    Ok(_) => {
                        *near = next;
                        return Ok(tail..next);
                    }
                    Err(now) => {
                        backoff.wait();
                        now
                    }
                }
            } else {
                // ORDERING: Relaxed; slots are passed on by their stamps (rule 2).
                let now = self.tail.0.load(Ordering::Relaxed);
                if then == State::Earlier && (now == tail || fault::is("near")) {
                    *near = tail;
                    return Err(Refused::Full(count));
                }
                // Others have claimed these tickets, or given some back.
                now
            };
            if now & CLOSED != 0 {
                return Err(self.refuse());
            }
            tail = now;
        }
    }

    /// Returns the tail, to begin at where nothing better is known.
    #[inline(always)]
    fn near(&self) -> u64 {
        // ORDERING: Relaxed; slots are passed on by their stamps (rule 2).
        self.tail.0.load(Ordering::Relaxed) & !CLOSED
    }

    #[cold]
    fn refuse(&self) -> Refused {
        // The closing thread's work before is visible to a thread that gets `Closed`.
        // ORDERING: closed (Acquire), pairs with the close in `close`.
        self.tail.0.load(order::closed());
        Refused::Closed
    }

    /// Appends an element.
    ///
    /// Costs one compare-and-swap, and no look at the consumers' side but the slot.
    ///
    /// # Errors
    /// [`PushError::Full`] and [`PushError::Closed`] give the element back. Full also means that a
    /// consumer is still taking an element out of the slot.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), PushError<T>> {
        let mut near = self.near();
        match self.push_here(&mut near, value) {
            Ok(()) => Ok(()),
            Err((value, true)) => Err(PushError::Full(value)),
            Err((value, false)) => self.try_push_near(&mut near, value),
        }
    }

    /// Appends an element at `near`, which is where the tail is as far as the caller knows; gives
    /// it back if that is wrong, and `true` if the ring is open and full.
    #[inline(always)]
    pub(super) fn push_here(&self, near: &mut u64, value: T) -> Result<(), (T, bool)> {
        let (slots, position) = (self.slots(), *near);
        match slots.room(position) {
            State::Free => {}
            // ORDERING: Relaxed, as in `claim_slots`. The closed bit would make it another.
            State::Earlier if self.tail.0.load(Ordering::Relaxed) == position => {
                return Err((value, true));
            }
            _ => return Err((value, false)),
        }
        if self.tail.claim_tickets(position, position + 1).is_err() {
            return Err((value, false));
        }
        *near = position + 1;
        // SAFETY: our ticket, not published (rule 2).
        unsafe { slots.slot(position).write(value) };
        slots.publish(position);
        Ok(())
    }

    /// Works as [`try_push`](Self::try_push), by an endpoint that was at `near`.
    #[inline(never)]
    pub(super) fn try_push_near(&self, near: &mut u64, value: T) -> Result<(), PushError<T>> {
        let slots = self.slots();
        match self.claim_slots(slots, near, 1, 1) {
            Ok(tickets) => {
                let position = tickets.start;
                let slot = slots.slot(position);
                // SAFETY: our ticket, not published (rule 2).
                unsafe { slot.write(value) };
                slots.publish(position);
                Ok(())
            }
            Err(refused) => Err(refused.push(value)),
        }
    }

    /// Claims room for exactly `count` elements, to be written and then published by
    /// [`commit`](MpmcClaim::commit). One compare-and-swap for all.
    ///
    /// Elements that are pushed after the claim are delivered after it; and slots that the claim
    /// does not use are then skipped.
    ///
    /// # Errors
    /// [`RingClaimError::Full`] if fewer slots are free, [`RingClaimError::TooLarge`] if the ring
    /// never holds `count`, [`RingClaimError::Closed`] if it is closed.
    pub fn claim(&self, count: usize) -> Result<MpmcClaim<'_, T>, RingClaimError> {
        let capacity = self.capacity();
        if count > capacity && !self.is_closed() {
            return Err(RingClaimError::TooLarge {
                asked: count,
                capacity,
            });
        }
        let slots = self.slots();
        let tickets = self.claim_slots(slots, &mut self.near(), count as u64, count as u64);
        let tickets = tickets.map_err(|refused| refused.claim(count))?;
        Ok(MpmcClaim::new(self, slots, tickets))
    }

    /// Appends elements from the front of `values` while there is room, in one run, and says how
    /// many. A closed ring takes 0.
    pub fn push_slice(&self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let want = values.len().min(self.capacity()) as u64;
        let slots = self.slots();
        let Ok(tickets) = self.claim_slots(slots, &mut self.near(), want.min(1), want) else {
            return 0;
        };
        let count = (tickets.end - tickets.start) as usize;
        for (position, value) in tickets.zip(values) {
            // SAFETY: the ticket is ours, and its slot was free (rule 2).
            unsafe { slots.slot(position).write(*value) };
            slots.publish(position);
        }
        count
    }
}

impl Apart {
    /// Claims one ticket, for a producer that others weigh.
    #[inline(always)]
    fn draw_weighed(&self, position: u64) -> Result<u64, u64> {
        // ORDERING: admit (Release), pairs with the weigh in `draw_within`: what this
        // thread knew of `head`. A failure is weighed itself.
        self.0
            .compare_exchange_weak(position, position + 1, order::admit(), order::weigh())
    }
}

impl<T> MpmcRing<T> {
    /// Appends an element if fewer than `limit` slots are taken at that instant; elements that are
    /// being pushed, claims and skipped slots count. A limit above the capacity is the capacity.
    ///
    /// Producers with different limits share a ring by priority: slots above the lower limits are
    /// kept free for the higher ones. The count is exact as long as every producer of the ring
    /// pushes by this method.
    ///
    /// ```
    /// use thalweg::ring::{Layout, PushError, MpmcRing};
    ///
    /// let ring = MpmcRing::new(4, Layout::Packed)?;
    /// assert!(ring.try_push_within("low", 2).is_ok());
    /// assert!(ring.try_push_within("low", 2).is_ok());
    /// assert_eq!(ring.try_push_within("low", 2), Err(PushError::Full("low")));
    /// assert!(ring.try_push_within("high", 4).is_ok());
    /// # Ok::<(), thalweg::ring::CapacityError>(())
    /// ```
    ///
    /// # Errors
    /// [`PushError::Full`] and [`PushError::Closed`] return the element. `Full` is also returned if
    /// a consumer is still taking an element out of the next slot, the ring having wrapped around
    /// meanwhile.
    #[inline]
    pub fn try_push_within(&self, value: T, limit: usize) -> Result<(), PushError<T>> {
        self.try_push_within_near(&mut self.near(), &mut 0, value, limit as u64)
    }

    /// Appends an element at `near` if that is within `limit` of `head`, which is where consumers
    /// were as far as the caller knows; gives it back if one of the two is wrong or there is no
    /// room.
    #[inline(always)]
    pub(super) fn push_here_within(
        &self,
        near: &mut u64,
        head: u64,
        value: T,
        limit: u64,
    ) -> Result<(), T> {
        let (slots, position) = (self.slots(), *near);
        if position.wrapping_sub(head) >= limit
            || slots.room(position) != State::Free
            || self.tail.draw_weighed(position).is_err()
        {
            return Err(value);
        }
        *near = position + 1;
        // SAFETY: our ticket, not published (rule 2).
        unsafe { slots.slot(position).write(value) };
        slots.publish(position);
        Ok(())
    }

    /// Works as [`try_push_within`](Self::try_push_within), by an endpoint that was at `near` when
    /// consumers were at `head`.
    #[inline(never)]
    pub(super) fn try_push_within_near(
        &self,
        near: &mut u64,
        head: &mut u64,
        value: T,
        limit: u64,
    ) -> Result<(), PushError<T>> {
        let position = match self.draw_within(near, head, limit) {
            Ok(position) => position,
            Err(PushError::Full(())) => return Err(PushError::Full(value)),
            Err(PushError::Closed(())) => return Err(PushError::Closed(value)),
        };
        let slots = self.slots();
        // SAFETY: our ticket, not published (rule 2).
        unsafe { slots.slot(position).write(value) };
        slots.publish(position);
        Ok(())
    }

    /// Claims room for one element below a limit, as
    /// [`try_push_within_near`](Self::try_push_within_near) pushes one.
    pub(super) fn claim_within_near(
        &self,
        near: &mut u64,
        head: &mut u64,
        limit: u64,
    ) -> Result<MpmcClaim<'_, T>, PushError<()>> {
        let position = self.draw_within(near, head, limit)?;
        Ok(MpmcClaim::new(self, self.slots(), position..position + 1))
    }

    /// Claims a ticket of a free position.
    #[inline(always)]
    fn draw_within(
        &self,
        near: &mut u64,
        head: &mut u64,
        limit: u64,
    ) -> Result<u64, PushError<()>> {
        let slots = self.slots();
        let mut backoff = Backoff::long();
        // ORDERING: weigh (Acquire), pairs with the admit in `draw_weighed`.
        let mut tail = self.tail.0.load(order::weigh());
        loop {
            if tail & CLOSED != 0 {
                // The closing thread's work before is visible to a thread that gets `Closed`.
                // ORDERING: closed (Acquire), pairs with the close in `close`.
                self.tail.0.load(order::closed());
                return Err(PushError::Closed(()));
            }
            if tail.saturating_sub(*head) >= limit {
                if !fault::is("head_old") {
                    *head = self.popped();
                }
                // Beyond `tail` that is old; its slot will say so.
                if tail.saturating_sub(*head) >= limit {
                    *near = tail.max(*head);
                    return Err(PushError::Full(()));
                }
            }
            let now = match slots.room(tail) {
                State::Free => match self.tail.draw_weighed(tail) {
                    Ok(_) => {
                        *near = tail + 1;
                        return Ok(tail);
                    }
                    Err(now) => {
                        backoff.wait();
                        now
                    }
                },
                state => {
                    // ORDERING: weigh (Acquire), as above.
                    let now = self.tail.0.load(order::weigh());
                    if state == State::Earlier && now == tail {
                        *near = tail;
                        return Err(PushError::Full(()));
                    }
                    now
                }
            };
            // Others have claimed this ticket, and the limit is to be asked for again.
            let is_torn = fault::is("limit_unasked") && now & CLOSED == 0;
            tail = now;
            if is_torn {
                *head = tail;
            }
        }
    }
}

/// Claimed slots of a [`MpmcRing`](super::MpmcRing) ring: write, then [`commit`](Self::commit).
///
/// Elements are written in order. `commit` publishes those that were written, and releases the
/// other slots, if the ring is open and no other thread has pushed or claimed after this claim.
/// Else consumers skip these slots, which stay taken until all before them are consumed. A claim
/// that is dropped without `commit` publishes nothing, and drops the elements that were written
/// into it; their slots are skipped.
///
/// Forgetting a claim (`std::mem::forget`) leaks the elements that were written, and stops the ring
/// for ever: no element after its positions is delivered. (A [channel](crate::channel) cancels the
/// forgotten claim of a sender when the sender is used again, or dropped.)
///
/// ```
/// use thalweg::ring::{Layout, MpmcRing};
///
/// let ring = MpmcRing::new(8, Layout::Packed)?;
/// let mut claim = ring.claim(3).expect("an empty ring has room for 3");
/// claim.push(1).expect("room for 3");
/// assert_eq!(claim.commit(), 1);
/// assert!(ring.try_push(4).is_ok());
/// assert_eq!(ring.try_pop_at(), Ok((0, 1)));
/// assert_eq!(ring.try_pop_at(), Ok((1, 4)));
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
#[must_use = "a claim that is not committed publishes nothing"]
pub struct MpmcClaim<'a, T> {
    slots: Slots<'a, T>,
    /// The next position to publish.
    start: u64,
    /// Room, from there on.
    len: usize,
    /// The number of elements that are written, from the start.
    written: usize,
    /// Where the tickets came from.
    ring: &'a MpmcRing<T>,
    /// Positions that are not written do not go back.
    is_kept: bool,
    /// Where its endpoint remembers it.
    remembered: Option<&'a mut Claimed>,
}

/// The tickets of an endpoint's claim, until that is over.
#[derive(Debug, Default)]
pub(crate) struct Claimed(Range<u64>);

// SAFETY: the slots belong to the thread that holds the claim (rule 2), on any thread, and live as
// long as the ring that it borrows; what is written there may be committed or dropped on another
// thread.
unsafe impl<T: Send> Send for MpmcClaim<'_, T> {}

impl<'a, T> MpmcClaim<'a, T> {
    /// Makes a claim of the caller's tickets, for free positions (rule 2). Until they are
    /// published, they count as without an element.
    fn new(ring: &'a MpmcRing<T>, slots: Slots<'a, T>, tickets: Range<u64>) -> Self {
        ring.absent.add(tickets.end - tickets.start);
        Self {
            slots,
            start: tickets.start,
            len: (tickets.end - tickets.start) as usize,
            written: 0,
            ring,
            is_kept: false,
            remembered: None,
        }
    }

    /// Has the endpoint that lends `claimed`, one of this ring, remember this claim, so that it can
    /// [end it](super::MpmcEnd::end_forgotten) if it is forgotten.
    pub(crate) fn remember(&mut self, claimed: &'a mut Claimed) {
        claimed.0 = self.start..self.start + self.len as u64;
        self.remembered = Some(claimed);
    }

    /// Returns the claim of these tickets, which was forgotten; what was written is leaked.
    pub(super) fn again(ring: &'a MpmcRing<T>, slots: Slots<'a, T>, claimed: &mut Claimed) -> Self {
        let tickets = core::mem::take(&mut claimed.0);
        // They count as absent still.
        ring.absent.subtract(tickets.end - tickets.start);
        Self::new(ring, slots, tickets)
    }

    fn forget(&mut self) {
        if let Some(claimed) = self.remembered.take() {
            claimed.0 = 0..0;
        }
    }

    /// Returns the number of slots that were claimed.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is a claim of 0 slots.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many elements can still be written.
    pub fn remaining(&self) -> usize {
        self.len - self.written
    }

    /// Writes the next element.
    ///
    /// # Errors
    /// Returns the element if all claimed slots are written.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.written == self.len {
            return Err(value);
        }
        let slot = self.slots.slot(self.start + self.written as u64);
        // SAFETY: one of the claim's positions, not published (rule 2).
        unsafe { slot.write(value) };
        self.written += 1;
        Ok(())
    }

    /// Writes the next elements, as many as the slots that are left, and returns their number.
    pub fn write(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let count = values.len().min(self.remaining());
        let position = self.start + self.written as u64;
        for (at, value) in (position..).zip(&values[..count]) {
            // SAFETY: one of the claim's positions, not published (rule 2).
            unsafe { self.slots.slot(at).write(*value) };
        }
        self.written += count;
        count
    }

    /// Publishes the elements that were written, and returns their number.
    ///
    /// It cannot fail. In a ring that was closed meanwhile the elements are there to take.
    #[inline]
    pub fn commit(mut self) -> usize {
        let count = self.written;
        let positions = self.start..self.start + count as u64;
        self.written = 0;
        self.len -= count;
        self.start = positions.end;
        // The rest is given up by the drop.
        self.forget();
        for position in positions {
            self.slots.publish(position);
        }
        if count > 0 {
            self.ring.absent.subtract(count as u64);
        }
        count
    }

    /// Gives the tickets of positions that are not written back, if no thread has claimed any since
    /// and the ring is open: their slots are as they were (rule 5). Else they are left to become
    /// holes, even if those that were claimed since go back in the meantime: the caller of the
    /// first attempt has settled what that changes.
    pub(crate) fn give_back(&mut self) {
        let Range { start, end } = self.rest();
        if start == end || core::mem::replace(&mut self.is_kept, true) {
            return;
        }
        if self.ring.tail.unclaim_tickets(start, end) {
            self.len = self.written;
            self.ring.absent.subtract(end - start);
        }
    }

    /// Returns the positions that are not written.
    pub(crate) fn rest(&self) -> Range<u64> {
        self.start + self.written as u64..self.start + self.len as u64
    }

    /// Counts the next position as done: takes the element that was written there, if any, and
    /// makes it a hole.
    fn abandon(&mut self) -> Option<T> {
        let position = self.start;
        let slot = self.slots.slot(position);
        // SAFETY: written through this claim, not published, and counted as gone here (rule 2).
        let value = (self.written > 0).then(|| unsafe { slot.take() });
        self.written = self.written.saturating_sub(1);
        self.len -= 1;
        self.start += 1;
        self.slots.give_up(position);
        value
    }
}

impl<T> Drop for MpmcClaim<'_, T> {
    fn drop(&mut self) {
        self.forget();
        self.give_back();
        let mut panics = Panics::default();
        while self.len > 0 {
            let value = self.abandon();
            panics.catch(|| drop(value));
        }
        if self.ring.absent.get() > 0 {
            self.ring.pass_holes();
        }
        panics.resume();
    }
}

shown!([T] MpmcClaim<'_, T>, "MpmcClaim", this, "len": this.len, "written": this.written);
