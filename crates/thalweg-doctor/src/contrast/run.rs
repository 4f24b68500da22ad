//! Measures one run of a command.

use super::watch::{Taken, Waits};
use super::{Error, Line};
use crate::probe::host::Host;
use crate::sys::rusage::{self, Usage};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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
pub(super) enum Outcome {
    Ended(ExitStatus, Run),
    Interrupted,
}

fn command(line: &Line, shows_output: bool) -> Command {
    let mut command = match line {
        Line::Words(words) => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        }
        Line::Shell(line) => {
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
pub(super) fn run(line: &Line, shows_output: bool, stop: &AtomicBool) -> Result<Outcome, Error> {
    let mut command = command(line, shows_output);
    let own_before_s = own_cpu_s();
    let own = std::process::id().cast_signed();
    let host_before = Host::look(own);
    let began = Instant::now();
    let process = command.spawn().map_err(Error::Start)?.id();
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
    let wall_s = wall.map_err(Error::System)?.as_secs_f64();
    waits.look_last(process);
    let host = (&host_before, &Host::look(own));
    let (status, usage) = rusage::wait4(process).map_err(Error::System)?;
    // ORDERING: Relaxed, pairs with the store of the signal; nothing else is read because of it.
    if stop.load(Ordering::Relaxed) {
        return Ok(Outcome::Interrupted);
    }
    let seen = waits.total();
    let used_s = [usage.user_s + usage.system_s, own_cpu_s() - own_before_s];
    let taken = Taken::of(wall_s, seen, used_s, host);
    let queue_wait = seen.map(|seen| seen.wait_s);
    Ok(Outcome::Ended(
        status,
        Run::of(wall_s, usage, queue_wait, taken),
    ))
}

impl Run {
    fn of(wall: f64, usage: Usage, queue_wait: Option<f64>, taken: Taken) -> Run {
        Run {
            wall,
            user: usage.user_s,
            system: usage.system_s,
            max_rss: usage.rss_max_bytes as f64,
            minor_faults: usage.faults_minor as f64,
            major_faults: usage.faults_major as f64,
            voluntary_switches: usage.switches_voluntary as f64,
            involuntary_switches: usage.switches_involuntary as f64,
            queue_wait,
            taken,
        }
    }
}

/// Returns the processor time of this process in seconds.
fn own_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn id_of(process: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(process).ok()?)
}

/// Waits until the process has ended, and leaves it unreaped.
fn await_end(process: u32) -> io::Result<()> {
    let id = id_of(process).ok_or(io::ErrorKind::InvalidInput)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::io::retry_on_intr(|| waitid(WaitId::Pid(id), options))?;
    Ok(())
}

fn watch(process: u32, has_ended: &AtomicBool, stop: &AtomicBool) -> Waits {
    let (mut waits, mut looks) = (Waits::default(), 0);
    loop {
        thread::park_timeout(LOOK_EVERY);
        // ORDERING: Relaxed, pairs with the store in run(); nothing else is read because of it.
        if has_ended.load(Ordering::Relaxed) {
            return waits;
        }
        waits.look(process);
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
            if let Some((id, signal)) = id_of(process).zip(signal) {
                let _ = kill_process_group(id, signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(line: &str) -> (ExitStatus, Run) {
        let line = Line::parse(line).expect("a command");
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
        let line = Line::Words(vec!["no-such-program-here".to_owned()]);
        let found = run(&line, false, &AtomicBool::new(false));
        assert!(
            matches!(found, Err(Error::Start(error)) if error.kind() == io::ErrorKind::NotFound)
        );
    }

    #[test]
    fn an_interruption_ends_what_ignores_it() {
        let stop = AtomicBool::new(true);
        let line = Line::parse("trap '' TERM; while :; do :; done").expect("a command");
        assert!(matches!(run(&line, false, &stop), Ok(Outcome::Interrupted)));
    }
}
