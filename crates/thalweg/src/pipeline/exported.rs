//! The figures of a pipeline as it exports them.

use std::sync::Arc;

use super::control::Control;
use super::figures::Figures;
use super::stats::{StageStats, Stats};
use crate::export::{Arrivals, Json, Kept, Source, is_full, write_times};

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
    figures: Arc<Figures>,
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
    pub(super) fn new(figures: &Arc<Figures>, control: &Arc<Control>) -> Self {
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
    fn look_at_queues(&mut self) {
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
    fn look_at_arrivals(&mut self) {
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

    fn look(&mut self) -> Kept {
        self.look_at_queues();
        self.look_at_arrivals();
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
        all.unsent_ns + all.parts.iter().map(|part| part.queueing_ns).sum::<f64>()
    });
    json.put_fraction("unsent_mean_ns", stats.unsent_mean_ns);
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
