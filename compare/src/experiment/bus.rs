//! The message bus beside others: the cost of a publish, the latency of a message, the throughput.
//!
//! All have one message of 24 bytes, room for as many, and one set of loops around them;
//! `bus/broker.rs` says what each does without room.

pub mod broker;
pub(crate) mod flow;

use super::Experiment;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "bus",
    shows: "the message bus beside bus, tokio, crossbeam and disruptor",
    peers: &["bus", "crossbeam-channel", "disruptor", "tokio"],
    notes: "tokio overwrites what it has no room for: lost. The crate bus has only one publisher.",
    cases: |settings| {
        let mut cases = flow::publishes(settings);
        cases.push(flow::hop_case(settings));
        cases.extend(flow::streams(settings));
        cases
    },
};

const OURS: &str = "thalweg bus";
