//! Which stages run on which thread, and how the whole set of threads is pinned and waits.

use std::fmt;
use std::str::FromStr;

use super::error::PipelineError;
use crate::ring::sync::IS_MODEL;
use crate::wait::WaitStrategy;
use crate::wait::cores::{self, Cores};

/// The placement of the stages of a pipeline on threads. The results are the same for each; the
/// latencies are not.
///
/// Pinning and waiting are chosen for the whole set of threads, from the number of usable cores:
/// - threads (the caller's included) ≤ cores: stage threads keep off the caller's core, and spin
///   for as long as a wake-up would take before they sleep;
/// - more threads than cores: all stage threads share the cores that the caller leaves, and yield
///   before they sleep. They do not spin: a spinning thread would keep the one that it waits for
///   from running;
/// - one core: no thread is pinned, and none spins; a thread sleeps at once, or yields once before
///   where that has paid.
///
/// That is for [`WaitStrategy::Adaptive`], the default. Another strategy of
/// [`waiting`](Self::waiting) holds however many cores there are: with [`WaitStrategy::Spin`]
/// threads spin, also on one core.
///
/// Stages that share a thread take turns, so each of these is a deadlock:
/// - A stage waits for a later stage of its own thread.
/// - A stage on the publishing thread waits for what that thread does after `publish`, such as
///   emptying a bounded channel that the stage fills.
/// - A last stage (one that no other depends on) waits for the publishing thread, and on its own
///   thread another stage or shard follows it.
///
/// Give such a stage its own thread, or return [`Flow::Retry`](super::Flow::Retry) from
/// [`Chunk::try_for_each`](super::Chunk::try_for_each).
///
/// It is displayed as `inline`, `auto` or `threads:N`, which `parse` reads; `caller:K+threads:N`
/// and `explicit` are displayed only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    kind: Kind,
    pinned: bool,
    strategy: WaitStrategy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Threads { on_caller: usize, threads: usize },
    Auto,
    Explicit(Vec<Assignment>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Assignment {
    target: Target,
    stages: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Caller,
    /// A thread, pinned to this core.
    Thread(Option<usize>),
}

/// Stands for "all of them" in [`Kind::Threads`].
const ALL: usize = usize::MAX;

impl Placement {
    fn of(kind: Kind) -> Self {
        Self {
            kind,
            pinned: true,
            strategy: WaitStrategy::Adaptive,
        }
    }

    /// Starts no thread: the caller runs all stages whenever it publishes. This has the shortest
    /// latency while the caller's core can do all the work; it is also for tests, replay and
    /// simulation.
    pub fn inline() -> Self {
        Self::of(Kind::Threads {
            on_caller: ALL,
            threads: 0,
        })
    }

    /// Starts `threads` stage threads, 1 to the number of stages; adjacent stages share a thread,
    /// in the [order of the pipeline](super#order). The parts are as equal as can be, and the later
    /// ones larger: of three stages on two threads, the first thread has one, the second two.
    pub fn threads(threads: usize) -> Self {
        Self::of(Kind::Threads {
            on_caller: 0,
            threads,
        })
    }

    /// Lets the caller run the first `stages` stages whenever it publishes; `threads` threads run
    /// the others, which are divided as by [`threads`](Self::threads).
    pub fn caller_and_threads(stages: usize, threads: usize) -> Self {
        Self::of(Kind::Threads {
            on_caller: stages,
            threads,
        })
    }

    /// Runs all stages on the publishing thread; if that is more than 80 % busy, moves later stages
    /// to one worker thread, and back when all of them are less than 40 % busy or the split gains
    /// nothing. On one core there is no worker. With
    /// [`producers`](super::PipelineBuilder::producers): cores − 1 stage threads, 1 to the number
    /// of stages, which is not adapted.
    pub fn auto() -> Self {
        Self::of(Kind::Auto)
    }

    /// Returns a placement by the names of stages: add them with [`on_caller`](Self::on_caller),
    /// [`on_thread`](Self::on_thread) and [`on_core`](Self::on_core). Every stage must be named
    /// once; a sharded stage is named as `match[0]`, `match[1]` and so on, or as `match` for all
    /// its shards.
    pub fn explicit() -> Self {
        Self::of(Kind::Explicit(Vec::new()))
    }

    fn assign<S: Into<String>>(
        mut self,
        target: Target,
        stages: impl IntoIterator<Item = S>,
    ) -> Self {
        let stages = stages.into_iter().map(Into::into).collect();
        let assignment = Assignment { target, stages };
        match &mut self.kind {
            Kind::Explicit(assignments) => assignments.push(assignment),
            _ => self.kind = Kind::Explicit(vec![assignment]),
        }
        self
    }

    /// Lets these stages run on the caller whenever it publishes. It makes the placement explicit.
    pub fn on_caller<S: Into<String>>(self, stages: impl IntoIterator<Item = S>) -> Self {
        self.assign(Target::Caller, stages)
    }

    /// Lets these stages share a thread. It makes the placement explicit.
    pub fn on_thread<S: Into<String>>(self, stages: impl IntoIterator<Item = S>) -> Self {
        self.assign(Target::Thread(None), stages)
    }

    /// Lets these stages share a thread that is pinned to `core`. It makes the placement explicit.
    pub fn on_core<S: Into<String>>(
        self,
        core: usize,
        stages: impl IntoIterator<Item = S>,
    ) -> Self {
        self.assign(Target::Thread(Some(core)), stages)
    }

    /// Pins no thread, except those of [`on_core`](Self::on_core).
    pub fn unpinned(mut self) -> Self {
        self.pinned = false;
        self
    }

    /// Sets how threads wait; default [`WaitStrategy::Adaptive`]. It holds for all threads of the
    /// pipeline, except the worker of [`auto`](Self::auto), which is always adaptive.
    pub fn waiting(mut self, strategy: WaitStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    pub(super) fn is_auto(&self) -> bool {
        self.kind == Kind::Auto
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Threads { on_caller: ALL, .. } => write!(f, "inline"),
            Kind::Threads {
                on_caller: 0,
                threads,
            } => write!(f, "threads:{threads}"),
            Kind::Threads { on_caller, threads } => {
                write!(f, "caller:{on_caller}+threads:{threads}")
            }
            Kind::Auto => write!(f, "auto"),
            Kind::Explicit(_) => write!(f, "explicit"),
        }
    }
}

/// The error of a string that is no placement: `inline`, `auto`, or `threads:N` with N from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsePlacementError(String);

errors!(ParsePlacementError {
    Self(text) => "placement {text:?} is not inline, auto or threads:N with N from 1";
});

impl FromStr for Placement {
    type Err = ParsePlacementError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let threads = || {
            text.strip_prefix("threads:")?
                .parse()
                .ok()
                .filter(|&threads| threads > 0)
        };
        match text {
            "inline" => Ok(Self::inline()),
            "auto" => Ok(Self::auto()),
            _ => threads()
                .map(Self::threads)
                .ok_or_else(|| ParsePlacementError(text.to_owned())),
        }
    }
}

