//! The two ends of a one-to-one ring.

mod guards;

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::NonNull;

use self::guards::CommitOnDrop;
pub use self::guards::{SpscBatch, SpscClaim};
use super::shared::{Shared, View};
use super::{PopError, PushError, RingClaimError, SharedByThreads, UsedByOneThreadAtATime};
use crate::ring::sync::fault;

/// The writing end of a ring with one producer and one consumer; see [`spsc`](super::spsc()).
///
/// There is one per ring: it can move to another thread but be neither cloned nor shared. Dropping
/// it closes the ring; the consumer still gets everything published before.
///
/// No operation blocks, allocates or makes a system call.
///
/// # Memory ordering
/// A publish (a push, or a commit of a claim) is a release store, and the consumer that finds the
/// element does an acquire load: what this thread did before the publish is visible to the
/// consumer after the pop. In the other direction, the pop that freed a cell happens before the
/// push that uses it again.
///
/// ```
/// use thalweg::ring::{Layout, PushError, spsc};
///
/// let (mut producer, mut consumer) = spsc(2, Layout::Packed)?;
/// assert!(producer.try_push("a").is_ok());
/// assert!(producer.try_push("b").is_ok());
/// assert_eq!(producer.try_push("c"), Err(PushError::Full("c")));
/// assert_eq!(consumer.try_pop(), Ok("a"));
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
pub struct SpscProducer<T> {
    shared: NonNull<Shared<T>>,
    /// Where the next element goes; everything before is published.
    pub(super) tail: u64,
    /// Where this side must stop by what it last saw of the head: that head plus the capacity.
    limit: u64,
    pub(super) view: View<T>,
    /// Takes elements: a producer of `&'static str` is none of shorter-lived ones, which its
    /// consumer would take for `'static`.
    takes: PhantomData<fn(T)>,
}

// SAFETY: the one producer may be on any thread, and moves elements to the consumer's (rule 1).
unsafe impl<T: Send> Send for SpscProducer<T> {}
// SAFETY: the condition never holds, so it is not `Sync` (rule 1).
unsafe impl<T> Sync for SpscProducer<T> where for<'a> UsedByOneThreadAtATime: SharedByThreads {}
// Elements are moved in and out, and none is pinned inside.
impl<T> Unpin for SpscProducer<T> {}

impl<T> SpscProducer<T> {
    pub(super) fn new(shared: NonNull<Shared<T>>) -> Self {
        // SAFETY: alive until this endpoint leaves (rule 5).
        let ring = unsafe { shared.as_ref() };
        Self {
            shared,
            tail: 0,
            limit: ring.capacity as u64,
            view: ring.view().copied(),
            takes: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn shared(&self) -> &Shared<T> {
        // SAFETY: alive until this endpoint leaves, in its drop (rule 5).
        unsafe { self.shared.as_ref() }
    }

    /// Returns how many cells are free, up to date if fewer than `want`.
    #[inline(always)]
    fn free(&mut self, want: u64) -> u64 {
        if self.limit - self.tail < want {
            self.limit = self.shared().released() + self.shared().capacity as u64;
        }
        self.limit - self.tail
    }

    /// Appends an element.
    ///
    /// Costs a few ns while there is room; a read of the consumer's index (one cache-line
    /// transfer) only when the last known one says full; in a dense stream after a pause of some
    /// 0.3 µs, so that there is more room to find.
    ///
    /// # Errors
    /// [`PushError::Full`] and [`PushError::Closed`] give the element back.
    // Always inlined: a value that is passed by pointer was just written in pieces, and reading it
    // back in wider ones stalls until the pieces are in the cache (13 ns instead of 4 for 32
    // bytes).
    #[inline(always)]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        if let Some(room) = self.room() {
            room.put(value);
            return Ok(());
        }
        if self.is_closed() {
            Err(PushError::Closed(value))
        } else {
            Err(PushError::Full(value))
        }
    }

