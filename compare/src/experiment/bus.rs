//! The message bus beside others: what a publish costs, how long a message is under way, how many
//! pass; and what is lost of a burst.
//!
//! All have the same message of 24 bytes, room for as many, and the same loops around them; what
//! each does where there is no room is said in `bus/peers.rs`. A bus has one thing that none of the
//! peers has: it counts what it did, by publisher and priority.

mod admission;
mod broker;
mod flow;
mod overload;
mod peers;
mod publish;
mod stall;

use thalweg::bus::Priority;
use thalweg_measure::clock::Clock;
use thalweg_measure::statistics::median;
use thalweg_measure::table::{Cell, Table};

use super::channels::scoreboard::{middle, show_trial};
use super::{Experiment, Settings, progress_note};
use crate::channels::Shape;
use crate::report::{Report, small_ns};
use crate::runner::{Metric, Subject, Trial};
use crate::target::{Limit, Target};
use broker::{Broker, Ours};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "bus",
    shows: "the message bus beside bus, tokio, crossbeam and disruptor; loss of a burst, checked",
    run,
};

/// Repetitions, `[full, quick]`.
const REPETITIONS: [usize; 2] = [21, 3];
const BURST_REPETITIONS: [usize; 2] = [11, 2];
const OVERLOAD_REPETITIONS: [usize; 2] = [1, 1];
/// Spans of a run, ns, `[full, quick]`.
const PUBLISH_NS: [u64; 2] = [10_000_000, 2_000_000];
const HOP_NS: [u64; 2] = [40_000_000, 8_000_000];
const STREAM_NS: [u64; 2] = [25_000_000, 5_000_000];
const OVERLOAD_NS: [u64; 2] = [60_000_000_000, 1_000_000_000];
/// What a message of a stream is taken to cost, to say how many there are.
const MESSAGE_NS: u64 = 50;
/// Capacities that are published into: the default, and one that fits into a near cache.
const CAPACITIES: [usize; 2] = [65_536, 1_024];
/// Publishers and consumers of streams.
const SHAPES: [(&str, usize, usize); 3] = [("stream/1", 1, 1), ("stream/2", 2, 1), ("fan/2", 1, 2)];

/// Limits of what the issue of the bus promised, ns: a publish by one and by two, and a hop.
const PUBLISH_NS_MAX: [f64; 2] = [15.0, 20.0];
const HOP_P50_NS_MAX: f64 = 200.0;
/// What counts as flat.
const MEMORY_GROWN_BYTES_MAX: f64 = 1_048_576.0;

const TOLD: &str = "Told of mccc-bus on a machine like this, not measured: a publish of 30.9 ns \
                    into its queue for several producers, 23.2 into that for one; end to end p50 \
                    297 and p99 510 ns; 14.8 % of high priority lost of a burst of 300,000 into \
                    131,072 places, by percentages like the default ones.";

/// All cases of a run.
struct Course<'s> {
    settings: &'s Settings,
    report: Report,
    targets: Vec<Target>,
}

