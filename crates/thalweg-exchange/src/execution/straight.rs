//! The reports of the most frequent commands, without the iterator: orders that rest or trade, and
//! cancels of one order.

use super::{CancelReason, Execution, ExecutionReport, TradeId};
use crate::command::{Command, Place};
use crate::event::Event;
use crate::result_code::ResultCode;
use crate::service::Outcome;

/// Calls `each` with the reports that [`ExecutionReports`](super::ExecutionReports) has.
#[inline]
pub(crate) fn for_each_report(outcome: &Outcome<'_>, mut each: impl FnMut(&ExecutionReport)) {
    let Outcome {
        sequence, result, ..
    } = *outcome;
    let (command, list) = (outcome.command, outcome.events.as_slice());
    match (command, list) {
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
        _ => outcome.reports().for_each(|report| each(&report)),
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
