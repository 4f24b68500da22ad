//! From commands and their outcomes to messages, with their numbers.

use std::collections::BTreeMap;

use thiserror::Error;

use super::Channels;
use super::message::{
    BestPrices, Body, Epoch, FeedSequence, LevelDelta, Message, Quote, Snapshot, SymbolSequence,
};
use super::price_ladder::PriceLadder;
use crate::book::{Book, Level};
use crate::command::{Action, Command};
use crate::engine::index::SymbolIndex;
use crate::event::{Event, Events, LevelChange};
use crate::ids::SymbolId;
use crate::matching::Matching;
use crate::result_code::ResultCode;

/// The outcomes do not belong together: some are missing, or come from another state. The builder's
/// messages are meaningless from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OutcomeError {
    /// A command succeeded on a symbol that was never added, or was removed.
    #[error("market data is out of step: there is no symbol {symbol}")]
    UnknownSymbol {
        /// The symbol.
        symbol: SymbolId,
    },
    /// The events of a command that may have changed a book do not [list
    /// levels](Events::with_levels).
    #[error("market data can not be made of events without levels: see Events::with_levels")]
    NoLevels,
    /// The outcome is not that of the next command: some are missing, or it came before.
    #[error("market data is out of step: command {expected} expected, {got} came")]
    Number {
        /// The number of the next command.
        expected: u64,
        /// The number that came.
        got: u64,
    },
}

/// Makes market data from commands, results and events, which must be fed in order and once each.
///
/// Pure and deterministic: the same outcomes give the same messages. It never looks at the engine's
/// books, so it can run in the publish stage, on any thread: the events [list the
/// levels](Events::with_levels) that a command left, and it compares them with those before. It
/// keeps the levels (24 bytes each). It keeps the last numbers of removed symbols.
///
/// No allocation once it has seen the most levels and messages that it will see; but for symbols
/// that are added (again, too: after a removal or a reset). Cost per command: a binary search per
/// level that it changed; a level that comes or goes moves up to 64 others by 24 bytes each, near
/// the market fewer.
#[derive(Clone, Debug)]
pub struct Builder {
    writer: MessageWriter,
    /// The number of the last command.
    command: Option<u64>,
    feeds: Vec<SymbolFeed>,
    index: SymbolIndex,
    /// The numbers of removed symbols: they go on if the symbol is added again.
    removed: BTreeMap<SymbolId, Numbers>,
}

impl Builder {
    /// Starts a feed for an exchange that is empty. No two starts of a feed may have the same
    /// epoch: see [`Epoch`].
    #[must_use]
    pub fn new(epoch: Epoch, channels: Channels) -> Self {
        Self {
            writer: MessageWriter::new(epoch, channels),
            command: None,
            feeds: Vec::new(),
            index: SymbolIndex::default(),
            removed: BTreeMap::new(),
        }
    }

    /// Starts a feed for an exchange with these books; the epoch is a new one here too. Subscribers
    /// need a [snapshot](Self::snapshot) first: where orders rest already, they count as message 1
    /// of the symbol and of the feed, which no message carries.
    ///
    /// Cost: goes through all resting orders.
    #[must_use]
    pub fn from_books(matching: &Matching, epoch: Epoch, channels: Channels) -> Self {
        let mut builder = Self::new(epoch, channels);
        for book in matching.books() {
            let at = builder.list(book.spec().id);
            let feed = &mut builder.feeds[at];
            feed.learn(book);
            if book.order_count() != 0 {
                feed.numbers.sequence = SymbolSequence(1);
                builder.writer.sequence = FeedSequence(1);
            }
        }
        builder
    }

    /// Takes the outcome of a command and returns its messages: trades in the order in
    /// which they happened, then the levels that changed, then the best prices if they
    /// changed.
    ///
    /// `number` rises by one with each command, refused ones included, from wherever it begins: so
    /// the builder notices an outcome that is missing or comes twice. It is in no message. Commands
    /// that changed no book make no message.
    ///
    /// # Errors
    /// The outcome cannot follow those before it. Its messages are lost, and the builder cannot be
    /// used any more.
    pub fn apply(
        &mut self,
        number: u64,
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) -> Result<&[Message], OutcomeError> {
        self.writer.clear();
        let expected = self.command.map_or(number, |last| last.wrapping_add(1));
        if number != expected {
            let got = number;
            return Err(OutcomeError::Number { expected, got });
        }
        self.command = Some(number);
        // A command that matching rejected has no success as its result, and yet has events.
        if result == ResultCode::Success || !events.is_empty() {
            self.take_in(command, events)?;
        }
        Ok(self.writer.messages())
    }

