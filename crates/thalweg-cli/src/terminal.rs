//! What people see: colours and progress where there is a terminal, hints on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::{consts::SIGINT, flag};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Whether standard output shows colours: a terminal, and no `NO_COLOR` in the environment.
pub(crate) fn colours() -> bool {
    let wished = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    wished && io::stdout().is_terminal()
}

/// Whether somebody has given standard input: a pipe or a file, not a terminal and not `/dev/null`.
pub(crate) fn has_piped_input() -> bool {
    let input = io::stdin();
    #[cfg(unix)]
    {
        use std::os::{fd::AsFd, unix::fs::FileTypeExt};
        let owned = input.as_fd().try_clone_to_owned().map(std::fs::File::from);
        if owned
            .and_then(|file| file.metadata())
            .is_ok_and(|m| m.file_type().is_char_device())
        {
            return false;
        }
    }
    !input.is_terminal()
}

/// True from the first Ctrl-C on; the second ends the program, with exit code 130.
pub(crate) fn interruption() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    // Where there are no such signals, Ctrl-C does what it always does.
    let _ = flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&stop));
    let _ = flag::register(SIGINT, Arc::clone(&stop));
    stop
}

/// Standard error for hints and progress; silent if that is wished.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notes {
    quiet: bool,
}

impl Notes {
    pub(crate) fn new(quiet: bool) -> Notes {
        Notes { quiet }
    }

    /// A line for people. That standard error is closed is no reason to stop.
    pub(crate) fn hint(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "thalweg: {text}");
        }
    }

    /// A progress bar of `total` steps, if that is known; an invisible one unless standard error
    /// is a terminal.
    pub(crate) fn progress(&self, total: Option<usize>, what: &'static str) -> ProgressBar {
        let template = match total {
            Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} {eta}",
            None => "{msg} {human_pos} {per_sec} {elapsed}",
        };
        let total = total.map(|total| total as u64);
        self.bar(total, template).with_message(what)
    }

    /// A progress bar over the bytes of a file; invisible as that of [`Notes::progress`] is.
    pub(crate) fn progress_bytes(&self, total_bytes: u64, file: String) -> ProgressBar {
        let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        self.bar(Some(total_bytes), template).with_message(file)
    }

    fn bar(&self, total: Option<u64>, template: &str) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        // Ten frames a second; drawn by whoever counts, so that no thread takes a core.
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(total, target);
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    }
}
