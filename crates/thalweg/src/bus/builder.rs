//! Making a bus and its inboxes.

use std::marker::PhantomData;
use std::path::PathBuf;

use super::consumer::Consumer;
#[cfg(not(any(loom, shuttle)))]
use super::exported::Exported;
use super::handle::{Bus, Handle};
use super::inbox::Options;
use super::priority::{Admission, AdmissionError};
use super::registry::Core;
use super::topic::{Message, TopicError, TopicInfo, Topics};
use crate::channel;
#[cfg(not(any(loom, shuttle)))]
use crate::export::{self, Export};
use crate::ring::sync::Arc;
use crate::ring::{CAPACITY_MAX, CapacityError};
use crate::wait::Mode;

/// Messages of an inbox, if nobody says.
const CAPACITY: usize = 65_536;

/// Why a bus, an inbox or a publisher can't be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The topics of the messages are not as they must be.
    Topics(TopicError),
    /// The capacity leaves no room for one of the priorities.
    Admission(AdmissionError),
    /// An inbox, or what it keeps for a topic, is out of range, or there is no memory for it.
    Inbox(channel::BuildError),
    /// The bus was drained or closed.
    Closed,
}

errors!(BuildError {
    Self::Topics(error) => "topics of a bus: {error}";
    Self::Admission(error) => "inbox of a bus: {error}";
    Self::Inbox(error) => "inbox of a bus: {error}";
    Self::Closed => "the bus was drained or closed";
});

impl From<AdmissionError> for BuildError {
    fn from(error: AdmissionError) -> Self {
        Self::Admission(error)
    }
}

impl From<channel::BuildError> for BuildError {
    fn from(error: channel::BuildError) -> Self {
        Self::Inbox(error)
    }
}

impl From<CapacityError> for BuildError {
    fn from(error: CapacityError) -> Self {
        Self::Inbox(error.into())
    }
}

/// Options of a bus, which are those of its inboxes unless a [`Subscription`] has its own.
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder<M> {
    options: Options,
    #[cfg_attr(
        any(loom, shuttle),
        allow(dead_code, reason = "a model writes no files")
    )]
    export_to: Option<PathBuf>,
    messages: PhantomData<fn() -> M>,
}

impl<M: Message> Builder<M> {
    pub(super) fn new() -> Self {
        Self {
            options: Options {
                capacity: CAPACITY,
                admission: Admission::default(),
                mode: Mode::default(),
            },
            export_to: None,
            messages: PhantomData,
        }
    }

    /// Messages that an inbox holds at most, besides those of topics that drop the oldest or
    /// conflate; default 65,536. A power of two wastes no memory.
    pub fn capacity(mut self, messages: usize) -> Self {
        self.options.capacity = messages;
        self
    }

    /// How the room is shared by priority; default [`Admission::default`].
    pub fn admission(mut self, admission: Admission) -> Self {
        self.options.admission = admission;
        self
    }

    /// How publishers and consumers wait; default [`Mode::Balanced`].
    pub fn mode(mut self, mode: Mode) -> Self {
        self.options.mode = mode;
        self
    }

    /// Writes the figures of its inboxes into a file in this directory, for whoever watches the
    /// program, wherever [`THALWEG_EXPORT`](crate::export::VARIABLE) leads: see
    /// [`export`](crate::export). The last of the bus may be dropped on the thread that does that,
    /// and with it the messages that are left.
    pub fn export_to(mut self, directory: impl Into<PathBuf>) -> Self {
        self.export_to = Some(directory.into());
        self
    }

    /// Makes the bus. The first one of a process calibrates the clock, which takes some 10 ms.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(self) -> Result<Bus<M>, BuildError> {
        TopicInfo::check(M::TOPICS).map_err(BuildError::Topics)?;
        self.options.check()?;
        let core = Arc::new(Core::new(self.options));
        let bus = Bus(Arc::new(Handle(core)));
        #[cfg(not(any(loom, shuttle)))]
        if let Some(directory) = export::directory(self.export_to)
            && let Some(export) = Export::new(directory, Exported::new(&bus))
        {
            // It is new, so the place is free.
            let _ = bus.0.0.export.set(export);
        }
        Ok(bus)
    }
}

impl Options {
    fn check(&self) -> Result<(), BuildError> {
        let asked = self.capacity;
        if !(1..=CAPACITY_MAX / 2).contains(&asked) {
            return Err(CapacityError { asked, bytes: 0 }.into());
        }
        self.admission.limits(asked)?;
        Ok(())
    }
}

/// Options of an inbox; see [`Bus::subscription`].
#[must_use = "a subscription is made by `open`"]
pub struct Subscription<M: Message> {
    core: Arc<Core<M>>,
    topics: Topics,
    options: Options,
    replays: bool,
}

impl<M: Message> Subscription<M> {
    pub(super) fn new(core: Arc<Core<M>>, topics: Topics) -> Self {
        Self {
            topics,
            options: core.options,
            replays: false,
            core,
        }
    }

    /// Messages that this inbox holds at most; see [`Builder::capacity`].
    pub fn capacity(mut self, messages: usize) -> Self {
        self.options.capacity = messages;
        self
    }

    /// How the room of this inbox is shared by priority.
    pub fn admission(mut self, admission: Admission) -> Self {
        self.options.admission = admission;
        self
    }

    /// How this consumer waits, and publishers wait for it.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.options.mode = mode;
        self
    }

    /// Delivers the last message of each topic that is retained first, if there was one.
    pub fn replay_retained(mut self) -> Self {
        self.replays = true;
        self
    }

    /// Makes the inbox and its consumer; see [`Bus::subscribe`].
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn open(self) -> Result<Consumer<M>, BuildError> {
        self.options.check()?;
        let opened = self
            .core
            .subscribe(self.topics, self.options, self.replays)?;
        Ok(Consumer::new(self.core, opened))
    }
}

shown!([M: Message] Subscription<M>, "Subscription", this,
    "topics": this.topics, "options": this.options, "replays": this.replays);
