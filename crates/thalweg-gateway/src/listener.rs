//! The HTTP server: connections, routing, headers, bounds.

use std::error::Error as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Once};
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use thalweg_server::BACKLOG;
use thalweg_server::conditions::{DELAY_MAX, DelayLine, Fault};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::conditions::{self, Lost};
use crate::connection_slots::ConnectionSlot;
use crate::error::ApiError;
use crate::figures::{self, Class};
use crate::keys::ApiKey;
use crate::market::Recipient;
use crate::page;
use crate::params::Params;
use crate::response::{HttpResponse, of_error, of_result, of_status};
use crate::rest::{self, Call, Endpoint, Security, TimeUnit};
use crate::stalling::Stalling;
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
/// How long a client may take nothing of a response.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// Bytes that the system may hold of what is written to a connection; it takes twice that.
const SEND_BYTES: u32 = 256 << 10;
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

/// Listens on an address; each connection has a send buffer of [`SEND_BYTES`].
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    thalweg_server::bind(address, SEND_BYTES)?.listen(BACKLOG)
}

/// Accepts connections until the gateway stops.
pub(crate) async fn serve(state: Arc<State>, listener: TcpListener) {
    let mut draining = state.draining();
    let mut pause = Duration::ZERO;
    loop {
        let accepted = async {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            listener.accept().await
        };
        let accepted = tokio::select! {
            accepted = accepted => accepted,
            _ = draining.wait_for(|is| *is) => return,
        };
        let Ok((stream, peer)) = accepted else {
            pause = ACCEPT_PAUSE;
            continue;
        };
        // A proxy connects for all its clients, as this machine does for its programs.
        let is_proxy = state.proxy == Some(peer.ip().to_canonical());
        let from = if is_proxy {
            Ipv4Addr::LOCALHOST.into()
        } else {
            peer.ip()
        };
        let arrival = state.exchange.arrive(from);
        pause = arrival.pause;
        if !arrival.is_taken {
            state.figures.cut("too often");
            continue;
        }
        let Some(slot) = state.slots.take(peer.ip()) else {
            state.figures.cut("no slot");
            tracing::debug!(target: "access", %peer, "a connection is refused: no slot");
            continue;
        };
        tokio::spawn(connection(Arc::clone(&state), stream, peer, Arc::new(slot)));
    }
}

/// Serves a connection, behind a line where it has latency.
async fn connection(
    state: Arc<State>,
    stream: TcpStream,
    peer: SocketAddr,
    slot: Arc<ConnectionSlot>,
) {
    let _ = stream.set_nodelay(true);
    let Some(conditions) = conditions::with_latency(&state) else {
        return serve_on(stream, state, peer, slot, None).await;
    };
    match conditions::delayed(stream, &state, conditions, &slot) {
        Ok((stream, line)) => serve_on(stream, state, peer, slot, Some(line)).await,
        Err(error) => tracing::warn!(%error, "no sockets for a connection with latency"),
    }
}

