//! The publishing end of a bus, for threads and tasks.
//!
//! The fast path publishes to the one inbox of a topic, a ring, while the list of inboxes is
//! unchanged: it loads the bus's word, advances the sequence of the topic and two counts, and
//! pushes. One function, the slow path, handles every other case.
//!
//! *In tasks* all inboxes get a message in one poll, or none does. The task waits until there is
//! room everywhere. Then it claims a slot in each ring, and only with all of them takes a sequence
//! number and sends. If another publisher claims the last slot of a ring first, the task releases
//! its own slots at once and waits again.

use std::sync::Arc as Shared;
use std::time::{Duration, Instant};

use super::PublisherId;
use super::inbox::BusError;
use super::ledger::Ledger;
use super::link::{Link, PublishError, Reason, Sum, WaitLimit, link_wait_limit};
use super::priority::Priority;
use super::registry::{Core, Entry, Handle, Retained, Seen};
use super::topic::{Message, TopicId, TopicOverflow, Topics};
use super::topic_buffer::{Envelope, Item};
use crate::channel::ReservedSlot;
use crate::ring::sync::{Arc, yield_now};
use crate::ring::{PushError, UsedByOneThreadAtATime};
use crate::state::{Lifecycle, WaitError};
use crate::wait::Panics;

/// Publishes messages; see the [module](super). It can move to another thread, and is neither
/// `Sync` nor `Clone`: get one for each thread from [`Bus::publisher`](super::Bus::publisher).
pub struct Publisher<M: Message> {
    _one_thread: UsedByOneThreadAtATime,
    seen: Seen,
    pub(super) core: Arc<Core<M>>,
    pub(super) id: PublisherId,
    links: Vec<Link<M>>,
    /// By topic.
    routes: [Route; Topics::COUNT_MAX],
    name: Shared<str>,
    /// Keeps the bus from draining.
    _handle: Arc<Handle<M>>,
}

/// The state that a publisher keeps for a topic.
#[derive(Clone, Copy)]
struct Route {
    pub(super) sequence: u64,
    /// The one link that wants the topic, if the fast path will do.
    sole: u32,
    priority: Priority,
}

/// No link.
const NONE: u32 = u32::MAX;

impl<M: Message> Publisher<M> {
    pub(super) fn new(handle: Arc<Handle<M>>, name: &str) -> Result<Self, BusError> {
        let core = Arc::clone(&handle.0);
        let mut routes = [Route {
            sequence: 0,
            sole: NONE,
            priority: Priority::default(),
        }; Topics::COUNT_MAX];
        for (route, info) in routes.iter_mut().zip(M::TOPICS) {
            route.priority = info.priority;
        }
        let mut publisher = Self {
            seen: core.seen(),
            id: core.publisher()?,
            core,
            links: Vec::new(),
            routes,
            name: name.into(),
            _handle: handle,
            _one_thread: UsedByOneThreadAtATime,
        };
        publisher.refresh();
        Ok(publisher)
    }

    /// Returns the id of this publisher, which deliveries have.
    pub fn id(&self) -> PublisherId {
        self.id
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sequence of the next message of a topic: the number published so far, including
    /// those that were lost.
    pub fn next_sequence(&self, topic: TopicId) -> u64 {
        self.routes[topic.index()].sequence
    }

    /// Publishes a message with the priority of its topic, and returns the number of inboxes that
    /// admitted it.
    ///
    /// In topics that block, which is the default, it blocks the thread while the bus is paused,
    /// and while an inbox has no room for that priority; in a task use
    /// [`publish_async`](Self::publish_async). With one inbox, and no consumer asleep, it costs
    /// some 15 ns; if a consumer sleeps, this thread pays for the wake-up (some 2 µs). It allocates
    /// nothing, except after inboxes were opened or closed.
    ///
    /// # Errors
    /// [`PublishError`] returns the message if an inbox has no room and the policy is to reject,
    /// and if the bus does not run.
    ///
    /// # Panics
    /// - If [`Message::topic`] is beyond [`Message::TOPICS`], or [`Message::key`] or the clone to
    ///   be retained panics: nothing was published.
    /// - If a clone for one of several inboxes panics, or the drop of another message that no
    ///   consumer will receive: the message has been published to the other inboxes, and one whose
    ///   clone failed counts it as refused.
    #[inline]
    pub fn publish(&mut self, message: impl Into<M>) -> Result<usize, PublishError<M>> {
        self.publish_by(message.into(), None, WaitLimit::Endless)
    }

    /// Works as [`publish`](Self::publish), with another priority than the topic's.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn publish_with_priority(
        &mut self,
        priority: Priority,
        message: impl Into<M>,
    ) -> Result<usize, PublishError<M>> {
        self.publish_by(message.into(), Some(priority), WaitLimit::Endless)
    }

