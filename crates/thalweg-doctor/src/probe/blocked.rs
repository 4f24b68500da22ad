//! Reads the files under `/proc` about a blocked thread.

use crate::probe::procfs;
use crate::probe::syscall::{self, Arguments, Class, Polled};
use crate::sys::now_ns;
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
    /// For a poll or a futex, the timeout, and the time at which it, or a timer that is polled,
    /// expires.
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
    pub(crate) fn channel(&mut self, pid: i32, tid: i32) -> Box<str> {
        match self.read(&format!("/proc/{pid}/task/{tid}/wchan")) {
            Some(()) if self.text != "0" => self.text.as_str().into(),
            _ => "".into(),
        }
    }

    pub(crate) fn wait(&mut self, pid: i32, tid: i32) -> Seen {
        let folder = format!("/proc/{pid}/task/{tid}");
        let known = self
            .read(&format!("{folder}/syscall"))
            .and_then(|()| call(&self.text));
        let (number, arguments, stack) = match known {
            Some(Call::Running) => return Seen::Running,
            Some(Call::In(number, arguments, stack)) => {
                let words = |at| syscall::words_at(pid, at);
                let arguments = syscall::futex_arguments(number, arguments, words);
                let number = syscall::meant(number, &arguments);
                (Some(number), arguments, stack)
            }
            None => (None, Arguments::default(), 0),
        };
        let class = number.map_or(Class::Other, syscall::class);
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
        let locked = number.and_then(|number| syscall::locked_file(number, &arguments));
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
        let words = |at| syscall::words_at(pid, at);
        let (timeout_ns, timer_at_ns) = match (class, number) {
            (Class::Poll, Some(number)) => {
                let left = left_ns(pid, number, &arguments);
                let timeout_ns = syscall::poll_timeout_ns(number, &arguments, words);
                (
                    timeout_ns,
                    left.map(|left_ns| now_ns().saturating_add(left_ns)),
                )
            }
            (Class::Futex, _) => syscall::futex_timeout_ns(&arguments, words),
            _ => (None, None),
        };
        Seen::Blocked(Wait {
            cause,
            call: number,
            arguments,
            stack,
            timeout_ns,
            timer_at_ns,
        })
    }
}

/// Returns the identity of an open file in the file system, by device and inode, which is equal for
/// all processes that opened it. Where it is hidden, all such files have one common identity.
pub(crate) fn identity(pid: i32, file: u64) -> (u64, u64) {
    let metadata = fs::metadata(format!("/proc/{pid}/fd/{file}"));
    metadata.map_or((0, 0), |file| (file.dev(), file.ino()))
}

/// Returns the file or the peer that a call waits for, if it has one.
pub(crate) fn object(pid: i32, wait: &Wait) -> Option<String> {
    let call = wait.call?;
    let files = match syscall::class(call) {
        Class::File | Class::Stream | Class::FileLock => vec![wait.arguments[0]],
        Class::Poll => match syscall::polled(call, &wait.arguments)? {
            Polled::Epoll(instance) => {
                watched(&procfs::text(format!("/proc/{pid}/fdinfo/{instance}"))?)
            }
            Polled::List(address, count) => listed(pid, address, count)?,
        },
        _ => return None,
    };
    let names = files.iter().filter_map(|file| {
        let link = fs::read_link(format!("/proc/{pid}/fd/{file}")).ok()?;
        let link = link.to_string_lossy().into_owned();
        match link
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'))
        {
            Some(inode) => peer(pid, inode),
            None if link.starts_with("anon_inode:") => None,
            None => Some(link),
        }
    });
    let names: Vec<String> = names.take(OBJECTS_MAX).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The maximum number of files or peers of one call that are named.
const OBJECTS_MAX: usize = 2;

/// Returns the other end of a connection by the inode of the socket; `None` if it has none.
fn peer(pid: i32, inode: &str) -> Option<String> {
    let address = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (at, port) = fields.get(2)?.split_once(':')?;
        let port = u16::from_str_radix(port, 16)
            .ok()
            .filter(|&port| port > 0)?;
        (fields.get(9) == Some(&inode)).then(|| match u32::from_str_radix(at, 16) {
            Ok(at) => format!("{}:{port}", std::net::Ipv4Addr::from(at.swap_bytes())),
            Err(_) => format!("port {port}"),
        })
    };
    let tables = ["tcp", "tcp6"].into_iter();
    let texts = tables.filter_map(|table| procfs::text(format!("/proc/{pid}/net/{table}")));
    let mut found = texts.filter_map(|text| text.lines().find_map(address));
    found.next().or_else(|| {
        let text = procfs::text(format!("/proc/{pid}/net/unix"))?;
        let is_it = |line: &&str| line.split_whitespace().nth(6) == Some(inode);
        let path = text.lines().find(is_it)?.split_whitespace().nth(7);
        Some(path.unwrap_or("a unix socket").to_owned())
    })
}

/// The result of sampling a thread.
pub(crate) enum Seen {
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
        true if is_timer(pid, file) => Cause::Sleep,
        true => Cause::Stream,
        false => Cause::Disk,
    }
}

/// The maximum number of files of one call that are examined.
const FILES_MAX: usize = 32;

/// Returns the time until the first timer that a call polls expires, if it polls one.
pub(crate) fn left_ns(pid: i32, number: u64, arguments: &Arguments) -> Option<u64> {
    let files = match syscall::polled(number, arguments)? {
        Polled::Epoll(instance) => {
            let path = format!("/proc/{pid}/fdinfo/{instance}");
            watched(&procfs::text(path)?)
        }
        Polled::List(address, count) => listed(pid, address, count)?,
    };
    let timers = files.into_iter().filter(|&file| is_timer(pid, file));
    let left =
        timers.filter_map(|file| value_ns(&procfs::text(format!("/proc/{pid}/fdinfo/{file}"))?));
    left.min()
}

