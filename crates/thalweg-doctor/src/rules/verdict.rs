//! The verdicts: the meaning of the figures.

use crate::evidence::Quality;
use serde::Serialize;

/// A kind of bottleneck, or a reason why none can be determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
#[non_exhaustive]
pub enum Id {
    /// Other programs took the machine.
    Contaminated,
    /// The program waits for a disk, or for the peer of a pipe or socket.
    BlockingIo,
    /// It touches memory for the first time, or memory that comes back from a disk.
    PageFaults,
    /// It calls `sched_yield` in a loop.
    YieldStorm,
    /// A thread that spins keeps the thread that it waits for from running.
    SpinStarvesPeer,
    /// Threads spin on cores that no other thread needs.
    SpinBurnsCpu,
    /// Threads park and wake each other.
    FutexParking,
    /// Many threads wait for one lock.
    LockConvoy,
    /// A thread sleeps for a moment, checks, and sleeps again.
    SleepPolling,
    /// The time goes into entering and leaving the kernel.
    SyscallBound,
    /// More threads are runnable than there are cores.
    Oversubscribed,
    /// A quota stops the program.
    Throttled,
    /// It computes.
    CpuCompute,
    /// It computes, and waits for memory meanwhile.
    MemoryBound,
    /// It switches between threads more than it works.
    SchedChurn,
    /// It has nothing to do.
    Idle,
    /// More work arrives than can be served.
    RateImbalance,
    /// More work arrives than can be served, for some time.
    Burst,
    /// Messages wait in queues.
    QueueingDelay,
    /// One stage limits the pipeline.
    StageBound,
}

const TEXTS: &[(Id, &str, &str)] = &[
    (Id::Contaminated, "CONTAMINATED", "others took the machine"),
    (
        Id::BlockingIo,
        "BLOCKING-IO",
        "it waits for a disk, or for the other end of a pipe or socket",
    ),
    (
        Id::PageFaults,
        "PAGE-FAULTS",
        "it touches memory for the first time, or memory comes from a disk",
    ),
    (
        Id::YieldStorm,
        "YIELD-STORM",
        "it calls sched_yield in a loop",
    ),
    (
        Id::SpinStarvesPeer,
        "SPIN-STARVES-PEER",
        "a spinning thread keeps its peer from running",
    ),
    (
        Id::SpinBurnsCpu,
        "SPIN-BURNS-CPU",
        "threads spin on cores that no peer needs",
    ),
    (
        Id::FutexParking,
        "FUTEX-PARKING",
        "threads park and wake each other",
    ),
    (
        Id::LockConvoy,
        "LOCK-CONVOY",
        "many threads wait for one lock",
    ),
    (
        Id::SleepPolling,
        "SLEEP-POLLING",
        "it sleeps for a moment, looks, and sleeps again",
    ),
    (
        Id::SyscallBound,
        "SYSCALL-BOUND",
        "the time goes into calls of the kernel",
    ),
    (
        Id::Oversubscribed,
        "OVERSUBSCRIBED",
        "more threads want to run than there are cores",
    ),
    (Id::Throttled, "THROTTLED", "a quota stops it"),
    (Id::CpuCompute, "CPU-COMPUTE", "it computes"),
    (
        Id::MemoryBound,
        "MEMORY-BOUND",
        "it computes, and waits for memory meanwhile",
    ),
    (
        Id::SchedChurn,
        "SCHED-CHURN",
        "it switches between threads more than it works",
    ),
    (Id::Idle, "IDLE", "it has nothing to do"),
    (
        Id::RateImbalance,
        "RATE-IMBALANCE",
        "more comes than can be served",
    ),
    (
        Id::Burst,
        "BURST",
        "more comes than can be served, for a while",
    ),
    (
        Id::QueueingDelay,
        "QUEUEING-DELAY",
        "messages wait in queues",
    ),
    (
        Id::StageBound,
        "STAGE-BOUND",
        "one stage limits the pipeline",
    ),
];

impl Id {
    fn texts(self) -> &'static (Id, &'static str, &'static str) {
        let texts = TEXTS.iter().find(|&&(id, ..)| id == self);
        texts.expect("every kind has texts")
    }

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.texts().1
    }

    /// Returns what it says about a program, as a clause.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.texts().2
    }
}

/// A figure that a verdict rests on, with the threshold that it passed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exhibit {
    /// The name in [`crate::evidence::METRICS`].
    pub metric: &'static str,
    /// The value; `None` if it is absent.
    pub value: Option<f64>,
    /// The unit.
    pub unit: &'static str,
    /// The threshold that it was compared with, such as `> 0.3`.
    pub threshold: String,
    /// The file or event that it came from.
    pub source: String,
    /// The way in which it was obtained.
    #[serde(rename = "quality")]
    pub quality: Quality,
}

/// One verdict on a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The kind of bottleneck.
    pub id: Id,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The figures that support it.
    pub evidence: Vec<Exhibit>,
    /// The figures that contradict it.
    pub contradicts: Vec<Exhibit>,
    /// The questions that would decide it and cannot be answered here.
    pub cannot_tell: Vec<String>,
    /// The next step.
    pub next: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for &(id, name, meaning) in TEXTS {
            let json = serde_json::to_value(id).expect("a name");
            assert_eq!(json, name);
            assert_eq!((id.name(), id.meaning()), (name, meaning));
        }
        assert_eq!(TEXTS.len(), crate::rules::rules().len());
    }
}
