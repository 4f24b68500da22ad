//! What the system says about a run beside the process's own account: how long its threads waited
//! for a core, and what others took meanwhile.

use std::collections::{HashMap, HashSet};
use std::fs;

/// How long the threads of a process and of its descendants wanted a core and had none, as far as
/// they were seen: a thread is known up to the last look at it. The first thread of the process is
/// known to its end.
#[derive(Debug, Default)]
pub(super) struct Waits {
    by_thread: HashMap<u32, Schedule>,
}

/// `schedstat` of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Schedule {
    /// On a core, s.
    pub(super) run_s: f64,
    /// Waiting for one, s.
    pub(super) wait_s: f64,
}

impl Waits {
    /// Looks at all of them.
    pub(super) fn look(&mut self, process: u32) {
        let (mut open, mut seen) = (vec![process], HashSet::from([process]));
        while let Some(process) = open.pop() {
            let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
                continue; // It has ended meanwhile.
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

    /// Looks at the first thread alone: when it has ended and was not waited for.
    pub(super) fn look_last(&mut self, process: u32) {
        self.read(process, format!("/proc/{process}/schedstat").as_ref());
    }

    fn read(&mut self, thread: u32, file: &std::path::Path) {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(schedule) = Schedule::of(&text) {
            self.by_thread.insert(thread, schedule);
        }
    }

    /// All threads together; nothing where the system does not say.
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
    /// ns on a core, ns waiting for one, turns.
    fn of(schedstat: &str) -> Option<Schedule> {
        let mut numbers = schedstat.split_whitespace().map(str::parse::<u64>);
        let mut seconds = || Some(numbers.next()?.ok()? as f64 / 1e9);
        Some(Schedule {
            run_s: seconds()?,
            wait_s: seconds()?,
        })
    }
}

/// The machine's counts at a moment, in seconds of processor time and of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Host {
    /// All processors at work.
    busy_s: f64,
    /// Taken by the hypervisor.
    steal_s: f64,
    /// Time in which something waited for a core, PSI.
    pressure_s: Option<f64>,
    processors: usize,
}

/// Ticks of `/proc/stat` a second: 100 for all programs, whatever the kernel's own are.
const TICKS_PER_S: f64 = 100.0;

impl Host {
    /// Nothing where the system does not say.
    pub(super) fn now() -> Option<Host> {
        let pressure = fs::read_to_string("/proc/pressure/cpu").ok();
        let stat = fs::read_to_string("/proc/stat").ok()?;
        Some(Host {
            pressure_s: pressure.and_then(|text| pressure_s(&text)),
            ..Host::of_stat(&stat)?
        })
    }

    fn of_stat(stat: &str) -> Option<Host> {
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<f64> = line.split_whitespace().flat_map(str::parse).collect();
        let &[user, nice, system, _, _, irq, softirq, steal] = ticks.get(..8)? else {
            return None;
        };
        let is_one = |line: &&str| {
            let number = line.strip_prefix("cpu");
            number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
        };
        Some(Host {
            busy_s: (user + nice + system + irq + softirq) / TICKS_PER_S,
            steal_s: steal / TICKS_PER_S,
            pressure_s: None,
            processors: stat.lines().filter(is_one).count().max(1),
        })
    }

    /// What happened since `before`.
    pub(super) fn since(self, before: Host) -> Host {
        let pressure = self.pressure_s.zip(before.pressure_s);
        Host {
            busy_s: self.busy_s - before.busy_s,
            steal_s: self.steal_s - before.steal_s,
            pressure_s: pressure.map(|(after, before)| after - before),
            processors: self.processors,
        }
    }
}

/// The total of the first line, `some`, in µs.
fn pressure_s(text: &str) -> Option<f64> {
    let total = text.lines().next()?.split("total=").nth(1)?;
    Some(total.trim().parse::<f64>().ok()? / 1e6)
}

/// What others took of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Taken {
    /// Part of the run's time that its threads waited for a core while others had one. Others'
    /// mere use of a core that nobody wanted does not count.
    pub wait_share: f64,
    /// Part of the machine's time that the hypervisor took.
    pub steal_share: f64,
}

