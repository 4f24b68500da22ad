//! The texts and events that a connection has to write: bounded, whatever its client takes.
//!
//! Rules.
//! 1. Texts, and events that may not be left out, wait in order. Where they have more than
//!    [`WAITING_BYTES_MAX`] bytes together, the connection is cut. Where the texts of all
//!    connections have more than [`TEXT_BYTES_TOTAL`], a connection is cut when its own have
//!    [`TEXT_BYTES_FREE`]. Events are shared: they are as many as the slowest follower has.
//! 2. Of a stream whose events replace each other, the newest one waits: at the place of the first
//!    one that was not written.
//! 3. Nothing waits for the client: every method returns at once, but those of the connection's own
//!    task.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::stream::StreamEvent;
use crate::lock;
use crate::time_unit::TimeUnit;

/// Bytes that wait at most.
pub(crate) const WAITING_BYTES_MAX: usize = 4 << 20;

/// Bytes of texts, and of responses by HTTP, that wait for all connections together.
pub(crate) const TEXT_BYTES_TOTAL: usize = 256 << 20;
/// Bytes of texts that may wait for a connection whatever waits for others.
pub(crate) const TEXT_BYTES_FREE: usize = 64 << 10;

/// Counts of everything that waits, for all connections together.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Bytes of texts and responses.
    bytes: AtomicUsize,
    /// Texts, pings, events, and streams whose newest event waits.
    waiting: AtomicUsize,
}

impl Budget {
    /// Adds bytes, and returns whether the total is above its bound.
    pub(crate) fn add(&self, bytes: usize) -> bool {
        // ORDERING: Relaxed; a count alone.
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > TEXT_BYTES_TOTAL
    }

    pub(crate) fn remove(&self, bytes: usize) {
        // ORDERING: Relaxed; a count alone.
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        // ORDERING: Relaxed; a count alone.
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn waiting(&self) -> usize {
        // ORDERING: Relaxed; a count alone.
        self.waiting.load(Ordering::Relaxed)
    }

    fn wait(&self) {
        // ORDERING: Relaxed; a count alone.
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&self, count: usize) {
        // ORDERING: Relaxed; a count alone.
        self.waiting.fetch_sub(count, Ordering::Relaxed);
    }
}

/// An event, and its texts once a connection has needed them.
#[derive(Debug)]
pub(crate) struct SharedEvent {
    /// `None` where the event was made as a text.
    event: Option<StreamEvent>,
    texts: [OnceLock<Utf8Bytes>; 2],
}

impl SharedEvent {
    pub(super) const fn new(event: StreamEvent) -> Self {
        Self {
            event: Some(event),
            texts: [OnceLock::new(), OnceLock::new()],
        }
    }

    /// Returns an event of no symbol, which a newer one replaces.
    pub(crate) fn of_text(text: String) -> Self {
        let text = Utf8Bytes::from(text);
        Self {
            event: None,
            texts: [OnceLock::from(text.clone()), OnceLock::from(text)],
        }
    }

    #[cfg(test)]
    pub(super) fn of_time(&self) -> Option<i64> {
        self.event.as_ref().map(|event| event.time_us)
    }

    pub(crate) fn text(&self, time_unit: TimeUnit) -> &Utf8Bytes {
        let made = || self.event.as_ref().map(|event| event.text(time_unit));
        self.texts[time_unit as usize].get_or_init(|| made().unwrap_or_default().into())
    }
}

/// A stream that a connection follows.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// The name, as the client gave it.
    pub(crate) name: String,
    /// Whether an event is written as the only element of an array.
    pub(crate) is_array: bool,
    newest: Mutex<Option<Arc<SharedEvent>>>,
}

impl Subscription {
    pub(crate) fn new(name: &str, is_array: bool) -> Self {
        Self {
            name: name.to_owned(),
            is_array,
            newest: Mutex::new(None),
        }
    }
}

/// A text, event or ping that is to be written.
#[derive(Debug)]
pub(crate) enum Item {
    /// A text as it is.
    Text(Utf8Bytes),
    /// An event of a stream.
    Event(Arc<Subscription>, Arc<SharedEvent>),
    /// A ping.
    Ping(u64),
}

#[derive(Debug)]
enum Waiting {
    Item(Item, usize),
    Newest(Arc<Subscription>),
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// The bytes of texts among them.
    text_bytes: usize,
    /// Why the connection is cut.
    cut: Option<&'static str>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    cut: Notify,
    budget: Arc<Budget>,
}

