//! Symbols, users and limits, as the market's operator defines them.

#[cfg(doc)]
use super::Command;
use crate::codes::codes;
use crate::ids::{CurrencyId, SymbolId, UserId};

codes! {
    /// The kind of an instrument.
    #[derive(Default)]
    pub enum SymbolType: u8;
    /// A currency pair (code 0).
    #[default]
    CurrencyPair = 0;
    /// A futures contract (code 1).
    Futures = 1;
    /// An option (code 2): always refused.
    Option = 2;
}

codes! {
    /// The unit in which a symbol's fees are counted.
    #[derive(Default)]
    pub enum FeeUnit: u8;
    /// Units of the quote currency for each lot (code 0).
    #[default]
    PerLot = 0;
    /// Millionths of what a trade is worth (code 1): a basis point is 100. At most 1,000,000. Not
    /// under the reference's rules.
    ///
    /// A fee is rounded up to a unit of the quote currency, a rebate down: a taker's once for all
    /// trades of a command, a maker's for each trade.
    Millionth = 1;
}

/// A symbol and its terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)] // The symbol's id and kind come first: see `Book`.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SymbolSpec {
    /// The symbol's id.
    pub id: SymbolId,
    /// Kind of instrument.
    pub symbol_type: SymbolType,
    /// The currency that is traded.
    pub base_currency: CurrencyId,
    /// The currency that it is paid with.
    pub quote_currency: CurrencyId,
    /// Pairs: units of the base currency in one lot; at least 1.
    pub base_scale: i64,
    /// Pairs: units of the quote currency in one unit of price; at least 1. In futures, a unit of
    /// price is a unit of the quote currency a lot, whatever stands here, as in the reference: put
    /// a contract's size into its prices.
    pub quote_scale: i64,
    /// Fee of the order that takes, in [`fee_unit`](Self::fee_unit); at least 0.
    pub taker_fee: i64,
    /// Fee of the order that rests, in the same unit. Under the default rules it is not above the
    /// taker fee; in a pair it may be a rebate (below 0) if taker fee + maker fee is not below 0.
    pub maker_fee: i64,
    /// Futures: margin for one bought lot, in quote units.
    pub margin_buy: i64,
    /// Futures: margin for one sold lot, in quote units.
    pub margin_sell: i64,
    /// The unit in which the fees are counted.
    pub fee_unit: FeeUnit,
}

impl SymbolSpec {
    /// Returns a currency pair without fees: a lot is one unit of the base currency, and prices are
    /// in units of the quote currency.
    #[must_use]
    pub fn pair(id: SymbolId, base: CurrencyId, quote: CurrencyId) -> Self {
        Self {
            id,
            base_currency: base,
            quote_currency: quote,
            base_scale: 1,
            quote_scale: 1,
            ..Self::default()
        }
    }

    /// Returns this symbol as one of another kind.
    #[must_use]
    pub const fn with_type(mut self, symbol_type: SymbolType) -> Self {
        self.symbol_type = symbol_type;
        self
    }

    /// Returns this symbol with these scales.
    #[must_use]
    pub const fn with_scales(mut self, base: i64, quote: i64) -> Self {
        (self.base_scale, self.quote_scale) = (base, quote);
        self
    }

    /// Returns this symbol with the fees of a taker and a maker.
    #[must_use]
    pub const fn with_fees(mut self, taker: i64, maker: i64) -> Self {
        (self.taker_fee, self.maker_fee) = (taker, maker);
        self
    }

    /// Returns this symbol with the margins for a lot that is bought or sold.
    #[must_use]
    pub const fn with_margins(mut self, buy: i64, sell: i64) -> Self {
        (self.margin_buy, self.margin_sell) = (buy, sell);
        self
    }

    /// Returns this symbol with its fees in another unit.
    #[must_use]
    pub const fn with_fee_unit(mut self, unit: FeeUnit) -> Self {
        self.fee_unit = unit;
        self
    }
}

/// How many orders a user may have, and how large; for [`Command::SetLimits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UserLimits {
    /// How many orders may rest and wait at once, in all symbols together. A further order that
    /// could rest or wait is refused with
    /// [`RiskTooManyOrders`](crate::ResultCode::RiskTooManyOrders).
    pub open_orders: u32,
    /// How many lots a new order may have. A larger one is refused with
    /// [`RiskOrderTooLarge`](crate::ResultCode::RiskOrderTooLarge).
    pub order_size: i64,
    /// Whether an order id may be used only once, in all symbols together and even after its order
    /// is gone, so that a command can safely be sent again. Each of the newest [`ID_WINDOW`] ids,
    /// up to the highest that was accepted, is known, and refused with
    /// [`RiskOrderIdUsed`](crate::ResultCode::RiskOrderIdUsed) the second time; all below are
    /// refused with [`RiskOrderIdTooOld`](crate::ResultCode::RiskOrderIdTooOld). So ids must be
    /// given roughly in ascending order. An order that is refused by the risk check uses no id.
    ///
    /// [`ID_WINDOW`]: crate::risk::ID_WINDOW
    pub ids_once: bool,
}

impl UserLimits {
    /// No limits.
    pub const NONE: Self = Self {
        open_orders: u32::MAX,
        order_size: i64::MAX,
        ids_once: false,
    };

    /// Returns these limits with this many open orders.
    #[must_use]
    pub const fn with_open_orders(mut self, orders: u32) -> Self {
        self.open_orders = orders;
        self
    }

    /// Returns these limits with orders of at most this many lots.
    #[must_use]
    pub const fn with_order_size(mut self, lots: i64) -> Self {
        self.order_size = lots;
        self
    }

    /// Returns these limits with each order id accepted only once.
    #[must_use]
    pub const fn with_ids_once(mut self) -> Self {
        self.ids_once = true;
        self
    }
}

impl Default for UserLimits {
    /// [`UserLimits::NONE`].
    fn default() -> Self {
        Self::NONE
    }
}

/// A user with first balances, for [`Command::AddAccounts`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AccountSpec {
    /// The new user.
    pub uid: UserId,
    /// First balances. They are booked in ascending order of currency, each with the transaction
    /// id 1,000,000,000 + currency; of two for one currency the first counts.
    pub balances: Vec<(CurrencyId, i64)>,
}

impl AccountSpec {
    /// Returns a new user with its first balances.
    #[must_use]
    pub const fn new(uid: UserId, balances: Vec<(CurrencyId, i64)>) -> Self {
        Self { uid, balances }
    }
}
