//! What it costs that a pipeline knows where its time goes: the same pipeline with its sampling,
//! with every event stamped, and with practically none. And whether what it knows is true.

mod truth;

use thalweg::pipeline::{Builder, Pipeline, Placement, SAMPLE_EVERY_MAX, Stats};
use thalweg_measure::clock::Clock;
use thalweg_measure::statistics::median_interval;
use thalweg_measure::table::{Cell, Table};

use super::{Experiment, REPETITIONS, Settings};
use crate::report::{Report, small_ns};
use crate::runner::{Metric, Run, Subject, Trial, subject};
use crate::target::{Limit, Target};
use crate::workload::CAPACITY;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "attribution",
    shows: "what knowing where the time goes costs per event, and whether it is true",
    run,
};

/// Events published at a time, and what attribution may cost an event then, ns.
const BATCHES: [(usize, f64); 3] = [(1, 12.0), (16, 14.0), (64, 4.0)];
/// How far the sum of the stages' means may be from the end-to-end mean.
const PARTS_OFF_MAX: f64 = 0.005;

const COST: Metric = Metric::lower("cost", "ns/event");
const METRICS: &[Metric] = &[
    Metric::lower("time_per_event", "ns"),
    Metric::lower("parts_off", "fraction"),
];

/// How many events are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sampling {
    /// The library's own choice.
    Default,
    /// Every event.
    All,
    /// One in [`SAMPLE_EVERY_MAX`].
    None,
}

impl Sampling {
    const EACH: [Self; 3] = [Self::None, Self::Default, Self::All];

    fn name(self) -> &'static str {
        match self {
            Self::Default => "sampling default",
            Self::All => "sampling every event",
            Self::None => "sampling none",
        }
    }

    fn set<T: Send + Sync + 'static>(self, builder: Builder<T>) -> Builder<T> {
        match self {
            Self::Default => builder,
            Self::All => builder.sample_every(1),
            Self::None => builder.sample_every(SAMPLE_EVERY_MAX),
        }
    }
}

/// Publishes this many at a time for a span.
#[derive(Debug, Clone, Copy)]
struct Batches {
    events: usize,
    span_ns: u64,
}

/// Three stages that do next to nothing.
fn near_empty(load: &Batches, sampling: Sampling, placement: &Placement) -> Result<Run, String> {
    let builder = Pipeline::builder(CAPACITY, || 0_u64)
        .stage("first", |event, _| *event = event.wrapping_mul(3))
        .stage("second", |event, _| *event ^= 5)
        .after("first")
        .stage("third", |event, _| *event = event.wrapping_add(7))
        .after("second")
        .placement(placement.clone());
    let built = sampling.set(builder).build();
    let mut pipeline = built.map_err(|error| error.to_string())?;
    let clock = Clock::global();
    let begin = clock.ticks();
    let end = begin + clock.ticks_from_ns(load.span_ns);
    let mut sent: u64 = 0;
    let mut now = begin;
    while now < end {
        // Some thousand events between two looks at the clock.
        for _ in 0..CAPACITY / load.events {
            let published = if load.events == 1 {
                pipeline.publish(|event| *event = sent)
            } else {
                pipeline.publish_batch(load.events, |at, event| *event = sent + at as u64)
            };
            published.map_err(|stopped| stopped.to_string())?;
            sent += load.events as u64;
        }
        now = clock.ticks();
    }
    let took_ns = clock.ns(now.saturating_sub(begin));
    let stats = pipeline.join().map_err(|failure| failure.to_string())?;
    let passed = stats.stages.last().map_or(0, |stage| stage.events);
    Ok(
        Run::of(vec![took_ns as f64 / sent as f64, parts_off(&stats)])
            .with_lost(sent.abs_diff(passed)),
    )
}

fn subjects<const N: usize>(
    samplings: [Sampling; N],
    placement: Placement,
) -> [Box<dyn Subject<Batches>>; N] {
    samplings.map(|sampling| {
        let placement = placement.clone();
        subject(sampling.name(), move |load| {
            near_empty(load, sampling, &placement)
        })
    })
}

/// How far the sum of the mean wait to be sent and the stages' mean waits and services is from the
/// mean end-to-end time, as a fraction of that; 0 where nothing was sampled.
fn parts_off(stats: &Stats) -> f64 {
    let parts = stats.stages.iter();
    let sum: f64 = parts
        .map(|stage| stage.queueing_mean_ns + stage.service_mean_ns)
        .sum();
    off(sum + stats.unsent_mean_ns, stats.end_to_end_mean_ns)
}

fn off(sum: f64, whole: f64) -> f64 {
    if whole == 0.0 {
        sum.abs()
    } else {
        ((sum - whole) / whole).abs()
    }
}

fn run(settings: &Settings) -> Report {
    let mut report = Report::new(EXPERIMENT.name);
    report.say(format!(
        "3 near-empty stages inline; {} interleaved runs of {:.0} ms each; a clock read costs {}",
        settings.repetitions,
        settings.span_ns as f64 / 1e6,
        small_ns(Clock::global().read_cost_ns()),
    ));
    let subjects = subjects(Sampling::EACH, Placement::inline());
    let mut targets = Vec::new();
    for (events, limit_ns) in BATCHES {
        let case = format!("batch {events}");
        let span_ns = settings.span_ns;
        let load = Batches { events, span_ns };
        let trial = settings.trial(&case, METRICS, &subjects, &load, [REPETITIONS; 2]);
        let Some(trial) = trial else { continue };
        let costs = costs(&mut report, &trial);
        report.say(format!("In batches of {events}"));
        report.say(table(&trial));
        targets.push(Target::new(
            format!("{case}: cost of the default sampling per event"),
            Limit::AtMost(limit_ns),
            costs,
            small_ns,
        ));
        targets.push(parts_target(&case, &trial));
    }
    targets.extend(threaded(settings, &mut report));
    targets.extend(truth::run(settings, &mut report));
    report.targets(&targets, settings);
    report
}

