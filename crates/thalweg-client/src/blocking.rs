//! A client for threads.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use thalweg_exchange::SymbolId;
use thalweg_exchange::codec::session::Welcome;
use thalweg_exchange::codec::session::{AdminCommand, QueryAnswer, SessionQuery, TradeCommand};
use tokio::sync::oneshot;

use crate::client::{Client, NoCommand, SessionCommand};
use crate::disconnect_reason::DisconnectReason;
use crate::event::{Event, Events};
use crate::options::Options;
use crate::outcome::{Closed, Done, Outcome};
use crate::protocol::Request;
use crate::store::{MemoryStore, SessionStore};
use crate::subscriptions::Subscriptions;

/// A blocking [`Client`] for threads: it runs the client's task on a thread of its
/// own.
///
/// Nothing here may be called from within a runtime: such a thread must not block, and it panics.
///
/// While the exchange is away the client tries to connect again, without end by default
/// ([`Options::attempts_max`]), and calls that wait for an answer wait as long. The forms with
/// `_timeout` wait no longer than the given time; the request goes on.
pub struct BlockingClient<C> {
    inner: Client<C>,
}

/// A client that trades for a user.
pub type BlockingTradeClient = BlockingClient<TradeCommand>;
/// A client that runs the market.
pub type BlockingAdminClient = BlockingClient<AdminCommand>;
/// A client that only reads: market data, reports and queries.
pub type BlockingReadClient = BlockingClient<NoCommand>;

/// Receives [`Event`]s, as [`Events`] does.
#[derive(Debug)]
pub struct BlockingEvents(Events);

impl BlockingEvents {
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

    /// Waits for the next event, and no longer than `time`; `None` also after [`Event::Closed`].
    pub fn next_timeout(&mut self, time: Duration) -> Option<Event> {
        within(time, self.0.next()).flatten()
    }

    /// Returns the next event, if one has arrived.
    pub fn try_next(&mut self) -> Option<Event> {
        self.0.try_next()
    }
}

/// A ticket of a command: it receives the outcome. Dropping it throws the outcome away, not the
/// command.
#[derive(Debug)]
#[must_use = "the outcome comes here"]
pub struct BlockingTicket(oneshot::Receiver<Outcome>);

impl BlockingTicket {
    /// Waits for the outcome of the command.
    ///
    /// # Panics
    /// On a thread of a runtime.
    #[must_use]
    pub fn wait(self) -> Outcome {
        self.0.blocking_recv().unwrap_or(Outcome::NotSent)
    }

    /// Waits as [`wait`](Self::wait) does, but no longer than `time`.
    ///
    /// # Errors
    /// The ticket, where there is no outcome by then: the command is still in flight.
    pub fn wait_timeout(mut self, time: Duration) -> Result<Outcome, Self> {
        match within(time, &mut self.0) {
            Some(outcome) => Ok(outcome.unwrap_or(Outcome::NotSent)),
            None => Err(self),
        }
    }
}

impl<C: SessionCommand> BlockingClient<C> {
    /// Connects as [`Client::connect`] does.
    ///
    /// # Errors
    /// The errors of that function; [`DisconnectReason::Broken`] if no thread could be started.
    pub fn connect(options: Options) -> Result<(Self, BlockingEvents), DisconnectReason> {
        Self::connect_with(options, MemoryStore::default())
    }

    /// Connects as [`Client::connect_with`] does.
    ///
    /// # Errors
    /// The errors of that function; [`DisconnectReason::Broken`] if no thread could be started.
    pub fn connect_with(
        options: Options,
        store: impl SessionStore + 'static,
    ) -> Result<(Self, BlockingEvents), DisconnectReason> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime
            .enable_all()
            .build()
            .map_err(DisconnectReason::Broken)?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let store: Box<dyn SessionStore> = Box::new(store);
        let work = move || {
            runtime.block_on(async move {
                match Client::prepare(options, store).await {
                    Ok((client, events, run)) => {
                        // If the caller panicked, the client is dropped.
                        drop(sender.send(Ok((client, events))));
                        run.await;
                    }
                    Err(reason) => drop(sender.send(Err(reason))),
                }
            });
        };
        let thread = std::thread::Builder::new().name("thalweg-client".to_owned());
        // It ends with the client, once the last event was read or its receiver is gone.
        drop(thread.spawn(work).map_err(DisconnectReason::Broken)?);
        let (inner, events) = receiver.recv().unwrap_or(Err(DisconnectReason::Done))?;
        Ok((Self { inner }, BlockingEvents(events)))
    }

    /// Returns the exchange's welcome of the first connection.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
        self.inner.welcome()
    }

    /// Submits a command as [`Client::submit`] does.
    ///
    /// # Errors
    /// [`Closed`]; the command was not sent.
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn submit(&self, command: impl Into<C>) -> Result<BlockingTicket, Closed> {
        let (done, ticket) = oneshot::channel();
        let command = command.into().into_command();
        self.request(Request::Submit(command, Done::Ticket(done)))?;
        Ok(BlockingTicket(ticket))
    }

    /// Submits as [`submit`](Self::submit) does, but waits no longer than `time` for one of the
    /// commands before to be answered; `None` where that takes longer, and the command was not
    /// sent.
    ///
    /// # Errors
    /// [`Closed`]; the command was not sent.
    pub fn submit_timeout(
        &self,
        command: impl Into<C>,
        time: Duration,
    ) -> Result<Option<BlockingTicket>, Closed> {
        let sent = within(time, self.inner.submit(command)).transpose()?;
        Ok(sent.map(|ticket| BlockingTicket(ticket.0)))
    }

    /// Submits a command as [`Client::submit_with`] does.
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

    /// Asks as [`Client::query`] does.
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

    /// Queries as [`query`](Self::query) does, but waits no longer than `time`; `None` where there
    /// is no answer by then.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn query_timeout(
        &self,
        query: SessionQuery,
        time: Duration,
    ) -> Result<Option<QueryAnswer>, Closed> {
        within(time, self.inner.query(query)).transpose()
    }

    /// Subscribes as [`Client::subscribe`] does: to 4,096 symbols at most.
    ///
    /// # Errors
    /// [`Closed`].
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn subscribe(&self, symbols: impl IntoIterator<Item = SymbolId>) -> Result<(), Closed> {
        self.request(Request::Subscribe(Subscriptions::some(symbols)))
    }

    /// Subscribes as [`Client::subscribe_all`] does.
    ///
    /// # Errors
    /// [`Closed`].
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn subscribe_all(&self) -> Result<(), Closed> {
        self.request(Request::Subscribe(Subscriptions::ALL))
    }

    /// Unsubscribes as [`Client::unsubscribe`] does.
    ///
    /// # Errors
    /// [`Closed`].
    ///
    /// # Panics
    /// On a thread of a runtime.
    pub fn unsubscribe(&self, symbols: impl IntoIterator<Item = SymbolId>) -> Result<(), Closed> {
        self.request(Request::Unsubscribe(Subscriptions::some(symbols)))
    }

    /// Closes as [`Client::close`] does: while the exchange is away it waits
    /// for it. Drop the client to go at once.
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

impl<C: SessionCommand> fmt::Debug for BlockingClient<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns a future's output, if it is ready in time.
fn within<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    let began = Instant::now();
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let left = time.saturating_sub(began.elapsed());
        if left.is_zero() {
            return None;
        }
        std::thread::park_timeout(left);
    }
}
