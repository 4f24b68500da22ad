//! The price levels that a command changed, as they are after it.
//!
//! Which levels these are follows from the command and its events: the price of each maker, of each
//! order that was removed or reduced, the price from which an order was moved, and the price at
//! which the command's order or a triggered stop order rests. Only the makers of an auction have
//! events without their own price: [`Events::note_level`] has them. What a level is now is read
//! from the book.

use super::state::State;
use crate::command::{Action, Command, OrderType};
use crate::event::{Event, Events, LevelChange, Moved, Removal};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::matching::Matching;
use crate::result_code::ResultCode;

impl State {
    /// Executes a command, and lists its levels.
    #[inline(never)]
    pub(super) fn apply_listed(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let result = self.apply(command, events);
        self.list_levels(command, result, events);
        result
    }

    /// Lists the levels that the last command may have changed, each once. Cost: a look at the
    /// events, and at each of the levels; where several orders took, or orders were removed, a sort
    /// of the levels.
    pub(super) fn list_levels(&self, command: &Command, result: ResultCode, events: &mut Events) {
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
        let is_chain = note(&subject, events, moved, levels);
        if is_uncross || is_chain {
            levels.sort_unstable_by_key(LevelChange::key);
            levels.dedup_by_key(|level| level.key());
        }
        read(&self.matching, levels);
    }
}

/// The order of a command: where it is, which one it is if it rested before, and where it rests if
/// lots of it are left.
#[derive(Clone, Copy, Default)]
struct Subject {
    symbol: SymbolId,
    mover: Option<(UserId, OrderId)>,
    rests_at: Option<(Action, i64)>,
}

impl Subject {
    /// Returns that of a command; `None` where the book is gone with it.
    #[inline(always)]
    fn of(command: &Command, moved: Option<&Moved>) -> Option<Self> {
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
                let rests = place.order_type == OrderType::Gtc;
                let at = rests.then_some((place.action, place.price));
                (place.symbol, None, at)
            }
            Command::PlaceWith(ref order) => {
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

/// Notes the levels that a command may have changed, and returns whether one may be there twice.
#[inline(always)]
fn note(
    subject: &Subject,
    events: &[Event],
    moved: Option<&Moved>,
    levels: &mut Vec<LevelChange>,
) -> bool {
    let symbol = subject.symbol;
    // A taker meets levels in the order of their prices, so only the last can come again, and the
    // one that a moved order leaves, which is the first.
    let mut add = |symbol: SymbolId, side: Action, price: i64| {
        let level = LevelChange::unread(symbol, side, price);
        let is_same = |other: &LevelChange| {
            other.price == price && other.side == side && other.symbol == symbol
        };
        if !levels.last().is_some_and(is_same) && !levels.first().is_some_and(is_same) {
            levels.push(level);
        }
    };
    if let Some(moved) = moved {
        add(symbol, moved.action, moved.price);
    }
    let mut is_chain = false;
    for event in events {
        match *event {
            Event::Trade {
                taker_action,
                price,
                ..
            } => add(symbol, taker_action.opposite(), price),
            Event::Reduce { action, price, .. } => add(symbol, action, price),
            Event::Removed {
                symbol,
                order,
                uid,
                action,
                price,
                why,
                ..
            } => {
                is_chain |= why == Removal::Decremented || subject.mover != Some((uid, order));
                add(symbol, action, price);
            }
            Event::Triggered { action, price, .. } | Event::Uncrossed { action, price, .. } => {
                is_chain = true;
                add(symbol, action, price);
            }
            Event::Reject { .. } | Event::Refilled { .. } => {}
        }
    }
    if let Some((side, price)) = subject.rests_at {
        add(symbol, side, price);
    }
    is_chain
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
