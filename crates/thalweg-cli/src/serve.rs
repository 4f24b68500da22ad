//! `thalweg exchange serve` and `key`.

use crate::arguments::values::Format;
use crate::failure::{Failure, Finding};
use crate::market::MarketOptions;
use crate::output::print;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use thalweg_exchange::UserId;
use thalweg_exchange::session::Role;
use thalweg_gateway::Gateway;
use thalweg_gateway::demo::DemoKeys;
use thalweg_gateway::keys::{self as api_keys, KeyKind};
use thalweg_server::config::{self, Config, DEFAULT_TEXT};
use thalweg_server::demo::Demo;
use thalweg_server::flow::Flow;
use thalweg_server::{Addresses, Replication, ServeError, Server, keys, logs};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a replica whose place another one has taken.
const FENCED: u8 = 3;

const SERVE_EXAMPLES: &str = "\
Examples:
  thalweg exchange serve --demo
      A market that trades by itself, with keys to try, on loopback addresses
  thalweg exchange serve --demo --market btc.csv.gz --speed 10x --loop
      A recorded market (docs/market.md) to trade against
  thalweg exchange serve --demo --latency in=5ms,out=normal:5ms:1ms --faults drop=0.01
      A market behind a slow network that loses orders, to test a trading program
  thalweg exchange serve --print-config > serve.toml
      The configuration with its defaults and comments, to be changed
  thalweg exchange serve /var/lib/thalweg --config serve.toml
      An exchange in that directory
  curl -s http://127.0.0.1:7413/metrics
      Its figures, for Prometheus";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// The directory of the exchange; of a demo [default: thalweg-demo among temporary files]
    #[arg(value_name = "DIR", required_unless_present_any = ["print_config", "demo"])]
    pub(crate) directory: Option<PathBuf>,

    /// The configuration, TOML [default: what --print-config prints]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the default configuration with a comment for each option, and end
    #[arg(long)]
    print_config: bool,

    /// Make a market, made up unless --market names one, and users with keys that are printed
    #[arg(long, conflicts_with_all = ["key_file", "print_config"])]
    demo: bool,

    #[command(flatten)]
    market: MarketOptions,

    /// The file of the keys' hashes, in place of keys.file of the configuration
    #[arg(long, alias = "keys", value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Where trade and read sessions connect, in place of trade.listen; port 0 for any that is free
    #[arg(long, alias = "trade", value_name = "ADDRESS")]
    trade_listen: Option<SocketAddr>,

    /// Where admin sessions connect, in place of admin.listen
    #[arg(long, alias = "admin", value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,

    /// Where metrics are served, in place of http.listen
    #[arg(long, alias = "http", value_name = "ADDRESS")]
    http_listen: Option<SocketAddr>,

    /// Serve Binance Spot's API as well, in place of gateway.listen; without an address at
    /// 127.0.0.1:7414
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:7414"
    )]
    gateway: Option<SocketAddr>,

    /// The symbols and assets of the gateway, in place of gateway.symbols
    #[arg(long, value_name = "FILE")]
    symbols: Option<PathBuf>,

    /// The API keys of the gateway, in place of gateway.keys
    #[arg(long, value_name = "FILE")]
    api_keys: Option<PathBuf>,

    #[cfg(feature = "etcd")]
    #[command(flatten)]
    replica: crate::replicas::ReplicaOptions,

    /// Format of the addresses on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key: it is printed once, or written to a file, and its SHA-256 added to another
    ///
    /// Only the hash is kept: a reader of the file cannot connect with it, and a key that is
    /// lost must be replaced. A server that runs reads its keys again at SIGHUP.
    ///
    /// Exit code: 0 fine; 2 misuse, or a file that cannot be read or written.
    #[command(after_help = "\
Examples:
  thalweg exchange key new --user 7 --role trade --output seven.key
  thalweg exchange key new --user 7 --role read --name dashboard --key-file /etc/thalweg/keys.toml
  thalweg exchange key new --admin 1")]
    New(NewKey),
}

/// How an API key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApiKind {
    /// A secret that both sides have: HMAC-SHA256
    Hmac,
    /// A private key, in PEM, of which the server has the public half
    Ed25519,
}

/// The rights of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyRole {
    /// Send orders for one user, and all that read may do
    Trade,
    /// Market data, and the reports and the account of one user
    Read,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("holder").args(["user", "admin"]).required(true))]
