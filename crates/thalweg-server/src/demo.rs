//! A market to look at: users, symbols, and traders that send made-up orders over the protocol.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use thalweg_exchange::codec::session::{
    ClientFrame, Hello, KeyBytes, ServerFrame, TradeCommand, client_frame_bytes,
    decode_server_frame, encode_client_frame, encode_submit, submit_bytes,
};
use thalweg_exchange::codec::{CodecError, SESSION_VERSION};
use thalweg_exchange::durable::{Files, JournalError, OpenError, Storage};
use thalweg_exchange::session::{ClientSequence, Role};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderFlags, OrderId, OrderType, Place, SymbolId,
    SymbolSpec, UserId,
};
use thalweg_measure::random::SplitMix;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::config::Config;
use crate::keys::{self, Key};
use crate::{Addresses, ServeError};

/// Users who trade by themselves.
const TRADERS: i64 = 4;
/// Users whose keys are shown to the person who started the demo.
const GUESTS: [i64; 2] = [7, 8];
const ADMIN: i64 = 1;
const SYMBOLS: [i32; 2] = [1, 2];
const QUOTE: CurrencyId = CurrencyId(20);
const PRICE_FIRST: i64 = 10_000;
/// Between two orders of a trader.
const PAUSE: Duration = Duration::from_millis(20);
/// Orders that a trader leaves in the book.
const RESTING: usize = 40;

/// A demonstration: where it is, and the keys of this start.
#[derive(Debug)]
pub struct Demo {
    directory: PathBuf,
    keys: Vec<(Key, String)>,
}

impl Demo {
    /// Makes keys in a directory, in place of those of an earlier start.
    ///
    /// # Errors
    /// The directory or the file cannot be made.
    pub fn prepare(directory: &Path) -> Result<Self, ServeError> {
        let file = directory.join("keys.toml");
        let failed = |source| keys::KeysError::File {
            file: file.display().to_string(),
            source,
        };
        // The keys of a demo that runs are not touched.
        let exchange = Files::new(directory.join("exchange"));
        if directory.join("exchange").is_dir() && matches!(exchange.lock(), Ok(None)) {
            let place = exchange.place();
            return Err(OpenError::Journal(JournalError::InUse { place }).into());
        }
        let mut maker = fs::DirBuilder::new();
        maker.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut maker, 0o700);
        maker
            .create(directory)
            .map_err(|source| keys::KeysError::File {
                file: directory.display().to_string(),
                source: match directory.is_file() {
                    true => io::ErrorKind::NotADirectory.into(),
                    false => source,
                },
            })?;
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error))?,
            _ => {}
        }
        let users = (1..=TRADERS).chain(GUESTS);
        let holders = users.map(|user| (Role::Trade, user));
        let mut made = Vec::new();
        for (role, holder) in holders.chain([(Role::Admin, ADMIN)]) {
            let text = keys::generate()?;
            let key = Key {
                name: format!("demo {role} {holder}"),
                role,
                holder,
                hash: keys::hash(text.as_bytes()),
            };
            keys::append(&file, &key)?;
            made.push((key, text));
        }
        Ok(Self {
            directory: directory.to_owned(),
            keys: made,
        })
    }

    /// Returns the users who have keys for the person who started the demo.
    #[must_use]
    pub fn guests() -> [UserId; 2] {
        GUESTS.map(UserId)
    }

    /// Returns the directory of the exchange.
    #[must_use]
    pub fn exchange(&self) -> PathBuf {
        self.directory.join("exchange")
    }

    /// Returns the configuration with the keys.
    #[must_use]
    pub fn configure(&self, mut config: Config) -> Config {
        config.keys.file = Some(self.directory.join("keys.toml"));
        config
    }

    /// Returns a message for the person who started the demo: which users trade, and keys to try.
    #[must_use]
    pub fn message(&self) -> String {
        let mut message = format!(
            "demo: users 1 to {TRADERS} trade symbols 1 and 2 around {PRICE_FIRST}; keys for you:\n"
        );
        for (key, text) in &self.keys {
            let holder = key.holder;
            if key.role == Role::Admin {
                message.push_str(&format!("  admin {holder}  {text}\n"));
            } else if GUESTS.contains(&holder) {
                message.push_str(&format!("  user {holder}   {text}\n"));
            }
        }
        message
    }

    fn key(&self, role: Role, holder: i64) -> &str {
        let is_it = |(key, _): &&(Key, String)| (key.role, key.holder) == (role, holder);
        self.keys.iter().find(is_it).map_or("", |(_, text)| text)
    }

    /// Sets the market up and trades until the server ends.
    pub async fn trade(&self, addresses: Addresses) {
        if let Err(error) = self.run(addresses).await {
            tracing::info!(%error, "the demo's traders have ended");
        }
    }

    async fn run(&self, addresses: Addresses) -> io::Result<()> {
        if let Some(admin) = addresses.admin {
            self.set_up(admin).await?;
        }
        let fair = Arc::new(SYMBOLS.map(|_| AtomicI64::new(PRICE_FIRST)));
        let mut traders = tokio::task::JoinSet::new();
        for user in 1..=TRADERS {
            let hello = hello(Role::Trade, user);
            let key = self.key(Role::Trade, user);
            let line = Line::connect(addresses.trade, hello, key).await?;
            let random = SplitMix::new(user as u64);
            let trader = Trader {
                user,
                line,
                random,
                fair: Arc::clone(&fair),
                resting: Vec::new(),
            };
            traders.spawn(trader.run());
        }
        while let Some(ended) = traders.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        Ok(())
    }

    async fn set_up(&self, admin: SocketAddr) -> io::Result<()> {
        let key = self.key(Role::Admin, ADMIN);
        let mut line = Line::connect(admin, hello(Role::Admin, ADMIN), key).await?;
        let pair = |id| SymbolSpec::pair(SymbolId(id), CurrencyId(10 + id), QUOTE);
        let account = |user| AccountSpec {
            uid: UserId(user),
            balances: SYMBOLS
                .map(|id| (CurrencyId(10 + id), 1 << 40))
                .into_iter()
                .chain([(QUOTE, 1 << 50)])
                .collect(),
        };
        let users = (1..=TRADERS).chain(GUESTS);
        line.submit(&Command::AddSymbols(SYMBOLS.map(pair).into()))
            .await?;
        line.submit(&Command::AddAccounts(users.map(account).collect()))
            .await?;
        line.answers(2).await
    }
}

