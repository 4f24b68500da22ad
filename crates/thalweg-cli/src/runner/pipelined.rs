//! The runner that people get: the exchange service, its stages placed on threads as asked.

use super::measured::{Finished, distribution};
use super::tally::Tally;
use super::{Outcome, RunError, Runner, kind};
use crate::report::facts::{Batches, Latency, Slow, Stage};
use indicatif::ProgressBar;
use std::sync::{Arc, Mutex, PoisonError};
use thalweg::pipeline::{SlowEvent, Spent, StageStats, Stats};
use thalweg::wait::cores;
use thalweg_exchange::service::{Options, Service};
use thalweg_exchange::{Command, Rules, State, service};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Histogram, Recorder};
use thalweg_measure::load::{OpenLoop, Rate};

/// Up to here, every command is timed at every stage; beyond, one in [`SAMPLE_EVERY`].
const ALL_TIMED_COMMANDS_MAX: usize = 20_000;
/// One command in so many; timing each would cost 100 ns a command.
const SAMPLE_EVERY: u64 = 64;
/// How often the progress moves on.
const PROGRESS_COMMANDS: u64 = 8_192;

/// Runs risk, matching, settlement and publishing as a pipeline.
#[derive(Debug)]
pub(crate) struct Pipelined {
    rules: Rules,
    options: Options,
}

impl Pipelined {
    pub(crate) fn new(rules: Rules, options: Options) -> Pipelined {
        Pipelined { rules, options }
    }
}

/// What the publish stage sees of every command.
struct Published {
    clock: Clock,
    tally: Tally,
    /// From when a command was due to now, in ticks; of every command, not of samples.
    end_to_end: Recorder,
    finished: Finished,
    last_ticks: u64,
}

impl Published {
    #[inline]
    fn take(&mut self, outcome: &service::Outcome<'_>) {
        let now = self.clock.ticks();
        self.end_to_end.record(now.saturating_sub(outcome.tag));
        self.finished.at(outcome.sequence, now);
        self.last_ticks = now;
        self.tally.count(outcome.result, outcome.events);
    }
}

/// Lends `Published` to the publish stage, which gives it back when it ends.
struct Loan {
    published: Option<Published>,
    back: Arc<Mutex<Option<Published>>>,
}

impl Drop for Loan {
    fn drop(&mut self) {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = self.published.take();
    }
}

/// Sends every command at its time; gives how late each was handed over, and the first due time.
fn send(
    service: &mut Service,
    commands: &[Command],
    load: &mut OpenLoop<Clock>,
    clock: Clock,
    progress: &ProgressBar,
) -> Result<(Recorder, u64), RunError> {
    let late = Recorder::new();
    let mut begin = None;
    for (sent, command) in (1_u64..).zip(commands) {
        let due = load.next_due();
        begin.get_or_insert(due);
        late.record(load.wait_until(due).saturating_sub(due));
        service
            .submit(command, due)
            .map_err(|stopped| RunError(stopped.to_string()))?;
        if sent.is_multiple_of(PROGRESS_COMMANDS) {
            progress.set_position(sent);
        }
    }
    Ok((late, begin.unwrap_or_else(|| clock.ticks())))
}

impl Runner for Pipelined {
    fn run(
        self: Box<Self>,
        commands: &[Command],
        rate: Rate,
        progress: &ProgressBar,
    ) -> Result<Outcome, RunError> {
        let clock = Clock::global();
        let back = Arc::new(Mutex::new(None));
        let mut loan = Loan {
            published: Some(Published {
                clock,
                tally: Tally::default(),
                end_to_end: Recorder::new(),
                finished: Finished::new(commands.len() as u64),
                last_ticks: 0,
            }),
            back: Arc::clone(&back),
        };
        let all = commands.len() <= ALL_TIMED_COMMANDS_MAX;
        let options = Options {
            sample_every: if all { 1 } else { SAMPLE_EVERY },
            ..self.options
        };
        let placement = options.placement.to_string();
        let publish = move |outcome: service::Outcome<'_>| {
            if let Some(published) = &mut loan.published {
                published.take(&outcome);
            }
        };
        let mut service = Service::start(State::new(self.rules), options, publish)
            .map_err(|error| RunError(error.to_string()))?;
        // The sender spins between commands, unless the stages need its core.
        let shared = cores::usable().count() < 2;
        let mut load = OpenLoop::new(clock, rate).yielding(shared);
        let (late, begin) = send(&mut service, commands, &mut load, clock, progress)?;
        let finished = service
            .join()
            .map_err(|failure| RunError(failure.to_string()))?;
        progress.finish_and_clear();
        let published = back.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(published) = published else {
            return Err(RunError("the publish stage did not end".to_owned()));
        };
        let scheduled = rate != Rate::MAX;
        let late = scheduled.then(|| late.snapshot(|ticks| clock.ns(ticks)));
        let latency = latency(&published, &finished.stats, late, begin, commands);
        let (results, trades) = published.tally.finish();
        Ok(Outcome {
            state: finished.state,
            results,
            trades,
            latency,
            placement,
        })
    }
}

