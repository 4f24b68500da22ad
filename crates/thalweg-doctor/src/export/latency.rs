//! Reads the latencies of messages.

use super::file::{self, Exported};
use super::load::plain;
use crate::evidence::{Evidence, Quality};
use crate::recording::Latency;
use std::cmp::Reverse;

/// The maximum number of lines in a chart.
const LATENCIES_MAX: usize = 12;

/// A table of the figures, with their positions in [`Latency::at_ns`].
const METRICS: [(&str, usize); 3] = [
    ("export.latency_p50", 0),
    ("export.latency_p99", 2),
    ("export.latency_max", 5),
];

fn latency(name: String, times: &file::Latency) -> Option<Latency> {
    // A stage that never waits has no line.
    (times.count > 0 && times.max_ns > 0).then_some(Latency {
        name,
        count: times.count,
        at_ns: [
            times.p50_ns,
            times.p90_ns,
            times.p99_ns,
            times.p999_ns,
            times.p9999_ns,
            times.max_ns,
        ],
    })
}

/// Returns the latencies that a program measured itself; otherwise those of all pipelines, the one
/// with the most messages first, and of their stages.
#[must_use]
pub fn latencies(exported: &[Exported]) -> Vec<Latency> {
    let own = exported.iter().flat_map(|it| &it.latencies);
    let mut found: Vec<Latency> = own
        .filter_map(|own| {
            let name = own.name.replace('_', " ").replace('.', ", ");
            latency(plain(&name), &own.times)
        })
        .collect();
    if found.is_empty() {
        found = of_pipelines(exported);
    }
    found.truncate(LATENCIES_MAX);
    found
}

fn of_pipelines(exported: &[Exported]) -> Vec<Latency> {
    let timed = exported.iter().filter(|it| it.end_to_end.count > 0);
    let mut pipelines: Vec<&Exported> = timed.collect();
    pipelines.sort_by_key(|it| Reverse(it.published));
    let mut found = Vec::new();
    for pipeline in &pipelines {
        let of = |part: &str| match pipelines.len() {
            1 => part.to_owned(),
            _ => format!(
                "pipeline {} (PID {}), {part}",
                pipeline.number, pipeline.process
            ),
        };
        found.extend(latency(of("end to end"), &pipeline.end_to_end));
        for stage in &pipeline.stages {
            let name = plain(&stage.name);
            let parts = [("waited", &stage.queueing), ("served", &stage.service)];
            let parts = parts.into_iter();
            let of_part = |(what, times)| latency(of(&format!("{name}, {what}")), times);
            found.extend(parts.filter_map(of_part));
        }
    }
    found
}

/// Adds the figures of the first latencies to the evidence, after the figures of queues.
pub fn fill_latency(evidence: &mut Evidence, latencies: &[Latency]) {
    let queues = evidence.reading("export.arrival");
    let why = match queues.filter(|reading| reading.value.is_none()) {
        Some(reading) => reading.source.clone(),
        None => "the program exports no times of messages".to_owned(),
    };
    for (name, at) in METRICS {
        match latencies.first() {
            Some(first) => {
                let source = format!("{}, {} messages", first.name, first.count);
                evidence.put(name, first.at_ns[at] as f64 / 1e3, Quality::Sampled, source);
            }
            None => evidence.lack(name, why.as_str()),
        }
    }
}
