//! Which checks may be done while commands in futures are not settled yet.
//!
//! The module [`risk`](super) has the proof for currency pairs. This is what it says of futures,
//! where settlements do lower balances and change what later checks read. *Unsettled* below is
//! what was checked and accepted before the command in question, and not settled.
//!
//! 1. *Whom a settlement in a futures symbol concerns.* It changes balances and records of the
//!    command's user, of the makers it meets and of the owners of stop orders that it triggers, the
//!    symbol's last prices, and N and R of the quote currency. All those users have a record in the
//!    symbol while it is unsettled: the check of the command made one, pending lots of orders that
//!    rest or wait keep one, and it goes only when a settlement finds it empty.
//!    So *a user without any record is concerned by no unsettled settlement in futures*, and reads
//!    no last price (those count for open positions only).
//! 2. *Cancels and reductions* have no check: they never wait.
//! 3. *Orders in futures behind pairs only.* The check reads the user's records, last prices, the
//!    balance in the quote currency, and the ledger's bound. Unsettled pairs change no record and
//!    no last price, raise balances (an acceptance asks for a balance that is high enough), lower
//!    N and leave D and R. So an acceptance holds, and they are no barrier.
//! 4. *Orders in pairs behind futures.* Of a user without records the check reads nothing that
//!    futures change, but the ledger's bound where the order could lose more than it
//!    holds. So it is done at once for users without records and orders that need no room; a move
//!    in pairs reads no records in any case.
//! 5. *Moves in futures.* The check reads the lots pending in the user's record, which unsettled
//!    settlements can only lower, and the bound. Each unsettled command raises N + R by no more
//!    than it had to have room for when it was checked (see `ledger`); cancels by nothing. With the
//!    sum of those added, room now is room later: the move is checked at once, and if it has no
//!    room with that sum it waits.
//! 6. *New orders in futures behind futures*: for users without records as in 4, with the
//!    sum of 5. The others wait: their margin hangs on records that are about to change.
//!
//! As for pairs, only acceptances hold. A refusal waits and is repeated.

use super::Risk;
use super::reference::Exposure;
use super::symbol::Symbol;
use crate::command::Command;

/// Unsettled commands, as far as they matter to later checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unsettled {
    /// One of them may lower the balance of anybody.
    pub(crate) lowers: bool,
    /// One of them is in futures.
    pub(crate) futures: bool,
    /// The most by which those in futures could raise N + R of any currency.
    pub(crate) worst: i128,
}

/// What a command is about beyond its user's account and its symbol's book, so that it cannot be
/// checked early, or in one share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concern {
    /// It changes users, balances, symbols or everything.
    Administration,
    /// It is about futures, or its user has a position there, so that its balance may go below
    /// zero.
    Futures,
    /// It could lose more than is held for it, or its symbol is one where that may happen.
    Quirk,
}

impl Risk {
    /// Why the check of `command` has to wait until everything before it is settled, if it has to.
    /// May be asked when something is unsettled.
    pub(crate) fn must_wait(&self, command: &Command, unsettled: &Unsettled) -> Option<Concern> {
        if self.is_barrier(command) {
            return Some(Concern::Administration);
        }
        if matches!(
            command,
            Command::Cancel { .. } | Command::Reduce { .. } | Command::Nop
        ) {
            return None;
        }
        if unsettled.lowers {
            return Some(Concern::Quirk);
        }
        if !unsettled.futures {
            return None;
        }
        let symbol = command.symbol().and_then(|id| self.symbols.get(id))?;
        let is_free = match command {
            Command::Place(place) => {
                let user = self.users.get(place.uid);
                user.is_none_or(|user| user.positions().is_empty())
            }
            _ => true,
        };
        let has_room = if symbol.is_futures() && self.rules.cover_futures {
            true
        } else if symbol.is_futures() {
            let more = self
                .futures_worst(symbol, command)
                .saturating_add(unsettled.worst);
            self.ledger.look(symbol.spec.quote_currency).has_room(more)
        } else {
            !self.needs_room(symbol, command)
        };
        (!is_free || !has_room).then_some(Concern::Futures)
    }

    /// Whether a command is in futures, and by how much it could raise N + R when it is settled;
    /// of one that was just accepted.
    pub(crate) fn in_futures(&self, command: &Command) -> Option<i128> {
        let symbol = command.symbol().and_then(|id| self.symbols.get(id))?;
        let is_futures = symbol.is_futures() && self.rules.margin_trading;
        is_futures.then(|| self.futures_worst(symbol, command))
    }

    fn futures_worst(&self, symbol: &Symbol, command: &Command) -> i128 {
        match command {
            Command::Place(place) => symbol.reserved_for_new(place, place.size),
            Command::PlaceWith(order) => symbol.reserved(order.place.price, order.place.size),
            Command::Move { uid, price, .. } => {
                let user = self.users.get(*uid);
                let position = user.and_then(|user| user.position(symbol.spec.id));
                let lots = position.map_or(0, |p| p.pending_buy.max(p.pending_sell));
                symbol.reserved(*price, lots)
            }
            _ => 0,
        }
    }

    /// Whether the check of an order in a pair, of a user without positions, reads the ledger.
    fn needs_room(&self, symbol: &Symbol, command: &Command) -> bool {
        match command {
            Command::Place(place) => self.may_lose(symbol, place),
            Command::Move { price, .. } => {
                symbol.quirks_of_move(*price, &self.rules) != Exposure::default()
            }
            _ => false,
        }
    }
}