fn latency(
    published: &Published,
    stats: &Stats,
    late: Option<Histogram>,
    begin: u64,
    commands: &[Command],
) -> Latency {
    let clock = published.clock;
    let end = published.last_ticks.max(begin);
    let elapsed_ns = clock.ns(end - begin);
    let whole = published.end_to_end.snapshot(|ticks| clock.ns(ticks));
    // Only at a rate is there a moment from which a command waits to be sent.
    let sender = late.map(|late| Stage {
        name: "send".to_owned(),
        waited: Some(distribution(&late)),
        served: None,
        batches: None,
        utilisation: None,
    });
    Latency {
        elapsed_ns,
        throughput_per_s: commands.len() as f64 * 1e9 / elapsed_ns.max(1) as f64,
        throughput: published.finished.intervals(begin, end, clock),
        sampled_every: stats.sampled_every,
        end_to_end: distribution(&whole),
        stages: sender
            .into_iter()
            .chain(stats.stages.iter().map(stage))
            .collect(),
        slowest: stats
            .slowest
            .iter()
            .filter_map(|event| slow(event, commands))
            .collect(),
    }
}

fn stage(stats: &StageStats) -> Stage {
    let sizes = stats.batch_events.summary();
    Stage {
        name: stats.name.clone(),
        waited: Some(distribution(&stats.queueing_ns)),
        served: Some(distribution(&stats.service_ns)),
        batches: Some(Batches {
            count: sizes.count,
            mean: sizes.mean,
            p50: sizes.p50,
            p99: sizes.p99,
            max: sizes.max,
        }),
        utilisation: Some(stats.utilisation),
    }
}

fn slow(event: &SlowEvent, commands: &[Command]) -> Option<Slow> {
    let (stage, spent, stage_ns) = event.longest()?;
    Some(Slow {
        command: event.sequence + 1,
        kind: kind(commands.get(usize::try_from(event.sequence).ok()?)?).to_owned(),
        end_to_end_ns: event.end_to_end_ns,
        stage: stage.to_owned(),
        stage_ns,
        waiting: spent == Spent::Waiting,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow;
    use thalweg::pipeline::Placement;
    use thalweg_exchange::state_text::state_hash;
    use thalweg_exchange::{Events, apply};

    #[test]
    fn every_placement_gives_what_the_engine_gives() {
        let commands = flow::commands(3, 5_000);
        let (mut state, mut events, mut tally) =
            (State::default(), Events::new(), Tally::default());
        for command in &commands {
            let result = apply(&mut state, command, &mut events);
            tally.count(result, &events);
        }
        let expected = tally.finish();
        let placements = [
            Placement::inline(),
            Placement::auto(),
            Placement::threads(2),
        ];
        for placement in placements {
            for rate in [Rate::MAX, Rate::per_second(500_000).unwrap()] {
                let name = placement.to_string();
                let options = Options {
                    placement: placement.clone(),
                    ..Options::default()
                };
                let runner = Box::new(Pipelined::new(Rules::default(), options));
                let outcome = runner.run(&commands, rate, &ProgressBar::hidden()).unwrap();
                assert_eq!(state_hash(&outcome.state), state_hash(&state), "{name}");
                assert_eq!((outcome.results, outcome.trades), expected, "{name}");
                let latency = outcome.latency;
                assert_eq!(latency.end_to_end.count, 5_000, "{name}");
                let names: Vec<&str> = latency.stages.iter().map(|s| s.name.as_str()).collect();
                let stages = ["send", "risk", "match", "settle", "publish"];
                let from = usize::from(rate == Rate::MAX);
                assert_eq!(names, stages[from..], "{name}");
                assert!(!latency.slowest.is_empty(), "{name}");
            }
        }
    }
}
