//! A publisher's way to one inbox, and what becomes of a message in all of them.

use std::sync::Arc as Shared;
use std::time::Instant;

use super::PublisherId;
use super::inbox::{Envelope, Inbox, Item, Sender};
use super::ledger::Ledger;
use super::priority::Priority;
use super::publisher::{PublishError, Reason};
use super::registry::{Core, Entry};
use super::topic::{Message, Policy, TopicId, Topics};
use crate::channel::SendTimeoutError;
use crate::ring::PushError;
use crate::ring::sync::{Arc, fault, yield_now};
use crate::wait::Panics;

/// How long to wait for room in topics whose policy is to block.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    None,
    Until(Instant),
    Endless,
}

/// A publisher's way to an inbox.
pub(super) struct Link<M> {
    pub(super) sender: Sender<M>,
    pub(super) ledger: Shared<Ledger>,
    pub(super) limits: [u64; Priority::COUNT],
    pub(super) inbox: Arc<Inbox<M>>,
    /// By what shelves know the publisher.
    pub(super) link: u32,
    /// By topic: what the inbox lost since the last message that it took.
    pub(super) lost: [u64; Topics::COUNT_MAX],
}

/// What an inbox did with a message: took it (`true`: and nobody will look), or gave it back.
pub(super) type Outcome<M> = Result<bool, (Option<Reason>, M)>;

impl<M: Message> Link<M> {
    /// To a new inbox, by a publisher whose next sequences are given by topic.
    pub(super) fn new(
        entry: Entry<M>,
        publisher: PublisherId,
        name: &Shared<str>,
        next: impl Fn(usize) -> u64,
    ) -> Self {
        let Entry { inbox, sender } = entry;
        let (ledger, link) = inbox.join(publisher, name, next);
        Self {
            sender,
            ledger,
            limits: inbox.limits,
            inbox,
            link,
            lost: [0; Topics::COUNT_MAX],
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, envelope: Envelope<M>) -> Result<bool, PushError<Item<M>>> {
        let priority = envelope.priority.index();
        let topic = envelope.topic.index() % Topics::COUNT_MAX;
        let lost = envelope.lost_before;
        let own = &self.ledger.own;
        own.issued[priority].add(1);
        let limit = self.limits[priority];
        match self.sender.try_send_within(Item::Message(envelope), limit) {
            Ok(is_late) => {
                own.admitted[priority].add(1);
                if lost > 0 {
                    self.lost[topic] = 0;
                }
                Ok(is_late)
            }
            Err(error) => Err(error),
        }
    }

    /// What becomes of a message that did not fit.
    #[cold]
    fn settle(&mut self, error: PushError<Item<M>>, patience: Patience) -> Outcome<M> {
        let (envelope, is_full) = match error {
            PushError::Full(Item::Message(envelope)) => (envelope, true),
            PushError::Closed(Item::Message(envelope)) => (envelope, false),
            _ => unreachable!("tokens are not published"),
        };
        let (topic, priority) = (envelope.topic.index(), envelope.priority.index());
        let own = &self.ledger.own;
        if !is_full {
            own.issued[priority].add(u64::MAX);
            return Err((None, envelope.message));
        }
        let deadline = match patience {
            Patience::Until(deadline) => Some(deadline),
            Patience::Endless => None,
            Patience::None => {
                own.refused[priority].add(1);
                self.lost[topic] += u64::from(!fault::is("loss_untold"));
                return Err((Some(Reason::Refused), envelope.message));
            }
        };
        let limit = self.limits[priority];
        let item = Item::Message(envelope);
        let (item, is_late) = match self.sender.send_within(item, limit, deadline) {
            Ok(is_late) => {
                own.admitted[priority].add(1);
                self.lost[topic] = 0;
                return Ok(is_late);
            }
            Err(error) => {
                let is_late = matches!(error, SendTimeoutError::Timeout(_));
                (error.into_inner(), is_late)
            }
        };
        let Item::Message(Envelope { message, .. }) = item else {
            unreachable!("it was a message");
        };
        if !is_late {
            own.issued[priority].add(u64::MAX);
            return Err((None, message));
        }
        own.timed_out[priority].add(1);
        self.lost[topic] += 1;
        Err((Some(Reason::TimedOut), message))
    }

    /// Puts a message on its topic's shelf.
    fn shelve(&mut self, envelope: Envelope<M>, panics: &mut Panics) -> Outcome<M> {
        let (topic, priority) = (envelope.topic, envelope.priority.index());
        let Some(shelf) = self.inbox.shelf(topic) else {
            unreachable!("an inbox has a shelf for each topic with such a policy");
        };
        if self.sender.is_closed() {
            return Err((None, envelope.message));
        }
        let own = &self.ledger.own;
        own.issued[priority].add(1);
        own.admitted[priority].add(1);
        let put = shelf.put(self.link, envelope.message.key(), envelope);
        panics.catch(|| drop(put.evicted));
        if !put.needs_token {
            return Ok(false);
        }
        loop {
            let token = Item::Token(topic);
            match self.sender.try_send_within(token, self.inbox.places) {
                Ok(is_late) => return Ok(is_late),
                // A consumer is just taking an element out of that place.
                Err(PushError::Full(_)) => yield_now(),
                Err(_) => {
                    // Closed meanwhile: nobody will take what is there.
                    self.inbox.clear(topic, panics);
                    return Ok(false);
                }
            }
        }
    }
}

/// How long to wait in this topic.
pub(super) fn link_patience<M: Message>(topic: TopicId, patience: Patience) -> Patience {
    match M::TOPICS[topic.index()].policy {
        Policy::Block => patience,
        _ => Patience::None,
    }
}

/// What became of one message in all inboxes.
pub(super) struct Sum<M> {
    admitted: usize,
    reason: Option<Reason>,
    back: Option<M>,
    panics: Panics,
}

impl<M> Default for Sum<M> {
    fn default() -> Self {
        Self {
            admitted: 0,
            reason: None,
            back: None,
            panics: Panics::default(),
        }
    }
}

impl<M: Message> Sum<M> {
    pub(super) fn send(
        &mut self,
        link: &mut Link<M>,
        mut envelope: Envelope<M>,
        patience: Patience,
    ) {
        let topic = envelope.topic;
        match M::TOPICS[topic.index()].policy {
            Policy::Block | Policy::Reject => {
                envelope.lost_before = link.lost[topic.index()];
                let pushed = link.push(envelope);
                self.add(link, patience, pushed);
            }
            Policy::DropOldest { .. } | Policy::Conflate { .. } => {
                let outcome = link.shelve(envelope, &mut self.panics);
                self.note(link, outcome);
            }
        }
    }

    pub(super) fn add(
        &mut self,
        link: &mut Link<M>,
        patience: Patience,
        pushed: Result<bool, PushError<Item<M>>>,
    ) {
        let outcome = match pushed {
            Ok(is_late) => Ok(is_late),
            Err(error) => link.settle(error, patience),
        };
        self.note(link, outcome);
    }

    fn note(&mut self, link: &mut Link<M>, outcome: Outcome<M>) {
        match outcome {
            Ok(is_late) => {
                self.admitted += 1;
                if is_late {
                    self.panics
                        .catch(|| link.inbox.discard_left(&mut link.sender));
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
            // Only inboxes whose consumers have just gone did not take it.
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
