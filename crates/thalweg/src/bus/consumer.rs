//! The receiving end of a bus: messages one at a time, in batches or by handlers, each with its
//! sequence and what was lost before it.
//!
//! # How many messages a consumer takes at once
//! A consumer takes all waiting messages, up to a bound. A batch shares its fixed cost `o`, but
//! frees its slots only at its end. With a cost of `c` for each message and the arrival rate `λ`, a
//! batch of `n` is followed by one of `λ·(o + c·n)` messages. This converges to
//! `n* = λ·o / (1 − λ·c)`, as `λ·c < 1`.

use std::collections::VecDeque;
use std::sync::Arc as Shared;
use std::time::{Duration, Instant};

use super::inbox::{BusError, ExpressLaneCounts, Inbox, Receiver};
use super::ledger::{ConsumerCounts, Meter, PublisherCounts};
use super::priority::Priority;
use super::registry::{Core, Opened};
use super::topic::{Message, TopicId, Topics};
use super::topic_buffer::{Envelope, Item};
use super::{InboxId, PublisherId};
use crate::channel::{self, Express, RecvError, RecvTimeoutError, TryRecvError};
use crate::ring::sync::{Arc, fault, is_model_over};
use crate::wait::Panics;

/// A message that a consumer received, with its topic, publisher and sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Delivery<M> {
    /// The message.
    pub message: M,
    /// Its topic.
    pub topic: TopicId,
    /// Its priority.
    pub priority: Priority,
    /// The publisher of the message.
    pub publisher: PublisherId,
    /// The number of messages of this topic that the publisher had published before, including lost
    /// ones.
    pub sequence: u64,
    /// The number of messages just before this one, of the same publisher and topic, that this
    /// inbox lost.
    pub lost_before: u64,
    /// Whether it is a retained message: the last one of its topic from before the inbox was
    /// opened.
    pub is_replay: bool,
}

impl<M> From<Envelope<M>> for Delivery<M> {
    #[inline(always)]
    fn from(envelope: Envelope<M>) -> Self {
        Self {
            message: envelope.message,
            topic: envelope.topic,
            priority: envelope.priority,
            publisher: envelope.publisher,
            sequence: envelope.sequence,
            lost_before: envelope.lost_before,
            is_replay: false,
        }
    }
}

/// Receives messages; see the [module](super). It can move to another thread, and is neither `Sync`
/// nor `Clone`: [`share`](Self::share) makes another consumer of the same inbox.
///
/// When the last consumer of an inbox is dropped, publishers continue without it, and the messages
/// in the inbox are discarded.
///
/// A [`Receiver`](channel::Receiver) of a channel can do more: a consumer can't be an arm of a
/// [`Select`](channel::Select), is no `Stream`, and has no `len`, `close`, `iter` or
/// `recv_deadline`. The number of waiting messages is in [`counts`](Self::counts), and dropping
/// it closes its inbox.
pub struct Consumer<M: Message> {
    pub(super) receiver: Receiver<M>,
    /// To be delivered before what the ring has: a batch of it, what was in a topic buffer, or
    /// retained.
    ahead: VecDeque<Item<M>>,
    /// The ring whose messages overtake these, where there is one.
    pub(super) express: Option<Express<Item<M>>>,
    /// How many of those ahead, at the front, no message overtakes: retained ones, or what was on
    /// a topic buffer of the express lane.
    fixed: usize,
    /// The largest batch: those in one keep their room.
    batch_max: usize,
    /// How many of these, at the front, are retained ones.
    replays: usize,
    /// It is with messages, as far as the meter knows.
    is_busy: bool,
    meter: Shared<Meter>,
    pub(super) core: Arc<Core<M>>,
    pub(super) inbox: Arc<Inbox<M>>,
}

impl<M: Message> Consumer<M> {
    pub(super) fn new(core: Arc<Core<M>>, opened: Opened<M>) -> Result<Self, BusError> {
        let Opened {
            inbox,
            receiver,
            replay,
        } = opened;
        let mut consumer = Self::member(receiver, core, inbox);
        for retained in replay {
            // If that panics, or is refused, the consumer goes as any other.
            let copy = retained.copied()?;
            consumer.ahead.push_back(Item::Message(copy));
            consumer.replays += 1;
            consumer.fixed += 1;
        }
        Ok(consumer)
    }

