//! The part of a channel that all of its endpoints share, whatever its store: counts, policies,
//! event counts, and, as types, the number of endpoints on each side.
//!
//! # Gaps
//! A gap is a position and the number of elements that were lost before it. Senders note gaps in
//! ascending order; the receiver of the element at that position or behind it takes the note and
//! reports it. Only channels that drop the newest element have notes. Where the oldest is dropped,
//! a single receiver sees the gap in the positions themselves, and several share one count of the
//! losses that are not reported yet.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::OnceLock;
use std::task::Poll;

use crate::export::Export;
use crate::ring::CapacityError;
use crate::ring::sequence::{Tally, memory_for};
use crate::ring::sync::{Arc, AtomicU64, Mutex, Ordering, fault, lock, order};
use crate::wait::{EventCount, WaitMode};

/// The policy for a send when the channel is full.
///
/// Under a policy that drops, [`Receiver::lost_before`](super::Receiver::lost_before) returns the
/// number of elements lost before the one received last, and [`Counters::dropped`] counts all of
/// them. Every shape may have such a policy, except with a capacity of 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Overflow {
    /// The sender waits for a free slot. Nothing is lost.
    #[default]
    Block,
    /// The send fails with [`SendError::Full`](super::SendError::Full), which returns the element;
    /// `send` never waits.
    Reject,
    /// The element that is being sent is dropped, and the send returns `Ok`; the gap is reported
    /// with the next element that is received. Losses after the last element appear in
    /// [`Counters::dropped`] only.
    DropNewest,
    /// The oldest element of the channel is dropped to free its slot; the gap is reported with the
    /// next element that is received. So once the channel is drained, the sum of all
    /// [`lost_before`](super::Receiver::lost_before) equals [`Counters::dropped`].
    DropOldest,
}

impl Overflow {
    /// Returns whether elements that were accepted or offered can be lost.
    pub fn is_lossy(self) -> bool {
        matches!(self, Self::DropNewest | Self::DropOldest)
    }
}

/// The settings of a channel, which all of its endpoints share.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) overflow: Overflow,
    pub(super) mode: WaitMode,
    /// The number of waiting elements above which senders yield.
    pub(super) soft_limit: Option<usize>,
}

/// The shared part of a channel.
pub(super) struct Hub {
    /// Receivers wait on it.
    pub(super) readable: EventCount,
    pub(super) senders: Count,
    pub(super) receivers: Count,
    pub(super) settings: Settings,
    closing: Mutex<Closing>,
    /// The export of the channel's figures, which ends with the channel.
    pub(super) export: OnceLock<Export>,
}

/// Whether receivers have closed the channel, and the event count of those that wait for it.
#[derive(Default)]
struct Closing {
    is_over: bool,
    /// Allocated for the first waiter: most channels have none.
    event_count: Option<Arc<EventCount>>,
}

impl Hub {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            readable: EventCount::new(),
            senders: Count(AtomicU64::new(1)),
            receivers: Count(AtomicU64::new(1)),
            settings,
            closing: Mutex::default(),
            export: OnceLock::new(),
        }
    }

    /// Notifies the waiters for the close, after receivers have closed the store.
    pub(super) fn notify_closed(&self) {
        let mut closing = lock(&self.closing);
        closing.is_over = true;
        let event_count = closing.event_count.clone();
        drop(closing);
        if let Some(event_count) = event_count
            && !fault::is("closed_unnotified")
        {
            event_count.notify_all();
        }
    }

    /// Returns whether [`notify_closed`](Self::notify_closed) was called.
    pub(super) fn sees_closed(&self) -> bool {
        lock(&self.closing).is_over
    }

    /// Returns the event count that is notified when receivers close the channel.
    pub(super) fn closing_event_count(&self) -> Arc<EventCount> {
        let mut closing = lock(&self.closing);
        Arc::clone(
            closing
                .event_count
                .get_or_insert_with(|| Arc::new(EventCount::new())),
        )
    }

    /// Adds the figures of receivers, of a rendezvous, and of the elements that were sent and
    /// received, to those of senders.
    pub(super) fn summed(
        &self,
        mut counters: Counters,
        waits: Option<(u64, u64)>,
        sent: u64,
        received: u64,
    ) -> Counters {
        let (parked, woken) = waits.unwrap_or_default();
        counters.parked += parked + self.readable.registrations();
        counters.woken += woken + self.readable.woken();
        counters.sent = sent;
        counters.received = match self.settings.overflow {
            Overflow::DropOldest => received.saturating_sub(counters.dropped),
            _ => received,
        };
        counters
    }

    /// Returns the number of endpoints. Each may be a thread.
    pub(super) fn endpoints(&self) -> u64 {
        (self.senders.get() + self.receivers.get()) as u64
    }
}

