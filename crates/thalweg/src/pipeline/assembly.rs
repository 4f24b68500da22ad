//! Putting stages on threads and starting them, and a stage thread.

use std::path::PathBuf;
use std::sync::Arc;

use super::auto::{Auto, HandOver, WORKER};
use super::control::{CALLER, Control};
use super::error::PipelineError;
use super::figures::{Exported, Meters};
use super::graph::Graph;
use super::lanes::{Merger, Producer};
use super::meter::{Gauge, Mark, Meter};
use super::placement::{Machine, Plan};
use super::stage::Stage;
use super::stage_group::{Placed, Round, StageGroup};
use super::stage_wait::StageWait;
use super::timeline::Timeline;
use super::{Intake, Pipeline};
use crate::export::{self, Export};
use crate::ring::broadcast::{Progress, Reader, RingPublisher};
use crate::ring::sync::{IS_MODEL, spin_hint, thread, yield_now};
use crate::state::Lifecycle;
use crate::wait::{WaitStrategy, cores};

/// Makes a stage, whatever its kind, with its meter and the number of events after which it
/// reports.
pub(super) type Make<T> = Box<dyn FnOnce(Meter, usize, Arc<Control>) -> Box<dyn Stage<T>> + Send>;

/// The parts of a pipeline before its threads are started.
pub(super) struct Assembly<T> {
    pub(super) plan: Plan,
    pub(super) stages: Vec<Option<Placed<T>>>,
    pub(super) gauges: Vec<Gauge>,
    pub(super) graph: Arc<Graph>,
    pub(super) timeline: Arc<Timeline>,
    pub(super) control: Arc<Control>,
    pub(super) merge: Option<Merger<T>>,
    /// How many events were put into the ring.
    pub(super) published: Progress,
    /// The directory to export to, if the program chose one.
    pub(super) export_to: Option<PathBuf>,
}

/// Returns each of these threads once, without `own`.
fn others(mut waiters: Vec<usize>, own: usize) -> Box<[usize]> {
    waiters.sort_unstable();
    waiters.dedup();
    waiters.retain(|&thread| thread != own);
    waiters.into()
}

