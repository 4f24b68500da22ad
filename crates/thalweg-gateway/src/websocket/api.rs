//! The WebSocket API: requests and responses over one connection.
//!
//! A method is a row of the table of endpoints, or one of the connection's own [`Session`]. Up to
//! [`IN_FLIGHT_MAX`] requests are worked on at once, begun in the order in which they came; their
//! responses come when they are ready.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use thalweg_exchange::UserId;
use thalweg_server::conditions::{DelayLine, Fault};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::connection::{Close, Frames, Io, Stream, count_cut, next_text, run};
use super::session::Session;
use crate::conditions;
use crate::connection_slots::ConnectionSlot;
use crate::error::ApiError;
use crate::figures::{self, Class};
use crate::keys::ApiKey;
use crate::market::Item;
use crate::params::Params;
use crate::rest::{self, Call, Endpoint, Security};
use crate::signature::check_time;
use crate::state::{State, now_us};
use crate::time_unit::TimeUnit;

/// Requests without a response; no more are read meanwhile.
pub(super) const IN_FLIGHT_MAX: usize = 64;
/// The weight of a method that no row of the table has.
const SESSION_WEIGHT: u32 = 2;

#[derive(Debug, Deserialize)]
struct Request<'r> {
    /// As it is: a number, a text or null.
    #[serde(borrow, default)]
    id: Option<&'r RawValue>,
    #[serde(borrow)]
    method: Cow<'r, str>,
    #[serde(borrow, default)]
    params: Option<BTreeMap<Cow<'r, str>, &'r RawValue>>,
}

/// The parts of a response beside its result.
#[derive(Clone, Debug)]
struct Respond {
    id: String,
    address: IpAddr,
    with_limits: bool,
}

impl Respond {
    fn text(
        &self,
        state: &State,
        user: Option<UserId>,
        result: &Result<Value, ApiError>,
    ) -> String {
        let now = now_us();
        let mut text = match result {
            Ok(result) => format!("{{\"id\":{},\"status\":200,\"result\":{result}", self.id),
            Err(error) => {
                let mut body = error.to_json();
                if let Some(seconds) = error.retry_after {
                    let now_ms = now / 1_000;
                    let retry_after = now_ms + seconds as i64 * 1_000;
                    body["data"] = json!({ "serverTime": now_ms, "retryAfter": retry_after });
                }
                format!(
                    "{{\"id\":{},\"status\":{},\"error\":{body}",
                    self.id, error.status
                )
            }
        };
        if self.with_limits {
            let limits = state.limits.to_json(Some((self.address, user)), now);
            text.push_str(&format!(",\"rateLimits\":{limits}"));
        }
        text.push('}');
        text
    }
}

type Working = FuturesUnordered<Pin<Box<dyn Future<Output = String> + Send>>>;

struct Api {
    state: Arc<State>,
    address: IpAddr,
    slot: Arc<ConnectionSlot>,
    session: Session,
    /// The line of a connection with latency.
    line: Option<Arc<DelayLine>>,
    /// Whether the connection is to be cut, on purpose.
    is_cut: bool,
}

