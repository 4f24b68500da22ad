//! What all handles of a bus share: its state, and who is there.
//!
//! *One word.* Lifecycle and version are one atomic. It changes under the lock of the registry
//! only, and the version with every change of the list of inboxes. A publisher whose copy of the
//! word is right may publish, and has the right list. Else it takes the lock, and copies the word
//! and the list together. A relaxed load will do: whoever learned in any way that an inbox is there
//! sees a word that is not older.
//!
//! *Retained messages* are stored and handed out under a lock of their own, which is taken before
//! that of the registry. A publisher looks for new inboxes under it, when it has stored its
//! message; an inbox is listed under it, when it has copied what there is. So a late joiner gets
//! such a message as retained or as published, and not twice.

use std::collections::VecDeque;
use std::sync::OnceLock;

use super::balance::Reading;
use super::builder::BuildError;
use super::inbox::{Envelope, Inbox, Item, Options, Receiver, Sender};
use super::ledger::{Flow, Service, Totals};
use super::topic::{Message, Topics};
use super::{InboxId, Lifecycle, PublisherId};
use crate::export::Export;
use crate::ring::sync::{Arc, AtomicU64, Mutex, Ordering, fault, lock};
use crate::wait::Panics;
use thalweg_measure::clock::Clock;

/// Bits of the word that say the [`Lifecycle`]; the rest is the version.
const LIFECYCLE_BITS: u32 = 3;
const VERSION: u64 = 1 << LIFECYCLE_BITS;

/// The word of a bus, on a line of its own.
#[repr(align(128))]
struct Word(AtomicU64);

/// A copy of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen(u64);

impl Seen {
    pub(super) fn lifecycle(self) -> Lifecycle {
        match self.0 % VERSION {
            0 => Lifecycle::Running,
            1 => Lifecycle::Paused,
            2 => Lifecycle::Draining,
            _ => Lifecycle::Stopped,
        }
    }

    /// Whether nothing will be published any more.
    pub(super) fn is_over(self) -> bool {
        matches!(self.lifecycle(), Lifecycle::Draining | Lifecycle::Stopped)
    }
}

pub(super) struct Core<M> {
    word: Word,
    registry: Mutex<Registry<M>>,
    /// By topic.
    retained: Mutex<Vec<Option<Envelope<M>>>>,
    pub(super) options: Options,
    pub(super) clock: Clock,
    /// Ends with the bus.
    pub(super) export: OnceLock<Export>,
}

struct Registry<M> {
    /// What the word is, here to be read: it is only stored to.
    word: Seen,
    entries: Vec<Entry<M>>,
    /// Without a consumer, but publishers may still hold them.
    leaving: Vec<Arc<Inbox<M>>>,
    gone: (Flow, Service),
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
    pub(super) replay: VecDeque<Envelope<M>>,
}

