//! Replicas as peers: each gives copies of itself to those that have its key.
//!
//! A request is a magic number, the number of commands up to which the copy may go, and the key.
//! The answer is a byte: [`COPY`], with the copy behind it, or [`REFUSED`], with the reason as
//! text.
//!
//! The key is random, and drawn at each start. It is in the command log, where other replicas find
//! it: so those that may read the log, and with it what users have sent, may have a copy.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;
use thalweg_exchange::durable::replication::copying::{Copied, CopyError, receive, send};
use thalweg_exchange::durable::{Options, Storage};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

const MAGIC: [u8; 8] = *b"thalwegP";
const KEY_BYTES: usize = 32;
const REQUEST_BYTES: usize = MAGIC.len() + size_of::<u64>() + KEY_BYTES;
const COPY: u8 = 0;
const REFUSED: u8 = 1;
/// Bytes of a reason that are read at most.
const REASON_BYTES_MAX: u64 = 1 << 10;

/// Connections that are served at a time, refusals included. There is one copy at a time.
const CONNECTIONS_MAX: usize = 4;
/// Bytes of a copy a second: a replica that trades needs its disk and its network for that.
const RATE_BYTES_PER_S: u64 = 256 << 20;
/// How long a connection may take to be made, and a request to come.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long either side waits for the other to take bytes, or to send some.
const SILENCE_MAX: Duration = Duration::from_secs(30);

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
        let giver = Arc::new(Giver {
            storage,
            key,
            copying: Mutex::new(()),
        });
        let task = tokio::spawn(listen(listener, giver));
        Ok(Self { task, address, key })
    }

    /// Returns where others find this replica, whose host they know by this name or address.
    pub(crate) fn place(&self, host: &str) -> String {
        let mut place = format!("{host}:{} ", self.address.port());
        for byte in self.key {
            let _ = write!(place, "{byte:02x}");
        }
        place
    }
}

async fn listen<S: Storage>(listener: TcpListener, giver: Arc<Giver<S>>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // One that comes while all are taken is closed.
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            continue;
        };
        let giver = Arc::clone(&giver);
        let Ok(stream) = stream.into_std() else {
            continue;
        };
        spawn_blocking(move || {
            if let Err(error) = giver.serve(stream) {
                tracing::warn!(%error, "a copy for another replica was not sent");
            }
            drop(slot);
        });
    }
}

/// Gives copies.
struct Giver<S> {
    storage: S,
    key: [u8; KEY_BYTES],
    /// Held while there is a copy under way.
    copying: Mutex<()>,
}

impl<S: Storage> Giver<S> {
    fn serve(&self, mut stream: TcpStream) -> Result<(), CopyError> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(CONNECT_TIME))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let mut request = [0; REQUEST_BYTES];
        stream.read_exact(&mut request)?;
        let (magic, rest) = request.split_at(MAGIC.len());
        let (until, key) = rest.split_at(size_of::<u64>());
        if magic != MAGIC || !bool::from(key.ct_eq(&self.key[..])) {
            return Ok(refuse(&mut stream, "the key is not that of this replica")?);
        }
        let Ok(_copying) = self.copying.try_lock() else {
            return Ok(refuse(&mut stream, "another copy is under way")?);
        };
        let until = u64::from_le_bytes(until.try_into().expect("it has that length"));
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
                    refuse(&mut answer.stream, &error.to_string())?;
                }
                Err(error)
            }
        }
    }
}

fn refuse(stream: &mut TcpStream, reason: &str) -> io::Result<()> {
    stream.write_all(&[&[REFUSED], reason.as_bytes()].concat())
}

/// An answer with a copy, which begins with its first bytes.
struct Answer {
    stream: TcpStream,
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
/// this place.
///
/// # Errors
/// The place cannot be reached, the replica gives none, the stream is damaged, or the directory
/// takes nothing.
pub(super) fn fetch<S: Storage>(
    place: &str,
    until: u64,
    (storage, options): (&S, &Options),
) -> Result<Copied, CopyError> {
    let stream = |text: &str| CopyError::Stream(text.to_owned());
    let (address, key) = place
        .split_once(' ')
        .ok_or_else(|| stream("the place has no key"))?;
    let key = read_key(key).ok_or_else(|| stream("the place has no key of 64 digits"))?;
    let mut addresses = address.to_socket_addrs()?;
    let address = addresses
        .next()
        .ok_or_else(|| stream("its name has no address"))?;
    let mut connection = TcpStream::connect_timeout(&address, CONNECT_TIME)?;
    connection.set_read_timeout(Some(SILENCE_MAX))?;
    connection.set_write_timeout(Some(SILENCE_MAX))?;
    connection.write_all(&[&MAGIC[..], &until.to_le_bytes(), &key].concat())?;
    let mut input = BufReader::with_capacity(256 << 10, connection);
    let mut answer = [REFUSED];
    input.read_exact(&mut answer)?;
    if answer != [COPY] {
        let mut reason = Vec::new();
        input.take(REASON_BYTES_MAX).read_to_end(&mut reason)?;
        let reason = String::from_utf8_lossy(&reason);
        return Err(CopyError::Stream(format!("it was refused: {reason}")));
    }
    receive(storage, &mut input, options)
}

fn read_key(text: &str) -> Option<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    let digits = text.as_bytes().chunks(2);
    if text.len() != 2 * KEY_BYTES {
        return None;
    }
    for (byte, digits) in key.iter_mut().zip(digits) {
        *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(key)
}
