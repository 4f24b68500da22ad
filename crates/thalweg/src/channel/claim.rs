//! Writing into a channel's memory: claim, write, commit.

use super::error::ClaimError;
use super::hub::{Gate, Hub, Overflow, Shape};
use super::select::EndRegistration;
use super::sender::Sender;
use super::stores::{SendEnd, discard_left, discard_tickets};
use crate::ring::{self, Claimed, Ticket, TicketClaim};
use crate::wait::{barrier, block, wait_on};

enum Room<'c, T> {
    Ring(ring::SpscClaim<'c, T>),
    Ticket(TicketClaim<'c, T>, &'c Ticket<T>),
}

/// Slots that a sender has claimed: write elements, then [`commit`](Self::commit); see
/// [`Sender::claim`].
///
/// A claim that is dropped sends nothing and drops the elements that were written. In a channel
/// where several senders share a ring, the elements of a claim come out one after another, and
/// until it is committed or dropped, receivers get no element that others send after the claim:
/// hold it briefly. One that is forgotten is cancelled when its sender is used again, or dropped,
/// and its elements are leaked. It is `Send`, so that a task may hold it while it awaits something
/// else.
#[must_use = "a claim that is not committed sends nothing"]
pub struct Claim<'c, T> {
    /// Taken by `commit`.
    room: Option<Room<'c, T>>,
    hub: &'c Hub,
    gate: &'c Gate,
    /// Until it is over: see [`EndRegistration`](super::select::EndRegistration).
    is_lent: &'c mut bool,
}

macro_rules! each {
    ($room:expr, $claim:ident => $do:expr, $else:expr) => {
        match $room {
            Some(Room::Ring($claim)) => $do,
            Some(Room::Ticket($claim, _)) => $do,
            None => $else,
        }
    };
}

impl<T> Claim<'_, T> {
    /// Returns the number of slots that were claimed, whatever was written since.
    pub fn capacity(&self) -> usize {
        each!(&self.room, claim => claim.len(), 0)
    }

    /// Returns the number of slots that are not written yet.
    pub fn remaining(&self) -> usize {
        each!(&self.room, claim => claim.remaining(), 0)
    }

    /// Writes the next element.
    ///
    /// # Errors
    /// Returns the element if all claimed slots are written.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        each!(&mut self.room, claim => claim.push(value), Err(value))
    }

    /// Writes the next elements, as many as the slots that are left, and returns their number.
    pub fn write(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        each!(&mut self.room, claim => claim.write(values), 0)
    }

    /// Sends the elements that were written, wakes receivers that sleep, and returns their number.
    /// Slots that were not written are released.
    #[inline]
    pub fn commit(mut self) -> usize {
        *self.is_lent = false;
        match self.room.take() {
            Some(Room::Ring(mut claim)) => {
                let sent = claim.publish();
                claim.producer().let_go();
                self.hub.readable.notify(sent.max(1));
                if self.hub.readable.is_shut() {
                    discard_left(claim.producer(), self.gate);
                }
                sent
            }
            Some(Room::Ticket(claim, ring)) => self.commit_shared(claim, ring),
            None => 0,
        }
    }

    fn commit_shared(&self, mut claim: TicketClaim<'_, T>, ring: &Ticket<T>) -> usize {
        let unused = claim.remaining();
        give_back(self.gate, &mut claim);
        let sent = claim.commit();
        if unused > 0 {
            // Tickets that came back pass no receiver that would notify.
            self.gate.notify_room(unused);
        }
        self.hub.readable.notify(sent.max(1));
        if self.hub.readable.is_shut() {
            discard_tickets(ring, self.gate);
        }
        sent
    }
}

/// Where gaps are reported: what was lost behind room that goes back was lost before it.
fn give_back<T>(gate: &Gate, claim: &mut TicketClaim<'_, T>) {
    if let Some(gaps) = &gate.gaps {
        gaps.withdraw(claim.rest(), || claim.give_back());
    }
}

