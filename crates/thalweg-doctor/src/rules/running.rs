//! The rules for what a program does while it runs.

use super::machine::{BRIEF_RUNS, SWITCHING_CALLS, TOO_FEW_CORES};
use super::{Claim, Clue, Curve, Origin, Rule, Weighed, above, above_ratio, below};
use crate::budget::Part;
use crate::rules::blocked::{GOROUTINES, ONE_LOCK};
use crate::rules::exported::TOO_SHORT;
use crate::verdict::Id;

/// Peers wait for the core that a thread spins on.
pub(super) const PEERS_WAIT: Clue = above(
    "run.wait_peers",
    0.2,
    Origin::Definition("its own threads wait for a core for a fifth of the time they want one"),
);

/// Faults that a disk serves, which are a different problem than reading.
pub(super) const MAJOR_FAULTS: Clue = above(
    "fault.major",
    100.0,
    Origin::Literature("a disk answers in 0.1 to 10 ms: from 100 a second on they fill the time"),
);

const TO_MEMORY: (&str, &str) = (
    "hardware.memory_share",
    "whether it computes or waits for memory",
);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: Id::CpuCompute,
        claim: Claim::Parts(&[(Part::Work, &[])]),
        curve: Curve::Residue,
        required: &[],
        needs: &[],
        raises: &[],
        contradicts: &[
            TOO_FEW_CORES,
            ONE_LOCK,
            GOROUTINES,
            Weighed {
                clues: &[WAITS_FOR_MEMORY],
                weight: 0.6,
            },
        ],
        blind: &[
            TO_MEMORY,
            ("call.cpu_share", "how much of it is system calls"),
            ("fault.cpu_share", "how much of it is page faults"),
            ("spin.cpu_share", "how much of it is spinning"),
        ],
        limits: &[
            "a loop without a pause instruction that calls while it waits looks like computing",
        ],
        next: "Profile it (perf record, or the flame graph of --html), and make the widest \
               function cheaper or spread it over more cores.",
    },
    Rule {
        id: Id::MemoryBound,
        claim: Claim::Parts(&[(Part::Work, &[])]),
        curve: Curve::Residue,
        required: &["hardware.memory_share"],
        needs: &[WAITS_FOR_MEMORY],
        raises: &[Weighed {
            clues: &[below(
                "hardware.ipc",
                0.7,
                Origin::Literature(
                    "Gregg, Systems Performance: below 1 memory is the likely limit",
                ),
            )],
            weight: 0.5,
        }],
        contradicts: &[TOO_FEW_CORES, ONE_LOCK],
        blind: &[],
        limits: &[],
        next: "Make the data smaller or nearer: arrays instead of pointers, hot fields side by \
               side, blocks that fit the cache, huge pages.",
    },
    Rule {
        id: Id::PageFaults,
        claim: Claim::Parts(&[(Part::Faults, &[]), (Part::Disk, &[MAJOR_FAULTS])]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[],
        raises: &[Weighed {
            clues: &[above(
                "fault.minor",
                20_000.0,
                Origin::Measured("1.6 µs each (Zen 4, KVM): 3 % of a core"),
            )],
            weight: 0.2,
        }],
        contradicts: &[],
        blind: &[("fault.cpu_share", "how much of the time is page faults")],
        limits: &[],
        next: "Touch memory once and keep it: allocate at the start, reuse buffers, make them \
               smaller, or use huge pages (madvise) and an allocator that returns less.",
    },
    Rule {
        id: Id::YieldStorm,
        claim: Claim::Parts(&[(Part::Yield, &[])]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[above(
            "call.yield",
            50_000.0,
            Origin::Measured("0.2 to 0.8 µs each (Zen 4, KVM): 1 to 4 % of a core"),
        )],
        raises: &[],
        contradicts: &[],
        blind: &[("yield.cpu_share", "how much of the time is sched_yield")],
        limits: &[],
        next: "Park after a few yields: wait on a futex, condition variable or blocking queue \
               instead of calling sched_yield until something changes.",
    },
    Rule {
        id: Id::SpinStarvesPeer,
        claim: Claim::Parts(&[(Part::Spin, &[]), (Part::BusyPolls, &[])]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[PEERS_WAIT],
        raises: &[Weighed {
            clues: &[above_ratio(
                "threads.busy",
                "cpu.usable",
                1.2,
                Origin::Definition("more threads want to run than there are cores"),
            )],
            weight: 0.3,
        }],
        contradicts: &[ONE_LOCK],
        blind: &[],
        limits: &[],
        next: "{poll.busy_share>Poll with a timeout instead of asking in a loop. }Do not spin \
               where threads outnumber cores: park at once, or use no more spinning threads than \
               the {cpu.usable} cores here, each with a core of its own.",
    },
    Rule {
        id: Id::SpinBurnsCpu,
        claim: Claim::Parts(&[(Part::Spin, &[]), (Part::BusyPolls, &[])]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[],
        raises: &[Weighed {
            clues: &[above(
                "threads.spinners",
                1.0,
                Origin::Definition("one thread that spins all the time"),
            )],
            weight: 0.2,
        }],
        contradicts: &[
            Weighed {
                clues: &[PEERS_WAIT],
                weight: 0.8,
            },
            ONE_LOCK,
            // A core that no thread wants delays no message. A queue without room does.
            Weighed {
                weight: 0.3,
                ..TOO_SHORT
            },
        ],
        blind: &[],
        limits: &["whether the latency that spinning buys is worth a core"],
        next: "{poll.busy_share>Poll with a timeout instead of asking in a loop. }Bound the spin: \
               for about as long as a wake-up takes (5 to 50 µs; thalweg machine measures it), \
               then park. If latency is worth a core, leave it.",
    },
    Rule {
        id: Id::SyscallBound,
        claim: Claim::Parts(&[(Part::OtherCalls, &[])]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[above_ratio(
            "call.all",
            "cpu.used",
            50_000.0,
            Origin::Measured(
                "crossing takes 0.2 µs (Zen 4, KVM): rarer calls cost by what they do, \
                 not by crossing",
            ),
        )],
        raises: &[Weighed {
            clues: &[above(
                "cpu.system_share",
                0.4,
                Origin::Definition("much of the processor time is the kernel's"),
            )],
            weight: 0.2,
        }],
        contradicts: &[
            Weighed {
                clues: &[SWITCHING_CALLS],
                weight: 0.7,
            },
            Weighed {
                weight: 0.4,
                ..BRIEF_RUNS
            },
        ],
        blind: &[("call.cpu_share", "how much of the time is system calls")],
        limits: &[],
        next: "Make fewer and larger calls: buffer reads and writes, use readv and writev, \
               io_uring or mmap, and read the clock without a call.",
    },
];

/// The processor's pipeline waits for memory.
const WAITS_FOR_MEMORY: Clue = above(
    "hardware.memory_share",
    0.3,
    Origin::Literature("Yasin 2014, top-down: memory-bound from a fifth to a third of the slots"),
);
