//! Messages of one topic that may take each other's place: behind a small lock, beside the ring;
//! and the elements of the ring.
//!
//! # Rules
//! 1. A message on the shelf stands for a token in the ring: a thread that puts one there while
//!    there is no token marks, under the lock, that there is one, and then pushes it. So the ring
//!    carries at most one token of a shelf, and always has room for it.
//! 2. The thread that pops the token takes all messages on the shelf, oldest first, and marks that
//!    there is no token, in one section under the lock. So a message that comes after that brings a
//!    token of its own, and none stays behind.
//! 3. When the ring is closed, tokens may be missing. A thread that put a message and then finds
//!    the ring closed takes it back, if it is still there; and a thread that finds the ring closed
//!    and empty takes the messages on the shelf. One of the two comes later, and knows of the
//!    other.
//! 4. No code of the user runs under the lock, but for clones and drops of nothing: an evicted
//!    message is dropped by the thread that evicted it, later.
//!
//! *Losses.* Per publisher the shelf knows the sequence that comes after the last one taken. Each
//! message that is taken reports how many of its publisher's come between the two: all of those
//! were evicted, since a shelf refuses nothing and keeps the order of each publisher.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc as Shared;

use super::PublisherId;
use super::ledger::Ledger;
use super::priority::Priority;
use super::topic::TopicId;
use crate::ring::CapacityError;
use crate::ring::sequence::memory_for;
use crate::ring::sync::{Mutex, fault, lock};

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

/// No place.
const NONE: u32 = u32::MAX;

/// See the module.
pub(super) struct Shelf<M>(Mutex<State<M>>);

struct State<M> {
    line: Line<M>,
    has_token: bool,
    /// By publisher, as the inbox counts them.
    links: Vec<Link>,
}

struct Link {
    /// The sequence after the one that was taken last.
    next: u64,
    /// The sequence after the one that came last.
    end: u64,
    /// How many are here.
    waiting: usize,
    ledger: Shared<Ledger>,
}

/// The work that [`Shelf::put`] leaves to its caller.
pub(super) struct Put<M> {
    /// To be dropped.
    pub(super) evicted: Option<Envelope<M>>,
    /// To be pushed.
    pub(super) needs_token: bool,
}

impl<M> Shelf<M> {
    /// For up to `places` messages; with `has_keys` one of each key.
    pub(super) fn new(places: usize, has_keys: bool) -> Result<Self, CapacityError> {
        let line = Line::new(places, has_keys)?;
        Ok(Self(Mutex::new(State {
            line,
            has_token: false,
            links: Vec::new(),
        })))
    }

    /// Another publisher, whose next sequence is given, in a place of its own: a new one behind the
    /// others, or that of one that has left.
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

    /// Returns, for a publisher that has left, whether messages of it are here, and whether all its
    /// losses were reported.
    pub(super) fn left(&self, link: u32) -> (bool, bool) {
        let link = &lock(&self.0).links[link as usize];
        (link.waiting > 0, link.next == link.end)
    }

