//! The bus as a thread holds it.

use super::InboxId;
use super::balance::Reading;
use super::builder::{BuildError, Builder, Subscription};
use super::consumer::Consumer;
use super::ledger::Totals;
use super::publisher::Publisher;
use super::registry::Core;
use super::topic::{Message, Topics};
use crate::ring::sync::{Arc, is_model_over};

/// What a bus does.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Lifecycle {
    /// Messages are published.
    Running,
    /// Publishers get their messages back, until it is resumed.
    Paused,
    /// Nothing is published any more, and consumers get what is there.
    Draining,
    /// Nothing is published, and nothing is there.
    Stopped,
}

/// A message bus; see the [module](super). A handle, cheap to clone.
pub struct Bus<M: Message>(pub(super) Arc<Handle<M>>);

/// What handles and publishers hold, and consumers do not.
pub(super) struct Handle<M: Message>(pub(super) Arc<Core<M>>);

impl<M: Message> Drop for Handle<M> {
    fn drop(&mut self) {
        if !is_model_over() {
            self.0.drain();
        }
    }
}

impl<M: Message> Bus<M> {
    /// A bus with other options than [`new`](Self::new) gives it.
    pub fn builder() -> Builder<M> {
        Builder::new()
    }

    /// A bus with inboxes of 65,536 messages and the default [`Admission`](super::Admission).
    ///
    /// # Errors
    /// [`BuildError::Topics`] if the topics of `M` are not as they must be.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// A consumer with an inbox of its own, for these topics. It gets what is published after this
    /// returns.
    ///
    /// Allocates the inbox. Each publisher learns of it with its next message, which then takes
    /// some µs more.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn subscribe(&self, topics: Topics) -> Result<Consumer<M>, BuildError> {
        self.subscription(topics).open()
    }

    /// As [`subscribe`](Self::subscribe), with options.
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

    /// A publisher. Its name is for people, and need not be its alone.
    ///
    /// Inboxes keep the figures of every publisher that sent them something, some 300 bytes each,
    /// for as long as they are there: a thread keeps its publisher, and does not make one for each
    /// message.
    ///
    /// # Errors
    /// [`BuildError::Closed`] after [`drain`](Self::drain) or [`close`](Self::close).
    pub fn publisher(&self, name: &str) -> Result<Publisher<M>, BuildError> {
        Publisher::new(Arc::clone(&self.0), name)
    }

    /// What the bus does. Takes a lock.
    pub fn state(&self) -> Lifecycle {
        self.0.0.lifecycle()
    }

    /// Gives messages back to publishers until [`resume`](Self::resume): with [`Reason::Paused`],
    /// and without a sequence number or a loss. A publisher that waits for room still gets it.
    /// Gives whether the bus was running.
    ///
    /// [`Reason::Paused`]: super::Reason::Paused
    pub fn pause(&self) -> bool {
        let paused = self.0.0.go(&[Lifecycle::Running], Lifecycle::Paused);
        paused.is_some()
    }

    /// Ends a [`pause`](Self::pause); gives whether the bus was paused.
    pub fn resume(&self) -> bool {
        let resumed = self.0.0.go(&[Lifecycle::Paused], Lifecycle::Running);
        resumed.is_some()
    }

    /// Ends publishing, for ever: publishers get an error, also those that wait for room, and
    /// consumers get what is there, then an error. Gives whether it was this call that did.
    ///
    /// A message that is being published at this moment is delivered or given back.
    pub fn drain(&self) -> bool {
        self.0.0.drain()
    }

    /// As [`drain`](Self::drain), and what is in the inboxes is discarded, and counted as that. A
    /// message that is being published at this moment may still be delivered. Gives whether it was
    /// this call that did.
    ///
    /// # Panics
    /// If the drop of a message does, when all others are dropped.
    pub fn close(&self) -> bool {
        self.0.0.close()
    }

    /// The counters of each open inbox, for a [`Balance`](super::Balance) of its own: arrival and
    /// service rate, time until it is full, and whether that is an overload. Takes locks that
    /// publishers and consumers do not need for messages; some µs.
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
        self.0.0.readings()
    }

    /// What became of all messages so far, for all inboxes that there are or were. Takes a lock
    /// that publishers and consumers do not need for messages.
    pub fn totals(&self) -> Totals {
        self.0.0.totals()
    }
}

impl<M: Message> Clone for Bus<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

shown!([M: Message] Bus<M>, "Bus", this, "state": this.state(), "totals": this.totals());
