//! Each experiment is a table of cases.

pub mod bus;
pub mod channels;
pub mod exchange;
pub(crate) mod gateway;
pub mod hash;
pub(crate) mod journal;
pub(crate) mod pipeline;
pub(crate) mod replicate;
pub mod serve;
pub mod tasks;

use crate::case::{Case, Settings};
use crate::report::Report;

/// An experiment compares subjects in several cases.
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    /// The list of experiments has this line.
    pub(crate) shows: &'static str,
    /// The experiment runs these crates of others.
    peers: &'static [&'static str],
    /// These notes stand below the tables.
    notes: &'static str,
    pub(crate) cases: fn(&Settings) -> Vec<Case>,
}

/// These are all experiments, in the order of `--list`.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    pipeline::EXPERIMENT,
    channels::CHANNELS,
    exchange::EXPERIMENT,
    gateway::EXPERIMENT,
    hash::EXPERIMENT,
    journal::EXPERIMENT,
    serve::EXPERIMENT,
    serve::FAIRNESS,
    replicate::EXPERIMENT,
    tasks::EXPERIMENT,
    bus::EXPERIMENT,
];

const LOCK: &str = include_str!("../../../Cargo.lock");

/// Returns the version of a crate that this program is built with.
fn version(name: &str) -> Option<&'static str> {
    let named = format!("name = \"{name}\"\nversion = \"");
    LOCK.split_once(&named)?.1.split('"').next()
}

impl Experiment {
    /// Runs the wanted cases. Returns `None` if there are none.
    pub(crate) fn run(&self, settings: &Settings) -> Option<Report> {
        let mut report = Report::new(self.name);
        let versions = self.peers.iter().map(|&peer| {
            let version = version(peer).expect("the lock file names every peer");
            format!("{peer} {version}")
        });
        let versions: Vec<String> = versions.collect();
        if !versions.is_empty() {
            report.say(format!("Peers: {}", versions.join(", ")));
        }
        let cases = (self.cases)(settings).into_iter();
        let ran = cases.filter_map(|case| case.run(settings, &mut report).then_some(()));
        if ran.count() == 0 {
            return None;
        }
        if !self.notes.is_empty() {
            report.say(self.notes);
        }
        report.finish(settings.decides());
        Some(report)
    }
}
