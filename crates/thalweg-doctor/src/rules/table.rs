//! The rules, as data.

use crate::evidence::Topic;
use crate::evidence::breakdown::Part;
use crate::rules::verdict::Id;
use crate::rules::{Claim, Clue, Curve, Quantity, Rule, Weighed, weighed};

/// Makes a clue: a figure, its threshold, and the origin of the threshold. It begins to hold at the
/// half of a lower bound, and at the double of an upper one, unless this is given.
macro_rules! clue {
    { @ $figure:expr, $from:expr, $to:expr, $origin:expr } => {
        Clue { figure: $figure, from: $from, to: $to, origin: $origin }
    };
    { $g:ident.$n:ident > $to:literal, $origin:expr } => {
        clue! { $g.$n from $to / 2.0, $to, $origin }
    };
    { $g:ident.$n:ident < $to:literal, $origin:expr } => {
        clue! { $g.$n from $to * 2.0, $to, $origin }
    };
    { $g:ident.$n:ident from $from:expr, $to:expr, $origin:expr } => {
        clue! { @ Quantity::One(concat!(stringify!($g), ".", stringify!($n))), $from, $to, $origin }
    };
    { $g:ident.$n:ident / $h:ident.$m:ident > $to:literal, $origin:expr } => {
        clue! { $g.$n / $h.$m from $to / 2.0, $to, $origin }
    };
    { $g:ident.$n:ident / $h:ident.$m:ident from $from:expr, $to:expr, $origin:expr } => {
        clue! {
            @ Quantity::Ratio(
                concat!(stringify!($g), ".", stringify!($n)),
                concat!(stringify!($h), ".", stringify!($m)),
            ), $from, $to, $origin
        }
    };
}

/// More threads are runnable than there are cores, and they take turns on them.
const TOO_FEW_CORES: Weighed = weighed(
    0.6,
    &[
        clue! {
            threads.busy / cpu.usable > 1.5,
            "at 1.5 threads a core each has two thirds of a core at best"
        },
        clue! {
            run.wait_peers > 0.3, "1.5 threads a core wait for each other for a third of the time"
        },
    ],
);

/// A quota stops the threads.
const STOPPED: Weighed = weighed(
    0.5,
    &[clue! {
        host.throttled_share > 0.1,
        "what a quota stops waits too, and no other thread is to blame"
    }],
);

pub(crate) const MACHINE: &[Rule] = &[
    Rule {
        id: Id::Contaminated,
        claim: Claim::Largest(
            &[&["host.wait_others", "threads.busy"], &["host.steal_share"]],
            &[Part::Queue],
        ),
        curve: Curve::Disturbance,
        contradicts: &[STOPPED],
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
        places: &[Topic::Others],
        next: "Run it again on a quiet machine, or give it cores of its own (taskset, cpuset). \
               Until then believe no other verdict.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::Throttled,
        claim: Claim::Largest(&[&["host.throttled_share"]], &[]),
        curve: Curve::Overhead,
        next: "Raise the quota of the cgroup (cpu.max), or use fewer threads: a quota of two \
               cores is used up in half the period by four threads, and then all of them stand.",
        ..Rule::EMPTY
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
        contradicts: &[BRIEF_RUNS, SPINNING, ONE_LOCK, STOPPED],
        places: &[Topic::Functions, Topic::Tool],
        next: "Start as many threads or processes as there are cores ({cpu.usable} here, \
               std::thread::available_parallelism or nproc), and give them the work in turns.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::SchedChurn,
        claim: Claim::Parts(&[(Part::OtherCalls, &[SWITCHING_CALLS])]),
        curve: Curve::Overhead,
        needs: BRIEF_RUNS.clues,
        blind: &[("call.all", "which calls the threads switch in")],
        places: &[Topic::Calls, Topic::Waits],
        next: "Hand over more at a time: batch messages, or do both steps in one thread. Each \
               switch costs 2 to 5 µs, and the threads run for {switch.run_us} µs between two.",
        ..Rule::EMPTY
    },
];

