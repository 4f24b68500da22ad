//! Market messages as bytes.

use super::error::CodecError;
use super::fields::{Reader, Writer, action};
use super::frame::{HEAD_BYTES, Head, kind, room_for};
use crate::command::Action;
use crate::ids::{OrderId, SymbolId};
use crate::market::{
    BestPrices, Body, FeedSequence, LevelDelta, Message, OrderChange, Quote, SymbolSequence,
};

/// What every message has: head, symbol, its two numbers, the command's number.
const COMMON_BYTES: usize = HEAD_BYTES + 28;
/// The longest frame of a message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = COMMON_BYTES + 32;

/// Bits of the first own byte.
const IS_LAST: u8 = 1;
/// The side, of those kinds that have one.
const BID: u8 = 2;
/// Of best prices: which sides there are.
const HAS_ASK: u8 = 2;
const HAS_BID: u8 = 4;

/// How many 64-bit fields a body has, its kind, and its bits.
const fn form(body: &Body) -> (usize, u8, u8) {
    match body {
        Body::Trade { taker_side, .. } => (4, kind::TRADE, side(*taker_side)),
        Body::Order(OrderChange::Added { side: of, .. }) => (3, kind::ADDED, side(*of)),
        Body::Order(OrderChange::Reduced { .. }) => (3, kind::REDUCED, 0),
        Body::Order(OrderChange::Filled { .. }) => (3, kind::FILLED, 0),
        Body::Order(OrderChange::Moved { .. }) => (3, kind::MOVED, 0),
        Body::Order(OrderChange::Removed { .. }) => (2, kind::REMOVED, 0),
        Body::Level(level) => (3, kind::LEVEL, side(level.side)),
        Body::Best(best) => {
            let ask = if best.ask.is_some() { HAS_ASK } else { 0 };
            let bid = if best.bid.is_some() { HAS_BID } else { 0 };
            (4, kind::BEST, ask | bid)
        }
        Body::Cleared => (0, kind::CLEARED, 0),
    }
}

const fn side(action: Action) -> u8 {
    match action {
        Action::Ask => 0,
        Action::Bid => BID,
    }
}

/// How long a message's frame is, in bytes.
#[must_use]
pub const fn message_bytes(message: &Message) -> usize {
    COMMON_BYTES + form(&message.body).0 * 8
}

/// Writes a message's frame at the beginning of `out`; the result is its length in bytes.
///
/// # Errors
/// [`CodecError::NoRoom`]; nothing is written then.
#[inline]
pub fn encode_message(message: &Message, out: &mut [u8]) -> Result<usize, CodecError> {
    let (fields, kind, bits) = form(&message.body);
    let length = COMMON_BYTES + fields * 8;
    let mut out = Writer::new(room_for(out, length)?);
    out.head(length, kind, bits | u8::from(message.is_last));
    out.int(message.symbol.0);
    out.longs([
        message.sequence.0 as i64,
        message.symbol_sequence.0 as i64,
        message.command as i64,
    ]);
    match message.body {
        Body::Trade {
            price,
            size,
            taker_side: _,
            taker,
            maker,
        } => out.longs([price, size, taker.0, maker.0]),
        Body::Order(OrderChange::Added {
            order, price, size, ..
        }) => out.longs([order.0, price, size]),
        Body::Order(OrderChange::Reduced { order, by, left }) => out.longs([order.0, by, left]),
        Body::Order(OrderChange::Filled { order, size, left }) => {
            out.longs([order.0, size, left]);
        }
        Body::Order(OrderChange::Moved { order, price, left }) => {
            out.longs([order.0, price, left]);
        }
        Body::Order(OrderChange::Removed { order, left }) => out.longs([order.0, left]),
        Body::Level(level) => out.longs([level.price, level.volume, level.orders as i64]),
        Body::Best(best) => {
            for quote in [best.ask, best.bid] {
                out.longs(quote.map_or([0; 2], |quote| [quote.price, quote.volume]));
            }
        }
        Body::Cleared => {}
    }
    Ok(length)
}

/// What a kind is called, how many 64-bit fields it has, and the greatest value of its bits.
const fn kind_form(kind: u8) -> Option<(&'static str, usize, u8)> {
    Some(match kind {
        kind::TRADE => ("a trade", 4, IS_LAST | BID),
        kind::ADDED => ("an added order", 3, IS_LAST | BID),
        kind::REDUCED => ("a reduced order", 3, IS_LAST),
        kind::FILLED => ("a filled order", 3, IS_LAST),
        kind::MOVED => ("a moved order", 3, IS_LAST),
        kind::REMOVED => ("a removed order", 2, IS_LAST),
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
    let length = head.length()?;
    let kind = head.kind();
    let wanted = "message";
    let form = kind_form(kind).ok_or(CodecError::UnknownKind { kind, wanted })?;
    let (what, fields, bits_max) = form;
    let expected = COMMON_BYTES + fields * 8;
    if length != expected {
        return Err(CodecError::WrongLength {
            what,
            length,
            expected,
        });
    }
    let [bits, _] = head.own_up_to(what, [bits_max, 0])?;
    let mut fields = Reader::new(head.frame(bytes)?, HEAD_BYTES);
    let symbol = SymbolId(fields.int()?);
    let message = Message {
        symbol,
        sequence: FeedSequence(fields.number()?),
        symbol_sequence: SymbolSequence(fields.number()?),
        command: fields.number()?,
        is_last: bits & IS_LAST != 0,
        body: body(kind, bits, &mut fields)?,
    };
    Ok((message, length))
}

#[inline]
fn body(kind: u8, bits: u8, fields: &mut Reader<'_>) -> Result<Body, CodecError> {
    let side = action(bits >> 1);
    let order = |fields: &mut Reader<'_>| fields.long().map(OrderId);
    Ok(match kind {
        kind::TRADE => Body::Trade {
            price: fields.long()?,
            size: fields.long()?,
            taker_side: side,
            taker: order(fields)?,
            maker: order(fields)?,
        },
        kind::ADDED => Body::Order(OrderChange::Added {
            order: order(fields)?,
            side,
            price: fields.long()?,
            size: fields.long()?,
        }),
        kind::REDUCED => Body::Order(OrderChange::Reduced {
            order: order(fields)?,
            by: fields.long()?,
            left: fields.long()?,
        }),
        kind::FILLED => Body::Order(OrderChange::Filled {
            order: order(fields)?,
            size: fields.long()?,
            left: fields.long()?,
        }),
        kind::MOVED => Body::Order(OrderChange::Moved {
            order: order(fields)?,
            price: fields.long()?,
            left: fields.long()?,
        }),
        kind::REMOVED => Body::Order(OrderChange::Removed {
            order: order(fields)?,
            left: fields.long()?,
        }),
        kind::LEVEL => Body::Level(LevelDelta {
            side,
            price: fields.long()?,
            volume: fields.long()?,
            orders: fields.number()?,
        }),
        kind::BEST => Body::Best(BestPrices {
            ask: quote(fields, bits & HAS_ASK != 0)?,
            bid: quote(fields, bits & HAS_BID != 0)?,
        }),
        _ => Body::Cleared,
    })
}

fn quote(fields: &mut Reader<'_>, is_there: bool) -> Result<Option<Quote>, CodecError> {
    let price = fields.optional("the best price of an empty side", is_there)?;
    let volume = fields.optional("the best volume of an empty side", is_there)?;
    Ok(price
        .zip(volume)
        .map(|(price, volume)| Quote { price, volume }))
}
