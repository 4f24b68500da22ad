//! Collects what the system reports about a run besides the process's own resource usage: how long
//! its threads waited for a core, and how much time others took meanwhile.

use crate::probe::host::Host;
use std::collections::{HashMap, HashSet};
use std::fs;

/// The time that the threads of a process and of its descendants waited for a core, as far as they
/// were sampled: the values of a thread are known up to its last sample. Those of the first thread
/// of the process are known up to its end.
#[derive(Debug, Default)]
pub(super) struct Waits {
    by_thread: HashMap<u32, Schedule>,
}

/// The `schedstat` values of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Schedule {
    /// The time on a core, s.
    pub(super) run_s: f64,
    /// The time of waiting for a core, s.
    pub(super) wait_s: f64,
}

impl Waits {
    /// Samples all threads.
    pub(super) fn look(&mut self, process: u32) {
        let (mut open, mut seen) = (vec![process], HashSet::from([process]));
        while let Some(process) = open.pop() {
            let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
                continue; // The thread has ended meanwhile.
            };
            for thread in threads.flatten() {
                let Some(id) = thread.file_name().to_str().and_then(|id| id.parse().ok()) else {
                    continue;
                };
                self.read(id, &thread.path().join("schedstat"));
                let children = fs::read_to_string(thread.path().join("children"));
                let children = children.unwrap_or_default();
                let children = children.split_whitespace().flat_map(str::parse);
                open.extend(children.filter(|child| seen.insert(*child)));
            }
        }
    }

    /// Samples the first thread alone, when it has ended and was not yet waited for.
    pub(super) fn look_last(&mut self, process: u32) {
        self.read(process, format!("/proc/{process}/schedstat").as_ref());
    }

    fn read(&mut self, thread: u32, file: &std::path::Path) {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(schedule) = Schedule::of(&text) {
            self.by_thread.insert(thread, schedule);
        }
    }

    /// Returns the sums over all threads; `None` where the system does not report them.
    pub(super) fn total(&self) -> Option<Schedule> {
        let sum = |sum: Schedule, of: &Schedule| Schedule {
            run_s: sum.run_s + of.run_s,
            wait_s: sum.wait_s + of.wait_s,
        };
        let total = self.by_thread.values().fold(Schedule::default(), sum);
        (!self.by_thread.is_empty()).then_some(total)
    }
}

impl Schedule {
    /// Parses ns on a core, ns of waiting for one, and the number of time slices.
    fn of(schedstat: &str) -> Option<Schedule> {
        let mut numbers = schedstat.split_whitespace().map(str::parse::<u64>);
        let mut seconds = || Some(numbers.next()?.ok()? as f64 / 1e9);
        Some(Schedule {
            run_s: seconds()?,
            wait_s: seconds()?,
        })
    }
}

/// The time that others took of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Taken {
    /// The share of the run's time in which its threads waited for a core while others had one.
    /// Others' mere use of a core that no thread of the run wanted does not count.
    pub wait_share: f64,
    /// The share of the machine's time that the hypervisor took.
    pub steal_share: f64,
}

/// The minimum share of a run's processor time that the samples of its threads must cover.
const SEEN_MIN: f64 = 0.8;
/// The possible error of the counts of a core.
const TICK_S: f64 = 0.01;