/// Threads that spin have no work for which they need cores.
const SPINNING: Weighed = weighed(
    0.6,
    &[clue! {
        spin.cpu_share > 0.25, "a quarter of the time is worth an answer of its own"
    }],
);

/// A large share of the calls end in a switch to another thread.
const SWITCHING_CALLS: Clue = clue! {
    switch.handed / call.all > 0.2,
    "measured: a switch costs 2 µs and more, a call without one 0.2 to 0.5 µs (Zen 4, KVM): with \
     a switch in every fifth call, switches cost more than calls"
};

/// A thread blocks so often, and not for a disk, that its waits are hand-overs.
const OFTEN_BLOCKED: Clue = clue! {
    switch.handed > 5_000.0,
    "measured: a hand-over takes 4.3 µs between cores (Zen 4, KVM): 2 % of a core"
};

/// Threads run so briefly that switching takes a large share of their time.
const BRIEF_RUNS: Weighed = weighed(
    0.6,
    &[
        clue! {
            switch.run_us from 50.0, 25.0,
            "measured: a hand-over takes 4.3 µs between cores (Zen 4, KVM): a sixth of 25"
        },
        OFTEN_BLOCKED,
    ],
);

/// Peers wait for the core that a thread spins on.
const PEERS_WAIT: Clue = clue! {
    run.wait_peers > 0.2, "its own threads wait for a core for a fifth of the time they want one"
};

/// A peer can wait for the core of a spinning thread where there are fewer cores than threads.
const STARVED: Weighed = weighed(
    0.8,
    &[
        PEERS_WAIT,
        clue! {
            threads.busy / cpu.usable from 1.0, 1.2,
            "more threads want to run than there are cores"
        },
    ],
);

/// Faults that a disk serves, which are a different problem than reading.
const MAJOR_FAULTS: Clue = clue! {
    fault.major > 100.0,
    "literature: a disk answers in 0.1 to 10 ms: from 100 a second on they fill the time"
};

pub(crate) const RUNNING: &[Rule] = &[
    Rule {
        id: Id::CpuCompute,
        claim: Claim::Parts(&[(Part::Work, &[])]),
        curve: Curve::Residue,
        contradicts: &[TOO_FEW_CORES, ONE_LOCK, GOROUTINES],
        blind: &[
            ("call.cpu_share", "how much of it is system calls"),
            ("fault.cpu_share", "how much of it is page faults"),
            ("spin.cpu_share", "how much of it is spinning"),
        ],
        limits: &[
            "whether it computes or waits for memory",
            "a loop without a pause instruction that calls while it waits looks like computing",
        ],
        places: &[Topic::Functions, Topic::Tool],
        next: "Profile it (perf record, or the flame graph of --html), and make the widest \
               function cheaper or spread it over more cores. If that is a garbage collector, \
               allocate less or give it a larger heap.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::PageFaults,
        claim: Claim::Parts(&[(Part::Faults, &[]), (Part::Disk, &[MAJOR_FAULTS])]),
        curve: Curve::Overhead,
        blind: &[("fault.cpu_share", "how much of the time is page faults")],
        places: &[Topic::Faults, Topic::Tool],
        next: "Touch memory once and keep it: allocate at the start, reuse buffers, make them \
               smaller, or use huge pages (madvise) and an allocator that returns less. Where a \
               disk serves them, read ahead (MADV_WILLNEED) or keep more of the file in memory.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::YieldStorm,
        claim: Claim::Parts(&[(Part::Yield, &[])]),
        curve: Curve::Overhead,
        needs: &[clue! {
            call.yield / cpu.used > 50_000.0,
            "measured: 0.2 to 0.8 µs each (Zen 4, KVM): 1 to 4 % of a core"
        }],
        blind: &[("yield.cpu_share", "how much of the time is sched_yield")],
        places: &[Topic::Calls, Topic::Tool],
        next: "Park after a few yields: wait on a futex, condition variable or blocking queue \
               instead of calling sched_yield until something changes.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::SpinStarvesPeer,
        claim: Claim::Parts(&[(Part::Spin, &[]), (Part::BusyPolls, &[])]),
        curve: Curve::Overhead,
        needs: STARVED.clues,
        contradicts: &[ONE_LOCK],
        places: &[Topic::Functions, Topic::Tool],
        next: "Do not spin where threads outnumber cores: park at once, poll with a timeout, or \
               use no more spinning threads than the {cpu.usable} cores here, each with a core of \
               its own.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::SpinBurnsCpu,
        claim: Claim::Parts(&[(Part::Spin, &[]), (Part::BusyPolls, &[])]),
        curve: Curve::Overhead,
        contradicts: &[
            STARVED,
            ONE_LOCK,
            // A core that no thread wants delays no message. A queue without room does.
            TOO_SHORT.by(0.3),
        ],
        limits: &["whether the latency that spinning buys is worth a core"],
        places: &[Topic::Functions, Topic::Tool],
        next: "Bound the spin: for about as long as a wake-up takes (5 to 50 µs; thalweg machine \
               measures it), then park, or poll with a timeout. If latency is worth a core, leave \
               it.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::SyscallBound,
        claim: Claim::Parts(&[(Part::OtherCalls, &[])]),
        curve: Curve::Overhead,
        contradicts: &[
            weighed(0.7, &[SWITCHING_CALLS]),
            BRIEF_RUNS.by(0.4),
            CALLS_OF_FUTEX,
        ],
        blind: &[("call.cpu_share", "how much of the time is system calls")],
        places: &[Topic::Calls, Topic::Tool],
        next: "Make fewer and larger calls: buffer reads and writes, use readv and writev, \
               io_uring or mmap, and read the clock without a call. Where few calls take the \
               time, ask the kernel for less in each.",
        ..Rule::EMPTY
    },
];

