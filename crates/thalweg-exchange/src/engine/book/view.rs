//! The public view of a book.

use crate::command::Action;
use crate::command::OrderFlags;
use crate::ids::{OrderId, UserId};

/// A price level as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: i64,
    /// Lots that rest here.
    pub volume: i64,
    /// How many orders they belong to.
    pub orders: u64,
}

/// A resting order as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestingOrder {
    /// Its id.
    pub order_id: OrderId,
    /// Its owner.
    pub uid: UserId,
    /// Its side.
    pub action: Action,
    /// Its limit price.
    pub price: i64,
    /// Its reserve price, as it was placed.
    pub reserve_price: i64,
    /// Its size in lots, what is filled included.
    pub size: i64,
    /// Lots that are filled.
    pub filled: i64,
    /// Lots of an iceberg order that are neither filled nor shown; no part of its level's volume.
    pub hidden: i64,
    /// How many it shows at a time, while lots are hidden.
    pub display: Option<i64>,
    /// When it expires.
    pub good_till: Option<i64>,
    /// Its flags, which count when it is moved and takes.
    pub flags: OrderFlags,
}
