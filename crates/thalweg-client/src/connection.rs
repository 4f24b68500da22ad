//! The task that owns the connection: makes it, makes it again, and moves bytes, requests and
//! events.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use thalweg_exchange::codec::session::{CloseReason, Welcome};

use crate::disconnect_reason::DisconnectReason;
use crate::event::Event;
use crate::protocol::{Protocol, Request};

const READ_BYTES: usize = 1 << 16;
/// How often the time is checked, in each heartbeat.
const CHECKS: u32 = 4;
/// Silence of this number of heartbeats ends a connection.
const SILENT_HEARTBEATS: u32 = 3;
/// How often in a row an attempt goes on at the primary that a replica names.
const HOPS_MAX: usize = 2;

/// A session's connection, or the attempt to get one.
pub(crate) struct Connection {
    protocol: Protocol,
    requests: mpsc::Receiver<Request>,
    events: Option<mpsc::Sender<Event>>,
    /// Closed when every handle of the client was dropped.
    handles_dropped: mpsc::Receiver<Infallible>,
    input: Vec<u8>,
    /// Why the connection has ended, where a bye came right behind the welcome.
    early_end: Option<DisconnectReason>,
    /// The user waits for the end.
    closing: Option<oneshot::Sender<Infallible>>,
    /// Number of the last report that was sent to the user; 0 for none.
    given: u64,
    /// Which of the addresses is tried next, or was last.
    address: usize,
}

impl Connection {
    /// Connects, in one attempt or as many as there is time for.
    pub(crate) async fn open(
        protocol: Protocol,
        requests: mpsc::Receiver<Request>,
        events: mpsc::Sender<Event>,
        handles_dropped: mpsc::Receiver<Infallible>,
    ) -> Result<(Self, TcpStream, Welcome), DisconnectReason> {
        let mut connection = Self {
            protocol,
            requests,
            events: Some(events),
            handles_dropped,
            input: vec![0; READ_BYTES],
            early_end: None,
            closing: None,
            given: 0,
            address: 0,
        };
        let stream = connection.begin().await?;
        let welcome = connection
            .protocol
            .welcome()
            .copied()
            .ok_or(DisconnectReason::Closed)?;
        Ok((connection, stream, welcome))
    }

    /// Returns the first connection.
    async fn begin(&mut self) -> Result<TcpStream, DisconnectReason> {
        let options = self.protocol.options();
        let (mut wait, longest) = (options.retry_min, options.retry_max);
        let until = Instant::now().checked_add(options.connect_within);
        loop {
            let reason = match self.establish().await {
                Err(reason) if reason.is_retryable() => reason,
                begun => return begun,
            };
            if until.is_some_and(|until| Instant::now() + wait >= until) {
                return Err(reason);
            }
            sleep(wait).await;
            wait = (wait * 2).min(longest);
        }
    }

