//! New orders and amendments.

use crate::codes::codes;
use crate::command::OrderFlags;
use crate::ids::{OrderId, SymbolId, UserId};

codes! {
    /// The side of an order: sell or buy.
    pub enum Action: u8;
    /// Sell (code 0).
    Ask = 0, "ASK";
    /// Buy (code 1).
    Bid = 1, "BID";
}

impl Action {
    /// Returns the other side.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Ask => Self::Bid,
            Self::Bid => Self::Ask,
        }
    }
}

codes! {
    /// How long an order lives, and what its price means.
    pub enum OrderType: u8;
    /// Good till cancelled (code 0): what does not match rests.
    Gtc = 0, "GTC";
    /// Immediate or cancel (code 1): what does not match is rejected.
    Ioc = 1, "IOC";
    /// Immediate or cancel within a budget (code 2): the price is the whole budget.
    IocBudget = 2, "IOC_BUDGET";
    /// Fill or kill (code 3): the whole size within the limit price, or nothing.
    Fok = 3, "FOK";
    /// Fill or kill within a budget (code 4): the price is the whole budget.
    FokBudget = 4, "FOK_BUDGET";
    /// Market with protection (code 5): takes at prices no further from the best opposite one, as
    /// it is when the order comes, than the symbol's
    /// [protection](crate::Command::SetMarketProtection); what is left is rejected. The price is
    /// the worst that its owner accepts: money is held at it. Unlike a limit it may be outside the
    /// price band; the order takes at prices of the band only.
    Market = 5, "MARKET";
}

impl OrderType {
    /// Returns true where the order's price is a budget for its whole size.
    #[must_use]
    pub const fn is_budget(self) -> bool {
        matches!(self, Self::IocBudget | Self::FokBudget)
    }

    /// Returns true if the order's price is a limit, to which the price band applies.
    #[must_use]
    pub const fn has_limit(self) -> bool {
        matches!(self, Self::Gtc | Self::Ioc | Self::Fok)
    }
}

/// A new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Place {
    /// The user who places it.
    pub uid: UserId,
    /// Where.
    pub symbol: SymbolId,
    /// The client's id for it: unique among its owner's resting orders of the symbol, or among
    /// those of all users where [`ids_per_user`](crate::Rules::ids_per_user) is off.
    pub order_id: OrderId,
    /// How long it lives.
    pub order_type: OrderType,
    /// Its side.
    pub action: Action,
    /// Limit price; of a market order the worst price, of a budget order the whole budget.
    pub price: i64,
    /// BID: the price up to which the order may later be moved; money is held at this price.
    /// Must be at least `price` (equal to it for a budget order). Unused for ASK.
    pub reserve_price: i64,
    /// Lots.
    pub size: i64,
    /// Post-only, self-trade prevention: [`OrderFlags::NONE`] for neither.
    pub flags: OrderFlags,
}

impl Place {
    /// Whether it has no conditions, and takes what there is up to its price, or all or nothing.
    #[inline(always)]
    pub(crate) const fn takes_plainly(&self) -> bool {
        self.flags.is_plain()
            && matches!(
                self.order_type,
                OrderType::Gtc | OrderType::Ioc | OrderType::Fok
            )
    }

    /// Returns a GTC order with this limit price, which is also its reserve price, and this size.
    #[must_use]
    pub const fn limit(
        (uid, order_id): (UserId, OrderId),
        symbol: SymbolId,
        action: Action,
        (price, size): (i64, i64),
    ) -> Self {
        Self {
            uid,
            symbol,
            order_id,
            order_type: OrderType::Gtc,
            action,
            price,
            reserve_price: price,
            size,
            flags: OrderFlags::NONE,
        }
    }

    /// Returns this order with another type.
    #[must_use]
    pub const fn with_type(self, order_type: OrderType) -> Self {
        Self { order_type, ..self }
    }

    /// Returns this order with a reserve price of its own.
    #[must_use]
    pub const fn with_reserve(self, reserve_price: i64) -> Self {
        Self {
            reserve_price,
            ..self
        }
    }

    /// Returns this order with these options.
    #[must_use]
    pub const fn with_flags(self, flags: OrderFlags) -> Self {
        Self { flags, ..self }
    }
}

/// A resting order as it is and as it should become, for [`Command::Amend`](crate::Command::Amend).
/// The owner states the side, the reserve price and the size, since money is held before the book
/// is consulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Amend {
    /// Its owner.
    pub uid: UserId,
    /// Its symbol.
    pub symbol: SymbolId,
    /// The order.
    pub order_id: OrderId,
    /// Its side.
    pub action: Action,
    /// Its reserve price, which stays; unused for an ASK, and for futures.
    pub reserve_price: i64,
    /// Its size, including what is filled.
    pub size_before: i64,
    /// The new limit price; the same as before to keep it.
    pub price: i64,
    /// The new size, including what is filled; not below zero.
    pub size: i64,
}
