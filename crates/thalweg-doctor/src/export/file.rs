//! One exported file.

use serde::Deserialize;

/// The figures of a pipeline or a bus. What a file does not say is 0 or empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Exported {
    /// `thalweg-export`.
    pub(super) format: String,
    /// Of the format.
    pub(super) version: u32,
    /// `pipeline`, `bus` or `latencies`.
    pub kind: String,
    /// The process, as it sees itself.
    pub process: u32,
    /// The first pipeline or bus of a process is 1.
    pub number: u64,
    /// How many snapshots there were.
    pub snapshot: u64,
    /// Nothing more will come.
    pub has_ended: bool,
    /// The stage that panicked, if one did.
    pub failed_stage: String,
    /// Time since the first event until the last, ns.
    pub active_ns: u64,
    /// Events that were published.
    pub published: u64,
    /// The ring of a pipeline.
    #[serde(flatten)]
    pub queue: Queue,
    /// Of sampled events, from when they were due.
    pub end_to_end: Latency,
    /// The mean of the part of it that they waited.
    pub waited_mean_ns: f64,
    /// Of a pipeline.
    pub stages: Vec<Stage>,
    /// Of a bus.
    pub inboxes: Vec<Inbox>,
    /// That the program has measured itself.
    pub latencies: Vec<Named>,
}

/// What was seen of a queue.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Events that it holds at most.
    pub capacity: u64,
    /// Times that it was looked at.
    pub looks: u64,
    /// Times that it was full, or had less than an eighth of its room left.
    pub full_looks: u64,
    /// Events that came in the next so many ns.
    pub arrived: u64,
    /// The time from when the first of them was due until the last was.
    pub arrived_ns: u64,
    /// The longest queue that there was, or would have been with room for it.
    pub burst: u64,
}

/// Times of events.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// From exact sums, ns.
    pub mean_ns: f64,
    /// ns.
    pub p50_ns: u64,
    /// ns.
    pub p90_ns: u64,
    /// ns.
    pub p99_ns: u64,
    /// ns.
    pub p999_ns: u64,
    /// ns.
    pub p9999_ns: u64,
    /// ns.
    pub max_ns: u64,
}

/// Times with a name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Named {
    /// What they are of.
    pub name: String,
    /// The times.
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
    /// Events that have passed it.
    pub events: u64,
    /// Time at work, ns.
    pub busy_ns: u64,
    /// How long events waited for it.
    pub queueing: Latency,
    /// How long they were served.
    pub service: Latency,
}

/// An inbox of a bus.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Inbox {
    /// Its number.
    pub inbox: u64,
    /// Messages that were taken.
    pub events: u64,
    /// Time that its consumers were at work, of all of them together, ns.
    pub busy_ns: u64,
    /// How many they are.
    pub consumers: u64,
    /// Time since the first message until the last, ns.
    pub active_ns: u64,
    /// Messages in it.
    pub waiting: u64,
    /// Its queue.
    #[serde(flatten)]
    pub queue: Queue,
}

impl Exported {
    /// What a text says, if it is of this format and version.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let exported: Self = serde_json::from_slice(text).ok()?;
        let is_known = exported.format == "thalweg-export" && exported.version == 1;
        is_known.then_some(exported)
    }

    /// What happened since an earlier snapshot of the same. The quantiles of times are still those
    /// since the beginning: they have no difference.
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