pub(crate) struct NewKey {
    /// The user whose key it is
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) user: Option<i64>,

    /// The administrator whose key it is: for commands about users, money and symbols
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) admin: Option<i64>,

    /// The rights of the user
    #[arg(long, value_enum, default_value = "trade", conflicts_with = "admin")]
    pub(crate) role: KeyRole,

    /// Make an API key for the gateway instead, of this kind
    #[arg(long, value_enum, value_name = "KIND", conflicts_with_all = ["admin", "name"])]
    pub(crate) api: Option<ApiKind>,

    /// A name for it, which logs show [default: role and number]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// A new file for the key, which its owner alone may read; else it is printed
    #[arg(long, alias = "out", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The file to which its hash is added; made if it is not there [default: keys.toml, for --api
    /// api-keys.toml]
    #[arg(long, alias = "keys", value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

pub(crate) fn serve(options: &Serve) -> Result<Finding, Failure> {
    if options.print_config {
        print(DEFAULT_TEXT.as_bytes())?;
        return Ok(Finding::Fine);
    }
    let mut config = configuration(options)?;
    let replication = replication_options(options, &config)?;
    let is_reference = matches!(config.exchange.rules, config::RulesSetting::Reference);
    let flow = options.market.open(options.demo, is_reference)?;
    if replication.is_some() && flow.is_some() {
        let text = "a replica has no market beside its sessions: leave out --market";
        return Err(Failure::Misuse(text.to_owned()));
    }
    let mut directory = options.directory.clone().unwrap_or_else(|| {
        // Only a demo may have no directory.
        std::env::temp_dir().join("thalweg-demo")
    });
    let mut demo = None;
    if options.demo {
        let made = Demo::prepare(&directory).map_err(Failure::Serve)?;
        config = made.configure(config);
        let names = gateway_demo(&mut config.gateway, &directory)?;
        directory = made.exchange();
        demo = Some((made, names));
    }
    let no_thread = |error| Failure::Misuse(format!("no thread for the log: {error}"));
    let logs = logs::start(&config.server).map_err(no_thread)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(config.server.worker_threads)
        .thread_name("connections")
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Failure::Misuse(format!("no threads for connections: {error}")))?;
    let has_archive = config.journal.archive.is_some();
    let parts = (demo, flow, replication);
    let (ended, is_asked) = runtime.block_on(async {
        let mut signals = match Signals::new().map_err(uncaught) {
            Ok(signals) => signals,
            Err(failure) => return (Err(failure), false),
        };
        let ended = run(options.format, config, directory, parts, &mut signals).await;
        (ended, signals.has_come().await)
    });
    // The remaining tasks wait for events that will not arrive.
    runtime.shutdown_background();
    drop(logs);
    match ended {
        // A signal may have come while it halted.
        Err(Failure::Serve(error)) if error.is_behind() && !has_archive && !is_asked => {
            Err(start_again(error))
        }
        ended => ended,
    }
}

/// Starts the program anew in this process: a replica that the log has left behind gets a copy of
/// another one at its start. Returns only if that is not possible.
fn start_again(behind: ServeError) -> Failure {
    eprintln!("thalweg: {behind}");
    let program = std::env::current_exe();
    let failed = program.map(|program| {
        let words = std::env::args_os().skip(1);
        Command::new(program).args(words).exec()
    });
    let (Ok(error) | Err(error)) = failed;
    eprintln!("thalweg: it cannot be started again: {error}");
    Failure::Serve(behind)
}

#[cfg(feature = "etcd")]
fn replication_options(options: &Serve, config: &Config) -> Result<Option<Replication>, Failure> {
    options.replica.replication(config)
}

#[cfg(not(feature = "etcd"))]
fn replication_options(_: &Serve, _: &Config) -> Result<Option<Replication>, Failure> {
    Ok(None)
}

/// Makes names and API keys for a demo with a gateway, where the user has given none.
fn gateway_demo(
    config: &mut config::Gateway,
    directory: &Path,
) -> Result<Option<DemoKeys>, Failure> {
    if config.listen.is_none() || config.symbols.is_some() || config.keys.is_some() {
        return Ok(None);
    }
    let made = DemoKeys::prepare(directory, &Demo::guests()).map_err(Failure::Gateway)?;
    config.symbols = Some(made.symbols.clone());
    config.keys = Some(made.keys.clone());
    Ok(Some(made))
}

