//! Errors in a configuration.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

/// Why a configuration is of no use.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// Its name.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A line has something that is not known.
    #[error("{file}:{line}: {what}")]
    Parse {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The error in it.
        what: String,
    },
    /// A number is out of range.
    #[error(
        "{file}{}: {option} is {value}; {}{min} to {max} are possible",
        line.map_or_else(String::new, |line| format!(":{line}")),
        if *step > 1 { format!("multiples of {step} from ") } else { String::new() }
    )]
    Range {
        /// The file's name.
        file: String,
        /// The line, from 1; none of an option that is in no file.
        line: Option<usize>,
        /// Section and name of the option.
        option: &'static str,
        /// The value that was found.
        value: u64,
        /// The number that it must be a multiple of.
        step: u64,
        /// The least that is possible.
        min: u64,
        /// The most that is possible.
        max: u64,
    },
    /// There are no keys, and others than this machine could connect.
    #[error(
        "{option} is {address}, which other machines reach, and there are no keys: set keys.file, \
         or listen on a loopback address"
    )]
    Open {
        /// Section and name of the option.
        option: &'static str,
        /// The address that was found.
        address: SocketAddr,
    },
    /// The gateway would serve other machines without encryption.
    #[error(
        "gateway.listen is {address}, which other machines reach, and requests are not encrypted: \
         listen on a loopback address behind a TLS proxy, or set gateway.allow_remote"
    )]
    Plain {
        /// The address that was found.
        address: SocketAddr,
    },
}

impl ConfigError {
    pub(super) fn parse(file: &str, text: &str, error: &toml::de::Error) -> Self {
        Self::Parse {
            file: file.to_owned(),
            line: line_of(text, error),
            what: removed(error.message()).unwrap_or_else(|| error.message().trim_end().to_owned()),
        }
    }
}

/// Returns what stands for an option that there was once, where the parser does not know it.
fn removed(message: &str) -> Option<String> {
    message.starts_with("unknown field `queue`").then(|| {
        "exchange.queue is gone: connections execute their commands themselves; exchange.capacity \
         bounds how many are in flight"
            .to_owned()
    })
}

/// Returns the line, from 1, where an option has its value, if it is in the text.
pub(super) fn line_of_option(text: &str, option: &str) -> Option<usize> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let (section, name) = option.split_once('.')?;
    let section = table.get_ref().get(section)?.get_ref().as_table()?;
    let at = section.get(name)?.span().start;
    Some(1 + text[..at].matches('\n').count())
}

/// Returns the line, from 1, that a TOML error is about.
pub(crate) fn line_of(text: &str, error: &toml::de::Error) -> usize {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    1 + text.as_bytes()[..at]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
}