/// The part of a run's processor time that its threads must have been seen with.
const SEEN_MIN: f64 = 0.8;

impl Taken {
    /// From what was seen of the run's threads, and from the processor time of the run and of those
    /// who look at it; nothing is taken where nothing is known.
    pub(super) fn of(
        wall_s: f64,
        seen: Option<Schedule>,
        [run_s, lookers_s]: [f64; 2],
        host: Option<Host>,
    ) -> Taken {
        let Some(host) = host.filter(|_| wall_s > 0.0) else {
            return Taken::default();
        };
        // Threads that were not seen wait too. Where they did much of the work, PSI says how long
        // anybody waited.
        let seen = seen.unwrap_or_default();
        let waited_s = match seen.run_s < SEEN_MIN * run_s {
            true => seen.wait_s.max(host.pressure_s.unwrap_or(0.0)),
            false => seen.wait_s,
        };
        // What others did not use, they did not take: the rest is waiting for one's own threads.
        let others_s = (host.busy_s - run_s - lookers_s).max(0.0);
        Taken {
            wait_share: waited_s.min(others_s) / wall_s,
            steal_share: host.steal_s / (wall_s * host.processors as f64),
        }
    }

    /// Both together.
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
        let stat = "cpu  100 1 50 9 9 3 6 40 0 0\ncpu0 1 2\ncpu1 3 4\nintr 5\n";
        let host = Host::of_stat(stat).expect("the line is there");
        let read = (host.busy_s, host.steal_s, host.processors);
        assert_eq!(read, (1.6, 0.4, 2));
        assert_eq!(Host::of_stat("cpu  1 2 3\n"), None);
        let some = "some avg10=0.00 avg60=0.11 avg300=0.05 total=2500000\nfull avg10=0.00\n";
        assert_eq!(pressure_s(some), Some(2.5));
        assert_eq!(pressure_s("nothing"), None);
        let schedule = Schedule::of("3000000000 500000000 3\n").expect("both are there");
        assert_eq!((schedule.run_s, schedule.wait_s), (3.0, 0.5));
        assert_eq!(Schedule::of("81"), None);
    }

    #[test]
    fn only_what_was_wanted_and_used_by_others_is_taken() {
        let taken = |seen: Option<(f64, f64)>, run_s, busy_s, pressure_s| {
            let host = Host {
                busy_s,
                steal_s: 0.0,
                pressure_s: Some(pressure_s),
                processors: 2,
            };
            let seen = seen.map(|(run_s, wait_s)| Schedule { run_s, wait_s });
            Taken::of(10.0, seen, [run_s, 0.0], Some(host)).share()
        };
        // Others used a core that the program did not want, and even waited for each other.
        assert_eq!(taken(Some((10.0, 0.0)), 10.0, 20.0, 9.0), 0.0);
        // The program's threads waited for each other.
        assert_eq!(taken(Some((20.0, 8.0)), 20.0, 20.0, 9.0), 0.0);
        // It waited for others; and once where half of its work was not seen.
        assert_eq!(taken(Some((6.0, 4.0)), 6.0, 16.0, 9.0), 0.4);
        assert_eq!(taken(Some((3.0, 1.0)), 6.0, 16.0, 5.0), 0.5);
        assert_eq!(taken(None, 6.0, 16.0, 3.0), 0.3);
        assert_eq!(Taken::of(1.0, None, [1.0, 0.0], None), Taken::default());
    }

    #[test]
    fn this_process_is_seen() {
        let mut waits = Waits::default();
        waits.look(std::process::id());
        waits.look_last(std::process::id());
        assert!(waits.total().is_some_and(|seen| seen.run_s > 0.0));
        assert_eq!(Waits::default().total(), None);
        let host = Host::now().expect("Linux has /proc/stat");
        assert!(host.busy_s > 0.0 && host.since(host).busy_s == 0.0);
    }
}
