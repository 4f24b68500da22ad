//! Errors as clients get them: HTTP status, code and exact text. Clients tell errors apart by the
//! text, so none may be changed.

use std::borrow::Cow;

use serde_json::{Value, json};

/// An error of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    /// The status of the HTTP response, and of the response of the WebSocket API.
    pub(crate) status: u16,
    pub(crate) code: i32,
    pub(crate) msg: Cow<'static, str>,
    /// Seconds after which it may be tried again.
    pub(crate) retry_after: Option<u64>,
    /// Additional content: the parts of a cancel-replace.
    pub(crate) data: Option<Value>,
}

impl ApiError {
    pub(crate) const fn new(status: u16, code: i32, msg: &'static str) -> Self {
        Self {
            status,
            code,
            msg: Cow::Borrowed(msg),
            retry_after: None,
            data: None,
        }
    }

    fn with_text(code: i32, msg: String) -> Self {
        Self {
            msg: Cow::Owned(msg),
            ..Self::new(400, code, "")
        }
    }

    /// Returns the body of the response.
    pub(crate) fn to_json(&self) -> Value {
        let mut body = json!({ "code": self.code, "msg": self.msg });
        if let Some(data) = &self.data {
            body["data"] = data.clone();
        }
        body
    }
}

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $status:literal, $code:literal, $msg:literal;)*) => {
        impl ApiError {
            $($(#[$doc])* pub(crate) const $name: Self = Self::new($status, $code, $msg);)*
        }

        #[cfg(test)]
        const ALL: &[ApiError] = &[$(ApiError::$name),*];
    };
}

errors! {
    DISCONNECTED = 500, -1001, "Internal error; unable to process your request. Please try again.";
    UNAUTHORIZED = 401, -1002, "You are not authorized to execute this request.";
    WEIGHT = 429, -1003, "Too much request weight used; current limit is exceeded. Please use \
        WebSocket Streams for live updates to avoid polling the API.";
    TIMEOUT = 500, -1007, "Timeout waiting for response from backend server. Send status \
        unknown; execution status unknown.";
    BUSY = 503, -1008, "Server is currently overloaded with other requests. Please try again \
        in a few minutes.";
    PRICE_FILTER = 400, -1013, "Filter failure: PRICE_FILTER";
    LOT_SIZE = 400, -1013, "Filter failure: LOT_SIZE";
    NOTIONAL = 400, -1013, "Filter failure: NOTIONAL";
    ICEBERG_PARTS = 400, -1013, "Filter failure: ICEBERG_PARTS";
    MAX_NUM_ORDERS = 400, -1013, "Filter failure: MAX_NUM_ORDERS";
    ORDER_RATE = 429, -1015, "Too many new orders.";
    STOPPING = 503, -1016, "This service is no longer available.";
    UNSUPPORTED = 400, -1020, "This operation is not supported.";
    TIMESTAMP = 400, -1021, "Timestamp for this request is outside of the recvWindow.";
    TIMESTAMP_AHEAD = 400, -1021, "Timestamp for this request was 1000ms ahead of the server's \
        time.";
    SIGNATURE = 400, -1022, "Signature for this request is not valid.";
    FOLLOWERS = 400, -1034, "Too many concurrent connections; current limit is '16 user data \
        streams of a user'.";
    ILLEGAL_CHARS = 400, -1100, "Illegal characters found in a parameter.";
    TOO_MANY_PARAMETERS = 400, -1101, "Too many parameters sent for this endpoint.";
    DUPLICATE_PARAMETER = 400, -1101, "Duplicate values for a parameter detected.";
    TIF_NOT_REQUIRED = 400, -1114, "TimeInForce parameter sent when not required.";
    INVALID_TIF = 400, -1115, "Invalid timeInForce.";
    INVALID_ORDER_TYPE = 400, -1116, "Invalid orderType.";
    INVALID_SIDE = 400, -1117, "Invalid side.";
    BAD_INTERVAL = 400, -1120, "Invalid interval.";
    BAD_SYMBOL = 400, -1121, "Invalid symbol.";
    BAD_COMBINATION = 400, -1128, "Combination of optional parameters invalid.";
    INVALID_JSON = 400, -1135, "Invalid JSON Request";
    TIME_UNIT = 400, -1194, "Invalid value for time unit; expected either MICROSECOND or \
        MILLISECOND.";
    NO_BALANCE = 400, -2010, "Account has insufficient balance for requested action.";
    WOULD_TAKE = 400, -2010, "Order would immediately match and take.";
    DUPLICATE_ORDER = 400, -2010, "Duplicate order sent.";
    MARKET_CLOSED = 400, -2010, "Market is closed.";
    DISABLED = 400, -2010, "This action is disabled on this account.";
    REJECTED = 400, -2010, "NEW_ORDER_REJECTED";
    COMBINATION = 400, -2010, "Unsupported order combination";
    ICEBERG_QTY = 400, -2010, "IcebergQty exceeds QTY.";
    THIN_BOOK = 400, -2010, "Order book liquidity is less than symbol minimum quantity.";
    UNKNOWN_ORDER = 400, -2011, "Unknown order sent.";
    NO_SUCH_ORDER = 400, -2013, "Order does not exist.";
    BAD_KEY = 401, -2014, "API-key format invalid.";
    REJECTED_KEY = 401, -2015, "Invalid API-key, IP, or permissions for action.";
    CANCEL_REPLACE_PARTLY = 409, -2021, "Order cancel-replace partially failed.";
    CANCEL_REPLACE_FAILED = 400, -2022, "Order cancel-replace failed.";
    SUBSCRIPTION_ACTIVE = 400, -2035, "User Data Stream subscription already active.";
    SUBSCRIPTION_INACTIVE = 400, -2036, "User Data Stream subscription not active.";
    AMEND_INCREASE = 400, -2038, "Order amend (quantity increase) is not supported.";
    AMEND_LATE = 400, -2038, "The order has changed since: nothing was amended.";
    AMENDED_OTHERWISE = 400, -2038, "The order has changed since: its quantity is another one.";
    AMEND_NOTHING = 400, -2038, "The requested action would change no state; rejecting";
}

/// The legal form of decimals, as errors name it.
pub(crate) const DECIMAL_RANGE: &str = r"^([0-9]{1,20})(\.[0-9]{1,20})?$";
/// The legal form of client order ids.
pub(crate) const CLIENT_ID_RANGE: &str = r"^[\.A-Z\:/a-z0-9_-]{1,36}$";

impl ApiError {
    /// A request that only the primary of a replicated exchange answers, at a replica that follows
    /// it: the text of -1001, which clients try again, and the primary's address where it is known.
    pub(crate) fn follows(primary: &str) -> Self {
        let whose = match primary {
            "" => "which is not known yet".to_owned(),
            primary => primary.to_owned(),
        };
        let msg = format!(
            "{} This replica follows the primary, {whose}.",
            Self::DISCONNECTED.msg
        );
        Self {
            status: 503,
            ..Self::with_text(Self::DISCONNECTED.code, msg)
        }
    }

    pub(crate) fn illegal(name: &str, range: &str) -> Self {
        let msg =
            format!("Illegal characters found in parameter '{name}'; legal range is '{range}'.");
        Self::with_text(-1100, msg)
    }

    pub(crate) fn mandatory(name: &str) -> Self {
        let msg =
            format!("Mandatory parameter '{name}' was not sent, was empty/null, or malformed.");
        Self::with_text(-1102, msg)
    }

    pub(crate) fn either(one: &str, other: &str) -> Self {
        let msg = format!("Param '{one}' or '{other}' must be sent, but both were empty/null!");
        Self::with_text(-1102, msg)
    }

    pub(crate) fn too_many(expected: usize, received: usize) -> Self {
        let msg = format!("Too many parameters; expected '{expected}' and received '{received}'.");
        Self::with_text(-1101, msg)
    }

    pub(crate) fn too_many_values(name: &str, most: usize) -> Self {
        let msg =
            format!("Too many values sent for parameter '{name}', maximum allowed up to {most}.");
        Self::with_text(-1101, msg)
    }

    pub(crate) fn unread(read: usize, sent: usize) -> Self {
        let msg = format!(
            "Not all sent parameters were read; read '{read}' parameter(s) but was sent '{sent}'."
        );
        Self::with_text(-1104, msg)
    }

    pub(crate) fn empty(name: &str) -> Self {
        Self::with_text(-1105, format!("Parameter '{name}' was empty."))
    }

    pub(crate) fn not_required(name: &str) -> Self {
        Self::with_text(-1106, format!("Parameter '{name}' sent when not required."))
    }

    pub(crate) fn too_precise(name: &str) -> Self {
        Self::with_text(-1111, format!("Parameter '{name}' has too much precision."))
    }

    pub(crate) fn invalid_data(name: &str) -> Self {
        Self::with_text(
            -1130,
            format!("Data sent for parameter '{name}' is not valid."),
        )
    }

    /// Returns this error, to be tried again after some seconds.
    pub(crate) const fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_texts_identify_an_error() {
        for (at, error) in ALL.iter().enumerate() {
            assert!(error.code < 0 && (400..=503).contains(&error.status));
            let same = |other: &ApiError| (other.code, &other.msg) == (error.code, &error.msg);
            assert_eq!(ALL.iter().position(same), Some(at), "{error:?}");
        }
    }

    #[test]
    fn bodies_have_code_and_text() {
        let body = ApiError::BAD_SYMBOL.to_json();
        assert_eq!(
            body.to_string(),
            r#"{"code":-1121,"msg":"Invalid symbol."}"#
        );
        let error = ApiError::mandatory("side");
        let text = "Mandatory parameter 'side' was not sent, was empty/null, or malformed.";
        assert_eq!((error.status, error.code, &*error.msg), (400, -1102, text));
        let error = ApiError::follows("10.0.0.1:7411");
        let text = "Internal error; unable to process your request. Please try again. This replica \
                    follows the primary, 10.0.0.1:7411.";
        assert_eq!((error.status, error.code, &*error.msg), (503, -1001, text));
        assert!(
            ApiError::follows("")
                .msg
                .ends_with("primary, which is not known yet.")
        );
    }
}