/// The number of endpoints on one side.
pub(super) struct Count(AtomicU64);

impl Count {
    /// Adds an endpoint. For a caller that has one, so that the count can't reach 0 meanwhile.
    pub(super) fn add(&self) {
        // ORDERING: Relaxed; a thread that adds an endpoint has one.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes an endpoint; returns whether it was the last.
    pub(super) fn remove(&self) -> bool {
        if fault::is("count_torn") {
            // ORDERING: Relaxed; wrong in any case.
            let count = self.0.load(Ordering::Relaxed);
            // ORDERING: Relaxed; wrong in any case.
            self.0.store(count - 1, Ordering::Relaxed);
            return count == 1;
        }
        // ORDERING: AcqRel (order::leave), pairs with itself and with the Acquire in `has_any`: the
        // last one, and a receiver that finds none, see what the others did.
        self.0.fetch_sub(1, order::leave()) == 1
    }

    /// Returns the number of endpoints, which may have changed by the time it is read.
    pub(super) fn get(&self) -> usize {
        // ORDERING: Relaxed; a figure. How to wait may depend on it, and nothing else.
        self.0.load(Ordering::Relaxed) as usize
    }

    /// Returns whether there are endpoints. What dropped endpoints did is visible then.
    pub(super) fn has_any(&self) -> bool {
        // ORDERING: Acquire (order::all_left), pairs with the AcqRel in `remove`: elements of
        // dropped senders must be visible, since a weak end may keep the store.
        self.0.load(order::all_left()) > 0
    }

    /// Adds an endpoint unless the count is 0; returns whether it did. For a caller that has none.
    #[must_use = "a count of 0 stays 0"]
    pub(super) fn revive(&self) -> bool {
        if fault::is("revived") {
            // ORDERING: Relaxed; wrong in any case.
            return self.0.fetch_add(1, Ordering::Relaxed) < u64::MAX;
        }
        let more = |count: u64| (count > 0).then_some(count + 1);
        // ORDERING: Relaxed; as in `add`, and nothing was done before that others must see.
        (self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more))
        .is_ok()
    }
}

/// The event count that the senders of a channel wait on, and counts of what became of elements.
#[derive(Default)]
pub(super) struct Gate {
    /// Senders wait on it.
    pub(super) writable: EventCount,
    pub(super) gaps: Option<Gaps>,
    pub(super) refused: Tally,
    pub(super) dropped: Tally,
    pub(super) yields: Tally,
    pub(super) discarded: Tally,
    /// Oldest elements that were dropped and not reported yet, where there are several receivers.
    pub(super) unreported: Tally,
    /// The number of senders that wait for several free slots.
    claimers: AtomicU64,
}

impl Gate {
    pub(super) fn new(gaps: Option<Gaps>) -> Self {
        Self {
            gaps,
            ..Self::default()
        }
    }

    /// Wakes senders, after `elements` slots were freed. If a sender waits for several slots, all
    /// senders are woken: those slots may be too few for it, and enough for another one.
    #[inline(always)]
    pub(super) fn notify_room(&self, elements: usize) {
        // ORDERING: Relaxed; a sender that was woken came off a list under its lock, and a claimer
        // counts itself before it goes on that list.
        if self.writable.notify(elements) > 0 && self.claimers.load(Ordering::Relaxed) > 0 {
            self.writable.notify_all();
        }
    }

