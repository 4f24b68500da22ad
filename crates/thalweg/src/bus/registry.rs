//! The registry that all handles of a bus share: its state, its publishers and its inboxes, with
//! their figures at one moment.
//!
//! *One word.* The state of the bus and the version of the list of inboxes are one atomic, that of
//! a [`StateCell`]. The list changes under the lock of the registry, and each change makes another
//! version. A publisher whose copy of the word is right may publish, and has the right list. Else
//! it takes the lock, and copies the word and the list together. A thread that learned in any way
//! that an inbox is there sees a word that is not older.
//!
//! *The end.* The state changes before the list is read to close what is in it, and an inbox is
//! listed only while the bus is open, which is asked under the lock: so none is missed.
//!
//! *Retained messages* are stored and handed out under a lock of their own, which is taken before
//! that of the registry. A publisher looks for new inboxes under it, when it has stored its
//! message; an inbox is listed under it, when it has copied what there is. So a late joiner gets
//! such a message as retained or as published, and not twice. It copies the message behind all
//! locks but the message's own, since that runs the user's code.

use std::sync::{Arc as Shared, OnceLock, PoisonError};
use std::thread::ThreadId;

use thalweg_measure::clock::Clock;

use super::inbox::{BusError, ExpressLaneCounts, Inbox, Options, Receiver, Sender};
use super::ledger::{ConsumerCounts, InboxReading, OutcomeCounts, Totals};
use super::topic::{Message, TopicId, Topics};
use super::topic_buffer::{Envelope, Item};
use super::{InboxId, PublisherId};
use crate::export::Export;
use crate::ring::sync::{Arc, Mutex, MutexGuard, fault, is_model_over, lock, yield_now};
use crate::state::{Lifecycle, StateCell, Version};
use crate::wait::Panics;

/// The counts of a bus at one instant; see [`Bus::snapshot`](super::Bus::snapshot).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The state of the bus.
    pub state: Lifecycle,
    /// Each inbox that is open.
    pub inboxes: Vec<InboxStats>,
    /// The counts of all messages so far.
    pub totals: Totals,
}

/// The counts of one inbox.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InboxStats {
    /// The inbox.
    pub inbox: InboxId,
    /// The topics that it was opened for.
    pub topics: Topics,
    /// The sums of its counters, and the number of messages that wait.
    pub reading: InboxReading,
    /// The numbers of its messages by outcome and priority.
    pub outcomes: OutcomeCounts,
    /// The counts of its consumers, by priority.
    pub consumers: ConsumerCounts,
    /// Its express lane, if it has one.
    pub express: Option<ExpressLaneCounts>,
}

/// A copy of the word.
pub(super) type Seen = Version;

pub(super) struct Core<M> {
    pub(super) state: StateCell,
    registry: Mutex<Registry<M>>,
    /// By topic.
    retained: Mutex<Places<M>>,
    pub(super) options: Options,
    pub(super) clock: Clock,
    /// Ends with the bus.
    pub(super) export: OnceLock<Export>,
}

/// The retained messages, by topic.
type Places<M> = Vec<Option<Shared<Retained<M>>>>;

/// The last message of a topic, to be copied by one thread at a time, since messages need not be
/// `Sync`.
pub(super) struct Retained<M> {
    envelope: Mutex<Envelope<M>>,
    /// The thread that copies it now.
    copier: std::sync::Mutex<Option<ThreadId>>,
}

impl<M: Message> Retained<M> {
    pub(super) fn new(envelope: Envelope<M>) -> Self {
        Self {
            envelope: Mutex::new(envelope),
            copier: std::sync::Mutex::default(),
        }
    }

    fn copier(&self) -> std::sync::MutexGuard<'_, Option<ThreadId>> {
        self.copier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the message; refuses that within the clone that does so, which would wait for itself.
    pub(super) fn copied(&self) -> Result<Envelope<M>, BusError> {
        struct Copying<'r, M: Message>(&'r Retained<M>);
        impl<M: Message> Drop for Copying<'_, M> {
            fn drop(&mut self) {
                *self.0.copier() = None;
            }
        }
        let this = Some(std::thread::current().id());
        if *self.copier() == this {
            return Err(BusError::ReentrantClone);
        }
        let envelope = lock(&self.envelope);
        *self.copier() = this;
        let _copying = Copying(self);
        Ok(envelope.clone())
    }
}

struct Registry<M> {
    entries: Vec<Entry<M>>,
    /// Without a consumer, but publishers may still hold them.
    leaving: Vec<Arc<Inbox<M>>>,
    gone: Totals,
    inboxes: u32,
    publishers: u32,
}

/// An inbox, and what a publisher's sender is cloned from.
pub(super) struct Entry<M> {
    pub(super) inbox: Arc<Inbox<M>>,
    pub(super) sender: Sender<M>,
}

