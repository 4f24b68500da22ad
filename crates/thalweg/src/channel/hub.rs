//! What all endpoints of a channel share, whatever it stores its elements in.

use std::sync::PoisonError;

use crate::ring::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, order};
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
    closing: Mutex<Closing>,
}

/// Whether nothing can be sent any more, since receivers say so, and where that is waited for.
#[derive(Default)]
struct Closing {
    is_over: bool,
    /// Made by the first that waits: most channels have none.
    signal: Option<Arc<Signal>>,
}

impl Hub {
    pub(super) fn new(habits: Habits) -> Self {
        Self {
            readable: Signal::new(),
            senders: AtomicU64::new(1),
            receivers: AtomicU64::new(1),
            habits,
            gone: Mutex::new(Counters::default()),
            closing: Mutex::default(),
        }
    }

    fn closing(&self) -> MutexGuard<'_, Closing> {
        // Nothing panics while this is locked.
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receivers have closed the store: tells those who wait for that.
    pub(super) fn tell_closed(&self) {
        let mut closing = self.closing();
        closing.is_over = true;
        let signal = closing.signal.clone();
        drop(closing);
        if let Some(signal) = signal
            && must_tell_closed()
        {
            signal.notify_all();
        }
    }

    /// Whether [`tell_closed`](Self::tell_closed) was called.
    pub(super) fn is_told_closed(&self) -> bool {
        self.closing().is_over
    }

    /// Notified when the channel is closed by receivers, if that was not told yet.
    pub(super) fn closing_signal(&self) -> Arc<Signal> {
        let mut closing = self.closing();
        Arc::clone(
            closing
                .signal
                .get_or_insert_with(|| Arc::new(Signal::new())),
        )
    }

    fn gone(&self) -> MutexGuard<'_, Counters> {
        // Nothing panics while this is locked.
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the figures of a gate that will count no more, since its only sender goes or the
    /// channel is closed.
    pub(super) fn keep_figures(&self, gate: &Gate) {
        let mut gone = self.gone();
        // ORDERING: Relaxed; under the lock.
        if !gate.is_counted.swap(true, Ordering::Relaxed) {
            gate.count_into(&mut gone);
        }
    }