impl Api {
    /// Answers a text, or begins to.
    ///
    /// # Errors
    /// Too many requests came that weights do not bound: those that are beyond them, or are none.
    fn take(&mut self, text: &str, working: &Working, frames: &Frames) -> Result<(), Close> {
        let request: Request<'_> = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(_) => {
                let seen = figures::Request::new(self.address, "WS", "");
                self.answered(&seen, ApiError::INVALID_JSON.status);
                let respond = self.respond("null", None);
                let text = respond.text(&self.state, None, &Err(ApiError::INVALID_JSON));
                self.session.outbox.text(text);
                return frames.count();
            }
        };
        let id = request.id.map_or("null", RawValue::get);
        let params = request.params.unwrap_or_default();
        let (params, respond) = match Params::of_json(&params) {
            Ok(params) => {
                let with_limits = params.flag("returnRateLimits").ok().flatten();
                (Ok(params), self.respond(id, with_limits))
            }
            Err(error) => (Err(error), self.respond(id, None)),
        };
        let method = request
            .method
            .strip_prefix("v3/")
            .unwrap_or(&request.method);
        let mut seen = Some(figures::Request::new(self.address, "WS", method));
        let is_request = is_id(id) && params.is_ok();
        let begun = match params {
            Ok(_) if !is_id(id) => Err(ApiError::illegal("id", "a number, a text or null")),
            Ok(params) => self.begin(method, params, &respond, (&mut seen, working)),
            Err(error) => Err(error),
        };
        if let Some(seen) = &seen {
            self.answered(
                seen,
                begun.as_ref().map_or_else(|error| error.status, |()| 200),
            );
        }
        let Err(error) = begun else {
            return match self.is_cut {
                true => Err(Close::Gone),
                false => Ok(()),
            };
        };
        let is_weighed = error.status != 429 && is_request;
        let text = respond.text(&self.state, None, &Err(error));
        self.session.outbox.text(text);
        match is_weighed {
            true => Ok(()),
            false => frames.count(),
        }
    }

    /// Counts the connection, and what waits for it, for the user of a key.
    fn show(&self, key: &ApiKey) {
        self.slot.show(key);
        self.session.outbox.show(key.user);
    }

    /// Counts a request that is answered at once.
    fn answered(&self, seen: &figures::Request, status: u16) {
        let key = self.session.key().and_then(Result::ok);
        let key = key.filter(|_| status == 200);
        let figures = &self.state.figures;
        figures.answered(seen, Class::WebSocketApi, status, key.as_deref());
    }

    fn respond(&self, id: &str, with_limits: Option<bool>) -> Respond {
        Respond {
            id: id.to_owned(),
            address: self.address,
            with_limits: with_limits.unwrap_or(self.session.with_limits),
        }
    }

    /// Answers a request, or takes it to be answered when it is ready.
    fn begin(
        &mut self,
        method: &str,
        params: Params,
        respond: &Respond,
        (seen, working): (&mut Option<figures::Request>, &Working),
    ) -> Result<(), ApiError> {
        let address = self.address;
        let Some(row) = rest::find_ws(method) else {
            self.state
                .limits
                .weigh(self.address, SESSION_WEIGHT, now_us())?;
            let answer = self.session.answer(method, &params);
            let answer = answer.ok_or(ApiError::UNSUPPORTED)?;
            let answer = answer.inspect_err(|error| {
                self.state
                    .audit_refused(address, params.raw("apiKey"), error);
            })?;
            let is_signed = matches!(
                method,
                "session.logon" | "userDataStream.subscribe.signature"
            );
            let signer = params.raw("apiKey").filter(|_| is_signed);
            if let Some(key) = signer.and_then(|name| self.state.keys.find(name)) {
                self.show(&key);
            }
            if let (Some(line), Some(Ok(key))) = (&self.line, self.session.key()) {
                conditions::belong(line, &self.state, &key);
            }
            let text = respond.text(&self.state, None, &Ok(answer));
            self.session.outbox.text(text);
            return Ok(());
        };
        let state = &self.state;
        let key = rest::admit(state, (row, &params), address, || {
            let key = self.authorize(row, &params);
            key.inspect_err(|error| state.audit_refused(address, params.raw("apiKey"), error))
        })?;
        if let Some(key) = &key {
            self.show(key);
        }
        let is_lost = self.is_lost(row, key.as_deref())?;
        let seen = seen.take();
        if is_lost {
            return Ok(());
        }
        let (state, respond) = (Arc::clone(&self.state), respond.clone());
        let unit = self.session.time_unit;
        working.push(Box::pin(async move {
            let call = Call {
                state: &state,
                params: &params,
                unit,
                key,
            };
            let result = rest::run(row, &call).await;
            if let Some(seen) = &seen {
                let status = result.as_ref().map_or_else(|error| error.status, |_| 200);
                let key = call.key.as_deref();
                (state.figures).answered(seen, Class::WebSocketApi, status, key);
            }
            let user = call.key.as_ref().map(|key| key.user);
            let user = user.filter(|_| row.security == Security::Trade);
            respond.text(&state, user, &result)
        }));
        Ok(())
    }

    /// Has a signed request meet the network: its key's delays, and its fault. Returns whether it
    /// is lost.
    ///
    /// # Errors
    /// -1008: it is rejected on purpose.
    fn is_lost(&mut self, row: &Endpoint, key: Option<&ApiKey>) -> Result<bool, ApiError> {
        if let (Some(line), Some(key)) = (&self.line, key) {
            conditions::belong(line, &self.state, key);
        }
        let fault = conditions::fault(&self.state, row, key);
        self.is_cut = fault == Some(Fault::Disconnect);
        match fault {
            Some(Fault::Reject) => Err(ApiError::BUSY),
            fault => Ok(fault.is_some()),
        }
    }

    /// Checks the signature of a request; one without a key is made with that of the session.
    fn authorize(&self, row: &Endpoint, params: &Params) -> Result<Option<Arc<ApiKey>>, ApiError> {
        let own = params.raw("apiKey");
        let (None, Some(key)) = (own, self.session.key()) else {
            return rest::authorize(&self.state, row, params, own);
        };
        if row.security == Security::None {
            return Ok(None);
        }
        self.state.orders.check()?;
        let timestamp = params.integer("timestamp")?;
        let timestamp = timestamp.ok_or_else(|| ApiError::mandatory("timestamp"))?;
        check_time(timestamp, params.text("recvWindow")?, now_us())?;
        let key = key?;
        match row.security == Security::Trade && !key.may_trade {
            true => Err(ApiError::REJECTED_KEY),
            false => Ok(Some(key)),
        }
    }

    async fn read<S: Io>(&mut self, mut stream: Stream<S>, frames: &Frames) -> Close {
        let mut working = Working::new();
        let outbox = Arc::clone(&self.session.outbox);
        loop {
            // Those that are in flight come first: so each is begun before the next is read.
            tokio::select! {
                biased;
                Some(text) = working.next() => outbox.text(text),
                text = next_text(&mut stream, frames), if working.len() < IN_FLIGHT_MAX => {
                    match text {
                        Ok(text) => {
                            if let Err(close) = self.take(&text, &working, frames) {
                                return close;
                            }
                        }
                        Err(close) => return close,
                    }
                }
            }
        }
    }
}

