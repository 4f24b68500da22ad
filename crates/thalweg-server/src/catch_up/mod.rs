//! A replica that is too far behind the log catches up: gets a copy of another one, checks it, and
//! puts it in the place of its own directory.

mod directory;
mod peer;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use thalweg_exchange::durable::replication::copying::{CopyError, check, commands_in, gap};
use thalweg_exchange::durable::replication::{CommandLog, LogError, Written};
use thalweg_exchange::durable::{Files, Options};

pub(crate) use self::peer::PeerListener;
use crate::trouble::Trouble;

/// Why a replica has not caught up.
#[derive(Debug)]
#[non_exhaustive]
pub enum CatchUpError {
    /// The command log does not say where a copy is to be had.
    Log(LogError),
    /// No replica has given a copy: each that was asked, with the reason.
    NoCopy(Vec<(String, CopyError)>),
    /// The directory takes no copy.
    Directory {
        /// The directory.
        place: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for CatchUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::NoCopy(asked) if asked.is_empty() => {
                f.write_str("no other replica that is far enough has noted where it gives copies")
            }
            Self::NoCopy(asked) => {
                f.write_str("no replica has given a copy that fits the log")?;
                let mut asked = asked.iter();
                asked.try_for_each(|(replica, error)| write!(f, "; {replica}: {error}"))
            }
            Self::Directory { place, source } => {
                write!(
                    f,
                    "{}: a copy cannot be put there: {source}",
                    place.display()
                )
            }
        }
    }
}

impl std::error::Error for CatchUpError {}

/// How long a replica waits before it asks the log, and all others, again.
const LOG_AGAIN: Duration = Duration::from_millis(100);
const PEERS_AGAIN: Duration = Duration::from_secs(5);

/// The directory of a replica, which may be replaced by a copy.
#[derive(Debug)]
pub(crate) struct CatchUp {
    directory: PathBuf,
    /// The name of the replica.
    holder: String,
    /// Where others get copies of it.
    place: String,
    /// An archive is of one journal.
    has_archive: bool,
}

impl CatchUp {
    /// Returns the directory of a replica with this name, whose host has the address of the name.
    pub(crate) fn new(
        (directory, has_archive): (&Path, bool),
        holder: &str,
        listener: &PeerListener,
    ) -> Self {
        let host = holder.rsplit_once(':').map_or(holder, |(host, _)| host);
        Self {
            directory: directory.to_owned(),
            holder: holder.to_owned(),
            place: listener.place(host),
            has_archive,
        }
    }

    /// Makes the directory one with which the log can be followed: finishes a replacement that was
    /// interrupted, and replaces it by a copy if the log begins behind what it has. Notes where
    /// others get copies. Waits by `pause`; returns false if that does.
    ///
    /// # Errors
    /// [`CatchUpError::Directory`].
    pub(crate) fn prepare(
        &self,
        options: &Options,
        log: &mut dyn CommandLog,
        mut pause: impl FnMut(Duration) -> bool,
    ) -> Result<bool, CatchUpError> {
        directory::finish(&self.directory).map_err(|source| self.failed(source))?;
        let (mut silence, mut is_noted) = (Trouble::default(), false);
        // A journal that does not open is reported when the exchange is opened.
        let files = Files::new(&self.directory);
        let mut commands = commands_in(&files, options).unwrap_or(u64::MAX);
        loop {
            is_noted = is_noted || log.note_peer(&self.holder, &self.place) == Written::Acked;
            let found = match is_noted {
                true => gap(log, commands),
                false => Err(LogError("a note was not taken".to_owned())),
            };
            let error = found.as_ref().err().map(ToString::to_string);
            silence.note_log(error.as_deref(), Instant::now());
            let wait = match found {
                Ok(None) => return Ok(true),
                // It halts when it follows.
                Ok(Some(_)) if self.has_archive => return Ok(true),
                Err(_) => LOG_AGAIN,
                Ok(Some(oldest)) => {
                    tracing::warn!(
                        commands,
                        oldest,
                        "the log begins behind what this replica has"
                    );
                    match self.run(options, (log, oldest)) {
                        Ok(copied) => {
                            commands = copied;
                            continue;
                        }
                        Err(error @ CatchUpError::Directory { .. }) => return Err(error),
                        Err(error) => {
                            let again_s = PEERS_AGAIN.as_secs();
                            tracing::warn!(%error, again_s, "this replica has not caught up");
                            PEERS_AGAIN
                        }
                    }
                }
            };
            if !pause(wait) {
                return Ok(false);
            }
        }
    }

    fn failed(&self, source: io::Error) -> CatchUpError {
        let place = self.directory.clone();
        CatchUpError::Directory { place, source }
    }

    /// Gets a copy of another replica, checks it, and puts it in the place of what the directory
    /// has, which no exchange has open. `oldest` is the first command that the log has. Returns how
    /// many commands the directory has then.
    ///
    /// # Errors
    /// See [`CatchUpError`]; the directory has what it had.
    fn run(
        &self,
        options: &Options,
        (log, oldest): (&mut dyn CommandLog, u64),
    ) -> Result<u64, CatchUpError> {
        let mut failed = Vec::new();
        for (replica, place) in self.peers(log, oldest).map_err(CatchUpError::Log)? {
            match self.try_peer(&place, options, log) {
                Ok(commands) => {
                    directory::replace(&self.directory).map_err(|source| self.failed(source))?;
                    tracing::info!(%replica, commands, "a copy of another replica is in place");
                    return Ok(commands);
                }
                Err(error) => failed.push((replica, error)),
            }
        }
        Err(CatchUpError::NoCopy(failed))
    }

    /// Returns the other replicas that have as much as the log has given up, the primary last.
    fn peers(
        &self,
        log: &mut dyn CommandLog,
        oldest: u64,
    ) -> Result<Vec<(String, String)>, LogError> {
        let positions = log.positions()?;
        let primary = log.read(u64::MAX)?.claim.map(|claim| claim.holder);
        let is_far_enough = |replica: &String| {
            let noted = positions.iter().find(|(name, _)| name == replica);
            noted.is_none_or(|(_, commands)| *commands >= oldest)
        };
        let mut peers = log.peers()?;
        peers.retain(|(replica, _)| *replica != self.holder && is_far_enough(replica));
        peers.sort_by_key(|(replica, _)| primary.as_ref() == Some(replica));
        Ok(peers)
    }

    /// Gets a copy from there, and checks it. Returns how many commands it has.
    fn try_peer(
        &self,
        place: &str,
        options: &Options,
        log: &mut dyn CommandLog,
    ) -> Result<u64, CopyError> {
        let began = Instant::now();
        let tail = log
            .read(u64::MAX)
            .map_err(|error| CopyError::Halted(error.into()))?;
        let start = tail.claim.map_or(0, |claim| claim.start.commands);
        // The newest batch checks the copy.
        let until = tail.newest.unwrap_or(start);
        let part = directory::empty_part(&self.directory)?;
        let storage = Files::new(&part);
        let copied = peer::fetch(place, until, (&storage, options))?;
        tracing::info!(
            snapshot = copied.snapshot,
            commands = copied.commands,
            bytes = copied.bytes,
            took_ms = began.elapsed().as_millis() as u64,
            "a copy of another replica was received"
        );
        check(storage, options.clone(), log)
    }
}

#[cfg(test)]
mod tests;
