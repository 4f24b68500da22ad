//! Market data for any number of readers, from one thread that must not wait.
//!
//! ```text
//! publisher: FeedWriter ──(bytes, bounded)──▶ run(): Books ──(chunks, a ring)──▶ Subscriptions
//! ```
//!
//! From the first subscription on, the publisher makes messages of outcomes and leaves them,
//! encoded, in the inlet. Where the disk may keep outcomes back, it follows the books before that,
//! so that who subscribes while the disk is full sees them as they are durable. The feed's task
//! takes all that is there, follows it with a replica of each book, and sends it on in chunks that
//! all readers share. A reader that is further behind than the ring is long starts again from
//! snapshots of the replicas, and gets a message with what it missed. So do all where the
//! [epoch](Feed::epoch) changes; the numbers go on then. While a reader is behind by an eighth of
//! the ring, chunks are sent when they are full, or after a millisecond.
//!
//! *Bounds.* The inlet holds [`INLET_BYTES_MAX`]: beyond that the writer drops messages and puts
//! snapshots in their place as soon as there is room, and every reader is conflated. The ring holds
//! a number of chunks. A reader holds one write, and references to shared snapshots.

mod books;
mod chunk;
mod feed_writer;
mod subscription;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mio::Waker;
use thalweg_exchange::State;
use thalweg_exchange::market::{Channels, Epoch};
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use crate::counters::{raise, read};
use crate::lock;

use self::books::Books;
use self::chunk::{Chunk, Pieces};
pub(crate) use self::feed_writer::FeedWriter;
pub(crate) use self::subscription::{Requested, Subscription};

/// Bytes that wait for the feed's task.
pub(crate) const INLET_BYTES_MAX: usize = 16 << 20;
/// How often the task follows the books while no session reads them: a session that subscribes
/// waits no longer.
const UNREAD: Duration = Duration::from_millis(5);
/// How long the task waits for a chunk to be full while a reader is behind: short ones would else
/// push out of the ring what it has not read.
const GATHER: Duration = Duration::from_millis(1);
/// A chunk ends with the command that makes it so long, or longer.
pub(crate) const CHUNK_BYTES: usize = 1 << 16;

#[derive(Debug, Default)]
struct Inlet {
    bytes: Vec<u8>,
    /// From here on the bytes begin with snapshots: in place of messages that were dropped, or of a
    /// new epoch.
    restart_at: Option<usize>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Feed {
    epoch: AtomicU64,
    pub(crate) channels: Channels,
    inlet: Mutex<Inlet>,
    filled: Notify,
    books: Mutex<Books>,
    /// The publisher's end, which the exchange's thread has too; `None` before market data begin,
    /// and after an outcome was missing.
    pub(crate) writer: Mutex<Option<FeedWriter>>,
    /// Whether a session has subscribed, ever.
    is_wanted: AtomicBool,
    /// Wakes the thread that writes to the readers.
    waker: OnceLock<Arc<Waker>>,
    /// Chunks that were sent to readers.
    chunks: AtomicU64,
    /// How often a reader was sent a report of missed messages.
    pub(crate) conflations: AtomicU64,
}

impl Feed {
    /// Returns the epoch of its messages.
    pub(crate) fn epoch(&self) -> Epoch {
        // ORDERING: Relaxed, pairs with the store in begin_epoch(); a number alone.
        Epoch(self.epoch.load(Ordering::Relaxed))
    }

    /// Begins an epoch, for welcomes and the writer.
    pub(crate) fn begin_epoch(&self, epoch: Epoch) {
        // ORDERING: Relaxed, pairs with the load in epoch(); a number alone.
        self.epoch.store(epoch.0, Ordering::Relaxed);
        if let Some(writer) = &mut *lock(&self.writer) {
            writer.begin_epoch(self, epoch);
        }
    }

    /// `levels` a side are in a snapshot; `ring_chunks` wait for readers.
    pub(crate) fn new(epoch: Epoch, channels: Channels, levels: usize, ring_chunks: usize) -> Self {
        Self {
            epoch: AtomicU64::new(epoch.0),
            channels,
            inlet: Mutex::default(),
            filled: Notify::new(),
            books: Mutex::new(Books::new(channels, levels, ring_chunks)),
            writer: Mutex::default(),
            is_wanted: AtomicBool::new(false),
            waker: OnceLock::new(),
            chunks: AtomicU64::new(0),
            conflations: AtomicU64::new(0),
        }
    }

