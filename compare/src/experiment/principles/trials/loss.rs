//! Third principle: its cases, claims and pictures.

use thalweg_measure::statistics::{Interval, median_interval};

use super::percent;
use crate::experiment::principles::course::{Course, bars, middle};
use crate::experiment::principles::formula::Burst;
use crate::experiment::principles::loss;
use crate::experiment::principles::page::{Chart, Scale};
use crate::experiment::principles::place::Cores;
use crate::report::ns;
use crate::runner::Trial;

/// Repetitions, and spans of a run in ns, `[full, quick]`.
const LOSS_REPETITIONS: [usize; 2] = [9, 2];
const OVERLOAD_NS: [u64; 2] = [100_000_000, 100_000_000];
const BATCHES_NS: [u64; 2] = [40_000_000, 20_000_000];

pub(in crate::experiment::principles) fn loss(course: &mut Course<'_>) {
    course.principle(
        "3. Loss",
        "Size a queue by its burst, and balance the rates: no queue mends an overload.",
    );
    let heading = "10,000 messages at 5 M/s, a consumer of 1 M/s that is away for 0.2 ms first";
    burst(course, ["loss/burst", heading], loss::BURST);
    let heading = "10,000 messages at 10 M/s, a consumer that is away for all of it";
    burst(course, ["loss/stopped", heading], loss::STOPPED);
    overload(course);
    batches(course);
    course.conclude();
}

/// The share that was delivered, 0 to 1.
fn delivered(trial: Option<&Trial>, subject: &str) -> Option<Interval> {
    let values = trial?.of(subject)?.values(loss::DELIVERED);
    let shares: Vec<f64> = values.iter().map(|percent| percent / 100.0).collect();
    median_interval(&shares)
}

fn burst(course: &mut Course<'_>, case: [&str; 2], burst: Burst) {
    let subjects = loss::burst_subjects(burst);
    let load = |cores| loss::Load::burst(burst, cores);
    let both = course.both(case, loss::METRICS, &subjects, load, LOSS_REPETITIONS);
    let names: Vec<String> = subjects.iter().map(|subject| subject.name()).collect();
    let of = |name: &str| both.each_ref().map(|trial| delivered(trial.as_ref(), name));
    let (name, slots) = (case[0], burst.slots());
    let (few, many) = (of(&names[0]), of(&names[names.len() - 1]));
    course.claim(
        format!("{name}: the rule by means (0 slots) delivers all"),
        1.0,
        few,
    );
    course.claim(
        format!("{name}: the formula ({slots} slots) delivers all"),
        1.0,
        many,
    );
    let model = 100.0 * burst.lost_share(4_096);
    let four = of(&names[2]);
    let what = format!("{name}: 4,096 slots deliver all (the model: {model:.0} % lost)");
    course.claim(what, 1.0, four);
    if both.iter().all(Option::is_none) {
        return;
    }
    let by_mean = burst.slots_by_mean(loss::PERIOD_NS);
    let stable = if burst.is_stable(loss::PERIOD_NS) {
        "is"
    } else {
        "is not"
    };
    course.report.say(format!(
        "{name}: once a second that {stable} stable (B ≤ C·T). The rule by means asks for \
         {by_mean} slots, the formula for {slots}; in virtual time 4,096 slots lose {model:.0} %."
    ));
    let mut curves = vec![curve_of("in virtual time", &burst, |slots, _| {
        Some(100.0 * burst.lost_share(slots))
    })];
    for (trial, cores) in both.iter().zip(Cores::EACH) {
        let lost = |_, at: usize| middle(trial.as_ref(), &names[at], loss::LOST);
        curves.push(curve_of(cores.name(), &burst, lost));
    }
    let [by_mean, few, four, _, formula] = loss::tried(&burst);
    let ticks = [by_mean, few, four, formula].map(|slots| (slots as f64, slots.to_string()));
    let chart = Chart::Lines {
        axis: "slots of the queue",
        ticks: ticks.into(),
        scale: Scale::Percent,
        curves,
    };
    course.figure(format!("Lost of a burst: {}", case[1]), chart);
}

fn curve_of(
    name: &str,
    burst: &Burst,
    lost: impl Fn(u64, usize) -> Option<f64>,
) -> (String, Vec<(f64, f64)>) {
    let tried = loss::tried(burst).into_iter().enumerate();
    let points = tried.filter_map(|(at, slots)| Some((slots as f64, lost(slots, at)?)));
    (name.to_owned(), points.collect())
}

fn overload(course: &mut Course<'_>) {
    let span_ns = course.settings.span_ns_or(OVERLOAD_NS);
    let load = |cores| loss::Load::overload(span_ns, cores);
    let case = [
        "loss/overload",
        "P = 2C without end; losses of the last third",
    ];
    let subjects = loss::overload_subjects();
    let both = course.both(case, loss::METRICS, &subjects, load, LOSS_REPETITIONS);
    let [small, .., large] = loss::OVERLOAD_SLOTS.map(|slots| loss::slots_name(slots as u64));
    let found = course.ratios(&both, [&large, &small], loss::LOST);
    course.claim(
        format!("P = 2C: {large} lose a tenth less than {small}"),
        1.1,
        found,
    );
    let found = course.ratios(&both, [&large, &small], loss::P50);
    course.claim(
        format!("P = 2C: {large} are as quick as {small}"),
        1.0,
        found,
    );
    for (trial, cores) in both.iter().zip(Cores::EACH) {
        if let Some(trial) = trial {
            let title = format!(
                "P = 2C: latency of what is delivered, median; {}",
                cores.name()
            );
            course.figure(title, bars(trial, loss::P50, ns));
        }
    }
}

fn batches(course: &mut Course<'_>) {
    let span_ns = course.settings.span_ns_or(BATCHES_NS);
    let load = |cores| loss::Load::batches(span_ns, cores);
    let heading = "1.1 M/s into 1,024 slots; a batch costs 1 µs, and each of its messages 0.4";
    let case = ["loss/batches", heading];
    let both = course.both(
        case,
        loss::METRICS,
        &loss::batch_subjects(),
        load,
        LOSS_REPETITIONS,
    );
    let [one, _, some, _, most] = loss::BATCHES.map(loss::batch_name);
    let found = course.ratios(&both, [&some, &one], loss::DELIVERED);
    course.claim(
        "batches: 16 at once deliver more than one by one",
        1.0,
        found,
    );
    let found = course.ratios(&both, [&most, &some], loss::DELIVERED);
    course.claim("batches: 256 at once deliver no less than 16", 1.0, found);
    for (trial, cores) in both.iter().zip(Cores::EACH) {
        if let Some(trial) = trial {
            let title = format!("Lost, by what the consumer takes at once; {}", cores.name());
            course.figure(title, bars(trial, loss::LOST, percent));
        }
    }
}
