//! `thalweg exchange sweep`.

use crate::arguments::{Format, Sweep};
use crate::failure::{self, Failure, Finding};
use crate::limits::commands_min;
use crate::runner::{Outcome, Pipelined};
use crate::source::{self, Taken};
use crate::terminal::{Interruption, Notes};
use serde::Serialize;
use std::fmt::Write;
use thalweg_exchange::report::state_text::state_hash;
use thalweg_measure::load::Rate;
use thalweg_measure::table::Nanoseconds;

/// A rate counts as reached from this part of it on.
const REACHED: f64 = 0.95;

/// One run.
#[derive(Debug, Serialize)]
struct Row {
    placement: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_per_s: Option<u64>,
    throughput_per_s: f64,
    /// Whether the rate was reached.
    reached: bool,
    /// Percentiles are absent where the commands were too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_9_ns: Option<u64>,
    max_ns: u64,
}

/// Runs the same commands with every placement at every rate, one after another.
///
/// # Errors
/// Those of the input and of standard output; two runs that end in different states.
pub(crate) fn sweep(options: &Sweep) -> Result<Finding, Failure> {
    let notes = Notes::new(options.quiet);
    let services = options
        .placement
        .iter()
        .map(|place| options.shards.options(*place));
    let services = services.collect::<Result<Vec<_>, _>>()?;
    let mut source = source::load(&options.input, Taken::Often, &notes)?;
    let signals = Interruption::new();
    let mut rows = Vec::new();
    let mut planned = source.state_hash;
    for service in services {
        for rate in options.rate.iter().filter(|_| !signals.has_come()) {
            let runner = Pipelined::new(source.before.clone(), service.clone());
            let progress = notes.progress(source.feed.count(), "running");
            source.feed.rewind();
            let outcome = runner.run(&mut source.feed, *rate, &progress, &signals.stop)?;
            if !source.feed.is_all(outcome.sent) {
                break;
            }
            let run = state_hash(&outcome.state).hash;
            let planned = *planned.get_or_insert(run);
            if planned != run {
                return Err(Failure::Nondeterminism { planned, run });
            }
            rows.push(row(&outcome, *rate));
        }
    }
    match options.format {
        Format::Text => failure::print(table(&rows).as_bytes())?,
        Format::Json => failure::print_json(&rows)?,
    }
    match signals.has_come() {
        true => Ok(signals.finding()),
        false => Ok(Finding::Fine),
    }
}

fn row(outcome: &Outcome, rate: Rate) -> Row {
    let throughput_per_s = outcome.latency.throughput_per_s;
    let times = outcome.histograms[0].1.summary();
    let asked = rate.per_s();
    let judged = |name, ns| (times.count >= commands_min(name)).then_some(ns);
    Row {
        placement: outcome.placement.clone(),
        rate_per_s: asked,
        throughput_per_s,
        reached: asked.is_none_or(|asked| throughput_per_s >= asked as f64 * REACHED),
        p50_ns: judged("p50", times.p50),
        p99_ns: judged("p99", times.p99),
        p99_9_ns: judged("p99.9", times.p999),
        max_ns: times.max,
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<12} {:>8} {:>12} {:>9} {:>9} {:>9} {:>9}\n",
        "placement", "rate", "commands/s", "p50", "p99", "p99.9", "max"
    );
    for row in rows {
        let asked = row
            .rate_per_s
            .and_then(|per_s| Rate::per_second(per_s).ok());
        let rate = asked.unwrap_or(Rate::MAX).to_string();
        let [p50, p99, p999, max] = [row.p50_ns, row.p99_ns, row.p99_9_ns, Some(row.max_ns)]
            .map(|ns| ns.map_or("-".to_owned(), |ns| Nanoseconds(ns as f64).to_string()));
        let told = if row.reached {
            ""
        } else {
            "  rate not reached"
        };
        let (place, reached) = (&row.placement, row.throughput_per_s);
        let _ = writeln!(
            text,
            "{place:<12} {rate:>8} {reached:>12.0} {p50:>9} {p99:>9} {p999:>9} {max:>9}{told}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_was_not_reached_is_told() {
        let row = |reached, rate_per_s| Row {
            placement: "inline".to_owned(),
            rate_per_s,
            throughput_per_s: 900_000.4,
            reached,
            p50_ns: Some(158),
            p99_ns: Some(12_000),
            p99_9_ns: None,
            max_ns: 1_000_000,
        };
        let text = table(&[row(true, None), row(false, Some(1_000_000))]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("inline            max       900000    158 ns"),
            "{text}"
        );
        assert!(lines[1].ends_with("12.0 µs         -   1.00 ms"), "{text}");
        assert!(lines[2].contains(" 1M "), "{text}");
        assert!(lines[2].ends_with("1.00 ms  rate not reached"), "{text}");
    }
}
