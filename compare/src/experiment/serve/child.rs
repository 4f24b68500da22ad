//! The process that is measured: the server, or the echo.
//!
//! It prints a line with its addresses, and ends when its standard input does; so it does not
//! outlive the program that measures it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{self, ChildStdin, Command, ExitCode, Stdio};

use thalweg_gateway::Gateway;
use thalweg_server::Server;
use thalweg_server::config::{Config, SyncSetting};
use thalweg_testkit::Scratch;
use tokio::runtime::{Builder, Runtime};

use super::{echo, http_echo};
use crate::runner::text;

/// The work of a child: it echoes, by HTTP where it says so, or serves an exchange, `LIMITED` with
/// the limits of the default configuration, `GATEWAY` with a gateway.
pub(crate) const ECHO: &str = "echo";
pub(crate) const SYNCED: &str = "serve-synced";
pub(crate) const UNSYNCED: &str = "serve-unsynced";
pub(crate) const LIMITED: &str = "serve-limited";
pub(crate) const GATEWAY: &str = "serve-gateway";
pub(crate) const HTTP_ECHO: &str = "http-echo";

/// An address of this machine, at any port.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Makes the configuration of a server: the default one, with listeners for trade and admin,
/// without a limit of the rate of commands.
pub(crate) fn configuration([trade, admin]: [SocketAddr; 2], sync: SyncSetting) -> Config {
    let mut config = Config::default();
    config.trade.listen = trade;
    config.admin.listen = Some(admin);
    config.http.listen = None;
    config.sessions.rate_per_s = 0;
    config.journal.sync = sync;
    config
}

/// Makes a runtime as `thalweg exchange serve` has it.
pub(crate) fn runtime() -> Result<Runtime, String> {
    let workers = Config::default().server.worker_threads;
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(workers).thread_name("connections");
    builder.enable_all().build().map_err(text)
}

/// The files of a gateway in the directory of a child.
pub(crate) const SYMBOLS: &str = "symbols.toml";
pub(crate) const API_KEYS: &str = "api-keys.toml";

/// Has a server serve a gateway without limits. Returns the directory of the exchange.
fn serve_gateway(config: &mut Config, directory: &Path) -> PathBuf {
    let gateway = &mut config.gateway;
    gateway.listen = Some(ANYWHERE);
    gateway.weight_per_minute = u32::MAX;
    gateway.orders_per_10s = u32::MAX;
    gateway.orders_per_day = u32::MAX;
    gateway.symbols = Some(directory.join(SYMBOLS));
    gateway.keys = Some(directory.join(API_KEYS));
    directory.join("exchange")
}

/// Runs a child, whose arguments are its work and a directory.
pub(crate) fn main(words: &[String]) -> ExitCode {
    let done = match words {
        [work, directory] => serve(work, Path::new(directory)),
        _ => Err("a child needs its work and a directory".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => crate::refuse(&error),
    }
}

fn serve(work: &str, directory: &Path) -> Result<(), String> {
    let sync = match work {
        ECHO | HTTP_ECHO => None,
        SYNCED | GATEWAY => Some(SyncSetting::Always),
        UNSYNCED | LIMITED => Some(SyncSetting::Never),
        _ => return Err(format!("no child does {work:?}")),
    };
    let runtime = runtime()?;
    let until_asked = |listening: &[SocketAddr]| -> Result<(), String> {
        let places: Vec<String> = listening.iter().map(SocketAddr::to_string).collect();
        let mut out = io::stdout().lock();
        writeln!(out, "{}", places.join(" ")).map_err(text)?;
        out.flush().map_err(text)?;
        let _ = io::stdin().lock().read(&mut [0]);
        Ok(())
    };
    let ended = if let Some(sync) = sync {
        let mut config = configuration([ANYWHERE; 2], sync);
        if work == LIMITED {
            config.sessions = Config::default().sessions;
        }
        let exchange = match work {
            GATEWAY => serve_gateway(&mut config, directory),
            _ => directory.to_owned(),
        };
        let gateway = config.gateway.clone();
        let started = runtime.block_on(Server::start(config, &exchange));
        let mut server = started.map_err(text)?;
        let gateway = server
            .gateway_link()
            .map(|link| runtime.block_on(Gateway::start(&gateway, &exchange, link)));
        let gateway = gateway.transpose().map_err(text)?;
        let at = server.addresses();
        let places = [
            Some(at.trade),
            at.admin,
            gateway.as_ref().map(Gateway::address),
        ];
        // The directory will be removed: the server is dropped, without a last snapshot.
        until_asked(&places.into_iter().flatten().collect::<Vec<_>>())
    } else {
        let listening = match work {
            HTTP_ECHO => runtime.block_on(http_echo::start()),
            _ => runtime.block_on(echo::start()),
        };
        until_asked(&[listening.map_err(text)?])
    };
    runtime.shutdown_background();
    ended
}

/// A child that runs, and its directory; both go when it is dropped.
#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
    /// The child ends when this is dropped.
    _stdin: Option<ChildStdin>,
    _directory: Scratch,
    pub(crate) trade: SocketAddr,
    /// An echo has none.
    pub(crate) admin: Option<SocketAddr>,
    /// That of a gateway.
    pub(crate) gateway: Option<SocketAddr>,
}

impl Child {
    pub(crate) fn start(work: &str) -> Result<Child, String> {
        Self::start_in(work, |_| Ok(()))
    }

    /// Starts a child whose directory is prepared before.
    pub(crate) fn start_in(
        work: &str,
        prepare: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<Child, String> {
        let directory = Scratch::new("serve");
        prepare(&directory)?;
        let words = [work.to_owned(), directory.display().to_string()];
        let mut child = Self::start_at(&words, directory, [ANYWHERE; 2])?;
        let mut line = String::new();
        if let Some(stdout) = child.process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(text)?;
        }
        let places = line.split_whitespace();
        let mut places = places.filter_map(|place| place.parse().ok());
        child.trade = places.next().ok_or("the child did not start")?;
        (child.admin, child.gateway) = (places.next(), places.next());
        Ok(child)
    }

    /// Starts a child with these words, which listens at these addresses, trade and admin, when it
    /// does.
    pub(crate) fn start_at(
        words: &[String],
        directory: Scratch,
        [trade, admin]: [SocketAddr; 2],
    ) -> Result<Child, String> {
        let mut process = Command::new(std::env::current_exe().map_err(text)?)
            .arg("--child")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let stdin = process.stdin.take();
        Ok(Child {
            process,
            _stdin: stdin,
            _directory: directory,
            trade,
            admin: Some(admin),
            gateway: None,
        })
    }

    /// Kills it, as by `kill -9`.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    /// Returns its resident memory; 0 where the system does not say.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap_or_default();
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = rss.and_then(|rss| rss.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }

    /// Returns the processor time of its threads so far; 0 where the system does not count.
    pub(crate) fn spent_ns(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id()));
        let times = threads.into_iter().flatten().flatten().map(|thread| {
            let times = fs::read_to_string(thread.path().join("schedstat"));
            let times = times.unwrap_or_default();
            let ns = times.split(' ').next().and_then(|ns| ns.parse().ok());
            ns.unwrap_or(0)
        });
        times.sum()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
