//! The commands of the exchange.
//!
//! Prices, sizes and amounts are signed 64-bit integers: a price is in quote units of the symbol
//! (of a pair, times its quote scale it is money; of futures, it is money), a size is in lots, an
//! amount is in the smallest unit of its currency. Any value may be sent; an invalid one is refused
//! with a [`ResultCode`](crate::ResultCode).

mod order;
mod spec;

use std::sync::Arc;

pub(crate) use self::order::display_is_large_enough;
pub use self::order::{Action, Amend, ConditionalOrder, OrderFlags, OrderType, Place, SelfTrade};
pub use self::spec::{AccountSpec, FeeUnit, SymbolSpec, SymbolType, UserLimits};
use crate::codes::codes;
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};

codes! {
    /// Which total a balance adjustment is booked against.
    #[derive(Default)]
    pub enum AdjustmentKind: u8;
    /// Deposits and withdrawals (code 0).
    #[default]
    Adjustment = 0;
    /// Money set aside with a suspended user, or brought back (code 1).
    Suspend = 1;
}

/// One command. Cheap to clone: the batches are shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Command {
    /// A new order.
    Place(Place),
    /// A new order with conditions: stop, iceberg, good till time. Shared, since it is large and
    /// rare.
    PlaceConditional(Arc<ConditionalOrder>),
    /// Takes an order out of its book.
    Cancel {
        /// Its owner.
        uid: UserId,
        /// Its symbol.
        symbol: SymbolId,
        /// The order.
        order_id: OrderId,
    },
    /// Changes an order's price; it matches as a taker and loses its time priority.
    Move {
        /// Its owner.
        uid: UserId,
        /// Its symbol.
        symbol: SymbolId,
        /// The order.
        order_id: OrderId,
        /// The new limit price.
        price: i64,
    },
    /// Changes an order's size, price, or both, atomically (FIX cancel/replace). Shared, since it
    /// is large and rare.
    ///
    /// A smaller size at the same price keeps the order's time priority. A larger size or another
    /// price loses it, and a price that crosses the book trades as in [`Move`](Self::Move). The new
    /// size includes what is already filled: at that or less, the order is cancelled.
    ///
    /// Money for further lots is held before anything else happens, at the reserve price, so a
    /// BID's price stays at or below that. An order that does not match the command (its side, its
    /// size before, of a pair's BID its reserve price) is left unchanged
    /// ([`MatchingAmendMismatch`](crate::ResultCode::MatchingAmendMismatch)), as is a post-only
    /// order that would take. An iceberg order keeps its display size, and any order its good-till
    /// time. A stop order that waits is not found. Futures must be covered
    /// ([`Rules::cover_futures`](crate::Rules::cover_futures)).
    Amend(Arc<Amend>),
    /// Reduces an order by some lots; it keeps its time priority.
    Reduce {
        /// Its owner.
        uid: UserId,
        /// Its symbol.
        symbol: SymbolId,
        /// The order.
        order_id: OrderId,
        /// Lots to take off; all that is left, or more, cancels the order.
        by: i64,
    },
    /// Adds a user without money.
    AddUser {
        /// The new user.
        uid: UserId,
    },
    /// Adds money to a balance, or takes it away.
    Balance {
        /// The user.
        uid: UserId,
        /// In which currency.
        currency: CurrencyId,
        /// How much; negative to withdraw.
        amount: i64,
        /// Must be above the user's last one, so that a repeated command counts once.
        transaction_id: i64,
        /// Which total it is booked against.
        kind: AdjustmentKind,
    },
    /// Pays collected fees of a currency out to a user's balance. More than what was collected and
    /// not yet paid out is refused with [`FeesNsf`](crate::ResultCode::FeesNsf).
    PayFees {
        /// To whom.
        uid: UserId,
        /// In which currency.
        currency: CurrencyId,
        /// How much; above zero.
        amount: i64,
        /// As in [`Balance`](Self::Balance); both commands share one series of ids.
        transaction_id: i64,
    },
    /// Sets the limits of a user, or the default limits of all users without their own. Orders that
    /// already rest stay.
    SetLimits {
        /// The user; `None` for the default limits.
        uid: Option<UserId>,
        /// The limits; `None` to remove them, so that the default ones apply again.
        limits: Option<UserLimits>,
    },
    /// Suspends a user who has no money and no position.
    Suspend {
        /// The user.
        uid: UserId,
    },
    /// Makes a suspended or removed user active again.
    Resume {
        /// The user.
        uid: UserId,
    },
    /// Adds symbols; ids that are known already are skipped.
    AddSymbols(Arc<[SymbolSpec]>),
    /// Adds users with balances; users who are known already are skipped.
    AddAccounts(Arc<[AccountSpec]>),
    /// Cancels all orders of a user (or of all), in a symbol (or in all), in ascending order of
    /// symbol; in a book asks, then bids, each as [`Book::orders`](crate::book::Book::orders) gives
    /// them, then stop orders that wait. Each is reported by an
    /// [`Event::Removed`](crate::Event::Removed). It succeeds for a user without orders, known or
    /// not (a suspended user without a record may have some). An unknown symbol is refused as in
    /// [`Cancel`](Self::Cancel).
    ///
    /// Cost: for one user, a visit to each of the user's orders and to each book, however many
    /// orders others have; the first such command visits all orders, and from then on an order that
    /// rests costs a little more. For all users, a look at every book, and [`WORK_MAX`] orders at
    /// most; [`State::left_over`](crate::State::left_over) then gives a command that goes on, for
    /// one symbol after another. Orders that come meanwhile are cancelled, too, so halt first.
    ///
    /// [`WORK_MAX`]: crate::WORK_MAX
    CancelAll {
        /// The user; `None` for the orders of all users, suspended ones included.
        uid: Option<UserId>,
        /// Where, halted or not; `None` for everywhere.
        symbol: Option<SymbolId>,
    },
    /// Reports that a user's session has ended: cancels those of the user's orders that [ask for
    /// that](crate::OrderFlags::with_cancel_on_disconnect), in all symbols, in the order in which
    /// [`CancelAll`](Self::CancelAll) would, at the same cost. It succeeds for a user without such
    /// orders, known or not. The gateway knows which sessions a user has and when one has ended.
    Disconnect {
        /// The user.
        uid: UserId,
    },
    /// Sets the clock, in a unit of the caller's choice: cancels the orders whose
    /// [`good_till`](ConditionalOrder::good_till) has come. A time below the last one is refused.
    Clock {
        /// The time.
        time: i64,
    },
    /// New and moved orders must be priced from `low` to `high`, both included, from now on: others
    /// are refused with [`RiskPriceOutsideBand`](crate::ResultCode::RiskPriceOutsideBand) before
    /// anything is held. Budget orders have no limit price: by the default rules they take at no
    /// price worse than the band. Orders that rest or wait stay. Replaces the previous band.
    ///
    /// By the default rules ([`Rules::cover_futures`](crate::Rules::cover_futures)), futures take
    /// no orders without a band, the band is from 1 to
    /// [`FUTURES_PRICE_MAX`](crate::risk::FUTURES_PRICE_MAX) at most, orders are covered by money
    /// at its worst price, and those that rest or wait outside it are removed:
    /// [`WORK_MAX`](crate::WORK_MAX) at most, and the others with the commands that
    /// [`State::left_over`](crate::State::left_over) gives. Until they are gone, a symbol that is
    /// in no auction takes no orders and no moves
    /// ([`SymbolHalted`](crate::ResultCode::SymbolHalted)).
    SetPriceBand {
        /// Where.
        symbol: SymbolId,
        /// The lowest price; `i64::MIN` for none.
        low: i64,
        /// The highest price; `i64::MAX` for none. An empty band is refused.
        high: i64,
    },
    /// Sets how many ticks from the best opposite price a market order may take in a symbol. A
    /// newly added symbol has no such bound. Negative ticks are refused
    /// ([`SymbolInvalidSpec`](crate::ResultCode::SymbolInvalidSpec)).
    SetMarketProtection {
        /// Where.
        symbol: SymbolId,
        /// The distance: 0 for the best price alone, `i64::MAX` for no bound.
        ticks: i64,
    },
    /// Halts a symbol: new and moved orders are refused with
    /// [`SymbolHalted`](crate::ResultCode::SymbolHalted), so nothing trades. Orders that rest or
    /// wait stay; cancels, reductions and expiry still work. A symbol that is already halted is
    /// refused.
    Halt {
        /// Which.
        symbol: SymbolId,
    },
    /// Ends a halt; the symbol's price band, if any, applies as before. A symbol that is not halted
    /// is refused.
    Unhalt {
        /// Which.
        symbol: SymbolId,
    },
    /// Starts a call auction in a symbol, for the opening or to end a halt: from now on new, moved
    /// and amended orders rest and do not trade, at whatever prices. Orders that cannot rest, or
    /// must not take, are refused with [`SymbolInAuction`](crate::ResultCode::SymbolInAuction);
    /// stop orders wait. [`Book::indicative`](crate::book::Book::indicative) gives its indicative
    /// price.
    ///
    /// Needs rules under which sizes are above zero, and futures are covered.
    StartAuction {
        /// Which.
        symbol: SymbolId,
    },
    /// Ends a call auction: orders trade by price and time, all at one price: the one with the
    /// largest volume, among those the one with the smallest surplus, among those the one nearest
    /// to the reference. Continuous trading resumes, and stop orders are triggered.
    ///
    /// Buyers get back what they held above the price. Both sides pay the taker fee: neither waited
    /// for the other. Orders outside the price band are removed first. Self-trade prevention does
    /// nothing. Each buyer has an [`Event::Uncrossed`](crate::Event::Uncrossed).
    ///
    /// Looks at [`WORK_MAX`](crate::WORK_MAX) levels at most, and makes as many events. The rest
    /// goes with the commands that [`State::left_over`](crate::State::left_over) gives, at the same
    /// price: any `Uncross` of the symbol, whose reference is ignored then. Until that is done, the
    /// symbol stays in the auction, and no order comes, changes or leaves: such commands, another
    /// band, a mass cancel of all users' orders and a removal are refused
    /// ([`SymbolInAuction`](crate::ResultCode::SymbolInAuction)). A user's mass cancel, and the end
    /// of a session, take out what is left when all trades are done.
    Uncross {
        /// Where.
        symbol: SymbolId,
        /// The reference price, above zero; `None` for that of the last trade or, without one, the
        /// middle of the equally good prices.
        reference: Option<i64>,
    },
    /// Executes stop orders of a symbol that are left over: a trade has triggered them, but its
    /// command had reached the bound of events ([`WORK_MAX`](crate::WORK_MAX)). This command has
    /// the same bound; what is left then takes a further one. Succeeds if there are none. See
    /// [`State::left_over`](crate::State::left_over).
    ///
    /// Refused while the symbol is halted or in an auction.
    RunStops {
        /// Which.
        symbol: SymbolId,
    },
    /// Removes a symbol: cancels its orders as [`CancelAll`](Self::CancelAll) does, and forgets the
    /// symbol, its book, last prices, halt and band. Its id is unknown from then on, and may be
    /// added again with any terms. Refused where a user has an open position in it, and where more
    /// than [`WORK_MAX`](crate::WORK_MAX) orders are in its book: cancel all of them first.
    ///
    /// Cost: visits every user, and every order of the book.
    RemoveSymbol {
        /// Which.
        symbol: SymbolId,
    },
    /// Does nothing, successfully.
    #[default]
    Nop,
    /// Forgets everything: users, symbols, books, totals. Refused where there are more than
    /// [`WORK_MAX`](crate::WORK_MAX) users, symbols or orders.
    Reset,
}

