//! What was promised, beside what was measured.

use thalweg_measure::statistics::Interval;
use thalweg_measure::table::Table;

use crate::channels::OURS;
use crate::report::times;
use crate::runner::Trial;

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

    /// That the first is so many times better than the second; named with the interval.
    pub(crate) fn ratio(
        what: &str,
        [ours, peer]: [&str; 2],
        limit: Limit,
        ratio: Option<Interval>,
    ) -> Self {
        let bounds = ratio.map_or(String::new(), |ratio| format!(" {}", ratio.bounds(times)));
        let what = format!("{what}: {ours} over {peer}{bounds}");
        Self::new(what, limit, ratio.map(|ratio| ratio.value), times)
    }

    /// That this library lost none of these in any case that ran.
    pub(crate) fn none_lost(of: &str, trials: &[Trial]) -> Self {
        let series = trials.iter().flat_map(|trial| &trial.series);
        let ours = series.filter(|series| series.subject.starts_with(OURS));
        let lost = ours
            .map(|series| series.lost() as f64)
            .reduce(|sum, lost| sum + lost);
        let what = format!("{of} lost by this library, all cases");
        Self::new(what, Limit::AtMost(0.0), lost, |lost| format!("{lost:.0}"))
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

/// The targets as a table. A run that is too short to decide has no verdicts.
pub(crate) fn table(targets: &[Target], decides: bool) -> Table {
    let mut table = Table::new(["target", "limit", "measured", ""]);
    for target in targets {
        let limit = match target.limit {
            Limit::AtMost(limit) => format!("≤ {}", (target.show)(limit)),
            Limit::AtLeast(limit) => format!("≥ {}", (target.show)(limit)),
            Limit::Shown => String::new(),
        };
        let measured = target.measured.map_or("-".to_owned(), target.show);
        let outcome = match target.outcome() {
            Outcome::Met | Outcome::Missed if !decides => "too few runs",
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
    fn a_ratio_has_its_interval_and_one_loss_is_too_many() {
        let mut trials = [Trial::scripted(
            "case",
            &[],
            &[("thalweg a", &[]), ("b", &[])],
        )];
        trials[0].series[1].runs[0].lost = 7;
        assert_eq!(Target::none_lost("events", &trials).outcome(), Outcome::Met);
        trials[0].series[0].runs[0].lost = 1;
        let target = Target::none_lost("events", &trials);
        assert_eq!(target.outcome(), Outcome::Missed);
        assert_eq!(target.what, "events lost by this library, all cases");
        assert_eq!(Target::none_lost("events", &[]).outcome(), Outcome::NotRun);
        let ratio = Interval {
            low: 1.5,
            value: 2.0,
            high: 12.0,
        };
        let over = |ratio| Target::ratio("cost", ["a", "b"], Limit::AtLeast(2.0), ratio);
        assert_eq!(over(Some(ratio)).what, "cost: a over b [1.50×, 12×]");
        assert_eq!(over(Some(ratio)).outcome(), Outcome::Met);
        assert_eq!(over(None).what, "cost: a over b");
        assert_eq!(over(None).outcome(), Outcome::NotRun);
    }

    #[test]
    fn the_table_says_what_was_missed() {
        let targets = [
            Target::new("fast", Limit::AtMost(2.0), Some(3.0), show),
            Target::new("sure", Limit::AtLeast(2.0), None, show),
        ];
        let text = table(&targets, true).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "fast    ≤ 2 x  3 x       MISSED");
        assert_eq!(lines[3], "sure    ≥ 2 x  -         not run");
        let text = table(&targets, false).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "fast    ≤ 2 x  3 x       too few runs");
        assert_eq!(lines[3], "sure    ≥ 2 x  -         not run");
    }
}
