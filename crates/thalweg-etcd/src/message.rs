//! The messages of etcd's JSON gateway, as far as a log needs them. Numbers of 64 bits are texts
//! there, and bytes are base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A key with its value, as etcd returns it.
#[derive(Debug, Deserialize)]
struct KeyValue {
    key: String,
    #[serde(default)]
    value: String,
    mod_revision: String,
}

/// A key with its value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// The revision in which it was written.
    pub(crate) revision: u64,
}

#[derive(Debug, Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

#[derive(Debug, Deserialize)]
struct Response {
    response_range: Option<Range>,
}

#[derive(Debug, Deserialize)]
struct Header {
    revision: String,
}

/// The answer to a transaction.
#[derive(Debug, Deserialize)]
struct TxnAnswer {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

/// The answer to a transaction, decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) revision: u64,
    /// Whether the comparisons held.
    pub(crate) holds: bool,
    /// The entries of each range.
    pub(crate) ranges: Vec<Vec<Entry>>,
}

impl Answer {
    /// Reads the answer to a transaction.
    pub(crate) fn read(body: &[u8]) -> Result<Self, String> {
        let wrong = |error: &dyn std::fmt::Display| {
            let begin = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            format!("an answer that etcd does not give ({error}): {begin}")
        };
        let answer: TxnAnswer = serde_json::from_slice(body).map_err(|error| wrong(&error))?;
        let number = |text: &str| text.parse::<u64>().map_err(|error| wrong(&error));
        let bytes = |text: &str| STANDARD.decode(text).map_err(|error| wrong(&error));
        let entry = |one: &KeyValue| {
            Ok(Entry {
                key: bytes(&one.key)?,
                value: bytes(&one.value)?,
                revision: number(&one.mod_revision)?,
            })
        };
        let ranges = answer
            .responses
            .iter()
            .filter_map(|one| one.response_range.as_ref());
        let ranges = ranges.map(|range| range.kvs.iter().map(entry).collect());
        Ok(Self {
            revision: number(&answer.header.revision)?,
            holds: answer.succeeded,
            ranges: ranges.collect::<Result<_, String>>()?,
        })
    }
}

/// The comparison that a key has this value.
pub(crate) fn has_value(key: &str, value: &[u8]) -> Value {
    let (key, value) = (base64(key.as_bytes()), base64(value));
    json!({ "target": "VALUE", "result": "EQUAL", "key": key, "value": value })
}

/// The comparison that there is no such key.
pub(crate) fn is_absent(key: &str) -> Value {
    let key = base64(key.as_bytes());
    json!({ "target": "CREATE", "result": "EQUAL", "key": key, "create_revision": "0" })
}

/// The comparison that there is such a key.
pub(crate) fn is_there(key: &str) -> Value {
    let key = base64(key.as_bytes());
    json!({ "target": "CREATE", "result": "GREATER", "key": key, "create_revision": "0" })
}

/// Writes a value.
pub(crate) fn put(key: &str, value: &[u8]) -> Value {
    json!({ "request_put": { "key": base64(key.as_bytes()), "value": base64(value) } })
}

/// Reads a key.
pub(crate) fn get(key: &str) -> Value {
    json!({ "request_range": { "key": base64(key.as_bytes()) } })
}

/// Reads the first keys of a range, without its end.
pub(crate) fn range(from: &str, end: &str, limit: usize) -> Value {
    let (from, end) = (base64(from.as_bytes()), base64(end.as_bytes()));
    let range = json!({
        "key": from,
        "range_end": end,
        "limit": limit.to_string(),
        "sort_order": "ASCEND",
        "sort_target": "KEY",
    });
    json!({ "request_range": range })
}

/// Reads the last key of a range, without its end.
pub(crate) fn last(from: &str, end: &str, keys_only: bool) -> Value {
    let (from, end) = (base64(from.as_bytes()), base64(end.as_bytes()));
    let range = json!({
        "key": from,
        "range_end": end,
        "limit": "1",
        "sort_order": "DESCEND",
        "sort_target": "KEY",
        "keys_only": keys_only,
    });
    json!({ "request_range": range })
}

/// Deletes a range, without its end.
pub(crate) fn delete(from: &str, end: &str) -> Value {
    let (from, end) = (base64(from.as_bytes()), base64(end.as_bytes()));
    json!({ "request_delete_range": { "key": from, "range_end": end } })
}

/// A transaction: where the comparisons hold, the requests, at one moment.
pub(crate) fn transaction(compare: &[Value], success: &[Value]) -> Vec<u8> {
    json!({ "compare": compare, "success": success })
        .to_string()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_etcd_is_read() {
        let body = br#"{"header":{"cluster_id":"1","revision":"7"},"succeeded":true,"responses":[
            {"response_range":{"header":{"revision":"7"},"kvs":[{"key":"eC9h","create_revision":"2",
            "mod_revision":"3","version":"1","value":"YWJj"}],"count":"1"}},
            {"response_range":{"header":{"revision":"7"}}}]}"#;
        let answer = Answer::read(body).expect("it is one");
        let entry = Entry {
            key: b"x/a".to_vec(),
            value: b"abc".to_vec(),
            revision: 3,
        };
        assert_eq!((answer.revision, answer.holds), (7, true));
        assert_eq!(answer.ranges, [vec![entry], Vec::new()]);
        let refused = Answer::read(br#"{"header":{"revision":"8"}}"#).expect("it is one");
        assert!(!refused.holds);
    }

    #[test]
    fn other_answers_are_refused() {
        for body in ["<html>", "{}", r#"{"header":{"revision":"x"}}"#] {
            let error = Answer::read(body.as_bytes()).expect_err(body);
            assert!(
                error.starts_with("an answer that etcd does not give"),
                "{error}"
            );
            assert!(error.ends_with(body), "{error}");
        }
    }
}
