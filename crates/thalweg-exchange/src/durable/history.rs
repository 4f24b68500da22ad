//! Reading what an exchange has done, without opening it: from the oldest snapshot that is kept on,
//! with a look at every snapshot on the way.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use thalweg_journal::{Error as JournalError, Lsn, Reader, Storage, TornWrite};

use super::error::OpenError;
use super::options::SessionLimits;
use super::published::Executed;
use super::replay::{Image, Replayer};
use super::snapshots::{
    Skipped, SnapshotFileError, SnapshotHeader, all_of, commands_in_order, header_of, image_of,
    read_file,
};
use crate::digest::Digest;
use crate::snapshot::state_hash;

/// Something that is wrong with what an exchange left.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HistoryFault {
    /// A snapshot is damaged.
    Snapshot(Skipped),
    /// A snapshot is whole, and not what the journal gives.
    Differs {
        /// How many commands it holds.
        commands: u64,
        /// The part that differs: `digest`, `state`, or `sessions or reports`.
        what: &'static str,
    },
    /// The journal is damaged, or a record is no command.
    Journal(OpenError),
}

impl std::fmt::Display for HistoryFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Snapshot(Skipped { file, why, .. }) => write!(f, "{file}: {why}"),
            Self::Differs { commands, what } => write!(
                f,
                "the {what} of the snapshot after {commands} commands is not that of the journal"
            ),
            Self::Journal(error) => error.fmt(f),
        }
    }
}

/// The commands of an exchange, executed again in order.
///
/// The exchange may be open meanwhile; then the end is that of the moment, and what it gives up
/// meanwhile may be missed.
#[derive(Debug)]
pub struct History<S: Storage = thalweg_journal::DefaultStorage> {
    storage: S,
    image: Image,
    reader: Reader<S>,
    replayer: Replayer,
    first: u64,
    /// Snapshots behind the image, ascending.
    ahead: Vec<u64>,
    limits: SessionLimits,
    wrong: Vec<HistoryFault>,
    snapshots: usize,
    /// By readers before, and in all.
    read_bytes: u64,
    total_bytes: u64,
}

impl<S: Storage> History<S> {
    /// Begins with the oldest whole snapshot.
    ///
    /// # Errors
    /// There is no exchange; no snapshot is whole; one is of another version; the journal cannot be
    /// read at all.
    pub fn open_in(storage: S) -> Result<Self, OpenError> {
        let all = commands_in_order(&storage)?;
        if all.is_empty() {
            return Err(nothing(storage));
        }
        for commands in &all {
            if let Err((file, why @ SnapshotFileError::Version { .. })) =
                header_of(&storage, *commands)
            {
                return Err(OpenError::Snapshot { file, why });
            }
        }
        let mut wrong = Vec::new();
        for (at, commands) in all.iter().enumerate() {
            let (image, header) = match image_of(&storage, *commands, None) {
                Ok(found) => found,
                Err((file, why)) => {
                    let commands = *commands;
                    wrong.push(Skipped {
                        file,
                        commands,
                        why,
                    });
                    continue;
                }
            };
            let reader = Reader::open_in(storage.clone(), Lsn::new(commands + 1))?;
            return Ok(Self {
                read_bytes: 0,
                total_bytes: reader.progress_bytes().1,
                reader,
                storage,
                first: image.number,
                image,
                replayer: Replayer::default(),
                ahead: all[at + 1..].to_vec(),
                limits: header.sessions,
                wrong: wrong.into_iter().map(HistoryFault::Snapshot).collect(),
                snapshots: 1,
            });
        }
        Err(OpenError::NoSnapshot { skipped: wrong })
    }

