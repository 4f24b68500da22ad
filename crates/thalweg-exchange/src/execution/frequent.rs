//! The reports of the most frequent commands, without the iterator: orders that rest or trade, and
//! cancels of one order.

use super::{CancelReason, Execution, ExecutionReport, ExecutionReports, TradeId};
use crate::command::{Command, Place};
use crate::event::{Event, Events};
use crate::result_code::ResultCode;

/// Takes the reports of a command.
pub(crate) trait TakesReports {
    /// Takes the next report.
    fn take(&mut self, report: &ExecutionReport);
}

/// Gives `to` the reports that [`ExecutionReports`] has. What it does with one is part of the code
/// for an order that rests, and for a cancel: there it knows which fields are 0.
#[inline(always)]
pub(crate) fn for_each_report(
    sequence: u64,
    command: &Command,
    (result, events): (ResultCode, &Events),
    to: &mut impl TakesReports,
) {
    match (command, events.as_slice()) {
        (Command::Place(place), []) if result == ResultCode::Success => {
            to.take(&accepted(sequence, place));
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
        ) if result == ResultCode::Success => to.take(&ExecutionReport {
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
        _ => for_each_other(sequence, command, (result, events), to),
    }
}

#[inline(never)]
fn for_each_other(
    sequence: u64,
    command: &Command,
    (result, events): (ResultCode, &Events),
    to: &mut impl TakesReports,
) {
    match (command, events.as_slice()) {
        (Command::Place(place), trades)
            if result == ResultCode::Success
                && trades
                    .iter()
                    .all(|event| matches!(event, Event::Trade { .. })) =>
        {
            traded(sequence, place, trades, to);
        }
        _ => ExecutionReports::new(sequence, command, result, events)
            .for_each(|report| to.take(&report)),
    }
}

/// Returns the first report of a new order that was accepted.
#[inline(always)]
const fn accepted(sequence: u64, place: &Place) -> ExecutionReport {
    ExecutionReport {
        command: sequence,
        owner: place.uid,
        symbol: place.symbol,
        order: place.order_id,
        side: Some(place.action),
        price: place.price,
        left: place.size,
        filled: 0,
        kind: Execution::New,
    }
}

/// Gives the reports of a new order that was accepted, and of its trades.
fn traded(sequence: u64, place: &Place, trades: &[Event], to: &mut impl TakesReports) {
    let mut taker = accepted(sequence, place);
    to.take(&taker);
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
        to.take(&taker);
        to.take(&ExecutionReport {
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
