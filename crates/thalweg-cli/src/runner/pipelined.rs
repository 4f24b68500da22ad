//! The runner that people get: the exchange service, its stages placed on threads as asked.

use super::measured::{Finished, distribution};
use super::slowest::{Sent, Slowest};
use super::tally::Tally;
use super::{Outcome, RunError};
use crate::failure::Failure;
use crate::feed::Feed;
use crate::report::facts::{Batches, Latency, Stage};
use indicatif::ProgressBar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thalweg::pipeline::{StageStats, Stats};
use thalweg::wait::cores;
use thalweg_exchange::service::{Options, Service};
use thalweg_exchange::{State, service};
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
    state: State,
    options: Options,
}

impl Pipelined {
    /// Goes on from this state.
    pub(crate) fn new(state: State, options: Options) -> Pipelined {
        Pipelined { state, options }
    }
}

/// What the publish stage sees of every command.
struct Published {
    clock: Clock,
    tally: Tally,
    /// From when a command was due to now, in ticks; of every command, not of samples.
    end_to_end: Recorder,
    finished: Finished,
    slowest: Slowest,
    last_ticks: u64,
}

impl Published {
    #[inline]
    fn take(&mut self, outcome: &service::Outcome<'_>) {
        let now = self.clock.ticks();
        self.end_to_end.record(now.saturating_sub(outcome.tag));
        self.finished.at(outcome.sequence, now);
        let command = (outcome.sequence, outcome.command);
        self.slowest.note(command, outcome.tag, now);
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

/// Sends every command at its time; gives how late each was handed over, the first due time, and
/// how many were sent.
fn send(
    service: &mut Service,
    feed: &mut Feed,
    load: &mut OpenLoop<Clock>,
    (clock, times): (Clock, &Sent),
    (progress, stop): (&ProgressBar, &AtomicBool),
) -> Result<(Recorder, u64, u64), Failure> {
    let late = Recorder::new();
    let mut begin = None;
    let mut sent = 0;
    'feed: while let Some(commands) = feed.next(stop)? {
        for command in commands {
            // ORDERING: Relaxed, pairs with the signal's store; nothing else is read because of
            // it.
            if stop.load(Ordering::Relaxed) {
                break 'feed;
            }
            let due = load.next_due();
            begin.get_or_insert(due);
            let now = load.wait_until(due);
            late.record(now.saturating_sub(due));
            times.at(sent, now);
            service
                .submit(command, due)
                .map_err(|stopped| RunError(stopped.to_string()))?;
            sent += 1;
            if sent.is_multiple_of(PROGRESS_COMMANDS) {
                progress.set_position(sent);
            }
        }
    }
    Ok((late, begin.unwrap_or_else(|| clock.ticks()), sent))
}

impl Pipelined {
    /// Sends every command at its time, and waits until the last one is through. The progress
    /// counts commands. None is sent once `stop` is true.
    ///
    /// # Errors
    /// Those of the feed, threads that cannot be had, and a stage that fails.
    pub(crate) fn run(
        self,
        feed: &mut Feed,
        rate: Rate,
        progress: &ProgressBar,
        stop: &AtomicBool,
    ) -> Result<Outcome, Failure> {
        let clock = Clock::global();
        let times = Sent::new(self.options.capacity);
        let back = Arc::new(Mutex::new(None));
        let mut loan = Loan {
            published: Some(Published {
                clock,
                tally: Tally::default(),
                end_to_end: Recorder::new(),
                finished: Finished::new(),
                slowest: Slowest::new(times.clone()),
                last_ticks: 0,
            }),
            back: Arc::clone(&back),
        };
        let all = (feed.count()).is_some_and(|count| count <= ALL_TIMED_COMMANDS_MAX);
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
        let mut service = Service::start(self.state, options, publish)
            .map_err(|error| RunError(error.to_string()))?;
        // The sender spins between commands, unless the stages need its core.
        let shared = cores::usable().count() < 2;
        let mut load = OpenLoop::new(clock, rate).yielding(shared);
        let sent = send(
            &mut service,
            feed,
            &mut load,
            (clock, &times),
            (progress, stop),
        );
        let (late, begin, sent) = sent?;
        let finished = service
            .join()
            .map_err(|failure| RunError(failure.to_string()))?;
        progress.finish_and_clear();
        let published = back.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(published) = published else {
            return Err(RunError("the publish stage did not end".to_owned()).into());
        };
        let scheduled = rate != Rate::MAX;
        let late = scheduled.then(|| late.snapshot(|ticks| clock.ns(ticks)));
        let histograms = histograms(&published, &finished.stats, late.as_ref());
        let latency = latency(&published, &finished.stats, late, begin, sent);
        let (results, trades) = published.tally.finish();
        Ok(Outcome {
            state: finished.state,
            results,
            trades,
            latency,
            sent,
            histograms,
            placement,
        })
    }
}

fn histograms(
    published: &Published,
    stats: &Stats,
    late: Option<&Histogram>,
) -> Vec<(String, Histogram)> {
    let clock = published.clock;
    let end_to_end = published.end_to_end.snapshot(|ticks| clock.ns(ticks));
    let stages = stats.stages.iter().flat_map(|stage| {
        [
            ("waited", &stage.queueing_ns),
            ("served", &stage.service_ns),
        ]
        .map(|(what, times)| (format!("{}.{what}", stage.name), times.clone()))
    });
    let sender = late.map(|late| ("send.waited".to_owned(), late.clone()));
    [("end_to_end".to_owned(), end_to_end)]
        .into_iter()
        .chain(sender)
        .chain(stages)
        .collect()
}

fn latency(
    published: &Published,
    stats: &Stats,
    late: Option<Histogram>,
    begin: u64,
    sent: u64,
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
        throughput_per_s: sent as f64 * 1e9 / elapsed_ns.max(1) as f64,
        throughput: published.finished.intervals(begin, end, clock),
        sampled_every: stats.sampled_every,
        end_to_end: distribution(&whole),
        stages: sender
            .into_iter()
            .chain(stats.stages.iter().map(stage))
            .collect(),
        slowest: published.slowest.facts(clock, stats),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow;
    use thalweg::pipeline::Placement;
    use thalweg_exchange::report::state_text::state_hash;
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
                let runner = Pipelined::new(State::default(), options);
                let (hidden, stop) = (ProgressBar::hidden(), AtomicBool::new(false));
                let mut feed = Feed::of(commands.clone());
                let outcome = runner.run(&mut feed, rate, &hidden, &stop).unwrap();
                let (name_first, times) = &outcome.histograms[0];
                assert_eq!((&name_first[..], times.count()), ("end_to_end", 5_000));
                let (second, times) = &outcome.histograms[1];
                let is_late = second == "send.waited" && times.count() == 5_000;
                assert_eq!(is_late, rate != Rate::MAX, "{second}");
                assert_eq!(outcome.sent, 5_000);
                assert_eq!(state_hash(&outcome.state), state_hash(&state), "{name}");
                assert_eq!((outcome.results, outcome.trades), expected, "{name}");
                let latency = outcome.latency;
                assert_eq!(latency.end_to_end.count, 5_000, "{name}");
                let names: Vec<&str> = latency.stages.iter().map(|s| s.name.as_str()).collect();
                let stages = ["send", "risk", "match", "settle", "publish"];
                let from = usize::from(rate == Rate::MAX);
                assert_eq!(names, stages[from..], "{name}");
                assert_eq!(
                    latency.slowest[0].end_to_end_ns, latency.end_to_end.max_ns,
                    "{name}"
                );
                for slow in &latency.slowest {
                    let parts: u64 = slow.parts.iter().map(|part| part.ns).sum();
                    assert!(parts * 100 >= slow.end_to_end_ns * 95, "{name}: {slow:?}");
                }
            }
        }
    }
}
