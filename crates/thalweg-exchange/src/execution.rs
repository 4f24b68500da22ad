//! Execution reports: a venue's messages to users about their own orders.
//!
//! [`Event`](crate::Event)s are the engine's own record of a command: settlement needs all of it. A
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

mod asked;
mod reports;
mod straight;

use std::fmt;

pub(crate) use self::asked::Asked;
pub use self::reports::ExecutionReports;
pub(crate) use self::straight::for_each_report;
use crate::command::Action;
use crate::event::{RejectReason, Removal};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

/// A trade: the same in the reports of both sides, unique in an exchange, and the same for every
/// placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Its limit price, of a new budget order its budget. Of a seller's trades in an auction: their
    /// price. Of a request that was rejected: the price that was asked for, or 0.
    pub price: i64,
    /// Lots that are left of it, hidden ones included (LeavesQty).
    pub left: i64,
    /// Lots of it that are filled (CumQty).
    pub filled: i64,
    /// The kind of the report.
    pub kind: Execution,
}

impl ExecutionReport {
    /// True of an order's last report.
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
