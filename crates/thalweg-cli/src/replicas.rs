//! The exchange on several machines: `thalweg exchange serve --replicate` and `status`.

use crate::arguments::values::Format;
use crate::failure::{Failure, Finding};
use crate::output::print;
use clap::Args;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use thalweg_etcd::{Address, EtcdLog, Position};
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

    /// Where clients find this replica; its name among the others [default: trade.listen, if other
    /// machines can reach that]
    #[arg(long, value_name = "HOST:PORT", requires = "replicate")]
    advertise: Option<String>,

    /// Where this replica gives others copies of its snapshot and journal [default: the address of
    /// trade.listen, any free port]
    #[arg(long, value_name = "ADDRESS", requires = "replicate")]
    peer_listen: Option<SocketAddr>,

    /// Bytes of batches that the command log keeps: a replica that is further behind gets a copy of
    /// another one
    #[arg(
        long,
        value_name = "BYTES",
        requires = "replicate",
        default_value_t = 256 << 20,
        value_parser = clap::value_parser!(u64).range(64 << 10..=1 << 30)
    )]
    log_bytes: u64,
}

impl ReplicaOptions {
    /// Returns the command log, and how this replica follows it, where there is one.
    pub(crate) fn replication(&self, config: &Config) -> Result<Option<Replication>, Failure> {
        let Some(address) = &self.replicate else {
            return Ok(None);
        };
        let holder = match &self.advertise {
            Some(advertised) => advertised.clone(),
            None => holder_of(config.trade.listen)?,
        };
        let mut options = FollowOptions::new(holder);
        options.bootstrap = self.bootstrap;
        options.log = format!("{}/{}", address.endpoints.join(","), address.prefix);
        options.kept_bytes_max = self.log_bytes as usize;
        Ok(Some(Replication {
            log: Box::new(log(address)?),
            options,
            peer_listen: self.peer_listen,
        }))
    }
}

/// Returns the name of a replica that listens here, if no other one can have it.
fn holder_of(listen: SocketAddr) -> Result<String, Failure> {
    if listen.ip().is_loopback() || listen.ip().is_unspecified() {
        let text = format!(
            "trade.listen is {listen}, by which clients find no replica, and which may be that of \
             others as well: give --advertise with the address of this machine"
        );
        return Err(Failure::Misuse(text));
    }
    Ok(listen.to_string())
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
    replicas: Vec<Position>,
    /// The time now, in milliseconds since 1970.
    now_ms: u64,
}

impl Found {
    /// Returns how long ago a replica has noted its position: by its clock and the one here.
    fn age_s(&self, position: &Position) -> u64 {
        self.now_ms.saturating_sub(position.noted_ms) / 1_000
    }

    fn is_primary(&self, position: &Position) -> bool {
        (self.claim.as_ref()).is_some_and(|claim| claim.holder == position.replica)
    }

    /// Returns how many commands of the log a replica had not executed when it noted its position:
    /// none at the primary, which has executed them first.
    fn behind(&self, position: &Position) -> u64 {
        match self.is_primary(position) {
            true => 0,
            false => self.commands.saturating_sub(position.commands),
        }
    }
}

fn look(log: &mut EtcdLog) -> Result<Found, LogError> {
    let replicas = log.noted()?;
    let tail = log.read(u64::MAX)?;
    let newest = log.find(u64::MAX)?;
    let start = tail.claim.as_ref().map_or(0, |claim| claim.start.commands);
    let commands = match &newest {
        Some(newest) => Batch::read(&newest.bytes)?.end(),
        None => start,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(Found {
        claim: tail.claim,
        commands,
        newest: tail.newest,
        replicas,
        now_ms: now.unwrap_or_default().as_millis() as u64,
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
    for position in &found.replicas {
        let behind = found.behind(position);
        let (name, age) = (&position.replica, found.age_s(position));
        let _ = match &position.halted {
            Some(why) => writeln!(text, "replica {name}: halted {age} s ago: {why}"),
            None if found.is_primary(position) => {
                writeln!(text, "replica {name}: primary, seen {age} s ago")
            }
            None => writeln!(
                text,
                "replica {name}: {behind} commands behind, {age} s ago"
            ),
        };
    }
    text
}

fn json(found: &Found) -> String {
    let claim = found.claim.as_ref();
    let replicas = found.replicas.iter().map(|position| {
        serde_json::json!({
            "name": position.replica,
            "role": if found.is_primary(position) { "primary" } else { "follower" },
            "commands": position.commands,
            "behind": found.behind(position),
            "halted": position.halted,
            "age_s": found.age_s(position),
        })
    });
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

#[cfg(test)]
mod tests {
    use thalweg_exchange::durable::replication::LogStart;

    use super::*;

    #[test]
    fn a_replica_has_a_name_that_others_do_not_have() {
        let holder = |listen: &str| holder_of(listen.parse().expect("an address"));
        for listen in ["127.0.0.1:7411", "[::1]:7411", "0.0.0.0:7411", "[::]:7411"] {
            let failure = holder(listen).expect_err(listen);
            let Failure::Misuse(text) = failure else {
                panic!("{failure:?}");
            };
            assert!(
                text.starts_with(&format!("trade.listen is {listen}, ")),
                "{text}"
            );
            assert!(text.contains("give --advertise"), "{text}");
        }
        assert_eq!(holder("10.0.0.1:7411").expect("a name"), "10.0.0.1:7411");
    }

    #[test]
    fn a_status_says_how_old_each_position_is() {
        let position = |replica: &str, commands, noted_ms| Position {
            replica: replica.to_owned(),
            commands,
            noted_ms,
            halted: (replica == "c:1").then(|| "no".to_owned()),
        };
        let found = Found {
            claim: Some(Claim {
                epoch: 3,
                nonce: 1,
                log: 2,
                identity: 0xAB,
                start: LogStart::default(),
                holder: "a:1".to_owned(),
            }),
            commands: 90,
            newest: Some(80),
            replicas: vec![
                position("a:1", 85, 99_100),
                position("b:1", 40, 39_000),
                position("c:1", 40, 98_000),
            ],
            now_ms: 100_000,
        };
        let expected = "primary a:1, epoch 3\ncommands 90, exchange 00000000000000ab\n\
            replica a:1: primary, seen 0 s ago\nreplica b:1: 50 commands behind, 61 s ago\n\
            replica c:1: halted 2 s ago: no\n";
        assert_eq!(text(&found), expected);
        let json: serde_json::Value = serde_json::from_str(&json(&found)).expect("it is JSON");
        let replica = serde_json::json!({
            "age_s": 61, "behind": 50, "commands": 40, "halted": null, "name": "b:1",
            "role": "follower",
        });
        assert_eq!(json["replicas"][1], replica);
        assert_eq!(json["replicas"][0]["role"], "primary");
        assert_eq!(json["replicas"][2]["halted"], "no");
    }
}
