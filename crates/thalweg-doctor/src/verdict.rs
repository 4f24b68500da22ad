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
