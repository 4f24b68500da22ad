//! Commands and queries that were taken and are not published yet, in order; and which commands of
//! sessions are new.
//!
//! [`InFlight`] is a ring of slots that are used again, so that a command allocates nothing. It has
//! no more slots than were in flight together, rounded up to a power of two, and begins anew with
//! its first slots while nothing is in flight: so few stay in the cache. [`Admission`] knows the
//! last sequence of each session, and how many of its commands are in flight.

use thalweg_measure::clock::Clock;

use super::options::SessionLimits;
use super::record::Origin;
use super::tables::{Note, SessionSlot, Sessions};
use crate::command::Command;
use crate::engine::index::Index;
use crate::event::Events;
use crate::result_code::ResultCode;
use crate::service::{Answered, EVENTS_KEPT, Outcome, Query, Stamps};
use crate::session::{Refusal, Role, SessionKey};

/// An entry of an answer takes the memory of this number of events.
const ENTRY_EVENTS: usize = 2;

/// A question, and its answer once it was executed.
#[derive(Debug)]
pub(super) struct InFlightQuery {
    pub(super) query: Query,
    pub(super) answered: Option<Answered>,
}

/// A command or a query.
#[derive(Debug)]
pub(super) struct Slot {
    /// Its number; of a query, that of the next command.
    pub(super) number: u64,
    pub(super) command: Command,
    /// Its sender.
    pub(super) origin: Origin,
    /// The place of its session in the tables, if it has one.
    pub(super) session: u32,
    pub(super) tag: u64,
    pub(super) due: u64,
    /// When it was taken, in ticks, if it is stamped; else 0.
    pub(super) taken: u64,
    pub(super) stamps: Stamps,
    pub(super) result: ResultCode,
    pub(super) events: Events,
    /// How many reports it has, once they are noted.
    pub(super) reports: usize,
    /// The query, if this is one.
    pub(super) question: Option<Box<InFlightQuery>>,
    /// Its part of [`InFlight::waiting_events`], where it is [large](InFlight::large).
    waiting: Option<usize>,
}

impl Slot {
    /// Returns when it was due, or else taken; 0 where that is not known.
    pub(super) const fn sent(&self) -> u64 {
        match self.due {
            0 => self.taken,
            due => due,
        }
    }

    /// Becomes a command with its sender and tag, a number, the slot of its session, and its time.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        (origin, command, tag): (Origin, &Command, u64),
        (number, session): (u64, u32),
        (due, is_stamped): (u64, bool),
    ) {
        self.command.copy_from(command);
        self.belong((origin, tag), (number, session), due);
        if is_stamped {
            self.stamp();
        }
    }

    /// Becomes a command that is in it already; it is not stamped.
    #[inline(always)]
    pub(super) fn belong(
        &mut self,
        (origin, tag): (Origin, u64),
        (number, session): (u64, u32),
        due: u64,
    ) {
        (self.number, self.tag) = (number, tag);
        (self.origin, self.session) = (origin, session);
        (self.due, self.taken) = (due, 0);
    }

    /// Notes that it was taken now.
    pub(super) fn stamp(&mut self) {
        self.taken = Clock::global().ticks();
    }

    /// Returns its session and its sequence.
    #[inline]
    pub(super) const fn note(&self) -> Note {
        match self.origin {
            Origin::Engine => Note::NONE,
            Origin::Session { sequence, .. } => Note {
                session: self.session,
                sequence: sequence.0,
            },
        }
    }

    /// Returns what came of its command.
    #[inline(always)]
    pub(super) fn outcome(&self) -> Outcome<'_> {
        Outcome {
            sequence: self.number,
            tag: self.tag,
            due: self.sent(),
            stamps: (self.stamps.begun > 0).then_some(&self.stamps),
            command: &self.command,
            result: self.result,
            events: &self.events,
        }
    }

    fn new(events: usize, levels: bool) -> Self {
        let events = Events::with_capacity(events);
        Self {
            number: 0,
            command: Command::Nop,
            origin: Origin::Engine,
            session: Note::NONE.session,
            tag: 0,
            due: 0,
            taken: 0,
            stamps: Stamps::default(),
            result: ResultCode::New,
            events: if levels { events.with_levels() } else { events },
            reports: 0,
            question: None,
            waiting: None,
        }
    }

    /// Returns whether it is published by itself: a query, or a command that is stamped.
    #[inline(always)]
    pub(super) const fn is_apart(&self) -> bool {
        self.question.is_some() || self.stamps.begun > 0
    }

    /// Returns the events that it holds, or as many as take the memory of its answer.
    fn held(&self) -> usize {
        match &self.question {
            None => self.events.len(),
            Some(question) => {
                let answered = question.answered.as_ref();
                let entries = answered.map_or(0, |answered| answered.answer.entries());
                entries * ENTRY_EVENTS
            }
        }
    }
}

