//! The statistics of a pipeline, for any thread and for the export, and the handle by which other
//! threads watch and pause it.

use std::sync::Arc;

use super::Pipeline;
use super::control::Control;
use super::meter::Gauge;
use super::stats::{self, StageStats, Stats};
use super::timeline::Timeline;
use crate::export::{Arrivals, Held, Json, Source, is_full, write_times};
use crate::ring::broadcast::Progress;
use crate::ring::sync::{AtomicU64, Ordering};
use crate::state::{ChangeError, Lifecycle, StateView};

/// The meters of all stages, and where the stages are. Reading them costs the stages nothing but
/// the cache lines that the reader takes from them.
#[derive(Debug)]
pub(super) struct Meters {
    pub(super) gauges: Box<[Gauge]>,
    pub(super) timeline: Arc<Timeline>,
    /// When the pipeline was built, in ticks.
    pub(super) began: u64,
    /// How many events were put into the ring.
    pub(super) published: Progress,
    /// The stages that each stage comes after.
    pub(super) after: Box<[Box<[usize]>]>,
    /// The thread of each stage, 0 for the caller's, as planned.
    pub(super) threads: Box<[usize]>,
    /// How many of the first stages the caller has, where that changes: the others are on thread 1.
    callers: Option<AtomicU64>,
}

impl Meters {
    pub(super) fn new(
        gauges: Vec<Gauge>,
        timeline: Arc<Timeline>,
        published: Progress,
        after: Box<[Box<[usize]>]>,
        threads: Box<[usize]>,
        is_auto: bool,
    ) -> Self {
        let callers = is_auto.then(|| AtomicU64::new(gauges.len() as u64));
        Self {
            gauges: gauges.into(),
            began: timeline.watch.now(),
            timeline,
            published,
            after,
            threads,
            callers,
        }
    }

    /// Notes that the caller has the first `callers` stages from now on.
    pub(super) fn moved(&self, callers: usize) {
        if let Some(place) = &self.callers {
            // ORDERING: Relaxed; a figure for people.
            place.store(callers as u64, Ordering::Relaxed);
        }
    }

    /// Returns the thread of a stage, 0 for the caller's.
    fn thread(&self, stage: usize) -> usize {
        match &self.callers {
            // ORDERING: Relaxed; a figure for people.
            Some(callers) => usize::from(stage as u64 >= callers.load(Ordering::Relaxed)),
            None => self.threads[stage],
        }
    }

    /// Returns where the time went, up to now.
    pub(super) fn stats(&self) -> Stats {
        let watch = &self.timeline.watch;
        let elapsed = watch.now().saturating_sub(self.began);
        stats::read(&self.gauges, &self.timeline, elapsed)
    }

    /// Returns how long the busiest thread is at work for an event, in ticks; nothing while nothing
    /// is known.
    pub(super) fn service(&self) -> Option<f64> {
        let mut threads = vec![0.0; 1 + self.gauges.len()];
        for (stage, gauge) in self.gauges.iter().enumerate() {
            // ORDERING: Relaxed; a figure for people.
            let busy = gauge.counters.busy.load(Ordering::Relaxed);
            let events = gauge.progress.released();
            if let Some(thread) = threads.get_mut(self.thread(stage))
                && events > 0
            {
                *thread += busy as f64 / events as f64;
            }
        }
        threads.into_iter().reduce(f64::max).filter(|&ns| ns > 0.0)
    }
}

/// A handle that reads a pipeline's state and statistics and pauses its producers, from any thread.
/// It may outlive the pipeline.
///
/// ```
/// use thalweg::pipeline::{Pipeline, Placement, TryPublishError};
/// use thalweg::state::Lifecycle;
///
/// let mut pipeline = Pipeline::builder(64, || 0_u64)
///     .stage("double", |event, _| *event *= 2)
///     .placement(Placement::inline())
///     .producers(1)
///     .build()?;
/// let mut producer = pipeline.take_producers().remove(0);
/// let handle = pipeline.handle();
/// handle.pause("maintenance")?;
/// assert_eq!(producer.try_publish(|event| *event = 1), Err(TryPublishError::Paused));
/// handle.resume("done")?;
/// producer.publish(|event| *event = 1)?;
/// drop(producer);
/// pipeline.join()?;
/// handle.state().wait_for(Lifecycle::Stopped)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    control: Arc<Control>,
    figures: Arc<Meters>,
}

