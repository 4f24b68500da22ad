//! Inboxes: the messages that wait for one consumer, or one group of them, in a ring, and in a
//! buffer for each topic that drops the oldest or conflates.
//!
//! The ring is a channel's, so waiting, waking, ends and async receives are those of channels. An
//! element is a message, or the token of a topic buffer (`topic_buffer.rs`). Publishers push below
//! the limit of the message's priority (`priority.rs`); tokens do not count for the limits, since
//! the ring has one slot more for each topic buffer. An inbox may have a second ring, which
//! consumers empty first (the express lane).
//!
//! An inbox knows its publishers, present and past, and counts what became of its messages and what
//! its consumers do.
//!
//! # The express lane
//! *The rule.* Messages of a chosen priority and above go to the lane, and are admitted if and only
//! if fewer elements than the capacity of the lane are in it at the moment at which they claim
//! their slot, whatever is in the other ring. All priorities of the lane have that one limit. As in
//! `priority.rs`, an element is a message or the token of a topic buffer; tokens have slots of
//! their own.
//!
//! *Topic buffers.* A topic that drops the oldest or conflates has one token, and so one lane: that
//! of the topic's own priority, whatever a message is published with.
//!
//! *Order.* Consumers check the lane before each message, so only earlier messages of the lane come
//! before a message in it. There are two exceptions: retained messages, which are older than all
//! others, and the rest of a topic buffer of the lane.
//!
//! *Gaps* are counted by publisher and topic, for both lanes together, in the order in which
//! messages were published. So the loss that a message reports is exact whenever it comes: the
//! [`lost_before`](super::Delivery::lost_before) sequences just before its own were lost.
//!
//! *The fast path* of a publisher has no code for lanes: there the limit of such a priority is 0,
//! and a message that is not admitted takes the slow path.

use std::collections::VecDeque;
use std::sync::Arc as Shared;

use thalweg_measure::clock::Clock;

use super::ledger::{
    ConsumerCounts, InboxReading, Ledger, Meter, OutcomeCounts, PublisherCounts, Totals,
};
use super::priority::{Admission, AdmissionError, Priority};
use super::topic::{Message, TopicError, TopicId, TopicOverflow, Topics};
use super::topic_buffer::{Envelope, Item, TopicBuffer};
use super::{InboxId, PublisherId};
use crate::channel::{self, Mpmc};
use crate::ring::sync::{Mutex, lock};
use crate::ring::{CAPACITY_MAX, CapacityError};
use crate::wait::{Panics, WaitMode};

/// The reason why a bus, an inbox or a publisher can't be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusError {
    /// `M::TOPICS` is invalid; see [`TopicInfo::check`](super::TopicInfo::check).
    Topics(TopicError),
    /// The admission limits are invalid for the capacity.
    Admission(AdmissionError),
    /// The capacity of an inbox or of its express lane is outside 1 to half of
    /// [`CAPACITY_MAX`], in messages.
    Capacity(usize),
    /// The number of messages that an inbox keeps for a topic that drops the oldest or conflates is
    /// above [`CAPACITY_MAX`], or the memory of the inbox could not be allocated.
    Inbox(channel::BuildError),
    /// The express lane begins at [`Priority::Low`], so every message would be in it.
    Express,
    /// The bus was closed or stopped.
    Closed,
    /// The `Clone` of a retained message opened a subscription that replays that same message.
    ReentrantClone,
}

errors!(BusError {
    Self::Topics(error) => "topics of a bus: {error}";
    Self::Admission(error) => "inbox of a bus: {error}";
    Self::Capacity(asked) =>
        "inbox of a bus: capacity {asked} is outside 1 to {} messages", CAPACITY_MAX / 2;
    Self::Inbox(error) => "inbox of a bus: {error}";
    Self::Express => "an express lane needs a priority above low: else every message is in it";
    Self::Closed => "the bus was closed or stopped";
    Self::ReentrantClone => "the clone of a retained message asks for a copy of that message";
});

impl From<AdmissionError> for BusError {
    fn from(error: AdmissionError) -> Self {
        Self::Admission(error)
    }
}

impl BusError {
    /// There is no memory for the ring of an inbox, which has more slots than were `asked` for.
    pub(super) fn ring(error: channel::BuildError, asked: usize) -> Self {
        Self::Inbox(match error {
            channel::BuildError::Memory { bytes, .. } => {
                channel::BuildError::Memory { asked, bytes }
            }
            error => error,
        })
    }
}

impl From<CapacityError> for BusError {
    fn from(error: CapacityError) -> Self {
        Self::Inbox(error.into())
    }
}

