//! The writing end of a one-to-one ring, and room that it has claimed and not yet published.

use std::marker::PhantomData;
use std::ptr::NonNull;

use super::shared::{Shared, View};
use super::{ClaimError, PushError, SharedByThreads, UsedByOneThreadAtATime};
use crate::ring::panics::drop_each;

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
pub struct Producer<T> {
    shared: NonNull<Shared<T>>,
    /// Where the next element goes; everything before is published.
    tail: u64,
    /// Where this side must stop by what it last saw of the head: that head plus the capacity.
    limit: u64,
    view: View<T>,
    /// Takes elements: a producer of `&'static str` is none of shorter-lived ones, which its
    /// consumer would take for `'static`.
    takes: PhantomData<fn(T)>,
}

// SAFETY: the one producer may be on any thread, and moves elements to the consumer's (rule 1).
unsafe impl<T: Send> Send for Producer<T> {}
// SAFETY: the condition never holds, so it is not `Sync` (rule 1).
unsafe impl<T> Sync for Producer<T> where for<'a> UsedByOneThreadAtATime: SharedByThreads {}
// Elements are moved in and out, and none is pinned inside.
impl<T> Unpin for Producer<T> {}

impl<T> Producer<T> {
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
    fn shared(&self) -> &Shared<T> {
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

    /// Room for one element, unless the ring is full or closed.
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
        self.limit = look_at_distance(self.shared(), self.tail);
        self.limit != self.tail
    }

    /// Claims room for exactly `count` elements, to be written and then published by
    /// [`commit`](Claim::commit).
    ///
    /// # Errors
    /// [`ClaimError::Full`] if fewer cells are free, [`ClaimError::TooLarge`] if the ring never
    /// holds `count`, [`ClaimError::Closed`] if it is closed.
    pub fn claim(&mut self, count: usize) -> Result<Claim<'_, T>, ClaimError> {
        if self.is_closed() {
            return Err(ClaimError::Closed);
        }
        let capacity = self.capacity();
        if count > capacity {
            return Err(ClaimError::TooLarge {
                asked: count,
                capacity,
            });
        }
        let free = self.free(count as u64) as usize;
        if free < count {
            return Err(ClaimError::Full { asked: count, free });
        }
        // Again, for the reason in `look_at_distance`.
        if self.is_closed() {
            return Err(ClaimError::Closed);
        }
        Ok(Claim::new(self, count))
    }

    /// Claims room for as many elements as are free, at most `max` and, unless `max` is 0, at
    /// least one.
    ///
    /// # Errors
    /// [`ClaimError::Full`] if none is free, [`ClaimError::Closed`] if the ring is closed.
    pub fn claim_up_to(&mut self, max: usize) -> Result<Claim<'_, T>, ClaimError> {
        if self.is_closed() {
            return Err(ClaimError::Closed);
        }
        let want = max.min(self.capacity());
        let free = self.free(want as u64) as usize;
        if free == 0 && max > 0 {
            return Err(ClaimError::Full { asked: max, free });
        }
        // Again, for the reason in `look_at_distance`.
        if self.is_closed() {
            return Err(ClaimError::Closed);
        }
        Ok(Claim::new(self, want.min(free)))
    }

    /// Appends elements from `values` while there is room, and says how many.
    ///
    /// They are published in batches, at the latest when the iterator ends, room runs out or the
    /// iterator panics. Nothing is taken from the iterator that does not go into the ring. A
    /// closed ring takes 0.
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

    /// Appends elements from the front of `values` while there is room, publishes them at once and
    /// says how many. A closed ring takes 0.
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

    /// At least how many elements are in the ring by what this side last saw of the head; looks
    /// again only if that is more than `limit`. Costs nothing while there are few.
    #[inline]
    pub(crate) fn backlog(&mut self, limit: usize) -> usize {
        let capacity = self.capacity() as u64;
        if self.tail + capacity - self.limit > limit as u64 {
            self.limit = self.shared().released() + capacity;
        }
        (self.tail + capacity - self.limit) as usize
    }

    /// Returns whether the consumer has taken everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a push would find no room.
    pub fn is_full(&self) -> bool {
        self.tail == self.limit && self.len() == self.capacity()
    }

    /// Returns whether the ring is closed: the consumer is gone, or one of the two called `close`.
    #[inline(always)]
    pub fn is_closed(&self) -> bool {
        self.shared().is_closed()
    }

    /// Closes the ring: later pushes fail, and the consumer gets what was published before, then
    /// [`PopError::Closed`](super::PopError::Closed). Dropping the producer does the same.
    pub fn close(&mut self) {
        self.shared().close();
    }

    /// Ends what [`Claim::hold`] began, after the claim was published or given up; also for one
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
fn look_at_distance<T>(ring: &Shared<T>, tail: u64) -> u64 {
    // SAFETY: this is the producer.
    let limit = unsafe {
        ring.producer_keeper.look(|| {
            let limit = ring.released() + ring.capacity as u64;
            (limit, limit - tail)
        })
    };
    let limit = limit.unwrap_or(tail);
    if ring.is_closed() { tail } else { limit }
}

/// Room for one element at the tail.
pub(crate) struct Room<'p, T>(&'p mut Producer<T>);

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

