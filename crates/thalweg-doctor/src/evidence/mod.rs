//! The figures that were measured.

pub mod breakdown;
#[cfg(target_os = "linux")]
pub mod export;
#[cfg(target_os = "linux")]
pub(crate) mod figures;
#[cfg(target_os = "linux")]
pub(crate) mod places;

use serde::Serialize;
use std::collections::BTreeMap;

/// Makes a list of names and values for tests: `values! { cpu.used 1.0, cpu.usable 2.0 }`.
#[cfg(test)]
macro_rules! values {
    ($($group:ident . $name:ident $value:expr),*) => {
        [$((concat!(stringify!($group), ".", stringify!($name)), $value)),*]
    };
}
#[cfg(test)]
pub(crate) use values;

/// The way in which a figure was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// The system counted it exactly.
    Exact,
    /// It was estimated from samples.
    Sampled,
    /// It cannot be measured here.
    Absent,
}

impl Quality {
    /// Returns the name, as JSON has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Quality::Exact => "exact",
            Quality::Sampled => "sampled",
            Quality::Absent => "absent",
        }
    }
}

/// One figure, or the reason why it is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// The value; `None` if the figure is absent.
    pub value: Option<f64>,
    /// The way in which it was obtained.
    pub quality: Quality,
    /// The file or event that it came from; for an absent figure, the reason why it is absent.
    pub source: String,
}

/// All figures of one run, by the names of [`METRICS`].
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Evidence {
    readings: BTreeMap<&'static str, Reading>,
    #[serde(skip)]
    places: BTreeMap<Topic, Vec<String>>,
}

/// The subject of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Topic {
    /// The functions that compute.
    Functions,
    /// The functions in which pages are touched for the first time.
    Faults,
    /// The system calls that take time, and the functions that make them.
    Calls,
    /// The threads, calls, files and peers that are waited for while nothing runs.
    Waits,
    /// The threads that queue for a lock, the lock, and the threads that had it.
    Queue,
    /// The other programs that used cores.
    Others,
    /// The tool that names functions that the doctor cannot name.
    Tool,
}

impl Evidence {
    /// Creates evidence without any figure.
    #[must_use]
    pub fn new() -> Evidence {
        Evidence::default()
    }

    /// Creates evidence made by hand.
    #[cfg(test)]
    pub(crate) fn of(values: &[(&str, f64)], quality: Quality) -> Evidence {
        let mut evidence = Evidence::new();
        for &(name, value) in values {
            evidence.put(name, value, quality, "by hand");
        }
        evidence
    }

    /// Adds a figure. A later one of the same name replaces it.
    ///
    /// # Panics
    /// Panics if no metric has this name, or if the value is not finite.
    pub fn put(&mut self, name: &str, value: f64, quality: Quality, source: impl Into<String>) {
        assert!(value.is_finite(), "{name} is {value}");
        self.set(name, Some(value), quality, source.into());
    }

    /// Adds the reason why a figure is absent. A figure that was measured stays.
    ///
    /// # Panics
    /// Panics if no metric has this name.
    pub fn lack(&mut self, name: &str, why: impl Into<String>) {
        if self.value(name).is_none() {
            self.set(name, None, Quality::Absent, why.into());
        }
    }

    fn set(&mut self, name: &str, value: Option<f64>, quality: Quality, source: String) {
        let metric = named(name).unwrap_or_else(|| panic!("no metric is called {name}"));
        let reading = Reading {
            value,
            quality,
            source,
        };
        self.readings.insert(metric.name, reading);
    }

    /// Sets the places of a topic, the largest first.
    pub(crate) fn put_places(&mut self, topic: Topic, places: Vec<String>) {
        self.places.insert(topic, places);
    }

    /// Returns the places of a topic, the largest first.
    #[must_use]
    pub fn places(&self, topic: Topic) -> &[String] {
        self.places.get(&topic).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of a figure, if it was measured.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.readings.get(name)?.value
    }

    /// Returns a figure, or the reason why it is absent; `None` for a figure that no probe has
    /// reported on.
    #[must_use]
    pub fn reading(&self, name: &str) -> Option<&Reading> {
        self.readings.get(name)
    }

    /// Returns the absent ones of these figures, grouped behind their common reason.
    pub(crate) fn absent(&self, names: impl IntoIterator<Item = &'static str>) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for name in names {
            let why = match self.readings.get(name) {
                Some(reading) if reading.value.is_some() => continue,
                Some(reading) => &reading.source,
                None => "not measured",
            };
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        let text = |(why, names): (&str, Vec<&str>)| format!("{}: {why}", names.join(", "));
        reasons.into_iter().map(text).collect()
    }

    /// Returns all figures, in the order of their names.
    pub fn readings(&self) -> impl Iterator<Item = (&'static str, &Reading)> {
        self.readings.iter().map(|(name, reading)| (*name, reading))
    }
}

/// A figure that a probe may measure.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name in reports and rules.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// The meaning of the figure.
    pub meaning: &'static str,
}

/// Returns the metric of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

macro_rules! metrics {
    ($($name:literal $unit:literal $meaning:literal;)*) => {
        /// All figures. A share is a part of one, from 0 to 1.
        pub const METRICS: &[Metric] = &[
            $(Metric { name: $name, unit: $unit, meaning: $meaning },)*
        ];
    };
}

