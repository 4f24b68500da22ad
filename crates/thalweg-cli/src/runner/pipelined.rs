//! The runner that the commands use: the exchange service, with its stages on the requested
//! threads.

use crate::failure::{Failure, RunError};
use crate::feed::Feed;
use crate::report::facts::{Disturbance, HandOver, Latency, Stage, is_reached};
use crate::report::machine::Watch;
use crate::runner::command_trace::{CommandTrace, Moments, Slowest};
use crate::runner::journaled::{Engine, Launch};
use crate::runner::timeline::Timeline;
use crate::runner::{RunOutcome, Tally, Timed, distribution};
use indicatif::ProgressBar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thalweg::pipeline::Stats;
use thalweg::wait::cores;
use thalweg_exchange::Command;
use thalweg_exchange::service::{self, LEFT_OVER_TAG, ServiceOptions};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Histogram, Recorder};
use thalweg_measure::load::{OpenLoop, Rate};

/// The number of commands that waited for a slot and are remembered.
const BLOCKED: usize = 256;
/// The number of commands after which the progress bar moves.
const PROGRESS_COMMANDS: u64 = 8_192;

/// Runs execution and publishing as a pipeline.
#[derive(Debug)]
pub(crate) struct Pipelined<L> {
    from: L,
    options: ServiceOptions,
}

impl<L> Pipelined<L> {
    /// Creates a runner that continues from a state, or from an exchange with a journal.
    pub(crate) fn new(from: L, options: ServiceOptions) -> Pipelined<L> {
        Pipelined { from, options }
    }
}

/// The measurements that the publish stage makes of every command.
struct Published {
    clock: Clock,
    tally: Tally,
    /// The time from when a command was due until now, in ticks, of every command, not of samples.
    end_to_end: Recorder,
    /// The end-to-end times of the first commands.
    warm_up: Recorder,
    warm_up_commands: u64,
    timeline: Timeline,
    trace: CommandTrace,
    slowest: Slowest,
    last_ticks: u64,
    /// Commands that were not sent: they were executed for what others left over.
    further: u64,
}

impl Published {
    fn new(clock: Clock, capacity: usize) -> Published {
        Published {
            clock,
            tally: Tally::default(),
            end_to_end: Recorder::new(),
            warm_up: Recorder::new(),
            // These commands use every slot for the first time.
            warm_up_commands: capacity.next_power_of_two() as u64,
            timeline: Timeline::new(clock),
            trace: CommandTrace::new(),
            slowest: Slowest::new(),
            last_ticks: 0,
            further: 0,
        }
    }

