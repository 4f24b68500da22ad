//! The served exchange of the test: a process with a log, and the limits on how long the test waits
//! for it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command as Program, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The number of checks without any progress, one second apart, after which the test counts as
/// hanging. A process that is stopped meanwhile, with the exchange or without it, does not check.
const LOOKS_MAX: u32 = 100;
const LOOK: Duration = Duration::from_secs(1);
/// The number of lines of the log that a failure shows.
const LOG_LINES: usize = 40;

/// A directory for an exchange, and for the log of all its servers. If the test fails, the
/// directory remains.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) within: PathBuf,
    pub(crate) exchange: PathBuf,
    pub(crate) log: PathBuf,
}

impl Folder {
    /// Creates an empty directory.
    pub(crate) fn new(name: &str) -> Self {
        // Another run of the test uses another directory.
        let name = format!("{name}-{}", process::id());
        let within = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // A test that failed has left its own, and its process may have had this number.
        let _ = fs::remove_dir_all(&within);
        fs::create_dir_all(&within).expect("a directory can be made");
        Self {
            exchange: within.join("exchange"),
            log: within.join("log"),
            within,
        }
    }

    /// Has all servers read this configuration.
    pub(crate) fn configure(&self, config: &str) {
        fs::write(self.config(), config).expect("there is room");
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.within.join("serve.toml")
    }

    /// Ends the test, with the reason and the server's log.
    pub(crate) fn fail(&self, why: &str) -> ! {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        panic!("{why}\nthe server's log ends:\n{}", last.join("\n"))
    }

    /// Repeats `look` until it returns the value. Until then `look` returns a measure of progress;
    /// the test fails if that does not change.
    pub(crate) fn wait<T>(&self, what: &str, look: impl FnMut() -> Result<T, u64>) -> T {
        self.wait_looks(what, LOOK, look)
    }

    /// Like `wait`, with checks that count after a different interval.
    pub(crate) fn wait_looks<T>(
        &self,
        what: &str,
        between: Duration,
        mut look: impl FnMut() -> Result<T, u64>,
    ) -> T {
        let (mut looks, mut far, mut looked) = (0, None, Instant::now());
        loop {
            let now = match look() {
                Ok(found) => return found,
                Err(now) => now,
            };
            if far != Some(now) {
                (looks, far) = (0, Some(now));
            } else if looked.elapsed() >= between {
                (looks, looked) = (looks + 1, Instant::now());
            }
            if looks >= LOOKS_MAX {
                self.fail(&format!("{what}: it hangs at {now}"));
            }
            thread::yield_now();
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !thread::panicking() || !self.exchange.exists() {
            let _ = fs::remove_dir_all(&self.within);
        }
    }
}

/// A server, and the addresses on which it listens.
pub(crate) struct Served<'p> {
    place: &'p Folder,
    child: Child,
    pub(crate) addresses: BTreeMap<String, String>,
}

impl<'p> Served<'p> {
    /// Starts the server, at the same addresses as before if there was one.
    pub(crate) fn start(place: &'p Folder, before: &BTreeMap<String, String>) -> Self {
        let mut program = Program::new(env!("CARGO_BIN_EXE_thalweg"));
        program.args(["exchange", "serve", "--format", "json"]);
        program.arg(&place.exchange);
        let config = place.config();
        if config.exists() {
            program.arg("--config").arg(config);
        }
        for listener in ["trade", "admin", "http"] {
            let address = before.get(listener).map_or("127.0.0.1:0", String::as_str);
            program.args([format!("--{listener}"), address.to_owned()]);
        }
        let log = File::options().create(true).append(true).open(&place.log);
        let log = log.expect("there is room for a log");
        program.stdout(Stdio::piped()).stderr(log);
        let mut served = Self {
            place,
            child: program.spawn().expect("it starts"),
            addresses: BTreeMap::new(),
        };
        let printed = served.printed();
        let printed: Value = serde_json::from_str(&printed)
            .unwrap_or_else(|_| place.fail(&format!("it printed no addresses but `{printed}`")));
        let printed = printed.as_object().expect("an object").iter();
        let text = |address: &Value| address.as_str().unwrap_or_default().to_owned();
        served.addresses = printed.map(|(name, at)| (name.clone(), text(at))).collect();
        served
    }

    /// Returns the first line that the server writes; empty if it ends without one.
    fn printed(&mut self) -> String {
        let mut out = BufReader::new(self.child.stdout.take().expect("it is piped"));
        let (sender, line) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = out.read_line(&mut line);
            let _ = sender.send(line);
        });
        self.place
            .wait("the start", || line.try_recv().map_err(|_| 0))
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
    }

    /// Asks the server to end, as an operator does.
    pub(crate) fn end(mut self) {
        let id = self.child.id().to_string();
        let asked = Program::new("kill").args(["-TERM", &id]).status();
        assert!(asked.expect("there is a program to do so").success());
        let child = &mut self.child;
        let ended = self.place.wait("the end", || {
            child.try_wait().expect("it is a child").ok_or(0)
        });
        if ended.code() != Some(0) {
            self.place.fail(&format!("it ended with {ended}"));
        }
    }
}

impl Drop for Served<'_> {
    /// A test that fails must leave no server behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
