//! The contents of one exported file.

use serde::Deserialize;

/// The figures of a pipeline or a bus. A field that a file does not contain is 0 or empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Exported {
    /// The name of the format, `thalweg-export`.
    pub(super) format: String,
    /// The version of the format.
    pub(super) version: u32,
    /// The kind: `pipeline`, `bus` or `latencies`.
    pub kind: String,
    /// The id of the process in its own PID namespace.
    pub process: u32,
    /// The number within the process; the first pipeline or bus is 1.
    pub number: u64,
    /// The number of snapshots that were made.
    pub snapshot: u64,
    /// Whether this is the last snapshot.
    pub has_ended: bool,
    /// The stage that panicked, if one did.
    pub failed_stage: String,
    /// The time from the first event until the last, ns.
    pub active_ns: u64,
    /// The number of events that were published.
    pub published: u64,
    /// The ring buffer of a pipeline.
    #[serde(flatten)]
    pub queue: Queue,
    /// The latencies of sampled events, from when they were due.
    pub end_to_end: Latency,
    /// The mean of the part of that latency in which they waited.
    pub waited_mean_ns: f64,
    /// The stages of a pipeline.
    pub stages: Vec<Stage>,
    /// The inboxes of a bus.
    pub inboxes: Vec<Inbox>,
    /// The latencies that the program measured itself.
    pub latencies: Vec<Named>,
}

/// The statistics of a queue.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// The maximum number of events that it holds.
    pub capacity: u64,
    /// The number of times that it was sampled.
    pub looks: u64,
    /// The number of samples in which it was full, or had less than an eighth of its room left.
    pub full_looks: u64,
    /// The number of events that arrived in the next `arrived_ns` ns.
    pub arrived: u64,
    /// The time from when the first of them was due until the last was due.
    pub arrived_ns: u64,
    /// The length of the longest queue that occurred, or would have occurred with enough room.
    pub burst: u64,
}

/// The latencies of events.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// The number of latencies that were measured.
    pub count: u64,
    /// The mean from exact sums, ns.
    pub mean_ns: f64,
    /// The median, ns.
    pub p50_ns: u64,
    /// The 90th percentile, ns.
    pub p90_ns: u64,
    /// The 99th percentile, ns.
    pub p99_ns: u64,
    /// The 99.9th percentile, ns.
    pub p999_ns: u64,
    /// The 99.99th percentile, ns.
    pub p9999_ns: u64,
    /// The maximum, ns.
    pub max_ns: u64,
}

/// Latencies with a name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Named {
    /// The name of what was measured.
    pub name: String,
    /// The latencies.
    #[serde(flatten)]
    pub times: Latency,
}

/// A stage of a pipeline.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// The thread that it runs on: 0 is that of the pipeline's owner.
    pub thread: u64,
    /// The number of events that have passed it.
    pub events: u64,
    /// The time in which it was at work, ns.
    pub busy_ns: u64,
    /// The times that events waited for it.
    pub queueing: Latency,
    /// The times that it needed for events.
    pub service: Latency,
}

/// An inbox of a bus.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Inbox {
    /// Its number.
    pub inbox: u64,
    /// The number of messages that were taken.
    pub events: u64,
    /// The time in which its consumers were at work, summed over all of them, ns.
    pub busy_ns: u64,
    /// The number of consumers.
    pub consumers: u64,
    /// The time from the first message until the last, ns.
    pub active_ns: u64,
    /// The number of messages in it.
    pub waiting: u64,
    /// Its queue.
    #[serde(flatten)]
    pub queue: Queue,
}

impl Exported {
    /// Parses a text. Returns `None` if it is not of this format and version.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let exported: Self = serde_json::from_slice(text).ok()?;
        let is_known = exported.format == "thalweg-export" && exported.version == 1;
        is_known.then_some(exported)
    }

    /// Returns the change since an earlier snapshot of the same pipeline or bus. The percentiles of
    /// times remain those since the beginning, as they cannot be subtracted.
    pub(super) fn since(&self, old: &Self) -> Self {
        let mut new = self.clone();
        new.active_ns = new.active_ns.saturating_sub(old.active_ns);
        new.published = new.published.saturating_sub(old.published);
        new.queue.subtract(&old.queue);
        let (before, after) = (&old.end_to_end, &self.end_to_end);
        let mean = |new: f64, old: f64| {
            let count = after.count.saturating_sub(before.count).max(1) as f64;
            let sum = new * after.count as f64 - old * before.count as f64;
            (sum / count).max(0.0)
        };
        new.waited_mean_ns = mean(self.waited_mean_ns, old.waited_mean_ns);
        new.end_to_end.mean_ns = mean(after.mean_ns, before.mean_ns);
        new.end_to_end.count = after.count.saturating_sub(before.count);
        for (new, old) in new.stages.iter_mut().zip(&old.stages) {
            new.events = new.events.saturating_sub(old.events);
            new.busy_ns = new.busy_ns.saturating_sub(old.busy_ns);
        }
        for new in &mut new.inboxes {
            if let Some(old) = old.inboxes.iter().find(|old| old.inbox == new.inbox) {
                new.events = new.events.saturating_sub(old.events);
                new.busy_ns = new.busy_ns.saturating_sub(old.busy_ns);
                new.active_ns = new.active_ns.saturating_sub(old.active_ns);
                new.queue.subtract(&old.queue);
            }
        }
        new
    }
}

impl Queue {
    fn subtract(&mut self, old: &Queue) {
        self.looks = self.looks.saturating_sub(old.looks);
        self.full_looks = self.full_looks.saturating_sub(old.full_looks);
        self.arrived = self.arrived.saturating_sub(old.arrived);
        self.arrived_ns = self.arrived_ns.saturating_sub(old.arrived_ns);
    }
}
