//! Parameters of a request, with the bytes that are signed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::decimal::{self, DecimalError};
use crate::error::{ApiError, DECIMAL_RANGE};
use crate::symbols::{Symbol, Symbols};

/// Parameters that a request may have at most.
const PARAMETERS_MAX: usize = 100;
const INTEGER_RANGE: &str = "^[0-9]{1,20}$";

#[derive(Debug)]
struct Param {
    name: String,
    value: String,
    is_body: bool,
}

/// The parameters of a request of REST, from the query and the body; or of the WebSocket API.
#[derive(Debug, Default)]
pub(crate) struct Params {
    list: Vec<Param>,
    /// The bytes that the signature is of.
    payload: Vec<u8>,
    signature: Option<String>,
}

impl Params {
    /// Reads a raw query and a raw body. A name that is in both has the value of the query. The
    /// signed payload is both, one behind the other as they are, without their `signature=` pairs.
    ///
    /// # Errors
    /// -1100 where an escape or its UTF-8 is wrong, -1101 for too many and for repetitions.
    pub(crate) fn of_request(query: &str, body: &str) -> Result<Self, ApiError> {
        let mut params = Self::default();
        for (part, other) in [(query, None), (body, Some(query))] {
            let mut is_first = true;
            for pair in part.split('&').filter(|pair| !pair.is_empty()) {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                if name == "signature" {
                    params
                        .signature
                        .get_or_insert(unescape(value)?.into_owned());
                    continue;
                }
                if !std::mem::take(&mut is_first) {
                    params.payload.push(b'&');
                }
                params.payload.extend_from_slice(pair.as_bytes());
                params.add(unescape(name)?, unescape(value)?, other.is_some())?;
            }
        }
        Ok(params)
    }

    /// Reads the `params` of a request of the WebSocket API. The signed payload is all but
    /// `signature`, sorted by name, not escaped; numbers are as they were sent.
    ///
    /// # Errors
    /// -1100 for a value that is an object; -1101 for too many.
    pub(crate) fn of_json(sorted: &BTreeMap<Cow<'_, str>, &RawValue>) -> Result<Self, ApiError> {
        let mut params = Self::default();
        for (name, value) in sorted {
            let raw = value.get();
            let text = match raw.as_bytes().first() {
                Some(b'"') => {
                    let text = serde_json::from_str::<String>(raw);
                    Cow::Owned(text.map_err(|_| ApiError::ILLEGAL_CHARS)?)
                }
                Some(b'n') => continue,
                Some(b'{') => return Err(ApiError::ILLEGAL_CHARS),
                _ => Cow::Borrowed(raw),
            };
            if name == "signature" {
                params.signature = Some(text.into_owned());
                continue;
            }
            if !params.payload.is_empty() {
                params.payload.push(b'&');
            }
            params.payload.extend_from_slice(name.as_bytes());
            params.payload.push(b'=');
            params.payload.extend_from_slice(text.as_bytes());
            params.add(Cow::Borrowed(name), text, false)?;
        }
        Ok(params)
    }

    fn add(
        &mut self,
        name: Cow<'_, str>,
        value: Cow<'_, str>,
        is_body: bool,
    ) -> Result<(), ApiError> {
        if self.list.len() >= PARAMETERS_MAX {
            return Err(ApiError::TOO_MANY_PARAMETERS);
        }
        if let Some(first) = self.list.iter().find(|param| param.name == name) {
            // In both: that of the query counts.
            return match is_body && !first.is_body {
                true => Ok(()),
                false => Err(ApiError::DUPLICATE_PARAMETER),
            };
        }
        self.list.push(Param {
            name: name.into_owned(),
            value: value.into_owned(),
            is_body,
        });
        Ok(())
    }

    /// Returns the bytes that the signature is of.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns the signature, if there is one.
    pub(crate) fn signature(&self) -> Option<&str> {
        self.signature.as_deref()
    }

