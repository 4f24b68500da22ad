//! Divides the time of a program into parts.

use crate::evidence::Evidence;

/// A part of the time in which a program was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// It ran, and did none of the activities below.
    Work,
    /// It ran in page faults.
    Faults,
    /// It ran in a loop that waits, or next to a pause instruction.
    Spin,
    /// It ran in `sched_yield`.
    Yield,
    /// It ran in futex calls.
    FutexCalls,
    /// It ran in polls that do not wait and find nothing.
    BusyPolls,
    /// It ran in other system calls.
    OtherCalls,
    /// It was runnable, and another program had the core.
    Queue,
    /// It was runnable, and a quota was used up.
    Quota,
    /// All of its threads waited at a futex.
    Futex,
    /// All of its threads waited for locks of files.
    FileLock,
    /// All of its threads waited for a disk.
    Disk,
    /// All of its threads waited at pipes, sockets or terminals.
    Stream,
    /// All of its threads slept.
    Sleep,
    /// All of its threads waited in poll, select or epoll_wait.
    Poll,
    /// All of its threads waited for child processes.
    Child,
    /// All of its threads waited for anything else.
    Other,
}

/// A table of the parts, with their names for people and the figures that they are computed from.
const PARTS: &[(Part, &str, &[&str])] = &[
    (Part::Work, "computing", &["state.running"]),
    (
        Part::Faults,
        "page faults",
        &["state.running", "fault.cpu_share"],
    ),
    (Part::Spin, "spinning", &["state.running", "spin.cpu_share"]),
    (
        Part::Yield,
        "sched_yield",
        &["state.running", "yield.cpu_share"],
    ),
    (
        Part::FutexCalls,
        "calls of futex",
        &["state.running", "call.cpu_share", "call.futex"],
    ),
    (
        Part::BusyPolls,
        "polls in vain",
        &["state.running", "call.cpu_share", "poll.busy_share"],
    ),
    (
        Part::OtherCalls,
        "other system calls",
        &[
            "state.running",
            "call.cpu_share",
            "poll.busy_share",
            "call.all",
        ],
    ),
    (Part::Queue, "behind other programs", &["state.waiting"]),
    (Part::Quota, "stopped by a quota", &["host.throttled_share"]),
    (Part::Futex, "futex", &["state.blocked", "block.futex"]),
    (
        Part::FileLock,
        "lock of a file",
        &["state.blocked", "block.file_lock"],
    ),
    (Part::Disk, "disk", &["state.blocked", "block.disk"]),
    (
        Part::Stream,
        "pipe, socket or terminal",
        &["state.blocked", "block.stream"],
    ),
    (Part::Sleep, "sleeping", &["state.blocked", "block.sleep"]),
    (Part::Poll, "poll", &["state.blocked", "block.poll"]),
    (
        Part::Child,
        "child processes",
        &["state.blocked", "block.child"],
    ),
    (
        Part::Other,
        "anything else",
        &["state.blocked", "block.other"],
    ),
];

impl Part {
    /// Returns all parts. They cover the whole time where every figure is available.
    pub fn all() -> impl Iterator<Item = Part> {
        PARTS.iter().map(|&(part, ..)| part)
    }

