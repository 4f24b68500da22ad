//! Tests properties that hold for any evidence.

use super::engine::{CONTAMINATED_MAX, weigh};
use super::*;
use crate::evidence::Quality;
use crate::metrics::METRICS;
use proptest::prelude::*;

/// Generates for each figure: absent, not reported, or a value from zero to beyond its range.
fn any_evidence() -> impl Strategy<Value = Evidence> {
    let value = prop_oneof![
        2 => Just(None),
        4 => (0.0..1.0f64).prop_map(Some),
        2 => (0.0..1e6f64).prop_map(Some),
        1 => prop_oneof![Just(0.0), Just(-1.0), Just(1e300), Just(f64::MIN_POSITIVE)]
            .prop_map(Some),
    ];
    proptest::collection::vec((value, any::<bool>()), METRICS.len()).prop_map(|values| {
        let mut evidence = Evidence::new();
        for (metric, (value, is_known)) in METRICS.iter().zip(values) {
            match value {
                Some(value) => evidence.put(metric.name, value, Quality::Sampled, "any"),
                None if is_known => evidence.lack(metric.name, "any"),
                None => {}
            }
        }
        evidence
    })
}

/// Returns the clues that support a rule.
fn in_favour(rule: &Rule) -> impl Iterator<Item = &'static Clue> {
    let raises = rule.raises.iter().flat_map(|weighed| weighed.clues);
    rule.needs.iter().chain(raises)
}

/// Returns whether the rule uses the figure of the clue in no other place.
fn looks_once(rule: &Rule, clue: &Clue) -> bool {
    let name = clue.figure.name();
    let seen = engine::looked_at(rule);
    seen.iter().filter(|&&seen| seen == name).count() == 1
}

proptest! {
    #[test]
    fn verdicts_are_sorted_and_their_confidence_is_a_share(evidence in any_evidence()) {
        let verdicts = judge(&evidence);
        prop_assert!(verdicts.iter().all(|v| (0.0..=1.0).contains(&v.confidence)));
        prop_assert!(verdicts.is_sorted_by(|a, b| a.confidence >= b.confidence));
    }

    #[test]
    fn contamination_caps_all_others(evidence in any_evidence(), share in 0.1..1.0f64) {
        let mut evidence = evidence;
        evidence.put("host.wait_others", share, Quality::Exact, "any");
        evidence.put("threads.busy", 1.0, Quality::Exact, "any");
        evidence.put("host.throttled_share", 0.0, Quality::Exact, "any");
        evidence.put("host.steal_share", 0.0, Quality::Exact, "any");
        evidence.put("time.wall", 1.0, Quality::Exact, "any");
        for verdict in judge(&evidence) {
            let capped = verdict.confidence <= CONTAMINATED_MAX;
            prop_assert!(capped || verdict.id == Id::Contaminated, "{:?}", verdict);
        }
    }

    #[test]
    fn more_that_speaks_for_it_never_lowers(
        evidence in any_evidence(), chosen in any::<prop::sample::Index>(), step in 0.0..2.0f64,
    ) {
        let all: Vec<(&Rule, &Clue)> = rules()
            .into_iter()
            .flat_map(|rule| in_favour(rule).map(move |clue| (rule, clue)))
            .filter(|(rule, clue)| looks_once(rule, clue))
            .collect();
        let (rule, clue) = all[chosen.index(all.len())];
        let before = weigh(rule, &evidence).confidence;
        let name = clue.figure.name();
        let better = match evidence.value(name) {
            Some(value) => value + step * (clue.to - clue.from),
            // A figure that was absent now holds: for a quotient, whatever the divisor is.
            None => if clue.to > clue.from { 1e300 } else { 0.0 },
        };
        let mut more = evidence.clone();
        more.put(name, better, Quality::Exact, "more");
        let after = weigh(rule, &more).confidence;
        prop_assert!(after >= before - 1e-12, "{:?} {name}: {before} to {after}", rule.id);
    }

    #[test]
    fn a_part_of_the_time_never_lowers_the_rule_that_claims_it(
        evidence in any_evidence(), share in 0.0..1.0f64, more in 0.0..1.0f64,
    ) {
        let blocked = [
            (Id::BlockingIo, "block.disk"), (Id::FutexParking, "block.futex"),
            (Id::SleepPolling, "block.sleep"), (Id::Idle, "block.child"),
            (Id::PageFaults, "fault.cpu_share"), (Id::SpinBurnsCpu, "spin.cpu_share"),
        ];
        for (id, name) in blocked {
            let rule = *rules().iter().find(|rule| rule.id == id).expect("a rule");
            let weighed = |value: f64| {
                let mut evidence = evidence.clone();
                evidence.put(name, value, Quality::Exact, "any");
                weigh(rule, &evidence).confidence
            };
            let (less, more) = (weighed(share), weighed((share + more).min(1.0)));
            prop_assert!(more >= less - 1e-12, "{:?}: {less} to {more}", id);
        }
    }
}
