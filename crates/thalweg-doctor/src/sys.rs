//! The system calls that no library wraps safely: processes, signals, and perf events.
//!
//! # Rules
//! 1. Every pointer that the kernel gets leads to a live value of the type that the call asks for,
//!    and no call here keeps it after it returns.
//! 2. A file descriptor is owned by one [`OwnedFd`] from the moment the kernel gave it.
//! 3. A ring stays mapped as long as its [`Ring`] lives; only the kernel writes its data, and only
//!    between `data_head` and `data_tail + size`, so the bytes before `data_head` are settled.
//! 4. After `fork` the child makes async-signal-safe calls only, until it calls `exec` or ends.

pub(crate) mod bpf;

use perf_event_open_sys::bindings::{PERF_FORMAT_LOST, perf_event_attr, perf_event_mmap_page};
use perf_event_open_sys::{ioctls, perf_event_open};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, Read as _};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The resources that processes used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    pub(crate) faults_minor: u64,
    pub(crate) faults_major: u64,
}

impl Used {
    /// Returns the processor time.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// The result of `wait4` for a process that ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ended {
    /// The status as `wait` returns it.
    pub(crate) status: i32,
    pub(crate) used: Used,
    pub(crate) rss_max_bytes: u64,
    pub(crate) switches_voluntary: u64,
    pub(crate) switches_involuntary: u64,
}

/// Returns the time of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Returns the processor time of this process or thread.
pub(crate) fn cpu_s(of: ClockId) -> f64 {
    let time = clock_gettime(of);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Waits until a file is readable, for `ns` at most, or until a signal. Returns whether one is.
pub(crate) fn wait_readable<'a>(
    files: impl IntoIterator<Item = BorrowedFd<'a>>,
    ns: u64,
) -> io::Result<bool> {
    let of = |file| PollFd::from_borrowed_fd(file, PollFlags::IN);
    let mut files: Vec<_> = files.into_iter().map(of).collect();
    let wait = Timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    };
    match poll(&mut files, Some(&wait)) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Returns the end of a child, if it has ended; its figures include those of the children that it
/// waited for.
pub(crate) fn reap(pid: i32) -> io::Result<Option<Ended>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: rule 1; zeroes are a valid `rusage`.
    let (found, usage) = unsafe {
        let found = libc::wait4(pid, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (found, usage.assume_init())
    };
    if checked(found)? == 0 {
        return Ok(None);
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    Ok(Some(Ended {
        status,
        used: Used {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            faults_minor: count(usage.ru_minflt),
            faults_major: count(usage.ru_majflt),
        },
        rss_max_bytes: count(usage.ru_maxrss) * 1024,
        switches_voluntary: count(usage.ru_nvcsw),
        switches_involuntary: count(usage.ru_nivcsw),
    }))
}

/// Sends a signal. A process that is already gone is not an error.
pub(crate) fn send(pid: i32, signal: i32) -> io::Result<()> {
    assert!(pid > 0, "{pid} is no process");
    // SAFETY: the call takes no pointer.
    match checked(unsafe { libc::kill(pid, signal) }) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}

/// Whether this process began with SIGPIPE ignored; Rust's runtime ignores it in any case.
static IGNORED_PIPES: AtomicBool = AtomicBool::new(false);

/// Looks at SIGPIPE before Rust's runtime begins.
#[used]
// SAFETY: the function makes one call of the system, and needs no runtime.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn look() {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: rule 1; zeroes are a valid `sigaction`.
        let action = unsafe {
            libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr());
            action.assume_init()
        };
        // ORDERING: Relaxed, as no other thread exists yet.
        IGNORED_PIPES.store(action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
    look
};

/// Signals that are blocked for this thread and its children, and are read from a file instead.
/// The ends of children are reported meanwhile, even if SIGCHLD was ignored.
#[derive(Debug)]
pub(crate) struct Signals {
    file: OwnedFd,
    before: libc::sigset_t,
    children_before: libc::sighandler_t,
}

/// A signal that arrived, and its sender: the kernel (a terminal) or a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) signal: i32,
    pub(crate) from_kernel: bool,
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: rule 1; `sigemptyset` makes a set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

