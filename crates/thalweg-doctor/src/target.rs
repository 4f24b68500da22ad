//! The program that is observed: how it is started, and which signals reach it meanwhile.

use crate::probe::procfs;
use crate::report::Ending;
use crate::sys::{self, Ended, Signals, Witness};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A command and its arguments.
#[derive(Debug, Clone)]
pub struct Target {
    /// The program, which is looked up in `PATH` if it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

fn ending(status: i32) -> Ending {
    match libc::WIFSIGNALED(status) {
        true => Ending::Signal(libc::WTERMSIG(status)),
        false => Ending::Code(libc::WEXITSTATUS(status)),
    }
}

/// The reason why a program could not be observed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// There is no such program.
    #[error("{}: no such program", .0.display())]
    NotFound(OsString),
    /// The program exists, but cannot be run.
    #[error("{}: {}", .0.display(), .1)]
    NotExecutable(OsString, io::Error),
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// The process has ended, and its parent has not reaped it.
    #[error("process {0} has ended, and waits for its parent to take note")]
    IsOver(i32),
    /// The process is a kernel thread.
    #[error("process {0} is a thread of the kernel, and runs no program")]
    IsKernels(i32),
    /// The process belongs to another user.
    #[error("process {0} belongs to another user, and only root may look at it")]
    NotYours(i32),
    /// The system refused something that every observation needs.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

impl ObserveError {
    /// Returns the exit code that a shell would return.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            ObserveError::NotFound(_) => 127,
            ObserveError::NotExecutable(..) => 126,
            _ => 2,
        }
    }
}

/// The signals that ask for an end.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// The signals that have a meaning only for the program.
const PASSED: [i32; 2] = [libc::SIGUSR1, libc::SIGUSR2];
/// The time within which equal signals count as one.
const MOMENT: Duration = Duration::from_millis(500);
/// The number of Ctrl-C within this time by which a user insists on an end.
const INSISTS: (usize, Duration) = (3, Duration::from_secs(1));

