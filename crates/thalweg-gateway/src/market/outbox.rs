//! The texts and events that a connection has to write: bounded, whatever its client takes.
//!
//! Rules.
//! 1. Texts, and events that may not be left out, wait in order. Where they have more than
//!    [`WAITING_BYTES_MAX`] bytes together, the connection is cut. Where the texts of a
//!    [`Recipient`] have more than [`TEXT_BYTES_OF_ONE`], or those of all [`TEXT_BYTES_TOTAL`] and
//!    its own more than an equal part of that, a connection is cut when its own have
//!    [`TEXT_BYTES_FREE`]. So recipients that read nothing take nothing from others, and the sum
//!    exceeds the total by the logarithm of their number at most, beside what is free. Events are
//!    shared: they are as many as the slowest follower has.
//! 2. Of a stream whose events replace each other, the newest one waits: at the place of the first
//!    one that was not written. It is dropped when the stream is left; places of streams that were
//!    left are at most as many as the others.
//! 3. Nothing waits for the client: every method returns at once, but those of the connection's own
//!    task.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use thalweg_exchange::UserId;
use thalweg_server::network;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::stream::StreamEvent;
use crate::lock;
use crate::time_unit::TimeUnit;

/// Bytes that wait at most.
pub(crate) const WAITING_BYTES_MAX: usize = 4 << 20;

/// Bytes of texts, and of responses by HTTP, that wait for all connections together.
pub(crate) const TEXT_BYTES_TOTAL: usize = 256 << 20;
/// Bytes of them for all connections of a recipient.
pub(crate) const TEXT_BYTES_OF_ONE: usize = TEXT_BYTES_TOTAL / 8;
/// Bytes of texts that may wait for a connection whatever waits for others.
pub(crate) const TEXT_BYTES_FREE: usize = 64 << 10;

/// The client that texts and responses count for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Recipient {
    /// An address (of IPv6, a network of 2^64), for connections that have shown no key.
    Address(IpAddr),
    /// The user of the key that a connection has shown.
    User(UserId),
}

impl Recipient {
    /// Returns the user, or the address where no key was shown.
    pub(crate) fn new(address: IpAddr, user: Option<UserId>) -> Self {
        user.map_or_else(|| Self::Address(network(address)), Self::User)
    }
}

/// Bytes of texts and responses that wait.
#[derive(Debug, Default)]
struct TextBytes {
    total: usize,
    /// The bytes of each recipient that has some.
    by_recipient: HashMap<Recipient, usize>,
}

/// Counts of everything that waits, for all connections together.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    bytes: Mutex<TextBytes>,
    /// Texts, pings, events, and streams whose newest event waits.
    waiting: AtomicUsize,
}

