//! What came of a command, as bytes: its result and its events.

mod decode;

pub(super) use self::decode::check;
pub use self::decode::decode_outcome;
use super::error::CodecError;
use super::fields::{put_int, put_longs};
use super::frame::{HEAD_BYTES, Head, kind, room_for};
use crate::command::Action;
use crate::event::{Event, Events};
use crate::result_code::ResultCode;

/// An outcome without events: head, the command's number, its result, the number of events.
const BYTES_MIN: usize = HEAD_BYTES + 16;
const RESULT_AT: usize = HEAD_BYTES + 8;
const COUNT_AT: usize = RESULT_AT + 4;

/// The kinds of events, the first byte of each.
const TRADE: u8 = 1;
const REJECT: u8 = 2;
const REDUCE: u8 = 3;
const REMOVED: u8 = 4;
const TRIGGERED: u8 = 5;
const REFILLED: u8 = 6;
const UNCROSSED: u8 = 7;

const TRADE_BYTES: usize = 58;
const REJECT_BYTES: usize = 34;
const REDUCE_BYTES: usize = 50;
const REMOVED_BYTES: usize = 62;
const TRIGGERED_BYTES: usize = 42;
const UNCROSSED_BYTES: usize = 50;
const REFILLED_BYTES: usize = 26;
/// The shortest.
const EVENT_BYTES_MIN: usize = REFILLED_BYTES;

/// Of the frame's first own byte: the order was moved; and the bit of its side.
const HAS_MOVED: u8 = 1;
const MOVED_BID: u8 = 2;
/// How a moved order stood before.
const MOVED_BYTES: usize = 24;

/// Bits of an event's second byte.
const BID: u8 = 1;
/// Of a reduction: the order is gone. Of a trade: the maker is.
const COMPLETED: u8 = 2;
const TAKER_COMPLETED: u8 = 4;
/// From here on: why an order was removed.
const WHY_SHIFT: u32 = 1;

/// What came of a command, without its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The command's number, as whoever wrote the frame counts commands.
    pub sequence: u64,
    /// Its result.
    pub result: ResultCode,
}

/// How long the frame of an outcome with these events is, in bytes.
#[must_use]
pub fn outcome_bytes(events: &Events) -> usize {
    let moved = if events.moved().is_some() {
        MOVED_BYTES
    } else {
        0
    };
    BYTES_MIN + moved + events.iter().map(event_bytes).sum::<usize>()
}

const fn event_bytes(event: &Event) -> usize {
    match event {
        Event::Trade { .. } => TRADE_BYTES,
        Event::Reject { .. } => REJECT_BYTES,
        Event::Reduce { .. } => REDUCE_BYTES,
        Event::Removed { .. } => REMOVED_BYTES,
        Event::Triggered { .. } => TRIGGERED_BYTES,
        Event::Uncrossed { .. } => UNCROSSED_BYTES,
        Event::Refilled { .. } => REFILLED_BYTES,
    }
}

/// Writes the frame of an outcome at the beginning of `out`; the result is its length in bytes.
/// Hints about users are no part of it.
///
/// # Errors
/// [`CodecError::NoRoom`], or of half a million events [`CodecError::TooLong`]; nothing is written
/// then.
#[inline]
pub fn encode_outcome(
    outcome: Outcome,
    events: &Events,
    out: &mut [u8],
) -> Result<usize, CodecError> {
    let length = outcome_bytes(events);
    let out = room_for(out, length)?;
    let Some((front, mut rest)) = out.split_first_chunk_mut::<BYTES_MIN>() else {
        return Ok(0);
    };
    let bits = events.moved().map_or(0, |moved| match moved.action {
        Action::Ask => HAS_MOVED,
        Action::Bid => HAS_MOVED | MOVED_BID,
    });
    let head = Head::new(length, kind::OUTCOME, [bits, 0]);
    put_longs(front, 0, [head.0 as i64, outcome.sequence as i64]);
    put_int(front, RESULT_AT, outcome.result.code());
    put_int(front, COUNT_AT, events.len() as u32 as i32);
    if let Some(moved) = events.moved() {
        let fields;
        (fields, rest) = rest
            .split_first_chunk_mut::<MOVED_BYTES>()
            .expect("the bytes of all fields were counted");
        put_longs(fields, 0, [moved.price, moved.left, moved.filled]);
    }
    for event in events {
        rest = put_event(event, rest);
    }
    Ok(length)
}

