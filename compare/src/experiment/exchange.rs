//! The exchange's core: what a command costs, beside other order books; where a second core
//! helps; and its latency under load.
//!
//! Every run has a state of its own whose memory is warm: the whole stream went through it once,
//! and what rested was cancelled. Symbols, users and money are added before. Each run checks the
//! book that it leaves (and, where bytes go out, the bytes); another one ends the program.

mod cores;
mod engine;
mod flow;
mod goals;
mod large;
mod mixes;
mod paced;
mod peers;
mod service_time;
mod tails;
mod wire;

use super::{Experiment, Settings, progress_note};
use crate::report::Report;
use crate::runner::{Metric, Subject, Trial, interleave};
use engine::{Load, OfTrades, Part, RULES, TRADING_METRICS};
use flow::Flow;
use mixes::Resting;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "exchange",
    shows: "ns a command of the core, its slowest, other order books, a second core, latencies",
    run,
};

/// Repetitions, `[full, quick]`.
const REPETITIONS: [usize; 2] = [9, 3];
/// Streams of the reference's load generator.
const PAIR: &str = "perf_exchange_1m";
const MARGIN: &str = "perf_margin_1m";
/// Commands of our own streams, `[full, quick]`.
const COMMANDS: [usize; 2] = [500_000, 100_000];
/// Commands on large books.
const LARGE_COMMANDS: [usize; 2] = [200_000, 50_000];
/// Takers that sweep.
const SWEEPS: [usize; 2] = [10_000, 2_000];
/// Repetitions of cases that take long to prepare.
const LARGE_REPETITIONS: [usize; 2] = [7, 2];

fn repetitions(case: &str) -> [usize; 2] {
    let large = [
        "resting_1m",
        "levels_100k",
        "one_level_1m",
        "hostile_ids",
        "tails/",
        "service-1m/",
        "peers/",
    ];
    if large.iter().any(|large| case.contains(large)) {
        LARGE_REPETITIONS
    } else {
        REPETITIONS
    }
}

type Boxed<L> = Vec<Box<dyn Subject<L>>>;

/// A run of the whole experiment.
struct Session<'s> {
    settings: &'s Settings,
    report: Report,
    trials: Vec<Trial>,
}

