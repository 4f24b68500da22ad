//! `thalweg exchange sweep`.

use crate::arguments::values::{self, Format, Place, service_options};
use crate::failure::{Failure, Finding};
use crate::runner::{Pipelined, RunOutcome};
use crate::source::{self, Intended, Source, Taken};
use crate::stdin;
use crate::terminal::{Interruption, Notes};
use clap::Args;
use serde::Serialize;
use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::service::ServiceOptions;
use thalweg_measure::load::Rate;
use thalweg_measure::table::{Cell, Nanoseconds, Table};

const SWEEP_EXAMPLES: &str = "\
Examples:
  thalweg exchange sweep --rate 125k,1M,max
      The made-up flow, inline, with one thread more, and automatic
  thalweg exchange sweep orders.csv --placement inline,threads:2,auto --format json";

/// The options of `exchange sweep`.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) input: Intended,

    /// Rates, with commas between them: commands a second, like 125k or 1.5M, or max
    #[arg(long, default_value = "max", value_delimiter = ',')]
    pub(crate) rate: Vec<Rate>,

    /// Placements, with commas between them: inline, threads:1, threads:2, or auto
    #[arg(long, default_value = "inline,threads:1,auto")]
    #[arg(value_parser = values::place, value_delimiter = ',')]
    pub(crate) placement: Vec<Place>,

    /// Format of the table on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress and no hints on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The result of one run.
#[derive(Debug, Serialize)]
struct Row {
    placement: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_per_s: Option<u64>,
    throughput_per_s: f64,
    /// Whether the rate was reached.
    reached: bool,
    /// The percentiles are absent where there were too few commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_9_ns: Option<u64>,
    /// The latency of the slowest command.
    max_ns: u64,
    /// The mean end-to-end latency of all commands.
    mean_ns: f64,
    /// The sum of the means of its parts: waiting to be sent, waiting for execution and for
    /// publishing, and execution.
    parts_mean_ns: f64,
    /// The sum of the shares of the run in which each stage was busy: 2 means two cores.
    busy: f64,
}

/// Runs the same commands with every placement at every rate, one after another.
///
/// # Errors
/// Returns the errors of the input and of standard output, and an error if two runs end in
/// different states.
pub(crate) fn sweep(options: &Sweep) -> Result<Finding, Failure> {
    let notes = Notes::new(options.quiet);
    let services = options
        .placement
        .iter()
        .map(|place| service_options(*place));
    let services = services.collect::<Result<Vec<_>, _>>()?;
    let mut source = source::load(&options.input, Taken::Often, &notes)?;
    let signals = Interruption::new();
    let mut sweeping = Sweeping {
        planned: source.state_hash,
        source: &mut source,
        rows: Vec::new(),
        notes,
        signals: &signals,
    };
    for service in &services {
        sweeping.placement(service, &options.rate)?;
    }
    let rows = &sweeping.rows;
    match options.format {
        Format::Text => crate::output::print(table(rows).as_bytes())?,
        Format::Json => crate::output::print_json(rows)?,
    }
    if source.was_idle {
        stdin::still_idle()?;
    }
    match signals.has_come() {
        true => Ok(signals.finding()),
        false => Ok(Finding::Fine),
    }
}

/// The runs so far.
struct Sweeping<'s> {
    source: &'s mut Source,
    /// The hash of the state in which every run must end, once it is known.
    planned: Option<u64>,
    rows: Vec<Row>,
    notes: Notes,
    signals: &'s Interruption,
}

