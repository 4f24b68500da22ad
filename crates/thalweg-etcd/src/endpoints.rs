//! A connection to one of the members of a cluster, and calls over it.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder as Http2, SendRequest};
use http::header::{CONTENT_TYPE, HeaderMap, TE};
use http::{Request, StatusCode};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

/// The header in which a member is given the time of a call, in milliseconds: it does not begin
/// with a call that no client waits for.
const GRPC_TIMEOUT: &str = "grpc-timeout";
/// Bytes of an answer that a member sends before any were read.
const WINDOW_BYTES: u32 = 8 << 20;
/// Bytes of an answer at most; the largest page of batches has 20 MiB.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// gRPC has these bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// The statuses that each member gives: an argument that is wrong, no room, what was given up.
const STATUSES_OF_ALL: [&str; 3] = ["3", "8", "11"];

/// Why a call has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// It was not sent: no member could be reached.
    NotSent(String),
    /// It may have been executed, or may be later.
    Unknown(String),
}

impl CallError {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::NotSent(text) | Self::Unknown(text) => text,
        }
    }
}

/// A connection, whose task ends with it: a member that hangs would keep it for ever.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Bytes>,
    task: JoinHandle<()>,
    /// Whether a call had an answer.
    has_answered: bool,
}

impl Connection {
    /// Returns whether it takes a call. What has arrived since the last one is looked at before:
    /// the member may have closed it.
    async fn is_open(&mut self) -> bool {
        // The poll wakes the task, which runs then.
        yield_now().await;
        yield_now().await;
        poll_fn(|context| self.sender.poll_ready(context))
            .await
            .is_ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Endpoints {
    /// There until it is dropped.
    runtime: Option<Runtime>,
    all: Vec<String>,
    /// The one that is used.
    at: usize,
    connection: Option<Connection>,
    /// How long a connection may take to be made.
    connect_time: Duration,
}

impl Drop for Endpoints {
    /// Ends the runtime without waiting: a server that cannot start drops it within its own.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Endpoints {
    /// # Errors
    /// The system gives no poll.
    pub(crate) fn new(all: Vec<String>, connect_time: Duration) -> io::Result<Self> {
        Ok(Self {
            runtime: Some(Builder::new_current_thread().enable_all().build()?),
            all,
            at: 0,
            connection: None,
            connect_time,
        })
    }

    /// Sends a message, once, to a member that can be reached, and waits for an answer for this
    /// time. Returns the message of the answer.
    pub(crate) fn call(
        &mut self,
        method: &str,
        message: &[&[u8]],
        time: Duration,
    ) -> Result<Vec<u8>, CallError> {
        self.connect()?;
        let Some(connection) = self.connection.as_mut() else {
            return Err(CallError::NotSent("no connection".to_owned()));
        };
        let member = &self.all[self.at];
        let request = Request::post(format!("http://{member}/etcdserverpb.KV/{method}"))
            .header(TE, "trailers")
            .header(GRPC_TIMEOUT, format!("{}m", time.as_millis()))
            .header(CONTENT_TYPE, "application/grpc")
            .body(())
            .map_err(|error| CallError::NotSent(format!("{member} is no address: {error}")))?;
        let answered = answer(&mut connection.sender, request, prefixed(message));
        let runtime = self.runtime.as_ref().expect("it is there until the end");
        let answered = runtime.block_on(async { timeout(time, answered).await });
        let text = match answered {
            Ok(Ok(answer)) => {
                connection.has_answered = true;
                let refused = match answer {
                    Ok(message) => return Ok(message),
                    Err(refused) => refused,
                };
                let text = format!("{member} answers {}", refused.why);
                if refused.is_by_all {
                    return Err(CallError::Unknown(text));
                }
                text
            }
            Ok(Err(error)) if connection.has_answered || error.is_remote() => {
                format!("the connection to {member} is broken: {error}")
            }
            Ok(Err(error)) => format!(
                "{member} does not speak gRPC: {error}; is it etcd's port for clients, without TLS?"
            ),
            Err(_) => format!("no answer from {member} in {} ms", time.as_millis()),
        };
        self.leave();
        Err(CallError::Unknown(text))
    }

    /// Has the next call go to another member.
    fn leave(&mut self) {
        self.connection = None;
        self.at = (self.at + 1) % self.all.len();
    }

    /// Makes a connection, if there is none, to the first member that can be reached.
    fn connect(&mut self) -> Result<(), CallError> {
        let (runtime, time) = (self.runtime.as_ref(), self.connect_time);
        let runtime = runtime.expect("it is there until the end");
        if let Some(connection) = &mut self.connection
            && runtime.block_on(async { timeout(time, connection.is_open()).await == Ok(true) })
        {
            return Ok(());
        }
        self.connection = None;
        let mut text = String::new();
        for _ in 0..self.all.len() {
            let member = &self.all[self.at];
            let connected = async {
                let stream = TcpStream::connect(member).await?;
                stream.set_nodelay(true)?;
                // A call that is given up before it was sent never is.
                stream.set_zero_linger()?;
                let mut http2 = Http2::new();
                http2.enable_push(false).initial_window_size(WINDOW_BYTES);
                http2.initial_connection_window_size(WINDOW_BYTES);
                let made = http2.handshake(stream).await;
                let (sender, connection) = made.map_err(io::Error::other)?;
                let task = tokio::spawn(async move {
                    // The call that waits gets the error.
                    let _ = connection.await;
                });
                Ok::<_, io::Error>(Connection {
                    sender,
                    task,
                    has_answered: false,
                })
            };
            let runtime = self.runtime.as_ref().expect("it is there until the end");
            match runtime.block_on(async { timeout(time, connected).await }) {
                Ok(Ok(connection)) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                Ok(Err(error)) => text = format!("{member} cannot be reached: {error}"),
                Err(_) => text = format!("{member} cannot be reached in time"),
            }
            self.leave();
        }
        Err(CallError::NotSent(text))
    }
}

/// Returns what gRPC has before a message of this length, which is not compressed.
fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [0, a, b, c, d]
}

/// Returns a message in gRPC's form.
fn prefixed(message: &[&[u8]]) -> Bytes {
    let prefix = prefix(message.iter().map(|part| part.len()).sum());
    let parts: Vec<&[u8]> = [&prefix[..]]
        .into_iter()
        .chain(message.iter().copied())
        .collect();
    parts.concat().into()
}

/// An answer that is no message.
struct Refused {
    why: String,
    /// Whether another member would answer the same, such as that there is no room.
    is_by_all: bool,
}

impl Refused {
    fn by_this(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_by_all: false,
        }
    }
}

