//! A ring for each of many senders, a lane, all drained by one receiver.
//!
//! *State.* One one-to-one ring for each sender. The receiver keeps the lanes that are still open
//! in front, the current one, and how many more elements it takes from it before it moves on. A
//! sender that is cloned makes a lane and leaves its consuming end at the [`JoinQueue`]; the
//! receiver takes in what it finds there before it looks at its lanes, so that busy ones do not
//! keep a new one waiting in the join queue.
//!
//! *Rules.*
//! 1. A sender touches its own lane only; there is no word that two senders write for an element.
//! 2. The receiver takes at most `TURN` elements from a lane, then goes on to the next that has
//!    one.
//! 3. A lane is retired when it is closed and drained, and no send can be under way.
//!
//! *Why it works.* Each lane has one producer and one consumer, so its proof is that of
//! `ring::spsc`. Order is kept per sender, since a lane is; between senders there is none. By rule
//! 1 a sender that is preempted in the middle of a send delays its own elements only. By rule 2 an
//! element at the front of its lane waits for at most `TURN` × (lanes − 1) others.
//!
//! *No lane is missed.* A thread that clones a sender holds one, so the new lane is in the join
//! queue before the old one can be closed; for an upgrade of a weak one, see `weak`. The receiver
//! that sees all its lanes closed checks the join queue after that, until there is nothing new.
//!
//! *No word of occupied lanes.* It would spare the receiver the look at idle lanes, and cost every
//! sender a locked operation on a line that all of them share: 6.6 ns at best, and a transfer when
//! two are active. A look at an idle lane is two loads of lines that stay in the receiver's cache:
//! 2.3 ns packed, 2.9 slotted (2-core EPYC virtual machine).

use super::hub::{AS_THE_FIRST, Gate};
use crate::ring::sync::{Arc, AtomicBool, Mutex, Ordering, fault, lock};
use crate::ring::{self, CapacityError, Layout, PopError, SpscConsumer, SpscProducer, spsc};

/// How many elements are taken from a lane before the next has its turn: enough to make up for the
/// transfer of a line that each change of lane costs, few enough to keep the others' wait short.
const TURN: usize = 32;

/// A sender's ring, and where that sender waits.
pub(super) struct Lane<T> {
    pub(super) ring: SpscConsumer<T>,
    pub(super) gate: Arc<Gate>,
}

/// Where lanes wait to be taken in.
pub(super) struct JoinQueue<T> {
    newcomers: Mutex<Vec<Lane<T>>>,
    is_occupied: AtomicBool,
    /// Whether the receiver is gone, so that no new lane will be taken in.
    is_shut: AtomicBool,
    /// Elements of a lane.
    pub(super) capacity: usize,
    layout: Layout,
}

/// The receiver's lanes.
pub(super) struct LaneReceiver<T> {
    /// Never empty, so that there always is a current lane. The first `open` are not known to be
    /// closed and drained; the others go at once, but for the last.
    pub(super) lanes: Vec<Lane<T>>,
    open: usize,
    current: usize,
    /// The number of elements that may still be taken from the current lane before the next has its
    /// turn.
    left: usize,
    /// Elements taken from lanes that are gone.
    popped_before: u64,
    join_queue: Arc<JoinQueue<T>>,
    /// The end was reported.
    is_over: bool,
    /// A batch of the current lane was made, and may have been forgotten.
    is_lent: bool,
}

/// A sender's lane, and where others like it come from.
type LaneSender<T> = (SpscProducer<T>, Arc<JoinQueue<T>>);