    /// Sets whether messages only count from now on: [`apply`](Self::apply) returns none then.
    pub const fn set_silent(&mut self, is_silent: bool) {
        self.writer.is_silent = is_silent;
    }

    fn take_in(&mut self, command: &Command, events: &Events) -> Result<(), OutcomeError> {
        let symbol = match command {
            Command::AddSymbols(specs) => {
                for spec in specs.iter() {
                    self.list(spec.id);
                }
                return Ok(());
            }
            Command::RemoveSymbol { symbol } => {
                let feed = self.take_out(*symbol)?;
                self.clear(feed);
                return Ok(());
            }
            Command::Reset => {
                self.index = SymbolIndex::default();
                let mut feeds = std::mem::take(&mut self.feeds);
                feeds.sort_unstable_by_key(|feed| feed.numbers.symbol);
                feeds.into_iter().for_each(|feed| self.clear(feed));
                return Ok(());
            }
            Command::RunStops { symbol } | Command::Uncross { symbol, .. } => Some(*symbol),
            _ => command.symbol(),
        };
        if symbol.is_none() && events.is_empty() {
            return Ok(());
        }
        if !events.has_levels() {
            return Err(OutcomeError::NoLevels);
        }
        match symbol {
            Some(symbol) => self.follow(symbol, events, events.levels()),
            None => self.follow_removals(events),
        }
    }

    fn follow(
        &mut self,
        symbol: SymbolId,
        events: &[Event],
        levels: &[LevelChange],
    ) -> Result<(), OutcomeError> {
        let at = self
            .find(symbol)
            .ok_or(OutcomeError::UnknownSymbol { symbol })?;
        self.feeds[at].follow(events, levels, &mut self.writer);
        Ok(())
    }

    /// Follows a command that names no symbol and took orders out, book by book.
    fn follow_removals(&mut self, events: &Events) -> Result<(), OutcomeError> {
        let symbol_of = |event: &Event| match *event {
            Event::Removed { symbol, .. } => Some(symbol),
            _ => None,
        };
        let mut levels = events.levels();
        for own in events.chunk_by(|one, other| symbol_of(one) == symbol_of(other)) {
            let Some(symbol) = symbol_of(&own[0]) else {
                break;
            };
            let count = levels.iter().take_while(|level| level.symbol == symbol);
            let (changed, others) = levels.split_at(count.count());
            self.follow(symbol, own, changed)?;
            levels = others;
        }
        Ok(())
    }

    /// A book is gone, whatever was in it.
    fn clear(&mut self, mut feed: SymbolFeed) {
        let from = self.writer.len();
        self.writer.add(&mut feed.numbers, Body::Cleared);
        self.writer.close(from);
        self.removed.insert(feed.numbers.symbol, feed.numbers);
    }

    fn take_out(&mut self, symbol: SymbolId) -> Result<SymbolFeed, OutcomeError> {
        let at = self
            .find(symbol)
            .ok_or(OutcomeError::UnknownSymbol { symbol })?;
        let last = self.feeds.len() - 1;
        let moves = self.feeds[last].numbers.symbol;
        let feeds = &self.feeds;
        let id_of = |slot: u32| feeds[slot as usize].numbers.symbol;
        self.index.remove(symbol, id_of);
        if at != last {
            self.index.remove(moves, id_of);
            self.index.insert(moves, at as u32);
        }
        Ok(self.feeds.swap_remove(at))
    }

    /// Adds the symbol if it is new, and gives its place.
    fn list(&mut self, symbol: SymbolId) -> usize {
        if let Some(at) = self.find(symbol) {
            return at;
        }
        let at = self.feeds.len();
        let slot = u32::try_from(at).expect("memory runs out before symbols do");
        let numbers = self.removed.remove(&symbol);
        let numbers = numbers.unwrap_or(Numbers::new(symbol));
        self.feeds.push(SymbolFeed::new(numbers));
        self.index.insert(symbol, slot);
        at
    }

