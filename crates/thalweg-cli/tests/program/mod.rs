//! Runs the program and checks its output.
#![allow(dead_code, reason = "each test file uses its part of this module")]

pub(crate) mod pty;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the program as a command that a test can change before it runs it.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("NO_COLOR");
    command
}

/// Runs the program to its end.
pub(crate) fn thalweg(arguments: &[&str]) -> Ended {
    command(arguments)
        .output()
        .expect("the program can be started")
        .into()
}

/// Splits a line into its words.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The options for the listeners of a server, on any free ports.
pub(crate) const LISTEN: [&str; 6] = [
    "--trade-listen",
    "127.0.0.1:0",
    "--admin-listen",
    "127.0.0.1:0",
    "--http-listen",
    "127.0.0.1:0",
];

/// Runs a server that is expected not to start.
pub(crate) fn serve(arguments: &[&str]) -> Ended {
    thalweg(&[&["exchange", "serve"], arguments, &LISTEN].concat())
}

/// The output and the exit code of a program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        Ended {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Ended {
    /// Expects exit code 2, these parts on standard error, no data, and no panic.
    #[track_caller]
    pub(crate) fn refused(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is not in {self:?}");
        }
        assert!(!self.stderr.contains("panicked"), "{self:?}");
    }

    /// Expects exit code 0 and no output but data, and returns the data.
    #[track_caller]
    pub(crate) fn fine(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert_eq!(self.stderr, "", "{self:?}");
        &self.stdout
    }

    /// Returns the data as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.fine()).expect("the output is JSON")
    }
}

/// Returns whether a program has a handler for a signal.
pub(crate) fn catches(id: u32, number: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{id}/status"));
    let text = text.expect("the program runs");
    let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// Sends a signal once the program has a handler for it; before that, the signal would kill the
/// program.
pub(crate) fn signal(id: u32, number: u32) {
    while !catches(id, number) {
        std::thread::yield_now();
    }
    let (number, id) = (format!("-{number}"), id.to_string());
    let sent = Command::new("kill").args([number, id]).status();
    assert!(sent.expect("there is such a command").success());
}

/// A directory for one test, which is removed at the test's end.
pub(crate) struct Scratch {
    directory: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // ORDERING: Relaxed, pairs with nothing; only the numbers must differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("thalweg-test-{}-{number}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // A process of this number may have been killed here.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).expect("a scratch directory can be made");
        Scratch { directory }
    }

    /// Returns the path of a name in this directory.
    pub(crate) fn path(&self, name: &str) -> String {
        self.directory
            .join(name)
            .to_str()
            .expect("test paths are UTF-8")
            .to_owned()
    }

    /// Writes a file, and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a scratch file can be written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Returns the path of a file of the shared test data, as [`thalweg_testkit::shared`] does.
pub(crate) fn shared(name: &str) -> Option<String> {
    let path = thalweg_testkit::shared(name)?;
    Some(path.to_str().expect("test paths are UTF-8").to_owned())
}