impl Session<'_> {
    /// Runs one case, if any of its subjects is wanted and there is a load.
    fn case<L: Sync>(
        &mut self,
        (case, heading): (&str, &str),
        metrics: impl FnOnce(&L) -> &'static [Metric],
        subjects: &[Box<dyn Subject<L>>],
        load: impl FnOnce() -> Result<L, String>,
    ) -> Option<&Trial> {
        let wanted = self.settings.wanted(case, subjects);
        if wanted.is_empty() {
            return None;
        }
        let repetitions = self.settings.repetitions_or(repetitions(case));
        let runs = format!("{case}: {} subjects, {repetitions} runs", wanted.len());
        progress_note(&runs);
        let load = match load() {
            Ok(load) => load,
            Err(why) => {
                self.skip(case, &why);
                return None;
            }
        };
        let trial = interleave(case, metrics(&load), &wanted, &load, repetitions);
        self.report.figures(&format!("{case}: {heading}"), &trial);
        for (subject, why) in &trial.skipped {
            progress_note(&format!("{case}: {subject} SKIPPED: {why}"));
        }
        self.trials.push(trial);
        self.trials.last()
    }

    fn skip(&mut self, case: &str, why: &str) {
        let text = format!("{case}: SKIPPED: {why}");
        progress_note(&text);
        self.report.say(text);
    }

    fn count(&self, [full, quick]: [usize; 2]) -> usize {
        if self.settings.quick { quick } else { full }
    }

    /// A case of CPU time.
    fn core(
        &mut self,
        names: (&str, &str),
        parts: &[Part],
        flow: impl FnOnce() -> Result<Flow, String>,
    ) {
        let part = |part: &Part| -> Box<dyn Subject<Load>> { Box::new(*part) };
        let subjects: Boxed<Load> = parts.iter().map(part).collect();
        self.case(
            names,
            |load: &Load| load.metrics,
            &subjects,
            || Ok(Load::new(flow()?)),
        );
    }

    fn cores(&mut self) {
        let all = [Part::EACH[0], Part::Batches, Part::Matching];
        for (name, heading) in [
            (
                PAIR,
                "the reference's load generator, 71 % moves, 0.2 % of them trade",
            ),
            (MARGIN, "the same commands on a futures symbol"),
        ] {
            let case = format!("core/{name}");
            self.core((&case, heading), &Part::EACH, || Flow::shared(name));
        }
        self.trades();
        let commands = self.count(LARGE_COMMANDS);
        for (case, heading, shape) in [
            (
                "core/resting_1m",
                "1,000,000 resting orders of 100,000 users, 500 levels a side",
                Resting::plain(1_000_000, 100_000, 500),
            ),
            (
                "core/levels_100k",
                "200,000 orders on most of 100,000 levels a side",
                Resting::plain(200_000, 1_000, 100_000),
            ),
            (
                "core/one_level_1m",
                "1,000,000 orders on one level a side; moves send them to its end",
                Resting::plain(1_000_000, 1_000, 1),
            ),
        ] {
            self.core((case, heading), &all, || Ok(shape.flow(commands)));
        }
        for (name, ids) in mixes::IDS {
            let case = format!("core/hostile_ids/{name}");
            let shape = Resting {
                ids,
                ..Resting::plain(100_000, 1_000, 500)
            };
            let heading = "100,000 resting orders whose ids somebody chose";
            self.core((&case, heading), &all[..1], || Ok(shape.flow(commands)));
        }
        let subjects = service_time::subjects();
        let names = ("core/service_time", "one command, by the processor's clock");
        let load = || Ok(Load::new(Flow::shared(PAIR)?));
        self.case(names, |_: &Load| service_time::METRICS, &subjects, load);
    }

    /// What a trade costs: among other commands, and of takers alone.
    fn trades(&mut self) {
        let commands = self.count(COMMANDS);
        let heading = "45 % of the commands meet 1 to 50 makers, few of them many";
        self.core(("core/trading", heading), &Part::EACH, || {
            Ok(mixes::trading(commands))
        });
        let parts = [Part::EACH[0], Part::EACH[2], Part::Matching];
        let part = |part| -> Box<dyn Subject<Load>> { Box::new(OfTrades(part)) };
        let subjects: Boxed<Load> = parts.map(part).into();
        let heading = "the commands of core/trading that trade: their time over their trades";
        let load = || Ok(Load::new(mixes::trading(commands)));
        let metrics = |_: &Load| TRADING_METRICS;
        self.case(("core/trades", heading), metrics, &subjects, load);
        let sweeps = self.count(SWEEPS);
        let heading = "takers alone, each meets 1 to 50 makers, each number as often";
        self.core(("core/sweeps", heading), &Part::EACH[..4], || {
            Ok(mixes::sweeps(sweeps))
        });
    }

    fn peers(&mut self) {
        let commands = self.count([100_000, 50_000]);
        let mut subjects: Boxed<Load> = vec![
            Box::new(Part::All(RULES[0].0, RULES[0].1)),
            Box::new(Part::Matching),
        ];
        subjects.extend(peers::subjects());
        let placing = Resting {
            moves: 0,
            reduces: 0,
            ..Resting::plain(10_000, 1_000, 100)
        };
        let heading = "limit orders that rest, and cancels; peers match only";
        let load = || Ok(Load::new(placing.flow(commands)));
        let metrics = |load: &Load| load.metrics;
        self.case(("peers/place_cancel", heading), metrics, &subjects, load);
        let heading = "the stream of core/trading; peers match only";
        let load = || Ok(Load::new(mixes::trading(commands)));
        let ran = self
            .case(("peers/trading", heading), metrics, &subjects, load)
            .is_some();
        if ran
            || self
                .trials
                .iter()
                .any(|trial| trial.case.starts_with("peers/"))
        {
            self.report.say(WHAT_PEERS_LACK);
        }
    }

    fn second_core(&mut self) {
        let commands = self.count(COMMANDS);
        for bytes in [false, true] {
            let subjects = cores::subjects(bytes);
            let (what, heading) = match bytes {
                false => ("engine", "commands in, results out"),
                true => (
                    "bytes",
                    "parse, apply, market data, encode outcomes and messages",
                ),
            };
            for name in [PAIR, "trading"] {
                let case = format!("cores/{what}/{name}");
                let load = || {
                    let flow = match name {
                        PAIR => Flow::shared(name)?,
                        _ => mixes::trading(commands),
                    };
                    Ok(wire::Wire::new(Load::new(flow)))
                };
                let metrics = |_: &wire::Wire| cores::METRICS;
                if self
                    .case((&case, heading), metrics, &subjects, load)
                    .is_some()
                {
                    self.ratios_of_cores();
                }
            }
        }
    }

    /// Rows of every way on more threads over one.
    fn ratios_of_cores(&mut self) {
        let trial = self.trials.last().expect("a case has just run");
        for series in &trial.series {
            let sides = [series.subject.as_str(), cores::INLINE];
            if sides[0] != sides[1] {
                self.report.compare(trial, sides, 0);
            }
        }
    }

    fn open(&mut self) {
        let subjects = paced::subjects();
        let repetitions = self.settings.repetitions_or(paced::REPETITIONS);
        let span_ns = self.settings.span_ns_or(paced::SPAN_NS);
        let mut tables = paced::Tables::default();
        let mut load = None;
        for (rate, per_s) in paced::RATES {
            let case = format!("open/{rate}");
            let wants = |subject: &&paced::Served| {
                let name = Subject::<paced::Paced<'_>>::name(*subject);
                self.settings.cases.wants(&case, &name)
            };
            let wanted: Vec<&paced::Served> = subjects.iter().filter(wants).collect();
            if wanted.is_empty() {
                continue;
            }
            progress_note(&format!(
                "{case}: {} subjects, {repetitions} runs",
                wanted.len()
            ));
            let stream = || Flow::shared(PAIR).map(Load::new);
            let load = match load.get_or_insert_with(stream) {
                Ok(load) => load,
                Err(why) => {
                    let why = why.clone();
                    return self.skip("open", &why);
                }
            };
            let paced = paced::Paced {
                load,
                per_s,
                span_ns,
            };
            let dynamic: Vec<&dyn Subject<paced::Paced<'_>>> =
                wanted.iter().map(|served| *served as _).collect();
            let trial = interleave(&case, paced::METRICS, &dynamic, &paced, repetitions);
            self.report.rows(&trial);
            for (subject, why) in &trial.skipped {
                self.skip(&format!("{case}/{subject}"), why);
            }
            let keeps_up = tables.take(&mut self.report, rate, per_s, &trial, &subjects);
            self.trials.push(trial);
            if !keeps_up {
                break;
            }
        }
        tables.show(&mut self.report, repetitions, span_ns);
    }
}

const WHAT_PEERS_LACK: &str = "\
Peers: lobster 0.7 and orderbook-rs 0.15 match limit orders. Neither holds users' money, knows\n\
reserve prices, moves or reduces an order, or checks overflow. lobster returns fills in a new\n\
vector, and neither tells who owns the maker nor refuses an id that rests. orderbook-rs may be\n\
used from several threads at once, reads the clock, and keeps statistics and order states; it\n\
runs here with its defaults and no listener.";

fn run(settings: &Settings) -> Report {
    let mut session = Session {
        settings,
        report: Report::new(EXPERIMENT.name),
        trials: Vec::new(),
    };
    session.cores();
    session.tails();
    session.large();
    session.peers();
    session.second_core();
    session.open();
    let targets = goals::targets(&session.trials);
    session.report.targets(&targets, settings);
    session.report
}
