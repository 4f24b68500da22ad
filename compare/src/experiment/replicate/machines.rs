//! Three nodes of etcd and three replicas, each a process of its own.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{self, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_etcd::{Address, EtcdLog};
use thalweg_exchange::Command;
use thalweg_exchange::durable::replication::{CommandLog, FollowOptions};
use thalweg_server::config::Config;
use thalweg_server::{Replication, Server};
use thalweg_testkit::etcd::{Cluster, free_ports};
use thalweg_testkit::{Scratch, own_host};

use crate::experiment::serve::child::{Child, configuration, runtime};
use crate::experiment::serve::session::administer;
use crate::runner::text;

/// The work of a child that is a replica; its directory, the addresses of its listeners and that of
/// the log follow, and `bootstrap` at one of them.
const REPLICA: &str = "replica";
const MACHINES: usize = 3;
const PREFIX: &str = "compare/exchange";
/// Etcd and the replicas may take this long until they answer.
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Asks again until there is an answer.
pub(super) fn wait<T>(
    what: &str,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let began = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(error) if began.elapsed() >= TIMEOUT => return Err(format!("{what}: {error}")),
            Err(_) => thread::park_timeout(LOOK_EVERY),
        }
    }
}

/// A cluster of etcd, with its directory.
pub(super) struct Etcd {
    pub(super) cluster: Cluster,
    _directory: Scratch,
}

impl Etcd {
    /// Starts a cluster, and waits until it answers. Returns it with the log there.
    pub(super) fn start() -> Result<(Self, EtcdLog), String> {
        if !Cluster::is_installed() {
            return Err("there is no etcd on this machine".to_owned());
        }
        let directory = Scratch::new("replicate");
        let cluster = Cluster::start(&directory).map_err(text)?;
        let address: Address = cluster.url(PREFIX).parse().map_err(text)?;
        let mut log = EtcdLog::new(address).map_err(text)?;
        wait("etcd", || log.read(0).map_err(text))?;
        let etcd = Self {
            cluster,
            _directory: directory,
        };
        Ok((etcd, log))
    }
}

/// The replicas, and their cluster.
pub(super) struct Machines {
    children: Vec<Child>,
    pub(super) etcd: Etcd,
    log: EtcdLog,
}

impl Machines {
    pub(super) fn start() -> Result<Self, String> {
        let (etcd, log) = Etcd::start()?;
        let host = own_host();
        let ports = free_ports(&host.to_string(), 2 * MACHINES).map_err(text)?;
        let address = |port: u16| SocketAddr::from((host, port));
        let (url, mut children) = (etcd.cluster.url(PREFIX), Vec::new());
        for (at, ports) in ports.chunks(2).enumerate() {
            let listeners = [address(ports[0]), address(ports[1])];
            let directory = Scratch::new("replicate");
            let mut words = vec![REPLICA.to_owned(), directory.display().to_string()];
            words.extend(listeners.map(|listener| listener.to_string()));
            words.push(url.clone());
            words.extend((at == 0).then(|| "bootstrap".to_owned()));
            children.push(Child::start_at(&words, directory, listeners)?);
        }
        Ok(Self {
            children,
            etcd,
            log,
        })
    }

    pub(super) fn trade(&self, at: usize) -> SocketAddr {
        self.children[at].trade
    }

    pub(super) fn child(&self, at: usize) -> &Child {
        &self.children[at]
    }

    /// Returns the addresses at which the primary may be.
    pub(super) fn all(&self) -> Vec<SocketAddr> {
        self.children.iter().map(|child| child.trade).collect()
    }

    /// Waits for the primary, until it takes connections.
    pub(super) fn primary(&mut self) -> Result<usize, String> {
        let (log, children) = (&mut self.log, &self.children);
        wait("a primary", || {
            let claim = log.read(u64::MAX).map_err(text)?.claim.ok_or("no claim")?;
            let is_it = |child: &Child| child.trade.to_string() == claim.holder;
            let found = children.iter().position(is_it).ok_or("an unknown one")?;
            TcpStream::connect(children[found].trade).map_err(text)?;
            Ok(found)
        })
    }

    /// Sends commands to the primary as an administrator.
    pub(super) fn administer(&mut self, commands: &[Command]) -> Result<(), String> {
        let primary = self.primary()?;
        let admin = self.children[primary].admin.ok_or("it has none")?;
        // It may not serve yet; what is sent again has its first answer.
        wait("an administrator", || administer(admin, commands))
    }

    pub(super) fn kill(&mut self, at: usize) -> Result<(), String> {
        self.children[at].kill().map_err(text)
    }

    /// Kills the leader of etcd.
    pub(super) fn kill_leader(&mut self) -> Result<(), String> {
        let cluster = &mut self.etcd.cluster;
        let leader = wait("a leader", || cluster.leader().ok_or("none".to_owned()))?;
        cluster.kill(leader).map_err(text)
    }
}

/// Runs a replica if these are the words of one, until its standard input ends.
pub(crate) fn child(words: &[String]) -> Option<ExitCode> {
    let (work, words) = words.split_first()?;
    if work != REPLICA {
        return None;
    }
    let ended = match words {
        [directory, trade, admin, url, rest @ ..] => serve(
            Path::new(directory),
            [trade, admin],
            (url, !rest.is_empty()),
        ),
        _ => Err("a replica needs a directory, two addresses and a log".to_owned()),
    };
    Some(match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => crate::refuse(&error),
    })
}

fn serve(
    directory: &Path,
    [trade, admin]: [&str; 2],
    (url, bootstrap): (&str, bool),
) -> Result<(), String> {
    // A follower's start returns when it is the primary.
    thread::spawn(|| {
        let _ = io::stdin().lock().read(&mut [0]);
        process::exit(0);
    });
    let listeners = [trade.parse().map_err(text)?, admin.parse().map_err(text)?];
    let config = configuration(listeners, Config::default().journal.sync);
    let log = EtcdLog::new(url.parse::<Address>().map_err(text)?).map_err(text)?;
    let mut options = FollowOptions::new(trade);
    options.bootstrap = bootstrap;
    let replication = Replication {
        log: Box::new(log),
        options,
        peer_listen: None,
    };
    runtime()?.block_on(async {
        let server = Server::start_replicated(config, directory, replication).await;
        let server = server.map_err(text)?;
        server.failed().await;
        server.stop().await.map(drop).map_err(text)
    })
}
