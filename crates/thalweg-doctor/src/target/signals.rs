//! Signals that come while a program is observed.

use crate::sys::{self, Signals};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Those that ask for an end.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Those that mean something to the program only.
const PASSED: [i32; 2] = [libc::SIGUSR1, libc::SIGUSR2];

/// Passes signals on, and sees to it that who asks for an end gets one.
///
/// A signal of the terminal has reached the program already, as it is of the same process group.
/// Any other one came to this process only, as far as can be told, and is passed on.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) signals: Signals,
    grace: Duration,
    asked: Option<Instant>,
}

impl Keeper {
    pub(crate) fn new(grace: Duration) -> io::Result<Keeper> {
        let signals = Signals::hold(&[&ENDING[..], &PASSED[..]].concat())?;
        Ok(Keeper {
            signals,
            grace,
            asked: None,
        })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.signals.file()
    }

    /// Passes on what came. Is it time to kill the program and all that it started?
    pub(crate) fn pass(&mut self, pid: i32) -> bool {
        let mut kill = false;
        while let Some(arrived) = self.signals.next() {
            if !arrived.from_kernel {
                // Who may not signal it can still end this process.
                let _ = sys::send(pid, arrived.signal);
            }
            if ENDING.contains(&arrived.signal) {
                kill |= self.asked.is_some();
                self.asked.get_or_insert_with(Instant::now);
            }
        }
        kill || self
            .asked
            .is_some_and(|since| since.elapsed() >= self.grace)
    }

    /// Whoever watches, and did not start, ends when it is asked to.
    pub(crate) fn asked(&mut self) -> bool {
        while let Some(arrived) = self.signals.next() {
            if ENDING.contains(&arrived.signal) {
                self.asked.get_or_insert_with(Instant::now);
            }
        }
        self.asked.is_some()
    }
}
