//! A terminal for a program, of which a test is the other end.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// A program on a terminal of its own.
pub(crate) struct OnTerminal {
    pub(crate) child: Child,
    controller: OwnedFd,
    /// The program's end, which stays open so that its modes can be looked at.
    terminal: File,
    before: Termios,
    pieces: Receiver<Vec<u8>>,
    /// All that the program has written so far.
    pub(crate) written: String,
}

impl OnTerminal {
    /// Starts a program on a terminal of this size.
    pub(crate) fn start(mut program: Command, size: (u16, u16)) -> OnTerminal {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&controller).expect("it is ours");
        unlockpt(&controller).expect("it is ours");
        let name = ptsname(&controller, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("it is a path").to_owned();
        let mut options = OpenOptions::new();
        let terminal = options.read(true).write(true).open(name).expect("it opens");
        let end = || terminal.try_clone().expect("files can be copied");
        tcsetwinsize(&controller, winsize(size)).expect("it has a size");
        let before = tcgetattr(&terminal).expect("it has modes");
        let child = program
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("it starts");
        let mut reader = File::from(controller.try_clone().expect("files can be copied"));
        let (sender, pieces) = channel();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // It fails once no program has the other end.
            while let Ok(bytes @ 1..) = reader.read(&mut piece) {
                if sender.send(piece[..bytes].to_vec()).is_err() {
                    return;
                }
            }
        });
        OnTerminal {
            child,
            controller,
            terminal,
            before,
            pieces,
            written: String::new(),
        }
    }

    /// Waits until the program has written this behind what was waited for before.
    pub(crate) fn await_text(&mut self, text: &str) {
        while !self.written.contains(text) {
            let piece = self.pieces.recv().expect("the terminal is open");
            self.written += &String::from_utf8_lossy(&piece);
        }
        let end = self.written.find(text).expect("it was found") + text.len();
        self.written.drain(..end);
    }

    pub(crate) fn press(&self, keys: &str) {
        rustix::io::write(&self.controller, keys.as_bytes()).expect("it takes keys");
    }

    pub(crate) fn resize(&self, size: (u16, u16)) {
        tcsetwinsize(&self.controller, winsize(size)).expect("it has a size");
    }

    /// Waits for the program's end. Returns its exit code, and whether the terminal is as before.
    pub(crate) fn ended(&mut self) -> (Option<i32>, bool) {
        let code = self.child.wait().expect("it can be waited for").code();
        let now = tcgetattr(&self.terminal).expect("it has modes");
        let is_as_before = now.local_modes == self.before.local_modes
            && now.input_modes == self.before.input_modes
            && now.output_modes == self.before.output_modes;
        (code, is_as_before)
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const fn winsize((columns, rows): (u16, u16)) -> Winsize {
    Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
