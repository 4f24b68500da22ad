//! The bare echo: hyper reads a request whole and writes an answer of as many bytes as the
//! gateway's, on the same runtime.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// The gateway's answer to an order.
const PLACED: &str = "{\"clientOrderId\":\"c1234\",\"cummulativeQuoteQty\":\"0.000000\",\
    \"executedQty\":\"0.0000\",\"fills\":[],\"orderId\":4503599627370497,\"orderListId\":-1,\
    \"origQty\":\"0.0005\",\"origQuoteOrderQty\":\"0.000000\",\"price\":\"100.000000\",\
    \"selfTradePreventionMode\":\"NONE\",\"side\":\"SELL\",\"status\":\"EXPIRED\",\
    \"symbol\":\"BTCUSDT\",\"timeInForce\":\"IOC\",\"transactTime\":1764430000000,\
    \"type\":\"LIMIT\"}";
const HEADERS: [(&str, &str); 5] = [
    ("x-mbx-used-weight", "123456"),
    ("x-mbx-used-weight-1m", "123456"),
    ("x-mbx-order-count-10s", "12345"),
    ("x-mbx-order-count-1d", "12345"),
    ("x-mbx-uuid", "00001234-000000001234"),
];

/// Listens, and serves all connections.
pub(crate) async fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let served = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(served);
        }
    });
    Ok(address)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let read = request.into_body().collect().await;
    let mut response = Response::new(Full::new(Bytes::from_static(PLACED.as_bytes())));
    if read.is_ok() {
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json;charset=UTF-8");
        headers.insert(CONTENT_TYPE, json);
        for (name, value) in HEADERS {
            let name = HeaderName::from_static(name);
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    Ok(response)
}
