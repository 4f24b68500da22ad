//! The facts that a load shows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::json;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::load::LoadReport;
use thalweg_measure::table::Nanoseconds;

use super::tally::Tally;
use crate::arguments::connect::Load;
use crate::report::facts::Distribution;
use crate::report::number::{grouped, percent, rate};
use crate::runner::distribution;

/// A sender counts as late where one command in a hundred is sent more than this long after it was
/// due, in nanoseconds.
const LATE_NS: u64 = 1_000_000;
/// The window was the limit where more than this share of the commands met a full one.
const HELD_UP: f64 = 0.01;
/// The width of the longest bar, in columns.
const BAR: u64 = 40;

/// The facts of a load. The keys of the JSON are the field names; percentiles beyond which too few
/// values lie are left out.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    sessions: u32,
    rate_asked_per_s: Option<u64>,
    rate_sent_per_s: f64,
    sent: u64,
    executed: u64,
    results: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    repeated: u64,
    unanswered: u64,
    #[serde(serialize_with = "in_short")]
    latency_ns: Distribution,
    /// The distribution of how much later than due the commands were sent.
    #[serde(serialize_with = "in_short")]
    lateness_ns: Distribution,
    held_up: u64,
    loader_cores: f64,
    limit: Limit,
    /// The histogram: an upper bound in nanoseconds, and the number of latencies up to it.
    histogram: Vec<(u64, u64)>,
}

/// The reason why the rate was not higher, or the latency not lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Limit {
    /// Commands were sent when they were due.
    None,
    /// Commands had to wait for the answers to earlier ones.
    Exchange,
    /// The loader did not send them in time.
    Loader,
}

/// Returns the mean, the percentiles that have enough times, and the maximum, in nanoseconds.
fn figures(times: &Distribution) -> impl Iterator<Item = (&'static str, f64)> {
    let percentiles = times.known().map(|(name, ns)| (name, ns as f64));
    let mean = [("mean", times.summary.mean)].into_iter();
    mean.chain(percentiles)
        .chain([("max", times.summary.max as f64)])
}

/// Serializes the figures without the curve, as `mean`, `p50`, `p999`, `max`.
fn in_short<S: Serializer>(times: &Distribution, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(figures(times).map(|(name, ns)| match name {
        "mean" => (name.to_owned(), json!(ns)),
        _ => (name.replace('.', ""), json!(ns as u64)),
    }))
}

/// Returns the figures as one line of text.
fn shown(times: &Distribution) -> String {
    let figures = figures(times).map(|(name, ns)| format!("{name} {}", Nanoseconds(ns)));
    figures.collect::<Vec<_>>().join("  ")
}

impl Facts {
    pub(super) fn new(asked: &Load, report: &LoadReport, total: &Tally, cpu: Duration) -> Self {
        let lateness = report.lateness_ns.quantile(0.99);
        let held_up = total.held_up as f64 > HELD_UP * report.sent as f64;
        let limit = match asked.rate.per_s() {
            _ if held_up => Limit::Exchange,
            None => Limit::Loader,
            Some(_) if lateness > LATE_NS => Limit::Loader,
            Some(_) => Limit::None,
        };
        Self {
            sessions: asked.sessions,
            rate_asked_per_s: asked.rate.per_s(),
            rate_sent_per_s: report.sent_per_s(),
            sent: report.sent,
            executed: total.latency_ns.count(),
            results: total.results.clone(),
            refused: total.refused.clone(),
            repeated: total.repeated,
            unanswered: total.unanswered,
            latency_ns: distribution(&total.latency_ns),
            lateness_ns: distribution(&report.lateness_ns),
            held_up: total.held_up,
            loader_cores: cpu.as_nanos() as f64 / report.span_ns.max(1) as f64,
            limit,
            histogram: octaves(&total.latency_ns),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} commands by {} sessions, {}",
            grouped(self.sent),
            self.sessions,
            rate(self.rate_sent_per_s)
        );
        if let Some(asked) = self.rate_asked_per_s {
            let _ = write!(text, " of {}", rate(asked as f64));
        }
        let _ = writeln!(text, "\nexecuted   {}", grouped(self.executed));
        for (result, count) in &self.results {
            let _ = writeln!(text, "  {result} {}", grouped(*count));
        }
        for (reason, count) in &self.refused {
            let _ = writeln!(text, "refused    {} {reason}", grouped(*count));
        }
        for (what, count) in [
            ("sent again", self.repeated),
            ("no answer ", self.unanswered),
        ] {
            if count > 0 {
                let _ = writeln!(text, "{what} {}", grouped(count));
            }
        }
        let _ = writeln!(text, "latency    {}", shown(&self.latency_ns));
        if self.rate_asked_per_s.is_some() {
            let _ = writeln!(text, "sent late  {}", shown(&self.lateness_ns));
        }
        let _ = writeln!(text, "{}\n", self.limit_text());
        let most = self
            .histogram
            .iter()
            .map(|(_, count)| *count)
            .max()
            .unwrap_or(1);
        for (below, count) in &self.histogram {
            let bar = "#".repeat((count * BAR).div_ceil(most.max(1)) as usize);
            let part = percent(*count as f64 / self.executed.max(1) as f64);
            let _ = writeln!(
                text,
                "  ≤ {:>9} {part:>9} {bar}",
                Nanoseconds(*below as f64)
            );
        }
        text
    }

    fn limit_text(&self) -> String {
        let cores = format!("the loader used {:.2} cores", self.loader_cores);
        match self.limit {
            Limit::None => format!("limit      none: commands were sent when due; {cores}"),
            Limit::Exchange => format!(
                "limit      the exchange: {} of the commands were due while their session had no \
                 answer to earlier ones; {cores}",
                percent(self.held_up as f64 / self.sent.max(1) as f64)
            ),
            Limit::Loader => format!("limit      the loader: it sent late; {cores}"),
        }
    }
}

/// Returns counts by powers of two, from the first that is not zero to the last.
fn octaves(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, count) in histogram.recorded() {
        let below = value.max(1).checked_next_power_of_two().unwrap_or(u64::MAX);
        *counts.entry(below).or_default() += count;
    }
    counts.into_iter().collect()
}
