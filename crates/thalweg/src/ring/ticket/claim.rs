//! Room that a producer has claimed and not yet published.

use std::ops::Range;

use super::super::panics::Panics;
use super::Ticket;
use super::slot::Slots;

/// Claimed room in a [`Ticket`](super::Ticket) ring: write, then [`commit`](Self::commit).
///
/// Elements are written in order. `commit` publishes those that were written, and the rest of the
/// room goes back. It can do so only if the ring is open and no other thread has pushed or claimed
/// behind this claim meanwhile: else the rest become holes, which take up room until all before
/// them is gone. A claim that is dropped without `commit` publishes nothing, and drops what was
/// written into it; these positions become holes.
///
/// Forgetting a claim (`std::mem::forget`) leaks what was written, and stops the ring for good:
/// what comes behind its positions is never delivered. (A [channel](crate::channel) remembers the
/// claim of a sender, and gives it up when the sender is used again, or dropped.)
///
/// ```
/// use thalweg::ring::{Layout, Ticket};
///
/// let ring = Ticket::new(8, Layout::Packed)?;
/// let mut claim = ring.claim(3).expect("an empty ring has room for 3");
/// claim.push(1).expect("room for 3");
/// assert_eq!(claim.commit(), 1);
/// assert!(ring.try_push(4).is_ok());
/// assert_eq!(ring.try_pop_at(), Ok((0, 1)));
/// assert_eq!(ring.try_pop_at(), Ok((1, 4)));
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
#[must_use = "a claim that is not committed publishes nothing"]
pub struct TicketClaim<'a, T> {
    slots: Slots<'a, T>,
    /// The next position to publish.
    start: u64,
    /// Room, from there on.
    len: usize,
    /// The number of elements that are written, from the start.
    written: usize,
    /// Where the tickets came from.
    ring: &'a Ticket<T>,
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
unsafe impl<T: Send> Send for TicketClaim<'_, T> {}

impl<'a, T> TicketClaim<'a, T> {
    /// Makes a claim of the caller's tickets, for free positions (rule 2). Until they are
    /// published, they count as without an element.
    pub(super) fn new(ring: &'a Ticket<T>, slots: Slots<'a, T>, tickets: Range<u64>) -> Self {
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
    /// [end it](super::TicketEnd::end_forgotten) if it is forgotten.
    pub(crate) fn remember(&mut self, claimed: &'a mut Claimed) {
        claimed.0 = self.start..self.start + self.len as u64;
        self.remembered = Some(claimed);
    }

    /// Returns the claim of these tickets, which was forgotten; what was written is leaked.
    pub(super) fn again(ring: &'a Ticket<T>, slots: Slots<'a, T>, claimed: &mut Claimed) -> Self {
        let tickets = std::mem::take(&mut claimed.0);
        // They count as absent still.
        ring.absent.subtract(tickets.end - tickets.start);
        Self::new(ring, slots, tickets)
    }

    fn forget(&mut self) {
        if let Some(claimed) = self.remembered.take() {
            claimed.0 = 0..0;
        }
    }

    /// Returns how many elements the claim has room for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is a claim of no room at all.
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
    /// Gives the element back if all the room is used.
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

    /// Writes as many of the next elements as there is room for, and says how many.
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

    /// Publishes what was written, and says how many elements.
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

    /// Gives the tickets of positions that are not written back, if no thread has drawn any since
    /// and the ring is open: their slots are as they were (rule 5). Else they are left to become
    /// holes, even if those that were drawn since go back in the meantime: the caller of the first
    /// attempt has settled what that changes.
    pub(crate) fn give_back(&mut self) {
        let Range { start, end } = self.rest();
        if start == end || std::mem::replace(&mut self.is_kept, true) {
            return;
        }
        if self.ring.tail.redraw(start, end) {
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

impl<T> Drop for TicketClaim<'_, T> {
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

shown!([T] TicketClaim<'_, T>, "TicketClaim", this, "len": this.len, "written": this.written);
