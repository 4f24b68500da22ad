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

use thalweg_exchange::codec::session::{Ending, Welcome};

use crate::dialogue::{Dialogue, Request};
use crate::event::Event;
use crate::lost::Lost;

const READ_BYTES: usize = 1 << 16;
/// How often the time is looked at, in each heartbeat.
const LOOKS: u32 = 4;
/// Silence of this number of heartbeats ends a connection.
const SILENT_HEARTBEATS: u32 = 3;

/// A session's connection, or the attempt to get one.
pub(crate) struct Connection {
    dialogue: Dialogue,
    requests: mpsc::Receiver<Request>,
    events: Option<mpsc::Sender<Event>>,
    /// Closed when every handle of the client was dropped.
    leash: mpsc::Receiver<Infallible>,
    input: Vec<u8>,
    /// The reason, where a bye came right behind the welcome.
    lost: Option<Lost>,
    /// The user waits for the end.
    closing: Option<oneshot::Sender<Infallible>>,
    /// Number of the last report that was sent to the user; 0 for none.
    given: u64,
}

impl Connection {
    /// Connects, in one attempt or as many as there is time for.
    pub(crate) async fn open(
        dialogue: Dialogue,
        requests: mpsc::Receiver<Request>,
        events: mpsc::Sender<Event>,
        leash: mpsc::Receiver<Infallible>,
    ) -> Result<(Self, TcpStream, Welcome), Lost> {
        let mut connection = Self {
            dialogue,
            requests,
            events: Some(events),
            leash,
            input: vec![0; READ_BYTES],
            lost: None,
            closing: None,
            given: 0,
        };
        let stream = connection.begin().await?;
        let welcome = connection.dialogue.welcome().copied().ok_or(Lost::Closed)?;
        Ok((connection, stream, welcome))
    }

    /// The first connection.
    async fn begin(&mut self) -> Result<TcpStream, Lost> {
        let options = self.dialogue.options();
        let (mut wait, longest) = (options.retry_min, options.retry_max);
        let until = Instant::now().checked_add(options.connect_within);
        loop {
            let why = match self.establish().await {
                Err(why) if why.may_return() => why,
                begun => return begun,
            };
            if until.is_some_and(|until| Instant::now() + wait >= until) {
                return Err(why);
            }
            sleep(wait).await;
            wait = (wait * 2).min(longest);
        }
    }

