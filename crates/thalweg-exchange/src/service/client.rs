//! One of several producers of a shared service, with the answers to its own commands.

use std::sync::Arc;
use std::{error, fmt};

use thalweg::channel::{TrySendError, mpsc};
use thalweg::pipeline::Failure;
use thalweg::wait::Pace;

use super::inbox::{Inbox, Seat};
use super::office::{Office, tag};
use super::query::{Answered, Inquiry, Query, QueryTicket};
use super::ticket::{Reply, Ticket};
use crate::command::Command;
use crate::execution::Asked;

/// Why a command was not accepted, or has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// The queue of the service has no room now; the command was not accepted.
    Full {
        /// Commands that it has room for: [`SharedOptions::queue`](super::SharedOptions::queue),
        /// or somewhat more.
        limit: usize,
    },
    /// The client has as many commands under way, or replies not dropped, as it may; the command
    /// was not accepted.
    TooManyInFlight {
        /// [`SharedOptions::in_flight`](super::SharedOptions::in_flight).
        limit: usize,
    },
    /// The service has ended; the command was not executed.
    Closed,
    /// The service has failed. A command that was accepted may have been executed, in part or as a
    /// whole.
    Failed(Failure),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { limit } => write!(
                f,
                "the service is full: {limit} commands wait in its queue, its limit"
            ),
            Self::TooManyInFlight { limit } => write!(
                f,
                "{limit} commands or replies of this client are in flight, its limit"
            ),
            Self::Closed => write!(f, "the service has ended"),
            Self::Failed(failure) => write!(f, "the service has failed: {failure}"),
        }
    }
}

impl error::Error for ClientError {}

/// What is on its way to the driver, with the [tag] of where its answer belongs.
#[derive(Debug)]
pub(super) enum Request {
    Command(Command, u64),
    Query(Arc<Inquiry>, u64),
    /// No more after this.
    Close,
}

/// A producer of commands for a [`SharedService`](super::SharedService). Clones are clients of
/// their own, for other threads; each has its own limit of commands in flight.
///
/// The commands of one client are executed in the order of submission, and those of all clients in
/// the order in which they were accepted: a command that is submitted after another's reply came,
/// on whatever thread, comes after it.
///
/// Nothing is allocated for a command once every place has had its longest list of events, unless a
/// [`Reply`]'s events are kept.
#[derive(Debug)]
pub struct Client {
    sender: mpsc::Sender<Request>,
    inbox: Arc<Inbox>,
    office: Arc<Office>,
    pace: Pace,
}

impl Client {
    pub(super) fn new(sender: mpsc::Sender<Request>, office: Arc<Office>) -> Self {
        Self {
            sender,
            inbox: office.open(),
            pace: Pace::new(office.mode()),
            office,
        }
    }

