//! Listing the levels that a command may have changed, as it left them.

use crate::book::Book;
use crate::command::{Action, Command, OrderType};
use crate::event::{Event, Events, LevelChange, MovedOrder, RemovalReason};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::matching::Matching;
use crate::result_code::ResultCode;

/// Lists the levels that the last command may have changed, each once. Cost: a look at events
/// and levels; where several orders took, or orders were removed, a sort of the levels.
pub(super) fn list_levels(
    matching: &Matching,
    command: &Command,
    result: ResultCode,
    events: &mut Events,
) {
    let (events, moved, levels) = events.split_levels();
    let is_done = result == ResultCode::Success;
    let is_uncross = matches!(command, Command::Uncross { .. });
    if !(is_uncross && is_done) {
        levels.clear();
    }
    if !is_done && events.is_empty() {
        return;
    }
    let Some(subject) = Subject::of(command, moved) else {
        return;
    };
    let mut list = LevelList {
        matching,
        symbol: subject.symbol,
        book: matching.book(subject.symbol),
        levels,
    };
    let is_chain = list.note(&subject, events, moved);
    if is_uncross || is_chain {
        levels.sort_unstable_by_key(LevelChange::key);
        levels.dedup_by_key(|level| level.key());
    }
    if is_uncross {
        read(matching, levels);
    }
}

/// The order of a command: where it is, which one if it rested before, and where it may rest now.
#[derive(Clone, Copy, Default)]
struct Subject {
    symbol: SymbolId,
    mover: Option<(UserId, OrderId)>,
    rests_at: Option<(Action, i64)>,
}

impl Subject {
    /// Returns that of a command; `None` where the book is gone with it.
    #[inline(always)]
    fn of(command: &Command, moved: Option<&MovedOrder>) -> Option<Self> {
        let (symbol, mover, rests_at) = match *command {
            Command::Move {
                uid,
                symbol,
                order_id,
                price,
            } => {
                let to = moved.map(|moved| (moved.action, price));
                (symbol, Some((uid, order_id)), to)
            }
            Command::Place(ref place) => {
                let rests_at = (place.action, place.price);
                (
                    place.symbol,
                    None,
                    (place.order_type == OrderType::Gtc).then_some(rests_at),
                )
            }
            Command::PlaceConditional(ref order) => {
                let place = &order.place;
                (place.symbol, None, Some((place.action, place.price)))
            }
            Command::Amend(ref amend) => (
                amend.symbol,
                Some((amend.uid, amend.order_id)),
                Some((amend.action, amend.price)),
            ),
            Command::Cancel { symbol, .. }
            | Command::Reduce { symbol, .. }
            | Command::RunStops { symbol }
            | Command::Uncross { symbol, .. } => (symbol, None, None),
            Command::RemoveSymbol { .. } | Command::Reset => return None,
            // Their events have symbols.
            _ => return Some(Self::default()),
        };
        Some(Self {
            symbol,
            mover,
            rests_at,
        })
    }
}

/// The levels that a command may have changed, as they are listed.
struct LevelList<'m, 'l> {
    matching: &'m Matching,
    /// The symbol of the last level, and its book.
    symbol: SymbolId,
    book: Option<&'m Book>,
    levels: &'l mut Vec<LevelChange>,
}

impl LevelList<'_, '_> {
    /// Adds a level as it is now. A taker meets levels in the order of their prices, so only the
    /// last can come again, and the one that a moved order leaves, which is the first.
    #[inline(always)]
    fn add(&mut self, symbol: SymbolId, side: Action, price: i64) {
        let is_same = |o: &LevelChange| o.price == price && o.side == side && o.symbol == symbol;
        if self.levels.last().is_some_and(is_same) || self.levels.first().is_some_and(is_same) {
            return;
        }
        if symbol != self.symbol {
            (self.symbol, self.book) = (symbol, self.matching.book(symbol));
        }
        let found = self.book.and_then(|book| book.level(side, price));
        let (volume, orders) = found.unwrap_or_default();
        self.levels.push(LevelChange {
            volume,
            orders,
            ..LevelChange::unread(symbol, side, price)
        });
    }

    /// Adds the levels of a command, and returns whether one may be there twice.
    #[inline(always)]
    fn note(&mut self, subject: &Subject, events: &[Event], moved: Option<&MovedOrder>) -> bool {
        let symbol = subject.symbol;
        if let Some(moved) = moved {
            self.add(symbol, moved.action, moved.price);
        }
        let mut is_chain = false;
        for event in events {
            match *event {
                Event::Trade {
                    taker_action,
                    price,
                    ..
                } => self.add(symbol, taker_action.opposite(), price),
                Event::Reduce { action, price, .. } => self.add(symbol, action, price),
                Event::Removed {
                    symbol,
                    order,
                    uid,
                    action,
                    price,
                    why,
                    ..
                } => {
                    is_chain |=
                        why == RemovalReason::Decremented || subject.mover != Some((uid, order));
                    self.add(symbol, action, price);
                }
                Event::Triggered { action, price, .. } | Event::Uncrossed { action, price, .. } => {
                    is_chain = true;
                    self.add(symbol, action, price);
                }
                Event::Reject { .. } | Event::Refilled { .. } => {}
            }
        }
        if let Some((side, price)) = subject.rests_at {
            self.add(symbol, side, price);
        }
        is_chain
    }
}

/// Reads what the levels are now; those of a symbol are side by side.
#[inline(always)]
fn read(matching: &Matching, levels: &mut [LevelChange]) {
    let mut symbol = SymbolId::default();
    let mut book = None;
    for level in levels {
        if book.is_none() || level.symbol != symbol {
            symbol = level.symbol;
            book = matching.book(symbol);
        }
        if let Some((volume, orders)) = book.and_then(|book| book.level(level.side, level.price)) {
            level.volume = volume;
            level.orders = orders;
        }
    }
}
