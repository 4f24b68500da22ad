//! A terminal that shows whole pictures, and is as it was afterwards, however the program ends.
//!
//! The modes are those of rustix, the sequences those of every terminal since the VT100 and xterm:
//! a second screen, a hidden cursor, positions.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::panic;
use std::sync::Mutex;
use std::time::Duration;

const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The modes to go back to; none where the terminal is as it was.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Quit,
    Next,
    Previous,
    Redraw,
    /// Any other letter.
    Letter(u8),
}

/// The screen, as long as it lives.
#[derive(Debug)]
pub(crate) struct Screen {
    /// The lines that are shown.
    shown: Vec<String>,
    size: (usize, usize),
}

impl Screen {
    /// Takes the terminal of standard input and output. A panic gives it back before its message.
    ///
    /// # Errors
    /// Standard input or output is no terminal.
    pub(crate) fn open() -> io::Result<Screen> {
        let before = tcgetattr(io::stdin())?;
        tcgetwinsize(io::stdout())?;
        let mut raw = before.clone();
        raw.make_raw();
        *lock() = Some(before);
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            hook(info);
        }));
        let screen = Screen {
            shown: Vec::new(),
            size: (0, 0),
        };
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        write(ENTER)?;
        Ok(screen)
    }

    /// Returns whether a panic of another thread has given the terminal back.
    pub(crate) fn is_lost(&self) -> bool {
        lock().is_none()
    }

    /// Returns columns and rows. A terminal that does not know has 80 and 24.
    pub(crate) fn size() -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).map(|size| (size.ws_col, size.ws_row));
        match size {
            Ok((columns, rows)) if columns > 0 && rows > 0 => (columns.into(), rows.into()),
            _ => (80, 24),
        }
    }

    /// Shows these lines, one a row from the top; those that have not changed are not written.
    pub(crate) fn show(&mut self, lines: Vec<String>, size: (usize, usize)) -> io::Result<()> {
        let mut text = String::new();
        if self.size != size {
            text += "\x1b[2J";
            self.shown.clear();
            self.size = size;
        }
        for row in 0..lines.len().max(self.shown.len()) {
            let line = lines.get(row).map_or("", String::as_str);
            if self.shown.get(row).is_none_or(|shown| shown != line) {
                let _ = write!(text, "\x1b[{};1H{line}\x1b[0m\x1b[K", row + 1);
            }
        }
        self.shown = lines;
        match text.is_empty() {
            true => Ok(()),
            false => write(&text),
        }
    }

    /// Has the next picture written whole.
    pub(crate) fn forget(&mut self) {
        self.size = (0, 0);
    }

    /// Waits for keys, and no longer than this.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn keys(&self, within: Duration) -> io::Result<Vec<Key>> {
        let input = io::stdin();
        let time = Timespec {
            tv_sec: within.as_secs() as i64,
            tv_nsec: within.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            polled => polled?,
        };
        let mut bytes = [0; 64];
        match input.lock().read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => Ok(keys(&bytes[..read])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    BEFORE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Gives the terminal back, once.
fn restore() {
    if let Some(before) = lock().take() {
        let _ = write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns the keys of these bytes. Those that mean nothing here are left out.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'q' | b'Q' | 3 | 4 => keys.push(Key::Quit),
            b'n' | b'j' | b'\t' => keys.push(Key::Next),
            b'p' | b'k' => keys.push(Key::Previous),
            12 => keys.push(Key::Redraw),
            b'a'..=b'z' => keys.push(Key::Letter(*first)),
            0x1b => {
                if let [b'[' | b'O', sequence @ ..] = rest {
                    let end = sequence.iter().position(u8::is_ascii_alphabetic);
                    let end = end.unwrap_or(sequence.len().saturating_sub(1));
                    match sequence.get(end) {
                        Some(b'A' | b'D') => keys.push(Key::Previous),
                        Some(b'B' | b'C') => keys.push(Key::Next),
                        _ => {}
                    }
                    rest = sequence.get(end + 1..).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
#[path = "../../tests/program/pty.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of the program; this one needs a part of it"
)]
mod pty;

#[cfg(test)]
mod tests {
    use super::pty::OnTerminal;
    use super::*;
    use std::process::Command;

    const NAME: &str = "terminal::screen::tests::a_panic_gives_the_terminal_back";
    const SEEDED: &str = "THALWEG_TEST_SCREEN_PANIC";

    /// It runs itself on a terminal, where it panics.
    #[test]
    fn a_panic_gives_the_terminal_back() {
        if std::env::var_os(SEEDED).is_some() {
            let mut screen = Screen::open().expect("it is on a terminal");
            screen
                .show(vec!["shown".to_owned()], (80, 24))
                .expect("it writes");
            panic!("seeded");
        }
        let mut program = Command::new(std::env::current_exe().expect("it has a path"));
        program
            .args(["--exact", NAME, "--nocapture"])
            .env(SEEDED, "1");
        let mut on = OnTerminal::start(program, (80, 24));
        on.await_text(ENTER);
        on.await_text("shown");
        on.await_text(LEAVE);
        on.await_text("seeded");
        assert_eq!(on.ended(), (Some(101), true));
    }

    #[test]
    fn keys_and_arrows_are_read_and_others_left_out() {
        assert_eq!(keys(b"q"), [Key::Quit]);
        assert_eq!(keys(&[3]), [Key::Quit]);
        assert_eq!(
            keys(b"\x1b[A\x1bOBn"),
            [Key::Previous, Key::Next, Key::Next]
        );
        assert_eq!(keys(b"\x1b[1;5C-\x0c"), [Key::Next, Key::Redraw]);
        assert_eq!(keys(b"wx"), [Key::Letter(b'w'), Key::Letter(b'x')]);
        for nothing in [&b""[..], b"\x1b", b"\x1b[", b"\x1b[5~", b"-"] {
            assert_eq!(keys(nothing), [], "{nothing:?}");
        }
    }
}