impl Command {
    /// Becomes a copy of another one, as by `clone_from`.
    #[inline(always)]
    pub(crate) fn copy_from(&mut self, other: &Self) {
        match *other {
            Self::Place(place) => self.put(Self::Place(place)),
            Self::Cancel {
                uid,
                symbol,
                order_id,
            } => self.put(Self::cancel(uid, symbol, order_id)),
            _ => self.clone_from(other),
        }
    }

    /// Becomes another one: where it is a frequent one, without a look at what is to be dropped.
    #[inline(always)]
    pub(crate) fn put(&mut self, other: Self) {
        match self {
            Self::Place(_) | Self::Cancel { .. } => {
                std::mem::forget(std::mem::replace(self, other));
            }
            _ => *self = other,
        }
    }

    /// Takes an order out of its book.
    #[must_use]
    #[inline]
    pub const fn cancel(uid: UserId, symbol: SymbolId, order_id: OrderId) -> Self {
        Self::Cancel {
            uid,
            symbol,
            order_id,
        }
    }

    /// Changes an order's price.
    #[must_use]
    #[inline]
    pub const fn move_to(uid: UserId, symbol: SymbolId, order_id: OrderId, price: i64) -> Self {
        Self::Move {
            uid,
            symbol,
            order_id,
            price,
        }
    }