/// A new inbox for its first consumer.
pub(super) struct Opened<M> {
    pub(super) inbox: Arc<Inbox<M>>,
    pub(super) receiver: Receiver<M>,
    /// To be copied.
    pub(super) replay: Vec<Shared<Retained<M>>>,
}

impl<M: Message> Core<M> {
    pub(super) fn new(options: Options) -> Self {
        let state = StateCell::new("bus", Lifecycle::Starting);
        let _ = state.change_to(Lifecycle::Running, "built");
        Self {
            state,
            registry: Mutex::new(Registry {
                entries: Vec::new(),
                leaving: Vec::new(),
                gone: Default::default(),
                inboxes: 0,
                publishers: 0,
            }),
            retained: Mutex::new(M::TOPICS.iter().map(|_| None).collect()),
            options,
            clock: Clock::global(),
            export: OnceLock::new(),
        }
    }

    #[inline(always)]
    pub(super) fn seen(&self) -> Seen {
        self.state.version()
    }

    /// Marks the list of inboxes as changed; the caller has the lock.
    fn bump(&self) {
        if !fault::is("version_kept") {
            self.state.bump_version();
        }
    }

    /// Returns whether nothing will be published any more.
    pub(super) fn is_over(&self) -> bool {
        self.state.is_within(Lifecycle::ENDING)
    }

    /// Ends publishing; gives all inboxes, which are to be closed, if it was this call that did.
    fn end(&self, to: Lifecycle, why: &'static str) -> Option<Vec<Entry<M>>> {
        if !fault::is("closed_unbumped") {
            self.state.change_to(to, why).ok()?;
        }
        let registry = lock(&self.registry);
        Some(registry.entries.iter().map(Entry::copied).collect())
    }

    /// Ends publishing; consumers get what is there. Returns whether it was this call that did.
    pub(super) fn drain(&self, why: &'static str) -> bool {
        let entries = self.end(Lifecycle::Draining, why);
        let has_changed = entries.is_some();
        for entry in entries.into_iter().flatten() {
            entry.close();
        }
        self.stop_if_empty();
        has_changed
    }

    /// Ends publishing, and discards what is there.
    pub(super) fn stop(&self) -> bool {
        let entries = self.end(Lifecycle::Stopped, "stopped");
        let has_changed = entries.is_some();
        let mut panics = Panics::default();
        for entry in entries.into_iter().flatten() {
            let inbox = Arc::clone(&entry.inbox);
            let mut senders = entry.close();
            panics.catch(|| inbox.discard_left(&mut senders));
            inbox.discard_rest(&mut panics);
        }
        panics.resume();
        has_changed
    }

    /// Stops a bus that drains if nothing is in an inbox, or with a consumer that has not got it
    /// yet.
    #[cold]
    pub(super) fn stop_if_empty(&self) {
        if !self.state.is(Lifecycle::Draining) {
            return;
        }
        let is_over = |entry: &Entry<M>| entry.sender.is_over() && entry.inbox.is_taken();
        let is_empty = lock(&self.registry).entries.iter().all(is_over);
        if is_empty {
            let (from, to) = (Lifecycle::Draining, Lifecycle::Stopped);
            let _ = self.state.change(from, to, "every inbox is empty");
        }
    }

    /// Adds an inbox; with `replays` the retained messages of its topics.
    pub(super) fn subscribe(
        &self,
        topics: Topics,
        options: Options,
        replays: bool,
    ) -> Result<Opened<M>, BusError> {
        let retained = lock(&self.retained);
        let topics_asked = if replays { topics } else { Topics::NONE };
        let is_asked = |(topic, _): &(usize, _)| topics_asked.contains(TopicId::new(*topic));
        let replay = retained.iter().enumerate().filter(is_asked);
        let replay = replay.filter_map(|(_, place)| place.clone()).collect();
        let mut registry = lock(&self.registry);
        if self.is_over() {
            return Err(BusError::Closed);
        }
        let id = InboxId(registry.inboxes);
        let (inbox, sender, receiver) = Inbox::new(id, topics, options)?;
        registry.inboxes += 1;
        let inbox = Arc::new(inbox);
        registry.entries.push(Entry {
            inbox: Arc::clone(&inbox),
            sender,
        });
        self.bump();
        Ok(Opened {
            inbox,
            receiver,
            replay,
        })
    }

    /// The last consumer of an inbox has gone.
    pub(super) fn remove(&self, inbox: &Arc<Inbox<M>>) {
        if let Some(export) = self.export.get() {
            export.sample();
        }
        let mut registry = lock(&self.registry);
        let at = registry
            .entries
            .iter()
            .position(|entry| Arc::ptr_eq(&entry.inbox, inbox));
        // Its sender is dropped without the lock.
        let _entry = at.map(|at| {
            let entry = registry.entries.swap_remove(at);
            registry.leaving.push(Arc::clone(&entry.inbox));
            self.bump();
            registry.settle(self.clock);
            entry
        });
        drop(registry);
        self.stop_if_empty();
    }

