//! Questions of a session, and what the server says to them.

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer};
use super::super::frame::{FRAME_BYTES_MAX, HEAD_BYTES, Head, kind};
use super::account::{AccountView, ORDER_BYTES, OpenOrder};
use super::answer::{refusal, unknown_refusal};
use crate::book::Level;
use crate::ids::{SymbolId, UserId};
use crate::report::BookReport;
use crate::session::Refusal;

pub(super) const QUERY_BYTES: usize = HEAD_BYTES + 16;
pub(super) const QUERY_ANSWER_BYTES_MIN: usize = HEAD_BYTES + 16;
const LEVEL_BYTES: usize = 24;

const ACCOUNT: u8 = 1;
const OPEN_ORDERS: u8 = 2;
const BOOK: u8 = 3;
const UNKNOWN_USER: u8 = 4;
const UNKNOWN_SYMBOL: u8 = 5;
const REFUSED: u8 = 6;

/// A query of a session; a trader may ask only about the own user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionQuery {
    /// A user's balances and positions.
    Account(UserId),
    /// A user's orders.
    OpenOrders(UserId),
    /// The best levels of a book.
    Book {
        /// Which.
        symbol: SymbolId,
        /// Levels a side at most. The server may send fewer: it has a limit of its own.
        depth: u32,
    },
}

/// A question (kind 219).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryFrame {
    /// The client's id of the query: the answer carries it.
    pub id: u64,
    /// The query.
    pub query: SessionQuery,
}

impl QueryFrame {
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let (kind, [first, second]) = match self.query {
            SessionQuery::Account(uid) => (ACCOUNT, halves(uid.0)),
            SessionQuery::OpenOrders(uid) => (OPEN_ORDERS, halves(uid.0)),
            SessionQuery::Book { symbol, depth } => (BOOK, [symbol.0, depth.cast_signed()]),
        };
        out.head(QUERY_BYTES, kind::QUERY, kind);
        out.long(self.id as i64);
        out.int(first);
        out.int(second);
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        check_kind(own, BOOK)?;
        let id = fields.long()? as u64;
        let query = match own[0] {
            ACCOUNT => SessionQuery::Account(UserId(fields.long()?)),
            OPEN_ORDERS => SessionQuery::OpenOrders(UserId(fields.long()?)),
            _ => SessionQuery::Book {
                symbol: SymbolId(fields.int()?),
                depth: fields.int()?.cast_unsigned(),
            },
        };
        Ok(Self { id, query })
    }
}

const fn halves(value: i64) -> [i32; 2] {
    [value as i32, (value >> 32) as i32]
}

/// The kind in the first own byte: from 1 to `max`.
pub(super) fn check_kind(own: [u8; 2], max: u8) -> Result<(), CodecError> {
    if (1..=max).contains(&own[0]) {
        return Ok(());
    }
    Err(CodecError::UnknownCode {
        what: "what is asked",
        at: 6,
        code: own[0].into(),
    })
}

/// Checks the own bytes of an answer to a query.
pub(super) fn check_answer(own: [u8; 2]) -> Result<(), CodecError> {
    check_kind(own, REFUSED)?;
    match own {
        [ACCOUNT | OPEN_ORDERS, 0 | 1] | [BOOK | UNKNOWN_USER | UNKNOWN_SYMBOL, 0] => Ok(()),
        [REFUSED, code] if Refusal::from_parts(code, 0).is_some() => Ok(()),
        [REFUSED, code] => Err(unknown_refusal(code, 7)),
        [kind, value] => Err(CodecError::OwnByte {
            what: "an answer to a query",
            at: 7,
            value,
            max: u8::from(kind <= OPEN_ORDERS),
        }),
    }
}

/// The content of an answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryResult {
    /// The user.
    Account(AccountView),
    /// The user's orders.
    OpenOrders {
        /// Those that rest, then those that wait; each by ascending symbol.
        orders: Vec<OpenOrder>,
        /// Whether there are more than a frame can hold.
        is_cut: bool,
    },
    /// The levels.
    Book(BookReport),
    /// There is no such user.
    UnknownUser,
    /// There is no such symbol.
    UnknownSymbol,
    /// The session may not ask this, or not now.
    Refused(Refusal),
}

