//! Where the time of commands went in the last second and the last minute, for people who watch.
//!
//! A reader takes the [traces](CommandTrace) that were noted once a second, so it is known which
//! command was slow, and what it waited for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use thalweg_exchange::durable::Stats;
use thalweg_measure::histogram::{Histogram, Summary};

use crate::command_trace::{CommandTrace, PARTS};
use crate::shared::Shared;

/// Commands of each reading that are kept for the figures of a minute: the slowest.
const SLOW_MAX: usize = 256;
/// Readings that a minute has.
const MINUTE: usize = 60;

/// The times that commands waited for a stage, or were served there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageTimes {
    /// The stage.
    pub stage: &'static str,
    /// `wait` where commands waited for it, or else `service`.
    pub spent: &'static str,
    /// The times, ns.
    #[serde(flatten)]
    pub times: LatencySummary,
}

/// Times of some events, ns; all 0 where there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// The number of events.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The value that 99 in 100 do not exceed.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
}

impl From<Summary> for LatencySummary {
    fn from(found: Summary) -> Self {
        Self {
            count: found.count,
            mean: found.mean,
            p50: found.p50,
            p99: found.p99,
            max: found.max,
        }
    }
}

/// Commands around a percentile: how many, and their mean times, ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TailBreakdown {
    /// The number of commands.
    pub count: usize,
    /// From submission to publishing.
    pub total: f64,
    /// The parts of that; see [`LatencyReading::parts`] for the names.
    pub parts: [f64; PARTS.len()],
}

/// Statistics of a server since the previous reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LatencyReading {
    /// That time, ns.
    pub elapsed: u64,
    /// Commands that the exchange took in it.
    pub commands: u64,
    /// Commands and queries that are in flight, and how many may be.
    pub in_flight: usize,
    /// See [`in_flight`](Self::in_flight).
    pub capacity: usize,
    /// Sessions that are connected.
    pub sessions: usize,
    /// Bytes that wait for sessions.
    pub out_bytes: usize,
    /// From submission to publishing, of the commands that were timed.
    pub total: LatencySummary,
    /// The parts of that, in their order.
    pub parts: Vec<StageTimes>,
    /// How long commits to the disk took.
    pub commit: LatencySummary,
    /// The mean number of commands that a commit made durable.
    pub commit_commands: f64,
    /// The commands at and above the p99 of the last minute.
    pub tail: Option<TailBreakdown>,
    /// The slowest command of the last minute.
    pub slowest: Option<CommandTrace>,
}

/// The slowest commands of a reading, and how many there were.
#[derive(Debug)]
struct Slow {
    count: usize,
    traces: Vec<CommandTrace>,
}

/// Reads the figures of a server in this process. While it is read, the exchange's thread notes
/// the commands that it times.
#[derive(Debug)]
pub struct LatencyMonitor {
    shared: Arc<Shared>,
    /// The statistics of the reading before, and when that was.
    before: Option<(Instant, Stats)>,
    minute: VecDeque<Slow>,
}

