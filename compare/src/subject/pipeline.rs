//! `thalweg::pipeline` under a placement.

use std::sync::PoisonError;

use thalweg::pipeline::{Pipeline, Placement};
use thalweg_measure::histogram::recorder;

use crate::runner::{Run, Subject};
use crate::sender::{Line, Load, figures, send};
use crate::workload::{CAPACITY, Event, STAGES, STAGES_MAX, Stamp, Step, Tail, Workload};

const NAMES: [&str; STAGES_MAX] = ["first", "second", "third", "fourth"];

/// A pipeline of this library.
#[derive(Debug, Clone)]
pub(crate) struct Thalweg {
    pub(crate) name: String,
    pub(crate) placement: Placement,
    /// How many stages share the work, up to [`STAGES_MAX`].
    pub(crate) stages: usize,
    /// The progress interval, or the library's default.
    pub(crate) progress: Option<usize>,
    pub(crate) workload: Workload,
}

impl Thalweg {
    /// [`STAGES`] stages under `placement` with the library's defaults.
    pub(crate) fn new(name: &str, placement: Placement, workload: Workload) -> Self {
        Self {
            name: format!("thalweg {name}"),
            placement,
            stages: STAGES,
            progress: None,
            workload,
        }
    }

    fn build(&self, tail: Tail) -> Result<Pipeline<Event>, String> {
        let rounds = self.workload.rounds_of(self.stages);
        let mut builder = Pipeline::builder(CAPACITY, Event::default);
        let last = self.stages - 1;
        for place in 0..last {
            let mut step = Step::new(place, rounds);
            builder = builder.stage(NAMES[place], move |event: &mut Event, _| step.work(event));
            if place > 0 {
                builder = builder.after(NAMES[place - 1]);
            }
            if let Some(events) = self.progress {
                builder = builder.progress(events);
            }
        }
        let (mut step, mut tail) = (Step::new(last, rounds), tail);
        builder = builder.stage(NAMES[last], move |event: &mut Event, _| {
            step.work(event);
            tail.end(event);
        });
        if last > 0 {
            builder = builder.after(NAMES[last - 1]);
        }
        if let Some(events) = self.progress {
            builder = builder.progress(events);
        }
        let pipeline = builder.placement(self.placement.clone()).build();
        pipeline.map_err(|error| error.to_string())
    }
}

impl Subject<Load> for Thalweg {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let (writer, reader) = recorder();
        let (tail, tally) = Tail::new(writer);
        let sent = send(Owned(self.build(tail)?), *load);
        let tally = *tally.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(figures(*load, sent, tally, &reader))
    }
}

/// Publishes as a user does: [`Pipeline::publish`] waits for room in its own way, which is part of
/// what is measured.
struct Owned(Pipeline<Event>);

impl Line for Owned {
    #[inline]
    fn publish(&mut self, stamp: Stamp, _: u64) -> bool {
        self.0.publish(|event| event.set(stamp)).is_ok()
    }

    #[inline]
    fn publish_batch(&mut self, first: u64, count: usize, _: u64) -> bool {
        let set = |at: usize, event: &mut Event| {
            event.set(Stamp {
                number: first + at as u64,
                intended_ticks: 0,
            });
        };
        self.0.publish_batch(count, set).is_ok()
    }

    fn finish(self) {
        // A stage here does not panic; if one did, the tally would show what was lost.
        let _ = self.0.join();
    }
}
