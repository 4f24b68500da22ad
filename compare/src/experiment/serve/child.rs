//! The process that is measured: the server, or the echo.
//!
//! It says on a line where it listens, and ends when its standard input does; so it does not
//! outlive the program that measures it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{self, ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_server::Server;
use thalweg_server::config::{Config, SyncName};
use tokio::runtime::Builder;

use super::{Told, echo, told};
use crate::experiment::journal::Scratch;

/// What a child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Serves an exchange.
    Serve(SyncName),
    /// Answers what looks like a command, and does nothing else.
    Echo,
}

const ECHO: &str = "echo";
const SYNCED: &str = "serve-synced";
const UNSYNCED: &str = "serve-unsynced";

impl Work {
    const fn name(self) -> &'static str {
        match self {
            Self::Serve(SyncName::Always) => SYNCED,
            Self::Serve(SyncName::Never) => UNSYNCED,
            Self::Echo => ECHO,
        }
    }

    const ALL: [Self; 3] = [
        Self::Echo,
        Self::Serve(SyncName::Always),
        Self::Serve(SyncName::Never),
    ];

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|work| work.name() == name)
    }
}

/// The configuration of a child: the default one, on any ports, for sessions that send as fast as
/// they can.
fn configuration(sync: SyncName) -> Config {
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = Config::default();
    config.trade.listen = anywhere;
    config.admin.listen = Some(anywhere);
    config.http.listen = Some(anywhere);
    config.sessions.rate_per_s = 0;
    config.journal.sync = sync;
    config
}

/// What a child does from its start: `WORK DIRECTORY`.
pub(crate) fn main(words: &[String]) -> ExitCode {
    let done = match words {
        [work, directory] => match Work::of(work) {
            Some(work) => serve(work, Path::new(directory)),
            None => Err(format!("no child does {work:?}")),
        },
        _ => Err("a child is told its work and a directory".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve(work: Work, directory: &Path) -> Told<()> {
    // As `thalweg exchange serve` has it.
    let runtime = Builder::new_multi_thread()
        .worker_threads(Config::default().server.worker_threads)
        .thread_name("connections")
        .enable_all()
        .build()
        .map_err(told)?;
    let until_told = |listening: &[SocketAddr]| -> Told<()> {
        let places: Vec<String> = listening.iter().map(SocketAddr::to_string).collect();
        let mut out = io::stdout().lock();
        writeln!(out, "{}", places.join(" ")).map_err(told)?;
        out.flush().map_err(told)?;
        let _ = io::stdin().lock().read(&mut [0]);
        Ok(())
    };
    let ended = match work {
        Work::Echo => {
            let listening = runtime.block_on(echo::start()).map_err(told)?;
            until_told(&[listening])
        }
        Work::Serve(sync) => {
            let started = runtime.block_on(Server::start(configuration(sync), directory));
            let server = started.map_err(told)?;
            let at = server.addresses();
            let places = [Some(at.trade), at.admin, at.http];
            let ended = until_told(&places.into_iter().flatten().collect::<Vec<_>>());
            // The directory is about to go: no last snapshot.
            drop(server);
            ended
        }
    };
    runtime.shutdown_background();
    ended
}

/// A child that runs, and its directory; both go when it is dropped.
#[derive(Debug)]
pub(super) struct Child {
    process: process::Child,
    /// Its end is the child's.
    _stdin: Option<ChildStdin>,
    _directory: Scratch,
    pub(super) trade: SocketAddr,
    /// None of an echo.
    pub(super) admin: Option<SocketAddr>,
    pub(super) http: Option<SocketAddr>,
}

/// Of a thread: its name, and the nanoseconds that it was on a processor.
pub(super) type Spent = BTreeMap<String, u64>;

impl Child {
    pub(super) fn start(work: Work) -> Told<Child> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        // ORDERING: Relaxed, pairs with nothing; only the numbers must differ.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = Scratch::new(&format!("serve-{number}"));
        let mut process = Command::new(std::env::current_exe().map_err(told)?)
            .args(["--child", work.name()])
            .arg(&directory.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(told)?;
        let stdin = process.stdin.take();
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(told)?;
        }
        let places: Vec<SocketAddr> = line
            .split_whitespace()
            .filter_map(|place| place.parse().ok())
            .collect();
        let trade = places.first().copied();
        let child = Child {
            process,
            _stdin: stdin,
            _directory: directory,
            trade: trade.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))),
            admin: places.get(1).copied(),
            http: places.get(2).copied(),
        };
        trade.map_or(Err("the child did not start".to_owned()), |_| Ok(child))
    }

    fn of_process(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.process.id()))
    }

    /// What its threads have spent so far, those of one name together. Empty where the system does
    /// not tell.
    pub(super) fn spent(&self) -> Spent {
        let mut spent = Spent::new();
        let Ok(threads) = fs::read_dir(self.of_process("task")) else {
            return spent;
        };
        for thread in threads.flatten() {
            let read = |file: &str| fs::read_to_string(thread.path().join(file));
            let (Ok(name), Ok(times)) = (read("comm"), read("schedstat")) else {
                continue;
            };
            let ns = times.split(' ').next().and_then(|ns| ns.parse().ok());
            *spent.entry(name.trim().to_owned()).or_default() += ns.unwrap_or(0);
        }
        spent
    }

    /// Its memory now and at most, in bytes. None where the system does not tell.
    pub(super) fn memory(&self) -> Option<[u64; 2]> {
        let text = fs::read_to_string(self.of_process("status")).ok()?;
        let field = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kib << 10)
        };
        Some([field("VmRSS:")?, field("VmHWM:")?])
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What was spent between two looks, ns, by thread.
pub(super) fn spent_between(before: &Spent, after: &Spent) -> Spent {
    let since = |(name, ns): (&String, &u64)| {
        let before = before.get(name).copied().unwrap_or(0);
        (name.clone(), ns.saturating_sub(before))
    };
    after.iter().map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_is_known_by_its_name() {
        for work in Work::ALL {
            assert_eq!(Work::of(work.name()), Some(work));
        }
        assert_eq!(Work::of("sleep"), None);
    }

    #[test]
    fn what_was_spent_before_does_not_count() {
        let spent = |ns: [u64; 2]| -> Spent {
            let names = ["exchange", "connections"].map(str::to_owned);
            names.into_iter().zip(ns).collect()
        };
        let mut before = spent([5, 7]);
        before.remove("connections");
        let expected = spent([4, 7]);
        assert_eq!(spent_between(&before, &spent([9, 7])), expected);
    }
}
