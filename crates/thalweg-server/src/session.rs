//! A connection that was welcomed: its socket, what was read and not taken, and what waits for it.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use thalweg_exchange::UserId;
use thalweg_exchange::codec::session::{QueryAnswer, ServerFrame};
use thalweg_exchange::session::{Role, SessionKey};

use crate::connection_slots::ConnectionSlot;
use crate::feed::{Requested, Subscription};
use crate::keys::Key;
use crate::output::{Output, Written};
pub(crate) use crate::scheduler::SessionId;
use crate::scheduler::{HolderId, Ticket};
use crate::token_bucket::Bucket;

/// Queries of a session that may be without an answer.
pub(crate) const QUERIES_MAX: u32 = 64;
/// Room for reading that a connection begins with, and comes back to.
const ROOM_BYTES: usize = 1 << 13;
/// Room while reads fill it: a window of 256 orders takes one.
const ROOM_BYTES_MAX: usize = 1 << 15;

/// Bytes that are written to a session before others have their turn.
pub(crate) const WRITE_BYTES_MAX: usize = 1 << 16;

/// The event that a session is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Input.
    Input,
    /// A turn.
    Turn(Ticket),
    /// Room in the exchange.
    Room,
    /// Tokens, which it has at this time.
    Tokens(Instant),
    /// Nothing: it has ended, and takes what is left for it until this time.
    End(Instant),
}

/// The event that a session's next market data is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarketWaits {
    /// The feed; none is wanted, or all was given.
    Feed,
    /// A turn.
    Turn(Ticket),
    /// The socket: something else is to be written first.
    Socket,
}

/// The bytes that were read of a connection.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// Room for what is read.
    bytes: Vec<u8>,
    /// How many of `bytes` were read, and how many of these were taken.
    read: usize,
    taken: usize,
    /// Where in the connection `bytes` begins.
    at: u64,
    /// How much is read at once, at most.
    room: usize,
    /// How many bytes the next frame has, where they are not all here.
    needed: usize,
}

impl Input {
    pub(crate) const fn new(bytes: Vec<u8>) -> Self {
        Self {
            read: bytes.len(),
            bytes,
            taken: 0,
            at: 0,
            room: ROOM_BYTES,
            needed: 0,
        }
    }

    /// Returns what is not taken yet.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..self.read]
    }

    /// Returns where in the connection that begins.
    pub(crate) const fn at(&self) -> u64 {
        self.at + self.taken as u64
    }

    /// Takes the next frame, which has this many bytes.
    pub(crate) const fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        self.needed = 0;
    }

    /// Notes that the next frame is this long, and not all here.
    pub(crate) const fn need(&mut self, bytes: usize) {
        self.needed = bytes;
    }

    /// Returns whether another frame may be here.
    pub(crate) const fn may_have_frame(&self) -> bool {
        self.read > self.taken && self.read - self.taken >= self.needed
    }

    /// Reads once. Room grows while reads fill it, and shrinks while they take little of it.
    /// Returns how many bytes, and whether there was no room for more.
    fn read(&mut self, from: &mut impl Read) -> io::Result<(usize, bool)> {
        self.bytes.copy_within(self.taken..self.read, 0);
        self.at += self.taken as u64;
        self.read -= self.taken;
        self.taken = 0;
        let room = self.needed.max(self.room).max(self.read + 1);
        if self.bytes.len() > 2 * room {
            self.bytes.truncate(room);
            self.bytes.shrink_to(room);
        } else if self.bytes.len() < room {
            self.bytes.resize(room, 0);
        }
        let count = from.read(&mut self.bytes[self.read..])?;
        self.read += count;
        let is_full = self.read == self.bytes.len();
        if is_full {
            self.room = (self.room * 2).min(ROOM_BYTES_MAX);
        } else if count < self.room / 4 {
            self.room = (self.room / 2).max(ROOM_BYTES);
        }
        Ok((count, is_full))
    }
}

