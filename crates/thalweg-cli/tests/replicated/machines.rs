//! Three nodes of etcd and three replicas, each a program of its own.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thalweg_etcd::{Address, EtcdLog};
use thalweg_exchange::durable::replication::CommandLog;
use thalweg_testkit::etcd::{Cluster, free_ports};
use thalweg_testkit::own_host;

use super::network::{ETCD, Network};
use crate::program::catches;
use crate::served_kills::served::Folder;

pub(crate) const MACHINES: usize = 3;
/// How often a test looks at the log, which has other work.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long an answer by HTTP is waited for.
const HTTP_TIME: Duration = Duration::from_secs(5);
const PREFIX: &str = "test/exchange";

fn get(address: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    // A program that is stopped takes connections.
    stream.set_read_timeout(Some(HTTP_TIME))?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status();
    assert!(sent.expect("there is a program to do so").success());
}

fn log_of(place: &Folder) -> File {
    let log = File::options().create(true).append(true).open(&place.log);
    log.expect("there is room for a log")
}

/// A cluster of etcd.
pub(crate) struct Etcd<'p> {
    place: &'p Folder,
    cluster: Cluster,
}

impl<'p> Etcd<'p> {
    pub(crate) fn start(place: &'p Folder, network: Option<Network>) -> Self {
        let cluster = match network {
            None => Cluster::start(&place.within),
            Some(_) => Cluster::start_at(&place.within, ETCD),
        };
        let cluster = cluster.expect("it starts");
        let etcd = Self { place, cluster };
        let mut log = etcd.log();
        place.wait("etcd", || log.read(0).map_err(|_| 0));
        etcd
    }

    pub(crate) fn url(&self) -> String {
        self.cluster.url(PREFIX)
    }

    pub(crate) fn log(&self) -> EtcdLog {
        let address: Address = self.url().parse().expect("an address");
        EtcdLog::new(address).expect("a poll")
    }

    /// Waits until there is a leader. Returns which it is.
    pub(crate) fn leader(&self) -> usize {
        let cluster = &self.cluster;
        self.place.wait("a leader", || cluster.leader().ok_or(0))
    }

    pub(crate) fn kill(&mut self, at: usize) {
        self.cluster.kill(at).expect("it runs");
    }

    pub(crate) fn start_again(&mut self, at: usize) {
        self.cluster.start_again(at).expect("it starts");
    }
}

/// The replicas.
pub(crate) struct Machines<'p> {
    place: &'p Folder,
    network: Option<Network>,
    url: String,
    log: EtcdLog,
    /// The address of all without a network.
    host: String,
    ports: Vec<u16>,
    /// Bytes of batches that the command log keeps.
    log_bytes: u64,
    programs: Vec<Child>,
}

impl<'p> Machines<'p> {
    pub(crate) fn start(
        place: &'p Folder,
        etcd: &Etcd<'_>,
        network: Option<Network>,
        log_bytes: u64,
    ) -> Self {
        let host = own_host().to_string();
        let mut machines = Self {
            ports: free_ports(&host, 4 * MACHINES).expect("there are free ports"),
            host,
            place,
            network,
            url: etcd.url(),
            log: etcd.log(),
            log_bytes,
            programs: Vec::new(),
        };
        for at in 0..MACHINES {
            let program = machines.spawn(at);
            machines.programs.push(program);
        }
        machines
    }

    pub(crate) fn directory(&self, at: usize) -> PathBuf {
        self.place.within.join(format!("machine-{at}"))
    }

    /// Returns the address of a listener, `trade`, `admin`, `http` or `gateway`, of a machine.
    pub(crate) fn address(&self, listener: &str, at: usize) -> String {
        let listeners = ["trade", "admin", "http", "gateway"];
        let found = listeners.iter().position(|name| *name == listener);
        let first = found.expect("a listener") * MACHINES;
        let own = || self.host.clone();
        let host = self.network.map_or_else(own, |_| Network::host(at));
        format!("{host}:{}", self.ports[first + at])
    }

    /// Returns the URL of the command log.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns what a machine serves by HTTP, with its head; nothing where it does not answer.
    pub(crate) fn get(&self, at: usize, path: &str) -> String {
        get(&self.address("http", at), path).unwrap_or_default()
    }

    /// Returns the addresses of all machines, for clients.
    pub(crate) fn addresses(&self, listener: &str) -> String {
        let all: Vec<String> = (0..MACHINES).map(|at| self.address(listener, at)).collect();
        all.join(",")
    }

    fn spawn(&self, at: usize) -> Child {
        let path = env!("CARGO_BIN_EXE_thalweg");
        let mut program = match self.network {
            Some(_) => Network::on(at, path),
            None => Command::new(path),
        };
        program.args(["exchange", "serve"]).arg(self.directory(at));
        program.arg("--config").arg(self.place.config());
        let trade = self.address("trade", at);
        program.args(["--trade", &trade, "--advertise", &trade]);
        program.args(["--admin", &self.address("admin", at)]);
        program.args([
            "--http",
            &self.address("http", at),
            "--replicate",
            &self.url,
        ]);
        program.args(["--log-bytes", &self.log_bytes.to_string()]);
        let [symbols, keys] =
            ["symbols", "api-keys"].map(|name| self.place.within.join(format!("{name}.toml")));
        if symbols.exists() {
            program.args(["--gateway", &self.address("gateway", at)]);
            program
                .arg("--symbols")
                .arg(symbols)
                .arg("--api-keys")
                .arg(keys);
        }
        if at == 0 {
            program.arg("--bootstrap");
        }
        program.stdout(Stdio::null()).stderr(log_of(self.place));
        program.spawn().expect("it starts")
    }

