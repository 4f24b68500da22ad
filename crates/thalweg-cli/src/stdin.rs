//! Standard input where no file is named.
//!
//! A program that an IDE, `docker run -i` or a CI runner starts has a pipe as its standard input
//! that no process writes to and no process closes. It must not wait for such a pipe for ever.

use crate::failure::Failure;
use crate::terminal::Notes;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

/// The time without data after which the program prints what it waits for.
const NOTICE_AFTER: Duration = Duration::from_millis(500);
/// The total time that `exchange run` and `sweep`, without a FILE, wait for a pipe.
const PIPE_WAIT: Duration = Duration::from_secs(5);

/// The kind of standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A file, whose end is known.
    File,
    /// A device such as `/dev/null`.
    Device,
    Terminal,
    /// A pipe or a socket: data may come late, or never.
    Pipe,
}

/// Returns the kind of standard input.
fn kind() -> Kind {
    let input = io::stdin();
    if input.is_terminal() {
        return Kind::Terminal;
    }
    let owned = input.as_fd().try_clone_to_owned().map(std::fs::File::from);
    match owned.and_then(|file| file.metadata()) {
        Ok(found) if found.is_file() || found.is_dir() => Kind::File,
        Ok(found) if found.file_type().is_fifo() || found.file_type().is_socket() => Kind::Pipe,
        _ => Kind::Device,
    }
}

/// Returns whether standard input is a file, a pipe or a socket, and not a terminal or `/dev/null`.
pub(crate) fn is_given() -> bool {
    matches!(kind(), Kind::File | Kind::Pipe)
}

/// Reads all of an input that is kept in memory.
///
/// # Errors
/// Returns an error if the input cannot be read, or is longer than the limit: a device such as
/// `/dev/zero` has no end.
pub(crate) fn whole(input: impl Read, limit_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(limit_bytes + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit_bytes {
        true => Err(io::Error::other(format!(
            "larger than the limit of {limit_bytes} bytes"
        ))),
        false => Ok(bytes),
    }
}

/// The state of standard input where no FILE is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// A file, or a pipe with data.
    Data,
    /// No data, and no more can come.
    Nothing,
    /// No data yet, from a pipe that is still open.
    Idle,
}

/// Waits for the first data of a pipe, for at most [`PIPE_WAIT`].
pub(crate) fn given(notes: Notes) -> Given {
    match kind() {
        Kind::File => return Given::Data,
        Kind::Terminal | Kind::Device => return Given::Nothing,
        Kind::Pipe => {}
    }
    let ended = |found: Given| {
        if found == Given::Nothing {
            notes.hint("standard input holds no data: a made-up flow runs");
        }
        found
    };
    if let Some(found) = first_data(NOTICE_AFTER) {
        return ended(found);
    }
    notes.hint(&format!(
        "waiting for commands from standard input: it is a pipe, and nothing has come from it yet; \
         after {PIPE_WAIT:?} a made-up flow runs (at once with --commands or --seed; `-` as FILE \
         waits for as long as it takes)"
    ));
    if let Some(found) = first_data(PIPE_WAIT - NOTICE_AFTER) {
        return ended(found);
    }
    notes.hint("nothing came from standard input: a made-up flow runs");
    Given::Idle
}

/// Returns the state of a pipe as soon as it has data or has ended.
fn first_data(within: Duration) -> Option<Given> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let until = std::time::Instant::now() + within;
    let input = io::stdin();
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&left)) {
            Ok(0) => return None,
            Err(rustix::io::Errno::INTR) => {}
            // The end of a socket makes it readable too.
            Ok(_) => {
                return Some(match rustix::io::ioctl_fionread(&input) {
                    Ok(0) => Given::Nothing,
                    _ => Given::Data,
                });
            }
            Err(_) => return Some(Given::Data),
        }
    }
}

/// Checks whether a pipe that was [`Given::Idle`] has data by now.
///
/// # Errors
/// Returns an error if it has data, since another flow was run instead.
pub(crate) fn still_idle() -> Result<(), Failure> {
    if first_data(Duration::ZERO) == Some(Given::Data) {
        return Err(Failure::Misuse(format!(
            "standard input gave its first data after more than {PIPE_WAIT:?}, and a made-up flow \
             has run in its place; with `-` as FILE it is waited for"
        )));
    }
    Ok(())
}