/// The terms that differ between sessions.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The version of the protocol.
    pub(crate) version: u16,
    pub(crate) key: SessionKey,
    /// The key that it showed; `None` where none are needed.
    pub(crate) shown: Option<Arc<Key>>,
    pub(crate) cancels_on_disconnect: bool,
    pub(crate) wants_reports: bool,
    pub(crate) heartbeat: Duration,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) terms: Terms,
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    /// Shared with the relay of a session that has latency.
    pub(crate) connection_slot: Arc<ConnectionSlot>,
    pub(crate) holder: HolderId,
    pub(crate) rate: Bucket,
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) waits: Waits,
    /// Whether the socket may have more to read than the last read has found.
    pub(crate) is_readable: bool,
    /// Whether the other side sends nothing more: its end has to be read, and no event comes for it
    /// again.
    pub(crate) is_read_closed: bool,
    /// Whether it is among those that are to be flushed.
    pub(crate) is_dirty: bool,
    /// Whether it was taken out of the tables.
    pub(crate) has_left: bool,
    /// When something came last, while the server read all there was.
    pub(crate) last_received: Instant,
    /// Whether something came since the clock was last looked at. The time of its turn will not do:
    /// the thread may have waited for the disk since then.
    pub(crate) has_received: bool,
    /// When the socket took something last.
    pub(crate) wrote: Instant,
    /// Since when something waits of which the socket takes nothing.
    pub(crate) stalled: Option<Instant>,
    /// Frames without a price that were taken and not counted yet.
    pub(crate) free: u32,
    /// Queries without an answer.
    pub(crate) queries: u32,
    /// Whether open orders are on their way: they may be many.
    pub(crate) is_listing: bool,
    pub(crate) requested: Requested,
    /// Whether it has changed since the subscription has followed it.
    pub(crate) has_request_changed: bool,
    pub(crate) market: Subscription,
    pub(crate) market_waits: MarketWaits,
    /// When it was to be flushed first since the last write.
    pub(crate) dirty_since: Option<Instant>,
}

impl Session {
    /// Makes a session of a connection whose input and output are these, which begins with a read.
    pub(crate) fn new(
        terms: Terms,
        (stream, peer, connection_slot): (TcpStream, SocketAddr, Arc<ConnectionSlot>),
        (holder, rate): (HolderId, Bucket),
        input: Input,
        output: Output,
        market: Subscription,
        now: Instant,
    ) -> Self {
        Self {
            terms,
            stream,
            peer,
            connection_slot,
            holder,
            rate,
            input,
            output,
            waits: Waits::Input,
            is_readable: true,
            is_read_closed: false,
            is_dirty: false,
            has_left: false,
            last_received: now,
            has_received: false,
            wrote: now,
            stalled: None,
            free: 0,
            queries: 0,
            is_listing: false,
            requested: Requested::default(),
            has_request_changed: false,
            market,
            market_waits: MarketWaits::Feed,
            dirty_since: None,
        }
    }

    /// Returns the user whose reports and account it may see; an administrator has none.
    pub(crate) fn user(&self) -> Option<UserId> {
        let key = self.terms.key;
        (key.role != Role::Admin).then_some(UserId(key.holder))
    }

    /// Returns the name of the key that it showed.
    pub(crate) fn key_name(&self) -> Option<&str> {
        self.terms.shown.as_ref().map(|key| key.name.as_str())
    }

