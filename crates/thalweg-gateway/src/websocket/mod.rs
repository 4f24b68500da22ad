//! WebSocket: market streams, user data streams, the WebSocket API.
//!
//! A connection is one task with three parts that run side by side ([`connection`]): one reads
//! and answers, one writes what the [`Outbox`] has, one looks at pongs. The first that ends says
//! why the connection is closed. Nothing but the connection's own task waits for its client.
//!
//! *Bounds.* Incoming messages have [`MESSAGE_BYTES_MAX`] bytes; what waits to be written has those
//! of the outbox; a connection has [`streams::STREAMS_MAX`] streams, and
//! [`api::IN_FLIGHT_MAX`] requests that are not answered: no more are read meanwhile.

mod api;
mod connection;
mod session;
mod streams;

use std::net::IpAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use thalweg_server::conditions::DelayLine;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::connection_slots::ConnectionSlot;
use crate::error::ApiError;
use crate::params::{Params, unescape};
use crate::response::{HttpResponse, of_error, of_status};
use crate::state::{State, now_us};
use crate::time_unit::TimeUnit;

/// The longest message of a client.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Bytes that are written together.
const WRITE_BYTES: usize = 16 << 10;
/// The buffer for what a client sends.
const READ_BYTES: usize = 4 << 10;
/// The request weight of a connection.
const CONNECT_WEIGHT: u32 = 2;

/// The service that a path has.
enum Served {
    /// Streams, and whether events come with the names of theirs.
    Streams(Vec<String>, bool),
    Api {
        with_limits: bool,
    },
}

/// Returns whether a request asks for a WebSocket. Programs that ask for HTTP/2 are answered by
/// HTTP/1.1, as if they had not.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    has_token(headers, &UPGRADE, "websocket")
}

/// Answers a request that asks for a WebSocket.
pub(crate) fn accept(
    state: Arc<State>,
    mut request: Request<Incoming>,
    address: IpAddr,
) -> HttpResponse {
    if let Err(error) = state.limits.weigh(address, CONNECT_WEIGHT, now_us()) {
        return of_error(&error);
    }
    let (served, time_unit) = match served(&request) {
        Ok(Some(served)) => served,
        Ok(None) => return of_status(StatusCode::NOT_FOUND, String::new()),
        Err(error) => return of_error(&error),
    };
    let Some(accept_key) = accept_key(&request) else {
        let mut response = of_status(StatusCode::UPGRADE_REQUIRED, String::new());
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return response;
    };
    let slot = request.extensions_mut().remove::<Arc<ConnectionSlot>>();
    let line = request.extensions_mut().remove::<Arc<DelayLine>>();
    let Some(slot) = slot.filter(|slot| slot.follow(address)) else {
        return of_error(&ApiError::BUSY);
    };
    let open = state.open_websocket();
    let kept = Arc::clone(&slot);
    let figures = Arc::clone(&state);
    let serve = async move {
        match hyper::upgrade::on(request).await {
            Ok(upgraded) => {
                let config = WebSocketConfig::default()
                    .read_buffer_size(READ_BYTES)
                    .write_buffer_size(WRITE_BYTES)
                    .max_message_size(Some(MESSAGE_BYTES_MAX))
                    .max_frame_size(Some(MESSAGE_BYTES_MAX));
                let stream = TokioIo::new(upgraded);
                let socket =
                    WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
                match served {
                    Served::Streams(names, is_combined) => {
                        let names = (address, names);
                        streams::serve(state, socket, names, is_combined, time_unit).await;
                    }
                    Served::Api { with_limits } => {
                        let parts = (address, slot, line);
                        api::serve(state, socket, parts, with_limits, time_unit).await;
                    }
                }
            }
            Err(error) => tracing::debug!(target: "access", %error, "an upgrade failed"),
        }
        drop(open);
    };
    tokio::spawn(async move {
        tokio::select! {
            () = serve => {}
            () = kept.evicted() => figures.figures.cut("evicted"),
        }
    });
    let mut response = of_status(StatusCode::SWITCHING_PROTOCOLS, String::new());
    let headers = response.headers_mut();
    headers.clear();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept_key);
    response
}

/// Returns what the path of a request serves; `None` where it is not one of WebSocket.
fn served(request: &Request<Incoming>) -> Result<Option<(Served, TimeUnit)>, ApiError> {
    let path = request.uri().path();
    let params = Params::of_request(request.uri().query().unwrap_or(""), "")?;
    let names = |list: &str| -> Vec<String> {
        let names = list.split('/').filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    };
    let served = match path {
        "/stream" | "/stream/" => Served::Streams(names(params.raw("streams").unwrap_or("")), true),
        "/ws-api/v3" | "/ws-api/v3/" => Served::Api {
            with_limits: params.flag("returnRateLimits")?.unwrap_or(true),
        },
        _ => match path.strip_prefix("/ws") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Served::Streams(names(&unescape(rest)?), false)
            }
            _ => return Ok(None),
        },
    };
    let time_unit = params.raw("timeUnit").map(TimeUnit::named).transpose()?;
    Ok(Some((served, time_unit.unwrap_or_default())))
}

/// Returns the answer to the key of a handshake; `None` where it is not one of version 13.
fn accept_key(request: &Request<Incoming>) -> Option<HeaderValue> {
    let headers = request.headers();
    let is_right = request.method() == Method::GET
        && is_asked_for(headers)
        && has_token(headers, &CONNECTION, "upgrade")
        && headers.get(SEC_WEBSOCKET_VERSION)?.as_bytes() == b"13";
    let key = headers.get(SEC_WEBSOCKET_KEY)?;
    let accept_key = derive_accept_key(key.as_bytes());
    HeaderValue::from_str(&accept_key).ok().filter(|_| is_right)
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let lists = values.filter_map(|value| value.to_str().ok());
    let mut tokens = lists.flat_map(|list| list.split(','));
    tokens.any(|one| one.trim().eq_ignore_ascii_case(token))
}