pub(super) type Sender<M> = channel::Sender<Item<M>, Mpmc>;
pub(super) type Receiver<M> = channel::Receiver<Item<M>, Mpmc>;

/// How an inbox is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) capacity: usize,
    pub(super) admission: Admission,
    pub(super) mode: WaitMode,
    /// From which priority on messages overtake, and how many of them may wait.
    pub(super) express: Option<(Priority, usize)>,
}

/// All of an inbox but its ring.
pub(super) struct Inbox<M> {
    pub(super) id: InboxId,
    pub(super) topics: Topics,
    /// Messages that the ring holds.
    pub(super) capacity: u64,
    /// The limit of each priority, in the ring that it goes to.
    pub(super) limits: [u64; Priority::COUNT],
    /// The limits of the ring; 0 for a priority that goes to the express lane.
    pub(super) ring_limits: [u64; Priority::COUNT],
    /// Elements that the ring holds, tokens included.
    places: u64,
    pub(super) lane: Option<Lane<M>>,
    /// Messages that the rings and all topic buffers hold together.
    messages_max: usize,
    /// By topic.
    topic_buffers: Vec<Option<TopicBuffer<M>>>,
    publishers: Mutex<Publishers>,
    members: Mutex<Members>,
}

/// The consumers.
#[derive(Default)]
struct Members {
    meters: Vec<Shared<Meter>>,
    /// The counts of consumers that are gone.
    gone: ConsumerCounts,
}

impl<M: Message> Inbox<M> {
    pub(super) fn new(
        id: InboxId,
        topics: Topics,
        options: Options,
    ) -> Result<(Self, Sender<M>, Receiver<M>), BusError> {
        let mut limits = options.admission.limits(options.capacity)?;
        let mut messages_max = options.capacity;
        let topic_buffer = |(index, info): (usize, &super::TopicInfo)| {
            let is_wanted = topics.contains(TopicId::new(index));
            let (places, has_keys) = match info.overflow {
                TopicOverflow::DropOldest { keep } if is_wanted => (keep, false),
                TopicOverflow::Conflate { keys } if is_wanted => (keys, true),
                _ => return Ok(None),
            };
            messages_max = messages_max.saturating_add(places);
            TopicBuffer::new(places, has_keys).map(Some)
        };
        let topic_buffers = M::TOPICS.iter().enumerate().map(topic_buffer);
        let topic_buffers = topic_buffers.collect::<Result<Vec<_>, _>>()?;
        // Limits keep messages to the capacity. With all of its slots the ring asks for one stamp
        // a push, not two.
        let tokens = topic_buffers.iter().flatten().count();
        let places = (options.capacity + tokens).next_power_of_two();
        let (tx, rx) = channel::Builder::new(places)
            .mode(options.mode)
            .soft_limit(None)
            .mpmc()
            .map_err(|error| BusError::ring(error, options.capacity))?;
        let mut ring_limits = limits;
        let lane = match options.express {
            Some((from, messages)) => {
                limits[from.index()..].fill(messages as u64);
                ring_limits[from.index()..].fill(0);
                messages_max = messages_max.saturating_add(messages);
                Some(Lane::new(from, messages, tokens, &rx)?)
            }
            None => None,
        };
        let inbox = Self {
            id,
            topics,
            capacity: options.capacity as u64,
            limits,
            ring_limits,
            places: places as u64,
            lane,
            messages_max,
            topic_buffers,
            publishers: Mutex::default(),
            members: Mutex::default(),
        };
        Ok((inbox, tx, rx))
    }

    /// Messages of a batch: publishers that refill what is taken must not keep it going for ever.
    pub(super) fn batch_max(&self, ahead: &VecDeque<Item<M>>) -> usize {
        self.messages_max.saturating_add(ahead.len())
    }

    /// Returns the topic buffer of a topic, if it has one.
    pub(super) fn topic_buffer(&self, topic: TopicId) -> Option<&TopicBuffer<M>> {
        self.topic_buffers.get(topic.index())?.as_ref()
    }

    /// Adds a publisher, whose next sequences are given by topic; returns its ledger, and the
    /// number by which topic buffers know it. Consumers are at `popped`.
    pub(super) fn join(
        &self,
        publisher: PublisherId,
        name: &Shared<str>,
        popped: Lanes,
        next: impl Fn(usize) -> u64,
    ) -> (Shared<Ledger>, u32) {
        let ledger = Shared::new(Ledger::default());
        let mut publishers = lock(&self.publishers);
        publishers.fold(popped, &self.topic_buffers);
        let link = publishers.free.pop().unwrap_or(publishers.links);
        publishers.links = publishers.links.max(link + 1);
        for (index, topic_buffer) in self.topic_buffers.iter().enumerate() {
            if let Some(topic_buffer) = topic_buffer {
                topic_buffer.join(link, Shared::clone(&ledger), next(index));
            }
        }
        publishers.rows.push(Row {
            publisher,
            link,
            name: Shared::clone(name),
            ledger: Shared::clone(&ledger),
            left: None,
        });
        (ledger, link)
    }

