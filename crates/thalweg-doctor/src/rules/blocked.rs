//! The rules for programs that wait.

use super::machine::BRIEF_RUNS;
use super::running::MAJOR_FAULTS;
use super::{Claim, Clue, Curve, Figure, Origin, Rule, Weighed, above, ramp};
use crate::budget::Part;
use crate::verdict::Id;

/// Several threads queue for a lock, which changes hands.
pub(super) const ONE_LOCK: Weighed = Weighed {
    clues: &[
        above(
            "lock.waiters",
            1.0,
            Origin::Definition("waiting in line takes the whole time of a thread"),
        ),
        above(
            "lock.held_share",
            0.5,
            Origin::Definition(
                "half of the waits are for what another of these threads has: those who wake \
                 wait there too, or the word is that of a taken lock (Drepper, Futexes Are Tricky)",
            ),
        ),
        above("switch.blocked", 20.0, HANDED_ON),
    ],
    weight: 0.5,
};

const HANDED_ON: Origin = Origin::Definition(
    "two switches for each hand-over: the lock changes hands ten times a second",
);

/// Goroutines may wait for a lock unseen, while the threads of their runtime park and wake.
pub(super) const GOROUTINES: Weighed = Weighed {
    clues: &[
        above(
            "lock.goroutines",
            1.0,
            Origin::Definition("waiting in line takes the whole time of a goroutine"),
        ),
        MANY_FUTEX,
    ],
    weight: 0.5,
};

const MANY_FUTEX: Clue = above("call.futex", 200.0, HAND_OVERS);
const HAND_OVERS: Origin = Origin::Measured(
    "a wake-up takes 5 to 50 µs (Zen 4, KVM): below 200 a second they cost 1 % at most, and what \
     is waited for takes the time",
);

/// The program waits so briefly that it gets answers, and it waits for each answer.
const ANSWERED: Clue = ramp(
    Figure::One("state.blocked_us"),
    500_000.0,
    250_000.0,
    AN_ANSWER,
);
const NOT_ANSWERED: Clue = ramp(
    Figure::One("state.blocked_us"),
    250_000.0,
    500_000.0,
    AN_ANSWER,
);
const AN_ANSWER: Origin =
    Origin::Definition("a wait of more than half a second is for work, not for an answer");

/// A heartbeat, or a slow answer: the cause of a long wait is not visible.
const LONG_WAITS: Weighed = Weighed {
    clues: &[above("state.blocked_us", 100_000.0, MOMENT)],
    weight: 0.4,
};

const READS: Clue = Clue {
    from: MAJOR_FAULTS.to,
    to: MAJOR_FAULTS.from,
    ..MAJOR_FAULTS
};

const SHORT_SLEEP: Clue = ramp(Figure::One("sleep.us"), 100_000.0, 50_000.0, MOMENT);
const LONG_SLEEP: Clue = ramp(Figure::One("sleep.us"), 50_000.0, 100_000.0, MOMENT);
const MOMENT: Origin =
    Origin::Definition("ten looks a second and more: polling; fewer: something periodic");

/// A program polls repeatedly, or keeps a schedule: its polls end by a timeout, as its sleeps do.
const BY_TIMER: Clue = ramp(Figure::One("poll.timer_share"), 0.25, 0.5, MOST_TIMED);
const BY_EVENT: Clue = ramp(Figure::One("poll.timer_share"), 0.5, 0.25, MOST_TIMED);
const MOST_TIMED: Origin = Origin::Definition("half of the time in polls ends by the clock");
const SHORT_WAIT: Clue = ramp(Figure::One("state.blocked_us"), 100_000.0, 50_000.0, MOMENT);
const LONG_WAIT: Clue = ramp(Figure::One("state.blocked_us"), 50_000.0, 100_000.0, MOMENT);

