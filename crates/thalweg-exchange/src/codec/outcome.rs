//! What came of a command, as bytes: its result and its events.

use super::error::CodecError;
use super::fields::{Reader, action, int, long, put_int, put_longs};
use super::frame::{HEAD_BYTES, Head, kind, room_for};
use crate::event::{Event, Events, Removal, UserHint};
use crate::ids::{OrderId, SymbolId, UserId};
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

const TRADE_BYTES: usize = 42;
const REJECT_BYTES: usize = 26;
const REDUCE_BYTES: usize = 26;
const REMOVED_BYTES: usize = 46;
/// Also of an order that trades in an auction.
const TRIGGERED_BYTES: usize = 42;
const REFILLED_BYTES: usize = 26;
/// The shortest.
const EVENT_BYTES_MIN: usize = REFILLED_BYTES;

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
pub fn outcome_bytes(events: &[Event]) -> usize {
    BYTES_MIN + events.iter().map(event_bytes).sum::<usize>()
}

const fn event_bytes(event: &Event) -> usize {
    match event {
        Event::Trade { .. } => TRADE_BYTES,
        Event::Reject { .. } => REJECT_BYTES,
        Event::Reduce { .. } => REDUCE_BYTES,
        Event::Removed { .. } => REMOVED_BYTES,
        Event::Triggered { .. } | Event::Uncrossed { .. } => TRIGGERED_BYTES,
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
    events: &[Event],
    out: &mut [u8],
) -> Result<usize, CodecError> {
    let length = outcome_bytes(events);
    let out = room_for(out, length)?;
    let Some((front, mut rest)) = out.split_first_chunk_mut::<BYTES_MIN>() else {
        return Ok(0);
    };
    let head = Head::new(length, kind::OUTCOME, [0; 2]);
    put_longs(front, 0, [head.0 as i64, outcome.sequence as i64]);
    put_int(front, RESULT_AT, outcome.result.code());
    put_int(front, COUNT_AT, events.len() as u32 as i32);
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
            maker_completed,
            taker_completed,
            bidder_hold_price,
            taker_action,
        } => {
            let completed = u8::from(maker_completed) << 1 | u8::from(taker_completed) << 2;
            let bits = taker_action as u8 | completed;
            let (event, rest) = event_room::<TRADE_BYTES>(out, TRADE, bits);
            let maker = [maker_order.0, maker_uid.0];
            put_longs(
                event,
                2,
                [price, size, maker[0], maker[1], bidder_hold_price],
            );
            rest
        }
        Event::Reject {
            price,
            size,
            bidder_hold_price,
        } => {
            let (event, rest) = event_room::<REJECT_BYTES>(out, REJECT, 0);
            put_longs(event, 2, [price, size, bidder_hold_price]);
            rest
        }
        Event::Reduce {
            price,
            size,
            completed,
            bidder_hold_price,
            user: _,
            action,
        } => {
            let bits = action as u8 | u8::from(completed) << 1;
            let (event, rest) = event_room::<REDUCE_BYTES>(out, REDUCE, bits);
            put_longs(event, 2, [price, size, bidder_hold_price]);
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
            user: _,
            action,
            price,
            size,
            bidder_hold_price,
            why,
        } => {
            let bits = action as u8 | (why as u8) << WHY_SHIFT;
            let (event, rest) = event_room::<REMOVED_BYTES>(out, REMOVED, bits);
            put_int(event, 2, symbol.0);
            put_longs(event, 6, [order.0, uid.0, price, size, bidder_hold_price]);
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
            bidder_hold_price,
        } => {
            let (event, rest) = event_room::<TRIGGERED_BYTES>(out, UNCROSSED, action as u8);
            put_longs(event, 2, [order.0, uid.0, price, size, bidder_hold_price]);
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

/// Reads the outcome at the beginning of `bytes`, and its events into `events` (cleared first);
/// with it, the length of its frame in bytes. What [`Events::standing`] tells and the hints about
/// users do not come over.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
/// `events` may hold a part of the events then.
pub fn decode_outcome(bytes: &[u8], events: &mut Events) -> Result<(Outcome, usize), CodecError> {
    events.clear();
    let head = Head::read(bytes)?;
    let short = check(head)?;
    let frame = head.frame(bytes)?;
    let (front, _) = frame.split_first_chunk::<BYTES_MIN>().ok_or(short)?;
    let code = int(front, RESULT_AT);
    let result = result_code(code).ok_or(CodecError::UnknownCode {
        what: "the result",
        at: RESULT_AT,
        code: code.into(),
    })?;
    let mut fields = Reader::new(frame, COUNT_AT);
    let count = fields.count("events", EVENT_BYTES_MIN)?;
    events.reserve_exact(count);
    for _ in 0..count {
        events.push(event(&mut fields)?);
    }
    fields.end()?;
    let sequence = long(front, HEAD_BYTES) as u64;
    Ok((Outcome { sequence, result }, frame.len()))
}

/// What is wrong with an outcome by its head alone; else the error of one that is too short.
pub(super) fn check(head: Head) -> Result<CodecError, CodecError> {
    let (length, kind) = (head.length()?, head.kind());
    if kind != kind::OUTCOME {
        let wanted = "outcome";
        return Err(CodecError::UnknownKind { kind, wanted });
    }
    let what = "an outcome";
    let short = CodecError::WrongLength {
        what,
        length,
        expected: BYTES_MIN,
    };
    if length < BYTES_MIN {
        return Err(short);
    }
    head.own_up_to(what, [0; 2]).map(|_| short)
}

/// The usual ones without a search.
fn result_code(code: i32) -> Option<ResultCode> {
    const SUCCESS: i32 = ResultCode::Success.code();
    match code {
        SUCCESS => Some(ResultCode::Success),
        _ => ResultCode::from_code(code),
    }
}

#[inline]
fn event(fields: &mut Reader<'_>) -> Result<Event, CodecError> {
    let at = fields.at();
    let kind = fields.byte()?;
    let user = UserHint::UNKNOWN;
    Ok(match kind {
        TRADE => {
            let bits = fields.small("the bits of a trade", BID | COMPLETED | TAKER_COMPLETED)?;
            let [price, size, order, uid, bidder_hold_price] = fields.longs()?;
            Event::Trade {
                price,
                size,
                maker_order: OrderId(order),
                maker_uid: UserId(uid),
                maker_user: user,
                maker_completed: bits & COMPLETED != 0,
                taker_completed: bits & TAKER_COMPLETED != 0,
                bidder_hold_price,
                taker_action: action(bits),
            }
        }
        REJECT => {
            fields.small("the bits of a reject", 0)?;
            let [price, size, bidder_hold_price] = fields.longs()?;
            Event::Reject {
                price,
                size,
                bidder_hold_price,
            }
        }
        REDUCE => {
            let bits = fields.small("the bits of a reduction", BID | COMPLETED)?;
            let [price, size, bidder_hold_price] = fields.longs()?;
            Event::Reduce {
                price,
                size,
                completed: bits & COMPLETED != 0,
                bidder_hold_price,
                user,
                action: action(bits),
            }
        }
        _ => rare(kind, at, fields)?,
    })
}

#[cold]
fn rare(kind: u8, at: usize, fields: &mut Reader<'_>) -> Result<Event, CodecError> {
    Ok(match kind {
        REMOVED => removed(fields)?,
        TRIGGERED => {
            let bits = fields.small("the bits of a triggered order", BID)?;
            let [order, uid, price, size, bidder_hold_price] = fields.longs()?;
            Event::Triggered {
                order: OrderId(order),
                uid: UserId(uid),
                user: UserHint::UNKNOWN,
                action: action(bits),
                price,
                size,
                bidder_hold_price,
            }
        }
        UNCROSSED => {
            let bits = fields.small("the bits of an order in an auction", BID)?;
            let [order, uid, price, size, bidder_hold_price] = fields.longs()?;
            Event::Uncrossed {
                order: OrderId(order),
                uid: UserId(uid),
                user: UserHint::UNKNOWN,
                action: action(bits),
                price,
                size,
                bidder_hold_price,
            }
        }
        REFILLED => {
            fields.small("the bits of a refilled order", 0)?;
            let [order, uid, size] = fields.longs()?;
            Event::Refilled {
                order: OrderId(order),
                uid: UserId(uid),
                size,
            }
        }
        _ => {
            return Err(CodecError::UnknownCode {
                what: "the kind of an event",
                at,
                code: kind.into(),
            });
        }
    })
}

fn removed(fields: &mut Reader<'_>) -> Result<Event, CodecError> {
    let at = fields.at();
    let bits = fields.byte()?;
    let code = bits >> WHY_SHIFT;
    let why = match code {
        0 => Removal::CancelAll,
        1 => Removal::SelfTrade,
        2 => Removal::Expired,
        3 => Removal::SymbolRemoved,
        4 => Removal::Cancelled,
        5 => Removal::Reduced,
        6 => Removal::OutsideBand,
        7 => Removal::Disconnected,
        8 => Removal::Decremented,
        _ => {
            return Err(CodecError::UnknownCode {
                what: "the reason of a removal",
                at,
                code: code.into(),
            });
        }
    };
    let symbol = SymbolId(fields.int()?);
    let [order, uid, price, size, bidder_hold_price] = fields.longs()?;
    Ok(Event::Removed {
        symbol,
        order: OrderId(order),
        uid: UserId(uid),
        user: UserHint::UNKNOWN,
        action: action(bits),
        price,
        size,
        bidder_hold_price,
        why,
    })
}