impl LatencyMonitor {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            before: None,
            minute: VecDeque::new(),
        }
    }

    /// Ends the reading: nothing is noted any more, and what was read is forgotten.
    pub fn stop(&mut self) {
        self.shared.execution.traces.stop();
        self.before = None;
        self.minute.clear();
    }

    /// Returns the figures since the last call; `None` at the first, and where the server has
    /// stopped. Holds up the exchange for some 100 µs.
    pub async fn read(&mut self) -> Option<LatencyReading> {
        let snapshot = self.shared.requests.stats().await?;
        let traces = self.shared.execution.traces.take();
        let now = (Instant::now(), snapshot.stats?);
        let (total, parts) = times(&traces);
        self.keep(traces);
        let before = self.before.replace(now)?;
        let now = self.before.as_ref()?;
        let journal = [&before.1.journal, &now.1.journal];
        let commits = journal[1].commits.saturating_sub(journal[0].commits);
        let commands = journal[1].commands.saturating_sub(journal[0].commands);
        Some(LatencyReading {
            elapsed: now.0.duration_since(before.0).as_nanos() as u64,
            commands: now.1.number.saturating_sub(before.1.number),
            in_flight: now.1.in_flight,
            capacity: self.shared.config.exchange.capacity,
            sessions: snapshot.sessions.iter().sum(),
            out_bytes: snapshot.out_bytes,
            total,
            parts,
            commit: journal[1]
                .commit_ns
                .since(&journal[0].commit_ns)
                .summary()
                .into(),
            commit_commands: commands as f64 / commits.max(1) as f64,
            tail: tail(&self.minute),
            slowest: slowest(&self.minute).cloned(),
        })
    }

    /// Keeps the slowest for the figures of a minute.
    fn keep(&mut self, mut traces: Vec<CommandTrace>) {
        let count = traces.len();
        traces.sort_by_key(|trace| std::cmp::Reverse(trace.total));
        traces.truncate(SLOW_MAX);
        self.minute.push_back(Slow { count, traces });
        if self.minute.len() > MINUTE {
            self.minute.pop_front();
        }
    }
}

/// Returns the times of the whole way and of its parts.
fn times(traces: &[CommandTrace]) -> (LatencySummary, Vec<StageTimes>) {
    let of = |time: &dyn Fn(&CommandTrace) -> u64| {
        let mut times = Histogram::new();
        traces.iter().for_each(|trace| times.record(time(trace)));
        LatencySummary::from(times.summary())
    };
    let parts = PARTS
        .iter()
        .enumerate()
        .map(|(at, (stage, spent))| StageTimes {
            stage,
            spent,
            times: of(&|trace| trace.parts[at]),
        });
    (of(&|trace| trace.total), parts.collect())
}

fn slowest(minute: &VecDeque<Slow>) -> Option<&CommandTrace> {
    let slow = minute.iter().flat_map(|second| second.traces.first());
    slow.max_by_key(|trace| trace.total)
}

/// Returns the slowest one in 100 of a minute's commands, at least one.
fn tail(minute: &VecDeque<Slow>) -> Option<TailBreakdown> {
    let count: usize = minute.iter().map(|second| second.count).sum();
    let mut slow: Vec<&CommandTrace> = minute.iter().flat_map(|second| &second.traces).collect();
    slow.sort_by_key(|trace| std::cmp::Reverse(trace.total));
    slow.truncate(count.div_ceil(100));
    let mean = |time: &dyn Fn(&CommandTrace) -> u64| {
        let sum: u64 = slow.iter().map(|trace| time(trace)).sum();
        sum as f64 / slow.len() as f64
    };
    (!slow.is_empty()).then(|| TailBreakdown {
        count: slow.len(),
        total: mean(&|trace| trace.total),
        parts: std::array::from_fn(|at| mean(&|trace| trace.parts[at])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(command: u64, total: u64) -> CommandTrace {
        let parts = [0, 0, 1, 0, total - 1, 0];
        let kind = "place";
        CommandTrace {
            command,
            kind,
            total,
            parts,
        }
    }

    #[test]
    fn the_tail_is_the_slowest_hundredth_and_says_where_its_time_went() {
        let second = |first: u64| {
            let traces = (first..first + 10).map(|at| trace(at, at * 10 + 10));
            let traces: Vec<_> = traces.rev().collect();
            let count = 100;
            Slow { count, traces }
        };
        let minute = VecDeque::from([second(0), second(10)]);
        let found = tail(&minute).expect("there are some");
        assert_eq!((found.count, found.total), (2, 195.0));
        assert_eq!(found.parts, [0.0, 0.0, 1.0, 0.0, 194.0, 0.0]);
        assert_eq!(slowest(&minute), Some(&trace(19, 200)));
        assert_eq!(tail(&VecDeque::new()), None);
    }
}