/// Serves a connection. Its slot and its line go with each request: a WebSocket keeps them.
async fn serve_on(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    state: Arc<State>,
    peer: SocketAddr,
    slot: Arc<ConnectionSlot>,
    line: Option<Arc<DelayLine>>,
) {
    let is_over = is_over(state.draining(), line.is_some());
    let line_delay = line.as_ref().map_or(Duration::ZERO, |_| DELAY_MAX);
    let own = Arc::clone(&slot);
    let figures = Arc::clone(&state);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&own));
        if let Some(line) = &line {
            request.extensions_mut().insert(Arc::clone(line));
        }
        let state = Arc::clone(&state);
        async move { respond(state, request, peer).await }
    });
    let late = line_delay + WRITE_TIME;
    let stream = Stalling::new(stream, Arc::clone(&slot), late);
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades();
    tokio::pin!(served, is_over);
    let served = tokio::select! {
        served = &mut served => served,
        () = slot.evicted() => return figures.figures.cut("evicted"),
        () = is_over => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = served {
        let cause = error
            .source()
            .and_then(|cause| cause.downcast_ref::<io::Error>());
        if cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut) {
            figures.figures.cut("too slow");
        }
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

/// Returns the address that weights count for: that of the peer, or where this is the proxy, the
/// last one that it has added.
fn client_address(headers: &HeaderMap, peer: SocketAddr, proxy: Option<IpAddr>) -> IpAddr {
    let peer = peer.ip().to_canonical();
    let Some(forwarded) = headers.get_all(FORWARDED).iter().next_back() else {
        return peer;
    };
    if proxy != Some(peer) {
        WARNED.call_once(|| {
            tracing::warn!(
                %peer,
                "X-Forwarded-For is not read: gateway.proxy is not this address, so all clients \
                 behind it count as one"
            );
        });
        return peer;
    }
    let list = forwarded.to_str().ok();
    let last = list.and_then(|list| list.rsplit(',').next()?.trim().parse().ok());
    last.unwrap_or(peer)
}

/// Whether the log has said that a proxy is not configured.
static WARNED: Once = Once::new();

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> Result<HttpResponse, Lost> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let address = client_address(request.headers(), peer, state.proxy);
    let seen = figures::Request::new(address, method.as_str(), &path);
    let served = Arc::clone(&state);
    let mut response = if websocket::is_asked_for(request.headers()) {
        websocket::accept(state, request, address)
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
    match rest::find(&head.method, head.uri.path()) {
        Ok(row) => {
            let mut response = call(state, row, (head, body), address).await?;
            response.extensions_mut().insert(Class::from(row.security));
            Ok(response)
        }
        Err(has_path) => Ok(weighed(state, address, || {
            let of_page = page::respond(&head.method, head.uri.path(), &head.headers);
            of_page.unwrap_or_else(|| {
                let status = match has_path {
                    _ if head.method == Method::OPTIONS => StatusCode::NO_CONTENT,
                    true => StatusCode::METHOD_NOT_ALLOWED,
                    false => StatusCode::NOT_FOUND,
                };
                of_status(status, String::new())
            })
        })),
    }
}

/// Answers a request that is none of an endpoint's: it weighs 1.
fn weighed(
    state: &State,
    address: IpAddr,
    response: impl FnOnce() -> HttpResponse,
) -> HttpResponse {
    match state.limits.weigh(address, 1, now_us()) {
        Ok(_) => response(),
        Err(error) => of_error(&error),
    }
}

/// Answers a request of an endpoint.
async fn call(
    state: &Arc<State>,
    row: &Endpoint,
    (head, body): (Parts, Incoming),
    address: IpAddr,
) -> Result<HttpResponse, Lost> {
    let empty = |status| {
        let response = || of_status(status, String::new());
        Ok(weighed(state, address, response))
    };
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
        Err(error) => return Ok(weighed(state, address, || of_error(&error))),
    };
    let slot = head.extensions.get::<Arc<ConnectionSlot>>();
    let Some(slot) = slot.filter(|slot| slot.work(address)) else {
        return Ok(weighed(state, address, || of_error(&ApiError::BUSY)));
    };
    let mut unit = TimeUnit::default();
    let admitted = rest::admit(state, (row, &params), address, || {
        let named = header(TIME_UNIT).or(params.raw("timeUnit"));
        unit = named.map(TimeUnit::named).transpose()?.unwrap_or_default();
        let key = rest::authorize(state, row, &params, header(API_KEY));
        key.inspect_err(|error| state.audit_refused(address, header(API_KEY), error))
    });
    let authorized = admitted.map(|key| {
        if let (Some(line), Some(key)) = (head.extensions.get::<Arc<DelayLine>>(), &key) {
            conditions::belong(line, state, key);
        }
        (conditions::fault(state, row, key.as_deref()), key)
    });
    let (result, key) = match authorized {
        // There is no other way not to answer: requests of a connection are answered in turn.
        Ok((Some(Fault::Drop | Fault::Disconnect), _)) => return Err(Lost),
        Ok((Some(Fault::Reject), key)) => (Err(ApiError::BUSY), key),
        Ok((None, key)) => {
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
    let writing = slot.write(key.as_deref());
    let user = key.as_deref().map(|key| key.user);
    let budget = (state.market.budget(), Recipient::new(address, user));
    let mut response = of_result(&result, row.security, budget, writing);
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::link::tests::Fixture;

    #[test]
    fn only_the_proxy_says_which_client_it_stands_for() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED, HeaderValue::from_static("192.0.2.1"));
        headers.append(FORWARDED, HeaderValue::from_static("192.0.2.2, 192.0.2.3"));
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let address = |peer, proxy: Option<&str>| {
            let peer = SocketAddr::new(ip(peer), 1);
            client_address(&headers, peer, proxy.map(ip)).to_string()
        };
        // Any program of this machine could have as many addresses as it likes.
        assert_eq!(address("127.0.0.1", None), "127.0.0.1");
        assert_eq!(address("127.0.0.2", Some("127.0.0.1")), "127.0.0.2");
        assert_eq!(address("127.0.0.1", Some("127.0.0.1")), "192.0.2.3");
        assert_eq!(address("::ffff:10.0.0.1", Some("10.0.0.1")), "192.0.2.3");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_response_counts_until_its_client_has_taken_it_or_is_gone() {
        let fixture = Fixture::new("responses").await;
        let state = Arc::clone(fixture.state());
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let (mut client, server) = tokio::io::duplex(64);
        let slot = Arc::new(state.slots.take(peer.ip()).expect("room"));
        let served = tokio::spawn(serve_on(server, Arc::clone(&state), peer, slot, None));
        let request = b"GET /api/v3/exchangeInfo HTTP/1.1\r\nHost: g\r\n\r\n";
        client.write_all(request).await.expect("a request");
        let bytes = || state.market.budget().bytes();
        while bytes() == 0 {
            tokio::task::yield_now().await;
        }
        client.read_exact(&mut [0; 64]).await.expect("a beginning");
        assert!(bytes() > 500);
        drop(client);
        served.await.expect("no panic");
        assert_eq!(bytes(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_connection_waits_for_its_next_request_once_its_response_is_written() {
        let fixture = Fixture::with("writing", |config| config.gateway.connections_max = 4).await;
        let state = Arc::clone(fixture.state());
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let (mut client, server) = tokio::io::duplex(64);
        let slot = Arc::new(state.slots.take(peer.ip()).expect("room"));
        let own = Arc::clone(&slot);
        let served = tokio::spawn(serve_on(server, Arc::clone(&state), peer, own, None));
        let request = b"GET /api/v3/exchangeInfo HTTP/1.1\r\nHost: g\r\n\r\n";
        client.write_all(request).await.expect("a request");
        client.read_exact(&mut [0; 64]).await.expect("a beginning");
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let others = [1, 2, 3].map(|last| state.slots.take(address(last)).expect("room"));
        let next = state.slots.take(address(4)).expect("one waits");
        let is_evicted = async |slot: &ConnectionSlot| {
            tokio::time::timeout(Duration::ZERO, slot.evicted())
                .await
                .is_ok()
        };
        assert!(!is_evicted(&slot).await && is_evicted(&others[0]).await);
        assert!(others[2].work(address(3)) && next.work(address(4)));
        let read = async {
            let mut rest = [0; 64];
            while client.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
        };
        // The first one takes the place of the second of the others, and a further one that of the
        // one before it as long as the response is not written.
        let waits = async {
            let mut newest = None;
            while !is_evicted(&slot).await {
                newest = state.slots.take(address(5)).or(newest);
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(read, waits);
        served.await.expect("no panic");
    }

    /// The system would take megabytes for each of many connections.
    #[tokio::test]
    async fn the_system_holds_little_for_a_client_that_takes_nothing() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address);
        let (client, accepted) = tokio::join!(client, listener.accept());
        let (client, (stream, _)) = (client.expect("one"), accepted.expect("one"));
        let mut bytes = 0;
        for _ in 0..10 {
            while let Ok(written) = stream.try_write(&[0; 1 << 16]) {
                bytes += written;
            }
            // The client's side of the system may have taken something meanwhile.
            let _ = tokio::time::timeout(Duration::from_millis(50), stream.writable()).await;
        }
        assert!(bytes < 2 << 20, "{bytes}");
        drop(client);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_address_that_connects_too_often_is_refused_and_others_are_not() {
        let fixture = Fixture::with("connection-rate", |config| {
            config.server.connections_max = 8;
            config.server.connects_per_address_s = 1;
        })
        .await;
        let exchange = &fixture.state().exchange;
        let is_taken = |last: u8| exchange.arrive(IpAddr::from([192, 0, 2, last])).is_taken;
        let taken = (0..1_000).filter(|_| is_taken(1)).count();
        // Half of the connections at once, and one a second.
        assert!((4..500).contains(&taken), "{taken}");
        assert!(is_taken(2));
    }
}
