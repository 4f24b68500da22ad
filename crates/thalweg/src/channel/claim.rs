//! Writing into a channel's memory: claim, write, commit.

use std::fmt;

use super::discard::{discard_left, discard_tickets};
use super::error::ClaimError;
use super::hub::{Gate, Hub, Overflow};
use super::send_end::SendEnd;
use super::sender::Sender;
use super::shape::Shape;
use crate::ring::{self, Ticket, TicketClaim};
use crate::wait::block;

enum Room<'c, T> {
    Ring(ring::Claim<'c, T>),
    Ticket(TicketClaim<'c, T>, &'c Ticket<T>),
}

/// Room in a channel: write elements, then [`commit`](Self::commit); see [`Sender::claim`].
///
/// A claim that is dropped sends nothing and drops what was written. In a channel where several
/// senders share a ring, the elements of a claim come out one after another, and those sent later
/// by others wait for it: be quick.
#[must_use = "a claim that is not committed sends nothing"]
pub struct Claim<'c, T> {
    /// Taken by `commit`.
    room: Option<Room<'c, T>>,
    hub: &'c Hub,
    gate: &'c Gate,
}

macro_rules! each {
    ($self:ident.$room:ident, $claim:ident => $do:expr, $else:expr) => {
        match &$self.$room {
            Some(Room::Ring($claim)) => $do,
            Some(Room::Ticket($claim, _)) => $do,
            None => $else,
        }
    };
    (mut $self:ident.$room:ident, $claim:ident => $do:expr, $else:expr) => {
        match &mut $self.$room {
            Some(Room::Ring($claim)) => $do,
            Some(Room::Ticket($claim, _)) => $do,
            None => $else,
        }
    };
}

impl<T> Claim<'_, T> {
    /// How many elements the claim has room for.
    pub fn len(&self) -> usize {
        each!(self.room, claim => claim.len(), 0)
    }

    /// Whether it is a claim of no room at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many elements can still be written.
    pub fn remaining(&self) -> usize {
        each!(self.room, claim => claim.remaining(), 0)
    }

    /// Writes the next element.
    ///
    /// # Errors
    /// Gives the element back if all the room is used.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        each!(mut self.room, claim => claim.push(value), Err(value))
    }

    /// Writes as many of the next elements as there is room for, and says how many.
    pub fn write(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        each!(mut self.room, claim => claim.write(values), 0)
    }

    /// Sends what was written, wakes receivers that sleep, and says how many elements. Room that
    /// was not used goes back.
    #[inline]
    pub fn commit(mut self) -> usize {
        match self.room.take() {
            Some(Room::Ring(mut claim)) => {
                let sent = claim.publish();
                if self.hub.readable.notify_or_shut(sent.max(1)) {
                    discard_left(claim.producer(), self.gate);
                }
                sent
            }
            Some(Room::Ticket(claim, ring)) => self.commit_shared(claim, ring),
            None => 0,
        }
    }

    fn commit_shared(&self, claim: TicketClaim<'_, T>, ring: &Ticket<T>) -> usize {
        let unused = claim.remaining();
        let sent = claim.commit();
        if unused > 0 {
            // Tickets that came back pass no receiver who would tell.
            self.gate.notify_room(unused);
        }
        if self.hub.readable.notify_or_shut(sent.max(1)) {
            discard_tickets(ring, self.gate);
        }
        sent
    }

    /// Drops a claim on a ring that others share. Their elements may have waited behind it, and
    /// they for its room.
    fn abandon(&self, claim: TicketClaim<'_, T>, ring: &Ticket<T>) {
        /// In a drop, since that of an element may panic.
        struct Tell<'c, T>(&'c Hub, &'c Gate, usize, &'c Ticket<T>);
        impl<T> Drop for Tell<'_, T> {
            fn drop(&mut self) {
                self.1.notify_room(self.2);
                // Last, since the drops of elements may panic.
                if self.0.readable.notify_one_or_shut() {
                    discard_tickets(self.3, self.1);
                }
            }
        }
        let _tell = Tell(self.hub, self.gate, claim.len(), ring);
        drop(claim);
    }
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        match self.room.take() {
            Some(Room::Ticket(claim, ring)) => self.abandon(claim, ring),
            // Nobody else was kept waiting by it.
            Some(Room::Ring(claim)) => drop(claim),
            None => {}
        }
    }
}