/// The ring of commands and queries in flight: see the [module](self).
#[derive(Debug)]
pub(super) struct InFlight {
    slots: Vec<Slot>,
    /// How many slots the ring has until it is full, and at most; powers of two. As few as were
    /// needed together stay in the cache.
    length: usize,
    capacity: usize,
    events: usize,
    /// Whether events list the levels that a command changed.
    levels: bool,
    /// Positions: of the first that is not published, the first that is not executed, and the next.
    published: usize,
    executed: usize,
    taken: usize,
    /// Events of long commands and answers that wait to be published.
    waiting: usize,
    /// How many are queries, or have room for more events than a slot keeps.
    large: usize,
}

impl InFlight {
    /// `events` is how many events a slot has room for from the start.
    pub(super) fn new(capacity: usize, events: usize, levels: bool) -> Self {
        Self {
            slots: Vec::new(),
            length: 1,
            capacity: capacity.max(1).next_power_of_two(),
            events,
            levels,
            published: 0,
            executed: 0,
            taken: 0,
            waiting: 0,
            large: 0,
        }
    }

    /// Has events list the levels that a command changed, from now on.
    pub(super) fn list_levels(&mut self) {
        self.levels = true;
        for slot in &mut self.slots {
            slot.events = std::mem::take(&mut slot.events).with_levels();
        }
    }

    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns how many commands and queries are in flight.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.taken - self.published
    }

    /// Returns how many events of long commands wait to be published, with those that take as much
    /// memory as long answers do.
    pub(super) const fn waiting_events(&self) -> usize {
        self.waiting
    }

    /// Returns where in `slots` a position is.
    #[inline(always)]
    const fn place(&self, position: usize) -> usize {
        position & (self.length - 1)
    }

    fn at(&mut self, position: usize) -> &mut Slot {
        let place = self.place(position);
        &mut self.slots[place]
    }

    /// Returns the slot for the next command or query. There must be room.
    #[inline(always)]
    pub(super) fn take(&mut self) -> &mut Slot {
        debug_assert!(self.len() < self.capacity, "the caller looks");
        self.make_room();
        let position = self.taken;
        self.taken += 1;
        if self.place(position) == self.slots.len() {
            self.add_slot();
        }
        self.at(position)
    }

    /// Makes room for a command. Where nothing is in flight, the ring begins anew.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.len() == 0 {
            (self.published, self.executed, self.taken) = (0, 0, 0);
        }
        if self.len() == self.length {
            self.lengthen();
        }
    }

    /// Doubles the ring, which is full: its first slot becomes that of position 0. Cost: moves all
    /// slots, 352 bytes each, once for each length.
    #[cold]
    fn lengthen(&mut self) {
        let first = self.published;
        let start = self.place(first);
        self.slots.rotate_left(start);
        self.executed -= first;
        self.taken -= first;
        self.published = 0;
        self.length *= 2;
    }

    /// Returns free slots for the next commands: one at least, `most` at most, up to the end of the
    /// ring or to the first that is in flight. There must be room for `most`.
    #[inline]
    pub(super) fn free_slots(&mut self, most: usize) -> &mut [Slot] {
        debug_assert!(
            most > 0 && self.len() + most <= self.capacity,
            "the caller looks"
        );
        self.make_room();
        let first = self.place(self.taken);
        let free = self.length - self.len();
        let end = self.length.min(first + most.min(free));
        while self.slots.len() < end {
            self.add_slot();
        }
        &mut self.slots[first..end]
    }

    /// Takes the first `count` of the [free slots](Self::free_slots), which are commands now.
    pub(super) const fn take_first(&mut self, count: usize) {
        self.taken += count;
    }

    #[cold]
    fn add_slot(&mut self) {
        self.slots.push(Slot::new(self.events, self.levels));
    }

    /// Calls `each` with all that are to be executed, in order.
    #[inline]
    pub(super) fn look(&mut self, mut each: impl FnMut(&Slot)) {
        for position in self.executed..self.taken {
            each(self.at(position));
        }
    }

    /// Returns how many are to be executed.
    pub(super) const fn to_execute(&self) -> usize {
        self.taken - self.executed
    }

    /// Executes all that were taken, in order.
    #[inline]
    pub(super) fn execute(&mut self, mut execute: impl FnMut(&mut Slot)) {
        let kept = self.events.max(EVENTS_KEPT);
        while self.executed < self.taken {
            let slot = self.at(self.executed);
            execute(slot);
            if slot.question.is_some() || slot.events.room() > kept {
                let held = Some(slot.held()).filter(|held| *held > kept);
                slot.waiting = held.or(Some(0));
                self.waiting += held.unwrap_or(0);
                self.large += 1;
            }
            self.executed += 1;
        }
    }

    /// Returns how many of those that were executed may be published, where commands below this
    /// number are durable. A query shows nothing that is not.
    #[inline]
    pub(super) fn publishable(&mut self, durable: u64) -> usize {
        let (first, end) = (self.published, self.executed);
        if durable == u64::MAX {
            return end - first;
        }
        let may = |slot: &Slot| match &slot.question {
            Some(_) => slot.number <= durable,
            None => slot.number < durable,
        };
        let mut position = first;
        while position < end && may(self.at(position)) {
            position += 1;
        }
        position - first
    }

    /// Returns the first `count` of those that are to be published next, up to the end of the ring.
    #[inline]
    pub(super) fn next_slots(&mut self, count: usize) -> &mut [Slot] {
        let first = self.place(self.published);
        let end = (first + count).min(self.slots.len());
        &mut self.slots[first..end]
    }

    /// Frees the first `count` slots, and room for more events than a slot keeps.
    #[inline]
    pub(super) fn free(&mut self, count: usize) {
        if self.large > 0 {
            self.free_large(count);
        }
        self.published += count;
    }

    #[cold]
    fn free_large(&mut self, count: usize) {
        let kept = self.events.max(EVENTS_KEPT);
        let (mut waiting, mut freed) = (0, 0);
        for slot in self.next_slots(count) {
            if let Some(held) = slot.waiting.take() {
                waiting += held;
                freed += 1;
                slot.events.keep_room_for(kept);
                slot.question = None;
            }
        }
        self.waiting -= waiting;
        self.large -= freed;
    }

    /// Returns the slot of a command of a session, if that is in flight.
    pub(super) fn find(&mut self, session: u32, sequence: u64) -> Option<&Slot> {
        let position = (self.published..self.taken).find(|position| {
            let slot = &self.slots[self.place(*position)];
            slot.question.is_none() && slot.note() == Note { session, sequence }
        });
        position.map(|position| &*self.at(position))
    }

    /// Returns whether a command of a session is in flight.
    pub(super) fn has_of(&self, session: u32) -> bool {
        (self.published..self.taken).any(|position| {
            let slot = &self.slots[self.place(position)];
            slot.question.is_none() && slot.note().session == session
        })
    }
}

