//! Popping by any number of threads.

use super::slot::{Slots, State};
use super::{Backoff, Ticket};
use crate::ring::PopError;
use crate::ring::sync::{Ordering, fault};

impl<T> Ticket<T> {
    /// Draws tickets for 1 to `max` elements, `max` being at least 1, and passes over holes; gives
    /// the first position and how many. Begins where `near` says, which becomes the position after
    /// them.
    #[inline(always)]
    fn serve(&self, slots: Slots<'_, T>, near: &mut u64, max: u64) -> Result<(u64, u64), PopError> {
        let mut backoff = Backoff::new();
        let mut head = *near;
        loop {
            let (count, then) = slots.element_run(head, max);
            if count == 0 && then != State::Hole {
                let now = self.popped();
                if now == head && then != State::Later {
                    *near = head;
                    return Err(self.why_nothing(head));
                }
                // Others have drawn this ticket.
                head = now;
                continue;
            }
            let next = head + count.max(1);
            match self.head.draw(head, next) {
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
            match self.head.draw(head, head + 1) {
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

    /// Takes the oldest element, and says its position.
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
    pub(super) fn pop_here(&self, near: &mut u64) -> Result<(u64, T), bool> {
        let (slots, position) = (self.slots(), *near);
        match slots.content(position) {
            State::Element => {}
            State::Hole | State::Later => return Err(false),
            State::Free | State::Earlier => return Err(self.is_nothing_at(position)),
        }
        if self.head.draw(position, position + 1).is_err() {
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
    pub(super) fn try_pop_near(&self, near: &mut u64) -> Result<(u64, T), PopError> {
        let slots = self.slots();
        let (position, _) = self.serve(slots, near, 1)?;
        // SAFETY: our ticket, seen as element, taken once (rule 3).
        Ok((position, unsafe { slots.take(position) }))
    }

    /// Moves up to `max` elements to the end of `out` with one compare-and-swap, and says how
    /// many.
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
        let (first, count) = self.serve(slots, &mut self.popped(), max)?;
        // SAFETY: our tickets, seen as elements, taken once (rule 3); `out` has room for `max`.
        unsafe { slots.take_into(first, count, out) };
        Ok(count as usize)
    }

    /// Makes room in `out` for what is in the ring, at most `max`, before any ticket is drawn; how
    /// many there is room for, at most `max`.
    #[inline]
    fn reserve(&self, out: &mut Vec<T>, max: usize) -> u64 {
        let max = max.min(self.capacity());
        if out.capacity() - out.len() < max {
            out.reserve(max.min(self.len().max(1)));
        }
        max.min(out.capacity() - out.len()) as u64
    }
}
