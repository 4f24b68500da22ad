//! Records the statistics of channels, buses and pipelines with the facade
//! [`metrics`](https://docs.rs/metrics), which has exporters for Prometheus, OpenTelemetry, StatsD
//! and others. It needs the feature `metrics`, which is off by default.
//!
//! The program has to call [`bus`], [`pipeline`] or [`Queue::channel`], for example once a second:
//! they record counters that are kept anyway. The waiting time of a channel's elements is measured
//! only if they carry a timestamp: [`Queue::stamp`] adds it, and [`Queue::take`] records the time
//! since then.
//!
//! | metric | kind | labels |
//! |---|---|---|
//! | `thalweg_queue_seconds` | histogram | `queue`: time of each element of a channel in it |
//! | `thalweg_queue_depth`, `thalweg_queue_capacity` | gauge | `queue`; of a bus `inbox` |
//! | `thalweg_queue_in_total`, `thalweg_queue_out_total` | counter | as above |
//! | `thalweg_queue_lost_total` | counter | as above, and `cause` |
//! | `thalweg_queue_wait_seconds` | gauge | `queue`, `stage`, `quantile`: 0.5, 0.99, 1 |
//! | `thalweg_stage_events_total` | counter | `queue`, `stage` |
//! | `thalweg_stage_busy_seconds` | gauge | `queue`, `stage`: busy time so far |
//!
//! A cause is one of the [crate](crate#terms)'s terms: `refused`, `dropped` and `discarded` of a
//! channel; `refused`, `timed_out`, `evicted` and `discarded` of an inbox. Elements that a channel
//! refused were returned to their sender, and may be sent again.
//!
//! ```
//! use thalweg::metrics::Queue;
//!
//! let (mut tx, mut rx) = thalweg::channel::spsc(64);
//! let orders = Queue::new("orders");
//! tx.send(orders.stamp("buy")).expect("the receiver is there");
//! let order = orders.take(rx.recv()?);
//! assert_eq!(order, "buy");
//! // Once a second, say:
//! orders.channel(&rx.counters(), rx.len(), rx.capacity());
//! # Ok::<(), thalweg::channel::RecvError>(())
//! ```
//!
//! # Cost
//! A stamp costs a read of the clock at each end, 8 bytes in each element, and what the recorder
//! takes for a value. A channel without stamps costs nothing between the calls.

use ::metrics::{Histogram, Key, Label, Level, Metadata, SharedString, counter, gauge};
use thalweg_measure::clock::Clock;

use crate::bus::{Bus, Message};
use crate::channel::Counters;
use crate::pipeline::Stats;

static METADATA: Metadata<'static> =
    Metadata::new("thalweg", Level::INFO, Some("thalweg::metrics"));

/// The metrics of a channel, by its name. They use the recorder that is installed when this is
/// made: install it first.
#[derive(Debug, Clone)]
pub struct Queue {
    name: SharedString,
    times: Histogram,
    clock: Clock,
}

/// An element with the time at which it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped<T> {
    sent_ticks: u64,
    value: T,
}

impl<T> Stamped<T> {
    /// Returns the element, and records nothing.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl Queue {
    /// Returns the metrics of a channel with this name.
    pub fn new(name: impl Into<SharedString>) -> Self {
        let name = name.into();
        let labels = vec![Label::new("queue", name.clone())];
        let key = Key::from_parts("thalweg_queue_seconds", labels);
        let times =
            ::metrics::with_recorder(|recorder| recorder.register_histogram(&key, &METADATA));
        let clock = Clock::global();
        Self { name, times, clock }
    }

    /// Adds the time to an element that is about to be sent.
    #[inline]
    pub fn stamp<T>(&self, value: T) -> Stamped<T> {
        let sent_ticks = self.clock.ticks();
        Stamped { sent_ticks, value }
    }

    /// Returns an element that was received, and records how long it was in the channel.
    #[inline]
    pub fn take<T>(&self, stamped: Stamped<T>) -> T {
        // Clocks of two cores may differ a little.
        let ticks = self.clock.ticks().saturating_sub(stamped.sent_ticks);
        self.times.record(self.clock.ns(ticks) as f64 / 1e9);
        stamped.value
    }

    /// Records the counters of a channel, as an endpoint returns them: [`Receiver::counters`],
    /// [`Receiver::len`] and [`Receiver::capacity`].
    ///
    /// [`Receiver::counters`]: crate::channel::Receiver::counters
    /// [`Receiver::len`]: crate::channel::Receiver::len
    /// [`Receiver::capacity`]: crate::channel::Receiver::capacity
    pub fn channel(&self, counters: &Counters, len: usize, capacity: usize) {
        let labels = vec![Label::new("queue", self.name.clone())];
        let losses = [
            ("refused", counters.refused),
            ("dropped", counters.dropped),
            ("discarded", counters.discarded),
        ];
        let flow = (counters.sent, counters.received);
        record(labels, (len as u64, capacity as u64), flow, &losses);
    }
}

/// Records the figures of a queue.
fn record(
    labels: Vec<Label>,
    (depth, capacity): (u64, u64),
    (came, went): (u64, u64),
    losses: &[(&'static str, u64)],
) {
    gauge!("thalweg_queue_depth", labels.clone()).set(depth as f64);
    gauge!("thalweg_queue_capacity", labels.clone()).set(capacity as f64);
    counter!("thalweg_queue_in_total", labels.clone()).absolute(came);
    counter!("thalweg_queue_out_total", labels.clone()).absolute(went);
    for &(cause, count) in losses {
        let mut labels = labels.clone();
        labels.push(Label::new("cause", cause));
        counter!("thalweg_queue_lost_total", labels.clone()).absolute(count);
    }
}

/// Records the counters of each open inbox of a bus, under a name for the bus. It takes the locks
/// that [`Bus::inbox_readings`] takes.
pub fn bus<M: Message>(name: impl Into<SharedString>, bus: &Bus<M>) {
    let name = name.into();
    for (id, reading) in bus.inbox_readings() {
        let labels = vec![
            Label::new("queue", name.clone()),
            Label::new("inbox", id.index().to_string()),
        ];
        let losses = [
            ("refused", reading.refused),
            ("timed_out", reading.timed_out),
            ("evicted", reading.evicted),
            ("discarded", reading.discarded),
        ];
        let flow = (reading.issued, reading.taken);
        record(labels, (reading.waiting, reading.capacity), flow, &losses);
    }
}

/// Records how long events waited for each stage of a pipeline, since its start, and how long the
/// stages were busy.
pub fn pipeline(name: impl Into<SharedString>, stats: &Stats) {
    let name = name.into();
    for stage in &stats.stages {
        let labels = vec![
            Label::new("queue", name.clone()),
            Label::new("stage", stage.name.clone()),
        ];
        let waits = stage.queueing_ns.summary();
        for (quantile, ns) in [("0.5", waits.p50), ("0.99", waits.p99), ("1", waits.max)] {
            let mut labels = labels.clone();
            labels.push(Label::new("quantile", quantile));
            gauge!("thalweg_queue_wait_seconds", labels.clone()).set(ns as f64 / 1e9);
        }
        counter!("thalweg_stage_events_total", labels.clone()).absolute(stage.events);
        let busy = gauge!("thalweg_stage_busy_seconds", labels.clone());
        busy.set(stage.busy_ns as f64 / 1e9);
    }
}
