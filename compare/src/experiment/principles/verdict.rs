//! What a principle claims, and whether the runs bear it out on one core and on two.

use std::fmt;

use thalweg_measure::statistics::{Interval, median_interval};

/// A claim: that a figure is not below its limit. Where the figure is a ratio, more than 1 means
/// that the first-named is better.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) what: String,
    pub(super) limit: f64,
    /// The figure on one core, and on two; `None` where it was not measured.
    pub(super) on: [Option<Interval>; 2],
}

/// What the runs say of a claim on one number of cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// The whole interval is at the limit or above it.
    Holds,
    /// The whole interval is below it.
    Fails,
    /// The limit is inside, or there are too few runs for an interval.
    Open,
}

/// What they say in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// On one core and on two.
    Holds,
    /// On this many, and not, or not known, on the other.
    HoldsOn(usize),
    /// On none that was measured.
    Fails,
    /// Not on this many, and not known on the other.
    FailsOn(usize),
    Open,
    NotRun,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::HoldsOn(1) => "holds on 1 core",
            Self::HoldsOn(_) => "holds on 2 cores",
            Self::Fails => "does not hold here",
            Self::FailsOn(1) => "does not hold on 1 core",
            Self::FailsOn(_) => "does not hold on 2 cores",
            Self::Open => "cannot tell",
            Self::NotRun => "not run",
        })
    }
}

/// What one interval says.
pub(super) fn finding(interval: Interval, limit: f64) -> Finding {
    match interval {
        Interval { low, .. } if low >= limit => Finding::Holds,
        Interval { high, .. } if high < limit => Finding::Fails,
        _ => Finding::Open,
    }
}

impl Claim {
    /// What is known on one core, and on two.
    pub(super) fn findings(&self) -> [Option<Finding>; 2] {
        self.on
            .map(|on| on.map(|interval| finding(interval, self.limit)))
    }

    pub(super) fn verdict(&self) -> Verdict {
        match self.findings() {
            [None, None] => Verdict::NotRun,
            [Some(Finding::Holds), Some(Finding::Holds)] => Verdict::Holds,
            [Some(Finding::Holds), _] => Verdict::HoldsOn(1),
            [_, Some(Finding::Holds)] => Verdict::HoldsOn(2),
            [Some(Finding::Fails), Some(Finding::Fails) | None] | [None, Some(Finding::Fails)] => {
                Verdict::Fails
            }
            [Some(Finding::Fails), _] => Verdict::FailsOn(1),
            [_, Some(Finding::Fails)] => Verdict::FailsOn(2),
            _ => Verdict::Open,
        }
    }
}

/// The interval of the larger of two ratios, repetition by repetition: below 1 only where the
/// subject is worse than the other in both. Each pair is (subject, other), lower is better.
pub(super) fn better_in_one(first: &[(f64, f64)], second: &[(f64, f64)]) -> Option<Interval> {
    let ratio = |&(subject, other): &(f64, f64)| other / subject;
    let pairs = first.iter().zip(second);
    let larger: Vec<f64> = pairs.map(|(a, b)| ratio(a).max(ratio(b))).collect();
    larger
        .iter()
        .all(|ratio| ratio.is_finite())
        .then(|| median_interval(&larger))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(low: f64, value: f64, high: f64) -> Option<Interval> {
        Some(Interval { low, value, high })
    }

    fn verdict(on: [Option<Interval>; 2]) -> String {
        let what = "claim".to_owned();
        let limit = 1.0;
        Claim { what, limit, on }.verdict().to_string()
    }

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        let (above, below, across) = (
            around(1.0, 1.5, 2.0),
            around(0.5, 0.6, 0.99),
            around(0.9, 1.5, 2.0),
        );
        let few = around(f64::NEG_INFINITY, 9.0, f64::INFINITY);
        for (on, expected) in [
            ([above, above], "holds"),
            ([above, below], "holds on 1 core"),
            ([above, across], "holds on 1 core"),
            ([above, None], "holds on 1 core"),
            ([below, above], "holds on 2 cores"),
            ([few, above], "holds on 2 cores"),
            ([below, below], "does not hold here"),
            ([below, None], "does not hold here"),
            ([None, below], "does not hold here"),
            ([below, across], "does not hold on 1 core"),
            ([across, below], "does not hold on 2 cores"),
            ([across, few], "cannot tell"),
            ([few, few], "cannot tell"),
            ([None, few], "cannot tell"),
            ([None, None], "not run"),
        ] {
            assert_eq!(verdict(on), expected, "{on:?}");
        }
    }

    #[test]
    fn better_in_one_takes_the_better_of_each_repetition() {
        // Alternately better in the first and in the second, and never in both.
        let first = [(1.0, 2.0), (4.0, 1.0)].repeat(4);
        let second = [(4.0, 1.0), (1.0, 2.0)].repeat(4);
        let interval = better_in_one(&first, &second).expect("eight pairs");
        assert_eq!(interval, around(2.0, 2.0, 2.0).expect("some"));
        let worse = [(2.0, 1.0); 8];
        let interval = better_in_one(&worse, &worse).expect("eight pairs");
        assert_eq!(interval.high, 0.5);
        assert_eq!(better_in_one(&[(0.0, 1.0)], &[(1.0, 1.0)]), None);
        assert_eq!(better_in_one(&[], &[]), None);
    }
}