    /// Works as [`publish`](Self::publish), but never waits: in a topic that blocks, it fails as in
    /// one that rejects.
    ///
    /// A failed attempt counts as a message that was lost: it has a sequence number, and its loss
    /// is reported to consumers, also if the message is published again. Not so if the reason is
    /// [`Reason::Paused`] or [`Reason::Closed`]: then no loss is counted.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn try_publish(&mut self, message: impl Into<M>) -> Result<usize, PublishError<M>> {
        self.publish_by(message.into(), None, WaitLimit::None)
    }

    /// Works as [`try_publish`](Self::try_publish), with another priority than the topic's.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn try_publish_with_priority(
        &mut self,
        priority: Priority,
        message: impl Into<M>,
    ) -> Result<usize, PublishError<M>> {
        self.publish_by(message.into(), Some(priority), WaitLimit::None)
    }

    /// Works as [`publish`](Self::publish), but waits no longer than `timeout` where a topic
    /// blocks, for all inboxes together. A timeout beyond the range of the clock, such as
    /// [`Duration::MAX`], is no limit.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), and [`Reason::TimedOut`].
    pub fn publish_timeout(
        &mut self,
        message: impl Into<M>,
        timeout: Duration,
    ) -> Result<usize, PublishError<M>> {
        // Beyond what the clock can say: for ever.
        let deadline = Instant::now().checked_add(timeout);
        let wait_limit = deadline.map_or(WaitLimit::Endless, WaitLimit::Until);
        self.publish_by(message.into(), None, wait_limit)
    }

    #[inline(always)]
    fn publish_by(
        &mut self,
        message: M,
        priority: Option<Priority>,
        wait_limit: WaitLimit,
    ) -> Result<usize, PublishError<M>> {
        let topic = message.topic();
        let route = &mut self.routes[topic.index() % Topics::COUNT_MAX];
        let is_current = self.core.seen() == self.seen;
        let Some(link) = self
            .links
            .get_mut(route.sole as usize)
            .filter(|_| is_current)
        else {
            return self.publish_slow(message, topic, priority, wait_limit);
        };
        let sequence = route.sequence;
        route.sequence = sequence + 1;
        let envelope = Envelope {
            message,
            sequence,
            lost_before: link.lost[topic.index() % Topics::COUNT_MAX],
            publisher: self.id,
            topic,
            priority: priority.unwrap_or(route.priority),
        };
        match link.push(envelope) {
            Ok(false) => Ok(1),
            Ok(true) => {
                link.discard_left();
                Ok(1)
            }
            Err(error) => self.unpublished(topic, error, wait_limit),
        }
    }

    /// Ends a publication by the fast path that did not succeed.
    #[cold]
    #[inline(never)]
    fn unpublished(
        &mut self,
        topic: TopicId,
        error: PushError<Item<M>>,
        wait_limit: WaitLimit,
    ) -> Result<usize, PublishError<M>> {
        let link = &mut self.links[self.routes[topic.index()].sole as usize];
        let mut sum = Sum::default();
        sum.add(link, link_wait_limit::<M>(topic, wait_limit), Err(error));
        sum.outcome(&self.core)
    }

    /// To any number of inboxes, of any kind, and when something has changed.
    #[inline(never)]
    fn publish_slow(
        &mut self,
        message: M,
        topic: TopicId,
        priority: Option<Priority>,
        wait_limit: WaitLimit,
    ) -> Result<usize, PublishError<M>> {
        let info = &M::TOPICS[topic.index()];
        let wait_limit = link_wait_limit::<M>(topic, wait_limit);
        let mut sum = Sum::default();
        if let Some(reason) = self.held_back(wait_limit, &mut sum.panics) {
            sum.panics.resume();
            return Err(PublishError {
                message,
                reason,
                admitted: 0,
            });
        }
        // Asked before the message has a number: it may panic.
        let key = match info.overflow {
            TopicOverflow::Conflate { .. } => message.key(),
            _ => 0,
        };
        let envelope = Envelope {
            message,
            sequence: self.routes[topic.index()].sequence,
            lost_before: 0,
            publisher: self.id,
            topic,
            priority: priority.unwrap_or(info.priority),
        };
        if info.is_retained {
            let (copy, core) = (envelope.clone(), Arc::clone(&self.core));
            let (old, links) = core.retain(copy, || self.refresh_links());
            sum.panics.catch(|| drop(old));
            sum.panics.catch(|| drop(links));
        }
        self.routes[topic.index()].sequence += 1;
        let wants = |link: &Link<M>| link.inbox.topics.contains(topic);
        let Some(last) = self.links.iter().rposition(wants) else {
            return sum.outcome(&self.core);
        };
        let (before, last) = self.links[..=last].split_at_mut(last);
        for link in before.iter_mut().filter(|link| wants(link)) {
            sum.send_copy(link, &envelope, key, wait_limit);
        }
        sum.send(&mut last[0], envelope, key, wait_limit);
        sum.outcome(&self.core)
    }

    /// Learns what has changed, and waits while the bus is paused, as far as `wait_limit` goes;
    /// gives why nothing is published.
    fn held_back(&mut self, wait_limit: WaitLimit, panics: &mut Panics) -> Option<Reason> {
        loop {
            if self.core.seen() != self.seen {
                panics.catch(|| self.refresh());
            }
            match self.seen.state() {
                Lifecycle::Running => return None,
                Lifecycle::Draining | Lifecycle::Stopped => return Some(Reason::Closed),
                Lifecycle::Starting | Lifecycle::Paused => {}
            }
            // It gets there from wherever it is.
            let (state, wanted) = (&self.core.state, Lifecycle::RUNNING_OR_ENDING);
            let waited = match wait_limit {
                WaitLimit::None => return Some(Reason::Paused),
                WaitLimit::Until(deadline) => state.wait_for_deadline(wanted, deadline),
                WaitLimit::Endless => state.wait_for(wanted).map_err(WaitError::Unreachable),
            };
            if let Err(WaitError::TimedOut { .. }) = waited {
                return Some(Reason::Paused);
            }
        }
    }

    /// Learns which inboxes there are.
    fn refresh(&mut self) {
        // The list that is dropped here may drop messages.
        drop(self.refresh_links());
    }

    /// Works as [`refresh`](Self::refresh); gives the links that are no longer needed.
    fn refresh_links(&mut self) -> Vec<Link<M>> {
        let core = Arc::clone(&self.core);
        let (mut links, mut old) = (Vec::new(), Vec::new());
        self.seen = core.read(|entries| {
            for link in self.links.drain(..) {
                let is_same = |entry: &Entry<M>| Arc::ptr_eq(&entry.inbox, &link.inbox);
                let list = if entries.iter().any(is_same) {
                    &mut links
                } else {
                    &mut old
                };
                list.push(link);
            }
            for entry in entries {
                let is_same = |link: &Link<M>| Arc::ptr_eq(&entry.inbox, &link.inbox);
                if !links.iter().any(is_same) {
                    let next = |topic: usize| self.routes[topic].sequence;
                    links.push(Link::new(entry.copied(), self.id, &self.name, next));
                }
            }
        });
        self.links = links;
        self.choose();
        old
    }

    /// Finds the topics for which the fast path will do.
    fn choose(&mut self) {
        let is_running = self.seen.state() == Lifecycle::Running;
        for (index, info) in M::TOPICS.iter().enumerate() {
            let wants = |link: &Link<M>| link.inbox.topics.contains(TopicId::new(index));
            let first = self.links.iter().position(wants);
            let is_sole = first == self.links.iter().rposition(wants);
            let is_plain = matches!(info.overflow, TopicOverflow::Block | TopicOverflow::Reject);
            let is_fast = is_sole && is_plain && is_running && !info.is_retained;
            let overtakes = |link: usize| self.links[link].inbox.is_express(info.priority.index());
            self.routes[index].sole = match first {
                Some(link) if is_fast && !overtakes(link) => link as u32,
                _ => NONE,
            };
        }
    }
}

