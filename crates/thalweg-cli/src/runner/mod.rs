//! Runs commands at a rate, and measures their results and the time that each part took.

mod command_trace;
pub(crate) mod journaled;
mod pipelined;
mod timeline;

use crate::report::facts::{
    Batches, Distribution, Disturbance, Journal, Latency, Point, Stage, Trades,
};
pub(crate) use crate::runner::pipelined::Pipelined;
use std::collections::BTreeMap;
use thalweg::pipeline::StageStats;
use thalweg_exchange::{Command, Event, ResultCode, State};
use thalweg_measure::histogram::{Histogram, Summary};

/// The result of a run.
pub(crate) struct RunOutcome {
    /// The state of the exchange after the last command.
    pub(crate) state: State,
    pub(crate) results: BTreeMap<ResultCode, u64>,
    pub(crate) trades: Trades,
    pub(crate) latency: Latency,
    /// The number of commands that were sent: all of them, unless the run was stopped.
    pub(crate) sent: u64,
    /// The histograms in nanoseconds: end to end of every command, then waits and service times of
    /// the stages.
    pub(crate) histograms: Vec<(String, Histogram)>,
    /// The placement that was requested.
    pub(crate) placement: String,
    /// The facts of the journal, where there was one.
    pub(crate) journal: Option<Journal>,
    pub(crate) disturbance: Disturbance,
}

// A generated flow keeps up to 20 million commands in memory: the limit of `--commands` follows
// from this size.
const _: () = assert!(size_of::<Command>() <= 56);

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
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) part_of: Option<&'static str>,
    pub(crate) waited: Option<Sampled>,
    pub(crate) served: Option<Sampled>,
    pub(crate) batches: Option<Batches>,
    pub(crate) utilisation: Option<f64>,
}

impl Timed {
    /// Creates the times of a stage from the pipeline's statistics.
    pub(crate) fn of(stats: &StageStats) -> Timed {
        let sizes = stats.batch_events.summary();
        Timed {
            name: stats.name.clone(),
            part_of: None,
            waited: Some((stats.queueing_ns.clone(), stats.effective_samples)),
            served: Some((stats.service_ns.clone(), stats.effective_samples)),
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
    pub(crate) fn stage(&self) -> Stage {
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
    pub(crate) fn histograms(&self) -> impl Iterator<Item = (String, Histogram)> {
        let all = [("waited", &self.waited), ("served", &self.served)].into_iter();
        all.filter_map(|(what, times)| {
            let (times, _) = times.as_ref()?;
            Some((format!("{}.{what}", self.name), times.clone()))
        })
    }
}

/// The name of the part before a command has a slot.
pub(crate) const UNSENT: &str = "waiting to be sent";

/// The results of the commands so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The number of successes, counted without a look-up, as most commands succeed.
    successes: u64,
    others: BTreeMap<ResultCode, u64>,
    trades: Trades,
}

impl Tally {
    /// Counts one command.
    pub(crate) fn count(&mut self, result: ResultCode, events: &[Event]) {
        match result {
            ResultCode::Success => self.successes += 1,
            other => *self.others.entry(other).or_default() += 1,
        }
        self.count_trades(events);
    }

    /// Counts the trades of a command.
    pub(crate) fn count_trades(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Trade { size, .. } = *event {
                self.trades.count += 1;
                self.trades.volume_lots =
                    self.trades.volume_lots.saturating_add(size.unsigned_abs());
            }
        }
    }

    /// Returns the counts of all results, and the trades.
    pub(crate) fn finish(mut self) -> (BTreeMap<ResultCode, u64>, Trades) {
        if self.successes > 0 {
            self.others.insert(ResultCode::Success, self.successes);
        }
        (self.others, self.trades)
    }
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
}