impl Outbox {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            state: Mutex::default(),
            filled: Notify::new(),
            cut: Notify::new(),
            budget,
        }
    }

    fn push(&self, item: Item, bytes: usize) {
        let mut state = lock(&self.state);
        if state.cut.is_some() {
            return;
        }
        state.bytes += bytes;
        if state.bytes > WAITING_BYTES_MAX {
            drop(state);
            return self.cut_with("too slow: more than 4 MiB wait to be read");
        }
        if matches!(item, Item::Text(_)) {
            state.text_bytes += bytes;
            if self.budget.add(bytes) && state.text_bytes > TEXT_BYTES_FREE {
                drop(state);
                return self.cut_with("too slow: too much waits to be read by all");
            }
        }
        state.waiting.push_back(Waiting::Item(item, bytes));
        self.budget.wait();
        drop(state);
        self.filled.notify_one();
    }

    /// Has the connection cut; what waits is dropped.
    pub(crate) fn cut_with(&self, why: &'static str) {
        let mut state = lock(&self.state);
        self.budget.leave(state.waiting.len());
        state.waiting.clear();
        state.bytes = 0;
        self.budget.remove(std::mem::take(&mut state.text_bytes));
        state.cut.get_or_insert(why);
        drop(state);
        self.cut.notify_one();
    }

    /// Appends a text.
    pub(crate) fn text(&self, text: impl Into<Utf8Bytes>) {
        let text = text.into();
        let bytes = text.len() + size_of::<Waiting>();
        self.push(Item::Text(text), bytes);
    }

    /// Appends a ping.
    pub(crate) fn ping(&self, number: u64) {
        self.push(Item::Ping(number), size_of::<Waiting>());
    }

    /// Appends an event of a stream, or puts it in the place of the one before.
    pub(crate) fn event(&self, to: &Arc<Subscription>, event: &Arc<SharedEvent>) {
        let kept = event.event.as_ref().filter(|one| !one.kind.is_conflated());
        if let Some(kept) = kept {
            let item = Item::Event(Arc::clone(to), Arc::clone(event));
            return self.push(item, kept.weight());
        }
        let mut state = lock(&self.state);
        if state.cut.is_some() {
            return;
        }
        // Under the lock of the queue: so the stream is in it once.
        if lock(&to.newest).replace(Arc::clone(event)).is_none() {
            state.waiting.push_back(Waiting::Newest(Arc::clone(to)));
            self.budget.wait();
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Takes what is to be written next.
    pub(crate) fn take(&self) -> Option<Item> {
        let mut state = lock(&self.state);
        loop {
            let waiting = state.waiting.pop_front()?;
            self.budget.leave(1);
            match waiting {
                Waiting::Item(item, bytes) => {
                    state.bytes -= bytes;
                    if matches!(item, Item::Text(_)) {
                        state.text_bytes -= bytes;
                        self.budget.remove(bytes);
                    }
                    return Some(item);
                }
                Waiting::Newest(to) => {
                    let newest = lock(&to.newest).take();
                    if let Some(event) = newest {
                        return Some(Item::Event(to, event));
                    }
                }
            }
        }
    }

    /// Waits until there may be something to take. Only one task may wait.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Waits until the connection is to be cut, and returns why. Only one task may wait.
    pub(crate) async fn cut(&self) -> &'static str {
        loop {
            if let Some(why) = lock(&self.state).cut {
                return why;
            }
            self.cut.notified().await;
        }
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.waiting.len(), state.bytes)
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.budget.remove(state.text_bytes);
        self.budget.leave(state.waiting.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_connections_have_a_bound() {
        let budget = Arc::<Budget>::default();
        let total = || budget.bytes();
        let [greedy, modest] = [(); 2].map(|()| Outbox::new(Arc::clone(&budget)));
        let others: Vec<Outbox> = (0..70).map(|_| Outbox::new(Arc::clone(&budget))).collect();
        modest.text("x".repeat(1_000));
        for outbox in &others {
            outbox.text("x".repeat(3 << 20));
        }
        greedy.text("x".repeat(1 << 20));
        assert!(total() < TEXT_BYTES_TOTAL);
        let more: Vec<Outbox> = (0..20).map(|_| Outbox::new(Arc::clone(&budget))).collect();
        for outbox in &more {
            outbox.text("x".repeat(3 << 20));
        }
        // It is full: those that have much are cut with their next text.
        assert!(total() <= TEXT_BYTES_TOTAL + 20 * TEXT_BYTES_FREE);
        let last = more.last().expect("there are some");
        assert_eq!(last.waiting(), (0, 0));
        modest.text("y");
        assert_eq!(modest.waiting().0, 2);
        assert!(modest.take().is_some());
        drop((greedy, modest, others, more));
        assert_eq!((total(), budget.waiting()), (0, 0));
    }
}
