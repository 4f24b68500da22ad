//! The client of a session, for tasks.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use thalweg_exchange::codec::session::{
    AdminCommand, QueryAnswer, SessionQuery, TradeCommand, Welcome,
};
use thalweg_exchange::session::Role;
use thalweg_exchange::{Command, SymbolId};
use tokio::sync::{mpsc, oneshot};

use crate::connection::Connection;
use crate::disconnect_reason::DisconnectReason;
use crate::event::{Events, Seen};
use crate::options::Options;
use crate::outcome::{Closed, Done, Outcome, Ticket};
use crate::protocol::{Protocol, Request};
use crate::store::{MemoryStore, SessionStore};
use crate::subscriptions::Subscriptions;

/// Requests that wait for the connection's task at most, beside the commands in flight.
const REQUESTS_MAX: usize = 256;

/// A type of commands, which determines the role of a session.
pub trait SessionCommand: sealed::Sealed + Send + 'static {
    /// The role of the session.
    const ROLE: Role;

    /// Returns the command, as the exchange takes it.
    fn into_command(self) -> Command;
}

mod sealed {
    /// Seals [`SessionCommand`](super::SessionCommand): other crates cannot implement it.
    pub trait Sealed {}
    impl Sealed for super::TradeCommand {}
    impl Sealed for super::AdminCommand {}
    impl Sealed for super::NoCommand {}
}

impl SessionCommand for TradeCommand {
    const ROLE: Role = Role::Trade;

    fn into_command(self) -> Command {
        Self::into_command(self)
    }
}

impl SessionCommand for AdminCommand {
    const ROLE: Role = Role::Admin;

    fn into_command(self) -> Command {
        Self::into_command(self)
    }
}

/// The command type of a session that only reads: it has no values.
#[derive(Clone, Copy, Debug)]
pub enum NoCommand {}

impl SessionCommand for NoCommand {
    const ROLE: Role = Role::Read;

    fn into_command(self) -> Command {
        match self {}
    }
}

/// A session with an exchange. It connects again by itself when the connection is lost, sends what
/// has no answer again, and asks for the reports that it missed; each command is executed once.
///
/// Clones share the session. When the last one is dropped the session is let go at once:
/// commands without an answer are [`Unknown`](Outcome::Unknown). [`close`](Self::close) waits for
/// their answers.
///
/// *Cost.* Each client has a task. A command allocates its frame and its ticket.
pub struct Client<C> {
    requests: mpsc::Sender<Request>,
    /// Keeps the task running while a handle of the client is there.
    alive: mpsc::Sender<Infallible>,
    welcome: Welcome,
    commands: PhantomData<fn(C)>,
}

/// A client that trades for a user.
pub type TradeClient = Client<TradeCommand>;
/// A client that runs the market.
pub type AdminClient = Client<AdminCommand>;
/// A client that only reads: market data, reports and queries.
pub type ReadClient = Client<NoCommand>;

impl<C: SessionCommand> Client<C> {
    /// Connects, and remembers the session as long as the client lives.
    ///
    /// # Errors
    /// A [`DisconnectReason`]: the first attempt must succeed, or one within
    /// [`connect_within`](Options::connect_within) where only the exchange is missing.
    pub async fn connect(options: Options) -> Result<(Self, Events), DisconnectReason> {
        Self::connect_with(options, MemoryStore::default()).await
    }

    /// Connects, and remembers the session in `store`. Its calls are made by the client's task, so
    /// a slow one delays answers.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`DisconnectReason::Store`], and
    /// [`DisconnectReason::OtherExchange`] if the store is of another one.
    pub async fn connect_with(
        options: Options,
        store: impl SessionStore + 'static,
    ) -> Result<(Self, Events), DisconnectReason> {
        let (client, events, run) = Self::prepare(options, Box::new(store)).await?;
        drop(tokio::spawn(run));
        Ok((client, events))
    }

    /// Returns a client, and what must run for it to work.
    pub(crate) async fn prepare(
        options: Options,
        store: Box<dyn SessionStore>,
    ) -> Result<(Self, Events, impl Future<Output = ()> + Send + 'static), DisconnectReason> {
        let options = options.checked()?;
        let (event_sender, event_receiver) = mpsc::channel(options.events_max);
        let (requests, request_receiver) = mpsc::channel(REQUESTS_MAX);
        let (alive, handles_dropped) = mpsc::channel(1);
        let seen = Arc::new(Seen::default());
        let protocol = Protocol::new(C::ROLE, options, store, Arc::clone(&seen))?;
        let opened =
            Connection::open(protocol, request_receiver, event_sender, handles_dropped).await;
        let (connection, stream, welcome) = opened?;
        let client = Self {
            requests,
            alive,
            welcome,
            commands: PhantomData,
        };
        Ok((
            client,
            Events::new(event_receiver, seen),
            connection.run(stream),
        ))
    }

