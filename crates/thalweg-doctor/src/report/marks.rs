//! Determines which figures of a verdict reach their threshold.

use crate::evidence::Evidence;
use crate::rules::{self, Claim, Clue, Rule};
use crate::verdict::{Exhibit, Id};

/// Returns whether a figure reaches the threshold that it is shown with; `None` if it is absent, or
/// if no rule compares it with this threshold.
pub(super) fn reached(id: Id, exhibit: &Exhibit, evidence: &Evidence) -> Option<bool> {
    let value = exhibit.value?;
    let rule = rules::rules().into_iter().find(|rule| rule.id == id)?;
    let is_shown = |clue: &&Clue| {
        clue.figure.name() == exhibit.metric && clue.threshold() == exhibit.threshold
    };
    if let Some(clue) = clues(rule).iter().find(is_shown) {
        return clue.holds(evidence).map(|holds| holds >= 1.0);
    }
    // Otherwise it is a part of the rule's claim: a share of the time.
    let least = rule.curve.threshold();
    let text = format!("> {least}");
    match exhibit.threshold.strip_suffix(&text)?.trim_end() {
        "" => Some(value >= least),
        of => Some(value * evidence.value(of.strip_prefix("× ")?)? >= least),
    }
}

fn clues(rule: &Rule) -> Vec<Clue> {
    let mut clues = rule.needs.to_vec();
    if let Claim::Parts(parts) = rule.claim {
        clues.extend(parts.iter().flat_map(|(_, of)| *of));
    }
    let weighed = rule.raises.iter().chain(rule.contradicts);
    clues.extend(weighed.flat_map(|weighed| weighed.clues));
    clues
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Quality;
    use crate::metrics::METRICS;
    use crate::verdict::Verdict;

    fn judged(value: impl Fn(&str) -> f64) -> (Evidence, Vec<Verdict>) {
        let mut evidence = Evidence::new();
        for metric in METRICS {
            let value = value(metric.name);
            evidence.put(metric.name, value, Quality::Exact, "by hand");
        }
        let verdicts = rules::judge(&evidence);
        (evidence, verdicts)
    }

    #[test]
    fn every_figure_of_every_verdict_is_reported() {
        let (mut shown, mut ids) = ([0, 0], Vec::new());
        for value in [0.05_f64, 0.15, 0.3, 0.6, 1.0, 30.0, 3e4, 1e6] {
            let (evidence, verdicts) = judged(|name| match name {
                "time.wall" => 1.0,
                _ if metric_is_share(name) => value.min(1.0),
                _ => value,
            });
            for verdict in &verdicts {
                ids.push(verdict.id.name());
                for exhibit in verdict.evidence.iter().chain(&verdict.contradicts) {
                    let reached = reached(verdict.id, exhibit, &evidence);
                    let reached = reached.unwrap_or_else(|| panic!("{exhibit:?}"));
                    shown[usize::from(reached)] += 1;
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() >= 8 && shown.iter().all(|&shown| shown >= 10));
    }

    fn metric_is_share(name: &str) -> bool {
        crate::metrics::named(name).is_some_and(|metric| metric.unit == "share")
    }

    #[test]
    fn a_threshold_is_reached_or_missed() {
        let mut evidence = Evidence::new();
        let figures = [
            ("time.wall", 2.0),
            ("state.running", 0.9),
            ("fault.cpu_share", 0.35),
            ("fault.minor", 12_000.0),
        ];
        for (name, value) in figures {
            evidence.put(name, value, Quality::Exact, "by hand");
        }
        let verdicts = rules::judge(&evidence);
        let faults = verdicts.iter().find(|found| found.id == Id::PageFaults);
        let faults = faults.expect("a third of the time");
        let shown = |evidence: &Evidence| -> Vec<(&str, Option<bool>)> {
            let shown = |it: &Exhibit| (it.metric, reached(Id::PageFaults, it, evidence));
            let mut shown: Vec<_> = faults.evidence.iter().map(shown).collect();
            shown.sort_unstable();
            shown
        };
        let found = shown(&evidence);
        for figure in [
            ("fault.cpu_share", Some(true)),
            ("state.running", Some(true)),
        ] {
            assert!(found.contains(&figure), "{found:?}");
        }
        let other = Exhibit {
            threshold: "> 20000".to_owned(),
            metric: "fault.minor",
            ..faults.evidence[0].clone()
        };
        assert_eq!(reached(Id::PageFaults, &other, &evidence), Some(false));
        // The product is compared: 0.9 × 0.25 is less than a quarter.
        evidence.put("fault.cpu_share", 0.25, Quality::Exact, "by hand");
        let share = Exhibit {
            value: Some(0.25),
            ..faults.evidence[0].clone()
        };
        assert_eq!(share.metric, "fault.cpu_share");
        assert_eq!(reached(Id::PageFaults, &share, &evidence), Some(false));
        assert_eq!(
            reached(
                Id::PageFaults,
                &Exhibit {
                    value: None,
                    ..share
                },
                &evidence
            ),
            None
        );
    }
}