/// Publishes what was written, also when the iterator that gave it panics.
struct CommitOnDrop<'a, T>(Claim<'a, T>);

impl<T> Drop for CommitOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.publish();
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared().close();
        // SAFETY: the last access of this endpoint (rule 5).
        unsafe { Shared::leave(self.shared) };
    }
}

shown!([T] Producer<T>, "Producer", this,
    "capacity": this.capacity(), "len": this.len(),
    "closed": this.is_closed());

/// Claimed room in a ring: write, then [`commit`](Self::commit).
///
/// Elements are written in order. `commit` publishes those that were written; the rest of the room
/// goes back. A claim that is dropped without `commit` publishes nothing and drops what was
/// written into it, so a panic between claim and commit leaves the ring as it was.
///
/// In a packed ring the whole batch becomes visible at once, in a slotted one element by element,
/// in order.
///
/// ```
/// use thalweg::ring::{Layout, spsc};
///
/// let (mut producer, mut consumer) = spsc(8, Layout::Slotted)?;
/// let mut claim = producer.claim(3).expect("an empty ring has room for 3");
/// claim.push(1).expect("room for 3");
/// claim.write(&[2, 3]);
/// assert_eq!(claim.commit(), 3);
/// assert_eq!(consumer.batch(8).collect::<Vec<_>>(), [1, 2, 3]);
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
#[must_use = "a claim that is not committed publishes nothing"]
pub struct Claim<'a, T> {
    producer: &'a mut Producer<T>,
    len: usize,
    written: usize,
}

impl<'a, T> Claim<'a, T> {
    /// The producer has at least `len` free cells at its tail.
    fn new(producer: &'a mut Producer<T>, len: usize) -> Self {
        Self {
            producer,
            len,
            written: 0,
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
        let position = self.producer.tail + self.written as u64;
        // SAFETY: `written < len`, and the claim's `len` cells are this producer's (rule 2).
        unsafe { self.producer.view.cell(position).write(value) };
        self.written += 1;
        Ok(())
    }

    /// Writes elements from the iterator; returns whether there may be more of them.
    #[inline]
    fn fill(&mut self, values: &mut impl Iterator<Item = T>) -> bool {
        let start = self.producer.tail;
        let end = start + self.len as u64;
        // The runs before and behind the end of the array, in a packed ring.
        for _ in 0..2 {
            for cell in self.producer.view.run(start + self.written as u64, end) {
                let Some(value) = values.next() else {
                    return false;
                };
                // SAFETY: within the claim's `len` cells, which are this producer's (rule 2).
                unsafe { cell.write(value) };
                self.written += 1;
            }
        }
        while self.written < self.len {
            let Some(value) = values.next() else {
                return false;
            };
            // There is room: `written < len`.
            let _ = self.push(value);
        }
        values.size_hint().1 != Some(0)
    }

    /// Writes as many of the next elements as there is room for, and says how many.
    pub fn write(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let count = values.len().min(self.remaining());
        let mut position = self.producer.tail + self.written as u64;
        let (end, mut values) = (position + count as u64, &values[..count]);
        // The runs before and behind the end of the array, in a packed ring.
        for _ in 0..2 {
            let cells = self.producer.view.run(position, end);
            for (cell, value) in cells.iter().zip(values) {
                // SAFETY: no more than remain of the claim's cells, which are this producer's
                // (rule 2).
                unsafe { cell.write(*value) };
            }
            position += cells.len() as u64;
            values = &values[cells.len()..];
        }
        for (position, value) in (position..).zip(values) {
            // SAFETY: as above.
            unsafe { self.producer.view.cell(position).write(*value) };
        }
        self.written += count;
        count
    }

    /// Publishes what was written, and says how many elements.
    ///
    /// It cannot fail. If the consumer left meanwhile, the elements are dropped with the ring.
    #[inline]
    pub fn commit(mut self) -> usize {
        self.publish()
    }

    /// Says that this claim may be published though the ring is closed meanwhile. The caller passes
    /// the light barrier, gives the claim up if the ring is closed, and lets go in any case.
    pub(crate) fn hold(&mut self) {
        self.producer.shared().hold(true);
    }

    /// Returns the producer; what was written and not published is dropped with the claim.
    pub(crate) fn producer(&mut self) -> &mut Producer<T> {
        self.producer
    }

    /// Publishes what was written; the claim then has room for what remains.
    #[inline]
    pub(crate) fn publish(&mut self) -> usize {
        let count = self.written;
        if count > 0 {
            let start = self.producer.tail;
            let end = start + count as u64;
            self.producer.shared().publish(start, end);
            self.producer.tail = end;
            self.len -= count;
            self.written = 0;
        }
        count
    }
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        let start = self.producer.tail;
        let end = start + std::mem::take(&mut self.written) as u64;
        if !std::mem::needs_drop::<T>() {
            return;
        }
        let shared = self.producer.shared();
        // SAFETY: written through this claim and not published, so it is ours alone, and counted as
        // gone before (rules 2 and 4).
        let take = |position| unsafe { shared.cell(position).take() };
        let mut positions = start..end;
        drop_each(|| positions.next().map(take));
    }
}

shown!([T] Claim<'_, T>, "Claim", this, "len": this.len, "written": this.written);
