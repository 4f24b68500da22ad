//! The trade as settlement gets it, before it is an event.

use crate::ids::UserId;

/// The slot where the risk check keeps an order's owner, as the risk check itself reported it when
/// the order was placed.
///
/// Saves a look-up and proves nothing: its user must check that the user in that slot is the one
/// whose id stands beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserHint(pub(crate) u32);

impl UserHint {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self(u32::MAX);
}

/// The hints of a list of events, from its first on.
#[derive(Clone, Copy)]
pub(crate) struct Hints<'e>(pub(super) &'e [UserHint]);

impl Hints<'_> {
    /// The hints of a list of events without any.
    pub(crate) const NONE: Self = Self(&[]);

    /// Returns the hint of the event at `at`.
    #[inline(always)]
    pub(crate) fn at(self, at: usize) -> UserHint {
        self.0.get(at).copied().unwrap_or(UserHint::UNKNOWN)
    }

    /// Returns the hints of the events from `at` on.
    pub(crate) fn from(self, at: usize) -> Self {
        Self(self.0.get(at..).unwrap_or_default())
    }
}

/// The maker's side of a trade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) price: i64,
    pub(crate) size: i64,
    pub(crate) uid: UserId,
    pub(crate) user: UserHint,
    pub(crate) reserve_price: i64,
    pub(crate) completed: bool,
}
