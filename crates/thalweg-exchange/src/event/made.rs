//! What settlement is told of a trade before it is an event.

use crate::ids::UserId;

/// Where the risk side keeps an order's owner, as it said itself when the order was placed.
///
/// Saves a look-up and proves nothing: whoever uses it must see that the user of that slot is the
/// one whose id stands beside it.
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
    /// Those of events of which nothing was noted.
    pub(crate) const NONE: Self = Self(&[]);

    /// That of the event at `at`.
    #[inline(always)]
    pub(crate) fn at(self, at: usize) -> UserHint {
        self.0.get(at).copied().unwrap_or(UserHint::UNKNOWN)
    }

    /// Those of the events from `at` on.
    pub(crate) fn from(self, at: usize) -> Self {
        Self(self.0.get(at..).unwrap_or_default())
    }
}

/// What a trade is to its maker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) price: i64,
    pub(crate) size: i64,
    pub(crate) uid: UserId,
    pub(crate) user: UserHint,
    pub(crate) reserve_price: i64,
    pub(crate) completed: bool,
}
