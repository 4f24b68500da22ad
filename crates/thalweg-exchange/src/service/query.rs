//! Questions to a running exchange, answered between two commands.
//!
//! A query goes through the pipeline in a command's place: the risk stage answers for users and
//! money when all before it is settled, the match stage for the books when it comes there. Neither
//! has begun with a later command by then, so an answer is the state after the command before it,
//! whatever the placement. A query changes nothing, has no number of its own, and is not seen by
//! `publish` or the digest: those count commands, so a log without queries does the same.
//!
//! With shards, the front stage waits until everything is settled, and answers from all of them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::client::ClientError;
use super::ticket::Ticket;
use crate::ids::{SymbolId, UserId};
use crate::matching::Matching;
use crate::report::{BookReport, CurrencyTotal, OpenOrders, Totals, book_of, open_orders};
use crate::risk::{Risk, User};

/// What can be asked of a running exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// A user: status, balances, positions, what waits. Cost: a look-up, and a copy.
    User(UserId),
    /// A user's orders, those that rest and stop orders that wait. Cost: in books that
    /// [keep owners](crate::Command::CancelAll), a visit to each order that is given; in others, to
    /// every order. The match stage does nothing else meanwhile.
    OpenOrders {
        /// Whose.
        user: UserId,
        /// No more than so many, whichever those are where there are more; `usize::MAX` for all.
        most: usize,
    },
    /// The best levels of a symbol's book. Cost: one step per level.
    Book {
        /// Which.
        symbol: SymbolId,
        /// Levels a side at most; `usize::MAX` for all.
        depth: usize,
    },
    /// Where the money of each currency is. Cost: visits every user and every order; the risk and
    /// the match stage do nothing else meanwhile.
    Totals,
}

/// What the exchange says to a [`Query`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The user as it is.
    User(User),
    /// The user's orders; none are none.
    OpenOrders(OpenOrders),
    /// The levels.
    Book(BookReport),
    /// By ascending currency.
    Totals(Vec<CurrencyTotal>),
    /// There is no such user, or one who was suspended and has nothing.
    UnknownUser(UserId),
    /// There is no such symbol.
    UnknownSymbol(SymbolId),
}

/// An answer, and when it was true.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The number of the next command then: how many had been executed, where they count from 0
    /// (see [`Options::first_sequence`](super::Options::first_sequence)).
    pub sequence: u64,
    /// What was the case.
    pub answer: Answer,
}

/// A query on its way, and what is known of its answer.
#[derive(Debug)]
pub(crate) struct Inquiry {
    query: Query,
    part: Mutex<Part>,
}

#[derive(Debug, Default)]
struct Part {
    user: Option<User>,
    totals: Totals,
    orders: OpenOrders,
    book: Option<BookReport>,
    sequence: u64,
}

impl Inquiry {
    pub(crate) fn new(query: Query) -> Arc<Self> {
        let part = Mutex::default();
        Arc::new(Self { query, part })
    }

    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of the risk stage, or of one of its shards.
    pub(super) fn ask_risk(&self, risk: &Risk) {
        let mut part = self.part();
        match self.query {
            Query::User(uid) | Query::OpenOrders { user: uid, .. } => {
                if let Some(user) = risk.user(uid) {
                    part.user = Some(user.clone());
                }
            }
            Query::Totals => part.totals.add_risk(risk),
            Query::Book { .. } => {}
        }
    }

    /// The part of the match stage, or of one of its shards.
    pub(super) fn ask_books(&self, books: &Matching) {
        let mut part = self.part();
        match self.query {
            Query::OpenOrders { user, most } => {
                part.orders.append(open_orders(books, user, most));
                part.orders.truncate(most);
            }
            Query::Totals => part.totals.add_books(books),
            Query::Book { symbol, depth } => {
                if let Some(book) = books.book(symbol) {
                    part.book = Some(book_of(book, depth));
                }
            }
            Query::User(_) => {}
        }
    }

    /// The publish stage tells when it was.
    pub(super) fn set_sequence(&self, sequence: u64) {
        self.part().sequence = sequence;
    }

    /// The answer, once the publish stage had it.
    pub(crate) fn answered(&self) -> Answered {
        let Part {
            user,
            totals,
            orders,
            book,
            sequence,
        } = std::mem::take(&mut *self.part());
        let answer = match self.query {
            Query::User(uid) => user.map_or(Answer::UnknownUser(uid), Answer::User),
            // One who is forgotten may have orders of no worth.
            Query::OpenOrders { user: uid, .. } if user.is_none() && orders.is_empty() => {
                Answer::UnknownUser(uid)
            }
            Query::OpenOrders { .. } => Answer::OpenOrders(orders),
            Query::Book { symbol, .. } => book.map_or(Answer::UnknownSymbol(symbol), Answer::Book),
            Query::Totals => Answer::Totals(totals.into_list()),
        };
        Answered { sequence, answer }
    }
}

/// A query that was accepted: its answer comes here. Also a future of it. Dropping it throws the
/// answer away.
#[derive(Debug)]
#[must_use = "the answer comes here"]
pub struct QueryTicket {
    pub(super) ticket: Ticket,
    pub(super) inquiry: Arc<Inquiry>,
}

impl QueryTicket {
    /// Whether the answer is here, so that waiting takes no time.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.ticket.is_done()
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// [`ClientError::Closed`] or [`ClientError::Failed`].
    pub fn wait(self) -> Result<Answered, ClientError> {
        let Self { ticket, inquiry } = self;
        ticket.wait().map(|_| inquiry.answered())
    }
}

impl Future for QueryTicket {
    type Output = Result<Answered, ClientError>;

    /// # Panics
    /// If polled again after it gave the answer.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let done = Pin::new(&mut this.ticket).poll(context);
        done.map(|done| done.map(|_| this.inquiry.answered()))
    }
}
