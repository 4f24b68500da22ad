//! What was promised, beside what was measured.

use thalweg_measure::table::Table;

/// On which side of its limit a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit {
    /// Not above it.
    AtMost(f64),
    /// Not below it.
    AtLeast(f64),
    /// Shown without judgement.
    Shown,
}

/// One promise.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// What is promised.
    pub(crate) what: String,
    pub(crate) limit: Limit,
    /// What was measured; `None` if its cases did not run.
    pub(crate) measured: Option<f64>,
    /// Turns a figure into text.
    pub(crate) show: fn(f64) -> String,
}

/// How a target came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Met,
    Missed,
    Shown,
    NotRun,
}

impl Target {
    pub(crate) fn new(
        what: impl Into<String>,
        limit: Limit,
        measured: Option<f64>,
        show: fn(f64) -> String,
    ) -> Self {
        let what = what.into();
        Self {
            what,
            limit,
            measured,
            show,
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let met = match (self.limit, self.measured) {
            (_, None) => return Outcome::NotRun,
            (Limit::Shown, _) => return Outcome::Shown,
            (Limit::AtMost(limit), Some(measured)) => measured <= limit,
            (Limit::AtLeast(limit), Some(measured)) => measured >= limit,
        };
        if met { Outcome::Met } else { Outcome::Missed }
    }
}

/// The targets as a table.
pub(crate) fn table(targets: &[Target]) -> Table {
    let mut table = Table::new(["target", "limit", "measured", ""]);
    for target in targets {
        let limit = match target.limit {
            Limit::AtMost(limit) => format!("≤ {}", (target.show)(limit)),
            Limit::AtLeast(limit) => format!("≥ {}", (target.show)(limit)),
            Limit::Shown => String::new(),
        };
        let measured = target.measured.map_or("-".to_owned(), target.show);
        let outcome = match target.outcome() {
            Outcome::Met => "met",
            Outcome::Missed => "MISSED",
            Outcome::Shown => "",
            Outcome::NotRun => "not run",
        };
        table.row([
            target.what.as_str().into(),
            limit.into(),
            measured.into(),
            outcome.into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(value: f64) -> String {
        format!("{value} x")
    }

    #[test]
    fn figures_are_held_against_their_limits() {
        let outcome = |limit, measured| Target::new("it", limit, measured, show).outcome();
        assert_eq!(outcome(Limit::AtMost(2.0), Some(2.0)), Outcome::Met);
        assert_eq!(outcome(Limit::AtMost(2.0), Some(2.1)), Outcome::Missed);
        assert_eq!(outcome(Limit::AtLeast(2.0), Some(2.0)), Outcome::Met);
        assert_eq!(outcome(Limit::AtLeast(2.0), Some(1.9)), Outcome::Missed);
        assert_eq!(outcome(Limit::AtLeast(2.0), None), Outcome::NotRun);
        assert_eq!(outcome(Limit::Shown, Some(1.0)), Outcome::Shown);
        for limit in [Limit::AtMost(2.0), Limit::AtLeast(2.0)] {
            assert_eq!(outcome(limit, Some(f64::NAN)), Outcome::Missed);
        }
    }

    #[test]
    fn the_table_says_what_was_missed() {
        let targets = [
            Target::new("fast", Limit::AtMost(2.0), Some(3.0), show),
            Target::new("sure", Limit::AtLeast(2.0), None, show),
        ];
        let text = table(&targets).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "fast    ≤ 2 x  3 x       MISSED");
        assert_eq!(lines[3], "sure    ≥ 2 x  -         not run");
    }
}
