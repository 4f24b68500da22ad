//! The figures of a bus at one moment.

use super::balance::Reading;
use super::express::ExpressLane;
use super::ledger::{Flow, Service, Totals};
use super::{InboxId, Topics};
use crate::state::Lifecycle;

/// The figures of a bus at one moment; see [`Bus::snapshot`](super::Bus::snapshot).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The state of the bus.
    pub state: Lifecycle,
    /// Each inbox that is open.
    pub inboxes: Vec<InboxFigures>,
    /// The counts of all messages so far.
    pub totals: Totals,
}

/// The figures of one inbox.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InboxFigures {
    /// The inbox.
    pub inbox: InboxId,
    /// The topics that it takes.
    pub topics: Topics,
    /// Its counters, for a [`Balance`](super::Balance), and the number of messages that wait.
    pub reading: Reading,
    /// The numbers of its messages by outcome and priority.
    pub flow: Flow,
    /// The counts of its consumers, by priority.
    pub service: Service,
    /// Its express lane, if it has one.
    pub express: Option<ExpressLane>,
}
