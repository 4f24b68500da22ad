//! Three nodes of etcd and three replicas, each a program of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thalweg_etcd::{Address, EtcdLog};
use thalweg_exchange::durable::replication::CommandLog;

use super::network::{ETCD, Network};
use crate::served_kills::served::Folder;

pub(crate) const MACHINES: usize = 3;
/// How often a test looks at the log, which has other work.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const PREFIX: &str = "test/exchange";

/// Kills a program at once, and waits for its end.
fn kill(child: &mut Child) {
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
}

/// Returns free ports. Another program may take one before it is used; then the test fails.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let listeners: Vec<TcpListener> = listeners.collect();
    let port = |listener: &TcpListener| listener.local_addr().expect("it is bound").port();
    listeners.iter().map(port).collect()
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
    host: &'static str,
    nodes: Vec<Child>,
    clients: Vec<u16>,
    peers: Vec<u16>,
}

impl<'p> Etcd<'p> {
    pub(crate) fn start(place: &'p Folder, network: Option<Network>) -> Self {
        let ports = free_ports(2 * MACHINES);
        let (clients, peers) = ports.split_at(MACHINES);
        let mut etcd = Self {
            place,
            host: network.map_or("127.0.0.1", |_| ETCD),
            nodes: Vec::new(),
            clients: clients.to_vec(),
            peers: peers.to_vec(),
        };
        for at in 0..MACHINES {
            let node = etcd.spawn(at);
            etcd.nodes.push(node);
        }
        let mut log = etcd.log();
        place.wait("etcd", || log.read(0).map_err(|_| 0));
        etcd
    }

    fn spawn(&self, at: usize) -> Child {
        let url = |ports: &[u16], at: usize| format!("http://{}:{}", self.host, ports[at]);
        let (client, peer) = (url(&self.clients, at), url(&self.peers, at));
        let member = |at| format!("n{at}={}", url(&self.peers, at));
        let cluster: Vec<String> = (0..MACHINES).map(member).collect();
        let mut program = Command::new("etcd");
        program.args(["--name", &format!("n{at}")]);
        program
            .arg("--data-dir")
            .arg(self.place.within.join(format!("etcd-{at}")));
        program.args([
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ]);
        program.args([
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
        ]);
        program.args(["--initial-cluster", &cluster.join(",")]);
        program.args(["--heartbeat-interval", "60", "--election-timeout", "300"]);
        let log = File::create(self.place.within.join(format!("etcd-{at}.log")));
        program
            .stdout(Stdio::null())
            .stderr(log.expect("there is room"));
        program.spawn().expect("it starts")
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> = (self.clients.iter())
            .map(|port| format!("{}:{port}", self.host))
            .collect();
        format!("etcd://{}/{PREFIX}", hosts.join(","))
    }

    pub(crate) fn log(&self) -> EtcdLog {
        let address: Address = self.url().parse().expect("an address");
        EtcdLog::new(address).expect("a poll")
    }

    /// Returns whether a node says that it is the leader.
    fn is_leader(&self, at: usize) -> bool {
        let Ok(mut stream) = TcpStream::connect((self.host, self.clients[at])) else {
            return false;
        };
        let request = "POST /v3/maintenance/status HTTP/1.1\r\nHost: etcd\r\nContent-Length: 2\r\n\
                       Connection: close\r\n\r\n{}";
        let mut answer = String::new();
        let asked = stream.write_all(request.as_bytes());
        if asked.is_err() || stream.read_to_string(&mut answer).is_err() {
            return false;
        }
        let text = |name: &str| {
            let (_, rest) = answer.split_once(&format!("\"{name}\":\""))?;
            rest.split('"').next()
        };
        text("leader").is_some_and(|leader| leader != "0" && text("member_id") == Some(leader))
    }

    /// Waits until there is a leader. Returns which it is.
    pub(crate) fn leader(&self) -> usize {
        (self.place).wait("a leader", || {
            (0..MACHINES).find(|at| self.is_leader(*at)).ok_or(0)
        })
    }

    pub(crate) fn kill(&mut self, at: usize) {
        kill(&mut self.nodes[at]);
    }

    pub(crate) fn start_again(&mut self, at: usize) {
        self.nodes[at] = self.spawn(at);
    }
}

impl Drop for Etcd<'_> {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}

/// The replicas.
pub(crate) struct Machines<'p> {
    place: &'p Folder,
    network: Option<Network>,
    pub(crate) url: String,
    log: EtcdLog,
    ports: Vec<u16>,
    programs: Vec<Child>,
}

impl<'p> Machines<'p> {
    pub(crate) fn start(place: &'p Folder, etcd: &Etcd<'_>, network: Option<Network>) -> Self {
        let mut machines = Self {
            place,
            network,
            url: etcd.url(),
            log: etcd.log(),
            ports: free_ports(2 * MACHINES),
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

    pub(crate) fn address(&self, listener: &str, at: usize) -> String {
        let first = if listener == "trade" { 0 } else { MACHINES };
        let loopback = || "127.0.0.1".to_owned();
        let host = self.network.map_or_else(loopback, |_| Network::host(at));
        format!("{host}:{}", self.ports[first + at])
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
        program.args(["--http", "127.0.0.1:0", "--replicate", &self.url]);
        if at == 0 {
            program.arg("--bootstrap");
        }
        program.stdout(Stdio::null()).stderr(log_of(self.place));
        program.spawn().expect("it starts")
    }

    /// Waits until a machine is the primary and serves clients: another one than `before`.
    pub(crate) fn wait_for_primary(&mut self, before: Option<usize>) -> usize {
        let trade: Vec<String> = (0..MACHINES).map(|at| self.address("trade", at)).collect();
        let (log, mut looked) = (&mut self.log, Instant::now());
        self.place.wait("a primary", || {
            if looked.elapsed() < LOOK_EVERY {
                return Err(0);
            }
            looked = Instant::now();
            let claim = log
                .read(u64::MAX)
                .ok()
                .and_then(|tail| tail.claim)
                .ok_or(0_u64)?;
            let found = trade.iter().position(|address| *address == claim.holder);
            let found = found
                .filter(|found| Some(*found) != before)
                .ok_or(claim.epoch)?;
            let connected = TcpStream::connect(&claim.holder);
            connected.map(|_| found).map_err(|_| claim.epoch)
        })
    }

    pub(crate) fn kill(&mut self, at: usize) {
        kill(&mut self.programs[at]);
    }

    /// Stops a machine, until it is let go on.
    pub(crate) fn stop(&mut self, at: usize) {
        signal(&self.programs[at], "-STOP");
    }

    pub(crate) fn go_on(&mut self, at: usize) {
        signal(&self.programs[at], "-CONT");
    }

    /// Asks a machine to end in order, and waits for that.
    pub(crate) fn end_in_order(&mut self, at: usize) {
        signal(&self.programs[at], "-TERM");
        let code = self.ended(at);
        let is_in_order = matches!(code, Some(0 | 143));
        assert!(is_in_order, "machine {at} ended with {code:?}");
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

    /// Ends all, once the followers have executed everything. Returns how many commands each has.
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
        for at in [primary]
            .into_iter()
            .chain((0..MACHINES).filter(|at| *at != primary))
        {
            self.end_in_order(at);
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