    /// The client's number, which the publish closure sees as [`Outcome::tag`](super::Outcome). The
    /// numbers of clients that are gone are used again.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inbox.number()
    }

    /// How many commands may be in flight: [`SharedOptions::in_flight`](super::SharedOptions).
    #[must_use]
    pub fn in_flight_max(&self) -> usize {
        self.inbox.places()
    }

    fn reserve(&self, command: &Command) -> Result<(Seat, Request), ClientError> {
        let seat = self.inbox.take()?;
        let tag = tag(self.inbox.number(), seat.place());
        Ok((seat, Request::Command(command.clone(), tag)))
    }

    /// Gives the seat back to whom it belongs, if the request is on its way.
    fn send(&mut self, (seat, request): (Seat, Request)) -> Result<Seat, ClientError> {
        match self.sender.send(request) {
            Ok(()) => Ok(seat),
            Err(_) => Err(self.not_sent(seat)),
        }
    }

    /// The same, as a future.
    async fn send_async(&mut self, (seat, request): (Seat, Request)) -> Result<Seat, ClientError> {
        let mut unsent = Unsent(Some(seat));
        let sent = self.sender.send_async(request).await;
        let seat = unsent.0.take().expect("taken here only");
        match sent {
            Ok(()) => Ok(seat),
            Err(_) => Err(self.not_sent(seat)),
        }
    }

    /// Submits a command; waits while the service is full. The ticket gets the answer.
    ///
    /// # Errors
    /// [`ClientError::TooManyInFlight`], or the end of the service.
    pub fn submit(&mut self, command: &Command) -> Result<Ticket, ClientError> {
        let reserved = self.reserve(command)?;
        let seat = self.send(reserved)?;
        Ok(self.ticket(seat, command))
    }

    /// Submits a command if the service has room now.
    ///
    /// # Errors
    /// [`ClientError::Full`], and those of [`submit`](Self::submit).
    pub fn try_submit(&mut self, command: &Command) -> Result<Ticket, ClientError> {
        let (seat, request) = self.reserve(command)?;
        match self.sender.try_send(request) {
            Ok(()) => Ok(self.ticket(seat, command)),
            Err(TrySendError::Full(_)) => {
                seat.cancel();
                let limit = self.sender.capacity();
                Err(ClientError::Full { limit })
            }
            Err(_) => Err(self.not_sent(seat)),
        }
    }

    /// Submits commands together, in order, and adds a ticket for each to `tickets`; waits while
    /// the service is full. Other clients' commands may come in between.
    ///
    /// # Errors
    /// [`ClientError::TooManyInFlight`], or the end of the service: `tickets` has those for the
    /// commands before. Where the service ends meanwhile, some of the tickets may say so too.
    pub fn submit_batch(
        &mut self,
        commands: &[Command],
        tickets: &mut Vec<Ticket>,
    ) -> Result<(), ClientError> {
        let mut refused = None;
        let (inbox, mode) = (&self.inbox, self.office.mode());
        let requests = commands.iter().map_while(|command| match inbox.take() {
            Ok(seat) => {
                let tag = tag(inbox.number(), seat.place());
                tickets.push(Ticket::new(seat, mode, Asked::of(command)));
                Some(Request::Command(command.clone(), tag))
            }
            Err(error) => {
                refused = Some(error);
                None
            }
        });
        // What asks again after the end must not get a command behind the refused one.
        let requests = requests.fuse();
        // Places whose command is not sent any more are answered by the end of the service.
        let sent = self.sender.send_many(requests);
        match (refused, sent) {
            (Some(error), _) => Err(error),
            (None, Ok(_)) => Ok(()),
            (None, Err(_)) => Err(self.office.ended()),
        }
    }

    /// Submits a command and waits for its reply.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit) and [`Ticket::wait`].
    pub fn call(&mut self, command: &Command) -> Result<Reply, ClientError> {
        let ticket = self.submit(command)?;
        ticket.wait_by(&mut self.pace)
    }

    /// As [`call`](Self::call), as a future, which needs nothing of a runtime but its `Waker`.
    ///
    /// Cancel-safe: dropped before it found room, it has submitted nothing; dropped later, the
    /// command is executed all the same, once, and its answer is thrown away. To know which, await
    /// [`submit_async`](Self::submit_async) and then its ticket.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub fn call_async(
        &mut self,
        command: &Command,
    ) -> impl Future<Output = Result<Reply, ClientError>> + Send + use<'_> {
        let submitted = self.submit_async(command);
        async move { submitted.await?.await }
    }

    /// As [`submit`](Self::submit), as a future. Dropped before it is done, it has submitted
    /// nothing.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit).
    pub fn submit_async(
        &mut self,
        command: &Command,
    ) -> impl Future<Output = Result<Ticket, ClientError>> + Send + use<'_> {
        // Not reserved before the first poll, or a future that is never polled would hold a place.
        let command = command.clone();
        async move {
            let reserved = self.reserve(&command)?;
            let seat = self.send_async(reserved).await?;
            Ok(self.ticket(seat, &command))
        }
    }

    /// Asks something and waits for the answer, which comes after those of all commands that were
    /// accepted before. Takes a place in flight like a command; allocates. See [`Query`] for what
    /// each costs.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit) and [`Ticket::wait`].
    pub fn query(&mut self, query: Query) -> Result<Answered, ClientError> {
        self.submit_query(query)?.wait()
    }

    /// Asks something; waits while the service is full. The ticket gets the answer, and is a future
    /// of it.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit).
    pub fn submit_query(&mut self, query: Query) -> Result<QueryTicket, ClientError> {
        let (inquiry, reserved) = self.reserve_query(query)?;
        let seat = self.send(reserved)?;
        Ok(self.query_ticket(seat, inquiry))
    }

    /// As [`query`](Self::query), as a future. Dropped before it is done, it changes nothing.
    ///
    /// # Errors
    /// Those of [`query`](Self::query).
    #[expect(clippy::manual_async_fn, reason = "says that the future is Send")]
    pub fn query_async(
        &mut self,
        query: Query,
    ) -> impl Future<Output = Result<Answered, ClientError>> + Send + use<'_> {
        async move {
            let (inquiry, reserved) = self.reserve_query(query)?;
            let seat = self.send_async(reserved).await?;
            self.query_ticket(seat, inquiry).await
        }
    }

    fn reserve_query(&self, query: Query) -> Result<(Arc<Inquiry>, (Seat, Request)), ClientError> {
        let seat = self.inbox.take()?;
        let tag = tag(self.inbox.number(), seat.place());
        let inquiry = Inquiry::new(query);
        let request = Request::Query(Arc::clone(&inquiry), tag);
        Ok((inquiry, (seat, request)))
    }

    fn query_ticket(&self, seat: Seat, inquiry: Arc<Inquiry>) -> QueryTicket {
        let ticket = self.ticket(seat, &Command::Nop);
        QueryTicket { ticket, inquiry }
    }

    fn ticket(&self, seat: Seat, command: &Command) -> Ticket {
        Ticket::new(seat, self.office.mode(), Asked::of(command))
    }

    /// Nobody receives any more: says why.
    fn not_sent(&self, seat: Seat) -> ClientError {
        seat.cancel();
        self.office.ended()
    }
}

impl Clone for Client {
    /// Another client, for another thread. Allocates, unless a client that is gone left its places.
    fn clone(&self) -> Self {
        Self::new(self.sender.clone(), Arc::clone(&self.office))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.office.leave(self.inbox.number());
    }
}

/// A place whose command is not sent yet: a send that is given up frees it at once.
struct Unsent(Option<Seat>);

impl Drop for Unsent {
    fn drop(&mut self) {
        if let Some(seat) = self.0.take() {
            seat.cancel();
        }
    }
}
