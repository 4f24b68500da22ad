//! The handle to a bus, and the builders of buses and inboxes.

use std::marker::PhantomData;
use std::path::PathBuf;

use super::InboxId;
use super::consumer::Consumer;
use super::inbox::{BusError, Options};
use super::ledger::{InboxReading, Totals};
use super::priority::{Admission, Priority};
use super::publisher::Publisher;
use super::registry::{Core, Handle, Snapshot};
use super::topic::{Message, TopicInfo, Topics};
#[cfg(not(any(loom, shuttle)))]
use crate::export::{self, Export};
use crate::ring::CAPACITY_MAX;
use crate::ring::sync::Arc;
use crate::state::{Lifecycle, StateView};
use crate::wait::WaitMode;
#[cfg(not(any(loom, shuttle)))]
#[cfg(not(any(loom, shuttle)))]
mod exported;

#[cfg(not(any(loom, shuttle)))]
use exported::Exported;

/// A handle to a message bus, cheap to clone; see the [module](super).
pub struct Bus<M: Message>(pub(super) Arc<Handle<M>>);

impl<M: Message> Bus<M> {
    /// Returns a builder of a bus with other options than those of [`new`](Self::new).
    pub fn builder() -> BusBuilder<M> {
        BusBuilder::new()
    }

    /// Returns a bus with inboxes of 65,536 messages and the default
    /// [`Admission`](super::Admission), which admits up to 52,428 messages of the default priority.
    /// See [`BusBuilder::capacity`] for their memory.
    ///
    /// # Errors
    /// [`BusError::Topics`] if `M::TOPICS` is invalid; see [`TopicInfo::check`].
    pub fn new() -> Result<Self, BusError> {
        Self::builder().build()
    }

    /// Returns a consumer with an inbox of its own, for these topics. It gets the messages that are
    /// published after this returns.
    ///
    /// Allocates the inbox. Each publisher finds it with its next message, which then takes some µs
    /// more.
    ///
    /// # Errors
    /// See [`BusError`].
    pub fn subscribe(&self, topics: Topics) -> Result<Consumer<M>, BusError> {
        self.subscription(topics).open()
    }

