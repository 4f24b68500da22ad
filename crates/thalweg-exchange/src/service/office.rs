//! All inboxes of a service, and what the publish stage and the end of the service do with them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use thalweg::wait::Mode;

use super::client::ClientError;
use super::inbox::{End, Inbox};
use crate::event::Events;
use crate::result_code::ResultCode;

/// The inboxes of all clients.
#[derive(Debug)]
pub(super) struct Office {
    inboxes: Mutex<Inboxes>,
    end: End,
    places: usize,
    events: usize,
    mode: Mode,
}

#[derive(Debug, Default)]
struct Inboxes {
    /// By number; one is made once and never goes.
    all: Vec<Arc<Inbox>>,
    /// Those whose client is gone.
    left: Vec<u32>,
}

impl Office {
    pub(super) fn new(places: usize, events: usize, mode: Mode) -> Self {
        Self {
            inboxes: Mutex::default(),
            end: Arc::new(OnceLock::new()),
            places,
            events,
            mode,
        }
    }

    fn inboxes(&self) -> MutexGuard<'_, Inboxes> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }

    /// An inbox for a new client: one that was left and is vacant, or a new one.
    pub(super) fn open(&self) -> Arc<Inbox> {
        let mut inboxes = self.inboxes();
        let Inboxes { all, left } = &mut *inboxes;
        let is_vacant = |&number: &u32| all[number as usize].is_vacant();
        if let Some(at) = left.iter().position(is_vacant) {
            let number = left.swap_remove(at);
            return Arc::clone(&all[number as usize]);
        }
        let number = u32::try_from(all.len()).expect("memory runs out before clients do");
        let inbox = Arc::new(Inbox::new(number, self.places, self.events, &self.end));
        all.push(Arc::clone(&inbox));
        inbox
    }

    pub(super) fn leave(&self, inbox: u32) {
        self.inboxes().left.push(inbox);
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
        let inboxes = self.inboxes().all.clone();
        inboxes.iter().for_each(|inbox| inbox.end());
    }
}

/// What goes with a command through the pipeline: where its answer belongs.
pub(super) const fn tag(inbox: u32, place: u32) -> u64 {
    (inbox as u64) << 32 | place as u64
}

/// The publish stage's way to the inboxes.
#[derive(Debug)]
pub(super) struct Answering {
    office: Arc<Office>,
    /// Those known so far, by number; a new one is looked up once, under the lock.
    known: Vec<Arc<Inbox>>,
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
        let inbox = Self::client(tag) as usize;
        if inbox >= self.known.len() {
            let inboxes = self.office.inboxes();
            self.known
                .extend_from_slice(&inboxes.all[self.known.len()..]);
        }
        self.known[inbox].lay(tag as u32, Some(done), events);
    }
}
