//! Which connection follows which stream.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_exchange::SymbolId;

use super::outbox::{Outbox, SharedEvent, Subscription};
use super::stream::{Kind, StreamEvent};

/// A stream: what of which symbol.
type Topic = (SymbolId, Kind);

#[derive(Debug)]
struct Follower {
    outbox: Arc<Outbox>,
    subscription: Arc<Subscription>,
}

#[derive(Debug, Default)]
struct Registry {
    topics: HashMap<Topic, BTreeMap<u64, Follower>>,
    next: u64,
}

/// The followers of all streams.
#[derive(Debug, Default)]
pub(super) struct Topics(Mutex<Registry>);

impl Topics {
    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a follower, and calls `watch` before another thread makes events. Returns its id.
    pub(super) fn follow(
        &self,
        topic: Topic,
        outbox: &Arc<Outbox>,
        subscription: &Arc<Subscription>,
        watch: impl FnOnce(),
    ) -> u64 {
        let mut registry = self.lock();
        watch();
        let id = registry.next;
        registry.next += 1;
        let follower = Follower {
            outbox: Arc::clone(outbox),
            subscription: Arc::clone(subscription),
        };
        let followers = registry.topics.entry(topic).or_default();
        followers.insert(id, follower);
        id
    }

    /// Removes a follower, and calls `unwatch` if it was the stream's last.
    pub(super) fn leave(&self, topic: Topic, id: u64, unwatch: impl FnOnce()) {
        let mut registry = self.lock();
        if let Some(followers) = registry.topics.get_mut(&topic) {
            followers.remove(&id);
            if followers.is_empty() {
                registry.topics.remove(&topic);
                unwatch();
            }
        }
    }

    /// Gives events to the connections that follow their streams. Never waits for one.
    pub(super) fn publish(&self, events: &[StreamEvent]) {
        if events.is_empty() {
            return;
        }
        let registry = self.lock();
        for event in events {
            let Some(followers) = registry.topics.get(&(event.symbol, event.kind)) else {
                continue;
            };
            let event = Arc::new(SharedEvent::new(event.clone()));
            for follower in followers.values() {
                follower.outbox.event(&follower.subscription, &event);
            }
        }
    }

    /// Cuts all connections that follow a stream of a symbol.
    pub(super) fn cut(&self, symbol: SymbolId, why: &'static str) {
        let registry = self.lock();
        let own = registry.topics.iter().filter(|((of, _), _)| *of == symbol);
        for follower in own.flat_map(|(_, followers)| followers.values()) {
            follower.outbox.cut_with(why);
        }
    }

    /// Returns how many streams are followed, and by how many subscriptions together.
    pub(super) fn counts(&self) -> (usize, usize) {
        let registry = self.lock();
        let followers = registry.topics.values().map(BTreeMap::len).sum();
        (registry.topics.len(), followers)
    }
}
