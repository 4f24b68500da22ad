//! The end of a side that has one only.

use std::fmt;

use super::Ticket;
use super::claim::{Claims, SoleTail, TicketClaim, push_iter};
use super::pop::Taken;
use super::push::Refused;
use super::side::{Many, Side, Sole};
use super::slot::State;
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

impl<T, C: Side> SoleProducer<T, C> {
    /// Called once for a ring (rule 1).
    pub(super) fn new(ring: Arc<Ticket<T, Sole, C>>) -> Self {
        Self { ring, tail: 0 }
    }

    /// The ring, to look at.
    pub fn ring(&self) -> &Arc<Ticket<T, Sole, C>> {
        &self.ring
    }

    /// How many positions from the tail on are free, at most `max`.
    #[inline(always)]
    fn free(&self, min: u64, max: u64) -> Result<u64, Refused> {
        if self.ring.is_closing() {
            return Err(Refused::Closed);
        }
        let (count, _) = self.ring.slots.free_run(self.tail, max);
        if count < min {
            return Err(Refused::Full(count));
        }
        Ok(count)
    }

    #[inline(always)]
    fn tail(&mut self) -> SoleTail<'_> {
        SoleTail {
            own: &mut self.tail,
            shared: &self.ring.tail,
        }
    }

    /// Appends an element. Costs two stores, no locked operation.
    ///
    /// # Errors
    /// As [`Ticket::try_push`].
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        if let Err(refused) = self.free(1, 1) {
            return Err(refused.push(value));
        }
        let position = self.tail;
        // SAFETY: free for the position of the only producer, not published (rules 1 and 2).
        unsafe { self.ring.slots.slot(position).write(value) };
        // Before the stamp: a consumer must not be ahead of the count.
        self.tail().set(position + 1);
        self.ring.slots.slot(position).publish(position);
        Ok(())
    }

    fn room(&mut self, len: u64) -> TicketClaim<'_, T> {
        let tail = SoleTail {
            own: &mut self.tail,
            shared: &self.ring.tail,
        };
        TicketClaim::of_sole(&self.ring.slots, tail, len as usize)
    }

    /// Claims room for exactly `count` elements. What is not used goes back: a sole producer makes
    /// no holes.
    ///
    /// # Errors
    /// As [`Ticket::claim`].
    pub fn claim(&mut self, count: usize) -> Result<TicketClaim<'_, T>, ClaimError> {
        let capacity = self.ring.capacity();
        if count > capacity {
            return Err(ClaimError::TooLarge {
                asked: count,
                capacity,
            });
        }
        let free = self.free(count as u64, count as u64);
        let free = free.map_err(|refused| refused.claim(count))?;
        Ok(self.room(free))
    }

    /// Claims room for as many elements as are free in one run, at most `max` and, unless `max` is
    /// 0, at least one.
    ///
    /// # Errors
    /// As [`Ticket::claim_up_to`].
    #[inline]
    pub fn claim_up_to(&mut self, max: usize) -> Result<TicketClaim<'_, T>, ClaimError> {
        let want = max.min(self.ring.capacity()) as u64;
        let free = self.free(want.min(1), want);
        let free = free.map_err(|refused| refused.claim(max))?;
        Ok(self.room(free))
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

    /// Moves the head on, before the slots are given back: a producer must not be more than a
    /// capacity ahead of the count.
    #[inline(always)]
    fn advance(&mut self, count: u64) {
        self.head += count;
        // ORDERING: Relaxed, a count that others read; slots are given back by their stamps.
        self.ring.head.0.store(self.head, Ordering::Relaxed);
    }

    /// Finds 1 to `max` elements, `max` being at least 1, and passes over holes; gives the first
    /// position and how many, which are counted as taken.
    #[inline(always)]
    fn serve(&mut self, max: u64) -> Result<(u64, u64), PopError> {
        loop {
            let head = self.head;
            let (count, then) = self.ring.slots.element_run(head, max);
            if count > 0 {
                self.advance(count);
                return Ok((head, count));
            }
            match then {
                State::Hole => {
                    self.advance(1);
                    self.ring.slots.skip(head);
                }
                _ => {
                    if let Some(error) = self.ring.why_nothing(head) {
                        return Err(error);
                    }
                }
            }
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
        let (position, _) = self.serve(1)?;
        // SAFETY: the only consumer, seen as element, counted as taken (rules 1 and 3).
        Ok((position, unsafe { self.ring.slots.take(position) }))
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
        let (first, count) = self.serve(max)?;
        // SAFETY: the only consumer, seen as elements, counted as taken (rules 1 and 3); `out` has
        // room for `max`.
        unsafe { self.ring.slots.take_into(first, count, out) };
        let count = count as usize;
        Ok(Taken { first, count })
    }
}

impl<T, P: Side> fmt::Debug for SoleConsumer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SoleConsumer").field(&*self.ring).finish()
    }
}
