//! Counting every message: by publisher, priority and what became of it.
//!
//! A publisher has a [`Ledger`] for each inbox, a consumer a [`Meter`], each on lines of its own
//! and written by its owner alone, by loads and stores. Other threads may evict or discard a
//! publisher's messages: that is off the fast path, and counted by atomic additions.
//!
//! At every moment at which no publisher and no consumer is at work:
//! - issued = admitted + refused + timed out,
//! - admitted = delivered + waiting + evicted + discarded.

use std::sync::Arc as Shared;

use super::priority::Priority;
use crate::ring::sequence::Tally;
use crate::ring::sync::{AtomicU64, Ordering};

/// A figure with one writer.
#[derive(Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Only for the one writer.
    #[inline(always)]
    pub(super) fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    #[inline(always)]
    pub(super) fn set(&self, value: u64) {
        // ORDERING: Relaxed; a figure.
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn get(&self) -> u64 {
        // ORDERING: Relaxed; a figure.
        self.0.load(Ordering::Relaxed)
    }
}

type ByPriority<C> = [C; Priority::COUNT];

/// The counts of one publisher's messages to one inbox.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) own: Own,
    pub(super) others: Others,
}

/// The counts that the publisher itself writes.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Own {
    pub(super) issued: ByPriority<Count>,
    pub(super) admitted: ByPriority<Count>,
    pub(super) refused: ByPriority<Count>,
    pub(super) timed_out: ByPriority<Count>,
}

/// The counts of its messages that other threads write.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Others {
    pub(super) evicted: ByPriority<Tally>,
    pub(super) discarded: ByPriority<Tally>,
}

/// The numbers of messages by outcome, for each [`Priority`] by its [`index`](Priority::index).
/// They are exact while no publisher and no consumer is in use; otherwise each count is right for
/// some instant during the call, and no message is received, evicted or discarded before it is
/// admitted, or admitted or lost before it is issued. The [crate](crate#terms) has a table of the
/// terms.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OutcomeCounts {
    /// Messages that were published for the inbox, including those whose publishers wait for room
    /// now. A message that is returned because the bus or the inbox was closed does not count.
    pub issued: [u64; Priority::COUNT],
    /// Messages that the inbox admitted.
    pub admitted: [u64; Priority::COUNT],
    /// Messages that were lost because the inbox held as many as their priority allows, or the
    /// clone for this inbox panicked.
    pub refused: [u64; Priority::COUNT],
    /// Messages that were lost because no room came in time.
    pub timed_out: [u64; Priority::COUNT],
    /// Messages that were lost because a newer one took their place.
    pub evicted: [u64; Priority::COUNT],
    /// Messages that were admitted and that no consumer received: the consumers were dropped, or
    /// the bus was stopped.
    pub discarded: [u64; Priority::COUNT],
}

impl OutcomeCounts {
    /// Returns the number of messages that were lost, for whatever reason. Each is reported to a
    /// consumer by [`Delivery::lost_before`](super::Delivery::lost_before), unless the message that
    /// would report it is discarded, or none has come since.
    pub fn lost(&self) -> u64 {
        [&self.refused, &self.timed_out, &self.evicted]
            .map(|by_priority| by_priority.iter().sum::<u64>())
            .iter()
            .sum()
    }

