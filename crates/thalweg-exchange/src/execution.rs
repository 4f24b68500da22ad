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

mod frequent;

use std::fmt;
use std::slice::Iter;

pub(crate) use self::frequent::{TakesReports, for_each_report};
use crate::command::{Action, Command, Place};
use crate::event::{Event, Events, RejectReason, RemovalReason};
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
    /// It was taken out of its book, and neither expired, was cancelled, nor became smaller.
    Removed(RemovalReason),
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

/// The request of a command for one order: all that its reports need of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    uid: UserId,
    symbol: SymbolId,
    order: OrderId,
    price: i64,
    /// The side and the size of a new order.
    new: Option<(Action, i64)>,
    /// Lots that are given to an order beyond those that it has.
    more: i64,
    /// It concerns one order of its user.
    is_order: bool,
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
        let one = |uid, symbol, order, price| Self {
            uid,
            symbol,
            order,
            price,
            is_order: true,
            ..none
        };
        match *command {
            Command::Cancel {
                uid,
                symbol,
                order_id,
            }
            | Command::Reduce {
                uid,
                symbol,
                order_id,
                ..
            } => one(uid, symbol, order_id, 0),
            Command::Move {
                uid,
                symbol,
                order_id,
                price,
            } => one(uid, symbol, order_id, price),
            Command::Amend(ref amend) => Self {
                more: amend.size.saturating_sub(amend.size_before).max(0),
                ..one(amend.uid, amend.symbol, amend.order_id, amend.price)
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

/// The order that trades as a taker, and how much of it there is.
#[derive(Clone, Copy, Debug)]
struct Taker {
    owner: UserId,
    order: OrderId,
    side: Action,
    price: i64,
    left: i64,
    filled: i64,
}

/// The reports of one command, for all users, in order. Cost: constant for each; allocates nothing.
#[derive(Clone, Debug)]
pub struct ExecutionReports<'e> {
    command: u64,
    asked: Asked,
    events: Iter<'e, Event>,
    /// The taker; `None` where nothing can trade.
    taker: Option<Taker>,
    trades: u32,
    /// The report to give next.
    next: Option<ExecutionReport>,
    /// Lots of the taker that are to be cancelled after its trades.
    rest: Option<(i64, RejectReason)>,
}

impl<'e> ExecutionReports<'e> {
    /// Returns the reports of a command from its outcome; `sequence` is its number, by which
    /// its trades are named.
    #[must_use]
    pub fn new(sequence: u64, command: &Command, result: ResultCode, events: &'e Events) -> Self {
        Self::asked(sequence, Asked::of(command), result, events)
    }

    pub(crate) fn asked(
        sequence: u64,
        asked: Asked,
        result: ResultCode,
        events: &'e Events,
    ) -> Self {
        let mut reports = Self {
            command: sequence,
            asked,
            events: events.iter(),
            taker: None,
            trades: 0,
            next: None,
            rest: None,
        };
        if asked.is_order {
            reports.begin(result, events);
        }
        reports
    }

    /// Reports how the command's own order ended at once, or began.
    fn begin(&mut self, result: ResultCode, events: &Events) {
        let Asked {
            uid, order, price, ..
        } = self.asked;
        if let Some((side, size)) = self.asked.new {
            let refusal = match events.first() {
                Some(Event::Reject { size: all, why, .. })
                    if *all == size && why.result().is_refusal() =>
                {
                    // Nothing more is reported of it, but of others that it cancelled.
                    self.events.next();
                    Some(why.result())
                }
                _ => result.is_refusal().then_some(result),
            };
            let taker = Taker {
                owner: uid,
                order,
                side,
                price,
                left: size,
                filled: 0,
            };
            self.next = Some(match refusal {
                None => self.of_taker(&taker, Execution::New),
                Some(code) => {
                    let none = Taker { left: 0, ..taker };
                    self.of_taker(&none, Execution::Rejected(code))
                }
            });
            self.taker = refusal.is_none().then_some(taker);
        } else if result.is_refusal() {
            self.next = Some(ExecutionReport {
                command: self.command,
                owner: uid,
                symbol: self.asked.symbol,
                order,
                side: None,
                price,
                left: 0,
                filled: 0,
                kind: Execution::RequestRejected(result),
            });
        } else if let Some(moved) = events.moved() {
            let taker = Taker {
                owner: uid,
                order,
                side: moved.action,
                price,
                left: moved.left,
                filled: moved.filled,
            };
            self.next = Some(self.of_taker(
                &taker,
                Execution::Replaced {
                    reduced_by: -self.asked.more,
                },
            ));
            self.taker = Some(taker);
        }
    }

    const fn of_taker(&self, taker: &Taker, kind: Execution) -> ExecutionReport {
        ExecutionReport {
            command: self.command,
            owner: taker.owner,
            symbol: self.asked.symbol,
            order: taker.order,
            side: Some(taker.side),
            price: taker.price,
            left: taker.left,
            filled: taker.filled,
            kind,
        }
    }

    /// Returns the taker's rest, if it does not rest: it has no more trades.
    fn end_of_taker(&mut self) -> Option<ExecutionReport> {
        let (size, why) = self.rest.take()?;
        let taker = self.taker.take()?;
        let rests = Taker {
            left: taker.left.wrapping_sub(size),
            ..taker
        };
        let why = CancelReason::Left(why);
        // Lots that it lost to an order of its owner's may leave some that rest.
        let kind = if rests.left == 0 {
            Execution::Cancelled { size, why }
        } else {
            Execution::Replaced { reduced_by: size }
        };
        Some(self.of_taker(&rests, kind))
    }

    /// Returns the report of an event; a trade's other report comes next.
    fn report(&mut self, event: &Event) -> Option<ExecutionReport> {
        match *event {
            Event::Trade { .. } => self.trade(event),
            Event::Reject { size, why, .. } => {
                self.rest = Some((size, why));
                None
            }
            Event::Reduce { .. } => self.reduced(event),
            Event::Removed { .. } => self.removed(event),
            Event::Triggered { .. } | Event::Uncrossed { .. } => self.next_taker(event),
            Event::Refilled { .. } => None,
        }
    }

    fn reduced(&mut self, event: &Event) -> Option<ExecutionReport> {
        let Event::Reduce {
            order,
            price,
            size,
            left,
            filled,
            completed,
            action,
            ..
        } = *event
        else {
            return None;
        };
        let why = CancelReason::Requested;
        // Where it was amended to fewer lots, it has another price already.
        let mut price = price;
        if let Some(taker) = &mut self.taker {
            taker.left = taker.left.wrapping_sub(size);
            price = taker.price;
        }
        Some(ExecutionReport {
            command: self.command,
            owner: self.asked.uid,
            symbol: self.asked.symbol,
            order,
            side: Some(action),
            price,
            left,
            filled,
            kind: if completed {
                Execution::Cancelled { size, why }
            } else {
                Execution::Replaced { reduced_by: size }
            },
        })
    }

    /// Begins the reports of a triggered stop order as a taker; or of a buyer's order that trades
    /// in an auction, of which nothing more is reported.
    fn next_taker(&mut self, event: &Event) -> Option<ExecutionReport> {
        let (owner, order, side, price, left, filled, is_triggered) = match *event {
            Event::Triggered {
                order,
                uid,
                action,
                price,
                size,
                ..
            } => (uid, order, action, price, size, 0, true),
            Event::Uncrossed {
                order,
                uid,
                action,
                price,
                size,
                filled,
                ..
            } => (uid, order, action, price, size, filled, false),
            _ => return None,
        };
        let taker = Taker {
            owner,
            order,
            side,
            price,
            left,
            filled,
        };
        self.taker = Some(taker);
        is_triggered.then(|| self.of_taker(&taker, Execution::Triggered))
    }

    fn trade(&mut self, event: &Event) -> Option<ExecutionReport> {
        let Event::Trade {
            price,
            size,
            maker_order,
            maker_uid,
            maker_filled,
            maker_left,
            taker_action,
            ..
        } = *event
        else {
            return None;
        };
        let id = TradeId {
            command: self.command,
            index: self.trades,
        };
        self.trades = self.trades.wrapping_add(1);
        let kind = |is_maker| Execution::Trade {
            id,
            price,
            size,
            is_maker,
        };
        let maker = Taker {
            owner: maker_uid,
            order: maker_order,
            side: taker_action.opposite(),
            price,
            left: maker_left,
            filled: maker_filled,
        };
        let maker = self.of_taker(&maker, kind(true));
        let Some(taker) = &mut self.taker else {
            return Some(maker);
        };
        taker.left = taker.left.wrapping_sub(size);
        taker.filled = taker.filled.wrapping_add(size);
        let taker = *taker;
        self.next = Some(maker);
        Some(self.of_taker(&taker, kind(false)))
    }

    fn removed(&self, event: &Event) -> Option<ExecutionReport> {
        let Event::Removed {
            symbol,
            order,
            uid,
            action,
            price,
            size,
            left,
            filled,
            why,
            ..
        } = *event
        else {
            return None;
        };
        use RemovalReason::{Cancelled, Decremented, Expired, Reduced};
        let cancelled = |why| Execution::Cancelled { size, why };
        Some(ExecutionReport {
            command: self.command,
            owner: uid,
            symbol,
            order,
            side: Some(action),
            price,
            left,
            filled,
            kind: match why {
                Expired => Execution::Expired { size },
                Reduced | Decremented => Execution::Replaced { reduced_by: size },
                Cancelled => cancelled(CancelReason::Requested),
                _ => cancelled(CancelReason::Removed(why)),
            },
        })
    }
}

impl Iterator for ExecutionReports<'_> {
    type Item = ExecutionReport;

    fn next(&mut self) -> Option<ExecutionReport> {
        loop {
            if let Some(report) = self.next.take() {
                return Some(report);
            }
            // A triggered order comes when the one before it is done with.
            let is_next = |event: &Event| matches!(event, Event::Triggered { .. });
            if self.events.as_slice().first().is_none_or(is_next)
                && let Some(report) = self.end_of_taker()
            {
                return Some(report);
            }
            let event = self.events.next()?;
            if let Some(report) = self.report(event) {
                return Some(report);
            }
        }
    }
}
