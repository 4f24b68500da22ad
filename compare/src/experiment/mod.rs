//! The experiments: each is a table of cases.

mod attribution;
mod bus;
mod channels;
mod exchange;
mod hash;
mod journal;
mod pipeline;
pub(crate) mod serve;
mod tasks;

use crate::case::{Case, Settings};
use crate::report::Report;

/// Something to compare.
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    /// One line: what it shows.
    pub(crate) shows: &'static str,
    /// The crates of others that it runs.
    peers: &'static [&'static str],
    /// What a reader has to know of the figures.
    notes: &'static str,
    pub(crate) cases: fn(&Settings) -> Vec<Case>,
}

/// All experiments, in the order of `--list`.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    pipeline::EXPERIMENT,
    attribution::EXPERIMENT,
    channels::CHANNELS,
    channels::BURST,
    exchange::EXPERIMENT,
    hash::EXPERIMENT,
    journal::EXPERIMENT,
    serve::EXPERIMENT,
    serve::FAIRNESS,
    tasks::EXPERIMENT,
    bus::EXPERIMENT,
];

const LOCK: &str = include_str!("../../../Cargo.lock");

/// Returns the version of a crate that this program is built with.
fn version(name: &str) -> &'static str {
    let named = format!("name = \"{name}\"\nversion = \"");
    let behind = LOCK.split_once(&named).map_or("", |(_, behind)| behind);
    behind.split('"').next().unwrap_or_default()
}

impl Experiment {
    /// Runs the wanted cases; `None` if there are none.
    pub(crate) fn run(&self, settings: &Settings) -> Option<Report> {
        let mut report = Report::new(self.name);
        let versions = self
            .peers
            .iter()
            .map(|&peer| format!("{peer} {}", version(peer)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_has_a_path_of_its_own_and_every_peer_a_version() {
        let settings = Settings::default();
        for experiment in EXPERIMENTS {
            let mut paths = BTreeSet::new();
            for case in (experiment.cases)(&settings) {
                for subject in &case.subjects {
                    let path = format!("{}/{subject}", case.name);
                    assert!(paths.insert(path.clone()), "{path} twice");
                }
            }
            assert!(!paths.is_empty(), "{}", experiment.name);
            for peer in experiment.peers {
                let version = version(peer);
                assert!(version.contains('.'), "{peer} {version:?}");
            }
        }
        assert_eq!(version("no-such-crate"), "");
    }
}