shown!([] Handle, "Handle", this, "state": this.state().get());

impl Handle {
    /// Works as [`Pipeline::state`].
    pub fn state(&self) -> &StateView {
        &self.control.state
    }

    /// Works as [`Pipeline::stats`], from any thread, but without the moves of the automatic
    /// placement. Counts of stages on the publishing thread may lag by up to one sampling interval.
    pub fn stats(&self) -> Stats {
        self.figures.stats()
    }

    /// Pauses the [`Producer`](super::Producer)s only: their `publish` blocks, and `try_publish`
    /// fails with [`TryPublishError::Paused`](super::TryPublishError::Paused). The owner of the
    /// pipeline is not paused: [`Pipeline::publish`] still publishes. An event that a producer
    /// publishes at this instant may still be accepted. Published events pass through all stages.
    ///
    /// # Errors
    /// [`ChangeError`] if the pipeline is not running.
    pub fn pause(&self, why: &'static str) -> Result<(), ChangeError> {
        let state = &self.control.state;
        state.change(Lifecycle::Running, Lifecycle::Paused, why)
    }

    /// Ends a [`pause`](Self::pause).
    ///
    /// # Errors
    /// [`ChangeError`] if the pipeline is not paused.
    pub fn resume(&self, why: &'static str) -> Result<(), ChangeError> {
        let state = &self.control.state;
        state.change(Lifecycle::Paused, Lifecycle::Running, why)
    }
}

impl<T> Pipeline<T> {
    /// Returns the state of the pipeline, with its last changes. It is *draining* when nothing more
    /// is taken: once it is joined and no [`Producer`](super::Producer) is left, or once it is
    /// dropped. It is *stopped* when all stages are done, or as soon as one has panicked.
    pub fn state(&self) -> &StateView {
        &self.control.state
    }

    /// Returns a handle for other threads, which may also pause the producers.
    pub fn handle(&self) -> Handle {
        Handle {
            control: Arc::clone(&self.control),
            figures: Arc::clone(&self.figures),
        }
    }
}

/// Events that wait.
#[derive(Debug, Default, Clone, Copy)]
struct Depth {
    now: u64,
    most: u64,
}

impl Depth {
    fn see(&mut self, now: u64) {
        self.now = now;
        self.most = self.most.max(now);
    }
}

/// The sums over all readings of a pipeline.
pub(super) struct Exported {
    figures: Arc<Meters>,
    control: Arc<Control>,
    looks: u64,
    full_looks: u64,
    in_flight: Depth,
    /// In front of each stage.
    waiting: Vec<Depth>,
    /// The last look before any event, and the last one that found another number of events than
    /// the look before, in ticks.
    active: (u64, u64),
    seen: u64,
    looked: u64,
    arrivals: Arrivals,
}

impl Exported {
    pub(super) fn new(figures: &Arc<Meters>, control: &Arc<Control>) -> Self {
        Self {
            looks: 0,
            full_looks: 0,
            in_flight: Depth::default(),
            waiting: vec![Depth::default(); figures.gauges.len()],
            active: (figures.began, figures.began),
            seen: 0,
            looked: figures.began,
            arrivals: Arrivals::default(),
            figures: Arc::clone(figures),
            control: Arc::clone(control),
        }
    }