/// A stage thread in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedThread {
    pub(super) stages: Vec<usize>,
    pub(super) cores: Option<Vec<usize>>,
}

/// The plan that follows from a placement on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) caller: Vec<usize>,
    pub(super) threads: Vec<PlannedThread>,
    pub(super) strategy: WaitStrategy,
    /// Threads outnumber the cores, of which there are several.
    pub(super) is_oversubscribed: bool,
}

/// The machine that a plan is made for.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) cores: Cores,
    /// The core that the caller is on.
    current: Option<usize>,
    /// Threads that publish; 0 means only the caller.
    producers: usize,
}

impl Machine {
    pub(super) fn here(producers: usize) -> Self {
        if IS_MODEL {
            return Self {
                cores: Cores::of([0, 1]),
                current: Some(0),
                producers,
            };
        }
        Self {
            cores: cores::usable(),
            current: cores::current(),
            producers,
        }
    }
}

impl Machine {
    /// Returns the usable cores without the caller's, if that leaves any and the system reports
    /// them.
    pub(super) fn left_by_caller(&self) -> Option<Vec<usize>> {
        let current = self.current?;
        let cpus = self.cores.cpus().iter().copied();
        let left: Vec<usize> = cpus.filter(|&cpu| cpu != current).collect();
        (!left.is_empty()).then_some(left)
    }
}