    /// Counts messages that the publisher has not counted yet, though consumers, which have
    /// `delivered` these numbers, or other publishers have.
    pub(super) fn catch_up(&mut self, delivered: &[u64; Priority::COUNT]) {
        for (p, delivered) in delivered.iter().enumerate() {
            let left = delivered + self.evicted[p] + self.discarded[p];
            self.admitted[p] = self.admitted[p].max(left);
            let known = self.admitted[p] + self.refused[p] + self.timed_out[p];
            self.issued[p] = self.issued[p].max(known);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for priority in 0..Priority::COUNT {
            self.issued[priority] += other.issued[priority];
            self.admitted[priority] += other.admitted[priority];
            self.refused[priority] += other.refused[priority];
            self.timed_out[priority] += other.timed_out[priority];
            self.evicted[priority] += other.evicted[priority];
            self.discarded[priority] += other.discarded[priority];
        }
    }
}

fn counts(counts: &ByPriority<Count>) -> [u64; Priority::COUNT] {
    std::array::from_fn(|priority| counts[priority].get())
}

fn tallies(tallies: &ByPriority<Tally>) -> [u64; Priority::COUNT] {
    std::array::from_fn(|priority| tallies[priority].get())
}

impl Ledger {
    /// Returns the counts. The outcome of a message is read before the count that it comes from.
    pub(super) fn outcomes(&self) -> OutcomeCounts {
        OutcomeCounts {
            evicted: tallies(&self.others.evicted),
            discarded: tallies(&self.others.discarded),
            timed_out: counts(&self.own.timed_out),
            refused: counts(&self.own.refused),
            admitted: counts(&self.own.admitted),
            issued: counts(&self.own.issued),
        }
    }
}

/// The messages of one publisher to an inbox, by outcome; see
/// [`Consumer::publisher_counts`](super::Consumer::publisher_counts).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PublisherCounts {
    /// The publisher.
    pub publisher: super::PublisherId,
    /// Its name.
    pub name: Shared<str>,
    /// The outcomes of its messages.
    pub outcomes: OutcomeCounts,
}

/// The counts of one consumer.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Meter {
    pub(super) delivered: ByPriority<Count>,
    /// Retained messages from before the inbox, delivered.
    pub(super) replayed: Count,
    /// Losses that were reported with messages.
    pub(super) reported: Count,
    /// Messages taken from the inbox and not yet delivered.
    pub(super) held: Count,
    /// Time spent with messages: see [`IS_BUSY`].
    time: Count,
}

/// The lowest bit of [`Meter::time`]: the consumer is with messages, and the rest is the ticks it
/// has been so before, less those at which that began. Without the bit, the rest is the ticks. One
/// word, so that a reader never sees the one without the other.
const IS_BUSY: u64 = 1;

impl Meter {
    /// From `now` on, in ticks, the consumer is with messages.
    pub(super) fn begin_busy(&self, now: u64) {
        let before = self.time.get() >> 1;
        self.time.set(before.wrapping_sub(now) << 1 | IS_BUSY);
    }

    /// From `now` on it waits.
    pub(super) fn end_busy(&self, now: u64) {
        self.time.set(self.busy_ticks(now) << 1);
    }

    /// Returns how long it was with messages up to `now`.
    fn busy_ticks(&self, now: u64) -> u64 {
        let time = self.time.get();
        let ticks = time >> 1;
        if time & IS_BUSY == 0 {
            return ticks;
        }
        // The difference has 63 bits. Clocks of two processors may differ a little.
        let ticks = ticks.wrapping_add(now) & (u64::MAX >> 1);
        if ticks > u64::MAX >> 2 { 0 } else { ticks }
    }
}

/// The counts of the consumers of an inbox; see [`Consumer::counts`](super::Consumer::counts).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ConsumerCounts {
    /// Messages that consumers got, for each [`Priority`] by its [`index`](Priority::index).
    pub delivered: [u64; Priority::COUNT],
    /// The number of retained messages, from before they subscribed, that they got as well.
    pub replayed: u64,
    /// Losses that were reported with messages
    /// ([`Delivery::lost_before`](super::Delivery::lost_before)).
    pub reported: u64,
    /// The number of losses before messages that were discarded: no message reports them.
    pub unreported: u64,
    /// The number of messages in the inbox, including those that its consumers have taken in a
    /// batch and not delivered yet.
    pub waiting: u64,
    /// The time that consumers spent with messages, not waiting for any: the sum of all of them.
    pub busy_ns: u64,
}

