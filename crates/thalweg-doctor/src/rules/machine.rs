//! The rules for what the machine, and other programs on it, do to a program.

use super::blocked::ONE_LOCK;
use super::{Claim, Curve, Figure, Origin, Rule, Weighed, above, above_ratio, ramp};
use crate::budget::Part;
use crate::verdict::Id;

/// More threads are runnable than there are cores, and they take turns on them.
pub(super) const TOO_FEW_CORES: Weighed = Weighed {
    clues: &[
        above_ratio(
            "threads.busy",
            "cpu.usable",
            1.5,
            Origin::Definition("at 1.5 threads a core each has two thirds of a core at best"),
        ),
        above(
            "run.wait_peers",
            0.3,
            Origin::Definition("1.5 threads a core wait for each other for a third of the time"),
        ),
    ],
    weight: 0.6,
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: Id::Contaminated,
        claim: Claim::Largest(
            &[&["host.wait_others", "threads.busy"], &["host.steal_share"]],
            &[Part::Queue],
        ),
        curve: Curve::Disturbance,
        required: &[],
        needs: &[],
        raises: &[],
        contradicts: &[Weighed {
            clues: &[above(
                "host.throttled_share",
                0.1,
                Origin::Definition(
                    "what a quota stops waits too, and no other program is to blame",
                ),
            )],
            weight: 0.5,
        }],
        blind: &[
            (
                "host.wait_others",
                "whether other programs had the cores that it wanted",
            ),
            (
                "host.steal_share",
                "whether the host gave this machine's cores to others",
            ),
        ],
        limits: &[],
        next: "Run it again on a quiet machine, or give it cores of its own (taskset, cpuset). \
               Until then believe no other verdict.",
    },
    Rule {
        id: Id::Throttled,
        claim: Claim::Largest(&[&["host.throttled_share"]], &[]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[],
        raises: &[],
        contradicts: &[],
        blind: &[],
        limits: &[],
        next: "Raise the quota of the cgroup (cpu.max), or use fewer threads: a quota of two \
               cores is used up in half the period by four threads, and then all of them stand.",
    },
    Rule {
        id: Id::Oversubscribed,
        claim: Claim::Parts(&[
            (Part::Work, &[]),
            (Part::OtherCalls, &[]),
            (Part::Faults, &[]),
        ]),
        curve: Curve::Overhead,
        required: &["threads.busy"],
        needs: TOO_FEW_CORES.clues,
        raises: &[],
        contradicts: &[BRIEF_RUNS, SPINNING, ONE_LOCK],
        blind: &[],
        limits: &[],
        next: "Start as many threads or processes as there are cores ({cpu.usable} here, \
               std::thread::available_parallelism or nproc), and give them the work in turns.",
    },
    Rule {
        id: Id::SchedChurn,
        claim: Claim::Parts(&[(Part::OtherCalls, &[SWITCHING_CALLS])]),
        curve: Curve::Overhead,
        required: &[],
        needs: BRIEF_RUNS.clues,
        raises: &[],
        contradicts: &[],
        blind: &[("call.all", "which calls the threads switch in")],
        limits: &[],
        next: "Hand over more at a time: batch messages, or do both steps in one thread. Each \
               switch costs 2 to 5 µs, and the threads run for {switch.run_us} µs between two.",
    },
];

/// Threads that spin have no work for which they need cores.
const SPINNING: Weighed = Weighed {
    clues: &[above(
        "spin.cpu_share",
        0.25,
        Origin::Definition("a quarter of the time is worth an answer of its own"),
    )],
    weight: 0.6,
};

/// A large share of the calls end in a switch to another thread.
pub(super) const SWITCHING_CALLS: super::Clue = above_ratio(
    "switch.blocked",
    "call.all",
    0.2,
    Origin::Measured(
        "a switch costs 2 µs and more, a call without one 0.2 to 0.5 µs (Zen 4, KVM): \
         with a switch in every fifth call, switches cost more than calls",
    ),
);

/// A thread blocks so often that its waits are hand-overs.
const OFTEN_BLOCKED: super::Clue = above(
    "switch.blocked",
    5_000.0,
    Origin::Measured("a hand-over takes 4.3 µs between cores (Zen 4, KVM): 2 % of a core"),
);

/// Threads run so briefly that switching takes a large share of their time.
pub(super) const BRIEF_RUNS: Weighed = Weighed {
    clues: &[
        ramp(
            Figure::One("switch.run_us"),
            50.0,
            25.0,
            Origin::Measured("a hand-over takes 4.3 µs between cores (Zen 4, KVM): a sixth of 25"),
        ),
        OFTEN_BLOCKED,
    ],
    weight: 0.6,
};
