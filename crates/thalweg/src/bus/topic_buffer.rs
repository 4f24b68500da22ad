//! A topic buffer: the waiting messages of a topic that drops the oldest or conflates, behind a
//! lock, beside the ring; and the elements of the ring.
//!
//! # Rules
//! 1. A token in the ring stands for all messages in the topic buffer. A thread that appends a
//!    message while there is no token sets, under the lock, that there is one, and then pushes it.
//!    So the ring holds at most one token of a topic buffer, and always has a free slot for it.
//! 2. The thread that pops the token takes all messages of the topic buffer, oldest first, and
//!    clears that there is a token, in one critical section. So a message that is appended later
//!    pushes a new token, and no message is left without one.
//! 3. When the ring is closed, tokens may be missing. A thread that appended a message and then
//!    finds the ring closed takes it back, if it is still in the buffer; and a thread that finds
//!    the ring closed and empty takes the messages of the topic buffer. The later of the two sees
//!    what the earlier one did.
//! 4. No user code runs under the lock: an evicted message is dropped later, by the thread that
//!    evicted it.
//!
//! *Losses.* For each publisher the topic buffer keeps the sequence after the last message taken.
//! Each message that is taken reports the number of sequences of its publisher between the two:
//! those messages were evicted, since a topic buffer refuses no message and keeps the order of each
//! publisher.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc as Shared;

use super::PublisherId;
use super::ledger::Ledger;
use super::priority::Priority;
use super::topic::TopicId;
use crate::ring::CapacityError;
use crate::ring::sequence::memory_for;
use crate::ring::sync::{Mutex, fault, lock};

/// A message in an inbox, with what its consumer gets to know of it.
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
    /// It stands for all messages in the buffer of this topic.
    Token(TopicId),
}

/// The index that stands for no slot.
const NONE: u32 = u32::MAX;

/// The buffer of one topic; see the module.
pub(super) struct TopicBuffer<M>(Mutex<State<M>>);

struct State<M> {
    messages: MessageList<M>,
    has_token: bool,
    /// By publisher, as the inbox counts them.
    links: Vec<Link>,
}

struct Link {
    /// The sequence after the message that was taken last.
    next: u64,
    /// The sequence after the message that was appended last.
    end: u64,
    /// The number of messages in the buffer.
    waiting: usize,
    ledger: Shared<Ledger>,
}

/// The work that [`TopicBuffer::put`] leaves to its caller.
pub(super) struct Put<M> {
    /// The message to be dropped.
    pub(super) evicted: Option<Envelope<M>>,
    /// The token is to be pushed.
    pub(super) needs_token: bool,
}

impl<M> TopicBuffer<M> {
    /// Returns a buffer for up to `slots` messages; with `has_keys` for one of each key.
    pub(super) fn new(slots: usize, has_keys: bool) -> Result<Self, CapacityError> {
        let messages = MessageList::new(slots, has_keys)?;
        Ok(Self(Mutex::new(State {
            messages,
            has_token: false,
            links: Vec::new(),
        })))
    }

    /// Adds a publisher, whose next sequence is `next`, as number `link`: a new one, or that of a
    /// publisher that has left.
    pub(super) fn join(&self, link: u32, ledger: Shared<Ledger>, next: u64) {
        let new = Link {
            next,
            end: next,
            waiting: 0,
            ledger,
        };
        let mut state = lock(&self.0);
        match state.links.get_mut(link as usize) {
            Some(left) => *left = new,
            None => state.links.push(new),
        }
    }

    /// Returns, for a publisher that has left, whether messages of it are in the buffer, and
    /// whether all its losses were reported.
    pub(super) fn left(&self, link: u32) -> (bool, bool) {
        let link = &lock(&self.0).links[link as usize];
        (link.waiting > 0, link.next == link.end)
    }

    /// Appends a message of publisher `link`.
    pub(super) fn put(&self, link: u32, key: u64, envelope: Envelope<M>) -> Put<M> {
        let mut state = lock(&self.0);
        let own = &mut state.links[link as usize];
        own.end = envelope.sequence + 1;
        own.waiting += 1;
        let evicted = state.messages.push(key, link, envelope);
        let evicted = evicted.map(|(link, envelope)| {
            let link = &mut state.links[link as usize];
            link.waiting -= 1;
            link.ledger.others.evicted[envelope.priority.index()].add(1);
            envelope
        });
        let needs_token = !std::mem::replace(&mut state.has_token, true);
        Put {
            evicted,
            needs_token,
        }
    }

