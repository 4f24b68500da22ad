//! Making a bus and its inboxes.

use std::marker::PhantomData;
use std::path::PathBuf;

use super::consumer::Consumer;
#[cfg(not(any(loom, shuttle)))]
use super::exported::Exported;
use super::handle::{Bus, Handle};
use super::inbox::Options;
use super::priority::{Admission, AdmissionError, Priority};
use super::registry::Core;
use super::topic::{Message, TopicError, TopicInfo, Topics};
use crate::channel;
#[cfg(not(any(loom, shuttle)))]
use crate::export::{self, Export};
use crate::ring::sync::Arc;
use crate::ring::{CAPACITY_MAX, CapacityError};
use crate::wait::Mode;

/// The number of messages of an inbox by default.
const CAPACITY: usize = 65_536;

/// The reason why a bus, an inbox or a publisher can't be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The topics of the messages are not as they must be.
    Topics(TopicError),
    /// The capacity leaves no room for one of the priorities.
    Admission(AdmissionError),
    /// The capacity of an inbox or of its express lane is outside 1 to half of
    /// [`CAPACITY_MAX`], in messages.
    Capacity(usize),
    /// The number of messages that an inbox keeps for a topic is out of range, or there is no
    /// memory for all of them.
    Inbox(channel::BuildError),
    /// An express lane for every priority would leave nothing to overtake.
    Express,
    /// The bus was drained or stopped.
    Closed,
    /// The clone of a retained message asks for a copy of that same message.
    Copying,
}

errors!(BuildError {
    Self::Topics(error) => "topics of a bus: {error}";
    Self::Admission(error) => "inbox of a bus: {error}";
    Self::Capacity(asked) =>
        "inbox of a bus: capacity {asked} is outside 1 to {} messages", CAPACITY_MAX / 2;
    Self::Inbox(error) => "inbox of a bus: {error}";
    Self::Express => "an express lane needs a priority above low: else every message is in it";
    Self::Closed => "the bus was drained or stopped";
    Self::Copying => "the clone of a retained message asks for a copy of that message";
});

impl From<AdmissionError> for BuildError {
    fn from(error: AdmissionError) -> Self {
        Self::Admission(error)
    }
}

impl BuildError {
    /// There is no memory for the ring of an inbox, which has more places than were `asked` for.
    pub(super) fn ring(error: channel::BuildError, asked: usize) -> Self {
        Self::Inbox(match error {
            channel::BuildError::Memory { bytes, .. } => {
                channel::BuildError::Memory { asked, bytes }
            }
            error => error,
        })
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

/// Declares the options that a bus has for all of its inboxes, and that each inbox has for itself.
macro_rules! inbox_options {
    ($($Options:ident),+) => {$(
        impl<M: Message> $Options<M> {
            /// Sets the number of messages that an inbox holds at most, besides those of topics
            /// that drop the oldest or conflate; default 65,536. A power of two wastes no memory.
            pub fn capacity(mut self, messages: usize) -> Self {
                self.options.capacity = messages;
                self
            }

            /// Sets how the room is shared by priority; default [`Admission::default`].
            pub fn admission(mut self, admission: Admission) -> Self {
                self.options.admission = admission;
                self
            }

            /// Lets messages of this priority and above overtake others: they have an express lane,
            /// a ring of their own with room for `messages`, which consumers empty first. By
            /// default there is none, and messages are received in the order in which they came.
            ///
            /// A message of the lane is admitted if and only if fewer than `messages` are in the
            /// lane, whatever else waits; [`Admission`] says nothing of it, and the lane keeps no
            /// reserve for critical ones. Those of one publisher keep their order in each lane,
            /// and have none across the two. Consumers take other messages only while the lane is
            /// empty: if it never is, those wait for ever.
            ///
            /// Topics that drop the oldest or conflate go to the lane if the *topic* has such a
            /// priority, and not by that of a message.
            ///
            /// ```
            /// # use thalweg::bus::{Bus, Message, Priority, TopicId, TopicInfo, Topics};
            /// # #[derive(Clone)] struct Job(u32);
            /// # impl Message for Job {
            /// #     const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("job")];
            /// #     fn topic(&self) -> TopicId { TopicId::new(0) }
            /// # }
            /// let bus = Bus::<Job>::new()?;
            /// let options = bus.subscription(Topics::ALL).capacity(1_000);
            /// let mut rx = options.express(Priority::High, 100).open()?;
            /// let mut tx = bus.publisher("dispatcher")?;
            /// tx.publish(Job(1))?;
            /// tx.publish_at(Priority::High, Job(2))?;
            /// assert_eq!(rx.recv()?.message.0, 2);
            /// assert_eq!(rx.recv()?.message.0, 1);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn express(mut self, from: Priority, messages: usize) -> Self {
                self.options.express = Some((from, messages));
                self
            }

            /// Sets how publishers and consumers wait; default [`Mode::Balanced`].
            pub fn mode(mut self, mode: Mode) -> Self {
                self.options.mode = mode;
                self
            }
        }
    )+};
}

inbox_options!(Builder, Subscription);

impl<M: Message> Builder<M> {
    pub(super) fn new() -> Self {
        Self {
            options: Options {
                capacity: CAPACITY,
                admission: Admission::default(),
                mode: Mode::default(),
                express: None,
            },
            export_to: None,
            messages: PhantomData,
        }
    }

    /// Writes the figures of its inboxes into a file in this directory, for a program that watches
    /// this one, wherever [`THALWEG_EXPORT`](crate::export::VARIABLE) leads: see
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
        let (from, express) = self.express.unzip();
        for asked in [self.capacity].into_iter().chain(express) {
            if !(1..=CAPACITY_MAX / 2).contains(&asked) {
                return Err(BuildError::Capacity(asked));
            }
        }
        if from == Some(Priority::Low) {
            return Err(BuildError::Express);
        }
        self.admission.limits(self.capacity)?;
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
        Consumer::new(self.core, opened)
    }
}

shown!([M: Message] Subscription<M>, "Subscription", this,
    "topics": this.topics, "options": this.options, "replays": this.replays);