/// Returns a channel with one lane so far.
pub(super) fn pair<T>(
    capacity: usize,
    layout: Layout,
    gate: Arc<Gate>,
) -> Result<(LaneSender<T>, LaneReceiver<T>), CapacityError> {
    let (producer, ring) = spsc(capacity, layout)?;
    let join_queue = Arc::new(JoinQueue {
        newcomers: Mutex::new(Vec::new()),
        is_occupied: AtomicBool::new(false),
        is_shut: AtomicBool::new(false),
        capacity,
        layout,
    });
    let sender = (producer, Arc::clone(&join_queue));
    let receiver = LaneReceiver {
        lanes: vec![Lane { ring, gate }],
        open: 1,
        current: 0,
        left: 0,
        popped_before: 0,
        join_queue,
        is_over: false,
        is_lent: false,
    };
    Ok((sender, receiver))
}

impl<T> JoinQueue<T> {
    /// Returns another lane, whose sender waits at `gate`.
    pub(super) fn lane(&self, gate: Arc<Gate>) -> SpscProducer<T> {
        let (producer, ring) = spsc(self.capacity, self.layout).expect(AS_THE_FIRST);
        let mut newcomers = lock(&self.newcomers);
        // ORDERING: Relaxed; stored and read under the lock.
        if !self.is_shut.load(Ordering::Relaxed) {
            newcomers.push(Lane { ring, gate });
            // ORDERING: Relaxed; the lane is behind the lock. A receiver that sees something that
            // this thread does later, a close above all, sees this too.
            self.is_occupied.store(true, Ordering::Relaxed);
        }
        // A consumer that no receiver will drain is dropped here, which closes the lane.
        drop(newcomers);
        producer
    }
}

impl<T> LaneReceiver<T> {
    /// Takes in the lanes of the join queue.
    #[inline]
    fn take_in(&mut self) {
        if self.is_expecting() {
            self.take_in_all();
        }
    }

    #[cold]
    fn take_in_all(&mut self) {
        let newcomers = {
            let mut newcomers = lock(&self.join_queue.newcomers);
            // ORDERING: Relaxed; under the lock that `lane` holds when it stores.
            self.join_queue.is_occupied.store(false, Ordering::Relaxed);
            std::mem::take(&mut *newcomers)
        };
        for lane in newcomers {
            self.lanes.push(lane);
            let last = self.lanes.len() - 1;
            self.lanes.swap(self.open, last);
            self.open += 1;
            if self.open < self.lanes.len() {
                self.forget(self.open);
            }
        }
    }

    /// Returns whether a lane waits in the join queue. After the end, one that comes is of an
    /// upgrade that fails (see `weak`), and would look open until then.
    fn is_expecting(&self) -> bool {
        // ORDERING: Relaxed, as in `lane`.
        self.join_queue.is_occupied.load(Ordering::Relaxed) && !self.is_over
    }