#[derive(Debug)]
struct Admitted {
    key: SessionKey,
    /// The last sequence that was taken.
    last: u64,
    in_flight: u32,
}

/// The session of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum SessionRef {
    /// In a session that has sent commands before.
    Known(SessionSlot),
    /// In a new one.
    New,
}

/// How a command relates to those that its session has sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// It has not been here before.
    New(SessionRef),
    /// It was taken before, or one with a higher sequence.
    Old(SessionSlot),
}

/// The sessions, as far as commands of theirs were taken.
#[derive(Debug)]
pub(super) struct Admission {
    list: Vec<Admitted>,
    index: Index<SessionKey>,
    /// The session that sent a command last: most often it sends the next one.
    last: Option<(SessionKey, SessionSlot)>,
    limits: SessionLimits,
}

impl Admission {
    pub(super) fn new(sessions: &Sessions, limits: SessionLimits) -> Self {
        let mut admission = Self {
            list: Vec::new(),
            index: Index::default(),
            last: None,
            limits,
        };
        for session in sessions.list() {
            admission.add(session.key, session.last_executed);
        }
        admission
    }

    fn add(&mut self, key: SessionKey, last: u64) -> SessionSlot {
        let slot = self.list.len() as u32;
        self.index.insert(key, slot);
        self.list.push(Admitted {
            key,
            last,
            in_flight: 0,
        });
        SessionSlot(slot)
    }

    pub(super) fn sessions(&self) -> usize {
        self.list.len()
    }

    /// A command has its answer: its session may send one more.
    #[inline]
    pub(super) fn answer(&mut self, note: Note) {
        if note.session != Note::NONE.session {
            self.list[note.session as usize].in_flight -= 1;
        }
    }

