//! Reads the figures that programs built on Thalweg export about their own queues and stages.
//!
//! Such a program writes its figures into files of a directory that the environment variable
//! [`VARIABLE`] names; `docs/export-format.md` describes their contents. [`Directory`] makes a
//! directory for a program that the doctor starts, [`directory_of`] finds that of a program that
//! runs already, and [`read`] reads its files. [`between`] returns the figures of the time between
//! two readings, and [`fill`] adds those of the queue that is nearest to its limit to the evidence.

pub(crate) mod directory;

pub use crate::evidence::export::directory::{
    Directory, File, Listing, VARIABLE, directory_of, list, read,
};
use crate::evidence::{Evidence, Quality};
use crate::recording::Latency;
use serde::Deserialize;
use std::cmp::Reverse;

/// Subtracts these fields of an earlier structure.
macro_rules! subtract {
    ($new:expr, $old:expr, $($field:ident)*) => {
        $($new.$field = $new.$field.saturating_sub($old.$field);)*
    };
}

/// Returns the figures of the time between two readings: counters of `after` minus those of
/// `before`, for each pipeline or bus that is in both. One that began in between is returned
/// unchanged, and one that ended before is left out.
#[must_use]
pub fn between(before: &[Exported], after: &[Exported]) -> Vec<Exported> {
    let same = |new: &Exported| {
        let is_same = |old: &&Exported| (old.process, old.number) == (new.process, new.number);
        before.iter().find(is_same)
    };
    let changed = after.iter().filter_map(|new| match same(new) {
        Some(old) if old.has_ended => None,
        Some(old) => Some(new.since(old)),
        None => Some(new.clone()),
    });
    changed.collect()
}

/// The figures of a pipeline, bus or channel. A field that a file does not contain is 0 or empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Exported {
    /// The name of the format, `thalweg-export`.
    pub(crate) format: String,
    /// The version of the format.
    pub(crate) version: u32,
    /// The kind: `pipeline`, `bus`, `channel` or `latencies`.
    pub kind: String,
    /// The name of a channel.
    pub name: String,
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
    /// The time since it was built, ns.
    pub elapsed_ns: u64,
    /// The time from the first event until the last, ns.
    pub active_ns: u64,
    /// The number of events in the ring buffer of a pipeline.
    pub in_flight: u64,
    /// The highest number of events that the looks found in the ring buffer.
    pub in_flight_max: u64,
    /// The number of events that were published.
    pub published: u64,
    /// The ring buffer of a pipeline.
    #[serde(flatten)]
    pub queue: Queue,
    /// The latencies of sampled events, from when they were due.
    pub end_to_end: LatencySummary,
    /// The mean of the part of that latency in which they waited.
    pub waited_mean_ns: f64,
    /// The mean of the part of it in which they waited to be sent.
    #[serde(alias = "unsent_mean_ns")]
    pub publish_delay_mean_ns: f64,
    /// The stages of a pipeline.
    pub stages: Vec<Stage>,
    /// The inboxes of a bus, or a channel as if it were the only one.
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
pub struct LatencySummary {
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
    pub times: LatencySummary,
}

/// A stage of a pipeline.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// The thread that it runs on: 0 is that of the pipeline's owner.
    pub thread: u64,
    /// The number of events in front of it.
    pub waiting: u64,
    /// The highest number of events that the looks found in front of it.
    pub waiting_max: u64,
    /// The number of events that have passed it.
    pub events: u64,
    /// The time in which it was at work, ns.
    pub busy_ns: u64,
    /// The times that events waited for it.
    pub queueing: LatencySummary,
    /// The times that it needed for events.
    pub service: LatencySummary,
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
    /// The highest number of messages that the looks found in it.
    pub waiting_max: u64,
    /// The sum of what the looks found in it.
    pub waiting_sum: u64,
    /// The number of messages that publishers wanted to put in.
    pub issued: u64,
    /// The number of messages that were lost.
    pub lost: u64,
    /// The number of messages that were lost since there was no room.
    pub refused: u64,
    /// The number of messages that were lost since no room came in time.
    pub timed_out: u64,
    /// The number of messages that were lost since a newer one took their place.
    pub evicted: u64,
    /// The number of messages that came in and were not taken.
    pub discarded: u64,
    /// Its queue.
    #[serde(flatten)]
    pub queue: Queue,
}

