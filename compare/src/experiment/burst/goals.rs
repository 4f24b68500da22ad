//! What a burst promises beside one peer with the same room, in every shape.

use super::{P99, WALL};

/// Whom the goals are about.
pub(super) const RIVAL: &str = "crossbeam";
/// Ours as it comes.
pub(super) const DEFAULT: &str = "thalweg";
/// Ours whose senders give way above a depth, in any shape.
pub(super) const LIMITED: &str = "thalweg soft limit";

/// One promise: so many times better than the rival.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Goal {
    pub(super) metric: usize,
    pub(super) ours: &'static str,
    pub(super) at_least: f64,
}

/// The goals of a case: of several senders, what users get by default; of one sender, that a limit
/// costs little.
pub(super) fn goals(senders: usize) -> Vec<Goal> {
    let goal = |metric, ours, at_least| Goal {
        metric,
        ours,
        at_least,
    };
    if senders > 1 {
        vec![goal(WALL, DEFAULT, 1.05), goal(P99, DEFAULT, 2.0)]
    } else {
        vec![goal(WALL, LIMITED, 0.95)]
    }
}
