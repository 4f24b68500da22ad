//! What the figures mean.

use crate::evidence::Quality;
use serde::Serialize;

/// A kind of bottleneck, or a reason why none can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
#[non_exhaustive]
pub enum Id {
    /// Others took the machine.
    Contaminated,
    /// Waits for a disk, or for whoever is at the other end of a pipe or socket.
    BlockingIo,
    /// First touch of memory, or memory that comes back from a disk.
    PageFaults,
    /// `sched_yield` in a loop.
    YieldStorm,
    /// A thread that spins keeps the thread that it waits for from running.
    SpinStarvesPeer,
    /// Threads spin on cores that nobody else needs.
    SpinBurnsCpu,
    /// Threads park and wake each other.
    FutexParking,
    /// Many threads wait for one lock.
    LockConvoy,
    /// Sleeps for a moment, looks, and sleeps again.
    SleepPolling,
    /// The time goes into crossing into the kernel.
    SyscallBound,
    /// More threads want to run than there are cores.
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
    /// More comes than can be served.
    RateImbalance,
    /// More comes than can be served, for a while.
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

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.texts().1
    }

    /// What it says of a program, as a clause.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.texts().2
    }
}

/// A figure that a verdict rests on, beside the threshold that it passed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exhibit {
    /// Its name in [`crate::metrics::METRICS`].
    pub metric: &'static str,
    /// Nothing if it is absent.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// What it was held against, such as `> 0.3`.
    pub threshold: String,
    /// The file or event that it came from.
    pub source: String,
    /// How it came about.
    #[serde(rename = "quality")]
    pub quality: Quality,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The kind.
    pub id: Id,
    /// 0 to 1.
    pub confidence: f64,
    /// What speaks for it.
    pub evidence: Vec<Exhibit>,
    /// What speaks against it.
    pub contradicts: Vec<Exhibit>,
    /// What would decide it and cannot be measured here.
    pub cannot_tell: Vec<String>,
    /// What to do next.
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
