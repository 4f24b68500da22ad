//! Writing into a channel's memory: claim, write, commit.

use super::error::ClaimError;
use super::hub::{Gate, Hub, Overflow, Shape};
use super::select::EndRegistration;
use super::sender::Sender;
use super::stores::{SendEnd, discard_left, discard_mpmc};
use crate::ring::{self, Claimed, MpmcClaim, MpmcRing};
use crate::wait::{barrier, block, wait_until};

enum Room<'c, T> {
    Ring(ring::SpscClaim<'c, T>),
    Mpmc(MpmcClaim<'c, T>, &'c MpmcRing<T>),
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
    /// A field of the sender, set until the claim is over: see
    /// [`EndRegistration`](super::select::EndRegistration).
    is_lent: &'c mut bool,
}

macro_rules! each {
    ($room:expr, $claim:ident => $do:expr, $else:expr) => {
        match $room {
            Some(Room::Ring($claim)) => $do,
            Some(Room::Mpmc($claim, _)) => $do,
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
            Some(Room::Mpmc(claim, ring)) => self.commit_shared(claim, ring),
            None => 0,
        }
    }

    fn commit_shared(&self, mut claim: MpmcClaim<'_, T>, ring: &MpmcRing<T>) -> usize {
        let unused = claim.remaining();
        give_back(self.gate, &mut claim);
        let sent = claim.commit();
        if unused > 0 {
            // No receiver notifies of slots that a claim gives back.
            self.gate.notify_room(unused);
        }
        self.hub.readable.notify(sent.max(1));
        if self.hub.readable.is_shut() {
            discard_mpmc(ring, self.gate);
        }
        sent
    }
}

/// Gives unused slots back. Where gaps are reported, a loss noted behind these slots is moved
/// before them.
fn give_back<T>(gate: &Gate, claim: &mut MpmcClaim<'_, T>) {
    if let Some(gaps) = &gate.gaps {
        gaps.withdraw(claim.rest(), || claim.give_back());
    }
}

/// Drops a claim in a shared ring: elements of other senders may wait behind its slots, and other
/// senders for the slots.
fn abandon<T>(hub: &Hub, gate: &Gate, mut claim: MpmcClaim<'_, T>, ring: &MpmcRing<T>) {
    /// Notifies in a drop, since the drop of an element may panic.
    struct NotifyOnDrop<'c, T>(&'c Hub, &'c Gate, usize, &'c MpmcRing<T>);
    impl<T> Drop for NotifyOnDrop<'_, T> {
        fn drop(&mut self) {
            self.1.notify_room(self.2);
            // Last, since the drops of elements may panic.
            if self.0.readable.notify_one() {
                discard_mpmc(self.3, self.1);
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
            Some(Room::Mpmc(claim, ring)) => abandon(self.hub, self.gate, claim, ring),
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
            } = &mut self.registration;
            let claim_wait = SharedClaim::of(&mut self.end, &self.hub, &self.gate, is_lent);
            let claim_wait = claim_wait.expect(IS_SHARED);
            let claiming = (count > 1).then(|| self.gate.claiming(claims));
            let attempt = || claim_wait.attempt(count);
            let outcome = block(&self.gate.writable, &mut self.pace, None, attempt);
            drop(claiming);
            // Without a deadline this ends only when the attempt succeeds.
            return claim_wait.finish(outcome.unwrap_or(Err(ring::RingClaimError::Closed)));
        }
        let (end, overflow) = (&mut self.end, self.hub.settings.overflow);
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
                in_event_count,
                ..
            } = &mut self.registration;
            let claim_wait = SharedClaim::of(&mut self.end, &self.hub, &self.gate, is_lent);
            let claim_wait = claim_wait.expect(IS_SHARED);
            let claiming = (count > 1).then(|| self.gate.claiming(claims));
            let outcome = wait_until(&claim_wait.gate.writable, in_event_count, || {
                claim_wait.attempt(count)
            })
            .await;
            drop(claiming);
            return claim_wait.finish(outcome);
        }
        let (end, overflow) = (&mut self.end, self.hub.settings.overflow);
        let attempt = || may_claim(end, overflow, count);
        wait_until(
            &self.gate.writable,
            &mut self.registration.in_event_count,
            attempt,
        )
        .await;
        self.try_claim(count)
    }

    /// Gives up a claim, or the wait for one, that was forgotten.
    #[cold]
    pub(super) fn give_up_claim(&mut self) {
        self.gate.stop_claiming(&mut self.registration.claims);
        match &mut self.end {
            SendEnd::Ring(producer) => {
                producer.let_go();
                self.hub.readable.notify_one();
            }
            SendEnd::Mpmc(end) => {
                let ring = end.ring();
                let claim = end.end_forgotten();
                if !claim.is_empty() {
                    abandon(&self.hub, &self.gate, claim, &ring);
                }
            }
            SendEnd::Locked(_) | SendEnd::Rendezvous(_) => {}
        }
    }

    /// Returns whether it waits for slots that other senders claim, too.
    fn shares_room(&self) -> bool {
        matches!(self.end, SendEnd::Mpmc(_)) && self.hub.settings.overflow == Overflow::Block
    }

    /// Claims slots for exactly `count` elements, if that number is free now. It never waits.
    ///
    /// # Errors
    /// [`ClaimError::Full`] if fewer slots are free; [`ClaimError::TooLarge`] if `count` is above
    /// the capacity; [`ClaimError::Disconnected`] if every receiver was dropped or the channel was
    /// closed; [`ClaimError::Unsupported`] in an unbounded channel, at a rendezvous, and in a
    /// channel that drops its oldest elements.
    pub fn try_claim(&mut self, count: usize) -> Result<Claim<'_, T>, ClaimError> {
        if self.hub.settings.overflow == Overflow::DropOldest {
            return Err(unsupported("a channel that drops its oldest elements"));
        }
        self.lend();
        let mut claim = Claim {
            room: Some(room(&mut self.end, count)?),
            hub: &self.hub,
            gate: &self.gate,
            is_lent: &mut self.registration.is_lent,
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

/// A claim, and the wait for it, in a ring that several senders share.
struct SharedClaim<'c, T> {
    ring: &'c MpmcRing<T>,
    claimed: &'c mut Claimed,
    hub: &'c Hub,
    gate: &'c Gate,
    is_lent: &'c mut bool,
}