    /// Removes a message that was appended before, if it is still in the buffer; with
    /// `has_no_token` its token was not pushed.
    #[cold]
    pub(super) fn take_back(&self, link: u32, sequence: u64, has_no_token: bool) -> Option<M> {
        let mut state = lock(&self.0);
        if has_no_token {
            state.has_token = false;
        }
        let messages = &mut state.messages;
        let mut at = messages.last;
        while let Some(slot) = messages.slots.get(at as usize) {
            let is_it = |envelope: &Envelope<M>| envelope.sequence == sequence;
            if slot.link == link && slot.envelope.as_ref().is_some_and(is_it) {
                let removed = messages.remove(at).map(|(_, envelope)| envelope.message);
                state.links[link as usize].waiting -= 1;
                return removed;
            }
            at = slot.before;
        }
        None
    }

    /// Moves all messages to the end of `out`, for the thread that popped the token or finds the
    /// ring closed and empty.
    pub(super) fn take_all(&self, out: &mut VecDeque<Item<M>>) {
        let mut state = lock(&self.0);
        while let Some((link, mut envelope)) = state.messages.pop() {
            let link = &mut state.links[link as usize];
            envelope.lost_before = envelope.sequence - link.next;
            link.next = envelope.sequence + 1;
            link.waiting -= 1;
            out.push_back(Item::Message(envelope));
        }
        if fault::is("token_late") {
            drop(state);
            state = lock(&self.0);
        }
        state.has_token = false;
    }

    /// Returns how many messages are in the topic buffer, and whether the ring carries its token.
    pub(super) fn len(&self) -> (usize, bool) {
        let state = lock(&self.0);
        (state.messages.len, state.has_token)
    }
}

/// Messages in order of arrival, in slots that are allocated once: a linked list, since one may be
/// removed from the middle.
struct MessageList<M> {
    slots: Vec<Slot<M>>,
    first: u32,
    last: u32,
    /// The first free slot; the others follow as `next`.
    free: u32,
    len: usize,
    /// The slot of each key, if there is one message of each key.
    keys: Option<HashMap<u64, u32>>,
}

struct Slot<M> {
    before: u32,
    next: u32,
    key: u64,
    link: u32,
    envelope: Option<Envelope<M>>,
}

impl<M> MessageList<M> {
    fn new(slots: usize, has_keys: bool) -> Result<Self, CapacityError> {
        let is_countable = (1..=crate::ring::CAPACITY_MAX).contains(&slots);
        if !is_countable {
            return Err(CapacityError {
                asked: slots,
                bytes: 0,
            });
        }
        memory_for::<Slot<M>>(slots, slots)?;
        // Twice as many, so that removed keys never make it grow.
        let mut keys = HashMap::new();
        let asked = if has_keys { 2 * slots } else { 0 };
        keys.try_reserve(asked).map_err(|_| CapacityError {
            asked: slots,
            bytes: asked.saturating_mul(size_of::<(u64, u32)>()),
        })?;
        let slot = |n| Slot {
            before: NONE,
            next: if n + 1 == slots { NONE } else { n as u32 + 1 },
            key: 0,
            link: 0,
            envelope: None,
        };
        Ok(Self {
            slots: (0..slots).map(slot).collect(),
            first: NONE,
            last: NONE,
            free: 0,
            len: 0,
            keys: has_keys.then_some(keys),
        })
    }

    /// Appends a message; returns the one that it evicts.
    fn push(&mut self, key: u64, link: u32, envelope: Envelope<M>) -> Option<(u32, Envelope<M>)> {
        let older = self.keys.as_ref().and_then(|keys| keys.get(&key).copied());
        let evicted = match older {
            Some(at) => self.remove(at),
            None if self.free == NONE => self.remove(self.first),
            None => None,
        };
        let at = self.free;
        let slot = &mut self.slots[at as usize];
        self.free = slot.next;
        let before = self.last;
        *slot = Slot {
            before,
            next: NONE,
            key,
            link,
            envelope: Some(envelope),
        };
        match before {
            NONE => self.first = at,
            before => self.slots[before as usize].next = at,
        }
        self.last = at;
        self.len += 1;
        if let Some(keys) = &mut self.keys {
            keys.insert(key, at);
        }
        evicted
    }

    /// Removes the oldest message.
    fn pop(&mut self) -> Option<(u32, Envelope<M>)> {
        self.remove(self.first)
    }