impl Exported {
    /// Parses a text. Returns `None` if it is not of this format and version.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let exported: Self = serde_json::from_slice(text).ok()?;
        let is_known = exported.format == "thalweg-export" && exported.version == 1;
        is_known.then_some(exported)
    }

    /// Returns the change since an earlier snapshot of the same pipeline or bus. The percentiles of
    /// times remain those since the beginning, as they cannot be subtracted.
    pub(crate) fn since(&self, old: &Self) -> Self {
        let mut new = self.clone();
        subtract!(new, old, active_ns published elapsed_ns);
        new.queue.subtract(&old.queue);
        let counts = (old.end_to_end.count, self.end_to_end.count);
        let mean = |old: f64, new: f64| mean_between(counts, old, new);
        new.waited_mean_ns = mean(old.waited_mean_ns, self.waited_mean_ns);
        new.publish_delay_mean_ns = mean(old.publish_delay_mean_ns, self.publish_delay_mean_ns);
        new.end_to_end.subtract(&old.end_to_end);
        for (new, old) in new.stages.iter_mut().zip(&old.stages) {
            subtract!(new, old, events busy_ns);
            new.queueing.subtract(&old.queueing);
            new.service.subtract(&old.service);
        }
        for new in &mut new.inboxes {
            if let Some(old) = old.inboxes.iter().find(|old| old.inbox == new.inbox) {
                new.subtract(old);
            }
        }
        new
    }
}

/// Returns the mean of what came between two means, each with its count.
fn mean_between((before, after): (u64, u64), old: f64, new: f64) -> f64 {
    let count = after.saturating_sub(before).max(1) as f64;
    ((new * after as f64 - old * before as f64) / count).max(0.0)
}

impl LatencySummary {
    fn subtract(&mut self, old: &LatencySummary) {
        self.mean_ns = mean_between((old.count, self.count), old.mean_ns, self.mean_ns);
        self.count = self.count.saturating_sub(old.count);
    }
}

impl Inbox {
    fn subtract(&mut self, old: &Inbox) {
        subtract!(self, old, events busy_ns active_ns waiting_sum issued lost refused timed_out);
        subtract!(self, old, evicted discarded);
        self.queue.subtract(&old.queue);
    }
}

impl Queue {
    fn subtract(&mut self, old: &Queue) {
        subtract!(self, old, looks full_looks arrived arrived_ns);
    }
}

/// The minimum number of samples of a queue for a statement on how often it was full.
const LOOKS_MIN: u64 = 5;
/// A queue may be full for this multiple of the time in which its thread is busy: these are
/// samples, and a thread is not at work between two chunks.
const SERVED_FACTOR: f64 = 2.0;
const SERVED_SLACK: f64 = 0.05;
/// The maximum share of the time in which a queue with bursts may be full. Above it, there is no
/// room between two bursts, and the sender waits for room.
const FULL_MAX: f64 = 0.8;
/// The maximum length of a stage's name, in characters.
const NAME_MAX: usize = 64;

const METRICS: [&str; 6] = [
    "export.arrival",
    "export.service",
    "export.queue_share",
    "export.full_share",
    "export.burst",
    "export.stage_share",
];

/// A queue and the stage that limits it.
#[derive(Debug, Clone, PartialEq)]
struct Load {
    /// The name of the queue, such as `pipeline 1 (PID 123)`.
    of: String,
    /// The name of the limiting stage, such as `stage match`.
    limited_by: String,
    /// The stage that messages wait for longest.
    awaited: String,
    /// The arrival rate, in messages a second.
    arrival: f64,
    /// The service rate that a message's total time on the busiest thread allows, in messages a
    /// second.
    service: f64,
    /// The share of waiting in a message's latency.
    queue_share: Option<f64>,
    full_share: Option<f64>,
    burst: u64,
    /// The share of the time in which the stage's thread was busy with all of its stages.
    thread_share: f64,
}

impl Load {
    /// Returns the reason why the longest queue is not that of a burst. A queue that is full while
    /// its thread is not at work waits for a thread that has no core, or that itself waits.
    fn why_no_burst(&self) -> Option<&'static str> {
        let full = self.full_share?;
        if full > SERVED_FACTOR * self.thread_share + SERVED_SLACK {
            Some("its queue was full while nobody served it")
        } else if full > FULL_MAX {
            Some("its queue was full nearly all the time")
        } else {
            None
        }
    }
}