    fn find(&self, symbol: SymbolId) -> Option<usize> {
        let id_of = |slot: u32| self.feeds[slot as usize].numbers.symbol;
        let slot = self.index.find(symbol, id_of)?;
        Some(slot as usize)
    }

    fn listed(&self, symbol: SymbolId) -> Option<&SymbolFeed> {
        self.find(symbol).map(|at| &self.feeds[at])
    }

    /// Fills `into` with the book of a symbol as it is after the last command, `depth` levels a
    /// side at most (`usize::MAX` for all). False, and nothing done, where there is no such
    /// symbol. A snapshot is no message: it has no number of its own.
    ///
    /// Cost: copies the levels; allocates where `into` is too small.
    #[must_use]
    pub fn snapshot(&self, symbol: SymbolId, depth: usize, into: &mut Snapshot) -> bool {
        self.listed(symbol)
            .map(|feed| into.fill(&self.writer, feed, depth))
            .is_some()
    }

    /// Returns the levels of one side after the last command, best first; none for an unknown
    /// symbol.
    pub fn levels(&self, symbol: SymbolId, side: Action) -> impl Iterator<Item = Level> + '_ {
        self.listed(symbol)
            .into_iter()
            .flat_map(move |feed| feed.ladder(side).levels())
    }

    /// Returns the best prices after the last command; `None` for an unknown symbol.
    #[must_use]
    pub fn best(&self, symbol: SymbolId) -> Option<BestPrices> {
        self.listed(symbol).map(|feed| feed.best)
    }

    /// Returns how many orders rest in a symbol; 0 for an unknown one. Cost: goes through the
    /// levels.
    #[must_use]
    pub fn order_count(&self, symbol: SymbolId) -> usize {
        let sides = [Action::Ask, Action::Bid];
        let levels = sides.map(|side| self.levels(symbol, side));
        let orders = levels.into_iter().flatten().map(|level| level.orders);
        orders.sum::<u64>() as usize
    }

    /// Begins a new epoch where the numbers are: subscribers need a [snapshot](Self::snapshot) of
    /// each symbol, which says by its numbers how many messages they miss, if any.
    pub fn begin_epoch(&mut self, epoch: Epoch) {
        self.writer.epoch = epoch;
    }

    /// Returns the epoch, which identifies this start of the feed.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.writer.epoch
    }

    /// Returns the number of the last command that it took in; `None` before the first.
    #[must_use]
    pub const fn command(&self) -> Option<u64> {
        self.command
    }

    /// Returns the number of the last message so far.
    #[must_use]
    pub const fn sequence(&self) -> FeedSequence {
        self.writer.sequence
    }

    /// Returns the number of a symbol's last message so far; 0 for a symbol that was never added.
    #[must_use]
    pub fn symbol_sequence(&self, symbol: SymbolId) -> SymbolSequence {
        let numbers = match self.listed(symbol) {
            Some(feed) => Some(&feed.numbers),
            None => self.removed.get(&symbol),
        };
        numbers.map_or(SymbolSequence(0), |numbers| numbers.sequence)
    }
}

/// The levels of a symbol.
#[derive(Clone, Debug)]
struct SymbolFeed {
    numbers: Numbers,
    asks: PriceLadder,
    bids: PriceLadder,
    best: BestPrices,
}

