//! Replicas as peers: each gives copies of itself to those that have its key.
//!
//! A request is a magic number, the number of commands up to which the copy may go, and the key.
//! The answer is a byte: [`COPY`], with the copy behind it, or [`REFUSED`], with the reason as
//! text.
//!
//! The key is random, and drawn at each start. It is in the command log, where other replicas find
//! it: so those that may read the log, and with it what users have sent, may have a copy.
//!
//! # Limits
//! Before its key has come, a connection costs nothing but itself: its request has one second in
//! all, and of more than [`UNKNOWN_MAX`] such connections the oldest is dropped. A connection with
//! the key is slow, and ends, where the other side takes or sends less than
//! [`RATE_MIN_BYTES_PER_S`] while it is waited for.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use subtle::ConstantTimeEq;
use thalweg_exchange::durable::replication::copying::{Copied, CopyError, receive, send};
use thalweg_exchange::durable::{Options, Storage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream as AsyncStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// Waits for a time. Returns false if the work is to end.
pub(super) type Pause<'p> = &'p mut dyn FnMut(Duration) -> bool;

const MAGIC: [u8; 8] = *b"thalwegP";
const KEY_BYTES: usize = 32;
const REQUEST_BYTES: usize = MAGIC.len() + size_of::<u64>() + KEY_BYTES;
const COPY: u8 = 0;
const REFUSED: u8 = 1;
/// Bytes of a reason that are read at most.
const REASON_BYTES_MAX: u64 = 1 << 10;

/// Connections without a key that are kept at a time.
const UNKNOWN_MAX: usize = 64;
/// How long a request may take to come, and a refusal to go.
const REQUEST_TIME: Duration = Duration::from_secs(1);
/// Bytes of a copy a second: a replica that trades needs its disk and its network for that.
const RATE_BYTES_PER_S: u64 = 256 << 20;
/// Bytes a second that the other side takes or sends at least, seen over [`RATE_WINDOW`].
const RATE_MIN_BYTES_PER_S: u64 = 1 << 20;
const RATE_WINDOW: Duration = Duration::from_secs(30);
/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long one call waits for the other side, which is looked at then.
const WAIT: Duration = Duration::from_secs(1);

/// The listener of a replica. It ends when it is dropped, a copy under way when it is sent.
#[derive(Debug)]
pub(crate) struct PeerListener {
    task: JoinHandle<()>,
    address: SocketAddr,
    key: [u8; KEY_BYTES],
}

impl Drop for PeerListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PeerListener {
    /// Listens here, and gives copies of this directory.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system gives no random numbers.
    pub(crate) async fn start<S: Storage>(at: SocketAddr, storage: S) -> io::Result<Self> {
        let listener = TcpListener::bind(at).await?;
        let address = listener.local_addr()?;
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let sender = Arc::new(CopySender {
            storage,
            key,
            copying: Arc::new(Semaphore::new(1)),
        });
        let task = tokio::spawn(listen(listener, sender));
        Ok(Self { task, address, key })
    }

    /// Returns where others find this replica: at the address of the listener, or, where that is
    /// every address of the host, at the name or address by which they know the host.
    pub(crate) fn place(&self, host: &str) -> String {
        let key = HEXLOWER.encode(&self.key);
        match self.address.ip().is_unspecified() {
            true => format!("{host}:{} {key}", self.address.port()),
            false => format!("{} {key}", self.address),
        }
    }
}

async fn listen<S: Storage>(listener: TcpListener, sender: Arc<CopySender<S>>) {
    let mut unknown = VecDeque::<AbortHandle>::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        unknown.retain(|one| !one.is_finished());
        if unknown.len() >= UNKNOWN_MAX
            && let Some(oldest) = unknown.pop_front()
        {
            oldest.abort();
        }
        let answering = tokio::spawn(Arc::clone(&sender).answer(stream));
        unknown.push_back(answering.abort_handle());
    }
}

/// Sends copies to other replicas.
struct CopySender<S> {
    storage: S,
    key: [u8; KEY_BYTES],
    /// Taken while there is a copy under way.
    copying: Arc<Semaphore>,
}

impl<S: Storage> CopySender<S> {
    /// Reads a request, and begins a copy where it has the key.
    async fn answer(self: Arc<Self>, mut stream: AsyncStream) {
        let asked = timeout(REQUEST_TIME, self.asked(&mut stream)).await;
        // A stranger may cause as many of these lines as it wants.
        let (until, slot) = match asked {
            Ok(Ok(Some(asked))) => asked,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => return tracing::debug!(%error, "a request for a copy was not read"),
            Err(_) => return tracing::debug!("a request for a copy did not come in time"),
        };
        spawn_blocking(move || {
            let sent = (stream.into_std().map_err(CopyError::from))
                .and_then(|stream| self.serve(stream, until));
            if let Err(error) = sent {
                tracing::warn!(%error, "a copy for another replica was not sent");
            }
            drop(slot);
        });
    }

