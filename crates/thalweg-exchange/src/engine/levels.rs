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
    /// Lists the levels that the last command may have changed, each once. Cost: a look at the
    /// events, and at each of the levels; where several orders took, or orders were removed, a sort
    /// of the levels.
    #[inline(never)]
    pub(super) fn list_levels(&self, command: &Command, result: ResultCode, events: &mut Events) {
        let Some((events, moved, levels)) = events.split_levels() else {
            return;
        };
        let is_done = result == ResultCode::Success;
        let is_uncross = matches!(command, Command::Uncross { .. });
        if !(is_uncross && is_done) {
            levels.clear();
        }
        let is_gone = matches!(command, Command::RemoveSymbol { .. } | Command::Reset);
        if is_gone || !is_done && events.is_empty() {
            return;
        }
        let is_chain = note(&Subject::new(command, moved), events, moved, levels);
        if is_uncross || is_chain {
            levels.sort_unstable_by_key(LevelChange::key);
            levels.dedup_by_key(|level| level.key());
        }
        read(&self.matching, levels);
    }
}

/// What a command says of its order: where it is, which one it is if it rested before, and where
/// it rests if something is left of it.
struct Subject {
    symbol: SymbolId,
    mover: Option<(UserId, OrderId)>,
    rests_at: Option<(Action, i64)>,
}

impl Subject {
    fn new(command: &Command, moved: Option<&Moved>) -> Self {
        let mover = match *command {
            Command::Move { uid, order_id, .. } => Some((uid, order_id)),
            Command::Amend(ref amend) => Some((amend.uid, amend.order_id)),
            _ => None,
        };
        let rests_at = match *command {
            Command::Place(ref place) => {
                (place.order_type == OrderType::Gtc).then_some((place.action, place.price))
            }
            Command::PlaceWith(ref order) => Some((order.place.action, order.place.price)),
            Command::Move { price, .. } => moved.map(|moved| (moved.action, price)),
            Command::Amend(ref amend) => Some((amend.action, amend.price)),
            _ => None,
        };
        let symbol = match *command {
            Command::Uncross { symbol, .. } => Some(symbol),
            _ => command.symbol(),
        };
        Self {
            // Commands without a symbol have events with one.
            symbol: symbol.unwrap_or_default(),
            mover,
            rests_at,
        }
    }
}

/// Notes the levels that a command may have changed, and returns whether one may be there twice.
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
        let is_same = |other: &LevelChange| other.key() == level.key();
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
fn read(matching: &Matching, levels: &mut [LevelChange]) {
    for own in levels.chunk_by_mut(|one, other| one.symbol == other.symbol) {
        let Some(book) = matching.book(own[0].symbol) else {
            continue;
        };
        for level in own {
            if let Some(now) = book.level(level.side, level.price) {
                level.volume = now.volume;
                level.orders = now.orders;
            }
        }
    }
}
