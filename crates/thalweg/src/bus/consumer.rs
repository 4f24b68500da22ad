//! Receiving.

use std::collections::VecDeque;
use std::sync::Arc as Shared;
use std::time::{Duration, Instant};

use super::inbox::{Envelope, Inbox, Item, Receiver};
use super::ledger::{Losses, Meter, Service};
use super::priority::Priority;
use super::registry::{Core, Opened};
use super::topic::{Message, TopicId, Topics};
use super::{InboxId, PublisherId};
use crate::channel::{RecvError, RecvTimeoutError, TryRecvError};
use crate::ring::sync::{Arc, is_model_over};
use crate::wait::Panics;

/// A message as a consumer gets it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Delivery<M> {
    /// The message.
    pub message: M,
    /// Its topic.
    pub topic: TopicId,
    /// Its priority.
    pub priority: Priority,
    /// Who published it.
    pub publisher: PublisherId,
    /// How many messages of this topic that publisher had published before, lost ones included.
    pub sequence: u64,
    /// How many of these this inbox lost since the last one that it took.
    pub lost_before: u64,
    /// It was published before the inbox was opened, and is the last one of its topic.
    pub is_replay: bool,
}

/// Receives messages; see the [module](super). It can move to another thread.
///
/// When the last consumer of an inbox is dropped, publishers go on without it, and what is in the
/// inbox is discarded.
pub struct Consumer<M: Message> {
    receiver: Receiver<M>,
    /// To be delivered before what the ring has: taken from a shelf, or retained.
    ahead: VecDeque<Envelope<M>>,
    /// How many of these, at the front, are retained ones.
    replays: usize,
    /// It is with messages, as far as the meter knows.
    is_busy: bool,
    meter: Shared<Meter>,
    core: Arc<Core<M>>,
    inbox: Arc<Inbox<M>>,
}

impl<M: Message> Consumer<M> {
    pub(super) fn new(core: Arc<Core<M>>, opened: Opened<M>) -> Self {
        let Opened {
            inbox,
            receiver,
            replay,
        } = opened;
        Self {
            receiver,
            replays: replay.len(),
            ahead: replay,
            is_busy: false,
            meter: inbox.enter(),
            core,
            inbox,
        }
    }

