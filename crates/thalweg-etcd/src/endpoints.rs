//! A connection to one of the members of a cluster, and calls over it.

use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_millis(300);
/// How long a call may take: longer than etcd takes to elect a leader.
const CALL_TIME: Duration = Duration::from_millis(1_500);

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

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Endpoints {
    /// There until it is dropped.
    runtime: Option<Runtime>,
    all: Vec<String>,
    /// The one that is used.
    at: usize,
    connection: Option<SendRequest<Full<Bytes>>>,
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
    pub(crate) fn new(all: Vec<String>) -> io::Result<Self> {
        Ok(Self {
            runtime: Some(Builder::new_current_thread().enable_all().build()?),
            all,
            at: 0,
            connection: None,
        })
    }

    /// Sends a call, once, to a member that can be reached. Returns the body of the answer.
    pub(crate) fn call(&mut self, path: &str, body: Vec<u8>) -> Result<Bytes, CallError> {
        self.connect()?;
        let Some(connection) = self.connection.as_mut() else {
            return Err(CallError::NotSent("no connection".to_owned()));
        };
        let member = &self.all[self.at];
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, member)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .expect("its parts are right");
        let answered = async {
            connection.ready().await?;
            let response = connection.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            Ok::<(StatusCode, Bytes), hyper::Error>((status, body))
        };
        let runtime = self.runtime.as_ref().expect("it is there until the end");
        let text = match runtime.block_on(async { timeout(CALL_TIME, answered).await }) {
            Ok(Ok((StatusCode::OK, body))) => return Ok(body),
            Ok(Ok((status, body))) => {
                let body = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
                format!("{member} answers {status}: {}", body.trim())
            }
            Ok(Err(error)) => format!("the connection to {member} is broken: {error}"),
            Err(_) => format!("no answer from {member} in {} ms", CALL_TIME.as_millis()),
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
        if self.connection.as_ref().is_some_and(|one| !one.is_closed()) {
            return Ok(());
        }
        self.connection = None;
        let mut text = String::new();
        for _ in 0..self.all.len() {
            let member = &self.all[self.at];
            let connected = async {
                let stream = TcpStream::connect(member).await?;
                stream.set_nodelay(true)?;
                let made = http1::handshake(TokioIo::new(stream)).await;
                let (sender, connection) = made.map_err(io::Error::other)?;
                tokio::spawn(async move {
                    // The call that waits gets the error.
                    let _ = connection.await;
                });
                Ok::<_, io::Error>(sender)
            };
            let runtime = self.runtime.as_ref().expect("it is there until the end");
            match runtime.block_on(async { timeout(CONNECT_TIME, connected).await }) {
                Ok(Ok(sender)) => {
                    self.connection = Some(sender);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_drops_it_within_a_runtime_of_its_own() {
        let endpoints = Endpoints::new(Vec::new()).expect("a poll");
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async { drop(endpoints) });
    }
}
