//! The engine's parts, alone and together: CPU time of the thread for each command.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use thalweg_exchange::{Events, Rules, apply};

use super::flow::{Flow, Tape};
use crate::runner::{Metric, Run, Subject};

pub(super) const METRICS: &[Metric] = &[Metric::lower("cpu_per_command", "ns")];
/// Of streams that trade: the same time also over the trades, placing the makers included.
pub(super) const TRADING_METRICS: &[Metric] = &[
    Metric::lower("cpu_per_command", "ns"),
    Metric::lower("cpu_per_trade", "ns"),
];
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
    /// Under mended rules; or why the engine cannot run this flow.
    pub(super) tape: Result<Tape, String>,
    pub(super) metrics: &'static [Metric],
}

impl Load {
    pub(super) fn new(flow: Flow) -> Self {
        let tape = Tape::record(&flow, Rules::MENDED);
        let trades = tape
            .as_ref()
            .is_ok_and(|tape| tape.trading * 4 > flow.commands.len() as u64);
        let metrics = if trades { TRADING_METRICS } else { METRICS };
        Self {
            flow,
            tape,
            metrics,
        }
    }

    /// A run's figures.
    pub(super) fn run(&self, cpu_ns: f64) -> Run {
        let per_command = cpu_ns / self.flow.commands.len() as f64;
        let mut values = vec![per_command];
        if self.metrics.len() > PER_TRADE {
            let trades = self.tape.as_ref().map_or(0, |tape| tape.trades);
            values.push(cpu_ns / trades as f64);
        }
        Run {
            values,
            disturbance: 0.0,
            lost: 0,
            cut: false,
        }
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
    /// Matching, told what risk said.
    Matching,
    /// Risk and settlement, told what matching did.
    RiskAndSettlement,
    /// None: the commands are looked at.
    Reading,
}

impl Part {
    pub(super) const MATCHING: &str = "thalweg matching alone";
    pub(super) const EACH: [Self; 5] = [
        Self::All(RULES[0].0, RULES[0].1),
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
            Self::Matching => Self::MATCHING.to_owned(),
            Self::RiskAndSettlement => "thalweg risk and settlement alone".to_owned(),
            Self::Reading => "a loop that reads the commands".to_owned(),
        }
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let flow = &load.flow;
        let tape = load.tape.as_ref().map_err(String::clone)?;
        let cpu_ns = match *self {
            Self::All(_, rules) => all_parts(flow, rules)?,
            Self::Matching => matching(flow, tape)?,
            Self::RiskAndSettlement => risk_and_settlement(flow, tape)?,
            Self::Reading => reading(flow),
        };
        Ok(load.run(cpu_ns))
    }
}

fn all_parts(flow: &Flow, rules: Rules) -> Result<f64, String> {
    let mut state = flow.ready(rules)?;
    let mut events = Events::with_capacity(1024);
    let begin = cpu_ns();
    for command in &flow.commands {
        black_box(apply(&mut state, command, &mut events));
    }
    let took = cpu_ns() - begin;
    flow.assert_levels(&state, "all parts");
    Ok(took)
}

fn matching(flow: &Flow, tape: &Tape) -> Result<f64, String> {
    let mut state = flow.ready(Rules::MENDED)?;
    let mut events = Events::with_capacity(1024);
    let begin = cpu_ns();
    for (command, checked) in flow.commands.iter().zip(&tape.checked) {
        black_box(state.matching.execute(command, *checked, &mut events));
    }
    let took = cpu_ns() - begin;
    flow.assert_levels(&state, "matching alone");
    Ok(took)
}

fn risk_and_settlement(flow: &Flow, tape: &Tape) -> Result<f64, String> {
    let mut state = flow.ready(Rules::MENDED)?;
    let mut differ = 0_usize;
    let begin = cpu_ns();
    for (at, command) in flow.commands.iter().enumerate() {
        differ += usize::from(state.risk.check(command) != tape.checked[at]);
        state
            .risk
            .settle(command, tape.results[at], &tape.events[at]);
    }
    let took = cpu_ns() - begin;
    assert_eq!(differ, 0, "wrong result: checks of risk alone differ");
    Ok(took)
}

fn reading(flow: &Flow) -> f64 {
    let begin = cpu_ns();
    for command in &flow.commands {
        black_box((command.uid(), command.symbol()));
    }
    cpu_ns() - begin
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    #[test]
    fn every_part_runs_and_trades_count_where_there_are_some() {
        let load = Load::new(mixes::trading(1_000));
        assert_eq!(load.metrics, TRADING_METRICS);
        for part in Part::EACH {
            let run = part.run(&load).unwrap();
            assert!(run.values.len() == 2 && run.values[0] > 0.0, "{part:?}");
        }
        let trades = load.tape.as_ref().unwrap().trades as f64;
        assert_eq!(load.run(trades).values[PER_TRADE], 1.0);
        let load = Load::new(mixes::Resting::plain(100, 10, 5).flow(500));
        assert_eq!(load.metrics, METRICS);
        assert_eq!(load.run(500.0).values, [1.0]);
    }
}
