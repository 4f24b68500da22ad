//! Execution reports: a venue's messages to users about their own orders.
//!
//! [`Event`]s are the engine's own record of a command: settlement needs all of it. A
//! report is for one user. It names the user's order and says what happened to it, and how much of
//! it is now filled and left. Each side of a trade gets a report; both have the same [`TradeId`],
//! and neither reveals the other's user, order or reserve price.
//!
//! The words are those of FIX (ExecType, LeavesQty, CumQty); [`Execution`] names the codes.
//!
//! *The life of an order* begins with [`Execution::New`] or [`Execution::Rejected`] and ends with
//! one report that [is final](ExecutionReport::is_final). At each report, lots filled, lots left
//! and lots cancelled so far add up to its size. How much of an iceberg order is shown is not
//! reported.
//!
//! Reports come in the order in which things happened, and so an order's rest that is cancelled
//! comes after its trades. A request that is refused (a cancel, a move, a reduction) has one
//! report, [`Execution::RequestRejected`]; it says nothing of the order, which may not be there.
//!
//! Commands that concern no orders (users, money, symbols) have no reports, only a result.
//!
//! ```
//! use thalweg_exchange::execution::{Execution, ExecutionReports};
//! use thalweg_exchange::{Command, Events, OrderId, ResultCode, State, SymbolId, UserId, apply};
//!
//! let (mut state, mut events) = (State::default(), Events::new());
//! let cancel = Command::cancel(UserId(7), SymbolId(1), OrderId(9));
//! let result = apply(&mut state, &cancel, &mut events);
//! let mut reports = ExecutionReports::new(0, &cancel, result, &events);
//! let report = reports.next().expect("it was refused");
//! let code = ResultCode::MatchingInvalidOrderBookId;
//! assert_eq!((report.owner, report.kind), (UserId(7), Execution::RequestRejected(code)));
//! assert_eq!(reports.next(), None);
//! ```

mod reports;

use std::fmt;

pub use self::reports::ExecutionReports;
use crate::command::{Action, Command, Place};
use crate::event::{Event, Events, RejectReason, Removal};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

/// A trade: the same in the reports of both sides, unique in an exchange, and the same for every
/// placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TradeId {
    /// The number of the command that traded.
    pub command: u64,
    /// Which trade of that command, from 0.
    pub index: u32,
}

impl fmt::Display for TradeId {
    /// Both numbers, such as `17-0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.command, self.index)
    }
}

/// Why lots of an order are cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CancelReason {
    /// Its owner asked for it.
    Requested,
    /// The order's rest neither trades nor rests.
    Left(RejectReason),
    /// It was taken out of its book. Never [`Removal::Expired`], [`Removal::Cancelled`],
    /// [`Removal::Reduced`] or [`Removal::Decremented`], which are executions of their own.
    Removed(Removal),
}

/// The kind of an execution report, by the names that FIX has for it (ExecType, tag 150).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Execution {
    /// It was accepted (`0`). A stop order waits now.
    New,
    /// It traded (`F`).
    Trade {
        /// Which trade.
        id: TradeId,
        /// At which price (LastPx).
        price: i64,
        /// Lots (LastQty).
        size: i64,
        /// True of the order that rested.
        is_maker: bool,
    },
    /// Its price or size was changed (`5`).
    Replaced {
        /// Lots that were taken off it; negative for lots that were added.
        reduced_by: i64,
    },
    /// The order's unfilled rest is cancelled (`4`).
    Cancelled {
        /// Lots.
        size: i64,
        /// Why.
        why: CancelReason,
    },
    /// It expired, and what was left of it is cancelled (`C`).
    Expired {
        /// Lots.
        size: i64,
    },
    /// It waited as a stop order, and is executed now (`L`).
    Triggered,
    /// It was not accepted (`8`), with the code that says why.
    Rejected(ResultCode),
    /// A request about it is refused, with the code that says why; the order, if it exists, is
    /// unchanged (FIX: OrderCancelReject, 35=9).
    RequestRejected(ResultCode),
}

