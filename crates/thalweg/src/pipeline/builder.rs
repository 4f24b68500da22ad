//! Builds a pipeline: checks the declared stages, and starts their threads.

use std::path::PathBuf;
use std::sync::Arc;

use super::assembly::Assembly;
use super::assembly::Make;
use super::control::Control;
use super::error::PipelineError;
use super::graph::{self, Declared, Graph};
use super::placement::{Machine, Placement};
use super::publish::Direct;
use super::stage::{Change, ChangeChunks, Chunk, Context, Member, Observe, Processed, Work};
use super::timeline::Timeline;
use super::{Intake, PRODUCERS_MAX, Pipeline, SAMPLE_EVERY, SAMPLE_EVERY_MAX};
use crate::ring::broadcast::{self, ReaderId};
use crate::ring::sync::IS_MODEL;

/// The default number of events after which a stage reports its progress to the next ones; see
/// `docs/notes/results-pipelines.md` for the measurement that this was chosen by.
const PROGRESS: usize = 64;

type Route<T> = Box<dyn Fn(&T) -> usize + Send>;

enum Kind<T> {
    Observe(Make<T>),
    Change(Make<T>),
    Sharded {
        shards: Vec<Make<T>>,
        route: Route<T>,
    },
}

struct Declaration<T> {
    declared: Declared,
    progress: usize,
    kind: Kind<T>,
}

/// Declares the stages of a pipeline; made by [`Pipeline::builder`].
#[must_use = "a builder does nothing before `build`"]
pub struct PipelineBuilder<T> {
    capacity: usize,
    factory: Box<dyn FnMut() -> T>,
    stages: Vec<Declaration<T>>,
    placement: Placement,
    producers: usize,
    sample_every: u64,
    export_to: Option<PathBuf>,
    /// The first misuse of an option, reported by `build`.
    misuse: Option<PipelineError>,
}

shown!([T] PipelineBuilder<T>, "PipelineBuilder", this, "capacity": this.capacity,
    "stages": this.stages.iter().map(|stage| &stage.declared.name).collect::<Vec<_>>(),
    "placement": this.placement);

/// Returns the function that makes a stage of this work.
fn make<T, W: Work<T> + 'static>(work: W) -> Make<T> {
    Box::new(|meter, progress, control| Box::new(Member::new(work, meter, progress, control)))
}

