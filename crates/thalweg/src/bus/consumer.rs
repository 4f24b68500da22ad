//! Receiving.

use std::collections::VecDeque;
use std::sync::Arc as Shared;
use std::time::{Duration, Instant};

use super::batching::Batching;
use super::builder::BuildError;
use super::delivery::Delivery;
use super::inbox::{Envelope, Inbox, Item, Receiver};
use super::ledger::Meter;
use super::registry::{Core, Opened};
use super::topic::{Message, TopicId};
use crate::channel::{Express, RecvError, RecvTimeoutError, TryRecvError};
use crate::ring::sync::{Arc, fault, is_model_over};
use crate::wait::Panics;

/// Receives messages; see the [module](super). It can move to another thread.
///
/// When the last consumer of an inbox is dropped, publishers go on without it, and what is in the
/// inbox is discarded.
pub struct Consumer<M: Message> {
    pub(super) receiver: Receiver<M>,
    /// To be delivered before what the ring has: a batch of it, what was on a shelf, or retained.
    pub(super) ahead: VecDeque<Item<M>>,
    /// The ring whose messages overtake these, where there is one.
    pub(super) express: Option<Express<Item<M>>>,
    /// How many of those ahead, at the front, no message overtakes: retained ones, or what was on
    /// a shelf of the express lane.
    pub(super) fixed: usize,
    /// How large batches are.
    pub(super) batching: Batching,
    /// How many of these, at the front, are retained ones.
    pub(super) replays: usize,
    /// It is with messages, as far as the meter knows.
    pub(super) is_busy: bool,
    pub(super) meter: Shared<Meter>,
    pub(super) core: Arc<Core<M>>,
    pub(super) inbox: Arc<Inbox<M>>,
}

impl<M: Message> Consumer<M> {
    pub(super) fn new(core: Arc<Core<M>>, opened: Opened<M>) -> Result<Self, BuildError> {
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
        let capacity = inbox.capacity as usize;
        Self {
            receiver,
            ahead: VecDeque::new(),
            express: inbox.lane.as_ref().map(|lane| lane.end.clone()),
            fixed: 0,
            batching: Batching::new(capacity),
            replays: 0,
            is_busy: false,
            meter: inbox.enter(),
            core,
            inbox,
        }
    }

    /// Returns another consumer of the same inbox: each message goes to one of the group.
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

    /// Takes the next message; waits while there is none.
    ///
    /// # Errors
    /// [`RecvError`] if there is none, and the bus was drained or stopped.
    #[inline]
    pub fn recv(&mut self) -> Result<Delivery<M>, RecvError> {
        match self.next() {
            Ok(delivery) => Ok(delivery),
            Err(why) => self.wait_or_end(why, None).map_err(|_| RecvError),
        }
    }

    /// Takes the next message if there is one now.
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

    /// Works as [`recv`](Self::recv), but waits no longer than `timeout`.
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

    /// Returns the messages that are on shelves when the ring has come to its end.
    #[cold]
    #[inline(never)]
    pub(super) fn rest(&mut self) -> Option<Delivery<M>> {
        if fault::is("end_unlooked") {
            return None;
        }
        // Before the shelves are empty: see `Inbox::is_taken`.
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

    /// Returns the message that the ring carried, or the first of the shelf.
    #[inline(always)]
    pub(super) fn open(&mut self, item: Item<M>) -> Option<Delivery<M>> {
        match item {
            Item::Message(envelope) => Some(self.deliver(envelope)),
            Item::Token(topic) => self.open_shelf(topic),
        }
    }

    #[cold]
    #[inline(never)]
    fn open_shelf(&mut self, topic: TopicId) -> Option<Delivery<M>> {
        let behind = self.ahead.len();
        if let Some(shelf) = self.inbox.shelf(topic) {
            // Before the shelf is empty: see `Inbox::is_taken`.
            self.meter.held.add(1);
            shelf.take_all(&mut self.ahead);
        }
        let taken = self.ahead.len() - behind;
        self.ahead.rotate_right(taken);
        if self.inbox.is_express_topic(topic) {
            self.fixed = taken;
        }
        self.next_ahead()
    }

    pub(super) fn next_ahead(&mut self) -> Option<Delivery<M>> {
        self.fixed = self.fixed.saturating_sub(1);
        self.deliver_ahead()
    }

    #[inline(always)]
    pub(super) fn deliver_ahead(&mut self) -> Option<Delivery<M>> {
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
    pub(super) fn end_busy(&mut self) {
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
    "inbox": this.inbox.id, "topics": this.inbox.topics, "service": this.service());