/// Several threads queue for a lock, which changes hands ten times a second.
const ONE_LOCK: Weighed = weighed(
    0.5,
    &[
        clue! {
            lock.waiters > 1.0, "waiting in line takes the whole time of a thread"
        },
        clue! {
            lock.held_share > 0.5, HANDED_ON
        },
        clue! {
            lock.waiters / threads.busy > 0.5,
            "they wait for the lock rather than for a core: one waits for each two that do not"
        },
    ],
);

/// Goroutines may wait for a lock unseen, while the threads of their runtime park and wake.
const GOROUTINES: Weighed = weighed(
    0.5,
    &[
        clue! {
            lock.goroutines > 1.0, "waiting in line takes the whole time of a goroutine"
        },
        MANY_FUTEX,
    ],
);

/// The calls may be those of futex, which are another answer.
const CALLS_OF_FUTEX: Weighed = weighed(
    0.3,
    &[
        MANY_FUTEX,
        clue! {
            futex.cpu_share > 0.25, "a quarter of the time is worth an answer of its own"
        },
    ],
);

const MANY_FUTEX: Clue = clue! { call.futex > 200.0, HAND_OVERS };
const HAND_OVERS: &str = "measured: a wake-up takes 5 to 50 µs (Zen 4, KVM): below 200 a second \
                          they cost 1 % at most, and what is waited for takes the time";

/// The program waits so briefly that it gets answers, and it waits for each answer.
const ANSWERED: Clue = clue! { state.blocked_us from 500_000.0, 250_000.0, AN_ANSWER };
const NOT_ANSWERED: Clue = clue! { state.blocked_us from 250_000.0, 500_000.0, AN_ANSWER };
const AN_ANSWER: &str = "a wait of more than half a second is for work, not for an answer";

/// Other programs have nearly all cores, so the other end may wait for one.
const NO_CORE_LEFT: Weighed = weighed(
    0.4,
    &[
        clue! {
            host.others / cpu.usable from 0.8, 0.95,
            "a peer on this machine gets a twentieth of its cores at most"
        },
        clue! { block.disk from 0.5, 0.25, "a disk answers without a core" },
    ],
);

/// A heartbeat, or a slow answer: the cause of a long wait is not visible.
const LONG_WAITS: Weighed = weighed(0.4, &[clue! { state.blocked_us > 100_000.0, MOMENT }]);

