//! From measured ticks to facts: distributions, and what commands spent their time on.

use crate::report::facts::{Batches, Breakdown, Distribution, Part, Point, Stage};
use thalweg::pipeline::{self, StageStats, Stats};
use thalweg_measure::histogram::Histogram;

/// Points of a curve in each halving of what is left of the percentiles.
const CURVE_POINTS_PER_HALF: u32 = 8;

/// The facts of a histogram of nanoseconds.
pub(crate) fn distribution(times: &Histogram) -> Distribution {
    sampled(times, times.count())
}

/// As [`distribution`], of times that some samples stand for, which say as much as `samples` of
/// equal weight.
fn sampled(times: &Histogram, samples: u64) -> Distribution {
    let summary = times.summary();
    let count = samples.min(summary.count);
    let mut curve: Vec<Point> = times
        .curve(CURVE_POINTS_PER_HALF)
        .into_iter()
        .map(|(percentile, ns)| Point {
            quantile: percentile / 100.0,
            ns,
        })
        .filter(|point| point.quantile < 1.0)
        .collect();
    // The curve ends where the last value begins: one in so many is as slow as the slowest.
    let last = 1.0 - 1.0 / count.max(1) as f64;
    curve.retain(|point| point.quantile < last);
    if count > 0 {
        curve.push(Point {
            quantile: last,
            ns: summary.max,
        });
    }
    Distribution {
        count,
        mean_ns: summary.mean,
        p50_ns: summary.p50,
        p90_ns: summary.p90,
        p99_ns: summary.p99,
        p99_9_ns: summary.p999,
        p99_99_ns: summary.p9999,
        max_ns: summary.max,
        curve,
    }
}

/// The facts of a stage, or of one of its shards.
pub(super) fn stage(stats: &StageStats) -> Stage {
    let sizes = stats.batch_events.summary();
    Stage {
        name: stats.name.clone(),
        waited: Some(sampled(&stats.queueing_ns, stats.samples)),
        served: Some(sampled(&stats.service_ns, stats.samples)),
        batches: (sizes.count > 0).then_some(Batches {
            mean: sizes.mean,
            p50: sizes.p50,
            p99: sizes.p99,
            max: sizes.max,
        }),
        utilisation: Some(stats.utilisation),
    }
}

/// The stage of which this is the name, or that of a shard.
pub(super) fn family(name: &str) -> &str {
    name.split_once('[').map_or(name, |(family, _)| family)
}

/// The facts of the stages, all shards of one together: times only.
pub(super) fn families(stats: &Stats) -> Vec<Stage> {
    let mut found: Vec<(&str, Histogram, Histogram, u64)> = Vec::new();
    for stage in &stats.stages {
        let name = family(&stage.name);
        match found.iter_mut().find(|(other, ..)| *other == name) {
            Some((_, waited, served, samples)) => {
                waited.merge(&stage.queueing_ns);
                served.merge(&stage.service_ns);
                *samples += stage.samples;
            }
            None => {
                let (waited, served) = (stage.queueing_ns.clone(), stage.service_ns.clone());
                found.push((name, waited, served, stage.samples));
            }
        }
    }
    let stage = |(name, waited, served, samples): &(&str, Histogram, Histogram, u64)| Stage {
        name: (*name).to_owned(),
        waited: Some(sampled(waited, *samples)),
        served: Some(sampled(served, *samples)),
        batches: None,
        utilisation: None,
    };
    found.iter().map(stage).collect()
}

/// The part before a command has a slot.
pub(super) const UNSENT: &str = "waiting to be sent";

/// What each part is called, in the order in which a command goes through them; shards together.
pub(super) fn named(unsent_ns: f64, stages: &[(&str, f64, f64)]) -> Vec<Part> {
    let mut parts = vec![Part {
        what: UNSENT.to_owned(),
        ns: unsent_ns,
    }];
    let mut add = |what: String, ns: f64| match parts.iter_mut().find(|p| p.what == what) {
        Some(part) => part.ns += ns,
        None => parts.push(Part { what, ns }),
    };
    for (stage, waited, served) in stages {
        add(format!("waiting for {}", family(stage)), *waited);
        add(format!("in {}", family(stage)), *served);
    }
    parts.retain(|part| part.ns > 0.0);
    parts
}

/// What commands spent their time on, by percentile, as far as enough were timed.
pub(super) fn breakdowns(stats: &Stats) -> Vec<Breakdown> {
    let breakdown = |of: &str, found: Option<pipeline::Breakdown>| {
        let found = found?;
        let stages = found.parts.iter();
        let stages: Vec<_> = stages
            .map(|part| (part.stage.as_str(), part.queueing_ns, part.service_ns))
            .collect();
        Some(Breakdown {
            of: of.to_owned(),
            commands: found.events,
            end_to_end_ns: found.end_to_end_ns,
            parts: named(found.unsent_ns, &stages),
        })
    };
    let times = sampled(&stats.end_to_end_ns, stats.samples);
    let told = times.percentiles().into_iter();
    let told = told.filter(|(_, _, ns)| ns.is_some());
    [breakdown("mean", stats.breakdown_of_all())]
        .into_iter()
        .chain(told.map(|(name, quantile, _)| breakdown(name, stats.breakdown(quantile))))
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_rises_and_ends_at_the_slowest() {
        let mut times = Histogram::new();
        (1..=1_000).for_each(|ns| times.record(ns));
        let found = distribution(&times);
        let rising = |w: &[Point]| w[0].quantile < w[1].quantile && w[0].ns <= w[1].ns;
        assert!(found.curve.len() > 20 && found.curve.windows(2).all(rising));
        let last = found.curve.last().unwrap();
        assert_eq!((last.quantile, last.ns), (0.999, 1_000));
        assert!(distribution(&Histogram::new()).curve.is_empty());
    }

    #[test]
    fn shards_are_one_part() {
        let stages = [
            ("risk[0]", 1.0, 2.0),
            ("risk[1]", 10.0, 0.0),
            ("match", 0.0, 5.0),
        ];
        let found = named(0.0, &stages);
        let found: Vec<_> = found.iter().map(|part| (&part.what[..], part.ns)).collect();
        let expected = [
            ("waiting for risk", 11.0),
            ("in risk", 2.0),
            ("in match", 5.0),
        ];
        assert_eq!(found, expected);
    }
}
