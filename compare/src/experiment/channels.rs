//! Channels: this project's beside the others, in the jobs that channels have.

mod crowd;
mod reply;
mod stream;
mod waiting;

use thalweg_measure::clock::Clock;

use super::Experiment;
use crate::case::{Case, Goal, Limit, Settings};
use crate::channels::Shape;
use crate::report::ns;

const PEERS: &[&str] = &[
    "crossbeam-channel",
    "disruptor",
    "flume",
    "gil",
    "kanal",
    "omango",
    "oneshot",
    "ringbuf",
    "rtrb",
    "tokio",
];

pub(crate) const CHANNELS: Experiment = Experiment {
    name: "channels",
    shows: "channels beside crossbeam, flume, kanal, std, tokio, rtrb, ringbuf, gil and others",
    peers: PEERS,
    notes: "Without batches on both sides: crossbeam, std, omango; flume and kanal can drain but \
            not send several. Without waiting calls: rtrb, ringbuf; disruptor's consumers spin or \
            sleep for fixed times; omango's waiting calls and gil's parking queues lose wake-ups.",
    cases,
};

pub(crate) const BURST: Experiment = Experiment {
    name: "burst",
    shows: "100,000 orders at once through a channel, up to 20 senders or receivers",
    peers: PEERS,
    notes: "The stamp is taken before `send`. So a slower sender makes a shorter queue and better \
            quantiles, and p50 says whether the receiver happened to keep up. Wall time counts \
            from before the channel is made until all threads have ended; flow time from the first \
            `send` to the last `recv`.",
    cases: bursts,
};

/// Gaps between sparse messages, and the names of their cases.
const GAPS: [(&str, u64); 3] = [("20us", 20_000), ("200us", 200_000), ("1ms", 1_000_000)];
/// Senders and receivers, and the names of their cases.
const SHAPES: [(&str, usize, usize); 3] = [
    ("fanin/4x1", 4, 1),
    ("fanin/20x1", 20, 1),
    ("fanout/1x20", 1, 20),
];
const BURSTS: [(usize, usize); 4] = [(1, 1), (5, 1), (20, 1), (1, 20)];

fn cases(settings: &Settings) -> Vec<Case> {
    let pinned = "room for 1,024, pinned to two cores";
    let span_ns = settings.count(12_000_000);
    let one = stream::one_by_one();
    let heading = format!("one at a time, try and spin, {pinned}");
    let one = Case::of("one/8B/1024", heading, stream::METRICS, one, span_ns);
    let batch = stream::batches();
    let heading = format!("batches of {}, {pinned}", stream::BATCH);
    let batch = Case::of("batch/8B/1024", heading, stream::METRICS, batch, span_ns);
    let trips = stream::round_trips();
    let read = ns(Clock::global().read_cost_ns());
    let heading = format!("there and back, {pinned}; one clock read of {read} a trip included");
    let trips = Case::of(
        "roundtrip/8B",
        heading,
        stream::TRIP_METRICS,
        trips,
        span_ns,
    );
    let best = |metric, least| Goal::Best(metric, Limit::AtLeast(least));
    let mut cases = vec![
        one.repeated(31).judged(&[0]).goal(best(0, 1.3)),
        batch.repeated(31).judged(&[0]).goal(best(0, 1.3)),
        trips.repeated(31).judged(&[0, 1]).goal(best(0, 1.15)),
    ];
    cases.extend(sparse(settings));
    cases.extend(crowds(settings));
    let span_ns = settings.count(8_000_000);
    let heading = "made, sent and received on one thread";
    let alone = reply::alone();
    let alone = Case::of(
        "oneshot/alone",
        heading,
        reply::ALONE_METRICS,
        alone,
        span_ns,
    );
    let heading = "made, sent with a request, replied to, pinned to two cores; the request's way \
                   and two clock reads included";
    let across = reply::across();
    let across = Case::of(
        "oneshot/across",
        heading,
        reply::ACROSS_METRICS,
        across,
        span_ns,
    );
    let heading = "a receiver on an empty channel and a sender on a full one";
    let span_ns = settings.count(1_000_000_000);
    let idle = Case::of(
        "idle",
        heading,
        waiting::IDLE_METRICS,
        waiting::idle(),
        span_ns,
    );
    let both = [0, 1].map(|end| Goal::at_most("thalweg spsc", end, 0.5e6));
    cases.extend([
        alone.repeated(31).judged(&[0]),
        across.repeated(31).judged(&[0, 1]),
        idle.repeated(7).goals(both),
    ]);
    cases
}

fn sparse(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for (place, is_shared) in [("across", false), ("shared-core", true)] {
        for (gap, gap_ns) in GAPS {
            let name = format!("sparse/{gap}/regular/{place}");
            let heading = "both ends wait, pinned; the sender sleeps in between";
            let span_ns = settings.count(120_000_000);
            let load = waiting::Sparse {
                gap_ns,
                is_shared,
                span_ns,
            };
            let (metrics, subjects) = (waiting::SPARSE_METRICS, waiting::sparse());
            let case = Case::of(name, heading, metrics, subjects, load);
            cases.push(case.repeated(9).judged(waiting::SPARSE_JUDGED));
        }
    }
    cases
}

fn crowds(settings: &Settings) -> Vec<Case> {
    let cases = SHAPES.map(|(name, senders, receivers)| {
        let load = crowd::Load {
            shape: Shape { senders, receivers },
            messages: settings.count(300_000),
        };
        let subjects = crowd::subjects(load.shape);
        let heading = "room for 1,024 in all, waiting calls, not pinned";
        let case = Case::of(name, heading, crowd::METRICS, subjects, load);
        let goal = Goal::Best(0, Limit::AtLeast(1.1));
        case.repeated(31).judged(&[0]).goal(goal)
    });
    cases.into()
}

fn bursts(settings: &Settings) -> Vec<Case> {
    let orders = settings.count(100_000) as usize;
    let cases = BURSTS.map(|(senders, receivers)| {
        let shape = Shape { senders, receivers };
        let heading = format!("{orders} orders at once, room for ten times as many, not pinned");
        let load = crowd::Burst { shape, orders };
        let name = format!("{senders}x{receivers}");
        let subjects = crowd::bursts(shape);
        let case = Case::of(name, heading, crowd::BURST_METRICS, subjects, load);
        let case = case.repeated(51).judged(&[crowd::WALL, crowd::P99]);
        let goal = |ours, metric, least| Goal::ratio([ours, "crossbeam"], metric, least);
        case.goals(match senders {
            1 => vec![goal("thalweg soft limit", crowd::WALL, 0.95)],
            _ => vec![
                goal("thalweg", crowd::WALL, 1.05),
                goal("thalweg", crowd::P99, 2.0),
            ],
        })
    });
    cases.into()
}
