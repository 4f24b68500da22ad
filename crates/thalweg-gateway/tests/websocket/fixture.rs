//! A server with a gateway in a directory of its own, and clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use thalweg_client::{AdminClient, Options, Outcome, TradeClient};
use thalweg_exchange::codec::session::{AdminCommand, TradeCommand};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, Place, ResultCode, SymbolId, SymbolSpec,
    UserId,
};
use thalweg_gateway::Gateway;
use thalweg_gateway::keys::{KeyKind, NewKey, create};
use thalweg_journal::{Error, Journal, JournalOptions};
use thalweg_server::Server;
use thalweg_server::conditions::NetworkConditions;
use thalweg_server::config::Config;
use thalweg_server::flow::{Flow, Pace, Recorded, Source};
use thalweg_testkit::Scratch;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

const SYMBOLS: &str = include_str!("../symbols.toml");

pub(crate) const SYMBOL: SymbolId = SymbolId(1);

/// Sends a request as it is, and returns the response, up to the end of the connection.
pub(crate) async fn respond(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    // The other side may have answered, and closed, before it has read all.
    let _ = socket.write_all(request.as_ref()).await;
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).expect("it is text")
}

/// Returns the status, the head and the body of a response.
pub(crate) fn parts(response: &str) -> (u16, &str, &str) {
    let (head, body) = response.split_once("\r\n\r\n").expect("a response");
    (head[9..12].parse().expect("a status"), head, body)
}