metrics! {
    "time.wall" "s" "how long the program was observed";
    "cpu.usable" "cores" "cores that the program may use: affinity and quota";
    "cpu.used" "cores" "processor time of all of its processes, per second observed";
    "cpu.system_share" "share" "part of the processor time spent in the kernel";
    "threads.max" "threads" "most threads alive at once, of all its processes";
    "threads.busy" "threads" "threads that ran or waited for a core, on average";
    "processes.started" "processes" "processes started, the command included";
    "processes.left" "processes" "processes that went on when the command had ended";

    "state.running" "share" "part of the time in which at least one of its threads ran";
    "state.waiting" "share" "part of the time in which none ran and one waited for a core";
    "state.blocked" "share" "part of the time in which all of its threads were blocked";

    "state.blocked_us" "µs"
        "how long all of its threads are blocked at a time, on average over that time";

    "run.wait_peers" "share"
        "of the time threads wanted a core no other program had, the part in which a peer had it";
    "switch.handed" "1/s" "times a thread blocked, and not for a disk, per second";
    "switch.run_us" "µs" "how long a thread ran between two switches, on average";

    "fault.minor" "1/s" "page faults answered from memory, per second";
    "fault.major" "1/s" "page faults answered from a disk, per second";
    "fault.cpu_share" "share" "part of the processor time spent in page faults";

    "call.all" "1/s" "system calls of all threads, per second";
    "call.cpu_share" "share" "part of the processor time spent in system calls";
    "call.yield" "1/s" "calls of sched_yield, per second";
    "call.futex" "1/s" "calls of futex, per second; without root, those that block or wake";

    "spin.cpu_share" "share"
        "part of the processor time in loops that wait, or beside a pause instruction";
    "yield.cpu_share" "share" "part of the processor time spent in sched_yield";

    "block.futex" "share" "part of the blocked time in futex";
    "block.file_lock" "share" "part of the blocked time in waiting for locks of files";
    "block.disk" "share"
        "part of the blocked time in file reads, writes and syncs, or in uninterruptible sleep";
    "block.stream" "share" "part of the blocked time in pipes, sockets and terminals";
    "block.sleep" "share" "part of the blocked time in nanosleep, and polls without descriptors";
    "block.poll" "share" "part of the blocked time in poll, select and epoll_wait";
    "block.child" "share" "part of the blocked time in waiting for child processes";
    "block.other" "share" "part of the blocked time in anything else";
    "sleep.us" "µs"
        "how long a sleep lasts until the thread is woken: the mean over all sleeps";
    "futex.cpu_share" "share" "part of the processor time spent in calls of futex";
    "disk.cpu_share" "share"
        "part of the processor time spent in calls that read or write a disk";
    "futex.wake_share" "share"
        "part of block.futex that another thread ended, rather than a timeout";
    "futex.timeout_us" "µs"
        "how long waits at a futex last that a timeout ends, on average over their time";
    "poll.busy_share" "share" "part of all system calls that poll with a timeout of zero";
    "poll.timer_share" "share"
        "part of block.poll that a timeout or a timer ended, rather than an event";

    "lock.waiters" "threads"
        "threads that wait for the busiest lock, or else at the busiest futex, on average";
    "lock.held_share" "share"
        "how far they wait for what one of them holds: a lock, rather than a condition";
    "lock.goroutines" "goroutines" "goroutines that wait for a lock: absent in programs of Go";

    "host.steal_share" "share" "part of the machine's time that the host gave to other machines";
    "host.others" "cores" "cores that other programs used meanwhile";
    "host.wait_others" "share"
        "part of the time that threads waited for a core that another program had";
    "host.throttled_share" "share"
        "part of the time in which a quota kept the program from running";

    "export.arrival" "1/s" "messages that came, per second, as the program exports it";
    "export.service" "1/s" "messages that its slowest stage could serve, per second";
    "export.queue_share" "share" "part of a message's latency that it waited in queues";
    "export.full_share" "share" "part of the time that the fullest queue was full";
    "export.burst" "messages" "longest run of messages that came faster than they were served";
    "export.latency_p50" "µs" "what half of the messages took at most, as the program exports it";
    "export.latency_p99" "µs" "what 99 of 100 messages took at most";
    "export.latency_max" "µs" "what the slowest message took";
    "export.stage_share" "share" "part of the time that the thread of the slowest stage was busy";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_there_is_not_lacking() {
        let mut evidence = Evidence::new();
        evidence.lack("fault.cpu_share", "no kernel stacks without root");
        assert_eq!(evidence.value("fault.cpu_share"), None);
        evidence.put("fault.cpu_share", 0.25, Quality::Sampled, "cpu-clock");
        evidence.lack("fault.cpu_share", "anything");
        assert_eq!(evidence.value("fault.cpu_share"), Some(0.25));
    }

    #[test]
    #[should_panic(expected = "no metric is called cpu.nonsense")]
    fn a_figure_has_a_name_of_the_table() {
        Evidence::new().put("cpu.nonsense", 1.0, Quality::Exact, "nowhere");
    }

    #[test]
    fn every_name_is_there_once() {
        for (number, metric) in METRICS.iter().enumerate() {
            let first = METRICS.iter().position(|other| other.name == metric.name);
            assert_eq!(first, Some(number), "{}", metric.name);
        }
    }
}
