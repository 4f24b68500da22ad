//! A ring for each of many senders, shared by many receivers.
//!
//! Senders do not meet. Receivers share the rings out: of R receivers the k-th looks at every R-th
//! ring first, stays with one for a turn, and helps with the others when its own have nothing;
//! every few turns it looks at all of them, so that none is forgotten when receivers come and go.
//!
//! All rings are in a register with a version; a receiver keeps a copy, and makes a new one when
//! the version has moved. *No ring is missed*: who clones a sender holds one, so the new ring is
//! registered before the old one can be closed; a receiver that sees all its rings closed looks at
//! the version after that.

use std::sync::PoisonError;

use super::hub::Gate;
use crate::ring::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::ring::{CapacityError, Layout, Many, PopError, Sole, SoleProducer, Taken, Ticket};

/// How many elements a receiver takes from a ring before it goes on to the next.
const TURN: u32 = 32;
/// Every so many turns a receiver looks at all rings, not at its own first.
const TOUR: u32 = 8;

type Ring<T> = Ticket<T, Sole, Many>;

struct Shard<T> {
    ring: Arc<Ring<T>>,
    gate: Arc<Gate>,
}

impl<T> Clone for Shard<T> {
    fn clone(&self) -> Self {
        Self {
            ring: Arc::clone(&self.ring),
            gate: Arc::clone(&self.gate),
        }
    }
}

struct Entries<T> {
    shards: Vec<Shard<T>>,
    /// Elements that went through rings that are gone.
    popped_before: u64,
    /// The receivers are gone.
    is_shut: bool,
}

struct Register<T> {
    entries: Mutex<Entries<T>>,
    version: AtomicU64,
    /// Receivers at work, and how many there ever were.
    receivers: AtomicU64,
    ordinals: AtomicU64,
    capacity: usize,
    layout: Layout,
}