    /// Leaves bytes for the task, if there is room, or nothing waits; those that begin a restart in
    /// any case.
    fn leave(&self, bytes: &mut Vec<u8>, is_restart: bool) -> bool {
        let mut inlet = lock(&self.inlet);
        let waiting = inlet.bytes.len();
        if waiting > 0 && waiting + bytes.len() > INLET_BYTES_MAX && !is_restart {
            return false;
        }
        if is_restart {
            inlet.restart_at.get_or_insert(waiting);
        }
        if waiting == 0 {
            std::mem::swap(&mut inlet.bytes, bytes);
        } else {
            inlet.bytes.extend_from_slice(bytes);
        }
        bytes.clear();
        drop(inlet);
        self.filled.notify_one();
        true
    }

    /// Takes what is there and hands it to the readers. True if there was something.
    pub(crate) fn turn(&self, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        let restart_at = {
            let mut inlet = lock(&self.inlet);
            std::mem::swap(&mut inlet.bytes, bytes);
            inlet.restart_at.take()
        };
        let (before, after) = bytes.split_at(restart_at.unwrap_or(bytes.len()));
        let mut readers = 0;
        for (part, mut is_restart) in [(before, false), (after, true)] {
            for piece in Pieces::of(part, CHUNK_BYTES) {
                let mut books = lock(&self.books);
                books.follow(piece, std::mem::take(&mut is_restart));
                readers = books.readers();
                drop(books);
                raise(&self.chunks, 1);
            }
        }
        if readers > 0
            && let Some(waker) = self.waker.get()
            && let Err(error) = waker.wake()
        {
            tracing::error!(%error, "the readers of market data could not be woken");
        }
        !bytes.is_empty()
    }

    /// Returns how many chunks were sent to readers: where there are more, they are woken.
    pub(crate) fn chunks(&self) -> u64 {
        read(&self.chunks)
    }

    /// Begins with market data: what the publisher takes from now on follows this state.
    pub(crate) fn start(&self, state: &State) {
        *lock(&self.writer) = Some(FeedWriter::new(state, self));
        self.hand_over();
    }

    /// Has the writer hand over what it makes, from the first subscription on.
    pub(crate) fn want(&self) {
        // ORDERING: Relaxed, pairs with the load in is_wanted(): the same thread.
        if !self.is_wanted.swap(true, Ordering::Relaxed) {
            self.hand_over();
        }
    }

    /// Hands over what the writer has made.
    pub(crate) fn hand_over(&self) {
        if let Some(writer) = &mut *lock(&self.writer) {
            writer.hand_over(self);
        }
    }

    fn is_wanted(&self) -> bool {
        // ORDERING: Relaxed, pairs with the store in want(): the same thread.
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Has the thread woken that writes to the readers, when there is something for them.
    pub(crate) fn set_waker(&self, waker: Arc<Waker>) {
        let _ = self.waker.set(waker);
    }

    /// The feed's task: it ends with the runtime.
    pub(crate) async fn run(&self) {
        let mut bytes = Vec::new();
        let mut turned = Instant::now();
        loop {
            self.filled.notified().await;
            if lock(&self.books).readers() == 0 {
                tokio::time::sleep(UNREAD).await;
            } else if lock(&self.books).is_reader_behind() {
                self.gather(turned + GATHER).await;
            }
            if self.turn(&mut bytes) {
                turned = Instant::now();
                // One turn after another would keep the readers from theirs.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits until a chunk is full, or until this time.
    async fn gather(&self, until: Instant) {
        while Instant::now() < until && lock(&self.inlet).bytes.len() < CHUNK_BYTES {
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = self.filled.notified() => {}
            }
        }
    }

    /// Returns how many bytes wait for the task, and how many readers there are.
    pub(crate) fn load(&self) -> (usize, usize) {
        (lock(&self.inlet).bytes.len(), lock(&self.books).readers())
    }
}

/// A reader's end of the ring.
type ChunkReceiver = broadcast::Receiver<Chunk>;

#[cfg(test)]
mod tests;
