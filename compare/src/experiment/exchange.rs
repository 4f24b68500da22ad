//! The exchange's core: what a command costs, its slowest, and the engine in a loop beside the
//! service, in throughput and in latency.
//!
//! Every run has a state of its own whose memory is warm: the whole stream went through it once,
//! and what rested was cancelled. Symbols, users and money are added before. Each run checks the
//! book that it leaves (and, where bytes go out, the bytes); another one ends the program.

pub mod cores;
pub mod flow;
pub mod wire;

use std::hint::black_box;

use thalweg_exchange::{Events, Rules, State, apply, apply_batch, repeat_secrets};
use thalweg_measure::clock::Clock;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Run, Subjects, subject};
use crate::sender::{LATENCY, Load};
use crate::threads::thread_cpu_ns;
use flow::{Flow, MARGIN, PAIR, resting, rising, succeed, sweeps, trading};
use wire::Wire;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "exchange",
    shows: "ns a command of the core, its slowest; beside the service: throughput, latencies",
    peers: &[],
    notes: "",
    cases,
};

const CORE_METRICS: &[Metric] = &Metric::times(["cpu_per_command", "cpu_per_trade"]);
/// Each of a command, in the order of their cost.
const TAIL_METRICS: &[Metric] =
    &Metric::times(["slowest", "slowest_10th", "slowest_1000th", "mean"]);
const ALL: &str = "thalweg all parts";
const BATCHES: &str = "thalweg all parts, batches of 256";
const BATCH: usize = 256;

type Make = Box<dyn FnOnce() -> Result<Flow, String>>;

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = core(settings);
    cases.extend(tails(settings));
    let commands = settings.count(500_000);
    let most = settings.count(1_000_000);
    let decoded = "decode, apply, market data, encode outcomes and messages";
    for (what, heading) in [("engine", "commands in, results out"), ("bytes", decoded)] {
        for name in [PAIR, "trading"] {
            let load = move || {
                Ok(Wire::new(match name {
                    PAIR => Flow::shared(name, most)?,
                    _ => trading(commands),
                }))
            };
            let subjects = match what {
                "bytes" => cores::subjects::<true>(),
                _ => cores::subjects::<false>(),
            };
            let case = format!("cores/{what}/{name}");
            let case = Case::new(case, heading, cores::METRICS, subjects, load).repeated(9);
            let services = [cores::INLINE, cores::BESIDE];
            let services = services.map(|service| Goal::shown([cores::APPLY_BATCH, service], 0));
            // Commands a second.
            let bytes = (what == "bytes").then(|| Goal::at_least(cores::APPLY_BATCH, 0, 12e6));
            cases.push(case.goals(services).goals(bytes));
        }
    }
    let heading = "open loop, latency from the intended time until the result is published";
    let (per_s, span_ns) = (1_000_000, settings.count(150_000_000));
    let subjects = cores::paced(Load::Open { per_s, span_ns });
    let load = move || Flow::shared(PAIR, most.max(10_000));
    let open = Case::new("open/1M/s", heading, LATENCY, subjects, load);
    cases.push(open.goals([
        Goal::at_most(cores::INLINE, 0, 1e3),
        Goal::ratio([cores::INLINE, cores::APPLY], 0, 0.5),
    ]));
    cases
}

/// CPU time of the thread, warm.
fn core(settings: &Settings) -> Vec<Case> {
    let commands = settings.count(500_000);
    let large = settings.count(200_000);
    let orders = settings.count(1_000_000);
    let takers = settings.count(10_000);
    let most = settings.count(1_000_000);
    let case = |name, heading, metrics: usize, load: Make, limits: &[(&str, f64)]| {
        let case = Case::new(name, heading, &CORE_METRICS[..metrics], parts(), load);
        let goals = limits.iter();
        let goals = goals.map(|&(subject, most)| Goal::at_most(subject, metrics - 1, most));
        case.repeated(9).goals(goals)
    };
    vec![
        case(
            "core/perf_exchange_1m",
            "the reference's load generator, 71 % moves, 0.2 % of them trade",
            1,
            Box::new(move || Flow::shared(PAIR, most.max(10_000))),
            &[(ALL, 25.0), (BATCHES, 25.0)],
        ),
        case(
            "core/perf_margin_1m",
            "the same commands on a futures symbol",
            1,
            Box::new(move || Flow::shared(MARGIN, most)),
            &[(ALL, 32.0), (BATCHES, 32.0)],
        ),
        case(
            "core/trading",
            "45 % of the commands meet 1 to 50 makers, few of them many",
            1,
            Box::new(move || Ok(trading(commands))),
            &[],
        ),
        case(
            "core/sweeps",
            "takers alone, each meets 1 to 50 makers, each number as often",
            2,
            Box::new(move || Ok(sweeps(takers))),
            &[(ALL, 20.0)],
        ),
        case(
            "core/resting_1m",
            "1,000,000 resting orders of 100,000 users, 500 levels a side",
            1,
            Box::new(move || Ok(resting(orders, 100_000, 500, large))),
            &[(BATCHES, 70.0)],
        ),
    ]
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
            // Where only takers are timed.
            if flow.timed() < flow.commands.len() {
                values.push(cpu_ns / flow.trades as f64);
            }
            Ok(Run::of(values))
        })
    };
    vec![part(ALL, 1), part(BATCHES, BATCH)]
}

/// Makes the cases of the slowest single commands where a book grows, and where its window moves.
fn tails(settings: &Settings) -> Vec<Case> {
    let orders = settings.count(2_000_000);
    let jumps = settings.count(20);
    let case = |name, heading, load: Make| {
        let subjects = vec![subject(ALL, |flow| Ok(slowest(flow)))];
        Case::new(name, heading, TAIL_METRICS, subjects, load).repeated(7)
    };
    vec![
        case(
            "tails/growing",
            "2,000,000 orders come to rest on 500 levels a side",
            Box::new(move || {
                let mut flow = resting(orders, 1_000, 500, 0);
                flow.commands = std::mem::take(&mut flow.prefill);
                Ok(flow)
            }),
        ),
        case(
            "tails/window",
            "bids on 4,000 levels, then on 4,000 far above them, and so on",
            Box::new(move || Ok(rising(jumps))),
        ),
    ]
}

/// Executes the same commands on a new state several times, and takes for each command the least
/// time of all: what the machine adds now and then is gone, and what the command costs each time,
/// its page faults among it, stays.
fn slowest(flow: &Flow) -> Run {
    const EXECUTIONS: usize = 5;
    let clock = Clock::global();
    let mut least = vec![u64::MAX; flow.commands.len()];
    for _ in 0..EXECUTIONS {
        // Tables take the same secrets each time, so that nothing else differs.
        repeat_secrets(1);
        let mut state = State::new(Rules::MENDED);
        let mut events = Events::with_capacity(1024);
        for command in flow.setup.iter().chain(&flow.prefill) {
            succeed(&mut state, command, &mut events);
        }
        for (command, least) in flow.commands.iter().zip(&mut least) {
            let begin = clock.ticks();
            succeed(&mut state, black_box(command), &mut events);
            *least = clock.ticks().saturating_sub(begin).min(*least);
        }
    }
    least.sort_unstable_by(|one, other| other.cmp(one));
    let of = |rank: usize| clock.ns(least[(rank - 1).min(least.len() - 1)]) as f64;
    let mean = clock.ns(least.iter().sum()) as f64 / least.len() as f64;
    Run::of([of(1), of(10), of(1_000), mean])
}
