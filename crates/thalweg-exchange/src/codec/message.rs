//! Market messages as bytes.

use super::error::CodecError;
use super::fields::{action, int, long, nothing, put_int, put_longs};
use super::frame::{HEAD_BYTES, Head, kind, room};
use crate::command::Action;
use crate::ids::SymbolId;
use crate::market::{
    BestPrices, Body, Channels, Epoch, FeedSequence, LevelDelta, Message, Quote, SymbolSequence,
};

/// The length of the fields that every message has: head, symbol, epoch, its two numbers.
const COMMON_BYTES: usize = HEAD_BYTES + 28;
/// The longest frame of a message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = FOUR_BYTES;

/// Bits of the first own byte.
const IS_LAST: u8 = 1;
/// The side, of those kinds that have one.
const SIDE_BIT: u32 = 1;
const BID: u8 = 1 << SIDE_BIT;
/// Bits of a best-prices message: which sides have a price.
const HAS_ASK: u8 = 2;
const HAS_BID: u8 = 4;

const FOUR_BYTES: usize = COMMON_BYTES + 32;
const THREE_BYTES: usize = COMMON_BYTES + 24;
const TWO_BYTES: usize = COMMON_BYTES + 16;

/// How long a message's frame is, in bytes.
#[must_use]
pub const fn message_bytes(message: &Message) -> usize {
    match message.body {
        Body::Best(_) => FOUR_BYTES,
        Body::Level(_) => THREE_BYTES,
        Body::Trade { .. } => TWO_BYTES,
        Body::Cleared => COMMON_BYTES,
    }
}

/// Writes a message's frame at the beginning of `out`; the result is its length in bytes.
///
/// # Errors
/// [`CodecError::NoRoom`]; nothing is written then.
#[inline]
pub fn encode_message(message: &Message, out: &mut [u8]) -> Result<usize, CodecError> {
    let side = |action: Action| (action as u8) << SIDE_BIT;
    match message.body {
        Body::Trade {
            price,
            size,
            taker_side,
        } => {
            let fields = [price, size];
            put::<TWO_BYTES, 2>(message, kind::TRADE, side(taker_side), fields, out)
        }
        Body::Level(level) => {
            let fields = [level.price, level.volume, level.orders as i64];
            put::<THREE_BYTES, 3>(message, kind::LEVEL, side(level.side), fields, out)
        }
        Body::Best(BestPrices { ask, bid }) => {
            let of = |quote: Option<Quote>, bit| {
                quote.map_or((0, [0; 2]), |quote| (bit, [quote.price, quote.volume]))
            };
            let ((has_ask, ask), (has_bid, bid)) = (of(ask, HAS_ASK), of(bid, HAS_BID));
            let fields = [ask[0], ask[1], bid[0], bid[1]];
            put::<FOUR_BYTES, 4>(message, kind::BEST, has_ask | has_bid, fields, out)
        }
        Body::Cleared => put::<COMMON_BYTES, 0>(message, kind::CLEARED, 0, [], out),
    }
}

/// Writes `N` bytes: what all messages have, and the body's `F` fields.
#[inline(always)]
fn put<const N: usize, const F: usize>(
    message: &Message,
    kind: u8,
    bits: u8,
    fields: [i64; F],
    out: &mut [u8],
) -> Result<usize, CodecError> {
    const { assert!(N == COMMON_BYTES + F * 8) };
    let out = room::<N>(out)?;
    let own = [bits | u8::from(message.is_last), message.channels.code()];
    let head = Head::new(N, kind, own);
    put_longs(out, 0, [head.0 as i64]);
    put_int(out, HEAD_BYTES, message.symbol.0);
    let numbers = [
        message.epoch.0,
        message.sequence.0,
        message.symbol_sequence.0,
    ];
    put_longs(out, 12, numbers.map(|number| number as i64));
    put_longs(out, COMMON_BYTES, fields);
    Ok(N)
}

