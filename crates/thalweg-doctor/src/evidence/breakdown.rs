//! Divides the time of a program into states and parts.

use crate::evidence::Evidence;
use serde::Serialize;

macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident $name:literal [$($figure:literal)*];)*) => {
        /// A part of the time in which a program was observed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Part {
            $($(#[$doc])* $part,)*
        }

        impl Part {
            /// All parts. They cover the whole time where every figure is available.
            pub const ALL: &[Part] = &[$(Part::$part,)*];

            /// Returns the name for people.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Part::$part => $name,)*
                }
            }

            /// Returns the figures that the part is computed from; the last one decides.
            #[must_use]
            pub fn figures(self) -> &'static [&'static str] {
                match self {
                    $(Part::$part => &[$($figure,)*],)*
                }
            }
        }
    };
}

parts! {
    /// It ran, and did none of the activities below.
    Work "computing" ["state.running"];
    /// It ran in page faults.
    Faults "page faults" ["state.running" "fault.cpu_share"];
    /// It ran in a loop that waits, or next to a pause instruction.
    Spin "spinning" ["state.running" "spin.cpu_share"];
    /// It ran in `sched_yield`.
    Yield "sched_yield" ["state.running" "yield.cpu_share"];
    /// It ran in futex calls.
    FutexCalls "calls of futex" ["state.running" "call.cpu_share" "call.futex"];
    /// It ran in calls that read or write a disk.
    DiskCalls "calls for a disk" ["state.running" "call.cpu_share" "disk.cpu_share"];
    /// It ran in polls that do not wait and find nothing.
    BusyPolls "polls in vain" ["state.running" "call.cpu_share" "poll.busy_share"];
    /// It ran in other system calls.
    OtherCalls "other system calls" ["state.running" "call.cpu_share" "poll.busy_share" "call.all"];
    /// It was runnable, and another program had the core.
    Queue "behind other programs" ["state.waiting"];
    /// It was runnable, and no other program ran: a thread was woken and on its way to a core.
    Waking "woken, with no core yet" ["state.waiting" "host.others"];
    /// It was runnable, and a quota was used up.
    Quota "stopped by a quota" ["host.throttled_share"];
    /// All of its threads waited at a futex.
    Futex "futex" ["state.blocked" "block.futex"];
    /// All of its threads waited for locks of files.
    FileLock "lock of a file" ["state.blocked" "block.file_lock"];
    /// All of its threads waited for a disk.
    Disk "disk" ["state.blocked" "block.disk"];
    /// All of its threads waited at pipes, sockets or terminals.
    Stream "pipe, socket or terminal" ["state.blocked" "block.stream"];
    /// All of its threads slept.
    Sleep "sleeping" ["state.blocked" "block.sleep"];
    /// All of its threads waited in poll, select or epoll_wait.
    Poll "poll" ["state.blocked" "block.poll"];
    /// All of its threads waited for child processes.
    Child "child processes" ["state.blocked" "block.child"];
    /// All of its threads waited for anything else.
    Other "anything else" ["state.blocked" "block.other"];
}