shown!([M: Message] Publisher<M>, "Publisher", this,
    "id": this.id, "name": this.name, "inboxes": this.links.len());

/// The outcome of an attempt to publish a message to all inboxes.
enum Attempt {
    /// It was sent to this number of inboxes.
    Sent(usize),
    /// Publishing has ended.
    Closed,
    /// The bus is paused.
    Paused,
    /// This link has no room below the limit.
    Full(usize, u64),
    /// Others were faster, or there are more inboxes now.
    Again,
}

/// A message that is to be published, with its copies.
struct Outgoing<M> {
    /// The original, then a copy for each further inbox. They are kept for the next attempt, since
    /// making and dropping them runs user code.
    messages: Vec<M>,
    /// The copy to be retained.
    kept: Option<M>,
    /// Panics of user code in an attempt, which are resumed when the publication has ended.
    panics: Panics,
}

/// A slot of an inbox that is reserved for a message.
struct Reserved<'p, M> {
    link: usize,
    slot: ReservedSlot<'p, Item<M>>,
    ledger: &'p Shared<Ledger>,
    lost: &'p mut [u64; Topics::COUNT_MAX],
}

impl<M: Message> Publisher<M> {
    /// Works as [`publish`](Self::publish), as a future.
    ///
    /// It waits until every inbox has room; then all of them get the message. Not cancel-safe:
    /// dropping the future before it is ready drops the message unpublished. No inbox got it, and
    /// nothing is counted as lost. If it is kept unpolled, or forgotten, other publishers are woken
    /// all the same. Allocates for messages to several inboxes.
    ///
    /// ```
    /// # use thalweg::bus::{Bus, Message, TopicId, TopicInfo, Topics};
    /// # #[derive(Clone)] struct Job(u32);
    /// # impl Message for Job {
    /// #     const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("job")];
    /// #     fn topic(&self) -> TopicId { TopicId::new(0) }
    /// # }
    /// # futures_executor::block_on(async {
    /// let bus = Bus::<Job>::new()?;
    /// let mut rx = bus.subscribe(Topics::ALL)?;
    /// let mut tx = bus.publisher("dispatcher")?;
    /// tx.publish_async(Job(1)).await?;
    /// assert_eq!(rx.recv_async().await?.message.0, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).expect("there is room");
    /// ```
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    ///
    /// # Panics
    /// As [`publish`](Self::publish); if a clone panics, nothing is published.
    pub async fn publish_async(&mut self, message: impl Into<M>) -> Result<usize, PublishError<M>> {
        self.publish_when_possible(message.into(), None).await
    }