    /// Returns the exchange's welcome of the first connection.
    #[must_use]
    pub const fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Sends a command, without waiting for its outcome, which the ticket receives. Waits while
    /// [as many as may be](Options::in_flight_max) are without an answer. Safe to cancel: the
    /// command is sent whole or not at all.
    ///
    /// # Errors
    /// [`Closed`]; the command was not sent.
    pub async fn submit(&self, command: impl Into<C>) -> Result<Ticket, Closed> {
        let (done, ticket) = oneshot::channel();
        let request = Request::Submit(command.into().into_command(), Done::Ticket(done));
        self.request(request).await?;
        Ok(Ticket(ticket))
    }

    /// Submits as [`submit`](Self::submit) does, but the client's task calls `done` with the
    /// outcome of the command; it must not block.
    ///
    /// # Errors
    /// [`Closed`]; the command was not sent, and `done` is not called.
    pub async fn submit_with(
        &self,
        command: impl Into<C>,
        done: impl FnOnce(Outcome) + Send + 'static,
    ) -> Result<(), Closed> {
        let done = Done::Call(Box::new(done));
        self.request(Request::Submit(command.into().into_command(), done))
            .await
    }

    /// Asks, and waits for the answer. A question that a lost connection left without an answer is
    /// asked again.
    ///
    /// # Errors
    /// [`Closed`].
    pub async fn query(&self, query: SessionQuery) -> Result<QueryAnswer, Closed> {
        let (sender, answer) = oneshot::channel();
        self.request(Request::Query(query, sender)).await?;
        answer.await.map_err(|_| Closed)
    }

    /// Asks for the market data of these symbols, beside what is asked for already: a
    /// [`Snapshot`](crate::Event::Snapshot) of each, and then messages; the same again when a
    /// connection was lost.
    ///
    /// All subscriptions of a connection together may name 4,096 symbols
    /// ([`SYMBOLS_MAX`](thalweg_exchange::codec::session::SYMBOLS_MAX)), and those of all
    /// connections of a user 65,536: the server ends a connection that names one more.
    /// [`subscribe_all`](Self::subscribe_all) names none.
    ///
    /// # Errors
    /// [`Closed`].
    pub async fn subscribe(
        &self,
        symbols: impl IntoIterator<Item = SymbolId>,
    ) -> Result<(), Closed> {
        self.request(Request::Subscribe(Subscriptions::some(symbols)))
            .await
    }

    /// Asks for the market data of all symbols, those to come included.
    ///
    /// # Errors
    /// [`Closed`].
    pub async fn subscribe_all(&self) -> Result<(), Closed> {
        self.request(Request::Subscribe(Subscriptions::ALL)).await
    }

    /// Ends the market data of these symbols. Messages on their way still come.
    ///
    /// # Errors
    /// [`Closed`].
    pub async fn unsubscribe(
        &self,
        symbols: impl IntoIterator<Item = SymbolId>,
    ) -> Result<(), Closed> {
        self.request(Request::Unsubscribe(Subscriptions::some(symbols)))
            .await
    }

    /// Ends all market data.
    ///
    /// # Errors
    /// [`Closed`].
    pub async fn unsubscribe_all(&self) -> Result<(), Closed> {
        self.request(Request::Unsubscribe(Subscriptions::ALL)).await
    }

    /// Takes no more commands, waits until all have an answer, says goodbye. While there is no
    /// connection this waits for one, or until the client gives up. Reports of the last commands
    /// may still be on their way then: a program that needs them reads them first.
    pub async fn close(self) {
        let (sender, closed) = oneshot::channel();
        if self.request(Request::Close(sender)).await.is_ok() {
            // Nothing is ever sent: it is dropped at the end.
            drop(closed.await);
        }
    }

    async fn request(&self, request: Request) -> Result<(), Closed> {
        self.requests.send(request).await.map_err(|_| Closed)
    }

    pub(crate) fn blocking_request(&self, request: Request) -> Result<(), Closed> {
        self.requests.blocking_send(request).map_err(|_| Closed)
    }
}

impl<C> Clone for Client<C> {
    fn clone(&self) -> Self {
        Self {
            requests: self.requests.clone(),
            alive: self.alive.clone(),
            welcome: self.welcome,
            commands: PhantomData,
        }
    }
}

impl<C: SessionCommand> fmt::Debug for Client<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Client");
        shown
            .field("role", &C::ROLE)
            .field("holder", &self.welcome.holder);
        shown.finish_non_exhaustive()
    }
}
