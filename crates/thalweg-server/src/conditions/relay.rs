//! A relay between a client and its session, on which bytes take their time.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Delay, Delays, Random};

/// Bytes that wait in one direction: no more are read meanwhile.
const WAITING_MAX: usize = 1 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Bytes that a chunk counts beside its own, so that many small ones are bounded too.
const CHUNK_COST: usize = 64;
/// How long a client may stay open once its session has ended, and all was written.
const PARTING: Duration = Duration::from_secs(1);
/// How long a client may take nothing of what is due.
const STALLED: Duration = Duration::from_secs(60);

/// The latency of a connection, which may change while it is open.
#[derive(Debug)]
pub struct Line {
    delays: Mutex<Delays>,
    seed: u64,
    /// The number of the line, so that no two draw the same.
    number: u64,
}

impl Line {
    /// Makes a line with these delays, drawn from this seed.
    #[must_use]
    pub fn new(delays: Delays, seed: u64) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            delays: Mutex::new(delays),
            seed,
            // ORDERING: Relaxed; a counter.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Delays> {
        self.delays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has bytes that come from now on take these delays.
    pub fn change(&self, delays: Delays) {
        *self.lock() = delays;
    }

    fn inbound(&self) -> Delay {
        self.lock().inbound
    }

    fn outbound(&self) -> Delay {
        self.lock().outbound
    }
}

/// Puts a line between a client and the socket that is returned. `first` are bytes of the client
/// that were read before; `see` gets what comes from the client before its delay is drawn.
///
/// # Errors
/// The system has no sockets.
pub fn relay<S>(
    client: S,
    line: Arc<Line>,
    first: Vec<u8>,
    see: impl FnMut(&[u8]) + Send + 'static,
) -> io::Result<UnixStream>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (server, own) = UnixStream::pair()?;
    tokio::spawn(run(client, own, line, first, see));
    Ok(server)
}

async fn run<S: AsyncRead + AsyncWrite>(
    client: S,
    session: UnixStream,
    line: Arc<Line>,
    first: Vec<u8>,
    mut see: impl FnMut(&[u8]),
) {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_session, to_session) = session.into_split();
    let seed = |side| Random::new([line.seed, line.number, side]);
    let mut random = (seed(0), seed(1));
    let inward = pump(from_client, to_session, first, None, |bytes| {
        see(bytes);
        line.inbound().draw(&mut random.0)
    });
    let outward = pump(from_session, to_client, Vec::new(), Some(STALLED), |_| {
        line.outbound().draw(&mut random.1)
    });
    tokio::pin!(inward, outward);
    // An error is that one side is gone: the other one is closed when this returns.
    tokio::select! {
        _ = &mut outward => {
            let _ = timeout(PARTING, inward).await;
        }
        // A client that sends no more still gets the rest of its answers.
        _ = &mut inward => {
            let _ = outward.await;
        }
    }
}

/// Copies to the end what is read, each chunk when it is due, in the order in which it was read.
/// Ends where nothing is taken for as long as `stalled`.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    first: Vec<u8>,
    stalled: Option<Duration>,
    mut draw: impl FnMut(&[u8]) -> Duration,
) -> io::Result<()> {
    let mut waiting = VecDeque::new();
    let (mut cost, mut last_due) = (0, Instant::now());
    let mut push = |waiting: &mut VecDeque<(Instant, Vec<u8>)>, chunk: Vec<u8>| {
        last_due = last_due.max(Instant::now() + draw(&chunk));
        waiting.push_back((last_due, chunk));
    };
    if !first.is_empty() {
        cost += first.len() + CHUNK_COST;
        push(&mut waiting, first);
    }
    let mut buffer = vec![0; READ_BYTES];
    let mut is_open = true;
    while is_open || !waiting.is_empty() {
        let due = waiting.front().map(|(due, _)| *due);
        tokio::select! {
            biased;
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                let Some((_, chunk)) = waiting.pop_front() else {
                    continue;
                };
                cost -= chunk.len() + CHUNK_COST;
                write(&mut to, &chunk, stalled).await?;
            }
            // A client that was reset sends no more, and what it sent before is delivered.
            read = from.read(&mut buffer), if is_open && cost < WAITING_MAX => {
                let count = read.unwrap_or(0);
                is_open = count > 0;
                if is_open {
                    cost += count + CHUNK_COST;
                    push(&mut waiting, buffer[..count].to_vec());
                }
            }
        }
    }
    to.shutdown().await
}

