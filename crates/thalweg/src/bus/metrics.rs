//! What a bus does now, as figures.

use super::balance::{Reading, Report};
use super::express::ExpressLane;
use super::ledger::{Flow, Service, Totals};
use super::level::Level;
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
    /// What became of all messages so far.
    pub totals: Totals,
    /// How many decisions there were so far.
    pub decisions: u64,
}

/// The figures of one inbox.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InboxFigures {
    /// The inbox.
    pub inbox: InboxId,
    /// The topics that it takes.
    pub topics: Topics,
    /// How full it is.
    pub level: Level,
    /// Its counters, and how many messages wait.
    pub reading: Reading,
    /// Rates, verdict, and when it will be full.
    pub report: Report,
    /// What became of its messages, by priority.
    pub flow: Flow,
    /// What its consumers have done, by priority.
    pub service: Service,
    /// The largest batch that one of its consumers takes at present.
    pub batch: u64,
    /// Its express lane, if it has one.
    pub express: Option<ExpressLane>,
    /// The gap in ns that each publisher keeps at three quarters of its limit, if they are slowed.
    pub gap_ns: Option<u64>,
}
