//! Why a server does not start, or has ended.

use std::net::SocketAddr;
use std::path::Path;
use std::{error, fmt, io};

use thalweg_exchange::durable::replication::Halted;
use thalweg_exchange::durable::{Failed, OpenError};

use crate::catch_up::CatchUpError;
use crate::config::ConfigError;
use crate::keys::KeysError;
use crate::session_capacity::TooManySessions;

/// Why a server does not start or has stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration.
    Config(ConfigError),
    /// The keys.
    Keys(KeysError),
    /// The keys may open more sessions than the exchange remembers.
    Sessions(TooManySessions),
    /// An address cannot be listened on.
    Listen {
        /// The listener: `trade`, `admin` or `http`, or `peer` of a replica.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The audit file cannot be written to.
    Audit {
        /// Its name; empty if it is the thread that cannot be started.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The exchange does not open.
    Open(OpenError),
    /// The market that is to trade does not go with the exchange: a message for its user.
    Market(String),
    /// The replica does not execute the command log any more.
    Halted(Halted),
    /// The directory of the replica takes no copy of another one.
    CatchUp(CatchUpError),
    /// The exchange has stopped.
    Failed(Failed),
    /// The server was stopped before it had started.
    Stopped,
    /// A thread of the server has panicked, which means a fault in this crate.
    Panicked,
}

impl ServeError {
    /// Returns whether another replica has taken over: started again, this one follows it.
    #[must_use]
    pub const fn is_fenced(&self) -> bool {
        matches!(self, Self::Failed(Failed::Fenced { .. }))
    }

    /// Returns whether the command log begins behind what this replica has: started again, it gets
    /// a copy of another one.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        matches!(self, Self::Halted(Halted::Behind { .. }))
    }

    pub(crate) fn audit(file: Option<&Path>, source: io::Error) -> Self {
        let file = file.map_or_else(String::new, |file| file.display().to_string());
        Self::Audit { file, source }
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Keys(error) => error.fmt(f),
            Self::Sessions(error) => error.fmt(f),
            Self::Listen {
                what,
                address,
                source,
            } => write!(
                f,
                "{what}.listen: {address} cannot be listened on: {source}"
            ),
            Self::Audit { file, source } => {
                write!(f, "admin.audit_file: {file} cannot be written: {source}")
            }
            Self::Open(error) => error.fmt(f),
            Self::Market(text) => f.write_str(text),
            Self::Halted(halted) => halted.fmt(f),
            Self::CatchUp(error) => error.fmt(f),
            Self::Failed(failed) => failed.fmt(f),
            Self::Stopped => f.write_str("the server was stopped before it had started"),
            Self::Panicked => f.write_str("a thread of the server has panicked"),
        }
    }
}

impl error::Error for ServeError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Keys(error) => Some(error),
            Self::Sessions(error) => Some(error),
            Self::Listen { source, .. } | Self::Audit { source, .. } => Some(source),
            Self::Open(error) => Some(error),
            Self::Halted(halted) => Some(halted),
            Self::CatchUp(error) => Some(error),
            Self::Failed(failed) => Some(failed),
            Self::Market(_) | Self::Stopped | Self::Panicked => None,
        }
    }
}

impl From<ConfigError> for ServeError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<KeysError> for ServeError {
    fn from(error: KeysError) -> Self {
        Self::Keys(error)
    }
}

impl From<TooManySessions> for ServeError {
    fn from(error: TooManySessions) -> Self {
        Self::Sessions(error)
    }
}

impl From<OpenError> for ServeError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<Halted> for ServeError {
    fn from(halted: Halted) -> Self {
        Self::Halted(halted)
    }
}

impl From<CatchUpError> for ServeError {
    fn from(error: CatchUpError) -> Self {
        Self::CatchUp(error)
    }
}

impl From<Failed> for ServeError {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
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
