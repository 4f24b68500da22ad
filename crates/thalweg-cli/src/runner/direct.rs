//! The simplest runner: one thread, one command after the other, no queue between the stages.
//!
//! Four clock reads a command, 8–20 ns each, are part of what it measures.

use super::measured::{Finished, Slowest, distribution};
use super::tally::Tally;
use super::{Outcome, Runner, kind};
use crate::report::facts::{Latency, Stage};
use indicatif::ProgressBar;
use thalweg_exchange::{Command, Events, Rules, State};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Recorder;
use thalweg_measure::load::{OpenLoop, Rate};

const STAGES: [&str; 3] = ["risk", "match", "settle"];
/// How often the progress moves on.
const PROGRESS_COMMANDS: u64 = 8_192;

/// Runs risk, matching and settlement on the calling thread.
#[derive(Debug)]
pub(crate) struct Direct {
    rules: Rules,
}

impl Direct {
    pub(crate) fn new(rules: Rules) -> Direct {
        Direct { rules }
    }
}

/// The measurements of a run, in ticks.
struct Times {
    clock: Clock,
    waited: Recorder,
    served: [Recorder; STAGES.len()],
    end_to_end: Recorder,
    finished: Finished,
    /// Parts: waiting for the first stage, then the service of each.
    slowest: Slowest<{ STAGES.len() + 1 }>,
}

impl Times {
    fn new(clock: Clock, commands: u64) -> Times {
        Times {
            clock,
            waited: Recorder::new(),
            served: STAGES.map(|_| Recorder::new()),
            end_to_end: Recorder::new(),
            finished: Finished::new(commands),
            slowest: Slowest::new(),
        }
    }

    /// Command `i` was due, then entered each stage, then was through.
    #[inline]
    fn record(&mut self, i: u64, due: u64, stamps: [u64; STAGES.len() + 1]) {
        let waited = stamps[0].saturating_sub(due);
        let mut parts = [waited; STAGES.len() + 1];
        self.waited.record(waited);
        for (stage, recorder) in self.served.iter().enumerate() {
            let served = stamps[stage + 1].saturating_sub(stamps[stage]);
            recorder.record(served);
            parts[stage + 1] = served;
        }
        let total = stamps[STAGES.len()].saturating_sub(due);
        self.end_to_end.record(total);
        self.slowest.offer(i, total, parts);
        self.finished.at(i, stamps[STAGES.len()]);
    }

    fn latency(self, begin: u64, scheduled: bool, commands: &[Command]) -> Latency {
        let clock = self.clock;
        let end = clock.ticks();
        let elapsed = end.saturating_sub(begin);
        let facts = |recorder: &Recorder| distribution(&recorder.snapshot(|t| clock.ns(t)));
        let stage = |(i, name): (usize, &&str)| Stage {
            name: (*name).to_owned(),
            // Only at a rate is there a moment to wait from, and only before the first stage.
            waited: (scheduled && i == 0).then(|| facts(&self.waited)),
            served: Some(facts(&self.served[i])),
            batches: None,
            utilisation: Some(self.served[i].sum() as f64 / elapsed.max(1) as f64),
        };
        let elapsed_ns = clock.ns(elapsed);
        let parts = [
            ("risk", true),
            ("risk", false),
            ("match", false),
            ("settle", false),
        ];
        Latency {
            elapsed_ns,
            throughput_per_s: commands.len() as f64 * 1e9 / elapsed_ns.max(1) as f64,
            throughput: self.finished.intervals(begin, end, clock),
            end_to_end: facts(&self.end_to_end),
            stages: STAGES.iter().enumerate().map(stage).collect(),
            slowest: self
                .slowest
                .finish(clock, parts, |i| kind(&commands[i as usize])),
        }
    }
}

impl Runner for Direct {
    fn run(self: Box<Self>, commands: &[Command], rate: Rate, progress: &ProgressBar) -> Outcome {
        let clock = Clock::global();
        let scheduled = rate != Rate::MAX;
        let mut load = OpenLoop::new(clock, rate);
        let mut state = State::new(self.rules);
        let mut events = Events::with_capacity(256);
        let mut tally = Tally::default();
        let mut times = Times::new(clock, commands.len() as u64);
        let begin = clock.ticks();
        for (i, command) in (0_u64..).zip(commands) {
            let due = load.next_due();
            let entered = if scheduled { load.wait_until(due) } else { due };
            let checked = state.risk.check(command);
            let risk_done = clock.ticks();
            let result = state.matching.execute(command, checked, &mut events);
            let match_done = clock.ticks();
            state.risk.settle(command, result, &events);
            times.record(i, due, [entered, risk_done, match_done, clock.ticks()]);
            tally.count(result, &events);
            if (i + 1).is_multiple_of(PROGRESS_COMMANDS) {
                progress.set_position(i + 1);
            }
        }
        let latency = times.latency(begin, scheduled, commands);
        progress.finish_and_clear();
        let (results, trades) = tally.finish();
        Outcome {
            state,
            results,
            trades,
            latency,
            placement: "inline".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow;
    use thalweg_exchange::apply;
    use thalweg_exchange::state_text::state_hash;

    #[test]
    fn the_outcome_is_that_of_the_engine() {
        let commands = flow::commands(3, 5_000);
        let (mut state, mut events, mut tally) =
            (State::default(), Events::new(), Tally::default());
        for command in &commands {
            let result = apply(&mut state, command, &mut events);
            tally.count(result, &events);
        }
        for rate in [Rate::MAX, Rate::per_second(1_000_000).unwrap()] {
            let runner = Box::new(Direct::new(Rules::default()));
            let outcome = runner.run(&commands, rate, &ProgressBar::hidden());
            assert_eq!(state_hash(&outcome.state), state_hash(&state));
            assert_eq!(outcome.results.values().sum::<u64>(), 5_000);
            let latency = outcome.latency;
            assert_eq!(latency.end_to_end.count, 5_000);
            assert_eq!(latency.stages[0].waited.is_some(), rate != Rate::MAX);
            assert!(latency.stages.iter().all(|s| s.served.is_some()));
            assert!(!latency.slowest.is_empty());
        }
        assert!(tally.finish().1.count > 0);
    }
}
