//! Why there is no connection.

use std::io;
use std::time::Duration;

use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::session::{CloseReason, KEY_BYTES_MAX};
use thalweg_exchange::session::ReportNumber;
use thiserror::Error;

/// How much is shown of an answer that no exchange gives.
const ANSWER_BYTES_MAX: usize = 40;

/// Why a connection could not be made, or was lost.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// No server listens there, or it cannot be reached.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// Where.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// No welcome came in time.
    #[error("{address} gives no answer for {after:?}; is it an exchange?")]
    NoWelcome {
        /// From where.
        address: String,
        /// How long was waited.
        after: Duration,
    },
    /// The server there speaks another protocol, or closes the connection before a welcome.
    #[error("{}", not_an_exchange(address, answer))]
    NotAnExchange {
        /// Where.
        address: String,
        /// How its answer begins; empty if there was none.
        answer: Vec<u8>,
    },
    /// Reading or writing failed.
    #[error("the connection is broken: {0}")]
    Broken(io::Error),
    /// The server closed the connection without a word.
    #[error("the exchange closed the connection without a word")]
    Closed,
    /// The server said why it closes the connection.
    #[error(
        "the exchange closed the connection: {why}{}{text}",
        if text.is_empty() { "" } else { ": " }
    )]
    Bye {
        /// The reason.
        why: CloseReason,
        /// More about it.
        text: String,
    },
    /// Nothing came, not even a heartbeat.
    #[error("nothing came from the exchange for {after:?}")]
    HeartbeatTimeout {
        /// For how long.
        after: Duration,
    },
    /// The server sent what is no frame, or none for now.
    #[error("a frame of the exchange is wrong: {0}")]
    Frame(CodecError),
    /// The server sent a frame that was not expected there.
    #[error("the exchange sent {what}, which was not expected")]
    UnexpectedFrame {
        /// Which.
        what: &'static str,
    },
    /// The store is of another exchange: its sequences and reports mean nothing here.
    #[error("the session's store is of exchange {saved:016x}, and this is {found:016x}")]
    OtherExchange {
        /// The one that the store is of.
        saved: u64,
        /// The one that answers.
        found: u64,
    },
    /// A replica, or one of several servers, has fewer reports than were received: it is behind, or
    /// another one has taken over from it, which it does not know yet.
    #[error("the server has reports up to {last}, and {received} was received: it is behind")]
    Stale {
        /// The last report that was received.
        received: ReportNumber,
        /// The last report that it has.
        last: ReportNumber,
    },
    /// The session's store could not be read or written.
    #[error("the session's store: {0}")]
    Store(io::Error),
    /// The key is longer than any.
    #[error("a key of {bytes} bytes, the limit is {KEY_BYTES_MAX}")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The user of the client closed it.
    #[error("the client was closed")]
    Done,
}

impl DisconnectReason {
    /// Returns whether it makes sense to connect again: the other side may come back.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::NoWelcome { .. }
            | Self::Broken(_)
            | Self::Closed
            | Self::Stale { .. }
            | Self::HeartbeatTimeout { .. } => true,
            Self::Bye { why, .. } => why.is_retryable(),
            Self::NotAnExchange { answer, .. } => answer.is_empty(),
            _ => false,
        }
    }
}

/// Returns the text about a server that is no exchange, or gives no answer.
fn not_an_exchange(address: &str, answer: &[u8]) -> String {
    let what = match answer {
        [] => {
            return format!(
                "{address} closed the connection without a welcome; is it an exchange?"
            );
        }
        [b'H', b'T', b'T', b'P', b'/', ..] => "a web server (HTTP)",
        [0x15 | 0x16, 3, ..] => "a TLS server",
        _ => "another program",
    };
    let line = answer.split(|byte| byte.is_ascii_control()).next();
    let begin = line.unwrap_or_default();
    let begin = &begin[..begin.len().min(ANSWER_BYTES_MAX)];
    let says = match begin.is_empty() {
        true => String::new(),
        false => format!(": it says `{}`", begin.escape_ascii()),
    };
    format!("what answers at {address} is not an exchange but {what}{says}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_and_where() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let address = || "127.0.0.1:7411".to_owned();
        let after = Duration::from_secs(3);
        for (reason, text) in [
            (
                DisconnectReason::Connect {
                    address: address(),
                    error: refused(),
                },
                "cannot connect to 127.0.0.1:7411: connection refused",
            ),
            (
                DisconnectReason::NoWelcome {
                    address: address(),
                    after,
                },
                "127.0.0.1:7411 gives no answer for 3s; is it an exchange?",
            ),
            (
                DisconnectReason::NotAnExchange {
                    address: address(),
                    answer: Vec::new(),
                },
                "127.0.0.1:7411 closed the connection without a welcome; is it an exchange?",
            ),
            (
                DisconnectReason::NotAnExchange {
                    address: address(),
                    answer: b"\x15\x03\x03\0\x02\x02(".to_vec(),
                },
                "what answers at 127.0.0.1:7411 is not an exchange but a TLS server",
            ),
            (
                DisconnectReason::NotAnExchange {
                    address: address(),
                    answer: b"SSH-2.0-\xffOpen\r\n".to_vec(),
                },
                "what answers at 127.0.0.1:7411 is not an exchange but another program: it says \
                 `SSH-2.0-\\xffOpen`",
            ),
            (
                DisconnectReason::Broken(refused()),
                "the connection is broken: connection refused",
            ),
            (
                DisconnectReason::HeartbeatTimeout { after },
                "nothing came from the exchange for 3s",
            ),
        ] {
            assert_eq!(reason.to_string(), text);
        }
    }

    #[test]
    fn texts_say_what_came_instead() {
        let bye = |text: &str| DisconnectReason::Bye {
            why: CloseReason::SlowReader,
            text: text.to_owned(),
        };
        let error = CodecError::TooShort { length: 3 };
        for (reason, text) in [
            (
                DisconnectReason::Closed,
                "the exchange closed the connection without a word",
            ),
            (
                bye(""),
                "the exchange closed the connection: too much waits to be read",
            ),
            (
                bye("4 MiB"),
                "the exchange closed the connection: too much waits to be read: 4 MiB",
            ),
            (
                DisconnectReason::Frame(error),
                "a frame of the exchange is wrong: the length at byte 0 is 3, a frame has 8 bytes \
                 at least",
            ),
            (
                DisconnectReason::UnexpectedFrame { what: "a welcome" },
                "the exchange sent a welcome, which was not expected",
            ),
            (
                DisconnectReason::OtherExchange {
                    saved: 1,
                    found: 255,
                },
                "the session's store is of exchange 0000000000000001, and this is \
                 00000000000000ff",
            ),
            (
                DisconnectReason::Stale {
                    received: ReportNumber(9),
                    last: ReportNumber(8),
                },
                "the server has reports up to 8, and 9 was received: it is behind",
            ),
            (
                DisconnectReason::Store(io::ErrorKind::StorageFull.into()),
                "the session's store: no storage space",
            ),
            (
                DisconnectReason::KeyTooLong { bytes: 300 },
                "a key of 300 bytes, the limit is 256",
            ),
            (DisconnectReason::Done, "the client was closed"),
        ] {
            assert_eq!(reason.to_string(), text);
        }
    }
}
