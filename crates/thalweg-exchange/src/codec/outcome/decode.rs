//! Outcomes out of bytes.

use super::series::{all_are_there, goes_on, is_next};
use super::{
    BID, BYTES_MIN, COMPLETED, COUNT_AT, HAS_ASK, HAS_BID, HAS_MOVED, ITEM_BYTES_MAX,
    ITEM_BYTES_MIN, MOVED_BID, Outcome, REDUCE, REDUCE_BYTES, REFILLED, REFILLED_BYTES, REJECT,
    REJECT_BYTES, REMOVED, REMOVED_BYTES, RESULT_AT, STANDING, STANDING_BYTES, STANDING_OF,
    STANDING_OF_BYTES, TAKER_COMPLETED, TRADE, TRADE_BYTES, TRIGGERED, TRIGGERED_BYTES, UNCROSSED,
    UNCROSSED_BYTES, WHY_SHIFT,
};
use crate::codec::error::CodecError;
use crate::codec::fields::{Reader, action, int, long, nothing};
use crate::codec::frame::{FRAME_BYTES_MAX, HEAD_BYTES, Head, kind};
use crate::event::{Event, Events, Moved, RejectReason, Removal, Standing};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

/// Reads the outcome at the beginning of `bytes`, and its events into `events` (cleared first);
/// with it, its length in bytes: that of its frame, or of all its frames if it is a long one.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it, or a further frame of one
/// that [goes on](crate::codec::Frame::goes_on); any other where not. Positions are those in the
/// frame that is wrong. `events` may hold a part of the events then.
pub fn decode_outcome(bytes: &[u8], events: &mut Events) -> Result<(Outcome, usize), CodecError> {
    events.clear();
    let head = Head::read(bytes)?;
    if head.kind() == kind::OUTCOME_ON {
        let (kind, wanted) = (head.kind(), "first frame of an outcome");
        return Err(CodecError::UnknownKind { kind, wanted });
    }
    let (bits, short) = check(head)?;
    let frame = head.frame(bytes)?;
    if goes_on(head) {
        all_are_there(bytes, head)?;
    }
    let outcome = list(frame, (bits, short), None, events)?;
    if goes_on(head) {
        let length = further(bytes, outcome, frame.len(), events)?;
        return Ok((outcome, length));
    }
    Ok((outcome, frame.len()))
}

/// Reads all frames but the first; the result is where they end.
#[cold]
fn further(
    bytes: &[u8],
    outcome: Outcome,
    first: usize,
    events: &mut Events,
) -> Result<usize, CodecError> {
    let (mut at, mut before) = (first, first);
    loop {
        let rest = &bytes[at..];
        let head = Head::read(rest)?;
        is_next(head)?;
        let frame = head.frame(rest)?;
        let own = list(frame, check(head)?, Some(before), events)?;
        if own != outcome {
            return Err(CodecError::OtherOutcome {
                expected: outcome.sequence,
                found: own.sequence,
            });
        }
        (at, before) = (at + frame.len(), frame.len());
        if !goes_on(head) {
            return Ok(at);
        }
    }
}

/// Reads one frame, behind one of this length where it is not the first.
#[inline]
fn list(
    frame: &[u8],
    (bits, short): (u8, CodecError),
    before: Option<usize>,
    events: &mut Events,
) -> Result<Outcome, CodecError> {
    let (front, _) = frame.split_first_chunk::<BYTES_MIN>().ok_or(short)?;
    let code = int(front, RESULT_AT);
    let result = result_code(code).ok_or(CodecError::UnknownCode {
        what: "the result",
        at: RESULT_AT,
        code: code.into(),
    })?;
    let mut fields = Reader::new(frame, COUNT_AT);
    let count = fields.count("events", ITEM_BYTES_MIN)?;
    if bits & HAS_MOVED != 0 {
        let [price, left, filled] = fields.longs()?;
        events.set_moved(Moved {
            action: action(bits >> 1),
            price,
            left,
            filled,
        });
    }
    if let Some(before) = before {
        is_cut_right(before, &fields)?;
    }
    let mut left = count;
    if events.standing().is_none() && events.standings().is_empty() {
        events.reserve_exact(count);
        while left > 0 && !matches!(fields.next(), Some(STANDING | STANDING_OF)) {
            events.push(event(&mut fields)?);
            left -= 1;
        }
    }
    if left > 0 {
        standings(&mut fields, left, events)?;
    }
    fields.end()?;
    let sequence = long(front, HEAD_BYTES) as u64;
    Ok(Outcome { sequence, result })
}

