//! The engine's parts, alone and together: CPU time of the thread for each command.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use thalweg_exchange::{Command, Events, Rules, apply, apply_batch};
use thalweg_measure::clock::Clock;

use super::flow::{Flow, Tape};
use crate::runner::{Metric, Run, Subject};

pub(super) const METRICS: &[Metric] = &[Metric::lower("cpu_per_command", "ns")];
/// Where only commands that trade are timed.
pub(super) const SWEEPING_METRICS: &[Metric] = &[
    Metric::lower("cpu_per_command", "ns"),
    Metric::lower("cpu_per_trade", "ns"),
];
/// Of commands that trade among others that do not.
pub(super) const TRADING_METRICS: &[Metric] = &[Metric::lower("time_per_trade", "ns")];
pub(super) const PER_COMMAND: usize = 0;
pub(super) const PER_TRADE: usize = 1;

/// Both rule sets, and what marks the subjects that obey them.
pub(super) const RULES: [(&str, Rules); 2] = [
    ("", Rules::MENDED),
    (" (reference rules)", Rules::REFERENCE),
];

/// What is run.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) flow: Flow,
    /// Under mended rules.
    pub(super) tape: Tape,
    pub(super) metrics: &'static [Metric],
}

impl Load {
    pub(super) fn new(flow: Flow) -> Self {
        let tape = Tape::record(&flow, Rules::MENDED);
        let metrics = match &flow.blocks[..] {
            [] => METRICS,
            _ => SWEEPING_METRICS,
        };
        Self {
            flow,
            tape,
            metrics,
        }
    }

    /// A run's figures.
    pub(super) fn run(&self, cpu_ns: f64) -> Run {
        let per_command = cpu_ns / self.flow.timed() as f64;
        let mut values = vec![per_command];
        if self.metrics.len() > PER_TRADE {
            values.push(cpu_ns / self.tape.trades as f64);
        }
        Run::of(values)
    }
}