    /// Returns a builder of an inbox, for [`subscribe`](Self::subscribe) with options.
    ///
    /// ```
    /// # use thalweg::bus::{Admission, Bus, Message, TopicId, TopicInfo, Topics};
    /// # #[derive(Clone)] struct Temperature(i32);
    /// # impl Message for Temperature {
    /// #     const TOPICS: &'static [TopicInfo] =
    /// #         &[TopicInfo { is_retained: true, ..TopicInfo::new("temperature") }];
    /// #     fn topic(&self) -> TopicId { TopicId::new(0) }
    /// # }
    /// let bus = Bus::<Temperature>::new()?;
    /// let mut tx = bus.publisher("sensor")?;
    /// tx.publish(Temperature(21))?;
    /// let mut rx = bus
    ///     .subscription(Topics::ALL)
    ///     .capacity(1_000)
    ///     .admission(Admission::reserve(0, 10, 10))
    ///     .replay_retained()
    ///     .open()?;
    /// let last = rx.recv()?;
    /// assert!(last.is_replay && last.message.0 == 21);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn subscription(&self, topics: Topics) -> SubscriptionBuilder<M> {
        SubscriptionBuilder::new(Arc::clone(&self.0.0), topics)
    }

    /// Returns a publisher. Several publishers may have the same name.
    ///
    /// It has some 300 bytes of counters in every inbox, and to make one takes some µs: a thread
    /// keeps its publisher, and does not make one for each message. When a publisher was dropped
    /// and its messages are taken, its counters are added to the inbox total.
    ///
    /// # Errors
    /// [`BusError::Closed`] after [`close`](Self::close) or [`stop`](Self::stop).
    pub fn publisher(&self, name: &str) -> Result<Publisher<M>, BusError> {
        Publisher::new(Arc::clone(&self.0), name)
    }

    /// Returns the state of the bus, to be read or waited for, with its last changes. The bus
    /// *stops* when it drains and every inbox is empty; that is detected when a consumer gets its
    /// first [`RecvError`](crate::channel::RecvError), when a consumer is dropped, and by this
    /// call.
    ///
    /// ```
    /// # use thalweg::bus::{Bus, Message, TopicId, TopicInfo, Topics};
    /// # use thalweg::state::Lifecycle;
    /// # #[derive(Clone)] struct Job(u32);
    /// # impl Message for Job {
    /// #     const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("job")];
    /// #     fn topic(&self) -> TopicId { TopicId::new(0) }
    /// # }
    /// let bus = Bus::<Job>::new()?;
    /// let mut rx = bus.subscribe(Topics::ALL)?;
    /// bus.close();
    /// assert!(rx.recv().is_err());
    /// bus.state().wait_for(Lifecycle::Stopped)?;
    /// let last = bus.state().changes().pop();
    /// assert_eq!(last.map(|change| change.why), Some("every inbox is empty"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn state(&self) -> &StateView {
        self.0.0.stop_if_empty();
        self.0.0.state.view()
    }

    /// Makes publishers wait until [`resume`](Self::resume). [`publish`](super::Publisher::publish)
    /// blocks in [`TopicOverflow::Block`](super::TopicOverflow::Block) topics. In topics with other
    /// policies it returns the message with [`Reason::Paused`], and so does
    /// [`try_publish`](super::Publisher::try_publish) in all topics, without using a sequence
    /// number or counting a loss. A publication that is running at this instant may still succeed,
    /// also after it has waited for room. Returns whether the bus was running.
    ///
    /// [`Reason::Paused`]: super::Reason::Paused
    pub fn pause(&self) -> bool {
        self.change(Lifecycle::Running, Lifecycle::Paused, "paused")
    }

    /// Ends a [`pause`](Self::pause); returns whether the bus was paused.
    pub fn resume(&self) -> bool {
        self.change(Lifecycle::Paused, Lifecycle::Running, "resumed")
    }

    fn change(&self, from: Lifecycle, to: Lifecycle, why: &'static str) -> bool {
        self.0.0.state.change(from, to, why).is_ok()
    }

    /// Ends publishing, for ever: publishers get an error, also those that wait for room or for the
    /// end of a pause, and consumers get the messages in their inboxes, then an error. It does not
    /// wait for them. Returns whether it was this call that ended publishing.
    ///
    /// A message that is being published at this instant is delivered, or returned to its
    /// publisher.
    pub fn close(&self) -> bool {
        self.0.0.drain("closed")
    }

    /// Works as [`close`](Self::close), and discards all messages in the inboxes, which are counted
    /// as discarded. A message that is being published at this instant may still be delivered.
    /// Returns whether it was this call that stopped the bus.
    ///
    /// # Panics
    /// If the drop of a message panics, after all others were dropped.
    pub fn stop(&self) -> bool {
        self.0.0.stop()
    }

    /// Returns the counters of each open inbox. With the differences (Δ) of two readings, the rates
    /// are Δ`issued` / Δ`at_ns` and Δ`taken` / Δ`at_ns`, and the utilisation is Δ`busy_ns` /
    /// (Δ`at_ns` × `consumers`), 0 to 1. It takes locks that publishers and consumers do not need
    /// for messages, and some µs.
    pub fn inbox_readings(&self) -> Vec<(InboxId, InboxReading)> {
        let readings = self.0.0.inbox_readings().into_iter();
        readings.map(|(id, reading, _)| (id, reading)).collect()
    }

    /// Returns all present counts: the state, and those of each inbox. Each is exact while no
    /// publisher and no consumer is in use. It takes locks as
    /// [`inbox_readings`](Self::inbox_readings) does, and may be called at any time.
    pub fn snapshot(&self) -> Snapshot {
        self.0.0.snapshot()
    }

    /// Returns the counts of all messages so far, for all inboxes that exist or existed. It takes a
    /// lock that publishers and consumers do not need for messages.
    pub fn totals(&self) -> Totals {
        self.0.0.totals()
    }
}

impl<M: Message> Clone for Bus<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

shown!([M: Message] Bus<M>, "Bus", this, "state": this.state().get(), "totals": this.totals());

/// The number of messages of an inbox by default.
const CAPACITY: usize = 65_536;

/// Builds a bus. Its options are those of each inbox, unless a [`SubscriptionBuilder`] changes
/// them.
#[derive(Debug, Clone)]
#[must_use]
pub struct BusBuilder<M> {
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
            /// that drop the oldest or conflate; default 65,536. Messages of the default priority,
            /// medium, may fill 80 % of it: see [`admission`](Self::admission).
            ///
            /// All of it is allocated when the inbox is opened: the next power of two of slots,
            /// each of the size of a message and some 32 bytes. So an inbox of 65,536 messages of
            /// 64 bytes takes some 6 MB.
            pub fn capacity(mut self, messages: usize) -> Self {
                self.options.capacity = messages;
                self
            }