    fn member(receiver: Receiver<M>, core: Arc<Core<M>>, inbox: Arc<Inbox<M>>) -> Self {
        Self {
            receiver,
            ahead: VecDeque::new(),
            express: inbox.lane.as_ref().map(|lane| lane.end.clone()),
            fixed: 0,
            batch_max: (inbox.capacity as usize / 4).clamp(1, BATCH_MAX),
            replays: 0,
            is_busy: false,
            meter: inbox.enter(),
            core,
            inbox,
        }
    }

    /// Returns another consumer of the same inbox: each message is delivered to one of the group.
    ///
    /// ```
    /// # use thalweg::bus::{Bus, Message, TopicId, TopicInfo, Topics};
    /// # #[derive(Clone)] struct Job(u32);
    /// # impl Message for Job {
    /// #     const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("job")];
    /// #     fn topic(&self) -> TopicId { TopicId::new(0) }
    /// # }
    /// let bus = Bus::<Job>::new()?;
    /// let mut first = bus.subscribe(Topics::ALL)?;
    /// let mut second = first.share();
    /// let mut tx = bus.publisher("dispatcher")?;
    /// tx.publish(Job(1))?;
    /// tx.publish(Job(2))?;
    /// assert_eq!(first.recv()?.message.0, 1);
    /// assert_eq!(second.recv()?.message.0, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn share(&self) -> Self {
        let (core, inbox) = (Arc::clone(&self.core), Arc::clone(&self.inbox));
        Self::member(self.receiver.clone(), core, inbox)
    }

    /// Takes the next message; blocks the thread while there is none. In a task use
    /// [`recv_async`](Self::recv_async).
    ///
    /// # Errors
    /// [`RecvError`] if the inbox is empty, and the bus was closed or stopped.
    #[inline]
    pub fn recv(&mut self) -> Result<Delivery<M>, RecvError> {
        match self.next() {
            Ok(delivery) => Ok(delivery),
            Err(why) => self.wait_or_end(why, None).map_err(|_| RecvError),
        }
    }

    /// Takes the next message, if the inbox is not empty.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] or [`TryRecvError::Disconnected`].
    #[inline]
    pub fn try_recv(&mut self) -> Result<Delivery<M>, TryRecvError> {
        match self.next() {
            Ok(delivery) => Ok(delivery),
            Err(why) => {
                if self.is_busy {
                    self.end_busy();
                }
                Err(why)
            }
        }
    }

    /// Works as [`recv`](Self::recv), but waits no longer than `timeout`. A timeout beyond the
    /// range of the clock, such as [`Duration::MAX`], is no limit.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] or [`RecvTimeoutError::Disconnected`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Delivery<M>, RecvTimeoutError> {
        match self.next() {
            Ok(delivery) => Ok(delivery),
            // Beyond what the clock can say: for ever.
            Err(why) => self.wait_or_end(why, Instant::now().checked_add(timeout)),
        }
    }

    /// Works as [`recv`](Self::recv), as a future. Cancel-safe: dropping it loses no message. In a
    /// group, one that is kept unpolled, or forgotten, may keep a wake-up that another member
    /// needs, as a [channel's](crate::channel#futures-that-wait-and-are-not-polled).
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub async fn recv_async(&mut self) -> Result<Delivery<M>, RecvError> {
        loop {
            match self.try_recv() {
                Ok(delivery) => return Ok(delivery),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
                Err(TryRecvError::Empty) => {}
            }
            let item = match &mut self.express {
                Some(express) => self.receiver.recv_either_async(express).await,
                None => self.receiver.recv_async().await,
            };
            let Ok(item) = item else {
                return self.rest().ok_or(RecvError);
            };
            if let Some(delivery) = self.open(item) {
                return Ok(delivery);
            }
        }
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Delivery<M>, TryRecvError> {
        loop {
            // Both at once: one branch.
            if (self.express.is_some() | !self.ahead.is_empty())
                && let Some(delivery) = self.next_before()
            {
                return Ok(delivery);
            }
            let item = match self.receiver.try_recv() {
                Ok(item) => item,
                Err(TryRecvError::Disconnected) if self.is_lane_over() => {
                    return self.rest().ok_or(TryRecvError::Disconnected);
                }
                Err(_) => return Err(TryRecvError::Empty),
            };
            if let Some(delivery) = self.open(item) {
                return Ok(delivery);
            }
        }
    }

    /// Returns the messages that are in topic buffers when the ring has come to its end.
    #[cold]
    #[inline(never)]
    pub(super) fn rest(&mut self) -> Option<Delivery<M>> {
        if fault::is("end_unlooked") {
            return None;
        }
        // Before the topic buffers are empty: see `Inbox::is_taken`.
        self.meter.held.add(1);
        self.inbox.take_rest(&mut self.ahead);
        self.meter.held.set(self.ahead.len() as u64);
        let rest = self.deliver_ahead();
        if rest.is_none() {
            self.core.stop_if_empty();
        }
        rest
    }

    #[cold]
    fn wait_or_end(
        &mut self,
        mut why: TryRecvError,
        deadline: Option<Instant>,
    ) -> Result<Delivery<M>, RecvTimeoutError> {
        loop {
            if self.is_busy {
                self.end_busy();
            }
            if why == TryRecvError::Disconnected {
                return Err(RecvTimeoutError::Disconnected);
            }
            let item = match (&mut self.express, deadline) {
                (Some(express), _) => self.receiver.recv_either(express, deadline),
                (None, Some(deadline)) => self.receiver.recv_deadline(deadline),
                (None, None) => self.receiver.recv().map_err(RecvTimeoutError::from),
            };
            match item {
                Ok(item) => {
                    if let Some(delivery) = self.open(item) {
                        return Ok(delivery);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(RecvTimeoutError::Timeout),
                Err(RecvTimeoutError::Disconnected) => match self.rest() {
                    Some(delivery) => return Ok(delivery),
                    None => why = TryRecvError::Disconnected,
                },
            }
        }
    }

    /// Returns the message that the ring carried, or the first of the topic buffer.
    #[inline(always)]
    fn open(&mut self, item: Item<M>) -> Option<Delivery<M>> {
        match item {
            Item::Message(envelope) => Some(self.deliver(envelope)),
            Item::Token(topic) => self.open_topic_buffer(topic),
        }
    }

    #[cold]
    #[inline(never)]
    fn open_topic_buffer(&mut self, topic: TopicId) -> Option<Delivery<M>> {
        let behind = self.ahead.len();
        if let Some(topic_buffer) = self.inbox.topic_buffer(topic) {
            // Before the topic buffer is empty: see `Inbox::is_taken`.
            self.meter.held.add(1);
            topic_buffer.take_all(&mut self.ahead);
        }
        let taken = self.ahead.len() - behind;
        self.ahead.rotate_right(taken);
        if self.inbox.is_express_topic(topic) {
            self.fixed = taken;
        }
        self.next_ahead()
    }

    fn next_ahead(&mut self) -> Option<Delivery<M>> {
        self.fixed = self.fixed.saturating_sub(1);
        self.deliver_ahead()
    }

    #[inline(always)]
    fn deliver_ahead(&mut self) -> Option<Delivery<M>> {
        let item = self.ahead.pop_front()?;
        if self.replays > 0 {
            return self.replay(item);
        }
        self.meter.held.set(self.ahead.len() as u64);
        self.open(item)
    }

    #[cold]
    fn replay(&mut self, item: Item<M>) -> Option<Delivery<M>> {
        self.replays -= 1;
        let Item::Message(envelope) = item else {
            unreachable!("retained messages are no tokens");
        };
        self.meter.replayed.add(1);
        let mut delivery = Delivery::from(envelope);
        delivery.lost_before = 0;
        delivery.is_replay = true;
        Some(delivery)
    }

    #[inline(always)]
    fn deliver(&mut self, envelope: Envelope<M>) -> Delivery<M> {
        if !self.is_busy {
            self.begin_busy();
        }
        self.meter.delivered[envelope.priority.index()].add(1);
        if envelope.lost_before > 0 {
            self.meter.reported.add(envelope.lost_before);
        }
        Delivery::from(envelope)
    }

    #[inline]
    fn begin_busy(&mut self) {
        self.is_busy = true;
        self.meter.begin_busy(self.core.clock.ticks());
    }

    #[cold]
    fn end_busy(&mut self) {
        self.is_busy = false;
        self.meter.end_busy(self.core.clock.ticks());
    }
}

impl<M: Message> Drop for Consumer<M> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        let mut panics = Panics::default();
        let inbox = &self.inbox;
        // First of all: where the drop of a message publishes, it must not wait for this consumer.
        let each = |item| inbox.discard_item(item, &mut panics);
        let is_last = match &mut self.express {
            Some(express) => self.receiver.leave_either_with(express, each),
            None => self.receiver.leave_with(each),
        };
        let ahead = std::mem::take(&mut self.ahead);
        for (at, item) in ahead.into_iter().enumerate() {
            if at < self.replays {
                panics.catch(|| drop(item));
            } else {
                self.inbox.discard_item(item, &mut panics);
            }
        }
        let clock = self.core.clock;
        let ns = |ticks| clock.ns(ticks);
        self.inbox.leave(&self.meter, clock.ticks(), ns);
        if is_last {
            inbox.discard_rest(&mut panics);
            self.core.remove(inbox);
        } else {
            self.core.stop_if_empty();
        }
        panics.resume();
    }
}