    /// Puts a message of publisher `link` behind the others.
    pub(super) fn put(&self, link: u32, key: u64, envelope: Envelope<M>) -> Put<M> {
        let mut state = lock(&self.0);
        let own = &mut state.links[link as usize];
        own.end = envelope.sequence + 1;
        own.waiting += 1;
        let evicted = state.line.push(key, link, envelope);
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

    /// Takes back what was put before, if it is still there; with `has_no_token` its token did not
    /// get into the ring.
    #[cold]
    pub(super) fn take_back(&self, link: u32, sequence: u64, has_no_token: bool) -> Option<M> {
        let mut state = lock(&self.0);
        if has_no_token {
            state.has_token = false;
        }
        let line = &mut state.line;
        let mut at = line.last;
        while let Some(place) = line.places.get(at as usize) {
            let is_it = |envelope: &Envelope<M>| envelope.sequence == sequence;
            if place.link == link && place.envelope.as_ref().is_some_and(is_it) {
                let removed = line.remove(at).map(|(_, envelope)| envelope.message);
                state.links[link as usize].waiting -= 1;
                return removed;
            }
            at = place.before;
        }
        None
    }

    /// Moves all messages behind `out`, for the thread that has the token or finds the ring at its
    /// end.
    pub(super) fn take_all(&self, out: &mut VecDeque<Item<M>>) {
        let mut state = lock(&self.0);
        while let Some((link, mut envelope)) = state.line.pop() {
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

    /// Returns how many messages are on the shelf, and whether the ring carries its token.
    pub(super) fn len(&self) -> (usize, bool) {
        let state = lock(&self.0);
        (state.line.len, state.has_token)
    }
}

/// Messages in the order in which they came, in places that are made once. A list, since one of
/// them may go from the middle.
struct Line<M> {
    places: Vec<Place<M>>,
    first: u32,
    last: u32,
    /// The first place that is free; the others follow as `next`.
    free: u32,
    len: usize,
    /// The place of each key, if keys count.
    keys: Option<HashMap<u64, u32>>,
}

struct Place<M> {
    before: u32,
    next: u32,
    key: u64,
    link: u32,
    envelope: Option<Envelope<M>>,
}

impl<M> Line<M> {
    fn new(places: usize, has_keys: bool) -> Result<Self, CapacityError> {
        let is_countable = (1..=crate::ring::CAPACITY_MAX).contains(&places);
        if !is_countable {
            return Err(CapacityError {
                asked: places,
                bytes: 0,
            });
        }
        memory_for::<Place<M>>(places, places)?;
        // Twice as many, so that those that were removed never make it grow.
        let mut keys = HashMap::new();
        let asked = if has_keys { 2 * places } else { 0 };
        keys.try_reserve(asked).map_err(|_| CapacityError {
            asked: places,
            bytes: asked.saturating_mul(size_of::<(u64, u32)>()),
        })?;
        let place = |n| Place {
            before: NONE,
            next: if n + 1 == places { NONE } else { n as u32 + 1 },
            key: 0,
            link: 0,
            envelope: None,
        };
        Ok(Self {
            places: (0..places).map(place).collect(),
            first: NONE,
            last: NONE,
            free: 0,
            len: 0,
            keys: has_keys.then_some(keys),
        })
    }

    /// Puts a message behind the others; gives what it takes the place of.
    fn push(&mut self, key: u64, link: u32, envelope: Envelope<M>) -> Option<(u32, Envelope<M>)> {
        let older = self.keys.as_ref().and_then(|keys| keys.get(&key).copied());
        let evicted = match older {
            Some(at) => self.remove(at),
            None if self.free == NONE => self.remove(self.first),
            None => None,
        };
        let at = self.free;
        let place = &mut self.places[at as usize];
        self.free = place.next;
        let before = self.last;
        *place = Place {
            before,
            next: NONE,
            key,
            link,
            envelope: Some(envelope),
        };
        match before {
            NONE => self.first = at,
            before => self.places[before as usize].next = at,
        }
        self.last = at;
        self.len += 1;
        if let Some(keys) = &mut self.keys {
            keys.insert(key, at);
        }
        evicted
    }

    /// Takes the oldest.
    fn pop(&mut self) -> Option<(u32, Envelope<M>)> {
        self.remove(self.first)
    }

    fn remove(&mut self, at: u32) -> Option<(u32, Envelope<M>)> {
        let place = self.places.get_mut(at as usize)?;
        let envelope = place.envelope.take()?;
        let (before, next, link, key) = (place.before, place.next, place.link, place.key);
        place.next = self.free;
        self.free = at;
        match before {
            NONE => self.first = next,
            before => self.places[before as usize].next = next,
        }
        match next {
            NONE => self.last = before,
            next => self.places[next as usize].before = before,
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

    fn shelf(places: usize, has_keys: bool) -> (Shelf<u64>, [Shared<Ledger>; 2]) {
        let shelf = Shelf::new(places, has_keys).expect("places in range");
        let ledgers = [3, 0].map(|next| {
            let ledger = Shared::new(Ledger::default());
            (ledger, next)
        });
        for (link, (ledger, next)) in (0..).zip(&ledgers) {
            shelf.join(link, Shared::clone(ledger), *next);
        }
        (shelf, ledgers.map(|(ledger, _)| ledger))
    }

    fn taken(shelf: &Shelf<u64>) -> Vec<(u32, u64, u64)> {
        let mut out = VecDeque::new();
        shelf.take_all(&mut out);
        let parts = |item| match item {
            Item::Message(e) => (e.publisher.0, e.sequence, e.lost_before),
            Item::Token(_) => unreachable!("a shelf has messages"),
        };
        out.into_iter().map(parts).collect()
    }

    #[test]
    fn the_oldest_make_room_and_are_reported() {
        let (shelf, ledgers) = shelf(2, false);
        let puts = [(0, 3), (1, 0), (0, 4), (0, 5), (0, 6)];
        let puts = puts.map(|(link, sequence)| shelf.put(link, 0, envelope(link, sequence)));
        assert_eq!(
            puts.each_ref().map(|put| put.needs_token),
            [true, false, false, false, false]
        );
        let evicted = puts.map(|put| put.evicted.map(|e| (e.publisher.0, e.sequence)));
        assert_eq!(
            evicted,
            [None, None, Some((0, 3)), Some((1, 0)), Some((0, 4))]
        );
        assert_eq!(ledgers.each_ref().map(|l| l.flow().evicted[0]), [2, 1]);
        assert_eq!(shelf.len(), (2, true));
        assert_eq!(taken(&shelf), [(0, 5, 2), (0, 6, 0)]);
        assert_eq!(shelf.len(), (0, false));
        // The other loss is reported with the next message of its publisher.
        assert!(shelf.put(1, 0, envelope(1, 1)).needs_token);
        assert_eq!(taken(&shelf), [(1, 1, 1)]);
    }

    #[test]
    fn a_newer_value_of_a_key_goes_to_the_end() {
        let (shelf, ledgers) = shelf(3, true);
        for (key, sequence) in [(7, 3), (8, 4), (7, 5), (9, 6), (8, 7)] {
            shelf.put(0, key, envelope(0, sequence));
        }
        assert_eq!(ledgers[0].flow().evicted[0], 2);
        assert_eq!(shelf.len(), (3, true));
        // One key more than there may be: the oldest value goes.
        let put = shelf.put(0, 1, envelope(0, 8));
        assert_eq!(put.evicted.map(|e| e.sequence), Some(5));
        assert_eq!(taken(&shelf), [(0, 6, 3), (0, 7, 0), (0, 8, 0)]);
    }

    #[test]
    fn places_are_used_again() {
        let (shelf, _) = shelf(4, true);
        for round in 0..1_000 {
            let sequence = 3 + 3 * round;
            for n in 0..3 {
                shelf.put(0, sequence + n, envelope(0, sequence + n));
            }
            assert_eq!(taken(&shelf).len(), 3);
        }
        let state = lock(&shelf.0);
        assert_eq!(state.line.places.len(), 4);
        assert_eq!(state.line.keys.as_ref().map(HashMap::len), Some(0));
    }
}