/// A server that is ready: symbol 1 is BTCUSDT, users 1 to 3 have money. Prices are 0.01 USDT, lots
/// 0.0001 BTC.
pub(crate) struct Fixture {
    pub(crate) gateway: Gateway,
    pub(crate) server: Option<Server>,
    admin: AdminClient,
    pub(crate) keys: PathBuf,
    directory: Scratch,
    users: Vec<TradeClient>,
    next_order: AtomicU32,
    /// The number of the last order's command, and 1.
    placed: AtomicU64,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::listing(SYMBOLS, |_| ()).await
    }

    /// Starts a server, and makes a key of user 1.
    pub(crate) async fn with_key() -> (Self, NewKey) {
        let fixture = Self::new().await;
        let key = fixture.new_key(KeyKind::Hmac, 1);
        (fixture, key)
    }

    /// Starts a server whose configuration is changed before.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::listing(SYMBOLS, change).await
    }

    /// Starts with other symbols than those of all tests.
    pub(crate) async fn listing(symbols: &str, change: impl FnOnce(&mut Config)) -> Self {
        let directory = Scratch::new("websocket");
        std::fs::write(directory.join("symbols.toml"), symbols).expect("a file");
        std::fs::write(directory.join("api-keys.toml"), "").expect("a file");
        Self::open(directory, change).await.filled().await
    }

    /// Starts behind a network with conditions.
    pub(crate) async fn behind(conditions: NetworkConditions) -> Self {
        let directory = Scratch::new("websocket");
        std::fs::write(directory.join("symbols.toml"), SYMBOLS).expect("a file");
        std::fs::write(directory.join("api-keys.toml"), "").expect("a file");
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
            conditions: Some(Arc::new(conditions)),
        };
        let opened = Self::open_with(directory, |_| (), Some(flow)).await;
        opened.filled().await
    }

    /// Adds symbol and users.
    async fn filled(self) -> Self {
        let fixture = self;
        let spec = SymbolSpec {
            quote_scale: 1,
            ..SymbolSpec::pair(SYMBOL, CurrencyId(11), CurrencyId(20))
        };
        fixture.run(Command::AddSymbols([spec].into())).await;
        let money = || vec![(CurrencyId(11), 1 << 40), (CurrencyId(20), 1 << 50)];
        let accounts = (1..=3).map(|user| AccountSpec::new(UserId(user), money()));
        fixture.run(Command::AddAccounts(accounts.collect())).await;
        // The gateway lists the symbol when it has followed the command.
        while fixture.get("/api/v3/depth?symbol=BTCUSDT").await.0 != 200 {
            tokio::task::yield_now().await;
        }
        fixture
    }

    /// Returns the configuration of all tests.
    fn config() -> Config {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = Config::default();
        config.trade.listen = any;
        (config.admin.listen, config.http.listen) = (Some(any), None);
        config.sessions.open_orders_max = 0;
        config
    }

    /// Starts server and gateway on what is in a directory.
    async fn open(directory: Scratch, change: impl FnOnce(&mut Config)) -> Self {
        Self::open_with(directory, change, None).await
    }

    async fn open_with(
        directory: Scratch,
        change: impl FnOnce(&mut Config),
        flow: Option<Flow>,
    ) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = Self::config();
        config.gateway.listen = Some(any);
        config.gateway.weight_per_minute = 1_000_000;
        let keys = directory.join("api-keys.toml");
        let exchange = directory.join("exchange");
        config.gateway.symbols = Some(directory.join("symbols.toml"));
        config.gateway.keys = Some(keys.clone());
        change(&mut config);
        let gateway_config = config.gateway.clone();
        let server = Server::start_with(config, &exchange, flow).await;
        let mut server = server.expect("a server");
        let link = server.gateway_link().expect("a gateway is configured");
        let gateway = Gateway::start(&gateway_config, &exchange, link).await;
        let gateway = gateway.expect("a gateway");
        let addresses = server.addresses();
        let options = Options::new(addresses.admin.expect("one").to_string(), 1);
        let admin = AdminClient::connect(options).await;
        let (admin, _) = admin.expect("an administrator");
        let mut users = Vec::new();
        for user in 1..=3 {
            let options = Options::new(addresses.trade.to_string(), user);
            let (client, _) = TradeClient::connect(options).await.expect("a user");
            users.push(client);
        }
        Self {
            gateway,
            server: Some(server),
            admin,
            keys,
            directory,
            users,
            next_order: AtomicU32::new(1),
            placed: AtomicU64::new(0),
        }
    }

    /// Stops server and gateway, and starts them again.
    pub(crate) async fn restart(mut self) -> Self {
        let next_order = std::mem::take(&mut self.next_order);
        let mut started = Self::open(self.stop().await, |_| ()).await;
        started.next_order = next_order;
        started
    }

    /// Stops server and gateway, has user 1 submit commands to the same exchange without a gateway,
    /// and starts them again.
    pub(crate) async fn without_gateway(
        self,
        commands: Vec<TradeCommand>,
        change: impl Fn(&mut Config),
    ) -> Self {
        let directory = self.stop().await;
        let mut config = Self::config();
        change(&mut config);
        let server = Server::start(config, &directory.join("exchange")).await;
        let server = server.expect("a server");
        let options = Options::new(server.addresses().trade.to_string(), 1);
        let (client, _) = TradeClient::connect(options).await.expect("a user");
        for command in commands {
            let outcome = client.submit(command).await.expect("a session").await;
            assert!(is_success(&outcome), "{outcome:?}");
        }
        server.stop().await.expect("it stops in order");
        Self::open(directory, change).await
    }

    async fn stop(self) -> Scratch {
        let Self {
            gateway,
            server,
            admin,
            directory,
            users,
            ..
        } = self;
        gateway.drain();
        gateway.drained().await;
        let server = server.expect("it runs");
        server.stop().await.expect("it stops in order");
        drop((gateway, admin, users));
        // Tasks of the gateway may have its log still.
        let log = directory.join("exchange/gateway");
        while let Err(Error::InUse { .. }) = Journal::<[u8]>::open(&log, JournalOptions::default())
        {
            tokio::task::yield_now().await;
        }
        directory
    }

    /// Places a limit order of a user, at a price in hundredths of a USDT.
    pub(crate) async fn place(&self, user: i64, side: Action, price: i64, lots: i64) -> OrderId {
        // ORDERING: Relaxed; a counter.
        let order = OrderId(self.next_order.fetch_add(1, Ordering::Relaxed).into());
        let place = Place::limit((UserId(user), order), SYMBOL, side, (price, lots));
        let command = TradeCommand::try_from(Command::Place(place)).expect("a user's command");
        let client = &self.users[user as usize - 1];
        let ticket = client.submit(command).await.expect("a session");
        let outcome = ticket.await;
        let Outcome::Executed { number, result, .. } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(result, ResultCode::Success);
        // ORDERING: Relaxed; a number alone.
        self.placed.store(number + 1, Ordering::Relaxed);
        order
    }

    /// Waits until the gateway has followed the last order.
    async fn settle(&self) {
        // ORDERING: Relaxed; a number alone.
        let placed = self.placed.load(Ordering::Relaxed);
        loop {
            let (_, body) = self.get("/api/v3/depth?symbol=BTCUSDT&limit=1").await;
            let depth: Value = serde_json::from_str(&body).expect("JSON");
            if depth["lastUpdateId"].as_u64() >= Some(placed) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Runs a command of the administrator.
    pub(crate) async fn run(&self, command: Command) {
        run(&self.admin, command).await;
    }

    pub(crate) fn new_key(&self, kind: KeyKind, user: i64) -> NewKey {
        let key = create(&self.keys, kind, UserId(user), false).expect("a key");
        self.gateway.reload_keys().expect("the keys");
        key
    }

    /// Returns status and body of a request by GET.
    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n");
        let response = respond(self.gateway.address(), head).await;
        let (status, _, body) = parts(&response);
        (status, body.to_owned())
    }

    /// Returns the answer to a request by GET: after the last order.
    pub(crate) async fn json(&self, path: &str) -> Value {
        self.settle().await;
        let (status, body) = self.get(path).await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    pub(crate) async fn connect(&self, path: &str) -> Client {
        let stream = TcpStream::connect(self.gateway.address())
            .await
            .expect("a connection");
        let url = format!("ws://{}{path}", self.gateway.address());
        let (socket, _) = client_async(url, stream).await.expect("a WebSocket");
        Client(socket)
    }
}

async fn run(admin: &AdminClient, command: Command) {
    let command = AdminCommand::try_from(command).expect("an administrator's command");
    let ticket = admin.submit(command).await.expect("a session");
    let outcome = ticket.await;
    assert!(is_success(&outcome), "{outcome:?}");
}

fn is_success(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Executed {
            result: ResultCode::Success,
            ..
        }
    )
}

