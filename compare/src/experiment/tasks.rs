//! Coroutines and their channels: what a message costs whose receiver waits for it as a coroutine.
//!
//! A message is a *pair*: it is sent, its receiver is resumed, takes it, and waits again. One
//! coroutine has a million of them, or 30,000 coroutines have 100 each, in the order in which they
//! were made or in another.

mod atomics;
mod bursts;
mod goals;
mod load;
mod ours;
mod peers;

use thalweg_measure::statistics::median;

use super::{Experiment, Settings};
use crate::report::{Report, small_ns};
use crate::runner::{Metric, Subject, Trial};
use crate::target::{Limit, Target};
use load::{Load, METRICS, Order, TIME};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tasks",
    shows: "messages to coroutines on one thread, fibers, timers, and bursts from another thread",
    run,
};

/// Repetitions, `[full, quick]`.
const REPETITIONS: [usize; 2] = [21, 5];
/// What a run is meant to take if a message takes 8 ns, `[full, quick]`.
const SPAN_NS: [u64; 2] = [8_000_000, 800_000];
const MESSAGE_NS: u64 = 8;
/// Coroutines where there are many, and messages of each.
const MANY: usize = 30_000;
const MANY_ROUNDS: u64 = 100;
const ORDERS: [(Order, &str); 2] = [(Order::Made, "in order"), (Order::Random, "random")];
/// Messages of each where they are peers', which take up to a hundred times as long.
const PEER_ROUNDS: u64 = 20;

/// What all cases of a run have in common.
struct Course<'s> {
    settings: &'s Settings,
    report: Report,
    /// Messages of a run with one coroutine.
    messages: u64,
    targets: Vec<Target>,
}

impl<'s> Course<'s> {
    fn new(settings: &'s Settings) -> Self {
        let report = Report::new(EXPERIMENT.name);
        Self {
            settings,
            report,
            messages: (settings.span_ns_or(SPAN_NS) / MESSAGE_NS).max(1_000),
            targets: Vec::new(),
        }
    }

    /// Runs the wanted subjects of a case; `None` if there are none.
    fn case<L: Sync>(
        &mut self,
        [case, heading]: [&str; 2],
        metrics: &'static [Metric],
        subjects: &[Box<dyn Subject<L>>],
        load: &L,
    ) -> Option<Trial> {
        let trial = self
            .settings
            .trial(case, metrics, subjects, load, REPETITIONS)?;
        self.report.figures(&format!("{case}: {heading}"), &trial);
        Some(trial)
    }

    /// Many coroutines, with rounds in proportion.
    fn many(&self, rounds: u64, order: Order) -> Load {
        let full = SPAN_NS[0] / MESSAGE_NS;
        let coroutines = (MANY as u64 * self.messages / full).clamp(100, MANY as u64);
        let rounds = (rounds * self.messages / full).clamp(3, rounds);
        Load::new(coroutines as usize, rounds, order)
    }

    /// Targets for the time of a subject.
    fn at_most(&mut self, case: &str, trial: Option<&Trial>, limits: &[(&str, f64)]) {
        for &(subject, limit) in limits {
            let series = trial.and_then(|trial| trial.of(subject));
            let measured = series.and_then(|series| median(&series.values(TIME)));
            let what = format!("{case}: {subject}");
            let target = Target::new(what, Limit::AtMost(limit), measured, small_ns);
            self.targets.push(target);
        }
    }

    /// Targets for ratios of two subjects.
    fn at_least(&mut self, case: &str, trial: Option<&Trial>, limits: &[([&str; 2], f64)]) {
        for &(sides, limit) in limits {
            let ratio = trial.and_then(|trial| self.report.compare(trial, sides, TIME));
            let target = Target::ratio(case, sides, Limit::AtLeast(limit), ratio);
            self.targets.push(target);
        }
    }
}

fn run(settings: &Settings) -> Report {
    let mut course = Course::new(settings);
    let repetitions = settings.repetitions_or(REPETITIONS);
    course.report.say(format!(
        "{repetitions} interleaved runs of each, on one thread unless another is named"
    ));
    messages(&mut course);
    peers(&mut course);
    let tasks = Load::new(1, course.messages / 4, Order::Made);
    let case = ["ends", "a task from its beginning to its end"];
    let trial = course.case(case, METRICS, &ours::ends(), &tasks);
    course.at_most("ends", trial.as_ref(), &goals::ENDS);
    let few = Load::new(1, course.messages / 200, Order::Made);
    let case = [
        "panics",
        "a task that panics without the hook, and is reported",
    ];
    course.case(case, METRICS, &ours::panics(), &few);
    let heading = format!(
        "begun and given up, or not needed, {} under way",
        ours::PENDING
    );
    let trial = course.case(["timers", &heading], METRICS, &ours::timers(), &tasks);
    course.at_most("timers", trial.as_ref(), &goals::TIMERS);
    let (burst, tasks) = (bursts::BURST, bursts::TASKS);
    let heading = format!("{burst} messages from another thread to {tasks} tasks");
    let load = bursts::Bursts((course.messages / burst / 2).max(2));
    let trial = course.case(["burst", &heading], METRICS, &bursts::subjects(), &load);
    course.at_least("burst", trial.as_ref(), &goals::BURST);
    let times = atomics::Times(course.messages * 4);
    let case = ["atomics", "operations on a line that nobody else wants"];
    course.case(case, METRICS, &atomics::subjects(), &times);
    course.targets.extend(goals::instructions());
    course.report.targets(&course.targets, settings);
    course.report
}

/// One coroutine, and many.
fn messages(course: &mut Course<'_>) {
    let one = Load::new(1, course.messages, Order::Made);
    let case = ["one", "one coroutine, one message after the other"];
    let trial = course.case(case, METRICS, &ours::receivers(), &one);
    course.at_most("one", trial.as_ref(), &goals::ONE);
    for (order, name) in ORDERS {
        let load = course.many(MANY_ROUNDS, order);
        let case = format!("many/{name}");
        let heading = format!("{} coroutines, {} each", load.coroutines, load.rounds);
        let trial = course.case([&case, &heading], METRICS, &ours::receivers(), &load);
        if order == Order::Made {
            course.at_most(&case, trial.as_ref(), &goals::MANY);
        }
    }
}

/// The same for others' channels, beside one of ours.
fn peers(course: &mut Course<'_>) {
    let mut subjects = ours::beside_peers();
    subjects.extend(peers::subjects());
    let one = Load::new(1, course.messages, Order::Made);
    let case = ["peers/one", "one coroutine, one message after the other"];
    let trial = course.case(case, METRICS, &subjects, &one);
    let limits = goals::PEERS.map(|(peer, limit)| (peers::by_hand_name(peer), limit));
    for (peer, limit) in &limits {
        course.at_least(
            "peers/one",
            trial.as_ref(),
            &[([ours::LOCAL, peer], *limit)],
        );
    }
    for (order, name) in ORDERS {
        let load = course.many(PEER_ROUNDS, order);
        let case = format!("peers/{name}");
        let heading = format!("{} coroutines, {} each", load.coroutines, load.rounds);
        course.case([&case, &heading], METRICS, &subjects, &load);
    }
}