    /// Waits until a machine is the primary and serves clients: another one than `before`. Starts
    /// others again that were fenced, or none might be left.
    pub(crate) fn wait_for_primary(&mut self, before: Option<usize>) -> usize {
        let all = |listener| (0..MACHINES).map(|at| self.address(listener, at)).collect();
        let [trade, http]: [Vec<String>; 2] = ["trade", "http"].map(all);
        let (place, mut looked) = (self.place, Instant::now());
        place.wait("a primary", || {
            if looked.elapsed() < LOOK_EVERY {
                return Err(0);
            }
            looked = Instant::now();
            for at in (0..MACHINES).filter(|at| Some(*at) != before) {
                let ended = self.programs[at].try_wait().expect("it is a child");
                if ended.is_some_and(|ended| ended.code() == Some(3)) {
                    self.start_again(at);
                }
            }
            let claim = self.log.read(u64::MAX).ok();
            let claim = claim.and_then(|tail| tail.claim).ok_or(0_u64)?;
            let found = trade.iter().position(|address| *address == claim.holder);
            let found = found
                .filter(|found| Some(*found) != before)
                .ok_or(claim.epoch)?;
            let ready = get(&http[found], "/readyz").unwrap_or_default();
            let is_ready = ready.starts_with("HTTP/1.1 200");
            is_ready.then_some(found).ok_or(claim.epoch)
        })
    }

    /// Returns the epoch of the present claim, once there is one.
    pub(crate) fn epoch(&mut self) -> u64 {
        let log = &mut self.log;
        let claim = self.place.wait("a claim", || {
            let tail = log.read(u64::MAX).map_err(|_| 0_u64)?;
            tail.claim.ok_or(0)
        });
        claim.epoch
    }

    pub(crate) fn kill(&mut self, at: usize) {
        self.programs[at].kill().expect("it runs");
        self.programs[at].wait().expect("it was killed");
    }

    pub(crate) fn stop(&mut self, at: usize) {
        signal(&self.programs[at], "-STOP");
    }

    pub(crate) fn resume(&mut self, at: usize) {
        signal(&self.programs[at], "-CONT");
    }

    /// Asks a machine to end in order, and waits for that. Returns false where another one took
    /// over in this moment, since it could not show that it lives.
    pub(crate) fn end_in_order(&mut self, at: usize) -> bool {
        // One that was started a moment ago would be killed by it.
        let program = &mut self.programs[at];
        let has_ended = self.place.wait("a handler", || {
            let has_ended = program.try_wait().expect("it is a child").is_some();
            let is_ready = has_ended || catches(program.id(), 15);
            is_ready.then_some(has_ended).ok_or(0)
        });
        if !has_ended {
            signal(&self.programs[at], "-TERM");
        }
        let code = self.ended(at);
        let is_known = matches!(code, Some(0 | 143 | 3));
        assert!(is_known, "machine {at} ended with {code:?}");
        code != Some(3)
    }

    /// Waits for the end of a machine, and starts it again, which must have found itself fenced.
    pub(crate) fn wait_for_fenced(&mut self, at: usize) {
        let code = self.ended(at);
        assert_eq!(code, Some(3), "machine {at} is fenced");
        self.start_again(at);
    }

    fn ended(&mut self, at: usize) -> Option<i32> {
        let program = &mut self.programs[at];
        let ended = self.place.wait("the end", || {
            program.try_wait().expect("it is a child").ok_or(0)
        });
        ended.code()
    }

    pub(crate) fn start_again(&mut self, at: usize) {
        self.programs[at] = self.spawn(at);
    }

    /// Starts those again that were fenced.
    pub(crate) fn start_fenced(&mut self) {
        for at in 0..MACHINES {
            if let Some(ended) = self.programs[at].try_wait().expect("it is a child") {
                assert_eq!(ended.code(), Some(3), "machine {at} was fenced");
                self.start_again(at);
            }
        }
    }

    /// Ends all in order, once the followers have executed everything, and these first, so that
    /// none is left to take over. Returns how many commands each has.
    pub(crate) fn end(&mut self) -> Vec<u64> {
        let place = self.place;
        let mut looked = Instant::now();
        let (primary, positions) = place.wait("followers", || {
            if looked.elapsed() < LOOK_EVERY {
                return Err(0);
            }
            looked = Instant::now();
            self.start_fenced();
            let primary = self.wait_for_primary(None);
            let name = self.address("trade", primary);
            let log = &mut self.log;
            let newest = log.find(u64::MAX).ok().flatten().ok_or(0_u64)?;
            let batch = thalweg_exchange::durable::replication::Batch::read(&newest.bytes);
            let end = batch.expect("it is whole").end();
            let positions = log.positions().map_err(|_| 0_u64)?;
            let followers: Vec<u64> = (positions.iter())
                .filter(|(replica, _)| *replica != name)
                .map(|(_, commands)| *commands)
                .collect();
            let are_there = followers.len() == MACHINES - 1;
            match are_there && followers.iter().all(|commands| *commands == end) {
                true => Ok((primary, followers)),
                false => Err(followers.iter().sum()),
            }
        });
        let followers = (0..MACHINES).filter(|at| *at != primary);
        for at in followers.chain([primary]) {
            // A follower may have been about to take over, and then the primary was replaced.
            while !self.end_in_order(at) {
                self.start_again(at);
            }
        }
        positions
    }
}

impl Drop for Machines<'_> {
    /// A test that fails must leave no program behind.
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}