    #[inline]
    fn take(&mut self, outcome: &service::Outcome<'_>) {
        let now = self.clock.ticks();
        if outcome.tag == LEFT_OVER_TAG {
            self.further += 1;
            self.last_ticks = now;
            return self.tally.count_trades(outcome.events);
        }
        let sequence = outcome.sequence - self.further;
        let took = now.saturating_sub(outcome.due);
        self.end_to_end.record(took);
        if sequence < self.warm_up_commands {
            self.warm_up.record(took);
        }
        self.timeline.note(outcome.due, now);
        let moments = Moments {
            due: outcome.due,
            // The tag is the time at which the command was handed over.
            sent: outcome.tag,
            stamps: outcome.stamps.copied(),
            done: now,
        };
        self.trace.note(&moments);
        let command = (sequence, outcome.command);
        self.slowest.note(command, moments);
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

/// The measurements that the sender makes of a run.
struct Sending {
    /// The time by which each command was handed over late.
    late: Recorder,
    /// The time at which the first command was due.
    begin: u64,
    count: u64,
    /// For a run at the maximum rate, the commands that waited longest for a slot.
    blocked: Slowest,
}

/// Sends every command at its time. `is_blocked` means that all of the time for handing over is
/// spent waiting for a slot.
fn send(
    service: &mut impl Engine,
    feed: &mut Feed,
    load: &mut OpenLoop<Clock>,
    (clock, is_paced, is_blocked): (Clock, bool, bool),
    (progress, stop): (&ProgressBar, &AtomicBool),
) -> Result<Sending, Failure> {
    let late = Recorder::new();
    let mut begin = None;
    let mut sent = 0;
    let mut blocked = Slowest::of(BLOCKED);
    'feed: while let Some(commands) = feed.next(stop)? {
        // The time that the feed takes to read does not count as waiting for a slot.
        let mut before: Option<(u64, &Command, u64)> = None;
        for command in commands {
            // ORDERING: Relaxed, pairs with the signal's store; nothing else is read because of
            // it.
            if stop.load(Ordering::Relaxed) {
                break 'feed;
            }
            let due = load.next_due();
            begin.get_or_insert(due);
            // At the maximum rate, a command is due when the one before has its slot.
            if let Some((sequence, command, sent)) = before {
                let (due, done) = (sent, due);
                let moments = Moments {
                    due,
                    sent,
                    done,
                    ..Moments::default()
                };
                blocked.note((sequence, command), moments);
            }
            // At the maximum rate, a command is due now.
            let mut now = due;
            if is_paced {
                now = load.wait_until(due);
                late.record(now.saturating_sub(due));
            }
            before = is_blocked.then_some((sent, command, now));
            service.submit_due(command, due, now)?;
            sent += 1;
            if sent.is_multiple_of(PROGRESS_COMMANDS) {
                progress.set_position(sent);
            }
        }
    }
    Ok(Sending {
        late,
        begin: begin.unwrap_or_else(|| clock.ticks()),
        count: sent,
        blocked,
    })
}

impl<L: Launch> Pipelined<L> {
    /// Sends every command at its time, and waits until the last one has finished. The progress
    /// counts commands. No command is sent once `stop` is true.
    ///
    /// # Errors
    /// Returns the errors of the feed, and an error if threads cannot be started or a stage fails.
    pub(crate) fn run(
        self,
        feed: &mut Feed,
        rate: Rate,
        progress: &ProgressBar,
        stop: &AtomicBool,
    ) -> Result<RunOutcome, Failure> {
        let clock = Clock::global();
        let placement = self.options.placement.to_string();
        let is_auto = placement == "auto";
        let back = Arc::new(Mutex::new(None));
        let mut loan = Loan {
            published: Some(Published::new(clock, self.options.capacity)),
            back: Arc::clone(&back),
        };
        let mut watch = Watch::begin();
        let options = ServiceOptions {
            is_timed: true,
            ..self.options
        };
        let publish = move |outcome: service::Outcome<'_>| {
            if let Some(published) = &mut loan.published {
                published.take(&outcome);
            }
        };
        let mut service = self.from.start(options, publish)?;
        // The sender spins between commands, unless the stages need its core.
        let shared = cores::usable().count() < 2;
        let mut load = OpenLoop::new(clock, rate).yielding(shared);
        // No stage runs on the sender's thread, and the sender waits for no due time.
        let is_blocked = rate == Rate::MAX && placement.starts_with("threads");
        let how = (clock, rate != Rate::MAX, is_blocked);
        let sending = send(&mut service, feed, &mut load, how, (progress, stop))?;
        service.drain()?;
        watch.done();
        let (finished, journal) = service.finish()?;
        progress.finish_and_clear();
        let published = back.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(published) = published else {
            return Err(RunError("the publish stage did not end".to_owned()).into());
        };
        let changes = (
            finished.stats.placement_change_count,
            placement_changes(&finished.stats),
        );
        let mut outcome = outcome(published, finished, rate, &sending);
        if is_auto {
            let (moves, placement_changes) = changes;
            outcome.latency.placement_changes = Some(placement_changes);
            outcome.latency.placement_change_count = Some(moves);
        }
        outcome.placement = placement;
        outcome.journal = journal;
        outcome.disturbance = watch.end();
        Ok(outcome)
    }
}

/// Returns the result of a run, without the placement and the machine's disturbance.
fn outcome(
    published: Published,
    finished: service::ServiceResults,
    rate: Rate,
    sending: &Sending,
) -> RunOutcome {
    let clock = published.clock;
    let elapsed = elapsed(&published, sending);
    let stages = published.trace.stages(&finished.stats, elapsed, clock);
    let late = (rate != Rate::MAX).then(|| sending.late.snapshot(|ticks| clock.ns(ticks)));
    let histograms = histograms(&published, &stages, late);
    let latency = latency(&published, (&finished.stats, &stages), rate, sending);
    let (results, trades) = published.tally.finish();
    RunOutcome {
        state: finished.state,
        results,
        trades,
        latency,
        sent: sending.count,
        histograms,
        placement: String::new(),
        journal: None,
        disturbance: Disturbance::default(),
    }
}

fn histograms(
    published: &Published,
    stages: &[Timed],
    late: Option<Histogram>,
) -> Vec<(String, Histogram)> {
    let clock = published.clock;
    let end_to_end = published.end_to_end.snapshot(|ticks| clock.ns(ticks));
    let stages = stages.iter().flat_map(Timed::histograms);
    let sender = late.map(|late| ("send.waited".to_owned(), late));
    [("end_to_end".to_owned(), end_to_end)]
        .into_iter()
        .chain(sender)
        .chain(stages)
        .collect()
}

/// Returns the time from when the first command was due until the last one was done, in ticks.
fn elapsed(published: &Published, sending: &Sending) -> u64 {
    published.last_ticks.saturating_sub(sending.begin)
}

