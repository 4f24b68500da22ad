//! Questions to a running exchange, answered between two commands.
//!
//! A query goes through the pipeline in a command's place, and the execute stage answers it when it
//! comes there: the answer is the state after the command before it, whatever the placement. A
//! query changes nothing, has no number of its own, and is not seen by `publish` or the digest:
//! those count commands, so a log without queries does the same.

use thalweg::channel::OneshotSender;

use crate::engine::state::State;
use crate::ids::{SymbolId, UserId};
use crate::report::{
    BookReport, CurrencyTotal, OpenOrders, book_report, currency_totals, open_orders,
};
use crate::risk::User;

/// A query to a running exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// A user: status, balances, positions, what waits. Cost: a look-up, and a copy.
    User(UserId),
    /// A user's orders, those that rest and stop orders that wait. Cost: in books that
    /// [keep owners](crate::Command::CancelAll), a visit to each order that is given; in others, to
    /// every order. No command is executed meanwhile.
    OpenOrders {
        /// The user.
        user: UserId,
        /// Orders at most; it is not specified which, if there are more. `usize::MAX` for all.
        most: usize,
    },
    /// The best levels of a symbol's book. Cost: one step per level.
    Book {
        /// Which.
        symbol: SymbolId,
        /// Levels a side at most; `usize::MAX` for all.
        depth: usize,
    },
    /// Where the money of each currency is. Cost: visits every user and every order; no command
    /// is executed meanwhile.
    Totals,
}

/// The exchange's answer to a [`Query`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum QueryReply {
    /// The user as it is.
    User(User),
    /// The user's orders; none are none.
    OpenOrders(OpenOrders),
    /// The levels.
    Book(BookReport),
    /// By ascending currency.
    Totals(Vec<CurrencyTotal>),
    /// There is no such user, or the user was suspended and has nothing.
    UnknownUser(UserId),
    /// There is no such symbol.
    UnknownSymbol(SymbolId),
}

impl QueryReply {
    /// Returns how many positions, orders, levels or currencies it lists.
    pub(crate) fn entries(&self) -> usize {
        match self {
            Self::User(user) => user.positions().len(),
            Self::OpenOrders(orders) => orders.resting.len() + orders.waiting.len(),
            Self::Book(book) => book.asks.len() + book.bids.len(),
            Self::Totals(totals) => totals.len(),
            Self::UnknownUser(_) | Self::UnknownSymbol(_) => 0,
        }
    }
}

/// An answer, and when it was true.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The number of the next command then: how many had been executed, where they count from 0
    /// (see [`ServiceOptions::first_sequence`](super::ServiceOptions::first_sequence)).
    pub sequence: u64,
    /// The answer as of then.
    pub answer: QueryReply,
}

/// A query in the pipeline, with its answer once the execute stage has given it.
#[derive(Debug)]
pub(super) struct PendingQuery {
    query: Query,
    answer: Option<QueryReply>,
    /// Where the answer goes.
    sender: OneshotSender<Answered>,
}

impl PendingQuery {
    pub(super) fn new(query: Query, sender: OneshotSender<Answered>) -> Box<Self> {
        Box::new(Self {
            query,
            answer: None,
            sender,
        })
    }

    /// Answers the query, unless the receiver of the answer was dropped.
    pub(super) fn answer(&mut self, state: &State) {
        if !self.sender.is_closed() {
            self.answer = Some(self.query.answer(state).0);
        }
    }

    /// Sends the answer. `sequence` is the number of the next command.
    pub(super) fn finish(self, sequence: u64) {
        if let Some(answer) = self.answer {
            // The receiver may have been dropped since.
            let _ = self.sender.send(Answered { sequence, answer });
        }
    }
}

impl Query {
    /// Answers the query. Returns the work too.
    pub(crate) fn answer(self, state: &State) -> (QueryReply, u64) {
        let answer = self.ask(state);
        let mut work = 1 + answer.entries() as u64;
        if matches!(self, Self::OpenOrders { .. }) {
            // It visits all of them.
            work += state.matching.count() as u64;
        }
        (answer, work)
    }

    fn ask(self, state: &State) -> QueryReply {
        match self {
            Self::User(uid) => {
                let user = state.risk.user(uid);
                user.map_or(QueryReply::UnknownUser(uid), |user| {
                    QueryReply::User(user.clone())
                })
            }
            Self::OpenOrders { user: uid, most } => {
                let orders = open_orders(&state.matching, uid, most);
                // A user that was forgotten may have orders of no worth.
                match state.risk.user(uid).is_none() && orders.is_empty() {
                    true => QueryReply::UnknownUser(uid),
                    false => QueryReply::OpenOrders(orders),
                }
            }
            Self::Book { symbol, depth } => {
                let book = book_report(state, symbol, depth);
                book.map_or(QueryReply::UnknownSymbol(symbol), QueryReply::Book)
            }
            Self::Totals => QueryReply::Totals(currency_totals(state)),
        }
    }
}
