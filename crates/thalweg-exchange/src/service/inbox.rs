//! Where a client's answers are laid down: a fixed number of places, used again and again.
//!
//! # State
//! A place has a phase, an answer under a lock, and a signal for whoever waits. `free` has a bit
//! per place.
//!
//! # Rules
//! 1. The client takes a free place and makes it `PENDING`, under the answer's lock, and only while
//!    `end` is not set. Then it sends the command.
//! 2. The publish stage writes the answer, then turns `PENDING` into `ANSWERED` and notifies.
//!    Where it finds `ABANDONED`, nobody wants the answer, and it frees the place.
//! 3. Whoever holds the [`Seat`] leaves: a pending place becomes `ABANDONED`, an answered one free.
//!    Whoever frees a place keeps little of the memory of its events ([`EVENTS_KEPT`]).
//! 4. At the end, when no stage runs any more, `end` is set, and then every place that is still
//!    pending is answered with it, under the lock.
//!
//! # Why it works
//! Between rule 1 and rule 2 nobody else locks the answer, so the publish stage never waits for a
//! client, but for a new one's inbox being made when it first answers on it. A client that takes a
//! place while the service ends either has the lock before rule 4, which then sees it pending, or
//! after, and sees the end: nobody waits for ever. A pending place leaves that phase by one
//! compare-exchange, so it is answered once.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use thalweg::wait::Signal;

use super::EVENTS_KEPT;
use super::client::ClientError;
use crate::event::Events;
use crate::result_code::ResultCode;

const FREE: u8 = 0;
const PENDING: u8 = 1;
const ABANDONED: u8 = 2;
const ANSWERED: u8 = 3;

/// Why the service takes nothing any more.
pub(super) type End = Arc<OnceLock<ClientError>>;

/// What came of a command; `done` is `None` where it was not done.
#[derive(Debug)]
struct Answer {
    done: Option<(u64, ResultCode)>,
    events: Events,
}

#[derive(Debug)]
struct Place {
    phase: AtomicU8,
    answer: Mutex<Answer>,
    signal: Signal,
}