    /// The figures of one gate and of the waiting receivers.
    pub(super) fn counters_of(&self, gate: &Gate) -> Counters {
        let mut counters = Counters::default();
        gate.count_into(&mut counters);
        counters.parked += self.readable.parked();
        counters.woken += self.readable.woken();
        counters
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

    /// How many endpoints there are. Each may be a thread.
    pub(super) fn endpoints(&self) -> u64 {
        // ORDERING: Relaxed, figures; how to wait hangs on them, and nothing else.
        self.senders.load(Ordering::Relaxed) + self.receivers.load(Ordering::Relaxed)
    }

    pub(super) fn add_sender(&self) {
        // ORDERING: Relaxed; whoever adds one holds one, so the count can't reach zero meanwhile.
        self.senders.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives whether it was the last.
    pub(super) fn remove_sender(&self) -> bool {
        #[cfg(any(loom, shuttle))]
        if crate::ring::sync::fault::is("count_torn") {
            // ORDERING: Relaxed; wrong in any case.
            let senders = self.senders.load(Ordering::Relaxed);
            // ORDERING: Relaxed; wrong in any case.
            self.senders.store(senders - 1, Ordering::Relaxed);
            return senders == 1;
        }
        // ORDERING: AcqRel (order::leave), pairs with the Release in `revive`: the lane that an
        // upgraded sender brought is known before this one's is closed.
        self.senders.fetch_sub(1, order::leave()) == 1
    }

    /// Whether anybody may still send.
    pub(super) fn has_senders(&self) -> bool {
        // ORDERING: Acquire (order::all_left), pairs with the AcqRel in `remove_sender`: what those
        // that have gone sent is to be seen, since a weak end may keep the store.
        self.senders.load(order::all_left()) > 0
    }

    /// How many there are; may be old by the time it is read.
    pub(super) fn sender_count(&self) -> usize {
        // ORDERING: Relaxed; a figure.
        self.senders.load(Ordering::Relaxed) as usize
    }

    /// As [`sender_count`](Self::sender_count).
    pub(super) fn receiver_count(&self) -> usize {
        // ORDERING: Relaxed; a figure.
        self.receivers.load(Ordering::Relaxed) as usize
    }

    /// Adds a sender unless there is none any more; gives whether it did. For who holds none.
    #[must_use = "without one there is nothing to add to"]
    pub(super) fn revive_sender(&self) -> bool {
        revive(&self.senders)
    }

    /// As [`revive_sender`](Self::revive_sender).
    #[must_use = "without one there is nothing to add to"]
    pub(super) fn revive_receiver(&self) -> bool {
        revive(&self.receivers)
    }

    pub(super) fn add_receiver(&self) {
        // ORDERING: Relaxed; whoever adds one holds one, so the count can't reach zero meanwhile.
        self.receivers.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives whether it was the last.
    pub(super) fn remove_receiver(&self) -> bool {
        // ORDERING: Relaxed, as for senders.
        self.receivers.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

fn revive(count: &AtomicU64) -> bool {
    #[cfg(any(loom, shuttle))]
    if crate::ring::sync::fault::is("revived") {
        // ORDERING: Relaxed; wrong in any case.
        return count.fetch_add(1, Ordering::Relaxed) < u64::MAX;
    }
    let more = |count: u64| (count > 0).then_some(count + 1);
    count
        // ORDERING: Release (order::enter), pairs with the AcqRel in `remove_sender`: whoever
        // leaves later knows of the lane that this one has brought. Relaxed else.
        .fetch_update(order::enter(), Ordering::Relaxed, more)
        .is_ok()
}

fn must_tell_closed() -> bool {
    #[cfg(any(loom, shuttle))]
    if crate::ring::sync::fault::is("closed_untold") {
        return false;
    }
    true
}

/// Where the senders of one store wait, and what became of what they sent. One per channel, or one
/// per sender where each has a store of its own.
pub(super) struct Gate {
    pub(super) writable: Signal,
    pub(super) gaps: Option<Gaps>,
    refused: AtomicU64,
    dropped: AtomicU64,
    balanced: AtomicU64,
    discarded: AtomicU64,
    /// Senders that wait for room for several elements at once.
    claimers: AtomicU64,
    /// Oldest elements dropped of which several receivers have not been told.
    untold: AtomicU64,
    /// Its figures are in [`Hub::gone`].
    is_counted: AtomicBool,
    /// Its only sender is gone.
    is_left: AtomicBool,
}

impl Gate {
    pub(super) fn new(gaps: Option<Gaps>) -> Self {
        Self {
            writable: Signal::new(),
            gaps,
            refused: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            balanced: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            claimers: AtomicU64::new(0),
            untold: AtomicU64::new(0),
            is_counted: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
        }
    }

    /// A gate of the same kind for another store of `capacity` elements.
    pub(super) fn another(&self, capacity: usize) -> Self {
        Self::new(self.gaps.as_ref().map(|_| Gaps::new(capacity)))
    }

    /// Its only sender goes, and has pushed what it will ever push.
    pub(super) fn leave(&self) {
        // ORDERING: leave_lane (Release), pairs with the left in `is_left`.
        self.is_left.store(true, order::leave_lane());
    }

    /// Whether its only sender is gone, and all that it pushed is to be seen.
    pub(super) fn is_left(&self) -> bool {
        // ORDERING: left (Acquire), pairs with the leave_lane in `leave`.
        self.is_left.load(order::left())
    }

    pub(super) fn count_untold(&self, elements: u64) {
        // ORDERING: Relaxed; each is told to one receiver, sooner or later.
        self.untold.fetch_add(elements, Ordering::Relaxed);
    }

    /// Oldest elements dropped of which nobody was told; the caller tells them.
    pub(super) fn take_untold(&self) -> u64 {
        // ORDERING: Relaxed; see `count_untold`.
        if self.untold.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        #[cfg(any(loom, shuttle))]
        if crate::ring::sync::fault::is("untold_kept") {
            // ORDERING: Relaxed; wrong in any case.
            return self.untold.load(Ordering::Relaxed);
        }
        // ORDERING: Relaxed; see `count_untold`.
        self.untold.swap(0, Ordering::Relaxed)
    }

    /// Wakes senders, since there is room for so many elements more. Where one waits for room for
    /// several at once, everybody looks: it may have to leave the room to another.
    #[inline(always)]
    pub(super) fn notify_room(&self, elements: usize) {
        // ORDERING: Relaxed; whoever was woken came off a list under its lock, and a claimer counts
        // itself before it goes on that list.
        if self.writable.notify(elements) > 0 && self.claimers.load(Ordering::Relaxed) > 0 {
            self.writable.notify_all();
        }
    }

    /// Until it is dropped, a sender waits for room for several elements.
    pub(super) fn claiming(&self) -> Claiming<'_> {
        // ORDERING: Relaxed; see `notify_room`.
        self.claimers.fetch_add(1, Ordering::Relaxed);
        Claiming(self)
    }

    #[cold]
    pub(super) fn count_refused(&self) {
        // ORDERING: Relaxed; a figure.
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self, elements: u64) {
        #[cfg(any(loom, shuttle))]
        if crate::ring::sync::fault::is("count_torn") {
            // ORDERING: Relaxed; wrong in any case.
            let dropped = self.dropped.load(Ordering::Relaxed);
            // ORDERING: Relaxed; wrong in any case.
            self.dropped.store(dropped + elements, Ordering::Relaxed);
            return;
        }
        // ORDERING: Relaxed; a figure.
        self.dropped.fetch_add(elements, Ordering::Relaxed);
    }

    pub(super) fn count_discarded(&self) {
        // ORDERING: Relaxed; a figure.
        self.discarded.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_balanced(&self) {
        // ORDERING: Relaxed; a figure.
        self.balanced.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds this gate's figures to `counters`.
    fn count_into(&self, counters: &mut Counters) {
        // ORDERING: Relaxed; all of these are figures.
        let figure = |count: &AtomicU64| count.load(Ordering::Relaxed);
        counters.refused += figure(&self.refused);
        counters.dropped += figure(&self.dropped);
        counters.balanced += figure(&self.balanced);
        counters.discarded += figure(&self.discarded);
        counters.parked += self.writable.parked();
        counters.woken += self.writable.woken();
    }
}

/// See [`Gate::claiming`].
pub(super) struct Claiming<'g>(&'g Gate);

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        // ORDERING: Relaxed; see `notify_room`.
        self.0.claimers.fetch_sub(1, Ordering::Relaxed);
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
    /// Elements that nobody received: they were in the channel when its last receiver went, or came
    /// at that moment.
    pub discarded: u64,
    /// Sends after which a sender gave its turn away because of the soft limit.
    pub balanced: u64,
    /// Times that somebody, sender or receiver, registered to be woken.
    pub parked: u64,
    /// Times that somebody was woken.
    pub woken: u64,
}