    /// Returns the number of commands up to which a copy may go, with the right to send it; nothing
    /// where the request was refused.
    async fn asked(
        &self,
        stream: &mut AsyncStream,
    ) -> io::Result<Option<(u64, OwnedSemaphorePermit)>> {
        let mut request = [0; REQUEST_BYTES];
        stream.read_exact(&mut request).await?;
        let (magic, rest) = request.split_at(MAGIC.len());
        let (until, key) = rest.split_at(size_of::<u64>());
        let has_key = magic == MAGIC && bool::from(key.ct_eq(&self.key[..]));
        let reason = if !has_key {
            "the key is not that of this replica"
        } else if let Ok(slot) = Arc::clone(&self.copying).try_acquire_owned() {
            let until = u64::from_le_bytes(until.try_into().expect("it has that length"));
            return Ok(Some((until, slot)));
        } else {
            "another copy is under way"
        };
        stream.write_all(&refusal(reason)).await?;
        Ok(None)
    }

    fn serve(&self, stream: TcpStream, until: u64) -> Result<(), CopyError> {
        stream.set_nonblocking(false)?;
        let stream = Metered::new(stream)?;
        let (began, mut sent) = (Instant::now(), 0);
        let mut answer = Answer {
            stream,
            has_begun: false,
        };
        let pace = |bytes: usize| {
            sent += bytes as u64;
            let due = Duration::from_secs_f64(sent as f64 / RATE_BYTES_PER_S as f64);
            while let Some(left) = due
                .checked_sub(began.elapsed())
                .filter(|left| !left.is_zero())
            {
                thread::park_timeout(left);
            }
        };
        match send(&self.storage, until, &mut answer, pace) {
            Ok(Copied {
                commands, bytes, ..
            }) => {
                let took_ms = began.elapsed().as_millis() as u64;
                tracing::info!(commands, bytes, took_ms, "another replica has a copy");
                Ok(())
            }
            Err(error) => {
                if !answer.has_begun {
                    answer.stream.write_all(&refusal(&error.to_string()))?;
                }
                Err(error)
            }
        }
    }
}

fn refusal(reason: &str) -> Vec<u8> {
    [&[REFUSED], reason.as_bytes()].concat()
}

/// The rate of the other side, while it is waited for.
#[derive(Debug, Default)]
struct Rate {
    waited: Duration,
    bytes: u64,
}

impl Rate {
    /// Notes bytes, and for how long they were waited for.
    fn note(&mut self, waited: Duration, bytes: usize) -> io::Result<()> {
        self.waited += waited;
        self.bytes += bytes as u64;
        if self.waited < RATE_WINDOW {
            return Ok(());
        }
        let seen = std::mem::take(self);
        if seen.bytes >= RATE_MIN_BYTES_PER_S * seen.waited.as_secs() {
            return Ok(());
        }
        let (bytes, time_s) = (seen.bytes, seen.waited.as_secs());
        let text = format!("the other side is too slow: {bytes} bytes in {time_s} s");
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }
}

/// A connection that ends where the other side is too slow.
struct Metered {
    stream: TcpStream,
    rate: Rate,
}

impl Metered {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(WAIT))?;
        stream.set_write_timeout(Some(WAIT))?;
        let rate = Rate::default();
        Ok(Self { stream, rate })
    }

    /// Makes a call, until something was read or written. Calls `look` before each.
    fn call(
        &mut self,
        mut call: impl FnMut(&mut TcpStream) -> io::Result<usize>,
        mut look: impl FnMut() -> io::Result<()>,
    ) -> io::Result<usize> {
        loop {
            look()?;
            let began = Instant::now();
            let called = call(&mut self.stream);
            let bytes = called.as_ref().copied().unwrap_or_default();
            match called {
                Err(error) if !is_time_out(&error) => return Err(error),
                _ => self.rate.note(began.elapsed(), bytes)?,
            }
            if called.is_ok() {
                return called;
            }
        }
    }
}

fn is_time_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

impl Write for Metered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(|stream| stream.write(bytes), || Ok(()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The bytes that a peer sends, until `pause` returns false.
struct Input<'p> {
    stream: Metered,
    pause: Pause<'p>,
}

impl Read for Input<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let ends = || io::Error::other("this replica is to end");
        let mut look = || (self.pause)(Duration::ZERO).then_some(()).ok_or_else(ends);
        self.stream.call(|stream| stream.read(bytes), &mut look)
    }
}

/// An answer with a copy, which begins with its first bytes.
struct Answer {
    stream: Metered,
    has_begun: bool,
}