    /// Works as [`publish_async`](Self::publish_async), with another priority than the topic's.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn publish_with_priority_async(
        &mut self,
        priority: Priority,
        message: impl Into<M>,
    ) -> Result<usize, PublishError<M>> {
        self.publish_when_possible(message.into(), Some(priority))
            .await
    }

    async fn publish_when_possible(
        &mut self,
        message: M,
        priority: Option<Priority>,
    ) -> Result<usize, PublishError<M>> {
        let topic = message.topic();
        let info = &M::TOPICS[topic.index()];
        if info.overflow != TopicOverflow::Block {
            return self.publish_by(message, priority, WaitLimit::None);
        }
        let priority = priority.unwrap_or(info.priority);
        let mut parcel = Outgoing {
            messages: vec![message],
            kept: None,
            panics: Panics::default(),
        };
        loop {
            match self.try_everywhere(&mut parcel, topic, priority) {
                Attempt::Sent(inboxes) => return parcel.settle(Ok(inboxes)),
                Attempt::Closed => return parcel.settle(Err(Reason::Closed)),
                Attempt::Paused => {
                    // It gets there from wherever it is.
                    let _ = self
                        .core
                        .state
                        .wait_for_async(Lifecycle::RUNNING_OR_ENDING)
                        .await;
                }
                Attempt::Full(link, limit) => {
                    let link = &mut self.links[link];
                    let is_express = link.inbox.is_express(priority.index());
                    link.sender_of(is_express).room_within(limit).await;
                }
                Attempt::Again => yield_now(),
            }
        }
    }

    /// Publishes to all inboxes, if there is room in each.
    fn try_everywhere(
        &mut self,
        parcel: &mut Outgoing<M>,
        topic: TopicId,
        priority: Priority,
    ) -> Attempt {
        if self.core.seen() != self.seen {
            parcel.panics.catch(|| self.refresh());
        }
        match self.seen.state() {
            Lifecycle::Running => {}
            Lifecycle::Starting | Lifecycle::Paused => return Attempt::Paused,
            Lifecycle::Draining | Lifecycle::Stopped => return Attempt::Closed,
        }
        let mut inboxes = 0;
        for (at, link) in self.links.iter().enumerate() {
            if link.inbox.topics.contains(topic) {
                let limit = link.inbox.limits[priority.index()];
                let express = link.express.as_ref();
                let express = express.filter(|_| link.inbox.is_express(priority.index()));
                if !express.unwrap_or(&link.sender).has_room_within(limit) {
                    return Attempt::Full(at, limit);
                }
                inboxes += 1;
            }
        }
        // Clones first: if one panics, nothing has happened.
        while parcel.messages.len() < inboxes {
            parcel.messages.push(parcel.messages[0].clone());
        }
        if M::TOPICS[topic.index()].is_retained && parcel.kept.is_none() {
            parcel.kept = Some(parcel.messages[0].clone());
        }
        let sent = self.send_everywhere(parcel, topic, priority);
        sent.map_or(Attempt::Again, Attempt::Sent)
    }

    /// Sends a message to each inbox, and retains the one that is to be retained; returns `None` if
    /// an inbox has no free slot.
    fn send_everywhere(
        &mut self,
        parcel: &mut Outgoing<M>,
        topic: TopicId,
        priority: Priority,
    ) -> Option<usize> {
        let core = Arc::clone(&self.core);
        // As in `Core::retain`: a consumer that joins later gets it as retained, one that joined
        // before as sent.
        let mut retained = parcel.kept.is_some().then(|| core.retained());
        let old = retained.as_ref().map(|_| self.refresh_links());
        let (publisher, sequence) = (self.id, self.routes[topic.index()].sequence);
        let envelope = |message, lost_before| Envelope {
            message,
            sequence,
            lost_before,
            publisher,
            topic,
            priority,
        };
        let (reserved, has_all) = reserve_slots(&mut self.links, topic, priority);
        let is_ended = reserved.is_empty() && core.is_over();
        let is_done = has_all && reserved.len() <= parcel.messages.len() && !is_ended;
        let mut before = None;
        if is_done {
            self.routes[topic.index()].sequence += 1;
        }
        if is_done && let (Some(all), Some(message)) = (&mut retained, parcel.kept.take()) {
            let new = Shared::new(Retained::new(envelope(message, 0)));
            before = all[topic.index()].replace(new);
        }
        drop(retained);
        let (count, mut late) = (reserved.len(), Vec::new());
        let mut outgoing = parcel.messages.drain(..if is_done { count } else { 0 });
        for Reserved {
            link,
            slot,
            ledger,
            lost,
        } in reserved
        {
            let is_late = match outgoing.next() {
                Some(message) => {
                    let lost = std::mem::take(&mut lost[topic.index()]);
                    ledger.own.issued[priority.index()].add(1);
                    ledger.own.admitted[priority.index()].add(1);
                    slot.send(Item::Message(envelope(message, lost)))
                }
                None => slot.give_up(),
            };
            if is_late {
                late.push(link);
            }
        }
        drop(outgoing);
        // User code runs when no slot is held any more: it may panic, publish or wait.
        parcel.panics.catch(|| drop(old));
        parcel.panics.catch(|| drop(before));
        for link in late {
            let link = &mut self.links[link];
            parcel.panics.catch(|| link.discard_left());
        }
        is_done.then_some(count)
    }
}

