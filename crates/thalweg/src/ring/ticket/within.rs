//! Pushing below a limit: admission.
//!
//! *Rule.* An element is admitted if and only if fewer than `limit` positions are drawn by
//! producers and not yet by consumers at the moment at which it draws its own, and its slot is
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

use super::claim::TicketClaim;
use super::slot::State;
use super::{Apart, Backoff, CLOSED, Ticket};
use crate::ring::PushError;
use crate::ring::sync::{fault, order};

impl Apart {
    /// Works as [`draw`](Self::draw) of one ticket, by a producer that others weigh.
    #[inline(always)]
    fn draw_weighed(&self, position: u64) -> Result<u64, u64> {
        // ORDERING: admit (Release), pairs with the weigh in `draw_within`: what this
        // thread knew of `head`. A failure is weighed itself.
        self.0
            .compare_exchange_weak(position, position + 1, order::admit(), order::weigh())
    }
}

impl<T> Ticket<T> {
    /// Appends an element if fewer than `limit` are in the ring at that moment; those that are
    /// being pushed, claims and holes count. A limit above the capacity is the capacity.
    ///
    /// Producers with different limits share a ring by priority: what the lower limits leave is
    /// kept free for the higher ones. The count is exact as long as every producer of the ring
    /// pushes by this method.
    ///
    /// ```
    /// use thalweg::ring::{Layout, PushError, Ticket};
    ///
    /// let ring = Ticket::new(4, Layout::Packed)?;
    /// assert!(ring.try_push_within("low", 2).is_ok());
    /// assert!(ring.try_push_within("low", 2).is_ok());
    /// assert_eq!(ring.try_push_within("low", 2), Err(PushError::Full("low")));
    /// assert!(ring.try_push_within("high", 4).is_ok());
    /// # Ok::<(), thalweg::ring::CapacityError>(())
    /// ```
    ///
    /// # Errors
    /// [`PushError::Full`] and [`PushError::Closed`] give the element back. Full also means that a
    /// consumer is still taking an element out of the slot, which takes a lap of the ring.
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
    ) -> Result<TicketClaim<'_, T>, PushError<()>> {
        let position = self.draw_within(near, head, limit)?;
        Ok(TicketClaim::new(self, self.slots(), position..position + 1))
    }

    /// Draws a ticket of a free position.
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
            // Others have drawn this ticket, and the limit is to be asked for again.
            let is_torn = fault::is("limit_unasked") && now & CLOSED == 0;
            tail = now;
            if is_torn {
                *head = tail;
            }
        }
    }
}
