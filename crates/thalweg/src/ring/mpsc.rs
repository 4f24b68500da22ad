//! Many producers, one consumer: a lane for each producer.
//!
//! *State.* One one-to-one ring per producer (`spsc`), a lane. The consumer keeps the lanes that
//! are still open in front, the current one, and how many more elements it takes from it before it
//! moves on.
//!
//! *Rules.*
//! 1. A producer touches its own lane only; there is no word that two producers write.
//! 2. The consumer takes at most `TURN` elements from a lane, then goes on to the next that has
//!    one.
//! 3. A lane is retired when it is closed and drained, and no push can be under way; the ring is
//!    closed when all lanes are closed and drained.
//!
//! *Why it works.* Each lane is a ring with one producer and one consumer, so its proof is that of
//! `spsc`, and this module has no `unsafe` and no atomics. Order is kept per producer, since a
//! lane is; between producers there is none. By rule 1 a producer that is preempted in the middle
//! of a push delays its own elements only. By rule 2 an element at the front of its lane waits for
//! at most `TURN` × (lanes − 1) others.
//!
//! *No word of occupied lanes.* It would spare the consumer the look at idle lanes, and cost every
//! producer a locked operation on a line that all of them share: 6.6 ns at best, and a transfer
//! when two are active. A look at an idle lane is two loads of lines that stay in the consumer's
//! cache: 2.3 ns packed, 2.9 slotted (`examples/ring_speed.rs`, 2-core EPYC virtual machine).

use super::sequence::CapacityError;
use super::spsc::{Batch, Consumer, Layout, PopError, Producer, spsc};

/// How many elements are taken from a lane before the next has its turn: enough to make up for the
/// transfer of a line that each change of lane costs, few enough to keep the others' wait short.
const TURN: usize = 32;

/// Makes a ring for several producers and one consumer: a lane of `capacity_per_lane` elements for
/// each producer, in order.
///
/// Each producer is that of a one-to-one ring: it fills, and closes, its own lane. With no
/// producer at all the consumer is closed from the start.
///
/// ```
/// use thalweg::ring::{Layout, PopError, mpsc};
///
/// let (producers, mut consumer) = mpsc(3, 64, Layout::Packed)?;
/// for (n, mut producer) in producers.into_iter().enumerate() {
///     std::thread::spawn(move || producer.push_slice(&[n, n]));
/// }
/// let mut sum = 0;
/// loop {
///     match consumer.try_pop() {
///         Ok(n) => sum += n,
///         Err(PopError::Closed) => break,
///         Err(_) => std::thread::yield_now(),
///     }
/// }
/// assert_eq!(sum, 6);
/// # Ok::<(), thalweg::ring::CapacityError>(())
/// ```
///
/// # Errors
/// [`CapacityError`] if `capacity_per_lane` is 0 or above [`CAPACITY_MAX`](super::CAPACITY_MAX).
pub fn mpsc<T>(
    producers: usize,
    capacity_per_lane: usize,
    layout: Layout,
) -> Result<(Vec<Producer<T>>, LaneConsumer<T>), CapacityError> {
    // Without producers one lane is made all the same, so that there always is a current lane.
    let lanes: Result<Vec<_>, _> = (0..producers.max(1))
        .map(|_| spsc(capacity_per_lane, layout))
        .collect();
    let (mut ends, lanes): (Vec<_>, Vec<_>) = lanes?.into_iter().unzip();
    ends.truncate(producers);
    let lanes: Vec<_> = lanes
        .into_iter()
        .map(|ring| Lane { ring, tag: () })
        .collect();
    Ok((ends, LaneConsumer::of(lanes, |()| true)))
}

/// A producer's ring, and what its owner wants to know when it takes from it.
struct Lane<T, G> {
    ring: Consumer<T>,
    tag: G,
}

/// The reading end of a ring with a lane for each producer; see [`mpsc`](super::mpsc()).
///
/// Elements of one producer come out in the order in which it published them. Lanes take turns, so
/// a busy producer cannot starve another.
///
/// # Memory ordering
/// As [`Consumer`], lane by lane: what a producer did before it published an element is visible
/// after that element was taken. Elements of different producers say nothing about each other.
pub struct LaneConsumer<T, G = ()> {
    /// Never empty, so that there always is a current lane. The first `open` are not known to be
    /// closed and drained; the others go at once, but for the last.
    lanes: Vec<Lane<T, G>>,
    open: usize,
    current: usize,
    /// What may still be taken from the current lane before the next has its turn.
    left: usize,
    /// Elements taken from lanes that are gone.
    popped_before: u64,
    /// Whether a closed lane gets nothing more. When the consumer closes one, a push that is under
    /// way may still succeed.
    may_go: fn(&G) -> bool,
}

