//! The server's configuration: a TOML file in which every option has a default.

mod durable;
mod error;
mod fields;
mod range;

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use self::durable::durable_options;
pub use self::error::ConfigError;
pub(crate) use self::error::line_of;
use self::error::line_of_option;
use self::fields::{address_or_none, ip_or_none, path_or_none};
use self::range::Range;

/// The default configuration with a comment for each option, as `--print-config` prints it.
pub const DEFAULT_TEXT: &str = include_str!("default.toml");

/// The longest frame that an option may allow: the journal's default blocks take its command.
pub(crate) const FRAME_BYTES_MAX: u32 = 327_600;

/// Makes a section of options, each with its default; after a semicolon, with the numbers that are
/// possible.
macro_rules! section {
    ($(#[$doc:meta])* $section:literal $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr $(; $possible:expr)?,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            fn ranges(&self) -> Vec<Range> {
                vec![$($(Range::new(
                    (concat!($section, ".", stringify!($field)), self.$field),
                    $possible,
                ),)?)*]
            }
        }
    };
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
}

/// From which level on lines are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// By which rules the exchange trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RulesSetting {
    /// `Rules::default()`.
    Default,
    /// `Rules::REFERENCE`.
    Reference,
}

/// When a command counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncSetting {
    /// When it is on disk.
    Always,
    /// When the system has it.
    Never,
}

/// The configuration. Fields are documented in [`DEFAULT_TEXT`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[trade]`
    pub trade: Trade,
    /// `[admin]`
    pub admin: Admin,
    /// `[http]`
    pub http: Http,
    /// `[gateway]`
    pub gateway: Gateway,
    /// `[keys]`
    pub keys: KeysConfig,
    /// `[server]`
    pub server: Threads,
    /// `[sessions]`
    pub sessions: Sessions,
    /// `[market]`
    pub market: Market,
    /// `[exchange]`
    pub exchange: Exchange,
    /// `[journal]`
    pub journal: Journal,
    /// `[snapshots]`
    pub snapshots: Snapshots,
}

section! {
    /// `[trade]`
    "trade" Trade {
        /// Where trade and read sessions connect.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7411)),
    }
}

section! {
    /// `[admin]`
    "admin" Admin {
        /// Where admin sessions connect, if anywhere.
        #[serde(with = "address_or_none")]
        listen: Option<SocketAddr> = Some(SocketAddr::from(([127, 0, 0, 1], 7412))),
        /// Where lines about their commands go beside the log.
        #[serde(with = "path_or_none")]
        audit_file: Option<PathBuf> = None,
    }
}

section! {
    /// `[http]`
    "http" Http {
        /// Where metrics are served, if anywhere.
        #[serde(with = "address_or_none")]
        listen: Option<SocketAddr> = Some(SocketAddr::from(([127, 0, 0, 1], 7413))),
    }
}

section! {
    /// `[gateway]`
    "gateway" Gateway {
        /// Where trading programs connect by HTTP and WebSocket, if anywhere.
        #[serde(with = "address_or_none")]
        listen: Option<SocketAddr> = None,
        /// Whether `listen` may be another address than a loopback one.
        allow_remote: bool = false,
        /// The address of the proxy that says which clients it stands for, if there is one.
        #[serde(with = "ip_or_none")]
        proxy: Option<IpAddr> = None,
        /// The file of symbols and assets; beside the exchange if none.
        #[serde(with = "path_or_none")]
        symbols: Option<PathBuf> = None,
        /// The file of API keys; beside the exchange if none.
        #[serde(with = "path_or_none")]
        keys: Option<PathBuf> = None,
        /// Whether all who connect may see the server's figures.
        instruments: bool = true,
        /// Threads for requests.
        worker_threads: usize = 2; 1..=64,
        /// Connections at once.
        connections_max: usize = 4_096; 1..=1 << 20,
        /// Request weight a minute of an address.
        weight_per_minute: u32 = 6_000; 1..=u32::MAX.into(),
        /// New orders in ten seconds of a user.
        orders_per_10s: u32 = 100; 1..=u32::MAX.into(),
        /// New orders a day of a user.
        orders_per_day: u32 = 200_000; 1..=u32::MAX.into(),
        /// Closed orders and trades of a user that are kept.
        orders_kept: usize = 10_000; 1..=1 << 18,
        /// Bytes of the log after which a checkpoint takes their place.
        checkpoint_bytes: u64 = 32 << 20; 1 << 16..=1 << 40,
        /// Whether the log has a line for each request.
        access_log: bool = false,
    }
}