impl Place {
    fn answer(&self) -> MutexGuard<'_, Answer> {
        // Nothing panics while it holds the lock, but for a failed allocation.
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One client's places.
#[derive(Debug)]
pub(super) struct Inbox {
    number: u32,
    places: Box<[Place]>,
    /// Bit n of word w: place 64 w + n is free.
    free: Box<[AtomicU64]>,
    /// How many events a free place has memory for, at most.
    events_kept: usize,
    end: End,
}

impl Inbox {
    pub(super) fn new(number: u32, places: usize, events: usize, end: &End) -> Self {
        let place = || Place {
            phase: AtomicU8::new(FREE),
            answer: Mutex::new(Answer {
                done: None,
                events: Events::with_capacity(events),
            }),
            signal: Signal::new(),
        };
        let mask = |word: usize| match places - word * 64 {
            64.. => u64::MAX,
            left => (1 << left) - 1,
        };
        Self {
            number,
            places: (0..places).map(|_| place()).collect(),
            free: (0..places.div_ceil(64))
                .map(|word| AtomicU64::new(mask(word)))
                .collect(),
            events_kept: events.max(EVENTS_KEPT),
            end: Arc::clone(end),
        }
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// How many commands may be under way.
    pub(super) const fn places(&self) -> usize {
        self.places.len()
    }

    /// Whether nobody holds a place.
    pub(super) fn is_vacant(&self) -> bool {
        let free = |word: &AtomicU64| {
            // ORDERING: Acquire, pairs with the Release in `free`.
            word.load(Ordering::Acquire).count_ones() as usize
        };
        self.free.iter().map(free).sum::<usize>() == self.places.len()
    }

    /// Takes a free place for a command that is about to be sent. One thread at a time: the
    /// client's.
    pub(super) fn take(self: &Arc<Self>) -> Result<Seat, ClientError> {
        let too_many = ClientError::TooManyInFlight {
            limit: self.places.len(),
        };
        let place = self.take_bit().ok_or(too_many)?;
        let slot = &self.places[place];
        let answer = slot.answer();
        if let Some(end) = self.end.get() {
            drop(answer);
            self.free(place);
            return Err(end.clone());
        }
        // ORDERING: Release, pairs with the Acquire in `lay` and `is_answered`; the channel and the
        // lock order it before every answer.
        slot.phase.store(PENDING, Ordering::Release);
        drop(answer);
        Ok(Seat {
            inbox: Arc::clone(self),
            place,
            is_read: false,
        })
    }

    fn take_bit(&self) -> Option<usize> {
        for (at, word) in self.free.iter().enumerate() {
            // ORDERING: Acquire, pairs with the Release in `free`: what was done with the place is
            // over. Only this thread takes, so a bit that is set stays set.
            let bits = word.load(Ordering::Acquire);
            if bits != 0 {
                let bit = bits.trailing_zeros();
                // ORDERING: Relaxed; only this thread takes places, nobody learns anything from it.
                word.fetch_and(!(1 << bit), Ordering::Relaxed);
                return Some(at * 64 + bit as usize);
            }
        }
        None
    }

    fn free(&self, place: usize) {
        // ORDERING: Release, pairs with the Acquire in `lay`; the bit below is what hands it over.
        self.places[place].phase.store(FREE, Ordering::Release);
        // ORDERING: Release, pairs with the Acquire in `take_bit` and `is_vacant`.
        self.free[place / 64].fetch_or(1 << (place % 64), Ordering::Release);
    }

    /// Answers a pending command. Called by the publish stage, and by whoever ends the service.
    pub(super) fn lay(&self, place: u32, done: Option<(u64, ResultCode)>, events: &Events) {
        let place = place as usize;
        let slot = &self.places[place];
        let mut answer = slot.answer();
        answer.done = done;
        answer.events.copy_from(events);
        // ORDERING: AcqRel: Release pairs with the Acquire in `is_answered` and in `Seat::drop`,
        // Acquire with the Release there where the place was abandoned.
        let phase = slot.phase.compare_exchange(
            PENDING,
            ANSWERED,
            Ordering::AcqRel,
            Ordering::Acquire, // ORDERING: as above
        );
        if phase == Err(ABANDONED) {
            answer.events.keep_room_for(self.events_kept);
        }
        drop(answer);
        match phase {
            Ok(_) => _ = slot.signal.notify_one(),
            Err(ABANDONED) => self.free(place),
            Err(_) => {}
        }
    }

    /// Answers everything that is pending: the end is set, and no stage runs any more.
    pub(super) fn end(&self) {
        for place in 0..self.places.len() {
            let slot = &self.places[place];
            // The lock orders this against a `take` that did not see the end.
            drop(slot.answer());
            // ORDERING: Acquire, pairs with the Release in `take`.
            if matches!(slot.phase.load(Ordering::Acquire), PENDING | ABANDONED) {
                self.lay(place as u32, None, &Events::new());
            }
        }
    }
}

/// A place that was taken, for as long as somebody waits for its answer or reads it.
#[derive(Debug)]
pub(super) struct Seat {
    inbox: Arc<Inbox>,
    place: usize,
    /// Whether the answer was collected.
    is_read: bool,
}

impl Seat {
    fn slot(&self) -> &Place {
        &self.inbox.places[self.place]
    }

    /// What the command carries, so that its answer finds back.
    pub(super) const fn place(&self) -> u32 {
        self.place as u32
    }

    pub(super) fn signal(&self) -> &Signal {
        &self.slot().signal
    }

    pub(super) fn is_answered(&self) -> bool {
        // ORDERING: Acquire, pairs with the AcqRel in `lay`: the answer is there.
        self.slot().phase.load(Ordering::Acquire) == ANSWERED
    }

    /// The answer, once it is there, with the buffer of its events, which must be given back.
    pub(super) fn collect(&mut self) -> Result<(u64, ResultCode, Events), ClientError> {
        self.is_read = true;
        let mut answer = self.slot().answer();
        match answer.done {
            Some((sequence, result)) => Ok((sequence, result, std::mem::take(&mut answer.events))),
            None => {
                let end = self.inbox.end.get();
                Err(end.cloned().unwrap_or(ClientError::Closed))
            }
        }
    }

    /// Gives a buffer of events back.
    pub(super) fn give_back(&self, mut events: Events) {
        events.keep_room_for(self.inbox.events_kept);
        self.slot().answer().events = events;
    }

    /// Leaves a place whose command was not sent.
    pub(super) fn cancel(self) {
        let phase = &self.slot().phase;
        // ORDERING: AcqRel on success, Acquire else: pairs with `lay`, which may be answering with
        // the end of the service. Either way the place is answered, and the drop frees it.
        let _ = phase.compare_exchange(PENDING, ANSWERED, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // ORDERING: AcqRel on success, Acquire else: pairs with the AcqRel in `lay`.
        let phase = self.slot().phase.compare_exchange(
            PENDING,
            ABANDONED,
            Ordering::AcqRel,
            Ordering::Acquire, // ORDERING: as above
        );
        if phase == Err(ANSWERED) {
            if !self.is_read {
                self.slot()
                    .answer()
                    .events
                    .keep_room_for(self.inbox.events_kept);
            }
            self.inbox.free(self.place);
        }
    }
}