            /// Sets the limit of each priority; default [`Admission::default`]: 60, 80, 99 and 100
            /// % of the capacity.
            pub fn admission(mut self, admission: Admission) -> Self {
                self.options.admission = admission;
                self
            }

            /// Lets messages of this priority and above overtake others: they have an express lane,
            /// a second ring of `messages` slots that consumers empty first (a priority queue of
            /// two levels). By default there is none, and messages are received in the order in
            /// which they came.
            ///
            /// A message of the lane is admitted if and only if fewer than `messages` are in the
            /// lane, whatever the other ring holds; [`Admission`] does not apply to the lane, which
            /// has no reserve for critical messages. Where the lane is full, the
            /// [`TopicOverflow`](super::TopicOverflow) of the topic applies: the message is not put
            /// into the other ring instead. The messages of one publisher keep their order in each
            /// of the two rings, and have none across them. Consumers take other messages only
            /// while the lane is empty: if it never is, those wait for ever.
            ///
            /// Topics that drop the oldest or conflate are in the lane if the *topic* has such a
            /// priority, whatever the priority of a message. [`Priority::Low`] is refused with
            /// [`BusError::Express`]: every message would be in the lane.
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
            /// tx.publish_with_priority(Priority::High, Job(2))?;
            /// assert_eq!(rx.recv()?.message.0, 2);
            /// assert_eq!(rx.recv()?.message.0, 1);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn express(mut self, from: Priority, messages: usize) -> Self {
                self.options.express = Some((from, messages));
                self
            }

            /// Sets how publishers and consumers wait; default [`WaitMode::Balanced`].
            pub fn mode(mut self, mode: WaitMode) -> Self {
                self.options.mode = mode;
                self
            }
        }
    )+};
}

inbox_options!(BusBuilder, SubscriptionBuilder);

impl<M: Message> BusBuilder<M> {
    fn new() -> Self {
        Self {
            options: Options {
                capacity: CAPACITY,
                admission: Admission::default(),
                mode: WaitMode::default(),
                express: None,
            },
            export_to: None,
            messages: PhantomData,
        }
    }

    /// Exports the statistics of its inboxes to a file in this directory, for a program that
    /// watches this one; overrides [`THALWEG_EXPORT`](crate::export::ENV_VAR). See
    /// [`export`](crate::export). The bus, with its remaining messages, may then be dropped on the
    /// exporting thread.
    pub fn export_to(mut self, directory: impl Into<PathBuf>) -> Self {
        self.export_to = Some(directory.into());
        self
    }

    /// Builds the bus. The first one of a process calibrates the clock, which takes some 10 ms.
    ///
    /// # Errors
    /// See [`BusError`].
    pub fn build(self) -> Result<Bus<M>, BusError> {
        TopicInfo::check(M::TOPICS).map_err(BusError::Topics)?;
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
    fn check(&self) -> Result<(), BusError> {
        let (from, express) = self.express.unzip();
        for asked in [self.capacity].into_iter().chain(express) {
            if !(1..=CAPACITY_MAX / 2).contains(&asked) {
                return Err(BusError::Capacity(asked));
            }
        }
        if from == Some(Priority::Low) {
            return Err(BusError::Express);
        }
        self.admission.limits(self.capacity)?;
        Ok(())
    }
}

/// Builds an inbox and its first consumer; see [`Bus::subscription`].
#[must_use = "a subscription is made by `open`"]
pub struct SubscriptionBuilder<M: Message> {
    core: Arc<Core<M>>,
    topics: Topics,
    options: Options,
    replays: bool,
}

impl<M: Message> SubscriptionBuilder<M> {
    fn new(core: Arc<Core<M>>, topics: Topics) -> Self {
        Self {
            topics,
            options: core.options,
            replays: false,
            core,
        }
    }

    /// Makes the consumer receive the retained message of each topic first, if there is one.
    pub fn replay_retained(mut self) -> Self {
        self.replays = true;
        self
    }

    /// Opens the inbox, and returns its consumer; see [`Bus::subscribe`].
    ///
    /// # Errors
    /// See [`BusError`].
    pub fn open(self) -> Result<Consumer<M>, BusError> {
        self.options.check()?;
        let opened = self
            .core
            .subscribe(self.topics, self.options, self.replays)?;
        Consumer::new(self.core, opened)
    }
}

shown!([M: Message] SubscriptionBuilder<M>, "SubscriptionBuilder", this,
    "topics": this.topics, "options": this.options, "replays": this.replays);
