//! The stream `thalweg@instruments`: each second, where the server's time went.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use thalweg_server::LatencyMonitor;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::lock;
use crate::market::{Outbox, SharedEvent, Subscription};
use crate::time_unit::{TimeUnit, now_us};

/// The name of the stream.
pub(crate) const NAME: &str = "thalweg@instruments";
/// The time between two events.
const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Registry {
    followers: BTreeMap<u64, (Arc<Outbox>, Arc<Subscription>)>,
    next: u64,
}

/// The connections that follow the stream.
#[derive(Debug)]
pub(crate) struct Followers {
    registry: Mutex<Registry>,
    has_come: Notify,
    is_on: bool,
}

impl Followers {
    /// Makes a stream without followers; where it is off, it never has any.
    pub(crate) fn new(is_on: bool) -> Self {
        Self {
            registry: Mutex::default(),
            has_come: Notify::new(),
            is_on,
        }
    }

    /// Adds a follower, and returns its id; `None` where the stream is off.
    pub(crate) fn follow(&self, outbox: &Arc<Outbox>, to: &Arc<Subscription>) -> Option<u64> {
        if !self.is_on {
            return None;
        }
        let mut registry = lock(&self.registry);
        let id = registry.next;
        registry.next += 1;
        let follower = (Arc::clone(outbox), Arc::clone(to));
        registry.followers.insert(id, follower);
        drop(registry);
        self.has_come.notify_one();
        Some(id)
    }

    /// Removes a follower.
    pub(crate) fn leave(&self, id: u64) {
        if let Some((outbox, to)) = lock(&self.registry).followers.remove(&id) {
            outbox.leave(&to);
        }
    }

    fn is_empty(&self) -> bool {
        lock(&self.registry).followers.is_empty()
    }

    fn publish(&self, event: &Value) {
        let event = Arc::new(SharedEvent::of_text(event.to_string()));
        for (outbox, to) in lock(&self.registry).followers.values() {
            outbox.event(to, &event);
        }
    }
}

/// Reads the server's figures each second while there are followers, for ever.
pub(crate) async fn run(followers: Arc<Followers>, mut instruments: LatencyMonitor) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if followers.is_empty() {
            // Figures of the time without followers are of no use to the next one.
            instruments.stop();
            followers.has_come.notified().await;
            continue;
        }
        ticks.tick().await;
        let Some(moment) = instruments.read().await else {
            continue;
        };
        let mut event = json!(moment);
        event["e"] = "instruments".into();
        event["E"] = TimeUnit::default().of(now_us()).into();
        followers.publish(&event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_off_has_no_followers() {
        let outbox = Arc::<Outbox>::default();
        let to = Arc::new(Subscription::new(NAME, false));
        let off = Followers::new(false);
        assert_eq!(off.follow(&outbox, &to), None);
        assert!(off.is_empty());
        let on = Followers::new(true);
        let id = on.follow(&outbox, &to).expect("it is on");
        on.publish(&json!({ "e": 1 }));
        on.publish(&json!({ "e": 2 }));
        // The newest takes the place of one that was not written.
        assert_eq!(outbox.waiting().0, 1);
        on.leave(id);
        assert!(on.is_empty());
        assert_eq!(outbox.waiting().0, 0);
    }
}
