//! Determines how near a queue is to its limit.

use super::file::{Exported, Inbox, Queue};
use crate::evidence::{Evidence, Quality};

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
    let work = |stage: &super::Stage| stage.busy_ns as f64 / stage.events as f64;
    let of_thread = |thread: u64| {
        let its = stages().filter(|stage| stage.thread == thread);
        its.map(work).sum::<f64>()
    };
    let slowest = stages().max_by(|a, b| {
        let by_thread = of_thread(a.thread).total_cmp(&of_thread(b.thread));
        by_thread.then(work(a).total_cmp(&work(b)))
    })?;
    let mean_wait = |stage: &super::Stage| stage.queueing.mean_ns;
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
pub(super) fn plain(name: &str) -> String {
    let shown = name
        .chars()
        .map(|it| if it.is_control() { '?' } else { it });
    shown.take(NAME_MAX).collect()
}
