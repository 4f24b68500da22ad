//! A network that is slow and loses requests, for those who test a trading program.

use std::io;
use std::sync::Arc;

use thalweg_server::conditions::{Conditions, Fault, Line, relay};
use tokio::net::{TcpStream, UnixStream};

use crate::keys::ApiKey;
use crate::rest::{Endpoint, Security};
use crate::seats::Seat;
use crate::state::State;

/// The header that names an API key, as it comes in a request.
const API_KEY: &[u8] = b"x-mbx-apikey:";

/// Bytes that a header with an API key may have: it may come in two parts.
const HEADER_BYTES: usize = 128;

/// A request was lost: its connection is closed without a response.
#[derive(Debug, thiserror::Error)]
#[error("a request was lost on purpose")]
pub(crate) struct Lost;

/// Returns the conditions where some connections have latency.
pub(crate) fn with_latency(state: &State) -> Option<&Arc<Conditions>> {
    let conditions = state.conditions.as_ref()?;
    conditions.has_latency().then_some(conditions)
}

/// Puts a line before a connection, which is that of an API key from the request on whose header
/// names it. The connection has its seat as long as its client's socket is open.
///
/// # Errors
/// The system has no sockets.
pub(crate) fn delayed(
    stream: TcpStream,
    state: &Arc<State>,
    conditions: &Conditions,
    seat: &Arc<Seat>,
) -> io::Result<(UnixStream, Arc<Line>)> {
    let general = conditions.general.unwrap_or_default();
    let line = state.lines.line(general, conditions.seed);
    let (state, own) = (Arc::clone(state), Arc::clone(&line));
    let mut recent = Vec::new();
    let see = move |bytes: &[u8]| {
        recent.extend_from_slice(bytes);
        if let Some(key) = api_key(&recent)
            && let Some(key) = state.keys.find(key)
        {
            belong(&own, &state, &key);
        }
        let older = recent.len().saturating_sub(HEADER_BYTES);
        recent.drain(..older);
    };
    let seat = Arc::clone(seat);
    let evicted = async move { seat.evicted().await };
    let stream = relay(stream, Arc::clone(&line), Vec::new(), see, evicted)?;
    Ok((stream, line))
}

/// Has a connection take the delays of an API key, or of its user.
pub(crate) fn belong(line: &Line, state: &State, key: &ApiKey) {
    if let Some(conditions) = &state.conditions {
        let delays = conditions.delays(Some(key.name()), key.user.0);
        line.change(delays.unwrap_or_default());
    }
}

/// Returns the API key that the header of the last request names.
fn api_key(bytes: &[u8]) -> Option<&str> {
    let is_header = |window: &[u8]| window.eq_ignore_ascii_case(API_KEY);
    let at = bytes.windows(API_KEY.len()).rposition(is_header)?;
    let value = &bytes[at + API_KEY.len()..];
    let end = value.iter().position(|byte| *byte == b'\r')?;
    std::str::from_utf8(&value[..end]).ok().map(str::trim)
}

/// Returns the fault of a request about orders, if it has one.
pub(crate) fn fault(state: &State, row: &Endpoint, key: Option<&ApiKey>) -> Option<Fault> {
    let conditions = state.conditions.as_ref()?;
    let key = key.filter(|_| row.security == Security::Trade)?;
    conditions.fault(key.user.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_key_is_found_in_the_head_of_a_request() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nX-MBX-APIKEY: abc\r\n\r\n";
        assert_eq!(api_key(head), Some("abc"));
        assert_eq!(api_key(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), None);
        assert_eq!(api_key(b"X-MBX-APIKEY: ab"), None);
    }
}
