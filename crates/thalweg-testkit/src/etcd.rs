//! A cluster of etcd on one machine: three nodes, each a program of its own.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::own_host;

/// The number of nodes.
pub const NODES: usize = 3;

/// Returns free ports of a host. Another program may take one before it is used, unless the host is
/// [its own](crate::own_host).
///
/// # Errors
/// The system has none.
pub fn free_ports(host: &str, count: usize) -> io::Result<Vec<u16>> {
    let listeners = (0..count).map(|_| TcpListener::bind((host, 0)));
    let listeners = listeners.collect::<io::Result<Vec<TcpListener>>>()?;
    let port = |listener: &TcpListener| Ok(listener.local_addr()?.port());
    listeners.iter().map(port).collect()
}

/// A cluster, whose nodes are killed when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    within: PathBuf,
    host: String,
    nodes: Vec<Child>,
    clients: Vec<u16>,
    peers: Vec<u16>,
}

impl Cluster {
    /// Returns whether there is an etcd on this machine.
    #[must_use]
    pub fn is_installed() -> bool {
        let found = Command::new("etcd").arg("--version").output();
        found.is_ok_and(|output| output.status.success())
    }

    /// Starts the nodes, with their data and logs in this directory. They answer some time later.
    ///
    /// # Errors
    /// There is no etcd, there are no free ports, or the directory takes no files.
    pub fn start(within: &Path) -> io::Result<Self> {
        Self::start_at(within, &own_host().to_string())
    }

    /// Starts the nodes as [`start`](Self::start) does, at another address of this machine.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_at(within: &Path, host: &str) -> io::Result<Self> {
        let ports = free_ports(host, 2 * NODES)?;
        let (clients, peers) = ports.split_at(NODES);
        let mut cluster = Self {
            within: within.to_owned(),
            host: host.to_owned(),
            nodes: Vec::new(),
            clients: clients.to_vec(),
            peers: peers.to_vec(),
        };
        for at in 0..NODES {
            let node = cluster.spawn(at)?;
            cluster.nodes.push(node);
        }
        Ok(cluster)
    }

    fn spawn(&self, at: usize) -> io::Result<Child> {
        let url = |ports: &[u16], at: usize| format!("http://{}:{}", self.host, ports[at]);
        let (client, peer) = (url(&self.clients, at), url(&self.peers, at));
        let member = |at| format!("n{at}={}", url(&self.peers, at));
        let members: Vec<String> = (0..NODES).map(member).collect();
        let data = self.within.join(format!("etcd-{at}"));
        let log = File::create(self.within.join(format!("etcd-{at}.log")))?;
        Command::new("etcd")
            .args(["--name", &format!("n{at}")])
            .arg("--data-dir")
            .arg(data)
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &members.join(",")])
            .args(["--heartbeat-interval", "60", "--election-timeout", "300"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
    }

    /// Returns the address of a log with this prefix.
    #[must_use]
    pub fn url(&self, prefix: &str) -> String {
        let host = |port| format!("{}:{port}", self.host);
        let hosts: Vec<String> = self.clients.iter().map(host).collect();
        format!("etcd://{}/{prefix}", hosts.join(","))
    }

    /// Returns the node that says that it is the leader, if there is one.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        (0..NODES).find(|at| self.is_leader(*at))
    }

    fn is_leader(&self, at: usize) -> bool {
        let Ok(mut stream) = TcpStream::connect((self.host.as_str(), self.clients[at])) else {
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

    /// Kills a node, as by `kill -9`.
    ///
    /// # Errors
    /// It does not run.
    pub fn kill(&mut self, at: usize) -> io::Result<()> {
        self.nodes[at].kill()?;
        self.nodes[at].wait().map(drop)
    }

    /// Starts a node again that was killed.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_again(&mut self, at: usize) -> io::Result<()> {
        self.nodes[at] = self.spawn(at)?;
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}
