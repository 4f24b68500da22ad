//! The facts of a run: the stream that was run, its results, and the times they took.
//!
//! One value serves every form of output. A figure that was not measured is absent, never zero. The
//! keys of the JSON form are these field names; `docs/run-json.md` of this crate describes them.

pub(crate) mod latency;
pub(crate) mod machine;
#[cfg(test)]
pub(crate) mod sample;

pub(crate) use latency::{
    Batches, Breakdown, Distribution, Latency, Part, Point, Slow, SlowPart, Stage, Switch,
    Throughput,
};
pub(crate) use machine::{Disturbance, Machine};

use super::explanation::Explanation;
use super::number::grouped;
use serde::Serialize;

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
    pub(crate) books: Vec<Book>,
    /// The hash of the final state, in hex, which is equal for equal commands on every machine.
    pub(crate) state_hash: String,
    /// The facts of the journal, where the run had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<Journal>,
    pub(crate) latency: Latency,
    /// The cost of a command in each part of the exchange, where there were enough commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<Parts>,
    /// The agreement with what was recorded, where there was a recording to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<Check>,
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
pub(crate) struct Book {
    pub(crate) symbol: i64,
    pub(crate) bids: Vec<Level>,
    pub(crate) asks: Vec<Level>,
    pub(crate) bid_levels: u64,
    pub(crate) ask_levels: u64,
}

/// One price of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Level {
    pub(crate) price_ticks: i64,
    pub(crate) size_lots: i64,
    pub(crate) orders: u64,
}

/// The cost of a command in each part of the exchange: means over a run of its own, on one thread
/// and without the pipeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Parts {
    /// The number of commands from the first order on.
    pub(crate) commands: u64,
    /// The CPU time of the thread for each command.
    pub(crate) together_ns: f64,
    /// The share of that time in this part; the next two fields are shares too.
    pub(crate) risk_ns: f64,
    pub(crate) match_ns: f64,
    pub(crate) settle_ns: f64,
    /// One command in this number had its parts timed; the shares are those of these commands.
    pub(crate) timed_every: u64,
    /// The number of timed commands that were interrupted and do not count.
    pub(crate) left_out: u64,
}

impl Parts {
    /// Returns a sentence about how the parts were measured.
    pub(crate) fn caption(&self) -> String {
        format!(
            "means over {} commands on one thread, without the pipeline: CPU time, divided as \
             one timed command in {} spent it, less the clock's own cost",
            grouped(self.commands),
            self.timed_every
        )
    }

    /// Returns names and times, the sum last.
    pub(crate) const fn rows(&self) -> [(&'static str, f64); 4] {
        [
            ("risk", self.risk_ns),
            ("match", self.match_ns),
            ("settle", self.settle_ns),
            ("together", self.together_ns),
        ]
    }
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
