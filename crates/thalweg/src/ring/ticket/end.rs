//! An endpoint's own way into a ring that it shares.

use std::ops::Deref;

use super::Ticket;
use super::claim::{Claimed, TicketClaim};
use crate::ring::sync::Arc;
use crate::ring::{PopError, PushError};

/// The ring, and where this endpoint drew its last ticket.
///
/// The next push or pop begins there: as long as no other endpoint has drawn since, it does not
/// have to load the counter that all share before it asks for the slot, and in a crowd it finds out
/// by the slot that others were faster.
pub(crate) struct TicketEnd<T> {
    ring: Arc<Ticket<T>>,
    near: u64,
    /// Where consumers were when a push below a limit looked last.
    head: u64,
    /// The claim that this endpoint has out.
    claimed: Claimed,
}

impl<T> TicketEnd<T> {
    pub(crate) fn new(ring: Arc<Ticket<T>>) -> Self {
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

    /// Works as [`Ticket::try_push`].
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

    /// Works as [`Ticket::try_push_within`].
    #[inline(always)]
    pub(crate) fn try_push_within(&mut self, value: T, limit: u64) -> Result<(), PushError<T>> {
        self.ring
            .try_push_within_near(&mut self.near, &mut self.head, value, limit)
    }

    /// Returns the ring, and where a claim is [remembered](TicketClaim::remember).
    pub(crate) fn parts(&mut self) -> (&Ticket<T>, &mut Claimed) {
        (&self.ring, &mut self.claimed)
    }

    /// Returns the ring alone.
    pub(crate) fn ring(&self) -> Arc<Ticket<T>> {
        Arc::clone(&self.ring)
    }

    /// Returns a claim that was remembered here and forgotten, to be given up. No other endpoint
    /// has its tickets: a claim borrows the place where it is remembered for as long as it lives.
    pub(crate) fn end_forgotten(&mut self) -> TicketClaim<'_, T> {
        TicketClaim::again(&self.ring, self.ring.slots(), &mut self.claimed)
    }

    /// Claims room for one element below `limit`.
    pub(crate) fn claim_within(&mut self, limit: u64) -> Result<TicketClaim<'_, T>, PushError<()>> {
        self.ring
            .claim_within_near(&mut self.near, &mut self.head, limit)
    }

    /// Takes the oldest element, in one attempt. Fails, with `true` if the ring is open and empty.
    #[inline(always)]
    pub(crate) fn pop_here(&mut self) -> Result<T, bool> {
        Ok(self.ring.pop_here(&mut self.near)?.1)
    }

    /// Works as [`Ticket::try_pop_at`].
    #[inline(always)]
    pub(crate) fn try_pop_at(&mut self) -> Result<(u64, T), PopError> {
        self.ring.try_pop_near(&mut self.near)
    }
}

impl<T> Clone for TicketEnd<T> {
    fn clone(&self) -> Self {
        Self {
            ring: Arc::clone(&self.ring),
            near: self.near,
            head: self.head,
            claimed: Claimed::default(),
        }
    }
}

impl<T> Deref for TicketEnd<T> {
    type Target = Ticket<T>;

    fn deref(&self) -> &Ticket<T> {
        &self.ring
    }
}