    /// Executes some further commands, and calls `on_record` with each and its outcome; returns
    /// whether there were any. Faults that are found are in [`wrong`](Self::wrong); damage ends it.
    ///
    /// If `on_record` panics, so does this, when these commands are executed; it is not called for
    /// the rest of them.
    pub fn step(&mut self, mut on_record: impl FnMut(Executed<'_>)) -> bool {
        let mut panic = None;
        let goes_on = self.advance(&mut |recorded| {
            if panic.is_none() {
                panic = catch_unwind(AssertUnwindSafe(|| on_record(recorded))).err();
            }
        });
        panic.map_or(goes_on, |panic| resume_unwind(panic))
    }

    fn advance(&mut self, on_record: &mut dyn FnMut(Executed<'_>)) -> bool {
        let until = self.ahead.first().copied().unwrap_or(u64::MAX);
        let (place, before) = (self.storage.location(), self.image.number);
        let done = self.replayer.block(
            &mut self.image,
            &mut self.reader,
            until,
            &place,
            Some(on_record),
        );
        let goes_on = match done {
            Ok(done) => done.is_some(),
            Err(error) => {
                self.wrong.push(HistoryFault::Journal(error));
                return false;
            }
        };
        while self.ahead.first() == Some(&self.image.number) {
            self.ahead.remove(0);
            self.compare();
        }
        if self.replayer.is_cut()
            && let Err(error) = self.go_on()
        {
            self.wrong.push(HistoryFault::Journal(error.into()));
            return false;
        }
        if !goes_on && let Some(commands) = self.ahead.first() {
            let error = OpenError::Behind {
                place,
                commands: self.image.number,
                snapshot: *commands,
            };
            self.wrong.push(HistoryFault::Journal(error));
        }
        goes_on || self.image.number > before
    }

    /// Reads the rest of a block in which there was a snapshot.
    fn go_on(&mut self) -> Result<(), JournalError> {
        self.read_bytes = self.progress_bytes().0;
        self.reader = Reader::open_in(self.storage.clone(), Lsn::new(self.image.number + 1))?;
        Ok(())
    }

    /// Compares the snapshot of the current command with the state that the journal gives.
    fn compare(&mut self) {
        let commands = self.image.number;
        let found = read_file(&self.storage, commands);
        let found = found.and_then(|bytes| {
            image_of(&self.storage, commands, Some(&bytes)).map(|(image, of)| (bytes, image, of))
        });
        let (bytes, found, header) = match found {
            Ok(found) => found,
            Err((file, why)) => {
                self.wrong.push(HistoryFault::Snapshot(Skipped {
                    file,
                    commands,
                    why,
                }));
                return;
            }
        };
        self.snapshots += 1;
        let Image {
            state,
            tables,
            digest,
            ..
        } = &self.image;
        let what = if header.digest != *digest {
            Some("digest")
        } else if header.state_hash != state_hash(state) {
            Some("state")
        } else if header.sessions == self.limits
            && all_of(state, tables, header.journal, *digest, self.limits) != bytes
        {
            Some("sessions or reports")
        } else {
            None
        };
        self.wrong
            .extend(what.map(|what| HistoryFault::Differs { commands, what }));
        // With other limits other answers are kept, from some command before this one on.
        if header.sessions != self.limits {
            self.image.tables = found.tables;
            self.limits = header.sessions;
        }
    }

    /// Returns the faults that were found so far.
    #[must_use]
    pub fn wrong(&self) -> &[HistoryFault] {
        &self.wrong
    }

    /// Returns the number of the first command that is there to be executed again.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of the next command.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.image.number
    }

    /// Returns the digest of all commands so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.image.digest
    }

    /// Returns the hash of the state. Cost: that of encoding it.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        state_hash(&self.image.state)
    }

    /// Snapshots that were found whole.
    #[must_use]
    pub fn snapshots(&self) -> usize {
        self.snapshots
    }

    /// Returns how many bytes of the journal were read, of how many at most.
    #[must_use]
    pub fn progress_bytes(&self) -> (u64, u64) {
        let read = self.reader.progress_bytes().0;
        (self.read_bytes.max(read), self.total_bytes)
    }

    /// Returns the unfinished write at the end, once that was reached.
    #[must_use]
    pub fn torn(&self) -> Option<&TornWrite> {
        self.reader.torn()
    }
}

#[cfg(unix)]
impl History {
    /// Opens a directory as [`open_in`](Self::open_in) does.
    ///
    /// # Errors
    /// As there.
    pub fn open(directory: impl AsRef<std::path::Path>) -> Result<Self, OpenError> {
        Self::open_in(thalweg_journal::Files::new(directory))
    }
}

/// Returns the header of the newest snapshot whose header can be read.
///
/// # Errors
/// There is no exchange; the directory cannot be read.
pub fn newest_header<S: Storage>(storage: &S) -> Result<SnapshotHeader, OpenError> {
    let all = commands_in_order(storage)?;
    let mut skipped = Vec::new();
    for commands in all.into_iter().rev() {
        match header_of(storage, commands) {
            Ok(header) => return Ok(header),
            Err((file, why @ SnapshotFileError::Version { .. })) => {
                return Err(OpenError::Snapshot { file, why });
            }
            Err((file, why)) => skipped.push(Skipped {
                file,
                commands,
                why,
            }),
        }
    }
    Err(match skipped.is_empty() {
        true => nothing(storage.clone()),
        false => OpenError::NoSnapshot { skipped },
    })
}

/// Returns the error of a directory without snapshots: that of its journal, or that there is none.
fn nothing<S: Storage>(storage: S) -> OpenError {
    let place = storage.location();
    match Reader::open_in(storage, Lsn::ZERO) {
        Ok(_) => OpenError::NoRules { place },
        Err(JournalError::NoJournal { .. }) => OpenError::NoExchange { place },
        Err(error) => error.into(),
    }
}