impl<T> fmt::Debug for Claim<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("len", &self.len())
            .field("remaining", &self.remaining())
            .finish()
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// Claims room for exactly `count` elements; waits for it if the policy is to block.
    ///
    /// ```
    /// let (mut tx, mut rx) = thalweg::channel::spsc(8);
    /// let mut claim = tx.claim(3)?;
    /// claim.write(&[1, 2, 3]);
    /// assert_eq!(claim.commit(), 3);
    /// assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// # Ok::<(), thalweg::channel::ClaimError>(())
    /// ```
    ///
    /// # Errors
    /// As [`try_claim`](Self::try_claim), but `Full` only under a policy that does not block.
    pub fn claim(&mut self, count: usize) -> Result<Claim<'_, T>, ClaimError> {
        if self.hub.habits.overflow != Overflow::Block {
            return self.try_claim(count);
        }
        if let SendEnd::Ticket(_) = self.end {
            return self.claim_shared(count);
        }
        // Only this sender takes room, so it does not become less.
        let end = &mut self.end;
        // Without a deadline this ends only when there is an answer.
        let _ = block(&self.gate.writable, &mut self.pace, None, || {
            let is_full = matches!(room(end, count), Err(ClaimError::Full { .. }));
            (!is_full).then_some(())
        });
        self.try_claim(count)
    }

    /// Claims room for exactly `count` elements if there is that much now.
    ///
    /// # Errors
    /// [`ClaimError::Full`] if less is free; [`ClaimError::TooLarge`] if the channel never holds so
    /// many; [`ClaimError::Disconnected`]; [`ClaimError::Unsupported`] in a channel that has no
    /// memory to give away: unbounded, rendezvous, or dropping its oldest elements.
    pub fn try_claim(&mut self, count: usize) -> Result<Claim<'_, T>, ClaimError> {
        if self.hub.habits.overflow == Overflow::DropOldest {
            return Err(ClaimError::Unsupported);
        }
        Ok(Claim {
            room: Some(room(&mut self.end, count)?),
            hub: &self.hub,
            gate: &self.gate,
        })
    }

    /// Waits for room in a ring where others take it, too.
    fn claim_shared(&mut self, count: usize) -> Result<Claim<'_, T>, ClaimError> {
        let SendEnd::Ticket(ring) = &self.end else {
            return Err(ClaimError::Unsupported);
        };
        let claiming = self.gate.claiming();
        let outcome = block(&self.gate.writable, &mut self.pace, None, || {
            match ring.claim(count) {
                Err(ring::ClaimError::Full { .. }) => None,
                outcome => Some(outcome),
            }
        });
        drop(claiming);
        // Room that is left may be for another, who left it to this one.
        if self.gate.writable.waiting() > 0 && ring.can_push() {
            self.gate.writable.notify_one();
        }
        let claim = outcome.unwrap_or(Err(ring::ClaimError::Closed))?;
        Ok(Claim {
            room: Some(Room::Ticket(claim, ring)),
            hub: &self.hub,
            gate: &self.gate,
        })
    }
}

/// Room for exactly `count` elements, if there is that much. Of no consequence if it is dropped
/// where there is one sender.
fn room<T>(end: &mut SendEnd<T>, count: usize) -> Result<Room<'_, T>, ClaimError> {
    Ok(match end {
        SendEnd::Ring(producer) => Room::Ring(producer.claim(count)?),
        SendEnd::Lane(lane) => Room::Ring(lane.producer.claim(count)?),
        SendEnd::Ticket(ring) => Room::Ticket(ring.claim(count)?, ring),
        SendEnd::Locked(_) | SendEnd::Meeting(_) => return Err(ClaimError::Unsupported),
    })
}