shown!([M: Message] Consumer<M>, "Consumer", this,
    "inbox": this.inbox.id, "topics": this.inbox.topics, "counts": this.counts());

impl<M: Message> Consumer<M> {
    /// Calls `work` with up to `max` messages that are in the inbox now, without waiting; returns
    /// their number. It takes them out of the inbox in batches, whose size follows the number that
    /// wait, up to [`BATCH_MAX`](super::BATCH_MAX) and a quarter of the capacity: slots are freed
    /// by batches, and in a group the others cannot get the messages of a batch. A message of the
    /// [express lane](super::SubscriptionBuilder::express) that comes meanwhile is the next; the
    /// rest of a batch when `max` is reached then stays with this consumer, for its next call.
    ///
    /// If `work` panics, its message is dropped, and the others are delivered by later calls.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] or [`TryRecvError::Disconnected`] if the inbox is empty and `max` is
    /// not 0.
    pub fn try_recv_each(
        &mut self,
        max: usize,
        mut work: impl FnMut(Delivery<M>),
    ) -> Result<usize, TryRecvError> {
        let max = max.min(self.inbox.batch_max(&self.ahead));
        if max == 0 {
            return Ok(0);
        }
        // Where little comes, the first is all.
        work(self.try_recv()?);
        let count = 1 + self.recv_more(max - 1, work);
        if count < max && self.is_busy {
            self.end_busy();
        }
        Ok(count)
    }