/// Returns the name of a kind, its number of 64-bit fields, and the greatest value of its bits.
const fn kind_form(kind: u8) -> Option<(&'static str, usize, u8)> {
    Some(match kind {
        kind::TRADE => ("a trade", 2, IS_LAST | BID),
        kind::LEVEL => ("a level", 3, IS_LAST | BID),
        kind::BEST => ("best prices", 4, IS_LAST | HAS_ASK | HAS_BID),
        kind::CLEARED => ("a cleared book", 0, IS_LAST),
        _ => return None,
    })
}

/// Reads the message at the beginning of `bytes`; with it, the length of its frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
#[inline]
pub fn decode_message(bytes: &[u8]) -> Result<(Message, usize), CodecError> {
    let head = Head::read(bytes)?;
    let ([bits, channels], wrong) = check(head)?;
    let kind = head.kind();
    let frame = head.frame(bytes)?;
    let (common, rest) = frame.split_first_chunk::<COMMON_BYTES>().ok_or(wrong)?;
    let mut fields = [0; 4];
    for (field, bytes) in fields.iter_mut().zip(rest.as_chunks().0) {
        *field = i64::from_le_bytes(*bytes);
    }
    let message = Message {
        symbol: SymbolId(int(common, HEAD_BYTES)),
        epoch: Epoch(long(common, 12) as u64),
        sequence: FeedSequence(long(common, 20) as u64),
        symbol_sequence: SymbolSequence(long(common, 28) as u64),
        channels: channels_of(channels)?,
        is_last: bits & IS_LAST != 0,
        body: body(kind, bits, fields)?,
    };
    Ok((message, frame.len()))
}

/// Returns the own bytes of a message and the error for another length, or the error that its head
/// proves whatever follows.
#[inline]
pub(super) fn check(head: Head) -> Result<([u8; 2], CodecError), CodecError> {
    let length = head.length()?;
    let (kind, wanted) = (head.kind(), "message");
    let form = kind_form(kind).ok_or(CodecError::UnknownKind { kind, wanted })?;
    let (what, fields, bits_max) = form;
    let expected = COMMON_BYTES + fields * 8;
    let wrong = CodecError::WrongLength {
        what,
        length,
        expected,
    };
    if length != expected {
        return Err(wrong);
    }
    Ok((head.own_up_to(what, [bits_max, Channels::CODE_MAX])?, wrong))
}

/// The channels of a second own byte that was checked.
#[inline]
pub(super) fn channels_of(code: u8) -> Result<Channels, CodecError> {
    Channels::from_code(code).ok_or(CodecError::UnknownCode {
        what: "the channels",
        at: 7,
        code: code.into(),
    })
}

#[inline]
fn body(kind: u8, bits: u8, fields: [i64; 4]) -> Result<Body, CodecError> {
    let side = action(bits >> SIDE_BIT);
    let [_, second, third, fourth] = fields;
    Ok(match kind {
        kind::TRADE => Body::Trade {
            price: fields[0],
            size: second,
            taker_side: side,
        },
        kind::LEVEL => Body::Level(LevelDelta {
            side,
            price: fields[0],
            volume: second,
            orders: third as u64,
        }),
        kind::BEST => Body::Best(BestPrices {
            ask: quote(COMMON_BYTES, [fields[0], second], bits & HAS_ASK != 0)?,
            bid: quote(COMMON_BYTES + 16, [third, fourth], bits & HAS_BID != 0)?,
        }),
        _ => Body::Cleared,
    })
}

/// The quote at `at`, which must be 0 where it is none.
fn quote(at: usize, fields: [i64; 2], is_there: bool) -> Result<Option<Quote>, CodecError> {
    let [price, volume] = fields;
    if is_there {
        return Ok(Some(Quote { price, volume }));
    }
    nothing("the best price of an empty side", at, price)?;
    nothing("the best volume of an empty side", at + 8, volume)?;
    Ok(None)
}
