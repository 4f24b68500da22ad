//! The HTTP server: connections, routing, headers, bounds.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use thalweg_server::conditions::{Fault, Line};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::conditions::{self, Lost};
use crate::error::ApiError;
use crate::figures::{self, Class};
use crate::keys::ApiKey;
use crate::page;
use crate::params::Params;
use crate::response::{HttpResponse, of_error, of_status};
use crate::rest::{self, Call, Endpoint, Security, TimeUnit};
use crate::seats::Seat;
use crate::state::{State, now_us};
use crate::websocket;

/// The longest body of a request.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How long a client may take for its request's head, also while a connection is idle.
const HEAD_TIME: Duration = Duration::from_secs(75);
/// A connection without a key may hold this much of a head that does not end.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a client may take for its request's body.
const BODY_TIME: Duration = Duration::from_secs(10);
/// The pause after the system had no file for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const API_KEY: &str = "x-mbx-apikey";
const TIME_UNIT: &str = "x-mbx-time-unit";
const FORWARDED: &str = "x-forwarded-for";
const UUID: HeaderName = HeaderName::from_static("x-mbx-uuid");
const USED_WEIGHT: HeaderName = HeaderName::from_static("x-mbx-used-weight");
const USED_WEIGHT_1M: HeaderName = HeaderName::from_static("x-mbx-used-weight-1m");
const ORDER_COUNT_10S: HeaderName = HeaderName::from_static("x-mbx-order-count-10s");
const ORDER_COUNT_1D: HeaderName = HeaderName::from_static("x-mbx-order-count-1d");

/// Accepts connections until the gateway stops.
pub(crate) async fn serve(state: Arc<State>, listener: TcpListener) {
    let mut draining = state.draining();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = draining.wait_for(|is| *is) => return,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(seat) = state.seats.take(peer.ip()) else {
            state.figures.cut("no seat");
            tracing::debug!(target: "access", %peer, "a connection is refused: no seat");
            continue;
        };
        tokio::spawn(connection(Arc::clone(&state), stream, peer, Arc::new(seat)));
    }
}

/// Serves a connection, behind a line where it has latency.
async fn connection(state: Arc<State>, stream: TcpStream, peer: SocketAddr, seat: Arc<Seat>) {
    let _ = stream.set_nodelay(true);
    let Some(conditions) = conditions::with_latency(&state) else {
        return serve_on(stream, state, peer, seat, None).await;
    };
    match conditions::delayed(stream, &state, conditions, &seat) {
        Ok((stream, line)) => serve_on(stream, state, peer, seat, Some(line)).await,
        Err(error) => tracing::warn!(%error, "no sockets for a connection with latency"),
    }
}

/// Serves a connection. Its seat and its line go with each request: a WebSocket keeps them.
async fn serve_on(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    state: Arc<State>,
    peer: SocketAddr,
    seat: Arc<Seat>,
    line: Option<Arc<Line>>,
) {
    let is_over = is_over(state.draining(), line.is_some());
    let own = Arc::clone(&seat);
    let figures = Arc::clone(&state);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&own));
        if let Some(line) = &line {
            request.extensions_mut().insert(Arc::clone(line));
        }
        let state = Arc::clone(&state);
        async move { respond(state, request, peer).await }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades();
    tokio::pin!(served, is_over);
    let served = tokio::select! {
        served = &mut served => served,
        () = seat.evicted() => return figures.figures.cut("evicted"),
        () = is_over => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(target: "access", %peer, %error, "a connection ended badly");
    }
}

/// Waits until a connection is to end behind its last response, for that to be delivered by its
/// line; one without a line ends with the gateway.
async fn is_over(mut draining: watch::Receiver<bool>, has_line: bool) {
    if !has_line || draining.wait_for(|is| *is).await.is_err() {
        std::future::pending().await
    }
}

/// Returns the address that weights count for: the last one that a proxy on this machine has
/// added, or else the peer's.
fn client_address(headers: &HeaderMap, peer: SocketAddr) -> IpAddr {
    let forwarded = headers.get_all(FORWARDED).iter().next_back();
    let last = forwarded
        .and_then(|value| value.to_str().ok())
        .and_then(|list| list.rsplit(',').next()?.trim().parse().ok());
    let peer = peer.ip().to_canonical();
    last.filter(|_| peer.is_loopback()).unwrap_or(peer)
}

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> Result<HttpResponse, Lost> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let address = client_address(request.headers(), peer);
    let seen = figures::Request::new(address, method.as_str(), &path);
    let served = Arc::clone(&state);
    let mut response = if websocket::is_asked_for(request.headers()) {
        websocket::accept(state, request, address)
    } else if let Some(response) = page::respond(&method, &path, request.headers()) {
        response
    } else {
        answer(&state, request, address).await?
    };
    if let Ok(value) = HeaderValue::from_str(&seen.id) {
        response.headers_mut().insert(UUID, value);
    }
    let status = response.status().as_u16();
    let extensions = response.extensions_mut();
    let class = extensions.remove().unwrap_or(Class::Other);
    let key: Option<Arc<ApiKey>> = extensions.remove();
    (served.figures).answered(&seen, class, status, key.as_deref());
    Ok(response)
}