    /// How many events are in the ring and in front of each stage.
    fn sample_queues(&mut self) {
        let figures = &self.figures;
        // Before the stages: what is published while they are read was not in flight.
        let published = figures.published.released();
        let released = figures.gauges.iter().map(|it| it.progress.released());
        let released: Vec<u64> = released.collect();
        for (stage, after) in figures.after.iter().enumerate() {
            let ready = after.iter().map(|&before| released[before]).min();
            let waiting = ready.unwrap_or(published).saturating_sub(released[stage]);
            self.waiting[stage].see(waiting);
        }
        // Where the caller has all stages, each event goes through them when it is published, and
        // how far they are is shown now and then only.
        let is_inline = (0..released.len()).all(|stage| figures.thread(stage) == 0);
        if is_inline {
            self.waiting.fill(Depth::default());
        } else {
            let done = released.iter().min().copied().unwrap_or(published);
            let slots = figures.timeline.slots as u64;
            let in_flight = published.saturating_sub(done).min(slots);
            self.in_flight.see(in_flight);
            self.full_looks += u64::from(is_full(in_flight, slots));
        }
        self.looks += 1;
        let moved = published + released.iter().sum::<u64>();
        let now = figures.timeline.watch.now();
        if moved != self.seen {
            if self.seen == 0 {
                self.active.0 = self.looked;
            }
            self.active.1 = now;
            self.seen = moved;
        }
        self.looked = now;
    }

    /// When sampled events were due, and the queue that this made.
    fn sample_arrivals(&mut self) {
        let service = self.figures.service();
        let published = &self.figures.published;
        let arrivals = &mut self.arrivals;
        let from = arrivals.last().map_or(0, |last| last + 1);
        (self.figures.timeline).samples_since(from, published, |number, due| {
            arrivals.see(number, due, service);
        });
    }
}

impl Source for Exported {
    fn kind(&self) -> &'static str {
        "pipeline"
    }

    fn sample(&mut self) -> Held {
        self.sample_queues();
        self.sample_arrivals();
        None
    }

    fn write(&mut self, json: &mut Json) {
        let (figures, clock) = (&self.figures, self.figures.timeline.watch.clock());
        let stats = figures.stats();
        let failed = self.control.failure();
        json.put_text("failed_stage", failed.map_or("", |it| &it.stage));
        json.put("elapsed_ns", stats.elapsed_ns);
        json.put("active_ns", clock.ns(self.active.1 - self.active.0));
        json.put("sampled_every", stats.sampled_every);
        json.put("capacity", figures.timeline.slots);
        json.put("in_flight", self.in_flight.now);
        json.put("in_flight_max", self.in_flight.most);
        json.put("looks", self.looks);
        json.put("full_looks", self.full_looks);
        json.put("published", figures.published.released());
        let (events, ticks) = self.arrivals.span();
        json.put("arrived", events);
        json.put("arrived_ns", clock.ns(ticks));
        json.put("burst", self.arrivals.burst().max(self.in_flight.most));
        write_latency(json, &stats);
        let stages = stats.stages.iter().enumerate();
        json.objects("stages", stages, |json, (at, stage)| {
            json.put_text("name", &stage.name);
            json.put("thread", figures.thread(at));
            json.put("waiting", self.waiting[at].now);
            json.put("waiting_max", self.waiting[at].most);
            write_stage(json, stage);
        });
    }
}

/// Where sampled events spent their time, from exact sums.
fn write_latency(json: &mut Json, stats: &Stats) {
    json.object("end_to_end", |json| {
        write_times(json, &stats.end_to_end_ns, stats.end_to_end_mean_ns);
    });
    let all = stats.breakdown_of_all();
    let waited = all.as_ref().map_or(0.0, |all| {
        all.publish_delay_ns + all.parts.iter().map(|part| part.queueing_ns).sum::<f64>()
    });
    json.put_fraction("publish_delay_mean_ns", stats.publish_delay_mean_ns);
    json.put_fraction("waited_mean_ns", waited);
}

fn write_stage(json: &mut Json, stage: &StageStats) {
    json.put("events", stage.events);
    json.put("busy_ns", stage.busy_ns);
    json.put_fraction("utilisation", stage.utilisation);
    json.object("queueing", |json| {
        write_times(json, &stage.queueing_ns, stage.queueing_mean_ns);
    });
    json.object("service", |json| {
        write_times(json, &stage.service_ns, stage.service_mean_ns);
    });
    json.object("batches", |json| {
        json.put("count", stage.batch_events.count());
        json.put_fraction("mean", stage.batch_events.mean());
        json.put("max", stage.batch_events.max());
    });
}
