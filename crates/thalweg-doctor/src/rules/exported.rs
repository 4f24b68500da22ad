//! The rules for the figures that programs built on Thalweg export about their own queues and
//! stages.

use super::running::PEERS_WAIT;
use super::{Claim, Clue, Curve, Figure, Origin, Rule, Weighed, above, ramp};
use crate::verdict::Id;

/// More messages arrive than the slowest stage can serve.
const OVERLOAD: Clue = ramp(
    Figure::Ratio("export.arrival", "export.service"),
    0.95,
    1.05,
    Origin::Literature("a queue grows without bound from a utilisation of 1 on (Kleinrock)"),
);

/// All messages can be served, with capacity to spare. A sender that waits for room sends at the
/// rate of its service: then there is none to spare.
const SPARE: Clue = ramp(
    Figure::Ratio("export.arrival", "export.service"),
    1.0,
    0.9,
    Origin::Measured("a sender that only waits for room sends at 0.97 (Zen 4, KVM)"),
);

/// Its threads wait for a core, and the messages that they would serve wait with them.
const NO_CORE: Weighed = Weighed {
    clues: &[PEERS_WAIT],
    weight: 0.5,
};

/// Senders occasionally meet a full queue, and wait there as well.
pub(super) const TOO_SHORT: Weighed = Weighed {
    clues: &[
        above("export.full_share", 0.1, NO_ROOM),
        above("export.burst", 1.0, NO_ROOM),
    ],
    weight: 0.5,
};
const NO_ROOM: Origin =
    Origin::Definition("senders find no room for a tenth of the time, in bursts of a known size");

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: Id::RateImbalance,
        claim: Claim::Largest(&[&["export.full_share"], &["export.queue_share"]], &[]),
        curve: Curve::Overhead,
        required: &["export.arrival", "export.service"],
        needs: &[OVERLOAD],
        raises: &[],
        contradicts: &[],
        blind: &[],
        limits: &[],
        next: "Serve faster or accept less: batch in the slowest stage, shard it, or refuse at \
               the door. A longer queue only makes what is delivered older.",
    },
    Rule {
        id: Id::Burst,
        claim: Claim::Largest(&[&["export.full_share"]], &[]),
        curve: Curve::Disturbance,
        required: &["export.burst"],
        needs: &[SPARE],
        raises: &[],
        contradicts: &[NO_CORE],
        blind: &[],
        limits: &[],
        next: "A queue of {export.burst} messages would have taken the longest burst. On \
               average everything can be served.",
    },
    Rule {
        id: Id::QueueingDelay,
        claim: Claim::Largest(&[&["export.queue_share"]], &[]),
        curve: Curve::Residue,
        required: &[],
        needs: &[SPARE],
        raises: &[],
        contradicts: &[NO_CORE, TOO_SHORT],
        blind: &[],
        limits: &[],
        next: "Messages wait longer than they are served, most of all for \
               {export.queue_share:source}. Give that stage's thread a core, make progress \
               visible earlier (fewer events a batch), or lower the utilisation of the slowest.",
    },
    Rule {
        id: Id::StageBound,
        claim: Claim::Largest(&[&["export.stage_share"]], &[]),
        curve: Curve::Residue,
        required: &[],
        needs: &[],
        raises: &[],
        contradicts: &[Weighed {
            clues: &[SPARE],
            weight: 0.3,
        }],
        blind: &[],
        limits: &[],
        next: "One stage limits the pipeline ({export.stage_share:source}): make it cheaper, \
               shard it, or move a part of it to another stage.",
    },
];
