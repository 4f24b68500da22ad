//! The facts of a run: what was run, what came of it, and how long it took.
//!
//! One value for every form of output. What was not measured is absent, never zero. The keys of
//! the JSON form are these field names; `docs/run-json.md` of this crate describes them.

use super::number::grouped;
use serde::Serialize;

/// Everything a run has to say.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Facts {
    /// Version of this layout.
    pub(crate) version: u32,
    pub(crate) input: Input,
    pub(crate) commands: Commands,
    pub(crate) trades: Trades,
    pub(crate) books: Vec<Book>,
    /// Hash of the final state, in hex; the same for the same commands on every machine.
    pub(crate) state_hash: String,
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

/// How long it took.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) elapsed_ns: u64,
    pub(crate) throughput_per_s: f64,
    /// Commands finished in each interval of the run.
    pub(crate) throughput: Throughput,
    /// One command in so many was timed at every stage; end to end, every command was.
    pub(crate) sampled_every: u64,
    /// From the moment a command was due (at a rate) or handed over (at max) to its last stage.
    pub(crate) end_to_end: Distribution,
    pub(crate) stages: Vec<Stage>,
    /// The slowest of all commands, slowest first.
    pub(crate) slowest: Vec<Slow>,
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

/// Commands finished over time.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Throughput {
    pub(crate) interval_ns: u64,
    pub(crate) finished: Vec<u64>,
}

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Distribution {
    pub(crate) count: u64,
    pub(crate) mean_ns: f64,
    pub(crate) p50_ns: u64,
    pub(crate) p90_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) p99_9_ns: u64,
    pub(crate) p99_99_ns: u64,
    pub(crate) max_ns: u64,
    /// Points of the curve, quantile rising from 0 towards 1.
    pub(crate) curve: Vec<Point>,
}

/// One point of a curve by quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) quantile: f64,
    pub(crate) ns: u64,
}

/// One stage.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stage {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) served: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batches: Option<Batches>,
    /// Part of the elapsed time in which the stage served, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) utilisation: Option<f64>,
}

/// How many commands a stage took at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Batches {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

/// One of the slowest commands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Slow {
    /// Position in the stream, from 1.
    pub(crate) command: u64,
    pub(crate) kind: String,
    /// From the moment it was due.
    pub(crate) end_to_end_ns: u64,
    /// What added up to that.
    pub(crate) parts: Vec<SlowPart>,
}

impl Slow {
    /// The longest parts, as many as make up 95 % of the whole, longest first.
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
    /// `waiting to be sent`, `waiting for match`, `in match`; stages together where the command was
    /// not timed at each: `from risk to publish`.
    pub(crate) what: String,
    pub(crate) ns: u64,
}

impl SlowPart {
    pub(crate) fn new(what: String, ns: u64) -> SlowPart {
        SlowPart { what, ns }
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

#[cfg(test)]
pub(crate) mod sample {
    //! Facts of a run that never was, with every kind of value in them.
    use super::*;

    /// Times around a median.
    pub(crate) fn times(p50_ns: u64) -> Distribution {
        let curve = (0..60).map(|i| Point {
            quantile: 1.0 - 0.5_f64.powf(f64::from(i) / 4.0),
            ns: p50_ns + p50_ns * i as u64 * i as u64 / 100,
        });
        Distribution {
            count: 1000,
            mean_ns: p50_ns as f64 * 1.1,
            p50_ns,
            p90_ns: p50_ns * 2,
            p99_ns: p50_ns * 5,
            p99_9_ns: p50_ns * 20,
            p99_99_ns: p50_ns * 30,
            max_ns: p50_ns * 36,
            curve: curve.collect(),
        }
    }

    fn latency() -> Latency {
        let batches = Batches {
            count: 100,
            mean: 10.0,
            p50: 9,
            p99: 64,
            max: 64,
        };
        let risk = Stage {
            name: "risk".into(),
            waited: Some(times(300)),
            served: Some(times(90)),
            batches: Some(batches),
            utilisation: Some(0.25),
        };
        let matching = Stage {
            name: "match".into(),
            waited: None,
            served: Some(times(200)),
            batches: None,
            utilisation: None,
        };
        let slow = Slow {
            command: 77,
            kind: "place".into(),
            end_to_end_ns: 1_000_000,
            parts: vec![
                SlowPart::new("in risk".into(), 1_000),
                SlowPart::new("in match".into(), 59_000),
                SlowPart::new("waiting for match".into(), 940_000),
            ],
        };
        let finished = (0..50).map(|i| 900 + (i * 37) % 200).collect();
        Latency {
            elapsed_ns: 8_000_000,
            throughput_per_s: 125_000.0,
            throughput: Throughput {
                interval_ns: 160_000,
                finished,
            },
            sampled_every: 32,
            end_to_end: times(600),
            stages: vec![risk, matching],
            slowest: vec![slow],
        }
    }

    /// The whole.
    pub(crate) fn facts() -> Facts {
        let level = |price_ticks| Level {
            price_ticks,
            size_lots: 1_500,
            orders: 3,
        };
        let score = Score {
            name: "best_levels".into(),
            label: "rows, best level".into(),
            agree: 999,
            of: 1000,
        };
        Facts {
            version: 1,
            input: Input {
                name: "orders.csv".into(),
                format: "orders".into(),
                seed: Some(7),
                rules: "default".into(),
                placement: "threads:2".into(),
                rate_per_s: Some(125_000),
                from: None,
                interrupted: false,
                waited_ns: None,
            },
            commands: Commands {
                total: 1000,
                by_kind: vec![Count::new("place", 600), Count::new("cancel", 400)],
                by_result: vec![Count::new("SUCCESS", 990), Count::new("RISK_NSF", 10)],
            },
            trades: Trades {
                count: 123,
                volume_lots: 4567,
            },
            books: vec![Book {
                symbol: 1,
                bids: vec![level(100), level(99)],
                asks: vec![level(101)],
                bid_levels: 12,
                ask_levels: 1,
            }],
            state_hash: "00000000000000ff".into(),
            latency: latency(),
            parts: Some(Parts {
                commands: 990,
                together_ns: 60.0,
                risk_ns: 20.5,
                match_ns: 30.25,
                settle_ns: 9.25,
                timed_every: 8,
                left_out: 2,
            }),
            check: Some(Check {
                against: "recorded rows".into(),
                scores: vec![score],
                counts: vec![Count::new("levels_learnt", 30)],
            }),
        }
    }
}