impl<T: Send + Sync + 'static> PipelineBuilder<T> {
    pub(super) fn new(capacity: usize, factory: impl FnMut() -> T + 'static) -> Self {
        Self {
            capacity,
            factory: Box::new(factory),
            stages: Vec::new(),
            placement: Placement::auto(),
            producers: 0,
            sample_every: SAMPLE_EVERY,
            export_to: None,
            misuse: None,
        }
    }

    fn declare(mut self, name: impl Into<String>, kind: Kind<T>) -> Self {
        let declared = Declared {
            name: name.into(),
            after: Vec::new(),
        };
        self.stages.push(Declaration {
            declared,
            progress: PROGRESS,
            kind,
        });
        self
    }

    /// Adds a stage that may change the event. It must be ordered against every other stage, by
    /// [`after`](Self::after): the order of the declarations does not count.
    pub fn stage(
        self,
        name: impl Into<String>,
        work: impl FnMut(&mut T, Context) + Send + 'static,
    ) -> Self {
        self.declare(name, Kind::Change(make(Change(work))))
    }

    /// Adds a stage that may change the events and gets a chunk of them at a time, up to its
    /// progress interval: to do something once for all of them, or to stop before an event that has
    /// to wait ([`Chunk::try_for_each`]).
    pub fn stage_chunks(
        self,
        name: impl Into<String>,
        work: impl FnMut(Chunk<'_, T>) -> Processed + Send + 'static,
    ) -> Self {
        self.declare(name, Kind::Change(make(ChangeChunks(work))))
    }

    /// Adds a stage that only reads the event. It may run beside other such stages.
    pub fn observe(
        self,
        name: impl Into<String>,
        work: impl FnMut(&T, Context) + Send + 'static,
    ) -> Self {
        self.declare(name, Kind::Observe(make(Observe(work))))
    }

    /// Adds `shards` copies of a stage, made by `work(shard)`. Each gets the events whose `route`,
    /// modulo `shards`, is its index; `route` is called when an event is published, and a panic is
    /// that of [`publish`](Pipeline::publish); with [`producers`](Self::producers) it stops the
    /// pipeline. The shards may run side by side.
    pub fn sharded<F: FnMut(&mut T, Context) + Send + 'static>(
        self,
        name: impl Into<String>,
        shards: usize,
        route: impl Fn(&T) -> usize + Send + 'static,
        work: impl FnMut(usize) -> F,
    ) -> Self {
        let shards = (0..shards).map(work).map(|work| make(Change(work)));
        let (shards, route) = (shards.collect(), Box::new(route));
        self.declare(name, Kind::Sharded { shards, route })
    }

    fn last(&mut self, option: &'static str) -> Option<&mut Declaration<T>> {
        if self.stages.is_empty() {
            self.misuse.get_or_insert(PipelineError::NoStageYet(option));
        }
        self.stages.last_mut()
    }

    /// Makes the stage declared last depend on the named one, which may be declared later: it gets
    /// each event after that. Without it, a stage depends on the producer only. May be called
    /// several times.
    pub fn after(mut self, stage: impl Into<String>) -> Self {
        let stage = stage.into();
        if let Some(last) = self.last("after") {
            last.declared.after.push(stage);
        }
        self
    }

    /// Makes the stage declared last publish its progress every `events` events, not only at the
    /// end of a batch. The default is 64; `usize::MAX` means the end of the batch.
    ///
    /// This is ignored by a final stage on a stage thread, unless it takes chunks: it frees each
    /// slot at once. If an earlier stage blocks on later stages or on the publishing thread, set 1
    /// and give it its own thread.
    pub fn progress(mut self, events: usize) -> Self {
        if let Some(last) = self.last("progress") {
            last.progress = events;
        }
        self
    }

    /// Sets where the stages run; default [`Placement::auto`].
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Makes `count` [`Producer`](super::Producer)s, at most [`PRODUCERS_MAX`], for other threads
    /// to publish from; the owner of the pipeline can still publish, too. Each event is then moved
    /// once, from its producer's lane into the ring, by the thread of the first stage; if that is
    /// the caller's, [`Pipeline::drive`] moves it.
    ///
    /// A stage must not own one of its own pipeline's: [`Pipeline::join`] waits until all are
    /// dropped, and drops the stages after that.
    pub fn producers(mut self, count: usize) -> Self {
        self.producers = count;
        self
    }

    /// Samples one event in `events`, 1 to [`SAMPLE_EVERY_MAX`], rounded up to a power of two; 1
    /// samples every event. [`SAMPLE_EVERY`] has what sampling costs.
    ///
    /// The default is [`SAMPLE_EVERY`] (512) in the long run and more at the beginning, so that a
    /// short run has percentiles, too: each of the first 512 events, one in 2 of the next 1,024,
    /// one in 4 of the next 2,048, and so on. Each sample counts for the events that it stands for.
    pub fn sample_every(mut self, events: u64) -> Self {
        self.sample_every = events;
        self
    }

    /// Exports the statistics to a file in this directory, for a program that watches this one;
    /// overrides [`THALWEG_EXPORT`](crate::export::ENV_VAR). See [`export`](crate::export).
    pub fn export_to(mut self, directory: impl Into<PathBuf>) -> Self {
        self.export_to = Some(directory.into());
        self
    }

    /// Checks the graph, makes the ring (`factory` is called once for each slot, and once for each
    /// slot of a producer's lane), and starts the threads.
    ///
    /// # Errors
    /// See [`PipelineError`]; no thread is left behind.
    ///
    /// # Panics
    /// If `factory` panics; no thread was started then.
    pub fn build(mut self) -> Result<Pipeline<T>, PipelineError> {
        if let Some(misuse) = self.misuse.take() {
            return Err(misuse);
        }
        if self.sample_every == 0 || self.sample_every > SAMPLE_EVERY_MAX {
            return Err(PipelineError::Sampling(self.sample_every));
        }
        if self.stages.is_empty() {
            return Err(PipelineError::NoStage);
        }
        if self.producers > PRODUCERS_MAX {
            return Err(PipelineError::Producers(self.producers));
        }
        let mut ring = broadcast::RingBuilder::new(self.capacity);
        let parts = declare_readers(self.stages, &mut ring)?;
        let machine = Machine::here(self.producers);
        let plan = self.placement.plan(&parts.names, &machine)?;
        let (publisher, readers) = ring
            .build(&mut self.factory)
            .map_err(|error| parts.translate(error))?;
        let slots = publisher.capacity();
        let shift = self.sample_every.next_power_of_two().trailing_zeros();
        let is_auto = self.placement.is_auto() && self.producers == 0 && machine.cores.count() > 1;
        let threads = plan.threads.len() + usize::from(is_auto);
        let graph = Arc::new(parts.graph);
        // A model would have every event of a run sampled.
        let is_thinning = self.sample_every == SAMPLE_EVERY && !IS_MODEL;
        let timeline = Timeline::thinning(
            slots,
            if is_thinning { 0 } else { shift }..=shift,
            parts.names.len(),
            graph.last.len(),
            self.producers > 0,
        );
        let timeline = Arc::new(timeline);
        let control = Arc::new(Control::new(1 + threads + self.producers));
        let mut assembly = Assembly {
            plan,
            stages: Vec::new(),
            gauges: Vec::new(),
            graph,
            timeline,
            control,
            merge: None,
            published: publisher.progress(),
            export_to: self.export_to,
        };
        assembly.make_stages(readers, parts.makes, &parts.names);
        let (intake, producers) = if self.producers == 0 {
            let direct = Direct::new(publisher, Arc::clone(&assembly.timeline));
            (Intake::Direct(direct), Vec::new())
        } else {
            assembly.make_lanes(publisher, self.capacity, self.producers, self.factory)?
        };
        assembly.start(intake, producers, is_auto, &machine)
    }
}

