//! A goal says which limit a figure of a case should keep.

/// The limit of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// The figure should not be above it.
    AtMost(f64),
    /// The figure should not be below it.
    AtLeast(f64),
    /// The figure is shown without a verdict.
    Shown,
}

/// A figure of a case with its limit.
#[derive(Debug, Clone)]
pub enum Goal {
    /// The median of a subject.
    Figure(String, usize, Limit),
    /// The ratio of two subjects; above 1 the first is better.
    Ratio([String; 2], usize, Limit),
    /// The ratio of the best of ours and the best peer.
    Best(usize, Limit),
}

impl Goal {
    /// Expects a subject's median to be at most this.
    pub fn at_most(subject: &str, metric: usize, limit: f64) -> Self {
        Self::Figure(subject.to_owned(), metric, Limit::AtMost(limit))
    }

    pub(crate) fn at_least(subject: &str, metric: usize, limit: f64) -> Self {
        Self::Figure(subject.to_owned(), metric, Limit::AtLeast(limit))
    }

    /// Expects the first to be better than the second by this factor.
    pub fn ratio(sides: [&str; 2], metric: usize, at_least: f64) -> Self {
        let limit = Limit::AtLeast(at_least);
        Self::Ratio(sides.map(str::to_owned), metric, limit)
    }

    /// Shows the ratio of two subjects.
    pub fn shown(sides: [&str; 2], metric: usize) -> Self {
        Self::Ratio(sides.map(str::to_owned), metric, Limit::Shown)
    }
}
