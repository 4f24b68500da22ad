//! A relay between a client and its session, on which bytes take their time.
//!
//! *Rules.*
//! 1. Bytes leave a direction in the order in which they came, none before it is due; an end comes
//!    behind all bytes. What waits in a direction is bounded: it is not read on meanwhile.
//! 2. A client that is gone loses what it would have got. What it sent before is delivered.
//! 3. A session that has ended takes no more: what its client still sends is discarded, so that the
//!    system does not reset the connection before the client has read the end.
//! 4. From [`DelayLines::flush`] on, everything is due at once. A server that stops flushes its
//!    lines, and waits until what its sessions sent is delivered.
//! 5. A relay ends at once when its owner says so, and keeps what the owner gave it until it ends.
//! 6. Once a session has ended, all that it sent is read, and its client has one time for all:
//!    until the last of it is due, and [`CLOSE_GRACE`]. So no client keeps what the owner gave by
//!    reading slowly.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadHalf};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{Delay, Delays, Random};
use crate::lock;

/// Bytes that wait in one direction of a client that has shown a key: no more are read meanwhile.
pub(crate) const WAITING_MAX: usize = 1 << 20;
/// Bytes that wait in one direction of another client.
const WAITING_UNKNOWN_MAX: usize = 64 << 10;
/// Bytes that are read at once.
pub(crate) const READ_BYTES: usize = 16 << 10;
/// Bytes that a chunk counts beside its own, so that many small ones are bounded too.
const CHUNK_COST: usize = 64;
/// How long a client may stay open once its session has ended, and all is due.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// How often a session is looked at whose bytes are not read.
const LOOK: Duration = Duration::from_millis(250);
/// How long a client may take nothing of what is due.
const STALLED: Duration = Duration::from_secs(60);

/// The delay lines of a server's connections.
#[derive(Debug, Default)]
pub struct DelayLines {
    next: AtomicU64,
    /// Each relay has a receiver until it has ended.
    is_flushed: watch::Sender<bool>,
}

impl DelayLines {
    /// Makes a line with these delays, drawn from this seed, of a client that has shown no key.
    pub fn line(&self, delays: Delays, seed: u64) -> Arc<DelayLine> {
        Arc::new(DelayLine {
            delays: Mutex::new(delays),
            seed,
            // ORDERING: Relaxed; a counter.
            number: self.next.fetch_add(1, Ordering::Relaxed),
            waiting_max: Arc::new(WAITING_UNKNOWN_MAX.into()),
            is_flushed: self.is_flushed.clone(),
        })
    }

    /// Has all that waits be delivered at once, and what comes from now on.
    pub fn flush(&self) {
        self.is_flushed.send_replace(true);
    }

    /// Waits until the sessions of all lines have ended, and what they sent is delivered.
    pub async fn ended(&self) {
        self.is_flushed.closed().await;
    }
}

/// The latency of a connection, which may change while it is open.
#[derive(Debug)]
pub struct DelayLine {
    delays: Mutex<Delays>,
    seed: u64,
    /// The number of the line, so that no two draw the same.
    number: u64,
    /// Bytes that may wait in each direction.
    waiting_max: Arc<AtomicUsize>,
    is_flushed: watch::Sender<bool>,
}

impl DelayLine {
    /// Has bytes that come from now on take these delays.
    pub fn change(&self, delays: Delays) {
        *lock(&self.delays) = delays;
    }

    /// Lets more bytes wait: the client has shown a key.
    pub fn trust(&self) {
        // ORDERING: Relaxed; a limit that may be seen late.
        self.waiting_max.store(WAITING_MAX, Ordering::Relaxed);
    }

    fn inbound(&self) -> Delay {
        lock(&self.delays).inbound
    }

    fn outbound(&self) -> Delay {
        lock(&self.delays).outbound
    }
}

/// Puts a line between a client and the socket that is returned. `first` are bytes of the client
/// that were read before; `see` gets what comes from the client before its delay is drawn. The
/// relay ends with `until`, which it keeps otherwise.
///
/// # Errors
/// The system has no sockets.
pub fn relay<S>(
    client: S,
    line: Arc<DelayLine>,
    first: Vec<u8>,
    see: impl FnMut(&[u8]) + Send + 'static,
    until: impl Future<Output = ()> + Send + 'static,
) -> io::Result<UnixStream>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (server, own) = UnixStream::pair()?;
    let is_flushed = line.is_flushed.subscribe();
    let run = run(client, own, (line, is_flushed), first, see);
    tokio::spawn(async move {
        tokio::select! {
            () = run => {}
            () = until => {}
        }
    });
    Ok(server)
}