/// The answer to a query (kind 220).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryAnswer {
    /// To which query.
    pub id: u64,
    /// How many commands had been executed then.
    pub number: u64,
    /// The content.
    pub result: QueryResult,
}

impl QueryAnswer {
    /// How many of the orders fit into a frame.
    fn fitting(orders: &[OpenOrder]) -> usize {
        orders
            .len()
            .min((FRAME_BYTES_MAX - QUERY_ANSWER_BYTES_MIN - 4) / ORDER_BYTES)
    }

    pub(super) fn bytes(&self) -> usize {
        QUERY_ANSWER_BYTES_MIN
            + match &self.result {
                QueryResult::Account(view) => view.bytes(),
                QueryResult::OpenOrders { orders, .. } => 4 + Self::fitting(orders) * ORDER_BYTES,
                QueryResult::Book(BookReport { asks, bids }) => {
                    8 + (asks.len() + bids.len()) * LEVEL_BYTES
                }
                QueryResult::UnknownUser | QueryResult::UnknownSymbol => 0,
                QueryResult::Refused(_) => 4,
            }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let own = match &self.result {
            QueryResult::Account(view) => [ACCOUNT, view.status as u8],
            QueryResult::OpenOrders { orders, is_cut } => {
                let is_cut = *is_cut || Self::fitting(orders) < orders.len();
                [OPEN_ORDERS, is_cut.into()]
            }
            QueryResult::Book(_) => [BOOK, 0],
            QueryResult::UnknownUser => [UNKNOWN_USER, 0],
            QueryResult::UnknownSymbol => [UNKNOWN_SYMBOL, 0],
            QueryResult::Refused(why) => [REFUSED, why.code()],
        };
        let head = Head::new(self.bytes(), kind::QUERY_ANSWER, own);
        out.longs([head.0, self.id, self.number].map(|number| number as i64));
        match &self.result {
            QueryResult::Account(view) => view.write(out),
            QueryResult::OpenOrders { orders, .. } => {
                let orders = &orders[..Self::fitting(orders)];
                out.count(orders.len());
                orders.iter().for_each(|order| order.write(out));
            }
            QueryResult::Book(BookReport { asks, bids }) => {
                out.count(asks.len());
                out.count(bids.len());
                for level in asks.iter().chain(bids) {
                    out.longs([level.price, level.volume, level.orders as i64]);
                }
            }
            QueryResult::UnknownUser | QueryResult::UnknownSymbol => {}
            QueryResult::Refused(why) => out.bytes(why.limit().to_le_bytes()),
        }
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let [id, number] = fields.longs()?.map(|number| number as u64);
        let result = match own[0] {
            ACCOUNT => QueryResult::Account(AccountView::read(own[1], fields)?),
            OPEN_ORDERS => {
                let count = fields.count("open orders", ORDER_BYTES)?;
                let mut orders = Vec::with_capacity(count);
                for _ in 0..count {
                    orders.push(OpenOrder::read(fields)?);
                }
                QueryResult::OpenOrders {
                    orders,
                    is_cut: own[1] != 0,
                }
            }
            BOOK => {
                let asks = fields.count("levels", LEVEL_BYTES)?;
                let bids = fields.count("levels", LEVEL_BYTES)?;
                QueryResult::Book(BookReport {
                    asks: levels(asks, fields)?,
                    bids: levels(bids, fields)?,
                })
            }
            UNKNOWN_USER => QueryResult::UnknownUser,
            UNKNOWN_SYMBOL => QueryResult::UnknownSymbol,
            _ => QueryResult::Refused(refusal(own[1], 7, fields)?),
        };
        Ok(Self { id, number, result })
    }
}

fn levels(count: usize, fields: &mut Reader<'_>) -> Result<Vec<Level>, CodecError> {
    let mut levels = Vec::with_capacity(count);
    for _ in 0..count {
        let [price, volume, orders] = fields.longs()?;
        let orders = orders as u64;
        levels.push(Level {
            price,
            volume,
            orders,
        });
    }
    Ok(levels)
}
