//! The message bus beside others: what a publish costs, how long a message is under way, how many
//! pass; what is lost of a burst, and what becomes of an overload.
//!
//! All have the same message of 24 bytes, room for as many, and the same loops around them; what
//! each does where there is no room is said in `bus/broker.rs`.

mod broker;
mod burst;
mod flow;
mod overload;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::channels::Shape;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "bus",
    shows: "the message bus beside bus, tokio, crossbeam and disruptor; loss of a burst, checked",
    peers: &["bus", "crossbeam-channel", "disruptor", "tokio"],
    notes: "tokio overwrites what it has no room for: lost. The crate bus has only one publisher.",
    cases,
};

const OURS: &str = "thalweg bus";
/// What a message of a stream is taken to cost, to say how many there are.
const MESSAGE_NS: u64 = 50;

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = flows(settings);
    cases.extend([burst(settings), overload(settings)]);
    cases
}

fn flows(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    let shape = |senders, receivers| Shape { senders, receivers };
    let span_ns = settings.count(10_000_000);
    for capacity in [65_536, 1_024] {
        let load = flow::Publishes { capacity, span_ns };
        let heading = "one publisher, bursts of a quarter of the room, drained between them";
        let subjects = broker::subjects::<flow::One>(shape(1, 1));
        let metrics = flow::PUBLISH_METRICS;
        let name = format!("publish/1/{capacity}");
        let case = Case::of(name, heading, metrics, subjects, load);
        let case = case.repeated(21).judged(&[0]);
        cases.push(case.goal(Goal::at_most(OURS, 0, 15.0)));
        let heading = "two publishers on two cores at once";
        let subjects = broker::subjects::<flow::Two>(shape(2, 1));
        let name = format!("publish/2/{capacity}");
        let case = Case::of(name, heading, metrics, subjects, load);
        let goals = [0, 1].map(|at| Goal::at_most(OURS, at, 20.0));
        cases.push(case.repeated(21).judged(&[0]).goals(goals));
    }
    let heading = format!(
        "{} messages a second from one core to another, from before the publish until it is taken; \
         the clock read is taken off",
        flow::PER_S
    );
    let subjects = broker::subjects::<flow::Hop>(shape(1, 1));
    let span_ns = settings.count(40_000_000);
    let case = Case::of("hop", heading, flow::HOP_METRICS, subjects, span_ns);
    let case = case.repeated(21).judged(&[0, 1]);
    cases.push(case.goal(Goal::at_most(OURS, 0, 200.0)));
    for (name, senders, receivers) in [("stream/1", 1, 1), ("stream/2", 2, 1), ("fan/2", 1, 2)] {
        let shape = shape(senders, receivers);
        // After what warms up, some remain.
        let messages = settings.count(25_000_000 / MESSAGE_NS);
        let messages = messages.max(8 * flow::CAPACITY as u64);
        let load = flow::Flood { shape, messages };
        let heading = format!(
            "{senders} publishers, {receivers} consumers that each get all, room for {}",
            flow::CAPACITY
        );
        let subjects = broker::subjects::<flow::Stream>(shape);
        let metrics = flow::STREAM_METRICS;
        let case = Case::of(name, heading, metrics, subjects, load);
        cases.push(case.repeated(21).judged(&[0]));
    }
    cases
}

fn burst(settings: &Settings) -> Case {
    let total = settings.count(300_000);
    let capacity = settings.count(131_072);
    let heading = format!(
        "{total} messages of {} publishers while the consumer is stopped, room for {capacity}; \
         each message accounted for",
        burst::PUBLISHERS
    );
    let load = burst::Load { total, capacity };
    let (metrics, subjects) = (burst::METRICS, burst::subjects());
    Case::of("burst/300k", heading, metrics, subjects, load)
}

fn overload(settings: &Settings) -> Case {
    use overload::{EXPRESS, GROWN, HIGH_LOST, HIGH_P99, HIGH_WAITS_NS_MAX, OF_BOUND, SLOWED};
    let heading = format!(
        "{} publishers bring {} messages a second each, the consumer takes as many as one; room \
         for {}",
        overload::PUBLISHERS,
        overload::SERVED_PER_S,
        overload::CAPACITY
    );
    let (metrics, subjects) = (overload::METRICS, overload::subjects());
    let span_ns = settings.count(60_000_000_000);
    let case = Case::of("overload", heading, metrics, subjects, span_ns);
    case.repeated(1).goals([
        Goal::at_most(SLOWED, OF_BOUND, 1.0),
        Goal::at_most(SLOWED, HIGH_LOST, 0.0),
        // What counts as flat.
        Goal::at_most(SLOWED, GROWN, 1_048_576.0),
        Goal::at_most(EXPRESS, HIGH_P99, HIGH_WAITS_NS_MAX),
    ])
}