    /// Adds a publisher, and returns its id.
    pub(super) fn publisher(&self) -> Result<PublisherId, BusError> {
        let mut registry = lock(&self.registry);
        if self.is_over() {
            return Err(BusError::Closed);
        }
        let id = PublisherId(registry.publishers);
        registry.publishers += 1;
        Ok(id)
    }

    /// Returns the word, and by `look` the list of inboxes that goes with it.
    pub(super) fn read(&self, look: impl FnOnce(&[Entry<M>])) -> Seen {
        if fault::is("version_late") {
            look(&lock(&self.registry).entries);
            yield_now();
            return self.seen();
        }
        let mut registry = lock(&self.registry);
        look(&registry.entries);
        registry.settle(self.clock);
        self.seen()
    }

    /// Returns the last messages of topics, by topic. No code of the user may run meanwhile.
    pub(super) fn retained(&self) -> MutexGuard<'_, Places<M>> {
        lock(&self.retained)
    }

    /// Retains a message, and runs `then` before any other thread retains or subscribes. It returns
    /// the message that was retained before, to be dropped.
    pub(super) fn retain<R>(
        &self,
        envelope: Envelope<M>,
        then: impl FnOnce() -> R,
    ) -> (impl Sized, R) {
        let mut retained = lock(&self.retained);
        let place = &mut retained[envelope.topic.index()];
        // Nothing is allocated, unless it is just copied.
        let old = match place.as_mut().and_then(Shared::get_mut) {
            Some(own) => (Some(std::mem::replace(own, Retained::new(envelope))), None),
            None => (None, place.replace(Shared::new(Retained::new(envelope)))),
        };
        (old, then())
    }

    /// Returns the figures of now.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.stop_if_empty();
        let clock = &self.clock;
        let figures = |entry: &Entry<M>| {
            let (inbox, len) = (&entry.inbox, entry.sender.len());
            let Totals {
                outcomes,
                consumers,
            } = inbox.totals(len, clock.ticks(), |t| clock.ns(t));
            InboxStats {
                inbox: inbox.id,
                topics: inbox.topics,
                reading: inbox.reading(len, clock),
                consumers,
                outcomes,
                express: inbox.express(),
            }
        };
        let inboxes = lock(&self.registry).entries.iter().map(figures).collect();
        Snapshot {
            state: self.state.get(),
            inboxes,
            totals: self.totals(),
        }
    }

    /// Returns the figures of each inbox that is open.
    pub(super) fn inbox_readings(&self) -> Vec<(InboxId, InboxReading, Option<ExpressLaneCounts>)> {
        let registry = lock(&self.registry);
        let reading = |entry: &Entry<M>| {
            let inbox = &entry.inbox;
            let reading = inbox.reading(entry.sender.len(), &self.clock);
            (inbox.id, reading, inbox.express())
        };
        registry.entries.iter().map(reading).collect()
    }

    /// Returns the counts of all messages so far, over all inboxes that there are or were.
    pub(super) fn totals(&self) -> Totals {
        let registry = lock(&self.registry);
        let mut totals = registry.gone;
        let now = self.clock.ticks();
        let leaving = registry.leaving.iter().map(|inbox| (inbox, 0));
        let open = registry.entries.iter();
        for (inbox, len) in open
            .map(|entry| (&entry.inbox, entry.sender.len()))
            .chain(leaving)
        {
            totals.add(&inbox.totals(len, now, |ticks| self.clock.ns(ticks)));
        }
        totals
    }
}

impl<M> Entry<M> {
    pub(super) fn copied(&self) -> Self {
        Self {
            inbox: Arc::clone(&self.inbox),
            sender: self.sender.clone(),
        }
    }
}

impl<M: Message> Entry<M> {
    /// Closes the inbox; gives its senders, to take out what is left.
    fn close(self) -> Vec<Sender<M>> {
        let mut senders = vec![self.sender];
        senders.extend(self.inbox.express_sender());
        senders.iter_mut().for_each(Sender::close);
        senders
    }
}

impl<M: Message> Registry<M> {
    /// Keeps the figures of inboxes that no consumer and no publisher holds any more, and drops
    /// those inboxes.
    fn settle(&mut self, clock: Clock) {
        let gone = &mut self.gone;
        self.leaving.retain(|inbox| {
            let is_held = Arc::strong_count(inbox) > 1;
            if !is_held {
                let now = clock.ticks();
                gone.add(&inbox.totals(0, now, |ticks| clock.ns(ticks)));
            }
            is_held
        });
    }
}

/// Tokens and messages are distinguished by the priority, which has values to spare.
const _: () = assert!(size_of::<Item<u64>>() == size_of::<Envelope<u64>>());

/// The core of a bus, as handles and publishers hold it, and consumers do not.
pub(super) struct Handle<M: Message>(pub(super) Arc<Core<M>>);

impl<M: Message> Drop for Handle<M> {
    fn drop(&mut self) {
        if !is_model_over() {
            self.0.drain("no handle is left");
        }
    }
}