    /// Notes that a publisher goes, when consumers are at `popped` and its last message is before
    /// `end`.
    pub(super) fn part(&self, link: u32, has_unreported: bool, popped: Lanes, end: Lanes) {
        let mut publishers = lock(&self.publishers);
        let is_here = |row: &&mut Row| row.link == link;
        if let Some(row) = publishers.rows.iter_mut().find(is_here) {
            row.left = Some(Left {
                end,
                has_unreported,
            });
        }
        publishers.fold(popped, &self.topic_buffers);
    }

    /// Adds a consumer, and returns its meter.
    pub(super) fn enter(&self) -> Shared<Meter> {
        let meter = Shared::new(Meter::default());
        lock(&self.members).meters.push(Shared::clone(&meter));
        meter
    }

    /// Removes a consumer, at `now`, which counts no more.
    pub(super) fn leave(&self, meter: &Shared<Meter>, now: u64, ns: impl Fn(u64) -> u64) {
        let mut members = lock(&self.members);
        meter.held.set(0);
        members.gone.count(meter, now, ns);
        members.meters.retain(|other| !Shared::ptr_eq(other, meter));
    }

    /// Returns whether nothing is in topic buffers or with consumers that have not got it yet; to
    /// be asked once the ring is over. A consumer says that it holds something before it takes it
    /// from a topic buffer.
    pub(super) fn is_taken(&self) -> bool {
        let is_empty = |topic_buffer: &TopicBuffer<M>| topic_buffer.len().0 == 0;
        let is_free = |meter: &Shared<Meter>| meter.held.get() == 0;
        let is_over = |lane: &Lane<M>| lane.end.is_over();
        self.lane.as_ref().is_none_or(is_over)
            && self.topic_buffers.iter().flatten().all(is_empty)
            && lock(&self.members).meters.iter().all(is_free)
    }

    /// Counts a message that no consumer will receive, with the losses before it, and drops it.
    fn discard(&self, envelope: Envelope<M>) {
        // No later message can report them: one may have been delivered in between.
        lock(&self.members).gone.unreported += envelope.lost_before;
        let mut publishers = lock(&self.publishers);
        let Publishers { rows, gone, .. } = &mut *publishers;
        let is_its = |row: &&mut Row| row.publisher == envelope.publisher;
        let priority = envelope.priority.index();
        match rows.iter_mut().find(is_its) {
            Some(row) => row.ledger.others.discarded[priority].add(1),
            None => gone.discarded[priority] += 1,
        }
        drop(publishers);
        drop(envelope);
    }

    /// Works as [`discard`](Self::discard) for what the ring carried.
    pub(super) fn discard_item(&self, item: Item<M>, panics: &mut Panics) {
        match item {
            Item::Message(envelope) => {
                panics.catch(|| self.discard(envelope));
            }
            Item::Token(topic) => self.clear(topic, panics),
        }
    }

    /// Discards the messages in a topic buffer, for the thread that has its token.
    fn clear(&self, topic: TopicId, panics: &mut Panics) {
        if let Some(topic_buffer) = self.topic_buffer(topic) {
            let mut all = VecDeque::new();
            topic_buffer.take_all(&mut all);
            for item in all {
                self.discard_item(item, panics);
            }
        }
    }

    /// Moves the messages of all topic buffers behind `out`, for a thread that finds the ring
    /// closed and empty.
    pub(super) fn take_rest(&self, out: &mut VecDeque<Item<M>>) {
        for topic_buffer in self.topic_buffers.iter().flatten() {
            topic_buffer.take_all(out);
        }
    }

    /// Discards what is in all topic buffers, when the ring is closed.
    pub(super) fn discard_rest(&self, panics: &mut Panics) {
        let mut rest = VecDeque::new();
        self.take_rest(&mut rest);
        for item in rest {
            self.discard_item(item, panics);
        }
    }

    /// Discards messages that were admitted and that no consumer received, for a caller that was
    /// notified of that.
    pub(super) fn discard_left<'s>(&self, senders: impl IntoIterator<Item = &'s mut Sender<M>>)
    where
        M: 's,
    {
        let mut panics = Panics::default();
        for sender in senders {
            while let Some(item) = sender.take_left() {
                self.discard_item(item, &mut panics);
            }
        }
        panics.resume();
    }
}

