//! The ways in which a command of the program ends.

use crate::input::error::InputError;
use crate::runner::RunError;
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// The result of a command that could do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Exit code 0.
    Fine,
    /// Exit code 1: for example, a stream disagrees.
    Negative,
    /// The exit code of a program that was observed.
    Of(u8),
    /// Exit code 130: Ctrl-C ended it.
    Interrupted,
    /// Exit code 143: SIGTERM ended it.
    Terminated,
}

/// The reason why a command could not do its work: exit code 2.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// An input does not have the expected content.
    Input(InputError),
    /// The options cannot be combined.
    Misuse(String),
    /// A recording cannot be put through the exchange.
    Recording { file: String, what: String },
    /// A durable exchange cannot be opened or read.
    Exchange(thalweg_exchange::durable::OpenError),
    /// A durable exchange has stopped.
    Durable(thalweg_exchange::durable::Failed),
    /// A journal cannot be read or cut.
    Journal(thalweg_journal::Error),
    /// Keys cannot be made, read or written.
    #[cfg(unix)]
    Keys(thalweg_server::keys::KeysError),
    /// An exchange cannot be served, or can no longer be served.
    #[cfg(unix)]
    Serve(thalweg_server::ServeError),
    /// A session with a served exchange cannot be made, or was lost permanently.
    Client(thalweg_client::DisconnectReason),
    /// This number of commands has no answer, and will get none.
    Unanswered(String),
    /// The exchange stopped.
    Run(RunError),
    /// A file could not be written.
    Write { name: String, source: io::Error },
    /// Standard output could not be written to.
    Output(io::Error),
    /// Some files could not be hashed; each was reported already.
    Unread { files: usize },
    /// A failure that was reported already.
    Reported,
    /// A list of checksums cannot be read, or holds no checksums.
    List { list: String, what: String },
    /// Two runs of the same commands ended in different states, which is a fault of this program.
    Nondeterminism { planned: u64, run: u64 },
}

impl Failure {
    /// Returns advice about damage to data on disk.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        let mut error: Option<&dyn std::error::Error> = Some(self);
        while let Some(cause) = error {
            let advice = match (cause.downcast_ref(), cause.downcast_ref()) {
                (Some(opening), _) => advice_on_exchange(opening),
                (_, Some(journal)) if is_damage(journal) => Some(ADVICE_ON_JOURNAL),
                _ => None,
            };
            if advice.is_some() {
                return advice;
            }
            error = cause.source();
        }
        None
    }

    /// Returns whether the reader of standard output closed its end of the pipe.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

const ADVICE_ON_JOURNAL: &str = "Restore this file from a copy; `thalweg journal verify` says \
    what is whole, and how to go on with that";

fn is_damage(error: &thalweg_journal::Error) -> bool {
    use thalweg_journal::Error::{BadSegment, Corrupt, MissingSegment};
    matches!(
        error,
        BadSegment { .. } | Corrupt { .. } | MissingSegment { .. }
    )
}

/// Returns advice about an exchange that cannot be opened or read to its end.
pub(crate) fn advice_on_exchange(
    error: &thalweg_exchange::durable::OpenError,
) -> Option<&'static str> {
    use thalweg_exchange::durable::OpenError;
    match error {
        OpenError::Journal(error) if is_damage(error) => Some(
            "Restore this file from a copy of the exchange's directory; `thalweg journal verify` \
             says which records are whole",
        ),
        OpenError::Record { .. }
        | OpenError::Gap { .. }
        | OpenError::Snapshot { .. }
        | OpenError::NoSnapshot { .. }
        | OpenError::NoRules { .. }
        | OpenError::NoJournal { .. }
        | OpenError::Behind { .. } => Some(
            "Restore what is damaged or missing from a copy of the exchange's directory: \
             snapshots and segments of the journal belong together",
        ),
        _ => None,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input(error) => error.fmt(f),
            Failure::Run(error) => error.fmt(f),
            Failure::Client(error) => error.fmt(f),
            Failure::Unanswered(commands) => {
                write!(
                    f,
                    "{commands} without an answer: executed once or not at all"
                )
            }
            Failure::Journal(error) => error.fmt(f),
            Failure::Exchange(error) => error.fmt(f),
            Failure::Durable(error) => error.fmt(f),
            #[cfg(unix)]
            Failure::Keys(error) => error.fmt(f),
            #[cfg(unix)]
            Failure::Serve(error) => error.fmt(f),
            Failure::Misuse(what) => f.write_str(what),
            Failure::Recording { file, what } => write!(f, "{file}: {what}"),
            Failure::Write { name, source } => {
                write!(f, "{name}: cannot be written: {}", reason(source))
            }
            Failure::Output(source) => {
                let why = reason(source);
                write!(f, "standard output cannot be written: {why}")
            }
            Failure::Reported => Ok(()),
            Failure::Unread { files } => {
                write!(f, "{} could not be read", counted(*files as u64, "file"))
            }
            Failure::List { list, what } => write!(f, "{list}: {what}"),
            Failure::Nondeterminism { planned, run } => write!(
                f,
                "the run ended in state {run:016x} where {planned:016x} was due; please report \
                 this as a fault of thalweg"
            ),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Input(error) => Some(error),
            Failure::Run(error) => Some(error),
            Failure::Client(error) => Some(error),
            Failure::Journal(error) => Some(error),
            Failure::Exchange(error) => Some(error),
            #[cfg(unix)]
            Failure::Keys(error) => Some(error),
            #[cfg(unix)]
            Failure::Serve(error) => Some(error),
            Failure::Write { source, .. } | Failure::Output(source) => Some(source),
            _ => None,
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Failure::Input(error)
    }
}