/// Returns whether a process ignores a signal, which is different from handling it.
fn ignores(pid: i32, signal: i32) -> bool {
    let status = procfs::text(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Passes signals on, and ensures that a request for an end has an effect.
///
/// A signal of the terminal has reached the program already, because both are in one process group,
/// and the program may handle it itself, as a prompt does. After such a signal the program is
/// killed only if the user insists, or if the program ignores the signal.
/// A signal that was sent to the group has also reached the program already. A signal that was sent
/// to this process alone is passed on.
#[derive(Debug)]
pub(crate) struct SignalForwarder {
    pub(crate) signals: Signals,
    grace: Duration,
    /// The witness; `None` where no signal is passed on, or where no process can be started.
    witness: Option<Witness>,
    /// The time and number of the first signal that asked for an end.
    asked: Option<(Instant, i32)>,
    pressed: Vec<Instant>,
    /// Whether a signal that asks for an end has arrived and was not yet reported.
    came: bool,
}

impl SignalForwarder {
    /// Creates a keeper that passes signals on to a program of this process's group, or to none.
    pub(crate) fn new(grace: Duration, passes_on: bool) -> io::Result<SignalForwarder> {
        let held = [&ENDING[..], &PASSED[..]].concat();
        let signals = Signals::hold(&held)?;
        let witness = passes_on.then(|| Witness::start(&held).ok()).flatten();
        Ok(SignalForwarder {
            signals,
            grace,
            witness,
            asked: None,
            pressed: Vec::new(),
            came: false,
        })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.signals.file()
    }

    /// Passes on the signals that arrived. Returns whether it is time to kill the program and all
    /// that it started.
    pub(crate) fn pass(&mut self, pid: i32) -> bool {
        let mut kill = false;
        while let Some(arrived) = self.signals.next() {
            let ending = ENDING.contains(&arrived.signal);
            self.came |= ending;
            let witness = self.witness.as_mut();
            let is_for_all = witness.is_some_and(|witness| witness.saw(arrived.signal));
            if arrived.from_kernel {
                let (often, within) = INSISTS;
                self.pressed.retain(|at| at.elapsed() < within);
                self.pressed.extend(ending.then(Instant::now));
                kill |= self.pressed.len() >= often;
                if ending && ignores(pid, arrived.signal) {
                    let now = (Instant::now(), arrived.signal);
                    self.asked.get_or_insert(now);
                }
                continue;
            }
            if !is_for_all {
                // A user who may not signal the program can still end this process.
                let _ = sys::send(pid, arrived.signal);
            }
            if ending {
                // A sender that signals the whole group, as timeout does, sends its signal twice.
                let again = |(since, first): (Instant, i32)| {
                    first != arrived.signal || since.elapsed() >= MOMENT
                };
                kill |= self.asked.is_some_and(again);
                self.asked
                    .get_or_insert_with(|| (Instant::now(), arrived.signal));
            }
        }
        kill || self
            .asked
            .is_some_and(|(since, _)| since.elapsed() >= self.grace)
    }

    /// Returns whether a signal that asks for an end has arrived since the last call.
    pub(crate) fn interrupts(&mut self) -> bool {
        std::mem::take(&mut self.came)
    }

    /// Returns whether an end was requested. An observer that did not start the program ends then.
    pub(crate) fn asked(&mut self) -> bool {
        while let Some(arrived) = self.signals.next() {
            if ENDING.contains(&arrived.signal) {
                self.asked
                    .get_or_insert_with(|| (Instant::now(), arrived.signal));
            }
        }
        self.asked.is_some()
    }
}

/// A command that is running.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: i32,
    /// A file that becomes readable when the command has ended.
    file: OwnedFd,
}

impl Started {
    /// Starts a command. `before` is called with its id while it waits to begin. Its input, output
    /// and terminal are ours, and so are its environment variables, except for `variable`.
    pub(crate) fn start<T>(
        target: &Target,
        variable: Option<(&str, &Path)>,
        signals: &Signals,
        before: impl FnOnce(i32) -> T,
    ) -> Result<(Started, T), ObserveError> {
        let system = |what| move |why: Errno| ObserveError::System(what, why.into());
        let (here_read, here) = pipe_with(PipeFlags::CLOEXEC).map_err(system("a pipe"))?;
        let (go, go_write) = pipe_with(PipeFlags::CLOEXEC).map_err(system("a pipe"))?;
        let mut command = Command::new(&target.program);
        command.args(&target.arguments);
        command.envs(variable);
        let others = [here_read.as_raw_fd(), go_write.as_raw_fd()];
        sys::wait_before_exec(
            &mut command,
            signals,
            here.as_raw_fd(),
            go.as_raw_fd(),
            others,
        );
        // `spawn` returns when the child has become the program, so it runs in a thread of its own.
        let (pid, said) = thread::scope(|scope| {
            let spawned = scope.spawn(move || {
                let spawned = command.spawn();
                drop(here);
                drop(go);
                spawned.map(|child| child.id().cast_signed())
            });
            let mut pid = [0; 4];
            let waits = File::from(here_read).read_exact(&mut pid).is_ok();
            let said = waits.then(|| before(i32::from_ne_bytes(pid)));
            // If the child is gone, `spawn` returns the reason.
            let _ = File::from(go_write).write_all(&[1]);
            let pid = spawned.join().expect("starting a process does not panic");
            (pid, said)
        });
        let pid = pid.map_err(|why| refused(target, why))?;
        let said = said.ok_or_else(|| {
            ObserveError::System("the child's id", io::ErrorKind::UnexpectedEof.into())
        })?;
        let id = Pid::from_raw(pid).expect("a child's id is above zero");
        let file = pidfd_open(id, PidfdFlags::empty()).map_err(system("the child's file"))?;
        Ok((Started { pid, file }, said))
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns how the command ended and what it used, if it has ended.
    pub(crate) fn reap(&self) -> Result<Option<(Ending, Ended)>, ObserveError> {
        let ended = sys::reap(self.pid).map_err(|why| ObserveError::System("wait4", why))?;
        Ok(ended.map(|ended| (ending(ended.status), ended)))
    }
}

fn refused(target: &Target, why: io::Error) -> ObserveError {
    let program = target.program.clone();
    match why.kind() {
        io::ErrorKind::NotFound => ObserveError::NotFound(program),
        _ if [libc::EAGAIN, libc::ENOMEM]
            .map(Some)
            .contains(&why.raw_os_error()) =>
        {
            ObserveError::System("a new process", why)
        }
        _ => ObserveError::NotExecutable(program, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_the_code_that_a_shell_gives() {
        assert_eq!(ending(3 << 8), Ending::Code(3));
        assert_eq!(ending(9), Ending::Signal(9));
        assert_eq!(ending(9 | 0x80).code(), 137);
    }

    #[test]
    fn an_error_names_the_program() {
        let error = ObserveError::NotFound("nosuch".into());
        assert_eq!(
            (error.to_string().as_str(), error.code()),
            ("nosuch: no such program", 127)
        );
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = ObserveError::NotExecutable("a.txt".into(), denied);
        assert_eq!(
            (error.to_string().as_str(), error.code()),
            ("a.txt: permission denied", 126)
        );
    }
}
