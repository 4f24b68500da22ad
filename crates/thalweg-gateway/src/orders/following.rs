//! The followers of a user's events: few of a user, and each event is written as text once for all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::broadcast;

use super::event::UserEvent;
use crate::error::ApiError;
use crate::lock;
use crate::time_unit::TimeUnit;

/// Followers of a user at once, on all connections.
const FOLLOWERS_MAX: usize = 16;
/// Events that wait for a follower of a user.
const EVENTS_MAX: usize = 4_096;

/// An event, and its texts once a follower has needed them.
#[derive(Debug)]
pub(crate) struct SharedUserEvent {
    event: UserEvent,
    texts: [OnceLock<String>; 2],
}

impl SharedUserEvent {
    pub(crate) fn text(&self, time_unit: TimeUnit) -> &str {
        let made = || self.event.to_json(time_unit).to_string();
        self.texts[time_unit as usize].get_or_init(made)
    }
}

/// Gets the events of a user. One that is too far behind gets
/// [`Lagged`](broadcast::error::RecvError::Lagged): its stream must end then.
pub(crate) type Events = broadcast::Receiver<Arc<SharedUserEvent>>;

#[derive(Debug, Default)]
struct State {
    count: usize,
    /// There while there are followers: it takes some memory.
    sender: Option<broadcast::Sender<Arc<SharedUserEvent>>>,
}

/// The followers of a user.
#[derive(Debug, Default)]
pub(super) struct Followers(Mutex<State>);

/// A place among the followers of a user, until it is left or dropped.
#[derive(Debug)]
pub(crate) struct Following {
    of: Arc<Followers>,
    has_left: AtomicBool,
}

impl Followers {
    /// Follows events from now on.
    ///
    /// # Errors
    /// -1034.
    pub(super) fn follow(self: &Arc<Self>) -> Result<(Following, Events), ApiError> {
        let mut state = lock(&self.0);
        if state.count == FOLLOWERS_MAX {
            return Err(ApiError::FOLLOWERS);
        }
        state.count += 1;
        let new = || broadcast::Sender::new(EVENTS_MAX);
        let events = state.sender.get_or_insert_with(new).subscribe();
        let following = Following {
            of: Arc::clone(self),
            has_left: AtomicBool::new(false),
        };
        Ok((following, events))
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0).count == 0
    }

    /// Sends an event, if the user has followers. Returns whether there are any.
    pub(super) fn send(&self, event: Option<UserEvent>) -> bool {
        let state = lock(&self.0);
        let Some(sender) = &state.sender else {
            return false;
        };
        if let Some(event) = event {
            let texts = [OnceLock::new(), OnceLock::new()];
            let _ = sender.send(Arc::new(SharedUserEvent { event, texts }));
        }
        true
    }
}

impl Following {
    /// Gives the place to others.
    pub(crate) fn leave(&self) {
        // ORDERING: Relaxed; what is left is under the lock.
        if self.has_left.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut state = lock(&self.of.0);
        state.count -= 1;
        if state.count == 0 {
            state.sender = None;
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use thalweg_testkit::counting::held;

    use super::*;

    fn event(delta: &str) -> Option<UserEvent> {
        Some(UserEvent::Balance {
            asset: "USDT".to_owned(),
            delta: delta.to_owned(),
            time_us: 1_000,
        })
    }

    #[test]
    fn an_event_is_written_once_for_all_followers_of_its_user() {
        let followers = Arc::<Followers>::default();
        let mut all: Vec<_> = (0..FOLLOWERS_MAX)
            .map(|_| followers.follow().expect("there is room"))
            .collect();
        assert!(followers.send(event("1.5")));
        let got = all.iter_mut().map(|(_, events)| events.try_recv());
        let got: Vec<_> = got.map(|one| one.expect("it was sent")).collect();
        let text = got[0].text(TimeUnit::default());
        assert!(text.contains("\"d\":\"1.5\""), "{text}");
        // Each has the same bytes, not a copy.
        let is_same = |one: &Arc<SharedUserEvent>| {
            std::ptr::eq(one.text(TimeUnit::default()).as_ptr(), text.as_ptr())
        };
        assert!(got.iter().all(is_same));
    }

    #[test]
    fn a_user_has_16_followers_and_without_one_no_memory_for_events() {
        let followers = Arc::<Followers>::default();
        let before = held();
        assert!(!followers.send(event("1")) && followers.is_empty());
        let mut all: Vec<_> = (0..16).map(|_| followers.follow()).collect();
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(followers.follow().err(), Some(ApiError::FOLLOWERS));
        // One that was left, dropped or both is counted once.
        let last = all.pop().and_then(Result::ok).expect("it follows");
        last.0.leave();
        drop(last);
        let again = followers.follow();
        assert!(again.is_ok() && followers.follow().is_err());
        assert!(held() - before < 600_000, "{}", held() - before);
        drop((all, again));
        assert!(followers.is_empty() && held() - before < 1_000);
        assert!(!followers.send(event("2")));
    }
}