/// The parts must add up where each stage has a thread of its own, too; what that costs does not
/// show beside the hand-overs.
fn threaded(settings: &Settings, report: &mut Report) -> Option<Target> {
    let case = "threads:3 batch 16";
    let subjects = subjects([Sampling::Default, Sampling::All], Placement::threads(3));
    let load = Batches {
        events: 16,
        span_ns: settings.span_ns,
    };
    let trial = settings.trial(case, METRICS, &subjects, &load, [REPETITIONS; 2])?;
    for series in &trial.series {
        report.measured(case, &series.subject, METRICS[1], &series.values(1));
    }
    Some(parts_target(case, &trial))
}

fn parts_target(case: &str, trial: &Trial) -> Target {
    Target::new(
        format!("{case}: sum of the stages' means off the end-to-end mean (worst run)"),
        Limit::AtMost(PARTS_OFF_MAX),
        worst_parts_off(trial),
        |fraction| format!("{:.3} %", 100.0 * fraction),
    )
}

/// What a sampling costs more than none, run by run.
fn differences(trial: &Trial, sampling: Sampling) -> Vec<f64> {
    let pairs = trial.pairs(sampling.name(), Sampling::None.name(), 0);
    pairs
        .into_iter()
        .map(|(with, without)| with - without)
        .collect()
}

/// Rows of the times and costs; gives the cost of the default sampling.
fn costs(report: &mut Report, trial: &Trial) -> Option<f64> {
    for series in &trial.series {
        report.measured(&trial.case, &series.subject, METRICS[0], &series.values(0));
    }
    for sampling in [Sampling::Default, Sampling::All] {
        let differences = differences(trial, sampling);
        if !differences.is_empty() {
            report.measured(&trial.case, sampling.name(), COST, &differences);
        }
    }
    let default = differences(trial, Sampling::Default);
    thalweg_measure::statistics::median(&default)
}

fn worst_parts_off(trial: &Trial) -> Option<f64> {
    let sampled = [Sampling::Default, Sampling::All];
    let series = sampled
        .iter()
        .filter_map(|sampling| trial.of(sampling.name()));
    series.flat_map(|series| series.values(1)).reduce(f64::max)
}

fn table(trial: &Trial) -> Table {
    let mut table = Table::new(["subject", "per event", "cost", "95 % interval", "parts off"]);
    for sampling in Sampling::EACH {
        let Some(series) = trial.of(sampling.name()) else {
            continue;
        };
        let time = series.spread(0, METRICS[0].better).median;
        let mut row = vec![sampling.name().into(), Cell::Number(small_ns(time))];
        if sampling != Sampling::None {
            let interval = median_interval(&differences(trial, sampling));
            let cost = interval.map(|cost| small_ns(cost.value));
            let bounds = interval.map(|cost| cost.bounds(small_ns));
            let off = 100.0 * series.values(1).into_iter().fold(0.0, f64::max);
            row.push(Cell::Number(cost.unwrap_or("-".into())));
            row.push(Cell::Number(bounds.unwrap_or("-".into())));
            row.push(Cell::Number(format!("{off:.3} %")));
        }
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Series;

    #[test]
    fn parts_are_off_by_a_fraction_of_the_whole() {
        assert_eq!(off(0.0, 0.0), 0.0);
        assert_eq!(off(99.0, 100.0), 0.01);
        assert_eq!(off(101.0, 100.0), 0.01);
        assert!(off(1.0, 0.0) > PARTS_OFF_MAX);
    }

    #[test]
    fn the_cost_is_the_median_of_the_differences_of_pairs() {
        let series = |sampling: Sampling, times: [f64; 3]| Series {
            subject: sampling.name().to_owned(),
            runs: times.map(|time| Run::of(vec![time, 0.002])).to_vec(),
        };
        let trial = Trial {
            case: "batch 1".to_owned(),
            metrics: METRICS,
            series: vec![
                series(Sampling::None, [10.0, 20.0, 30.0]),
                series(Sampling::Default, [15.0, 24.0, 33.0]),
            ],
            skipped: Vec::new(),
        };
        let mut report = Report::new("attribution");
        assert_eq!(costs(&mut report, &trial), Some(4.0));
        assert_eq!(worst_parts_off(&trial), Some(0.002));
        assert!(differences(&trial, Sampling::All).is_empty());
        let text = table(&trial).to_string();
        assert!(text.contains("4.0 ns"), "{text}");
    }

    #[test]
    fn near_empty_stages_pass_every_event_and_their_parts_add_up() {
        for sampling in Sampling::EACH {
            for events in [1, 16] {
                let span_ns = 200_000;
                let load = Batches { events, span_ns };
                let run = near_empty(&load, sampling, &Placement::inline()).unwrap();
                assert_eq!(run.lost, 0);
                assert!(run.values[0] > 0.0);
                assert!(
                    run.values[1] <= PARTS_OFF_MAX,
                    "{sampling:?}: {}",
                    run.values[1]
                );
            }
        }
    }
}
