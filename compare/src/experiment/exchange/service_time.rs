//! How long one command takes, command by command, by the processor's clock; beside the same
//! loop around nothing, which shows what the clock and the machine add.

use std::hint::black_box;

use thalweg_exchange::{Events, Rules, apply};
use thalweg_measure::clock::Clock;

use super::engine::Load;
use crate::experiment::channels::samples::Samples;
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("service_p50", "ns"),
    Metric::lower("service_p99", "ns"),
    Metric::lower("service_p999", "ns"),
];
pub(super) const P50: usize = 0;
pub(super) const P999: usize = 2;

pub(super) const APPLY: &str = "thalweg all parts";
pub(super) const EMPTY: &str = "an empty body";

/// Between two reads of the clock there is one command through all parts, or nothing.
fn run(load: &Load, applies: bool) -> Run {
    let flow = &load.flow;
    let mut state = flow.ready(Rules::MENDED);
    let mut events = Events::with_capacity(1024);
    let mut samples = Samples::with_room(flow.commands.len());
    let clock = Clock::global();
    for command in &flow.commands {
        let command = black_box(command);
        let begin = clock.ticks();
        if applies {
            black_box(apply(&mut state, command, &mut events));
        }
        samples.take(clock.ticks().saturating_sub(begin));
    }
    if applies {
        flow.assert_levels(&state, "the service time");
    }
    Run::of(samples.quantiles_ns([0.5, 0.99, 0.999]).to_vec())
}

pub(super) fn subjects() -> [Box<dyn Subject<Load>>; 2] {
    [
        subject(APPLY, |load| Ok(run(load, true))),
        subject(EMPTY, |load| Ok(run(load, false))),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    #[test]
    fn both_bodies_have_quantiles() {
        let load = Load::new(mixes::trading(2_000));
        for body in subjects() {
            let values = body.run(&load).unwrap().values;
            assert!(values[0] > 0.0 && values[0] <= values[1] && values[1] <= values[2]);
        }
    }
}