section! {
    /// `[keys]`
    "keys" KeysConfig {
        /// The file of the keys, if there are any.
        #[serde(with = "path_or_none")]
        file: Option<PathBuf> = None,
    }
}

section! {
    /// `[server]`
    "server" Threads {
        /// Threads for connections.
        worker_threads: usize = 1; 1..=64,
        /// Connections at once.
        connections_max: usize = 8192; 1..=1 << 20,
        /// Connections a second, of each listener; 0 for no limit.
        connects_per_s: u32 = 2_000,
        /// Connections a second of an address; 0 for no limit.
        connects_per_address_s: u32 = 500,
        /// How log lines look.
        log: LogFormat = LogFormat::Text,
        /// Which are logged.
        log_level: LogLevel = LogLevel::Info,
    }
}

section! {
    /// `[sessions]`
    "sessions" Sessions {
        /// Time for a hello.
        hello_ms: u64 = 5_000; 1..=600_000,
        /// Time that a wrong key costs.
        wrong_key_ms: u64 = 200; 0..=60_000,
        /// Heartbeats of clients that ask for no other time.
        heartbeat_ms: u32 = 5_000,
        /// The shortest that a client may ask for.
        heartbeat_min_ms: u32 = 100; 1..=HEARTBEAT_MS_MAX,
        /// The longest frame of a trade or read session.
        frame_bytes_max: u32 = 1 << 16; 1024..=FRAME_BYTES_MAX.into(),
        /// The longest frame of an admin session.
        admin_frame_bytes_max: u32 = FRAME_BYTES_MAX; 1024..=FRAME_BYTES_MAX.into(),
        /// Bytes that may wait for a slow client.
        out_bytes_max: usize = 4 << 20; 1 << 14..=1 << 32,
        /// Bytes that may wait for all clients together.
        out_bytes_total: usize = 256 << 20,
        /// Bytes that the system may hold for it; 0 for the system's default.
        socket_bytes: u32 = 1 << 18; 0..=1 << 30,
        /// How long a client may take nothing.
        stall_ms: u64 = 30_000; 1..=3_600_000,
        /// Commands a second; 0 for no limit.
        rate_per_s: u32 = 200_000,
        /// Commands at once.
        rate_burst: u32 = 50_000; 1..=u32::MAX.into(),
        /// Sessions of a holder.
        per_holder: u32 = 16; 1..=1 << 16,
        /// Connections that read, of a holder of a read key.
        readers_per_holder: u32 = 1_024; 1..=1 << 20,
        /// Connections a second of a holder; 0 for no limit.
        connects_per_s: u32 = 100,
        /// Sessions of all.
        remembered_max: u32 = 1 << 14; 1..=1 << 20,
        /// Answers kept of a session, and commands in flight.
        answers_kept: u32 = 1024; 1..=1 << 20,
        /// Reports kept of a user.
        reports_kept: u32 = 1024; 1..=1 << 20,
        /// Reports kept of all users.
        reports_max: u32 = 1 << 20; 16..=1 << 30,
        /// Open orders of a user; 0 for no limit from here.
        open_orders_max: u32 = 1_000,
    }
}

section! {
    /// `[market]`
    "market" Market {
        /// Whether the feed has trades.
        trades: bool = true,
        /// Whether the feed has best prices.
        best: bool = true,
        /// Levels a side in a snapshot; 0 for all.
        snapshot_levels: usize = 1_000,
        /// Chunks that wait for readers.
        ring_chunks: usize = 256; 2..=1 << 16,
    }
}

