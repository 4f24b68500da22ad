//! Market messages as bytes.

use zerocopy::little_endian::{I32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::CodecError;
use super::frame::{Head, put_form};
use super::layout::{OWN_AT, kind};
use crate::command::Action;
use crate::ids::SymbolId;
use crate::market::{
    BestPrices, Body, Channels, Epoch, FeedSequence, LevelDelta, Message, Quote, SymbolSequence,
};
use crate::wire::{Code, Form, Wire, wire};

/// A message: what all have, and behind it what its kind has. Byte 6 has whether it is the last of
/// a command, and then the bits of the kind; byte 7 has the channels.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct MessageForm<B> {
    head: Head,
    symbol: I32,
    epoch: U64,
    sequence: U64,
    symbol_sequence: U64,
    body: B,
}

wire! {
    struct TradeForm = Body::Trade [taker_side: Action] { price: i64, size: i64 }
    struct LevelForm = LevelDelta [side: Action] { price: i64, volume: i64, orders: u64 }
    struct BestForm = BestPrices [
        | ask: "the best ask of an empty side", bid: "the best bid of an empty side"
    ] { ask: Option<Quote>, bid: Option<Quote> }
    pub(crate) struct QuoteForm = Quote { price: i64, volume: i64 }
    struct ClearedForm = Body::Cleared {}
}

impl Wire for Quote {
    type Bytes = QuoteForm;

    #[inline(always)]
    fn bytes(self) -> QuoteForm {
        QuoteForm::of(&self).1
    }

    #[inline(always)]
    fn value(bytes: QuoteForm, at: usize) -> Result<Self, CodecError> {
        bytes.value([0; 2], [at, at])
    }
}

/// The longest frame of a message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = size_of::<MessageForm<BestForm>>();

/// Returns how long a message's frame is, in bytes.
#[must_use]
pub const fn message_bytes(message: &Message) -> usize {
    match message.body {
        Body::Best(_) => size_of::<MessageForm<BestForm>>(),
        Body::Level(_) => size_of::<MessageForm<LevelForm>>(),
        Body::Trade { .. } => size_of::<MessageForm<TradeForm>>(),
        Body::Cleared => size_of::<MessageForm<ClearedForm>>(),
    }
}

/// Writes a message's frame at the beginning of `out`; the result is its length in bytes.
///
/// # Errors
/// [`CodecError::BufferTooSmall`]; nothing is written then.
#[inline]
pub fn encode_message(message: &Message, out: &mut [u8]) -> Result<usize, CodecError> {
    match &message.body {
        body @ Body::Trade { .. } => put::<TradeForm>(message, kind::TRADE, body, out),
        Body::Level(level) => put::<LevelForm>(message, kind::LEVEL, level, out),
        Body::Best(best) => put::<BestForm>(message, kind::BEST, best, out),
        body @ Body::Cleared => put::<ClearedForm>(message, kind::CLEARED, body, out),
    }
}

#[inline(always)]
fn put<B: Form>(
    message: &Message,
    kind: u8,
    body: &B::Value,
    out: &mut [u8],
) -> Result<usize, CodecError> {
    let ([bits, _], body) = B::of(body);
    let own = [
        bits << 1 | u8::from(message.is_last),
        message.channels.code(),
    ];
    let frame = MessageForm {
        head: Head::new(size_of::<MessageForm<B>>(), kind, own),
        symbol: message.symbol.bytes(),
        epoch: message.epoch.bytes(),
        sequence: message.sequence.bytes(),
        symbol_sequence: message.symbol_sequence.bytes(),
        body,
    };
    put_form(frame, out)
}

/// Reads the message at the beginning of `bytes`; with it, the length of its frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
#[inline]
pub fn decode_message(bytes: &[u8]) -> Result<(Message, usize), CodecError> {
    let head = Head::read(bytes)?;
    check(head)?;
    let message = match head.kind {
        kind::TRADE => get::<TradeForm>(bytes, head, |trade| trade)?,
        kind::LEVEL => get::<LevelForm>(bytes, head, Body::Level)?,
        kind::BEST => get::<BestForm>(bytes, head, Body::Best)?,
        _ => get::<ClearedForm>(bytes, head, |cleared| cleared)?,
    };
    Ok((message, message_bytes(&message)))
}

#[inline]
fn get<B: Form>(
    bytes: &[u8],
    head: Head,
    make: impl FnOnce(B::Value) -> Body,
) -> Result<Message, CodecError> {
    let (needed, have) = (size_of::<MessageForm<B>>(), bytes.len());
    let Ok((frame, _)) = MessageForm::<B>::ref_from_prefix(bytes) else {
        return Err(CodecError::Incomplete { needed, have });
    };
    let [bits, channels] = head.own;
    let at = [OWN_AT, size_of::<MessageForm<ClearedForm>>()];
    Ok(Message {
        symbol: SymbolId::value(frame.symbol, 0)?,
        epoch: Epoch::value(frame.epoch, 0)?,
        sequence: FeedSequence::value(frame.sequence, 0)?,
        symbol_sequence: SymbolSequence::value(frame.symbol_sequence, 0)?,
        channels: Channels::value(channels, OWN_AT + 1)?,
        is_last: bits & 1 != 0,
        body: make(frame.body.value([bits >> 1, 0], at)?),
    })
}

/// Returns the error that a message's head proves whatever follows.
#[inline]
pub(super) fn check(head: Head) -> Result<(), CodecError> {
    match head.kind {
        kind::TRADE => check_kind::<TradeForm>(head, "a trade"),
        kind::LEVEL => check_kind::<LevelForm>(head, "a level"),
        kind::BEST => check_kind::<BestForm>(head, "best prices"),
        kind::CLEARED => check_kind::<ClearedForm>(head, "a cleared book"),
        _ => head.length().and_then(|_| head.unknown("message")),
    }
}

#[inline]
fn check_kind<B: Form>(head: Head, what: &'static str) -> Result<(), CodecError> {
    head.check_length(what, size_of::<MessageForm<B>>())?;
    head.check_own(what, [B::SMALL_MAX[0] << 1 | 1, Channels::MAX])?;
    Channels::value(head.own[1], OWN_AT + 1).map(drop)
}