impl<M: Message> Inbox<M> {
    /// Returns the outcomes of messages, by publisher.
    pub(super) fn publisher_counts(&self) -> Vec<PublisherCounts> {
        let publishers = lock(&self.publishers);
        let losses = |row: &Row| {
            let mut outcomes = row.ledger.outcomes();
            outcomes.catch_up(&[0; Priority::COUNT]);
            PublisherCounts {
                publisher: row.publisher,
                name: Shared::clone(&row.name),
                outcomes,
            }
        };
        publishers.rows.iter().map(losses).collect()
    }

    /// Returns the counts of all messages, where the ring holds `len` elements at `now`.
    pub(super) fn totals(&self, len: usize, now: u64, ns: impl Fn(u64) -> u64) -> Totals {
        // The outcomes last: what was taken was issued before.
        let consumers = self.consumers(len, now, ns);
        let publishers = lock(&self.publishers);
        let mut outcomes = publishers.gone;
        for row in &publishers.rows {
            outcomes.add(&row.ledger.outcomes());
        }
        outcomes.catch_up(&consumers.delivered);
        Totals {
            outcomes,
            consumers,
        }
    }

    /// Returns the figures of now, where the ring holds `len` elements.
    pub(super) fn reading(&self, len: usize, clock: &Clock) -> InboxReading {
        let now = clock.ticks();
        let Totals {
            outcomes,
            consumers,
        } = self.totals(len, now, |ticks| clock.ns(ticks));
        let sum = |counts: [u64; Priority::COUNT]| counts.iter().sum();
        let in_lane = self.express().map_or(0, |lane| lane.waiting);
        InboxReading {
            at_ns: clock.ns(now),
            issued: sum(outcomes.issued),
            admitted: sum(outcomes.admitted),
            lost: outcomes.lost(),
            refused: sum(outcomes.refused),
            timed_out: sum(outcomes.timed_out),
            evicted: sum(outcomes.evicted),
            discarded: sum(outcomes.discarded),
            taken: consumers.taken(),
            busy_ns: consumers.busy_ns,
            waiting: consumers.waiting.saturating_sub(in_lane).min(self.capacity),
            capacity: self.capacity,
            consumers: lock(&self.members).meters.len() as u64,
        }
    }

    /// Returns the counts of all consumers, where the ring holds `len` elements.
    pub(super) fn consumers(
        &self,
        len: usize,
        now: u64,
        ns: impl Fn(u64) -> u64,
    ) -> ConsumerCounts {
        let members = lock(&self.members);
        let mut consumers = members.gone;
        for meter in &members.meters {
            consumers.count(meter, now, &ns);
        }
        drop(members);
        // A token is in the ring, or held by a consumer, and no message.
        let in_lane = self.lane.as_ref().map_or(0, |lane| lane.end.len());
        let (mut waiting, mut tokens) = (consumers.waiting + (len + in_lane) as u64, 0);
        for topic_buffer in self.topic_buffers.iter().flatten() {
            let (len, has_token) = topic_buffer.len();
            waiting += len as u64;
            tokens += u64::from(has_token);
        }
        consumers.waiting = waiting.saturating_sub(tokens);
        consumers
    }
}

/// The publishers that send something here.
#[derive(Default)]
struct Publishers {
    rows: Vec<Row>,
    /// The outcomes of the messages of publishers that have no row any more.
    gone: OutcomeCounts,
    /// By what topic buffers know publishers: how many there are, and those that are free.
    links: u32,
    free: Vec<u32>,
}

/// A publisher.
struct Row {
    pub(super) publisher: PublisherId,
    /// By what topic buffers know it.
    link: u32,
    pub(super) name: Shared<str>,
    pub(super) ledger: Shared<Ledger>,
    left: Option<Left>,
}

/// How a publisher went.
#[derive(Clone, Copy)]
struct Left {
    /// The positions in the rings behind its last messages.
    pub(super) end: Lanes,
    /// No message came after one that was lost.
    has_unreported: bool,
}

/// The number of publishers that are remembered after they left with losses that were never
/// reported.
const UNREPORTED_MAX: usize = 64;

