//! A network that is slow and loses requests, for those who test a trading program.

use std::io;
use std::sync::Arc;

use thalweg_server::conditions::{DelayLine, Fault, NetworkConditions, relay};
use tokio::net::{TcpStream, UnixStream};

use crate::connection_slots::ConnectionSlot;
use crate::keys::ApiKey;
use crate::rest::{Endpoint, Security};
use crate::state::State;

/// The header that names an API key, as it comes in a request: at the beginning of a line.
const API_KEY: &[u8] = b"\r\nx-mbx-apikey:";

/// Bytes that a header with an API key may have: it may come in two parts.
const HEADER_BYTES: usize = 128;

/// A request was lost: its connection is closed without a response.
#[derive(Debug, thiserror::Error)]
#[error("a request was lost on purpose")]
pub(crate) struct Lost;

/// Returns the conditions where some connections have latency.
pub(crate) fn with_latency(state: &State) -> Option<&Arc<NetworkConditions>> {
    let conditions = state.conditions.as_ref()?;
    conditions.has_latency().then_some(conditions)
}

/// Puts a line before a connection. A request already comes by the delay of the API key that its
/// header names; whether it is signed is checked when it has come. The connection has its slot as
/// long as its client's socket is open.
///
/// # Errors
/// The system has no sockets.
pub(crate) fn delayed(
    stream: TcpStream,
    state: &Arc<State>,
    conditions: &NetworkConditions,
    slot: &Arc<ConnectionSlot>,
) -> io::Result<(UnixStream, Arc<DelayLine>)> {
    let general = conditions.general.unwrap_or_default();
    let line = state.lines.line(general, conditions.seed);
    let (state, own) = (Arc::clone(state), Arc::clone(&line));
    let mut recent = Recent::default();
    let see = move |bytes: &[u8]| {
        if let Some(key) = recent.api_key(bytes)
            && let Some(key) = state.keys.find(&key)
        {
            change(&own, &state, &key);
        }
    };
    let slot = Arc::clone(slot);
    let evicted = async move { slot.evicted().await };
    let stream = relay(stream, Arc::clone(&line), Vec::new(), see, evicted)?;
    Ok((stream, line))
}

/// Has a connection be that of an API key by which a request of it was signed.
pub(crate) fn belong(line: &DelayLine, state: &State, key: &ApiKey) {
    change(line, state, key);
    line.trust();
}

/// Has a connection take the delays of an API key, or of its user.
fn change(line: &DelayLine, state: &State, key: &ApiKey) {
    if let Some(conditions) = &state.conditions {
        let delays = conditions.delays(Some(key.name()), key.user.0);
        line.change(delays.unwrap_or_default());
    }
}

/// The last bytes of a connection behind the last header with an API key.
#[derive(Default)]
struct Recent(Vec<u8>);

impl Recent {
    /// Returns the last API key that a header has named with these bytes.
    fn api_key(&mut self, bytes: &[u8]) -> Option<String> {
        self.0.extend_from_slice(bytes);
        let key = api_key(&self.0).map(str::to_owned);
        let kept = if key.is_some() { 0 } else { HEADER_BYTES };
        let older = self.0.len().saturating_sub(kept);
        self.0.drain(..older);
        key
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
        assert_eq!(api_key(b"\r\nX-MBX-APIKEY: ab"), None);
        // That is none of a header.
        assert_eq!(api_key(b"\r\n\r\nx=X-MBX-APIKEY: abc\r\n"), None);
    }

    /// The last bytes of a request were kept: its API key won over the one that signed the next.
    #[test]
    fn a_header_counts_once_and_may_come_in_parts() {
        let mut recent = Recent::default();
        assert_eq!(recent.api_key(b"GET / HTTP/1.1\r\nX-MBX-AP"), None);
        assert_eq!(recent.api_key(b"IKEY: abc\r\n").as_deref(), Some("abc"));
        assert_eq!(recent.api_key(b"\r\n"), None);
        assert_eq!(recent.api_key(b"GET / HTTP/1.1\r\n\r\n"), None);
    }
}