    /// Counts a sender that waits for several slots, until the result is dropped. `claims` is
    /// `true` meanwhile, so that the count can be corrected if the result is forgotten.
    pub(super) fn claiming<'g>(&'g self, claims: &'g mut bool) -> Claiming<'g> {
        // ORDERING: Relaxed; see `notify_room`.
        self.claimers.fetch_add(1, Ordering::Relaxed);
        *claims = true;
        Claiming(self, claims)
    }

    /// Removes a sender that [`claiming`](Self::claiming) counted, if it is still counted.
    pub(super) fn stop_claiming(&self, claims: &mut bool) {
        if std::mem::take(claims) {
            // ORDERING: Relaxed; see `notify_room`.
            self.claimers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the figures of senders.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            refused: self.refused.get(),
            dropped: self.dropped.get(),
            yields: self.yields.get(),
            discarded: self.discarded.get(),
            parked: self.writable.registrations(),
            woken: self.writable.woken(),
            ..Counters::default()
        }
    }
}

/// See [`Gate::claiming`].
pub(super) struct Claiming<'g>(&'g Gate, &'g mut bool);

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        self.0.stop_claiming(self.1);
    }
}

/// The counts of a channel since it was made, in elements and in events; see
/// [`Receiver::counters`](super::Receiver::counters). They are exact while no endpoint is in use;
/// otherwise each count is right for some instant during the call. The [crate](crate#terms) has a
/// table of the terms.
///
/// `sent = received + discarded + len`, and under [`Overflow::DropOldest`], whose channel accepts
/// elements before it drops them, `sent = received + dropped + discarded + len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counters {
    /// The number of elements that the channel accepted, including those that it dropped later for
    /// newer ones.
    pub sent: u64,
    /// The number of elements that receivers got.
    pub received: u64,
    /// The number of elements returned to their senders because the channel was full, also at the
    /// end of a timeout.
    pub refused: u64,
    /// The number of elements dropped by the policy: newest ones, which were not accepted, or
    /// oldest ones, which were.
    pub dropped: u64,
    /// The number of elements that no receiver took: they were in the channel when its last
    /// receiver was dropped, or came at that instant.
    pub discarded: u64,
    /// The number of sends after which a sender yielded because of the soft limit.
    pub yields: u64,
    /// The number of times that a sender or receiver registered to be woken.
    pub parked: u64,
    /// The number of times that a sender or receiver was woken.
    pub woken: u64,
}

/// The position that stands for no note.
const NONE: u64 = u64::MAX;

pub(super) struct Gaps {
    /// The position of the oldest note, to be read without the lock.
    first: AtomicU64,
    /// Each position with the elements lost before it, ascending; at most one per position that is
    /// not yet reported, so that capacity + 2 bounds it where there is one receiver.
    notes: Mutex<VecDeque<(u64, u64)>>,
}

/// Returns notes for a store that allocates as it grows.
impl Default for Gaps {
    fn default() -> Self {
        Self {
            first: AtomicU64::new(NONE),
            notes: Mutex::default(),
        }
    }
}

impl Gaps {
    /// Returns notes for a store of `capacity` elements, which do not allocate later.
    pub(super) fn new(capacity: usize) -> Result<Self, CapacityError> {
        // One more for an element that a receiver popped, and whose losses it has not read yet.
        memory_for::<(u64, u64)>(capacity, capacity + 2)?;
        let gaps = Self::default();
        lock(&gaps.notes).reserve_exact(capacity + 2);
        Ok(gaps)
    }

    /// Notes that an element was lost before the position that `position` returns. It is called
    /// under the lock, so that notes of several senders ascend.
    #[cold]
    pub(super) fn note(&self, position: impl FnOnce() -> u64) {
        let mut notes = lock(&self.notes);
        self.write(&mut notes, position(), 1);
    }

    fn write(&self, notes: &mut VecDeque<(u64, u64)>, position: u64, more: u64) {
        match notes.back_mut() {
            Some((last, lost)) if *last >= position => *lost += more,
            _ => notes.push_back((position, more)),
        }
        // ORDERING: Relaxed; the notes are behind the lock, and a receiver that has an element this
        // thread publishes later sees this by that.
        self.first.store(notes[0].0, Ordering::Relaxed);
    }

