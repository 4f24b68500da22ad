//! What came of a command, as bytes: its result and its events.

use super::error::CodecError;
use super::fields::{Reader, action, put_int, put_longs};
use super::frame::{HEAD_BYTES, Head, kind, room_for};
use crate::event::{Event, Events, Removal, UserHint};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

/// An outcome without events: head, the command's number, its result, the number of events.
const BYTES_MIN: usize = HEAD_BYTES + 16;

/// The kinds of events, the first byte of each.
const TRADE: u8 = 1;
const REJECT: u8 = 2;
const REDUCE: u8 = 3;
const REMOVED: u8 = 4;
const TRIGGERED: u8 = 5;
const REFILLED: u8 = 6;

const TRADE_BYTES: usize = 42;
const REJECT_BYTES: usize = 26;
const REDUCE_BYTES: usize = 26;
const REMOVED_BYTES: usize = 46;
const TRIGGERED_BYTES: usize = 42;
const REFILLED_BYTES: usize = 18;
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
        Event::Triggered { .. } => TRIGGERED_BYTES,
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
    put_int(front, 16, outcome.result.code());
    put_int(front, 20, events.len() as u32 as i32);
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
        Event::Refilled { order, size } => {
            let (event, rest) = event_room::<REFILLED_BYTES>(out, REFILLED, 0);
            put_longs(event, 2, [order.0, size]);
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
    let length = head.length()?;
    let kind = head.kind();
    if kind != kind::OUTCOME {
        let wanted = "outcome";
        return Err(CodecError::UnknownKind { kind, wanted });
    }
    let what = "an outcome";
    if length < BYTES_MIN {
        return Err(CodecError::WrongLength {
            what,
            length,
            expected: BYTES_MIN,
        });
    }
    head.own_up_to(what, [0; 2])?;
    let mut fields = Reader::new(head.frame(bytes)?, HEAD_BYTES);
    let sequence = fields.number()?;
    let at = fields.at();
    let code = fields.int()?;
    let result = result_code(code).ok_or(CodecError::UnknownCode {
        what: "the result",
        at,
        code: code.into(),
    })?;
    let count = fields.count("events", EVENT_BYTES_MIN)?;
    for _ in 0..count {
        events.push(event(&mut fields)?);
    }
    fields.end()?;
    Ok((Outcome { sequence, result }, length))
}

/// The usual ones without a search.
fn result_code(code: i32) -> Option<ResultCode> {
    const SUCCESS: i32 = ResultCode::Success.code();
    match code {
        SUCCESS => Some(ResultCode::Success),
        _ => ResultCode::from_code(code),
    }
}

fn event(fields: &mut Reader<'_>) -> Result<Event, CodecError> {
    let at = fields.at();
    let kind = fields.byte()?;
    let bits = |fields: &mut Reader<'_>, what, max| fields.small(what, max);
    let user = UserHint::UNKNOWN;
    Ok(match kind {
        TRADE => {
            let bits = bits(
                fields,
                "the bits of a trade",
                BID | COMPLETED | TAKER_COMPLETED,
            )?;
            Event::Trade {
                price: fields.long()?,
                size: fields.long()?,
                maker_order: OrderId(fields.long()?),
                maker_uid: UserId(fields.long()?),
                maker_user: user,
                maker_completed: bits & COMPLETED != 0,
                taker_completed: bits & TAKER_COMPLETED != 0,
                bidder_hold_price: fields.long()?,
                taker_action: action(bits),
            }
        }
        REJECT => {
            bits(fields, "the bits of a reject", 0)?;
            Event::Reject {
                price: fields.long()?,
                size: fields.long()?,
                bidder_hold_price: fields.long()?,
            }
        }
        REDUCE => {
            let bits = bits(fields, "the bits of a reduction", BID | COMPLETED)?;
            Event::Reduce {
                price: fields.long()?,
                size: fields.long()?,
                completed: bits & COMPLETED != 0,
                bidder_hold_price: fields.long()?,
                user,
                action: action(bits),
            }
        }
        REMOVED => removed(fields)?,
        TRIGGERED => Event::Triggered {
            action: action(bits(fields, "the bits of a triggered order", BID)?),
            order: OrderId(fields.long()?),
            uid: UserId(fields.long()?),
            user,
            price: fields.long()?,
            size: fields.long()?,
            bidder_hold_price: fields.long()?,
        },
        REFILLED => {
            bits(fields, "the bits of a refilled order", 0)?;
            Event::Refilled {
                order: OrderId(fields.long()?),
                size: fields.long()?,
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
        _ => {
            return Err(CodecError::UnknownCode {
                what: "the reason of a removal",
                at,
                code: code.into(),
            });
        }
    };
    Ok(Event::Removed {
        symbol: SymbolId(fields.int()?),
        order: OrderId(fields.long()?),
        uid: UserId(fields.long()?),
        user: UserHint::UNKNOWN,
        action: action(bits),
        price: fields.long()?,
        size: fields.long()?,
        bidder_hold_price: fields.long()?,
        why,
    })
}