async fn run<S: AsyncRead + AsyncWrite>(
    client: S,
    session: UnixStream,
    (line, is_flushed): (Arc<DelayLine>, watch::Receiver<bool>),
    first: Vec<u8>,
    mut see: impl FnMut(&[u8]),
) {
    let (mut from_client, to_client) = tokio::io::split(client);
    let (from_session, to_session) = session.into_split();
    let seed = |side| Random::new([line.seed, line.number, side]);
    let mut random = (seed(0), seed(1));
    let waiting_max = || Arc::clone(&line.waiting_max);
    let mut inward = Pump::new(
        (is_flushed.clone(), waiting_max()),
        None,
        |bytes: &[u8]| {
            see(bytes);
            line.inbound().draw(&mut random.0)
        },
    );
    let outward = Pump::new((is_flushed, waiting_max()), Some(STALLED), |_: &[u8]| {
        line.outbound().draw(&mut random.1)
    });
    if !first.is_empty() {
        inward.push(first);
    }
    let inward = async {
        if inward.run(&mut from_client, to_session).await.is_err() {
            // Rule 3.
            let _ = tokio::io::copy(&mut from_client, &mut tokio::io::sink()).await;
        }
    };
    let outward = outward.run(from_session, to_client);
    tokio::pin!(inward, outward);
    tokio::select! {
        ended = &mut outward => match ended {
            Ok(deadline) => {
                // Flushed bytes were due before.
                let deadline = deadline.min(Instant::now() + CLOSE_GRACE);
                let _ = timeout_at(deadline, inward).await;
            }
            // The client is there, but takes nothing, or too slowly.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            // Rule 2.
            Err(_) => inward.await,
        },
        // A client that sends no more still gets the rest of its answers.
        () = &mut inward => {
            let _ = outward.await;
        }
    }
}

