//! Putting stages on threads and starting them, and a stage thread.

use std::path::PathBuf;
use std::sync::Arc;

use super::auto::{Auto, HandOver, WORKER};
use super::control::{CALLER, Control};
use super::crew::{Crew, Placed, Round};
use super::figures::{Exported, Meters};
use super::lanes::{Merger, Producer};
use super::meter::{Gauge, Mark, Meter};
use super::placement::{Graph, Machine, PipelineError, Plan};
use super::stage::Stage;
use super::stage_wait::StageWait;
use super::timeline::Timeline;
use super::{Intake, Pipeline};
use crate::export::{self, Export};
use crate::ring::broadcast::{Progress, Reader, RingPublisher};
use crate::ring::sync::{IS_MODEL, spin_hint, thread, yield_now};
use crate::state::Lifecycle;
use crate::wait::{Strategy, cores};

/// Makes a stage, whatever its kind, with its meter and the number of events after which it
/// reports.
pub(super) type Make<T> = Box<dyn FnOnce(Meter, usize, Arc<Control>) -> Box<dyn Stage<T>> + Send>;

/// The pieces of a pipeline on their way to their threads.
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
    /// Where the figures go, if the program says that.
    pub(super) export_to: Option<PathBuf>,
}

/// Each bell once, without one's own.
fn others(mut bells: Vec<usize>, own: usize) -> Box<[usize]> {
    bells.sort_unstable();
    bells.dedup();
    bells.retain(|&bell| bell != own);
    bells.into()
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

    /// Returns the bell of the thread that a stage runs on.
    fn bell_of(&self, place: usize) -> usize {
        let thread = self
            .plan
            .threads
            .iter()
            .position(|thread| thread.stages.contains(&place));
        thread.map_or(CALLER, |thread| thread + 1)
    }

    /// Returns whether a thread of this plan may sleep, so that others must ring.
    fn may_sleep(&self) -> bool {
        self.plan.strategy.may_sleep()
    }

    fn waiter(&self) -> StageWait {
        StageWait::new(self.plan.strategy, self.plan.shares)
    }

    pub(super) fn make_lanes(
        &mut self,
        publisher: RingPublisher<T>,
        capacity: usize,
        producers: usize,
        mut factory: impl FnMut() -> T,
    ) -> Result<(Intake<T>, Vec<Producer<T>>), PipelineError> {
        let rung = |bell| -> Box<[usize]> {
            match self.may_sleep() {
                true => [bell].into(),
                false => Box::default(),
            }
        };
        let first_bell = 1 + self.plan.threads.len();
        let mut merger = Merger::new(publisher, &self.timeline, &self.control);
        let mut ends = Vec::new();
        for bell in std::iter::once(CALLER).chain(first_bell..first_bell + producers) {
            let rung = (rung(bell), rung(self.bell_of(0)));
            let lane = merger.lane(capacity, &mut factory, bell, rung, self.waiter());
            ends.push(lane.map_err(|_| PipelineError::Capacity(capacity))?);
        }
        self.merge = Some(merger);
        Ok((Intake::Lane(Box::new(ends.remove(0))), ends))
    }

    /// Returns the bells of the threads that wait for elements that the stage at `place` releases:
    /// the threads of the stages behind it, and if there are none, those that wait for free slots;
    /// not its own thread.
    fn watchers(&self, place: usize) -> Box<[usize]> {
        let own = self.bell_of(place);
        let behind =
            (0..self.graph.after.len()).filter(|&at| self.graph.after[at].contains(&place));
        let mut bells: Vec<usize> = behind.map(|at| self.bell_of(at)).collect();
        if self.graph.last.contains(&place) {
            bells.push(CALLER);
            bells.push(self.bell_of(0));
        }
        others(bells, own)
    }

    /// Bells of the threads of the stages right behind the publisher, seen from `own`.
    fn bells_first(&self, own: usize) -> Box<[usize]> {
        if !self.may_sleep() {
            return Box::default();
        }
        let first = (0..self.graph.after.len()).filter(|&at| self.graph.after[at].is_empty());
        others(first.map(|at| self.bell_of(at)).collect(), own)
    }

    fn crew(&mut self, stages: &[usize], bell: usize) -> Crew<T> {
        let mut placed = Vec::new();
        for &place in stages {
            let watchers = self.watchers(place);
            if let Some(mut stage) = self.stages[place].take() {
                let is_watched = !watchers.is_empty();
                let bells = if self.may_sleep() {
                    watchers
                } else {
                    Box::default()
                };
                let (is_alone, is_away) = (stages.len() == 1, bell != CALLER);
                stage.stage.seat(bells, is_watched, is_alone, is_away);
                placed.push(stage);
            }
        }
        let mut crew = Crew::new(&self.timeline, &self.control);
        crew.extend(placed);
        if bell == self.bell_of(0)
            && let Some(mut merge) = self.merge.take()
        {
            merge.seat(self.bells_first(bell));
            crew.set_merge(merge);
        }
        crew
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

    /// Returns the gauges with what goes with them.
    fn figures(&mut self, is_auto: bool) -> Meters {
        let threads = (0..self.gauges.len()).map(|place| self.bell_of(place));
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

    /// Seats all stages and starts the threads.
    pub(super) fn start(
        mut self,
        intake: Intake<T>,
        producers: Vec<Producer<T>>,
        is_auto: bool,
        machine: &Machine,
    ) -> Result<Pipeline<T>, PipelineError> {
        let planned = std::mem::take(&mut self.plan.caller);
        let crew = self.crew(&planned, CALLER);
        self.plan.caller = planned;
        let mut threads = Vec::new();
        for at in 0..self.plan.threads.len() {
            let stages = self.plan.threads[at].stages.clone();
            let cores = self.plan.threads[at].cores.clone();
            threads.push((self.crew(&stages, at + 1), cores, None));
        }
        let mut auto = None;
        if is_auto {
            let hand_over = Arc::new(HandOver::default());
            auto = Some(self.watcher(&hand_over));
            let crew = Crew::on_call(&self.timeline, &self.control);
            threads.push((crew, machine.left_by_caller(), Some(hand_over)));
        }
        let figures = Arc::new(self.figures(is_auto));
        let mut pipeline = Pipeline {
            intake,
            crew,
            threads: Vec::new(),
            producers,
            first_bells: self.bells_first(CALLER),
            is_alone: false,
            waiter: self.waiter(),
            auto,
            figures,
            control: Arc::clone(&self.control),
            export: None,
        };
        pipeline.find_out();
        pipeline.waiter.prepare();
        for (at, (crew, cores, hand_over)) in threads.into_iter().enumerate() {
            let is_worker = hand_over.is_some();
            debug_assert!(!is_worker || at + 1 == WORKER);
            // A worker without stages sleeps; it must be woken for the first ones.
            let strategy = if is_worker {
                Strategy::Adaptive
            } else {
                self.plan.strategy
            };
            let waiter = StageWait::new(strategy, self.plan.shares);
            let control = Arc::clone(&self.control);
            let thread = Thread {
                crew,
                bell: at + 1,
                control,
                waiter,
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
            // The cores were checked; if the mask has changed since, unpinned is the next best.
            let _ = cores::pin_current_thread(&cores);
        }
        stages.run();
    };
    thread::Builder::new()
        .name(format!("thalweg-{at}"))
        .spawn(run)
        .map_err(|error| PipelineError::Spawn(error.to_string()))
}

/// The numbers of events for which a thread waits for a moment: right behind the writer it would
/// pay for each line alone, and so would the writer.
const CLOSE_BEHIND: std::ops::Range<usize> = 2..32;
/// The number of pauses for which it waits.
const HANG_BACK: usize = 64;

/// A stage thread.
struct Thread<T> {
    crew: Crew<T>,
    bell: usize,
    pub(super) control: Arc<Control>,
    waiter: StageWait,
    /// Where stages are handed over, if the placement may change.
    hand_over: Option<Arc<HandOver<T>>>,
}

impl<T> Thread<T> {
    fn run(mut self) {
        let control = Arc::clone(&self.control);
        self.waiter.prepare();
        loop {
            if let Some(hand_over) = &self.hand_over {
                hand_over.exchange(&mut self.crew);
                if self.crew.is_empty() {
                    if hand_over.is_closed() || control.failure().is_some() {
                        return;
                    }
                    self.waiter.until(control.bell(self.bell), || {
                        hand_over.has_news() || control.failure().is_some()
                    });
                    continue;
                }
            }
            let Some(round) = self
                .crew
                .guarded(&control, |crew| crew.round(&mut Mark::default()))
            else {
                return;
            };
            match round {
                Round::Worked { more: true } => {}
                Round::Worked { more: false } => self.hang_back(),
                // A failed pipeline settles nothing any more: what is blocked stays so.
                Round::Blocked if control.failure().is_none() => yield_now(),
                Round::Idle => self.wait(),
                Round::Blocked | Round::Done => {
                    // Statistics may be asked for after the end.
                    self.crew.flush();
                    self.crew.dismiss(&control);
                    return;
                }
            }
        }
    }

    /// Lets a few events become more, if no thread is kept from running meanwhile.
    fn hang_back(&mut self) {
        if self.waiter.may_spin() && CLOSE_BEHIND.contains(&self.crew.backlog()) {
            for _ in 0..HANG_BACK {
                spin_hint();
            }
            self.crew.backlog();
        }
    }

    fn wait(&mut self) {
        let Self {
            crew,
            bell,
            control,
            waiter,
            hand_over,
        } = self;
        let news = || {
            hand_over
                .as_ref()
                .is_some_and(|hand_over| hand_over.has_news())
        };
        waiter.until(control.bell(*bell), || crew.is_ready() || news());
    }
}