/// The calling thread's CPU time, ns.
pub(super) fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Which part of the engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Part {
    /// Risk, matching, settlement.
    All(&'static str, Rules),
    /// The same, [`BATCH`] commands at a time.
    Batches,
    /// Matching, told what risk said.
    Matching,
    /// Risk and settlement, told what matching did.
    RiskAndSettlement,
    /// None: the commands are looked at.
    Reading,
}

impl Part {
    pub(super) const MATCHING: &str = "thalweg matching alone";
    pub(super) const BATCHES: &str = "thalweg all parts, batches of 256";
    pub(super) const EACH: [Self; 6] = [
        Self::All(RULES[0].0, RULES[0].1),
        Self::Batches,
        Self::All(RULES[1].0, RULES[1].1),
        Self::Matching,
        Self::RiskAndSettlement,
        Self::Reading,
    ];

    pub(super) fn all_name(suffix: &str) -> String {
        format!("thalweg all parts{suffix}")
    }
}

impl Subject<Load> for Part {
    fn name(&self) -> String {
        match self {
            Self::All(suffix, _) => Self::all_name(suffix),
            Self::Batches => Self::BATCHES.to_owned(),
            Self::Matching => Self::MATCHING.to_owned(),
            Self::RiskAndSettlement => "thalweg risk and settlement alone".to_owned(),
            Self::Reading => "a loop that reads the commands".to_owned(),
        }
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let flow = &load.flow;
        let tape = &load.tape;
        let cpu_ns = match *self {
            Self::All(_, rules) => all_parts(flow, rules),
            Self::Batches => batches(flow),
            Self::Matching => matching(flow, tape),
            Self::RiskAndSettlement => risk_and_settlement(flow, tape),
            Self::Reading => reading(flow),
        };
        Ok(load.run(cpu_ns))
    }
}

fn all_parts(flow: &Flow, rules: Rules) -> f64 {
    let mut state = flow.ready(rules);
    let mut events = Events::with_capacity(1024);
    let took = flow.time(cpu_ns, |_, command| {
        black_box(apply(&mut state, command, &mut events));
    });
    flow.assert_levels(&state, "all parts");
    took
}

/// Commands of a batch.
const BATCH: usize = 256;

fn batches(flow: &Flow) -> f64 {
    let mut state = flow.ready(Rules::MENDED);
    let mut events = Events::with_capacity(1024);
    let took = flow.time_parts(cpu_ns, |_, commands| {
        for batch in commands.chunks(BATCH) {
            apply_batch(&mut state, batch, &mut events, |_, result, events| {
                black_box((result, events));
            });
        }
    });
    flow.assert_levels(&state, "batches");
    took
}

fn matching(flow: &Flow, tape: &Tape) -> f64 {
    let mut state = flow.ready(Rules::MENDED);
    let mut events = Events::with_capacity(1024);
    let took = flow.time(cpu_ns, |at, command| {
        let checked = tape.checked[at];
        black_box(state.matching.execute(command, checked, &mut events));
    });
    flow.assert_levels(&state, "matching alone");
    took
}

fn risk_and_settlement(flow: &Flow, tape: &Tape) -> f64 {
    let mut state = flow.ready(Rules::MENDED);
    let mut differ = 0_usize;
    let took = flow.time(cpu_ns, |at, command| {
        let risk = &mut state.risk;
        differ += usize::from(risk.check(command) != tape.checked[at]);
        risk.settle(command, tape.results[at], &tape.events[at]);
    });
    assert_eq!(differ, 0, "wrong result: checks of risk alone differ");
    took
}

fn reading(flow: &Flow) -> f64 {
    flow.time(cpu_ns, |_, command| {
        black_box((command.uid(), command.symbol()));
    })
}

/// The commands that trade, among the others, each timed by the processor's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfTrades(pub(super) Part);

impl Subject<Load> for OfTrades {
    fn name(&self) -> String {
        Subject::<Load>::name(&self.0)
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let (flow, tape) = (&load.flow, &load.tape);
        let mut events = Events::with_capacity(1024);
        let ns = match self.0 {
            Part::All(_, rules) => {
                let mut state = flow.ready(rules);
                let ns = per_trade(flow, tape, |_, command| {
                    black_box(apply(&mut state, command, &mut events));
                });
                flow.assert_levels(&state, "the trades");
                ns
            }
            Part::Matching => {
                let mut state = flow.ready(Rules::MENDED);
                per_trade(flow, tape, |at, command| {
                    let checked = tape.checked[at];
                    black_box(state.matching.execute(command, checked, &mut events));
                })
            }
            _ => return Err("runs no command by itself".to_owned()),
        };
        Ok(Run::of(vec![ns]))
    }
}

/// Time of the commands that trade over their trades, ns. Of each the clock's own cost is taken
/// off, and those that were interrupted are left out, with their trades.
fn per_trade(flow: &Flow, tape: &Tape, mut run: impl FnMut(usize, &Command)) -> f64 {
    const INTERRUPTED_NS: u64 = 20_000;
    let clock = Clock::global();
    let interrupted = clock.ticks_from_ns(INTERRUPTED_NS);
    let (mut ticks, mut commands, mut trades) = (0, 0_u64, 0);
    for (at, command) in flow.commands.iter().enumerate() {
        let met = tape.met[at];
        if met == 0 {
            run(at, command);
            continue;
        }
        let begin = clock.ticks();
        run(at, command);
        let took = clock.ticks().saturating_sub(begin);
        if took <= interrupted {
            ticks += took;
            commands += 1;
            trades += u64::from(met);
        }
    }
    (clock.ns(ticks) as f64 - commands as f64 * clock.read_cost_ns()) / trades as f64
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    #[test]
    fn every_part_runs_and_trades_count_where_only_they_are_timed() {
        let load = Load::new(mixes::sweeps(1_000));
        assert_eq!(load.metrics, SWEEPING_METRICS);
        for part in Part::EACH {
            let run = part.run(&load).unwrap();
            assert!(run.values.len() == 2 && run.values[0] > 0.0, "{part:?}");
        }
        assert_eq!(load.run(load.tape.trades as f64).values[PER_TRADE], 1.0);
        assert_eq!(load.run(1_000.0).values[PER_COMMAND], 1.0);
        let load = Load::new(mixes::Resting::plain(100, 10, 5).flow(500));
        assert_eq!(load.metrics, METRICS);
        assert_eq!(load.run(500.0).values, [1.0]);
    }

    #[test]
    fn trades_are_timed_among_other_commands() {
        let load = Load::new(mixes::trading(2_000));
        for part in [Part::EACH[0], Part::Matching] {
            let values = OfTrades(part).run(&load).unwrap().values;
            assert!(values[0] > 0.0, "{values:?}");
        }
        assert!(OfTrades(Part::Reading).run(&load).is_err());
    }
}