impl From<thalweg_exchange::durable::OpenError> for Failure {
    fn from(error: thalweg_exchange::durable::OpenError) -> Failure {
        Failure::Exchange(error)
    }
}

impl From<thalweg_journal::Error> for Failure {
    fn from(error: thalweg_journal::Error) -> Failure {
        Failure::Journal(error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Failure::Run(error)
    }
}

/// Returns the text of an error, without the number that the system has for it.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

/// Returns a count with its noun, singular or plural: `1 file`, `2 files`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", plural(count))
}

/// Returns the ending of the noun that follows this count.
pub(crate) fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Returns a file name for messages: control characters, and bytes that are not UTF-8, are written
/// as `\xNN`.
pub(crate) fn shown(name: &OsStr) -> String {
    let mut text = String::new();
    let escape = |text: &mut String, byte: u8| {
        let _ = write!(text, "\\x{byte:02x}");
    };
    for piece in name.as_encoded_bytes().utf8_chunks() {
        for c in piece.valid().chars() {
            match u8::try_from(c) {
                Ok(byte) if c.is_control() => escape(&mut text, byte),
                _ => text.push(c),
            }
        }
        piece
            .invalid()
            .iter()
            .for_each(|byte| escape(&mut text, *byte));
    }
    text
}

/// Returns the facts as JSON, with a line end.
pub(crate) fn json(facts: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(facts);
    json.map(|text| text + "\n")
        .map_err(|error| Failure::Output(io::Error::other(error)))
}

/// Writes data to standard output.
pub(crate) fn print(data: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(data)
        .and_then(|()| out.flush())
        .map_err(Failure::Output)
}

/// Writes an object or a list to standard output, as JSON.
pub(crate) fn print_json(rows: &impl Serialize) -> Result<(), Failure> {
    print(json(rows)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_what_and_where() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let report = Failure::Write {
            name: "a/b.html".into(),
            source: denied(),
        };
        assert_eq!(
            report.to_string(),
            "a/b.html: cannot be written: permission denied"
        );
        let apart = Failure::Nondeterminism { planned: 1, run: 2 };
        assert!(
            apart
                .to_string()
                .contains("0000000000000002 where 0000000000000001")
        );
        let unread = [1, 2].map(|files| Failure::Unread { files }.to_string());
        assert_eq!(
            unread,
            ["1 file could not be read", "2 files could not be read"]
        );
        assert_eq!(shown("a\x1b[3\n µ\u{9b}".as_ref()), "a\\x1b[3\\x0a µ\\x9b");
        let missing = reason(&io::Error::from_raw_os_error(2));
        assert!(!missing.contains("os error"), "{missing}");
        let list = Failure::List {
            list: "SUMS".to_owned(),
            what: "no checksums".to_owned(),
        };
        assert_eq!(list.to_string(), "SUMS: no checksums");
        assert!(!Failure::Output(denied()).is_broken_pipe());
        assert!(Failure::Output(io::ErrorKind::BrokenPipe.into()).is_broken_pipe());
    }
}
