//! A client of a shared service: sends commands and queries, and gets their results.

use std::sync::Arc;

use thalweg::channel::{OneshotSender, TrySendError, mpsc, oneshot};
use thalweg::wait::{Pace, WaitMode};

use super::query::{Answered, Query};
use super::reply::{ClientError, FailureCell, Pending, Reply, ended};
use crate::command::Command;

/// A request to the driver, with the sender of its result.
#[derive(Debug)]
pub(super) enum Request {
    Command(Command, OneshotSender<Reply>),
    Query(Query, OneshotSender<Answered>),
    /// The service ends, and accepts nothing behind this.
    Close,
}

/// A sender of commands to a [`SharedService`](super::SharedService). A clone is another client of
/// the same service, for another thread or task.
///
/// The commands of one client are executed in the order of submission, and those of all clients in
/// the order in which they were accepted: a command that is submitted after the reply to another
/// came, on whatever thread, is executed after that.
///
/// A command costs an allocation for its reply, and another one if the reply has events.
#[derive(Debug)]
pub struct Client {
    sender: mpsc::Sender<Request>,
    failure: FailureCell,
    mode: WaitMode,
    /// How calls wait, which learns from one to the next.
    pace: Pace,
}

impl Client {
    pub(super) fn new(sender: mpsc::Sender<Request>, failure: FailureCell, mode: WaitMode) -> Self {
        Self {
            sender,
            failure,
            mode,
            pace: Pace::new(mode),
        }
    }

    /// Submits a command; waits while the service is full.
    ///
    /// # Errors
    /// [`ClientError::Closed`] or [`ClientError::Failed`].
    pub fn submit(&mut self, command: &Command) -> Result<Pending<Reply>, ClientError> {
        let (sender, reply) = self.result();
        self.send(Request::Command(command.clone(), sender))?;
        Ok(reply)
    }

    /// Submits a command if the service has room now.
    ///
    /// # Errors
    /// [`ClientError::Full`], and those of [`submit`](Self::submit).
    pub fn try_submit(&mut self, command: &Command) -> Result<Pending<Reply>, ClientError> {
        let (sender, reply) = self.result();
        let request = Request::Command(command.clone(), sender);
        match self.sender.try_send(request) {
            Ok(()) => Ok(reply),
            Err(TrySendError::Full(_)) => Err(ClientError::Full {
                limit: self.sender.capacity(),
            }),
            Err(_) => Err(ended(&self.failure)),
        }
    }

    /// Submits commands in order, and appends the pending reply of each to `replies`; waits while
    /// the service is full. Commands of other clients may be executed in between.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit). The commands whose replies were appended were
    /// accepted, the others were not.
    pub fn submit_batch(
        &mut self,
        commands: &[Command],
        replies: &mut Vec<Pending<Reply>>,
    ) -> Result<(), ClientError> {
        for command in commands {
            replies.push(self.submit(command)?);
        }
        Ok(())
    }

    /// Submits a command and waits for its reply.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit).
    pub fn call(&mut self, command: &Command) -> Result<Reply, ClientError> {
        let reply = self.submit(command)?;
        reply.wait_by(&mut self.pace)
    }

    /// Submits a command as [`submit`](Self::submit) does, as a future, which needs no runtime but
    /// a `Waker`. Its output is a future of the reply. Dropped before it is done, it has submitted
    /// nothing.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit).
    pub fn submit_async(
        &mut self,
        command: &Command,
    ) -> impl Future<Output = Result<Pending<Reply>, ClientError>> + Send + use<'_> {
        let command = command.clone();
        async move {
            let (sender, reply) = self.result();
            self.send_async(Request::Command(command, sender)).await?;
            Ok(reply)
        }
    }

    /// Sends a query and waits for the answer, which comes after the replies to all commands that
    /// were accepted before. [`Query`] says what each costs.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit).
    pub fn query(&mut self, query: Query) -> Result<Answered, ClientError> {
        let answer = self.submit_query(query)?;
        answer.wait_by(&mut self.pace)
    }

    /// Sends a query; waits while the service is full.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit).
    pub fn submit_query(&mut self, query: Query) -> Result<Pending<Answered>, ClientError> {
        let (sender, answer) = self.result();
        self.send(Request::Query(query, sender))?;
        Ok(answer)
    }

    /// Sends a query and waits for the answer, as a future. Dropped before it is done, it changes
    /// nothing.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit).
    #[expect(clippy::manual_async_fn, reason = "says that the future is Send")]
    pub fn query_async(
        &mut self,
        query: Query,
    ) -> impl Future<Output = Result<Answered, ClientError>> + Send + use<'_> {
        async move {
            let (sender, answer) = self.result();
            self.send_async(Request::Query(query, sender)).await?;
            answer.await
        }
    }

    /// Ends the service. Does nothing if it has ended.
    pub(super) fn close(&mut self) {
        let _ = self.send(Request::Close);
    }

    /// Makes the channel for the result of a request.
    fn result<T: Send>(&self) -> (OneshotSender<T>, Pending<T>) {
        let (sender, receiver) = oneshot();
        let failure = Arc::clone(&self.failure);
        (sender, Pending::new(receiver, failure, self.mode))
    }

    fn send(&mut self, request: Request) -> Result<(), ClientError> {
        let sent = self.sender.send(request);
        sent.map_err(|_| ended(&self.failure))
    }

    async fn send_async(&mut self, request: Request) -> Result<(), ClientError> {
        let sent = self.sender.send_async(request).await;
        sent.map_err(|_| ended(&self.failure))
    }
}

impl Clone for Client {
    fn clone(&self) -> Self {
        Self::new(self.sender.clone(), Arc::clone(&self.failure), self.mode)
    }
}
