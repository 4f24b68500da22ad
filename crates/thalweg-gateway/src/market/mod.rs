//! Market data for clients: books, trades, candles, tickers, kept from the drop copy.
//!
//! One thread applies what the drop copy has, through `&self`; requests and streams read. Nothing
//! here has a clock or a socket. All numbers are integers of the engine; [`Units`] writes them as
//! decimals.
//!
//! *Streams.* What is followed is in [`Topics`]; events are made of that only. The thread that
//! applies notes trades and which symbols changed, and goes on. One task ([`run`](Market::run))
//! makes the other events, and puts all into the [`Outbox`] of each follower: at once, each tenth
//! of a second, each second. Where it is late, changes of a book come together.
//!
//! *Bounds.* A symbol has the levels of its book, [`Trades::KEPT`] trades of each sort, and
//! [`Candles::KEPT`] candles of each interval: 4.4 MB beside the levels. While a stream of its book
//! is followed, it has the prices that changed since the last event as well. At most
//! [`EVENTS_MAX`](entry::EVENTS_MAX) events of a symbol wait for the task; beyond that they are
//! lost, and its followers are cut.

mod candle;
mod depth;
mod entry;
mod interval;
mod outbox;
mod stream;
mod symbol_market;
#[cfg(test)]
mod tests;
mod ticker;
mod topics;
mod trade;
mod units;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use thalweg_exchange::market::{Body, LevelDelta, Message, Snapshot};
use thalweg_exchange::{Command, SymbolId};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

pub(crate) use self::candle::{Candle, Candles, Range};
use self::depth::DepthSnapshot;
pub(crate) use self::depth::{BestLevels, Level};
use self::entry::Entry;
pub(crate) use self::interval::{DAY, HOUR, Interval, MINUTE};
#[cfg(test)]
pub(crate) use self::outbox::TEXT_BYTES_TOTAL;
pub(crate) use self::outbox::{
    Budget, Item, Outbox, Recipient, SharedEvent, Subscription, TEXT_BYTES_FREE,
};
use self::stream::StreamEvent;
pub(crate) use self::stream::{Kind, Label};
pub(crate) use self::symbol_market::{AVERAGE_MINUTES, SymbolMarket};
use self::topics::{Progress, Topics};
pub(crate) use self::trade::{AggregateTrade, Trade, Trades};
pub(crate) use self::units::{Units, percent};
use crate::lock;
use crate::time_unit::now_us;

/// The time between two ticks.
const TICK: Duration = Duration::from_millis(100);
/// Ticks in a second.
const TICKS: u64 = 10;

/// The changes of the command that ends next.
#[derive(Debug, Default)]
struct Pending {
    messages: Vec<Message>,
    trades: Vec<Trade>,
    books: Vec<Snapshot>,
    /// Symbols whose books have not come since a restart: those that do not come are gone.
    unseen: BTreeSet<SymbolId>,
    /// All books have come.
    is_restarted: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Market {
    entries: RwLock<BTreeMap<SymbolId, Arc<Mutex<Entry>>>>,
    pending: Mutex<Pending>,
    /// The number of the last command, and 1.
    number: AtomicU64,
    ticks: AtomicU64,
    /// Symbols that changed since the last [flush](Self::flush).
    changed: Mutex<BTreeSet<SymbolId>>,
    has_changed: Notify,
    topics: Topics,
    budget: Arc<Budget>,
    /// The time of the oldest trades that may be on their way to the market.
    unsettled: Mutex<Option<i64>>,
}

impl Market {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the time of trades that were read now. No candle that it is in is complete before
    /// they [are applied](Self::settle).
    pub(crate) fn begin(&self, clock: impl FnOnce() -> i64) -> i64 {
        let mut unsettled = lock(&self.unsettled);
        // A tick has read its clock before this, or finds this.
        let time_us = clock();
        unsettled.get_or_insert(time_us);
        time_us
    }

    /// All trades that were read are applied, but for those whose command goes on.
    pub(crate) fn settle(&self) {
        if lock(&self.pending).trades.is_empty() {
            *lock(&self.unsettled) = None;
        }
    }

    fn entry(&self, symbol: SymbolId) -> Option<Arc<Mutex<Entry>>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(&symbol).cloned()
    }

    fn entry_or_new(&self, symbol: SymbolId) -> Arc<Mutex<Entry>> {
        if let Some(entry) = self.entry(symbol) {
            return entry;
        }
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        // ORDERING: Relaxed; a number alone.
        let number = self.number.load(Ordering::Relaxed);
        let entry = entries.entry(symbol);
        let new = || Arc::new(Mutex::new(Entry::new(symbol, number)));
        Arc::clone(entry.or_insert_with(new))
    }

