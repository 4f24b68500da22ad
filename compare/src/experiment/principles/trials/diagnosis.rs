//! Fourth principle: its cases, claims and pictures.

use thalweg_measure::statistics::{Interval, median, median_interval};
use thalweg_measure::table::{Cell, Table};

use super::percent;
use crate::experiment::principles::course::Course;
use crate::experiment::principles::diagnosis::{self, Cause};
use crate::experiment::principles::judge::{ALONE, Judge, Seen, TOGETHER};
use crate::experiment::principles::page::Chart;
use crate::experiment::principles::place::Cores;
use crate::runner::{Series, Trial};

/// Repetitions, and spans of a run in ns, `[full, quick]`.
const DIAGNOSIS_REPETITIONS: [usize; 2] = [9, 2];
const DIAGNOSIS_NS: [u64; 2] = [150_000_000, 60_000_000];

pub(in crate::experiment::principles) fn diagnosis(course: &mut Course<'_>) {
    course.principle(
        "4. Diagnosis",
        "Measure before you mend: which metric tells what is wrong?",
    );
    let span_ns = course.settings.span_ns_or(DIAGNOSIS_NS);
    let load = |cores| diagnosis::Load { span_ns, cores };
    let case = ["diagnosis", "one program with a known fault"];
    let subjects = diagnosis::subjects();
    let both = course.both(
        case,
        diagnosis::METRICS,
        &subjects,
        load,
        DIAGNOSIS_REPETITIONS,
    );
    for (trial, cores) in both.iter().zip(Cores::EACH) {
        if let Some(trial) = trial {
            let (name, table) = (cores.name(), verdicts(trial));
            course
                .report
                .say(format!("What each metric says, and all together; {name}"));
            course.report.append(&table);
        }
    }
    for judge in ALONE.into_iter().chain([TOGETHER]) {
        let right = both.each_ref().map(|trial| right(trial.as_ref()?, judge));
        course.claim(
            format!("{} names the cause of all five", judge.0),
            1.0,
            right,
        );
    }
    course.conclude();
    for (trial, cores) in both.iter().zip(Cores::EACH) {
        let Some(trial) = trial else { continue };
        let row = |judge: Judge| Some((judge.0.to_owned(), 100.0 * right(trial, judge)?.value));
        let rows = ALONE
            .into_iter()
            .chain([TOGETHER])
            .filter_map(row)
            .collect();
        let show = percent;
        let title = format!("Programs whose cause is named rightly; {}", cores.name());
        course.figure(title, Chart::Bars { show, rows });
    }
}

/// The share of the programs of which a judge is right, repetition by repetition; `None` unless all
/// of them ran.
fn right(trial: &Trial, (_, judge): Judge) -> Option<Interval> {
    let all: Option<Vec<_>> = Cause::EACH
        .into_iter()
        .map(|cause| Some((cause, trial.of(cause.name())?)))
        .collect();
    let all = all?;
    let repetitions = all.iter().map(|(_, series)| series.runs.len()).min()?;
    let share = |at: usize| {
        let right = |(cause, series): &&(Cause, &Series)| {
            judge(&Seen::of(&series.runs[at].values)) == *cause
        };
        all.iter().filter(right).count() as f64 / all.len() as f64
    };
    let shares: Vec<f64> = (0..repetitions).map(share).collect();
    median_interval(&shares)
}

/// What each judge says of the medians of each program.
fn verdicts(trial: &Trial) -> Table {
    let [cpu, switches, occupancy, p99] = ALONE.map(|(name, _)| name);
    let mut table = Table::new(["what is wrong", cpu, switches, occupancy, p99, TOGETHER.0]);
    for cause in Cause::EACH {
        let Some(series) = trial.of(cause.name()) else {
            continue;
        };
        let of = |metric| median(&series.values(metric)).unwrap_or(f64::NAN);
        let medians: Vec<f64> = (0..diagnosis::METRICS.len()).map(of).collect();
        let seen = Seen::of(&medians);
        let says = |(_, judge): Judge| {
            let said = judge(&seen);
            let mark = if said == cause { "right" } else { "wrong" };
            format!("{mark}: {}", said.name())
        };
        let said = ALONE.into_iter().chain([TOGETHER]).map(says);
        let row = std::iter::once(cause.name().to_owned()).chain(said);
        table.row(row.map(Cell::from));
    }
    table
}