section! {
    /// `[exchange]`
    "exchange" Exchange {
        /// The rules of a new exchange.
        rules: RulesSetting = RulesSetting::Default,
        /// Commands in flight.
        capacity: usize = 4096; 1..=1 << 20,
        /// How often the clock is set.
        clock_ms: u64 = 1_000; 0..=3_600_000,
    }
}

section! {
    /// `[journal]`
    "journal" Journal {
        /// When a command is durable.
        sync: SyncSetting = SyncSetting::Always,
        /// The length of a segment.
        segment_bytes: u64 = 32 << 20,
        /// Where segments and snapshots go that are no longer needed, in place of being deleted.
        #[serde(with = "path_or_none")]
        archive: Option<PathBuf> = None,
    }
}

section! {
    /// `[snapshots]`
    "snapshots" Snapshots {
        /// The number of bytes of commands after which a snapshot is made.
        every_bytes: u64 = 256 << 20; 1..=1 << 40,
        /// After so long.
        every_s: u64 = 600; 1..=31_536_000,
        /// How many are kept.
        kept: usize = 2; 1..=100,
    }
}

/// The longest configuration, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Reads a file of text. A device such as `/dev/zero` has no end: longer than the limit is an
/// error.
pub(crate) fn read_text(path: &Path, limit_bytes: u64) -> io::Result<String> {
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(limit_bytes + 1).read_to_end(&mut text)?;
    if text.len() as u64 > limit_bytes {
        let what = format!("larger than the limit of {limit_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

impl Config {
    /// Reads a configuration from a file.
    ///
    /// # Errors
    /// The file cannot be read, or says something that is not possible; the error names the line.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = read_text(path, CONFIG_BYTES_MAX).map_err(|source| ConfigError::Read {
            file: name.clone(),
            source,
        })?;
        Self::parse(&name, &text)
    }

    /// Reads a configuration from `text`; errors call it `file`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|e| ConfigError::parse(file, text, &e))?;
        match config.check(file) {
            Err(mut error @ ConfigError::Range { .. }) => {
                if let ConfigError::Range { line, option, .. } = &mut error {
                    *line = line_of_option(text, option);
                }
                Err(error)
            }
            checked => checked.map(|()| config),
        }
    }

    /// Checks that all values are within their limits. A configuration need not have been read from
    /// a file.
    ///
    /// # Errors
    /// [`ConfigError::Range`], or [`ConfigError::Open`] where any client could connect as any user.
    pub fn check(&self, file: &str) -> Result<(), ConfigError> {
        let is_wrong = |range: &Range| {
            !range.possible.contains(&range.value) || !range.value.is_multiple_of(range.step)
        };
        if let Some(wrong) = self.ranges().into_iter().find(is_wrong) {
            return Err(ConfigError::Range {
                file: file.to_owned(),
                line: None,
                option: wrong.option,
                value: wrong.value,
                step: wrong.step,
                min: *wrong.possible.start(),
                max: *wrong.possible.end(),
            });
        }
        if self.keys.file.is_none() {
            self.is_closed()?;
        }
        let gateway = self.gateway.listen.filter(|at| !at.ip().is_loopback());
        if let Some(address) = gateway.filter(|_| !self.gateway.allow_remote) {
            return Err(ConfigError::Plain { address });
        }
        Ok(())
    }

    /// Without keys, only programs of this machine may come.
    fn is_closed(&self) -> Result<(), ConfigError> {
        let places = [
            ("trade.listen", Some(self.trade.listen)),
            ("admin.listen", self.admin.listen),
        ];
        for (option, address) in places {
            if let Some(address) = address.filter(|address| !address.ip().is_loopback()) {
                return Err(ConfigError::Open { option, address });
            }
        }
        Ok(())
    }
}

/// The longest time between heartbeats that a client may ask for: an hour.
pub(crate) const HEARTBEAT_MS_MAX: u64 = 3_600_000;

#[cfg(test)]
mod tests;
