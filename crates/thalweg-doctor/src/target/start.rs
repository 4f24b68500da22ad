//! Starts a command so that events can be opened before its first instruction.

use super::{Error, Exit, Target};
use crate::sys::{self, Ended, Signals};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::thread;

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
    ) -> Result<(Started, T), Error> {
        let system = |what| move |why: Errno| Error::System(what, why.into());
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
        let said = said
            .ok_or_else(|| Error::System("the child's id", io::ErrorKind::UnexpectedEof.into()))?;
        let id = Pid::from_raw(pid).expect("a child's id is above zero");
        let file = pidfd_open(id, PidfdFlags::empty()).map_err(system("the child's file"))?;
        Ok((Started { pid, file }, said))
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns how the command ended and what it used, if it has ended.
    pub(crate) fn reap(&self) -> Result<Option<(Exit, Ended)>, Error> {
        let ended = sys::reap(self.pid).map_err(|why| Error::System("wait4", why))?;
        Ok(ended.map(|ended| (Exit::of_status(ended.status), ended)))
    }
}

fn refused(target: &Target, why: io::Error) -> Error {
    let program = target.program.clone();
    match why.kind() {
        io::ErrorKind::NotFound => Error::NotFound(program),
        _ if [libc::EAGAIN, libc::ENOMEM]
            .map(Some)
            .contains(&why.raw_os_error()) =>
        {
            Error::System("a new process", why)
        }
        _ => Error::NotExecutable(program, why),
    }
}
