//! One run of a command, measured.

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

/// How often the threads of a run are looked at, and an interruption.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Looks from asking an interrupted run to end, to ending it.
const LOOKS_TO_END: u32 = 50;

/// What one run took.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Run {
    /// From before the process was started until it had ended, s.
    pub wall: f64,
    /// Processor time in user mode, of the process and its children that it waited for, s.
    pub user: f64,
    /// The same in the kernel, s.
    pub system: f64,
    /// Most memory that one of these processes had resident, bytes.
    pub max_rss: f64,
    /// Page faults answered from memory.
    pub minor_faults: f64,
    /// Page faults answered from a disk.
    pub major_faults: f64,
    /// Times that a thread blocked.
    pub voluntary_switches: f64,
    /// Times that a thread that could run lost its core.
    pub involuntary_switches: f64,
    /// How long its threads wanted a core and had none, s; nothing where the system does not say.
    pub queue_wait: Option<f64>,
    /// What others took of it.
    pub taken: Taken,
}

/// How a run came out.
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
        // Our own standard output is for the result.
        true => Stdio::from(io::stderr()),
        false => Stdio::null(),
    };
    command
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output());
    // A group of its own: then an interruption can end what it has started as well.
    command.process_group(0);
    command
}

/// Runs it once. When `stop` gets true the run is ended.
///
/// # Errors
/// It cannot be started; the system does not let it be waited for.
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

/// Processor time of this process.
fn own_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn id_of(process: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(process).ok()?)
}

/// Waits until it has ended, and leaves it in the system's list.
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
            // That it has just ended is fine.
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
