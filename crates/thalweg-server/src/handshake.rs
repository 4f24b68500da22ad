//! The handshake: a hello is read and checked, and its connection is entered as a session or ended
//! with a bye. The welcome comes from the thread of the exchange.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::session::{
    Bye, ClientFrame, CloseReason, HELLO_BYTES_MAX, Hello, ServerFrame, decode_client_frame,
    encode_server_frame, server_frame_bytes,
};
use thalweg_exchange::codec::{SESSION_VERSION, SESSION_VERSION_MAX};
use thalweg_exchange::session::{ReportNumber, Role, SessionKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::conditions::{DelayLine, relay};
use crate::config::HEARTBEAT_MS_MAX;
use crate::connection_slots::{ConnectionSlot, EVICTED, ListenerKind};
use crate::counters::raise;
use crate::keys::Key;
use crate::request::{NewSession, Request};
use crate::session::Terms;
use crate::shared::Shared;

/// Why a connection was not welcomed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandshakeError {
    pub(crate) why: CloseReason,
    pub(crate) text: String,
}

impl HandshakeError {
    fn new(why: CloseReason, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { why, text }
    }
}

/// A hello that was accepted.
#[derive(Debug)]
struct AcceptedHello {
    terms: Terms,
    last_report: Option<ReportNumber>,
}

/// How long a bye may take to be written.
const BYE_TIME: Duration = Duration::from_millis(500);

/// Reads a hello, and has the connection entered as a session.
pub(crate) async fn receive(
    shared: Arc<Shared>,
    mut connection_slot: ConnectionSlot,
    mut stream: TcpStream,
    peer: SocketAddr,
) {
    // Without it, answers wait for acknowledgements of the ones before.
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::new();
    match handshake(&shared, &mut connection_slot, &mut stream, &mut bytes).await {
        Ok(None) => shared.counters.end(CloseReason::Done),
        Ok(Some(hello)) => {
            let connection_slot = Arc::new(connection_slot);
            let stream = match shared.line(hello.terms.key) {
                None => stream.into_std(),
                Some(line) => {
                    let kept = Arc::clone(&connection_slot);
                    relayed(stream, line, std::mem::take(&mut bytes), kept)
                }
            };
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, %peer, "a connection could not be taken");
                    return shared.counters.end(CloseReason::Done);
                }
            };
            let new = NewSession {
                stream,
                peer,
                connection_slot,
                bytes,
                terms: hello.terms,
                last_report: hello.last_report,
            };
            shared.requests.send(Request::Enter(Box::new(new)));
        }
        Err(error) => {
            raise(&shared.counters.hellos_refused, 1);
            let HandshakeError { why, text } = error;
            if let Some(left_out) = shared.log_refused.pass(Instant::now()) {
                let left_out = (left_out > 0).then_some(left_out);
                tracing::warn!(%peer, why = why.text(), text, left_out, "a hello was refused");
            }
            shared.counters.end(why);
            send_bye(&mut stream, why, &text).await;
        }
    }
}

/// Puts a line before a session; bytes behind the hello go through it too. The slot is kept as long
/// as the client's socket.
fn relayed(
    stream: TcpStream,
    line: Arc<DelayLine>,
    bytes: Vec<u8>,
    slot: Arc<ConnectionSlot>,
) -> io::Result<std::net::TcpStream> {
    let keep = async move {
        let _slot = slot;
        std::future::pending().await
    };
    let session = relay(stream, line, bytes, |_| {}, keep)?;
    // To a session, a stream of bytes is as good as another.
    Ok(OwnedFd::from(session.into_std()?).into())
}

/// Sends a bye and closes.
async fn send_bye(to: &mut TcpStream, why: CloseReason, text: &str) {
    let bye = ServerFrame::Bye(Bye { why, text });
    let mut bytes = vec![0; server_frame_bytes(&bye)];
    if encode_server_frame(&bye, &mut bytes).is_ok() {
        let _ = tokio::time::timeout(BYE_TIME, to.write_all(&bytes)).await;
    }
    let _ = tokio::time::timeout(BYE_TIME, to.shutdown()).await;
}

/// Reads a hello. `bytes` keeps what came after it. `None` where the other side is gone.
async fn handshake(
    shared: &Shared,
    slot: &mut ConnectionSlot,
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
) -> Result<Option<AcceptedHello>, HandshakeError> {
    let limit = Duration::from_millis(shared.config.sessions.hello_ms);
    let hello = read_hello(shared, slot.listener, stream, bytes);
    let read = tokio::select! {
        biased;
        read = tokio::time::timeout(limit, hello) => read,
        () = slot.evicted() => {
            return Err(HandshakeError::new(CloseReason::Connections, EVICTED));
        }
    };
    let Ok(read) = read else {
        let text = format!("none came within {} ms", limit.as_millis());
        return Err(HandshakeError::new(CloseReason::NoHello, text));
    };
    match read {
        Ok(Some(hello)) => {
            let kept = slot.keep(hello.terms.key);
            kept.map_err(|text| HandshakeError::new(CloseReason::Connections, text))?;
            let welcome = tokio::select! {
                biased;
                welcome = shared.connect_limits.welcome(hello.terms.key) => welcome,
                () = is_gone(stream, bytes) => return Ok(None),
            };
            welcome.map_err(|text| HandshakeError::new(CloseReason::Connections, text))?;
            Ok(Some(hello))
        }
        Ok(None) => Ok(None),
        Err(error) => {
            if error.why == CloseReason::WrongKey {
                // Guessing takes time, unless others need the slot.
                let pause = Duration::from_millis(shared.config.sessions.wrong_key_ms);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = slot.evicted() => {}
                }
            }
            Err(error)
        }
    }
}