    /// Another consumer of the same inbox: each message goes to one of the group.
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
        Self {
            receiver: self.receiver.clone(),
            ahead: VecDeque::new(),
            replays: 0,
            is_busy: false,
            meter: self.inbox.enter(),
            core: Arc::clone(&self.core),
            inbox: Arc::clone(&self.inbox),
        }
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
        let outcome = self.next();
        if let Err(why) = outcome {
            self.found_nothing(why);
        }
        outcome
    }

    /// As [`recv`](Self::recv), but waits no longer than `timeout`.
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

    /// As [`recv`](Self::recv), as a future. Cancel-safe: dropping it loses no message.
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
            // Its error is for the look that follows.
            if let Ok(item) = self.receiver.recv_async().await
                && let Some(delivery) = self.open(item)
            {
                return Ok(delivery);
            }
        }
    }

    /// Calls `work` with up to `max` messages that are there now; gives how many.
    ///
    /// If `work` panics, the message that it has is gone, and the others are still there.
    pub fn recv_each(&mut self, max: usize, mut work: impl FnMut(Delivery<M>)) -> usize {
        let mut count = 0;
        while count < max {
            match self.try_recv() {
                Ok(delivery) => work(delivery),
                Err(_) => break,
            }
            count += 1;
        }
        count
    }

    /// As [`recv_each`](Self::recv_each), but waits for the first of them. Unless `max` is 0, there
    /// is at least one.
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
        let mut count = 1;
        // The wait that comes next ends the busy time.
        while count < max
            && let Ok(delivery) = self.next()
        {
            work(delivery);
            count += 1;
        }
        Ok(count)
    }

    /// The inbox.
    pub fn inbox(&self) -> InboxId {
        self.inbox.id
    }

    /// The topics that it wants.
    pub fn topics(&self) -> Topics {
        self.inbox.topics
    }

    /// Messages in the inbox below which each [`Priority`] is admitted, by its index. The last one
    /// is the capacity.
    pub fn limits(&self) -> [u64; Priority::COUNT] {
        self.inbox.limits
    }

    /// What publishers sent to this inbox and what became of it, by publisher. Takes a lock that
    /// is not needed for messages.
    pub fn losses(&self) -> Vec<Losses> {
        self.inbox.losses()
    }

    /// What consumers of this inbox have done. Takes locks, of which topics that drop the oldest or
    /// conflate need one.
    pub fn service(&self) -> Service {
        let clock = self.core.clock;
        let ns = |ticks| clock.ns(ticks);
        (self.inbox).service(self.receiver.len(), clock.ticks(), ns)
    }

    #[inline(always)]
    fn next(&mut self) -> Result<Delivery<M>, TryRecvError> {
        loop {
            if !self.ahead.is_empty()
                && let Some(delivery) = self.deliver_ahead()
            {
                return Ok(delivery);
            }
            let item = self.receiver.try_recv()?;
            if let Some(delivery) = self.open(item) {
                return Ok(delivery);
            }
        }
    }

    /// What comes next found nothing.
    #[inline]
    fn found_nothing(&mut self, why: TryRecvError) {
        if self.is_busy {
            self.end_busy();
        }
        if why == TryRecvError::Disconnected {
            self.core.stop_if_empty();
        }
    }

    #[cold]
    fn wait_or_end(
        &mut self,
        mut why: TryRecvError,
        deadline: Option<Instant>,
    ) -> Result<Delivery<M>, RecvTimeoutError> {
        loop {
            self.found_nothing(why);
            if why == TryRecvError::Disconnected {
                return Err(RecvTimeoutError::Disconnected);
            }
            let item = match deadline {
                Some(deadline) => self.receiver.recv_deadline(deadline),
                None => self.receiver.recv().map_err(RecvTimeoutError::from),
            };
            match item {
                Ok(item) => {
                    if let Some(delivery) = self.open(item) {
                        return Ok(delivery);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(RecvTimeoutError::Timeout),
                Err(RecvTimeoutError::Disconnected) => why = TryRecvError::Disconnected,
            }
        }
    }

    /// The message that the ring carried, or the first of the shelf.
    #[inline(always)]
    fn open(&mut self, item: Item<M>) -> Option<Delivery<M>> {
        match item {
            Item::Message(envelope) => Some(self.deliver(envelope)),
            Item::Token(topic) => self.open_shelf(topic),
        }
    }

    #[cold]
    #[inline(never)]
    fn open_shelf(&mut self, topic: TopicId) -> Option<Delivery<M>> {
        if let Some(shelf) = self.inbox.shelf(topic) {
            // Before the shelf is empty: see `Inbox::is_taken`.
            self.meter.held.add(1);
            shelf.take_all(&mut self.ahead);
        }
        // With retained ones, nothing is taken from a shelf.
        self.meter.held.set(self.ahead.len() as u64);
        self.deliver_ahead()
    }

    #[cold]
    #[inline(never)]
    fn deliver_ahead(&mut self) -> Option<Delivery<M>> {
        let envelope = self.ahead.pop_front()?;
        if self.replays == 0 {
            self.meter.held.set(self.ahead.len() as u64);
            return Some(self.deliver(envelope));
        }
        self.replays -= 1;
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
            self.meter.told.add(envelope.lost_before);
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

impl<M: Message> Drop for Consumer<M> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        let mut panics = Panics::default();
        let ahead = std::mem::take(&mut self.ahead).into_iter();
        for (at, envelope) in ahead.enumerate() {
            if at < self.replays {
                panics.catch(|| drop(envelope));
            } else {
                self.inbox.discard_all([envelope].into_iter(), &mut panics);
            }
        }
        let clock = self.core.clock;
        let ns = |ticks| clock.ns(ticks);
        self.inbox.leave(&self.meter, clock.ticks(), ns);
        let inbox = &self.inbox;
        let each = |item| inbox.discard_item(item, &mut panics);
        if self.receiver.leave_with(each) {
            self.core.remove(inbox);
        } else {
            self.core.stop_if_empty();
        }
        panics.resume();
    }
}

shown!([M: Message] Consumer<M>, "Consumer", this,
    "inbox": this.inbox.id, "topics": this.inbox.topics, "service": this.service());
