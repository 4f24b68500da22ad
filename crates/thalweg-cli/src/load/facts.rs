//! What a load shows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;
use thalweg_measure::histogram::{Histogram, Summary};
use thalweg_measure::load::LoadReport;

use super::tally::Tally;
use crate::arguments::connect::Load;
use crate::report::number::{grouped, percent, rate, span};

/// A sender is late where one command in a hundred is sent so much after it was due.
const LATE_NS: u64 = 1_000_000;
/// The window was the limit where more than this part of the commands met a full one.
const HELD_UP: f64 = 0.01;
/// Columns of the widest bar.
const BAR: u64 = 40;

/// Its keys are the field names; percentiles that too few values are beyond are left out.
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
    latency_ns: Latency,
    /// How much later than due commands were sent.
    lateness_ns: Latency,
    held_up: u64,
    loader_cores: f64,
    limit: Limit,
    /// Latencies at most so many nanoseconds, and how many there were.
    histogram: Vec<(u64, u64)>,
}

#[derive(Debug, Serialize)]
struct Latency {
    mean: f64,
    p50: u64,
    p90: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p999: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p9999: Option<u64>,
    max: u64,
}

/// What kept the rate from being higher, or latency from being lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Limit {
    /// Commands were sent when they were due.
    None,
    /// Commands had to wait for the answers to earlier ones.
    Exchange,
    /// The loader did not get to sending them in time.
    Loader,
}

impl Latency {
    fn of(histogram: &Histogram) -> Self {
        let Summary {
            count,
            mean,
            p50,
            p90,
            p99,
            p999,
            p9999,
            max,
            ..
        } = histogram.summary();
        let told = |least, value| (count >= least).then_some(value);
        Self {
            mean,
            p50,
            p90,
            p99: told(1_000, p99),
            p999: told(10_000, p999),
            p9999: told(100_000, p9999),
            max,
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "mean {}  p50 {}  p90 {}",
            span(self.mean),
            span(self.p50 as f64),
            span(self.p90 as f64)
        );
        let rare = [
            ("p99", self.p99),
            ("p99.9", self.p999),
            ("p99.99", self.p9999),
        ];
        for (name, value) in rare {
            if let Some(value) = value {
                let _ = write!(text, "  {name} {}", span(value as f64));
            }
        }
        let _ = write!(text, "  max {}", span(self.max as f64));
        text
    }
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
            latency_ns: Latency::of(&total.latency_ns),
            lateness_ns: Latency::of(&report.lateness_ns),
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
        let _ = writeln!(text, "latency    {}", self.latency_ns.text());
        if self.rate_asked_per_s.is_some() {
            let _ = writeln!(text, "sent late  {}", self.lateness_ns.text());
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
            let _ = writeln!(text, "  ≤ {:>9} {part:>9} {bar}", span(*below as f64));
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

/// Counts by powers of two, from the first that has any to the last.
fn octaves(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, count) in histogram.recorded() {
        let below = value.max(1).checked_next_power_of_two().unwrap_or(u64::MAX);
        *counts.entry(below).or_default() += count;
    }
    counts.into_iter().collect()
}