/// Answers a request by HTTP. The response has the class and the key as extensions.
async fn answer(
    state: &Arc<State>,
    request: Request<Incoming>,
    address: IpAddr,
) -> Result<HttpResponse, Lost> {
    let (head, body) = request.into_parts();
    let empty = |status| Ok(of_status(status, String::new()));
    if head.method == Method::OPTIONS {
        return empty(StatusCode::NO_CONTENT);
    }
    let row = match rest::find(&head.method, head.uri.path()) {
        Ok(row) => row,
        Err(true) => return empty(StatusCode::METHOD_NOT_ALLOWED),
        Err(false) => return empty(StatusCode::NOT_FOUND),
    };
    let mut response = call(state, row, (head, body), address).await?;
    response.extensions_mut().insert(Class::from(row.security));
    Ok(response)
}

/// Answers a request of an endpoint.
async fn call(
    state: &Arc<State>,
    row: &Endpoint,
    (head, body): (Parts, Incoming),
    address: IpAddr,
) -> Result<HttpResponse, Lost> {
    let empty = |status| Ok(of_status(status, String::new()));
    let read = tokio::time::timeout(BODY_TIME, Limited::new(body, BODY_BYTES_MAX).collect());
    let body = match read.await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return empty(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => return empty(StatusCode::REQUEST_TIMEOUT),
    };
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let read = std::str::from_utf8(&body)
        .map_err(|_| ApiError::ILLEGAL_CHARS)
        .and_then(|body| Params::of_request(head.uri.query().unwrap_or(""), body));
    let params = match read {
        Ok(params) => params,
        Err(error) => return Ok(of_error(&error)),
    };
    let seat = head.extensions.get::<Arc<Seat>>();
    if !seat.is_some_and(|seat| seat.work(address)) {
        return Ok(of_error(&ApiError::BUSY));
    }
    let weighed = rest::weigh(state, row, &params, address);
    let authorized = weighed.and_then(|_| {
        let unit = header(TIME_UNIT)
            .or(params.raw("timeUnit"))
            .map(TimeUnit::named);
        let unit = unit.transpose()?.unwrap_or_default();
        let key = rest::authorize(state, row, &params, header(API_KEY));
        let key = key.inspect_err(|error| state.audit_refused(address, header(API_KEY), error))?;
        if let (Some(line), Some(key)) = (head.extensions.get::<Arc<Line>>(), &key) {
            conditions::belong(line, state, key);
        }
        let fault = conditions::fault(state, row, key.as_deref());
        Ok((unit, key, fault))
    });
    let (result, key) = match authorized {
        // There is no other way not to answer: requests of a connection are answered in turn.
        Ok((_, _, Some(Fault::Drop | Fault::Disconnect))) => return Err(Lost),
        Ok((_, key, Some(Fault::Reject))) => (Err(ApiError::BUSY), key),
        Ok((unit, key, None)) => {
            let call = Call {
                state,
                params: &params,
                unit,
                key,
            };
            (rest::run(row, &call).await, call.key)
        }
        Err(error) => (Err(error), None),
    };
    let mut response = match &result {
        Ok(value) => of_status(StatusCode::OK, value.to_string()),
        Err(error) => of_error(error),
    };
    if let Some(seat) = seat {
        seat.wait(key.is_some());
    }
    let trader = key.as_deref().filter(|_| row.security == Security::Trade);
    add_limits(response.headers_mut(), state, address, trader);
    if let Some(key) = key {
        response.extensions_mut().insert(key);
    }
    Ok(response)
}

/// Adds the weight that an address has used, and the orders of a user who trades.
fn add_limits(headers: &mut HeaderMap, state: &State, address: IpAddr, trader: Option<&ApiKey>) {
    let now = now_us();
    let used = state.limits.weight_used(address, now);
    headers.insert(USED_WEIGHT, used.into());
    headers.insert(USED_WEIGHT_1M, used.into());
    if let Some(key) = trader {
        let (in_10s, in_day) = state.limits.orders(key.user, now);
        headers.insert(ORDER_COUNT_10S, in_10s.into());
        headers.insert(ORDER_COUNT_1D, in_day.into());
    }
}
