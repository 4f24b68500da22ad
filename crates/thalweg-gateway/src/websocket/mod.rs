//! WebSocket: market streams, user data streams, the WebSocket API.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use crate::listener::{HttpResponse, of_status};
use crate::state::State;

/// Answers a request that asks for an upgrade.
pub(crate) fn accept(
    _state: Arc<State>,
    _request: Request<Incoming>,
    _address: IpAddr,
) -> HttpResponse {
    of_status(StatusCode::NOT_FOUND, String::new())
}