pub(crate) struct Client(pub(crate) WebSocketStream<TcpStream>);

impl Client {
    pub(crate) async fn send(&mut self, text: &str) {
        self.0
            .send(Message::text(text))
            .await
            .expect("it takes a message");
    }

    /// Returns the next text; `Err` with the reason where the connection is closed.
    pub(crate) async fn next(&mut self) -> Result<Value, Option<CloseFrame>> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => {
                    return Ok(serde_json::from_str(&text).expect("JSON"));
                }
                Some(Ok(Message::Close(frame))) => return Err(frame),
                Some(Ok(_)) => {}
                Some(Err(tungstenite::Error::Protocol(_) | tungstenite::Error::Io(_))) | None => {
                    return Err(None);
                }
                Some(Err(error)) => panic!("{error}"),
            }
        }
    }

    pub(crate) async fn json(&mut self) -> Value {
        self.next().await.expect("the connection is open")
    }

    /// Sends a request and returns its response; events are left out.
    pub(crate) async fn ask(&mut self, request: &Value) -> Value {
        self.send(&request.to_string()).await;
        loop {
            let answer = self.json().await;
            if answer.get("id").is_some() {
                return answer;
            }
        }
    }

    /// Returns the code with which the connection is closed; 0 without one.
    pub(crate) async fn closed_code(&mut self) -> u16 {
        loop {
            match self.next().await {
                Ok(_) => {}
                Err(frame) => return frame.map_or(0, |frame| frame.code.into()),
            }
        }
    }

    /// Returns the reason for which the connection is closed.
    pub(crate) async fn closed(&mut self) -> String {
        loop {
            match self.next().await {
                Ok(_) => {}
                Err(frame) => return frame.map_or(String::new(), |frame| frame.reason.to_string()),
            }
        }
    }
}
