//! The key and the user data streams of a connection to the WebSocket API.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use thalweg_exchange::UserId;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use crate::error::ApiError;
use crate::keys::ApiKey;
use crate::market::Outbox;
use crate::orders::{Events, Following};
use crate::params::Params;
use crate::rest::signer;
use crate::state::{State, now_us};
use crate::time_unit::TimeUnit;

/// User data streams of a connection at once, and in all.
const SUBSCRIPTIONS_MAX: usize = 1_000;
const SUBSCRIPTIONS_EVER_MAX: u64 = 65_535;

/// The key that a connection has logged on with.
#[derive(Clone, Debug)]
struct LoggedOn {
    api_key: String,
    key: Arc<ApiKey>,
    since_us: i64,
}

/// A user data stream; it ends when this is dropped.
#[derive(Debug)]
struct UserStream {
    user: UserId,
    /// Whether it ends with the log-on.
    is_of_session: bool,
    task: AbortHandle,
    following: Arc<Following>,
}

impl Drop for UserStream {
    fn drop(&mut self) {
        self.task.abort();
        self.following.leave();
    }
}

/// See the [module](self).
pub(super) struct Session {
    pub(super) state: Arc<State>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) time_unit: TimeUnit,
    pub(super) with_limits: bool,
    connected_us: i64,
    logged_on: Option<LoggedOn>,
    streams: BTreeMap<u64, UserStream>,
    next_stream: u64,
}

impl Session {
    pub(super) fn new(
        state: Arc<State>,
        outbox: Arc<Outbox>,
        time_unit: TimeUnit,
        with_limits: bool,
    ) -> Self {
        Self {
            state,
            outbox,
            time_unit,
            with_limits,
            connected_us: now_us(),
            logged_on: None,
            streams: BTreeMap::new(),
            next_stream: 0,
        }
    }

    /// Returns the name of the key that requests without one are made with.
    fn api_key(&self) -> Option<&str> {
        self.logged_on.as_ref().map(|logged_on| &*logged_on.api_key)
    }

    /// Returns the key that requests without one are made with, or an error if it has changed;
    /// `None` before a log-on.
    pub(super) fn key(&self) -> Option<Result<Arc<ApiKey>, ApiError>> {
        let key = &self.logged_on.as_ref()?.key;
        Some(match self.state.keys.is_current(key) {
            true => Ok(Arc::clone(key)),
            false => Err(ApiError::REJECTED_KEY),
        })
    }

    /// Answers a method of the session; `None` where it is none.
    pub(super) fn answer(
        &mut self,
        method: &str,
        params: &Params,
    ) -> Option<Result<Value, ApiError>> {
        self.streams.retain(|_, stream| !stream.task.is_finished());
        Some(match method {
            "session.logon" => self.log_on(params),
            "session.status" => Ok(self.status()),
            "session.logout" => Ok(self.log_out()),
            "session.subscriptions" => Ok(self.subscriptions()),
            "userDataStream.subscribe" => self.subscribe(),
            "userDataStream.subscribe.signature" => self.subscribe_signed(params),
            "userDataStream.unsubscribe" => self.unsubscribe(params),
            _ => return None,
        })
    }

    fn log_on(&mut self, params: &Params) -> Result<Value, ApiError> {
        let api_key = params.required("apiKey")?;
        let key = signer(&self.state, params, Some(api_key))?;
        self.logged_on = Some(LoggedOn {
            api_key: api_key.to_owned(),
            key,
            since_us: now_us(),
        });
        Ok(self.status())
    }

    fn log_out(&mut self) -> Value {
        self.logged_on = None;
        let own = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.is_of_session);
        for id in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.end(id);
        }
        self.status()
    }

    fn status(&self) -> Value {
        let unit = self.time_unit;
        let logged_on = self.logged_on.as_ref();
        json!({
            "apiKey": self.api_key(),
            "authorizedSince": logged_on.map(|logged_on| unit.of(logged_on.since_us)),
            "connectedSince": unit.of(self.connected_us),
            "returnRateLimits": self.with_limits,
            "serverTime": unit.of(now_us()),
            "userDataStream": !self.streams.is_empty(),
        })
    }

    fn subscriptions(&self) -> Value {
        let ids = self.streams.keys();
        ids.map(|id| json!({ "subscriptionId": id })).collect()
    }

    fn subscribe(&mut self) -> Result<Value, ApiError> {
        let key = self.key().ok_or(ApiError::UNAUTHORIZED)??;
        self.follow(key, true)
    }

    fn subscribe_signed(&mut self, params: &Params) -> Result<Value, ApiError> {
        let api_key = params.required("apiKey")?;
        let key = signer(&self.state, params, Some(api_key))?;
        self.follow(key, false)
    }

    /// Begins a user data stream. It ends when its key is gone or has changed.
    fn follow(&mut self, key: Arc<ApiKey>, is_of_session: bool) -> Result<Value, ApiError> {
        let user = key.user;
        self.state.orders.check()?;
        if self.streams.values().any(|stream| stream.user == user) {
            return Err(ApiError::SUBSCRIPTION_ACTIVE);
        }
        if self.streams.len() == SUBSCRIPTIONS_MAX || self.next_stream == SUBSCRIPTIONS_EVER_MAX {
            return Err(ApiError::UNSUPPORTED);
        }
        let (following, events) = self.state.orders.follow(user)?;
        let following = Arc::new(following);
        let id = self.next_stream;
        self.next_stream += 1;
        let (state, outbox) = (Arc::clone(&self.state), Arc::clone(&self.outbox));
        let (unit, own) = (self.time_unit, Arc::clone(&following));
        let task = tokio::spawn(async move {
            forward(&state, events, &outbox, id, &key, unit).await;
            own.leave();
        });
        let stream = UserStream {
            user,
            is_of_session,
            task: task.abort_handle(),
            following,
        };
        self.streams.insert(id, stream);
        Ok(json!({ "subscriptionId": id }))
    }

    fn unsubscribe(&mut self, params: &Params) -> Result<Value, ApiError> {
        match params.integer("subscriptionId")? {
            None => {
                for id in self.streams.keys().copied().collect::<Vec<_>>() {
                    self.end(id);
                }
            }
            Some(id) if self.streams.contains_key(&(id as u64)) => self.end(id as u64),
            Some(_) => return Err(ApiError::SUBSCRIPTION_INACTIVE),
        }
        Ok(json!({}))
    }

    /// Ends a user data stream, and says so.
    fn end(&mut self, id: u64) {
        if self.streams.remove(&id).is_some() {
            self.outbox.text(terminated(id, self.time_unit));
        }
    }
}

/// Returns the notice that a user data stream has ended.
fn terminated(id: u64, time_unit: TimeUnit) -> String {
    let event = json!({ "e": "eventStreamTerminated", "E": time_unit.of(now_us()) });
    json!({ "subscriptionId": id, "event": event }).to_string()
}

/// Forwards the events of a user to a connection, until the key is gone or too many have waited.
async fn forward(
    state: &State,
    mut events: Events,
    outbox: &Outbox,
    id: u64,
    key: &Arc<ApiKey>,
    time_unit: TimeUnit,
) {
    loop {
        match events.recv().await {
            Ok(_) if !state.keys.is_current(key) => {
                return outbox.text(terminated(id, time_unit));
            }
            Ok(event) => {
                let event = event.text(time_unit);
                outbox.text(format!("{{\"subscriptionId\":{id},\"event\":{event}}}"));
            }
            Err(RecvError::Lagged(_)) => {
                return outbox.cut_with("too slow: events of the user were missed");
            }
            // The stream has ended, or the gateway ends, and this task with it.
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}
