//! The outcome of a command as bytes: its result and its events.

mod decode;
mod series;

pub(super) use self::decode::check;
pub use self::decode::decode_outcome;
use self::series::{encode_series, series_bytes};
use super::error::CodecError;
use super::fields::{put_int, put_longs};
use super::frame::{FRAME_BYTES_MAX, HEAD_BYTES, Head, kind};
use crate::command::Action;
use crate::event::{Event, Events, Standing};
use crate::ids::SymbolId;
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
/// How the futures book of the command stands, after all events.
const STANDING: u8 = 8;
/// How that of a symbol stands, after that.
const STANDING_OF: u8 = 9;

const TRADE_BYTES: usize = 58;
const REJECT_BYTES: usize = 34;
const REDUCE_BYTES: usize = 50;
const REMOVED_BYTES: usize = 62;
const TRIGGERED_BYTES: usize = 42;
const UNCROSSED_BYTES: usize = 50;
const REFILLED_BYTES: usize = 26;
const STANDING_BYTES: usize = 18;
const STANDING_OF_BYTES: usize = 22;
const ITEM_BYTES_MIN: usize = STANDING_BYTES;
const ITEM_BYTES_MAX: usize = REMOVED_BYTES;

/// Bits of the frame's first own byte: the order was moved, and its side.
const HAS_MOVED: u8 = 1;
const MOVED_BID: u8 = 2;
/// How a moved order stood before.
const MOVED_BYTES: usize = 24;

/// Bits of an event's second byte.
const BID: u8 = 1;
/// In a reduction: the order is gone. In a trade: the maker is.
const COMPLETED: u8 = 2;
const TAKER_COMPLETED: u8 = 4;
/// In a standing: there is an ask; there is a bid.
const HAS_ASK: u8 = 1;
const HAS_BID: u8 = 2;
/// From here on: why an order was removed.
const WHY_SHIFT: u32 = 1;

/// The outcome of a command, without its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The command's number, as the writer of the frame counts commands.
    pub sequence: u64,
    /// Its result.
    pub result: ResultCode,
}

/// Returns how long the frame of an outcome with these events is, in bytes; of one that is longer
/// than [`FRAME_BYTES_MAX`], all its frames together.
#[must_use]
pub fn outcome_bytes(events: &Events) -> usize {
    let own = usize::from(events.standing().is_some()) * STANDING_BYTES;
    let standings = own + events.standings().len() * STANDING_OF_BYTES;
    let list = events.iter().map(event_bytes).sum::<usize>();
    let bytes = front_bytes(events) + list + standings;
    if bytes > FRAME_BYTES_MAX {
        return series_bytes(events);
    }
    bytes
}

