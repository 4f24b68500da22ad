//! The facts of a run: the stream that was run, its results, and the times they took.
//!
//! One value serves every form of output. A figure that was not measured is absent, never zero. The
//! keys of the JSON form are these field names; `docs/run-json.md` of this crate describes them.

pub(crate) use crate::report::machine::{Disturbance, Machine};
use serde::Serialize;
use thalweg_measure::histogram::Summary;

/// All facts that a run reports.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Facts {
    /// The version of this layout.
    pub(crate) version: u32,
    /// The source of the tail latency; absent where too few commands were run to name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<Explanation>,
    pub(crate) machine: Machine,
    pub(crate) input: Input,
    pub(crate) commands: Commands,
    pub(crate) trades: Trades,
    pub(crate) books: Vec<BookDepth>,
    /// The hash of the final state, in hex, which is equal for equal commands on every machine.
    pub(crate) state_hash: String,
    /// The facts of the journal, where the run had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<Journal>,
    pub(crate) latency: Latency,
    /// The agreement with what was recorded, where there was a recording to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<Check>,
}

/// The explanation of the largest part of a percentile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Explanation {
    pub(crate) sentence: String,
    /// The percentile that is explained: p99 where enough commands were run, or else a lower one.
    pub(crate) percentile: String,
    pub(crate) end_to_end_ns: u64,
    /// The largest part, and its share of the whole, from 0 to 1.
    pub(crate) most: String,
    pub(crate) share: f64,
}

/// The source of the commands, and the way they were run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    pub(crate) rules: String,
    pub(crate) placement: String,
    /// The rate; absent where commands were sent as fast as possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_per_s: Option<u64>,
    /// The number of the first command that was run, where it is not 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<u64>,
    /// Whether Ctrl-C ended the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) interrupted: bool,
    /// The time that the sender waited until commands were read, where it had to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited_ns: Option<u64>,
}

/// The facts of the durable exchange that the run went through.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Journal {
    pub(crate) directory: String,
    /// `always`, or `never`.
    pub(crate) sync: &'static str,
    /// The number of commands that the exchange had before.
    pub(crate) commands_before: u64,
    /// The number of commands that the exchange has now.
    pub(crate) commands: u64,
    /// The number of bytes in the records of the run.
    pub(crate) bytes: u64,
    /// The number of times that the run waited for the disk.
    pub(crate) commits: u64,
    /// The distribution of these waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commands_per_commit: Option<f64>,
    /// The digest of all commands and their results, in hex, as `recover` and `verify` show it. The
    /// hash of the state's bytes is in hex too.
    pub(crate) digest: String,
    pub(crate) state_hash: String,
    /// The number of commands in the last snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<u64>,
    /// The reason why no snapshot holds all commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot_failed: Option<String>,
}

/// A named count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    pub(crate) name: String,
    pub(crate) count: u64,
}

impl Count {
    /// Creates a count with that name.
    pub(crate) fn new(name: impl Into<String>, count: u64) -> Count {
        Count {
            name: name.into(),
            count,
        }
    }
}

/// The commands that the exchange received, and its answers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Commands {
    pub(crate) total: u64,
    pub(crate) by_kind: Vec<Count>,
    pub(crate) by_result: Vec<Count>,
}

/// The trades of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Trades {
    pub(crate) count: u64,
    pub(crate) volume_lots: u64,
}

/// The best levels of one symbol at the end.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BookDepth {
    pub(crate) symbol: i64,
    pub(crate) bids: Vec<DepthLevel>,
    pub(crate) asks: Vec<DepthLevel>,
    pub(crate) bid_levels: u64,
    pub(crate) ask_levels: u64,
}

/// One price of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DepthLevel {
    pub(crate) price_ticks: i64,
    pub(crate) size_lots: i64,
    pub(crate) orders: u64,
}

/// The agreement with a recording.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Check {
    /// The recording that the run was compared with.
    pub(crate) against: String,
    /// The scores: each counts agreements among comparisons.
    pub(crate) scores: Vec<Score>,
    /// Counts other than agreements, such as the orders that had to be learnt.
    pub(crate) counts: Vec<Count>,
}

/// A number of agreements among a number of comparisons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Score {
    /// The stable name in snake case.
    pub(crate) name: String,
    /// The name for people.
    pub(crate) label: String,
    pub(crate) agree: u64,
    pub(crate) of: u64,
}