impl<T: Send + Sync + 'static> Assembly<T> {
    pub(super) fn make_stages(
        &mut self,
        readers: Vec<Reader<T>>,
        makes: Vec<(Make<T>, usize)>,
        names: &[String],
    ) {
        for (place, (reader, (make, progress))) in readers.into_iter().zip(makes).enumerate() {
            let name: Arc<str> = names[place].as_str().into();
            #[cfg_attr(
                not(feature = "tracing"),
                allow(unused_mut, reason = "nothing to name")
            )]
            let (mut meter, gauge) = Meter::new(
                Arc::clone(&name),
                reader.progress(),
                Arc::clone(&self.timeline),
                place,
                &self.graph,
            );
            #[cfg(feature = "tracing")]
            meter.name_stages(names);
            let stage = make(meter, progress, Arc::clone(&self.control));
            self.stages.push(Some(Placed {
                name,
                stage,
                reader,
            }));
            self.gauges.push(gauge);
        }
    }

    /// Returns the index of the thread that a stage runs on.
    fn thread_of(&self, stage: usize) -> usize {
        let thread = self
            .plan
            .threads
            .iter()
            .position(|thread| thread.stages.contains(&stage));
        thread.map_or(CALLER, |thread| thread + 1)
    }

    /// Returns whether a thread of this plan may sleep, so that others must notify it.
    fn may_sleep(&self) -> bool {
        self.plan.strategy.may_sleep()
    }

    fn wait(&self) -> StageWait {
        StageWait::new(self.plan.strategy, self.plan.is_oversubscribed)
    }

    pub(super) fn make_lanes(
        &mut self,
        publisher: RingPublisher<T>,
        capacity: usize,
        producers: usize,
        mut factory: impl FnMut() -> T,
    ) -> Result<(Intake<T>, Vec<Producer<T>>), PipelineError> {
        let waiters = |thread| -> Box<[usize]> {
            match self.may_sleep() {
                true => [thread].into(),
                false => Box::default(),
            }
        };
        let first_producer = 1 + self.plan.threads.len();
        let mut merger = Merger::new(publisher, &self.timeline, &self.control);
        let mut ends = Vec::new();
        for thread in std::iter::once(CALLER).chain(first_producer..first_producer + producers) {
            let waiters = (waiters(thread), waiters(self.thread_of(0)));
            let lane = merger.lane(capacity, &mut factory, thread, waiters, self.wait());
            ends.push(lane.map_err(|_| PipelineError::Capacity(capacity))?);
        }
        self.merge = Some(merger);
        Ok((Intake::Lane(Box::new(ends.remove(0))), ends))
    }

    /// Returns the threads that wait for elements that the stage at `stage` releases: those of the
    /// stages behind it, and if there are none, those that wait for free slots; not its own thread.
    fn watchers(&self, stage: usize) -> Box<[usize]> {
        let own = self.thread_of(stage);
        let behind =
            (0..self.graph.after.len()).filter(|&at| self.graph.after[at].contains(&stage));
        let mut waiters: Vec<usize> = behind.map(|at| self.thread_of(at)).collect();
        if self.graph.last.contains(&stage) {
            waiters.push(CALLER);
            waiters.push(self.thread_of(0));
        }
        others(waiters, own)
    }

    /// Returns the threads of the stages that wait for the publisher, without thread `own`.
    fn first_waiters(&self, own: usize) -> Box<[usize]> {
        if !self.may_sleep() {
            return Box::default();
        }
        let first = (0..self.graph.after.len()).filter(|&at| self.graph.after[at].is_empty());
        others(first.map(|at| self.thread_of(at)).collect(), own)
    }

    fn group(&mut self, stages: &[usize], thread: usize) -> StageGroup<T> {
        let mut placed = Vec::new();
        for &stage in stages {
            let watchers = self.watchers(stage);
            if let Some(mut taken) = self.stages[stage].take() {
                let is_watched = !watchers.is_empty();
                let waiters = if self.may_sleep() {
                    watchers
                } else {
                    Box::default()
                };
                let (is_alone, is_away) = (stages.len() == 1, thread != CALLER);
                taken.stage.attach(waiters, is_watched, is_alone, is_away);
                placed.push(taken);
            }
        }
        let mut group = StageGroup::new(&self.timeline, &self.control);
        group.extend(placed);
        if thread == self.thread_of(0)
            && let Some(mut merge) = self.merge.take()
        {
            merge.attach(self.first_waiters(thread));
            group.set_merge(merge);
        }
        group
    }

    /// Returns the watcher of an automatic placement.
    fn watcher(&self, hand_over: &Arc<HandOver<T>>) -> Auto<T> {
        let counters = self.gauges.iter().map(|gauge| Arc::clone(&gauge.counters));
        Auto::new(
            Arc::clone(hand_over),
            Arc::clone(&self.control),
            counters.collect(),
            self.gauges
                .iter()
                .map(|gauge| gauge.progress.clone())
                .collect(),
        )
    }

    /// Returns the meters of the pipeline: its gauges, and where each stage runs.
    fn figures(&mut self, is_auto: bool) -> Meters {
        let threads = (0..self.gauges.len()).map(|stage| self.thread_of(stage));
        let (threads, after) = (threads.collect(), self.graph.after.clone().into());
        Meters::new(
            std::mem::take(&mut self.gauges),
            Arc::clone(&self.timeline),
            self.published.clone(),
            after,
            threads,
            is_auto,
        )
    }

    /// Attaches all stages to threads and starts the threads.
    pub(super) fn start(
        mut self,
        intake: Intake<T>,
        producers: Vec<Producer<T>>,
        is_auto: bool,
        machine: &Machine,
    ) -> Result<Pipeline<T>, PipelineError> {
        let planned = std::mem::take(&mut self.plan.caller);
        let group = self.group(&planned, CALLER);
        self.plan.caller = planned;
        let mut threads = Vec::new();
        for at in 0..self.plan.threads.len() {
            let stages = self.plan.threads[at].stages.clone();
            let cores = self.plan.threads[at].cores.clone();
            threads.push((self.group(&stages, at + 1), cores, None));
        }
        let mut auto = None;
        if is_auto {
            let hand_over = Arc::new(HandOver::default());
            auto = Some(self.watcher(&hand_over));
            let group = StageGroup::on_call(&self.timeline, &self.control);
            threads.push((group, machine.left_by_caller(), Some(hand_over)));
        }
        let figures = Arc::new(self.figures(is_auto));
        let mut pipeline = Pipeline {
            intake,
            group,
            threads: Vec::new(),
            producers,
            first_waiters: self.first_waiters(CALLER),
            is_alone: false,
            wait: self.wait(),
            auto,
            figures,
            control: Arc::clone(&self.control),
            export: None,
        };
        pipeline.stages_moved();
        pipeline.wait.prepare();
        for (at, (group, cores, hand_over)) in threads.into_iter().enumerate() {
            let is_worker = hand_over.is_some();
            debug_assert!(!is_worker || at + 1 == WORKER);
            // A worker without stages sleeps; it must be woken for the first ones.
            let strategy = if is_worker {
                WaitStrategy::Adaptive
            } else {
                self.plan.strategy
            };
            let wait = StageWait::new(strategy, self.plan.is_oversubscribed);
            let control = Arc::clone(&self.control);
            let thread = Thread {
                group,
                thread: at + 1,
                control,
                wait,
                hand_over,
            };
            pipeline.threads.push(spawn(at, thread, cores)?);
        }
        if let Some(directory) = export::directory(self.export_to) {
            let exported = Exported::new(&pipeline.figures, &pipeline.control);
            pipeline.export = Export::new(directory, exported);
        }
        self.control.enter(Lifecycle::Running, "built");
        Ok(pipeline)
    }
}

