//! The link of a publisher to one inbox, the outcome of a message over all links, and the error of
//! a message that was not published.

use std::sync::Arc as Shared;
use std::time::Instant;

use super::PublisherId;
use super::inbox::{Inbox, Lanes, Sender};
use super::ledger::{Ledger, Own};
use super::priority::Priority;
use super::registry::{Core, Entry};
use super::topic::{Message, TopicId, TopicOverflow, Topics};
use super::topic_buffer::{Envelope, Item};
use crate::channel::SendTimeoutError;
use crate::ring::PushError;
use crate::ring::sync::{Arc, fault, is_model_over, yield_now};
use crate::wait::Panics;

/// The reason why a message was not published to every inbox that wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// An inbox holds as many messages as the message's priority allows, and the publication does
    /// not wait.
    Refused,
    /// An inbox had no free slot in time.
    TimedOut,
    /// The bus is paused, or still was when the timeout expired. The message was not counted.
    Paused,
    /// The bus was closed or stopped.
    Closed,
}

/// The error that returns a message which was not published to every inbox that wants it.
#[non_exhaustive]
pub struct PublishError<M> {
    /// The message.
    pub message: M,
    /// The reason; if several inboxes did not admit it, that of the first.
    pub reason: Reason,
    /// The number of inboxes that admitted it all the same. Publishing it again publishes another
    /// message, which these get as well.
    pub admitted: usize,
}

errors!(Reason {
    Self::Refused => "there is no room for a message of this priority";
    Self::TimedOut => "no room in time";
    Self::Paused => "the bus is paused";
    Self::Closed => "the bus was closed or stopped";
});

// Messages need not be `Debug`.
impl<M> std::fmt::Debug for PublishError<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublishError")
            .field("reason", &self.reason)
            .field("admitted", &self.admitted)
            .finish_non_exhaustive()
    }
}

impl<M> std::fmt::Display for PublishError<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reason.fmt(f)
    }
}

impl<M> std::error::Error for PublishError<M> {}

/// The limit of the wait for a free slot, in topics whose policy is to block.
#[derive(Clone, Copy)]
pub(super) enum WaitLimit {
    None,
    Until(Instant),
    Endless,
}

/// A publisher's link to an inbox: its senders, counts and gaps.
pub(super) struct Link<M: Message> {
    pub(super) sender: Sender<M>,
    /// The sender of the express lane, if there is one.
    pub(super) express: Option<Sender<M>>,
    pub(super) ledger: Shared<Ledger>,
    /// The limits of the inbox; 0 for priorities of the express lane.
    pub(super) limits: [u64; Priority::COUNT],
    pub(super) inbox: Arc<Inbox<M>>,
    /// The number of the publisher in topic buffers.
    link: u32,
    /// The number of messages admitted to topic buffers: of priorities of the ring, and of the
    /// express lane.
    buffered: Lanes,
    /// For each topic, the number of messages that the inbox lost since the last one that it
    /// admitted.
    pub(super) lost: [u64; Topics::COUNT_MAX],
}

/// The outcome of a push: the message was admitted (`true`: and no consumer will check the inbox
/// any more), or is returned.
type Outcome<M> = Result<bool, (Option<Reason>, M)>;

impl<M: Message> Link<M> {
    /// To a new inbox, by a publisher whose next sequences are given by topic.
    pub(super) fn new(
        entry: Entry<M>,
        publisher: PublisherId,
        name: &Shared<str>,
        next: impl Fn(usize) -> u64,
    ) -> Self {
        let Entry { inbox, sender } = entry;
        let (popped, _) = inbox.positions(sender.positions());
        let (ledger, link) = inbox.join(publisher, name, popped, next);
        Self {
            sender,
            express: inbox.express_sender(),
            ledger,
            limits: inbox.ring_limits,
            inbox,
            link,
            buffered: [0; 2],
            lost: [0; Topics::COUNT_MAX],
        }
    }

    /// Pushes by the fast path.
    #[inline(always)]
    pub(super) fn push(&mut self, envelope: Envelope<M>) -> Result<bool, PushError<Item<M>>> {
        let (own, limits) = (&self.ledger.own, &self.limits);
        push_counted(&mut self.sender, own, limits, &mut self.lost, envelope)
    }

    /// Into the ring to which the priority of the message belongs.
    #[inline]
    fn push_either(&mut self, envelope: Envelope<M>) -> Result<bool, PushError<Item<M>>> {
        match &mut self.express {
            Some(sender) if self.inbox.is_express(envelope.priority.index()) => {
                let (own, limits) = (&self.ledger.own, &self.inbox.limits);
                push_counted(sender, own, limits, &mut self.lost, envelope)
            }
            _ => self.push(envelope),
        }
    }

    /// Returns the sender into the express lane, or into the ring.
    pub(super) fn sender_of(&mut self, is_express: bool) -> &mut Sender<M> {
        match &mut self.express {
            Some(sender) if is_express => sender,
            _ => &mut self.sender,
        }
    }

