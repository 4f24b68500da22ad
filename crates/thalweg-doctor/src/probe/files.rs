//! Reads the files under `/proc` about a blocked thread.

use super::calls::{self, Arguments, Class};
use super::timers;
use crate::watch::now_ns;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

/// The cause of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Cause {
    Futex,
    FileLock,
    Disk,
    Stream,
    Sleep,
    Poll,
    Child,
    Other,
}

impl Cause {
    pub(crate) const ALL: [(Cause, &'static str); 8] = [
        (Cause::Futex, "block.futex"),
        (Cause::FileLock, "block.file_lock"),
        (Cause::Disk, "block.disk"),
        (Cause::Stream, "block.stream"),
        (Cause::Sleep, "block.sleep"),
        (Cause::Poll, "block.poll"),
        (Cause::Child, "block.child"),
        (Cause::Other, "block.other"),
    ];
}

/// A blocked thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wait {
    pub(crate) cause: Cause,
    /// The number of its system call, if it is in one.
    pub(crate) call: Option<u64>,
    pub(crate) arguments: Arguments,
    /// The stack pointer; 0 if it is in no call.
    pub(crate) stack: u64,
    /// For a poll, the timeout, and the time until a timer that it polls expires.
    pub(crate) timeout_ns: Option<u64>,
    pub(crate) timer_at_ns: Option<u64>,
}

/// Reads the files of threads.
#[derive(Debug, Default)]
pub(crate) struct Files {
    text: String,
}

impl Files {
    /// Reads a file under `/proc` into `text`. A name in it may not be valid UTF-8.
    fn read(&mut self, path: &str) -> Option<()> {
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
        self.text = String::from_utf8(bytes)
            .unwrap_or_else(|no| String::from_utf8_lossy(no.as_bytes()).into_owned());
        Some(())
    }

    /// Returns the kernel function in which a thread is blocked; empty if that is hidden.
    pub(super) fn channel(&mut self, pid: i32, tid: i32) -> Box<str> {
        match self.read(&format!("/proc/{pid}/task/{tid}/wchan")) {
            Some(()) if self.text != "0" => self.text.as_str().into(),
            _ => "".into(),
        }
    }

    pub(super) fn wait(&mut self, pid: i32, tid: i32) -> Seen {
        let folder = format!("/proc/{pid}/task/{tid}");
        let known = self
            .read(&format!("{folder}/syscall"))
            .and_then(|()| call(&self.text));
        let (number, arguments, stack) = match known {
            Some(Call::Running) => return Seen::Running,
            Some(Call::In(number, arguments, stack)) => {
                let number = calls::meant(number, &arguments);
                (Some(number), arguments, stack)
            }
            None => (None, Arguments::default(), 0),
        };
        let class = number.map_or(Class::Other, calls::class);
        // The state is read only where a disk may be involved, as each file costs time.
        let light = matches!(class, Class::Futex | Class::Sleep | Class::Poll);
        let state = match light {
            true => 'S',
            false => match self.read(&format!("{folder}/stat")) {
                Some(()) => state(&self.text),
                None => return Seen::Gone,
            },
        };
        match state {
            'R' => return Seen::Running,
            'S' | 'D' => {}
            _ => return Seen::Gone,
        }
        let locked = number.and_then(|number| calls::locked_file(number, &arguments));
        let cause = match class {
            // The kernel names that state after the disk, but the parent of a vfork is in it too.
            _ if state == 'D' && class != Class::Child => Cause::Disk,
            Class::Futex => Cause::Futex,
            Class::Sleep => Cause::Sleep,
            Class::Poll => Cause::Poll,
            Class::File => of_file(pid, arguments[0]),
            Class::Disk => Cause::Disk,
            Class::Stream => Cause::Stream,
            Class::Child => Cause::Child,
            Class::FileLock if locked.is_some() => Cause::FileLock,
            Class::FileLock | Class::Yield | Class::Other => Cause::Other,
        };
        let polls = number.filter(|_| class == Class::Poll);
        let words = |at| calls::words_at(pid, at);
        let left = polls.and_then(|number| timers::left_ns(pid, number, &arguments));
        Seen::Blocked(Wait {
            cause,
            call: number,
            arguments,
            stack,
            timeout_ns: polls.and_then(|number| calls::poll_timeout_ns(number, &arguments, words)),
            timer_at_ns: left.map(|left_ns| now_ns().saturating_add(left_ns)),
        })
    }
}