/// The declared stages as readers of the ring.
struct Parts<T> {
    names: Vec<String>,
    makes: Vec<(Make<T>, usize)>,
    graph: Graph,
}

impl<T> Parts<T> {
    /// Returns the ring's error as one of the pipeline, which names stages.
    fn translate(&self, error: broadcast::GraphError) -> PipelineError {
        match error {
            broadcast::GraphError::Conflict(first, second) => PipelineError::Conflict {
                first: self.names[first.index()].clone(),
                second: self.names[second.index()].clone(),
            },
            broadcast::GraphError::Capacity(asked) => PipelineError::Capacity(asked),
            _ => PipelineError::NoStage,
        }
    }
}

fn declare_readers<T: Send + Sync + 'static>(
    stages: Vec<Declaration<T>>,
    ring: &mut broadcast::RingBuilder<T>,
) -> Result<Parts<T>, PipelineError> {
    let declared: Vec<Declared> = stages.iter().map(|stage| stage.declared.clone()).collect();
    let sorted = graph::sort(&declared)?;
    let mut stages: Vec<Option<Declaration<T>>> = stages.into_iter().map(Some).collect();
    let mut parts = Parts {
        names: vec![],
        makes: vec![],
        graph: Graph::default(),
    };
    // For each sorted stage, its readers.
    let mut ids: Vec<Vec<ReaderId>> = Vec::new();
    for (stage, after) in sorted {
        let Some(Declaration {
            declared,
            progress,
            kind,
        }) = stages[stage].take()
        else {
            continue;
        };
        if progress == 0 {
            return Err(PipelineError::NoProgress(declared.name));
        }
        let after: Vec<ReaderId> = after.iter().flat_map(|&at| ids[at].clone()).collect();
        let (made, makes) = match kind {
            Kind::Observe(make) => (vec![ring.reader(&after)], vec![make]),
            Kind::Change(make) => (vec![ring.reader_mut(&after)], vec![make]),
            Kind::Sharded { shards, .. } if shards.is_empty() => {
                return Err(PipelineError::NoShard(declared.name));
            }
            Kind::Sharded { shards, route } => (ring.shards(shards.len(), route, &after), shards),
        };
        let after: Box<[usize]> = after.iter().map(|id| id.index()).collect();
        let many = made.len() > 1;
        for at in 0..made.len() {
            let name = &declared.name;
            parts.names.push(if many {
                format!("{name}[{at}]")
            } else {
                name.clone()
            });
            parts.graph.after.push(after.clone());
        }
        (parts.makes).extend(makes.into_iter().map(|make| (make, progress)));
        ids.push(made);
    }
    let after = &parts.graph.after;
    let last = (0..after.len()).filter(|at| !after.iter().any(|after| after.contains(at)));
    parts.graph.last = last.collect();
    Ok(parts)
}
