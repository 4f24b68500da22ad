//! All desks of a service, and what the publish stage and the end of the service do with them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use thalweg::wait::Mode;

use super::client::ClientError;
use super::desk::{Desk, End};
use crate::event::Events;
use crate::result_code::ResultCode;

/// The desks of all clients.
#[derive(Debug)]
pub(super) struct Office {
    desks: Mutex<Desks>,
    end: End,
    places: usize,
    events: usize,
    mode: Mode,
}

#[derive(Debug, Default)]
struct Desks {
    /// By number; one is made once and never goes.
    all: Vec<Arc<Desk>>,
    /// Those whose client is gone.
    left: Vec<u32>,
}

impl Office {
    pub(super) fn new(places: usize, events: usize, mode: Mode) -> Self {
        Self {
            desks: Mutex::default(),
            end: Arc::new(OnceLock::new()),
            places,
            events,
            mode,
        }
    }

    fn desks(&self) -> MutexGuard<'_, Desks> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }

    /// A desk for a new client: one that was left and is vacant, or a new one.
    pub(super) fn open(&self) -> Arc<Desk> {
        let mut desks = self.desks();
        let Desks { all, left } = &mut *desks;
        let is_vacant = |&number: &u32| all[number as usize].is_vacant();
        if let Some(at) = left.iter().position(is_vacant) {
            let number = left.swap_remove(at);
            return Arc::clone(&all[number as usize]);
        }
        let number = u32::try_from(all.len()).expect("memory runs out before clients do");
        let desk = Arc::new(Desk::new(number, self.places, self.events, &self.end));
        all.push(Arc::clone(&desk));
        desk
    }

    pub(super) fn leave(&self, desk: u32) {
        self.desks().left.push(desk);
    }

    /// Why nothing is taken any more.
    pub(super) fn ended(&self) -> ClientError {
        self.end.get().cloned().unwrap_or(ClientError::Closed)
    }

    /// Tells everybody who waits, and who comes later. The first reason counts. No stage may run
    /// any more.
    pub(super) fn end(&self, reason: ClientError) {
        // A second one changes nothing.
        let _ = self.end.set(reason);
        let desks = self.desks().all.clone();
        desks.iter().for_each(|desk| desk.end());
    }
}

/// What goes with a command through the pipeline: where its answer belongs.
pub(super) const fn tag(desk: u32, place: u32) -> u64 {
    (desk as u64) << 32 | place as u64
}

/// The publish stage's way to the desks.
#[derive(Debug)]
pub(super) struct Answering {
    office: Arc<Office>,
    /// Those known so far, by number; a new one is looked up once, under the lock.
    known: Vec<Arc<Desk>>,
}

impl Answering {
    pub(super) const fn new(office: Arc<Office>) -> Self {
        Self {
            office,
            known: Vec::new(),
        }
    }

    /// The number of the client whose command this is.
    pub(super) const fn client(tag: u64) -> u64 {
        tag >> 32
    }

    pub(super) fn answer(&mut self, tag: u64, done: (u64, ResultCode), events: &Events) {
        let desk = Self::client(tag) as usize;
        if desk >= self.known.len() {
            let desks = self.office.desks();
            self.known.extend_from_slice(&desks.all[self.known.len()..]);
        }
        self.known[desk].lay(tag as u32, Some(done), events);
    }
}