    /// Returns whether a command is new to its session or old, with the place of the session.
    #[inline]
    pub(super) fn kind(&mut self, key: SessionKey, sequence: u64) -> Result<Kind, Refusal> {
        let Some(slot) = self.slot_of(key) else {
            return self.may_open(key).map(|()| Kind::New(SessionRef::New));
        };
        Ok(if sequence > self.list[slot.0 as usize].last {
            Kind::New(SessionRef::Known(slot))
        } else {
            Kind::Old(slot)
        })
    }

    /// Returns the place of the session and the sequence of a command that is new to it and may be
    /// taken; `None` where that needs another look. `before` is the session of the command before.
    #[inline(always)]
    pub(super) fn known(
        &mut self,
        origin: Origin,
        before: &mut Option<(SessionKey, SessionSlot)>,
    ) -> Option<(SessionSlot, u64)> {
        let Origin::Session { key, sequence } = origin else {
            return None;
        };
        let slot = match *before {
            Some((before, slot)) if before == key => slot,
            _ => self.slot_of(key)?,
        };
        *before = Some((key, slot));
        let session = &self.list[slot.0 as usize];
        if sequence.0 <= session.last || self.is_full(SessionRef::Known(slot)) {
            return None;
        }
        Some((slot, sequence.0))
    }

    /// Returns the place of a session that is known, the last sequence that was taken, and how many
    /// commands it may send now.
    pub(super) fn room_of(&mut self, key: SessionKey) -> Option<(SessionSlot, u64, usize)> {
        let slot = self.slot_of(key)?;
        let session = &self.list[slot.0 as usize];
        let room = match key.holder >= 0 {
            true => self.limits.answers_kept.saturating_sub(session.in_flight) as usize,
            false => usize::MAX,
        };
        Some((slot, session.last, room))
    }

    /// Counts commands of a session that are on their way, the last of which has this sequence.
    pub(super) fn take_run(&mut self, slot: SessionSlot, sequence: u64, count: u32) {
        let admitted = &mut self.list[slot.0 as usize];
        admitted.last = sequence;
        admitted.in_flight += count;
    }

    #[inline(always)]
    fn slot_of(&mut self, key: SessionKey) -> Option<SessionSlot> {
        match self.last {
            Some((last, slot)) if last == key => Some(slot),
            _ => self.find(key),
        }
    }

    #[inline(never)]
    fn find(&mut self, key: SessionKey) -> Option<SessionSlot> {
        let key_of = |slot: u32| self.list[slot as usize].key;
        let slot = self.index.find(key, key_of).map(SessionSlot)?;
        self.last = Some((key, slot));
        Some(slot)
    }

    fn may_open(&self, key: SessionKey) -> Result<(), Refusal> {
        let SessionLimits {
            sessions_per_user,
            sessions_max,
            ..
        } = self.limits;
        if key.role == Role::Read {
            return Err(Refusal::Role);
        }
        if key.number >= sessions_per_user {
            let limit = sessions_per_user;
            return Err(Refusal::Sessions { limit });
        }
        if self.list.len() >= sessions_max as usize {
            let limit = sessions_max;
            return Err(Refusal::Sessions { limit });
        }
        Ok(())
    }

    /// Returns whether a session has as many commands in flight as it may. One of the program
    /// itself, whose holder is below 0, has no limit: it asks for no answer a second time.
    #[inline]
    pub(super) fn is_full(&self, session: SessionRef) -> bool {
        match session {
            SessionRef::Known(slot) => {
                let session = &self.list[slot.0 as usize];
                session.in_flight >= self.limits.answers_kept && session.key.holder >= 0
            }
            SessionRef::New => false,
        }
    }

    /// Returns the refusal of a command that would be one too many.
    pub(super) const fn too_many(&self) -> Refusal {
        Refusal::InFlight {
            limit: self.limits.answers_kept,
        }
    }

    /// Counts a command of a session that is on its way.
    #[inline]
    pub(super) fn take(&mut self, slot: SessionSlot, sequence: u64) {
        let admitted = &mut self.list[slot.0 as usize];
        admitted.last = sequence;
        admitted.in_flight += 1;
    }