impl Placement {
    /// Deals the stages, named by `names` in the order of the pipeline, to threads.
    pub(super) fn plan(&self, names: &[String], machine: &Machine) -> Result<Plan, PipelineError> {
        let (caller, mut threads) = self.assign_stages(names, machine)?;
        // Producers beside the caller want cores too; the caller of such a pipeline mostly sleeps.
        let wanting = threads.len() + machine.producers.max(1);
        let count = machine.cores.count();
        let left = machine
            .left_by_caller()
            .filter(|_| self.pinned && count > 1);
        for thread in &mut threads {
            thread.cores = thread.cores.take().or_else(|| left.clone());
        }
        Ok(Plan {
            caller,
            threads,
            strategy: self.strategy,
            // On one core the thread's pace decides whether it yields.
            is_oversubscribed: count > 1 && wanting > count,
        })
    }

    /// Returns the caller's stages, and the threads, with cores where they were named.
    fn assign_stages(
        &self,
        names: &[String],
        machine: &Machine,
    ) -> Result<(Vec<usize>, Vec<PlannedThread>), PipelineError> {
        let stages = names.len();
        let (on_caller, threads) = match &self.kind {
            Kind::Explicit(assignments) => return explicit(names, assignments, machine),
            Kind::Auto if machine.producers == 0 => (ALL, 0),
            Kind::Auto => (0, (machine.cores.count() - 1).clamp(1, stages)),
            Kind::Threads { on_caller, threads } => (*on_caller, *threads),
        };
        let on_caller = on_caller.min(stages);
        let rest = stages - on_caller;
        if threads > rest || (threads == 0 && rest > 0) {
            return Err(PipelineError::Threads {
                asked: threads,
                stages: rest,
            });
        }
        // As equal as can be; the later threads get the larger parts, since the first also merges.
        let assigned = (0..threads)
            .map(|at| {
                let range = on_caller + rest * at / threads..on_caller + rest * (at + 1) / threads;
                let (stages, cores) = (range.collect(), None);
                PlannedThread { stages, cores }
            })
            .collect();
        Ok(((0..on_caller).collect(), assigned))
    }
}

