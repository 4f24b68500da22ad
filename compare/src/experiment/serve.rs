//! The served exchange over loopback: pipelined sessions, an open loop, and market data for many
//! readers; each beside the least that any server would do.
//!
//! What is measured is a process of its own, this program started again, so that its memory and its
//! processor time are known. The loader is one thread of this process, the same for all subjects.

mod bare;
mod bursts;
mod child;
mod echo;
mod greeting;
mod inprocess;
mod loader;
mod open;
mod readers;
mod sessions;
mod tcp;
mod venue;

use super::{Experiment, Settings, progress_note};
use crate::report::Report;

pub(crate) use child::main as child;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "serve",
    shows: "the served exchange over loopback: sessions, an open loop, readers of market data",
    run,
};

/// What went wrong, as it is shown.
type Told<T> = Result<T, String>;

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn run(settings: &Settings) -> Report {
    let mut report = Report::new(EXPERIMENT.name);
    let mut targets = Vec::new();
    tcp::run(&mut report, settings, &mut targets);
    open::run(&mut report, settings);
    readers::run(&mut report, settings, &mut targets);
    inprocess::run(&mut report, settings, &mut targets);
    report.targets(&targets, settings);
    report
}
