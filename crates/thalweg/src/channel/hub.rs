//! What all endpoints of a channel share, whatever it stores its elements in.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ring::sync::{AtomicBool, AtomicU64, Ordering};
use crate::wait::{Mode, Signal};

use super::gap::Gaps;

/// What a sender does when the channel is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Overflow {
    /// Wait for room. Nothing is lost.
    #[default]
    Block,
    /// Give the element back with [`SendError::Full`](super::SendError::Full); `send` never waits.
    Reject,
    /// Drop the element that is being sent, and tell the receiver where the gap is.
    DropNewest,
    /// Drop the oldest element of the channel to make room, and tell the receiver where the gap is.
    DropOldest,
}

impl Overflow {
    /// Whether elements that were accepted or offered can be lost.
    pub fn is_lossy(self) -> bool {
        matches!(self, Self::DropNewest | Self::DropOldest)
    }
}

/// How an endpoint behaves; the same for all endpoints of a channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Habits {
    pub(super) overflow: Overflow,
    pub(super) mode: Mode,
    /// Senders give their turn away while more than so many elements wait.
    pub(super) soft_limit: Option<usize>,
}

/// One per channel.
pub(super) struct Hub {
    /// Where receivers wait.
    pub(super) readable: Signal,
    senders: AtomicU64,
    receivers: AtomicU64,
    pub(super) habits: Habits,
    /// What the gates of senders that are gone have counted.
    gone: Mutex<Counters>,
}

impl Hub {
    pub(super) fn new(habits: Habits) -> Self {
        Self {
            readable: Signal::new(),
            senders: AtomicU64::new(1),
            receivers: AtomicU64::new(1),
            habits,
            gone: Mutex::new(Counters::default()),
        }
    }

    fn gone(&self) -> MutexGuard<'_, Counters> {
        // Nothing panics while this is locked.
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the figures of a gate whose only sender goes.
    pub(super) fn keep_figures(&self, gate: &Gate) {
        let mut gone = self.gone();
        gate.count_into(&mut gone);
        // ORDERING: Relaxed; read under the same lock.
        gate.is_counted.store(true, Ordering::Relaxed);
    }

    /// The figures of all gates and of the waiting receivers. `gates` calls back with each gate.
    pub(super) fn counters(&self, gates: impl FnOnce(&mut dyn FnMut(&Gate))) -> Counters {
        let gone = self.gone();
        let mut counters = *gone;
        gates(&mut |gate| {
            // ORDERING: Relaxed; stored under the lock that is held here.
            if !gate.is_counted.load(Ordering::Relaxed) {
                gate.count_into(&mut counters);
            }
        });
        counters.parked += self.readable.parked();
        counters.woken += self.readable.woken();
        counters
    }

    pub(super) fn add_sender(&self) {
        // ORDERING: Relaxed; whoever adds one holds one, so the count can't reach zero meanwhile.
        self.senders.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives whether it was the last.
    pub(super) fn remove_sender(&self) -> bool {
        // ORDERING: AcqRel, pairs with itself; the last one sees what the others did.
        self.senders.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(super) fn add_receiver(&self) {
        // ORDERING: Relaxed; whoever adds one holds one, so the count can't reach zero meanwhile.
        self.receivers.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives whether it was the last.
    pub(super) fn remove_receiver(&self) -> bool {
        // ORDERING: AcqRel, pairs with itself; the last one sees what the others did.
        self.receivers.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// Where the senders of one store wait, and what became of what they sent. One per channel, or one
/// per sender where each has a store of its own.
pub(super) struct Gate {
    pub(super) writable: Signal,
    pub(super) gaps: Option<Gaps>,
    refused: AtomicU64,
    dropped: AtomicU64,
    balanced: AtomicU64,
    /// Oldest elements dropped of which several receivers have not been told.
    untold: AtomicU64,
    /// Its figures are in [`Hub::gone`].
    is_counted: AtomicBool,
}

impl Gate {
    pub(super) fn new(gaps: Option<Gaps>) -> Self {
        Self {
            writable: Signal::new(),
            gaps,
            refused: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            balanced: AtomicU64::new(0),
            untold: AtomicU64::new(0),
            is_counted: AtomicBool::new(false),
        }
    }

    /// A gate of the same kind for another store of `capacity` elements.
    pub(super) fn another(&self, capacity: usize) -> Self {
        Self::new(self.gaps.as_ref().map(|_| Gaps::new(capacity)))
    }

    pub(super) fn count_untold(&self, elements: u64) {
        // ORDERING: Relaxed; each is told to one receiver, sooner or later.
        self.untold.fetch_add(elements, Ordering::Relaxed);
    }

    /// Oldest elements dropped of which nobody was told; the caller tells them.
    pub(super) fn take_untold(&self) -> u64 {
        // ORDERING: Relaxed, both; see `count_untold`.
        if self.untold.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.untold.swap(0, Ordering::Relaxed)
    }

    #[cold]
    pub(super) fn count_refused(&self) {
        // ORDERING: Relaxed; a figure.
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self, elements: u64) {
        // ORDERING: Relaxed; a figure.
        self.dropped.fetch_add(elements, Ordering::Relaxed);
    }

    pub(super) fn count_balanced(&self) {
        // ORDERING: Relaxed; a figure.
        self.balanced.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds this gate's figures to `counters`.
    fn count_into(&self, counters: &mut Counters) {
        // ORDERING: Relaxed, all three; figures.
        counters.refused += self.refused.load(Ordering::Relaxed);
        counters.dropped += self.dropped.load(Ordering::Relaxed);
        counters.balanced += self.balanced.load(Ordering::Relaxed);
        counters.parked += self.writable.parked();
        counters.woken += self.writable.woken();
    }
}

/// What happened in a channel since it was made, in elements and in events; see
/// [`Receiver::counters`](super::Receiver::counters). Exact when nobody is at work; while others
/// are, each figure is right for some moment of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Elements that the channel took, those that it dropped later for newer ones included.
    pub sent: u64,
    /// Elements that receivers got.
    pub received: u64,
    /// Elements given back because the channel was full.
    pub refused: u64,
    /// Elements dropped by the policy: newest ones that never got in, or oldest ones that did.
    pub dropped: u64,
    /// Times that a sender gave its turn away because of the soft limit.
    pub balanced: u64,
    /// Times that somebody, sender or receiver, registered to be woken.
    pub parked: u64,
    /// Times that somebody was woken.
    pub woken: u64,
}