impl Score {
    /// Returns the agreeing share, from 0 to 1; it is 1 where there were no comparisons.
    pub(crate) fn part(&self) -> f64 {
        if self.of == 0 {
            1.0
        } else {
            self.agree as f64 / self.of as f64
        }
    }
}

/// The times of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) elapsed_ns: u64,
    pub(crate) throughput_per_s: f64,
    /// Whether the requested rate was reached; absent where no rate was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_reached: Option<bool>,
    /// The throughput in each interval of the run.
    pub(crate) throughput: Throughput,
    /// The sampling interval: one command in this number, and more of the first ones, is in the
    /// distribution of the service times of publishing. All other distributions hold every command.
    pub(crate) sampled_every: u64,
    /// The latency from the moment a command was due (at a rate) or handed over (at max) to its
    /// last stage.
    pub(crate) end_to_end: Distribution,
    /// The latency of the first commands, which touch every slot of the pipeline for the first
    /// time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warm_up: Option<Distribution>,
    /// The parts that commands spent their time on: for all of them, and for those around some
    /// percentiles.
    pub(crate) breakdowns: Vec<Breakdown>,
    pub(crate) stages: Vec<Stage>,
    /// The times at which the automatic placement moved stages between threads; absent for other
    /// placements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placement_changes: Option<Vec<HandOver>>,
    /// The number of such moves; `placement_changes` holds the first 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placement_change_count: Option<u64>,
    /// The slowest of all commands, the slowest first.
    pub(crate) slowest: Vec<Slow>,
}

impl Latency {
    /// Returns the event of a command from which its latency counts: without a rate, none is due.
    pub(crate) fn counted_from(&self) -> &'static str {
        match self.rate_reached {
            Some(_) => "due",
            None => "handed over",
        }
    }

    /// Returns the sum of the mean times of all parts that a command goes through before the
    /// publish stage has it.
    pub(crate) fn stages_mean_ns(&self) -> f64 {
        let stages = self.stages.iter().filter(|stage| stage.part_of.is_none());
        let times = stages.flat_map(|stage| {
            let served = stage.served.as_ref().filter(|_| stage.name != "publish");
            [stage.waited.as_ref(), served]
        });
        times.flatten().map(|times| times.summary.mean).sum()
    }
}

/// The share of the rate from which on the rate counts as reached.
const REACHED: f64 = 0.95;

/// Returns whether a rate was reached.
pub(crate) fn is_reached(asked_per_s: u64, reached_per_s: f64) -> bool {
    reached_per_s >= asked_per_s as f64 * REACHED
}

/// The run over time, in intervals of equal length; the last one may have ended early.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Throughput {
    pub(crate) interval_ns: u64,
    /// The number of commands that finished in each interval.
    pub(crate) finished: Vec<u64>,
    /// The end-to-end percentiles of these commands, to about 20 %; `None` where there were too
    /// few.
    pub(crate) p50_ns: Vec<Option<u64>>,
    pub(crate) p99_ns: Vec<Option<u64>>,
    /// The number of commands that were due and not done at the end of each interval; for a run at
    /// the maximum rate, the mean number.
    pub(crate) backlog: Vec<u64>,
}

/// The mean times that some commands spent in each part. The parts add up to the whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Breakdown {
    /// `mean` for all commands, or the percentile that they are around: `p50`, `p90`, `p99`,
    /// `p99.9`.
    pub(crate) of: String,
    /// The number of commands that were timed for it.
    pub(crate) commands: u64,
    pub(crate) end_to_end_ns: f64,
    pub(crate) parts: Vec<Part>,
}

/// A part of a breakdown, named like that of a slow command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Part {
    pub(crate) what: String,
    pub(crate) ns: f64,
}

/// A move of stages between the sender's thread and the worker thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HandOver {
    /// The time since the exchange was started.
    pub(crate) at_ns: u64,
    /// The number of commands that had passed the first stage.
    pub(crate) commands: u64,
    /// The stages on the worker thread from then on; if it is empty, all stages run on the sender's
    /// thread.
    pub(crate) worker: Vec<String>,
}

/// The number of times that must lie beyond a percentile for it to be shown or judged; the median
/// needs one time.
const BEYOND: f64 = 10.0;

/// The percentiles, by name and quantile.
const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// Returns the number of times that a quantile needs to be shown.
pub(crate) fn times_min(quantile: f64) -> u64 {
    match quantile {
        ..=0.5 => 1,
        _ => (BEYOND / (1.0 - quantile)).round() as u64,
    }
}

