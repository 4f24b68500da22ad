//! The parts of a command that its reports need.

use crate::command::{Action, Command, Place};
use crate::ids::{OrderId, SymbolId, UserId};

/// The request of a command for one order: all that its reports need of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(super) uid: UserId,
    pub(super) symbol: SymbolId,
    pub(super) order: OrderId,
    pub(super) price: i64,
    /// The side and the size of a new order.
    pub(super) new: Option<(Action, i64)>,
    /// Lots that are given to an order beyond those that it has.
    pub(super) more: i64,
    /// It concerns one order of its user.
    pub(super) is_order: bool,
    /// The user who sent the command, if it is of one user.
    owner: Option<UserId>,
}

impl Asked {
    pub(crate) fn of(command: &Command) -> Self {
        if let Some(place) = command.place() {
            return Self::new(place);
        }
        let none = Self {
            uid: UserId(0),
            symbol: SymbolId(0),
            order: OrderId(0),
            price: 0,
            new: None,
            more: 0,
            is_order: false,
            owner: command.uid(),
        };
        match *command {
            Command::Cancel {
                uid,
                symbol,
                order_id: order,
            }
            | Command::Reduce {
                uid,
                symbol,
                order_id: order,
                ..
            } => Self {
                uid,
                symbol,
                order,
                is_order: true,
                ..none
            },
            Command::Move {
                uid,
                symbol,
                order_id: order,
                price,
            } => Self {
                uid,
                symbol,
                order,
                price,
                is_order: true,
                ..none
            },
            Command::Amend(ref amend) => Self {
                uid: amend.uid,
                symbol: amend.symbol,
                order: amend.order_id,
                price: amend.price,
                more: amend.size.saturating_sub(amend.size_before).max(0),
                is_order: true,
                ..none
            },
            Command::RunStops { symbol } | Command::Uncross { symbol, .. } => {
                Self { symbol, ..none }
            }
            Command::CancelAll { uid, .. } => Self { owner: uid, ..none },
            Command::Disconnect { uid } => Self {
                owner: Some(uid),
                ..none
            },
            _ => none,
        }
    }

    /// Returns the user who sent the command, if it is of one user.
    pub(crate) const fn user(&self) -> Option<UserId> {
        self.owner
    }

    const fn new(place: &Place) -> Self {
        Self {
            owner: Some(place.uid),
            uid: place.uid,
            symbol: place.symbol,
            order: place.order_id,
            price: place.price,
            new: Some((place.action, place.size)),
            more: 0,
            is_order: true,
        }
    }
}