fn spawn<T: Send + Sync + 'static>(
    at: usize,
    stages: Thread<T>,
    cores: Option<Vec<usize>>,
) -> Result<thread::JoinHandle<()>, PipelineError> {
    let run = move || {
        if let Some(cores) = cores.filter(|_| !IS_MODEL) {
            // The cores were checked. If the mask has changed since, the thread runs unpinned.
            let _ = cores::pin_current_thread(&cores);
        }
        stages.run();
    };
    thread::Builder::new()
        .name(format!("thalweg-{at}"))
        .spawn(run)
        .map_err(|error| PipelineError::Spawn(error.to_string()))
}

/// The backlogs at which a thread pauses for a moment: if it followed the writer directly, both
/// would pay a cache miss for each event.
const CLOSE_BEHIND: std::ops::Range<usize> = 2..32;
/// The number of pauses for which it waits then.
const BACKLOG_PAUSES: usize = 64;

/// A stage thread.
struct Thread<T> {
    group: StageGroup<T>,
    thread: usize,
    pub(super) control: Arc<Control>,
    wait: StageWait,
    /// The hand-over of stages, if the placement may change.
    hand_over: Option<Arc<HandOver<T>>>,
}

impl<T> Thread<T> {
    fn run(mut self) {
        let control = Arc::clone(&self.control);
        self.wait.prepare();
        loop {
            if let Some(hand_over) = &self.hand_over {
                hand_over.exchange(&mut self.group);
                if self.group.is_empty() {
                    if hand_over.is_closed() || control.failure().is_some() {
                        return;
                    }
                    self.wait.until(control.event_count(self.thread), || {
                        hand_over.has_news() || control.failure().is_some()
                    });
                    continue;
                }
            }
            let Some(round) = self
                .group
                .guarded(&control, |group| group.round(&mut Mark::default()))
            else {
                return;
            };
            match round {
                Round::Worked { more: true } => {}
                Round::Worked { more: false } => self.let_backlog_grow(),
                // After a failure, a stage that is blocked stays blocked.
                Round::Blocked if control.failure().is_none() => yield_now(),
                Round::Idle => self.wait(),
                Round::Blocked | Round::Done => {
                    // Statistics may be asked for after the end.
                    self.group.flush();
                    self.group.dismiss(&control);
                    return;
                }
            }
        }
    }

    /// Pauses while few events wait, unless that would keep another thread from running.
    fn let_backlog_grow(&mut self) {
        if self.wait.may_spin() && CLOSE_BEHIND.contains(&self.group.backlog()) {
            for _ in 0..BACKLOG_PAUSES {
                spin_hint();
            }
            self.group.backlog();
        }
    }

    fn wait(&mut self) {
        let Self {
            group,
            thread,
            control,
            wait,
            hand_over,
        } = self;
        let news = || {
            hand_over
                .as_ref()
                .is_some_and(|hand_over| hand_over.has_news())
        };
        wait.until(control.event_count(*thread), || group.is_ready() || news());
    }
}