/// The length of the first frame's part before the list of events.
fn front_bytes(events: &Events) -> usize {
    BYTES_MIN + usize::from(events.moved().is_some()) * MOVED_BYTES
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

/// Writes an outcome at the beginning of `out`; the result is its length in bytes. One that is
/// longer than [`FRAME_BYTES_MAX`] becomes several frames, one behind the other. Hints about users
/// are no part of it.
///
/// # Errors
/// [`CodecError::NoRoom`]; nothing is written then.
#[inline]
pub fn encode_outcome(
    outcome: Outcome,
    events: &Events,
    out: &mut [u8],
) -> Result<usize, CodecError> {
    // Most commands have one event or none, and nothing else: what is to be written is known.
    match events.as_slice() {
        [event] if events.is_list() => {
            let needed = BYTES_MIN + event_bytes(event);
            let have = out.len();
            let Some(out) = out.get_mut(..needed) else {
                return Err(CodecError::NoRoom { needed, have });
            };
            put_front(out, (kind::OUTCOME, [0; 2]), outcome, 1);
            put_event(event, &mut out[BYTES_MIN..]);
            Ok(needed)
        }
        _ => encode_any(outcome, events, out),
    }
}

fn encode_any(outcome: Outcome, events: &Events, out: &mut [u8]) -> Result<usize, CodecError> {
    let (needed, have) = (outcome_bytes(events), out.len());
    let Some(out) = out.get_mut(..needed) else {
        return Err(CodecError::NoRoom { needed, have });
    };
    if needed > FRAME_BYTES_MAX {
        encode_series(outcome, events, out);
        return Ok(needed);
    }
    let bits = put_moved(events, &mut out[BYTES_MIN..]);
    let standings = usize::from(events.standing().is_some()) + events.standings().len();
    put_front(
        out,
        (kind::OUTCOME, [bits, 0]),
        outcome,
        events.len() + standings,
    );
    let mut rest = &mut out[front_bytes(events)..];
    for event in events {
        rest = put_event(event, rest);
    }
    if standings > 0 {
        put_standings(events, rest);
    }
    Ok(needed)
}

/// Head, number, result and the length of the list, at the beginning of a frame that is `frame`.
#[inline]
fn put_front(frame: &mut [u8], (kind, own): (u8, [u8; 2]), outcome: Outcome, count: usize) {
    let head = Head::new(frame.len(), kind, own);
    let front: &mut [u8; BYTES_MIN] = frame
        .first_chunk_mut()
        .expect("the bytes of all fields were counted");
    put_longs(front, 0, [head.0 as i64, outcome.sequence as i64]);
    put_int(front, RESULT_AT, outcome.result.code());
    put_int(front, COUNT_AT, count as u32 as i32);
}

/// Writes how a moved order stood before, and sets the bits of the own byte that announce it.
#[inline]
fn put_moved(events: &Events, out: &mut [u8]) -> u8 {
    let Some(moved) = events.moved() else {
        return 0;
    };
    let fields: &mut [u8; MOVED_BYTES] = out
        .first_chunk_mut()
        .expect("the bytes of all fields were counted");
    put_longs(fields, 0, [moved.price, moved.left, moved.filled]);
    match moved.action {
        Action::Ask => HAS_MOVED,
        Action::Bid => HAS_MOVED | MOVED_BID,
    }
}

/// How futures books stand.
#[inline(never)]
fn put_standings(events: &Events, mut rest: &mut [u8]) {
    if let Some(standing) = events.standing() {
        rest = put_standing(None, standing, rest);
    }
    for (symbol, standing) in events.standings() {
        rest = put_standing(Some(*symbol), standing, rest);
    }
}

fn put_standing<'o>(
    symbol: Option<SymbolId>,
    standing: &Standing,
    out: &'o mut [u8],
) -> &'o mut [u8] {
    let Standing { ask, bid } = *standing;
    let bits = u8::from(ask.is_some()) | u8::from(bid.is_some()) << 1;
    let prices = [ask, bid].map(Option::unwrap_or_default);
    let Some(symbol) = symbol else {
        let (item, rest) = event_room::<STANDING_BYTES>(out, STANDING, bits);
        put_longs(item, 2, prices);
        return rest;
    };
    let (item, rest) = event_room::<STANDING_OF_BYTES>(out, STANDING_OF, bits);
    put_int(item, 2, symbol.0);
    put_longs(item, 6, prices);
    rest
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::CodecError;

    /// A futures book, then those of two others: `ask` and `bid` of each.
    fn standings() -> Events {
        let mut events = Events::new();
        let (ask, bid) = (Some(5), Some(4));
        events.set_standing(Standing { ask, bid: None });
        events.add_standing(SymbolId(7), Standing { ask: None, bid });
        events.add_standing(SymbolId(8), Standing::default());
        events
    }

    fn framed(events: &Events) -> Vec<u8> {
        let outcome = Outcome {
            sequence: 1,
            result: ResultCode::Success,
        };
        let mut frame = vec![0; outcome_bytes(events)];
        let length = encode_outcome(outcome, events, &mut frame);
        assert_eq!(length, Ok(frame.len()));
        frame
    }

    #[test]
    fn standings_have_these_bytes() {
        let frame = framed(&standings());
        let mut list = vec![8, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        list.extend([9, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        list.extend([4, 0, 0, 0, 0, 0, 0, 0]);
        list.extend([9, 0, 8, 0, 0, 0]);
        list.extend([0; 16]);
        assert_eq!(frame[COUNT_AT..BYTES_MIN], [3, 0, 0, 0]);
        assert_eq!(frame[BYTES_MIN..], list);
        let mut back = Events::new();
        assert!(decode_outcome(&frame, &mut back).is_ok());
        assert_eq!(back, standings());
    }

    #[test]
    fn standings_have_one_form() {
        let frame = framed(&standings());
        let error_text = |at: usize, byte: u8| {
            let mut frame = frame.clone();
            frame[BYTES_MIN + at] = byte;
            let error = decode_outcome(&frame, &mut Events::new()).expect_err("it is wrong");
            error.to_string()
        };
        for (at, byte, text) in [
            (
                1,
                4,
                "the bits of a standing at byte 25 is 4, the greatest is 3",
            ),
            (
                10,
                1,
                "the best price of an empty side at byte 34 is 1, the greatest is 0",
            ),
            // The command's own again, and an event behind standings.
            (
                18,
                8,
                "the kind of an event at byte 42 is 8, which is not known",
            ),
            (
                18,
                6,
                "the kind of an event at byte 42 is 6, which is not known",
            ),
        ] {
            assert_eq!(error_text(at, byte), text);
        }
    }

    /// Standings are cut as events are.
    #[test]
    fn many_standings_go_on_in_another_frame() {
        let mut events = standings();
        let most = (FRAME_BYTES_MAX - BYTES_MIN) / STANDING_OF_BYTES;
        for id in 0..most as i32 {
            events.add_standing(SymbolId(id), Standing::default());
        }
        let frames = framed(&events);
        assert!(frames.len() > FRAME_BYTES_MAX);
        let mut back = Events::new();
        let decoded = decode_outcome(&frames, &mut back).map(|(_, length)| length);
        assert_eq!(decoded, Ok(frames.len()));
        assert!(back == events);
        // The command's own does not come in a further frame.
        let first = super::super::peek(&frames).expect("a head").bytes;
        let mut wrong = frames;
        wrong[first + BYTES_MIN] = STANDING;
        let error = decode_outcome(&wrong, &mut back).expect_err("it is wrong");
        assert!(matches!(
            error,
            CodecError::UnknownCode { .. } | CodecError::WrongLength { .. }
        ));
    }
}
