//! Reports, one after another, out of what came of a command.

use std::slice::Iter;

use super::{Asked, CancelReason, Execution, ExecutionReport, TradeId};
use crate::command::{Action, Command};
use crate::event::{Event, Events, RejectReason, Removal};
use crate::ids::{OrderId, UserId};
use crate::result_code::ResultCode;

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
    /// The reports of a command from what came of it; `sequence` is its number, by which its trades
    /// are named.
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

    /// The taker's rest, if it does not rest: it has no more trades.
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
                Removal::Expired => Execution::Expired { size },
                Removal::Reduced | Removal::Decremented => Execution::Replaced { reduced_by: size },
                Removal::Cancelled => cancelled(CancelReason::Requested),
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
