//! `thalweg exchange serve`.

use crate::arguments::Format;
use crate::arguments::serve::Serve;
use crate::failure::{self, Failure, Finding, print};
use crate::stdin::Waiting;
use crate::terminal::Notes;
use std::path::PathBuf;
use thalweg_server::config::{Config, DEFAULT_TEXT};
use thalweg_server::demo::Demo;
use thalweg_server::{Addresses, ServeError, Server, logs};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) fn serve(options: &Serve) -> Result<Finding, Failure> {
    if options.print_config {
        print(DEFAULT_TEXT.as_bytes())?;
        return Ok(Finding::Fine);
    }
    let mut config = configuration(options)?;
    let mut directory = options.directory.clone().unwrap_or_else(|| {
        // Only a demo may have no directory.
        std::env::temp_dir().join("thalweg-demo")
    });
    let mut demo = None;
    if options.demo {
        let made = Demo::prepare(&directory).map_err(Failure::Serve)?;
        config = made.configure(config);
        directory = made.exchange();
        demo = Some(made);
    }
    let no_thread = |error| Failure::Misuse(format!("no thread for the log: {error}"));
    let _logs = logs::start(&config.server).map_err(no_thread)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(config.server.worker_threads)
        .thread_name("connections")
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Failure::Misuse(format!("no threads for connections: {error}")))?;
    let ended = runtime.block_on(run(options.format, config, directory, demo));
    // The remaining tasks wait for events that will not arrive.
    runtime.shutdown_background();
    ended
}

fn configuration(options: &Serve) -> Result<Config, Failure> {
    let read = options.config.as_deref().map(|path| {
        let _waiting = Waiting::of(path, Notes::new(false));
        Config::read(path)
    });
    let read = read.transpose();
    let refused = |error| Failure::Serve(ServeError::Config(error));
    let mut config = read.map_err(refused)?.unwrap_or_default();
    if let Some(file) = &options.key_file {
        config.keys.file = Some(file.clone());
    }
    config.trade.listen = options.trade_listen.unwrap_or(config.trade.listen);
    config.admin.listen = options.admin_listen.or(config.admin.listen);
    config.http.listen = options.http_listen.or(config.http.listen);
    Ok(config)
}

/// The signals that may end the server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal that ends the program, and returns the result of the program if there is
    /// no time to shut down in order.
    async fn end(&mut self) -> Finding {
        tokio::select! {
            _ = self.interrupt.recv() => Finding::Interrupted,
            _ = self.terminate.recv() => Finding::Terminated,
        }
    }
}

async fn run(
    format: Format,
    config: Config,
    directory: PathBuf,
    demo: Option<Demo>,
) -> Result<Finding, Failure> {
    let uncaught = |error| Failure::Misuse(format!("signals cannot be caught: {error}"));
    let mut signals = Signals::new().map_err(uncaught)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(uncaught)?;
    let server = tokio::select! {
        started = Server::start(config, &directory) => started.map_err(Failure::Serve)?,
        ended = signals.end() => return Ok(ended),
    };
    tell(format, server.addresses())?;
    if let Some(demo) = demo {
        print(demo.message().as_bytes())?;
        let addresses = server.addresses();
        tokio::spawn(async move { demo.trade(addresses).await });
    }
    loop {
        tokio::select! {
            _ = signals.end() => break,
            () = server.failed() => break,
            _ = hang_up.recv() => server.reload_keys(),
        }
    }
    tokio::select! {
        stopped = server.stop() => {
            stopped.map_err(Failure::Serve)?;
            Ok(Finding::Fine)
        }
        ended = signals.end() => Ok(ended),
    }
}

/// Reports the addresses on which clients are served.
fn tell(format: Format, addresses: Addresses) -> Result<(), Failure> {
    let places = [
        ("trade", Some(addresses.trade)),
        ("admin", addresses.admin),
        ("http", addresses.http),
    ];
    let places = places.into_iter();
    let text = match format {
        Format::Text => {
            let shown = places.filter_map(|(name, at)| at.map(|at| format!("{name} {at}")));
            format!("listening: {}\n", shown.collect::<Vec<_>>().join(", "))
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
    failure::print(text.as_bytes())
}
