//! Questions of a session, and what the server says to them.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer};
use super::super::frame::Head;
use super::super::layout::{FRAME_BYTES_MAX, OWN_AT, kind};
use super::super::snapshot::{LEVEL_BYTES, LevelForm};
use super::account::{AccountView, ORDER_BYTES, OpenOrder};
use super::answer::refusal;
use crate::ids::{SymbolId, UserId};
use crate::report::BookReport;
use crate::risk::UserStatus;
use crate::session::Refusal;
use crate::wire::{Form, Wire};

/// A query; byte 6 says what is asked, and so what its last eight bytes are.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct QueryForm {
    id: U64,
    /// A user; or a symbol in the lower half, and in the upper one levels a side.
    about: U64,
}

/// The beginning of each answer to a query; byte 6 says what follows.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct QueryAnswerForm {
    head: Head,
    id: U64,
    number: U64,
}

pub(super) const QUERY_ANSWER_BYTES_MIN: usize = size_of::<QueryAnswerForm>();

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

impl Form for QueryForm {
    type Value = QueryFrame;
    const SMALL_MAX: [u8; 2] = [BOOK, 0];

    fn of(query: &QueryFrame) -> ([u8; 2], Self) {
        let (kind, about) = match query.query {
            SessionQuery::Account(uid) => (ACCOUNT, uid.0.cast_unsigned()),
            SessionQuery::OpenOrders(uid) => (OPEN_ORDERS, uid.0.cast_unsigned()),
            SessionQuery::Book { symbol, depth } => {
                let symbol = symbol.0.cast_unsigned();
                (BOOK, u64::from(depth) << 32 | u64::from(symbol))
            }
        };
        let about = about.bytes();
        let id = query.id.bytes();
        ([kind, 0], Self { id, about })
    }

    fn value(&self, own: [u8; 2], _: [usize; 2]) -> Result<QueryFrame, CodecError> {
        let about = self.about.get();
        let user = UserId(about.cast_signed());
        let query = match own[0] {
            ACCOUNT => SessionQuery::Account(user),
            OPEN_ORDERS => SessionQuery::OpenOrders(user),
            BOOK => SessionQuery::Book {
                symbol: SymbolId(about as i32),
                depth: (about >> 32) as u32,
            },
            code => return Err(unknown(code)),
        };
        let id = self.id.get();
        Ok(QueryFrame { id, query })
    }
}

fn unknown(code: u8) -> CodecError {
    CodecError::unknown("what is asked", OWN_AT, code)
}

/// Checks the own bytes of an answer to a query.
pub(super) fn check_answer(own: [u8; 2]) -> Result<(), CodecError> {
    match own {
        [ACCOUNT | OPEN_ORDERS, 0 | 1] | [BOOK | UNKNOWN_USER | UNKNOWN_SYMBOL, 0] => Ok(()),
        [REFUSED, code] => refusal((code, OWN_AT + 1), (U32::ZERO, 0)).map(drop),
        [kind @ (0 | REFUSED..), _] => Err(unknown(kind)),
        [kind, value] => Err(CodecError::HeadByte {
            what: "an answer to a query",
            at: OWN_AT + 1,
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
        /// Whether there are more than the server gives or the frame can hold.
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
    /// Returns how many of the orders fit into a frame.
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
        out.put(&QueryAnswerForm {
            head: Head::new(self.bytes(), kind::QUERY_ANSWER, own),
            id: self.id.bytes(),
            number: self.number.bytes(),
        });
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
                let levels = asks.iter().chain(bids);
                levels.for_each(|level| out.value::<LevelForm>(level));
            }
            QueryResult::UnknownUser | QueryResult::UnknownSymbol => {}
            QueryResult::Refused(why) => out.put(&why.limit().bytes()),
        }
    }

    pub(super) fn read(frame: &[u8]) -> Result<Self, CodecError> {
        let fields = &mut Reader::new(frame, 0);
        let &QueryAnswerForm { head, id, number } = fields.get()?;
        let [kind, second] = head.own;
        let result = match kind {
            ACCOUNT => {
                let status = UserStatus::value(second, OWN_AT + 1)?;
                QueryResult::Account(AccountView::read(status, fields)?)
            }
            OPEN_ORDERS => {
                let count = fields.count("open orders", ORDER_BYTES)?;
                let mut orders = Vec::with_capacity(count);
                for _ in 0..count {
                    orders.push(OpenOrder::read(fields)?);
                }
                QueryResult::OpenOrders {
                    orders,
                    is_cut: second != 0,
                }
            }
            BOOK => {
                let asks = fields.count("levels", LEVEL_BYTES)?;
                let bids = fields.count("levels", LEVEL_BYTES)?;
                QueryResult::Book(BookReport {
                    asks: fields.values::<LevelForm>(asks)?,
                    bids: fields.values::<LevelForm>(bids)?,
                })
            }
            UNKNOWN_USER => QueryResult::UnknownUser,
            UNKNOWN_SYMBOL => QueryResult::UnknownSymbol,
            _ => {
                let at = fields.at();
                let limit = (*fields.get()?, at);
                QueryResult::Refused(refusal((second, OWN_AT + 1), limit)?)
            }
        };
        fields.end()?;
        Ok(Self {
            id: id.get(),
            number: number.get(),
            result,
        })
    }
}
