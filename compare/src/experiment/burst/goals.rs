//! What a burst promises beside one peer with the same room, in every shape.

use super::super::channels::scoreboard::best_of;
use super::{P99, WALL};
use crate::runner::{Series, Trial};

/// Whom the goals are about.
pub(super) const RIVAL: &str = "crossbeam";
/// Ours that do nothing about the length of the queue. Not the bare ring, which has no waiting
/// calls as the rival has them.
pub(super) const PLAIN: [&str; 2] = ["thalweg", "thalweg ordered"];
/// Ours whose senders give way above a depth.
pub(super) const LIMITED: &str = "thalweg soft limit";

/// One promise: so many times better than the rival.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Goal {
    pub(super) metric: usize,
    pub(super) ours: String,
    pub(super) at_least: f64,
}

/// The goals of a case. Whoever of the plain ones takes the least time is held against the rival
/// in both, time and p99: nobody has two channels at once.
pub(super) fn goals(trial: &Trial) -> Vec<Goal> {
    let plain = best_of(trial, |name| PLAIN.contains(&name), &[WALL]);
    let plain = plain.map_or(PLAIN[0], |series: &Series| &series.subject);
    let goal = |metric, ours: &str, at_least| Goal {
        metric,
        ours: ours.to_owned(),
        at_least,
    };
    vec![
        goal(WALL, plain, 1.1),
        goal(P99, plain, 1.0),
        goal(P99, LIMITED, 4.0),
        // Within 5 % of the rival's.
        goal(WALL, LIMITED, 1.0 / 1.05),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::METRICS;
    use super::*;

    /// Wall time and p99 of each.
    fn trial(figures: &[(&str, [f64; 2])]) -> Trial {
        let runs = figures.iter().map(|&(subject, [wall, p99])| {
            let mut values = [1.0; METRICS.len()];
            (values[WALL], values[P99]) = (wall, p99);
            (subject, values)
        });
        let runs: Vec<_> = runs.collect();
        let runs: Vec<(&str, &[f64])> = runs
            .iter()
            .map(|(subject, values)| (*subject, &values[..]))
            .collect();
        Trial::scripted("1x1", METRICS, &runs)
    }

    #[test]
    fn the_fastest_plain_one_is_held_to_both_and_a_soft_limit_does_not_stand_in() {
        let mut trial = trial(&[
            ("thalweg", [6.0, 9.0]),
            ("thalweg ordered", [5.0, 20.0]),
            (LIMITED, [1.0, 1.0]),
            ("thalweg ring lanes (try, yield)", [1.0, 1.0]),
            (RIVAL, [10.0, 10.0]),
        ]);
        let of = |trial: &Trial| {
            let goals = goals(trial).into_iter();
            let goals: Vec<(usize, String)> = goals.map(|goal| (goal.metric, goal.ours)).collect();
            goals
        };
        let both = |plain: &str| {
            let goal = |metric, ours: &str| (metric, ours.to_owned());
            [
                goal(WALL, plain),
                goal(P99, plain),
                goal(P99, LIMITED),
                goal(WALL, LIMITED),
            ]
        };
        assert_eq!(of(&trial), both("thalweg ordered"));
        trial.series[1].runs[0].lost = 1;
        assert_eq!(
            of(&trial),
            both("thalweg"),
            "who loses orders does not count"
        );
        trial.series.clear();
        assert_eq!(of(&trial), both("thalweg"));
    }
}