    /// Returns the names of all parameters but the signature.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|param| &*param.name)
    }

    /// Returns a value as it was sent; `None` where it is not there.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        let param = self.list.iter().find(|param| param.name == name)?;
        Some(&param.value)
    }

    /// Returns a value; `None` where it is not there.
    ///
    /// # Errors
    /// -1105 where it is empty.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.raw(name) {
            Some("") => Err(ApiError::empty(name)),
            value => Ok(value),
        }
    }

    /// Returns a value that must be there.
    ///
    /// # Errors
    /// -1102.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        let value = self.raw(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| ApiError::mandatory(name))
    }

    /// Returns a whole number.
    ///
    /// # Errors
    /// -1100 where it is none, or does not fit 63 bits.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|_| is_number);
        value
            .map(Some)
            .ok_or_else(|| ApiError::illegal(name, INTEGER_RANGE))
    }

    /// Returns `true` or `false`.
    ///
    /// # Errors
    /// -1100 where it is neither.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.text(name)? {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(_) => Err(ApiError::illegal(name, "^(true|false)$")),
        }
    }

    /// Returns a decimal as a number of units of 10^−`decimals`.
    ///
    /// # Errors
    /// -1100 for another form, -1111 for too many decimals, and `too_large`.
    pub(crate) fn decimal(
        &self,
        name: &str,
        decimals: u32,
        too_large: &ApiError,
    ) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        decimal::parse(text, decimals)
            .map(Some)
            .map_err(|error| match error {
                DecimalError::Malformed => ApiError::illegal(name, DECIMAL_RANGE),
                DecimalError::TooPrecise => ApiError::too_precise(name),
                DecimalError::TooLarge => too_large.clone(),
            })
    }

    /// Returns the symbol that `symbol` names.
    ///
    /// # Errors
    /// -1102 where it is not there, -1121 where there is no such symbol.
    pub(crate) fn symbol(&self, symbols: &Symbols) -> Result<Arc<Symbol>, ApiError> {
        symbols
            .by_name(self.required("symbol")?)
            .ok_or(ApiError::BAD_SYMBOL)
    }
}

/// Returns the text behind escapes.
pub(crate) fn unescape(text: &str) -> Result<Cow<'_, str>, ApiError> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value = digit().zip(digit()).map(|(high, low)| high * 16 + low);
                value.ok_or(ApiError::ILLEGAL_CHARS)? as u8
            }
            _ => byte,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| ApiError::ILLEGAL_CHARS)?;
    Ok(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_the_raw_query_and_the_raw_body_without_their_signatures() {
        let params = Params::of_request("b=%41&signature=xx&a=1", "c=2&signature=yy")
            .expect("they are fine");
        assert_eq!(params.payload(), b"b=%41&a=1c=2");
        assert_eq!(params.signature(), Some("xx"));
        assert_eq!(params.raw("b"), Some("A"));
        let in_body = Params::of_request("", "a=1&signature=z%2F").expect("they are fine");
        assert_eq!(
            (in_body.payload(), in_body.signature()),
            (&b"a=1"[..], Some("z/"))
        );
    }

    #[test]
    fn the_query_wins_and_repetitions_are_refused() {
        let params = Params::of_request("a=1", "a=2&b=3").expect("they are fine");
        assert_eq!((params.raw("a"), params.raw("b")), (Some("1"), Some("3")));
        for (query, body) in [("a=1&a=2", ""), ("", "a=1&a=2"), ("b=1", "a=1&a=1")] {
            let twice = Params::of_request(query, body).expect_err("it is twice there");
            assert_eq!(twice, ApiError::DUPLICATE_PARAMETER);
        }
    }

    #[test]
    fn json_is_signed_sorted_and_as_sent() {
        let json = r#"{"timestamp":1645423376532,"symbol":"BTC USDT","signature":"s",
            "returnRateLimits":false,"orderId":"7","price":0.10,"side":null}"#;
        let sorted = serde_json::from_str(json).expect("it is JSON");
        let params = Params::of_json(&sorted).expect("they are fine");
        let payload = "orderId=7&price=0.10&returnRateLimits=false&symbol=BTC USDT\
             &timestamp=1645423376532";
        assert_eq!(params.payload(), payload.as_bytes());
        assert_eq!(params.integer("orderId"), Ok(Some(7)));
    }

    #[test]
    fn numbers_that_are_none_are_refused_by_name() {
        let params = Params::of_request("a=-1&b=1e3&c=&d=1.5&e=%zz", "");
        assert_eq!(params.expect_err("%zz"), ApiError::ILLEGAL_CHARS);
        let params = Params::of_request("a=-1&b=1e3&c=&d=1.5", "").expect("they are fine");
        for name in ["a", "b"] {
            assert_eq!(
                params.integer(name),
                Err(ApiError::illegal(name, INTEGER_RANGE))
            );
            let refused = params.decimal(name, 8, &ApiError::LOT_SIZE);
            assert_eq!(refused, Err(ApiError::illegal(name, DECIMAL_RANGE)));
        }
        assert_eq!(params.integer("c"), Err(ApiError::empty("c")));
        let refused = params.decimal("d", 0, &ApiError::LOT_SIZE);
        assert_eq!(refused, Err(ApiError::too_precise("d")));
    }
}