    fn remove(&mut self, at: u32) -> Option<(u32, Envelope<M>)> {
        let slot = self.slots.get_mut(at as usize)?;
        let envelope = slot.envelope.take()?;
        let (before, next, link, key) = (slot.before, slot.next, slot.link, slot.key);
        slot.next = self.free;
        self.free = at;
        match before {
            NONE => self.first = next,
            before => self.slots[before as usize].next = next,
        }
        match next {
            NONE => self.last = before,
            next => self.slots[next as usize].before = before,
        }
        self.len -= 1;
        if let Some(keys) = &mut self.keys {
            keys.remove(&key);
        }
        Some((link, envelope))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Priority, PublisherId, TopicId};
    use super::*;

    fn envelope(publisher: u32, sequence: u64) -> Envelope<u64> {
        Envelope {
            message: sequence,
            sequence,
            lost_before: 0,
            publisher: PublisherId(publisher),
            topic: TopicId::new(0),
            priority: Priority::Low,
        }
    }

    fn topic_buffer(slots: usize, has_keys: bool) -> (TopicBuffer<u64>, [Shared<Ledger>; 2]) {
        let topic_buffer = TopicBuffer::new(slots, has_keys).expect("slots in range");
        let ledgers = [3, 0].map(|next| {
            let ledger = Shared::new(Ledger::default());
            (ledger, next)
        });
        for (link, (ledger, next)) in (0..).zip(&ledgers) {
            topic_buffer.join(link, Shared::clone(ledger), *next);
        }
        (topic_buffer, ledgers.map(|(ledger, _)| ledger))
    }

    fn taken(topic_buffer: &TopicBuffer<u64>) -> Vec<(u32, u64, u64)> {
        let mut out = VecDeque::new();
        topic_buffer.take_all(&mut out);
        let parts = |item| match item {
            Item::Message(e) => (e.publisher.0, e.sequence, e.lost_before),
            Item::Token(_) => unreachable!("a topic_buffer has messages"),
        };
        out.into_iter().map(parts).collect()
    }

    #[test]
    fn the_oldest_make_room_and_are_reported() {
        let (topic_buffer, ledgers) = topic_buffer(2, false);
        let puts = [(0, 3), (1, 0), (0, 4), (0, 5), (0, 6)];
        let puts = puts.map(|(link, sequence)| topic_buffer.put(link, 0, envelope(link, sequence)));
        assert_eq!(
            puts.each_ref().map(|put| put.needs_token),
            [true, false, false, false, false]
        );
        let evicted = puts.map(|put| put.evicted.map(|e| (e.publisher.0, e.sequence)));
        assert_eq!(
            evicted,
            [None, None, Some((0, 3)), Some((1, 0)), Some((0, 4))]
        );
        assert_eq!(ledgers.each_ref().map(|l| l.outcomes().evicted[0]), [2, 1]);
        assert_eq!(topic_buffer.len(), (2, true));
        assert_eq!(taken(&topic_buffer), [(0, 5, 2), (0, 6, 0)]);
        assert_eq!(topic_buffer.len(), (0, false));
        // The other loss is reported with the next message of its publisher.
        assert!(topic_buffer.put(1, 0, envelope(1, 1)).needs_token);
        assert_eq!(taken(&topic_buffer), [(1, 1, 1)]);
    }

    #[test]
    fn a_newer_value_of_a_key_goes_to_the_end() {
        let (topic_buffer, ledgers) = topic_buffer(3, true);
        for (key, sequence) in [(7, 3), (8, 4), (7, 5), (9, 6), (8, 7)] {
            topic_buffer.put(0, key, envelope(0, sequence));
        }
        assert_eq!(ledgers[0].outcomes().evicted[0], 2);
        assert_eq!(topic_buffer.len(), (3, true));
        // One key more than there may be: the oldest value goes.
        let put = topic_buffer.put(0, 1, envelope(0, 8));
        assert_eq!(put.evicted.map(|e| e.sequence), Some(5));
        assert_eq!(taken(&topic_buffer), [(0, 6, 3), (0, 7, 0), (0, 8, 0)]);
    }

    #[test]
    fn slots_are_used_again() {
        let (topic_buffer, _) = topic_buffer(4, true);
        for round in 0..1_000 {
            let sequence = 3 + 3 * round;
            for n in 0..3 {
                topic_buffer.put(0, sequence + n, envelope(0, sequence + n));
            }
            assert_eq!(taken(&topic_buffer).len(), 3);
        }
        let state = lock(&topic_buffer.0);
        assert_eq!(state.messages.slots.len(), 4);
        assert_eq!(state.messages.keys.as_ref().map(HashMap::len), Some(0));
    }
}
