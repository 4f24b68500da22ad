//! A durable exchange: every answered command survives a crash, and none is executed twice.
//!
//! An [`Exchange`] executes on the thread that owns it. Every command that changes state is in the
//! journal before it is executed. Execution does not wait for the disk: a thread of its own makes
//! commands durable beside it, and only then they are published, by the next call of the owner. One
//! commit covers all that came meanwhile, so groups grow with the load.
//!
//! - *After a crash*, [`Exchange::open`] executes the journal again, which gives the same state,
//!   the same answers and the same reports.
//! - *Exactly once.* Each command of a [session](crate::session) has a sequence; one that comes
//!   again is not executed again but gets its first answer ([`SubmitOutcome`]). Sequences and
//!   answers hang on the journal alone, so that holds across crashes.
//! - *Reports* of each user are numbered without gaps, and the last are kept: [`Reports::resume`].
//! - *Snapshots* are made beside the exchange, which does not stop for them; recovery begins with
//!   the newest whole one ([`SnapshotOptions`]). [`Exchange::close`] writes the last.
//! - *A full disk* refuses commands and loses nothing; there is room again when there is. *A failed
//!   write or sync* stops the exchange, and nothing is answered any more ([`ExchangeError`]).
//!
//! `docs/durable-format.md` has the format of the journal.
//!
//! ```
//! use std::sync::mpsc;
//! use thalweg_exchange::durable::{SubmitOutcome, Exchange, Options, Origin, Published, SimDisk};
//! use thalweg_exchange::session::{ClientSequence, Role, SessionKey};
//! use thalweg_exchange::{Command, ResultCode, UserId};
//!
//! // `Exchange::open(directory, …)` has it in files.
//! let disk = SimDisk::new();
//! let (sender, receiver) = mpsc::channel();
//! let (mut exchange, recovered) = Exchange::open_in(disk, Options::default(), move |published| {
//!     if let Published::Outcomes(outcomes) = published {
//!         for executed in outcomes {
//!             let _ = sender.send((executed.outcome.sequence, executed.outcome.result));
//!         }
//!     }
//! })?;
//! assert_eq!(recovered.commands, 0);
//!
//! let key = SessionKey { role: Role::Admin, holder: 1, number: 0 };
//! let origin = Origin::Session { key, sequence: ClientSequence(1) };
//! let command = Command::AddUser { uid: UserId(7) };
//! assert_eq!(exchange.submit(origin, &command, 0)?, SubmitOutcome::New { number: 0 });
//! exchange.drain()?;
//! assert_eq!(receiver.recv()?, (0, ResultCode::Success));
//! // The answer was lost, and the command is sent again.
//! let again = exchange.submit(origin, &command, 0)?;
//! assert!(matches!(again, SubmitOutcome::Repeat(first) if first.result == ResultCode::Success));
//! exchange.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod committer;
mod error;
mod exchange;
mod faults;
mod history;
mod in_flight;
mod opening;
mod options;
mod published;
mod recent;
mod record;
mod replay;
mod replica;
pub mod replication;
#[cfg(test)]
mod simulation;
mod snapshots;
mod stats;
mod submission;
mod table_copy;
mod tables;

#[cfg(unix)]
pub use thalweg_journal::Files;
pub use thalweg_journal::{
    DefaultStorage, Error as JournalError, JournalOptions, Lsn, SimDisk, Storage, TornWrite,
};

pub use self::error::{ExchangeError, OpenError, SnapshotWriteError, SubmitError};
pub use self::exchange::{Exchange, Finished};
pub use self::history::{History, HistoryFault, newest_header};
pub use self::opening::Recovered;
pub use self::options::{
    KEPT_MAX, NOTE_BYTES_MAX, Notes, Options, REPORTS_LEAST, SessionLimits, SnapshotOptions,
    SyncMode, Wake,
};
pub use self::published::{Executed, Outcomes, Published};
pub use self::record::{Origin, RECORD_VERSION, RecordError};
pub use self::snapshots::{SNAPSHOT_VERSION, Skipped, SnapshotFileError, SnapshotHeader};
pub use self::stats::{ArchiveStats, JournalStats, SnapshotMade, SnapshotStats, Stats};
pub use self::submission::{Submission, SubmitOutcome};
pub use self::tables::{FirstAnswer, ReportFrame, Reports, Resumed, SessionState};