    /// Discards messages that were admitted and that no consumer received.
    #[cold]
    #[inline(never)]
    pub(super) fn discard_left(&mut self) {
        let senders = [&mut self.sender].into_iter().chain(&mut self.express);
        self.inbox.discard_left(senders);
    }

    /// Handles a message for which no slot was free: waits, or returns it, as the policy says.
    #[cold]
    fn settle(&mut self, error: PushError<Item<M>>, wait_limit: WaitLimit) -> Outcome<M> {
        let (envelope, is_full) = match error {
            PushError::Full(Item::Message(envelope)) => (envelope, true),
            PushError::Closed(Item::Message(envelope)) => (envelope, false),
            _ => unreachable!("tokens are not published"),
        };
        let (topic, priority) = (envelope.topic.index(), envelope.priority.index());
        let is_at_limit = self.limits[priority] == self.inbox.limits[priority];
        let (message, reason) = if !is_full {
            (envelope.message, None)
        } else if is_at_limit && matches!(wait_limit, WaitLimit::None) {
            (envelope.message, Some(Reason::Refused))
        } else {
            match self.push_or_wait(Item::Message(envelope), priority, wait_limit) {
                Ok(is_late) => {
                    self.ledger.own.admitted[priority].add(1);
                    self.lost[topic] = 0;
                    return Ok(is_late);
                }
                Err((Item::Message(envelope), reason)) => (envelope.message, reason),
                Err(_) => unreachable!("it was a message"),
            }
        };
        let own = &self.ledger.own;
        match reason {
            None => own.issued[priority].add(u64::MAX),
            Some(Reason::TimedOut) => own.timed_out[priority].add(1),
            Some(_) => own.refused[priority].add(1),
        }
        self.lost[topic] += u64::from(reason.is_some() && !fault::is("loss_unreported"));
        Err((reason, message))
    }

    /// Pushes into the express lane, or waits for a free slot and pushes.
    fn push_or_wait(
        &mut self,
        mut item: Item<M>,
        priority: usize,
        wait_limit: WaitLimit,
    ) -> Result<bool, (Item<M>, Option<Reason>)> {
        let limit = self.inbox.limits[priority];
        let is_express = self.inbox.is_express(priority);
        if self.limits[priority] < limit {
            match self.sender_of(is_express).try_send_within(item, limit) {
                Ok(is_late) => return Ok(is_late),
                Err(PushError::Full(back)) => item = back,
                Err(PushError::Closed(back)) => return Err((back, None)),
            }
        }
        let deadline = match wait_limit {
            WaitLimit::None => return Err((item, Some(Reason::Refused))),
            WaitLimit::Until(deadline) => Some(deadline),
            WaitLimit::Endless => None,
        };
        let sent = (self.sender_of(is_express)).send_within(item, limit, deadline);
        sent.map_err(|error| {
            let is_late = matches!(error, SendTimeoutError::Timeout(_));
            (error.into_inner(), is_late.then_some(Reason::TimedOut))
        })
    }

    /// Counts a message that could not be copied for this inbox.
    #[cold]
    fn miss(&mut self, envelope: &Envelope<M>) {
        let (topic, priority) = (envelope.topic.index(), envelope.priority.index());
        self.ledger.own.issued[priority].add(1);
        self.ledger.own.refused[priority].add(1);
        // A topic buffer finds gaps by itself.
        if self.inbox.topic_buffer(envelope.topic).is_none() {
            self.lost[topic] += 1;
        }
    }

    /// Puts a message on the buffer of its topic.
    fn push_to_buffer(
        &mut self,
        key: u64,
        envelope: Envelope<M>,
        panics: &mut Panics,
    ) -> Outcome<M> {
        let (topic, priority) = (envelope.topic, envelope.priority.index());
        let Some(topic_buffer) = self.inbox.topic_buffer(topic) else {
            unreachable!("an inbox has a topic_buffer for each topic with such a policy");
        };
        let (is_express, places) = (
            self.inbox.is_express_topic(topic),
            self.inbox.places_of(topic),
        );
        let sender = match &mut self.express {
            Some(sender) if is_express => sender,
            _ => &mut self.sender,
        };
        if sender.is_closed() {
            return Err((None, envelope.message));
        }
        let sequence = envelope.sequence;
        let put = topic_buffer.put(self.link, key, envelope);
        panics.catch(|| drop(put.evicted));
        let pushed = if put.needs_token {
            push_token(sender, topic, places)
        } else {
            (!sender.is_closed()).then_some(false)
        };
        if pushed.is_none()
            && !fault::is("left_behind")
            && let Some(message) = topic_buffer.take_back(self.link, sequence, put.needs_token)
        {
            return Err((None, message));
        }
        let own = &self.ledger.own;
        own.issued[priority].add(1);
        own.admitted[priority].add(1);
        self.buffered[usize::from(self.inbox.is_express(priority))] += 1;
        Ok(pushed.unwrap_or(false))
    }
}