/// The side that a direction reads.
trait Source: AsyncRead + Unpin {
    /// Waits until nothing is added to what can be read.
    fn ended(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

impl<S: AsyncRead> Source for &mut ReadHalf<S> {}

impl Source for OwnedReadHalf {
    async fn ended(&self) {
        // It is also readable.
        while (self.ready(Interest::READABLE).await).is_ok_and(|ready| !ready.is_read_closed()) {
            sleep(LOOK).await;
        }
    }
}

/// One direction of a relay.
struct Pump<D> {
    /// Chunks, and when they are due.
    waiting: VecDeque<(Instant, Vec<u8>)>,
    /// Bytes of the first chunk that are written.
    written: usize,
    /// Bytes that wait, as they are counted.
    cost: usize,
    waiting_max: Arc<AtomicUsize>,
    last_due: Instant,
    is_flushed: watch::Receiver<bool>,
    /// How long the other side may take nothing; `None` where it may for ever.
    stalled: Option<Duration>,
    /// When something was written last.
    last_write: Instant,
    draw: D,
}

impl<D: FnMut(&[u8]) -> Duration> Pump<D> {
    fn new(
        (is_flushed, waiting_max): (watch::Receiver<bool>, Arc<AtomicUsize>),
        stalled: Option<Duration>,
        draw: D,
    ) -> Self {
        Self {
            waiting: VecDeque::new(),
            written: 0,
            cost: 0,
            waiting_max,
            last_due: Instant::now(),
            is_flushed,
            stalled,
            last_write: Instant::now(),
            draw,
        }
    }

    fn push(&mut self, chunk: Vec<u8>) {
        self.cost += chunk.len() + CHUNK_COST;
        self.last_due = self.last_due.max(Instant::now() + (self.draw)(&chunk));
        self.waiting.push_back((self.last_due, chunk));
    }

    /// Copies to the end what is read: each chunk when it is due, in the order of reading. Returns
    /// how long the other side may stay open.
    ///
    /// # Errors
    /// The other side is gone, takes nothing for too long, or not all in time once this one has
    /// ended.
    async fn run(
        mut self,
        mut from: impl Source,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<Instant> {
        let mut buffer = vec![0; READ_BYTES];
        // Rule 6: the system holds what is left, which is bounded.
        let mut is_ending = false;
        let mut deadline = None;
        while deadline.is_none() || !self.waiting.is_empty() {
            // ORDERING: Relaxed; a limit that may be seen late.
            let may_read = is_ending || self.cost < self.waiting_max.load(Ordering::Relaxed);
            tokio::select! {
                biased;
                written = self.write(&mut to, deadline), if !self.waiting.is_empty() => written?,
                read = next(&mut from, &mut buffer, may_read), if deadline.is_none() => match read {
                    None => is_ending = true,
                    Some(0) => deadline = Some(self.last_due.max(Instant::now()) + CLOSE_GRACE),
                    Some(count) => self.push(buffer[..count].to_vec()),
                },
            }
        }
        to.shutdown().await?;
        Ok(deadline.unwrap_or(self.last_due))
    }

    /// Writes some of the first chunk when it is due. Safe to cancel.
    async fn write(
        &mut self,
        to: &mut (impl AsyncWrite + Unpin),
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        let Some((due, chunk)) = self.waiting.front() else {
            return Ok(());
        };
        reached(*due, &mut self.is_flushed).await;
        let written = to.write(&chunk[self.written..]);
        let count = match self.stalled {
            None => written.await?,
            Some(stalled) => {
                let limit = self.last_write.max(*due) + stalled;
                timeout_at(deadline.unwrap_or(limit).min(limit), written).await??
            }
        };
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        (self.written, self.last_write) = (self.written + count, Instant::now());
        if self.written == chunk.len() {
            self.cost -= chunk.len() + CHUNK_COST;
            self.written = 0;
            self.waiting.pop_front();
        }
        Ok(())
    }
}

/// Reads, or waits for the end of what may not be read.
async fn next(from: &mut impl Source, buffer: &mut [u8], may_read: bool) -> Option<usize> {
    if may_read {
        // A client that was reset sends no more, and what it sent before is delivered.
        return Some(from.read(buffer).await.unwrap_or(0));
    }
    from.ended().await;
    None
}

/// Waits until a time, or until the lines are flushed.
async fn reached(due: Instant, is_flushed: &mut watch::Receiver<bool>) {
    // A timer would wait for the next millisecond.
    if due <= Instant::now() {
        return;
    }
    tokio::select! {
        () = sleep_until(due) => {}
        _ = is_flushed.wait_for(|is| *is) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::io::{DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LONGEST: Duration = Duration::from_secs(3_600);

    fn line(lines: &DelayLines, inbound: Duration, outbound: Duration) -> Arc<DelayLine> {
        let (inbound, outbound) = (Delay::Fixed(inbound), Delay::Fixed(outbound));
        lines.line(Delays { inbound, outbound }, 1)
    }

    /// A direction whose lines are never flushed.
    fn pump<D: FnMut(&[u8]) -> Duration>(draw: D) -> Pump<D> {
        let (sender, is_flushed) = watch::channel(false);
        std::mem::forget(sender);
        Pump::new((is_flushed, Arc::new(WAITING_MAX.into())), None, draw)
    }

    impl Source for DuplexStream {}

    #[tokio::test(start_paused = true)]
    async fn bytes_take_their_time_and_keep_their_order() {
        let (mut near, far) = duplex(1 << 20);
        let (mut out, into) = duplex(1 << 20);
        let mut random = Random::new([1, 2, 3]);
        let (mean, deviation) = (20 * MS, 10 * MS);
        let delay = Delay::Normal { mean, deviation };
        let mut pump = pump(move |_: &[u8]| delay.draw(&mut random));
        pump.push(vec![0]);
        let pumping = tokio::spawn(pump.run(far, into));
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
        tokio::spawn(pump(|_: &[u8]| 50 * MS).run(far, into));
        for _ in 0..3 {
            let begun = Instant::now();
            near.write_all(b"x").await.expect("it is open");
            out.read_exact(&mut [0]).await.expect("it is open");
            assert!(begun.elapsed() >= 50 * MS);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded() {
        for chunk in [1, 1 << 10] {
            let (mut near, far) = duplex(1 << 10);
            let (_out, into) = duplex(1 << 10);
            tokio::spawn(pump(|_: &[u8]| LONGEST).run(far, into));
            let mut sent = 0;
            let chunk = vec![0; chunk];
            // Each is read before the next one is written.
            while timeout(MS, near.write_all(&chunk)).await.is_ok() {
                tokio::time::sleep(MS).await;
                sent += chunk.len();
                assert!(sent <= WAITING_MAX + READ_BYTES, "{sent} bytes are taken");
            }
            // Small chunks count more than their bytes.
            let least = WAITING_MAX / (1 + CHUNK_COST / chunk.len());
            assert!(sent > least / 2, "only {sent} bytes are taken");
            assert!(sent <= least + READ_BYTES, "{sent} bytes in small chunks");
        }
    }

    #[tokio::test]
    async fn a_relay_delays_both_directions_and_passes_the_end_on() {
        let (mut client, far) = duplex(1 << 10);
        let lines = DelayLines::default();
        let line = line(&lines, 20 * MS, 30 * MS);
        let (seen, mut sees) = tokio::sync::mpsc::unbounded_channel();
        let changed = Arc::clone(&line);
        let see = move |bytes: &[u8]| {
            let _ = seen.send(bytes.to_vec());
            // It counts for the bytes that are seen.
            let delays = *lock(&changed.delays);
            changed.change(Delays {
                inbound: Delay::Fixed(40 * MS),
                ..delays
            });
        };
        let begun = Instant::now();
        let session = relay(far, line, b"first".to_vec(), see, pending());
        let mut session = session.expect("there are sockets");
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
        drop(client);
        lines.ended().await;
    }

    #[tokio::test]
    async fn lines_that_are_flushed_deliver_what_waits_and_the_end_behind_it() {
        let lines = DelayLines::default();
        let mut open = Vec::new();
        for number in 0..3_u8 {
            let (client, far) = duplex(1 << 10);
            let line = line(&lines, LONGEST, LONGEST);
            let session = relay(far, line, vec![number], |_| {}, pending());
            let mut session = session.expect("there are sockets");
            session.write_all(&[number, 1]).await.expect("it is open");
            open.push((client, session));
        }
        tokio::time::sleep(10 * MS).await;
        lines.flush();
        for (number, (mut client, mut session)) in open.into_iter().enumerate() {
            let mut command = [9];
            session.read_exact(&mut command).await.expect("it is open");
            assert_eq!(usize::from(command[0]), number);
            // Later bytes do not wait either.
            session.write_all(b"bye").await.expect("it is open");
            drop(session);
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.expect("it is open");
            assert_eq!(all, [&[number as u8, 1][..], b"bye"].concat());
        }
        lines.ended().await;
    }

    #[tokio::test]
    async fn what_a_client_sent_before_it_went_away_arrives() {
        let lines = DelayLines::default();
        let (client, far) = duplex(1 << 10);
        let line = line(&lines, 50 * MS, Duration::ZERO);
        let session = relay(far, line, b"order".to_vec(), |_| {}, pending());
        let mut session = session.expect("there are sockets");
        drop(client);
        // It cannot be delivered.
        session.write_all(b"market data").await.expect("it is open");
        let mut commands = Vec::new();
        let read = session.read_to_end(&mut commands).await;
        read.expect("it is open");
        assert_eq!(commands, b"order");
        lines.ended().await;
    }

    #[tokio::test]
    async fn a_client_that_sends_on_reads_why_its_session_has_ended() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there are ports");
        let address = listener.local_addr().expect("it is bound");
        let connecting = tokio::net::TcpStream::connect(address);
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        let (mut client, (far, _)) = (client.expect("a client"), accepted.expect("it came"));
        let lines = DelayLines::default();
        let line = line(&lines, MS, 100 * MS);
        let session = relay(far, line, Vec::new(), |_| {}, pending());
        let mut session = session.expect("there are sockets");
        session.write_all(b"bye").await.expect("it is open");
        drop(session);
        // The session takes none of it.
        for _ in 0..30 {
            client.write_all(&[0; 100]).await.expect("it is open");
            tokio::time::sleep(MS).await;
        }
        let mut text = Vec::new();
        client
            .read_to_end(&mut text)
            .await
            .expect("it is not reset");
        assert_eq!(text, b"bye");
    }

    #[tokio::test]
    async fn a_relay_ends_with_its_owner_and_keeps_what_it_was_given() {
        let lines = DelayLines::default();
        let (mut client, far) = duplex(1 << 10);
        let line = line(&lines, LONGEST, LONGEST);
        let (kept, token) = (Arc::new(()), Arc::new(tokio::sync::Notify::new()));
        let (held, ends) = (Arc::clone(&kept), Arc::clone(&token));
        let until = async move {
            let _held = held;
            ends.notified().await;
        };
        let session = relay(far, line, b"lost".to_vec(), |_| {}, until);
        drop(session.expect("there are sockets"));
        tokio::time::sleep(10 * MS).await;
        assert_eq!(Arc::strong_count(&kept), 2, "the end of the session waits");
        token.notify_one();
        let read = client.read(&mut [0]).await;
        assert_eq!(read.expect("it is closed"), 0);
        lines.ended().await;
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut() {
        let lines = DelayLines::default();
        let (_client, far) = duplex(16);
        let line = line(&lines, Duration::ZERO, Duration::ZERO);
        let session = relay(far, line, Vec::new(), |_| {}, pending());
        let mut session = session.expect("there are sockets");
        session.write_all(&[0; 100]).await.expect("it is open");
        let read = session.read(&mut [0]).await;
        assert_eq!(read.expect("it is closed"), 0);
        lines.ended().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_of_a_session_that_has_ended_is_cut() {
        // The session's bytes are read when it ends, or not yet.
        for sent in [100, WAITING_UNKNOWN_MAX + 50_000] {
            let lines = DelayLines::default();
            let (mut client, far) = duplex(16);
            let line = line(&lines, Duration::ZERO, 5 * MS);
            let session = relay(far, line, Vec::new(), |_| {}, pending());
            let mut session = session.expect("there are sockets");
            session.write_all(&vec![0; sent]).await.expect("it is open");
            drop(session);
            let mut received = 0;
            // It takes something in each of the times that a client may take nothing.
            while client.read(&mut [0; 10]).await.expect("it is open") > 0 {
                received += 1;
                assert!(
                    received < 10,
                    "it keeps its connection for {received} times"
                );
                tokio::time::sleep(STALLED / 2).await;
            }
            lines.ended().await;
        }
    }

    #[tokio::test]
    async fn what_a_session_sent_arrives_after_its_end_however_much_waits() {
        let lines = DelayLines::default();
        let (mut client, far) = duplex(1 << 20);
        let line = line(&lines, Duration::ZERO, 300 * MS);
        let session = relay(far, line, Vec::new(), |_| {}, pending());
        let mut session = session.expect("there are sockets");
        let sent = vec![7; WAITING_UNKNOWN_MAX + 50_000];
        session.write_all(&sent).await.expect("it is open");
        drop(session);
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.expect("it is open");
        assert_eq!(received.len(), sent.len());
    }

    #[tokio::test]
    async fn a_direction_without_delay_does_not_wait_for_a_timer() {
        let (_lines, mut is_flushed) = watch::channel(false);
        let is_at_once = tokio::select! {
            biased;
            () = reached(Instant::now(), &mut is_flushed) => true,
            () = std::future::ready(()) => false,
        };
        assert!(is_at_once);
    }

    #[tokio::test(start_paused = true)]
    async fn less_waits_of_a_client_without_a_key() {
        for limit in [WAITING_UNKNOWN_MAX, WAITING_MAX] {
            let lines = DelayLines::default();
            let line = line(&lines, LONGEST, LONGEST);
            if limit == WAITING_MAX {
                line.trust();
            }
            let (mut near, far) = duplex(1 << 10);
            let session = relay(far, line, Vec::new(), |_| {}, pending());
            let _session = session.expect("there are sockets");
            let mut sent = 0;
            while timeout(MS, near.write_all(&[0; 1 << 10])).await.is_ok() {
                tokio::time::sleep(MS).await;
                sent += 1 << 10;
                assert!(sent <= limit + READ_BYTES, "{sent} bytes are taken");
            }
            assert!(sent > limit / 2, "only {sent} bytes are taken");
        }
    }
}
