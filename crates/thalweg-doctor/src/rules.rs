//! The rules that turn figures into verdicts, as data.
//!
//! Each [`Rule`] says which parts of the program's time it would explain, which figures it needs,
//! what speaks for and against it, what it cannot tell, and what to do next. Every threshold says
//! where it comes from. The rules are in the files below; the engine that weighs them knows none
//! of them.

mod blocked;
mod engine;
mod exported;
mod machine;
mod running;

use crate::budget::Part;
use crate::evidence::Evidence;
use crate::verdict::{Id, Verdict};

/// Where a threshold comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Measured, as the text says.
    Measured(&'static str),
    /// From the kernel's documentation or source.
    Kernel(&'static str),
    /// From a book or paper.
    Literature(&'static str),
    /// It follows from what the words mean.
    Definition(&'static str),
}

impl Origin {
    /// What it says.
    #[must_use]
    pub fn text(self) -> &'static str {
        let (Origin::Measured(text)
        | Origin::Kernel(text)
        | Origin::Literature(text)
        | Origin::Definition(text)) = self;
        text
    }
}

/// A figure, or one figure divided by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Figure {
    /// A figure of the table.
    One(&'static str),
    /// The first, for each of the second.
    Ratio(&'static str, &'static str),
}

impl Figure {
    /// The name of the figure, or of the one that is divided.
    #[must_use]
    pub fn name(self) -> &'static str {
        let (Figure::One(name) | Figure::Ratio(name, _)) = self;
        name
    }

    /// Its value, if all of it was measured.
    #[must_use]
    pub fn value(self, evidence: &Evidence) -> Option<f64> {
        match self {
            Figure::One(name) => evidence.value(name),
            Figure::Ratio(over, under) => {
                let (over, under) = (evidence.value(over)?, evidence.value(under)?);
                // Below a millionth there is nothing to divide by.
                Some(over / under.max(1e-6))
            }
        }
    }
}

/// What a figure must be like. It does not hold at all at `from`, wholly at `to`, and in part
/// between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clue {
    /// What is looked at.
    pub figure: Figure,
    /// Here it does not hold.
    pub from: f64,
    /// Here it holds: the threshold. Below `from`, if less is more.
    pub to: f64,
    /// Where the threshold comes from.
    pub origin: Origin,
}

impl Clue {
    /// How far it holds, 0 to 1. Nothing if the figure is absent.
    #[must_use]
    pub fn holds(&self, evidence: &Evidence) -> Option<f64> {
        let value = self.figure.value(evidence)?;
        Some(((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0))
    }

    /// The threshold as text, such as `> 0.2`.
    #[must_use]
    pub fn threshold(&self) -> String {
        let sign = if self.to > self.from { '>' } else { '<' };
        match self.figure {
            Figure::One(_) => format!("{sign} {}", self.to),
            Figure::Ratio(_, under) => format!("{sign} {} × {under}", self.to),
        }
    }
}

/// Holds wholly from the threshold on, and not at all below its half.
const fn above(name: &'static str, threshold: f64, origin: Origin) -> Clue {
    ramp(Figure::One(name), threshold / 2.0, threshold, origin)
}

/// Holds wholly up to the threshold, and not at all from its double on.
const fn below(name: &'static str, threshold: f64, origin: Origin) -> Clue {
    ramp(Figure::One(name), threshold * 2.0, threshold, origin)
}

/// As [`above`], for a quotient.
const fn above_ratio(
    over: &'static str,
    under: &'static str,
    threshold: f64,
    origin: Origin,
) -> Clue {
    let figure = Figure::Ratio(over, under);
    ramp(figure, threshold / 2.0, threshold, origin)
}

const fn ramp(figure: Figure, from: f64, to: f64, origin: Origin) -> Clue {
    Clue {
        figure,
        from,
        to,
        origin,
    }
}

/// Which time a rule would explain.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Claim {
    /// These parts together, each as far as its clues hold.
    Parts(&'static [(Part, &'static [Clue])]),
    /// The largest of these products of figures, each of them at most 1, and of these parts.
    Largest(&'static [&'static [&'static str]], &'static [Part]),
}

/// How sure a claimed share of the time makes, before anything else is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Curve {
    /// What a program could do without: a quarter of its time is worth an answer.
    Overhead,
    /// What is left when nothing else explains the time: three quarters of it.
    Residue,
    /// What others do to it: a tenth of the time spoils a measurement.
    Disturbance,
}

/// Shares, and the confidence at each; straight between.
///
/// A quarter: without it the program would be faster by a third (Amdahl's law: 1/(1 − 0.25)). The
/// curves of overhead and of residue meet there, so that of a program that works for 76 % of its
/// time and faults for 24 % the work is the first answer, and at 26 % the faults are.
impl Curve {
    fn points(self) -> &'static [(f64, f64)] {
        match self {
            Curve::Overhead => &[(0.05, 0.0), (0.25, 0.55), (0.6, 0.85), (1.0, 0.95)],
            Curve::Residue => &[(0.4, 0.0), (0.75, 0.55), (0.95, 0.85), (1.0, 0.95)],
            Curve::Disturbance => &[(0.03, 0.0), (0.1, 0.5), (0.3, 0.85), (1.0, 0.95)],
        }
    }

    /// The share from which on the answer is more likely than not.
    #[must_use]
    pub fn threshold(self) -> f64 {
        self.points()[1].0
    }

    /// The confidence at a share of the time.
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

/// Clues that count together, as far as the weakest of them holds.
#[derive(Debug, Clone, Copy)]
pub struct Weighed {
    /// All of them must hold.
    pub clues: &'static [Clue],
    /// How much it moves the confidence, 0 to 1.
    pub weight: f64,
}

/// How one kind of bottleneck is told.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The kind.
    pub id: Id,
    /// The time that it would explain.
    pub claim: Claim,
    /// How sure that alone makes.
    pub curve: Curve,
    /// Figures without which there is no verdict at all.
    pub required: &'static [&'static str],
    /// All of these must hold. One that is absent leaves six tenths of the confidence.
    pub needs: &'static [Clue],
    /// What speaks for it.
    pub raises: &'static [Weighed],
    /// What speaks against it.
    pub contradicts: &'static [Weighed],
    /// Figures that could show it to be wrong. One that is absent leaves 85 % of the confidence,
    /// and the text says what it would have told.
    pub blind: &'static [(&'static str, &'static str)],
    /// What no figure here can tell.
    pub limits: &'static [&'static str],
    /// What to do. `{name}` is replaced by a figure, `{name:source}` by where it comes from;
    /// `{name>text}` by the text, where the figure is more than a half.
    pub next: &'static str,
}

/// All rules.
#[must_use]
pub fn rules() -> Vec<&'static Rule> {
    let all = [
        machine::RULES,
        running::RULES,
        blocked::RULES,
        exported::RULES,
    ];
    all.into_iter().flatten().collect()
}

/// What the figures mean, most likely first. Empty if they say nothing.
///
/// Where other programs took the machine ([`Id::Contaminated`]), no other verdict is surer than
/// 0.6.
#[must_use]
pub fn judge(evidence: &Evidence) -> Vec<Verdict> {
    engine::judge(&rules(), evidence)
}

#[cfg(test)]
mod borders;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod recorded;