impl<M: Message> Outgoing<M> {
    /// Ends the publication. It returns the original with an error, or drops the messages that are
    /// left, which were for an inbox that was just closed, or for none.
    fn settle(mut self, outcome: Result<usize, Reason>) -> Result<usize, PublishError<M>> {
        let outcome = outcome.map_err(|reason| PublishError {
            message: self.messages.swap_remove(0),
            reason,
            admitted: 0,
        });
        for left in self.messages.into_iter().chain(self.kept) {
            self.panics.catch(|| drop(left));
        }
        self.panics.resume();
        outcome
    }
}

/// Reserves a slot below the limit in each open inbox that wants the topic; returns the slots, and
/// whether every inbox had one.
fn reserve_slots<'p, M: Message>(
    links: &'p mut [Link<M>],
    topic: TopicId,
    priority: Priority,
) -> (Vec<Reserved<'p, M>>, bool) {
    let mut reserved = Vec::new();
    for (at, link) in links.iter_mut().enumerate() {
        if !link.inbox.topics.contains(topic) {
            continue;
        }
        let sender = match &mut link.express {
            Some(sender) if link.inbox.is_express(priority.index()) => sender,
            _ => &mut link.sender,
        };
        match sender.reserve_within(link.inbox.limits[priority.index()]) {
            Ok(slot) => reserved.push(Reserved {
                link: at,
                slot,
                ledger: &link.ledger,
                lost: &mut link.lost,
            }),
            Err(PushError::Full(())) => return (reserved, false),
            // Its consumers were just dropped.
            Err(PushError::Closed(())) => {}
        }
    }
    (reserved, true)
}
