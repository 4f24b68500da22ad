//! The statistics of a pipeline about its own time.

use std::fmt;

use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Histogram, Recorder, Summary};
use thalweg_measure::table::{Cell, Nanoseconds, Table};

pub use super::meter::{Breakdown, PartStats};
use super::meter::{Gauge, Slow, Snapshot};
use super::timeline::Timeline;
use crate::ring::sync::Ordering;

/// The statistics of a pipeline: where the time of the events was spent, up to now.
///
/// Times are of *sampled* events: one in [`sampled_every`](Self::sampled_every), at a pseudo-random
/// index of its block; the first [`dense_sampling_until`](Self::dense_sampling_until) events are
/// sampled more densely. Default sampling thins out over time; each sample is weighted, in
/// histograms and means, by the number of events that it stands for. A stage works on a chunk of
/// events at a time: one event, two where it shares a thread with others, or up to its progress
/// interval. Each event of a chunk is *served* for its share of the chunk's time and *waits* for
/// the rest; so the mean service is what the stage takes for an event, whatever the batch. No value
/// includes the cost of reading the clock and recording the times.
///
/// The end-to-end time of an event has these parts, which have one name each in fields and one in
/// the displayed table:
/// - the publish delay, until it had a slot: `publish_delay`, displayed as *waiting to be sent*;
/// - for each stage the queueing time: `queueing`, displayed as *waited*;
/// - for each stage the service time: `service`, displayed as *served*.
///
/// For stages in a row they sum to the end-to-end time, except where clocks of two cores made a
/// queueing time negative, which counts as 0. Where stages run side by side, those of the stages
/// that the event left last do.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// The time since the pipeline was built, ns.
    pub elapsed_ns: u64,
    /// The number of events of which one is sampled, in the long run.
    pub sampled_every: u64,
    /// The number of events at the beginning that are sampled more densely: 0 where
    /// [`sample_every`](super::PipelineBuilder::sample_every) was set.
    pub dense_sampling_until: u64,
    /// The effective sample size of the end-to-end times (Kish): the number of samples if all have
    /// the same weight, and less if some weigh more.
    pub effective_samples: u64,
    /// The stages in the [order of the pipeline](super#order), shards one by one.
    pub stages: Vec<StageStats>,
    /// The time from when an event was due
    /// ([`Pipeline::publish_due`](super::Pipeline::publish_due)), or else from the call that
    /// published it, to the end of the last stage, ns, of sampled events. The type is of the crate
    /// `thalweg-measure`.
    #[cfg_attr(feature = "serde", serde(serialize_with = "summary"))]
    pub end_to_end_ns: Histogram,
    /// The mean of that from exact sums, ns.
    pub end_to_end_mean_ns: f64,
    /// The mean publish delay, ns: the part of the end-to-end time from when an event was due, or
    /// from the call that published it, until it had a slot.
    pub publish_delay_mean_ns: f64,
    /// The slowest sampled events, slowest first.
    pub slowest: Vec<SlowEvent>,
    /// The number of times that the automatic placement moved stages between threads.
    pub placement_change_count: u64,
    /// The first 64 of these moves.
    pub placement_changes: Vec<PlacementChange>,
    #[cfg_attr(feature = "serde", serde(skip))]
    profile: Snapshot,
}

/// A move of stages between the caller and its worker thread, by the automatic placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PlacementChange {
    /// The time of the move since the pipeline was built, ns.
    pub at_ns: u64,
    /// The number of events that had been through the first stage.
    pub events: u64,
    /// The number of first stages that the caller has from then on; the worker has the others.
    pub caller_stages: usize,
}

/// The statistics of one stage.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StageStats {
    /// The stage's name; `name[i]` for shard `i`.
    pub name: String,
    /// The number of events that have passed the stage (for a shard: also those of other shards).
    pub events: u64,
    /// The queueing time: from the instant at which an event was ready for this stage until the
    /// stage finished its chunk, without the event's service time, ns.
    #[cfg_attr(feature = "serde", serde(serialize_with = "summary"))]
    pub queueing_ns: Histogram,
    /// The mean of that from exact sums, ns.
    pub queueing_mean_ns: f64,
    /// The service time: an event's share of the time for which the stage worked on its chunk, ns.
    #[cfg_attr(feature = "serde", serde(serialize_with = "summary"))]
    pub service_ns: Histogram,
    /// The mean of that from exact sums, ns.
    pub service_mean_ns: f64,
    /// The effective sample size of this stage's times: see [`Stats::effective_samples`].
    pub effective_samples: u64,
    /// The size of the batch in which the stage found a sampled event waiting, in events. It is
    /// recorded once per sampled event, so large batches weigh more.
    #[cfg_attr(feature = "serde", serde(serialize_with = "summary"))]
    pub batch_events: Histogram,
    /// The busy time, ns, estimated from the sampled chunks. The busy times of stages that share a
    /// thread never sum to more than its running time.
    pub busy_ns: u64,
    /// The utilisation: the busy time over the elapsed time, 0 to 1.
    pub utilisation: f64,
}