/// Waits until the other side is gone, and has sent nothing that is to be read.
async fn is_gone(stream: &TcpStream, bytes: &[u8]) {
    if !bytes.is_empty() || stream.peek(&mut [0]).await.is_ok_and(|count| count > 0) {
        std::future::pending().await
    }
}

async fn read_hello(
    shared: &Shared,
    listener: ListenerKind,
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
) -> Result<Option<AcceptedHello>, HandshakeError> {
    bytes.reserve(2 * HELLO_BYTES_MAX);
    loop {
        let (frame, length) = match decode_client_frame(bytes) {
            Err(CodecError::Incomplete { needed, .. }) if needed <= HELLO_BYTES_MAX => {
                match stream.read_buf(bytes).await {
                    Ok(0) | Err(_) => return Ok(None),
                    Ok(_) => continue,
                }
            }
            Err(CodecError::Incomplete { needed, .. }) => {
                let text = format!("{needed} bytes; a hello has {HELLO_BYTES_MAX} at most");
                return Err(HandshakeError::new(CloseReason::FrameTooLong, text));
            }
            Err(error) => {
                let text = format!("frame at byte 0: {error}");
                return Err(HandshakeError::new(CloseReason::BadFrame, text));
            }
            Ok(read) => read,
        };
        let ClientFrame::Hello(hello) = frame else {
            return Err(HandshakeError::new(CloseReason::NoHello, ""));
        };
        let accepted = examine(shared, listener, &hello)?;
        bytes.drain(..length);
        return Ok(Some(accepted));
    }
}

fn examine(
    shared: &Shared,
    listener: ListenerKind,
    hello: &Hello<'_>,
) -> Result<AcceptedHello, HandshakeError> {
    let [least, most] = [SESSION_VERSION, SESSION_VERSION_MAX].map(u16::from);
    let version = hello.version_max.min(most);
    if version < hello.version_min.max(least) {
        let text = format!("this server speaks versions {least} to {most}");
        return Err(HandshakeError::new(CloseReason::Version, text));
    }
    if !listener.serves(hello.role) {
        return Err(HandshakeError::new(CloseReason::Listener, ""));
    }
    if hello.holder < 0 {
        let text = format!("holder {}: holders are 0 and more", hello.holder);
        return Err(HandshakeError::new(CloseReason::WrongKey, text));
    }
    let gateway = shared.gateway_hash(hello.key.0);
    let is_gateway = gateway.is_some() && hello.role != Role::Admin;
    let shown = match shared.keys() {
        None => None,
        Some(_) if is_gateway => Some(Arc::new(Key {
            name: "gateway".to_owned(),
            role: hello.role,
            holder: hello.holder,
            hash: gateway.unwrap_or_default(),
        })),
        Some(keys) => {
            let key = keys.admit(hello.key.0, hello.role, hello.holder);
            let wrong = || HandshakeError::new(CloseReason::WrongKey, "");
            Some(Arc::new(key.ok_or_else(wrong)?.clone()))
        }
    };
    // The number above all others is the gateway's.
    let limit = shared.config.sessions.per_holder + u32::from(is_gateway);
    // Each gets all reports of its user; only sessions without reports are not limited in number.
    let is_many = hello.role == Role::Read && hello.market_data_only;
    if !is_many && hello.number >= limit {
        let text = format!("session number {}: numbers are below {limit}", hello.number);
        return Err(HandshakeError::new(CloseReason::Sessions, text));
    }
    let heartbeat_ms = heartbeat_ms(shared, hello.heartbeat_ms);
    Ok(AcceptedHello {
        terms: Terms {
            version,
            key: SessionKey::new(hello.role, hello.holder, hello.number),
            shown,
            cancels_on_disconnect: hello.cancels_on_disconnect && hello.role == Role::Trade,
            wants_reports: !hello.market_data_only && hello.role != Role::Admin,
            heartbeat: Duration::from_millis(heartbeat_ms.into()),
        },
        last_report: hello.last_report,
    })
}

fn heartbeat_ms(shared: &Shared, asked: u32) -> u32 {
    let sessions = &shared.config.sessions;
    match asked {
        0 => sessions.heartbeat_ms,
        asked => asked.clamp(sessions.heartbeat_min_ms, HEARTBEAT_MS_MAX as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_has_gone_is_noticed_unless_it_has_sent_something() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there are ports");
        let address = listener.local_addr().expect("it is bound");
        for sent in [&b""[..], b"x"] {
            let mut client = TcpStream::connect(address).await.expect("it listens");
            let (stream, _) = listener.accept().await.expect("it was connected");
            client.write_all(sent).await.expect("it is open");
            drop(client);
            stream.readable().await.expect("it is open");
            let is_gone = async |bytes| {
                tokio::select! {
                    biased;
                    () = is_gone(&stream, bytes) => true,
                    () = tokio::task::yield_now() => false,
                }
            };
            assert_eq!(is_gone(&[]).await, sent.is_empty());
            assert!(!is_gone(b"behind the hello").await);
        }
    }
}