impl Budget {
    /// Adds bytes of a recipient. Returns the reason to refuse them, where it has more than its
    /// bound, or the total is above its own and the recipient has more than an equal part of it.
    pub(crate) fn add(&self, to: Recipient, bytes: usize) -> Option<&'static str> {
        let mut counts = lock(&self.bytes);
        counts.total += bytes;
        let is_full = counts.total > TEXT_BYTES_TOTAL;
        let own = counts.by_recipient.entry(to).or_default();
        *own += bytes;
        let own = *own;
        if own > TEXT_BYTES_OF_ONE {
            return Some("too slow: too much waits to be read by its address or user");
        }
        let is_above = is_full && own > TEXT_BYTES_TOTAL / counts.by_recipient.len();
        is_above.then_some("too slow: too much waits to be read by all")
    }

    pub(crate) fn remove(&self, to: Recipient, bytes: usize) {
        let mut counts = lock(&self.bytes);
        counts.total -= bytes;
        if let Some(own) = counts.by_recipient.get_mut(&to) {
            *own -= bytes;
            if *own == 0 {
                counts.by_recipient.remove(&to);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.bytes).total
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
    Ping,
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
    /// Places of streams that were left.
    left: usize,
    /// Why the connection is cut.
    cut: Option<&'static str>,
    /// The user of the last key that was shown.
    user: Option<UserId>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    cut: Notify,
    budget: Arc<Budget>,
    /// The client's address, which its texts count for until it shows a key.
    address: IpAddr,
}

impl Outbox {
    pub(super) fn new(budget: Arc<Budget>, address: IpAddr) -> Self {
        Self {
            state: Mutex::default(),
            filled: Notify::new(),
            cut: Notify::new(),
            budget,
            address,
        }
    }

    fn recipient(&self, state: &State) -> Recipient {
        Recipient::new(self.address, state.user)
    }

    /// Counts texts for the user of a key that was shown: those that wait, and those to come.
    pub(crate) fn show(&self, user: UserId) {
        let mut state = lock(&self.state);
        let before = self.recipient(&state);
        state.user = Some(user);
        let bytes = state.text_bytes;
        if before != Recipient::User(user) && bytes > 0 {
            self.budget.remove(before, bytes);
            self.budget.add(Recipient::User(user), bytes);
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
            let full = self.budget.add(self.recipient(&state), bytes);
            if let Some(why) = full.filter(|_| state.text_bytes > TEXT_BYTES_FREE) {
                drop(state);
                return self.cut_with(why);
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
        let text_bytes = std::mem::take(&mut state.text_bytes);
        self.budget.remove(self.recipient(&state), text_bytes);
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
    pub(crate) fn ping(&self) {
        self.push(Item::Ping, size_of::<Waiting>());
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

    /// Drops the newest event of a stream that was left: no other comes.
    pub(crate) fn leave(&self, stream: &Subscription) {
        let mut state = lock(&self.state);
        if state.cut.is_some() || lock(&stream.newest).take().is_none() {
            return;
        }
        state.left += 1;
        if 2 * state.left > state.waiting.len() {
            state.waiting.retain(|one| match one {
                Waiting::Newest(to) => lock(&to.newest).is_some(),
                Waiting::Item(..) => true,
            });
            self.budget.leave(std::mem::take(&mut state.left));
        }
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
                        self.budget.remove(self.recipient(&state), bytes);
                    }
                    return Some(item);
                }
                Waiting::Newest(to) => {
                    let newest = lock(&to.newest).take();
                    if let Some(event) = newest {
                        return Some(Item::Event(to, event));
                    }
                    state.left -= 1;
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
        let to = Recipient::new(self.address, state.user);
        self.budget.remove(to, state.text_bytes);
        self.budget.leave(state.waiting.len());
    }
}

#[cfg(test)]
impl Default for Outbox {
    fn default() -> Self {
        Self::new(Arc::default(), [127, 0, 0, 1].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_connections_have_a_bound() {
        let budget = Arc::<Budget>::default();
        let total = || budget.bytes();
        // Each address has two at most: less than its own bound.
        let outbox = |of: u8| Outbox::new(Arc::clone(&budget), [192, 0, 2, of / 2].into());
        let [greedy, modest] = [100, 102].map(outbox);
        let others: Vec<Outbox> = (0..70).map(outbox).collect();
        modest.text("x".repeat(1_000));
        for outbox in &others {
            outbox.text("x".repeat(3 << 20));
        }
        greedy.text("x".repeat(1 << 20));
        assert!(total() < TEXT_BYTES_TOTAL);
        // Their addresses have more than their part of the total.
        let more: Vec<Outbox> = (0..20).map(outbox).collect();
        for outbox in &more {
            outbox.text("x".repeat(3 << 20));
        }
        // It is full: those that have much are cut with their next text.
        assert!(total() <= TEXT_BYTES_TOTAL + 20 * TEXT_BYTES_FREE);
        let last = more.last().expect("there are some");
        assert_eq!(last.waiting(), (0, 0));
        let why = lock(&last.state).cut.expect("it is cut");
        assert!(why.ends_with("by all"), "{why}");
        modest.text("y");
        assert_eq!(modest.waiting().0, 2);
        assert!(modest.take().is_some());
        drop((greedy, modest, others, more));
        assert_eq!((total(), budget.waiting()), (0, 0));
    }

    #[test]
    fn an_address_that_reads_nothing_fills_its_own_share_alone() {
        let budget = Arc::<Budget>::default();
        let outbox = |of: u8| Outbox::new(Arc::clone(&budget), [192, 0, 2, of].into());
        // They have more than the bound of all.
        let idle: Vec<Outbox> = (0..70).map(|_| outbox(1)).collect();
        for one in &idle {
            for _ in 0..40 {
                one.text("x".repeat(100_000));
            }
        }
        let other = outbox(2);
        other.text("x".repeat(100_000));
        assert_eq!(other.waiting().0, 1);
        let why = lock(&idle[69].state).cut.expect("it is cut");
        assert!(why.ends_with("by its address or user"), "{why}");
        let free = idle.len() * TEXT_BYTES_FREE;
        assert!(budget.bytes() <= TEXT_BYTES_OF_ONE + free + 200_000);
        drop((idle, other));
        assert!(lock(&budget.bytes).by_recipient.is_empty());
    }

    #[test]
    fn texts_count_for_the_user_of_a_key_once_it_is_shown() {
        let budget = Arc::<Budget>::default();
        let outbox = || Outbox::new(Arc::clone(&budget), [192, 0, 2, 1].into());
        let text = Utf8Bytes::from("x".repeat(100_000));
        let (signed, nameless) = (outbox(), (0..9).map(|_| outbox()).collect::<Vec<_>>());
        signed.text(text.clone());
        signed.show(UserId(7));
        for one in &nameless {
            (0..40).for_each(|_| one.text(text.clone()));
        }
        assert_eq!(nameless[8].waiting(), (0, 0));
        signed.text(text.clone());
        assert_eq!(signed.waiting().0, 2);
        assert!(signed.take().is_some());
        drop((signed, nameless));
        assert!(lock(&budget.bytes).by_recipient.is_empty());
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn addresses_that_fill_the_bound_of_all_leave_another_its_part() {
        let budget = Arc::<Budget>::default();
        let outbox = |of: u8| Outbox::new(Arc::clone(&budget), [192, 0, 2, of].into());
        let text = Utf8Bytes::from("x".repeat(100_000));
        let fill = |outbox: &Outbox| (0..30).for_each(|_| outbox.text(text.clone()));
        let idle: Vec<Outbox> = (0..90).map(|of| outbox(of % 9)).collect();
        idle.iter().for_each(fill);
        let other = outbox(10);
        fill(&other);
        assert_eq!(other.waiting().0, 30);
        assert!(budget.bytes() > TEXT_BYTES_TOTAL);
        // One that has more than its part is cut with its next text.
        idle[0].text(text.clone());
        assert_eq!(idle[0].waiting(), (0, 0));
    }
}
