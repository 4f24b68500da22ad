//! A server of a test, in a directory of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use thalweg_exchange::codec::session::Welcome;
use thalweg_exchange::durable::{Files, Finished, SimDisk};
use thalweg_exchange::session::Role;
use thalweg_exchange::{AccountSpec, Command, CurrencyId, SymbolId, SymbolSpec, UserId};
use thalweg_server::conditions::NetworkConditions;
use thalweg_server::config::Config;
use thalweg_server::flow::{Flow, Pace, Recorded, Source};
use thalweg_server::{Addresses, ServeError, Server, SystemClock};
use thalweg_testkit::Scratch;
use tokio::runtime::{Builder, Runtime};

use crate::client::{Client, hello};
use crate::jumping::JumpingClock;
use crate::limited::Limited;

pub(crate) struct TestServer {
    runtime: Runtime,
    running: Option<Server>,
    config: Config,
    directory: Scratch,
    place: Place,
}

/// Where the exchange of a server is.
pub(crate) enum Place {
    /// In the server's directory.
    Directory,
    Disk(SimDisk),
    Limited(Limited),
    /// In the server's directory, behind a network with conditions.
    Behind(Arc<NetworkConditions>),
    /// In the server's directory, by another clock.
    Time(JumpingClock),
}

/// Makes a directory for a test.
pub(crate) fn scratch() -> Scratch {
    Scratch::new("serving")
}

/// Any free ports, no clock, no limit of open orders (it is a command of its own), and heartbeats
/// that no test waits for by chance.
pub(crate) fn config() -> Config {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = Config::default();
    config.trade.listen = any;
    config.admin.listen = Some(any);
    config.http.listen = Some(any);
    config.exchange.clock_ms = 0;
    config.sessions.heartbeat_ms = 600_000;
    config.sessions.open_orders_max = 0;
    config.journal.segment_bytes = 4 << 20;
    config
}

impl TestServer {
    /// A server that is ready, without users and symbols.
    pub(crate) fn new(change: impl FnOnce(&mut Config)) -> TestServer {
        TestServer::on(Place::Directory, change)
    }

    /// With the exchange somewhere else.
    pub(crate) fn on(place: Place, change: impl FnOnce(&mut Config)) -> TestServer {
        let mut config = config();
        change(&mut config);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let mut server = TestServer {
            runtime,
            running: None,
            config,
            directory: scratch(),
            place,
        };
        server.start();
        server
    }

    /// With symbol 1, and users 1 to 9 who have money.
    pub(crate) fn with_market(change: impl FnOnce(&mut Config)) -> TestServer {
        let server = TestServer::new(change);
        server.set_market();
        server
    }

    pub(crate) fn set_market(&self) {
        let (mut admin, _) = self.admin();
        admin.submit(1, &symbols(&[1]));
        admin.submit(2, &accounts(1..=9));
        admin.succeeds(1);
        admin.succeeds(2);
    }

    pub(crate) fn start(&mut self) {
        let started = self.try_start();
        self.running = Some(started.expect("the server starts"));
    }

    /// Another server with the same configuration and directory.
    pub(crate) fn try_start(&self) -> Result<Server, ServeError> {
        let config = self.config.clone();
        let runtime = &self.runtime;
        match &self.place {
            Place::Directory => runtime.block_on(Server::start(config, &self.directory)),
            Place::Disk(disk) => {
                runtime.block_on(Server::start_in(config, disk.clone(), SystemClock))
            }
            Place::Limited(disk) => {
                runtime.block_on(Server::start_in(config, disk.clone(), SystemClock))
            }
            Place::Behind(conditions) => {
                // Conditions come with a market; this one does nothing.
                let flow = Flow {
                    name: "empty".to_owned(),
                    identity: 4,
                    source: Source::Recorded(Recorded {
                        events: Vec::new(),
                        between: Vec::new(),
                    }),
                    pace: Pace {
                        speed: None,
                        from: 0,
                    },
                    conditions: Some(Arc::clone(conditions)),
                };
                runtime.block_on(Server::start_with(config, &self.directory, Some(flow)))
            }
            Place::Time(time) => {
                let files = Files::new(&*self.directory);
                runtime.block_on(Server::start_in(config, files, time.clone()))
            }
        }
    }

    pub(crate) fn running(&self) -> &Server {
        self.running.as_ref().expect("it runs")
    }

    pub(crate) fn stop(&mut self) {
        self.try_stop().expect("it stops in order");
    }

    pub(crate) fn try_stop(&mut self) -> Result<Finished, ServeError> {
        let server = self.running.take().expect("it runs");
        self.runtime.block_on(server.stop())
    }

    /// Drops the server without a stop.
    pub(crate) fn abandon(&mut self) {
        self.running = None;
    }

    pub(crate) fn addresses(&self) -> Addresses {
        self.running().addresses()
    }

    pub(crate) fn trade_address(&self) -> SocketAddr {
        self.addresses().trade
    }

    pub(crate) fn trade(&self, user: i64) -> (Client, Welcome) {
        Client::connect(self.trade_address(), hello(Role::Trade, user))
    }

    pub(crate) fn admin(&self) -> (Client, Welcome) {
        let address = self.addresses().admin.expect("it was asked for");
        Client::connect(address, hello(Role::Admin, 1))
    }

    /// A page of the HTTP listener: its status and its body.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        use std::io::{Read, Write};
        let address = self.addresses().http.expect("it was asked for");
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    /// Other clients are served: a command of user 9 goes through.
    #[track_caller]
    pub(crate) fn serves(&self) {
        let (mut client, welcome) = self.trade(9);
        let sequence = welcome.last_executed.0 + 1;
        let user = UserId(9);
        let symbol = None;
        let cancel_all = Command::cancel_all(Some(user), symbol);
        client.submit(sequence, &cancel_all);
        client.succeeds(sequence);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(server) = self.running.take() {
            let _ = self.runtime.block_on(server.stop());
        }
    }
}

pub(crate) fn symbols(ids: &[i32]) -> Command {
    let pair = |id: &i32| SymbolSpec::pair(SymbolId(*id), CurrencyId(10), CurrencyId(20));
    Command::AddSymbols(ids.iter().map(pair).collect())
}

pub(crate) fn accounts(users: impl Iterator<Item = i64>) -> Command {
    let account = |user| AccountSpec {
        uid: UserId(user),
        balances: vec![(CurrencyId(10), 1 << 40), (CurrencyId(20), 1 << 50)],
    };
    let accounts: Vec<AccountSpec> = users.map(account).collect();
    Command::AddAccounts(Arc::from(accounts))
}
