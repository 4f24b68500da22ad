//! The exchange's core: what a command costs, and the engine in a loop beside the service.
//!
//! Every run has a state of its own whose memory is warm: the whole stream went through it once,
//! and the orders that rested were cancelled. Symbols, users and money are added before. Each run
//! checks the book that it leaves (and, where bytes go out, the bytes); a wrong one ends the
//! program.

pub mod cores;
pub mod flow;
pub mod wire;

use std::hint::black_box;

use thalweg_exchange::{Events, apply, apply_batch};

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Run, Subjects, subject};
use crate::threads::thread_cpu_ns;
use flow::{Flow, MARGIN, PAIR, resting, sweeps, trading};
use wire::Wire;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "exchange",
    shows: "ns a command of the core; the engine in a loop beside the service",
    peers: &[],
    notes: "",
    cases,
};

const CORE_METRICS: &[Metric] = &Metric::times(["cpu_per_command", "cpu_per_trade"]);
const ALL: &str = "thalweg all parts";
const BATCHES: &str = "thalweg all parts, batches of 256";
const BATCH: usize = 256;

/// The processor time of the thread, warm: each flow with its heading, and with the limits of its
/// last metric, one command at a time and in batches.
const CORE: [(&str, &str, [Option<f64>; 2]); 5] = [
    (
        PAIR,
        "the reference's load generator, 71 % moves, 0.2 % of them trade",
        [Some(25.0); 2],
    ),
    (
        MARGIN,
        "the same commands on a futures symbol",
        [Some(32.0); 2],
    ),
    (
        "trading",
        "45 % of the commands meet 1 to 50 makers, few of them many",
        [None; 2],
    ),
    (
        SWEEPS,
        "takers alone, each meets 1 to 50 makers, each number as often",
        [Some(20.0), None],
    ),
    (
        "resting_1m",
        "1,000,000 resting orders of 100,000 users, 500 levels a side",
        [None, Some(70.0)],
    ),
];
/// Only the takers of this flow are timed.
const SWEEPS: &str = "sweeps";

/// Makes the flow of a case.
fn flow(name: &str, settings: &Settings) -> Result<Flow, String> {
    let count = |full| settings.count(full);
    Ok(match name {
        PAIR => Flow::shared(PAIR, count(1_000_000).max(10_000))?,
        MARGIN => Flow::shared(MARGIN, count(1_000_000))?,
        "trading" => trading(count(500_000)),
        SWEEPS => sweeps(count(10_000)),
        _ => resting(count(1_000_000), 100_000, 500, count(200_000)),
    })
}

fn cases(settings: &Settings) -> Vec<Case> {
    let load = |name: &'static str| {
        let settings = settings.clone();
        move || flow(name, &settings)
    };
    let core = CORE.map(|(name, heading, limits)| {
        let metrics = if name == SWEEPS { 2 } else { 1 };
        let case = format!("core/{name}");
        let case = Case::new(case, heading, &CORE_METRICS[..metrics], parts(), load(name));
        let goals = [ALL, BATCHES].into_iter().zip(limits);
        let goals = goals.filter_map(|(subject, most)| {
            most.map(|most| Goal::at_most(subject, metrics - 1, most))
        });
        case.repeated(9).goals(goals)
    });
    let mut cases: Vec<Case> = core.into();
    let decoded = "decode, apply, market data, encode answers and messages";
    for (what, heading) in [("engine", "commands in, results out"), ("bytes", decoded)] {
        let is_bytes = what == "bytes";
        for name in [PAIR, "trading"] {
            let subjects = match is_bytes {
                true => cores::subjects::<true>(),
                false => cores::subjects::<false>(),
            };
            let flow = load(name);
            let wire = move || flow().map(Wire::new);
            let case = format!("cores/{what}/{name}");
            let case = Case::new(case, heading, cores::METRICS, subjects, wire).repeated(9);
            let services = [cores::INLINE, cores::BESIDE];
            let services = services.map(|service| Goal::shown([cores::APPLY_BATCH, service], 0));
            // The limit is of commands a second.
            let bytes = is_bytes.then(|| Goal::at_least(cores::APPLY_BATCH, 0, 12e6));
            cases.push(case.goals(services).goals(bytes));
        }
    }
    cases
}

fn parts() -> Subjects<Flow> {
    let part = |name, batch: usize| {
        subject(name, move |flow: &Flow| {
            let mut state = flow.ready(|_, _, _| ());
            let mut events = Events::with_capacity(1024);
            let cpu_ns = flow.time(thread_cpu_ns, |commands| match batch {
                1 => commands.iter().for_each(|command| {
                    black_box(apply(&mut state, command, &mut events));
                }),
                _ => commands.chunks(batch).for_each(|commands| {
                    apply_batch(&mut state, commands, &mut events, |_, result, events| {
                        black_box((result, events));
                    });
                }),
            });
            flow.assert_levels(&state, name);
            let mut values = vec![cpu_ns / flow.timed() as f64];
            if flow.timed() < flow.commands.len() {
                values.push(cpu_ns / flow.trades as f64);
            }
            Ok(Run::of(values))
        })
    };
    vec![part(ALL, 1), part(BATCHES, BATCH)]
}
