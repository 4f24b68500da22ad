//! The ways in which a command of the program ends.

use crate::input::error::InputError;
use crate::message::{counted, reason};
use std::io;
use thalweg_exchange::durable::{OpenError, SnapshotFileError};
use thiserror::Error;

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

/// The exchange stopped before the last command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the exchange stopped: {0}")]
pub(crate) struct RunError(pub(crate) String);

/// The reason why a command could not do its work: exit code 2.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// An input does not have the expected content.
    #[error("{0}")]
    Input(#[from] InputError),
    /// The options cannot be combined.
    #[error("{0}")]
    Misuse(String),
    /// A recording cannot be put through the exchange.
    #[error("{file}: {what}")]
    Recording { file: String, what: String },
    /// A durable exchange cannot be opened or read.
    #[error("{0}")]
    Exchange(#[from] OpenError),
    /// A durable exchange has stopped.
    #[error("{0}")]
    Durable(thalweg_exchange::durable::ExchangeError),
    /// A journal cannot be read or truncated.
    #[error("{0}")]
    Journal(#[from] thalweg_journal::Error),
    /// Keys cannot be made, read or written.
    #[error("{0}")]
    Keys(#[source] thalweg_server::keys::KeysError),
    /// An exchange cannot be served, or can no longer be served.
    #[error("{0}")]
    Serve(#[source] thalweg_server::ServeError),
    /// The gateway does not start.
    #[error("{0}")]
    Gateway(#[source] thalweg_gateway::GatewayError),
    /// A session with a served exchange cannot be made, or was lost permanently.
    #[error("{0}")]
    Client(#[source] thalweg_client::DisconnectReason),
    /// This number of commands has no answer, and will get none.
    #[error("{0} without an answer: executed once or not at all")]
    Unanswered(String),
    /// The exchange stopped.
    #[error("{0}")]
    Run(#[from] RunError),
    /// A file could not be written.
    #[error("{name}: cannot be written: {}", reason(source))]
    Write { name: String, source: io::Error },
    /// Standard output could not be written to.
    #[error("standard output cannot be written: {}", reason(.0))]
    Output(#[source] io::Error),
    /// Some files could not be hashed; each was reported already.
    #[error("{} could not be read", counted(*files as u64, "file"))]
    Unread { files: usize },
    /// A failure that was reported already.
    #[error("")]
    Reported,
    /// A list of checksums cannot be read, or holds no checksums.
    #[error("{list}: {what}")]
    List { list: String, what: String },
    /// Two runs of the same commands ended in different states, which is a fault of this program.
    #[error(
        "the run ended in state {run:016x} where {planned:016x} was due; please report this as a \
         fault of thalweg"
    )]
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
pub(crate) fn advice_on_exchange(error: &OpenError) -> Option<&'static str> {
    match error {
        OpenError::Journal(error) if is_damage(error) => Some(
            "Restore this file from a copy of the exchange's directory; `thalweg journal verify` \
             says which records are whole",
        ),
        OpenError::Snapshot {
            why: SnapshotFileError::Version { .. },
            ..
        } => Some(
            "It is whole, and is not converted: the version of the program that wrote it opens the \
             directory",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::shown;

    #[test]
    fn a_snapshot_of_another_version_is_not_called_damaged() {
        let advice = |why| {
            let file = "snapshot-00000000000000000000.thw".to_owned();
            advice_on_exchange(&OpenError::Snapshot { file, why }).expect("there is some")
        };
        assert!(advice(SnapshotFileError::Version { version: 1 }).contains("is not converted"));
        assert!(advice(SnapshotFileError::Magic).starts_with("Restore"));
    }

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