impl Publishers {
    /// Keeps only the sum of the publishers that have left and whose messages consumers at `popped`
    /// have taken, unless a caller may ask where a loss came from.
    fn fold<M>(&mut self, popped: Lanes, topic_buffers: &[Option<TopicBuffer<M>>]) {
        let Self {
            rows, gone, free, ..
        } = self;
        // `None`: still at work here. Else whether a loss was not reported.
        let has_unreported = |row: &Row| {
            let is_taken = |left: &Left| left.end.iter().zip(&popped).all(|(end, at)| end <= at);
            let left = row.left.filter(is_taken)?;
            let mut topic_buffers = topic_buffers
                .iter()
                .flatten()
                .map(|topic_buffer| topic_buffer.left(row.link));
            topic_buffers.try_fold(left.has_unreported, |unreported, (waits, all_reported)| {
                (!waits).then_some(unreported || !all_reported)
            })
        };
        let unreported = rows.iter().filter(|row| has_unreported(row) == Some(true));
        let mut spare = unreported.count().saturating_sub(UNREPORTED_MAX);
        rows.retain(|row| {
            let is_kept = match has_unreported(row) {
                None => true,
                Some(true) if spare == 0 => true,
                Some(true) => {
                    spare -= 1;
                    false
                }
                Some(false) => false,
            };
            if !is_kept {
                gone.add(&row.ledger.outcomes());
                free.push(row.link);
            }
            is_kept
        });
    }
}

/// A figure of an inbox's ring, and of its express lane.
pub(super) type Lanes = [u64; 2];

/// The lane as the inbox has it.
pub(super) struct Lane<M> {
    from: Priority,
    messages: u64,
    /// Elements that it holds, tokens included.
    places: u64,
    /// Where publishers have their senders from, and consumers their ends.
    pub(super) end: channel::Express<Item<M>>,
}

/// The counts of an inbox's express lane at one instant; see
/// [`SubscriptionBuilder::express`](super::SubscriptionBuilder::express).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ExpressLaneCounts {
    /// The lowest priority whose messages are in the lane.
    pub from: Priority,
    /// The number of messages that it holds at most, besides those of topics that drop the oldest
    /// or conflate.
    pub capacity: u64,
    /// The number of messages in it, those of such topics included.
    pub waiting: u64,
}

impl<M: Message> Lane<M> {
    /// Makes a lane for `messages` messages, and tokens besides, beside the ring of `receiver`.
    fn new(
        from: Priority,
        messages: usize,
        tokens: usize,
        receiver: &Receiver<M>,
    ) -> Result<Self, BusError> {
        let places = (messages + tokens).next_power_of_two();
        Ok(Self {
            from,
            messages: messages as u64,
            places: places as u64,
            end: (receiver.express(places)).map_err(|error| BusError::ring(error, messages))?,
        })
    }
}

impl<M: Message> Inbox<M> {
    /// Returns whether messages of this priority, by its index, overtake.
    #[inline]
    pub(super) fn is_express(&self, priority: usize) -> bool {
        (self.lane.as_ref()).is_some_and(|lane| priority >= lane.from.index())
    }

    /// Returns whether the token of a topic's topic buffer goes to the express lane.
    pub(super) fn is_express_topic(&self, topic: TopicId) -> bool {
        self.is_express(M::TOPICS[topic.index()].priority.index())
    }

    /// Returns the number of elements that the lane of a topic's token holds, tokens included.
    pub(super) fn places_of(&self, topic: TopicId) -> u64 {
        match &self.lane {
            Some(lane) if self.is_express_topic(topic) => lane.places,
            _ => self.places,
        }
    }

    /// Returns a sender of the lane, for a publisher or for the thread that closes the inbox.
    pub(super) fn express_sender(&self) -> Option<Sender<M>> {
        self.lane.as_ref().map(|lane| lane.end.sender())
    }

    /// Returns how many elements were taken out of the rings and put into them, where that of the
    /// inbox is at such positions.
    pub(super) fn positions(&self, (popped, pushed): (u64, u64)) -> (Lanes, Lanes) {
        let lane = self.lane.as_ref().map(|lane| lane.end.positions());
        let (lane_popped, lane_pushed) = lane.unwrap_or_default();
        ([popped, lane_popped], [pushed, lane_pushed])
    }

    pub(super) fn express(&self) -> Option<ExpressLaneCounts> {
        let lane = self.lane.as_ref()?;
        let (mut waiting, mut tokens) = (lane.end.len() as u64, 0);
        for (index, topic_buffer) in self.topic_buffers.iter().enumerate() {
            if let Some(topic_buffer) = topic_buffer
                && self.is_express_topic(TopicId::new(index))
            {
                let (len, has_token) = topic_buffer.len();
                waiting += len as u64;
                tokens += u64::from(has_token);
            }
        }
        Some(ExpressLaneCounts {
            from: lane.from,
            capacity: lane.messages,
            waiting: waiting.saturating_sub(tokens),
        })
    }
}
