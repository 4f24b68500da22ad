//! Which connection follows which stream.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use thalweg_exchange::SymbolId;

use super::outbox::{Outbox, SharedEvent, Subscription};
use super::stream::{Kind, StreamEvent};
use crate::lock;

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

/// The number of events and deliveries before the lock is released for others.
pub(super) const PUSHED_TOGETHER: usize = 1_024;

/// How far some events were published.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Events that all their followers have.
    done: usize,
    /// The next event, where some of its followers have it, and the id of the first that has not.
    begun: Option<(Arc<SharedEvent>, u64)>,
}

/// The followers of all streams.
#[derive(Debug, Default)]
pub(super) struct Topics(Mutex<Registry>);

impl Topics {
    /// Adds a follower, and calls `watch` before another thread makes events. Returns its id.
    pub(super) fn follow(
        &self,
        topic: Topic,
        outbox: &Arc<Outbox>,
        subscription: &Arc<Subscription>,
        watch: impl FnOnce(),
    ) -> u64 {
        let mut registry = lock(&self.0);
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
        let mut registry = lock(&self.0);
        if let Some(followers) = registry.topics.get_mut(&topic) {
            if let Some(left) = followers.remove(&id) {
                left.outbox.leave(&left.subscription);
            }
            if followers.is_empty() {
                registry.topics.remove(&topic);
                unwatch();
            }
        }
    }

    /// Gives some of the events to the connections that follow their streams: events, and followers
    /// that get them, are [`PUSHED_TOGETHER`] at most. Never waits for a connection. Returns
    /// whether all were given; else it is to be called again with the same events.
    ///
    /// A follower that comes meanwhile may get the event that was begun: its stream goes on from
    /// there.
    pub(super) fn publish(&self, events: &[StreamEvent], progress: &mut Progress) -> bool {
        let mut left = PUSHED_TOGETHER;
        let registry = lock(&self.0);
        while let Some(event) = events.get(progress.done) {
            if left == 0 {
                return false;
            }
            left -= 1;
            let topic = (event.symbol, event.kind);
            let Some(followers) = registry.topics.get(&topic) else {
                (progress.done, progress.begun) = (progress.done + 1, None);
                continue;
            };
            let made = || (Arc::new(SharedEvent::new(event.clone())), 0);
            let (shared, first) = progress.begun.take().unwrap_or_else(made);
            for (id, follower) in followers.range(first..) {
                if left == 0 {
                    progress.begun = Some((shared, *id));
                    return false;
                }
                left -= 1;
                follower.outbox.event(&follower.subscription, &shared);
            }
            progress.done += 1;
        }
        true
    }

    /// Cuts all connections that follow a stream of a symbol.
    pub(super) fn cut(&self, symbol: SymbolId, why: &'static str) {
        let registry = lock(&self.0);
        let own = registry.topics.iter().filter(|((of, _), _)| *of == symbol);
        for follower in own.flat_map(|(_, followers)| followers.values()) {
            follower.outbox.cut_with(why);
        }
    }

    /// Returns how many streams are followed, and by how many subscriptions together.
    pub(super) fn counts(&self) -> (usize, usize) {
        let registry = lock(&self.0);
        let followers = registry.topics.values().map(BTreeMap::len).sum();
        (registry.topics.len(), followers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::Item;
    use crate::market::stream::Body;
    use crate::market::tests::label;

    const SYMBOL: SymbolId = SymbolId(1);

    fn event(number: u64) -> StreamEvent {
        StreamEvent {
            symbol: SYMBOL,
            kind: Kind::Trade,
            time_us: number as i64,
            label: Arc::new(label()),
            body: Body::Average((number.into(), 1), 0),
        }
    }

    #[test]
    fn the_lock_is_given_back_after_some_followers_and_each_gets_all_events_in_order() {
        let topics = Topics::default();
        let topic = (SYMBOL, Kind::Trade);
        let follow = |_| {
            let outbox = Arc::<Outbox>::default();
            let subscription = Arc::new(Subscription::new("s", false));
            let id = topics.follow(topic, &outbox, &subscription, || ());
            (id, outbox)
        };
        let followers: Vec<_> = (0..3 * PUSHED_TOGETHER).map(follow).collect();
        let pushed = || -> usize { followers.iter().map(|(_, one)| one.waiting().0).sum() };
        let events: Vec<StreamEvent> = (0..3).map(event).collect();
        let (mut progress, mut calls, mut before) = (Progress::default(), 1, 0);
        while !topics.publish(&events, &mut progress) {
            let now = pushed();
            assert!(now - before <= PUSHED_TOGETHER, "{before} {now}");
            (before, calls) = (now, calls + 1);
            // The lock is free: one of those that wait leaves, and another comes.
            if calls == 3 {
                let last = followers.last().expect("there are some");
                topics.leave(topic, last.0, || ());
                follow(0);
            }
        }
        assert_eq!(calls, 10);
        for (_, outbox) in &followers[..followers.len() - 1] {
            for number in 0..3 {
                let Some(Item::Event(_, event)) = outbox.take() else {
                    panic!("an event");
                };
                assert_eq!(event.of_time(), Some(number));
            }
            assert_eq!(outbox.waiting().0, 0);
        }
    }

    #[test]
    fn events_that_none_follows_are_bounded_as_well() {
        let topics = Topics::default();
        let events: Vec<StreamEvent> = (0..2_000).map(event).collect();
        let mut progress = Progress::default();
        assert!(!topics.publish(&events, &mut progress));
        assert_eq!(progress.done, PUSHED_TOGETHER);
        assert!(topics.publish(&events, &mut progress));
    }
}
