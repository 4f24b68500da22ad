//! The end of a side that has one only.

use std::fmt;

use super::Ticket;
use super::claim::{Claims, SoleTail, TicketClaim, push_iter};
use super::pop::Taken;
use super::push::Refused;
use super::side::{Many, Side, Sole};
use super::slot::{Slots, State};
use crate::ring::sync::{Arc, Ordering};
use crate::ring::{ClaimError, PopError, PushError};

/// The one producer of a [`Ticket`] ring; see [`Ticket::with_sole_producer`].
///
/// It can move to another thread, but not be cloned. Dropping it closes the ring; consumers still
/// get everything pushed before.
///
/// ```
/// use thalweg::ring::{Layout, PopError, Ticket};
///
/// let (mut producer, ring) = Ticket::with_sole_producer(4, Layout::Packed)?;
/// assert!(producer.try_push("a").is_ok());
/// drop(producer);
/// assert_eq!(ring.try_pop(), Ok("a"));
/// assert_eq!(ring.try_pop(), Err(PopError::Closed));
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
///
/// Nobody else can push:
/// ```compile_fail
/// use thalweg::ring::{Layout, Ticket};
/// let (producer, ring) = Ticket::with_sole_producer(4, Layout::Packed).unwrap();
/// ring.try_push(1);
/// ```
pub struct SoleProducer<T, C: Side = Many> {
    ring: Arc<Ticket<T, Sole, C>>,
    tail: u64,
}

/// A sole producer's claim, and its ring.
type ClaimBesideRing<'a, T, C> = (TicketClaim<'a, T>, &'a Ticket<T, Sole, C>);

impl<T, C: Side> Ticket<T, Sole, C> {
    /// How many positions from the sole producer's tail on are free, at least `min` and at most
    /// `max`.
    #[inline(always)]
    fn sole_free(
        &self,
        slots: Slots<'_, T>,
        tail: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, Refused> {
        if self.is_closing() {
            return Err(Refused::Closed);
        }
        let (count, _) = slots.free_run(tail, max);
        if count < min {
            return Err(Refused::Full(count));
        }
        // Again: room that the last consumer made while it left, by dropping what nobody will take,
        // comes after the close and is none.
        if self.is_closing() {
            return Err(Refused::Closed);
        }
        Ok(count)
    }
}

impl<T, C: Side> SoleProducer<T, C> {
    /// Called once for a ring (rule 1).
    pub(super) fn new(ring: Arc<Ticket<T, Sole, C>>) -> Self {
        Self { ring, tail: 0 }
    }

    /// The ring, to look at.
    pub fn ring(&self) -> &Arc<Ticket<T, Sole, C>> {
        &self.ring
    }

    /// Appends an element. Costs two stores, no locked operation.
    ///
    /// # Errors
    /// As [`Ticket::try_push`].
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        let position = self.tail;
        let ring = &*self.ring;
        let slots = ring.slots();
        if let Err(refused) = ring.sole_free(slots, position, 1, 1) {
            return Err(refused.push(value));
        }
        let slot = slots.slot(position);
        // SAFETY: free for the position of the only producer, not published (rules 1 and 2).
        unsafe { slot.write(value) };
        let mut tail = SoleTail {
            own: &mut self.tail,
            shared: &ring.tail,
        };
        // Before the stamp: a consumer must not be ahead of the count.
        tail.set(position + 1);
        slot.publish(position);
        Ok(())
    }

    /// Claims room for exactly `count` elements. What is not used goes back: a sole producer makes
    /// no holes.
    ///
    /// # Errors
    /// As [`Ticket::claim`].
    pub fn claim(&mut self, count: usize) -> Result<TicketClaim<'_, T>, ClaimError> {
        Ok(self.claim_beside_ring(count)?.0)
    }

    /// As [`claim`](Self::claim), with the ring, to be looked at while the room is claimed.
    pub(crate) fn claim_beside_ring(
        &mut self,
        count: usize,
    ) -> Result<ClaimBesideRing<'_, T, C>, ClaimError> {
        let capacity = self.ring.capacity();
        if count > capacity {
            return Err(ClaimError::TooLarge {
                asked: count,
                capacity,
            });
        }
        let claim = room(
            &self.ring,
            &mut self.tail,
            count,
            count as u64,
            count as u64,
        )?;
        Ok((claim, &self.ring))
    }

    /// Claims room for as many elements as are free in one run, at most `max` and, unless `max` is
    /// 0, at least one.
    ///
    /// # Errors
    /// As [`Ticket::claim_up_to`].
    #[inline]
    pub fn claim_up_to(&mut self, max: usize) -> Result<TicketClaim<'_, T>, ClaimError> {
        let want = max.min(self.ring.capacity()) as u64;
        room(&self.ring, &mut self.tail, max, want.min(1), want)
    }

    /// Appends elements from the front of `values` while there is room, in one run, and says how
    /// many. A closed ring takes 0.
    pub fn push_slice(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let Ok(mut claim) = self.claim_up_to(values.len()) else {
            return 0;
        };
        claim.write(values);
        claim.commit()
    }

    /// Appends elements from `values` while there is room, each published when it comes, and says
    /// how many. A closed ring takes 0. Nothing is taken from the iterator that does not go into
    /// the ring.
    pub fn push_iter(&mut self, values: impl IntoIterator<Item = T>) -> usize {
        push_iter(self, values.into_iter())
    }
}