const READS: Clue = Clue {
    from: MAJOR_FAULTS.to,
    to: MAJOR_FAULTS.from,
    ..MAJOR_FAULTS
};

const SHORT_SLEEP: Clue = clue! { sleep.us from 100_000.0, 50_000.0, MOMENT };
const LONG_SLEEP: Clue = clue! { sleep.us from 50_000.0, 100_000.0, MOMENT };
const MOMENT: &str = "ten looks a second and more: polling; fewer: something periodic";

/// A program polls repeatedly, or keeps a schedule: its polls end by a timeout, as its sleeps do.
const BY_TIMER: Clue = clue! { poll.timer_share from 0.25, 0.5, MOST_TIMED };
const BY_EVENT: Clue = clue! { poll.timer_share from 0.5, 0.25, MOST_TIMED };
const MOST_TIMED: &str = "half of the time in polls ends by the clock";
const SHORT_WAIT: Clue = clue! { state.blocked_us from 100_000.0, 50_000.0, MOMENT };
const LONG_WAIT: Clue = clue! { state.blocked_us from 50_000.0, 100_000.0, MOMENT };

/// Threads that wait at a futex are woken by timeouts, not by each other.
const NOBODY_WAKES: Clue = clue! { futex.wake_share from 0.5, 0.25, WAKES };
const SOMEBODY_WAKES: Clue = clue! { futex.wake_share from 0.25, 0.5, WAKES };
const WAKES: &str = "at a half, as much of the time ends by a hand-over as by a timeout";

pub(crate) const BLOCKED: &[Rule] = &[
    Rule {
        id: Id::BlockingIo,
        claim: Claim::Parts(&[
            (Part::Disk, &[READS]),
            (Part::DiskCalls, &[]),
            (Part::Stream, &[ANSWERED]),
            (Part::Poll, &[BY_EVENT, ANSWERED]),
        ]),
        curve: Curve::Overhead,
        contradicts: &[
            ONE_LOCK.by(0.3),
            LONG_WAITS,
            BRIEF_RUNS.by(0.4),
            NO_CORE_LEFT,
        ],
        blind: &[("state.blocked_us", "whether each wait is short")],
        limits: &["why the disk or the other end takes so long"],
        places: &[Topic::Waits, Topic::Tool],
        next: "Do not wait for each answer: have several requests on their way, sync once for \
               many records, read ahead, or let another thread wait.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::FutexParking,
        claim: Claim::Parts(&[
            (Part::Futex, &[MANY_FUTEX, SOMEBODY_WAKES]),
            (Part::FutexCalls, &[]),
        ]),
        curve: Curve::Overhead,
        contradicts: &[ONE_LOCK],
        blind: &[(
            "lock.held_share",
            "whether several threads wait for one lock",
        )],
        places: &[Topic::Waits, Topic::Tool],
        next: "Wake less often: hand over batches, spin for a few µs before parking where a core \
               is free, or do both sides' work in one thread.",
        ..Rule::EMPTY
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
            (Part::DiskCalls, &[]),
            (Part::Stream, &[]),
            (Part::Poll, &[]),
        ]),
        curve: Curve::Overhead,
        required: &["lock.waiters", "lock.held_share"],
        needs: ONE_LOCK.clues,
        limits: &["threads that pass a turn round look the same"],
        // While others wait, what runs is what the holder does.
        places: &[Topic::Queue, Topic::Functions, Topic::Waits, Topic::Tool],
        next: "Hold the lock for less: move work out of it, split it into shards, give each \
               thread a copy and merge, or hand over by messages.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::SleepPolling,
        claim: Claim::Parts(&[
            (Part::Sleep, &[SHORT_SLEEP]),
            (Part::Poll, &[BY_TIMER, SHORT_WAIT]),
            (Part::Futex, &[NOBODY_WAKES, SOON_TIMED_OUT, SHORT_WAIT]),
        ]),
        curve: Curve::Overhead,
        contradicts: &[ONE_LOCK, GOROUTINES],
        limits: &["a program that only keeps a schedule looks the same"],
        places: &[Topic::Waits, Topic::Tool],
        next: "Wait for the event itself: a condition variable, channel, eventfd or inotify. A \
               sleep or a timeout adds half of its length to each answer.",
        ..Rule::EMPTY
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
        limits: &["whether something else should have given it work"],
        places: &[Topic::Waits],
        next: "It waits for something to do. If it should be busy, look at who should feed it; \
               if it was too slow, observe it while it is under load (attach).",
        ..Rule::EMPTY
    },
];

