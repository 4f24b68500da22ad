//! Why a server does not start, or has ended.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use thalweg_exchange::durable::replication::HaltReason;
use thalweg_exchange::durable::{ExchangeError, OpenError};
use thiserror::Error;

use crate::catch_up::CatchUpError;
use crate::config::ConfigError;
use crate::keys::KeysError;
use crate::session_capacity::TooManySessions;

/// Why a server does not start or has stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The keys.
    #[error("{0}")]
    Keys(#[from] KeysError),
    /// The keys may open more sessions than the exchange remembers.
    #[error("{0}")]
    Sessions(#[from] TooManySessions),
    /// An address cannot be listened on.
    #[error("{what}.listen: {address} cannot be listened on: {source}")]
    Listen {
        /// The listener: `trade`, `admin` or `http`, or `peer` of a replica.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The audit file cannot be written to.
    #[error("admin.audit_file: {file} cannot be written: {source}")]
    Audit {
        /// Its name; empty if it is the thread that cannot be started.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The exchange does not open.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The market that is to trade does not go with the exchange: a message for its user.
    #[error("{0}")]
    Market(String),
    /// The replica does not execute the command log any more.
    #[error("{0}")]
    Halted(#[from] HaltReason),
    /// The directory of the replica takes no copy of another one.
    #[error("{0}")]
    CatchUp(#[from] CatchUpError),
    /// The exchange has stopped.
    #[error("{0}")]
    Failed(#[from] ExchangeError),
    /// The server was stopped before it had started.
    #[error("the server was stopped before it had started")]
    Stopped,
    /// A thread of the server has panicked, which means a fault in this crate.
    #[error("a thread of the server has panicked")]
    Panicked,
}

impl ServeError {
    /// Returns whether another replica has taken over: started again, this one follows it.
    #[must_use]
    pub const fn is_fenced(&self) -> bool {
        matches!(self, Self::Failed(ExchangeError::Fenced { .. }))
    }

    /// Returns whether the command log begins behind what this replica has: started again, it gets
    /// a copy of another one.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        matches!(self, Self::Halted(HaltReason::Behind { .. }))
    }

    pub(crate) fn audit(file: Option<&Path>, source: io::Error) -> Self {
        let file = file.map_or_else(String::new, |file| file.display().to_string());
        Self::Audit { file, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_option() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7411));
        let source = || io::Error::other("no");
        let listen = ServeError::Listen {
            what: "trade",
            address,
            source: source(),
        };
        let text = "trade.listen: 127.0.0.1:7411 cannot be listened on: no";
        assert_eq!(listen.to_string(), text);
        let audit = ServeError::audit(Some(Path::new("/a/b")), source());
        assert_eq!(
            audit.to_string(),
            "admin.audit_file: /a/b cannot be written: no"
        );
    }
}