impl<'c, T> SharedClaim<'c, T> {
    /// Returns `None` for any other store.
    fn of(
        end: &'c mut SendEnd<T>,
        hub: &'c Hub,
        gate: &'c Gate,
        is_lent: &'c mut bool,
    ) -> Option<Self> {
        let SendEnd::Mpmc(end) = end else {
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

    fn attempt(&self, count: usize) -> Option<Result<MpmcClaim<'c, T>, ring::RingClaimError>> {
        match self.ring.claim(count) {
            Err(ring::RingClaimError::Full { .. }) => None,
            outcome => Some(outcome),
        }
    }

    fn finish(
        self,
        outcome: Result<MpmcClaim<'c, T>, ring::RingClaimError>,
    ) -> Result<Claim<'c, T>, ClaimError> {
        // A slot that is left may be enough for another sender, which was woken with this one.
        if self.gate.writable.waiting() > 0 && self.ring.can_push() {
            self.gate.writable.notify_one();
        }
        let mut claim = outcome?;
        claim.remember(self.claimed);
        Ok(Claim {
            room: Some(Room::Mpmc(claim, self.ring)),
            hub: self.hub,
            gate: self.gate,
            is_lent: self.is_lent,
        })
    }
}

/// Returns `Some` unless the sender, which does not share its slots, has to wait for free ones.
fn may_claim<T>(end: &mut SendEnd<T>, overflow: Overflow, count: usize) -> Option<()> {
    let waits =
        overflow == Overflow::Block && matches!(room(end, count), Err(ClaimError::Full { .. }));
    (!waits).then_some(())
}

/// Claims slots for exactly `count` elements, if they are free. In a ring of one sender, dropping
/// the result has no effect.
fn room<T>(end: &mut SendEnd<T>, count: usize) -> Result<Room<'_, T>, ClaimError> {
    Ok(match end {
        SendEnd::Ring(producer) => Room::Ring(producer.claim(count)?),
        SendEnd::Mpmc(end) => {
            let (ring, claimed) = end.parts();
            let mut claim = ring.claim(count)?;
            claim.remember(claimed);
            Room::Mpmc(claim, ring)
        }
        SendEnd::Locked(_) => return Err(unsupported("an unbounded channel")),
        SendEnd::Rendezvous(_) => return Err(unsupported("a rendezvous")),
    })
}

fn unsupported(channel: &'static str) -> ClaimError {
    ClaimError::Unsupported { channel }
}