    /// Returns room for one element, unless the ring is full or closed.
    #[inline(always)]
    pub(crate) fn room(&mut self) -> Option<Room<'_, T>> {
        if self.is_closed() || (self.tail == self.limit && !self.refresh()) {
            return None;
        }
        Some(Room(self))
    }

    /// Looks at the head; returns whether there is room.
    #[inline(always)]
    fn refresh(&mut self) -> bool {
        self.limit = head_at_distance(self.shared(), self.tail);
        self.limit != self.tail
    }

    /// Claims room for exactly `count` elements, to be written and then published by
    /// [`commit`](SpscClaim::commit).
    ///
    /// # Errors
    /// [`RingClaimError::Full`] if fewer cells are free, [`RingClaimError::TooLarge`] if the ring
    /// never holds `count`, [`RingClaimError::Closed`] if it is closed.
    pub fn claim(&mut self, count: usize) -> Result<SpscClaim<'_, T>, RingClaimError> {
        if self.is_closed() {
            return Err(RingClaimError::Closed);
        }
        let capacity = self.capacity();
        if count > capacity {
            return Err(RingClaimError::TooLarge {
                asked: count,
                capacity,
            });
        }
        let free = self.free(count as u64) as usize;
        if free < count {
            return Err(RingClaimError::Full { asked: count, free });
        }
        // Again, for the reason in `head_at_distance`.
        if self.is_closed() {
            return Err(RingClaimError::Closed);
        }
        Ok(SpscClaim::new(self, count))
    }

    /// Claims room for as many elements as are free, at most `max` and, unless `max` is 0, at
    /// least one.
    ///
    /// # Errors
    /// [`RingClaimError::Full`] if none is free, [`RingClaimError::Closed`] if the ring is closed.
    pub fn claim_up_to(&mut self, max: usize) -> Result<SpscClaim<'_, T>, RingClaimError> {
        if self.is_closed() {
            return Err(RingClaimError::Closed);
        }
        let want = max.min(self.capacity());
        let free = self.free(want as u64) as usize;
        if free == 0 && max > 0 {
            return Err(RingClaimError::Full { asked: max, free });
        }
        // Again, for the reason in `head_at_distance`.
        if self.is_closed() {
            return Err(RingClaimError::Closed);
        }
        Ok(SpscClaim::new(self, want.min(free)))
    }

    /// Appends elements from `values` while slots are free, and returns their number.
    ///
    /// They are published in batches, at the latest when the iterator ends, no slot is free or the
    /// iterator panics. Nothing is taken from the iterator that does not go into the ring. A closed
    /// ring takes 0.
    pub fn push_iter(&mut self, values: impl IntoIterator<Item = T>) -> usize {
        let mut values = values.into_iter();
        let mut pushed = 0;
        // Again after each claim: the iterator may not have said how much it has.
        while let Ok(claim) = self.claim_up_to(values.size_hint().0.max(1)) {
            let mut claim = CommitOnDrop(claim);
            let may_have_more = claim.0.fill(&mut values);
            pushed += claim.0.publish();
            if !may_have_more {
                break;
            }
        }
        pushed
    }

    /// Appends elements from the front of `values` while slots are free, publishes them together
    /// and returns their number. A closed ring takes 0.
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

    /// Returns how many elements the ring holds at most.
    pub fn capacity(&self) -> usize {
        self.shared().capacity
    }

    /// Returns how many elements are in the ring. The consumer may take some at any time, so it can
    /// be fewer by now.
    pub fn len(&self) -> usize {
        (self.tail - self.shared().released()) as usize
    }

    /// Returns how many elements were published since the ring was made.
    pub fn pushed(&self) -> u64 {
        self.tail
    }

    /// Returns whether the consumer has taken everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether no slot is free.
    pub fn is_full(&self) -> bool {
        self.tail == self.limit && self.len() == self.capacity()
    }

    /// Returns whether the ring is closed: the consumer was dropped, or one of the two called
    /// `close`.
    #[inline(always)]
    pub fn is_closed(&self) -> bool {
        self.shared().is_closed()
    }

    /// Closes the ring: later pushes fail, and the consumer gets what was published before, then
    /// [`PopError::Closed`](super::PopError::Closed). Dropping the producer does the same.
    pub fn close(&mut self) {
        self.shared().close();
    }

    /// Ends what [`SpscClaim::hold`] began, after the claim was published or given up; also for one
    /// that was forgotten.
    pub(crate) fn let_go(&mut self) {
        self.shared().hold(false);
    }

    /// The last publish may have come after the last look of a consumer that goes. It looks again,
    /// or leaves what there is to this side; see [`take_left`](Self::take_left).
    pub(crate) fn come_late(&mut self) {
        self.shared().come_late();
    }

    /// Takes the oldest element if the consumer has left that to this side, for good.
    pub(crate) fn take_left(&mut self) -> Option<T> {
        let ring = self.shared();
        if !ring.is_handed_over() {
            return None;
        }
        let head = ring.released();
        if head == self.tail {
            return None;
        }
        // Counted as gone before it is taken (rule 4).
        ring.release(head + 1);
        // SAFETY: published, since it is before the tail; not taken, since the consumer has
        // released all that it took and takes no more; and this is the only producer (rules 3 and
        // 4, see "What comes late" in `shared.rs`).
        Some(unsafe { ring.cell(head).take() })
    }
}

