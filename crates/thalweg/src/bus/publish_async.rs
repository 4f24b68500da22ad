//! Publishing in tasks: all inboxes get a message in one poll, or none does.
//!
//! The task waits until there is room everywhere. Then it takes a place in each ring, and only when
//! it has them all, a sequence number, and sends. A place that another publisher was faster to take
//! sends it back to waiting; those that it has are given up at once.

use super::error::{PublishError, Reason};
use super::inbox::{Envelope, Item};
use super::ledger::Ledger;
use super::link::{Link, Patience};
use super::priority::Priority;
use super::publisher::Publisher;
use super::registry::Retained;
use super::topic::{Message, Policy, TopicId, Topics};
use crate::channel::Place;
use crate::ring::PushError;
use crate::ring::sync::{Arc, yield_now};
use crate::state::Lifecycle;
use crate::wait::Panics;
use std::sync::Arc as Shared;

/// The reason why a message was not published yet.
enum Held {
    /// The bus is paused.
    Paused,
    /// This link has no room below the limit.
    Full(usize, u64),
    /// Others were faster, or there are more inboxes now.
    Again,
}

/// A message that is to be published, with its copies.
struct Parcel<M> {
    /// The original, then copies: as many as there were inboxes. They are kept for the next
    /// attempt, since to drop them is the user's code, as to make them.
    messages: Vec<M>,
    /// To be retained.
    kept: Option<M>,
    /// The panics of user's code that was dropped in an attempt: they are resumed when all is done.
    panics: Panics,
}

/// A place in an inbox, for a message.
struct Taken<'p, M> {
    link: usize,
    place: Place<'p, Item<M>>,
    ledger: &'p Shared<Ledger>,
    lost: &'p mut [u64; Topics::COUNT_MAX],
}

impl<M: Message> Publisher<M> {
    /// Works as [`publish`](Self::publish), as a future.
    ///
    /// Cancel-safe: dropped before it is done, it has published nothing, and nothing is counted as
    /// lost. If it is kept unpolled, or forgotten, other publishers are woken all the same.
    /// Allocates for messages that go to several inboxes.
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
    pub async fn publish_at_async(
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
        if info.policy != Policy::Block {
            return self.publish_by(message, priority, Patience::None);
        }
        let priority = priority.unwrap_or(info.priority);
        let mut parcel = Parcel {
            messages: vec![message],
            kept: None,
            panics: Panics::default(),
        };
        loop {
            match self.try_everywhere(&mut parcel, topic, priority) {
                Ok(outcome) => return parcel.settle(outcome),
                Err(Held::Paused) => {
                    // It gets there from wherever it is.
                    let _ = self.core.state.reached(Lifecycle::SETTLED).await;
                }
                Err(Held::Full(link, limit)) => {
                    let link = &mut self.links[link];
                    let is_express = link.inbox.is_express(priority.index());
                    link.sender_of(is_express).room_within(limit).await;
                }
                Err(Held::Again) => yield_now(),
            }
        }
    }

    /// Publishes to all inboxes, and returns how many or why to none for good; or says why there is
    /// no outcome yet.
    fn try_everywhere(
        &mut self,
        parcel: &mut Parcel<M>,
        topic: TopicId,
        priority: Priority,
    ) -> Result<Result<usize, Reason>, Held> {
        if self.core.seen() != self.seen {
            parcel.panics.catch(|| self.refresh());
        }
        match self.seen.state() {
            Lifecycle::Running => {}
            Lifecycle::Starting | Lifecycle::Paused => return Err(Held::Paused),
            Lifecycle::Draining | Lifecycle::Stopped => return Ok(Err(Reason::Closed)),
        }
        let mut inboxes = 0;
        for (at, link) in self.links.iter().enumerate() {
            if link.inbox.topics.contains(topic) {
                let limit = link.inbox.limits[priority.index()];
                let express = link.express.as_ref();
                let express = express.filter(|_| link.inbox.is_express(priority.index()));
                if !express.unwrap_or(&link.sender).has_room_within(limit) {
                    return Err(Held::Full(at, limit));
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
        sent.map(Ok).ok_or(Held::Again)
    }

    /// Sends the messages to as many inboxes, and retains what is to be retained; `None` if not all
    /// have a place.
    fn send_everywhere(
        &mut self,
        parcel: &mut Parcel<M>,
        topic: TopicId,
        priority: Priority,
    ) -> Option<usize> {
        let core = Arc::clone(&self.core);
        // As in `Core::retain`: a consumer that joins later gets it as retained, one that joined
        // before as sent.
        let mut retained = parcel.kept.is_some().then(|| core.retained());
        let old = retained.as_ref().map(|_| self.look());
        let (publisher, sequence) = (self.id, self.routes[topic.index()].sequence);
        let envelope = |message, lost_before| Envelope {
            message,
            sequence,
            lost_before,
            publisher,
            topic,
            priority,
        };
        let (taken, has_all) = places(&mut self.links, topic, priority);
        let is_ended = taken.is_empty() && core.is_over();
        let is_done = has_all && taken.len() <= parcel.messages.len() && !is_ended;
        let mut before = None;
        if is_done {
            self.routes[topic.index()].sequence += 1;
        }
        if is_done && let (Some(all), Some(message)) = (&mut retained, parcel.kept.take()) {
            let new = Shared::new(Retained::new(envelope(message, 0)));
            before = all[topic.index()].replace(new);
        }
        drop(retained);
        let (count, mut late) = (taken.len(), Vec::new());
        let mut outgoing = parcel.messages.drain(..if is_done { count } else { 0 });
        for Taken {
            link,
            place,
            ledger,
            lost,
        } in taken
        {
            let is_late = match outgoing.next() {
                Some(message) => {
                    let lost = std::mem::take(&mut lost[topic.index()]);
                    ledger.own.issued[priority.index()].add(1);
                    ledger.own.admitted[priority.index()].add(1);
                    place.send(Item::Message(envelope(message, lost)))
                }
                None => place.give_up(),
            };
            if is_late {
                late.push(link);
            }
        }
        drop(outgoing);
        // The user's code runs when no place is held any more: it may panic, publish or wait.
        parcel.panics.catch(|| drop(old));
        parcel.panics.catch(|| drop(before));
        for link in late {
            let link = &mut self.links[link];
            parcel.panics.catch(|| link.discard_left());
        }
        is_done.then_some(count)
    }
}

impl<M: Message> Parcel<M> {
    /// Ends the publication. It drops the message that is left, which was for an inbox that has
    /// just gone or for no inbox, unless the original is given back.
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

/// Returns a place in each inbox that wants a topic and is open, as far as there is room below the
/// limits; and whether there was.
fn places<'p, M: Message>(
    links: &'p mut [Link<M>],
    topic: TopicId,
    priority: Priority,
) -> (Vec<Taken<'p, M>>, bool) {
    let mut taken = Vec::new();
    for (at, link) in links.iter_mut().enumerate() {
        if !link.inbox.topics.contains(topic) {
            continue;
        }
        let sender = match &mut link.express {
            Some(sender) if link.inbox.is_express(priority.index()) => sender,
            _ => &mut link.sender,
        };
        match sender.place_within(link.inbox.limits[priority.index()]) {
            Ok(place) => taken.push(Taken {
                link: at,
                place,
                ledger: &link.ledger,
                lost: &mut link.lost,
            }),
            Err(PushError::Full(())) => return (taken, false),
            // Its consumers have just gone.
            Err(PushError::Closed(())) => {}
        }
    }
    (taken, true)
}
