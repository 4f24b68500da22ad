//! How a durable exchange runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thalweg::pipeline::Placement;

use super::record::Origin;
use crate::rules::Rules;
use crate::service;
use crate::session::{ClientSequence, SessionKey};

/// Whether an answer waits for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Every answered command survives a loss of power.
    #[default]
    Always,
    /// Answered commands may be lost. Where the program is killed, those are a block that is not
    /// full, and all segments behind one that is not durable yet, up to 32: only then they get the
    /// names by which they are found. An owner that is idle ends both every 5 ms; one that never is
    /// does not. Where the machine stops, it is more. For measurements, and for operators who
    /// accept that.
    Never,
}

/// When a snapshot is written, and how many are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// A snapshot is due after this number of bytes of commands \[256 MiB\].
    pub every_bytes: u64,
    /// After this time, if there were commands \[10 min\].
    pub every: Duration,
    /// Snapshots that are kept, 1 to 1,024 \[2\]; the journal is kept from the oldest of them on.
    /// The configuration of `thalweg exchange serve` takes 1 to 100.
    pub kept: usize,
    /// Whether a thread makes them [true], or the call that finds one due.
    pub in_background: bool,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            every_bytes: 256 << 20,
            every: Duration::from_secs(600),
            kept: 2,
            in_background: true,
        }
    }
}

/// How many answers, reports and sessions are kept for clients that reconnect.
///
/// It is part of the durable state, so another exchange on the same journal with other limits gives
/// other answers to commands that were repeated late, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Answers of a session that are kept, and the most commands of a session in flight; 1 to
    /// [`KEPT_MAX`] \[1,024\]. 24 bytes each.
    pub answers_kept: u32,
    /// Execution reports of a user that are kept; 1 to [`KEPT_MAX`] \[1,024\]. 80 bytes each.
    pub reports_kept: u32,
    /// Execution reports that are kept of all users together \[2²⁰\]. Once that number is kept, a
    /// user with [`REPORTS_LEAST`] or more keeps no more than he has then. So of `u` users at most
    /// 80 × (`reports_max` + 16 × `u`) bytes are kept, in twice as much memory where lists grow.
    pub reports_max: u32,
    /// Sessions of a holder: their numbers are below this \[16\].
    pub sessions_per_user: u32,
    /// Sessions of all holders, ever: none is forgotten \[16,384\]. Memory for answers is taken as
    /// they come: 24 × `sessions_max` × `answers_kept` bytes at most, twice that where lists grow.
    pub sessions_max: u32,
}

impl SessionLimits {
    /// Returns a hash of the limits: two replicas of an exchange have the same.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let Self {
            answers_kept,
            reports_kept,
            reports_max,
            sessions_per_user,
            sessions_max,
        } = *self;
        let words = [
            answers_kept,
            reports_kept,
            reports_max,
            sessions_per_user,
            sessions_max,
        ];
        thalweg_hash::xxh64(0, words.map(u32::to_le_bytes).as_flattened())
    }
}

/// The most answers of a session, and reports of a user, that may be kept.
pub const KEPT_MAX: u32 = 1 << 20;

/// Reports that every user keeps, however many others keep.
pub const REPORTS_LEAST: u32 = 16;

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            answers_kept: 1024,
            reports_kept: 1024,
            reports_max: 1 << 20,
            sessions_per_user: 16,
            sessions_max: 1 << 14,
        }
    }
}

/// A callback that wakes the owner of an exchange when something can be published; `None` for none.
/// The thread that commits calls it, and it must not block.
#[derive(Clone, Default)]
pub struct Wake(pub Option<Arc<dyn Fn() + Send + Sync>>);

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Wake(..)" } else { "Wake" })
    }
}

/// Bytes of a note at most; a longer one is left out.
pub const NOTE_BYTES_MAX: usize = 1 << 10;

/// Returns the note of a command, by its session and its sequence.
type NoteOf = dyn Fn(SessionKey, ClientSequence) -> Option<Arc<[u8]>> + Send + Sync;

/// A call for the note of a command that a session sends: up to [`NOTE_BYTES_MAX`] bytes that its
/// record keeps beside the command. The exchange does nothing with them, but gives them to those
/// who execute the record on another machine, as
/// [`Published::Noted`](super::Published::Noted). Must not block.
#[derive(Clone, Default)]
pub struct Notes(pub Option<Arc<NoteOf>>);

impl Notes {
    pub(super) fn of(&self, origin: Origin) -> Option<Arc<[u8]>> {
        let Origin::Session { key, sequence } = origin else {
            return None;
        };
        let note = self.0.as_ref()?(key, sequence);
        note.filter(|note| note.len() <= NOTE_BYTES_MAX)
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Notes(..)"
        } else {
            "Notes"
        })
    }
}

/// How a durable [`Exchange`](super::Exchange) runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many commands may be in flight, which are stamped, and where they are made durable:
    /// `Placement::inline()` has the calling thread wait for the disk at each submission, any other
    /// placement a thread of its own, while the calling thread executes. Digest and first number
    /// are those of the journal, whatever is said here.
    pub service: service::ServiceOptions,
    /// Wakes the owner when what was submitted is durable, and can be published by
    /// [`Exchange::idle`](super::Exchange::idle).
    pub wake: Wake,
    /// The notes that are written beside commands.
    pub notes: Notes,
    /// The journal's files.
    pub journal: thalweg_journal::JournalOptions,
    /// Whether an answer waits for the disk.
    pub sync: SyncMode,
    /// When a snapshot is written.
    pub snapshot: SnapshotOptions,
    /// How many answers, reports and sessions are kept for clients that reconnect.
    pub sessions: SessionLimits,
    /// The rules of a new exchange; one that is there already has its own.
    pub rules: Rules,
    /// How long the thread that commits waits before it asks again for room on a full disk
    /// \[100 ms\]; where that is the caller, so does each call. With 0 it does not wait: for
    /// simulations.
    pub room_pause: Duration,
}

impl Default for Options {
    /// Execution and publishing on the caller's thread, commits on another one; every answer waits
    /// for the disk.
    fn default() -> Self {
        Self {
            service: service::ServiceOptions::placed(Placement::caller_and_threads(1, 1)),
            wake: Wake::default(),
            notes: Notes::default(),
            journal: thalweg_journal::JournalOptions::default(),
            sync: SyncMode::default(),
            snapshot: SnapshotOptions::default(),
            sessions: SessionLimits::default(),
            rules: Rules::default(),
            room_pause: Duration::from_millis(100),
        }
    }
}
