//! What the owner knows of sessions: which commands are new, and which are in flight.

use std::collections::VecDeque;

use super::options::SessionLimits;
use super::record::Check;
use super::sessions::{SessionSlot, Sessions};
use crate::engine::index::Index;
use crate::session::{Refusal, Role, SessionKey};

#[derive(Debug)]
struct Admitted {
    key: SessionKey,
    /// The last sequence that was taken.
    last: u64,
    in_flight: u32,
}

/// A command or a query in the pipeline.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// None of a query, or of a command of the exchange itself.
    session: Option<SessionSlot>,
    sequence: u64,
    check: Check,
    number: u64,
}

/// Where a command belongs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In a session that has sent commands before.
    Known(SessionSlot),
    /// In a new one.
    New,
}

/// What a command is to its session.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// It has not been here before.
    New(Place),
    /// It was taken before, or one with a higher sequence.
    Old(SessionSlot),
}

#[derive(Debug)]
pub(super) struct Admission {
    list: Vec<Admitted>,
    index: Index<SessionKey>,
    /// By position in the ring.
    flights: VecDeque<Flight>,
    /// The position of the first of them.
    first: u64,
    /// The first position whose command has no answer yet. Those before it count for no session.
    unanswered: u64,
    limits: SessionLimits,
}

impl Admission {
    pub(super) fn new(sessions: &Sessions, limits: SessionLimits) -> Self {
        let mut admission = Self {
            list: Vec::new(),
            index: Index::default(),
            flights: VecDeque::new(),
            first: 0,
            unanswered: 0,
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

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Everything before this position has an answer: its sessions may send as many more.
    pub(super) fn answer(&mut self, position: u64) {
        while self.unanswered < position {
            let at = (self.unanswered - self.first) as usize;
            let Some(flight) = self.flights.get(at) else {
                return;
            };
            self.unanswered += 1;
            if let Some(slot) = flight.session {
                self.list[slot.0 as usize].in_flight -= 1;
            }
        }
    }

    /// Forgets what was published: everything before this position.
    pub(super) fn pass(&mut self, position: u64) {
        self.answer(position);
        while self.first < position && self.flights.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Whether a command is new to its session, and may be taken as far as that goes.
    #[inline]
    pub(super) fn kind(&self, key: SessionKey, sequence: u64) -> Result<Kind, Refusal> {
        let key_of = |slot: u32| self.list[slot as usize].key;
        let Some(slot) = self.index.find(key, key_of) else {
            return self.may_open(key).map(|()| Kind::New(Place::New));
        };
        let slot = SessionSlot(slot);
        Ok(if sequence > self.list[slot.0 as usize].last {
            Kind::New(Place::Known(slot))
        } else {
            Kind::Old(slot)
        })
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

    /// Whether a session has as many commands in flight as it may.
    #[inline]
    pub(super) fn is_full(&self, place: Place) -> bool {
        match place {
            Place::Known(slot) => self.list[slot.0 as usize].in_flight >= self.limits.answers_kept,
            Place::New => false,
        }
    }

    /// The refusal of a command that would be one too many.
    pub(super) const fn too_many(&self) -> Refusal {
        Refusal::InFlight {
            limit: self.limits.answers_kept,
        }
    }

    /// A command of a session is on its way.
    #[inline]
    pub(super) fn take(&mut self, slot: SessionSlot, sequence: u64, check: Check, number: u64) {
        let admitted = &mut self.list[slot.0 as usize];
        admitted.last = sequence;
        admitted.in_flight += 1;
        self.flights.push_back(Flight {
            session: Some(slot),
            sequence,
            check,
            number,
        });
    }

    /// The slot of a new session, the same as in the tables.
    pub(super) fn open(&mut self, key: SessionKey) -> SessionSlot {
        self.add(key, 0)
    }

    /// A query, or a command of the exchange itself, is on its way.
    pub(super) fn take_other(&mut self) {
        self.flights.push_back(Flight {
            session: None,
            sequence: 0,
            check: Check(0),
            number: 0,
        });
    }

    /// The number of a command that is in flight and comes again.
    pub(super) fn in_flight_of(
        &self,
        slot: SessionSlot,
        sequence: u64,
        check: Check,
    ) -> Result<u64, Refusal> {
        let is_it = |flight: &&Flight| flight.session == Some(slot) && flight.sequence == sequence;
        match self.flights.iter().find(is_it) {
            Some(flight) if flight.check == check => Ok(flight.number),
            Some(_) => Err(Refusal::SequenceReused),
            None => Err(Refusal::NotExecuted),
        }
    }
}