    /// Calls `give_back`, which returns the slots of `positions`, where elements may be pushed
    /// later: notes within them move before the first.
    #[cold]
    pub(super) fn withdraw(&self, positions: Range<u64>, give_back: impl FnOnce()) {
        let mut notes = lock(&self.notes);
        let mut lost = 0;
        while let Some(&(before, count)) = notes.back()
            && positions.start < before
            && before <= positions.end
        {
            lost += count;
            notes.pop_back();
        }
        if lost > 0 {
            self.write(&mut notes, positions.start, lost);
        }
        give_back();
    }

    /// Returns the number of elements lost before the one at `position` that were not reported yet.
    #[inline]
    pub(super) fn take(&self, position: u64) -> u64 {
        // ORDERING: Relaxed, as in `note`.
        if self.first.load(Ordering::Relaxed) > position {
            return 0;
        }
        self.take_notes(position)
    }

    #[cold]
    fn take_notes(&self, position: u64) -> u64 {
        let mut notes = lock(&self.notes);
        let mut lost = 0;
        while let Some(&(before, count)) = notes.front()
            && before <= position
        {
            lost += count;
            notes.pop_front();
        }
        let first = notes.front().map_or(NONE, |&(before, _)| before);
        // ORDERING: Relaxed; under the lock.
        self.first.store(first, Ordering::Relaxed);
        lost
    }
}

mod sealed {
    /// Restricts the shapes to those of this module.
    pub trait Sealed {}
}

/// One sender, one receiver.
#[derive(Debug, Clone, Copy)]
pub enum Spsc {}
/// Many senders, one receiver.
#[derive(Debug, Clone, Copy)]
pub enum Mpsc {}
/// Many senders, many receivers.
#[derive(Debug, Clone, Copy)]
pub enum Mpmc {}

/// The shape of a channel: [`Spsc`], [`Mpsc`] or [`Mpmc`].
pub trait Shape: sealed::Sealed + 'static {
    /// Whether there may be several senders: whether a sender is [`Clone`].
    const SHARES_SENDER: bool = true;
    /// Whether there may be several receivers: whether a receiver is [`Clone`].
    const SHARES_RECEIVER: bool = false;
}

/// Shapes whose senders can be cloned.
pub trait ManySenders: Shape {}
/// Shapes whose receivers can be cloned.
pub trait ManyReceivers: Shape {}

impl sealed::Sealed for Spsc {}
impl sealed::Sealed for Mpsc {}
impl sealed::Sealed for Mpmc {}
impl Shape for Spsc {
    const SHARES_SENDER: bool = false;
}
impl Shape for Mpsc {}
impl Shape for Mpmc {
    const SHARES_RECEIVER: bool = true;
}
impl ManySenders for Mpsc {}
impl ManySenders for Mpmc {}
impl ManyReceivers for Mpmc {}

/// Whether a future is done, and must not be polled again.
#[derive(Debug, Default)]
pub(super) struct Done(bool);

impl Done {
    /// Polls the future by `poll`.
    ///
    /// # Panics
    /// If it was ready before, as the future of an `async fn` does.
    pub(super) fn poll<R>(&mut self, poll: impl FnOnce() -> Poll<R>) -> Poll<R> {
        assert!(!self.0, "a future is polled that is done");
        let outcome = poll();
        self.0 = outcome.is_ready();
        outcome
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_reported_once_with_the_first_element_behind_it() {
        let gaps = Gaps::new(4).unwrap();
        assert_eq!(gaps.take(0), 0);
        gaps.note(|| 2);
        gaps.note(|| 2);
        gaps.note(|| 5);
        assert_eq!(gaps.take(1), 0);
        assert_eq!(gaps.take(3), 2);
        assert_eq!(gaps.take(4), 0);
        assert_eq!(gaps.take(5), 1);
        assert_eq!(gaps.take(u64::MAX - 1), 0);
    }
}
