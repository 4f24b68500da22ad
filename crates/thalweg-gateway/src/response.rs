//! Responses of HTTP.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use crate::error::ApiError;

/// A response as hyper takes it.
pub(crate) type HttpResponse = Response<Full<Bytes>>;

/// Returns a response of JSON.
pub(crate) fn of_status(status: StatusCode, body: String) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json;charset=UTF-8");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Returns the response of an error.
pub(crate) fn of_error(error: &ApiError) -> HttpResponse {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = of_status(status, error.to_json().to_string());
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}