async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    stalled: Option<Duration>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = to.write(bytes);
        let count = match stalled {
            Some(limit) => timeout(limit, written).await??,
            None => written.await?,
        };
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[count..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn line(inbound: Delay, outbound: Delay) -> Arc<Line> {
        Arc::new(Line::new(Delays { inbound, outbound }, 1))
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_take_their_time_and_keep_their_order() {
        let (mut near, far) = duplex(1 << 20);
        let (mut out, into) = duplex(1 << 20);
        let mut random = Random::new([1, 2, 3]);
        let (mean, deviation) = (20 * MS, 10 * MS);
        let delay = Delay::Normal { mean, deviation };
        let pumping = tokio::spawn(async move {
            pump(far, into, vec![0], None, |_| delay.draw(&mut random)).await
        });
        for number in 1..=200_u8 {
            near.write_all(&[number]).await.expect("it is open");
            tokio::time::sleep(MS).await;
        }
        drop(near);
        let mut received = Vec::new();
        out.read_to_end(&mut received).await.expect("it is open");
        assert_eq!(received, (0..=200).collect::<Vec<u8>>());
        pumping.await.expect("no panic").expect("both are open");
    }

    #[tokio::test(start_paused = true)]
    async fn no_byte_comes_before_its_delay() {
        let (mut near, far) = duplex(1 << 10);
        let (mut out, into) = duplex(1 << 10);
        tokio::spawn(pump(far, into, Vec::new(), None, |_| 50 * MS));
        for _ in 0..3 {
            let begun = Instant::now();
            near.write_all(b"x").await.expect("it is open");
            out.read_exact(&mut [0]).await.expect("it is open");
            assert!(begun.elapsed() >= 50 * MS);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded() {
        let (mut near, far) = duplex(1 << 10);
        let (_out, into) = duplex(1 << 10);
        tokio::spawn(pump(far, into, Vec::new(), None, |_| 3_600_000 * MS));
        let mut sent = 0;
        let chunk = [0; 1 << 10];
        while timeout(1_000 * MS, near.write_all(&chunk)).await.is_ok() {
            sent += chunk.len();
            assert!(sent <= WAITING_MAX + READ_BYTES, "{sent} bytes are taken");
        }
        assert!(sent > WAITING_MAX / 2, "only {sent} bytes are taken");
    }

    #[tokio::test]
    async fn a_relay_delays_both_directions_and_passes_the_end_on() {
        let (mut client, far) = duplex(1 << 10);
        let line = line(Delay::Fixed(20 * MS), Delay::Fixed(30 * MS));
        let (seen, mut sees) = tokio::sync::mpsc::unbounded_channel();
        let changed = Arc::clone(&line);
        let see = move |bytes: &[u8]| {
            let _ = seen.send(bytes.to_vec());
            // It counts for the bytes that are seen.
            let delays = *changed.lock();
            changed.change(Delays {
                inbound: Delay::Fixed(40 * MS),
                ..delays
            });
        };
        let begun = Instant::now();
        let mut session = relay(far, line, b"first".to_vec(), see).expect("there are sockets");
        let mut bytes = [0; 5];
        session.read_exact(&mut bytes).await.expect("it is open");
        assert_eq!(&bytes, b"first");
        assert!(begun.elapsed() >= 40 * MS);
        assert_eq!(sees.recv().await.as_deref(), Some(&b"first"[..]));
        let begun = Instant::now();
        session.write_all(b"answer").await.expect("it is open");
        drop(session);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.expect("it is open");
        assert_eq!(answer, b"answer");
        assert!(begun.elapsed() >= 30 * MS);
    }
}