/// Returns how far the producer may go by the present head. Room that a consumer made while it
/// left, by dropping elements that will not be taken, does not count: its release comes after the
/// close.
#[cold]
#[inline(never)]
fn head_at_distance<T>(ring: &Shared<T>, tail: u64) -> u64 {
    // SAFETY: this is the producer.
    let limit = unsafe {
        ring.producer_distance.observe(|| {
            let limit = ring.released() + ring.capacity as u64;
            (limit, limit - tail)
        })
    };
    let limit = limit.unwrap_or(tail);
    if ring.is_closed() { tail } else { limit }
}

/// Room for one element at the tail.
pub(crate) struct Room<'p, T>(&'p mut SpscProducer<T>);

impl<T> Room<'_, T> {
    /// Writes the element and publishes it.
    #[inline(always)]
    pub(crate) fn put(self, value: T) {
        let producer = self.0;
        let tail = producer.tail;
        // SAFETY: the cell at the tail is claimed by this, the only, producer, which is borrowed
        // since it was found free (rule 2).
        unsafe { producer.view.put(producer.shared(), tail, value) };
        producer.tail = tail + 1;
    }
}

impl<T> Drop for SpscProducer<T> {
    fn drop(&mut self) {
        self.shared().close();
        // SAFETY: the last access of this endpoint (rule 5).
        unsafe { Shared::leave(self.shared) };
    }
}

/// The reading end of a ring with one producer and one consumer; see [`spsc`](super::spsc()).
///
/// There is one per ring: it can move to another thread but be neither cloned nor shared. Dropping
/// it closes the ring; elements that were not taken are dropped with the ring, when the producer is
/// gone too.
///
/// No operation blocks or makes a system call, and only [`pop_into`](Self::pop_into) can allocate,
/// in the caller's vector.
///
/// # Memory ordering
/// Finding an element is an acquire load that pairs with the producer's publish; giving its cell
/// back is a release store that the producer acquires before it writes there again.
/// [`PopError::Closed`] is acquired too: it comes only after everything published before the
/// close.
///
/// ```
/// use thalweg::ring::{Layout, PopError, spsc};
///
/// let (mut producer, mut consumer) = spsc(4, Layout::Packed)?;
/// producer.push_slice(&[1, 2, 3]);
/// drop(producer);
/// assert_eq!(consumer.try_pop(), Ok(1));
/// assert_eq!(consumer.batch(8).sum::<i32>(), 5);
/// assert_eq!(consumer.try_pop(), Err(PopError::Closed));
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
pub struct SpscConsumer<T> {
    shared: NonNull<Shared<T>>,
    /// The next element to take; everything before is taken.
    pub(super) head: u64,
    /// Elements before this are known to be published.
    seen: u64,
    pub(super) view: View<T>,
    /// Gives elements, and takes none: so it may be covariant.
    owns: PhantomData<T>,
}

// SAFETY: the one consumer may be on any thread, and takes elements that the producer's sent (rule
// 1).
unsafe impl<T: Send> Send for SpscConsumer<T> {}
// SAFETY: the condition never holds, so it is not `Sync` (rule 1).
unsafe impl<T> Sync for SpscConsumer<T> where for<'a> UsedByOneThreadAtATime: SharedByThreads {}
// Elements are moved in and out, and none is pinned inside.
impl<T> Unpin for SpscConsumer<T> {}

