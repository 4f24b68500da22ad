//! The durable exchange in this process, without sockets: what its journal costs beside a service
//! without one and beside bare loops of commits, how fast it is recovered, and how long a command
//! waits while snapshots are made.

mod closed;
mod flow;
mod open;
mod recovery;
mod standing;

use super::{Settings, Told, told};
use crate::report::Report;
use crate::target::Target;

/// The cases `in-process/…`, `recovery` and `snapshot/1m`.
pub(super) fn run(report: &mut Report, settings: &Settings, targets: &mut Vec<Target>) {
    open::run(report, settings);
    closed::run(report, settings, targets);
    recovery::run(report, settings, targets);
    standing::run(report, settings, targets);
}