impl Write for Answer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.has_begun {
            self.stream.write_all(&[COPY])?;
            self.has_begun = true;
        }
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Gets a copy with at most `until` commands into an empty directory, from a replica that has noted
/// this place. Calls `pause` between the pieces.
///
/// # Errors
/// The place cannot be reached, the replica gives none or is slow, the stream is damaged, the
/// directory takes nothing, or `pause` has returned false.
pub(super) fn fetch<S: Storage>(
    place: &str,
    until: u64,
    (storage, options): (&S, &Options),
    pause: Pause<'_>,
) -> Result<Copied, CopyError> {
    let stream = |text: &str| CopyError::Stream(text.to_owned());
    let (address, key) = place
        .split_once(' ')
        .ok_or_else(|| stream("the place has no key"))?;
    let key = read_key(key).ok_or_else(|| stream("the place has no key of 64 digits"))?;
    let connection = connect(address.to_socket_addrs()?)?;
    let mut stream = Metered::new(connection)?;
    stream.write_all(&[&MAGIC[..], &until.to_le_bytes(), &key].concat())?;
    let mut input = Input { stream, pause };
    let mut answer = [REFUSED];
    input.read_exact(&mut answer)?;
    // The peer has looked for its newest whole snapshot.
    input.stream.rate = Rate::default();
    let mut input = BufReader::with_capacity(256 << 10, input);
    if answer != [COPY] {
        let mut reason = Vec::new();
        input.take(REASON_BYTES_MAX).read_to_end(&mut reason)?;
        let reason = String::from_utf8_lossy(&reason);
        return Err(CopyError::Stream(format!("it was refused: {reason}")));
    }
    receive(storage, &mut input, options)
}

/// Connects to the first of these addresses that takes a connection.
fn connect(addresses: impl Iterator<Item = SocketAddr>) -> Result<TcpStream, CopyError> {
    let mut failed = CopyError::Stream("its name has no address".to_owned());
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}

fn read_key(text: &str) -> Option<[u8; KEY_BYTES]> {
    let key = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    key.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use thalweg_exchange::durable::SimDisk;

    use super::*;

    const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    #[tokio::test]
    async fn a_replica_is_found_where_it_listens() {
        let at_one = PeerListener::start(ANYWHERE, SimDisk::new()).await;
        let at_one = at_one.expect("a free port");
        let address = |place: String| place.split_once(' ').map(|(at, _)| at.to_owned());
        let place = address(at_one.place("10.0.0.1"));
        assert_eq!(place, Some(at_one.address.to_string()));
        let all = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let at_all = PeerListener::start(all, SimDisk::new()).await;
        let at_all = at_all.expect("a free port");
        let port = at_all.address.port();
        assert_eq!(
            address(at_all.place("10.0.0.1")),
            Some(format!("10.0.0.1:{port}"))
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_address_of_a_name_is_tried() {
        let gone = thalweg_testkit::refusing();
        let there = std::net::TcpListener::bind(ANYWHERE).expect("a free port");
        let there = there
            .local_addr()
            .map(|at| (at, there))
            .expect("it listens");
        let connected = connect([gone, there.0].into_iter()).expect("one of them listens");
        assert_eq!(connected.peer_addr().ok(), Some(there.0));
        assert!(connect([gone].into_iter()).is_err());
        let error = connect(std::iter::empty()).expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "the stream of the copy: its name has no address"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn strangers_that_say_nothing_keep_no_peer_out() {
        let listener = PeerListener::start(ANYWHERE, SimDisk::new()).await;
        let listener = listener.expect("a free port");
        let address = listener.address;
        let connect = || TcpStream::connect(address).expect("it listens");
        let strangers: Vec<TcpStream> = (0..UNKNOWN_MAX).map(|_| connect()).collect();
        let (disk, options) = (SimDisk::new(), Options::default());
        let place = listener.place("");
        let error = fetch(&place, 0, (&disk, &options), &mut |_| true).expect_err("it is empty");
        let text = error.to_string();
        assert!(text.contains("no whole snapshot has 0 commands"), "{text}");
        drop(strangers);
    }

    #[test]
    fn a_side_that_is_waited_for_has_to_keep_a_rate() {
        let mut rate = Rate::default();
        let second = Duration::from_secs(1);
        for _ in 0..300 {
            rate.note(second, 1 << 20)
                .expect("it is as fast as it has to be");
        }
        for _ in 0..29 {
            rate.note(second, 1 << 19).expect("it is not known yet");
        }
        let error = rate.note(second, 1 << 19).expect_err("it is too slow");
        let text = "the other side is too slow: 15728640 bytes in 30 s";
        assert_eq!(error.to_string(), text);
        rate.note(Duration::ZERO, 1).expect("it begins anew");
    }
}