/// Returns the identity of an open file in the file system, by device and inode, which is equal for
/// all processes that opened it. Where it is hidden, all such files have one common identity.
pub(super) fn identity(pid: i32, file: u64) -> (u64, u64) {
    let metadata = fs::metadata(format!("/proc/{pid}/fd/{file}"));
    metadata.map_or((0, 0), |file| (file.dev(), file.ino()))
}

/// The result of sampling a thread.
pub(super) enum Seen {
    Blocked(Wait),
    Running,
    Gone,
}

/// Returns the state letter of `/proc/…/stat`. The name before it may contain any characters,
/// brackets included.
fn state(stat: &str) -> char {
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.trim_start().chars().next().unwrap_or('?')
}

enum Call {
    Running,
    /// The number, the arguments, and the stack pointer of the call.
    In(u64, Arguments, u64),
}

/// Parses a line of `/proc/…/syscall`; returns `None` for a thread that is blocked outside a call.
fn call(line: &str) -> Option<Call> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Call::Running);
    }
    let mut arguments = Arguments::default();
    let number = first.parse().ok()?;
    let mut word = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    for argument in &mut arguments {
        *argument = word()?;
    }
    Some(Call::In(number, arguments, word()?))
}

/// Returns the cause of a wait in a call that reads or writes this open file. A file that is in no
/// folder is written by a program or a clock, not by a disk.
fn of_file(pid: i32, file: u64) -> Cause {
    let path = format!("/proc/{pid}/fd/{file}");
    let streams = fs::metadata(&path).is_ok_and(|file| {
        let kind = file.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_char_device()
    });
    let is_anonymous = || {
        fs::read_link(&path)
            .is_ok_and(|link| link.as_os_str().as_bytes().starts_with(b"anon_inode:"))
    };
    match streams || is_anonymous() {
        true if timers::is_timer(pid, file) => Cause::Sleep,
        true => Cause::Stream,
        false => Cause::Disk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_comes_after_a_name_with_brackets() {
        assert_eq!(state("12 (a) b) D 1 12"), 'D');
        assert_eq!(state("12"), '?');
    }

    #[test]
    fn a_thread_at_flock_waits_for_the_lock_of_its_file() {
        let own = std::process::id().cast_signed();
        let path = std::env::temp_dir().join(format!("thalweg-doctor-lock-{own}"));
        let held = File::create(&path).unwrap();
        held.lock().unwrap();
        let other = File::open(&path).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            sender.send(rustix::thread::gettid()).unwrap();
            other.lock()
        });
        let tid = receiver.recv().unwrap().as_raw_nonzero().get();
        let mut files = Files::default();
        let wait = loop {
            match files.wait(own, tid) {
                Seen::Blocked(wait) if wait.cause == Cause::FileLock => break wait,
                _ => std::thread::yield_now(),
            }
        };
        let file = held.metadata().unwrap();
        assert_eq!(identity(own, wait.arguments[0]), (file.dev(), file.ino()));
        assert_eq!(identity(own, u64::MAX), (0, 0));
        held.unlock().unwrap();
        waiting.join().unwrap().unwrap();
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_call_has_a_number_and_arguments() {
        let line = "202 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffd 0x7f12\n";
        assert!(matches!(
            call(line),
            Some(Call::In(202, [0x7f00, 0x80, 2, 0, 0, 0], 0x7ffd))
        ));
        assert!(matches!(call("running\n"), Some(Call::Running)));
        assert!(call("-1 0x7ffd 0x7f12\n").is_none());
        assert!(call("").is_none());
    }
}