fn latency(
    published: &Published,
    (stats, stages): (&Stats, &[Timed]),
    rate: Rate,
    sending: &Sending,
) -> Latency {
    let clock = published.clock;
    let elapsed_ns = clock.ns(elapsed(published, sending));
    let late = sending.late.snapshot(|ticks| clock.ns(ticks));
    let [whole, warm_up] = [&published.end_to_end, &published.warm_up]
        .map(|times| distribution(&times.snapshot(|ticks| clock.ns(ticks))));
    // Only a run at a rate has a moment from which a command waits to be sent.
    let sender = rate.per_s().map(|_| Stage {
        name: "send".to_owned(),
        part_of: None,
        waited: Some(distribution(&late)),
        served: None,
        batches: None,
        utilisation: None,
    });
    let breakdowns = published.trace.breakdowns(&whole, clock);
    let throughput_per_s = sending.count as f64 * 1e9 / elapsed_ns.max(1) as f64;
    Latency {
        elapsed_ns,
        throughput_per_s,
        rate_reached: rate
            .per_s()
            .map(|asked| is_reached(asked, throughput_per_s)),
        throughput: published.timeline.facts(rate, sending.count, clock),
        sampled_every: stats.sampled_every,
        warm_up: (whole.summary.count > warm_up.summary.count).then_some(warm_up),
        end_to_end: whole,
        breakdowns,
        stages: sender
            .into_iter()
            .chain(stages.iter().map(Timed::stage))
            .collect(),
        placement_changes: None,
        placement_change_count: None,
        slowest: published.slowest.facts(clock, &sending.blocked),
    }
}

fn placement_changes(stats: &Stats) -> Vec<HandOver> {
    let worker = |from: usize| {
        let stages = stats.stages.iter().skip(from);
        stages.map(|stage| stage.name.clone()).collect()
    };
    let hand_over = |change: &thalweg::pipeline::PlacementChange| HandOver {
        at_ns: change.at_ns,
        commands: change.events,
        worker: worker(change.caller_stages),
    };
    stats.placement_changes.iter().map(hand_over).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow;
    use thalweg::pipeline::Placement;
    use thalweg_exchange::report::state_text::state_text_hash;
    use thalweg_exchange::{Events, State, apply};

    /// Checks that the means of a report agree within 1 %.
    fn assert_means_agree(latency: &Latency) {
        let agree = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.01, "{a}, {b}: {latency:?}");
        let whole = latency.end_to_end.summary.mean;
        agree(latency.breakdowns[0].end_to_end_ns, whole);
        agree(latency.stages_mean_ns(), whole);
        let served = |name: &str| {
            let stage = latency.stages.iter().find(|stage| stage.name == name);
            let served = stage.and_then(|stage| stage.served.as_ref());
            served.map_or(f64::NAN, |times| times.summary.mean)
        };
        let parts = ["risk", "match", "settle"].map(served).iter().sum();
        agree(parts, served("execute"));
    }

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
                let options = ServiceOptions::placed(placement.clone());
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
                assert_eq!(
                    state_text_hash(&outcome.state),
                    state_text_hash(&state),
                    "{name}"
                );
                assert_eq!((outcome.results, outcome.trades), expected, "{name}");
                let latency = outcome.latency;
                assert_eq!(latency.end_to_end.summary.count, 5_000, "{name}");
                let names: Vec<&str> = latency.stages.iter().map(|s| s.name.as_str()).collect();
                let stages = ["send", "execute", "risk", "match", "settle", "publish"];
                let from = usize::from(rate == Rate::MAX);
                assert_eq!(names, stages[from..], "{name}");
                assert_eq!(
                    latency.slowest[0].end_to_end_ns, latency.end_to_end.summary.max,
                    "{name}"
                );
                let of: Vec<&str> = latency.breakdowns.iter().map(|b| &b.of[..]).collect();
                assert_eq!(of, ["mean", "p50", "p90", "p99"], "{name}");
                for found in &latency.breakdowns {
                    let parts: f64 = found.parts.iter().map(|part| part.ns).sum();
                    assert!((parts / found.end_to_end_ns - 1.0).abs() < 1e-9, "{name}");
                }
                let warm_up = latency.warm_up.as_ref().map(|times| times.summary.count);
                assert_eq!(warm_up, Some(4_096), "{name}");
                assert_eq!(latency.placement_changes.is_some(), name == "auto");
                let over_time: u64 = latency.throughput.finished.iter().sum();
                assert_eq!(over_time, 5_000, "{name}");
                assert_means_agree(&latency);
                for slow in &latency.slowest {
                    let parts: u64 = slow.parts.iter().map(|part| part.ns).sum();
                    assert!(parts * 100 >= slow.end_to_end_ns * 95, "{name}: {slow:?}");
                }
            }
        }
    }
}