/// No thread hands the lock on: another program holds it.
const NO_HAND_OVERS: Clue = clue! { lock.held_share from 0.5, 0.25, HANDED_ON };
const HANDED_ON: &str = "half of the waits are for what another of these threads has, and hands \
                         on: those who wake wait there too, or the word is that of a taken lock \
                         (Drepper, Futexes Are Tricky)";
const FEW_FUTEX: Clue = clue! { call.futex from 50.0, 25.0, TIMERS };
const SOON_TIMED_OUT: Clue = clue! { futex.timeout_us from 40_000.0, 20_000.0, TIMERS };
const TIMERS: &str =
    "literature: OpenJDK, PerfDataSamplingInterval: a runtime that idles wakes 20 times a second";

/// More messages arrive than the slowest stage can serve.
const OVERLOAD: Clue = clue! {
    export.arrival / export.service from 0.95, 1.05,
    "literature: a queue grows without bound from a utilisation of 1 on (Kleinrock)"
};

/// All messages can be served, with capacity to spare. A sender that waits for room sends at the
/// rate of its service: then there is none to spare.
const SPARE: Clue = clue! {
    export.arrival / export.service from 1.0, 0.9,
    "measured: a sender that only waits for room sends at 0.97 (Zen 4, KVM)"
};

/// Its threads wait for a core, and the messages that they would serve wait with them.
const NO_CORE: Weighed = weighed(0.5, &[PEERS_WAIT]);

/// Senders occasionally meet a full queue, and wait there as well.
const TOO_SHORT: Weighed = weighed(
    0.5,
    &[
        clue! { export.full_share > 0.1, NO_ROOM },
        clue! { export.burst > 1.0, NO_ROOM },
    ],
);
const NO_ROOM: &str = "senders find no room for a tenth of the time, in bursts of a known size";

pub(crate) const EXPORTED: &[Rule] = &[
    Rule {
        id: Id::RateImbalance,
        claim: Claim::Largest(&[&["export.full_share"], &["export.queue_share"]], &[]),
        curve: Curve::Overhead,
        required: &["export.arrival", "export.service"],
        needs: &[OVERLOAD],
        next: "Serve faster or accept less: batch in the slowest stage, shard it, or refuse at \
               the door. A longer queue only makes what is delivered older.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::Burst,
        claim: Claim::Largest(&[&["export.full_share"]], &[]),
        curve: Curve::Disturbance,
        required: &["export.burst"],
        needs: &[SPARE],
        contradicts: &[NO_CORE],
        next: "A queue of {export.burst} messages would have taken the longest burst. On \
               average everything can be served.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::QueueingDelay,
        claim: Claim::Largest(&[&["export.queue_share"]], &[]),
        curve: Curve::Residue,
        needs: &[SPARE],
        contradicts: &[NO_CORE, TOO_SHORT],
        next: "Messages wait longer than they are served, most of all for \
               {export.queue_share:source}. Give that stage's thread a core, make progress \
               visible earlier (fewer events a batch), or lower the utilisation of the slowest.",
        ..Rule::EMPTY
    },
    Rule {
        id: Id::StageBound,
        claim: Claim::Largest(&[&["export.stage_share"]], &[]),
        curve: Curve::Residue,
        contradicts: &[weighed(0.3, &[SPARE])],
        next: "One stage limits the pipeline ({export.stage_share:source}): make it cheaper, \
               shard it, or move a part of it to another stage.",
        ..Rule::EMPTY
    },
];