/// Threads that wait at a futex are woken by timeouts, not by each other.
const NOBODY_WAKES: Clue = ramp(Figure::One("futex.wake_share"), 0.5, 0.25, WAKES);
const SOMEBODY_WAKES: Clue = ramp(Figure::One("futex.wake_share"), 0.25, 0.5, WAKES);
const WAKES: Origin =
    Origin::Definition("at a half, as much of the time ends by a hand-over as by a timeout");

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: Id::BlockingIo,
        claim: Claim::Parts(&[
            (Part::Disk, &[READS]),
            (Part::Stream, &[ANSWERED]),
            (Part::Poll, &[BY_EVENT, ANSWERED]),
        ]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[],
        raises: &[Weighed {
            clues: &[above(
                "io.delay_share",
                0.1,
                Origin::Kernel("Documentation/accounting/delay-accounting.rst: time in block I/O"),
            )],
            weight: 0.3,
        }],
        contradicts: &[
            Weighed {
                weight: 0.3,
                ..ONE_LOCK
            },
            LONG_WAITS,
            Weighed {
                weight: 0.4,
                ..BRIEF_RUNS
            },
        ],
        blind: &[("state.blocked_us", "whether each wait is short")],
        limits: &["why the disk or the other end takes so long"],
        next: "Do not wait for each answer: have several requests on their way, sync once for \
               many records, read ahead, or let another thread wait.",
    },
    Rule {
        id: Id::FutexParking,
        claim: Claim::Parts(&[
            (Part::Futex, &[MANY_FUTEX, SOMEBODY_WAKES]),
            (Part::FutexCalls, &[]),
        ]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[MANY_FUTEX],
        raises: &[],
        contradicts: &[ONE_LOCK],
        blind: &[(
            "lock.held_share",
            "whether several threads wait for one lock",
        )],
        limits: &[],
        next: "Wake less often: hand over batches, spin for a few µs before parking where a core \
               is free, or do both sides' work in one thread.",
    },
    Rule {
        id: Id::LockConvoy,
        claim: Claim::Parts(&[
            (Part::FileLock, &[]),
            // The holder may sleep meanwhile, which Java and Go do in futex.
            (Part::Futex, &[]),
            (Part::FutexCalls, &[]),
            (Part::Work, &[]),
            (Part::BusyPolls, &[]),
            (Part::OtherCalls, &[]),
            (Part::Spin, &[]),
            // The holder may sleep or wait meanwhile.
            (Part::Sleep, &[]),
            (Part::Disk, &[]),
            (Part::Stream, &[]),
            (Part::Poll, &[]),
        ]),
        curve: Curve::Overhead,
        required: &["lock.waiters"],
        needs: ONE_LOCK.clues,
        raises: &[],
        contradicts: &[],
        blind: &[],
        limits: &["threads that pass a turn round look the same"],
        next: "Hold the lock for less: move work out of it, split it into shards, give each \
               thread a copy and merge, or hand over by messages.",
    },
    Rule {
        id: Id::SleepPolling,
        claim: Claim::Parts(&[
            (Part::Sleep, &[SHORT_SLEEP]),
            (Part::Poll, &[BY_TIMER, SHORT_WAIT]),
            (Part::Futex, &[NOBODY_WAKES, SOON_TIMED_OUT, SHORT_WAIT]),
        ]),
        curve: Curve::Overhead,
        required: &[],
        needs: &[],
        raises: &[],
        contradicts: &[ONE_LOCK],
        blind: &[],
        limits: &["a program that only keeps a schedule looks the same"],
        next: "Wait for the event itself: a condition variable, channel, eventfd or inotify. A \
               sleep or a timeout adds half of its length to each answer.",
    },
    Rule {
        id: Id::Idle,
        claim: Claim::Parts(&[
            (Part::Sleep, &[LONG_SLEEP]),
            (Part::Poll, &[BY_TIMER, LONG_WAIT]),
            (Part::Poll, &[BY_EVENT, NOT_ANSWERED]),
            (Part::Stream, &[NOT_ANSWERED]),
            (Part::Futex, &[FEW_FUTEX]),
            (Part::FileLock, &[NO_HAND_OVERS]),
            (Part::Child, &[]),
            (Part::Other, &[]),
        ]),
        curve: Curve::Residue,
        required: &[],
        needs: &[],
        raises: &[],
        contradicts: &[],
        blind: &[],
        limits: &["whether something else should have given it work"],
        next: "It waits for something to do. If it should be busy, look at who should feed it; \
               if it was too slow, observe it while it is under load (attach).",
    },
];

/// No thread hands the lock on: another program holds it.
const NO_HAND_OVERS: Clue = ramp(Figure::One("switch.blocked"), 20.0, 10.0, HANDED_ON);
const FEW_FUTEX: Clue = ramp(Figure::One("call.futex"), 50.0, 25.0, TIMERS);
const SOON_TIMED_OUT: Clue = ramp(Figure::One("futex.timeout_us"), 40_000.0, 20_000.0, TIMERS);
const TIMERS: Origin = Origin::Literature(
    "OpenJDK, PerfDataSamplingInterval: a runtime that idles wakes 20 times a second",
);
