//! The answer to one command: waited for, then read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg::wait::{Entry, Mode, Pace, block};

use super::client::ClientError;
use super::inbox::Seat;
use crate::event::{Event, Events};
use crate::execution::{Asked, ExecutionReport, ExecutionReports};
use crate::result_code::ResultCode;

/// A command that was accepted: it will be executed, and its answer comes here. Dropping the ticket
/// throws the answer away, not the command.
///
/// A future of the reply, too. It needs nothing of the client any more, and may be waited for on
/// another thread.
#[derive(Debug)]
#[must_use = "the answer comes here"]
pub struct Ticket {
    /// `None` when the answer was taken.
    seat: Option<Seat>,
    /// Where a task is listed.
    entry: Option<Entry>,
    mode: Mode,
    asked: Asked,
}

impl Ticket {
    pub(super) const fn new(seat: Seat, mode: Mode, asked: Asked) -> Self {
        Self {
            seat: Some(seat),
            entry: None,
            mode,
            asked,
        }
    }

    /// Whether the answer is here, so that waiting takes no time.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.seat.as_ref().is_none_or(Seat::is_answered)
    }

    /// Waits for the reply.
    ///
    /// # Errors
    /// [`ClientError::Closed`] or [`ClientError::Failed`].
    pub fn wait(self) -> Result<Reply, ClientError> {
        let mut pace = Pace::new(self.mode);
        self.wait_by(&mut pace)
    }

    /// Waits for the reply for a time; gives the ticket back if it is over first.
    ///
    /// # Errors
    /// The ticket, to wait again.
    pub fn wait_timeout(mut self, timeout: Duration) -> Result<Result<Reply, ClientError>, Self> {
        let deadline = Instant::now().checked_add(timeout);
        let mut pace = Pace::new(self.mode);
        if self.is_answered_by(&mut pace, deadline) {
            Ok(self.finish())
        } else {
            Err(self)
        }
    }

    pub(super) fn wait_by(mut self, pace: &mut Pace) -> Result<Reply, ClientError> {
        self.is_answered_by(pace, None);
        self.finish()
    }

    fn is_answered_by(&mut self, pace: &mut Pace, deadline: Option<Instant>) -> bool {
        // A task that polled before came first, and would take the one notification there is.
        self.unlist();
        let Some(seat) = &self.seat else { return true };
        let look = || seat.is_answered().then_some(());
        block(seat.signal(), pace, deadline, look).is_ok()
    }

    /// Takes the answer that is here.
    fn finish(mut self) -> Result<Reply, ClientError> {
        self.take()
    }

    fn take(&mut self) -> Result<Reply, ClientError> {
        let mut seat = self
            .seat
            .take()
            .expect("a ticket is not polled after its reply");
        let (sequence, result, events) = seat.collect()?;
        Ok(Reply {
            sequence,
            result,
            asked: self.asked,
            events,
            seat,
        })
    }

    /// Takes a task off the list.
    fn unlist(&mut self) {
        if let (Some(seat), Some(entry)) = (&self.seat, self.entry.take())
            && !seat.signal().unregister(entry)
        {
            // Notified and not used: nobody else waits, but the rule of signals is kept.
            seat.signal().notify_one();
        }
    }
}

impl Future for Ticket {
    type Output = Result<Reply, ClientError>;

    /// # Panics
    /// If polled again after it gave the reply.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let seat = this
            .seat
            .as_ref()
            .expect("a ticket is not polled after its reply");
        let signal = seat.signal();
        let is_listed = this
            .entry
            .is_some_and(|entry| signal.update(entry, context.waker()));
        if !is_listed && !seat.is_answered() {
            this.entry = Some(signal.register(context.waker()));
        }
        if !seat.is_answered() {
            return Poll::Pending;
        }
        this.unlist();
        Poll::Ready(this.take())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.unlist();
    }
}

/// What came of a command. Holds its place among the client's [commands in
/// flight](super::SharedOptions::in_flight) until it is dropped.
#[derive(Debug)]
pub struct Reply {
    /// The command's number, from [`Options::first_sequence`](super::Options::first_sequence) in
    /// the order of execution.
    pub sequence: u64,
    /// Its result.
    pub result: ResultCode,
    asked: Asked,
    events: Events,
    seat: Seat,
}

impl Reply {
    /// Its events, in order: the engine's own record. They name other users, and what those hold
    /// for their orders: pass [reports](Self::reports) on, not events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What the user of the command is told of it; nothing where the command is of no one user.
    /// Others learn from [`Outcome::reports`](super::Outcome::reports) what it did to their orders.
    pub fn reports(&self) -> impl Iterator<Item = ExecutionReport> + '_ {
        let reports = ExecutionReports::asked(self.sequence, self.asked, self.result, &self.events);
        reports.filter(|report| self.asked.user() == Some(report.owner))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.seat.give_back(std::mem::take(&mut self.events));
    }
}