impl ConsumerCounts {
    /// Adds what one consumer did; `ns` makes nanoseconds of ticks.
    pub(super) fn count(&mut self, meter: &Meter, now: u64, ns: impl Fn(u64) -> u64) {
        for (sum, more) in self.delivered.iter_mut().zip(counts(&meter.delivered)) {
            *sum += more;
        }
        self.replayed += meter.replayed.get();
        self.reported += meter.reported.get();
        self.waiting += meter.held.get();
        self.busy_ns += ns(meter.busy_ticks(now));
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in self.delivered.iter_mut().zip(other.delivered) {
            *sum += more;
        }
        self.replayed += other.replayed;
        self.reported += other.reported;
        self.unreported += other.unreported;
        self.waiting += other.waiting;
        self.busy_ns += other.busy_ns;
    }

    /// Returns the number of messages that consumers got, of all priorities.
    pub fn taken(&self) -> u64 {
        self.delivered.iter().sum()
    }
}

/// The counts of all messages of a bus; see [`Bus::totals`](super::Bus::totals). While no publisher
/// and no consumer is in use, `issued` = `admitted` + `refused` + `timed_out`, for each priority,
/// and `admitted` = `delivered` + `waiting` + `evicted` + `discarded`, for all priorities together.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Totals {
    /// The counts by publishers. A message for several inboxes counts for each.
    pub outcomes: OutcomeCounts,
    /// The counts by consumers.
    pub consumers: ConsumerCounts,
}

impl Totals {
    pub(super) fn add(&mut self, other: &Self) {
        self.outcomes.add(&other.outcomes);
        self.consumers.add(&other.consumers);
    }
}

/// Counters and gauges of an inbox at one instant. `at_ns` and the counters from `issued` to
/// `busy_ns` only grow, except that a message which is returned because the bus was closed no
/// longer counts as issued; `waiting` and `consumers` are gauges, and `capacity` is constant. They
/// are read one after the other while other threads write them, and so need not agree to the last
/// message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InboxReading {
    /// The time of the reading, in ns on any clock that does not go back.
    pub at_ns: u64,
    /// The number of messages that were published for the inbox.
    pub issued: u64,
    /// The number of messages that the inbox admitted.
    pub admitted: u64,
    /// The number of messages that were lost: the sum of the next three.
    pub lost: u64,
    /// The number of messages that were lost because the inbox held as many as their priority
    /// allows.
    pub refused: u64,
    /// The number of messages that were lost because no room came in time.
    pub timed_out: u64,
    /// The number of messages that were lost because a newer one took their place.
    pub evicted: u64,
    /// The number of messages that were admitted and that no consumer received.
    pub discarded: u64,
    /// The number of messages that consumers took.
    pub taken: u64,
    /// The time that consumers spent with messages, not waiting for any, in ns: the sum over all of
    /// them.
    pub busy_ns: u64,
    /// The number of messages in the inbox, including those that its consumers have taken in a
    /// batch and not delivered yet; at most `capacity`. For a message of priority p the inbox is
    /// full at [`Consumer::limits()`](super::Consumer::limits)`[p]`, by default 80 % of the
    /// capacity for medium. Exceptions:
    /// - messages of the express lane do not count;
    /// - a consumer that takes a batch frees its slots at once, so more may wait than this number;
    /// - topics that drop the oldest or conflate have an overflow buffer, with the same effect;
    /// - a batch that is just being taken may count twice.
    ///
    /// [`ConsumerCounts::waiting`] counts the express lane, too, and has no bound.
    pub waiting: u64,
    /// The number of slots of its ring, in messages.
    pub capacity: u64,
    /// The number of consumers that share the inbox.
    pub consumers: u64,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_what_lies_between() {
        let meter = Meter::default();
        assert_eq!(meter.busy_ticks(50), 0);
        meter.begin_busy(100);
        assert_eq!((meter.busy_ticks(100), meter.busy_ticks(130)), (0, 30));
        // A clock that is behind.
        assert_eq!(meter.busy_ticks(90), 0);
        meter.end_busy(150);
        assert_eq!(meter.busy_ticks(900), 50);
        meter.begin_busy(1_000);
        assert_eq!(meter.busy_ticks(1_007), 57);
        meter.end_busy(1_010);
        assert_eq!(meter.busy_ticks(5_000), 60);
    }
}
