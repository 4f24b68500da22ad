//! What settlement is told of a trade before it is an event.

use super::UserHint;
use crate::ids::UserId;

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
