//! The outcome of a message over all inboxes.

use super::error::{PublishError, Reason};
use super::inbox::{Envelope, Item};
use super::link::{Link, Outcome, Patience};
use super::registry::Core;
use super::topic::{Message, Policy, TopicId};
use crate::ring::PushError;
use crate::wait::Panics;

/// Returns how long to wait in this topic.
pub(super) fn link_patience<M: Message>(topic: TopicId, patience: Patience) -> Patience {
    match M::TOPICS[topic.index()].policy {
        Policy::Block => patience,
        _ => Patience::None,
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
        patience: Patience,
    ) {
        match self.panics.catch(|| envelope.clone()) {
            Some(copy) => self.send(link, copy, key, patience),
            None => link.miss(envelope),
        }
    }

    pub(super) fn send(
        &mut self,
        link: &mut Link<M>,
        mut envelope: Envelope<M>,
        key: u64,
        patience: Patience,
    ) {
        let topic = envelope.topic;
        match M::TOPICS[topic.index()].policy {
            Policy::Block | Policy::Reject => {
                envelope.lost_before = link.lost[topic.index()];
                let pushed = link.push_either(envelope);
                self.add(link, patience, pushed);
            }
            Policy::DropOldest { .. } | Policy::Conflate { .. } => {
                let outcome = link.shelve(key, envelope, &mut self.panics);
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