    /// Works as [`try_recv_each`](Self::try_recv_each), but blocks the thread until there is a
    /// message. It returns at least 1, unless `max` is 0.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn wait_each(
        &mut self,
        max: usize,
        mut work: impl FnMut(Delivery<M>),
    ) -> Result<usize, RecvError> {
        if max == 0 {
            return Ok(0);
        }
        work(self.recv()?);
        let max = max.min(self.inbox.batch_max(&self.ahead));
        // The wait that comes next ends the busy time.
        Ok(1 + self.recv_more(max - 1, work))
    }

    #[inline]
    fn recv_more(&mut self, max: usize, mut work: impl FnMut(Delivery<M>)) -> usize {
        let mut count = 0;
        while count < max && (!self.ahead.is_empty() || self.take_batch(max - count)) {
            // Messages in the express lane overtake the rest of the batch.
            let delivery = match self.express {
                None => self.deliver_ahead(),
                Some(_) => None,
            };
            let Some(delivery) = delivery.or_else(|| self.next().ok()) else {
                break;
            };
            work(delivery);
            count += 1;
        }
        count
    }

    /// Pops a batch of up to `max` messages; returns `false` if no message waits.
    /// A batch of one is left in the ring.
    fn take_batch(&mut self, max: usize) -> bool {
        let waiting = self.receiver.len();
        if waiting == 0 {
            return self.has_express();
        }
        // The consumers of a group share the messages that wait.
        let share = waiting.div_ceil(self.receiver.members().max(1));
        let size = self.batch_max.min(max).min(share);
        if size > 1 {
            // Before the ring is empty: see `Inbox::is_taken`.
            self.meter.held.set(size as u64);
            let mut batch = Vec::from(std::mem::take(&mut self.ahead));
            // No message is popped if the first is not published yet.
            let _ = self.receiver.try_recv_many(&mut batch, size);
            self.ahead = batch.into();
            self.meter.held.set(self.ahead.len() as u64);
        }
        true
    }
}