/// The first `N` bytes with the kind and the bits of an event, and what follows them.
#[inline(always)]
fn event_room<const N: usize>(out: &mut [u8], kind: u8, bits: u8) -> (&mut [u8; N], &mut [u8]) {
    let (event, rest) = out
        .split_first_chunk_mut()
        .expect("the bytes of all events were counted");
    event[0] = kind;
    event[1] = bits;
    (event, rest)
}

#[inline]
fn put_event<'o>(event: &Event, out: &'o mut [u8]) -> &'o mut [u8] {
    match *event {
        Event::Trade {
            price,
            size,
            maker_order,
            maker_uid,
            maker_user: _,
            maker_filled,
            maker_left,
            maker_completed,
            taker_completed,
            bidder_hold_price,
            taker_action,
        } => {
            let completed = u8::from(maker_completed) << 1 | u8::from(taker_completed) << 2;
            let bits = taker_action as u8 | completed;
            let (event, rest) = event_room::<TRADE_BYTES>(out, TRADE, bits);
            let maker = [maker_order.0, maker_uid.0];
            put_longs(event, 2, [price, size, maker[0], maker[1]]);
            put_longs(event, 34, [bidder_hold_price, maker_filled, maker_left]);
            rest
        }
        Event::Reject {
            order,
            price,
            size,
            bidder_hold_price,
            why,
        } => {
            let (event, rest) = event_room::<REJECT_BYTES>(out, REJECT, why as u8);
            put_longs(event, 2, [order.0, price, size, bidder_hold_price]);
            rest
        }
        Event::Reduce {
            order,
            price,
            size,
            left,
            filled,
            completed,
            bidder_hold_price,
            user: _,
            action,
        } => {
            let bits = action as u8 | u8::from(completed) << 1;
            let (event, rest) = event_room::<REDUCE_BYTES>(out, REDUCE, bits);
            put_longs(event, 2, [order.0, price, size]);
            put_longs(event, 26, [bidder_hold_price, filled, left]);
            rest
        }
        _ => put_rare(event, out),
    }
}

#[cold]
fn put_rare<'o>(event: &Event, out: &'o mut [u8]) -> &'o mut [u8] {
    match *event {
        Event::Removed {
            symbol,
            order,
            uid,
            action,
            price,
            size,
            left,
            filled,
            bidder_hold_price,
            why,
        } => {
            let bits = action as u8 | (why as u8) << WHY_SHIFT;
            let (event, rest) = event_room::<REMOVED_BYTES>(out, REMOVED, bits);
            put_int(event, 2, symbol.0);
            put_longs(event, 6, [order.0, uid.0, price, size, bidder_hold_price]);
            put_longs(event, 46, [filled, left]);
            rest
        }
        Event::Triggered {
            order,
            uid,
            user: _,
            action,
            price,
            size,
            bidder_hold_price,
        } => {
            let (event, rest) = event_room::<TRIGGERED_BYTES>(out, TRIGGERED, action as u8);
            put_longs(event, 2, [order.0, uid.0, price, size, bidder_hold_price]);
            rest
        }
        Event::Uncrossed {
            order,
            uid,
            user: _,
            action,
            price,
            size,
            filled,
            bidder_hold_price,
        } => {
            let (event, rest) = event_room::<UNCROSSED_BYTES>(out, UNCROSSED, action as u8);
            put_longs(
                event,
                2,
                [order.0, uid.0, price, size, bidder_hold_price, filled],
            );
            rest
        }
        Event::Refilled { order, uid, size } => {
            let (event, rest) = event_room::<REFILLED_BYTES>(out, REFILLED, 0);
            put_longs(event, 2, [order.0, uid.0, size]);
            rest
        }
        Event::Trade { .. } | Event::Reject { .. } | Event::Reduce { .. } => put_event(event, out),
    }
}