impl Stats {
    /// Returns the statistics of stages that ran without a pipeline, for reports that show both.
    /// They have no [slowest](Self::slowest) events and no [breakdown](Self::breakdown).
    pub fn of(
        elapsed: std::time::Duration,
        sampled_every: u64,
        mut stages: Vec<StageStats>,
        end_to_end_ns: Histogram,
    ) -> Self {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        for stage in &mut stages {
            stage.utilisation = (stage.busy_ns as f64 / elapsed_ns.max(1) as f64).min(1.0);
        }
        Self {
            elapsed_ns,
            sampled_every,
            dense_sampling_until: 0,
            effective_samples: end_to_end_ns.count(),
            stages,
            end_to_end_mean_ns: end_to_end_ns.mean(),
            end_to_end_ns,
            publish_delay_mean_ns: 0.0,
            slowest: Vec::new(),
            placement_change_count: 0,
            placement_changes: Vec::new(),
            profile: Snapshot::none(),
        }
    }

    /// Returns the mean breakdown of the sampled events around a quantile (0 to 1) of the
    /// end-to-end time, whose times are within a factor of 1.5 of each other. Returns `None`
    /// without events.
    pub fn breakdown(&self, quantile: f64) -> Option<Breakdown> {
        self.profile.around(quantile)
    }

    /// Returns the mean breakdown of all sampled events.
    pub fn breakdown_of_all(&self) -> Option<Breakdown> {
        self.profile.all()
    }
}

impl StageStats {
    /// Returns the statistics of a stage that `events` have passed, of which some were timed, in
    /// ns. Its `utilisation` is computed by [`Stats::of`].
    pub fn of(name: &str, events: u64, queueing_ns: Histogram, service_ns: Histogram) -> Self {
        let service_mean_ns = service_ns.mean();
        Self {
            name: name.to_owned(),
            events,
            queueing_mean_ns: queueing_ns.mean(),
            effective_samples: service_ns.count(),
            queueing_ns,
            service_mean_ns,
            service_ns,
            batch_events: Histogram::new(),
            busy_ns: (service_mean_ns * events as f64) as u64,
            utilisation: 0.0,
        }
    }
}

/// A slow event, and where it spent its time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SlowEvent {
    /// The event's number.
    pub sequence: u64,
    /// The time from when it was due, or from the call that published it, to the end of the last
    /// stage, ns.
    pub end_to_end_ns: u64,
    /// The publish delay: the part of the end-to-end time until it had a slot, ns.
    pub publish_delay_ns: u64,
    /// The stages on this event's critical path, whose times add up to the rest; parallel stages
    /// that finished earlier are omitted. A shard that does not own the event counts as queueing
    /// only.
    pub parts: Vec<SlowPart>,
}

impl SlowEvent {
    /// Returns the longest part: the stage, whether the event waited for it or was served, and ns.
    pub fn longest(&self) -> Option<(&str, TimeKind, u64)> {
        let spent = self.parts.iter().flat_map(|part| {
            let name = part.stage.as_str();
            [
                (name, TimeKind::Waiting, part.queueing_ns),
                (name, TimeKind::Served, part.service_ns),
            ]
        });
        spent.max_by_key(|&(_, _, ns)| ns)
    }
}

/// The kind of time that an event spent at a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum TimeKind {
    /// The event was ready, and the stage did not work on it: queueing time.
    Waiting,
    /// The stage worked on it: service time.
    Served,
}

/// One stage's part in a slow event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SlowPart {
    /// The stage's name.
    pub stage: String,
    /// The queueing time: how long the event waited for the stage, ns.
    pub queueing_ns: u64,
    /// The service time: the event's share of what the stage took for its chunk, ns.
    pub service_ns: u64,
}

/// Serialises the figures of a histogram's summary in its place.
#[cfg(feature = "serde")]
fn summary<S: serde::Serializer>(times: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&times.summary(), serializer)
}