    /// Reduces an order by some lots.
    #[must_use]
    #[inline]
    pub const fn reduce(uid: UserId, symbol: SymbolId, order_id: OrderId, by: i64) -> Self {
        Self::Reduce {
            uid,
            symbol,
            order_id,
            by,
        }
    }

    /// Adds money to a balance, or takes it away, as an [`AdjustmentKind::Adjustment`].
    #[must_use]
    #[inline]
    pub const fn deposit(
        uid: UserId,
        currency: CurrencyId,
        amount: i64,
        transaction_id: i64,
    ) -> Self {
        Self::Balance {
            uid,
            currency,
            amount,
            transaction_id,
            kind: AdjustmentKind::Adjustment,
        }
    }

    /// Cancels all orders of a user (or of all), in a symbol (or in all).
    #[must_use]
    #[inline]
    pub const fn cancel_all(uid: Option<UserId>, symbol: Option<SymbolId>) -> Self {
        Self::CancelAll { uid, symbol }
    }

    /// Returns the command by which new and moved orders must be priced from `low` to `high`.
    #[must_use]
    #[inline]
    pub const fn set_price_band(symbol: SymbolId, low: i64, high: i64) -> Self {
        Self::SetPriceBand { symbol, low, high }
    }

    /// Returns the new order, with or without conditions.
    #[must_use]
    #[inline]
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Place(place) => Some(place),
            Self::PlaceConditional(order) => Some(&order.place),
            _ => None,
        }
    }

    /// Returns the symbol of the command's order; none for commands that do not concern a single
    /// order.
    #[must_use]
    pub fn symbol(&self) -> Option<SymbolId> {
        match self {
            Self::Place(place) => Some(place.symbol),
            Self::PlaceConditional(order) => Some(order.place.symbol),
            Self::Amend(amend) => Some(amend.symbol),
            Self::Cancel { symbol, .. }
            | Self::Move { symbol, .. }
            | Self::Reduce { symbol, .. } => Some(*symbol),
            _ => None,
        }
    }

    /// Returns the user who sent the command or whom it concerns; none for batches, `Nop`, `Reset`,
    /// and commands of the market's operator.
    #[must_use]
    pub fn uid(&self) -> Option<UserId> {
        match self {
            Self::Place(place) => Some(place.uid),
            Self::PlaceConditional(order) => Some(order.place.uid),
            Self::Amend(amend) => Some(amend.uid),
            Self::Cancel { uid, .. }
            | Self::Move { uid, .. }
            | Self::Reduce { uid, .. }
            | Self::AddUser { uid }
            | Self::Balance { uid, .. }
            | Self::PayFees { uid, .. }
            | Self::Suspend { uid }
            | Self::Resume { uid } => Some(*uid),
            Self::SetLimits { uid, .. } => *uid,
            _ => None,
        }
    }
}
