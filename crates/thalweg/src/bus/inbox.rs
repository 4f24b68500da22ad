//! Inboxes: the messages that wait for one consumer, or one group of them, in a ring, and on a
//! shelf for each topic whose messages take each other's place.
//!
//! The ring is a channel's, so waiting, waking, ends and async receives are those of channels. An
//! element is a message, or the token of a shelf (`shelf.rs`). Publishers push below the limit of
//! the message's priority (`priority.rs`); tokens have room besides, since the ring has a place
//! more for each shelf. An inbox may have a second ring, which consumers empty first
//! (`express.rs`).

use std::collections::VecDeque;
use std::sync::Arc as Shared;

use super::builder::BuildError;
use super::express::{Lane, Lanes};
use super::ledger::{Ledger, Meter, Service};
use super::priority::{Admission, Priority};
use super::publishers::{Left, Publishers, Row};
use super::shelf::Shelf;
use super::topic::{Message, Policy, TopicId, Topics};
use super::{InboxId, PublisherId};
use crate::channel::{self, Mpmc};
use crate::ring::sync::{Mutex, lock};
use crate::wait::{Mode, Panics};

/// A message on its way.
#[derive(Clone)]
pub(super) struct Envelope<M> {
    pub(super) message: M,
    pub(super) sequence: u64,
    pub(super) lost_before: u64,
    pub(super) publisher: PublisherId,
    pub(super) topic: TopicId,
    pub(super) priority: Priority,
}

/// An element of the ring.
pub(super) enum Item<M> {
    Message(Envelope<M>),
    /// All that is on the shelf of this topic.
    Token(TopicId),
}

pub(super) type Sender<M> = channel::Sender<Item<M>, Mpmc>;
pub(super) type Receiver<M> = channel::Receiver<Item<M>, Mpmc>;

/// How an inbox is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) capacity: usize,
    pub(super) admission: Admission,
    pub(super) mode: Mode,
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
    pub(super) places: u64,
    pub(super) lane: Option<Lane<M>>,
    /// Messages that the rings and all shelves hold together.
    pub(super) messages_max: usize,
    /// By topic.
    pub(super) shelves: Vec<Option<Shelf<M>>>,
    pub(super) publishers: Mutex<Publishers>,
    pub(super) members: Mutex<Members>,
}

/// The consumers.
#[derive(Default)]
pub(super) struct Members {
    pub(super) meters: Vec<Shared<Meter>>,
    /// The counts of consumers that are gone.
    pub(super) gone: Service,
}

impl<M: Message> Inbox<M> {
    pub(super) fn new(
        id: InboxId,
        topics: Topics,
        options: Options,
    ) -> Result<(Self, Sender<M>, Receiver<M>), BuildError> {
        let mut limits = options.admission.limits(options.capacity)?;
        let mut messages_max = options.capacity;
        let shelf = |(index, info): (usize, &super::TopicInfo)| {
            let is_wanted = topics.contains(TopicId::new(index));
            let (places, has_keys) = match info.policy {
                Policy::DropOldest { keep } if is_wanted => (keep, false),
                Policy::Conflate { keys } if is_wanted => (keys, true),
                _ => return Ok(None),
            };
            messages_max = messages_max.saturating_add(places);
            Shelf::new(places, has_keys).map(Some)
        };
        let shelves = M::TOPICS.iter().enumerate().map(shelf);
        let shelves = shelves.collect::<Result<Vec<_>, _>>()?;
        // Limits keep messages to the capacity. With all of its slots the ring asks for one stamp
        // a push, not two.
        let tokens = shelves.iter().flatten().count();
        let places = (options.capacity + tokens).next_power_of_two();
        let (tx, rx) = channel::Builder::new(places)
            .mode(options.mode)
            .soft_limit(None)
            .mpmc()
            .map_err(|error| BuildError::ring(error, options.capacity))?;
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
            shelves,
            publishers: Mutex::default(),
            members: Mutex::default(),
        };
        Ok((inbox, tx, rx))
    }

    /// Messages of a batch: publishers that refill what is taken must not keep it going for ever.
    pub(super) fn batch_max(&self, ahead: &VecDeque<Item<M>>) -> usize {
        self.messages_max.saturating_add(ahead.len())
    }

    /// Returns the shelf of a topic, if it has one.
    pub(super) fn shelf(&self, topic: TopicId) -> Option<&Shelf<M>> {
        self.shelves.get(topic.index())?.as_ref()
    }

    /// Adds a publisher, whose next sequences are given by topic; returns its ledger, and the
    /// number by which shelves know it. Consumers are at `popped`.
    pub(super) fn join(
        &self,
        publisher: PublisherId,
        name: &Shared<str>,
        popped: Lanes,
        next: impl Fn(usize) -> u64,
    ) -> (Shared<Ledger>, u32) {
        let ledger = Shared::new(Ledger::default());
        let mut publishers = lock(&self.publishers);
        publishers.fold(popped, &self.shelves);
        let link = publishers.free.pop().unwrap_or(publishers.links);
        publishers.links = publishers.links.max(link + 1);
        for (index, shelf) in self.shelves.iter().enumerate() {
            if let Some(shelf) = shelf {
                shelf.join(link, Shared::clone(&ledger), next(index));
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
        publishers.fold(popped, &self.shelves);
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

    /// Returns whether nothing is on shelves or with consumers that have not got it yet; to be
    /// asked once the ring is over. A consumer says that it holds something before it takes it from
    /// a shelf.
    pub(super) fn is_taken(&self) -> bool {
        let is_empty = |shelf: &Shelf<M>| shelf.len().0 == 0;
        let is_free = |meter: &Shared<Meter>| meter.held.get() == 0;
        let is_over = |lane: &Lane<M>| lane.end.is_over();
        self.lane.as_ref().is_none_or(is_over)
            && self.shelves.iter().flatten().all(is_empty)
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

    /// Discards the messages on a shelf, for the thread that has its token.
    fn clear(&self, topic: TopicId, panics: &mut Panics) {
        if let Some(shelf) = self.shelf(topic) {
            let mut all = VecDeque::new();
            shelf.take_all(&mut all);
            for item in all {
                self.discard_item(item, panics);
            }
        }
    }

    /// Moves the messages of all shelves behind `out`, for a thread that finds the ring closed and
    /// empty.
    pub(super) fn take_rest(&self, out: &mut VecDeque<Item<M>>) {
        for shelf in self.shelves.iter().flatten() {
            shelf.take_all(out);
        }
    }

    /// Discards what is on all shelves, when the ring is closed.
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