impl Signals {
    pub(crate) fn hold(signals: &[i32]) -> io::Result<Signals> {
        let (held, mut before) = (set_of(signals), MaybeUninit::<libc::sigset_t>::zeroed());
        // SAFETY: rules 1 and 2; `pthread_sigmask` makes a set of `before`.
        unsafe {
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let file = checked(libc::signalfd(-1, &raw const held, flags))?;
            let file = OwnedFd::from_raw_fd(file);
            let failed =
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, before.as_mut_ptr());
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            Ok(Signals {
                file,
                before: before.assume_init(),
                children_before: libc::signal(libc::SIGCHLD, libc::SIG_DFL),
            })
        }
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn next(&self) -> Option<Arrived> {
        let mut arrived = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let bytes = size_of::<libc::signalfd_siginfo>();
        // SAFETY: rule 1; the kernel writes whole structures, and zeroes are one as well.
        let (read, arrived) = unsafe {
            let read = libc::read(self.file.as_raw_fd(), arrived.as_mut_ptr().cast(), bytes);
            (read, arrived.assume_init())
        };
        (usize::try_from(read) == Ok(bytes)).then_some(Arrived {
            signal: i32::try_from(arrived.ssi_signo).unwrap_or(0),
            from_kernel: arrived.ssi_code > 0,
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while self.next().is_some() {}
        // SAFETY: rule 1; `before` was filled by the kernel.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
            libc::signal(libc::SIGCHLD, self.children_before);
        }
    }
}

/// Makes `command` wait before it becomes its program: the child writes its id to `here` and reads
/// a byte from `go`. `other_ends` are the parent's ends, which the child closes, so that it does
/// not wait forever if the parent dies. Signals are unblocked in the child, and those that this
/// process ignored when it began are ignored.
pub(crate) fn wait_before_exec(
    command: &mut Command,
    signals: &Signals,
    here: RawFd,
    go: RawFd,
    other_ends: [RawFd; 2],
) {
    let before = signals.before;
    let ignored = [
        (libc::SIGCHLD, signals.children_before == libc::SIG_IGN),
        // ORDERING: Relaxed, as it was set before `main`.
        (libc::SIGPIPE, IGNORED_PIPES.load(Ordering::Relaxed)),
    ];
    let wait = move || {
        // SAFETY: rules 1 and 4; the descriptors are the child's copies of open ones.
        unsafe {
            for end in other_ends {
                libc::close(end);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
            for (signal, _) in ignored.into_iter().filter(|(_, is_ignored)| *is_ignored) {
                libc::signal(signal, libc::SIG_IGN);
            }
            let pid = libc::getpid().to_ne_bytes();
            if libc::write(here, pid.as_ptr().cast(), pid.len()) != pid.len() as isize {
                return Err(io::Error::last_os_error());
            }
            let mut byte = 0_u8;
            while libc::read(go, (&raw mut byte).cast(), 1) != 1 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
        Ok(())
    };
    // SAFETY: rule 4 holds for `wait`.
    unsafe { command.pre_exec(wait) };
}

/// Opens an event for a thread (or all of them: -1) on a core (or all of them: -1). It counts the
/// records that are lost, if the kernel is one from 6.0 on.
pub(crate) fn open_event(attributes: &perf_event_attr, tid: i32, core: i32) -> io::Result<File> {
    let mut attributes = *attributes;
    attributes.size = u32::try_from(size_of::<perf_event_attr>()).expect("a small structure");
    let mut open = |read_format| -> io::Result<File> {
        attributes.read_format = read_format;
        // SAFETY: rules 1 and 2.
        unsafe {
            let flags = perf_event_open_sys::bindings::PERF_FLAG_FD_CLOEXEC;
            let file = perf_event_open(&raw mut attributes, tid, core, -1, flags.into());
            Ok(File::from_raw_fd(checked(file)?))
        }
    };
    match open(PERF_FORMAT_LOST.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(0),
        event => event,
    }
}

/// Returns the number of records of an event that the kernel had no room for; 0 if it does not
/// count them.
pub(crate) fn lost_records(mut event: &File) -> u64 {
    // The value of the event stands first.
    let mut words = [[0; 8]; 2];
    match event.read(words.as_flattened_mut()) {
        Ok(16) => u64::from_ne_bytes(words[1]),
        _ => 0,
    }
}

/// Returns the id that samples of an event carry.
pub(crate) fn event_id(event: &File) -> io::Result<u64> {
    let mut id = 0;
    // SAFETY: rule 1.
    checked(unsafe { ioctls::ID(event.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// Starts or stops an event.
pub(crate) fn set_counting(event: &File, on: bool) -> io::Result<()> {
    let file = event.as_raw_fd();
    // SAFETY: the calls take no pointer.
    let done = unsafe {
        match on {
            true => ioctls::ENABLE(file, 0),
            false => ioctls::DISABLE(file, 0),
        }
    };
    checked(done).map(drop)
}

/// Redirects the records of `event` to the ring buffer of `owner`.
pub(crate) fn redirect(event: &File, owner: &File) -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    let done = unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), owner.as_raw_fd()) };
    checked(done).map(drop)
}

/// The ring buffer that the kernel writes the records of a core to.
#[derive(Debug)]
pub(crate) struct Ring {
    page: NonNull<perf_event_mmap_page>,
    page_bytes: usize,
    data_bytes: usize,
    read: u64,
}

// SAFETY: rule 3; the mapping belongs to no thread, and `&mut` is needed to read it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring buffer of `owner`: `data_bytes` is a power of two and no smaller than a page.
    pub(crate) fn map(owner: &File, data_bytes: usize) -> io::Result<Ring> {
        let page_bytes = rustix::param::page_size();
        assert!(data_bytes.is_power_of_two() && data_bytes >= page_bytes);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let page = unsafe {
            let flags = libc::PROT_READ | libc::PROT_WRITE;
            let bytes = page_bytes + data_bytes;
            let file = owner.as_raw_fd();
            libc::mmap(ptr::null_mut(), bytes, flags, libc::MAP_SHARED, file, 0)
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring {
            page: NonNull::new(page.cast()).expect("a mapping is not at zero"),
            page_bytes,
            data_bytes,
            read: 0,
        })
    }

    /// Appends the available records to `into` and frees their room.
    pub(crate) fn drain(&mut self, into: &mut Vec<u8>) {
        let page = self.page.as_ptr();
        // SAFETY: rule 3; both positions are aligned and shared with the kernel only.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*page).data_head),
                AtomicU64::from_ptr(&raw mut (*page).data_tail),
            )
        };
        // ORDERING: Acquire, pairs with the kernel's store of `data_head` after the records.
        let end = head.load(Ordering::Acquire);
        while self.read < end {
            let at = self.read as usize & (self.data_bytes - 1);
            let bytes = ((end - self.read) as usize).min(self.data_bytes - at);
            // SAFETY: rule 3; `at + bytes` is at most `data_bytes`, and before `data_head`.
            let part = unsafe {
                let data = self.page.as_ptr().cast::<u8>().add(self.page_bytes + at);
                std::slice::from_raw_parts(data, bytes)
            };
            into.extend_from_slice(part);
            self.read += bytes as u64;
        }
        // ORDERING: Release, pairs with the kernel's load of `data_tail` before it writes.
        tail.store(self.read, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: rule 3; nothing refers to the mapping any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

/// A child in the process group, which reports the signals that reach it. A signal does not carry
/// its destination, and no other process knows the id of this child: what reaches it was for the
/// whole group. It ends when this is dropped, or with the thread that started it.
#[derive(Debug)]
pub(crate) struct Witness {
    pid: i32,
    /// The pipe with a byte for each signal.
    reported: OwnedFd,
    /// The signals of bytes that were read, as the bits of a mask.
    heard: u64,
    /// The signals that were seen pending, and whose bytes are still to come.
    early: u64,
}

impl Witness {
    /// Starts the child in this thread, which must have blocked the signals already, so that the
    /// child blocks them too.
    pub(crate) fn start(signals: &[i32]) -> io::Result<Witness> {
        let (reported, tell) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let held = set_of(signals);
        // SAFETY: rule 4.
        let pid = unsafe {
            let parent = libc::getpid();
            match checked(libc::fork())? {
                0 => watch(parent, &held, tell.as_raw_fd()),
                pid => pid,
            }
        };
        Ok(Witness {
            pid,
            reported,
            heard: 0,
            early: 0,
        })
    }

    /// Returns whether a signal that has just reached us reached the whole group. It is decided by
    /// state, not by time: once the signal is queued to all, the child has reported it, has it
    /// pending, or is awake. A child that is stopped may report it long after.
    pub(crate) fn saw(&mut self, signal: i32) -> bool {
        let bit = 1 << (signal - 1);
        self.await_queued();
        let is_pending = loop {
            let seen = self.early;
            let (state, pending) = self.state();
            self.read();
            if self.early != seen {
                continue;
            }
            match state {
                'R' | 'D' => {}
                'S' if pending & bit != 0 => {}
                // One that was seen before, and stays pending in a stopped child, is not new.
                _ => break pending & bit & !seen != 0,
            }
            // Whatever poll returns, the state is read again.
            let _ = wait_readable([self.reported.as_fd()], 1_000_000);
        };
        let has_seen = is_pending || self.heard & bit != 0;
        if is_pending {
            self.early |= bit;
        }
        // One that came to the group again is pending here, and has its report already.
        self.await_queued();
        if !is_pending_here(signal) {
            self.heard &= !bit;
        }
        has_seen
    }

    /// Waits until a signal that has reached a member of the group is queued to all. The kernel
    /// reads its list of tasks under a lock until they have it; `setpgid` takes that lock alone.
    fn await_queued(&self) {
        // SAFETY: the calls take no pointer; the child is in the group already.
        unsafe { libc::setpgid(self.pid, libc::getpgrp()) };
    }

    /// Returns the letter of the child's state and its pending signals; the letter was read first.
    fn state(&self) -> (char, u64) {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
        let state = field("State:").and_then(|state| state.trim().chars().next());
        let pending = ["SigPnd:", "ShdPnd:"].into_iter().filter_map(field);
        let pending = pending.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        (state.unwrap_or('X'), pending.fold(0, |all, one| all | one))
    }

    fn read(&mut self) {
        let mut bytes = [0; 64];
        while let Ok(count @ 1..) = rustix::io::read(&self.reported, &mut bytes) {
            for &signal in &bytes[..count] {
                let bit = 1 << (signal - 1);
                if self.early & bit != 0 {
                    self.early &= !bit;
                } else {
                    self.heard |= bit;
                }
            }
        }
    }
}

/// Returns whether this thread or its process has a blocked signal pending.
fn is_pending_here(signal: i32) -> bool {
    let mut set = set_of(&[]);
    // SAFETY: rule 1; the set is initialised.
    unsafe { libc::sigpending(&raw mut set) == 0 && libc::sigismember(&raw const set, signal) == 1 }
}

/// Runs the child until it ends.
///
/// # Safety
/// The caller must call this only between `fork` and the end of the process, with the pipe's
/// descriptor open.
unsafe fn watch(parent: libc::pid_t, held: &libc::sigset_t, tell: RawFd) -> ! {
    // SAFETY: rules 1 and 4; the descriptors that are closed are the child's.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() == parent {
            let tell = tell.cast_unsigned();
            // A reader of our output must not wait for the end of this child.
            libc::syscall(libc::SYS_close_range, 0, tell - 1, 0);
            libc::syscall(libc::SYS_close_range, tell + 1, u32::MAX, 0);
            loop {
                let signal = libc::sigwaitinfo(held, std::ptr::null_mut());
                if let Ok(byte) = u8::try_from(signal) {
                    libc::write(tell.cast_signed(), (&raw const byte).cast(), 1);
                }
            }
        }
        libc::_exit(0)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: the calls take no pointer but that of a local value (rule 1); the child is ours,
        // and no other code has waited for it.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            let mut status = 0;
            libc::waitpid(self.pid, &raw mut status, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_is_waited_for_once() {
        let child = Command::new("sh").args(["-c", "exit 7"]).spawn();
        let id = child.expect("there is a shell").id().cast_signed();
        let ended = loop {
            match reap(id).expect("it is a child") {
                Some(ended) => break ended,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(ended.status, 7 << 8);
        assert!(
            ended.rss_max_bytes > 0 && ended.used.faults_minor > 0,
            "{ended:?}"
        );
        assert!(reap(id).is_err());
    }

    #[test]
    fn a_child_that_is_late_has_seen_a_signal_all_the_same() {
        let signal = libc::SIGUSR1;
        let _held = Signals::hold(&[signal]).expect("they can be blocked");
        let mut witness = Witness::start(&[signal]).expect("it starts");
        let pid = witness.pid;
        let send = |signal| send(pid, signal).expect("it is a child");
        assert!(!witness.saw(signal), "none was sent");
        send(signal);
        assert!(witness.saw(signal));
        assert!(!witness.saw(signal), "no other was sent");
        send(libc::SIGSTOP);
        while witness.state().0 != 'T' {
            std::thread::yield_now();
        }
        assert!(!witness.saw(signal), "none is pending");
        send(signal);
        assert!(witness.saw(signal), "it is pending");
        assert!(!witness.saw(signal), "it was seen before");
        send(libc::SIGCONT);
        while witness.early != 0 {
            assert!(!witness.saw(signal), "no other was sent");
        }
        assert!(!witness.saw(signal), "no other was sent");
        send(libc::SIGKILL);
        assert!(!witness.saw(signal), "it has ended");
    }
}
