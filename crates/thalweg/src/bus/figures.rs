//! The figures of an inbox: what became of its messages, and what its consumers do.

use std::sync::Arc as Shared;

use super::InboxId;
use super::balance::Reading;
use super::consumer::Consumer;
use super::express::ExpressLane;
use super::inbox::Inbox;
use super::ledger::{Losses, Service, Totals};
use super::priority::Priority;
use super::publishers::Row;
use super::topic::{Message, Topics};
use crate::ring::sync::lock;
use thalweg_measure::clock::Clock;

impl<M: Message> Inbox<M> {
    /// Returns the flow of messages, by publisher.
    pub(super) fn losses(&self) -> Vec<Losses> {
        let publishers = lock(&self.publishers);
        let losses = |row: &Row| {
            let mut flow = row.ledger.flow();
            flow.catch_up(&[0; Priority::COUNT]);
            Losses {
                publisher: row.publisher,
                name: Shared::clone(&row.name),
                flow,
            }
        };
        publishers.rows.iter().map(losses).collect()
    }

    /// Returns the counts of all messages, where the ring holds `len` elements at `now`.
    pub(super) fn totals(&self, len: usize, now: u64, ns: impl Fn(u64) -> u64) -> Totals {
        // Flow last: what was taken was issued before.
        let service = self.service(len, now, ns);
        let publishers = lock(&self.publishers);
        let mut flow = publishers.gone;
        for row in &publishers.rows {
            flow.add(&row.ledger.flow());
        }
        flow.catch_up(&service.delivered);
        Totals { flow, service }
    }

    /// Returns the figures of now, where the ring holds `len` elements.
    pub(super) fn reading(&self, len: usize, clock: &Clock) -> Reading {
        let now = clock.ticks();
        let Totals { flow, service } = self.totals(len, now, |ticks| clock.ns(ticks));
        let sum = |counts: [u64; Priority::COUNT]| counts.iter().sum();
        let in_lane = self.express().map_or(0, |lane| lane.waiting);
        Reading {
            at_ns: clock.ns(now),
            issued: sum(flow.issued),
            admitted: sum(flow.admitted),
            lost: flow.lost(),
            taken: service.taken(),
            busy_ns: service.busy_ns,
            waiting: service.waiting.saturating_sub(in_lane).min(self.capacity),
            capacity: self.capacity,
            consumers: lock(&self.members).meters.len() as u64,
        }
    }

    /// Returns the counts of all consumers, where the ring holds `len` elements.
    pub(super) fn service(&self, len: usize, now: u64, ns: impl Fn(u64) -> u64) -> Service {
        let members = lock(&self.members);
        let mut service = members.gone;
        for meter in &members.meters {
            service.count(meter, now, &ns);
        }
        drop(members);
        // A token is in the ring, or held by a consumer, and no message.
        let in_lane = self.lane.as_ref().map_or(0, |lane| lane.end.len());
        let (mut waiting, mut tokens) = (service.waiting + (len + in_lane) as u64, 0);
        for shelf in self.shelves.iter().flatten() {
            let (len, has_token) = shelf.len();
            waiting += len as u64;
            tokens += u64::from(has_token);
        }
        service.waiting = waiting.saturating_sub(tokens);
        service
    }
}

impl<M: Message> Consumer<M> {
    /// Returns the inbox.
    pub fn inbox(&self) -> InboxId {
        self.inbox.id
    }

    /// Returns the topics that it wants.
    pub fn topics(&self) -> Topics {
        self.inbox.topics
    }

    /// Returns the numbers of messages below which each [`Priority`] is admitted, by its index: in
    /// the ring, where the last one is the capacity, or in the [express
    /// lane](super::Subscription::express).
    pub fn limits(&self) -> [u64; Priority::COUNT] {
        self.inbox.limits
    }

    /// Returns the messages that publishers sent to this inbox and their outcomes, by publisher:
    /// for those that are there, those whose messages are not all taken yet, and the last 64 that
    /// left with a loss that no later message reported. [`Bus::snapshot`](super::Bus::snapshot) has
    /// the sum over all publishers that there ever were. It takes a lock that is not needed for
    /// messages.
    pub fn losses(&self) -> Vec<Losses> {
        self.inbox.losses()
    }

    /// Returns the counts of the consumers of this inbox. It takes locks, one of which is also
    /// needed by topics that drop the oldest or conflate.
    pub fn service(&self) -> Service {
        let clock = self.core.clock;
        let ns = |ticks| clock.ns(ticks);
        (self.inbox).service(self.receiver.len(), clock.ticks(), ns)
    }

    /// Returns the express lane of the inbox, if it has one. Takes the locks of topics that drop
    /// the oldest or conflate.
    pub fn express(&self) -> Option<ExpressLane> {
        self.inbox.express()
    }
}