impl SymbolFeed {
    fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            asks: PriceLadder::new(Action::Ask),
            bids: PriceLadder::new(Action::Bid),
            best: BestPrices::default(),
        }
    }

    /// Learns what rests in a book already.
    fn learn(&mut self, book: &Book) {
        for side in [Action::Ask, Action::Bid] {
            for level in book.levels(side, usize::MAX) {
                self.put(side, level);
            }
        }
        self.best = self.best_now();
    }

    const fn ladder(&self, side: Action) -> &PriceLadder {
        match side {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
        }
    }

    /// Puts a level in its place and returns it as it was.
    fn put(&mut self, side: Action, level: Level) -> Level {
        match side {
            Action::Ask => self.asks.put(level),
            Action::Bid => self.bids.put(level),
        }
    }

    /// Adds the messages of a command, or of what a command did in this book.
    fn follow(&mut self, events: &[Event], levels: &[LevelChange], to: &mut MessageWriter) {
        let from = to.len();
        self.add_trades(events, to);
        self.change_levels(levels, to);
        to.close(from);
    }

    fn add_trades(&mut self, events: &[Event], to: &mut MessageWriter) {
        for event in events {
            if let Event::Trade {
                price,
                size,
                taker_action: taker_side,
                ..
            } = *event
            {
                let trade = Body::Trade {
                    price,
                    size,
                    taker_side,
                };
                to.add(&mut self.numbers, trade);
            }
        }
    }

    /// Adds the levels that are not as they were, and the best prices where they changed.
    fn change_levels(&mut self, levels: &[LevelChange], to: &mut MessageWriter) {
        let mut is_changed = false;
        for &LevelChange {
            side,
            price,
            volume,
            orders,
            ..
        } in levels
        {
            let level = Level {
                price,
                volume,
                orders,
            };
            if self.put(side, level) != level {
                is_changed = true;
                let delta = LevelDelta {
                    side,
                    price,
                    volume,
                    orders,
                };
                to.add(&mut self.numbers, Body::Level(delta));
            }
        }
        if is_changed {
            let best = self.best_now();
            if best != self.best {
                self.best = best;
                to.add(&mut self.numbers, Body::Best(best));
            }
        }
    }

    fn best_now(&self) -> BestPrices {
        let quote = |ladder: &PriceLadder| {
            let best = ladder.best();
            best.map(|Level { price, volume, .. }| Quote { price, volume })
        };
        BestPrices {
            ask: quote(&self.asks),
            bid: quote(&self.bids),
        }
    }
}

/// The last numbers of a symbol. They outlive its removal: if it is added again, they go on.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    symbol: SymbolId,
    sequence: SymbolSequence,
}

impl Numbers {
    const fn new(symbol: SymbolId) -> Self {
        Self {
            symbol,
            sequence: SymbolSequence(0),
        }
    }
}

/// The messages of one command; the memory is used again for the next.
#[derive(Clone, Debug)]
struct MessageWriter {
    messages: Vec<Message>,
    /// Whether messages only count.
    is_silent: bool,
    epoch: Epoch,
    channels: Channels,
    sequence: FeedSequence,
}

impl MessageWriter {
    fn new(epoch: Epoch, channels: Channels) -> Self {
        Self {
            messages: Vec::new(),
            is_silent: false,
            epoch,
            channels,
            sequence: FeedSequence(0),
        }
    }

    fn clear(&mut self) {
        self.messages.clear();
    }

    fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns how many messages are here; [`close`](Self::close) takes it.
    const fn len(&self) -> usize {
        self.messages.len()
    }

    /// Adds a message, if the feed has those.
    #[inline(always)]
    fn add(&mut self, numbers: &mut Numbers, body: Body) {
        let is_on = match body {
            Body::Trade { .. } => self.channels.trades,
            Body::Level(_) => self.channels.levels,
            Body::Best(_) => self.channels.best,
            Body::Cleared => true,
        };
        if !is_on {
            return;
        }
        self.sequence.0 += 1;
        numbers.sequence.0 += 1;
        if self.is_silent {
            return;
        }
        self.messages.push(Message {
            epoch: self.epoch,
            sequence: self.sequence,
            symbol_sequence: numbers.sequence,
            channels: self.channels,
            symbol: numbers.symbol,
            is_last: false,
            body,
        });
    }

    /// Marks the last message, if any came since there were `from`.
    fn close(&mut self, from: usize) {
        if let Some(last) = self.messages[from..].last_mut() {
            last.is_last = true;
        }
    }
}

impl Snapshot {
    fn fill(&mut self, writer: &MessageWriter, feed: &SymbolFeed, depth: usize) {
        self.symbol = feed.numbers.symbol;
        self.epoch = writer.epoch;
        self.channels = writer.channels;
        self.sequence = writer.sequence;
        self.as_of = feed.numbers.sequence;
        for (side, levels, cut) in [
            (Action::Ask, &mut self.asks, &mut self.asks_cut),
            (Action::Bid, &mut self.bids, &mut self.bids_cut),
        ] {
            let all = feed.ladder(side).levels();
            *cut = all.len() > depth;
            levels.clear();
            levels.extend(all.take(depth));
        }
    }
}
