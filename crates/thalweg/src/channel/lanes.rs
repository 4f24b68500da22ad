//! A ring for each of many senders, all drained by one receiver.
//!
//! A sender that is cloned makes a ring and leaves its consuming end at the [`Porch`]; the receiver
//! takes in what it finds there before it looks at its lanes, so that busy ones do not keep a new
//! one waiting at the porch.
//!
//! *No lane is missed.* Who clones a sender holds one, so the new lane is at the porch before the
//! old one can be closed; for who upgrades a weak one, see `weak`. The receiver that sees all its
//! lanes closed looks at the porch after that, until there is nothing new.

use super::hub::{AS_THE_FIRST, Gate};
use crate::ring::sync::{Arc, AtomicBool, Mutex, Ordering, fault, lock};
use crate::ring::{self, CapacityError, Consumer, LaneConsumer, Layout, PopError, Producer, spsc};

type Newcomer<T> = (Consumer<T>, Arc<Gate>);

/// Where lanes wait to be taken in.
pub(super) struct Porch<T> {
    newcomers: Mutex<Vec<Newcomer<T>>>,
    is_occupied: AtomicBool,
    /// The receiver is gone: nobody will take anything in.
    is_shut: AtomicBool,
    capacity: usize,
    layout: Layout,
}

/// The receiver's lanes.
pub(super) struct LaneReceiver<T> {
    pub(super) lanes: LaneConsumer<T, Arc<Gate>>,
    porch: Arc<Porch<T>>,
    /// The end was told.
    is_over: bool,
}

/// A sender's lane, and where others like it come from.
type LaneSender<T> = (Producer<T>, Arc<Porch<T>>);

/// A channel with one lane so far.
pub(super) fn pair<T>(
    capacity: usize,
    layout: Layout,
    gate: Arc<Gate>,
) -> Result<(LaneSender<T>, LaneReceiver<T>), CapacityError> {
    let (producer, consumer) = spsc(capacity, layout)?;
    let porch = Arc::new(Porch {
        newcomers: Mutex::new(Vec::new()),
        is_occupied: AtomicBool::new(false),
        is_shut: AtomicBool::new(false),
        capacity,
        layout,
    });
    let lanes = LaneConsumer::with_lane(consumer, gate, |gate: &Arc<Gate>| gate.is_left());
    let sender = (producer, Arc::clone(&porch));
    let receiver = LaneReceiver {
        lanes,
        porch,
        is_over: false,
    };
    Ok((sender, receiver))
}

impl<T> Porch<T> {
    /// Elements of a lane.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Another lane, whose sender waits at `gate`.
    pub(super) fn lane(&self, gate: Arc<Gate>) -> Producer<T> {
        let (producer, consumer) = spsc(self.capacity, self.layout).expect(AS_THE_FIRST);
        let mut newcomers = lock(&self.newcomers);
        // ORDERING: Relaxed; stored and read under the lock.
        if !self.is_shut.load(Ordering::Relaxed) {
            newcomers.push((consumer, gate));
            // ORDERING: Relaxed; the lane is behind the lock. A receiver that sees something that
            // this thread does later, a close above all, sees this too.
            self.is_occupied.store(true, Ordering::Relaxed);
        }
        // A consumer that nobody will drain is dropped here, which closes the lane.
        drop(newcomers);
        producer
    }
}

impl<T> LaneReceiver<T> {
    /// Takes in the lanes at the porch; gives whether there were any.
    #[inline]
    fn take_in(&mut self) -> bool {
        self.is_expecting() && self.take_in_all()
    }

    #[cold]
    fn take_in_all(&mut self) -> bool {
        let newcomers = {
            let mut newcomers = lock(&self.porch.newcomers);
            // ORDERING: Relaxed; under the lock that `lane` holds when it stores.
            self.porch.is_occupied.store(false, Ordering::Relaxed);
            std::mem::take(&mut *newcomers)
        };
        let came = !newcomers.is_empty();
        for (ring, gate) in newcomers {
            self.lanes.add(ring, gate);
        }
        came
    }

    #[inline]
    pub(super) fn try_pop(&mut self) -> Result<T, PopError> {
        loop {
            self.take_in();
            match self.lanes.try_pop() {
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

    /// Whether a lane waits at the porch. After the end, one that comes is of an upgrade that fails
    /// (see `weak`), and would look open until then.
    fn is_expecting(&self) -> bool {
        // ORDERING: Relaxed, as in `lane`.
        self.porch.is_occupied.load(Ordering::Relaxed) && !self.is_over
    }

    /// Calls `look` with each lane at the porch.
    fn for_each_newcomer(&self, mut look: impl FnMut(&Newcomer<T>)) {
        if self.is_expecting() {
            lock(&self.porch.newcomers).iter().for_each(&mut look);
        }
    }

    pub(super) fn len(&self) -> usize {
        let mut len = self.lanes.len();
        self.for_each_newcomer(|(ring, _)| len += ring.len());
        len
    }

    pub(super) fn capacity(&self) -> usize {
        let mut capacity = self.lanes.capacity();
        self.for_each_newcomer(|(ring, _)| capacity = capacity.saturating_add(ring.capacity()));
        capacity
    }

    pub(super) fn is_closed(&self) -> bool {
        let mut is_closed = self.lanes.is_closed();
        // After the look above: see the module.
        self.for_each_newcomer(|(ring, _)| is_closed &= ring.is_closed());
        is_closed
    }

    pub(super) fn for_each_gate(&self, look: &mut dyn FnMut(&Gate)) {
        self.lanes.tags().for_each(|gate| look(gate));
        self.for_each_newcomer(|(_, gate)| look(gate));
    }

    /// Moves up to `max` elements to the end of `out`, at least one.
    pub(super) fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> Result<(), PopError> {
        self.take_in();
        let mut left = max;
        while left > 0 {
            let (taken, gate) = self.lanes.pop_lane_into(out, left);
            if taken == 0 {
                break;
            }
            gate.writable.notify(taken);
            left -= taken;
        }
        if left == max {
            // To tell empty from closed, and to take in new lanes.
            out.push(self.try_pop()?);
            self.lanes.tag().writable.notify_one();
        }
        Ok(())
    }

    /// Elements of one lane, and the gate of their sender.
    pub(super) fn batch(&mut self, max: usize) -> (ring::Batch<'_, T>, &Gate) {
        self.take_in();
        let (elements, gate) = self.lanes.batch_and_tag(max);
        (elements, gate)
    }

    /// Whether a pop would not say that there is nothing at the moment.
    pub(super) fn is_ready(&mut self) -> bool {
        let is_ready =
            |lanes: &mut LaneConsumer<T, _>| !matches!(lanes.peek(), Err(PopError::Empty));
        self.take_in();
        is_ready(&mut self.lanes)
    }

    /// Closes all lanes, those to come as well, and wakes their senders.
    pub(super) fn close(&mut self) {
        {
            let _newcomers = lock(&self.porch.newcomers);
            // ORDERING: Relaxed; read under the same lock.
            self.porch.is_shut.store(true, Ordering::Relaxed);
            if fault::is("lane_shut") {
                // ORDERING: Relaxed; wrong in any case.
                self.porch.is_shut.store(false, Ordering::Relaxed);
            }
        }
        self.take_in();
        self.lanes.close();
        for gate in self.lanes.tags() {
            gate.writable.notify_all();
        }
    }
}