/// A report to one user about one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExecutionReport {
    /// The number of the command, as given to [`ExecutionReports::new`].
    pub command: u64,
    /// The order's owner: whom the report is for.
    pub owner: UserId,
    /// The order's symbol.
    pub symbol: SymbolId,
    /// The order, by its owner's id for it.
    pub order: OrderId,
    /// Its side; `None` where a request was rejected.
    pub side: Option<Action>,
    /// Its limit price, of a new budget order its budget. For a seller's trades in an auction:
    /// their price. For a request that was rejected: the price that was asked for, or 0.
    pub price: i64,
    /// Lots that are left of it, hidden ones included (LeavesQty).
    pub left: i64,
    /// Lots of it that are filled (CumQty).
    pub filled: i64,
    /// The kind of the report.
    pub kind: Execution,
}

impl ExecutionReport {
    /// Returns true for an order's last report.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self.kind {
            Execution::Trade { .. } => self.left == 0,
            Execution::Cancelled { .. } | Execution::Expired { .. } | Execution::Rejected(_) => {
                true
            }
            Execution::New
            | Execution::Replaced { .. }
            | Execution::Triggered
            | Execution::RequestRejected(_) => false,
        }
    }
}

// The parts of a command that its reports need.

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

// The reports of the most frequent commands, without the iterator: orders that rest or trade, and
// cancels of one order.

/// Calls `each` with the reports that [`ExecutionReports`](super::ExecutionReports) has.
#[inline]
pub(crate) fn for_each_report(
    sequence: u64,
    command: &Command,
    (result, events): (ResultCode, &Events),
    mut each: impl FnMut(&ExecutionReport),
) {
    match (command, events.as_slice()) {
        (Command::Place(place), trades)
            if result == ResultCode::Success
                && trades
                    .iter()
                    .all(|event| matches!(event, Event::Trade { .. })) =>
        {
            placed(sequence, place, trades, each);
        }
        (
            Command::Cancel { uid, symbol, .. },
            [
                Event::Reduce {
                    order,
                    price,
                    size,
                    left,
                    filled,
                    completed: true,
                    action,
                    ..
                },
            ],
        ) if result == ResultCode::Success => each(&ExecutionReport {
            command: sequence,
            owner: *uid,
            symbol: *symbol,
            order: *order,
            side: Some(*action),
            price: *price,
            left: *left,
            filled: *filled,
            kind: Execution::Cancelled {
                size: *size,
                why: CancelReason::Requested,
            },
        }),
        _ => ExecutionReports::new(sequence, command, result, events)
            .for_each(|report| each(&report)),
    }
}

/// Calls `each` with the reports of a new order that was accepted, and of its trades.
#[inline]
fn placed(sequence: u64, place: &Place, trades: &[Event], mut each: impl FnMut(&ExecutionReport)) {
    let mut taker = ExecutionReport {
        command: sequence,
        owner: place.uid,
        symbol: place.symbol,
        order: place.order_id,
        side: Some(place.action),
        price: place.price,
        left: place.size,
        filled: 0,
        kind: Execution::New,
    };
    each(&taker);
    for (index, event) in (0..).zip(trades) {
        let Event::Trade {
            price,
            size,
            maker_order,
            maker_uid,
            maker_filled,
            maker_left,
            ..
        } = *event
        else {
            return;
        };
        let id = TradeId {
            command: sequence,
            index,
        };
        let kind = |is_maker| Execution::Trade {
            id,
            price,
            size,
            is_maker,
        };
        taker.left = taker.left.wrapping_sub(size);
        taker.filled = taker.filled.wrapping_add(size);
        taker.kind = kind(false);
        each(&taker);
        each(&ExecutionReport {
            owner: maker_uid,
            order: maker_order,
            side: Some(place.action.opposite()),
            price,
            left: maker_left,
            filled: maker_filled,
            kind: kind(true),
            ..taker
        });
    }
}