fn hello(role: Role, holder: i64) -> Hello<'static> {
    Hello {
        version_min: u16::from(SESSION_VERSION),
        version_max: u16::from(SESSION_VERSION),
        role,
        holder,
        // Far from the numbers that people take first.
        number: 15,
        last_report: None,
        heartbeat_ms: 0,
        cancels_on_disconnect: true,
        market_data_only: false,
        key: KeyBytes(b""),
    }
}

/// A connection of the demonstration.
#[derive(Debug)]
struct Line {
    stream: TcpStream,
    bytes: Vec<u8>,
    sequence: ClientSequence,
}

impl Line {
    async fn connect(to: SocketAddr, hello: Hello<'_>, key: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let frame = ClientFrame::Hello(Hello {
            key: KeyBytes(key.as_bytes()),
            ..hello
        });
        let mut bytes = vec![0; client_frame_bytes(&frame)];
        encode_client_frame(&frame, &mut bytes).map_err(io::Error::other)?;
        stream.write_all(&bytes).await?;
        let mut line = Self {
            stream,
            bytes: Vec::new(),
            sequence: ClientSequence(0),
        };
        while line.sequence == ClientSequence(0) {
            line.read().await?;
        }
        Ok(line)
    }

    async fn submit(&mut self, command: &Command) -> io::Result<()> {
        let mut bytes = vec![0; submit_bytes(command)];
        encode_submit(self.sequence, command, &mut bytes).map_err(io::Error::other)?;
        self.sequence = self.sequence.next();
        self.stream.write_all(&bytes).await
    }

    async fn answers(&mut self, mut count: usize) -> io::Result<()> {
        while count > 0 {
            count = count.saturating_sub(self.read().await?);
        }
        Ok(())
    }

    /// Reads what comes next; gives how many answers were among it. Cancel-safe.
    async fn read(&mut self) -> io::Result<usize> {
        if self.stream.read_buf(&mut self.bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut done, mut answers) = (0, 0);
        loop {
            match decode_server_frame(&self.bytes[done..]) {
                Ok((frame, length)) => {
                    done += length;
                    match frame {
                        ServerFrame::Welcome(welcome) => {
                            self.sequence = welcome.last_executed.next();
                        }
                        ServerFrame::Answer(_) | ServerFrame::Refused(_) => answers += 1,
                        ServerFrame::Bye(bye) => return Err(io::Error::other(bye.why.text())),
                        _ => {}
                    }
                }
                Err(CodecError::Incomplete { .. }) => {
                    self.bytes.drain(..done);
                    return Ok(answers);
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

/// A trader who quotes around a price that walks at random, and sometimes takes.
#[derive(Debug)]
struct Trader {
    user: i64,
    line: Line,
    random: SplitMix,
    fair: Arc<[AtomicI64; SYMBOLS.len()]>,
    /// Orders that were sent, oldest first: where, and under which id.
    resting: Vec<(SymbolId, OrderId)>,
}

impl Trader {
    async fn run(mut self) -> io::Result<()> {
        let mut tick = tokio::time::interval(PAUSE);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => self.act().await?,
                read = self.line.read() => drop(read?),
            }
        }
    }

    async fn act(&mut self) -> io::Result<()> {
        if self.resting.len() >= RESTING {
            let (symbol, order) = self.resting.remove(0);
            let cancel = TradeCommand::cancel(UserId(self.user), symbol, order);
            return self.line.submit(cancel.as_command()).await;
        }
        let place = self.order();
        if place.order_type == OrderType::Gtc {
            self.resting.push((place.symbol, place.order_id));
        }
        self.line.submit(&Command::Place(place)).await
    }

    fn order(&mut self) -> Place {
        let m = usize::from(self.random.below(3) == 0);
        let fair = &self.fair[m];
        let step = self.random.below(3) as i64 - 1;
        // ORDERING: Relaxed, pairs with the same in other traders; a number and nothing else.
        let price = fair.fetch_add(step, Ordering::Relaxed).max(PRICE_FIRST / 2);
        let action = match self.random.below(2) {
            0 => Action::Ask,
            _ => Action::Bid,
        };
        let takes = self.random.below(8) == 0;
        let away = if takes {
            -20
        } else {
            1 + self.random.below(25) as i64
        };
        let price = match action {
            Action::Ask => price + away,
            Action::Bid => price - away,
        };
        Place {
            uid: UserId(self.user),
            symbol: SymbolId(SYMBOLS[m]),
            order_id: OrderId(self.line.sequence.0 as i64),
            action,
            order_type: if takes {
                OrderType::Ioc
            } else {
                OrderType::Gtc
            },
            price,
            reserve_price: price,
            size: 1 + self.random.below(20) as i64,
            flags: OrderFlags::NONE.with_cancel_on_disconnect(),
        }
    }
}
