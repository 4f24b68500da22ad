//! Signals that come while a program is observed.

use crate::probe::regular;
use crate::sys::witness::Witness;
use crate::sys::{self, Signals};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Those that ask for an end.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Those that mean something to the program only.
const PASSED: [i32; 2] = [libc::SIGUSR1, libc::SIGUSR2];
/// The same signal within that time is one.
const MOMENT: Duration = Duration::from_millis(500);
/// Whoever presses Ctrl-C so often within that time wants an end.
const INSISTS: (usize, Duration) = (3, Duration::from_secs(1));

/// Whether a process ignores a signal, which is not to have a use of one's own for it.
fn ignores(pid: i32, signal: i32) -> bool {
    let status = regular::text(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Passes signals on, and sees to it that who asks for an end gets one.
///
/// A signal of the terminal has reached the program already, as it is of the same process group,
/// and the program may have its own use for it, as a prompt has: whoever insists wants an end, and
/// whoever faces a program that ignores it.
/// So has one that was sent to the group. One that came to this process alone is passed on.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) signals: Signals,
    grace: Duration,
    /// None where nothing is passed on, or no process can be started.
    witness: Option<Witness>,
    /// When the first one came, and which.
    asked: Option<(Instant, i32)>,
    pressed: Vec<Instant>,
    /// One that asks for an end has come, and has not been told of.
    came: bool,
}

impl Keeper {
    /// One that passes signals on to a program of this process's group, or to none.
    pub(crate) fn new(grace: Duration, passes_on: bool) -> io::Result<Keeper> {
        let held = [&ENDING[..], &PASSED[..]].concat();
        let signals = Signals::hold(&held)?;
        let witness = passes_on.then(|| Witness::start(&held).ok()).flatten();
        Ok(Keeper {
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

    /// Passes on what came. Is it time to kill the program and all that it started?
    pub(crate) fn pass(&mut self, pid: i32) -> bool {
        let mut kill = false;
        while let Some(arrived) = self.signals.next() {
            let ending = ENDING.contains(&arrived.signal);
            self.came |= ending;
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
            let witness = self.witness.as_mut();
            if !witness.is_some_and(|witness| witness.saw(arrived.signal)) {
                // Who may not signal it can still end this process.
                let _ = sys::send(pid, arrived.signal);
            }
            if ending {
                // Who signals the whole group, as timeout does, sends the same one twice.
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

    /// Has a signal that asks for an end come since the last time?
    pub(crate) fn interrupts(&mut self) -> bool {
        std::mem::take(&mut self.came)
    }

    /// Whoever watches, and did not start, ends when it is asked to.
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
