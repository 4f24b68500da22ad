//! Making a bus and its inboxes.

use std::marker::PhantomData;

use super::consumer::Consumer;
use super::handle::{Bus, Handle};
use super::inbox::Options;
use super::priority::{Admission, AdmissionError};
use super::registry::Core;
use super::topic::{Message, TopicError, TopicInfo, Topics};
use crate::channel;
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
    /// The bus was drained or stopped.
    Closed,
}

errors!(BuildError {
    Self::Topics(error) => "topics of a bus: {error}";
    Self::Admission(error) => "inbox of a bus: {error}";
    Self::Inbox(error) => "inbox of a bus: {error}";
    Self::Closed => "the bus was drained or stopped";
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

    /// Makes the bus. The first one of a process calibrates the clock, which takes some 10 ms.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(self) -> Result<Bus<M>, BuildError> {
        TopicInfo::check(M::TOPICS).map_err(BuildError::Topics)?;
        self.options.check()?;
        let core = Arc::new(Core::new(self.options));
        Ok(Bus(Arc::new(Handle(core))))
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
