//! Coroutines and their channels: what a message costs whose receiver waits for it as a coroutine.
//!
//! A message is a *pair*: it is sent, its receiver is resumed, takes it, and waits again. One
//! coroutine has a million of them, or 30,000 coroutines have 100 each, in the order in which they
//! were made or in another.

mod atomics;
mod bursts;
mod load;
mod peers;

use super::{Experiment, Settings, progress_note};
use crate::report::Report;
use crate::runner::{Metric, Subject, Trial, interleave};
use crate::target::Target;
use load::{Load, Order};

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
/// Coroutines where there are many.
const MANY: usize = 30_000;
/// Messages of each where they are peers', which take up to a hundred times as long.
const PEER_ROUNDS: u64 = 20;

/// What all cases of a run have in common.
struct Course<'s> {
    settings: &'s Settings,
    report: Report,
    repetitions: usize,
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
            repetitions: settings.repetitions_or(REPETITIONS),
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
        let wanted = self.settings.wanted(case, subjects);
        if wanted.is_empty() {
            return None;
        }
        let (count, repetitions) = (wanted.len(), self.repetitions);
        progress_note(&format!("{case}: {count} subjects, {repetitions} runs"));
        let trial = interleave(case, metrics, &wanted, load, repetitions);
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
}

fn run(settings: &Settings) -> Report {
    let mut course = Course::new(settings);
    let repetitions = course.repetitions;
    course.report.say(format!(
        "{repetitions} interleaved runs of each, on one thread unless another is named"
    ));
    let one = Load::new(1, course.messages, Order::Made);
    let case = ["peers/one", "one coroutine, one message after the other"];
    course.case(case, load::METRICS, &peers::subjects(), &one);
    for (order, name) in [(Order::Made, "in order"), (Order::Random, "random")] {
        let load = course.many(PEER_ROUNDS, order);
        let case = format!("peers/{name}");
        let heading = format!("{} coroutines, {} each", load.coroutines, load.rounds);
        course.case([&case, &heading], load::METRICS, &peers::subjects(), &load);
    }
    let bursts = bursts::Bursts((course.messages / bursts::BURST / 2).max(2));
    let heading = format!(
        "{} messages from another thread to {} tasks",
        bursts::BURST,
        bursts::TASKS
    );
    let case = ["burst", heading.as_str()];
    course.case(case, load::METRICS, &bursts::subjects(), &bursts);
    let times = atomics::Times(course.messages * 4);
    let case = ["atomics", "operations on a line that nobody else wants"];
    course.case(case, atomics::METRICS, &atomics::subjects(), &times);
    course.report.targets(&course.targets, settings);
    course.report
}
