//! Parts of checkpoints: what the log keeps of a user and of a symbol.
//!
//! The parts of one user, or of one symbol, are a whole: from [`CheckpointPart::User`] to
//! [`CheckpointPart::UserEnd`], from [`CheckpointPart::Symbol`] to [`CheckpointPart::SymbolEnd`].
//! Read again, a whole takes the place of all that the records before it say about its user or
//! symbol; one that a crash tore is left out.

use thalweg_exchange::session::ReportNumber;
use thalweg_exchange::{SymbolId, UserId};

use super::fields::{Bytes, Writer, decode_order, decode_trade, encode_order, encode_trade};
use super::order::{Fill, Order, Status};
use crate::market::{AggregateTrade, Candle, Trade};

/// The first code of these records.
pub(super) const FIRST: u8 = BEGIN;
const BEGIN: u8 = 16;
const END: u8 = 17;
const USER: u8 = 18;
const ORDER: u8 = 19;
const FILL: u8 = 20;
const USER_END: u8 = 21;
const SYMBOL: u8 = 22;
const TRADE: u8 = 23;
const AGGREGATE: u8 = 24;
const CANDLE: u8 = 25;
const SYMBOL_END: u8 = 26;

/// An order that is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SavedOrder {
    pub(super) order: Order,
    pub(super) is_open: bool,
    /// It is the newest of its client order id.
    pub(super) is_newest: bool,
    /// The order before it with that client order id.
    pub(super) former: Option<i64>,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CheckpointPart {
    /// A checkpoint begins: all users and symbols follow, records of others between them.
    Begin,
    /// The checkpoint that began last is whole.
    End,
    User {
        user: UserId,
        last_report: Option<ReportNumber>,
        sequence: i64,
    },
    Order(Box<SavedOrder>),
    Fill(Fill),
    UserEnd,
    Symbol {
        symbol: SymbolId,
        /// The id of its last trade.
        last: i64,
        /// The time of its candles, in milliseconds.
        millis: i64,
    },
    Trade(Trade),
    Aggregate(AggregateTrade),
    /// A candle of the interval at a position.
    Candle(u8, Candle),
    SymbolEnd,
}

impl CheckpointPart {
    pub(super) fn encode(&self, out: &mut Writer) {
        match self {
            Self::Begin => drop(out.byte(BEGIN)),
            Self::End => drop(out.byte(END)),
            Self::UserEnd => drop(out.byte(USER_END)),
            Self::SymbolEnd => drop(out.byte(SYMBOL_END)),
            Self::User {
                user,
                last_report,
                sequence,
            } => {
                let last = last_report.map(|number| number.0 as i64);
                out.byte(USER).int(user.0).optional(last).int(*sequence);
            }
            Self::Order(kept) => kept.encode(out.byte(ORDER)),
            Self::Fill(fill) => encode_fill(fill, out.byte(FILL)),
            Self::Symbol {
                symbol,
                last,
                millis,
            } => {
                out.byte(SYMBOL).int(symbol.0.into());
                out.int(*last).int(*millis);
            }
            Self::Trade(trade) => encode_trade(trade, out.byte(TRADE)),
            Self::Aggregate(trade) => {
                encode_trade(&trade.first, out.byte(AGGREGATE));
                out.int(trade.last).wide(trade.lots);
            }
            Self::Candle(at, candle) => encode_candle(candle, out.byte(CANDLE).byte(*at)),
        }
    }

    pub(super) fn decode(code: u8, fields: &mut Bytes<'_>) -> Option<Self> {
        Some(match code {
            BEGIN => Self::Begin,
            END => Self::End,
            USER_END => Self::UserEnd,
            SYMBOL_END => Self::SymbolEnd,
            USER => Self::User {
                user: UserId(fields.int()?),
                last_report: fields.optional()?.map(|number| ReportNumber(number as u64)),
                sequence: fields.int()?,
            },
            ORDER => Self::Order(Box::new(SavedOrder::decode(fields)?)),
            FILL => Self::Fill(decode_fill(fields)?),
            SYMBOL => Self::Symbol {
                symbol: SymbolId(fields.int()?.try_into().ok()?),
                last: fields.int()?,
                millis: fields.int()?,
            },
            TRADE => Self::Trade(decode_trade(fields)?),
            AGGREGATE => Self::Aggregate(AggregateTrade {
                first: decode_trade(fields)?,
                last: fields.int()?,
                lots: fields.wide()?,
            }),
            CANDLE => Self::Candle(fields.byte()?, decode_candle(fields)?),
            _ => return None,
        })
    }
}

impl SavedOrder {
    fn encode(&self, out: &mut Writer) {
        let order = &self.order;
        encode_order(order, out);
        out.int(order.updated_us).int(order.working_us);
        out.byte(order.status as u8).int(order.filled);
        out.wide(order.spent).int(order.command as i64);
        out.wide(order.taken.0).wide(order.taken.1);
        out.byte(self.is_open.into()).byte(self.is_newest.into());
        out.optional(self.former);
        if order.reserve != order.price {
            out.int(order.reserve);
        }
    }

    fn decode(fields: &mut Bytes<'_>) -> Option<Self> {
        let mut order = decode_order(fields)?;
        (order.updated_us, order.working_us) = (fields.int()?, fields.int()?);
        (order.status, order.filled) = (Status::from_code(fields.byte()?)?, fields.int()?);
        (order.spent, order.command) = (fields.wide()?, fields.int()? as u64);
        order.taken = (fields.wide()?, fields.wide()?);
        let (is_open, is_newest) = (fields.byte()? != 0, fields.byte()? != 0);
        let former = fields.optional()?;
        // It is there where it is not the price.
        order.reserve = fields.int().unwrap_or(order.price);
        Some(Self {
            order,
            is_open,
            is_newest,
            former,
        })
    }
}

fn encode_fill(fill: &Fill, out: &mut Writer) {
    out.int(fill.id).int(fill.order).int(fill.symbol.into());
    out.int(fill.price).int(fill.lots).wide(fill.fee);
    out.byte(fill.side as u8).byte(fill.is_maker.into());
    out.int(fill.time_us).int(fill.command as i64);
}

fn decode_fill(fields: &mut Bytes<'_>) -> Option<Fill> {
    Some(Fill {
        id: fields.int()?,
        order: fields.int()?,
        symbol: fields.int()?.try_into().ok()?,
        price: fields.int()?,
        lots: fields.int()?,
        fee: fields.wide()?,
        side: fields.side()?,
        is_maker: fields.byte()? != 0,
        time_us: fields.int()?,
        command: fields.int()? as u64,
    })
}

fn encode_candle(candle: &Candle, out: &mut Writer) {
    out.int(candle.open_time).int(candle.open);
    out.int(candle.high).int(candle.low).int(candle.close);
    out.int(candle.first).int(candle.last);
    out.wide(candle.volume).wide(candle.quote_volume);
    out.wide(candle.taker_volume);
    out.wide(candle.taker_quote_volume);
}

fn decode_candle(fields: &mut Bytes<'_>) -> Option<Candle> {
    Some(Candle {
        open_time: fields.int()?,
        open: fields.int()?,
        high: fields.int()?,
        low: fields.int()?,
        close: fields.int()?,
        first: fields.int()?,
        last: fields.int()?,
        volume: fields.wide()?,
        quote_volume: fields.wide()?,
        taker_volume: fields.wide()?,
        taker_quote_volume: fields.wide()?,
    })
}
