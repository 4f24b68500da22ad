//! From commands and their outcomes to messages.

use std::{error, fmt};

use super::message::{BestPrices, Epoch, FeedSequence, Message, SymbolSequence};
use super::shadow::{SymbolFeed, Telling, key};
use super::snapshot::Snapshot;
use super::tape::Tape;
use super::{Channels, Options};
use crate::book::Level;
use crate::command::{Action, Command};
use crate::event::Event;
use crate::ids::{OrderId, SymbolId};
use crate::matching::Matching;
use crate::result_code::ResultCode;
use crate::symbol_index::SymbolIndex;

/// The outcomes do not belong together: some are missing, or come from another state. What the
/// builder tells afterwards means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfStep {
    /// An event names an order that does not rest, as far as the outcomes so far tell.
    UnknownOrder {
        /// Where.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
    },
    /// A command succeeded on a symbol that was never added.
    UnknownSymbol {
        /// The symbol.
        symbol: SymbolId,
    },
}

impl fmt::Display for OutOfStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOrder { symbol, order } => write!(
                f,
                "market data is out of step: order {order} of symbol {symbol} is not resting"
            ),
            Self::UnknownSymbol { symbol } => write!(
                f,
                "market data is out of step: symbol {symbol} was never added"
            ),
        }
    }
}

impl error::Error for OutOfStep {}

/// Makes market data out of commands, results and events, fed in order and each once.
///
/// Pure and deterministic: the same outcomes give the same messages. It never looks at the
/// engine's books, so it can run in the publish stage, on any thread; instead it keeps a shadow of
/// the resting orders (48 bytes and an index entry each) and of the levels (24 bytes each). The
/// engine does nothing for it, and nothing at all where there is none.
///
/// No allocation once it has seen the most orders, levels and messages that it will see; but for
/// new symbols, stop orders that wait, and orders that hide lots. Cost per command: a look-up per
/// order that an event names, and a binary search per level; a level that comes or goes moves up to
/// 64 others by 24 bytes each, near the market fewer.
#[derive(Clone, Debug)]
pub struct Builder {
    options: Options,
    tape: Tape,
    feeds: Vec<SymbolFeed>,
    index: SymbolIndex,
}

impl Builder {
    /// For an exchange that is empty. No two starts of a feed may have the same epoch: see
    /// [`Epoch`].
    #[must_use]
    pub fn new(epoch: Epoch, options: Options) -> Self {
        Self {
            options,
            tape: Tape::new(epoch, options.messages),
            feeds: Vec::new(),
            index: SymbolIndex::default(),
        }
    }

    /// For an exchange with these books; the epoch is a new one here too. Subscribers need a
    /// [snapshot](Self::snapshot) first: where orders rest already, they count as the symbol's
    /// message 1, which nobody else tells.
    ///
    /// Cost: goes through all resting orders.
    #[must_use]
    pub fn from_books(matching: &Matching, epoch: Epoch, options: Options) -> Self {
        let mut builder = Self::new(epoch, options);
        for book in matching.books() {
            let at = builder.list(book.spec().id);
            let feed = &mut builder.feeds[at];
            feed.learn(book);
            feed.sequence = SymbolSequence(u64::from(feed.orders() != 0));
        }
        builder
    }

    /// Takes in what came of a command, and gives the messages about it: trades and order changes
    /// in the order in which they happened, then the levels that changed, then the best prices if
    /// those did.
    ///
    /// `command_number` comes back in [`Message::command`]. Commands that changed no book make no
    /// message.
    ///
    /// # Errors
    /// The outcome cannot follow those before it. Messages already made are lost, and the builder
    /// is of no more use.
    pub fn apply(
        &mut self,
        command_number: u64,
        command: &Command,
        result: ResultCode,
        events: &[Event],
    ) -> Result<&[Message], OutOfStep> {
        self.tape.clear();
        if result == ResultCode::Success {
            self.take_in(command_number, command, events)?;
        }
        Ok(self.tape.messages())
    }

    fn take_in(
        &mut self,
        number: u64,
        command: &Command,
        events: &[Event],
    ) -> Result<(), OutOfStep> {
        let channels = self.options.channels;
        let Some(symbol) = command.symbol() else {
            match command {
                Command::AddSymbols(specs) => {
                    for spec in specs.iter() {
                        self.list(spec.id);
                    }
                }
                Command::RemoveSymbol { symbol } => {
                    let at = self.place_of(*symbol)?;
                    self.clear(number, at);
                }
                Command::Uncross { symbol, .. } => {
                    let at = self.place_of(*symbol)?;
                    let mut to = Telling {
                        command: number,
                        tape: &mut self.tape,
                        channels,
                    };
                    let feed = &mut self.feeds[at];
                    feed.chain(None, events, &mut to)?;
                    feed.finish(&mut to);
                    self.tape.close(0);
                }
                Command::Reset => {
                    for at in 0..self.feeds.len() {
                        if self.feeds[at].is_listed {
                            self.clear(number, at);
                        }
                    }
                }
                _ => self.removals(number, events)?,
            }
            return Ok(());
        };
        let at = self.place_of(symbol)?;
        let feed = &mut self.feeds[at];
        let mut to = Telling {
            command: number,
            tape: &mut self.tape,
            channels,
        };
        match *command {
            Command::Place(ref place) => feed.place(place, events, &mut to)?,
            Command::PlaceWith(ref order) => feed.place_with(order, events, &mut to)?,
            Command::Move {
                uid,
                order_id,
                price,
                ..
            } => feed.move_order(key(uid, order_id), price, events, &mut to)?,
            Command::Amend(ref amend) => feed.amend(amend, events, &mut to)?,
            Command::Cancel { uid, order_id, .. } | Command::Reduce { uid, order_id, .. } => {
                feed.reduce(key(uid, order_id), events, &mut to)?;
            }
            _ => {}
        }
        feed.finish(&mut to);
        self.tape.close(0);
        Ok(())
    }

