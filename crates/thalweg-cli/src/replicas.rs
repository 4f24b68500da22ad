//! The exchange on several machines: `thalweg exchange serve --replicate` and `status`.

use crate::arguments::values::Format;
use crate::failure::{Failure, Finding};
use crate::output::print;
use clap::Args;
use std::fmt::Write;
use thalweg_etcd::{Address, EtcdLog};
use thalweg_exchange::durable::replication::{Batch, Claim, CommandLog, FollowOptions, LogError};
use thalweg_server::Replication;
use thalweg_server::config::Config;

/// The options of a replica.
#[derive(Debug, Args)]
pub(crate) struct ReplicaOptions {
    /// Run as a replica by the command log in an etcd cluster, such as
    /// etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/exchange (docs/replication.md)
    #[arg(long, value_name = "URL", conflicts_with = "demo")]
    replicate: Option<Address>,

    /// Make the command log, if there is none: one replica of a new exchange, at its first start
    #[arg(long, requires = "replicate")]
    bootstrap: bool,

    /// Where clients find this replica; its name among the others [default: trade.listen]
    #[arg(long, value_name = "HOST:PORT", requires = "replicate")]
    advertise: Option<String>,
}

impl ReplicaOptions {
    /// Returns the command log, and how this replica follows it, where there is one.
    pub(crate) fn replication(&self, config: &Config) -> Result<Option<Replication>, Failure> {
        let Some(address) = &self.replicate else {
            return Ok(None);
        };
        let listen = config.trade.listen.to_string();
        let mut options = FollowOptions::new(self.advertise.clone().unwrap_or(listen));
        options.bootstrap = self.bootstrap;
        let log = Box::new(log(address)?);
        Ok(Some(Replication { log, options }))
    }
}

fn log(address: &Address) -> Result<EtcdLog, Failure> {
    let no_poll = |error| Failure::Misuse(format!("no connection to etcd: {error}"));
    EtcdLog::new(address.clone()).map_err(no_poll)
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The command log, as in serve --replicate
    #[arg(value_name = "URL")]
    log: Address,

    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The state of a command log.
struct Found {
    claim: Option<Claim>,
    /// How many commands it has.
    commands: u64,
    /// The index of its newest batch.
    newest: Option<u64>,
    replicas: Vec<(String, u64)>,
}

fn look(log: &mut EtcdLog) -> Result<Found, LogError> {
    let replicas = log.positions()?;
    let tail = log.read(u64::MAX)?;
    let newest = log.find(u64::MAX)?;
    let start = tail.claim.as_ref().map_or(0, |claim| claim.start.commands);
    let commands = match &newest {
        Some(newest) => Batch::read(&newest.bytes)?.end(),
        None => start,
    };
    Ok(Found {
        claim: tail.claim,
        commands,
        newest: tail.newest,
        replicas,
    })
}

/// Shows who leads, and how far the replicas are.
pub(crate) fn status(asked: &Status) -> Result<Finding, Failure> {
    let found = look(&mut log(&asked.log)?);
    let found = found.map_err(|error| Failure::Misuse(error.to_string()))?;
    let finding = match found.claim {
        Some(_) => Finding::Fine,
        None => Finding::Negative,
    };
    let text = match asked.format {
        Format::Text => text(&found),
        Format::Json => json(&found),
    };
    print(text.as_bytes())?;
    Ok(finding)
}

fn text(found: &Found) -> String {
    let Some(claim) = &found.claim else {
        return "no replica has made this command log\n".to_owned();
    };
    let mut text = format!(
        "primary {}, epoch {}\ncommands {}, exchange {:016x}\n",
        claim.holder, claim.epoch, found.commands, claim.identity
    );
    for (name, commands) in &found.replicas {
        let behind = found.commands.saturating_sub(*commands);
        let _ = match *name == claim.holder {
            true => writeln!(text, "replica {name}: primary"),
            false => writeln!(text, "replica {name}: {behind} commands behind"),
        };
    }
    text
}

fn json(found: &Found) -> String {
    let claim = found.claim.as_ref();
    let replicas = found
        .replicas
        .iter()
        .map(|(name, commands)| serde_json::json!({ "name": name, "commands": commands }));
    let object = serde_json::json!({
        "primary": claim.map(|claim| &claim.holder),
        "epoch": claim.map(|claim| claim.epoch),
        "exchange": claim.map(|claim| format!("{:016x}", claim.identity)),
        "commands": found.commands,
        "newest_batch": found.newest,
        "replicas": replicas.collect::<Vec<_>>(),
    });
    format!("{object}\n")
}