impl<T> SpscConsumer<T> {
    pub(super) fn new(shared: NonNull<Shared<T>>) -> Self {
        Self {
            shared,
            head: 0,
            seen: 0,
            // SAFETY: alive until this endpoint leaves (rule 5).
            view: unsafe { shared.as_ref() }.view().copied(),
            owns: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn shared(&self) -> &Shared<T> {
        // SAFETY: alive until this endpoint leaves, in its drop (rule 5).
        unsafe { self.shared.as_ref() }
    }

    /// Returns how many elements can be taken, up to date if fewer than `want`.
    #[inline(always)]
    fn available(&mut self, want: u64) -> u64 {
        if self.seen - self.head < want {
            self.seen = self.shared().published(self.seen, self.head + want);
        }
        self.seen - self.head
    }

    /// Makes sure that there is an element at the head.
    #[inline]
    pub(crate) fn observe(&mut self) -> Result<(), PopError> {
        if self.head != self.seen {
            return Ok(());
        }
        self.learn(published(self.shared(), self.head))
    }

    /// Works as [`observe`](Self::observe), at a distance from the producer.
    // The fast path passes on no reference to `self`, here and in the producer: an endpoint whose
    // address is not passed on can be kept in registers.
    #[inline(always)]
    fn observe_at_distance(&mut self) -> Result<(), PopError> {
        if self.head != self.seen {
            return Ok(());
        }
        self.learn(published_at_distance(self.shared(), self.head))
    }

    #[inline(always)]
    fn learn(&mut self, seen: u64) -> Result<(), PopError> {
        if seen == CLOSED {
            return Err(PopError::Closed);
        }
        self.seen = seen;
        if seen == self.head {
            Err(PopError::Empty)
        } else {
            Ok(())
        }
    }

    /// Takes the oldest element.
    ///
    /// It costs a few ns if an element is known to be there. Otherwise it loads the producer's
    /// position, which is a cache-line transfer if that has changed; in a dense stream through a
    /// packed ring it pauses for some 0.3 µs first, so that it finds more elements.
    ///
    /// # Errors
    /// [`PopError::Empty`] if nothing is published now; [`PopError::Closed`] if the ring is closed
    /// and drained.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        match self.try_pop_nearly() {
            Err(PopError::Closed) => {
                self.take_back();
                self.observe()?;
                Ok(self.take())
            }
            outcome => outcome,
        }
    }

    /// Works as [`try_pop`](Self::try_pop), but says `Closed` also where
    /// [`take_back`](Self::take_back) has something to do. Then look again.
    #[inline(always)]
    pub(crate) fn try_pop_nearly(&mut self) -> Result<T, PopError> {
        self.observe_at_distance()?;
        Ok(self.take())
    }

    /// Gives the room back that a forgotten batch has kept; returns whether there was any.
    #[cold]
    pub(crate) fn take_back(&mut self) -> bool {
        let is_kept = self.shared().released() != self.head;
        if is_kept {
            self.shared().release(self.head);
        }
        is_kept
    }

    /// Takes the element at the head, which was observed.
    #[inline(always)]
    fn take(&mut self) -> T {
        debug_assert!(self.head < self.seen);
        let position = self.head;
        self.head = position + 1;
        // SAFETY: seen as published, not released, and counted as taken (rules 3 and 4).
        let value = unsafe { self.view.cell(position).take() };
        self.shared().release(position + 1);
        value
    }

    /// Returns a reference to the oldest element, which stays in the ring.
    ///
    /// # Errors
    /// As [`try_pop`](Self::try_pop).
    pub fn peek(&mut self) -> Result<&T, PopError> {
        if let Err(why) = self.observe() {
            self.take_back();
            return Err(why);
        }
        // SAFETY: seen as published and not released; the consumer is borrowed as long as the
        // reference lives, so it is not taken (rule 3).
        Ok(unsafe { self.shared().cell(self.head).peek() })
    }

