//! The outcomes of commands.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use thalweg_exchange::ResultCode;
use thalweg_exchange::session::{ClientSequence, Refusal};
use thiserror::Error;
use tokio::sync::oneshot;

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed, once, and that is durable.
    Executed {
        /// Its number in its session.
        sequence: ClientSequence,
        /// Its number in the exchange.
        number: u64,
        /// How it ended.
        result: ResultCode,
        /// Whether the answer came a second time: the first one was lost.
        is_repeated: bool,
    },
    /// The exchange did not take it.
    Refused {
        /// Its number in its session.
        sequence: ClientSequence,
        /// Why.
        why: Refusal,
    },
    /// It was sent, and the client was closed, or gave up, before an answer came; or it was sent
    /// again and refused for what holds now, such as the rate: it was executed once or not at all.
    Unknown {
        /// Its number in its session.
        sequence: ClientSequence,
    },
    /// It was never sent: the client was closed, or gave up.
    NotSent,
    /// It was never sent: its frame is longer than the exchange takes.
    TooLong {
        /// How long.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
}

impl Outcome {
    /// Returns the result code, if it was executed.
    #[must_use]
    pub const fn result(&self) -> Option<ResultCode> {
        match self {
            Self::Executed { result, .. } => Some(*result),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Executed { number, result, .. } => write!(f, "command {number}: {result}"),
            Self::Refused { why, .. } => write!(f, "refused: {why}"),
            Self::Unknown { .. } => f.write_str("unknown: no answer came"),
            Self::NotSent => f.write_str("not sent"),
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "not sent: {bytes} bytes, the exchange takes {bytes_max}")
            }
        }
    }
}

/// The client is closed, or gave up, and takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the client is closed")]
pub struct Closed;

/// A future of the outcome of a command. Dropping it throws the outcome away, not the command.
#[derive(Debug)]
#[must_use = "the outcome comes here"]
pub struct Ticket(pub(crate) oneshot::Receiver<Outcome>);

impl Future for Ticket {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        // The connection's task gives every command an outcome, unless its runtime was dropped.
        let outcome = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(outcome.unwrap_or(Outcome::NotSent))
    }
}

/// The receiver of a command's outcome.
pub(crate) enum Done {
    Ticket(oneshot::Sender<Outcome>),
    Call(Box<dyn FnOnce(Outcome) + Send>),
}

impl Done {
    /// Gives the outcome to its receiver. A callback may panic, and so may a waker: that goes no
    /// further, since others wait for theirs.
    pub(crate) fn complete(self, outcome: Outcome) {
        let result = catch_unwind(AssertUnwindSafe(|| match self {
            // The ticket may have been dropped.
            Self::Ticket(sender) => drop(sender.send(outcome)),
            Self::Call(call) => call(outcome),
        }));
        if let Err(panic) = result {
            // Dropped, it might panic again.
            std::mem::forget(panic);
        }
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Done")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_texts() {
        let sequence = ClientSequence(3);
        let executed = Outcome::Executed {
            sequence,
            number: 5,
            result: ResultCode::RiskNsf,
            is_repeated: false,
        };
        let why = Refusal::DiskFull;
        for (outcome, text) in [
            (executed, "command 5: RISK_NSF"),
            (
                Outcome::Refused { sequence, why },
                "refused: the journal's disk is full",
            ),
            (Outcome::Unknown { sequence }, "unknown: no answer came"),
            (Outcome::NotSent, "not sent"),
            (
                Outcome::TooLong {
                    bytes: 9,
                    bytes_max: 8,
                },
                "not sent: 9 bytes, the exchange takes 8",
            ),
        ] {
            assert_eq!(outcome.to_string(), text);
        }
        assert_eq!(executed.result(), Some(ResultCode::RiskNsf));
        assert_eq!(Outcome::NotSent.result(), None);
        assert_eq!(Closed.to_string(), "the client is closed");
    }
}