    /// All books follow, in place of those of before.
    pub(crate) fn restart(&self) {
        let mut pending = lock(&self.pending);
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        pending.messages.clear();
        pending.books.clear();
        pending.unseen = entries.keys().copied().collect();
        pending.is_restarted = false;
    }

    /// All books have followed: the others are gone when the command ends.
    pub(crate) fn restarted(&self) {
        lock(&self.pending).is_restarted = true;
    }

    /// Takes a book, from which messages go on.
    pub(crate) fn book(&self, book: &Snapshot) {
        let mut pending = lock(&self.pending);
        pending.unseen.remove(&book.symbol);
        pending.books.push(book.clone());
    }

    /// Takes a message of the command that [ends](Self::end) next.
    pub(crate) fn message(&self, message: &Message) {
        // Trades come with their ids.
        if !matches!(message.body, Body::Trade { .. } | Body::Best(_)) {
            lock(&self.pending).messages.push(*message);
        }
    }

    /// Takes a trade: of the log, before all others, or of the command that ends next.
    pub(crate) fn trade(&self, trade: &Trade) {
        // ORDERING: Relaxed; a number alone.
        match self.number.load(Ordering::Relaxed) {
            // The log may have any number of trades: they do not wait for the first command.
            0 => lock(&self.entry_or_new(trade.symbol)).trades(trade.time_us, &[*trade]),
            _ => lock(&self.pending).trades.push(*trade),
        }
    }