/// Drops a claim on a ring that others share. Their elements may have waited behind it, and they
/// for its room.
fn abandon<T>(hub: &Hub, gate: &Gate, mut claim: TicketClaim<'_, T>, ring: &Ticket<T>) {
    /// In a drop, since that of an element may panic.
    struct NotifyOnDrop<'c, T>(&'c Hub, &'c Gate, usize, &'c Ticket<T>);
    impl<T> Drop for NotifyOnDrop<'_, T> {
        fn drop(&mut self) {
            self.1.notify_room(self.2);
            // Last, since the drops of elements may panic.
            if self.0.readable.notify_one() {
                discard_tickets(self.3, self.1);
            }
        }
    }
    let _notify = NotifyOnDrop(hub, gate, claim.len(), ring);
    give_back(gate, &mut claim);
    drop(claim);
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        *self.is_lent = false;
        match self.room.take() {
            Some(Room::Ticket(claim, ring)) => abandon(self.hub, self.gate, claim, ring),
            Some(Room::Ring(mut claim)) => {
                // First, since the drops of elements may panic. A receiver that closed the channel
                // waits for the end.
                claim.producer().let_go();
                self.hub.readable.notify_one();
                drop(claim);
            }
            None => {}
        }
    }
}

shown!([T] Claim<'_, T>, "Claim", this, "capacity": this.capacity(), "remaining": this.remaining());

impl<T, S: Shape> Sender<T, S> {
    /// Claims slots for exactly `count` elements; blocks the thread until they are free, if the
    /// policy is to block. In a task use [`claim_async`](Self::claim_async).
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
        self.lend();
        if self.shares_room() {
            let EndRegistration {
                is_lent, claims, ..
            } = &mut self.listed;
            let asking = Asking::of(&mut self.end, &self.hub, &self.gate, is_lent);
            let asking = asking.expect(IS_SHARED);
            let claiming = (count > 1).then(|| self.gate.claiming(claims));
            let attempt = || asking.attempt(count);
            let outcome = block(&self.gate.writable, &mut self.pace, None, attempt);
            drop(claiming);
            // Without a deadline this ends only when there is an answer.
            return asking.settle(outcome.unwrap_or(Err(ring::RingClaimError::Closed)));
        }
        let (end, overflow) = (&mut self.end, self.hub.habits.overflow);
        let attempt = || may_claim(end, overflow, count);
        let _ = block(&self.gate.writable, &mut self.pace, None, attempt);
        self.try_claim(count)
    }

    /// Works as [`claim`](Self::claim), as a future.
    ///
    /// Cancel-safe: dropping the future keeps no slot, and no wake-up that another sender needs.
    /// One that is kept unpolled, or forgotten: see [futures that wait and are not
    /// polled](super#futures-that-wait-and-are-not-polled).
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (mut tx, mut rx) = thalweg::channel::mpsc(8);
    /// // Nothing is made before there is room for it.
    /// let mut claim = tx.claim_async(1).await?;
    /// claim.push("made now").expect("room for one");
    /// claim.commit();
    /// assert_eq!(rx.recv_async().await, Ok("made now"));
    /// # Ok::<(), thalweg::channel::ClaimError>(())
    /// # }).expect("there is room");
    /// ```
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    ///
    /// # Panics
    /// If the future is polled after it was ready.
    pub async fn claim_async(&mut self, count: usize) -> Result<Claim<'_, T>, ClaimError> {
        self.lend();
        if self.shares_room() {
            let EndRegistration {
                is_lent,
                claims,
                on,
                ..
            } = &mut self.listed;
            let asking = Asking::of(&mut self.end, &self.hub, &self.gate, is_lent);
            let asking = asking.expect(IS_SHARED);
            let claiming = (count > 1).then(|| self.gate.claiming(claims));
            let outcome = wait_on(&asking.gate.writable, on, || asking.attempt(count)).await;
            drop(claiming);
            return asking.settle(outcome);
        }
        let (end, overflow) = (&mut self.end, self.hub.habits.overflow);
        let attempt = || may_claim(end, overflow, count);
        wait_on(&self.gate.writable, &mut self.listed.on, attempt).await;
        self.try_claim(count)
    }

    /// Gives up the claim, and the wait for one, that were forgotten.
    #[cold]
    pub(super) fn give_up_claim(&mut self) {
        self.gate.stop_claiming(&mut self.listed.claims);
        match &mut self.end {
            SendEnd::Ring(producer) => {
                producer.let_go();
                self.hub.readable.notify_one();
            }
            SendEnd::Ticket(end) => {
                let ring = end.ring();
                let claim = end.end_forgotten();
                if !claim.is_empty() {
                    abandon(&self.hub, &self.gate, claim, &ring);
                }
            }
            SendEnd::Locked(_) | SendEnd::Meeting(_) => {}
        }
    }

    /// Returns whether it waits for room that others take, too.
    fn shares_room(&self) -> bool {
        matches!(self.end, SendEnd::Ticket(_)) && self.hub.habits.overflow == Overflow::Block
    }

    /// Claims slots for exactly `count` elements, if that number is free now. It never waits.
    ///
    /// # Errors
    /// [`ClaimError::Full`] if fewer slots are free; [`ClaimError::TooLarge`] if `count` is above
    /// the capacity; [`ClaimError::Disconnected`] if every receiver was dropped or the channel was
    /// closed; [`ClaimError::Unsupported`] in an unbounded channel, at a rendezvous, and in a
    /// channel that drops its oldest elements.
    pub fn try_claim(&mut self, count: usize) -> Result<Claim<'_, T>, ClaimError> {
        if self.hub.habits.overflow == Overflow::DropOldest {
            return Err(unsupported("a channel that drops its oldest elements"));
        }
        self.lend();
        let mut claim = Claim {
            room: Some(room(&mut self.end, count)?),
            hub: &self.hub,
            gate: &self.gate,
            is_lent: &mut self.listed.is_lent,
        };
        if let Some(Room::Ring(ring)) = &mut claim.room {
            ring.hold();
            barrier::light_or_fence();
            // If it was closed before the barrier, its receiver may have reported the end.
            if ring.producer().is_closed() {
                return Err(ClaimError::Disconnected);
            }
        }
        Ok(claim)
    }
}

