//! The figures of a pipeline, to be read by any thread.

use std::sync::Arc;

use super::meter::Gauge;
use super::stats::{self, Stats};
use super::timeline::Timeline;
use crate::ring::broadcast::Progress;
use crate::ring::sync::{AtomicU64, Ordering};

/// The meters of all stages, and where the stages are. Reading them costs the stages nothing but
/// the cache lines that the reader takes from them.
#[derive(Debug)]
pub(super) struct Figures {
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

impl Figures {
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
    pub(super) fn thread(&self, stage: usize) -> usize {
        match &self.callers {
            // ORDERING: Relaxed; a figure for people.
            Some(callers) => usize::from(stage as u64 >= callers.load(Ordering::Relaxed)),
            None => self.threads[stage],
        }
    }

    /// Where the time went, up to now.
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