    /// Returns the symbols that have a market.
    pub(crate) fn symbols(&self) -> Vec<SymbolId> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.keys().copied().collect()
    }

    /// Takes trades and candles of a symbol that were kept, in place of those of before.
    pub(crate) fn restore(&self, symbol: SymbolId, trades: Trades, candles: Candles) {
        let entry = self.entry_or_new(symbol);
        let mut entry = lock(&entry);
        (entry.market.trades, entry.market.candles) = (trades, candles);
    }

    /// Takes an administrator's command, which succeeded.
    pub(crate) fn admin(&self, command: &Command) {
        if let Command::AddSymbols(specs) = command {
            for spec in specs.iter() {
                self.entry_or_new(spec.id);
                // Its scales may have changed: what follows it must ask for them.
                self.topics.cut(spec.id, "the symbol was added again");
            }
        }
    }

    /// The command with this number is complete, and in the log. What it changed may be published:
    /// `u` of its depth events is its number and 1.
    pub(crate) fn end(&self, number: u64, time_us: i64) {
        let number = number + 1;
        // ORDERING: Relaxed; a number alone.
        self.number.store(number, Ordering::Relaxed);
        let mut pending = std::mem::take(&mut *lock(&self.pending));
        let mut changed = self.apply(number, time_us, &mut pending);
        if !changed.is_empty() {
            lock(&self.changed).append(&mut changed);
            self.has_changed.notify_one();
        }
        pending.messages.clear();
        pending.trades.clear();
        pending.books.clear();
        // Their memory is used again; only this thread fills it.
        *lock(&self.pending) = pending;
    }

    /// Applies the changes of a command. Returns the symbols that changed.
    fn apply(&self, number: u64, time_us: i64, pending: &mut Pending) -> BTreeSet<SymbolId> {
        let mut changed = BTreeSet::new();
        for own in pending
            .trades
            .chunk_by(|one, next| one.symbol == next.symbol)
        {
            let symbol = own[0].symbol;
            lock(&self.entry_or_new(symbol)).trades(time_us, own);
            changed.insert(symbol);
        }
        let gone = match std::mem::take(&mut pending.is_restarted) {
            true => std::mem::take(&mut pending.unseen),
            false => BTreeSet::new(),
        };
        for symbol in gone {
            lock(&self.entry_or_new(symbol))
                .market
                .depth
                .replace(number, &[], &[]);
            changed.insert(symbol);
        }
        for book in &pending.books {
            let [bids, asks] = [&book.bids, &book.asks].map(|side| {
                let levels = side.iter().map(|level| (level.price, level.volume));
                levels.collect::<Vec<_>>()
            });
            let entry = self.entry_or_new(book.symbol);
            lock(&entry).market.depth.replace(number, &bids, &asks);
            changed.insert(book.symbol);
        }
        for own in pending
            .messages
            .chunk_by(|one, next| one.symbol == next.symbol)
        {
            let symbol = own[0].symbol;
            let entry = self.entry_or_new(symbol);
            let depth = &mut lock(&entry).market.depth;
            for message in own {
                match message.body {
                    Body::Level(LevelDelta {
                        side,
                        price,
                        volume,
                        ..
                    }) => depth.set(number, side, price, volume),
                    Body::Cleared => depth.replace(number, &[], &[]),
                    Body::Trade { .. } | Body::Best(_) => {}
                }
            }
            changed.insert(symbol);
        }
        changed
    }

    /// Returns the events that are sent at once; `time_us` is now.
    fn flush(&self, time_us: i64) -> Vec<StreamEvent> {
        let changed = std::mem::take(&mut *lock(&self.changed));
        let entries = changed.into_iter().filter_map(|symbol| self.entry(symbol));
        self.events_of(entries, |entry| entry.push_immediate(time_us))
    }

    /// Returns the events that are sent each tenth of a second, and each second; `time_us` is now.
    fn tick(&self, time_us: i64) -> Vec<StreamEvent> {
        let settled_us = lock(&self.unsettled).unwrap_or(time_us).min(time_us);
        // ORDERING: Relaxed; a counter.
        let ticks = self.ticks.fetch_add(1, Ordering::Relaxed);
        let is_second = ticks.is_multiple_of(TICKS);
        // Without the lock of all entries: followers are cut under that of the streams, which one
        // that leaves holds while it looks up its entry.
        let entries = self.symbols().into_iter().filter_map(|id| self.entry(id));
        self.events_of(entries, |entry| {
            entry.tick((time_us, settled_us), is_second)
        })
    }

    fn events_of(
        &self,
        entries: impl Iterator<Item = Arc<Mutex<Entry>>>,
        make: impl Fn(&mut Entry),
    ) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        for entry in entries {
            let mut entry = lock(&entry);
            make(&mut entry);
            events.append(&mut entry.events);
            let lost = entry.take_lost().then_some(entry.symbol);
            drop(entry);
            if let Some(symbol) = lost {
                self.topics.cut(symbol, "events were lost");
            }
        }
        events
    }

    /// Publishes events when there are some, for ever. Only one task may do so: it is what keeps
    /// those of a stream in order.
    pub(crate) async fn run(&self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let events = tokio::select! {
                _ = ticks.tick() => self.tick(now_us()),
                () = self.has_changed.notified() => self.flush(now_us()),
            };
            let mut progress = Progress::default();
            while !self.topics.publish(&events, &mut progress) {
                // The connections write meanwhile.
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Returns what counts the bytes that wait for all connections.
    pub(crate) const fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Returns the outbox of a new connection of an address.
    pub(crate) fn outbox(&self, address: IpAddr) -> Arc<Outbox> {
        Arc::new(Outbox::new(Arc::clone(&self.budget), address))
    }

    /// Has a connection follow a stream. Returns what to give to [`leave`](Self::leave).
    pub(crate) fn follow(
        &self,
        (symbol, kind): (SymbolId, Kind),
        label: Label,
        outbox: &Arc<Outbox>,
        subscription: &Arc<Subscription>,
    ) -> u64 {
        let entry = self.entry_or_new(symbol);
        self.topics
            .follow((symbol, kind), outbox, subscription, || {
                lock(&entry).watch(kind, label);
            })
    }

    /// Ends it.
    pub(crate) fn leave(&self, (symbol, kind): (SymbolId, Kind), id: u64) {
        self.topics.leave((symbol, kind), id, || {
            if let Some(entry) = self.entry(symbol) {
                lock(&entry).unwatch(kind);
            }
        });
    }

    /// Returns how many subscriptions of streams there are.
    pub(crate) fn followers(&self) -> usize {
        self.topics.counts().1
    }

    /// Returns how many texts and events wait for connections.
    pub(crate) fn waiting(&self) -> usize {
        self.budget.waiting()
    }

    /// Returns how many streams are followed, and by how many subscriptions together.
    #[cfg(test)]
    fn followed(&self) -> (usize, usize) {
        self.topics.counts()
    }

    /// Returns the best levels of a book. `time_us` is now.
    ///
    /// Changes that wait for the streams' next events are reported before, at most once a tick: so
    /// the event that comes next has the next number.
    pub(crate) fn depth(&self, symbol: SymbolId, limit: usize, time_us: i64) -> DepthSnapshot {
        let entry = self.entry_or_new(symbol);
        let mut entry = lock(&entry);
        entry.flush_depth(time_us);
        entry.market.depth.snapshot(limit)
    }

    /// Reads the market of a symbol.
    pub(crate) fn read<R>(&self, symbol: SymbolId, read: impl FnOnce(&SymbolMarket) -> R) -> R {
        let entry = self.entry_or_new(symbol);
        let entry = lock(&entry);
        read(&entry.market)
    }
}
