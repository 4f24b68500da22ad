//! The common parts of all WebSocket connections: writing, pings, the end.

use std::collections::VecDeque;
use std::sync::Mutex;
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

use crate::lock;
use crate::market::{Item, Outbox};
use crate::state::State;

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
    /// Pings that were written and may be answered.
    written: VecDeque<u64>,
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
            written: VecDeque::new(),
            answered: now,
            tokens: FRAMES_BURST,
            counted: now,
        }))
    }

    /// Counts a frame.
    ///
    /// # Errors
    /// There were too many.
    pub(super) fn count(&self) -> Result<(), Close> {
        let mut counts = lock(&self.0);
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
        let mut counts = lock(&self.0);
        let number = str::from_utf8(payload)
            .ok()
            .and_then(|text| text.parse().ok());
        let number =
            number.and_then(|number: u64| counts.written.iter().position(|n| *n == number));
        if let Some(at) = number {
            // Once: while nothing can be written, no later ping takes its place.
            counts.written.drain(..=at);
            counts.answered = Instant::now();
        }
    }

    /// Returns the number of a ping that is written now: a client that has not read it does not
    /// know it.
    fn ping(&self) -> u64 {
        let number = getrandom::u64().unwrap_or_default();
        let mut counts = lock(&self.0);
        counts.written.push_back(number);
        if counts.written.len() > PINGS_KEPT {
            counts.written.pop_front();
        }
        number
    }

    /// Returns whether the last pong is not too long ago.
    fn is_answered(&self) -> bool {
        lock(&self.0).answered.elapsed() < PONG
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
    frames: &Frames,
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
            Item::Ping => Message::Ping(Bytes::from(frames.ping().to_string())),
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
        if !frames.is_answered() {
            return Close::POLICY("no pong");
        }
        outbox.ping();
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

/// Counts a connection that the gateway has closed.
pub(super) fn count_cut(state: &State, close: &Close) {
    if let Close::With(_, why) = close {
        state.figures.cut(why);
    }
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
        close = write(&mut sink, outbox, frames, render) => close,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// Returns a client, and what becomes of its connection.
    async fn connect(
        outbox: Arc<Outbox>,
        draining: watch::Receiver<bool>,
    ) -> (WebSocketStream<DuplexStream>, JoinHandle<Close>) {
        let (client, server) = duplex(1 << 12);
        let server = WebSocketStream::from_raw_socket(server, Role::Server, None).await;
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        let task = tokio::spawn(async move {
            let (sink, mut stream) = server.split();
            let frames = Frames::new();
            let read = async {
                loop {
                    if let Err(close) = next_text(&mut stream, &frames).await {
                        return close;
                    }
                }
            };
            let render = |item| match item {
                Item::Text(text) => text,
                Item::Ping | Item::Event(..) => Utf8Bytes::from_static(""),
            };
            run(sink, &outbox, &frames, draining, read, render, || {
                "stops".to_owned()
            })
            .await
        });
        (client, task)
    }

    fn never() -> watch::Receiver<bool> {
        let (sender, receiver) = watch::channel(false);
        // A sender that is gone would count as draining.
        std::mem::forget(sender);
        receiver
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_without_pongs_is_closed_after_a_minute() {
        let begun = Instant::now();
        // It never reads, so it answers no ping; pongs that nothing asked for do not count, and
        // pings cannot be guessed.
        let (mut client, mut task) = connect(Arc::default(), never()).await;
        let close = loop {
            tokio::select! {
                close = &mut task => break close.expect("no panic"),
                () = sleep(Duration::from_secs(7)) => {
                    for number in 0..10 {
                        let _ = client.send(Message::Pong(number.to_string().into())).await;
                    }
                    assert!(begun.elapsed() < 2 * PONG, "it is open");
                }
            }
        };
        assert_eq!(close, Close::POLICY("no pong"));
        assert!(begun.elapsed() >= PONG);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_read_one_ping_and_repeats_its_pong_is_closed() {
        let begun = Instant::now();
        let outbox = Arc::<Outbox>::default();
        let (mut client, mut task) = connect(Arc::clone(&outbox), never()).await;
        let Some(Ok(Message::Ping(number))) = client.next().await else {
            panic!("a ping");
        };
        // It reads nothing more, so no other ping is written.
        for _ in 0..100 {
            outbox.text("x".repeat(10_000));
        }
        let close = loop {
            tokio::select! {
                close = &mut task => break close.expect("no panic"),
                () = sleep(Duration::from_secs(7)) => {
                    let _ = client.send(Message::Pong(number.clone())).await;
                    assert!(begun.elapsed() < 3 * PONG, "it is open");
                }
            }
        };
        assert_eq!(close, Close::POLICY("no pong"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_answers_pings_stays() {
        let (mut client, task) = connect(Arc::default(), never()).await;
        for _ in 1..100 {
            let message = client
                .next()
                .await
                .expect("it is open")
                .expect("it is open");
            assert!(message.is_ping(), "{message:?}");
        }
        assert!(!task.is_finished());
        client.close(None).await.expect("it is open");
        assert_eq!(task.await.expect("no panic"), Close::Gone);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut_with_a_reason() {
        let outbox = Arc::<Outbox>::default();
        let (mut client, task) = connect(Arc::clone(&outbox), never()).await;
        let mut sent = 0;
        while !task.is_finished() {
            outbox.text("x".repeat(1_000));
            sent += 1;
            tokio::task::yield_now().await;
            if sent > 10_000 {
                break;
            }
        }
        // The frame that says why waits for room for a while.
        while let Some(Ok(message)) = client.next().await {
            if let Message::Close(Some(frame)) = message {
                assert_eq!(frame.reason, "too slow: more than 4 MiB wait to be read");
            }
        }
        let close = task.await.expect("no panic");
        assert_eq!(
            close,
            Close::POLICY("too slow: more than 4 MiB wait to be read")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_written_before_a_server_stops() {
        let (sender, receiver) = watch::channel(false);
        let outbox = Arc::<Outbox>::default();
        let (mut client, task) = connect(Arc::clone(&outbox), receiver).await;
        outbox.text("last");
        sender.send_replace(true);
        let mut texts = Vec::new();
        while let Some(Ok(message)) = client.next().await {
            if let Message::Text(text) = message {
                texts.push(text.to_string());
            }
        }
        assert_eq!(texts, ["last", "stops"]);
        let close = task.await.expect("no panic");
        assert_eq!(close, Close::With(CloseCode::Away, "the server stops"));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_counted_by_the_second() {
        let frames = Frames::new();
        for _ in 0..100 {
            assert_eq!(frames.count(), Ok(()));
        }
        assert_eq!(frames.count(), Err(Close::POLICY("too many messages")));
        sleep(Duration::from_secs(1)).await;
        for _ in 0..4 {
            assert_eq!(frames.count(), Ok(()));
        }
        assert!(frames.count().is_err());
    }
}