    /// Takes up to `max` elements one by one through an iterator.
    ///
    /// The batch is what is published now. Elements that the iterator is not asked for stay in the
    /// ring, also when it is dropped early or by a panic. Room is given back to the producer once,
    /// when the batch is dropped; that is what makes batches cheap.
    #[inline]
    pub fn batch(&mut self, max: usize) -> SpscBatch<'_, T> {
        let want = max.min(self.capacity()) as u64;
        let next = self.head;
        let end = next + self.available(want).min(want);
        self.head = end;
        // SAFETY: this is the consumer.
        unsafe { self.shared().consumer_distance.observe_closer() };
        SpscBatch {
            consumer: self,
            next,
            end,
        }
    }

    /// Moves up to `max` elements to the end of `out`, and returns their number.
    ///
    /// Allocates only if `out` has too little spare capacity.
    pub fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> usize {
        let want = max.min(self.capacity()) as u64;
        let count = self.available(want).min(want) as usize;
        out.reserve(count);
        let mut position = self.head;
        self.head += count as u64;
        let mut room = &mut out.spare_capacity_mut()[..count];
        // The runs before and behind the end of the array, in a packed ring.
        for _ in 0..2 {
            let cells = self.view.run(position, self.head);
            let (now, later) = room.split_at_mut(cells.len());
            for (cell, place) in cells.iter().zip(now) {
                // SAFETY: seen as published, not released, and counted as taken (rules 3 and 4).
                place.write(unsafe { cell.take() });
            }
            position += cells.len() as u64;
            room = later;
        }
        for (position, place) in (position..).zip(room) {
            // SAFETY: as above.
            place.write(unsafe { self.view.cell(position).take() });
        }
        // SAFETY: `count` elements behind the old end are initialised, and there was room.
        unsafe { out.set_len(out.len() + count) };
        self.shared().release(self.head);
        count
    }

    /// Returns how many elements the ring holds at most.
    pub fn capacity(&self) -> usize {
        self.shared().capacity
    }

    /// Returns how many elements can be taken. The producer may add some at any time.
    ///
    /// A slotted ring has no shared count and finds it by bisection: up to log2(capacity) line
    /// transfers.
    pub fn len(&self) -> usize {
        if self.shared().is_handed_over() {
            return 0;
        }
        self.shared().published_len(self.head)
    }

    /// Returns how many elements were taken since the ring was made.
    pub fn popped(&self) -> u64 {
        self.head
    }

    /// Returns whether the ring is empty now.
    pub fn is_empty(&self) -> bool {
        self.head == self.seen && self.shared().published(self.head, self.head + 1) == self.head
    }

    /// Returns whether the ring is closed: the producer was dropped, or one of the two called
    /// `close`. There may still be elements to take.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.shared().is_closed()
    }

    /// Closes the ring: later pushes fail. Elements in the ring can still be taken.
    ///
    /// A push that is under way on the other thread may still succeed; its element is there to
    /// take, or is dropped with the ring.
    pub fn close(&mut self) {
        self.shared().close();
    }

    /// For a consumer that closed the ring, and passed the heavy barrier after that: makes sure
    /// that there is an element at the head. `Closed` says that nothing will come, for good: what
    /// a late push brings is the producer's to take, and this endpoint must not pop any more.
    pub(crate) fn end(&mut self) -> Result<(), PopError> {
        loop {
            let is_held = self.shared().is_held() && !fault::is("claim_unseen");
            if self.observe().is_ok() {
                return Ok(());
            }
            if is_held {
                return Err(PopError::Empty);
            }
            self.shared().release(self.head);
            if self.shared().hand_over() {
                return Err(PopError::Closed);
            }
        }
    }

    /// Takes the oldest element of a ring that is closed. If there is none, the rest, should the
    /// producer have been late, is the producer's to take, and there is nothing to take any more;
    /// see [`SpscProducer::take_left`](super::SpscProducer::take_left).
    pub(crate) fn take_last(&mut self) -> Option<T> {
        while !self.shared().is_handed_over() {
            if self.observe().is_ok() {
                return Some(self.take());
            }
            // A forgotten batch may have taken elements without releasing them.
            self.shared().release(self.head);
            if self.shared().hand_over() {
                break;
            }
        }
        None
    }
}

/// Instead of a position: nothing is left, and nothing will come; or a batch was made, and may have
/// been forgotten.
const CLOSED: u64 = u64::MAX;

#[inline(never)]
fn published_at_distance<T>(ring: &Shared<T>, head: u64) -> u64 {
    // SAFETY: this is the consumer.
    let seen = unsafe {
        ring.consumer_distance.observe(|| {
            let seen = published(ring, head);
            (seen, if seen == CLOSED { 0 } else { seen - head })
        })
    };
    seen.unwrap_or(CLOSED)
}

/// Up to where elements are published, or [`CLOSED`].
#[inline]
fn published<T>(ring: &Shared<T>, head: u64) -> u64 {
    let seen = ring.published(head, head + 1);
    if seen > head || !ring.is_closed() {
        return seen;
    }
    // Closed is seen, so what was published before it is visible from here on: look once more.
    match ring.published(head, head + 1) {
        seen if seen == head => CLOSED,
        seen => seen,
    }
}

impl<T> Drop for SpscConsumer<T> {
    fn drop(&mut self) {
        if !self.shared().is_handed_over() {
            // A forgotten batch may have taken elements without releasing them.
            self.shared().release(self.head);
        }
        self.shared().close();
        // SAFETY: the last access of this endpoint, and all that it took is released (rule 5).
        unsafe { Shared::leave(self.shared) };
    }
}
