//! The program that is observed: how it is started, and which signals reach it meanwhile.

mod signals;
mod start;

pub(crate) use signals::Keeper;
pub(crate) use start::Started;

use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::io;

/// A command and its arguments.
#[derive(Debug, Clone)]
pub struct Target {
    /// The program, which is looked up in `PATH` if it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// The way in which a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// It ended by itself, with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It had not ended at the last check.
    Running,
    /// It ended, and only its parent received the exit status.
    Unknown,
}

impl Exit {
    pub(crate) fn of_status(status: i32) -> Exit {
        match libc::WIFSIGNALED(status) {
            true => Exit::Signal(libc::WTERMSIG(status)),
            false => Exit::Code(libc::WEXITSTATUS(status)),
        }
    }

    /// Returns the exit code that a shell would return.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::Running | Exit::Unknown => 0,
        }
    }
}

/// The reason why a program could not be observed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no such program.
    NotFound(OsString),
    /// The program exists, but cannot be run.
    NotExecutable(OsString, io::Error),
    /// There is no such process.
    NoProcess(i32),
    /// The process has ended, and its parent has not reaped it.
    IsOver(i32),
    /// The process is a kernel thread.
    IsKernels(i32),
    /// The process belongs to another user.
    NotYours(i32),
    /// The system refused something that every observation needs.
    System(&'static str, io::Error),
}

impl Error {
    /// Returns the exit code that a shell would return.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Error::NotFound(_) => 127,
            Error::NotExecutable(..) => 126,
            _ => 2,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound(program) => write!(f, "{}: no such program", program.display()),
            Error::NotExecutable(program, why) => write!(f, "{}: {why}", program.display()),
            Error::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Error::IsOver(pid) => {
                write!(
                    f,
                    "process {pid} has ended, and waits for its parent to take note"
                )
            }
            Error::IsKernels(pid) => {
                write!(
                    f,
                    "process {pid} is a thread of the kernel, and runs no program"
                )
            }
            Error::NotYours(pid) => {
                write!(
                    f,
                    "process {pid} belongs to another user, and only root may look at it"
                )
            }
            Error::System(what, why) => write!(f, "{what}: {why}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_the_code_that_a_shell_gives() {
        assert_eq!(Exit::of_status(3 << 8), Exit::Code(3));
        assert_eq!(Exit::of_status(9), Exit::Signal(9));
        assert_eq!(Exit::of_status(9 | 0x80).code(), 137);
    }

    #[test]
    fn an_error_names_the_program() {
        let error = Error::NotFound("nosuch".into());
        assert_eq!(
            (error.to_string().as_str(), error.code()),
            ("nosuch: no such program", 127)
        );
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = Error::NotExecutable("a.txt".into(), denied);
        assert_eq!(
            (error.to_string().as_str(), error.code()),
            ("a.txt: permission denied", 126)
        );
    }
}
