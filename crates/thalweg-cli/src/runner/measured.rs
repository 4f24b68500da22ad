//! Converts measured times into facts.

use crate::report::facts::{Batches, Distribution, Point, Stage};
use thalweg::pipeline::StageStats;
use thalweg_measure::histogram::{Histogram, Summary};

/// The number of points of a curve in each halving of the remaining percentiles.
const CURVE_POINTS_PER_HALF: u32 = 8;

/// Returns the facts of a histogram of nanoseconds.
pub(crate) fn distribution(times: &Histogram) -> Distribution {
    sampled(times, times.count())
}

/// Like [`distribution`], for times that come from weighted samples, which are as reliable as
/// `samples` samples of equal weight.
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
    // The curve ends where the last value begins: one command in `count` is as slow as the slowest.
    let last = 1.0 - 1.0 / count.max(1) as f64;
    curve.retain(|point| point.quantile < last);
    if count > 0 {
        curve.push(Point {
            quantile: last,
            ns: summary.max,
        });
    }
    let summary = Summary { count, ..summary };
    Distribution { summary, curve }
}

/// Times in nanoseconds, and the number of samples of equal weight that would be as reliable.
type Sampled = (Histogram, u64);

/// The times of a stage, or of a part of a stage.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) name: String,
    pub(super) part_of: Option<&'static str>,
    pub(super) waited: Option<Sampled>,
    pub(super) served: Option<Sampled>,
    pub(super) batches: Option<Batches>,
    pub(super) utilisation: Option<f64>,
}

impl Timed {
    /// Creates the times of a stage from the pipeline's statistics.
    pub(super) fn of(stats: &StageStats) -> Timed {
        let sizes = stats.batch_events.summary();
        Timed {
            name: stats.name.clone(),
            part_of: None,
            waited: Some((stats.queueing_ns.clone(), stats.samples)),
            served: Some((stats.service_ns.clone(), stats.samples)),
            batches: (sizes.count > 0).then_some(Batches {
                mean: sizes.mean,
                p50: sizes.p50,
                p99: sizes.p99,
                max: sizes.max,
            }),
            utilisation: Some(stats.utilisation),
        }
    }

    /// Returns the facts.
    pub(super) fn stage(&self) -> Stage {
        let times = |times: &Option<Sampled>| {
            let times = times.as_ref();
            times.map(|(times, samples)| sampled(times, *samples))
        };
        Stage {
            name: self.name.clone(),
            part_of: self.part_of,
            waited: times(&self.waited),
            served: times(&self.served),
            batches: self.batches,
            utilisation: self.utilisation,
        }
    }

    /// Returns the times with their names.
    pub(super) fn histograms(&self) -> impl Iterator<Item = (String, Histogram)> {
        let all = [("waited", &self.waited), ("served", &self.served)].into_iter();
        all.filter_map(|(what, times)| {
            let (times, _) = times.as_ref()?;
            Some((format!("{}.{what}", self.name), times.clone()))
        })
    }
}

/// The name of the part before a command has a slot.
pub(super) const UNSENT: &str = "waiting to be sent";

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
}