/// Returns whether this open file is a timer (`timerfd_create`).
fn is_timer(pid: i32, file: u64) -> bool {
    let link = fs::read_link(format!("/proc/{pid}/fd/{file}"));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:[timerfd]")
}

/// Returns the files of an epoll instance, from its `fdinfo`.
fn watched(text: &str) -> Vec<u64> {
    let file = |line: &str| {
        let after = line.strip_prefix("tfd:")?;
        after.split_whitespace().next()?.parse().ok()
    };
    text.lines().filter_map(file).take(FILES_MAX).collect()
}

/// Returns the files of a list of `struct pollfd`.
fn listed(pid: i32, address: u64, count: u64) -> Option<Vec<u64>> {
    let count = usize::try_from(count).ok()?.min(FILES_MAX);
    let mut bytes = vec![[0; 8]; count];
    let read = procfs::memory(pid, address, bytes.as_flattened_mut())?;
    bytes.truncate(read / 8);
    let file = |entry: &[u8; 8]| {
        let number = entry.first_chunk().copied().map(i32::from_ne_bytes)?;
        u64::try_from(number).ok()
    };
    Some(bytes.iter().filter_map(file).collect())
}

/// Returns the time until a timer expires, from its `fdinfo`; `None` if it is not set.
fn value_ns(text: &str) -> Option<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("it_value:"))?;
    let value = value.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (seconds, rest_ns) = value.split_once(", ")?;
    let (seconds, rest_ns): (u64, u64) = (seconds.parse().ok()?, rest_ns.parse().ok()?);
    let value_ns = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(rest_ns);
    (value_ns > 0).then_some(value_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::epoll;
    use rustix::thread::futex;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::sync::atomic::AtomicU32;

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
    fn a_wait_for_several_words_has_the_arguments_of_a_futex_call() {
        static WORDS: [AtomicU32; 2] = [AtomicU32::new(7), AtomicU32::new(8)];
        let flags = futex::WaitFlags::SIZE_U32 | futex::WaitFlags::PRIVATE;
        let entry = move |(word, value): (&'static AtomicU32, u64)| {
            let mut entry = futex::Wait::new();
            entry.val = value;
            entry.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
            entry.flags = flags;
            entry
        };
        let own = std::process::id().cast_signed();
        let wait_at = |count: usize| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let waiting = std::thread::spawn(move || {
                let list = [(&WORDS[0], 7), (&WORDS[1], 8)].map(entry);
                let at = list.as_ptr().addr() as u64;
                let ids = (rustix::thread::gettid(), at);
                sender.send(ids).expect("the test waits for it");
                let none = futex::WaitvFlags::empty();
                let is_woken = |done| !matches!(done, Err(rustix::io::Errno::INTR));
                let wait = || {
                    futex::waitv(
                        &list[..count],
                        none,
                        None,
                        rustix::thread::ClockId::Monotonic,
                    )
                };
                while !is_woken(wait()) {}
            });
            let (tid, list) = receiver.recv().expect("the thread has begun");
            let tid = tid.as_raw_nonzero().get();
            let wait = loop {
                match Files::default().wait(own, tid) {
                    Seen::Blocked(wait) if wait.call == Some(libc::SYS_futex_waitv as u64) => {
                        break wait;
                    }
                    _ => std::thread::yield_now(),
                }
            };
            let wake = || futex::wake(&WORDS[0], futex::Flags::PRIVATE, 1);
            while wake().expect("it is a word of this process") == 0 {
                std::thread::yield_now();
            }
            waiting.join().expect("it was woken");
            (wait.arguments, list)
        };
        let (one, _) = wait_at(1);
        let word = WORDS[0].as_ptr().addr() as u64;
        assert_eq!(one, [word, 9 | 128, 7, 0, 0, 0]);
        let (two, list) = wait_at(2);
        assert_eq!(two, [list, 9 | 128, 0, 0, 0, 0]);
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

    #[test]
    fn an_instance_and_a_list_tell_their_timer() {
        let own = std::process::id().cast_signed();
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
        let instance = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let data = epoll::EventData::new_u64(0);
        epoll::add(&instance, &timer, data, epoll::EventFlags::IN).unwrap();
        let list = [[timer.as_raw_fd(), 1], [-1, 1]];
        let number = |file: &OwnedFd| u64::try_from(file.as_raw_fd()).unwrap();
        let left = || {
            let calls = [
                (libc::SYS_epoll_pwait, [number(&instance), 0]),
                (libc::SYS_ppoll, [list.as_ptr() as u64, 2]),
            ];
            calls.map(|(call, [a, b])| left_ns(own, call as u64, &[a, b, 0, 0, 0, 0]))
        };
        assert_eq!(left(), [None, None], "it is not set");
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = Timespec {
            tv_sec: 100,
            ..zero
        };
        let once = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once).unwrap();
        for left_ns in left() {
            let left_s = left_ns.expect("it is set") / 1_000_000_000;
            assert!((1..=100).contains(&left_s), "{left_s}");
        }
        assert!(is_timer(own, number(&timer)) && !is_timer(own, number(&instance)));
        assert_eq!(
            left_ns(own, libc::SYS_read as u64, &[number(&timer); 6]),
            None
        );
    }

    #[test]
    fn what_is_no_timer_has_no_value() {
        assert_eq!(value_ns("pos:\t0\nflags:\t02\n"), None);
        assert_eq!(value_ns("it_value: (0, 49406829)\n"), Some(49_406_829));
        assert_eq!(value_ns("it_value: (0, 0)\n"), None);
        assert_eq!(
            watched("pos:\t0\ntfd:       12 events:  19 data: 0\n"),
            [12]
        );
    }
}