/// The bound of the largest batch.
pub const BATCH_MAX: usize = 256;

impl<M: Message> Consumer<M> {
    /// Returns the id of the inbox.
    pub fn inbox(&self) -> InboxId {
        self.inbox.id
    }

    /// Returns the topics that it subscribed to.
    pub fn topics(&self) -> Topics {
        self.inbox.topics
    }

    /// Returns the limit of each [`Priority`], by its index: a message is admitted while fewer
    /// messages are in the ring, whose capacity is the last limit, or in the [express
    /// lane](super::SubscriptionBuilder::express).
    pub fn limits(&self) -> [u64; Priority::COUNT] {
        self.inbox.limits
    }

    /// Returns the counts of messages published for this inbox, of all outcomes, by publisher: for
    /// present publishers, for dropped ones whose messages are not all taken yet, and for the last
    /// 64 that were dropped with a loss that no later message reported.
    /// [`Bus::snapshot`](super::Bus::snapshot) has the sum over all publishers that ever existed.
    /// It takes a lock that is not needed for messages.
    pub fn publisher_counts(&self) -> Vec<PublisherCounts> {
        self.inbox.publisher_counts()
    }

    /// Returns the counts of the consumers of this inbox. It takes locks, one of which is also
    /// needed by topics that drop the oldest or conflate.
    pub fn counts(&self) -> ConsumerCounts {
        let clock = self.core.clock;
        let ns = |ticks| clock.ns(ticks);
        (self.inbox).consumers(self.receiver.len(), clock.ticks(), ns)
    }

    /// Returns the counts of the express lane at one instant, if the inbox has one. It takes the
    /// locks of topics that drop the oldest or conflate.
    pub fn express(&self) -> Option<ExpressLaneCounts> {
        self.inbox.express()
    }
}

impl<M: Message> Consumer<M> {
    /// Returns the next message that comes before those of the ring: one of the express lane, or
    /// one of those ahead.
    ///
    /// It is a function of its own so that the fast path of [`next`](Self::next) is shorter.
    #[cold]
    #[inline(never)]
    fn next_before(&mut self) -> Option<Delivery<M>> {
        loop {
            let express = match &mut self.express {
                Some(express) if self.fixed == 0 => express.try_pop().ok(),
                _ => None,
            };
            let delivery = match express {
                Some(item) => self.open(item),
                None if self.ahead.is_empty() => return None,
                None => self.next_ahead(),
            };
            if delivery.is_some() {
                return delivery;
            }
        }
    }

    /// Returns whether nothing comes into the express lane any more; also where there is none.
    #[cold]
    #[inline(never)]
    fn is_lane_over(&self) -> bool {
        (self.express.as_ref()).is_none_or(channel::Express::is_over)
    }

    /// Returns whether the express lane has something.
    fn has_express(&self) -> bool {
        self.express
            .as_ref()
            .is_some_and(|express| express.len() > 0)
    }
}