    /// Orders that a command which names none of them took out, book by book.
    fn removals(&mut self, number: u64, mut events: &[Event]) -> Result<(), OutOfStep> {
        let symbol_of = |event: &Event| match *event {
            Event::Removed { symbol, .. } => Some(symbol),
            _ => None,
        };
        while let Some(symbol) = events.first().and_then(symbol_of) {
            let count = events.iter().take_while(|e| symbol_of(e) == Some(symbol));
            let (own, others) = events.split_at(count.count());
            let at = self.place_of(symbol)?;
            let from = self.tape.len();
            let mut to = Telling {
                command: number,
                tape: &mut self.tape,
                channels: self.options.channels,
            };
            self.feeds[at].chain(None, own, &mut to)?;
            self.feeds[at].finish(&mut to);
            self.tape.close(from);
            events = others;
        }
        Ok(())
    }

    /// A book is gone, whatever was in it.
    fn clear(&mut self, number: u64, at: usize) {
        let from = self.tape.len();
        self.feeds[at].clear(&mut Telling {
            command: number,
            tape: &mut self.tape,
            channels: Channels::default(),
        });
        self.tape.close(from);
    }

    /// The place of a symbol that is there now.
    fn place_of(&self, symbol: SymbolId) -> Result<usize, OutOfStep> {
        self.find(symbol)
            .filter(|&at| self.feeds[at].is_listed)
            .ok_or(OutOfStep::UnknownSymbol { symbol })
    }

    /// Adds the symbol if it is new, and gives its place.
    fn list(&mut self, symbol: SymbolId) -> usize {
        if let Some(at) = self.find(symbol) {
            self.feeds[at].is_listed = true;
            return at;
        }
        let at = self.feeds.len();
        self.feeds.push(SymbolFeed::new(symbol, &self.options));
        let slot = u32::try_from(at).expect("memory runs out before symbols do");
        self.index.insert(symbol, slot);
        at
    }

    fn find(&self, symbol: SymbolId) -> Option<usize> {
        let id_of = |slot: u32| self.feeds[slot as usize].symbol;
        let slot = self.index.find(symbol, id_of)?;
        Some(slot as usize)
    }

    fn listed(&self, symbol: SymbolId) -> Option<&SymbolFeed> {
        self.find(symbol)
            .map(|at| &self.feeds[at])
            .filter(|feed| feed.is_listed)
    }

    /// Fills `into` with the book of a symbol as it is after the last command, `depth` levels a
    /// side at most (`usize::MAX` for all). False, and nothing done, where there is no such
    /// symbol. A snapshot is no message: it has no number of its own.
    ///
    /// Cost: copies the levels; allocates where `into` is too small.
    #[must_use]
    pub fn snapshot(&self, symbol: SymbolId, depth: usize, into: &mut Snapshot) -> bool {
        self.listed(symbol)
            .map(|feed| into.fill(self.epoch(), feed, depth))
            .is_some()
    }

    /// The levels of one side after the last command, best first; none for an unknown symbol.
    pub fn levels(&self, symbol: SymbolId, side: Action) -> impl Iterator<Item = Level> + '_ {
        self.listed(symbol)
            .into_iter()
            .flat_map(move |feed| feed.ladder(side).levels())
    }

    /// The best prices after the last command; `None` for an unknown symbol.
    #[must_use]
    pub fn best(&self, symbol: SymbolId) -> Option<BestPrices> {
        self.listed(symbol).map(SymbolFeed::best)
    }

    /// How many orders rest in a symbol, as far as the outcomes tell; 0 for an unknown one.
    #[must_use]
    pub fn order_count(&self, symbol: SymbolId) -> usize {
        self.listed(symbol).map_or(0, SymbolFeed::orders)
    }

    /// Which start of the feed this is.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.tape.epoch()
    }

    /// The number of the last message so far.
    #[must_use]
    pub const fn sequence(&self) -> FeedSequence {
        self.tape.sequence()
    }

    /// The number of a symbol's last message so far; 0 for a symbol that was never added.
    #[must_use]
    pub fn symbol_sequence(&self, symbol: SymbolId) -> SymbolSequence {
        self.find(symbol)
            .map_or(SymbolSequence(0), |at| self.feeds[at].sequence)
    }
}
