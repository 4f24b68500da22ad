//! The reading end of a one-to-one ring.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::shared::{Shared, View};
use super::{PopError, SharedByThreads, UsedByOneThreadAtATime};
use crate::ring::sync::fault;

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
pub struct Consumer<T> {
    shared: NonNull<Shared<T>>,
    /// The next element to take; everything before is taken.
    head: u64,
    /// Elements before this are known to be published.
    seen: u64,
    view: View<T>,
    /// Gives elements, and takes none: so it may be covariant.
    owns: PhantomData<T>,
}

// SAFETY: the one consumer may be on any thread, and takes elements that the producer's sent (rule
// 1).
unsafe impl<T: Send> Send for Consumer<T> {}
// SAFETY: the condition never holds, so it is not `Sync` (rule 1).
unsafe impl<T> Sync for Consumer<T> where for<'a> UsedByOneThreadAtATime: SharedByThreads {}
// Elements are moved in and out, and none is pinned inside.
impl<T> Unpin for Consumer<T> {}

impl<T> Consumer<T> {
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
        self.learn(look(self.shared(), self.head))
    }

    /// Works as [`observe`](Self::observe), at a distance from the producer.
    // The fast path passes on no reference to `self`, here and in the producer: an endpoint whose
    // address is not passed on can be kept in registers.
    #[inline(always)]
    fn observe_at_distance(&mut self) -> Result<(), PopError> {
        if self.head != self.seen {
            return Ok(());
        }
        self.learn(look_at_distance(self.shared(), self.head))
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
    /// Costs a few ns if one is known to be there; otherwise a read of what the producer published
    /// (a cache-line transfer if that changed), in a dense stream through a packed ring after a
    /// pause of some 0.3 µs, so that there is more to find.
    ///
    /// # Errors
    /// [`PopError::Empty`] if nothing is published now; [`PopError::Closed`] if the ring is closed
    /// and drained.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        match self.try_pop_nearly() {
            Err(PopError::Closed) => {
                self.take_back();
                self.try_pop_at_once()
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

    /// Works as [`try_pop`](Self::try_pop), without ever a pause: others may have elements, too.
    #[inline(always)]
    pub(crate) fn try_pop_at_once(&mut self) -> Result<T, PopError> {
        self.observe()?;
        Ok(self.take())
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

    /// Looks at the oldest element and leaves it there.
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
    pub fn batch(&mut self, max: usize) -> Batch<'_, T> {
        let want = max.min(self.capacity()) as u64;
        let next = self.head;
        let end = next + self.available(want).min(want);
        self.head = end;
        // SAFETY: this is the consumer.
        unsafe { self.shared().consumer_keeper.look_closer() };
        Batch {
            consumer: self,
            next,
            end,
        }
    }

    /// Moves up to `max` elements to the end of `out`, and says how many.
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

    /// Returns whether there is nothing to take at the moment.
    pub fn is_empty(&self) -> bool {
        self.head == self.seen && self.shared().published(self.head, self.head + 1) == self.head
    }

    /// Returns whether the ring is closed: the producer is gone, or one of the two called `close`.
    /// There may still be elements to take.
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
    /// see [`Producer::take_left`](super::Producer::take_left).
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
fn look_at_distance<T>(ring: &Shared<T>, head: u64) -> u64 {
    // SAFETY: this is the consumer.
    let seen = unsafe {
        ring.consumer_keeper.look(|| {
            let seen = look(ring, head);
            (seen, if seen == CLOSED { 0 } else { seen - head })
        })
    };
    seen.unwrap_or(CLOSED)
}

/// Up to where elements are published, or [`CLOSED`].
#[inline]
fn look<T>(ring: &Shared<T>, head: u64) -> u64 {
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

impl<T> Drop for Consumer<T> {
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

shown!([T] Consumer<T>, "Consumer", this,
    "capacity": this.capacity(), "len": this.len(),
    "closed": this.is_closed());

/// Elements that are being taken from a ring; see [`Consumer::batch`].
///
/// Forgetting it (`std::mem::forget`) is safe, and leaks the elements that it has not given yet;
/// the room of the batch comes back with the next pop, peek or batch, also if that finds nothing.
// The whole batch is counted as taken when it is made, and what is left is counted back when it is
// dropped: a position in the batch itself can live in a register, one behind the reference is
// stored and loaded again for each element (four cycles of latency, more than all the rest).
#[must_use = "elements are taken only by iterating"]
pub struct Batch<'a, T> {
    consumer: &'a mut Consumer<T>,
    next: u64,
    end: u64,
}

impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let position = self.next;
        if position == self.end {
            return None;
        }
        self.next = position + 1;
        // SAFETY: seen as published (`end <= seen`), not released, and counted as taken (rules 3
        // and 4).
        Some(unsafe { self.consumer.view.cell(position).take() })
    }

    /// By runs of cells that lie side by side, where they do.
    #[inline]
    fn fold<B, F>(mut self, init: B, mut fold: F) -> B
    where
        F: FnMut(B, T) -> B,
    {
        let mut folded = init;
        // The runs before and behind the end of the array.
        for _ in 0..2 {
            for cell in self.consumer.view.run(self.next, self.end) {
                // Counted as taken before it is, should `fold` panic.
                self.next += 1;
                // SAFETY: as in `next`.
                folded = fold(folded, unsafe { cell.take() });
            }
        }
        // In a slotted ring, all of them.
        for value in self.by_ref() {
            folded = fold(folded, value);
        }
        folded
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Batch<'_, T> {}
impl<T> FusedIterator for Batch<'_, T> {}

impl<T> Drop for Batch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.consumer.head = self.next;
        self.consumer.shared().release(self.next);
    }
}

shown!([T] Batch<'_, T>, "Batch", this, "left": this.len());