impl<T, G> LaneConsumer<T, G> {
    /// The lanes must not be empty.
    fn of(lanes: Vec<Lane<T, G>>, may_go: fn(&G) -> bool) -> Self {
        Self {
            may_go,
            open: lanes.len(),
            lanes,
            current: 0,
            left: 0,
            popped_before: 0,
        }
    }

    /// A ring with one lane so far, and a tag for it. A closed lane is kept until its tag may go.
    pub(crate) fn with_lane(ring: Consumer<T>, tag: G, may_go: fn(&G) -> bool) -> Self {
        Self::of(vec![Lane { ring, tag }], may_go)
    }

    /// One more lane.
    pub(crate) fn add(&mut self, ring: Consumer<T>, tag: G) {
        self.lanes.push(Lane { ring, tag });
        let last = self.lanes.len() - 1;
        self.lanes.swap(self.open, last);
        self.open += 1;
        if self.open < self.lanes.len() {
            self.forget(self.open);
        }
    }

    /// The rings of all lanes and their tags, also of lanes that are closed and drained.
    pub(crate) fn each_lane(&mut self) -> impl Iterator<Item = (&mut Consumer<T>, &G)> {
        let lanes = self.lanes.iter_mut();
        lanes.map(|lane| (&mut lane.ring, &lane.tag))
    }

    /// Lets a lane go that is closed and drained.
    fn forget(&mut self, at: usize) {
        self.popped_before += self.lanes.swap_remove(at).ring.popped();
    }

    /// The tag of the lane that the last element came from.
    pub(crate) fn tag(&self) -> &G {
        &self.lanes[self.current].tag
    }

    /// The tags of all lanes.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &G> {
        self.lanes.iter().map(|lane| &lane.tag)
    }

    /// The position in its lane of the element that was taken last.
    pub(crate) fn last_position(&self) -> u64 {
        self.lanes[self.current].ring.popped().saturating_sub(1)
    }

    /// How many elements were taken since the ring was made.
    pub fn popped(&self) -> u64 {
        let lanes: u64 = self.lanes.iter().map(|lane| lane.ring.popped()).sum();
        self.popped_before + lanes
    }

    /// Makes sure that the current lane has an element and may be taken from.
    #[inline]
    fn settle(&mut self) -> Result<(), PopError> {
        if self.left > 0 && self.lanes[self.current].ring.observe().is_ok() {
            return Ok(());
        }
        self.turn()
    }

    /// Goes on to the next lane that has an element.
    #[inline(never)] // off the path of a pop
    fn turn(&mut self) -> Result<(), PopError> {
        self.left = 0;
        let mut looks = self.open;
        let mut is_closed = true;
        while looks > 0 {
            looks -= 1;
            self.current += 1;
            if self.current >= self.open {
                self.current = 0;
            }
            let lane = &mut self.lanes[self.current];
            let mut outcome = lane.ring.observe();
            let is_over = outcome == Err(PopError::Closed) && (self.may_go)(&lane.tag);
            if is_over {
                // What was under way before that is there now.
                outcome = lane.ring.observe();
            }
            match outcome {
                Ok(()) => {
                    self.left = TURN;
                    return Ok(());
                }
                Err(PopError::Closed) if is_over => {
                    // The last open lane takes its place, and is the next to be looked at. It may
                    // have been looked at before, in place of one that was not: begin again.
                    self.open -= 1;
                    looks = self.open;
                    is_closed = true;
                    if self.lanes.len() > 1 {
                        self.forget(self.current);
                    }
                    self.current = self.current.checked_sub(1).unwrap_or(self.open);
                }
                Err(PopError::Closed) => {}
                Err(_) => is_closed = false,
            }
        }
        self.current = self.current.min(self.lanes.len() - 1);
        Err(if is_closed {
            PopError::Closed
        } else {
            PopError::Empty
        })
    }

    /// Takes the next element: the oldest of the lane whose turn it is.
    ///
    /// Costs what a pop of a one-to-one ring does, and when a turn is over or a lane is empty, a
    /// look at each lane until one has an element.
    ///
    /// # Errors
    /// [`PopError::Empty`] if no lane has an element; [`PopError::Closed`] if all are closed and
    /// drained.
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        if self.left > 0
            && let Ok(value) = self.lanes[self.current].ring.try_pop_at_once()
        {
            self.left -= 1;
            return Ok(value);
        }
        self.turn()?;
        self.left -= 1;
        self.lanes[self.current].ring.try_pop_at_once()
    }

    /// Looks at the element that the next [`try_pop`](Self::try_pop) takes.
    ///
    /// # Errors
    /// As [`try_pop`](Self::try_pop).
    pub fn peek(&mut self) -> Result<&T, PopError> {
        self.settle()?;
        self.lanes[self.current].ring.peek()
    }

    /// Takes up to `max` elements of one lane through an iterator; the next batch is of another
    /// lane, if that has any. It is empty only if all lanes were.
    ///
    /// As with [`Consumer::batch`], elements that the iterator is not asked for stay in the ring.
    pub fn batch(&mut self, max: usize) -> Batch<'_, T> {
        self.batch_and_tag(max).0
    }

    /// The same with the tag of the lane.
    pub(crate) fn batch_and_tag(&mut self, max: usize) -> (Batch<'_, T>, &G) {
        // An empty batch if nothing is there: the current lane has none either.
        let max = if self.settle().is_ok() { max } else { 0 };
        self.left = 0;
        let lane = &mut self.lanes[self.current];
        (lane.ring.batch(max), &lane.tag)
    }

    /// Moves up to `max` elements to the end of `out`, lane by lane, and says how many; no more in
    /// one call than all lanes hold.
    ///
    /// Allocates only if `out` has too little spare capacity.
    pub fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> usize {
        let max = max.min(self.capacity());
        let mut count = 0;
        while count < max && self.settle().is_ok() {
            let want = self.left.min(max - count);
            let taken = self.lanes[self.current].ring.pop_into(out, want);
            self.left -= taken;
            count += taken;
        }
        count
    }

    fn open_rings(&self) -> impl Iterator<Item = &Consumer<T>> {
        self.lanes[..self.open].iter().map(|lane| &lane.ring)
    }

    /// Moves up to `max` elements of one lane to the end of `out`; gives how many, and the lane's
    /// tag. None only if all lanes are empty.
    pub(crate) fn pop_lane_into(&mut self, out: &mut Vec<T>, max: usize) -> (usize, &G) {
        let max = if self.settle().is_ok() { max } else { 0 };
        self.left = 0;
        let lane = &mut self.lanes[self.current];
        (lane.ring.pop_into(out, max), &lane.tag)
    }

    /// How many elements all open lanes together hold at most.
    pub fn capacity(&self) -> usize {
        self.lanes
            .iter()
            .map(|lane| lane.ring.capacity())
            .fold(0, usize::saturating_add)
    }

    /// How many lanes are not known to be closed and drained. A lane is found to be so when its
    /// turn comes.
    pub fn open_lanes(&self) -> usize {
        self.open
    }

    /// How many elements are in all lanes together, looked at one after another.
    pub fn len(&self) -> usize {
        self.open_rings().map(Consumer::len).sum()
    }

    /// Whether no lane has an element at the moment.
    pub fn is_empty(&self) -> bool {
        self.open_rings().all(Consumer::is_empty)
    }

    /// Whether all lanes are closed. There may still be elements to take.
    pub fn is_closed(&self) -> bool {
        self.open_rings().all(Consumer::is_closed)
    }

    /// Closes all lanes: later pushes fail. What is in the ring can still be taken.
    pub fn close(&mut self) {
        for lane in &mut self.lanes {
            lane.ring.close();
        }
    }
}

