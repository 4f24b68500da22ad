//! Handles signals that arrive while a program is observed.

use crate::probe::regular;
use crate::sys::witness::Witness;
use crate::sys::{self, Signals};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

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
    let status = regular::text(format!("/proc/{pid}/status")).unwrap_or_default();
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
pub(crate) struct Keeper {
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

impl Keeper {
    /// Creates a keeper that passes signals on to a program of this process's group, or to none.
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

    /// Passes on the signals that arrived. Returns whether it is time to kill the program and all
    /// that it started.
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