/// Returns whether the JSON of an id is a number, a text or null.
fn is_id(json: &str) -> bool {
    !json.starts_with(['{', '[', 't', 'f'])
}

/// Serves a connection to the WebSocket API until it ends.
pub(super) async fn serve<S: Io>(
    state: Arc<State>,
    socket: WebSocketStream<S>,
    (address, slot, line): (IpAddr, Arc<ConnectionSlot>, Option<Arc<DelayLine>>),
    with_limits: bool,
    time_unit: TimeUnit,
) {
    let (sink, stream) = socket.split();
    let outbox = state.market.outbox(address);
    let frames = Frames::new();
    let session = Session::new(
        Arc::clone(&state),
        Arc::clone(&outbox),
        time_unit,
        with_limits,
    );
    let draining = state.draining();
    let mut api = Api {
        state: Arc::clone(&state),
        address,
        slot,
        session,
        line,
        is_cut: false,
    };
    let render = |item| match item {
        Item::Text(text) => text,
        Item::Ping => Utf8Bytes::default(),
        Item::Event(_, event) => Utf8Bytes::clone(event.text(time_unit)),
    };
    let notice = || {
        let event = json!({ "e": "serverShutdown", "E": time_unit.of(now_us()) });
        json!({ "event": event }).to_string()
    };
    let read = api.read(stream, &frames);
    let close = run(sink, &outbox, &frames, draining, read, render, notice).await;
    count_cut(&state, &close);
    tracing::debug!(target: "access", ?close, "a connection to the WebSocket API ended");
}