    fn entry(self) -> &'static (Part, &'static str, &'static [&'static str]) {
        let entry = PARTS.iter().find(|&&(part, ..)| part == self);
        entry.expect("every part is in the table")
    }

    /// Returns the name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// Returns the figures that the part is computed from; the last one decides.
    #[must_use]
    pub fn figures(self) -> &'static [&'static str] {
        self.entry().2
    }

    /// Returns the part's share of the time, from 0 to 1; `None` where a figure is absent.
    #[must_use]
    pub fn share(self, evidence: &Evidence) -> Option<f64> {
        let value = |name| evidence.value(name);
        let running = |part: f64| Some(value("state.running")? * part);
        let blocked = |name| Some(blocked(evidence)? * value(name)?);
        let share = match self {
            Part::Work => running(1.0 - known_overheads(evidence)),
            Part::Faults => running(value("fault.cpu_share")?),
            Part::Spin => running(value("spin.cpu_share")?),
            Part::Yield => running(yields(evidence)?),
            Part::FutexCalls => running(calls(evidence)? * futex_of_calls(evidence)?),
            Part::BusyPolls => running(calls(evidence)? * busy_of_calls(evidence)?),
            Part::OtherCalls => {
                let others = [futex_of_calls(evidence), busy_of_calls(evidence)];
                let others = others.into_iter().flatten().sum::<f64>();
                running(calls(evidence)? * (1.0 - others).max(0.0))
            }
            Part::Queue => {
                Some(value("state.waiting")? - value("host.throttled_share").unwrap_or(0.0))
            }
            Part::Quota => {
                let most = 1.0 - value("state.running").unwrap_or(0.0);
                Some(value("host.throttled_share")?.min(most))
            }
            Part::Futex => blocked("block.futex"),
            Part::FileLock => blocked("block.file_lock"),
            Part::Disk => blocked("block.disk"),
            Part::Stream => blocked("block.stream"),
            Part::Sleep => blocked("block.sleep"),
            Part::Poll => blocked("block.poll"),
            Part::Child => blocked("block.child"),
            Part::Other => blocked("block.other"),
        };
        share.map(|share| share.clamp(0.0, 1.0))
    }
}

/// Returns the share of the time in which the program was blocked. A thread that a quota stops
/// waits for a core, or looks blocked where the kernel removes it from the run queue.
fn blocked(evidence: &Evidence) -> Option<f64> {
    let quota = evidence.value("host.throttled_share").unwrap_or(0.0);
    let stopped = (quota - evidence.value("state.waiting").unwrap_or(0.0)).max(0.0);
    Some((evidence.value("state.blocked")? - stopped).max(0.0))
}

/// Returns the share of the processor time that is known not to be work.
fn known_overheads(evidence: &Evidence) -> f64 {
    let parts = [
        evidence.value("fault.cpu_share"),
        evidence.value("spin.cpu_share"),
        yields(evidence),
        calls(evidence),
    ];
    parts.into_iter().flatten().sum()
}

/// Returns the share of the processor time in `sched_yield`: from samples, otherwise from its share
/// of the calls.
fn yields(evidence: &Evidence) -> Option<f64> {
    let by_count = || {
        let calls = all_calls(evidence)?;
        let all = evidence.value("call.all")?;
        Some(calls * evidence.value("call.yield")? / all.max(1.0))
    };
    evidence.value("yield.cpu_share").or_else(by_count)
}

/// Returns the share of the processor time in system calls other than `sched_yield`.
fn calls(evidence: &Evidence) -> Option<f64> {
    let yields = yields(evidence).unwrap_or(0.0);
    Some((all_calls(evidence)? - yields).max(0.0))
}

/// Returns the share of the processor time in system calls; without samples of kernel stacks, the
/// time in the kernel without page faults.
fn all_calls(evidence: &Evidence) -> Option<f64> {
    let rest = || {
        let faults = evidence.value("fault.cpu_share").unwrap_or(0.0);
        Some((evidence.value("cpu.system_share")? - faults).max(0.0))
    };
    evidence.value("call.cpu_share").or_else(rest)
}

/// Returns the minimum share of polls that find nothing among all calls but `sched_yield`. Each
/// poll that does not wait and finds something is followed by a call that takes it.
fn busy_of_calls(evidence: &Evidence) -> Option<f64> {
    let yields = evidence.value("call.yield").unwrap_or(0.0);
    let all = evidence.value("call.all");
    let of_others = all.map_or(1.0, |all| all / (all - yields).max(1.0));
    let busy = evidence.value("poll.busy_share")? * of_others;
    Some((2.0 * busy - 1.0).clamp(0.0, 1.0))
}

/// The time of a futex call that blocks or wakes, in seconds: 2.6 to 7.4 µs (Zen 3, KVM).
const FUTEX_S: f64 = 5e-6;

