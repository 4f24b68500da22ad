//! Measures one run of a command, and how much time others took meanwhile.

use crate::compare::{CommandLine, CompareError};
use crate::probe::host::Host;
use crate::probe::procfs::{self, Scheduled};
use crate::probe::tree;
use crate::sys::{self, Ended, cpu_s};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustix::time::ClockId;
use std::collections::{HashMap, HashSet};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

/// The interval at which the threads of a run are sampled, and at which an interruption is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The number of samples between asking an interrupted run to end and killing it.
const LOOKS_TO_END: u32 = 50;

/// The resources that one run used.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Run {
    /// The wall time from before the process was started until it had ended, s.
    pub wall: f64,
    /// Processor time in user mode, of the process and its children that it waited for, s.
    pub user: f64,
    /// Processor time in the kernel, of the process and its children that it waited for, s.
    pub system: f64,
    /// The largest resident memory of any of these processes, bytes.
    pub max_rss: f64,
    /// The number of page faults that were served from memory.
    pub minor_faults: f64,
    /// The number of page faults that were served from a disk.
    pub major_faults: f64,
    /// The number of times that a thread blocked.
    pub voluntary_switches: f64,
    /// The number of times that a runnable thread lost its core.
    pub involuntary_switches: f64,
    /// The time that its threads waited for a core, s; `None` where the system does not report it.
    pub queue_wait: Option<f64>,
    /// The time that others took of the run.
    pub taken: Taken,
}

/// The outcome of a run.
pub(crate) enum Outcome {
    Ended(ExitStatus, Run),
    Interrupted,
}

fn command(line: &CommandLine, shows_output: bool) -> Command {
    let mut command = match line {
        CommandLine::Words(words) => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        }
        CommandLine::Shell(line) => {
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            command
        }
    };
    let output = || match shows_output {
        // Our own standard output is reserved for the result.
        true => Stdio::from(io::stderr()),
        false => Stdio::null(),
    };
    command
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output());
    // A process group of its own allows an interruption to end the processes that the command
    // started as well.
    command.process_group(0);
    command
}

/// Runs the command once. When `stop` becomes true, the run is ended.
///
/// # Errors
/// Returns an error if the command cannot be started, or if the system does not let this process
/// wait for it.
pub(crate) fn run(
    line: &CommandLine,
    shows_output: bool,
    stop: &AtomicBool,
) -> Result<Outcome, CompareError> {
    let mut command = command(line, shows_output);
    let own_before_s = cpu_s(ClockId::ProcessCPUTime);
    let own = std::process::id().cast_signed();
    let host_before = Host::read(own);
    let began = Instant::now();
    let process = command.spawn().map_err(CompareError::Start)?.id();
    let process = process.cast_signed();
    let has_ended = AtomicBool::new(false);
    let (wall, mut waits) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(process, &has_ended, stop));
        let wall = await_end(process).map(|()| began.elapsed());
        // ORDERING: Relaxed, pairs with the load in watch(); nothing else is read because of it,
        // and the watcher's waits come through its join.
        has_ended.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        (wall, watcher.join().expect("the watcher does not panic"))
    });
    let wall_s = wall.map_err(CompareError::System)?.as_secs_f64();
    // It has ended, and was not yet waited for.
    waits.read(process, process);
    let host = (&host_before, &Host::read(own));
    let ended = sys::reap(process).map_err(CompareError::System)?;
    let ended = ended.expect("its end was awaited");
    // ORDERING: Relaxed, pairs with the store of the signal; nothing else is read because of it.
    if stop.load(Ordering::Relaxed) {
        return Ok(Outcome::Interrupted);
    }
    let seen = waits.total();
    let used_s = [
        ended.used.cpu_s(),
        cpu_s(ClockId::ProcessCPUTime) - own_before_s,
    ];
    let taken = Taken::of(wall_s, seen, used_s, host);
    let queue_wait = seen.map(|seen| seen.wait_s);
    Ok(Outcome::Ended(
        ExitStatus::from_raw(ended.status),
        Run::of(wall_s, &ended, queue_wait, taken),
    ))
}

impl Run {
    fn of(wall: f64, ended: &Ended, queue_wait: Option<f64>, taken: Taken) -> Run {
        Run {
            wall,
            user: ended.used.user_s,
            system: ended.used.system_s,
            max_rss: ended.rss_max_bytes as f64,
            minor_faults: ended.used.faults_minor as f64,
            major_faults: ended.used.faults_major as f64,
            voluntary_switches: ended.switches_voluntary as f64,
            involuntary_switches: ended.switches_involuntary as f64,
            queue_wait,
            taken,
        }
    }
}

