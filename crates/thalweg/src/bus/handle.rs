//! The bus as a thread holds it.

use super::InboxId;
use super::balance::Reading;
use super::builder::{BuildError, Builder, Subscription};
use super::consumer::Consumer;
use super::ledger::Totals;
use super::metrics::Snapshot;
use super::publisher::Publisher;
use super::registry::Core;
use super::topic::{Message, Topics};
use crate::ring::sync::{Arc, is_model_over};
use crate::state::{Lifecycle, StateView};

/// A message bus; see the [module](super). A handle, cheap to clone.
pub struct Bus<M: Message>(pub(super) Arc<Handle<M>>);

/// The core of a bus, as handles and publishers hold it, and consumers do not.
pub(super) struct Handle<M: Message>(pub(super) Arc<Core<M>>);

impl<M: Message> Drop for Handle<M> {
    fn drop(&mut self) {
        if !is_model_over() {
            self.0.drain("no handle is left");
        }
    }
}

impl<M: Message> Bus<M> {
    /// Returns a builder of a bus with other options than those of [`new`](Self::new).
    pub fn builder() -> Builder<M> {
        Builder::new()
    }

    /// Returns a bus with inboxes of 65,536 messages and the default
    /// [`Admission`](super::Admission).
    ///
    /// # Errors
    /// [`BuildError::Topics`] if the topics of `M` are not as they must be.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Returns a consumer with an inbox of its own, for these topics. It gets what is published
    /// after this returns.
    ///
    /// Allocates the inbox. Each publisher learns of it with its next message, which then takes
    /// some µs more.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn subscribe(&self, topics: Topics) -> Result<Consumer<M>, BuildError> {
        self.subscription(topics).open()
    }

    /// Works as [`subscribe`](Self::subscribe), with options.
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
    pub fn subscription(&self, topics: Topics) -> Subscription<M> {
        Subscription::new(Arc::clone(&self.0.0), topics)
    }

    /// Returns a publisher. Its name is for people, and need not be its alone.
    ///
    /// It has some 300 bytes of figures in every inbox, and to make one takes some µs: a thread
    /// keeps its publisher, and does not make one for each message. When a publisher has gone and
    /// its messages are taken, an inbox keeps its figures in a sum alone.
    ///
    /// # Errors
    /// [`BuildError::Closed`] after [`drain`](Self::drain) or [`stop`](Self::stop).
    pub fn publisher(&self, name: &str) -> Result<Publisher<M>, BuildError> {
        Publisher::new(Arc::clone(&self.0), name)
    }

    /// Returns the state of the bus, to be read, waited for, and with its last changes. The bus
    /// *stops* when it drains and nothing waits any more; that is detected when a consumer gets the
    /// error of the end, when a consumer is dropped, and by this call.
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
    /// bus.drain();
    /// assert!(rx.recv().is_err());
    /// bus.state().wait_for(Lifecycle::Stopped)?;
    /// let last = bus.state().changes().pop();
    /// assert_eq!(last.map(|change| change.why), Some("every inbox is empty"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn state(&self) -> &StateView<Lifecycle> {
        self.0.0.stop_if_empty();
        self.0.0.state.view()
    }

    /// Holds publishers back until [`resume`](Self::resume). In topics that block they wait; else,
    /// and if they don't wait, they get their message back with [`Reason::Paused`], without a
    /// sequence number or a loss. One that publishes at this moment may not see it yet, and one
    /// that waits for room still gets it. Returns whether the bus was running.
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
    /// end of a pause, and consumers get what is there, then an error. Returns whether it was this
    /// call that did.
    ///
    /// A message that is being published at this moment is delivered or given back.
    pub fn drain(&self) -> bool {
        self.0.0.drain("drained")
    }

    /// Works as [`drain`](Self::drain), and discards all messages in the inboxes, which are counted
    /// as discarded. A message that is being published at this moment may still be delivered.
    /// Returns whether it was this call that did.
    ///
    /// # Panics
    /// If the drop of a message does, when all others are dropped.
    pub fn stop(&self) -> bool {
        self.0.0.stop()
    }

    /// Returns the counters of each open inbox, for a [`Balance`](super::Balance) of its own:
    /// arrival and service rate, time until it is full, and whether that is an overload. Takes
    /// locks that publishers and consumers do not need for messages; some µs.
    ///
    /// ```
    /// # use thalweg::bus::{Balance, Bus, Horizons, Message, TopicId, TopicInfo, Topics, Verdict};
    /// # #[derive(Clone)] struct Job(u32);
    /// # impl Message for Job {
    /// #     const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("job")];
    /// #     fn topic(&self) -> TopicId { TopicId::new(0) }
    /// # }
    /// let bus = Bus::<Job>::new()?;
    /// let _rx = bus.subscribe(Topics::ALL)?;
    /// let mut tx = bus.publisher("dispatcher")?;
    /// let mut balance = Balance::new(Horizons::default());
    /// tx.publish(Job(1))?;
    /// // Now and then, on any thread:
    /// for (_inbox, reading) in bus.readings() {
    ///     let report = balance.update(reading);
    ///     assert_eq!(report.verdict, Verdict::Stable);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn readings(&self) -> Vec<(InboxId, Reading)> {
        let readings = self.0.0.readings().into_iter();
        readings.map(|(id, reading, _)| (id, reading)).collect()
    }

    /// Returns all present figures: the state, and counts of each inbox. Each is exact while no
    /// publisher and no consumer is at work. It takes locks as [`readings`](Self::readings) does,
    /// and may be called at any time.
    pub fn snapshot(&self) -> Snapshot {
        self.0.0.snapshot()
    }

    /// Returns the counts of all messages so far, for all inboxes that there are or were. It takes
    /// a lock that publishers and consumers do not need for messages.
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