/// Mean in ns from the exact running sums, in ticks, of recorders.
fn mean_ns(clock: Clock, recorders: &[&Recorder]) -> f64 {
    let (mut ticks, mut count) = (0, 0);
    for recorder in recorders {
        ticks += recorder.sum();
        count += u128::from(recorder.count());
    }
    // A scaled unit keeps three digits below the nanosecond.
    let scale = 1_000;
    match (ticks * scale).checked_div(count) {
        Some(mean) => clock.ns(u64::try_from(mean).unwrap_or(u64::MAX)) as f64 / scale as f64,
        None => 0.0,
    }
}

/// Returns how many samples of equal weight say as much as some whose weights, and the squares of
/// these, have these sums.
fn effective_samples(weights: u64, squares: u64) -> u64 {
    let worth = u128::from(weights).pow(2).checked_div(squares.into());
    worth.map_or(0, |worth| u64::try_from(worth).unwrap_or(u64::MAX))
}

/// Reads all gauges.
pub(super) fn read(gauges: &[Gauge], timeline: &Timeline, elapsed_ticks: u64) -> Stats {
    let clock = timeline.watch.clock();
    let stages = gauges
        .iter()
        .map(|gauge| stage(gauge, clock, elapsed_ticks))
        .collect();
    let ends: Vec<&Recorder> = gauges
        .iter()
        .filter_map(|g| g.end_to_end.as_deref())
        .collect();
    let mut end_to_end_ns = Histogram::new();
    for end in &ends {
        end_to_end_ns.merge(&end.snapshot(|ticks| clock.ns(ticks)));
    }
    let mut slowest: Vec<Slow> = Vec::new();
    for list in gauges.iter().filter_map(|gauge| gauge.slowest.as_ref()) {
        let list = list
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        slowest.extend(list.iter().filter(|slow| slow.is_there()).cloned());
    }
    slowest.sort_by_key(|slow| (std::cmp::Reverse(slow.total), slow.sequence));
    slowest.truncate(super::meter::SLOWEST);
    let profiles = gauges.iter().filter_map(|gauge| gauge.profile.as_deref());
    let profile = Snapshot::of(profiles, gauges, clock);
    // ORDERING: Relaxed; a figure for people.
    let square = |gauge: &Gauge| gauge.counters.end_squares.load(Ordering::Relaxed);
    Stats {
        elapsed_ns: clock.ns(elapsed_ticks),
        sampled_every: timeline.every(),
        dense_sampling_until: timeline.denser_until(),
        effective_samples: effective_samples(
            end_to_end_ns.count(),
            gauges.iter().map(square).sum(),
        ),
        stages,
        end_to_end_ns,
        end_to_end_mean_ns: mean_ns(clock, &ends),
        publish_delay_mean_ns: profile.all().map_or(0.0, |all| all.publish_delay_ns),
        slowest: slowest
            .iter()
            .map(|slow| slow_event(slow, gauges, clock))
            .collect(),
        placement_change_count: 0,
        placement_changes: Vec::new(),
        profile,
    }
}

fn stage(gauge: &Gauge, clock: Clock, elapsed_ticks: u64) -> StageStats {
    // ORDERING: Relaxed; a figure for people.
    let busy = gauge.counters.busy.load(Ordering::Relaxed);
    let squares = gauge.counters.squares.load(Ordering::Relaxed);
    let events = gauge.progress.released();
    StageStats {
        name: gauge.name.to_string(),
        events,
        queueing_ns: gauge.queueing.snapshot(|ticks| clock.ns(ticks)),
        queueing_mean_ns: mean_ns(clock, &[&gauge.queueing]),
        service_ns: gauge.service.snapshot(|ticks| clock.ns(ticks)),
        service_mean_ns: mean_ns(clock, &[&gauge.service]),
        effective_samples: effective_samples(gauge.service.count(), squares),
        batch_events: gauge.batch.snapshot(|events| events),
        busy_ns: clock.ns(busy),
        utilisation: (busy as f64 / elapsed_ticks.max(1) as f64).min(1.0),
    }
}

fn slow_event(slow: &Slow, gauges: &[Gauge], clock: Clock) -> SlowEvent {
    let parts = slow.parts.iter().zip(gauges).filter_map(|(part, gauge)| {
        part.map(|(queueing, service)| SlowPart {
            stage: gauge.name.to_string(),
            queueing_ns: clock.ns(queueing),
            service_ns: clock.ns(service),
        })
    });
    SlowEvent {
        sequence: slow.sequence,
        end_to_end_ns: clock.ns(slow.total),
        publish_delay_ns: clock.ns(slow.publish_delay),
        parts: parts.collect(),
    }
}

