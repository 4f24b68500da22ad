//! Publishing.
//!
//! The fast path is that of a topic with one inbox, which is a ring and has not changed: a load of
//! the bus's word, the sequence of the topic, two counts and a push. All else is in one function
//! behind that.

use std::sync::Arc as Shared;
use std::time::{Duration, Instant};

use super::PublisherId;
use super::builder::BuildError;
use super::error::{PublishError, Reason};
use super::handle::Handle;
use super::inbox::{Envelope, Item};
use super::link::{Link, Patience};
use super::outcome::{Sum, link_patience};
use super::priority::Priority;
use super::registry::{Core, Entry, Seen};
use super::topic::{Message, Policy, TopicId, Topics};
use crate::ring::sync::Arc;
use crate::ring::{PushError, UsedByOneThreadAtATime};
use crate::state::{Lifecycle, WaitError};
use crate::wait::Panics;

/// Publishes messages; see the [module](super). It can move to another thread, and each thread has
/// one of its own.
pub struct Publisher<M: Message> {
    _one_thread: UsedByOneThreadAtATime,
    pub(super) seen: Seen,
    pub(super) core: Arc<Core<M>>,
    pub(super) id: PublisherId,
    pub(super) links: Vec<Link<M>>,
    /// By topic.
    pub(super) routes: [Route; Topics::COUNT_MAX],
    name: Shared<str>,
    /// Keeps the bus from draining.
    _handle: Arc<Handle<M>>,
}

/// The state that a publisher keeps for a topic.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) sequence: u64,
    /// The one link that wants the topic, if the fast path will do.
    sole: u32,
    priority: Priority,
}

/// No link.
const NONE: u32 = u32::MAX;

impl<M: Message> Publisher<M> {
    pub(super) fn new(handle: Arc<Handle<M>>, name: &str) -> Result<Self, BuildError> {
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

    /// Returns the number of this publisher, as deliveries name it.
    pub fn id(&self) -> PublisherId {
        self.id
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sequence of the next message of a topic: how many were published so far, those
    /// that were lost included.
    pub fn next_sequence(&self, topic: TopicId) -> u64 {
        self.routes[topic.index()].sequence
    }

    /// Publishes a message with the priority of its topic, and returns how many inboxes took it.
    ///
    /// In topics that block it waits while the bus is paused, and while an inbox has no room for
    /// that priority. With one inbox, and no consumer asleep, it costs some 15 ns; if a consumer
    /// sleeps, the wake-up (some 2 µs) is this thread's to pay. It allocates nothing, but when
    /// inboxes were opened or have gone.
    ///
    /// # Errors
    /// [`PublishError`] gives the message back if an inbox has no room and the policy is to reject,
    /// and if the bus does not run.
    ///
    /// # Panics
    /// If [`Message::topic`] is beyond [`Message::TOPICS`]; if [`Message::key`] or the copy to be
    /// retained panics, and then nothing is published; and if a copy for one of several inboxes
    /// panics, or the drop of another message that no consumer will receive. Then the message has
    /// been published all the same, and an inbox whose copy failed counts it as refused.
    #[inline]
    pub fn publish(&mut self, message: impl Into<M>) -> Result<usize, PublishError<M>> {
        self.publish_by(message.into(), None, Patience::Endless)
    }

    /// Works as [`publish`](Self::publish), with another priority than the topic's.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn publish_at(
        &mut self,
        priority: Priority,
        message: impl Into<M>,
    ) -> Result<usize, PublishError<M>> {
        self.publish_by(message.into(), Some(priority), Patience::Endless)
    }

    /// Works as [`publish`](Self::publish), and never waits: where a topic blocks, it rejects.
    ///
    /// The attempt is a message: it has its sequence number, and its loss is reported to consumers,
    /// also if the message is published again.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn try_publish(&mut self, message: impl Into<M>) -> Result<usize, PublishError<M>> {
        self.publish_by(message.into(), None, Patience::None)
    }

    /// Works as [`try_publish`](Self::try_publish), with another priority than the topic's.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    #[inline]
    pub fn try_publish_at(
        &mut self,
        priority: Priority,
        message: impl Into<M>,
    ) -> Result<usize, PublishError<M>> {
        self.publish_by(message.into(), Some(priority), Patience::None)
    }

    /// Works as [`publish`](Self::publish), and waits no longer than `timeout` where a topic
    /// blocks, for all inboxes together.
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
        let patience = deadline.map_or(Patience::Endless, Patience::Until);
        self.publish_by(message.into(), None, patience)
    }

    #[inline(always)]
    pub(super) fn publish_by(
        &mut self,
        message: M,
        priority: Option<Priority>,
        patience: Patience,
    ) -> Result<usize, PublishError<M>> {
        let topic = message.topic();
        let route = &mut self.routes[topic.index() % Topics::COUNT_MAX];
        let is_current = self.core.seen() == self.seen;
        let Some(link) = self
            .links
            .get_mut(route.sole as usize)
            .filter(|_| is_current)
        else {
            return self.publish_slow(message, topic, priority, patience);
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
            Err(error) => self.unpublished(topic, error, patience),
        }
    }

    /// Ends a publication by the fast path that did not succeed.
    #[cold]
    #[inline(never)]
    fn unpublished(
        &mut self,
        topic: TopicId,
        error: PushError<Item<M>>,
        patience: Patience,
    ) -> Result<usize, PublishError<M>> {
        let link = &mut self.links[self.routes[topic.index()].sole as usize];
        let mut sum = Sum::default();
        sum.add(link, link_patience::<M>(topic, patience), Err(error));
        sum.outcome(&self.core)
    }

    /// To any number of inboxes, of any kind, and when something has changed.
    #[inline(never)]
    fn publish_slow(
        &mut self,
        message: M,
        topic: TopicId,
        priority: Option<Priority>,
        patience: Patience,
    ) -> Result<usize, PublishError<M>> {
        let info = &M::TOPICS[topic.index()];
        let patience = link_patience::<M>(topic, patience);
        let mut sum = Sum::default();
        if let Some(reason) = self.held_back(patience, &mut sum.panics) {
            sum.panics.resume();
            return Err(PublishError {
                message,
                reason,
                admitted: 0,
            });
        }
        // Asked before the message has a number: it may panic.
        let key = match info.policy {
            Policy::Conflate { .. } => message.key(),
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
            let (old, links) = core.retain(copy, || self.look());
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
            sum.send_copy(link, &envelope, key, patience);
        }
        sum.send(&mut last[0], envelope, key, patience);
        sum.outcome(&self.core)
    }

    /// Learns what has changed, and waits while the bus is paused, as far as `patience` goes;
    /// gives why nothing is published.
    fn held_back(&mut self, patience: Patience, panics: &mut Panics) -> Option<Reason> {
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
            let (state, wanted) = (&self.core.state, Lifecycle::SETTLED);
            let waited = match patience {
                Patience::None => return Some(Reason::Paused),
                Patience::Until(deadline) => state.wait_for_until(wanted, deadline),
                Patience::Endless => state.wait_for(wanted).map_err(WaitError::Unreachable),
            };
            if let Err(WaitError::TimedOut { .. }) = waited {
                return Some(Reason::Paused);
            }
        }
    }

    /// Learns which inboxes there are.
    pub(super) fn refresh(&mut self) {
        // The list that is dropped here may drop messages.
        drop(self.look());
    }

    /// Works as [`refresh`](Self::refresh); gives the links that are no longer needed.
    pub(super) fn look(&mut self) -> Vec<Link<M>> {
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
            let is_plain = matches!(info.policy, Policy::Block | Policy::Reject);
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
