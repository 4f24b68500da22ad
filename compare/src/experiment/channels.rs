//! Channels: this project's beside the others, in the jobs that channels have.

mod crowd;
mod reply;
mod stream;
mod waiting;

use thalweg_measure::clock::Clock;

use super::Experiment;
use crate::case::{Case, Goal, Limit, Settings};
use crate::channels::{Message, Shape, Wide};
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
const SHAPES: [(&str, usize, usize); 4] = [
    ("fanin/4x1", 4, 1),
    ("fanin/20x1", 20, 1),
    ("fanout/1x20", 1, 20),
    ("many/2x2", 2, 2),
];
const BURSTS: [(usize, usize); 4] = [(1, 1), (5, 1), (20, 1), (1, 20)];

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    streams::<u64>(settings, &mut cases);
    streams::<Wide>(settings, &mut cases);
    round_trips::<u64>(settings, &mut cases);
    round_trips::<Wide>(settings, &mut cases);
    for placement in waiting::Placement::EACH {
        for (gap, gap_ns) in GAPS {
            let case = format!("sparse/{gap}/regular/{}", placement.name());
            let heading = format!("both ends wait, {}", placement.says());
            let span_ns = settings.count(120_000_000);
            let load = waiting::Sparse {
                gap_ns,
                placement,
                span_ns,
            };
            let (metrics, subjects) = (waiting::SPARSE_METRICS, waiting::sparse());
            let case = Case::new(case, heading, metrics, subjects, move || Ok(load));
            cases.push(case.repeated(9).judged(waiting::SPARSE_JUDGED));
        }
    }
    for (case, senders, receivers) in SHAPES {
        let shape = Shape { senders, receivers };
        let heading = format!(
            "room for {} in all, waiting calls, not pinned",
            crowd::CAPACITY
        );
        let messages = settings.count(300_000);
        let load = crowd::Load { shape, messages };
        let (metrics, subjects) = (crowd::METRICS, crowd::subjects(shape));
        let case = Case::new(case, heading, metrics, subjects, move || Ok(load));
        let goal = Goal::Best(0, Limit::AtLeast(1.1));
        cases.push(case.repeated(31).judged(&[0]).goal(goal));
    }
    let span_ns = settings.count(8_000_000);
    let heading = "made, sent and received on one thread";
    let (metrics, subjects) = (reply::ALONE_METRICS, reply::alone());
    let case = Case::new("oneshot/alone", heading, metrics, subjects, move || {
        Ok(span_ns)
    });
    cases.push(case.repeated(31).judged(&[0]));
    let heading = "made, sent with a request, replied to, pinned to two cores; the request's way \
                   and two clock reads included";
    let (metrics, subjects) = (reply::ACROSS_METRICS, reply::across());
    let case = Case::new("oneshot/across", heading, metrics, subjects, move || {
        Ok(span_ns)
    });
    cases.push(case.repeated(31).judged(&[0, 1]));
    let heading = "a receiver on an empty channel and a sender on a full one";
    let span_ns = settings.count(1_000_000_000);
    let (metrics, subjects) = (waiting::IDLE_METRICS, waiting::idle());
    let case = Case::new("idle", heading, metrics, subjects, move || Ok(span_ns));
    let goals = [
        Goal::at_most("thalweg spsc", 0, 0.5e6),
        Goal::at_most("thalweg spsc", 1, 0.5e6),
    ];
    cases.push(case.repeated(7).goals(goals));
    cases
}

fn streams<M: Message>(settings: &Settings, cases: &mut Vec<Case>) {
    let span_ns = settings.count(12_000_000);
    for capacity in [1024, 65_536] {
        let load = stream::Load { capacity, span_ns };
        let is_small = capacity == 1024;
        let name = format!("one/{}/{capacity}", M::SIZE);
        let heading = "one at a time, try and spin, pinned to two cores";
        let (metrics, subjects) = (stream::METRICS, stream::one_by_one::<M>());
        let case = Case::new(name, heading, metrics, subjects, move || Ok(load));
        let limit = Limit::AtLeast(if is_small { 1.3 } else { 1.0 });
        cases.push(case.repeated(31).judged(&[0]).goal(Goal::Best(0, limit)));
        let name = format!("batch/{}/{capacity}", M::SIZE);
        let heading = format!("batches of {}, pinned to two cores", stream::BATCH);
        let (metrics, subjects) = (stream::METRICS, stream::batches::<M>());
        let case = Case::new(name, heading, metrics, subjects, move || Ok(load));
        let goal = Goal::Best(0, Limit::AtLeast(1.3));
        cases.push(case.repeated(31).judged(&[0]).goal(goal));
    }
}

fn round_trips<M: Message>(settings: &Settings, cases: &mut Vec<Case>) {
    let span_ns = settings.count(15_000_000);
    let heading = format!(
        "there and back, pinned to two cores; one clock read of {} a trip included",
        ns(Clock::global().read_cost_ns())
    );
    let (metrics, subjects) = (stream::TRIP_METRICS, stream::round_trips::<M>());
    let name = format!("roundtrip/{}", M::SIZE);
    let case = Case::new(name, heading, metrics, subjects, move || Ok(span_ns));
    let goals = [(0, 1.15), (1, 1.3)].map(|(at, least)| Goal::Best(at, Limit::AtLeast(least)));
    cases.push(case.repeated(31).judged(&[0, 1]).goals(goals));
}

fn bursts(settings: &Settings) -> Vec<Case> {
    let orders = settings.count(100_000) as usize;
    let cases = BURSTS.map(|(senders, receivers)| {
        let shape = Shape { senders, receivers };
        let heading = format!(
            "{orders} orders at once, {senders} senders, {receivers} receivers, room for {} in \
             all, not pinned",
            crowd::BURST_CAPACITY
        );
        let load = crowd::Burst { shape, orders };
        let (metrics, subjects) = (crowd::BURST_METRICS, crowd::bursts(shape));
        let name = format!("{senders}x{receivers}");
        let case = Case::new(name, heading, metrics, subjects, move || Ok(load));
        let case = case.repeated(51).judged(&[crowd::WALL, crowd::P99]);
        let goal = |ours, metric, least| Goal::ratio([ours, "crossbeam"], metric, least);
        if senders > 1 {
            let wall = goal("thalweg", crowd::WALL, 1.05);
            case.goals([wall, goal("thalweg", crowd::P99, 2.0)])
        } else {
            case.goal(goal("thalweg soft limit", crowd::WALL, 0.95))
        }
    });
    cases.into()
}