impl Part {
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
            Part::DiskCalls => running(calls(evidence)? * disk_of_calls(evidence)?),
            Part::BusyPolls => running(calls(evidence)? * busy_of_calls(evidence)?),
            Part::OtherCalls => {
                let of = [futex_of_calls, busy_of_calls, disk_of_calls];
                let others = of.iter().filter_map(|of| of(evidence)).sum::<f64>();
                running(calls(evidence)? * (1.0 - others).max(0.0))
            }
            Part::Queue => Some(queued(evidence)?.0),
            Part::Waking => Some(queued(evidence)?.1),
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

/// Returns the shares of the time in which it was runnable behind others, and with no other program
/// in its way: it cannot wait for others, or for the host, longer than these had a core.
fn queued(evidence: &Evidence) -> Option<(f64, f64)> {
    let value = |name| evidence.value(name);
    let waiting = value("state.waiting")? - value("host.throttled_share").unwrap_or(0.0);
    let waiting = waiting.max(0.0);
    let stolen = value("host.steal_share").unwrap_or(0.0) * value("cpu.usable").unwrap_or(1.0);
    let others = value("host.others").map_or(waiting, |others| others + stolen);
    let behind = waiting.min(others);
    Some((behind, waiting - behind))
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

/// Returns the share of futex calls in the time of all calls but `sched_yield`: from samples,
/// otherwise from their number.
fn futex_of_calls(evidence: &Evidence) -> Option<f64> {
    let by_count = || {
        let used = evidence.value("cpu.used")?.max(1e-6);
        Some(evidence.value("call.futex")? * FUTEX_S / used)
    };
    of_calls(
        evidence.value("futex.cpu_share").or_else(by_count)?,
        evidence,
    )
}

/// Returns the share of calls for a disk in the time of all calls but `sched_yield`.
fn disk_of_calls(evidence: &Evidence) -> Option<f64> {
    of_calls(evidence.value("disk.cpu_share")?, evidence)
}

fn of_calls(share: f64, evidence: &Evidence) -> Option<f64> {
    let calls = calls(evidence)?;
    (calls > 0.0).then(|| (share / calls).clamp(0.0, 1.0))
}

/// A state of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spent {
    /// The name of the state: `running`, `waiting for a core` or `blocked`.
    pub state: &'static str,
    /// Its share of the time, from 0 to 1.
    pub share: f64,
    /// Its parts, the largest first; their sum does not exceed its share.
    pub parts: Vec<Piece>,
}

/// A part of a state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Piece {
    /// Its name.
    pub part: &'static str,
    /// Its share of the time, from 0 to 1.
    pub share: f64,
}

/// The smallest share of a part that is shown.
const LEAST: f64 = 0.005;

/// Returns each state that is known, with its parts.
pub(crate) fn spent(evidence: &Evidence) -> Vec<Spent> {
    use Part::{BusyPolls, Child, Disk, DiskCalls, Faults, FileLock, Futex, FutexCalls, Other};
    use Part::{OtherCalls, Poll, Queue, Quota, Sleep, Spin, Stream, Waking, Work, Yield};
    let waiting = evidence.value("state.waiting");
    // A thread that a quota stops looks blocked where the kernel removes it from the run queue.
    let stopped = Quota.share(evidence).unwrap_or(0.0);
    let moved = (stopped - waiting.unwrap_or(0.0)).max(0.0);
    let waiting = match moved > LEAST {
        true => Some(stopped),
        false => waiting,
    };
    let blocked = evidence.value("state.blocked");
    let states: [(&str, Option<f64>, &[Part]); 3] = [
        (
            "running",
            evidence.value("state.running"),
            &[
                Work, Faults, Spin, Yield, FutexCalls, DiskCalls, BusyPolls, OtherCalls,
            ],
        ),
        ("waiting for a core", waiting, &[Queue, Quota, Waking]),
        (
            "blocked",
            blocked.map(|share| (share - moved).max(0.0)),
            &[Futex, FileLock, Disk, Stream, Sleep, Poll, Child, Other],
        ),
    ];
    let known = states.into_iter();
    let known = known.filter_map(|(state, share, parts)| Some((state, share?, parts)));
    let spent = known.map(|(state, share, parts)| Spent {
        state,
        share,
        parts: pieces(share, parts, evidence),
    });
    spent.collect()
}

/// Returns the parts of a state. Parts are estimated separately. Where their sum exceeds the state,
/// all are reduced in proportion.
fn pieces(of: f64, parts: &[Part], evidence: &Evidence) -> Vec<Piece> {
    let known = parts.iter().filter_map(|&part| {
        let share = part.share(evidence)?;
        let part = name(part, evidence);
        Some(Piece { part, share })
    });
    let mut known: Vec<Piece> = known.collect();
    let sum: f64 = known.iter().map(|piece| piece.share).sum();
    if sum > of {
        known.iter_mut().for_each(|piece| piece.share *= of / sum);
    }
    known.retain(|piece| piece.share >= LEAST);
    known.sort_by(|a, b| b.share.total_cmp(&a.share));
    known
}

