//! The output for people: colours and progress where there is a terminal, and hints on standard
//! error.

pub(crate) mod line;
pub(crate) mod screen;

use crate::failure::Finding;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Returns whether standard output shows colours: it is a terminal, and there is no `NO_COLOR` in
/// the environment.
pub(crate) fn colours() -> bool {
    colours_on(&io::stdout())
}

/// Returns whether a stream shows colours.
pub(crate) fn colours_on(stream: &impl IsTerminal) -> bool {
    let wished = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    wished && stream.is_terminal()
}

/// Returns whether whole pictures can be shown: input and output are a terminal that has positions.
pub(crate) fn has_screen() -> bool {
    io::stdout().is_terminal()
        && io::stdin().is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The signals that end a command that goes on until then. Each only sets a number, so the terminal
/// is given back before the end, however many come.
#[derive(Debug)]
pub(crate) struct StopSignal(Arc<AtomicUsize>);

impl StopSignal {
    pub(crate) fn new() -> StopSignal {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            // Where there is no such signal it has its default effect.
            let _ = flag::register_usize(number, Arc::clone(&signal), number as usize);
        }
        StopSignal(signal)
    }

    /// Returns the result of the program, if a signal has come.
    pub(crate) fn finding(&self) -> Option<Finding> {
        // ORDERING: Relaxed, pairs with the signal's store; nothing else is read because of it.
        match self.0.load(Ordering::Relaxed) as i32 {
            0 => None,
            SIGINT => Some(Finding::Interrupted),
            SIGHUP => Some(Finding::Of(129)),
            _ => Some(Finding::Terminated),
        }
    }
}

/// The signals that end a run early: Ctrl-C, and the signal that `kill` and `timeout` send.
#[derive(Debug)]
pub(crate) struct Interruption {
    /// The flag that the first signal sets; the second signal ends the program.
    pub(crate) stop: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interruption {
    /// Starts to listen for signals.
    pub(crate) fn new() -> Interruption {
        let stop = Arc::new(AtomicBool::new(false));
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM] {
            let armed = Arc::new(AtomicBool::new(false));
            // This order ensures that the first signal is never lost, and that the second is
            // distinguished from it. Where there are no such signals, Ctrl-C has its default
            // effect.
            let _ = flag::register(number, Arc::clone(&stop));
            let _ = flag::register_usize(number, Arc::clone(&signal), number as usize);
            let _ = flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&armed));
            let _ = flag::register(number, armed);
        }
        Interruption { stop, signal }
    }

    /// Returns whether a signal has arrived.
    pub(crate) fn has_come(&self) -> bool {
        // ORDERING: Relaxed, pairs with the signal's store; nothing else is read because of it.
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the exit code of a run that a signal ended.
    pub(crate) fn finding(&self) -> Finding {
        // ORDERING: Relaxed, as above.
        match self.signal.load(Ordering::Relaxed) as i32 {
            SIGTERM => Finding::Terminated,
            _ => Finding::Interrupted,
        }
    }
}

/// Writes hints and progress to standard error, or nothing if the user asked for silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notes {
    quiet: bool,
}

impl Notes {
    pub(crate) fn new(quiet: bool) -> Notes {
        Notes { quiet }
    }

    /// Prints a line for people. A closed standard error is no reason to stop.
    pub(crate) fn hint(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "thalweg: {text}");
        }
    }

    /// Returns a progress bar of `total` steps, if the total is known. It is invisible unless
    /// standard error is a terminal.
    pub(crate) fn progress(&self, total: Option<usize>, what: &'static str) -> ProgressBar {
        let template = match total {
            Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} {eta}",
            None => "{msg} {human_pos} {per_sec} {elapsed}",
        };
        let total = total.map(|total| total as u64);
        self.bar(total, template).with_message(what)
    }

    /// Returns a progress bar over the bytes of a file. It is invisible under the same conditions
    /// as that of [`Notes::progress`].
    pub(crate) fn progress_bytes(&self, total_bytes: u64, file: String) -> ProgressBar {
        let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        self.bar(Some(total_bytes), template).with_message(file)
    }

    fn bar(&self, total: Option<u64>, template: &str) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        // The bar is drawn ten times a second by the thread that counts, so that no further thread
        // uses a core.
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(total, target);
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    }
}