/// Works as [`Placement::assign_stages`].
fn explicit(
    names: &[String],
    assignments: &[Assignment],
    machine: &Machine,
) -> Result<(Vec<usize>, Vec<PlannedThread>), PipelineError> {
    let mut placed = vec![false; names.len()];
    let mut find = |wanted: &[String]| {
        let mut places = Vec::new();
        for want in wanted {
            let is_it = |name: &String| {
                name == want || name.split_once('[').is_some_and(|(stage, _)| stage == want)
            };
            let found: Vec<usize> = (0..names.len()).filter(|&at| is_it(&names[at])).collect();
            if found.is_empty() {
                let known = names.to_vec();
                return Err(PipelineError::UnknownStage {
                    name: want.clone(),
                    known,
                });
            }
            for at in found {
                if std::mem::replace(&mut placed[at], true) {
                    return Err(PipelineError::Unplaced(names[at].clone()));
                }
                places.push(at);
            }
        }
        places.sort_unstable();
        Ok(places)
    };
    let (mut caller, mut assigned) = (Vec::new(), Vec::new());
    for assignment in assignments {
        let stages = find(&assignment.stages)?;
        match assignment.target {
            Target::Caller => caller.extend(stages),
            Target::Thread(core) => {
                let cores = core.map(|core| vec![core]);
                if let Some(cores) = &cores {
                    cores::check(cores, &machine.cores).map_err(PipelineError::Pin)?;
                }
                assigned.push(PlannedThread { stages, cores });
            }
        }
    }
    caller.sort_unstable();
    match placed.iter().position(|placed| !placed) {
        Some(at) => Err(PipelineError::Unplaced(names[at].clone())),
        None => Ok((caller, assigned)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    fn machine(cores: usize, producers: usize) -> Machine {
        let cores = Cores::of((0..cores).collect::<Vec<_>>());
        Machine {
            cores,
            current: Some(0),
            producers,
        }
    }

    fn plan(placement: Placement, cores: usize) -> Plan {
        placement
            .plan(&names(&["a", "b", "c"]), &machine(cores, 0))
            .expect("a valid placement")
    }

    #[test]
    fn threads_that_outnumber_the_cores_share_what_the_caller_leaves_and_yield() {
        let plan = plan(Placement::threads(3), 2);
        assert!(plan.caller.is_empty());
        assert!(plan.is_oversubscribed);
        for thread in &plan.threads {
            assert_eq!(thread.cores.as_deref(), Some(&[1][..]));
        }
    }

    #[test]
    fn threads_with_cores_to_themselves_spin_and_keep_off_the_callers() {
        let plan = plan(Placement::threads(2), 4);
        assert!(!plan.is_oversubscribed);
        assert_eq!(plan.threads[0].stages, [0]);
        assert_eq!(plan.threads[1].stages, [1, 2]);
        assert_eq!(plan.threads[0].cores.as_deref(), Some(&[1, 2, 3][..]));
    }

    #[test]
    fn one_core_is_shared_without_pins() {
        let plan = plan(Placement::threads(1), 1);
        assert!(!plan.is_oversubscribed);
        assert_eq!(plan.threads[0].cores, None);
    }

    #[test]
    fn inline_and_auto_begin_on_the_caller_and_auto_with_producers_does_not() {
        assert_eq!(plan(Placement::inline(), 2).caller, [0, 1, 2]);
        assert!(plan(Placement::auto(), 2).threads.is_empty());
        let names = names(&["a", "b", "c"]);
        let plan = Placement::auto().plan(&names, &machine(2, 3)).unwrap();
        assert_eq!((plan.caller.len(), plan.threads.len()), (0, 1));
    }

    #[test]
    fn wrong_numbers_of_threads_are_refused() {
        let asked = |placement: Placement| {
            placement
                .plan(&names(&["a", "b"]), &machine(2, 0))
                .unwrap_err()
                .to_string()
        };
        let text = "3 stage threads asked for; 2 stages can use 1 to 2";
        assert_eq!(asked(Placement::threads(3)), text);
        let text = "0 stage threads asked for; 2 stages can use 1 to 2";
        assert_eq!(asked(Placement::threads(0)), text);
        let text = "1 stage threads asked for; no stage is left for them";
        assert_eq!(asked(Placement::caller_and_threads(2, 1)), text);
        assert!(
            Placement::threads(0)
                .to_string()
                .parse::<Placement>()
                .is_err()
        );
    }

    #[test]
    fn explicit_placements_name_every_stage_once() {
        let names = names(&["risk", "match[0]", "match[1]"]);
        let machine = machine(2, 0);
        let good = Placement::explicit()
            .on_caller(["risk"])
            .on_core(1, ["match"]);
        let plan = good.plan(&names, &machine).unwrap();
        assert_eq!(plan.threads[0].stages, [1, 2]);
        assert_eq!(plan.threads[0].cores.as_deref(), Some(&[1][..]));
        let text = |placement: Placement| placement.plan(&names, &machine).unwrap_err().to_string();
        assert_eq!(
            text(Placement::explicit().on_thread(["risk", "match[0]"])),
            "the placement must name stage \"match[1]\" exactly once"
        );
        assert_eq!(
            text(Placement::explicit().on_thread(["risk", "match", "match[0]"])),
            "the placement must name stage \"match[0]\" exactly once"
        );
        assert_eq!(
            text(Placement::explicit().on_core(9, ["risk", "match"])),
            "core 9 is not among the usable cores [0, 1]"
        );
        assert!(
            text(Placement::explicit().on_thread(["x"])).starts_with("no stage is named \"x\"")
        );
    }

    #[test]
    fn placements_read_and_write_as_text() {
        for text in ["inline", "auto", "threads:7"] {
            assert_eq!(text.parse::<Placement>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "thread:1",
            "threads:",
            "threads:0",
            "threads:-1",
            "INLINE",
        ] {
            let error = text.parse::<Placement>().unwrap_err();
            let wanted = "is not inline, auto or threads:N with N from 1";
            assert_eq!(error.to_string(), format!("placement {text:?} {wanted}"));
        }
    }
}
