//! Responses of HTTP.

use std::sync::Arc;

use crate::error::ApiError;
use crate::market::{Budget, TEXT_BYTES_FREE};
use crate::rest::{Answer, Security};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

/// A response as hyper takes it.
pub(crate) type HttpResponse = Response<Full<Bytes>>;

/// Returns a response of JSON, or without a body.
pub(crate) fn of_status(status: StatusCode, body: String) -> HttpResponse {
    of_bytes(status, Bytes::from(body))
}

fn of_bytes(status: StatusCode, body: Bytes) -> HttpResponse {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json;charset=UTF-8");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// A result that is not written yet: its bytes count among those that wait for all connections.
struct Counted {
    text: String,
    budget: Arc<Budget>,
}

impl Counted {
    /// Returns nothing where too many bytes wait already, unless these are few or are of what was
    /// executed.
    fn new(text: String, security: Security, budget: &Arc<Budget>) -> Option<Self> {
        let is_full = budget.add(text.capacity());
        let budget = Arc::clone(budget);
        let counted = Self { text, budget };
        let is_free = counted.text.capacity() <= TEXT_BYTES_FREE || security == Security::Trade;
        (!is_full || is_free).then_some(counted)
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.budget.remove(self.text.capacity());
    }
}

/// Returns the response with a result. One that is long is refused while too much waits to be
/// written to all, but for that of an order or a mass cancel: it is executed already.
pub(crate) fn of_result(result: &Answer, security: Security, budget: &Arc<Budget>) -> HttpResponse {
    let mut text = match result {
        Ok(value) => value.to_string(),
        Err(error) => return of_error(error),
    };
    text.shrink_to_fit();
    match Counted::new(text, security, budget) {
        Some(counted) => of_bytes(StatusCode::OK, Bytes::from_owner(counted)),
        None => of_error(&ApiError::BUSY),
    }
}

/// Returns the response of an error.
pub(crate) fn of_error(error: &ApiError) -> HttpResponse {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = of_status(status, error.to_json().to_string());
    // A client that sends on regardless connects anew for each request.
    if error.code == ApiError::WEIGHT.code {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::market::TEXT_BYTES_TOTAL;

    #[test]
    fn bytes_count_until_they_are_written_and_long_results_are_refused_beyond_the_bound() {
        let budget = Arc::<Budget>::default();
        let long = Ok(Value::String("x".repeat(TEXT_BYTES_FREE)));
        let short = Ok(Value::String("x".repeat(TEXT_BYTES_FREE / 2)));
        let first = of_result(&long, Security::None, &budget);
        assert_eq!(first.status(), StatusCode::OK);
        let bytes = budget.bytes();
        assert!(bytes > TEXT_BYTES_FREE);
        // Other connections have the rest.
        budget.add(TEXT_BYTES_TOTAL - bytes);
        let refused = of_result(&long, Security::UserData, &budget);
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(budget.bytes(), TEXT_BYTES_TOTAL);
        let second = of_result(&short, Security::None, &budget);
        assert_eq!(second.status(), StatusCode::OK);
        // It was executed.
        let third = of_result(&long, Security::Trade, &budget);
        assert_eq!(third.status(), StatusCode::OK);
        assert!(budget.bytes() > TEXT_BYTES_TOTAL + TEXT_BYTES_FREE);
        drop((first, second, third));
        assert_eq!(budget.bytes(), TEXT_BYTES_TOTAL - bytes);
        let last = of_result(&long, Security::None, &budget);
        assert_eq!(last.status(), StatusCode::OK);
    }
}