/// A frame that goes on had no room for what is first in the next one.
fn is_cut_right(before: usize, fields: &Reader<'_>) -> Result<(), CodecError> {
    let bytes = fields.next().map_or(0, item_bytes);
    if before + bytes <= FRAME_BYTES_MAX {
        return Err(goes_on_early(before, before + bytes));
    }
    Ok(())
}

const fn goes_on_early(length: usize, expected: usize) -> CodecError {
    CodecError::WrongLength {
        what: "a frame of an outcome that goes on",
        length,
        expected,
    }
}

/// The length of an event; an unknown kind is reported when the event is read.
const fn item_bytes(kind: u8) -> usize {
    match kind {
        TRADE => TRADE_BYTES,
        REJECT => REJECT_BYTES,
        REDUCE => REDUCE_BYTES,
        REMOVED => REMOVED_BYTES,
        TRIGGERED => TRIGGERED_BYTES,
        UNCROSSED => UNCROSSED_BYTES,
        REFILLED => REFILLED_BYTES,
        STANDING => STANDING_BYTES,
        STANDING_OF => STANDING_OF_BYTES,
        _ => FRAME_BYTES_MAX,
    }
}

/// How futures books stand: the command's own, then others.
#[inline(never)]
fn standings(fields: &mut Reader<'_>, count: usize, events: &mut Events) -> Result<(), CodecError> {
    for left in (1..=count).rev() {
        let at = fields.at();
        let kind = fields.byte()?;
        let bits = fields.small("the bits of a standing", HAS_ASK | HAS_BID)?;
        let is_first = events.standing().is_none() && events.standings().is_empty();
        let symbol = match kind {
            STANDING if is_first => None,
            STANDING_OF => Some(SymbolId(fields.int()?)),
            _ => return Err(unknown_kind(kind, at)),
        };
        let what = "the best price of an empty side";
        let standing = Standing {
            ask: fields.optional(what, bits & HAS_ASK != 0)?,
            bid: fields.optional(what, bits & HAS_BID != 0)?,
        };
        match symbol {
            None => events.set_standing(standing),
            Some(symbol) => {
                events.reserve_standings(left);
                events.add_standing(symbol, standing);
            }
        }
    }
    Ok(())
}

const fn unknown_kind(kind: u8, at: usize) -> CodecError {
    CodecError::UnknownCode {
        what: "the kind of an event",
        at,
        code: kind as i64,
    }
}

/// Returns an outcome's first own byte and the error for one that is too short, or the error that
/// its head alone proves.
pub(in crate::codec) fn check(head: Head) -> Result<(u8, CodecError), CodecError> {
    let (length, kind) = (head.length()?, head.kind());
    let (what, expected, own) = match kind {
        kind::OUTCOME => ("an outcome", BYTES_MIN, HAS_MOVED | MOVED_BID),
        kind::OUTCOME_ON => {
            let what = "a further frame of an outcome";
            (what, BYTES_MIN + ITEM_BYTES_MIN, 0)
        }
        _ => {
            let wanted = "outcome";
            return Err(CodecError::UnknownKind { kind, wanted });
        }
    };
    let short = CodecError::WrongLength {
        what,
        length,
        expected,
    };
    if length < expected {
        return Err(short);
    }
    let [bits, goes_on] = head.own_up_to(what, [own, 1])?;
    if bits & HAS_MOVED == 0 {
        nothing("the side of an order that was not moved", 6, bits.into())?;
    }
    if goes_on != 0 && length + ITEM_BYTES_MAX <= FRAME_BYTES_MAX {
        return Err(goes_on_early(length, FRAME_BYTES_MAX + 1 - ITEM_BYTES_MAX));
    }
    Ok((bits, short))
}

/// Returns the result of a code; the most frequent one is found without a search.
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
        _ => return Err(unknown_kind(kind, at)),
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