impl<T> Register<T> {
    fn entries(&self) -> MutexGuard<'_, Entries<T>> {
        // Nothing panics while the entries are locked.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn version(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release in `moved`.
        self.version.load(Ordering::Acquire)
    }

    fn moved(&self) {
        // ORDERING: Release, pairs with the Acquire in `version`.
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// A sender's ring.
pub(super) struct ShardSender<T> {
    pub(super) producer: SoleProducer<T, Many>,
    register: Arc<Register<T>>,
}

/// A receiver's view of all rings.
pub(super) struct ShardReceiver<T> {
    register: Arc<Register<T>>,
    version: u64,
    shards: Vec<Shard<T>>,
    ordinal: u64,
    current: usize,
    left: u32,
    turns: u32,
    /// Where the next tour begins.
    tour: usize,
}

/// A channel with one ring so far.
pub(super) fn pair<T>(
    capacity: usize,
    layout: Layout,
    gate: Arc<Gate>,
) -> Result<(ShardSender<T>, ShardReceiver<T>), CapacityError> {
    let (producer, ring) = Ring::with_sole_producer(capacity, layout)?;
    let register = Arc::new(Register {
        entries: Mutex::new(Entries {
            shards: vec![Shard { ring, gate }],
            popped_before: 0,
            is_shut: false,
        }),
        version: AtomicU64::new(1),
        receivers: AtomicU64::new(0),
        ordinals: AtomicU64::new(0),
        capacity,
        layout,
    });
    let receiver = ShardReceiver::of(&register);
    Ok((ShardSender { producer, register }, receiver))
}

impl<T> ShardSender<T> {
    /// Another ring, whose sender waits at `gate`.
    pub(super) fn another(&self, gate: Arc<Gate>) -> Self {
        let register = &self.register;
        let (producer, ring) = Ring::with_sole_producer(register.capacity, register.layout)
            .expect("the first ring was made with these");
        let mut entries = register.entries();
        if entries.is_shut {
            ring.close();
        } else {
            entries.shards.push(Shard { ring, gate });
            register.moved();
        }
        drop(entries);
        Self {
            producer,
            register: Arc::clone(register),
        }
    }
}

impl<T> ShardReceiver<T> {
    fn of(register: &Arc<Register<T>>) -> Self {
        // ORDERING: Relaxed, both; figures that only steer who looks where first.
        let ordinal = register.ordinals.fetch_add(1, Ordering::Relaxed);
        register.receivers.fetch_add(1, Ordering::Relaxed);
        let mut receiver = Self {
            register: Arc::clone(register),
            version: 0,
            shards: Vec::new(),
            ordinal,
            current: 0,
            left: 0,
            turns: 0,
            tour: 0,
        };
        receiver.refresh();
        receiver
    }

    /// Takes a new copy of the register if that has moved; gives whether it had.
    fn refresh(&mut self) -> bool {
        let version = self.register.version();
        if version == self.version {
            return false;
        }
        let entries = self.register.entries();
        // Under the lock, so that the copy is at least of this version.
        self.version = self.register.version();
        self.shards.clone_from(&entries.shards);
        drop(entries);
        self.left = 0;
        self.current = 0;
        true
    }

    /// Lets a ring go that is closed and drained, and whose sender is gone.
    #[cold]
    fn forget(&mut self, at: usize) {
        let shard = self.shards.swap_remove(at);
        let mut entries = self.register.entries();
        let found = (entries.shards.iter()).position(|other| Arc::ptr_eq(&other.ring, &shard.ring));
        if let Some(found) = found {
            entries.shards.swap_remove(found);
            entries.popped_before += shard.ring.popped();
            self.register.moved();
        }
    }

    /// Goes on to a ring that `take` gets something from.
    #[inline(never)] // off the path of a pop
    fn turn<R>(
        &mut self,
        mut take: impl FnMut(&Ring<T>) -> Result<R, PopError>,
    ) -> Result<R, PopError> {
        self.refresh();
        self.left = 0;
        self.turns = self.turns.wrapping_add(1);
        // ORDERING: Relaxed; steers who looks where first.
        let stride = self.register.receivers.load(Ordering::Relaxed).max(1) as usize;
        let home = (self.ordinal % stride as u64) as usize;
        let is_tour = self.turns.is_multiple_of(TOUR);
        if !is_tour && stride > 1 {
            // Its own rings: from the one behind the current on, and around.
            let count = self.shards.len();
            let own = count.saturating_sub(home).div_ceil(stride);
            let start = (self.current.saturating_sub(home) / stride) + 1;
            for step in 0..own {
                let at = home + (start + step) % own * stride;
                if let Ok(value) = take(&self.shards[at].ring) {
                    return Ok(self.settle(at, value));
                }
            }
        }
        self.scan(take)
    }

    /// Looks at all rings, from the one behind that where the last tour ended.
    fn scan<R>(
        &mut self,
        mut take: impl FnMut(&Ring<T>) -> Result<R, PopError>,
    ) -> Result<R, PopError> {
        loop {
            let mut at = self.tour;
            let mut looks = self.shards.len();
            let mut is_closed = true;
            while looks > 0 {
                looks -= 1;
                at = if at + 1 >= self.shards.len() {
                    0
                } else {
                    at + 1
                };
                let shard = &self.shards[at];
                let mut outcome = take(&shard.ring);
                let is_closed_now = matches!(outcome, Err(PopError::Closed));
                let is_over = is_closed_now && shard.gate.is_left();
                if is_over {
                    // Closed by a receiver, it may have got an element that was under way.
                    outcome = take(&shard.ring);
                }
                match outcome {
                    Ok(value) => {
                        self.tour = at;
                        return Ok(self.settle(at, value));
                    }
                    Err(PopError::Closed) if is_over => {
                        self.forget(at);
                        at = at.checked_sub(1).unwrap_or(self.shards.len());
                    }
                    Err(PopError::Closed) => {}
                    Err(_) => is_closed = false,
                }
            }
            if !is_closed {
                return Err(PopError::Empty);
            }
            if !self.look_again() {
                return Err(PopError::Closed);
            }
        }
    }

    /// Whether there are rings that it did not look at.
    fn look_again(&mut self) -> bool {
        #[cfg(any(loom, shuttle))]
        if crate::ring::sync::fault::is("shard_look_again") {
            return false;
        }
        self.refresh()
    }

    fn settle<R>(&mut self, at: usize, value: R) -> R {
        self.current = at;
        self.left = TURN - 1;
        value
    }

    #[inline]
    pub(super) fn try_pop_at(&mut self) -> Result<(u64, T), PopError> {
        if self.left > 0
            && let Ok(found) = self.shards[self.current].ring.try_pop_at()
        {
            self.left -= 1;
            return Ok(found);
        }
        self.turn(Ring::try_pop_at)
    }

    pub(super) fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> Result<Taken, PopError> {
        self.turn(|ring| ring.pop_into(out, max))
    }

    /// Where the sender waits whose element came last.
    #[inline]
    pub(super) fn gate(&self) -> Option<&Arc<Gate>> {
        self.shards.get(self.current).map(|shard| &shard.gate)
    }

    /// Whether a pop would not say that there is nothing at the moment.
    pub(super) fn is_ready(&mut self) -> bool {
        self.refresh();
        self.shards.is_empty()
            || (self.shards.iter()).any(|shard| shard.ring.can_pop() || shard.ring.is_closed())
    }

    /// Whether another receiver should look too.
    pub(super) fn has_more(&self) -> bool {
        self.shards.iter().any(|shard| shard.ring.can_pop())
    }

    pub(super) fn len(&self) -> usize {
        let entries = self.register.entries();
        entries.shards.iter().map(|shard| shard.ring.len()).sum()
    }

    pub(super) fn capacity(&self) -> usize {
        let entries = self.register.entries();
        let each = entries.shards.iter().map(|shard| shard.ring.capacity());
        each.fold(0, usize::saturating_add)
    }

    pub(super) fn is_closed(&self) -> bool {
        let entries = self.register.entries();
        entries.shards.iter().all(|shard| shard.ring.is_closed())
    }

    pub(super) fn popped(&self) -> u64 {
        let entries = self.register.entries();
        let now: u64 = entries.shards.iter().map(|shard| shard.ring.popped()).sum();
        entries.popped_before + now
    }

    /// Calls `look` with every gate.
    pub(super) fn for_each_gate(&self, mut look: impl FnMut(&Gate)) {
        let entries = self.register.entries();
        for shard in &entries.shards {
            look(&shard.gate);
        }
    }

    /// Closes all rings, those to come as well, and wakes their senders.
    pub(super) fn close(&mut self) {
        let shards = {
            let mut entries = self.register.entries();
            entries.is_shut = true;
            #[cfg(any(loom, shuttle))]
            if crate::ring::sync::fault::is("shard_shut") {
                entries.is_shut = false;
            }
            entries.shards.clone()
        };
        for shard in shards {
            shard.ring.close();
            shard.gate.writable.notify_all();
        }
    }
}

impl<T> Clone for ShardReceiver<T> {
    fn clone(&self) -> Self {
        Self::of(&self.register)
    }
}

impl<T> Drop for ShardReceiver<T> {
    fn drop(&mut self) {
        // ORDERING: Relaxed; steers who looks where first.
        self.register.receivers.fetch_sub(1, Ordering::Relaxed);
    }
}
