//! Determines whether a signal was sent to this process alone or to its whole process group.
//!
//! A signal does not carry its destination. A child in the group therefore does nothing but report
//! which signals reach it: no other process knows its id, so these signals were for the whole
//! group.
//!
//! State: none. Rules:
//! 1. Every pointer that the kernel gets leads to a live local value of the type that the call asks
//!    for, and no call keeps it.
//! 2. A file descriptor is owned by one `OwnedFd` from the moment the kernel gave it.
//! 3. After `fork` the child makes async-signal-safe calls only, and never returns.

use super::checked;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// The maximum delay between a signal's arrival at two processes of the group.
const LATE: Duration = Duration::from_millis(50);

/// The child. It ends when this is dropped, or with the thread that started it.
#[derive(Debug)]
pub(crate) struct Witness {
    pid: i32,
    /// The pipe with a byte for each signal.
    reported: OwnedFd,
    heard: Vec<(i32, Instant)>,
}

impl Witness {
    /// Starts the child in this thread, which must have blocked the signals already, so that the
    /// child blocks them too.
    pub(crate) fn start(signals: &[i32]) -> io::Result<Witness> {
        let (reported, tell) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let mut held = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: rule 1; `sigemptyset` makes a set of `held`.
        let held = unsafe {
            libc::sigemptyset(held.as_mut_ptr());
            for &signal in signals {
                libc::sigaddset(held.as_mut_ptr(), signal);
            }
            held.assume_init()
        };
        // SAFETY: rule 3.
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
            heard: Vec::new(),
        })
    }

    /// Returns whether a signal that has just reached us reached the whole group.
    pub(crate) fn saw(&mut self, signal: i32) -> bool {
        let began = Instant::now();
        loop {
            let mut bytes = [0; 64];
            if let Ok(count) = rustix::io::read(&self.reported, &mut bytes) {
                let heard = bytes[..count].iter();
                self.heard
                    .extend(heard.map(|&signal| (signal.into(), Instant::now())));
            }
            self.heard.retain(|(_, at)| at.elapsed() < LATE);
            if self.heard.iter().any(|&(heard, _)| heard == signal) {
                return true;
            }
            let Some(left) = LATE.checked_sub(began.elapsed()) else {
                return false;
            };
            let left = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut file = [PollFd::from_borrowed_fd(
                self.reported.as_fd(),
                PollFlags::IN,
            )];
            // Whatever poll returns, the time is checked again.
            let _ = poll(&mut file, Some(&left));
        }
    }
}

/// Runs the child until it ends.
///
/// # Safety
/// The caller must call this only between `fork` and the end of the process, with the pipe's
/// descriptor open.
unsafe fn watch(parent: libc::pid_t, held: &libc::sigset_t, tell: RawFd) -> ! {
    // SAFETY: rules 1 and 3; the descriptors that are closed are the child's.
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
