//! Channels of this project beside others: streams, round trips, waiting, crowds and replies.

pub(crate) mod crowd;
pub(crate) mod reply;
pub mod stream;
pub(crate) mod waiting;

use super::Experiment;

pub(crate) const CHANNELS: Experiment = Experiment {
    name: "channels",
    shows: "channels beside crossbeam, flume, kanal, std, tokio, rtrb, gil and others",
    peers: &[
        "crossbeam-channel",
        "flume",
        "gil",
        "kanal",
        "omango",
        "oneshot",
        "rtrb",
        "tokio",
    ],
    notes: "Without batches on both sides: crossbeam, std, omango; flume and kanal can drain but \
            not send several. Without waiting calls: rtrb; those of omango and gil's parking \
            queues lose wake-ups.",
    cases: |settings| {
        let mut cases = stream::cases(settings);
        cases.extend(waiting::sparse_cases(settings));
        cases.extend(crowd::cases(settings));
        cases.push(reply::case(settings));
        cases
    },
};