    /// Opens a new session. Returns its slot, the same as in the tables.
    pub(super) fn open(&mut self, key: SessionKey) -> SessionSlot {
        self.add(key, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::RestingOrder;
    use crate::command::ConditionalOrder;
    use crate::event::Event;
    use crate::ids::{OrderId, SymbolId, UserId};
    use crate::report::CurrencyTotal;
    use crate::service::QueryReply;

    /// Frees this many slots, and returns their numbers.
    fn free(ring: &mut InFlight, count: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let slots = ring.next_slots(count - numbers.len());
            numbers.extend(slots.iter().map(|slot| slot.number));
            let freed = slots.len();
            ring.free(freed);
        }
        numbers
    }

    fn take(ring: &mut InFlight, number: u64, is_query: bool) {
        let slot = ring.take();
        slot.number = number;
        slot.question = is_query.then(|| {
            Box::new(InFlightQuery {
                query: Query::Totals,
                answered: None,
            })
        });
    }

    #[test]
    fn slots_come_out_in_order_however_the_ring_wraps() {
        let mut ring = InFlight::new(3, 0, false);
        assert_eq!(ring.capacity(), 4);
        let (mut next, mut out) = (0, 0);
        for step in 1..=50 {
            while ring.len() < ring.capacity() && next < 3 * step {
                take(&mut ring, next, false);
                next += 1;
            }
            ring.execute(|_| ());
            let count = ring.publishable(out + 2);
            let expected: Vec<u64> = (out..out + count as u64).collect();
            assert_eq!(free(&mut ring, count), expected);
            out += count as u64;
        }
        assert!(out > 90 && ring.slots.len() == 4);
    }

    #[test]
    fn a_query_is_published_behind_the_commands_before_it() {
        let mut ring = InFlight::new(8, 0, false);
        for (number, is_query) in [(0, true), (0, false), (1, true), (1, false)] {
            take(&mut ring, number, is_query);
        }
        assert_eq!(ring.publishable(u64::MAX), 0, "nothing was executed");
        ring.execute(|_| ());
        let counts = [0, 1, 2].map(|durable| ring.publishable(durable));
        assert_eq!(counts, [1, 3, 4]);
    }

    #[test]
    fn an_answer_counts_as_events_until_it_is_published() {
        let mut ring = InFlight::new(4, 0, false);
        take(&mut ring, 0, false);
        take(&mut ring, 0, true);
        ring.execute(|slot| {
            if let Some(question) = &mut slot.question {
                question.answered = Some(Answered {
                    sequence: 0,
                    answer: QueryReply::Totals(vec![CurrencyTotal::default(); 100]),
                });
            }
        });
        assert_eq!(ring.waiting_events(), 200);
        // It is taken out to be published.
        let question = ring.next_slots(2)[1].question.as_mut();
        question.expect("it is one").answered = None;
        ring.free(2);
        assert_eq!(ring.waiting_events(), 0);
        let entry = size_of::<(SymbolId, RestingOrder)>().max(size_of::<ConditionalOrder>());
        assert!(entry <= ENTRY_EVENTS * 64, "{entry}");
    }

    #[test]
    fn room_for_many_events_is_given_back_when_they_are_published() {
        let mut ring = InFlight::new(4, 0, false);
        for (room, waiting) in [(EVENTS_KEPT, 0), (EVENTS_KEPT + 1, 0), (1_000, 1_000)] {
            take(&mut ring, 0, false);
            ring.execute(|slot| {
                slot.events = Events::with_capacity(room);
                let (order, uid) = (OrderId(1), UserId(1));
                let event = || Event::Refilled {
                    order,
                    uid,
                    size: 1,
                };
                (0..waiting).for_each(|_| slot.events.push(event()));
            });
            assert_eq!(ring.waiting_events(), waiting);
            ring.free(1);
            assert_eq!((ring.waiting_events(), ring.large), (0, 0));
            assert!(ring.slots[0].events.room() <= EVENTS_KEPT);
        }
    }

    #[test]
    fn a_ring_that_is_empty_begins_with_its_first_slot() {
        let mut ring = InFlight::new(64, 0, false);
        for number in 0..100 {
            take(&mut ring, number, false);
            ring.execute(|_| ());
            assert_eq!(ring.publishable(u64::MAX), 1);
            ring.free(1);
        }
        assert_eq!(ring.slots.len(), 1);
    }

    #[test]
    fn a_ring_that_is_never_empty_has_as_few_slots_as_were_needed_together() {
        let mut ring = InFlight::new(64, 0, false);
        let (mut next, mut out) = (0, 0);
        for (together, slots) in [(3, 4), (2, 4), (9, 16), (5, 16), (64, 64)] {
            for _ in 0..100 {
                while ring.len() < together {
                    take(&mut ring, next, false);
                    next += 1;
                }
                ring.execute(|_| ());
                let freed = free(&mut ring, 1);
                assert_eq!(freed, [out]);
                out += 1;
            }
            assert_eq!(ring.slots.len(), slots, "{together} together");
        }
    }
}