fn configuration(options: &Serve) -> Result<Config, Failure> {
    let read = options.config.as_deref().map(Config::read).transpose();
    let refused = |error| Failure::Serve(ServeError::Config(error));
    let mut config = read.map_err(refused)?.unwrap_or_default();
    if let Some(file) = &options.key_file {
        config.keys.file = Some(file.clone());
    }
    config.trade.listen = options.trade_listen.unwrap_or(config.trade.listen);
    config.admin.listen = options.admin_listen.or(config.admin.listen);
    config.http.listen = options.http_listen.or(config.http.listen);
    config.gateway.listen = options.gateway.or(config.gateway.listen);
    config.gateway.symbols = options.symbols.clone().or(config.gateway.symbols);
    config.gateway.keys = options.api_keys.clone().or(config.gateway.keys);
    Ok(config)
}

/// The signals that may end the server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    has_come: bool,
}

fn uncaught(error: std::io::Error) -> Failure {
    Failure::Misuse(format!("signals cannot be caught: {error}"))
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            has_come: false,
        })
    }

    /// Waits for a signal that ends the program, and returns the result of the program if there is
    /// no time to shut down in order.
    async fn end(&mut self) -> Finding {
        let ended = tokio::select! {
            _ = self.interrupt.recv() => Finding::Interrupted,
            _ = self.terminate.recv() => Finding::Terminated,
        };
        self.has_come = true;
        ended
    }

    /// Returns whether one has come, waited for or not.
    async fn has_come(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.end() => {}
            () = std::future::ready(()) => {}
        }
        self.has_come
    }
}

/// The parts that not every server has.
type Parts = (
    Option<(Demo, Option<DemoKeys>)>,
    Option<Flow>,
    Option<Replication>,
);

async fn start(
    config: Config,
    directory: &Path,
    (flow, replication): (Option<Flow>, Option<Replication>),
) -> Result<Server, ServeError> {
    match replication {
        Some(replication) => Server::start_replicated(config, directory, replication).await,
        None => Server::start_with(config, directory, flow).await,
    }
}

async fn run(
    format: Format,
    config: Config,
    directory: PathBuf,
    (demo, flow, replication): Parts,
    signals: &mut Signals,
) -> Result<Finding, Failure> {
    let mut hang_up = signal(SignalKind::hangup()).map_err(uncaught)?;
    let gateway = config.gateway.clone();
    let market = flow
        .as_ref()
        .map_or(String::new(), |flow| flow.name.clone());
    let mut server = tokio::select! {
        started = start(config, &directory, (flow, replication)) => {
            started.map_err(Failure::Serve)?
        }
        ended = signals.end() => return Ok(ended),
    };
    let gateway = match server.gateway_link() {
        Some(link) => {
            let started = Gateway::start(&gateway, &directory, link).await;
            Some(started.map_err(Failure::Gateway)?)
        }
        None => None,
    };
    tell(
        format,
        server.addresses(),
        gateway.as_ref().map(Gateway::address),
    )?;
    if let Some((demo, names)) = demo {
        print(demo.message(&format!("market {market}")).as_bytes())?;
        if let Some(names) = names {
            print(names.message().as_bytes())?;
        }
    }
    loop {
        tokio::select! {
            _ = signals.end() => break,
            () = server.failed() => break,
            _ = hang_up.recv() => {
                server.reload_keys();
                if let Some(Err(error)) = gateway.as_ref().map(Gateway::reload_keys) {
                    eprintln!("{error}; API keys are as before");
                }
            }
        }
    }
    if let Some(gateway) = &gateway {
        gateway.drain();
    }
    let closed = async {
        if let Some(gateway) = &gateway {
            gateway.drained().await;
        }
    };
    tokio::select! {
        (stopped, ()) = async { tokio::join!(server.stop(), closed) } => {
            match stopped {
                Err(error) if error.is_fenced() => Ok(fenced(&error)),
                stopped => stopped.map(|_| Finding::Fine).map_err(Failure::Serve),
            }
        }
        ended = signals.end() => Ok(ended),
    }
}

/// Another replica has taken the place of this one.
fn fenced(error: &ServeError) -> Finding {
    eprintln!("thalweg: {error}");
    Finding::Of(FENCED)
}