/// Waits until the process has ended, and leaves it unreaped.
fn await_end(process: i32) -> io::Result<()> {
    let id = Pid::from_raw(process).ok_or(io::ErrorKind::InvalidInput)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::io::retry_on_intr(|| waitid(WaitId::Pid(id), options))?;
    Ok(())
}

fn watch(process: i32, has_ended: &AtomicBool, stop: &AtomicBool) -> Waits {
    let (mut waits, mut looks) = (Waits::default(), 0);
    loop {
        thread::park_timeout(LOOK_EVERY);
        // ORDERING: Relaxed, pairs with the store in run(); nothing else is read because of it.
        if has_ended.load(Ordering::Relaxed) {
            return waits;
        }
        waits.sample(process);
        // ORDERING: Relaxed, pairs with the store of the signal; nothing else is read because of
        // it.
        if stop.load(Ordering::Relaxed) {
            let signal = match looks {
                0 => Some(Signal::TERM),
                LOOKS_TO_END => Some(Signal::KILL),
                _ => None,
            };
            looks += 1;
            // An error because the process has just ended is ignored.
            if let Some((id, signal)) = Pid::from_raw(process).zip(signal) {
                let _ = kill_process_group(id, signal);
            }
        }
    }
}

/// The time that the threads of a process and of its descendants waited for a core, as far as they
/// were sampled: the values of a thread are known up to its last sample. Those of the first thread
/// of the process are known up to its end.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    by_thread: HashMap<i32, Scheduled>,
}

impl Waits {
    /// Samples all threads.
    pub(crate) fn sample(&mut self, process: i32) {
        let (mut open, mut seen) = (vec![process], HashSet::from([process]));
        while let Some(process) = open.pop() {
            for thread in tree::threads(process) {
                self.read(process, thread);
                let children = format!("/proc/{process}/task/{thread}/children");
                let children = procfs::text(children).unwrap_or_default();
                let children = children.split_whitespace().flat_map(str::parse);
                open.extend(children.filter(|child| seen.insert(*child)));
            }
        }
    }

    fn read(&mut self, process: i32, thread: i32) {
        let schedule = Scheduled::of(process, thread);
        self.by_thread.extend(schedule.map(|it| (thread, it)));
    }

    /// Returns the sums over all threads; `None` where the system does not report them.
    fn total(&self) -> Option<Seen> {
        let seconds =
            |of: fn(&Scheduled) -> u64| self.by_thread.values().map(of).sum::<u64>() as f64 / 1e9;
        (!self.by_thread.is_empty()).then(|| Seen {
            run_s: seconds(|it| it.ran_ns),
            wait_s: seconds(|it| it.waited_ns),
        })
    }
}

/// The time on a core, and of waiting for one, of all threads that were sampled.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Seen {
    run_s: f64,
    wait_s: f64,
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
    fn of(
        wall_s: f64,
        seen: Option<Seen>,
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

    fn ended(line: &str) -> (ExitStatus, Run) {
        let line = CommandLine::parse(line).expect("a command");
        match run(&line, false, &AtomicBool::new(false)) {
            Ok(Outcome::Ended(status, run)) => (status, run),
            _ => panic!("{line:?} has not ended"),
        }
    }

    #[test]
    fn a_run_is_measured_with_its_children() {
        let (status, run) = ended("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3");
        assert_eq!(status.code(), Some(3));
        assert!(run.user + run.system > 0.0 && run.wall > 0.0, "{run:?}");
        assert!(run.max_rss > 1e5 && run.minor_faults > 10.0, "{run:?}");
        assert!(
            run.queue_wait.is_some() && run.taken.share() >= 0.0,
            "{run:?}"
        );
        let busy = "for n in 1 2 3 4; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' \
                    & done; wait";
        let (_, more) = ended(busy);
        assert!(
            more.user + more.system > run.user + run.system,
            "{run:?} {more:?}"
        );
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let line = CommandLine::Words(vec!["no-such-program-here".to_owned()]);
        let found = run(&line, false, &AtomicBool::new(false));
        let Err(CompareError::Start(error)) = found else {
            panic!("it was started");
        };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_interruption_ends_what_ignores_it() {
        let stop = AtomicBool::new(true);
        let line = CommandLine::parse("trap '' TERM; while :; do :; done").expect("a command");
        assert!(matches!(run(&line, false, &stop), Ok(Outcome::Interrupted)));
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
            let seen = seen.map(|(run_s, wait_s)| Seen { run_s, wait_s });
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
        let own = std::process::id().cast_signed();
        waits.sample(own);
        waits.read(own, own);
        assert!(waits.total().is_some_and(|seen| seen.run_s > 0.0));
        assert_eq!(Waits::default().total(), None);
    }
}
