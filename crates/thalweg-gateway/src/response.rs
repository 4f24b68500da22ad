//! Responses of HTTP.

use std::sync::Arc;

use crate::connection_slots::Writing;
use crate::error::ApiError;
use crate::market::{Budget, Recipient, TEXT_BYTES_FREE};
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
    to: Recipient,
    _writing: Writing,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.budget.remove(self.to, self.text.capacity());
    }
}

/// Returns the response with a result. One that is long is refused while too much waits to be
/// written to its recipient or to all, but for that of an order or a mass cancel: it is executed
/// already.
pub(crate) fn of_result(
    result: &Answer,
    security: Security,
    (budget, to): (&Arc<Budget>, Recipient),
    writing: Writing,
) -> HttpResponse {
    let mut text = match result {
        Ok(value) => value.to_string(),
        Err(error) => error.to_json().to_string(),
    };
    text.shrink_to_fit();
    let bytes = text.capacity();
    let may_refuse = result.is_ok() && security != Security::Trade && bytes > TEXT_BYTES_FREE;
    if budget.add(to, bytes).is_some() && may_refuse {
        budget.remove(to, bytes);
        return of_result(&Err(ApiError::BUSY), security, (budget, to), writing);
    }
    let body = Bytes::from_owner(Counted {
        text,
        budget: Arc::clone(budget),
        to,
        _writing: writing,
    });
    match result {
        Ok(_) => of_bytes(StatusCode::OK, body),
        Err(error) => of_failure(error, body),
    }
}

/// Returns the response of an error.
pub(crate) fn of_error(error: &ApiError) -> HttpResponse {
    of_failure(error, Bytes::from(error.to_json().to_string()))
}

fn of_failure(error: &ApiError, body: Bytes) -> HttpResponse {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = of_bytes(status, body);
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
    use std::net::IpAddr;

    use serde_json::Value;

    use super::*;
    use crate::connection_slots::ConnectionSlots;
    use crate::market::TEXT_BYTES_TOTAL;

    #[test]
    fn bytes_count_until_they_are_written_and_long_results_are_refused_beyond_the_bound() {
        let budget = Arc::<Budget>::default();
        let slot = ConnectionSlots::new(2, None).take([127, 0, 0, 1].into());
        let slot = Arc::new(slot.expect("room"));
        let address = |bytes: [u8; 4]| Recipient::new(IpAddr::from(bytes), None);
        let [own, other] = [[127, 0, 0, 1], [192, 0, 2, 1]].map(address);
        let of_result =
            |result, security| of_result(result, security, (&budget, own), slot.write(None));
        let long = Ok(Value::String("x".repeat(TEXT_BYTES_FREE)));
        let short = Ok(Value::String("x".repeat(TEXT_BYTES_FREE / 2)));
        let first = of_result(&long, Security::None);
        assert_eq!(first.status(), StatusCode::OK);
        let bytes = budget.bytes();
        assert!(bytes > TEXT_BYTES_FREE);
        // Another address has the rest: this one has less than its part.
        budget.add(other, TEXT_BYTES_TOTAL - bytes);
        let within = of_result(&long, Security::UserData);
        assert_eq!(within.status(), StatusCode::OK);
        drop(within);
        // It is shared by many.
        budget.remove(other, 4_096);
        for at in 0..4_096_u32 {
            budget.add(address(at.to_be_bytes()), 1);
        }
        let refused = of_result(&long, Security::UserData);
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(refused);
        assert_eq!(budget.bytes(), TEXT_BYTES_TOTAL);
        let second = of_result(&short, Security::None);
        assert_eq!(second.status(), StatusCode::OK);
        // It was executed.
        let third = of_result(&long, Security::Trade);
        assert_eq!(third.status(), StatusCode::OK);
        assert!(budget.bytes() > TEXT_BYTES_TOTAL + TEXT_BYTES_FREE);
        drop((first, second, third));
        assert_eq!(budget.bytes(), TEXT_BYTES_TOTAL - bytes);
        let last = of_result(&long, Security::None);
        assert_eq!(last.status(), StatusCode::OK);
    }
}
