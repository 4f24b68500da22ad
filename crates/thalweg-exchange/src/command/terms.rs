//! Options of a new order beyond price, size and type. The reference engine has none of it; an
//! order without options behaves as if none of it existed.

use crate::command::Place;

/// An iceberg's size may be at most 1,000 × its display. It bounds how often one order is met,
/// however large the order is that meets it.
const LOTS_PER_DISPLAYED_LOT_MAX: i64 = 1_000;

/// Returns whether an iceberg order may have `size` lots by its `display`, which is at least one.
pub(crate) const fn display_is_large_enough(display: i64, size: i64) -> bool {
    display.saturating_mul(LOTS_PER_DISPLAYED_LOT_MAX) >= size
}

/// Self-trade prevention: how a taker is handled that would trade with an order of its own user. It
/// is decided when the resting order would be the next to trade; earlier trades with others stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    pub const fn goes_with_session(self) -> bool {
        self.0 & Self::WITH_SESSION != 0
    }

    /// True where matching has nothing to look at.
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

/// A new order with conditions, for [`Command::PlaceWith`](crate::Command::PlaceWith). They can be
/// combined. An order with any of them must have a size and a price above zero, under every rule
/// set. Conditions are checked before the order itself; refused with a code of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Iceberg: at most this many lots are displayed at a time; when they are filled, as many more
    /// are displayed at the end of the queue. GTC only; at least 1, and display × 1,000 ≥ size. The
    /// rules are in `docs/exchange-rules.md`.
    pub display: Option<i64>,
    /// Good till time: cancelled by the first [`Command::Clock`](crate::Command::Clock) at or after
    /// this time, in the unit of those commands. GTC only, or while a stop order waits. Refused if
    /// it is not after the last clock.
    pub good_till: Option<i64>,
}

impl ConditionalOrder {
    /// False where the order is one of [`Command::Place`](crate::Command::Place).
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
    /// The order without conditions: executed as [`Command::Place`](crate::Command::Place) would.
    fn from(place: Place) -> Self {
        Self {
            place,
            trigger: None,
            display: None,
            good_till: None,
        }
    }
}
