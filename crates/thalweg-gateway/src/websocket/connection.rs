//! What all WebSocket connections have in common: writing, pings, the end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, Utf8Bytes};

use crate::market::{Item, Outbox};

/// The time between two pings.
const PING: Duration = Duration::from_secs(20);
/// A connection without a pong for this long is closed.
const PONG: Duration = Duration::from_secs(60);
/// Pings whose pongs still count.
const PINGS_KEPT: usize = 4;
/// How long a client may take for the frame that closes its connection.
const CLOSING: Duration = Duration::from_secs(2);
/// How long a client may take for what waits for it when the server stops.
const DRAINING: Duration = Duration::from_millis(500);
/// Frames of a client that are taken a second, and at once: pings, pongs, and messages to streams.
const FRAMES_PER_S: f64 = 5.0;
const FRAMES_BURST: f64 = 100.0;

/// A transport.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

pub(super) type Sink<S> = SplitSink<WebSocketStream<S>, Message>;
pub(super) type Stream<S> = futures_util::stream::SplitStream<WebSocketStream<S>>;

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// The client is gone, or has closed it.
    Gone,
    /// The server closes it, with a code and a reason.
    With(CloseCode, &'static str),
}

impl Close {
    pub(super) const POLICY: fn(&'static str) -> Self = |why| Self::With(CloseCode::Policy, why);

    fn of(error: &Error) -> Self {
        match error {
            Error::Capacity(_) => Self::With(CloseCode::Size, "a message is too long"),
            Error::Utf8(_) => Self::With(CloseCode::Invalid, "a text is not UTF-8"),
            Error::Protocol(_) => Self::With(CloseCode::Protocol, "a frame is wrong"),
            _ => Self::Gone,
        }
    }
}

#[derive(Debug)]
struct Counts {
    next_ping: u64,
    /// Pings that may be answered.
    sent: VecDeque<u64>,
    answered: Instant,
    /// Frames that may come now, and when that was so.
    tokens: f64,
    counted: Instant,
}

/// The pings and the frames of a connection.
#[derive(Debug)]
pub(super) struct Frames(Mutex<Counts>);

impl Frames {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Counts {
            next_ping: 1,
            sent: VecDeque::new(),
            answered: now,
            tokens: FRAMES_BURST,
            counted: now,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a frame.
    ///
    /// # Errors
    /// There were too many.
    pub(super) fn count(&self) -> Result<(), Close> {
        let mut counts = self.lock();
        let now = Instant::now();
        let passed = now.duration_since(counts.counted).as_secs_f64();
        counts.counted = now;
        counts.tokens = (counts.tokens + passed * FRAMES_PER_S).min(FRAMES_BURST) - 1.0;
        match counts.tokens < 0.0 {
            true => Err(Close::POLICY("too many messages")),
            false => Ok(()),
        }
    }

    fn pong(&self, payload: &[u8]) {
        let mut counts = self.lock();
        let number = str::from_utf8(payload)
            .ok()
            .and_then(|text| text.parse().ok());
        if number.is_some_and(|number: u64| counts.sent.contains(&number)) {
            counts.answered = Instant::now();
        }
    }

    /// Returns the number of the next ping, unless the last pong is too long ago.
    fn ping(&self) -> Option<u64> {
        let mut counts = self.lock();
        if counts.answered.elapsed() >= PONG {
            return None;
        }
        let number = counts.next_ping;
        counts.next_ping += 1;
        counts.sent.push_back(number);
        if counts.sent.len() > PINGS_KEPT {
            counts.sent.pop_front();
        }
        Some(number)
    }
}

/// Returns the next text of a client. Safe to cancel.
///
/// # Errors
/// The connection ends.
pub(super) async fn next_text<S: Io>(
    stream: &mut Stream<S>,
    frames: &Frames,
) -> Result<Utf8Bytes, Close> {
    loop {
        let message = match stream.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(Close::of(&error)),
            None => return Err(Close::Gone),
        };
        match message {
            Message::Text(text) => return Ok(text),
            Message::Pong(payload) => {
                frames.count()?;
                frames.pong(&payload);
            }
            // It is answered by the library.
            Message::Ping(_) => frames.count()?,
            Message::Binary(_) => {
                let why = "binary messages are not supported";
                return Err(Close::With(CloseCode::Unsupported, why));
            }
            Message::Close(_) | Message::Frame(_) => return Err(Close::Gone),
        }
    }
}

/// Writes what the outbox has, until that fails.
async fn write<S: Io>(
    sink: &mut Sink<S>,
    outbox: &Outbox,
    render: impl Fn(Item) -> Utf8Bytes,
) -> Close {
    loop {
        let Some(item) = outbox.take() else {
            if let Err(error) = sink.flush().await {
                return Close::of(&error);
            }
            outbox.filled().await;
            continue;
        };
        let message = match item {
            Item::Ping(number) => Message::Ping(Bytes::from(number.to_string())),
            item => Message::Text(render(item)),
        };
        if let Err(error) = sink.feed(message).await {
            return Close::of(&error);
        }
    }
}

async fn keep_alive(outbox: &Outbox, frames: &Frames) -> Close {
    let mut pings = tokio::time::interval_at(Instant::now() + PING, PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pings.tick().await;
        match frames.ping() {
            Some(number) => outbox.ping(number),
            None => return Close::POLICY("no pong"),
        }
    }
}

async fn drained(
    mut draining: watch::Receiver<bool>,
    outbox: &Outbox,
    notice: impl Fn() -> String,
) -> Close {
    if draining.wait_for(|is| *is).await.is_ok() {
        outbox.text(notice());
        sleep(DRAINING).await;
    }
    Close::With(CloseCode::Away, "the server stops")
}

/// Runs a connection until it ends: `read` reads and answers; `notice` is what is sent when the
/// server is about to stop. Returns why it ended.
pub(super) async fn run<S: Io>(
    mut sink: Sink<S>,
    outbox: &Outbox,
    frames: &Frames,
    draining: watch::Receiver<bool>,
    read: impl Future<Output = Close>,
    render: impl Fn(Item) -> Utf8Bytes,
    notice: impl Fn() -> String,
) -> Close {
    let close = tokio::select! {
        biased;
        why = outbox.cut() => Close::POLICY(why),
        close = drained(draining, outbox, notice) => close,
        close = keep_alive(outbox, frames) => close,
        close = write(&mut sink, outbox, render) => close,
        close = read => close,
    };
    let frame = match &close {
        Close::Gone => None,
        Close::With(code, reason) => Some(CloseFrame {
            code: *code,
            reason: Utf8Bytes::from_static(reason),
        }),
    };
    // The client may be gone, or take nothing.
    let closed = timeout(CLOSING, async {
        sink.send(Message::Close(frame)).await?;
        sink.close().await
    });
    let _ = closed.await;
    close
}
