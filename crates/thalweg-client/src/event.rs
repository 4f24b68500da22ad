//! The events of a client: everything that is no answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_exchange::codec::session::{Conflated, NumberedReport, ReportGap, Welcome};
use thalweg_exchange::market::{Message, Snapshot};
use tokio::sync::{Notify, mpsc};

use crate::disconnect_reason::DisconnectReason;

/// An event, in the order in which it came.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A connection was made; again, if one was lost before.
    Connected(Box<Welcome>),
    /// The connection was lost. The client connects again by itself, and sends again what has no
    /// answer.
    Disconnected(DisconnectReason),
    /// There is no connection, and will be none. The last event.
    Closed(DisconnectReason),
    /// An execution report on an order of the user: each once and in order.
    Report(NumberedReport),
    /// Reports that never will come: ask for the open orders.
    ReportGap(ReportGap),
    /// Market data.
    Market(Message),
    /// The book of a symbol, from which the next messages go on.
    Snapshot(Box<Snapshot>),
    /// Market messages that were left out, since this client reads too slowly; snapshots follow.
    Conflated(Conflated),
}

/// Receives [`Event`]s, up to [`events_max`](crate::Options::events_max) of which wait here. While
/// that many wait, nothing is read from the connection; so read them, or drop this, and they are
/// thrown away.
#[derive(Debug)]
pub struct Events {
    receiver: mpsc::Receiver<Event>,
    seen: Arc<Seen>,
    given: u64,
}

impl Events {
    pub(crate) fn new(receiver: mpsc::Receiver<Event>, seen: Arc<Seen>) -> Self {
        Self {
            receiver,
            seen,
            given: 0,
        }
    }

    /// Waits for the next event; `None` after [`Event::Closed`]. Safe to cancel.
    ///
    /// A report counts as seen when the next event is asked for: a program that is killed while it
    /// works on one gets it again, if it has a store that survives.
    pub async fn next(&mut self) -> Option<Event> {
        self.note();
        let event = self.receiver.recv().await;
        self.gave(event)
    }

    /// Returns the next event, if one has arrived.
    pub fn try_next(&mut self) -> Option<Event> {
        self.note();
        let event = self.receiver.try_recv().ok();
        self.gave(event)
    }

    /// As [`next`](Self::next), on a thread outside of a runtime.
    pub(crate) fn blocking_next(&mut self) -> Option<Event> {
        self.note();
        let event = self.receiver.blocking_recv();
        self.gave(event)
    }

    fn note(&self) {
        self.seen.set(self.given);
    }

    fn gave(&mut self, event: Option<Event>) -> Option<Event> {
        if let Some(number) = event.as_ref().and_then(Event::report_number) {
            self.given = number;
        }
        event
    }
}

impl Event {
    /// Returns the number of the report, or of the last report of the gap.
    pub(crate) const fn report_number(&self) -> Option<u64> {
        match self {
            Self::Report(report) => Some(report.number.0),
            Self::ReportGap(gap) => Some(gap.to.0),
            _ => None,
        }
    }
}

/// The last report that the user of a client has seen; 0 for none.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    number: AtomicU64,
    changed: Notify,
}

impl Seen {
    fn set(&self, number: u64) {
        // ORDERING: Relaxed, nothing but the number itself is read in get().
        if self.number.swap(number, Ordering::Relaxed) != number {
            self.changed.notify_one();
        }
    }

    /// Waits until the number is at least this. Only one task may wait.
    pub(crate) async fn reach(&self, number: u64) {
        while self.get() < number {
            self.changed.notified().await;
        }
    }

    pub(crate) fn get(&self) -> u64 {
        // ORDERING: Relaxed, see set().
        self.number.load(Ordering::Relaxed)
    }
}
