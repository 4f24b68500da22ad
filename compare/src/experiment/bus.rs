//! The message bus beside others: what a publish costs, how long a message is under way, how many
//! pass; what is lost of a burst, and what becomes of an overload.
//!
//! All have the same message of 24 bytes, room for as many, and the same loops around them; what
//! each does where there is no room is said in `bus/broker.rs`.

pub mod broker;
pub mod burst;
pub(crate) mod flow;
pub(crate) mod overload;

use super::Experiment;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "bus",
    shows: "the message bus beside bus, tokio, crossbeam and disruptor; loss of a burst, checked",
    peers: &["bus", "crossbeam-channel", "disruptor", "tokio"],
    notes: "tokio overwrites what it has no room for: lost. The crate bus has only one publisher.",
    cases: |settings| {
        let mut cases = flow::publishes(settings);
        cases.push(flow::hop_case(settings));
        cases.extend(flow::streams(settings));
        cases.extend([burst::case(settings), overload::case(settings)]);
        cases
    },
};

const OURS: &str = "thalweg bus";