/// Returns the number of times that a figure needs, by its name; 1 for a figure that is not a
/// percentile.
pub(crate) fn commands_min(figure: &str) -> u64 {
    let found = PERCENTILES.iter().find(|(name, _)| *name == figure);
    found.map_or(1, |&(_, quantile)| times_min(quantile))
}

/// A distribution of times. It has no percentile beyond which too few times lie.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(into = "Exported")]
pub(crate) struct Distribution {
    /// The summary, with all values in nanoseconds.
    pub(crate) summary: Summary,
    /// The points of the curve, with quantiles that rise from 0 towards 1.
    pub(crate) curve: Vec<Point>,
}

impl Distribution {
    /// Returns whether there are enough times for this quantile.
    pub(crate) fn has(&self, quantile: f64) -> bool {
        self.summary.count >= times_min(quantile)
    }

    /// Returns the percentiles by name and quantile, and `None` where there are too few times.
    pub(crate) fn percentiles(&self) -> [(&'static str, f64, Option<u64>); 5] {
        let times = &self.summary;
        let all = [times.p50, times.p90, times.p99, times.p999, times.p9999];
        let mut all = all.into_iter();
        PERCENTILES.map(|(name, quantile)| {
            let ns = all.next().filter(|_| self.has(quantile));
            (name, quantile, ns)
        })
    }

    /// Returns the percentiles that have enough times, by name, in nanoseconds.
    pub(crate) fn known(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.percentiles().into_iter();
        all.filter_map(|(name, _, ns)| Some((name, ns?)))
    }
}

/// A distribution in JSON.
#[derive(Serialize)]
struct Exported {
    count: u64,
    mean_ns: f64,
    #[serde(flatten)]
    percentiles: std::collections::BTreeMap<String, u64>,
    max_ns: u64,
    curve: Vec<Point>,
}

impl From<Distribution> for Exported {
    fn from(times: Distribution) -> Exported {
        let key = |name: &str| format!("{}_ns", name.replace('.', "_"));
        Exported {
            count: times.summary.count,
            mean_ns: times.summary.mean,
            percentiles: times.known().map(|(name, ns)| (key(name), ns)).collect(),
            max_ns: times.summary.max,
            curve: times.curve,
        }
    }
}

/// One point of a curve by quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) quantile: f64,
    pub(crate) ns: u64,
}

/// One stage, or a part of one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stage {
    pub(crate) name: String,
    /// The stage that this is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) served: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batches: Option<Batches>,
    /// The share of the elapsed time in which the stage served, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) utilisation: Option<f64>,
}

/// The number of commands that a stage took in one batch with a sampled one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Batches {
    pub(crate) mean: f64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

/// One of the slowest commands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Slow {
    /// The position in the stream, counting from 1.
    pub(crate) command: u64,
    pub(crate) kind: String,
    /// The latency from the moment the command was due.
    pub(crate) end_to_end_ns: u64,
    /// The parts that add up to the latency.
    pub(crate) parts: Vec<SlowPart>,
}

impl Slow {
    /// Returns the longest parts that together make up 95 % of the whole, the longest first.
    pub(crate) fn most(&self) -> Vec<&SlowPart> {
        let mut parts: Vec<&SlowPart> = self.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
        let mut sum = 0;
        let is_left = |part: &&SlowPart| {
            let is_left = sum * 100 < self.end_to_end_ns * 95;
            sum += part.ns;
            is_left
        };
        parts.into_iter().take_while(is_left).collect()
    }
}

/// A part of a slow command's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SlowPart {
    /// The name of the part, such as `waiting to be sent`, `waiting for execute`, `in match`.
    pub(crate) what: String,
    pub(crate) ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_times_beyond_it() {
        let json = |count| {
            let mut times = Distribution::default();
            times.summary.count = count;
            times.summary.p50 = 1;
            serde_json::to_value(times).expect("as the program and its formats promise")
        };
        let keys = ["p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "p99_99_ns"];
        for (count, known) in [
            (0, 0),
            (1, 1),
            (99, 1),
            (100, 2),
            (999, 2),
            (1_000, 3),
            (9_999, 3),
            (10_000, 4),
            (99_999, 4),
            (100_000, 5),
        ] {
            let json = json(count);
            let found = keys.iter().filter(|key| json.get(**key).is_some());
            assert_eq!(found.count(), known, "{json}");
            assert_eq!(json["max_ns"], 0);
        }
        let least = ["p50", "p90", "p99", "p99.9", "p99.99", "max"].map(commands_min);
        assert_eq!(least, [1, 100, 1_000, 10_000, 100_000, 1]);
    }
}