/// Reports the addresses on which clients are served.
fn tell(format: Format, addresses: Addresses, gateway: Option<SocketAddr>) -> Result<(), Failure> {
    let places = [
        ("trade", Some(addresses.trade)),
        ("admin", addresses.admin),
        ("http", addresses.http),
    ];
    // A server without one says nothing of it.
    let places = places
        .into_iter()
        .chain(gateway.map(|at| ("gateway", Some(at))));
    let text = match format {
        Format::Text => {
            let shown = places.filter_map(|(name, at)| at.map(|at| format!("{name} {at}")));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let page = gateway.map(|at| format!("page: http://{at}/\n"));
            format!("listening: {shown}\n{}", page.unwrap_or_default())
        }
        Format::Json => {
            let at = |(name, at): (&str, Option<std::net::SocketAddr>)| {
                (name.to_owned(), at.map(|at| at.to_string()).into())
            };
            let object: serde_json::Map<String, serde_json::Value> = places.map(at).collect();
            let mut line = serde_json::to_string(&object).unwrap_or_default();
            line.push('\n');
            line
        }
    };
    crate::output::print(text.as_bytes())
}

pub(crate) fn key(command: &Key) -> Result<Finding, Failure> {
    match command {
        Key::New(asked) => new(asked),
    }
}

/// Makes a key. The hash is written before the key is printed, so that every key that was handed
/// out can connect.
fn new(asked: &NewKey) -> Result<Finding, Failure> {
    if let Some(kind) = asked.api {
        return new_api_key(asked, kind);
    }
    let key_file = asked.key_file.as_deref().unwrap_or(Path::new("keys.toml"));
    let role = match (asked.admin, asked.role) {
        (Some(_), _) => Role::Admin,
        (None, KeyRole::Trade) => Role::Trade,
        (None, KeyRole::Read) => Role::Read,
    };
    let holder = asked.admin.or(asked.user).unwrap_or_default();
    let key = keys::generate().map_err(Failure::Keys)?;
    let name = asked.name.clone();
    let entry = keys::Key {
        name: name.unwrap_or_else(|| format!("{role} {holder}")),
        role,
        holder,
        hash: keys::hash(key.as_bytes()),
    };
    let line = format!("{key}\n");
    let Some(out) = &asked.output else {
        keys::append(key_file, &entry).map_err(Failure::Keys)?;
        print(line.as_bytes())?;
        return Ok(Finding::Fine);
    };
    let failed = |source| Failure::Write {
        name: out.display().to_string(),
        source,
    };
    // The key's file is made before the hash is written: a key that could not be stored is not in
    // the list.
    let mut file = api_keys::private_file(out).map_err(failed)?;
    if let Err(error) = keys::append(key_file, &entry) {
        let _ = fs::remove_file(out);
        return Err(Failure::Keys(error));
    }
    file.write_all(line.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(Finding::Fine)
}

/// Makes an API key. Its secret is printed or goes to a new file, and the API key is printed.
fn new_api_key(asked: &NewKey, kind: ApiKind) -> Result<Finding, Failure> {
    let key_file = asked.key_file.as_deref();
    let key_file = key_file.unwrap_or(Path::new("api-keys.toml"));
    let failed = |out: &Path| {
        let name = out.display().to_string();
        move |source| Failure::Write { name, source }
    };
    let mut file = match &asked.output {
        Some(out) => Some((api_keys::private_file(out).map_err(failed(out))?, out)),
        None => None,
    };
    let kind = match kind {
        ApiKind::Hmac => KeyKind::Hmac,
        ApiKind::Ed25519 => KeyKind::Ed25519,
    };
    let user = UserId(asked.user.unwrap_or_default());
    let read_only = asked.role == KeyRole::Read;
    let made = api_keys::create(key_file, kind, user, read_only);
    let made = made.map_err(|error| {
        if let Some((_, out)) = &file {
            let _ = fs::remove_file(out);
        }
        Failure::Gateway(error)
    })?;
    let api_keys::NewKey { api_key, secret } = made;
    let secret = match kind {
        KeyKind::Hmac => format!("apiKey={api_key}\nsecretKey={secret}\n"),
        _ => secret,
    };
    if let Some((file, out)) = &mut file {
        file.write_all(secret.as_bytes()).map_err(failed(out))?;
        file.sync_all().map_err(failed(out))?;
    }
    let shown = match (file, kind) {
        (None, KeyKind::Hmac) => secret,
        (None, _) => format!("apiKey={api_key}\n{secret}"),
        (Some(_), _) => format!("apiKey={api_key}\n"),
    };
    print(shown.as_bytes())?;
    Ok(Finding::Fine)
}