/// Adds the figures of the queue that is nearest to its limit to the evidence: among several
/// pipelines and buses the slowest counts. The stage that limits it is named in their source.
pub fn fill(evidence: &mut Evidence, exported: &[Exported]) {
    let loads = exported.iter().flat_map(loads);
    let usage = |load: &Load| load.arrival / load.service;
    let Some(load) = loads.max_by(|a, b| usage(a).total_cmp(&usage(b))) else {
        let why = match exported {
            [] => {
                "the program exports no figures: it is not built on Thalweg, ended too \
                   soon, or cannot write where THALWEG_EXPORT says"
            }
            _ => "nothing went through the program's pipelines and buses",
        };
        METRICS.iter().for_each(|name| evidence.lack(name, why));
        return;
    };
    let source = |name: &str| match name {
        "export.queue_share" => format!("{} of {}", load.awaited, load.of),
        _ => format!("{} of {}", load.limited_by, load.of),
    };
    let no_burst = load.why_no_burst();
    let values = [
        (Some(load.arrival), ""),
        (Some(load.service), ""),
        (load.queue_share, "no message of it was sampled"),
        (load.full_share, "it was looked at too rarely"),
        (
            no_burst.is_none().then_some(load.burst as f64),
            no_burst.unwrap_or_default(),
        ),
        (Some(load.thread_share), ""),
    ];
    for (name, (value, why)) in METRICS.into_iter().zip(values) {
        match value.filter(|value| value.is_finite()) {
            Some(value) => evidence.put(name, value, Quality::Sampled, source(name)),
            None => evidence.lack(name, format!("{}: {why}", load.of)),
        }
    }
}

