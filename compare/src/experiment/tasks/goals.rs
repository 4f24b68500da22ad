//! What tasks promise: in ns, beside peers, and in instructions.

use super::{bursts, ours, peers};
use crate::target::{Limit, Target};

/// One coroutine, ns of a message.
pub(super) const ONE: [(&str, f64); 5] = [
    (ours::LOCAL, 8.0),
    (ours::LOCAL_DESTRUCTOR, 8.5),
    (ours::LOCAL_BY_CALL, 12.0),
    (ours::SWITCH, 4.0),
    (ours::FIBER, 7.0),
];

/// Many in the order in which they were made.
pub(super) const MANY: [(&str, f64); 1] = [(ours::LOCAL, 9.5)];

pub(super) const ENDS: [(&str, f64); 1] = [(ours::CREATE, 20.0)];

pub(super) const TIMERS: [(&str, f64); 1] = [(ours::TIMER, 15.0)];

/// Peers that are polled by hand, so many times slower.
pub(super) const PEERS: [(&str, f64); 3] = [
    (peers::TOKIO_ONESHOT, 4.0),
    (peers::THE_CRATE, 3.0),
    (peers::FUTURES_UNBOUNDED, 2.0),
];

pub(super) const BURST: [([&str; 2], f64); 2] = [
    ([bursts::OURS, bursts::TOKIO_EACH], 5.0),
    ([bursts::OURS, bursts::TOKIO_HANDED_ON], 5.0),
];

/// What `cargo dev counts` holds the same operations to.
const BASELINE: &str = include_str!("../../../../counts/baseline.toml");

/// Instructions of a message, as counted.
const INSTRUCTIONS: [(&str, f64); 2] = [
    ("task/slot/local/8B/now", 120.0),
    ("task/slot/local/destructor/now", 130.0),
];

fn counted(name: &str) -> Option<f64> {
    let line = |line: &str| -> Option<f64> {
        let (key, value) = line.split_once(" = ")?;
        (key.trim_matches('"') == name).then(|| value.parse().ok())?
    };
    BASELINE.lines().find_map(line)
}

pub(super) fn instructions() -> impl Iterator<Item = Target> {
    INSTRUCTIONS.into_iter().map(|(name, limit)| {
        let what = format!("instructions of {name}, counts/baseline.toml");
        Target::new(what, Limit::AtMost(limit), counted(name), |count| {
            format!("{count:.0}")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_the_goals_are_in_the_baseline() {
        assert!(instructions().all(|target| target.measured.is_some_and(|count| count > 0.0)));
        assert_eq!(counted("task/slot"), None);
    }
}
