//! Which commands of sessions are new, and how many are in flight.

use super::in_flight::Note;
use super::options::SessionLimits;
use super::tables::{SessionSlot, Sessions};
use crate::engine::index::Index;
use crate::session::{Refusal, Role, SessionKey};

#[derive(Debug)]
struct Admitted {
    key: SessionKey,
    /// The last sequence that was taken.
    last: u64,
    in_flight: u32,
}

/// Where a command belongs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In a session that has sent commands before.
    Known(SessionSlot),
    /// In a new one.
    New,
}

/// How a command relates to those that its session has sent.
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
        if note != Note::NONE {
            self.list[note.session as usize].in_flight -= 1;
        }
    }

    /// Whether a command is new to its session, and may be taken as far as that goes.
    #[inline]
    pub(super) fn kind(&mut self, key: SessionKey, sequence: u64) -> Result<Kind, Refusal> {
        let slot = match self.last {
            Some((last, slot)) if last == key => slot,
            _ => {
                let Some(slot) = self.find(key) else {
                    return self.may_open(key).map(|()| Kind::New(Place::New));
                };
                self.last = Some((key, slot));
                slot
            }
        };
        Ok(if sequence > self.list[slot.0 as usize].last {
            Kind::New(Place::Known(slot))
        } else {
            Kind::Old(slot)
        })
    }

    fn find(&self, key: SessionKey) -> Option<SessionSlot> {
        let key_of = |slot: u32| self.list[slot as usize].key;
        self.index.find(key, key_of).map(SessionSlot)
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

    /// Whether a session has as many commands in flight as it may. One of the program itself, whose
    /// holder is below 0, has no limit: it asks for no answer a second time.
    #[inline]
    pub(super) fn is_full(&self, place: Place) -> bool {
        match place {
            Place::Known(slot) => {
                let session = &self.list[slot.0 as usize];
                session.in_flight >= self.limits.answers_kept && session.key.holder >= 0
            }
            Place::New => false,
        }
    }

    /// The refusal of a command that would be one too many.
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