const IS_SHARED: &str = "a ring that senders share";

/// Asks for room in a ring where others take it, too, and waits for it.
struct Asking<'c, T> {
    ring: &'c Ticket<T>,
    claimed: &'c mut Claimed,
    hub: &'c Hub,
    gate: &'c Gate,
    is_lent: &'c mut bool,
}

impl<'c, T> Asking<'c, T> {
    /// None in any other store.
    fn of(
        end: &'c mut SendEnd<T>,
        hub: &'c Hub,
        gate: &'c Gate,
        is_lent: &'c mut bool,
    ) -> Option<Self> {
        let SendEnd::Ticket(end) = end else {
            return None;
        };
        let (ring, claimed) = end.parts();
        Some(Self {
            ring,
            claimed,
            hub,
            gate,
            is_lent,
        })
    }

    fn attempt(&self, count: usize) -> Option<Result<TicketClaim<'c, T>, ring::RingClaimError>> {
        match self.ring.claim(count) {
            Err(ring::RingClaimError::Full { .. }) => None,
            outcome => Some(outcome),
        }
    }

    fn settle(
        self,
        outcome: Result<TicketClaim<'c, T>, ring::RingClaimError>,
    ) -> Result<Claim<'c, T>, ClaimError> {
        // Room that is left may be for another sender, which left it to this one.
        if self.gate.writable.waiting() > 0 && self.ring.can_push() {
            self.gate.writable.notify_one();
        }
        let mut claim = outcome?;
        claim.remember(self.claimed);
        Ok(Claim {
            room: Some(Room::Ticket(claim, self.ring)),
            hub: self.hub,
            gate: self.gate,
            is_lent: self.is_lent,
        })
    }
}

/// Something, unless room that only this sender takes is to be waited for.
fn may_claim<T>(end: &mut SendEnd<T>, overflow: Overflow, count: usize) -> Option<()> {
    let waits =
        overflow == Overflow::Block && matches!(room(end, count), Err(ClaimError::Full { .. }));
    (!waits).then_some(())
}

/// Room for exactly `count` elements, if there is that much. It has no consequence if it is dropped
/// where there is one sender.
fn room<T>(end: &mut SendEnd<T>, count: usize) -> Result<Room<'_, T>, ClaimError> {
    Ok(match end {
        SendEnd::Ring(producer) => Room::Ring(producer.claim(count)?),
        SendEnd::Ticket(end) => {
            let (ring, claimed) = end.parts();
            let mut claim = ring.claim(count)?;
            claim.remember(claimed);
            Room::Ticket(claim, ring)
        }
        SendEnd::Locked(_) => return Err(unsupported("an unbounded channel")),
        SendEnd::Meeting(_) => return Err(unsupported("a rendezvous")),
    })
}

fn unsupported(channel: &'static str) -> ClaimError {
    ClaimError::Unsupported { channel }
}