impl<M: Message> Core<M> {
    pub(super) fn new(options: Options) -> Self {
        Self {
            word: Word(AtomicU64::new(0)),
            registry: Mutex::new(Registry {
                word: Seen(0),
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
        // ORDERING: Relaxed; what it stands for is behind the lock.
        Seen(self.word.0.load(Ordering::Relaxed))
    }

    /// Changes the word.
    fn set_word(&self, registry: &mut Registry<M>, word: u64) {
        registry.word = Seen(word);
        // ORDERING: Relaxed, as in `seen`.
        self.word.0.store(word, Ordering::Relaxed);
    }

    /// The list of inboxes has changed.
    fn bump(&self, registry: &mut Registry<M>) {
        if !fault::is("version_kept") {
            self.set_word(registry, registry.word.0 + VERSION);
        }
    }

    /// Goes from one of `from` to `to`; gives whether it was in one of them, and senders to all
    /// inboxes if they are to be closed.
    pub(super) fn go(&self, from: &[Lifecycle], to: Lifecycle) -> Option<Vec<Entry<M>>> {
        let mut registry = lock(&self.registry);
        let seen = registry.word;
        if !from.contains(&seen.lifecycle()) {
            return None;
        }
        if !fault::is("closed_unbumped") {
            self.set_word(&mut registry, seen.0 - seen.0 % VERSION + to as u64);
        }
        Some(match to {
            Lifecycle::Running | Lifecycle::Paused => Vec::new(),
            _ => registry.entries.iter().map(Entry::copied).collect(),
        })
    }

    /// Ends publishing; consumers get what is there. Gives whether it was this call that did.
    pub(super) fn drain(&self) -> bool {
        let from = [Lifecycle::Running, Lifecycle::Paused];
        let entries = self.go(&from, Lifecycle::Draining);
        let has_changed = entries.is_some();
        for Entry { mut sender, .. } in entries.into_iter().flatten() {
            sender.close();
        }
        has_changed
    }

    /// Ends publishing, and discards what is there.
    pub(super) fn close(&self) -> bool {
        let from = [Lifecycle::Running, Lifecycle::Paused, Lifecycle::Draining];
        let entries = self.go(&from, Lifecycle::Stopped);
        let has_changed = entries.is_some();
        let mut panics = Panics::default();
        for Entry { inbox, mut sender } in entries.into_iter().flatten() {
            sender.close();
            panics.catch(|| inbox.discard_left(&mut sender));
        }
        panics.resume();
        has_changed
    }

    pub(super) fn lifecycle(&self) -> Lifecycle {
        let registry = lock(&self.registry);
        let lifecycle = registry.word.lifecycle();
        let is_drained = || registry.entries.iter().all(|entry| entry.sender.is_empty());
        if lifecycle == Lifecycle::Draining && is_drained() {
            return Lifecycle::Stopped;
        }
        lifecycle
    }

    /// Another inbox; with `replays` the retained messages of its topics.
    pub(super) fn subscribe(
        &self,
        topics: Topics,
        options: Options,
        replays: bool,
    ) -> Result<Opened<M>, BuildError> {
        let retained = lock(&self.retained);
        let is_asked = |envelope: &&Envelope<M>| replays && topics.contains(envelope.topic);
        let replay = retained.iter().flatten().filter(is_asked).cloned();
        let replay = replay.collect();
        let mut registry = lock(&self.registry);
        if registry.word.is_over() {
            return Err(BuildError::Closed);
        }
        let id = InboxId(registry.inboxes);
        let (inbox, sender, receiver) = Inbox::new(id, topics, options)?;
        registry.inboxes += 1;
        let inbox = Arc::new(inbox);
        registry.entries.push(Entry {
            inbox: Arc::clone(&inbox),
            sender,
        });
        self.bump(&mut registry);
        Ok(Opened {
            inbox,
            receiver,
            replay,
        })
    }

    /// The last consumer of an inbox has gone.
    pub(super) fn remove(&self, inbox: &Arc<Inbox<M>>) {
        if let Some(export) = self.export.get() {
            export.look();
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
            self.bump(&mut registry);
            registry.settle(self.clock);
            entry
        });
        drop(registry);
    }

    /// Another publisher.
    pub(super) fn publisher(&self) -> Result<PublisherId, BuildError> {
        let mut registry = lock(&self.registry);
        if registry.word.is_over() {
            return Err(BuildError::Closed);
        }
        let id = PublisherId(registry.publishers);
        registry.publishers += 1;
        Ok(id)
    }

    /// The word, and by `look` the list of inboxes that goes with it.
    pub(super) fn read(&self, look: impl FnOnce(&[Entry<M>])) -> Seen {
        if fault::is("version_late") {
            look(&lock(&self.registry).entries);
            return self.seen();
        }
        let mut registry = lock(&self.registry);
        look(&registry.entries);
        registry.settle(self.clock);
        registry.word
    }

    /// Retains a copy of what `envelope` gives, and runs `then` before anybody else retains or
    /// subscribes.
    pub(super) fn retain(&self, envelope: Envelope<M>, then: impl FnOnce()) {
        let mut retained = lock(&self.retained);
        let place = &mut retained[envelope.topic.index()];
        let old = place.replace(envelope);
        then();
        drop(retained);
        drop(old);
    }

    /// The figures of each inbox that is open.
    pub(super) fn readings(&self) -> Vec<(InboxId, Reading)> {
        let registry = lock(&self.registry);
        let reading = |entry: &Entry<M>| {
            let inbox = &entry.inbox;
            (inbox.id, inbox.reading(entry.sender.len(), &self.clock))
        };
        registry.entries.iter().map(reading).collect()
    }

    /// What became of all messages so far, of all inboxes that there are or were.
    pub(super) fn totals(&self) -> Totals {
        let registry = lock(&self.registry);
        let (mut flow, mut service) = registry.gone;
        let now = self.clock.ticks();
        let leaving = registry.leaving.iter().map(|inbox| (inbox, 0));
        let open = registry.entries.iter();
        for (inbox, len) in open
            .map(|entry| (&entry.inbox, entry.sender.len()))
            .chain(leaving)
        {
            flow.add(&inbox.flow());
            service.add(&inbox.service(len, now, |ticks| self.clock.ns(ticks)));
        }
        Totals { flow, service }
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

impl<M: Message> Registry<M> {
    /// Keeps the figures of inboxes that nobody holds any more, and lets them go.
    fn settle(&mut self, clock: Clock) {
        let gone = &mut self.gone;
        self.leaving.retain(|inbox| {
            let is_held = Arc::strong_count(inbox) > 1;
            if !is_held {
                gone.0.add(&inbox.flow());
                let now = clock.ticks();
                gone.1.add(&inbox.service(0, now, |ticks| clock.ns(ticks)));
            }
            is_held
        });
    }
}

/// Tokens and messages are told apart by the priority, which has values to spare.
const _: () = assert!(size_of::<Item<u64>>() == size_of::<Envelope<u64>>());
