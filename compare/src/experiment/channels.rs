//! Channels of this project beside others: streams, round trips, waiting, crowds and replies.

pub(crate) mod crowd;
pub(crate) mod reply;
pub mod stream;
pub(crate) mod waiting;

use super::Experiment;

const PEERS: &[&str] = &[
    "crossbeam-channel",
    "flume",
    "gil",
    "kanal",
    "omango",
    "oneshot",
    "rtrb",
    "tokio",
];

pub(crate) const CHANNELS: Experiment = Experiment {
    name: "channels",
    shows: "channels beside crossbeam, flume, kanal, std, tokio, rtrb, gil and others",
    peers: PEERS,
    notes: "Without batches on both sides: crossbeam, std, omango; flume and kanal can drain but \
            not send several. Without waiting calls: rtrb; those of omango and gil's parking \
            queues lose wake-ups.",
    cases: |settings| {
        let mut cases = stream::cases(settings);
        cases.extend(waiting::sparse_cases(settings));
        cases.extend(crowd::cases(settings));
        cases.extend([reply::case(settings), waiting::idle_case(settings)]);
        cases
    },
};

pub(crate) const BURST: Experiment = Experiment {
    name: "burst",
    shows: "100,000 orders at once through a channel, up to 20 senders",
    peers: PEERS,
    notes: "The stamp is taken before `send`. So a slower sender makes a shorter queue and better \
            quantiles, and p50 says whether the receiver happened to keep up. Wall time counts \
            from before the channel is made until all threads have ended; flow time from the first \
            `send` to the last `recv`.",
    cases: crowd::bursts,
};