/// Sends a request, and waits for its answer: a message, or why there is none.
async fn answer(
    connection: &mut SendRequest<Bytes>,
    request: Request<()>,
    body: Bytes,
) -> Result<Result<Vec<u8>, Refused>, h2::Error> {
    let (response, mut to_send) = connection.send_request(request, false)?;
    to_send.send_data(body, true)?;
    let (head, mut body) = response.await?.into_parts();
    let mut received = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        received.extend_from_slice(&part);
        if received.len() > ANSWER_BYTES_MAX || announced(&received) > ANSWER_BYTES_MAX {
            return Ok(Err(Refused::by_this("with more than a log has")));
        }
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    if head.status != StatusCode::OK {
        return Ok(Err(Refused::by_this(head.status.to_string())));
    }
    // Where there is no message, the head is the trailer.
    let text = |name: &str| {
        let of = |headers: &HeaderMap| Some(headers.get(name)?.to_str().ok()?.to_owned());
        of(&trailers).or_else(|| of(&head.headers))
    };
    let status = text("grpc-status").unwrap_or_else(|| "no status".to_owned());
    if status != "0" {
        let why = text("grpc-message").unwrap_or_default();
        return Ok(Err(Refused {
            why: format!("{status}: {why}"),
            is_by_all: STATUSES_OF_ALL.contains(&&status[..]),
        }));
    }
    let is_whole = received.len() >= PREFIX_BYTES
        && received[..PREFIX_BYTES] == prefix(received.len() - PREFIX_BYTES);
    Ok(match is_whole {
        true => Ok(received.split_off(PREFIX_BYTES)),
        false => Err(Refused::by_this("with something else than a message")),
    })
}

/// Returns the length of the message whose first bytes these are, as far as that has come.
fn announced(received: &[u8]) -> usize {
    match received {
        [_, a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]) as usize,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_drops_it_within_a_runtime_of_its_own() {
        let endpoints = Endpoints::new(Vec::new(), Duration::ZERO).expect("a poll");
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async { drop(endpoints) });
    }
}
