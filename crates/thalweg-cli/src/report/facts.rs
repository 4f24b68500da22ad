//! The facts of a run: what was run, what came of it, and how long it took.
//!
//! One value for every form of output. What was not measured is absent, never zero. The keys of
//! the JSON form are these field names; `docs/run-json.md` of this crate describes them.

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

/// Everything a run has to say.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Facts {
    /// Version of this layout.
    pub(crate) version: u32,
    /// Where the tail comes from; absent where too few commands were run to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<Explanation>,
    pub(crate) machine: Machine,
    pub(crate) input: Input,
    pub(crate) commands: Commands,
    pub(crate) trades: Trades,
    pub(crate) books: Vec<Book>,
    /// Hash of the final state, in hex; the same for the same commands on every machine.
    pub(crate) state_hash: String,
    /// What was journaled, where the run had a journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<Journal>,
    pub(crate) latency: Latency,
    /// What a command costs in each part, where there were enough of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<Parts>,
    /// Agreement with what was recorded, where there was something to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<Check>,
}

/// Where the commands came from and how they were run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    pub(crate) rules: String,
    pub(crate) placement: String,
    /// Absent: as fast as they go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_per_s: Option<u64>,
    /// The number of the first command that was run, where it is not 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<u64>,
    /// True where Ctrl-C ended the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) interrupted: bool,
    /// How long the sender waited until commands were read, where it had to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited_ns: Option<u64>,
}

/// What a durable exchange has of the run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Journal {
    pub(crate) directory: String,
    /// `always`, or `never`.
    pub(crate) sync: &'static str,
    /// Commands that it had before.
    pub(crate) commands_before: u64,
    /// Those that it has now.
    pub(crate) commands: u64,
    /// Of the records of the run.
    pub(crate) bytes: u64,
    /// How often the run waited for the disk.
    pub(crate) commits: u64,
    /// How long that took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commands_per_commit: Option<f64>,
    /// Of all commands and what came of them, in hex; as `recover` and `verify` show it, and so is
    /// the hash of the state's bytes.
    pub(crate) digest: String,
    pub(crate) state_hash: String,
    /// Commands in its last snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<u64>,
    /// Why there is none of all commands.
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
    /// So many of that name.
    pub(crate) fn new(name: impl Into<String>, count: u64) -> Count {
        Count {
            name: name.into(),
            count,
        }
    }
}

/// What was asked of the exchange, and how it answered.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Commands {
    pub(crate) total: u64,
    pub(crate) by_kind: Vec<Count>,
    pub(crate) by_result: Vec<Count>,
}

/// What was traded.
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

/// What a command costs in each part of the exchange: means over a run of its own, on one thread
/// and without the pipeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Parts {
    /// From the first order on.
    pub(crate) commands: u64,
    /// CPU time of the thread.
    pub(crate) together_ns: f64,
    /// Its share of that; so are the next two.
    pub(crate) risk_ns: f64,
    pub(crate) match_ns: f64,
    pub(crate) settle_ns: f64,
    /// The shares are those of one command in so many, whose parts were timed.
    pub(crate) timed_every: u64,
    /// Timed commands that were interrupted, and do not count.
    pub(crate) left_out: u64,
}

impl Parts {
    /// How it was measured, in a sentence.
    pub(crate) fn caption(&self) -> String {
        format!(
            "means over {} commands on one thread, without the pipeline: CPU time, divided as \
             one timed command in {} spent it, less the clock's own cost",
            grouped(self.commands),
            self.timed_every
        )
    }

    /// Names and times, the sum last.
    pub(crate) const fn rows(&self) -> [(&'static str, f64); 4] {
        [
            ("risk", self.risk_ns),
            ("match", self.match_ns),
            ("settle", self.settle_ns),
            ("together", self.together_ns),
        ]
    }
}

/// Agreement with what was recorded.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Check {
    /// What it was compared with.
    pub(crate) against: String,
    /// Agreements: so many of so many.
    pub(crate) scores: Vec<Score>,
    /// Counts that are no agreement, such as the orders that had to be learnt.
    pub(crate) counts: Vec<Count>,
}

/// So many of so many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Score {
    /// Stable name in snake case.
    pub(crate) name: String,
    /// The same for people.
    pub(crate) label: String,
    pub(crate) agree: u64,
    pub(crate) of: u64,
}

impl Score {
    /// The agreeing part, from 0 to 1; of nothing, 1.
    pub(crate) fn part(&self) -> f64 {
        if self.of == 0 {
            1.0
        } else {
            self.agree as f64 / self.of as f64
        }
    }
}
