//! The reply to a command, and the wait for it.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg::channel::{OneshotReceiver, RecvTimeoutError};
use thalweg::pipeline::Failure;
use thalweg::wait::{Pace, WaitMode};
use thiserror::Error;

use super::Outcome;
use crate::event::{Event, Events};
use crate::execution::{Asked, ExecutionReport, ExecutionReports};
use crate::result_code::ResultCode;

/// Why a command was not accepted, or has no reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The queue of the service has no room now; the command was not accepted.
    #[error("the service is full: {limit} commands wait in its queue, its limit")]
    Full {
        /// Commands that it has room for: [`SharedOptions::queue`](super::SharedOptions::queue),
        /// or somewhat more.
        limit: usize,
    },
    /// The service has ended; the command was not executed.
    #[error("the service has ended")]
    Closed,
    /// The service has failed. A command that was accepted may have been executed, in part or as a
    /// whole.
    #[error("the service has failed: {0}")]
    Failed(Failure),
}

/// The result of a command, with its events.
#[derive(Debug)]
pub struct Reply {
    /// The command's number, from
    /// [`ServiceOptions::first_sequence`](super::ServiceOptions::first_sequence) in the order of
    /// execution.
    pub sequence: u64,
    /// Its result.
    pub result: ResultCode,
    asked: Asked,
    events: Events,
}

impl Reply {
    /// Copies an outcome. Allocates if it has events.
    pub(super) fn new(outcome: &Outcome<'_>) -> Self {
        Self {
            sequence: outcome.sequence,
            result: outcome.result,
            asked: Asked::of(outcome.command),
            events: outcome.events.copied(),
        }
    }

    /// Returns the events of the command, in order: the engine's own record. They name other users,
    /// and what those hold for their orders: pass [reports](Self::reports) on, not events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the execution reports for the user of the command; none if the command has no single
    /// user. [`Outcome::reports`] has those for the other users, too.
    pub fn reports(&self) -> impl Iterator<Item = ExecutionReport> + '_ {
        let reports = ExecutionReports::asked(self.sequence, self.asked, self.result, &self.events);
        reports.filter(|report| self.asked.user() == Some(report.owner))
    }
}

/// The failure of a service, once it has failed. It is set before the senders of replies are
/// dropped, so a receiver that finds its sender gone reads the reason.
pub(super) type FailureCell = Arc<OnceLock<Failure>>;

/// Returns why a service accepts and answers nothing any more.
pub(super) fn ended(failure: &FailureCell) -> ClientError {
    match failure.get() {
        Some(failure) => ClientError::Failed(failure.clone()),
        None => ClientError::Closed,
    }
}

/// The pending result of a request that was accepted: the [`Reply`] to a command, or the
/// [`Answered`](super::Answered) of a query.
///
/// It is a future, and needs no runtime but a `Waker`; or a thread waits for it. It does not borrow
/// the client, and may be sent to another thread or task. Dropping it discards the result, not the
/// command.
#[derive(Debug)]
#[must_use = "dropping it discards the result"]
pub struct Pending<T> {
    receiver: OneshotReceiver<T>,
    failure: FailureCell,
    mode: WaitMode,
}

impl<T> Pending<T> {
    pub(super) const fn new(
        receiver: OneshotReceiver<T>,
        failure: FailureCell,
        mode: WaitMode,
    ) -> Self {
        Self {
            receiver,
            failure,
            mode,
        }
    }

    /// Returns whether a wait would return at once: the result has come, or the service has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.receiver.is_closed()
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// [`ClientError::Closed`] or [`ClientError::Failed`].
    pub fn wait(self) -> Result<T, ClientError> {
        let mut pace = Pace::new(self.mode);
        self.wait_by(&mut pace)
    }

    /// Waits for the result as `pace` says.
    pub(super) fn wait_by(mut self, pace: &mut Pace) -> Result<T, ClientError> {
        let received = self.receiver.recv_with_pace(pace, None);
        received.map_err(|_| ended(&self.failure))
    }

    /// Waits for the result for at most `timeout`; returns `None` if it has not come by then. The
    /// result comes once: a wait after that returns an error.
    ///
    /// # Errors
    /// The errors of [`wait`](Self::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<T, ClientError>> {
        let deadline = Instant::now().checked_add(timeout);
        match self
            .receiver
            .recv_with_pace(&mut Pace::new(self.mode), deadline)
        {
            Ok(result) => Some(Ok(result)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(_) => Some(Err(ended(&self.failure))),
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, ClientError>;

    /// Polls for the result. The result comes once: a poll after that is ready with an error.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.receiver).poll(context);
        result.map(|result| result.map_err(|_| ended(&this.failure)))
    }
}
