//! New orders, with their options and conditions, and amendments. The reference engine has no
//! conditions; an order without them behaves as if none existed.

use crate::codes::codes;
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
    /// Returns whether it has no conditions, and takes what there is up to its price, or all or
    /// nothing.
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

/// Self-trade prevention: how a taker is handled that would trade with an order of its own user. It
/// is decided when the resting order would be the next to trade; earlier trades with others stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum SelfTrade {
    /// They trade (code 0): what the reference does.
    #[default]
    Allow = 0,
    /// The taker's unfilled rest is rejected (code 1).
    CancelTaker = 1,
    /// The resting order is cancelled, and the taker goes on (code 2).
    CancelMaker = 2,
    /// Both (code 3).
    CancelBoth = 3,
    /// Both orders lose as many lots as the smaller one has, hidden ones included, without a trade
    /// (code 8): one of them, or both, are gone then, and a taker with lots left goes on. The maker
    /// keeps its place.
    Decrement = 8,
}

/// Options of an order, in one byte: post-only, self-trade prevention, and cancel on disconnect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderFlags(u8);

impl OrderFlags {
    /// No options.
    pub const NONE: Self = Self(0);
    const SELF_TRADE: u8 = 0b1011;
    const POST_ONLY: u8 = 4;
    const WITH_SESSION: u8 = 16;

    /// Flags by their code: bits 0, 1 and 3 the code of [`SelfTrade`], bit 2 post-only, bit 4
    /// cancel on disconnect. `None` where any other bit is set, or bits 0, 1 and 3 are none of its
    /// codes.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code & !(Self::POST_ONLY | Self::WITH_SESSION) {
            0..=3 | 8 => Some(Self(code)),
            _ => None,
        }
    }

    /// Returns the code, as [`from_code`](Self::from_code) takes it.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Returns these flags with post-only set: an order that would take is rejected whole.
    #[must_use]
    pub const fn with_post_only(self) -> Self {
        Self(self.0 | Self::POST_ONLY)
    }

    /// Returns these flags with this self-trade prevention.
    #[must_use]
    pub const fn with_self_trade(self, mode: SelfTrade) -> Self {
        Self(self.0 & !Self::SELF_TRADE | mode as u8)
    }

    /// Returns these flags with cancel on disconnect:
    /// [`Command::Disconnect`](crate::Command::Disconnect) of its owner cancels the order. Nothing
    /// else depends on it.
    #[must_use]
    pub const fn with_cancel_on_disconnect(self) -> Self {
        Self(self.0 | Self::WITH_SESSION)
    }

    /// Returns true if the order is cancelled when its owner's session ends.
    #[must_use]
    pub const fn is_cancel_on_disconnect(self) -> bool {
        self.0 & Self::WITH_SESSION != 0
    }

    /// Returns true where matching has nothing to look at.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 & !Self::WITH_SESSION == 0
    }

    /// Returns true where the order must not take.
    #[must_use]
    pub const fn is_post_only(self) -> bool {
        self.0 & Self::POST_ONLY != 0
    }

    /// Returns the self-trade prevention that applies when this order takes.
    #[must_use]
    pub const fn self_trade(self) -> SelfTrade {
        match self.0 & Self::SELF_TRADE {
            0 => SelfTrade::Allow,
            1 => SelfTrade::CancelTaker,
            2 => SelfTrade::CancelMaker,
            3 => SelfTrade::CancelBoth,
            _ => SelfTrade::Decrement,
        }
    }
}
/// Flags are serialised as their code.
#[cfg(feature = "serde")]
impl serde::Serialize for OrderFlags {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.code())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for OrderFlags {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = <u8 as serde::Deserialize>::deserialize(deserializer)?;
        let error = || serde::de::Error::custom(format_args!("{code} is no code of order flags"));
        Self::from_code(code).ok_or_else(error)
    }
}

/// An iceberg's size may be at most 1,000 × its display. It bounds how often one order is met,
/// however large the order is that meets it.
const LOTS_PER_DISPLAYED_LOT_MAX: i64 = 1_000;

/// Returns whether an iceberg order may have `size` lots by its `display`, which is at least one.
pub(crate) const fn display_is_large_enough(display: i64, size: i64) -> bool {
    display.saturating_mul(LOTS_PER_DISPLAYED_LOT_MAX) >= size
}

/// A new order with conditions, for
/// [`Command::PlaceConditional`](crate::Command::PlaceConditional). They can be combined. An order
/// with any of them must have a size and a price above zero, under every rule set. Conditions are
/// checked before the order itself; refused with a code of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConditionalOrder {
    /// The order itself. Its money is held from the beginning.
    pub place: Place,
    /// Stop: the order waits outside the book until a trade of its symbol is at this price or
    /// beyond it (a BID: at or above; an ASK: at or below), and is then executed as `place` says:
    /// GTC makes it a stop-limit order, IOC a stop order that takes up to its limit, Market one
    /// with protection. At least 1.
    /// Other types are refused. One that the symbol's last trade has passed already is triggered at
    /// once (where [`trigger_passed_stops`](crate::Rules::trigger_passed_stops) holds; else trades
    /// before it was placed do not count). If its price is outside the price band when it is
    /// triggered, it is removed. While it waits, it can be cancelled and reduced, not moved, and no
    /// resting or waiting order of its symbol (and owner, where ids are per user) may have its id:
    /// else it is rejected.
    pub trigger: Option<i64>,
    /// Iceberg: at most this many lots are displayed at a time. When they are filled, the order
    /// goes to the end of its queue and displays as many of its hidden lots. GTC only; at least 1,
    /// and display × 1,000 ≥ size. The rules are in `docs/exchange-rules.md`.
    pub display: Option<i64>,
    /// Good till time: the first [`Command::Clock`](crate::Command::Clock) at or after this time,
    /// in the unit of those commands, removes the order. It is for GTC orders, and for any stop
    /// order while that waits. Refused if it is not after the last clock.
    pub good_till: Option<i64>,
}

impl ConditionalOrder {
    /// Returns this order as a stop order with this trigger.
    #[must_use]
    pub const fn with_trigger(mut self, price: i64) -> Self {
        self.trigger = Some(price);
        self
    }

    /// Returns this order as an iceberg that displays this many lots.
    #[must_use]
    pub const fn with_display(mut self, lots: i64) -> Self {
        self.display = Some(lots);
        self
    }

    /// Returns this order with the time of its end.
    #[must_use]
    pub const fn with_good_till(mut self, time: i64) -> Self {
        self.good_till = Some(time);
        self
    }

    /// Returns false where the order is one of [`Command::Place`](crate::Command::Place).
    pub(crate) const fn has_conditions(&self) -> bool {
        let Self {
            place: _,
            trigger,
            display,
            good_till,
        } = self;
        trigger.is_some() || display.is_some() || good_till.is_some()
    }
}

impl From<Place> for ConditionalOrder {
    /// Returns the order without conditions: executed as [`Command::Place`](crate::Command::Place)
    /// would.
    fn from(place: Place) -> Self {
        Self {
            place,
            trigger: None,
            display: None,
            good_till: None,
        }
    }
}