/// Writes the parts on which the events around the p99 spent most.
fn write_tail(f: &mut fmt::Formatter<'_>, tail: &Breakdown) -> fmt::Result {
    let mut spent = vec![(tail.publish_delay_ns, "waiting to be sent".to_owned())];
    for part in &tail.parts {
        spent.push((part.queueing_ns, format!("waiting for {:?}", part.stage)));
        spent.push((part.service_ns, format!("served by {:?}", part.stage)));
    }
    spent.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    write!(f, "the p99 is")?;
    for (at, (ns, what)) in spent.iter().take(2).enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let percent = 100.0 * ns / tail.end_to_end_ns.max(1.0);
        write!(f, "{comma} {percent:.0} % {what}")?;
    }
    writeln!(f)
}

/// p50, p99, p99.9 and p99.99; "-" for one above the median with fewer than ten of the samples
/// beyond it.
fn percentiles(spent: &Summary, samples: u64) -> [String; 4] {
    let all = [
        (spent.p50, 1),
        (spent.p99, 1_000),
        (spent.p999, 10_000),
        (spent.p9999, 100_000),
    ];
    all.map(|(ns, least)| match samples >= least {
        true => Nanoseconds(ns as f64).to_string(),
        false => "-".to_owned(),
    })
}

/// The table of stages, and for the slowest events which stage they waited for. A percentile with
/// fewer than ten times beyond it is "-".
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "stage",
            "events",
            "waited p50",
            "p99",
            "p99.9",
            "p99.99",
            "served p50",
            "p99",
            "p99.9",
            "p99.99",
            "mean wait",
            "mean service",
            "batch",
            "busy",
        ]);
        for stage in &self.stages {
            let mut row = vec![stage.name.as_str().into(), stage.events.into()];
            let samples = stage.effective_samples;
            for spent in [&stage.queueing_ns, &stage.service_ns] {
                row.extend(percentiles(&spent.summary(), samples).map(Cell::Number));
            }
            row.extend([
                Nanoseconds(stage.queueing_mean_ns).into(),
                Nanoseconds(stage.service_mean_ns).into(),
                format!("{:.1}", stage.batch_events.mean()).into(),
                format!("{:.1} %", 100.0 * stage.utilisation).into(),
            ]);
            table.row(row);
        }
        write!(f, "{table}")?;
        let total = self.end_to_end_ns.summary();
        let [p50, p99, p999, p9999] = percentiles(&total, self.effective_samples);
        writeln!(
            f,
            "end to end: p50 {p50}, p99 {p99}, p99.9 {p999}, p99.99 {p9999}, max {}, mean {}",
            Nanoseconds(total.max as f64),
            Nanoseconds(self.end_to_end_mean_ns),
        )?;
        let every = self.sampled_every;
        write!(f, "times and batches are of one event in {every}")?;
        if self.dense_sampling_until > 0 {
            write!(f, ", more of the first {}", self.dense_sampling_until)?;
        }
        writeln!(f, ": as good as {} even samples", self.effective_samples)?;
        let has_tail = self.effective_samples >= 1_000;
        if let Some(tail) = self.breakdown(0.99).filter(|_| has_tail) {
            write_tail(f, &tail)?;
        }
        for slow in self.slowest.iter().take(3) {
            let took = Nanoseconds(slow.end_to_end_ns as f64);
            write!(f, "slow: event {} took {took}", slow.sequence)?;
            let publish_delay = Nanoseconds(slow.publish_delay_ns as f64);
            if slow.publish_delay_ns * 2 > slow.end_to_end_ns {
                write!(f, ", {publish_delay} of it waiting to be sent")?;
            } else if let Some((stage, spent, ns)) = slow.longest() {
                let spent = match spent {
                    TimeKind::Waiting => "waiting for",
                    TimeKind::Served => "served by",
                };
                write!(f, ", {} of it {spent} {stage:?}", Nanoseconds(ns as f64))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_takes_ten_times_beyond_it() {
        let is_shown = |samples| {
            let times = Summary::default();
            percentiles(&times, samples).map(|percentile| percentile != "-")
        };
        assert_eq!(is_shown(0), [false; 4]);
        assert_eq!(is_shown(1), [true, false, false, false]);
        assert_eq!(is_shown(999), [true, false, false, false]);
        assert_eq!(is_shown(1_000), [true, true, false, false]);
        assert_eq!(is_shown(10_000), [true, true, true, false]);
        assert_eq!(is_shown(100_000), [true; 4]);
    }
}
