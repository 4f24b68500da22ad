//! The books cut up by symbol, so that several stages can match side by side.
//!
//! A book is in the shard that [`shard_of`] names, and nothing else differs between shards. A
//! command that concerns one symbol is executed by that symbol's shard, one that concerns them all
//! by every shard, and what they did is told in ascending order of symbol.

use super::Matching;
use crate::book::Book;
use crate::command::Command;
use crate::event::{Event, Events};
use crate::ids::SymbolId;
use crate::result_code::ResultCode;

/// The shard, from 0 to below `of`, that a symbol belongs to.
#[inline]
pub(crate) fn shard_of(symbol: SymbolId, of: usize) -> usize {
    let mixed = u64::from(symbol.0.cast_unsigned()).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((mixed * of as u64) >> 32) as usize
}

/// Which books a command concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those of one symbol, or none: any shard can execute it.
    Shard(usize),
    /// All of them.
    Every,
}

impl Reach {
    pub(crate) fn of(command: &Command, shards: usize) -> Self {
        let symbol = match command {
            Command::AddSymbols(_)
            | Command::CancelAll { symbol: None, .. }
            | Command::Clock { .. }
            | Command::Disconnect { .. }
            | Command::Reset => return Self::Every,
            Command::CancelAll { symbol, .. } => *symbol,
            Command::RemoveSymbol { symbol }
            | Command::SetPriceBand { symbol, .. }
            | Command::SetMarketProtection { symbol, .. }
            | Command::StartAuction { symbol }
            | Command::Uncross { symbol, .. } => Some(*symbol),
            _ => command.symbol(),
        };
        Self::Shard(symbol.map_or(0, |symbol| shard_of(symbol, shards)))
    }
}

impl Matching {
    /// Cuts the books up. Cost: moves every book.
    pub(crate) fn split(mut self, shards: usize) -> Vec<Self> {
        if shards == 1 {
            return vec![self];
        }
        let empty = || Self::with_capacity(self.rules, self.orders);
        let mut parts: Vec<Self> = (0..shards).map(|_| empty()).collect();
        for book in self.take_books() {
            parts[shard_of(book.spec().id, shards)].put(book);
        }
        parts
    }

    /// Puts the books together again.
    pub(crate) fn merge(shards: Vec<Self>) -> Self {
        let mut shards = shards.into_iter();
        let mut whole = shards.next().expect("there is one shard at least");
        for mut shard in shards {
            for book in shard.take_books() {
                whole.put(book);
            }
        }
        whole
    }

    fn take_books(&mut self) -> Vec<Book> {
        let slots: Vec<u32> = self.index.slots().collect();
        let take = |slot| {
            let book = &mut self.books[slot];
            let empty = Book::with_capacity(*book.spec(), &self.rules, 0);
            std::mem::replace(book, empty)
        };
        slots.into_iter().map(take).collect()
    }

    pub(super) fn put(&mut self, book: Book) {
        let symbol = book.spec().id;
        let slot = self.books.insert(book);
        self.index.insert(symbol, slot);
        self.books[slot].forget_due();
        self.note_due(symbol);
    }

    /// Executes this shard's part of a command that concerns all books.
    pub(crate) fn execute_part(
        &mut self,
        command: &Command,
        (shard, of): (usize, usize),
        checked: ResultCode,
        events: &mut Events,
    ) -> ResultCode {
        let Command::AddSymbols(specs) = command else {
            return self.execute(command, checked, events);
        };
        let own = specs.iter().filter(|spec| shard_of(spec.id, of) == shard);
        let own = Command::AddSymbols(own.copied().collect());
        self.execute(&own, checked, events)
    }
}

/// The events of all shards together, in ascending order of symbol.
pub(crate) fn put_in_order(parts: &[Events], events: &mut Events) {
    let mut all: Vec<(SymbolId, Event)> = Vec::new();
    let mut standings = Vec::new();
    for part in parts {
        // Each shard tells its own in that order; what names no symbol belongs to what is before.
        let mut last = SymbolId(i32::MIN);
        for event in part {
            if let Event::Removed { symbol, .. } = event {
                last = *symbol;
            }
            all.push((last, *event));
        }
        standings.extend_from_slice(part.standings());
    }
    all.sort_by_key(|&(symbol, _)| symbol);
    standings.sort_by_key(|&(symbol, _)| symbol);
    events.clear();
    all.iter().for_each(|&(_, event)| events.push(event));
    for (symbol, standing) in standings {
        events.add_standing(symbol, standing);
    }
}