    /// Reads what the socket has, at most as much as fits. Returns how many bytes.
    ///
    /// # Errors
    /// The other side is gone, or sends no more.
    pub(crate) fn read(&mut self) -> io::Result<usize> {
        match self.input.read(&mut self.stream) {
            Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, is_full)) => {
                // A read that the system could not fill has emptied the socket.
                self.is_readable = is_full || self.is_read_closed;
                self.has_received = true;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_readable = false;
                Ok(0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Writes what waits, as far as the socket takes it, and [`WRITE_BYTES_MAX`] at most. Returns
    /// how much was written.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn flush(&mut self) -> io::Result<Written> {
        let written = self.output.flush(&mut self.stream, WRITE_BYTES_MAX)?;
        // The time of its turn will not do: the thread may have waited for the disk since then.
        let now = Instant::now();
        if written.count > 0 {
            self.wrote = now;
        }
        if self.output.is_empty() {
            self.stalled = None;
        } else if written.count > 0 || self.stalled.is_none() {
            self.stalled = Some(now);
        }
        Ok(written)
    }

    /// Notifies the other side that nothing more comes.
    pub(crate) fn shut_down(&self) {
        // It may be gone.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Gives the answer to a query.
    pub(crate) fn answer_query(&mut self, answer: QueryAnswer) {
        self.queries = self.queries.saturating_sub(1);
        self.output.push(&ServerFrame::QueryAnswer(answer));
    }
}

#[cfg(test)]
impl Input {
    /// Adds bytes as a read does.
    pub(crate) fn receive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            self.read(&mut bytes).expect("a slice can be read");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use thalweg_exchange::market::{Channels, Epoch};

    use super::*;
    use crate::config::Sessions;
    use crate::connection_slots::ConnectionSlots;
    use crate::connection_slots::ListenerKind;
    use crate::feed::Feed;
    use crate::output::Budget;
    use thalweg_exchange::codec::SESSION_VERSION_MAX;

    use crate::scheduler::Scheduler;
    use crate::token_bucket::Buckets;

    /// Makes the first session of a holder, without a key, and the client's end of its socket.
    pub(crate) fn session(role: Role, holder: i64) -> (Session, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there are ports");
        let address = listener.local_addr().expect("it is bound");
        let client = std::net::TcpStream::connect(address).expect("it listens");
        let (stream, peer) = listener.accept().expect("it was connected");
        stream.set_nonblocking(true).expect("it is a socket");
        let (key, now) = (SessionKey::new(role, holder, 0), Instant::now());
        let channels = Channels::default();
        let terms = Terms {
            version: SESSION_VERSION_MAX.into(),
            key,
            shown: None,
            cancels_on_disconnect: false,
            wants_reports: false,
            heartbeat: Duration::from_secs(1),
        };
        let slot = Arc::new(ConnectionSlots::new(8, 8, 1)).take(ListenerKind::Trade);
        let session = Session::new(
            terms,
            (
                TcpStream::from_std(stream),
                peer,
                Arc::new(slot.expect("one is free")),
            ),
            (
                Scheduler::default().enter(key, now),
                Buckets::new(&Sessions::default()).of(key, now),
            ),
            Input::new(Vec::new()),
            Output::new(1 << 20, std::rc::Rc::new(Budget::new(1 << 30))),
            Subscription::new(Arc::new(Feed::new(Epoch(1), channels, 1, 2))),
            now,
        );
        (session, client)
    }

    #[test]
    fn what_was_read_in_parts_is_whole() {
        let sent: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        let mut input = Input::new(sent[..5].to_vec());
        let (mut at, mut taken) = (5, Vec::new());
        while taken.len() < sent.len() {
            if at < sent.len() {
                // The socket has some more each time.
                let end = (at + 1 + at % 9_000).min(sent.len());
                let mut from = &sent[at..end];
                let (count, _) = input.read(&mut from).expect("a slice can be read");
                at += count;
            }
            assert_eq!(input.at(), taken.len() as u64);
            let some = input.rest().len().min(4_000);
            taken.extend_from_slice(&input.rest()[..some]);
            input.take(some);
        }
        assert!(taken == sent && !input.may_have_frame());
        assert!(input.bytes.len() <= 2 * ROOM_BYTES_MAX);
    }

    #[test]
    fn a_frame_that_is_not_all_here_is_waited_for() {
        let mut input = Input::new(vec![1, 2, 3]);
        assert!(input.may_have_frame());
        input.need(5);
        assert!(!input.may_have_frame());
        input.read(&mut &[4, 5][..]).expect("a slice can be read");
        assert!(input.may_have_frame());
    }
}