/// Returns the share of futex calls among all calls but `sched_yield`; where calls are not counted,
/// it is estimated from the time of futex calls that block or wake.
fn futex_of_calls(evidence: &Evidence) -> Option<f64> {
    if evidence.value("call.all").is_none() {
        let calls = evidence.value("cpu.used")? * calls(evidence)?;
        let futex = evidence.value("call.futex")? * FUTEX_S;
        return (calls > 0.0).then(|| (futex / calls).clamp(0.0, 1.0));
    }
    let all = evidence.value("call.all")? - evidence.value("call.yield").unwrap_or(0.0);
    Some((evidence.value("call.futex")? / all.max(1.0)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Quality;

    fn evidence(figures: &[(&str, f64)]) -> Evidence {
        let mut evidence = Evidence::new();
        for &(name, value) in figures {
            evidence.put(name, value, Quality::Exact, "by hand");
        }
        evidence
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.expect("a share");
        assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
    }

    #[test]
    fn the_parts_cover_the_time() {
        let evidence = evidence(&[
            ("state.running", 0.5),
            ("state.waiting", 0.2),
            ("state.blocked", 0.3),
            ("host.throttled_share", 0.15),
            ("fault.cpu_share", 0.1),
            ("spin.cpu_share", 0.2),
            ("yield.cpu_share", 0.1),
            ("call.cpu_share", 0.4),
            ("call.all", 1_000.0),
            ("call.futex", 400.0),
            ("call.yield", 200.0),
            ("poll.busy_share", 0.5),
            ("block.futex", 0.3),
            ("block.disk", 0.05),
            ("block.file_lock", 0.05),
            ("block.stream", 0.1),
            ("block.sleep", 0.1),
            ("block.poll", 0.1),
            ("block.child", 0.1),
            ("block.other", 0.2),
        ]);
        close(Part::Work.share(&evidence), 0.5 * 0.3);
        close(Part::FutexCalls.share(&evidence), 0.5 * 0.3 * 0.5);
        close(Part::BusyPolls.share(&evidence), 0.5 * 0.3 * 0.25);
        close(Part::Queue.share(&evidence), 0.05);
        let sum = Part::all().map(|part| part.share(&evidence)).sum();
        close(sum, 1.0);
    }

    #[test]
    fn an_absent_figure_leaves_its_part_open() {
        let some = evidence(&[("state.running", 1.0), ("cpu.system_share", 0.6)]);
        assert_eq!(Part::Faults.share(&some), None);
        close(Part::OtherCalls.share(&some), 0.6);
        close(Part::Work.share(&some), 0.4);
        assert_eq!(Part::Work.share(&Evidence::new()), None);
    }

    #[test]
    fn yields_are_estimated_by_their_number_where_samples_lack() {
        let some = evidence(&[
            ("state.running", 1.0),
            ("cpu.system_share", 0.8),
            ("call.all", 100_000.0),
            ("call.yield", 75_000.0),
        ]);
        close(Part::Yield.share(&some), 0.6);
    }

    /// Two threads of Go without a count of calls; and one that writes, and seldom parks.
    #[test]
    fn calls_of_futex_are_recognised_by_what_they_take() {
        let share = |futex| {
            let some = evidence(&[
                ("state.running", 1.0),
                ("cpu.used", 1.0),
                ("call.cpu_share", 0.8),
                ("call.futex", futex),
            ]);
            let parts = [Part::FutexCalls, Part::OtherCalls];
            parts.map(|part| part.share(&some).expect("a share"))
        };
        assert_eq!(share(4e5), [0.8, 0.0]);
        let [futex, others] = share(600.0);
        close(Some(futex), 0.003);
        close(Some(others), 0.797);
    }

    #[test]
    fn polls_in_vain_are_a_part_where_calls_are_not_counted() {
        let some = evidence(&[
            ("state.running", 1.0),
            ("call.cpu_share", 0.8),
            ("poll.busy_share", 0.75),
        ]);
        close(Part::BusyPolls.share(&some), 0.4);
        close(Part::OtherCalls.share(&some), 0.4);
    }

    #[test]
    fn the_figures_of_every_part_are_in_the_table() {
        for part in Part::all() {
            for figure in part.figures() {
                assert!(crate::metrics::named(figure).is_some(), "{figure}");
            }
        }
    }
}
