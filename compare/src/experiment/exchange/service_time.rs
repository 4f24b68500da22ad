//! How long one command takes, command by command, by the processor's clock; beside the same
//! loop around nothing, which shows what the clock and the machine add.

use std::hint::black_box;

use thalweg_exchange::{Events, Rules, apply};
use thalweg_measure::clock::Clock;

use super::engine::Load;
use crate::experiment::channels::samples::Samples;
use crate::runner::{Metric, Run, Subject};

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("service_p50", "ns"),
    Metric::lower("service_p99", "ns"),
    Metric::lower("service_p999", "ns"),
];
pub(super) const P50: usize = 0;
pub(super) const P999: usize = 2;

/// What is between two reads of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// One command through all parts.
    Apply,
    /// Nothing.
    Empty,
}

impl Body {
    pub(super) const APPLY: &str = "thalweg all parts";
    pub(super) const EMPTY: &str = "an empty body";
}

impl Subject<Load> for Body {
    fn name(&self) -> String {
        match self {
            Self::Apply => Self::APPLY,
            Self::Empty => Self::EMPTY,
        }
        .to_owned()
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let flow = &load.flow;
        let mut state = flow.ready(Rules::MENDED);
        let mut events = Events::with_capacity(1024);
        let mut samples = Samples::with_room(flow.commands.len());
        let clock = Clock::global();
        for command in &flow.commands {
            let command = black_box(command);
            let begin = clock.ticks();
            if *self == Self::Apply {
                black_box(apply(&mut state, command, &mut events));
            }
            samples.take(clock.ticks().saturating_sub(begin));
        }
        if *self == Self::Apply {
            flow.assert_levels(&state, "the service time");
        }
        Ok(Run {
            values: samples.quantiles_ns([0.5, 0.99, 0.999]).to_vec(),
            disturbance: 0.0,
            lost: 0,
            cut: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    #[test]
    fn both_bodies_have_quantiles() {
        let load = Load::new(mixes::trading(2_000));
        for body in [Body::Apply, Body::Empty] {
            let values = body.run(&load).unwrap().values;
            assert!(values[0] > 0.0 && values[0] <= values[1] && values[1] <= values[2]);
        }
    }
}