shown!([T, G] LaneConsumer<T, G>, "LaneConsumer", this,
    "lanes": this.lanes.len(), "open": this.open, "len": this.len());

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ring::sync::fault;
    use loom::thread;

    /// Two producers publish what fits and leave; the consumer gets all of it.
    fn lanes_deliver_all_and_close(layout: Layout) {
        let (producers, mut rx) = mpsc(2, 1, layout).expect("a capacity in range");
        let senders: Vec<_> = producers
            .into_iter()
            .map(|mut tx| thread::spawn(move || tx.push_slice(&[1]) + tx.push_slice(&[2])))
            .collect();
        let mut sum = 0;
        for _ in 0..2 {
            sum += rx.try_pop().unwrap_or(0);
        }
        // One that was pushed is 1; both are 1 + 2.
        let sent = |sender: thread::JoinHandle<usize>| [0, 1, 3][sender.join().expect("sender")];
        let expected: usize = senders.into_iter().map(sent).sum();
        while let Ok(value) = rx.try_pop() {
            sum += value;
        }
        assert_eq!(sum, expected);
        assert_eq!(rx.try_pop(), Err(PopError::Closed));
    }

    #[test]
    fn a_packed_lane() {
        loom::model(|| lanes_deliver_all_and_close(Layout::Packed));
    }

    #[test]
    fn a_slotted_lane() {
        loom::model(|| lanes_deliver_all_and_close(Layout::Slotted));
    }

    #[test]
    fn weak_orderings_in_a_lane_are_caught() {
        for fault in [
            "publish", "observe", "release", "reclaim", "close", "closed",
        ] {
            for layout in [Layout::Packed, Layout::Slotted] {
                let model = move || lanes_deliver_all_and_close(layout);
                assert!(
                    fault::caught(fault, model),
                    "{layout:?}: a weak `{fault}` was not caught"
                );
            }
        }
    }
}
