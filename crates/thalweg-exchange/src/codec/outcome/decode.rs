//! Outcomes out of bytes.

use super::{
    BID, BYTES_MIN, COMPLETED, COUNT_AT, EVENT_BYTES_MIN, HAS_MOVED, MOVED_BID, Outcome, REDUCE,
    REFILLED, REJECT, REMOVED, RESULT_AT, TAKER_COMPLETED, TRADE, TRIGGERED, UNCROSSED, WHY_SHIFT,
};
use crate::codec::error::CodecError;
use crate::codec::fields::{Reader, action, int, long, nothing};
use crate::codec::frame::{HEAD_BYTES, Head, kind};
use crate::event::{Event, Events, Moved, RejectReason, Removal, UserHint};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

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
    let (bits, short) = check(head)?;
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
    if bits & HAS_MOVED != 0 {
        let [price, left, filled] = fields.longs()?;
        events.set_moved(Moved {
            action: action(bits >> 1),
            price,
            left,
            filled,
        });
    }
    events.reserve_exact(count);
    for _ in 0..count {
        events.push(event(&mut fields)?);
    }
    fields.end()?;
    let sequence = long(front, HEAD_BYTES) as u64;
    Ok((Outcome { sequence, result }, frame.len()))
}

/// What is wrong with an outcome by its head alone; else its first own byte, and the error of one
/// that is too short.
pub(in crate::codec) fn check(head: Head) -> Result<(u8, CodecError), CodecError> {
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
    let [bits, _] = head.own_up_to(what, [HAS_MOVED | MOVED_BID, 0])?;
    if bits & HAS_MOVED == 0 {
        nothing("the side of an order that was not moved", 6, bits.into())?;
    }
    Ok((bits, short))
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
            let [price, size, order, uid] = fields.longs()?;
            let [bidder_hold_price, maker_filled, maker_left] = fields.longs()?;
            Event::Trade {
                price,
                size,
                maker_order: OrderId(order),
                maker_uid: UserId(uid),
                maker_user: user,
                maker_filled,
                maker_left,
                maker_completed: bits & COMPLETED != 0,
                taker_completed: bits & TAKER_COMPLETED != 0,
                bidder_hold_price,
                taker_action: action(bits),
            }
        }
        REJECT => {
            let at = fields.at();
            let code = fields.byte()?;
            let why = RejectReason::from_code(code).ok_or(CodecError::UnknownCode {
                what: "the reason of a reject",
                at,
                code: code.into(),
            })?;
            let [order, price, size, bidder_hold_price] = fields.longs()?;
            Event::Reject {
                order: OrderId(order),
                price,
                size,
                bidder_hold_price,
                why,
            }
        }
        REDUCE => {
            let bits = fields.small("the bits of a reduction", BID | COMPLETED)?;
            let [order, price, size, bidder_hold_price, filled, left] = fields.longs()?;
            Event::Reduce {
                order: OrderId(order),
                price,
                size,
                left,
                filled,
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
            let [order, uid, price, size, bidder_hold_price, filled] = fields.longs()?;
            Event::Uncrossed {
                order: OrderId(order),
                uid: UserId(uid),
                user: UserHint::UNKNOWN,
                action: action(bits),
                price,
                size,
                filled,
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
    let why = Removal::from_code(code).ok_or(CodecError::UnknownCode {
        what: "the reason of a removal",
        at,
        code: code.into(),
    })?;
    let symbol = SymbolId(fields.int()?);
    let [order, uid, price, size] = fields.longs()?;
    let [bidder_hold_price, filled, left] = fields.longs()?;
    Ok(Event::Removed {
        symbol,
        order: OrderId(order),
        uid: UserId(uid),
        action: action(bits),
        price,
        size,
        left,
        filled,
        bidder_hold_price,
        why,
    })
}