fn loads(exported: &Exported) -> Vec<Load> {
    let of = |kind| format!("{kind} {} (PID {})", exported.number, exported.process);
    match exported.kind.as_str() {
        "pipeline" => of_pipeline(exported, of("pipeline")).into_iter().collect(),
        "bus" => {
            let loads = exported.inboxes.iter();
            loads.filter_map(|it| of_inbox(it, of("bus"))).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the load of a pipeline. The stages of a thread share its time: the thread with the most
/// work for a message determines the service rate, and the stage with the most work on that thread
/// is the one to change.
fn of_pipeline(exported: &Exported, of: String) -> Option<Load> {
    let stages = || exported.stages.iter().filter(|stage| stage.events > 0);
    let work = |stage: &Stage| stage.busy_ns as f64 / stage.events as f64;
    let of_thread = |thread: u64| {
        let its = stages().filter(|stage| stage.thread == thread);
        its.map(work).sum::<f64>()
    };
    let slowest = stages().max_by(|a, b| {
        let by_thread = of_thread(a.thread).total_cmp(&of_thread(b.thread));
        by_thread.then(work(a).total_cmp(&work(b)))
    })?;
    let mean_wait = |stage: &Stage| stage.queueing.mean_ns;
    let awaited = stages().max_by(|a, b| mean_wait(a).total_cmp(&mean_wait(b)))?;
    Some(Load {
        of,
        limited_by: format!("stage {}", plain(&slowest.name)),
        awaited: format!("stage {}", plain(&awaited.name)),
        arrival: arrival(&exported.queue, exported.published, exported.active_ns)?,
        service: per_second(of_thread(slowest.thread))?,
        queue_share: queue_share(exported),
        full_share: full_share(&exported.queue),
        burst: exported.queue.burst,
        thread_share: thread_share(exported, slowest.thread),
    })
}

/// Returns the share of a message's latency in which it waited: the smaller of the shares in the
/// mean and in the median. One stall of some ms determines a mean, while most of the time of a
/// median message may still be service.
fn queue_share(exported: &Exported) -> Option<f64> {
    let latency = &exported.end_to_end;
    if latency.count == 0 || latency.mean_ns <= 0.0 {
        return None;
    }
    let of_mean = exported.waited_mean_ns / latency.mean_ns;
    let served = exported.stages.iter().map(|stage| stage.service.p50_ns);
    let served = served.fold(0_u64, u64::saturating_add) as f64;
    let of_median = match latency.p50_ns {
        0 => of_mean,
        p50 => 1.0 - served / p50 as f64,
    };
    Some(of_mean.min(of_median).clamp(0.0, 1.0))
}

fn thread_share(exported: &Exported, thread: u64) -> f64 {
    let stages = exported.stages.iter().filter(|it| it.thread == thread);
    let busy = stages.fold(0_u64, |sum, stage| sum.saturating_add(stage.busy_ns));
    share(busy, exported.active_ns)
}

fn of_inbox(inbox: &Inbox, of: String) -> Option<Load> {
    let consumers = inbox.consumers.max(1);
    let work = inbox.busy_ns as f64 / inbox.events.max(1) as f64;
    let service = per_second(work / consumers as f64)?;
    let queue = &inbox.queue;
    let arrival = arrival(
        queue,
        inbox.events.saturating_add(inbox.waiting),
        inbox.active_ns,
    )?;
    let thread_share = share(inbox.busy_ns, inbox.active_ns.saturating_mul(consumers));
    Some(Load {
        of,
        limited_by: format!("inbox {}", inbox.inbox),
        awaited: format!("inbox {}", inbox.inbox),
        arrival,
        service,
        // Messages of a bus are not timed one by one.
        queue_share: None,
        full_share: full_share(queue),
        burst: queue.burst,
        thread_share,
    })
}

fn per_second(ns: f64) -> Option<f64> {
    (ns > 0.0).then(|| 1e9 / ns)
}

/// Returns the arrival rate from the times at which messages were due; if too few were seen, from
/// the total count.
fn arrival(queue: &Queue, all: u64, active_ns: u64) -> Option<f64> {
    let (events, ns) = match queue.arrived {
        0 => (all, active_ns),
        arrived => (arrived, queue.arrived_ns),
    };
    (events > 0 && ns > 0).then(|| events as f64 * 1e9 / ns as f64)
}

fn full_share(queue: &Queue) -> Option<f64> {
    (queue.looks >= LOOKS_MIN).then(|| share(queue.full_looks, queue.looks))
}

fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64).min(1.0)
}

/// Returns a name that can be shown safely on a terminal.
pub(crate) fn plain(name: &str) -> String {
    let shown = name
        .chars()
        .map(|it| if it.is_control() { '?' } else { it });
    shown.take(NAME_MAX).collect()
}

/// The maximum number of lines in a chart.
const LATENCIES_MAX: usize = 12;

/// A table of the figures, with their positions in [`Latency::at_ns`].
const LATENCY_METRICS: [(&str, usize); 3] = [
    ("export.latency_p50", 0),
    ("export.latency_p99", 2),
    ("export.latency_max", 5),
];

fn latency(name: String, times: &LatencySummary) -> Option<Latency> {
    // A stage that never waits has no line.
    (times.count > 0 && times.max_ns > 0).then_some(Latency {
        name,
        count: times.count,
        at_ns: [
            times.p50_ns,
            times.p90_ns,
            times.p99_ns,
            times.p999_ns,
            times.p9999_ns,
            times.max_ns,
        ],
    })
}

/// Returns the latencies that a program measured itself; otherwise those of all pipelines, the one
/// with the most messages first, and of their stages.
#[must_use]
pub fn latencies(exported: &[Exported]) -> Vec<Latency> {
    let own = exported.iter().flat_map(|it| &it.latencies);
    let mut found: Vec<Latency> = own
        .filter_map(|own| {
            let name = own.name.replace('_', " ").replace('.', ", ");
            latency(plain(&name), &own.times)
        })
        .collect();
    if found.is_empty() {
        found = of_pipelines(exported);
    }
    found.truncate(LATENCIES_MAX);
    found
}

fn of_pipelines(exported: &[Exported]) -> Vec<Latency> {
    let timed = exported.iter().filter(|it| it.end_to_end.count > 0);
    let mut pipelines: Vec<&Exported> = timed.collect();
    pipelines.sort_by_key(|it| Reverse(it.published));
    let mut found = Vec::new();
    for pipeline in &pipelines {
        let of = |part: &str| match pipelines.len() {
            1 => part.to_owned(),
            _ => format!(
                "pipeline {} (PID {}), {part}",
                pipeline.number, pipeline.process
            ),
        };
        found.extend(latency(of("end to end"), &pipeline.end_to_end));
        for stage in &pipeline.stages {
            let name = plain(&stage.name);
            let parts = [("waited", &stage.queueing), ("served", &stage.service)];
            let parts = parts.into_iter();
            let of_part = |(what, times)| latency(of(&format!("{name}, {what}")), times);
            found.extend(parts.filter_map(of_part));
        }
    }
    found
}

/// Adds the figures of the first latencies to the evidence, after the figures of queues.
pub fn fill_latency(evidence: &mut Evidence, latencies: &[Latency]) {
    let queues = evidence.reading("export.arrival");
    let why = match queues.filter(|reading| reading.value.is_none()) {
        Some(reading) => reading.source.clone(),
        None => "the program exports no times of messages".to_owned(),
    };
    for (name, at) in LATENCY_METRICS {
        match latencies.first() {
            Some(first) => {
                let source = format!("{}, {} messages", first.name, first.count);
                evidence.put(name, first.at_ns[at] as f64 / 1e3, Quality::Sampled, source);
            }
            None => evidence.lack(name, why.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use proptest::prelude::*;
    use std::fs;
    use std::path::Path;
    use std::slice::from_ref;

    /// Returns the example of the format's documentation.
    fn example() -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export-format.md");
        let text = fs::read_to_string(path).expect("the document");
        let block = text.split("```json\n").nth(1).expect("an example");
        block.split("```").next().expect("its end").to_owned()
    }

    #[test]
    fn latencies_are_the_programs_own_or_those_of_its_busiest_pipeline() {
        let with = |number, published, p99_ns| Exported {
            published,
            end_to_end: LatencySummary {
                count: 10,
                p99_ns,
                max_ns: p99_ns,
                ..LatencySummary::default()
            },
            ..pipeline(number, &[("match", 1, 100)])
        };
        let unused = Exported::default();
        let one = latencies(&[unused.clone(), with(1, 1_000, 700)]);
        assert_eq!((one[0].name.as_str(), one[0].at_ns[2]), ("end to end", 700));
        let two = latencies(&[with(1, 1_000, 700), with(2, 2_000, 900)]);
        assert_eq!(two[0].name, "pipeline 2 (PID 7), end to end");
        let own = Exported {
            latencies: vec![Named {
                name: "end_to_end".to_owned(),
                times: LatencySummary {
                    count: 3,
                    p99_ns: 5_000,
                    max_ns: 9_000,
                    ..LatencySummary::default()
                },
            }],
            ..Exported::default()
        };
        let own = latencies(&[with(1, 1_000, 700), own]);
        assert_eq!(own.len(), 1);
        let mut evidence = Evidence::new();
        fill_latency(&mut evidence, &own);
        assert_eq!(evidence.value("export.latency_p99"), Some(5.0));
        fill_latency(&mut evidence, &latencies(&[unused]));
        assert_eq!(evidence.value("export.latency_p99"), Some(5.0), "it stays");
    }

    /// Returns the figures that are read from these files.
    fn written(files: &[(&str, &[u8])]) -> Vec<Exported> {
        let directory = Directory::new().expect("there is a place");
        for (name, content) in files {
            fs::write(directory.path().join(name), content).expect("it takes files");
        }
        read(directory.path())
    }

    fn filled(exported: &[Exported]) -> Evidence {
        let mut evidence = Evidence::new();
        fill(&mut evidence, exported);
        evidence
    }

    /// Creates a pipeline whose stages take this many ns for an event, on these threads, at a tenth
    /// of the capacity of the busiest thread.
    fn pipeline(number: u64, stages: &[(&str, u64, u64)]) -> Exported {
        let slowest = stages.iter().map(|&(_, _, ns)| ns).max().unwrap_or(1);
        let (events, active_ns) = (1_000, 10_000 * slowest);
        let stage = |&(name, thread, ns): &(&str, u64, u64)| Stage {
            name: name.to_owned(),
            thread,
            events,
            busy_ns: events * ns,
            ..Stage::default()
        };
        Exported {
            kind: "pipeline".to_owned(),
            process: 7,
            number,
            published: events,
            active_ns,
            queue: Queue {
                capacity: 64,
                looks: 100,
                full_looks: 25,
                ..Queue::default()
            },
            end_to_end: LatencySummary {
                count: 10,
                mean_ns: 400.0,
                ..LatencySummary::default()
            },
            waited_mean_ns: 300.0,
            stages: stages.iter().map(stage).collect(),
            ..Exported::default()
        }
    }

    fn source(evidence: &Evidence) -> &str {
        &evidence
            .reading("export.stage_share")
            .expect("it is there")
            .source
    }

    #[test]
    fn the_documented_example_is_read_and_its_slowest_stage_named() {
        let exported = written(&[("4711-1", example().as_bytes())]);
        assert_eq!(exported.len(), 1);
        let evidence = filled(&exported);
        assert_eq!(source(&evidence), "stage match of pipeline 1 (PID 4711)");
        // These values were computed by hand from the figures of the example.
        let value = |name| evidence.value(name).expect("it is there");
        assert_eq!(value("export.arrival").round(), 1_000_000.0);
        assert_eq!(value("export.service").round(), 1_250_000.0);
        assert_eq!(value("export.stage_share"), 0.8);
        assert_eq!(value("export.full_share"), 0.25);
        assert_eq!(value("export.queue_share"), 1.0 - 280.0 / 1_100.0);
        assert_eq!(value("export.burst"), 64.0);
    }

    #[test]
    fn stages_of_a_thread_share_its_time() {
        let alone = pipeline(1, &[("a", 1, 300), ("b", 2, 400), ("c", 3, 200)]);
        let evidence = filled(&[alone]);
        assert_eq!(source(&evidence), "stage b of pipeline 1 (PID 7)");
        assert_eq!(evidence.value("export.service"), Some(2_500_000.0));
        let together = pipeline(1, &[("a", 1, 300), ("b", 2, 400), ("c", 1, 200)]);
        let evidence = filled(&[together]);
        assert_eq!(source(&evidence), "stage a of pipeline 1 (PID 7)");
        assert_eq!(evidence.value("export.service"), Some(2_000_000.0));
        // The stage takes 500 ns of each 4,000.
        assert_eq!(evidence.value("export.stage_share"), Some(0.125));
    }

    #[test]
    fn of_several_the_one_nearest_to_its_limit_counts() {
        let mut busy = pipeline(2, &[("slow", 1, 100)]);
        busy.active_ns /= 9;
        let idle = || pipeline(1, &[("idle", 1, 5_000)]);
        let evidence = filled(&[idle(), busy.clone(), idle()]);
        assert_eq!(source(&evidence), "stage slow of pipeline 2 (PID 7)");
        // A pipeline that stands still gives no figures.
        let idle = Exported {
            stages: vec![Stage::default()],
            ..busy.clone()
        };
        assert_eq!(filled(&[idle, busy]), evidence);
    }

    #[test]
    fn what_is_lacking_is_said() {
        let evidence = filled(&[]);
        assert_eq!(evidence.value("export.arrival"), None);
        assert!(source(&evidence).contains("not built on Thalweg"));
        let mut quick = pipeline(1, &[("a", 1, 300)]);
        quick.queue.looks = 4;
        let evidence = filled(&[quick]);
        assert_eq!(evidence.value("export.full_share"), None);
        assert_eq!(evidence.value("export.queue_share"), Some(0.75));
    }

    #[test]
    fn a_queue_that_is_full_while_nobody_serves_it_is_no_burst() {
        let mut served = pipeline(1, &[("a", 1, 300)]);
        served.queue.burst = 900;
        served.active_ns /= 5;
        assert_eq!(filled(&[served.clone()]).value("export.burst"), Some(900.0));
        // The thread is at work for half the time, and the queue is full for four fifths.
        served.queue.full_looks = 80;
        assert_eq!(filled(&[served.clone()]).value("export.burst"), Some(900.0));
        // There is no room between two bursts.
        served.queue.full_looks = 81;
        let evidence = filled(&[served.clone()]);
        let burst = evidence.reading("export.burst").expect("it is there");
        assert_eq!(burst.value, None);
        assert!(burst.source.ends_with("nearly all the time"), "{burst:?}");
        // The thread is at work for a tenth of the time.
        served.active_ns *= 5;
        let evidence = filled(&[served]);
        let burst = evidence.reading("export.burst").expect("it is there");
        assert_eq!(burst.value, None);
        assert!(burst.source.ends_with("nobody served it"), "{burst:?}");
        assert_eq!(evidence.value("export.full_share"), Some(0.81));
    }

    #[test]
    fn a_stall_that_few_messages_meet_is_no_queueing() {
        let mut stalled = pipeline(1, &[("a", 1, 300), ("b", 2, 100)]);
        stalled.end_to_end.mean_ns = 90_000.0;
        stalled.waited_mean_ns = 89_600.0;
        stalled.end_to_end.p50_ns = 500;
        for (stage, ns) in stalled.stages.iter_mut().zip([300, 100]) {
            stage.service.p50_ns = ns;
        }
        let evidence = filled(&[stalled.clone()]);
        let share = evidence.value("export.queue_share").expect("it is there");
        assert!((share - 0.2).abs() < 1e-9, "{share}");
        // Where most messages wait, the stage that they wait for is named.
        stalled.end_to_end.p50_ns = 80_000;
        stalled.stages[1].queueing.mean_ns = 89_000.0;
        let evidence = filled(&[stalled]);
        let queue = evidence.reading("export.queue_share").expect("it is there");
        assert!(queue.value > Some(0.99), "{queue:?}");
        assert_eq!(queue.source, "stage b of pipeline 1 (PID 7)");
        assert_eq!(source(&evidence), "stage a of pipeline 1 (PID 7)");
    }

    #[test]
    fn an_inbox_is_a_queue_with_consumers() {
        let inbox = Inbox {
            inbox: 3,
            events: 1_000,
            busy_ns: 800_000,
            consumers: 2,
            active_ns: 1_000_000,
            ..Inbox::default()
        };
        let bus = Exported {
            kind: "bus".to_owned(),
            inboxes: vec![Inbox::default(), inbox],
            ..Exported::default()
        };
        let evidence = filled(&[bus]);
        assert_eq!(source(&evidence), "inbox 3 of bus 0 (PID 0)");
        assert_eq!(evidence.value("export.arrival"), Some(1e6));
        assert_eq!(evidence.value("export.service"), Some(2.5e6));
        assert_eq!(evidence.value("export.stage_share"), Some(0.4));
        assert_eq!(evidence.value("export.queue_share"), None);
    }

    #[test]
    fn between_two_readings_only_what_happened_then_counts() {
        let old = pipeline(1, &[("a", 1, 300), ("b", 2, 400)]);
        let mut new = old.clone();
        new.published += 500;
        new.active_ns += 1_000_000;
        new.end_to_end.count += 10;
        new.end_to_end.mean_ns = 600.0;
        new.waited_mean_ns = 310.0;
        for stage in &mut new.stages {
            stage.events += 500;
        }
        new.stages[0].busy_ns += 900_000;
        let ended = Exported {
            has_ended: true,
            ..pipeline(2, &[("gone", 1, 100)])
        };
        let born = pipeline(3, &[("born", 1, 100)]);
        let now = between(&[old, ended.clone()], &[new, ended, born.clone()]);
        assert_eq!(now.len(), 2);
        assert_eq!(now[1], born);
        let evidence = filled(&now[..1]);
        assert_eq!(source(&evidence), "stage a of pipeline 1 (PID 7)");
        assert_eq!(evidence.value("export.arrival"), Some(500_000.0));
        assert_eq!(evidence.value("export.stage_share"), Some(0.9));
        // The share is (310 · 20 − 300 · 10) of (600 · 20 − 400 · 10).
        assert_eq!(evidence.value("export.queue_share"), Some(0.4));
    }

    #[test]
    fn a_publish_delay_is_read_by_its_former_name() {
        let former = example().replace("publish_delay_mean_ns", "unsent_mean_ns");
        let exported = Exported::parse(former.as_bytes()).expect("it is of this version");
        assert_eq!(exported.publish_delay_mean_ns, 100.0);
    }

    #[test]
    fn what_is_no_such_file_is_left_out() {
        let example = example();
        let content = example.as_bytes();
        let other_version = example.replace("\"version\": 1", "\"version\": 2");
        let other_format = example.replace("thalweg-export", "other-export");
        let large = [content, &vec![b' '; 1 << 20][..]].concat();
        let deep = [b'['; 100_000];
        let infinite = example.replace("\"waited_mean_ns\": 900.000", "\"waited_mean_ns\": 1e999");
        assert_ne!(infinite, example);
        let directory = Directory::new().expect("there is a place");
        let write = |name: &str, content: &[u8]| {
            fs::write(directory.path().join(name), content).expect("it takes files");
        };
        for (name, content) in [
            ("4711-2", content),
            ("4712-1", content),
            (".4711-1.new", content),
            ("4711", content),
            ("x-1", content),
            ("99999999999999999999-1", content),
        ] {
            write(name, content);
        }
        fs::create_dir(directory.path().join("1-1")).expect("it takes directories");
        let elsewhere = Directory::new().expect("there is a place");
        fs::write(elsewhere.path().join("x"), content).expect("it takes files");
        let link = directory.path().join("4711-1");
        std::os::unix::fs::symlink(elsewhere.path().join("x"), &link).expect("it takes links");
        let everybody = rustix::fs::Mode::from_raw_mode(0o600);
        let pipe = directory.path().join("5-5");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            everybody,
            0,
        )
        .expect("it takes pipes");
        assert_eq!(read(directory.path()), []);
        fs::remove_file(&link).expect("it goes");
        let half = &content[..content.len() / 2];
        let version = other_version.as_bytes();
        for bad in [
            version,
            other_format.as_bytes(),
            &large,
            &deep,
            infinite.as_bytes(),
            half,
            b"",
        ] {
            write("4711-1", bad);
            assert_eq!(read(directory.path()), []);
        }
        write("4711-1", content);
        assert_eq!(
            read(directory.path()).len(),
            1,
            "the others are in nobody's way"
        );
        assert_eq!(read(&directory.path().join("nowhere")), []);
    }

    proptest! {
        /// Bytes of the example are changed, cut out, or duplicated; any file that can still be
        /// read must give valid evidence.
        #[test]
        fn damaged_files_make_no_trouble(
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8),
                1..20,
            )
        ) {
            let mut content = example().into_bytes();
            for (at, byte, kind) in changes {
                let at = at.index(content.len());
                match kind {
                    0 => content[at] = byte,
                    1 => _ = content.remove(at),
                    _ => content.insert(at, b'0' + byte % 10),
                }
            }
            if let Some(exported) = Exported::parse(&content) {
                let _ = filled(&between(from_ref(&exported), from_ref(&exported)));
                let _ = filled(&[exported]);
            }
        }

        /// All figures are arbitrary.
        #[test]
        fn figures_that_cannot_be_make_no_trouble(
            numbers in prop::collection::vec(
                prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
                12,
            ),
            mean in any::<f64>(),
            name in ".*",
        ) {
            let queue = Queue {
                looks: numbers[0],
                full_looks: numbers[1],
                arrived: numbers[2],
                arrived_ns: numbers[3],
                ..Queue::default()
            };
            let stage = Stage {
                name,
                thread: numbers[4],
                events: numbers[5],
                busy_ns: numbers[6],
                ..Stage::default()
            };
            let inbox = Inbox {
                events: numbers[7],
                busy_ns: numbers[8],
                consumers: numbers[9],
                waiting: numbers[10],
                active_ns: numbers[11],
                queue: queue.clone(),
                ..Inbox::default()
            };
            for kind in ["pipeline", "bus"] {
                let exported = Exported {
                    kind: kind.to_owned(),
                    published: numbers[10],
                    active_ns: numbers[11],
                    queue: queue.clone(),
                    end_to_end: LatencySummary {
                        count: 1,
                        mean_ns: mean,
                        ..LatencySummary::default()
                    },
                    waited_mean_ns: mean,
                    stages: vec![stage.clone(), stage.clone()],
                    inboxes: vec![inbox.clone()],
                    ..Exported::default()
                };
                let evidence = filled(&[exported]);
                for (name, reading) in evidence.readings().filter(|(_, it)| it.value.is_some()) {
                    prop_assert!(!reading.source.contains(char::is_control));
                    let is_share = name.ends_with("share");
                    let range = 0.0..=if is_share { 1.0 } else { f64::MAX };
                    prop_assert!(reading.value.is_some_and(|it| range.contains(&it)), "{name}");
                }
            }
        }
    }
}
