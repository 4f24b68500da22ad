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

/// A new order with conditions, for [`Command::PlaceWith`](crate::Command::PlaceWith). They can be
/// combined. An order with any of them must have a size and a price above zero, under every rule
/// set. Conditions are checked before the order itself; refused with a code of their own.
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