    /// Lets a lane go that is closed and drained, and not one of the open ones.
    fn forget(&mut self, at: usize) {
        self.popped_before += self.lanes.swap_remove(at).ring.popped();
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
        if std::mem::take(&mut self.is_lent) {
            let Lane { ring, gate } = &mut self.lanes[self.current];
            if ring.take_back() {
                gate.writable.notify_one();
            }
        }
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
            // When the receiver closes a lane, a send that is under way may still succeed.
            let is_over = outcome == Err(PopError::Closed) && lane.gate.is_left();
            if is_over {
                // Elements that were under way before that are there now.
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
                        self.lanes.swap(self.current, self.open);
                        self.forget(self.open);
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

    /// See [`RecvEnd::end`](super::stores::RecvEnd::end): where senders are still there, their
    /// lanes stay, and are not open any more.
    pub(super) fn end(&mut self) -> Result<(), PopError> {
        let mut why = PopError::Closed;
        let mut at = 0;
        while at < self.open {
            match self.lanes[at].ring.end() {
                Ok(()) => {
                    (self.current, self.left) = (at, TURN);
                    return Ok(());
                }
                Err(PopError::Closed) => {
                    self.open -= 1;
                    self.lanes.swap(at, self.open);
                }
                Err(empty) => {
                    why = empty;
                    at += 1;
                }
            }
        }
        Err(why)
    }

    /// Returns whether a lane may have an element.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    #[inline]
    fn pop_known(&mut self) -> Result<T, PopError> {
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

    #[inline]
    pub(super) fn try_pop(&mut self) -> Result<T, PopError> {
        loop {
            self.take_in();
            match self.pop_known() {
                // A lane that came meanwhile may have elements, or be the only one left open.
                Err(_) if self.is_expecting() && !fault::is("lane_look_again") => {}
                Err(PopError::Closed) => {
                    self.is_over = !fault::is("porch_open");
                    return Err(PopError::Closed);
                }
                outcome => return outcome,
            }
        }
    }

    /// Returns the gate of the lane that the last element came from.
    pub(super) fn gate(&self) -> &Arc<Gate> {
        &self.lanes[self.current].gate
    }

    /// Returns the position in its lane of the element that was taken last.
    pub(super) fn last_position(&self) -> u64 {
        self.lanes[self.current].ring.popped().saturating_sub(1)
    }

    /// Returns how many elements were taken since the channel was made.
    pub(super) fn popped(&self) -> u64 {
        let lanes: u64 = self.lanes.iter().map(|lane| lane.ring.popped()).sum();
        self.popped_before + lanes
    }

    /// Calls `look` with each lane, and then with those in the join queue: see the module.
    pub(super) fn for_each(&self, mut look: impl FnMut(&Lane<T>)) {
        self.lanes.iter().for_each(&mut look);
        if self.is_expecting() {
            lock(&self.join_queue.newcomers).iter().for_each(look);
        }
    }

    pub(super) fn len(&self) -> usize {
        let mut len = 0;
        self.for_each(|lane| len += lane.ring.len());
        len
    }

    pub(super) fn capacity(&self) -> usize {
        let mut capacity = 0_usize;
        self.for_each(|lane| capacity = capacity.saturating_add(lane.ring.capacity()));
        capacity
    }

    pub(super) fn is_closed(&self) -> bool {
        let mut is_closed = true;
        self.for_each(|lane| is_closed &= lane.ring.is_closed());
        is_closed
    }

    /// Moves up to `max` elements to the end of `out`, at least one.
    pub(super) fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> Result<(), PopError> {
        self.take_in();
        let mut left = max;
        while left > 0 && self.settle().is_ok() {
            self.left = 0;
            let lane = &mut self.lanes[self.current];
            let taken = lane.ring.pop_into(out, left);
            lane.gate.writable.notify(taken);
            left -= taken;
        }
        if left == max {
            // Distinguishes empty from closed, and takes in new lanes.
            out.push(self.try_pop()?);
            self.gate().writable.notify_one();
        }
        Ok(())
    }

    /// Elements of one lane, and the gate of their sender. The next batch is of another lane, if
    /// that has any.
    pub(super) fn batch(&mut self, max: usize) -> (ring::SpscBatch<'_, T>, &Gate) {
        self.take_in();
        // An empty batch if nothing is there: the current lane has none either.
        let max = if self.settle().is_ok() { max } else { 0 };
        (self.left, self.is_lent) = (0, true);
        let lane = &mut self.lanes[self.current];
        (lane.ring.batch(max), &lane.gate)
    }

    /// Makes sure that a pop would give an element.
    pub(super) fn look(&mut self) -> Result<(), PopError> {
        self.take_in();
        self.settle()
    }

    /// Closes all lanes, those to come as well, and wakes their senders.
    pub(super) fn close(&mut self) {
        {
            let _newcomers = lock(&self.join_queue.newcomers);
            // ORDERING: Relaxed; read under the same lock.
            self.join_queue.is_shut.store(true, Ordering::Relaxed);
            if fault::is("lane_shut") {
                // ORDERING: Relaxed; wrong in any case.
                self.join_queue.is_shut.store(false, Ordering::Relaxed);
            }
        }
        self.take_in();
        for lane in &mut self.lanes {
            lane.ring.close();
            lane.gate.writable.notify_all();
        }
    }
}
