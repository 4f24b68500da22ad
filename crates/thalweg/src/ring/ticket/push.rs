//! Pushing by any number of threads.

use std::ops::Range;

use super::claim::TicketClaim;
use super::slot::{Slots, State};
use super::{Backoff, CLOSED, Ticket};
use crate::ring::sync::{Ordering, fault, order};
use crate::ring::{ClaimError, PushError};

/// The reason why no tickets were drawn.
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

    fn claim(self, asked: usize) -> ClaimError {
        match self {
            Self::Full(free) => ClaimError::Full {
                asked,
                free: free as usize,
            },
            Self::Closed => ClaimError::Closed,
        }
    }
}

impl<T> Ticket<T> {
    /// Draws tickets for `min` to `max` positions, as many as are free. Begins where `near` says,
    /// which becomes the position after them.
    #[inline(always)]
    fn draw(
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
                match self.tail.draw(tail, next) {
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
                // Others have drawn these tickets, or given some back.
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
    pub(super) fn near(&self) -> u64 {
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
            // ORDERING: Relaxed, as in `draw`. The closed bit would make it another.
            State::Earlier if self.tail.0.load(Ordering::Relaxed) == position => {
                return Err((value, true));
            }
            _ => return Err((value, false)),
        }
        if self.tail.draw(position, position + 1).is_err() {
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
        match self.draw(slots, near, 1, 1) {
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
    /// [`commit`](TicketClaim::commit). One compare-and-swap for all.
    ///
    /// Elements that are pushed after the claim come behind it, and wait for it; and the room that
    /// the claim leaves unused then becomes holes.
    ///
    /// # Errors
    /// [`ClaimError::Full`] if fewer slots are free, [`ClaimError::TooLarge`] if the ring never
    /// holds `count`, [`ClaimError::Closed`] if it is closed.
    pub fn claim(&self, count: usize) -> Result<TicketClaim<'_, T>, ClaimError> {
        let capacity = self.capacity();
        if count > capacity && !self.is_closed() {
            return Err(ClaimError::TooLarge {
                asked: count,
                capacity,
            });
        }
        let slots = self.slots();
        let tickets = self.draw(slots, &mut self.near(), count as u64, count as u64);
        let tickets = tickets.map_err(|refused| refused.claim(count))?;
        Ok(TicketClaim::new(self, slots, tickets))
    }

    /// Appends elements from the front of `values` while there is room, in one run, and says how
    /// many. A closed ring takes 0.
    pub fn push_slice(&self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let want = values.len().min(self.capacity()) as u64;
        let slots = self.slots();
        let Ok(tickets) = self.draw(slots, &mut self.near(), want.min(1), want) else {
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
