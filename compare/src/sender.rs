//! A sender loads a pipeline on schedule, or as fast as it takes events.

use std::sync::{Arc, PoisonError};

use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Recorder;
use thalweg_measure::load::{OpenLoop, Rate};
use thalweg_measure::noise::{GapMeter, Gaps};

use crate::pipelines::{Stamp, Tail};
use crate::runner::{Metric, Ran, Run};

/// A longer time between two clock reads of the waiting sender is a gap, ns.
pub(crate) const GAP_NS: u64 = 5_000;
/// The first part of a schedule is sent and not measured: threads start, caches fill.
const WARM_UP_NS: u64 = 2_000_000;
/// A run is cut when it has taken this many times its span, and not before [`CUT_NS`].
const SPANS_MAX: u64 = 2;
const CUT_NS: u64 = 300_000_000;

/// The way in which events are sent in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// They are sent on schedule; latency counts from the intended time.
    Open { per_s: u64, span_ns: u64 },
    /// They are sent as fast as they are taken, `batch` at a time.
    Closed { batch: usize, span_ns: u64 },
}

/// An open loop measures these.
pub const LATENCY: &[Metric] = &Metric::times(["latency_p50", "latency_p99", "latency_p999"]);
/// A closed loop measures this.
pub(crate) const THROUGHPUT: &[Metric] = &[Metric::higher("throughput", "events/s")];

/// A line takes events, and its stages are done with them when `finish` returns.
pub trait Line {
    /// Publishes one event. Returns `false` if `deadline_ticks` came before there was room; a line
    /// whose own waiting is measured may wait longer.
    fn publish(&mut self, stamp: Stamp, deadline_ticks: u64) -> bool;
    /// Publishes `count` events numbered from `first`, without an intended time.
    fn publish_batch(&mut self, first: u64, count: usize, deadline_ticks: u64) -> bool {
        (first..first + count as u64)
            .all(|number| self.publish(Stamp::untimed(number), deadline_ticks))
    }
    /// Waits until all stages are done, and ends the threads.
    fn finish(self);
}

/// A line whose calls are functions of its target.
struct Functions<T, P, F>(T, P, F);

/// Makes a line from functions that publish one event, and that end it.
pub fn line<T>(
    target: T,
    publish: impl FnMut(&mut T, Stamp) -> bool,
    finish: impl FnOnce(T),
) -> impl Line {
    Functions(target, publish, finish)
}

impl<T, P: FnMut(&mut T, Stamp) -> bool, F: FnOnce(T)> Line for Functions<T, P, F> {
    #[inline]
    fn publish(&mut self, stamp: Stamp, _: u64) -> bool {
        self.1(&mut self.0, stamp)
    }

    fn finish(self) {
        self.2(self.0);
    }
}

/// The sender's own account of a run.
#[derive(Debug, Clone, Copy)]
struct Sent {
    events: u64,
    gaps: Gaps,
    cut: bool,
    /// The time from the first event until all stages were done.
    span_ns: u64,
}

/// Sends the load through the line that `make` builds around the end of its last stage, and ends
/// it. Returns the figures in the order of the load's metrics.
///
/// # Errors
/// The line cannot be built.
pub fn run<L: Line>(load: Load, make: impl FnOnce(Tail) -> Result<L, String>) -> Ran {
    let clock = Clock::global();
    let latency_ticks = Arc::new(Recorder::new());
    let (tail, tally) = Tail::new(Arc::clone(&latency_ticks));
    let line = make(tail)?;
    let sent = match load {
        Load::Open { per_s, span_ns } => on_schedule(line, per_s, span_ns),
        Load::Closed { batch, span_ns } => flood(line, batch, span_ns),
    };
    let tally = *tally.lock().unwrap_or_else(PoisonError::into_inner);
    let summary = latency_ticks.snapshot(|ticks| clock.ns(ticks)).summary();
    let values = match load {
        // A run cut before its first measured event has no latency.
        Load::Open { .. } if summary.count == 0 => vec![f64::INFINITY; LATENCY.len()],
        Load::Open { .. } => [summary.p50, summary.p99, summary.p999]
            .map(|ns| ns as f64)
            .into(),
        Load::Closed { .. } => vec![sent.events as f64 * 1e9 / sent.span_ns as f64],
    };
    Ok(Run {
        values,
        disturbance: sent.gaps.disturbance(),
        lost: sent.events.abs_diff(tally.events) + tally.misplaced,
        cut: sent.cut,
    })
}

/// Spins until `due`, and returns the time then.
#[inline]
pub(crate) fn spin_until(due: u64, clock: Clock, meter: &mut GapMeter) -> u64 {
    let mut now = clock.ticks();
    while now < due {
        meter.tick(now);
        std::hint::spin_loop();
        now = clock.ticks();
    }
    meter.tick(now);
    // Sending may do a stage's work, or wait for room, which is no gap.
    meter.pause();
    now
}

fn on_schedule(mut line: impl Line, per_s: u64, span_ns: u64) -> Sent {
    let clock = Clock::global();
    let rate = Rate::per_second(per_s).expect("the experiments ask for 1 to 1e9 a second");
    let mut schedule = OpenLoop::new(clock, rate);
    let mut meter = GapMeter::new(clock.ticks_from_ns(GAP_NS));
    let due_in = |ns: u64| u128::from(per_s) * u128::from(ns) / 1_000_000_000;
    let warm_up = due_in(WARM_UP_NS) as u64;
    let count = warm_up + due_in(span_ns).max(1) as u64;
    let begin = clock.ticks();
    let deadline = begin + clock.ticks_from_ns(WARM_UP_NS + CUT_NS.max(SPANS_MAX * span_ns));
    let mut sent = 0;
    let mut cut = false;
    while sent < count && !cut {
        let due = schedule.next_due();
        let now = spin_until(due, clock, &mut meter);
        let intended_ticks = if sent < warm_up { 0 } else { due };
        let stamp = Stamp {
            number: sent,
            intended_ticks,
        };
        cut = now > deadline || !line.publish(stamp, deadline);
        sent += u64::from(!cut);
    }
    line.finish();
    Sent {
        events: sent,
        gaps: meter.gaps(),
        cut,
        span_ns: clock.ns(clock.ticks().saturating_sub(begin)),
    }
}

fn flood(mut line: impl Line, batch: usize, span_ns: u64) -> Sent {
    /// The clock is read once in this many events.
    const LOOK_EVERY: u64 = 64;
    let clock = Clock::global();
    let begin = clock.ticks();
    let end = begin + clock.ticks_from_ns(span_ns);
    let deadline = begin + clock.ticks_from_ns(CUT_NS.max(SPANS_MAX * span_ns));
    let mut sent: u64 = 0;
    let mut cut = false;
    let mut look = 0;
    while !cut {
        if sent >= look {
            if clock.ticks() >= end {
                break;
            }
            look = sent + LOOK_EVERY;
        }
        let published = if batch == 1 {
            let stamp = Stamp::untimed(sent);
            line.publish(stamp, deadline)
        } else {
            line.publish_batch(sent, batch, deadline)
        };
        cut = !published;
        if published {
            sent += batch as u64;
        }
    }
    line.finish();
    Sent {
        events: sent,
        gaps: Gaps::default(),
        cut,
        span_ns: clock.ns(clock.ticks().saturating_sub(begin)).max(1),
    }
}