/// Pushes a message below the limit of its priority, and counts it.
#[inline(always)]
fn push_counted<M>(
    sender: &mut Sender<M>,
    own: &Own,
    limits: &[u64; Priority::COUNT],
    lost: &mut [u64; Topics::COUNT_MAX],
    envelope: Envelope<M>,
) -> Result<bool, PushError<Item<M>>> {
    let priority = envelope.priority.index();
    let topic = envelope.topic.index() % Topics::COUNT_MAX;
    let lost_before = envelope.lost_before;
    own.issued[priority].add(1);
    match sender.try_send_within(Item::Message(envelope), limits[priority]) {
        Ok(is_late) => {
            own.admitted[priority].add(1);
            if lost_before > 0 {
                lost[topic] = 0;
            }
            Ok(is_late)
        }
        Err(error) => Err(error),
    }
}

/// Pushes the token of a topic buffer; `None` if the inbox is closed.
fn push_token<M>(sender: &mut Sender<M>, topic: TopicId, places: u64) -> Option<bool> {
    loop {
        match sender.try_send_within(Item::Token(topic), places) {
            Ok(is_late) => return Some(is_late),
            // A consumer is about to free that slot.
            Err(PushError::Full(_)) => yield_now(),
            Err(_) => return None,
        }
    }
}

impl<M: Message> Drop for Link<M> {
    fn drop(&mut self) {
        if !is_model_over() {
            let has_unreported = self.lost.iter().any(|&lost| lost > 0);
            let (popped, pushed) = self.inbox.positions(self.sender.positions());
            // Nothing of one that got nothing into a ring is there; topic buffers know what they
            // hold.
            let mut sent = [0; 2];
            for (priority, admitted) in self.ledger.own.admitted.iter().enumerate() {
                sent[usize::from(self.inbox.is_express(priority))] += admitted.get();
            }
            let end = |lane: usize| match sent[lane] > self.buffered[lane] {
                true => pushed[lane],
                false => 0,
            };
            let end = [0, 1].map(end);
            self.inbox.part(self.link, has_unreported, popped, end);
        }
    }
}

/// Returns how long to wait in this topic.
pub(super) fn link_wait_limit<M: Message>(topic: TopicId, wait_limit: WaitLimit) -> WaitLimit {
    match M::TOPICS[topic.index()].overflow {
        TopicOverflow::Block => wait_limit,
        _ => WaitLimit::None,
    }
}

/// The outcome of one message over all inboxes.
pub(super) struct Sum<M> {
    /// The first panic of the user's code.
    pub(super) panics: Panics,
    admitted: usize,
    reason: Option<Reason>,
    back: Option<M>,
}

impl<M> Default for Sum<M> {
    fn default() -> Self {
        Self {
            panics: Panics::default(),
            admitted: 0,
            reason: None,
            back: None,
        }
    }
}

impl<M: Message> Sum<M> {
    /// Sends a copy. If that panics, it is lost for this inbox, and others get theirs.
    pub(super) fn send_copy(
        &mut self,
        link: &mut Link<M>,
        envelope: &Envelope<M>,
        key: u64,
        wait_limit: WaitLimit,
    ) {
        match self.panics.catch(|| envelope.clone()) {
            Some(copy) => self.send(link, copy, key, wait_limit),
            None => link.miss(envelope),
        }
    }

    pub(super) fn send(
        &mut self,
        link: &mut Link<M>,
        mut envelope: Envelope<M>,
        key: u64,
        wait_limit: WaitLimit,
    ) {
        let topic = envelope.topic;
        match M::TOPICS[topic.index()].overflow {
            TopicOverflow::Block | TopicOverflow::Reject => {
                envelope.lost_before = link.lost[topic.index()];
                let pushed = link.push_either(envelope);
                self.add(link, wait_limit, pushed);
            }
            TopicOverflow::DropOldest { .. } | TopicOverflow::Conflate { .. } => {
                let outcome = link.push_to_buffer(key, envelope, &mut self.panics);
                self.note(link, outcome);
            }
        }
    }

    pub(super) fn add(
        &mut self,
        link: &mut Link<M>,
        wait_limit: WaitLimit,
        pushed: Result<bool, PushError<Item<M>>>,
    ) {
        let outcome = match pushed {
            Ok(is_late) => Ok(is_late),
            Err(error) => link.settle(error, wait_limit),
        };
        self.note(link, outcome);
    }

    fn note(&mut self, link: &mut Link<M>, outcome: Outcome<M>) {
        match outcome {
            Ok(is_late) => {
                self.admitted += 1;
                if is_late {
                    self.panics.catch(|| link.discard_left());
                }
            }
            Err((reason, message)) => {
                self.reason = self.reason.or(reason);
                let old = self.back.replace(message);
                self.panics.catch(|| drop(old));
            }
        }
    }

    pub(super) fn outcome(self, core: &Core<M>) -> Result<usize, PublishError<M>> {
        self.panics.resume();
        let admitted = self.admitted;
        let Some(message) = self.back else {
            return Ok(admitted);
        };
        let reason = match self.reason {
            None if admitted == 0 && core.is_over() => Reason::Closed,
            // Only inboxes whose consumers were just dropped did not admit it.
            None => return Ok(admitted),
            Some(reason) => reason,
        };
        Err(PublishError {
            message,
            reason,
            admitted,
        })
    }
}