    /// Until the client is closed, or gives up.
    pub(crate) async fn run(mut self, mut stream: TcpStream) {
        let end = loop {
            let why = self.talk(&mut stream).await;
            self.dialogue.lost();
            if !why.may_return() {
                break why;
            }
            match self.again(why).await {
                Ok(next) => stream = next,
                Err(why) => break why,
            }
        };
        drop(stream);
        // Requests that are still on their way here are not taken.
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            drop(self.dialogue.take(request));
        }
        self.dialogue.give_up();
        let saved = self.dialogue.save_seen();
        let is_closed = self.closing.take().is_some();
        let is_received = self.deliver_remaining(is_closed).await;
        let end = match saved.and_then(|()| self.dialogue.save_seen()) {
            Ok(()) => end,
            Err(lost) => lost,
        };
        if is_received && let Some(events) = &self.events {
            tokio::select! {
                // Where there is room, the event is sent even to a user who has dropped the client.
                biased;
                _ = events.send(Event::Closed(end)) => {}
                _ = self.leash.recv(), if !is_closed => {}
            }
        }
    }

    /// Sends the remaining events. After `close`, waits until the user has seen the last report.
    /// Returns false if the receiver is gone.
    async fn deliver_remaining(&mut self, is_closed: bool) -> bool {
        let Some(events) = &self.events else {
            return false;
        };
        while let Some(event) = self.dialogue.events().pop_front() {
            let number = event.report_number();
            tokio::select! {
                biased;
                sent = events.send(event) => if sent.is_err() { return false },
                _ = self.leash.recv(), if !is_closed => return false,
            }
            self.given = number.unwrap_or(self.given);
        }
        if is_closed {
            let seen = self.dialogue.seen();
            tokio::select! {
                () = seen.reach(self.given) => {}
                () = events.closed() => return false,
            }
        }
        true
    }

    /// Attempts to connect, one after the other, until one succeeds or there is no use.
    async fn again(&mut self, mut why: Lost) -> Result<TcpStream, Lost> {
        let mut wait = self.dialogue.options().retry_min;
        let random = RandomState::new();
        for attempt in 0_u32.. {
            if self
                .dialogue
                .options()
                .attempts_max
                .is_some_and(|max| attempt >= max)
            {
                break;
            }
            self.dialogue.events().push_back(Event::Lost(why));
            let half = wait / 2;
            let part = random.hash_one(attempt) % 1_024;
            self.pause(half + half * part as u32 / 1_024).await?;
            wait = (wait * 2).min(self.dialogue.options().retry_max);
            match self.attempt().await {
                Ok(stream) => return Ok(stream),
                Err(lost) if lost.may_return() => why = lost,
                Err(lost) => return Err(lost),
            }
        }
        Err(why)
    }

    /// One attempt, unless the client is let go meanwhile.
    async fn attempt(&mut self) -> Result<TcpStream, Lost> {
        let (nobody, leash) = mpsc::channel(1);
        let mut leash = std::mem::replace(&mut self.leash, leash);
        drop(nobody);
        let stream = tokio::select! {
            stream = self.establish() => stream,
            _ = leash.recv() => Err(Lost::Done),
        };
        self.leash = leash;
        stream
    }

    /// Waits, and passes on what happened.
    async fn pause(&mut self, time: Duration) -> Result<(), Lost> {
        let until = Instant::now() + time;
        loop {
            let has_events = !self.dialogue.events().is_empty();
            tokio::select! {
                () = sleep_until(until) => return Ok(()),
                _ = self.leash.recv() => return Err(Lost::Done),
                room = room(self.events.as_ref()), if has_events => self.pass_on(room),
            }
        }
    }

    async fn establish(&mut self) -> Result<TcpStream, Lost> {
        let address = self.dialogue.options().address.clone();
        let after = self.dialogue.options().connect_timeout;
        match timeout(after, self.greet(&address)).await {
            Ok(stream) => stream,
            Err(_) => Err(Lost::NoWelcome { address, after }),
        }
    }

    /// A connection that the server has welcomed.
    async fn greet(&mut self, address: &str) -> Result<TcpStream, Lost> {
        let connected = TcpStream::connect(address).await;
        let connected = connected.and_then(|stream| match is_its_own_peer(&stream) {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => Ok(stream),
        });
        let mut stream = connected.map_err(|error| Lost::Connect {
            address: address.to_owned(),
            error,
        })?;
        stream.set_nodelay(true).map_err(Lost::Broken)?;
        self.dialogue.connected();
        stream
            .write_all(self.dialogue.out())
            .await
            .map_err(Lost::Broken)?;
        let hello = self.dialogue.out().len();
        self.dialogue.wrote(hello);
        while !self.dialogue.is_open() {
            match self.read(&mut stream).await {
                // It was made, and lost in the same breath.
                Err(lost) if self.dialogue.is_open() => self.lost = Some(lost),
                Err(Lost::Closed) => return Err(self.dialogue.closed_early()),
                Err(Lost::Broken(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(self.dialogue.closed_early());
                }
                read => read?,
            }
        }
        Ok(stream)
    }

    async fn read(&mut self, stream: &mut TcpStream) -> Result<(), Lost> {
        match stream.read(&mut self.input).await {
            Ok(0) => Err(Lost::Closed),
            Ok(bytes) => self.dialogue.received(&self.input[..bytes]),
            Err(error) => Err(Lost::Broken(error)),
        }
    }

    /// Talks until the connection is lost.
    async fn talk(&mut self, stream: &mut TcpStream) -> Lost {
        let lost = match self.lost.take() {
            Some(lost) => lost,
            None => match self.exchange(stream).await {
                Err(lost) => lost,
                Ok(never) => match never {},
            },
        };
        let bye = match &lost {
            Lost::Done => Some((Ending::Done, String::new())),
            Lost::Frame(error) => Some((Ending::BadFrame, error.to_string())),
            Lost::Silent { after } => Some((Ending::Silent, format!("for {after:?}"))),
            _ => None,
        };
        if let Some((why, text)) = bye {
            self.dialogue.bye(why, &text);
            // As much of it as the connection takes at once.
            let _ = stream.try_write(self.dialogue.out());
        }
        lost
    }

    async fn exchange(&mut self, stream: &mut TcpStream) -> Result<Infallible, Lost> {
        let heartbeat_ms = self
            .dialogue
            .welcome()
            .map_or(0, |welcome| welcome.heartbeat_ms);
        let heartbeat = Duration::from_millis(heartbeat_ms.into());
        let (mut heard, mut spoke) = (Instant::now(), Instant::now());
        let look = sleep(heartbeat / LOOKS);
        tokio::pin!(look);
        let (mut reader, mut writer) = stream.split();
        loop {
            if self.closing.is_some() && self.dialogue.is_idle() && self.dialogue.out().is_empty() {
                return Err(Lost::Done);
            }
            let has_events = !self.dialogue.events().is_empty();
            let takes = self.closing.is_none() && self.dialogue.has_room();
            let writes = !self.dialogue.out().is_empty();
            tokio::select! {
                read = reader.read(&mut self.input), if !has_events => {
                    heard = Instant::now();
                    match read.map_err(Lost::Broken)? {
                        0 => return Err(Lost::Closed),
                        bytes => self.dialogue.received(&self.input[..bytes])?,
                    }
                }
                wrote = writer.write(self.dialogue.out()), if writes => {
                    spoke = Instant::now();
                    self.dialogue.wrote(wrote.map_err(Lost::Broken)?);
                }
                request = self.requests.recv(), if takes => self.requested(request)?,
                room = room(self.events.as_ref()), if has_events => {
                    // Nothing was read while the events waited.
                    heard = Instant::now();
                    self.pass_on(room);
                }
                () = &mut look, if !heartbeat.is_zero() => {
                    let after = heartbeat * SILENT_HEARTBEATS;
                    if heard.elapsed() >= after && !has_events {
                        return Err(Lost::Silent { after });
                    }
                    if spoke.elapsed() >= heartbeat / 2 && !writes {
                        self.dialogue.heartbeat();
                    }
                    self.dialogue.save_seen()?;
                    look.as_mut().reset(Instant::now() + heartbeat / LOOKS);
                }
                _ = self.leash.recv() => return Err(Lost::Done),
            }
        }
    }

    /// Takes a request, and those that are there already.
    fn requested(&mut self, request: Option<Request>) -> Result<(), Lost> {
        let mut next = Some(request.ok_or(Lost::Done)?);
        while let Some(request) = next {
            if let Request::Close(done) = request {
                self.closing = Some(done);
                self.requests.close();
                return Ok(());
            }
            self.dialogue.take(request)?;
            next = match self.dialogue.has_room() {
                true => self.requests.try_recv().ok(),
                false => None,
            };
        }
        Ok(())
    }

    /// Passes events on, as many as there is room for.
    fn pass_on(&mut self, has_room: bool) {
        let backlog = self.dialogue.events();
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

/// Where no program listens on a port of this machine, the system may choose that very port for the
/// client's end, and so connect it to itself. It would hear its own hello, and keep the port from
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
    async fn a_socket_that_is_connected_to_itself_is_known() {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind(([127, 0, 0, 1], 0).into())
            .expect("a free port");
        let own = socket.local_addr().expect("it is bound");
        let stream = socket.connect(own).await.expect("nobody else listens");
        assert!(is_its_own_peer(&stream));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let there = listener.local_addr().expect("it listens");
        let stream = TcpStream::connect(there).await.expect("it listens");
        assert!(!is_its_own_peer(&stream));
    }
}