/// Returns the name of a part. Where futex calls are not distinguished from others, the part covers
/// all calls.
fn name(part: Part, evidence: &Evidence) -> &'static str {
    match part {
        Part::OtherCalls if Part::FutexCalls.share(evidence).is_none() => "system calls",
        part => part.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Quality;
    use crate::evidence::values;

    fn evidence(values: &[(&str, f64)]) -> Evidence {
        Evidence::of(values, Quality::Exact)
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.expect("a share");
        assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
    }

    #[test]
    fn the_parts_cover_the_time() {
        let evidence = evidence(&values! {
            state.running 0.5, state.waiting 0.2, state.blocked 0.3, host.throttled_share 0.15,
            fault.cpu_share 0.1, spin.cpu_share 0.2, yield.cpu_share 0.1, call.cpu_share 0.4,
            call.all 1_000.0, futex.cpu_share 0.06, call.yield 200.0, poll.busy_share 0.5,
            disk.cpu_share 0.09, host.others 0.03,
            block.futex 0.3, block.disk 0.05, block.file_lock 0.05, block.stream 0.1,
            block.sleep 0.1, block.poll 0.1, block.child 0.1, block.other 0.2
        });
        close(Part::Work.share(&evidence), 0.5 * 0.3);
        close(Part::FutexCalls.share(&evidence), 0.5 * 0.3 * 0.2);
        close(Part::DiskCalls.share(&evidence), 0.5 * 0.3 * 0.3);
        close(Part::BusyPolls.share(&evidence), 0.5 * 0.3 * 0.25);
        close(Part::Queue.share(&evidence), 0.03);
        close(Part::Waking.share(&evidence), 0.02);
        let sum = Part::ALL.iter().map(|part| part.share(&evidence)).sum();
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
        let some = evidence(&values! {
            state.running 1.0, cpu.system_share 0.8, call.all 100_000.0, call.yield 75_000.0
        });
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
        let some = evidence(&values! {
            state.running 1.0, call.cpu_share 0.8, poll.busy_share 0.75
        });
        close(Part::BusyPolls.share(&some), 0.4);
        close(Part::OtherCalls.share(&some), 0.4);
    }

    #[test]
    fn the_figures_of_every_part_are_in_the_table() {
        for part in Part::ALL {
            for figure in part.figures() {
                assert!(crate::evidence::named(figure).is_some(), "{figure}");
            }
        }
    }

    fn of(values: &[(&str, f64)]) -> Vec<Spent> {
        spent(&evidence(values))
    }

    #[test]
    fn parts_are_never_more_than_their_state() {
        // Spinning is estimated from samples, calls from the remaining time in the kernel.
        let spent = of(&values! {
            state.running 0.9, spin.cpu_share 0.8, cpu.system_share 0.4
        });
        let parts: Vec<&str> = spent[0].parts.iter().map(|piece| piece.part).collect();
        assert_eq!(parts, ["spinning", "system calls"]);
        let sum: f64 = spent[0].parts.iter().map(|piece| piece.share).sum();
        assert!((sum - 0.9).abs() < 1e-9, "{spent:?}");
        assert!((spent[0].parts[0].share - 0.6).abs() < 1e-9, "{spent:?}");
    }

    #[test]
    fn what_a_quota_stops_waits_for_a_core() {
        let spent = of(&values! {
            state.running 0.5, state.waiting 0.1, state.blocked 0.4, host.throttled_share 0.45,
            block.sleep 1.0
        });
        let shares: Vec<f64> = spent.iter().map(|spent| spent.share).collect();
        assert_eq!(shares[..2], [0.5, 0.45]);
        assert!((shares[2] - 0.05).abs() < 1e-9, "{spent:?}");
        let piece = &spent[1].parts[..];
        assert_eq!(
            (piece[0].part, piece[0].share),
            ("stopped by a quota", 0.45)
        );
        assert!((spent[2].parts[0].share - 0.05).abs() < 1e-9, "{spent:?}");
    }

    #[test]
    fn calls_of_futex_are_split_by_their_time() {
        let figures = values! { state.running 1.0, cpu.system_share 0.5 };
        assert_eq!(of(&figures)[0].parts[1].part, "system calls");
        let sampled = values! { futex.cpu_share 0.125, call.all 1_000.0, call.futex 900.0 };
        let spent = of(&[&figures[..], &sampled].concat());
        let parts: Vec<&str> = spent[0].parts.iter().map(|piece| piece.part).collect();
        assert_eq!(parts, ["computing", "other system calls", "calls of futex"]);
    }
}
