//! Reads the program's processes and threads from `/proc`.

use crate::probe::procfs::{self, Account};
use crate::probe::timeline::Timeline;
use crate::sys;
use rustix::process::Pid;
use rustix::thread::sched_getaffinity;
use std::collections::BTreeSet;
use std::fs;

/// Returns the name of a thread; empty if it is gone.
pub(crate) fn name(pid: i32, tid: i32) -> String {
    let name = procfs::text(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim_end().into()
}

/// Returns the threads of a process.
pub(crate) fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The state of a thread, which determines whether it can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    /// It has ended, and is still in the list.
    Over,
    Kernels,
}

/// Returns the state of a thread; `None` if it is not in the list.
pub(crate) fn state(pid: i32, tid: i32) -> Option<State> {
    let stat = procfs::text(format!("/proc/{pid}/task/{tid}/stat"))?;
    parse_state(&stat)
}

fn parse_state(stat: &str) -> Option<State> {
    /// The flag of kernel threads, `PF_KTHREAD` of `include/linux/sched.h`.
    const KERNELS: u64 = 0x0020_0000;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let letter = fields.next()?;
    let flags: u64 = fields.nth(5)?.parse().ok()?;
    Some(match letter {
        _ if flags & KERNELS != 0 => State::Kernels,
        "Z" | "X" => State::Over,
        _ => State::Alive,
    })
}

/// Returns the core that a thread has or waits for, if it wants one.
fn wanted_core(pid: i32, tid: i32) -> Option<usize> {
    parse_wanted_core(&procfs::text(format!("/proc/{pid}/task/{tid}/stat"))?)
}

/// Finds out which of these adopted threads (process, thread) want a core.
pub(crate) fn adopt_wanting(timeline: &mut Timeline, threads: &[(i32, i32)]) {
    for &(pid, tid) in threads {
        if let Some(core) = wanted_core(pid, tid) {
            timeline.adopt_wanting(tid, core);
        }
    }
}

fn parse_wanted_core(stat: &str) -> Option<usize> {
    // The first field here is the third of the file, and the core is the 39th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_wanting = fields.next()? == "R";
    let core = fields.nth(35)?.parse().ok()?;
    is_wanting.then_some(core)
}

pub(crate) fn numbers(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns a process and all its descendants, parents first. The doctor itself is not a part of
/// what it observes, although the shell that started it may be.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let mut parents: Vec<(i32, i32)> = numbers("/proc")
        .into_iter()
        .filter(|&child| child != own)
        .filter_map(|child| Some((Account::of(child)?.parent, child)))
        .collect();
    parents.sort_unstable();
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(&pid) = found.get(at) {
        let first = parents.partition_point(|&(parent, _)| parent < pid);
        let children = parents[first..]
            .iter()
            .take_while(|&&(parent, _)| parent == pid);
        found.extend(
            children
                .map(|&(_, child)| child)
                .filter(|child| *child != pid),
        );
        at += 1;
    }
    found
}

/// Adds the descendants of the known processes, and removes the processes that are gone. `recorded`
/// is whether records show what the threads do from now on.
pub(crate) fn adopt_children(timeline: &mut Timeline, recorded: bool) {
    let known: Vec<i32> = timeline.processes.iter().copied().collect();
    let mut alive = BTreeSet::new();
    for pid in known
        .iter()
        .flat_map(|&pid| descendants(pid))
        .collect::<BTreeSet<_>>()
    {
        let tids = threads(pid);
        for &tid in &tids {
            // A first thread that has ended stays in the list, also when the others have ended.
            let was_known = timeline.has_ended(pid)
                || timeline.processes.contains(&pid) && !timeline.threads.contains_key(&pid);
            let may_be_over = tid == pid && (tids.len() > 1 || was_known);
            if may_be_over && state(pid, tid) == Some(State::Over) {
                continue;
            }
            alive.insert(tid);
            if !timeline.threads.contains_key(&tid) {
                timeline.adopt(pid, tid, &name(pid, tid));
                if recorded {
                    adopt_wanting(timeline, &[(pid, tid)]);
                }
            }
        }
    }
    timeline.forget_others(&alive);
}

/// Kills a process and everything that descends from it, or is known to have done so.
pub(crate) fn kill(pid: i32, timeline: &Timeline) {
    let mut doomed: BTreeSet<i32> = timeline.processes.iter().copied().collect();
    doomed.extend(descendants(pid));
    for pid in doomed {
        // A process that is gone needs no signal.
        let _ = sys::send(pid, libc::SIGKILL);
    }
}

/// Returns the number of cores that the threads together may use.
pub(crate) fn usable_cores(timeline: &Timeline) -> Option<f64> {
    let mut usable = BTreeSet::new();
    for &tid in timeline.threads.keys().take(64) {
        let Some(Ok(set)) = Pid::from_raw(tid).map(|tid| sched_getaffinity(Some(tid))) else {
            continue;
        };
        usable.extend((0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| set.is_set(core)));
    }
    (!usable.is_empty()).then_some(usable.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_that_behind_the_name() {
        let state_of = |text| parse_state(text);
        assert_eq!(
            state_of("7 (a) Z (b) S 1 7 7 0 -1 4194560 1"),
            Some(State::Alive)
        );
        assert_eq!(state_of("7 (a) Z 1 7 7 0 -1 4194560 1"), Some(State::Over));
        assert_eq!(
            state_of("2 (kthreadd) S 0 0 0 0 -1 2129984 0"),
            Some(State::Kernels)
        );
        assert_eq!(state_of(""), None);
        let own = std::process::id().cast_signed();
        assert_eq!(state(own, own), Some(State::Alive));
        assert_eq!(state(own, i32::MAX), None);
    }

    #[test]
    fn a_core_is_wanted_by_who_has_it_or_waits_for_it() {
        let stat = |state| format!("7 (a) R b) {state} 1{} 3 0 0", " 5".repeat(34));
        assert_eq!(parse_wanted_core(&stat("R")), Some(3));
        assert_eq!(parse_wanted_core(&stat("S")), None);
        assert_eq!(parse_wanted_core("7 (a) R 1 2"), None);
        // The kernel's own line, of a thread that reads it.
        let own = std::process::id().cast_signed();
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let core = wanted_core(own, tid).expect("it runs");
        assert!(
            crate::probe::perf::cores().contains(&(core as i32)),
            "{core}"
        );
    }

    #[test]
    fn of_the_shell_that_started_us_we_are_no_part() {
        let own = std::process::id().cast_signed();
        let shell = Account::of(own).unwrap().parent;
        assert!(!descendants(shell).contains(&own));
        assert_eq!(descendants(own)[0], own, "asked for by its number");
    }
}
