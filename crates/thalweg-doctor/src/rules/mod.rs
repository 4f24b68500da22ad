//! The rules that turn figures into verdicts, as data.
//!
//! Each [`Rule`] defines which parts of the program's time it would explain, which figures it
//! needs, which ones support and contradict it, which questions it leaves open, and what to do
//! next. Every threshold names its origin. The rules are in the files below; the engine that weighs
//! them has no knowledge of individual rules.

mod engine;
mod table;
#[cfg(test)]
mod tests;
pub mod verdict;

use crate::evidence::breakdown::Part;
use crate::evidence::{Evidence, Topic};
use crate::rules::verdict::{Id, Verdict};

/// A figure, or one figure divided by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// A figure of the table.
    One(&'static str),
    /// The first figure divided by the second.
    Ratio(&'static str, &'static str),
}

impl Quantity {
    /// Returns the name of the figure, or of the dividend.
    #[must_use]
    pub fn name(self) -> &'static str {
        let (Quantity::One(name) | Quantity::Ratio(name, _)) = self;
        name
    }

    /// Returns the value, if all of it was measured.
    #[must_use]
    pub fn value(self, evidence: &Evidence) -> Option<f64> {
        match self {
            Quantity::One(name) => evidence.value(name),
            Quantity::Ratio(over, under) => {
                let (over, under) = (evidence.value(over)?, evidence.value(under)?);
                // Below a millionth the divisor counts as a millionth.
                Some(over / under.max(1e-6))
            }
        }
    }
}

/// A condition on a figure. It does not hold at all at `from`, holds fully at `to`, and in part
/// between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clue {
    /// The figure that is compared.
    pub figure: Quantity,
    /// The value at which the condition does not hold.
    pub from: f64,
    /// The value from which on it holds: the threshold. It is below `from` if smaller values are
    /// evidence.
    pub to: f64,
    /// The origin of the threshold: a measurement, the literature, or the meaning of the terms.
    pub origin: &'static str,
}

impl Clue {
    /// Returns the degree to which it holds, from 0 to 1; `None` if the figure is absent.
    #[must_use]
    pub fn holds(&self, evidence: &Evidence) -> Option<f64> {
        let value = self.figure.value(evidence)?;
        Some(((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0))
    }

    /// Returns the threshold as text, such as `> 0.2`.
    #[must_use]
    pub fn threshold(&self) -> String {
        let sign = if self.to > self.from { '>' } else { '<' };
        match self.figure {
            Quantity::One(_) => format!("{sign} {}", self.to),
            Quantity::Ratio(_, under) => format!("{sign} {} × {under}", self.to),
        }
    }
}

/// The part of the time that a rule would explain.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Claim {
    /// The sum of these parts, each weighted by how far its clues hold.
    Parts(&'static [(Part, &'static [Clue])]),
    /// The largest of these products of figures, each of which is at most 1, and of these parts.
    Largest(&'static [&'static [&'static str]], &'static [Part]),
}

/// The confidence that follows from a claimed share of the time, before other evidence is
/// considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Curve {
    /// For time that a program could avoid: a quarter of its time justifies an answer.
    Overhead,
    /// For the remaining time that nothing else explains: three quarters of it justify an answer.
    Residue,
    /// For disturbance by others: a tenth of the time spoils a measurement.
    Disturbance,
}

/// Shares, and the confidence at each; it is linear between them.
///
/// A quarter is used because without it the program would be faster by a third (Amdahl's law: 1/(1
/// − 0.25)). The curves of overhead and of residue meet there: for a program that works for 76 % of
/// its time and faults for 24 %, the work is the first answer, and at 26 % the faults are.
impl Curve {
    fn points(self) -> &'static [(f64, f64)] {
        match self {
            Curve::Overhead => &[(0.05, 0.0), (0.25, 0.55), (0.6, 0.85), (1.0, 0.95)],
            Curve::Residue => &[(0.4, 0.0), (0.75, 0.55), (0.95, 0.85), (1.0, 0.95)],
            Curve::Disturbance => &[(0.03, 0.0), (0.1, 0.5), (0.3, 0.85), (1.0, 0.95)],
        }
    }

    /// Returns the share from which on the answer is more likely than not.
    #[must_use]
    pub fn threshold(self) -> f64 {
        self.points()[1].0
    }

    /// Returns the confidence at a share of the time.
    #[must_use]
    pub fn at(self, share: f64) -> f64 {
        let points = self.points();
        let Some(above) = points.iter().position(|&(x, _)| share < x) else {
            return points[points.len() - 1].1;
        };
        if above == 0 {
            return 0.0;
        }
        let ((x0, y0), (x1, y1)) = (points[above - 1], points[above]);
        y0 + (y1 - y0) * (share - x0) / (x1 - x0)
    }
}

/// Clues that count together, to the degree that the weakest of them holds.
#[derive(Debug, Clone, Copy)]
pub struct Weighed {
    /// All of them must hold.
    pub clues: &'static [Clue],
    /// The strength of their effect on the confidence, from 0 to 1.
    pub weight: f64,
}

impl Weighed {
    /// Returns the same clues with another weight.
    const fn by(self, weight: f64) -> Weighed {
        weighed(weight, self.clues)
    }
}

const fn weighed(weight: f64, clues: &'static [Clue]) -> Weighed {
    Weighed { clues, weight }
}

/// The rule for one kind of bottleneck.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The kind of bottleneck.
    pub id: Id,
    /// The time that it would explain.
    pub claim: Claim,
    /// The confidence that follows from this time alone.
    pub curve: Curve,
    /// Figures without which there is no verdict at all.
    pub required: &'static [&'static str],
    /// The clues that must all hold. An absent one reduces the confidence to six tenths.
    pub needs: &'static [Clue],
    /// The evidence that contradicts it.
    pub contradicts: &'static [Weighed],
    /// The figures that could refute it. An absent one reduces the confidence to 85 %; the text
    /// says what it would have shown.
    pub blind: &'static [(&'static str, &'static str)],
    /// The questions that no figure here can answer.
    pub limits: &'static [&'static str],
    /// The places that it names.
    pub places: &'static [Topic],
    /// The next step. `{name}` is replaced by a figure, and `{name:source}` by its source.
    pub next: &'static str,
}

impl Rule {
    /// A rule that looks at no figure.
    const EMPTY: Rule = Rule {
        id: Id::Idle,
        claim: Claim::Parts(&[]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[],
        contradicts: &[],
        blind: &[],
        limits: &[],
        places: &[],
        next: "",
    };
}

/// Returns all rules.
#[must_use]
pub fn rules() -> Vec<&'static Rule> {
    let all = [
        table::MACHINE,
        table::RUNNING,
        table::BLOCKED,
        table::EXPORTED,
    ];
    all.into_iter().flatten().collect()
}

/// Returns the verdicts, the most likely first; the list is empty if the figures show nothing.
///
/// Where other programs took the machine ([`Id::Contaminated`]), all other verdicts are that much
/// less certain, to six tenths at most, and keep their order.
#[must_use]
pub fn judge(evidence: &Evidence) -> Vec<Verdict> {
    engine::judge(&rules(), evidence)
}
