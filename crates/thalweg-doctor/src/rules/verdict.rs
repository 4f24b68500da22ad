//! The verdicts: the meaning of the figures.

use crate::evidence::Quality;
use serde::Serialize;

macro_rules! ids {
    ($($id:ident $name:literal $meaning:literal;)*) => {
        /// A kind of bottleneck, or a reason why none can be determined.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[non_exhaustive]
        pub enum Id {
            $(#[doc = $meaning] #[serde(rename = $name)] $id,)*
        }

        impl Id {
            /// Returns the name in reports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Id::$id => $name,)*
                }
            }

            /// Returns what it says about a program, as a clause.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Id::$id => $meaning,)*
                }
            }
        }
    };
}

ids! {
    Contaminated "CONTAMINATED" "others took the machine";
    BlockingIo "BLOCKING-IO" "it waits for a disk, or for the other end of a pipe or socket";
    PageFaults "PAGE-FAULTS" "it touches memory for the first time, or memory comes from a disk";
    YieldStorm "YIELD-STORM" "it calls sched_yield in a loop";
    SpinStarvesPeer "SPIN-STARVES-PEER" "a spinning thread keeps its peer from running";
    SpinBurnsCpu "SPIN-BURNS-CPU" "threads spin on cores that no peer needs";
    FutexParking "FUTEX-PARKING" "threads park and wake each other";
    LockConvoy "LOCK-CONVOY" "many threads wait for one lock";
    SleepPolling "SLEEP-POLLING" "it sleeps for a moment, looks, and sleeps again";
    SyscallBound "SYSCALL-BOUND" "the time goes into calls of the kernel";
    Oversubscribed "OVERSUBSCRIBED" "more threads want to run than there are cores";
    Throttled "THROTTLED" "a quota stops it";
    CpuCompute "CPU-COMPUTE" "it computes";
    SchedChurn "SCHED-CHURN" "it switches between threads more than it works";
    Idle "IDLE" "it has nothing to do";
    RateImbalance "RATE-IMBALANCE" "more comes than can be served";
    Burst "BURST" "more comes than can be served, for a while";
    QueueingDelay "QUEUEING-DELAY" "messages wait in queues";
    StageBound "STAGE-BOUND" "one stage limits the pipeline";
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
    pub quality: Quality,
    /// Whether it reaches the threshold; `None` if it is absent.
    pub reached: Option<bool>,
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
    /// The functions, calls, files, threads or programs that it is about, the largest first.
    pub places: Vec<String>,
    /// The next step.
    pub next: String,
}