/// Claims from `min` to `max` free positions from the sole producer's tail on; the caller asks for
/// `asked`.
#[inline]
fn room<'a, T, C: Side>(
    ring: &'a Ticket<T, Sole, C>,
    tail: &'a mut u64,
    asked: usize,
    min: u64,
    max: u64,
) -> Result<TicketClaim<'a, T>, ClaimError> {
    let slots = ring.slots();
    let free = ring.sole_free(slots, *tail, min, max);
    let free = free.map_err(|refused| refused.claim(asked))?;
    let tail = SoleTail {
        own: tail,
        shared: &ring.tail,
    };
    Ok(TicketClaim::of_sole(slots, tail, free as usize))
}

impl<T, C: Side> Claims<T> for SoleProducer<T, C> {
    fn claim_up_to(&mut self, max: usize) -> Result<TicketClaim<'_, T>, ClaimError> {
        SoleProducer::claim_up_to(self, max)
    }
}

impl<T, C: Side> Drop for SoleProducer<T, C> {
    fn drop(&mut self) {
        self.ring.close();
    }
}

impl<T, C: Side> fmt::Debug for SoleProducer<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SoleProducer").field(&*self.ring).finish()
    }
}

/// The one consumer of a [`Ticket`] ring; see [`Ticket::with_sole_consumer`].
///
/// It can move to another thread, but not be cloned. Dropping it does not close the ring: who can
/// push would go on until it is full.
///
/// ```
/// use thalweg::ring::{Layout, Ticket};
///
/// let (ring, mut consumer) = Ticket::with_sole_consumer(4, Layout::Packed)?;
/// assert!(ring.try_push("a").is_ok());
/// assert_eq!(consumer.try_pop(), Ok("a"));
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
pub struct SoleConsumer<T, P: Side = Many> {
    ring: Arc<Ticket<T, P, Sole>>,
    head: u64,
}

impl<T, P: Side> SoleConsumer<T, P> {
    /// Called once for a ring (rule 1).
    pub(super) fn new(ring: Arc<Ticket<T, P, Sole>>) -> Self {
        Self { ring, head: 0 }
    }

    /// The ring, to push to and to look at.
    pub fn ring(&self) -> &Arc<Ticket<T, P, Sole>> {
        &self.ring
    }

    /// Finds 1 to `max` elements, `max` being at least 1, and passes over holes; gives the first
    /// position and how many, which are counted as taken.
    #[inline(always)]
    fn serve(&mut self, max: u64) -> Result<(Slots<'_, T>, u64, u64), PopError> {
        let ring = &*self.ring;
        let slots = ring.slots();
        loop {
            let head = self.head;
            let (count, then) = slots.element_run(head, max);
            if count == 0 && then != State::Hole {
                match ring.why_nothing(head) {
                    Some(error) => return Err(error),
                    None => continue,
                }
            }
            self.head = head + count.max(1);
            // Before the slots are given back: a producer must not be more than a capacity ahead
            // of the count.
            // ORDERING: Relaxed, a count that others read; slots are given back by their stamps.
            ring.head.0.store(self.head, Ordering::Relaxed);
            if count > 0 {
                return Ok((slots, head, count));
            }
            slots.skip(head);
        }
    }

    /// Takes the oldest element. Costs no locked operation.
    ///
    /// # Errors
    /// As [`Ticket::try_pop`].
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        self.try_pop_at().map(|(_, value)| value)
    }

    /// Takes the oldest element, and says its position.
    ///
    /// # Errors
    /// As [`Ticket::try_pop`].
    #[inline]
    pub fn try_pop_at(&mut self) -> Result<(u64, T), PopError> {
        let (slots, position, _) = self.serve(1)?;
        // SAFETY: the only consumer, seen as element, counted as taken (rules 1 and 3).
        Ok((position, unsafe { slots.take(position) }))
    }

    /// Moves up to `max` elements to the end of `out`, and says which; see [`Ticket::pop_into`].
    ///
    /// # Errors
    /// As [`Ticket::try_pop`].
    pub fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> Result<Taken, PopError> {
        let max = self.ring.reserve(out, max);
        if max == 0 {
            return Ok(Taken {
                first: self.head,
                count: 0,
            });
        }
        let (slots, first, count) = self.serve(max)?;
        // SAFETY: the only consumer, seen as elements, counted as taken (rules 1 and 3); `out` has
        // room for `max`.
        unsafe { slots.take_into(first, count, out) };
        let count = count as usize;
        Ok(Taken { first, count })
    }
}

impl<T, P: Side> fmt::Debug for SoleConsumer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SoleConsumer").field(&*self.ring).finish()
    }
}