impl Sweeping<'_> {
    /// Runs all rates of a placement.
    fn placement(&mut self, service: &ServiceOptions, rates: &[Rate]) -> Result<(), Failure> {
        for &rate in rates {
            let Some(outcome) = self.run(service, rate)? else {
                return Ok(());
            };
            self.rows.push(row(&outcome, rate));
        }
        Ok(())
    }

    /// Makes one run. Returns `None` where it was stopped.
    fn run(&mut self, service: &ServiceOptions, rate: Rate) -> Result<Option<RunOutcome>, Failure> {
        if self.signals.has_come() {
            return Ok(None);
        }
        let runner = Pipelined::new(self.source.before.clone(), service.clone());
        let feed = &mut self.source.feed;
        let progress = self.notes.progress(feed.count(), "running");
        feed.rewind();
        let outcome = runner.run(feed, rate, &progress, &self.signals.stop)?;
        if !feed.is_all(outcome.sent) {
            return Ok(None);
        }
        let run = state_text_hash(&outcome.state).hash;
        let planned = *self.planned.get_or_insert(run);
        if planned != run {
            return Err(Failure::Nondeterminism { planned, run });
        }
        Ok(Some(outcome))
    }
}

fn row(outcome: &RunOutcome, rate: Rate) -> Row {
    let latency = &outcome.latency;
    let times = &latency.end_to_end;
    let [p50, _, p99, p99_9, _] = times.percentiles().map(|(_, _, ns)| ns);
    let busy = latency.stages.iter().filter_map(|stage| stage.utilisation);
    Row {
        placement: outcome.placement.clone(),
        rate_per_s: rate.per_s(),
        throughput_per_s: latency.throughput_per_s,
        reached: latency.rate_reached != Some(false),
        p50_ns: p50,
        p99_ns: p99,
        p99_9_ns: p99_9,
        max_ns: times.summary.max,
        mean_ns: times.summary.mean,
        parts_mean_ns: latency.stages_mean_ns(),
        busy: busy.sum(),
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new([
        "placement",
        "rate",
        "commands/s",
        "p50",
        "p99",
        "p99.9",
        "slowest",
        "mean",
        "parts",
        "busy",
        "note",
    ]);
    for row in rows {
        let asked = row.rate_per_s;
        let rate = asked.and_then(|per_s| Rate::per_second(per_s).ok());
        let rate = rate.unwrap_or(Rate::MAX).to_string();
        let reached = format!("{:.0}", row.throughput_per_s);
        let times = [row.p50_ns, row.p99_ns, row.p99_9_ns, Some(row.max_ns)];
        let times = times.map(|ns| ns.map_or(f64::NAN, |ns| ns as f64));
        let times = times.into_iter().chain([row.mean_ns, row.parts_mean_ns]);
        let mut cells = vec![row.placement.clone().into()];
        cells.extend([rate, reached].map(Cell::Number));
        cells.extend(times.map(|ns| Cell::from(Nanoseconds(ns))));
        cells.push(Cell::Number(format!("{:.0} %", row.busy * 100.0)));
        cells.push(["rate not reached", ""][usize::from(row.reached)].into());
        table.row(cells);
    }
    let mut text = table.to_string();
    if !rows.is_empty() {
        text += "mean: end to end of every command; parts: the means of its parts, added up;\n\
                 busy: stages at work, of one core\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_was_not_reached_is_reported() {
        let row = |reached, rate_per_s| Row {
            placement: "inline".to_owned(),
            rate_per_s,
            throughput_per_s: 900_000.4,
            reached,
            p50_ns: Some(158),
            p99_ns: Some(12_000),
            p99_9_ns: None,
            max_ns: 1_000_000,
            mean_ns: 251.5,
            parts_mean_ns: 248.0,
            busy: 0.6,
        };
        let text = table(&[row(true, None), row(false, Some(1_000_000))]);
        let lines: Vec<&str> = text.lines().collect();
        let cells: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(
            cells[..5],
            ["inline", "max", "900000", "158", "ns"],
            "{text}"
        );
        assert!(
            lines[2].ends_with("1.00 ms  252 ns  248 ns  60 %"),
            "{text}"
        );
        assert!(lines[3].contains(" 1M "), "{text}");
        assert!(lines[3].ends_with("60 %  rate not reached"), "{text}");
        assert!(lines[4].starts_with("mean: "), "{text}");
    }
}
