//! The small HTTP listener: `/metrics`, `/healthz`, `/readyz`.
//!
//! It has a thread of its own, so that requests take no time from trading. Where more come than are
//! served at once, the oldest connection is closed: a health check is always answered.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::connection_slots::HTTP_MAX;
use crate::metrics::Metrics;

/// How long a client may take for its request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a connection may last, whatever it does.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
const TEXT: &str = "text/plain; charset=utf-8";
/// The content type of the text that `prometheus_client` writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The thread of the listener; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Http {
    _end: oneshot::Sender<()>,
}

/// Serves on a thread of its own.
///
/// # Errors
/// The system gives no thread, or the socket cannot be used there.
pub(crate) fn start(listener: TcpListener, metrics: Arc<Metrics>) -> io::Result<Http> {
    let listener = listener.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (end, mut ended) = oneshot::channel();
    let run = move || {
        runtime.block_on(async {
            let Ok(listener) = TcpListener::from_std(listener) else {
                return;
            };
            tokio::select! {
                () = listen(listener, metrics) => {}
                _ = &mut ended => {}
            }
        });
    };
    thread::Builder::new().name("http".into()).spawn(run)?;
    Ok(Http { _end: end })
}

async fn listen(listener: TcpListener, metrics: Arc<Metrics>) {
    let mut open = VecDeque::<JoinHandle<()>>::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= HTTP_MAX
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let metrics = Arc::clone(&metrics);
        open.push_back(tokio::spawn(async move {
            let _ = tokio::time::timeout(CONNECTION_TIME, serve(stream, metrics)).await;
        }));
    }
}

async fn serve(stream: TcpStream, metrics: Arc<Metrics>) {
    let answer = service_fn(move |request| answer(request, Arc::clone(&metrics)));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an HTTP connection ended badly");
    }
}

async fn answer(
    request: Request<Incoming>,
    metrics: Arc<Metrics>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return Ok(response);
    }
    Ok(match request.uri().path() {
        "/healthz" if metrics.is_healthy() => text(StatusCode::OK, "ok\n"),
        "/healthz" => text(StatusCode::SERVICE_UNAVAILABLE, "failed\n"),
        "/readyz" => {
            let (is_ready, shown) = metrics.readiness();
            let status = match is_ready {
                true => StatusCode::OK,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            text(status, shown)
        }
        "/metrics" => match metrics.page().await {
            Ok(body) => of_type(StatusCode::OK, OPEN_METRICS, body),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "no metrics\n"),
        },
        _ => text(
            StatusCode::NOT_FOUND,
            "there are /metrics, /healthz and /readyz\n",
        ),
    })
}

fn text(status: StatusCode, body: impl Into<String>) -> Response<Full<Bytes>> {
    of_type(status, TEXT, Bytes::from(body.into()))
}

fn of_type(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