impl Taken {
    /// Computes the shares from the samples of the run's threads, from the processor time of the
    /// run and of the processes that sample it, and from the machine's counts before and after.
    /// Without data, nothing counts as taken.
    pub(super) fn of(
        wall_s: f64,
        seen: Option<Schedule>,
        [run_s, lookers_s]: [f64; 2],
        (before, after): (&Host, &Host),
    ) -> Taken {
        let since = |of: fn(&Host) -> f64| (of(after) - of(before)).max(0.0);
        let (total_s, steal_s) = (since(|host| host.total_s), since(|host| host.steal_s));
        if wall_s <= 0.0 || total_s <= 0.0 {
            return Taken::default();
        }
        let busy_s = since(|host| host.busy_s);
        let others_s = (busy_s - run_s - lookers_s).max(0.0);
        let seen = seen.unwrap_or_default();
        let error_s = TICK_S * total_s / wall_s;
        let taken_s = if seen.run_s < SEEN_MIN * run_s {
            // That some thread waited (PSI) is only an upper bound: it may have been a thread of
            // the same run. And while a core is idle, the time that others use is taken from no
            // thread.
            let idle_s = total_s - busy_s - steal_s;
            let most_s = since(|host| host.pressure_s.unwrap_or(0.0)).max(seen.wait_s);
            (others_s - idle_s - error_s).clamp(0.0, most_s)
        } else if seen.run_s + seen.wait_s > wall_s {
            // Threads of the run may have waited for each other, so the possible error of the
            // counts is not blamed on others.
            seen.wait_s.min((others_s - error_s).max(0.0))
        } else {
            seen.wait_s.min(others_s)
        };
        Taken {
            wait_share: taken_s / wall_s,
            steal_share: (steal_s / total_s).min(1.0),
        }
    }

    /// Returns the sum of both shares.
    #[must_use]
    pub fn share(self) -> f64 {
        self.wait_share + self.steal_share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_read() {
        let schedule = Schedule::of("3000000000 500000000 3\n").expect("both are there");
        assert_eq!((schedule.run_s, schedule.wait_s), (3.0, 0.5));
        assert_eq!(Schedule::of("81"), None);
    }

    #[test]
    fn only_what_was_wanted_and_used_by_others_is_taken() {
        let taken = |seen: Option<(f64, f64)>, run_s, busy_s, pressure_s| {
            let before = Host {
                pressure_s: Some(1.0),
                ..Host::default()
            };
            let after = Host {
                busy_s,
                total_s: 20.0,
                pressure_s: Some(1.0 + pressure_s),
                ..Host::default()
            };
            let seen = seen.map(|(run_s, wait_s)| Schedule { run_s, wait_s });
            Taken::of(10.0, seen, [run_s, 0.0], (&before, &after)).share()
        };
        // Others used a core that the program did not want, and even waited for each other.
        assert_eq!(taken(Some((10.0, 0.0)), 10.0, 20.0, 9.0), 0.0);
        // The program's threads waited for each other.
        assert_eq!(taken(Some((20.0, 8.0)), 20.0, 20.0, 9.0), 0.0);
        // The program waited for others; in the second case half of its work was not sampled.
        assert_eq!(taken(Some((6.0, 4.0)), 6.0, 16.0, 9.0), 0.4);
        assert_eq!(taken(Some((3.0, 1.0)), 6.0, 16.0, 5.0), 0.5);
        assert_eq!(taken(None, 6.0, 16.0, 3.0), 0.3);
        // Its own threads, which were too short-lived to be sampled, waited for each other, and
        // others had idle cores.
        assert_eq!(taken(None, 14.0, 15.0, 9.0), 0.0);
        // A thread that was sampled waited for its own threads too, and others used no more than
        // the possible error of the counts.
        assert_eq!(taken(Some((3.0, 1.5)), 14.0, 15.0, 9.0), 0.0);
        assert_eq!(taken(Some((19.0, 8.0)), 19.985, 20.0, 9.0), 0.0);
        // They left no core idle: others took the time that they used, as far as the counts show.
        assert!((taken(None, 18.0, 20.0, 9.0) - 0.198).abs() < 1e-9);
        let unknown = (&Host::default(), &Host::default());
        assert_eq!(Taken::of(1.0, None, [1.0, 0.0], unknown), Taken::default());
    }

    #[test]
    fn this_process_is_seen() {
        let mut waits = Waits::default();
        waits.look(std::process::id());
        waits.look_last(std::process::id());
        assert!(waits.total().is_some_and(|seen| seen.run_s > 0.0));
        assert_eq!(Waits::default().total(), None);
    }
}
