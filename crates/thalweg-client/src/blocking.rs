//! The same client for threads: it runs its task on a thread of its own.
//!
//! Nothing here may be called from within a runtime: such a thread must not block, and it panics.

use std::fmt;
use std::sync::mpsc;

use thalweg_exchange::SymbolId;
use thalweg_exchange::codec::session::Welcome;
use thalweg_exchange::codec::session::{AdminCommand, QueryAnswer, SessionQuery, TradeCommand};
use tokio::sync::oneshot;

use crate::client::SessionCommand;
use crate::dialogue::Request;
use crate::event::Event;
use crate::lost::Lost;
use crate::options::Options;
use crate::outcome::{Closed, Done, Outcome};
use crate::store::{MemoryStore, SessionStore};
use crate::wanted::Wanted;

/// As [`Client`](crate::Client), for threads.
pub struct Client<C> {
    inner: crate::Client<C>,
}

/// A client that trades for a user.
pub type TradeClient = Client<TradeCommand>;
/// A client that runs the market.
pub type AdminClient = Client<AdminCommand>;
/// A client that looks on.
pub type ReadClient = Client<crate::NoCommand>;

/// Receives [`Event`]s, as [`Events`](crate::Events) does.
#[derive(Debug)]
pub struct Events(crate::Events);

impl Events {
    /// Waits for the next event; `None` after [`Event::Closed`].
    ///
    /// # Panics
    /// On a thread of a runtime.
    #[expect(
        clippy::should_implement_trait,
        reason = "the async form has this name, too"
    )]
    pub fn next(&mut self) -> Option<Event> {
        self.0.blocking_next()
    }

    /// The next event, if it is here.
    pub fn try_next(&mut self) -> Option<Event> {
        self.0.try_next()
    }
}

/// What becomes of a command comes here. Dropping it throws that away, not the command.
#[derive(Debug)]
#[must_use = "the outcome comes here"]
pub struct Ticket(oneshot::Receiver<Outcome>);

impl Ticket {
    /// Waits for what becomes of the command.
    ///
    /// # Panics
    /// On a thread of a runtime.
    #[must_use]
    pub fn wait(self) -> Outcome {
        self.0.blocking_recv().unwrap_or(Outcome::NotSent)
    }
}

impl<C: SessionCommand> Client<C> {
    /// As [`Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    /// The same; [`Lost::Broken`] if no thread could be started.
    pub fn connect(options: Options) -> Result<(Self, Events), Lost> {
        Self::connect_with(options, MemoryStore::default())
    }

    /// As [`Client::connect_with`](crate::Client::connect_with).
    ///
    /// # Errors
    /// The same; [`Lost::Broken`] if no thread could be started.
    pub fn connect_with(
        options: Options,
        store: impl SessionStore + 'static,
    ) -> Result<(Self, Events), Lost> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().map_err(Lost::Broken)?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let store: Box<dyn SessionStore> = Box::new(store);
        let work = move || {
            runtime.block_on(async move {
                match crate::Client::prepare(options, store).await {
                    Ok((client, events, run)) => {
                        // Nobody waits any more if that thread panicked: the client is let go.
                        drop(sender.send(Ok((client, events))));
                        run.await;
                    }
                    Err(lost) => drop(sender.send(Err(lost))),
                }
            });
        };
        let thread = std::thread::Builder::new().name("thalweg-client".to_owned());
        // It ends with the client, once the last event was read or its receiver is gone.
        drop(thread.spawn(work).map_err(Lost::Broken)?);
        let (inner, events) = receiver.recv().unwrap_or(Err(Lost::Done))?;
        Ok((Self { inner }, Events(events)))
    }

    /// What the exchange said when it was first connected to.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
        self.inner.welcome()
    }

    /// As [`Client::submit`](crate::Client::submit).
    ///
    /// # Errors
    /// [`Closed`]; the command was not sent.
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn submit(&self, command: impl Into<C>) -> Result<Ticket, Closed> {
        let (done, ticket) = oneshot::channel();
        let command = command.into().into_command();
        self.request(Request::Submit(command, Done::Ticket(done)))?;
        Ok(Ticket(ticket))
    }

    /// As [`Client::submit_with`](crate::Client::submit_with).
    ///
    /// # Errors
    /// [`Closed`]; the command was not sent, and `done` is not called.
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn submit_with(
        &self,
        command: impl Into<C>,
        done: impl FnOnce(Outcome) + Send + 'static,
    ) -> Result<(), Closed> {
        let command = command.into().into_command();
        self.request(Request::Submit(command, Done::Call(Box::new(done))))
    }

    /// As [`Client::query`](crate::Client::query).
    ///
    /// # Errors
    /// [`Closed`].
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn query(&self, query: SessionQuery) -> Result<QueryAnswer, Closed> {
        let (sender, answer) = oneshot::channel();
        self.request(Request::Query(query, sender))?;
        answer.blocking_recv().map_err(|_| Closed)
    }

    /// As [`Client::subscribe`](crate::Client::subscribe).
    ///
    /// # Errors
    /// [`Closed`].
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn subscribe(&self, symbols: impl IntoIterator<Item = SymbolId>) -> Result<(), Closed> {
        self.request(Request::Subscribe(Wanted::some(symbols)))
    }

    /// As [`Client::subscribe_all`](crate::Client::subscribe_all).
    ///
    /// # Errors
    /// [`Closed`].
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn subscribe_all(&self) -> Result<(), Closed> {
        self.request(Request::Subscribe(Wanted::ALL))
    }

    /// As [`Client::unsubscribe`](crate::Client::unsubscribe).
    ///
    /// # Errors
    /// [`Closed`].
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn unsubscribe(&self, symbols: impl IntoIterator<Item = SymbolId>) -> Result<(), Closed> {
        self.request(Request::Unsubscribe(Wanted::some(symbols)))
    }

    /// As [`Client::close`](crate::Client::close).
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn close(self) {
        let (sender, closed) = oneshot::channel();
        if self.request(Request::Close(sender)).is_ok() {
            // Nothing is ever sent: it is dropped at the end.
            drop(closed.blocking_recv());
        }
    }

    fn request(&self, request: Request) -> Result<(), Closed> {
        self.inner.blocking_request(request)
    }
}

impl<C: SessionCommand> fmt::Debug for Client<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