impl Course<'_> {
    /// Runs the wanted subjects of a case; `None` if there are none.
    fn case<L: Sync>(
        &mut self,
        [case, heading]: [&str; 2],
        (metrics, judged): (&'static [Metric], &[usize]),
        subjects: &[Box<dyn Subject<L>>],
        load: &L,
    ) -> Option<Trial> {
        let trial = self
            .settings
            .trial(case, metrics, subjects, load, REPETITIONS)?;
        let heading = format!("{case}: {heading}");
        show_trial(&mut self.report, &heading, &trial, judged);
        Some(trial)
    }

    /// A target for a figure of ours.
    fn at_most(&mut self, what: &str, trial: Option<&Trial>, metric: usize, limit: f64) {
        let series = trial.and_then(|trial| trial.of(Ours::NAME));
        let measured = series.map(|series| middle(series, metric));
        let target = Target::new(what, Limit::AtMost(limit), measured, small_ns);
        self.targets.push(target);
    }

    fn publishes(&mut self) {
        let span_ns = self.settings.span_ns_or(PUBLISH_NS);
        let [one_max, two_max] = PUBLISH_NS_MAX;
        for capacity in CAPACITIES {
            let load = publish::Load { capacity, span_ns };
            let case = format!("publish/1/{capacity}");
            let heading = "one publisher, bursts of a quarter of the room, drained between them";
            let metrics = (publish::METRICS, &[publish::CALL][..]);
            let trial = self.case([&case, heading], metrics, &publish::one(), &load);
            self.at_most(&case, trial.as_ref(), publish::CALL, one_max);
            let case = format!("publish/2/{capacity}");
            let heading = "two publishers on two cores at once; the crate bus has only one";
            let trial = self.case([&case, heading], metrics, &publish::two(), &load);
            for (what, metric) in [("a call", publish::CALL), ("a message", publish::MESSAGE)] {
                let what = format!("{case}, {what}");
                self.at_most(&what, trial.as_ref(), metric, two_max);
            }
        }
    }

    fn hops(&mut self) {
        let span_ns = self.settings.span_ns_or(HOP_NS);
        let heading = format!(
            "{} messages a second from one core to another, from before the publish until it is \
             taken; one clock read of {} taken off",
            flow::PER_S,
            small_ns(Clock::global().read_cost_ns())
        );
        let metrics = (flow::HOP_METRICS, &[0, 1][..]);
        let load = flow::Hops { span_ns };
        let trial = self.case(["hop", &heading], metrics, &flow::hops(), &load);
        self.at_most("hop p50", trial.as_ref(), 0, HOP_P50_NS_MAX);
    }

    fn streams(&mut self) {
        let messages = self.settings.span_ns_or(STREAM_NS) / MESSAGE_NS;
        for (case, senders, receivers) in SHAPES {
            let shape = Shape { senders, receivers };
            // After what warms up, some remain.
            let messages = messages.max(8 * flow::CAPACITY as u64);
            let load = flow::Flood { shape, messages };
            let heading = format!(
                "{senders} publishers, {receivers} consumers that each get all, room for {}; \
                 tokio overwrites what it has no room for: lost",
                flow::CAPACITY
            );
            let metrics = (flow::STREAM_METRICS, &[0][..]);
            self.case([case, &heading], metrics, &flow::streams(shape), &load);
        }
    }

    fn overload(&mut self) {
        let case = "overload";
        let span_ns = self.settings.span_ns_or(OVERLOAD_NS);
        let load = overload::Load { span_ns };
        let (metrics, subjects) = (overload::METRICS, overload::subjects());
        let trial = self
            .settings
            .trial(case, metrics, &subjects, &load, OVERLOAD_REPETITIONS);
        let Some(trial) = trial else { return };
        let heading = format!(
            "{case}: {} publishers bring {} messages a second each, the consumer takes {}; room \
             for {}",
            overload::PUBLISHERS,
            overload::SERVED_PER_S,
            overload::SERVED_PER_S,
            overload::CAPACITY
        );
        self.report.figures(&heading, &trial);
        let [of_bound, high_lost] = ["overload, longest wait of the bound", "overload, high lost"];
        for (subject, what, metric, limit) in [
            (overload::SLOWED, of_bound, overload::OF_BOUND, 1.0),
            (overload::SLOWED, high_lost, overload::HIGH_LOST, 0.0),
            (
                overload::SLOWED,
                "overload, memory grown",
                overload::GROWN,
                MEMORY_GROWN_BYTES_MAX,
            ),
            (
                overload::EXPRESS,
                "overload, express lane, high p99, ns",
                overload::HIGH_P99,
                overload::HIGH_WAITS_NS_MAX,
            ),
        ] {
            let measured = trial.of(subject).map(|series| middle(series, metric));
            let show = |value: f64| format!("{value:.2}");
            let target = Target::new(what, Limit::AtMost(limit), measured, show);
            self.targets.push(target);
        }
    }

    fn bursts(&mut self) {
        for (name, total) in stall::TOTALS {
            for rule in stall::Rule::EACH {
                let case = format!("burst/{name}");
                if self.settings.cases.wants(&case, rule.name()) {
                    self.burst(&case, total, rule);
                }
            }
        }
    }

    fn burst(&mut self, case: &str, total: u64, rule: stall::Rule) {
        let repetitions = self.settings.repetitions_or(BURST_REPETITIONS);
        progress_note(&format!("{case}/{}: {repetitions} runs", rule.name()));
        let mut outcomes = Vec::new();
        for seed in 0..repetitions as u64 {
            match stall::run(total, rule, seed) {
                Ok(outcome) => outcomes.push(outcome),
                Err(why) => self.report.fail(&format!("{case}/{}: {why}", rule.name())),
            }
        }
        let limits = rule.admission(total).limits(stall::CAPACITY);
        let limits = limits.unwrap_or_default();
        self.report.say(format!(
            "{case}: {}, limits {limits:?} of {}, {} publishers; {} of {repetitions} runs had \
             every message accounted for",
            rule.name(),
            stall::CAPACITY,
            stall::PUBLISHERS,
            outcomes.len()
        ));
        let mut table = Table::new(["priority", "issued", "admitted", "lost", "", "lost, runs"]);
        for priority in Priority::ALL {
            let at = priority.index();
            let lost: Vec<f64> = outcomes.iter().map(|one| one.lost[at] as f64).collect();
            let issued = outcomes.first().map_or(0, |one| one.issued[at]);
            let middle = median(&lost).unwrap_or(f64::NAN);
            let name = format!("{priority:?}").to_lowercase();
            let least = lost.iter().copied().fold(f64::INFINITY, f64::min);
            let most = lost.iter().copied().fold(0.0, f64::max);
            table.row([
                Cell::from(name.as_str()),
                issued.into(),
                Cell::Number(format!("{:.0}", issued as f64 - middle)),
                Cell::Number(format!("{middle:.0}")),
                Cell::Number(format!("{:.1} %", 100.0 * middle / issued as f64)),
                Cell::Number(format!("{least:.0}–{most:.0}")),
            ]);
            let metric = LOST[at];
            self.report.measured(case, rule.name(), metric, &lost);
        }
        self.report.append(&table);
    }
}

/// Of a burst, by priority.
const LOST: [Metric; Priority::COUNT] = [
    Metric::lower("lost_low", "messages"),
    Metric::lower("lost_medium", "messages"),
    Metric::lower("lost_high", "messages"),
    Metric::lower("lost_critical", "messages"),
];

fn run(settings: &Settings) -> Report {
    let mut course = Course {
        settings,
        report: Report::new(EXPERIMENT.name),
        targets: Vec::new(),
    };
    course.publishes();
    course.hops();
    course.streams();
    course.bursts();
    course.overload();
    course.report.say(TOLD);
    course.report.targets(&course.targets, settings);
    course.report
}