    /// Until the client is closed, or gives up.
    pub(crate) async fn run(mut self, mut stream: TcpStream) {
        let end = loop {
            let reason = self.run_connection(&mut stream).await;
            self.protocol.disconnected();
            if !reason.is_retryable() {
                break reason;
            }
            // Another one of several may have taken over.
            self.address += 1;
            match self.reconnect(reason).await {
                Ok(next) => stream = next,
                Err(reason) => break reason,
            }
        };
        drop(stream);
        // Requests that are still on their way here are not taken.
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            drop(self.protocol.take(request));
        }
        self.protocol.give_up();
        let saved = self.protocol.save_seen();
        let is_closed = self.closing.take().is_some();
        let is_received = self.deliver_remaining(is_closed).await;
        let end = match saved.and_then(|()| self.protocol.save_seen()) {
            Ok(()) => end,
            Err(reason) => reason,
        };
        if is_received && let Some(events) = &self.events {
            tokio::select! {
                // Where there is room, the event is sent even to a user who has dropped the client.
                biased;
                _ = events.send(Event::Closed(end)) => {}
                _ = self.handles_dropped.recv(), if !is_closed => {}
            }
        }
    }

    /// Sends the remaining events. After `close`, waits until the user has seen the last report.
    /// Returns false if the receiver is gone.
    async fn deliver_remaining(&mut self, is_closed: bool) -> bool {
        let Some(events) = &self.events else {
            return false;
        };
        while let Some(event) = self.protocol.events().pop_front() {
            let number = event.report_number();
            tokio::select! {
                biased;
                sent = events.send(event) => if sent.is_err() { return false },
                _ = self.handles_dropped.recv(), if !is_closed => return false,
            }
            self.given = number.unwrap_or(self.given);
        }
        if is_closed {
            let seen = self.protocol.seen();
            tokio::select! {
                () = seen.reach(self.given) => {}
                () = events.closed() => return false,
            }
        }
        true
    }

    /// Attempts to connect, one after the other, until one succeeds or there is no use.
    async fn reconnect(
        &mut self,
        mut reason: DisconnectReason,
    ) -> Result<TcpStream, DisconnectReason> {
        let mut wait = self.protocol.options().retry_min;
        let random = RandomState::new();
        for attempt in 0_u32.. {
            if self
                .protocol
                .options()
                .attempts_max
                .is_some_and(|max| attempt >= max)
            {
                break;
            }
            self.protocol
                .events()
                .push_back(Event::Disconnected(reason));
            let half = wait / 2;
            let part = random.hash_one(attempt) % 1_024;
            self.pause(half + half * part as u32 / 1_024).await?;
            wait = (wait * 2).min(self.protocol.options().retry_max);
            match self.attempt().await {
                Ok(stream) => return Ok(stream),
                Err(next) if next.is_retryable() => reason = next,
                Err(next) => return Err(next),
            }
        }
        Err(reason)
    }

    /// Makes one attempt, unless all handles of the client are dropped meanwhile.
    async fn attempt(&mut self) -> Result<TcpStream, DisconnectReason> {
        let (_, placeholder) = mpsc::channel(1);
        let mut handles_dropped = std::mem::replace(&mut self.handles_dropped, placeholder);
        let stream = tokio::select! {
            stream = self.establish() => stream,
            _ = handles_dropped.recv() => Err(DisconnectReason::Done),
        };
        self.handles_dropped = handles_dropped;
        stream
    }

    /// Waits, and passes on what happened.
    async fn pause(&mut self, time: Duration) -> Result<(), DisconnectReason> {
        let until = Instant::now() + time;
        loop {
            let has_events = !self.protocol.events().is_empty();
            tokio::select! {
                () = sleep_until(until) => return Ok(()),
                _ = self.handles_dropped.recv() => return Err(DisconnectReason::Done),
                room = room(self.events.as_ref()), if has_events => self.pass_on(room),
            }
        }
    }

    /// Makes one attempt at each address, until one succeeds.
    async fn establish(&mut self) -> Result<TcpStream, DisconnectReason> {
        let listed = self.protocol.options().address.clone();
        let addresses: Vec<&str> = listed.split(',').map(str::trim).collect();
        for _ in 1..addresses.len() {
            let address = addresses[self.address % addresses.len()];
            match self.establish_from(address.to_owned()).await {
                Err(reason) if reason.is_retryable() => self.address += 1,
                established => return established,
            }
        }
        let address = addresses[self.address % addresses.len()].to_owned();
        let established = self.establish_from(address).await;
        self.address += usize::from(established.is_err());
        established
    }

    /// Makes an attempt at an address, and at the primary that a replica there names.
    async fn establish_from(&mut self, address: String) -> Result<TcpStream, DisconnectReason> {
        let (begin, each) = (Instant::now(), self.protocol.options().time_at_each());
        let mut established = self.establish_at(address, each).await;
        for _ in 0..HOPS_MAX {
            let Some(primary) = established.as_ref().err().and_then(primary_named) else {
                break;
            };
            let left = self.protocol.options().time_at_named(begin.elapsed());
            established = self.establish_at(primary, left).await;
        }
        established
    }

    async fn establish_at(
        &mut self,
        address: String,
        after: Duration,
    ) -> Result<TcpStream, DisconnectReason> {
        match timeout(after, self.handshake(&address)).await {
            Ok(stream) => stream,
            Err(_) => Err(DisconnectReason::NoWelcome { address, after }),
        }
    }

    /// Returns a connection that the server has welcomed.
    async fn handshake(&mut self, address: &str) -> Result<TcpStream, DisconnectReason> {
        let connected = TcpStream::connect(address).await;
        let connected = connected.and_then(|stream| match is_its_own_peer(&stream) {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => Ok(stream),
        });
        let mut stream = connected.map_err(|error| DisconnectReason::Connect {
            address: address.to_owned(),
            error,
        })?;
        stream.set_nodelay(true).map_err(DisconnectReason::Broken)?;
        self.protocol.connected();
        stream
            .write_all(self.protocol.out())
            .await
            .map_err(DisconnectReason::Broken)?;
        let hello = self.protocol.out().len();
        self.protocol.wrote(hello);
        while !self.protocol.is_open() {
            match self.read(&mut stream).await {
                // It was made, and was lost at once.
                Err(reason) if self.protocol.is_open() => self.early_end = Some(reason),
                Err(DisconnectReason::Closed) => return Err(self.protocol.closed_early()),
                Err(DisconnectReason::Broken(error))
                    if error.kind() == io::ErrorKind::ConnectionReset =>
                {
                    return Err(self.protocol.closed_early());
                }
                read => read?,
            }
        }
        Ok(stream)
    }

    async fn read(&mut self, stream: &mut TcpStream) -> Result<(), DisconnectReason> {
        match stream.read(&mut self.input).await {
            Ok(0) => Err(DisconnectReason::Closed),
            Ok(bytes) => self.protocol.received(&self.input[..bytes]),
            Err(error) => Err(DisconnectReason::Broken(error)),
        }
    }

    /// Runs the connection until it is lost.
    async fn run_connection(&mut self, stream: &mut TcpStream) -> DisconnectReason {
        let reason = match self.early_end.take() {
            Some(reason) => reason,
            None => match self.exchange(stream).await {
                Err(reason) => reason,
                Ok(never) => match never {},
            },
        };
        let bye = match &reason {
            DisconnectReason::Done => Some((CloseReason::Done, String::new())),
            DisconnectReason::Frame(error) => Some((CloseReason::BadFrame, error.to_string())),
            DisconnectReason::HeartbeatTimeout { after } => {
                Some((CloseReason::Silent, format!("for {after:?}")))
            }
            _ => None,
        };
        if let Some((why, text)) = bye {
            self.protocol.bye(why, &text);
            // As much of it as the connection takes at once.
            let _ = stream.try_write(self.protocol.out());
        }
        reason
    }

    async fn exchange(&mut self, stream: &mut TcpStream) -> Result<Infallible, DisconnectReason> {
        let heartbeat_ms = self
            .protocol
            .welcome()
            .map_or(0, |welcome| welcome.heartbeat_ms);
        let heartbeat = Duration::from_millis(heartbeat_ms.into());
        let (mut last_received, mut last_sent) = (Instant::now(), Instant::now());
        let check = sleep(heartbeat / CHECKS);
        tokio::pin!(check);
        let (mut reader, mut writer) = stream.split();
        loop {
            if self.closing.is_some() && self.protocol.is_idle() && self.protocol.out().is_empty() {
                return Err(DisconnectReason::Done);
            }
            let has_events = !self.protocol.events().is_empty();
            let takes = self.closing.is_none() && self.protocol.has_room();
            let writes = !self.protocol.out().is_empty();
            tokio::select! {
                read = reader.read(&mut self.input), if !has_events => {
                    last_received = Instant::now();
                    match read.map_err(DisconnectReason::Broken)? {
                        0 => return Err(DisconnectReason::Closed),
                        bytes => self.protocol.received(&self.input[..bytes])?,
                    }
                }
                wrote = writer.write(self.protocol.out()), if writes => {
                    last_sent = Instant::now();
                    self.protocol.wrote(wrote.map_err(DisconnectReason::Broken)?);
                }
                request = self.requests.recv(), if takes => self.requested(request)?,
                room = room(self.events.as_ref()), if has_events => {
                    // Nothing was read while the events waited.
                    last_received = Instant::now();
                    self.pass_on(room);
                }
                () = &mut check, if !heartbeat.is_zero() => {
                    let after = heartbeat * SILENT_HEARTBEATS;
                    if last_received.elapsed() >= after && !has_events {
                        return Err(DisconnectReason::HeartbeatTimeout { after });
                    }
                    if last_sent.elapsed() >= heartbeat / 2 && !writes {
                        self.protocol.heartbeat();
                    }
                    self.protocol.save_seen()?;
                    check.as_mut().reset(Instant::now() + heartbeat / CHECKS);
                }
                _ = self.handles_dropped.recv() => return Err(DisconnectReason::Done),
            }
        }
    }

    /// Takes a request, and those that are there already.
    fn requested(&mut self, request: Option<Request>) -> Result<(), DisconnectReason> {
        let mut next = Some(request.ok_or(DisconnectReason::Done)?);
        while let Some(request) = next {
            if let Request::Close(done) = request {
                self.closing = Some(done);
                self.requests.close();
                return Ok(());
            }
            self.protocol.take(request)?;
            next = match self.protocol.has_room() {
                true => self.requests.try_recv().ok(),
                false => None,
            };
        }
        Ok(())
    }

    /// Passes events on, as many as there is room for.
    fn pass_on(&mut self, has_room: bool) {
        let backlog = self.protocol.events();
        let Some(events) = self.events.as_ref().filter(|_| has_room) else {
            self.events = None;
            backlog.clear();
            return;
        };
        while let Some(event) = backlog.pop_front() {
            let number = event.report_number();
            if let Err(mpsc::error::TrySendError::Full(event)) = events.try_send(event) {
                backlog.push_front(event);
                return;
            }
            self.given = number.unwrap_or(self.given);
        }
    }
}

/// Returns the address of the primary, where a replica that is none has ended the connection and
/// knows it.
fn primary_named(reason: &DisconnectReason) -> Option<String> {
    match reason {
        DisconnectReason::Bye {
            why: CloseReason::NotPrimary,
            text,
        } if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// Where no program listens on a port of this machine, the system may choose that very port for the
/// client's end, and so connect it to itself. It would read its own hello, and keep the port from
/// an exchange that starts again.
fn is_its_own_peer(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(own), Ok(peer)) if own == peer)
}

/// Waits for room for an event; false where the receiver was dropped.
async fn room(events: Option<&mpsc::Sender<Event>>) -> bool {
    match events {
        None => false,
        Some(events) => events.reserve().await.is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn a_socket_that_is_connected_to_itself_is_recognised() {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind(([127, 0, 0, 1], 0).into())
            .expect("a free port");
        let own = socket.local_addr().expect("it is bound");
        let stream = socket.connect(own).await.expect("no other program listens");
        assert!(is_its_own_peer(&stream));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let there = listener.local_addr().expect("it listens");
        let stream = TcpStream::connect(there).await.expect("it listens");
        assert!(!is_its_own_peer(&stream));
    }
}
