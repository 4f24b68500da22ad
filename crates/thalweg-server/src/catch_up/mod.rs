//! A replica that is too far behind the log catches up: gets a copy of another one, checks it, and
//! puts it in the place of its own directory.

mod directory;
mod peer;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thalweg_exchange::durable::replication::copying::{CopyError, check, commands_in, gap};
use thalweg_exchange::durable::replication::{
    CommandLog, LogError, WriteOutcome, log_of, note_log,
};
use thalweg_exchange::durable::{Files, Options};
use thiserror::Error;

use self::peer::Pause;
pub(crate) use self::peer::PeerListener;
use crate::outage_log::OutageLog;

/// Why a replica has not caught up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CatchUpError {
    /// The command log does not say where a copy is to be had.
    #[error("{0}")]
    Log(LogError),
    /// No replica has given a copy: each that was asked, with the reason.
    #[error("{}", no_copy(.0))]
    NoCopy(Vec<(String, CopyError)>),
    /// The directory belongs to another log: no copy takes its place.
    #[error(
        "{}: its {commands} commands {}{log:016x}, which has given up what it would need to go \
         on: move them aside, and an empty directory gets a copy of another replica",
        place.display(),
        belonging(*own)
    )]
    OtherLog {
        /// The directory.
        place: PathBuf,
        /// How many commands it has.
        commands: u64,
        /// The start of its log's chain; none where it has no note of a log.
        own: Option<u64>,
        /// That of the log that is followed.
        log: u64,
    },
    /// The directory takes no copy.
    #[error("{}: a copy cannot be put there: {source}", place.display())]
    Directory {
        /// The directory.
        place: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn no_copy(asked: &[(String, CopyError)]) -> String {
    if asked.is_empty() {
        return "no other replica that is far enough has noted where it gives copies".to_owned();
    }
    let each = asked
        .iter()
        .map(|(replica, error)| format!("; {replica}: {error}"));
    "no replica has given a copy that fits the log".to_owned() + &each.collect::<String>()
}

fn belonging(own: Option<u64>) -> String {
    match own {
        Some(own) => format!("belong to the command log {own:016x}, not to "),
        None => "belong to a command log that it does not name, maybe to ".to_owned(),
    }
}

impl CatchUpError {
    /// Returns for how long to wait before all replicas are asked again. Copies that come to
    /// nothing cost those that give them as well.
    fn wait(&self, again: &mut Duration) -> Duration {
        match self {
            Self::NoCopy(asked) if !asked.is_empty() => {
                let wait = *again;
                *again = (wait * 2).min(PEERS_AGAIN_MAX);
                wait
            }
            _ => PEERS_AGAIN,
        }
    }
}

/// How long a replica waits before it asks the log, and all others, again.
const LOG_AGAIN: Duration = Duration::from_millis(100);
const PEERS_AGAIN: Duration = Duration::from_secs(5);
/// The most, after the wait has doubled with each time that none has given a copy that fits.
const PEERS_AGAIN_MAX: Duration = Duration::from_secs(300);

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

    /// Returns where others get copies of the replica.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Makes the directory one with which the log can be followed: finishes a replacement that was
    /// interrupted, and replaces it by a copy if the log begins behind what it has. Notes where
    /// others get copies. Waits by `pause`; returns false if that does.
    ///
    /// # Errors
    /// [`CatchUpError::Directory`] and [`CatchUpError::OtherLog`].
    pub(crate) fn prepare(
        &self,
        options: &Options,
        log: &mut dyn CommandLog,
        mut pause: impl FnMut(Duration) -> bool,
    ) -> Result<bool, CatchUpError> {
        directory::finish(&self.directory).map_err(|source| self.failed(source))?;
        // Once it is to end, it is.
        let mut is_to_end = false;
        let mut pause = |time| {
            is_to_end = is_to_end || !pause(time);
            !is_to_end
        };
        let noted = log.note_peer(&self.holder, &self.place);
        if noted != WriteOutcome::Acked {
            // It is noted again while the log is followed: no start waits for a write.
            tracing::warn!(
                ?noted,
                "others do not find yet where this replica gives copies"
            );
        }
        let (mut silence, mut again) = (OutageLog::default(), PEERS_AGAIN);
        // A journal that does not open is reported when the exchange is opened.
        let files = Files::new(&self.directory);
        let mut commands = commands_in(&files, options).unwrap_or(u64::MAX);
        loop {
            let found = gap(log, commands);
            let error = found.as_ref().err().map(ToString::to_string);
            silence.note_log(error.as_deref(), Instant::now());
            let wait = match found {
                Ok(None) => return Ok(true),
                // It halts when it follows.
                Err(LogError::Foreign(_)) => return Ok(true),
                Ok(Some(_)) if self.has_archive => return Ok(true),
                Err(_) => LOG_AGAIN,
                Ok(Some(oldest)) => {
                    tracing::warn!(
                        commands,
                        oldest,
                        "the log begins behind what this replica has"
                    );
                    match self.run(options, (log, oldest, commands), &mut pause) {
                        Ok(copied) => {
                            (commands, again) = (copied, PEERS_AGAIN);
                            continue;
                        }
                        Err(
                            error
                            @ (CatchUpError::Directory { .. } | CatchUpError::OtherLog { .. }),
                        ) => return Err(error),
                        Err(_) if !pause(Duration::ZERO) => return Ok(false),
                        Err(error) => {
                            let wait = error.wait(&mut again);
                            let again_s = wait.as_secs();
                            tracing::warn!(%error, again_s, "this replica has not caught up");
                            wait
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
    /// has, which no exchange has open. `oldest` is the first command that the log has, `commands`
    /// how many the directory has. Returns how many it has then.
    ///
    /// # Errors
    /// See [`CatchUpError`]; the directory has what it had.
    fn run(
        &self,
        options: &Options,
        (log, oldest, commands): (&mut dyn CommandLog, u64, u64),
        pause: Pause<'_>,
    ) -> Result<u64, CatchUpError> {
        let mut failed = Vec::new();
        let in_directory = |source| self.failed(source);
        // Before it is looked at: another program may have changed it until then.
        let held = directory::hold(&self.directory).map_err(in_directory)?;
        let log_number = self.check_log(log, commands)?;
        let peers = self.peers(log, oldest).map_err(CatchUpError::Log)?;
        for (replica, place) in peers {
            let part = held.empty_part().map_err(in_directory)?;
            let copied = try_peer((&place, &part), options, log, pause);
            let goes_on = pause(Duration::ZERO);
            match copied {
                Ok(commands) if goes_on => {
                    // It was checked against the log.
                    let noted = note_log(&Files::new(&part), log_number);
                    noted.map_err(|error| in_directory(io::Error::other(error.to_string())))?;
                    held.replace().map_err(in_directory)?;
                    tracing::info!(%replica, commands, "a copy of another replica is in place");
                    return Ok(commands);
                }
                copied => {
                    held.remove_part().map_err(in_directory)?;
                    failed.extend(copied.err().map(|error| (replica, error)));
                }
            }
            if !goes_on {
                break;
            }
        }
        Err(CatchUpError::NoCopy(failed))
    }

    /// Returns the start of the log's chain where the directory, which is held and had this number
    /// of commands, may be replaced: it belongs to this log, or is empty.
    ///
    /// # Errors
    /// [`CatchUpError::OtherLog`], or the log or the directory cannot be read.
    fn check_log(&self, log: &mut dyn CommandLog, commands: u64) -> Result<u64, CatchUpError> {
        let claim = log.read(u64::MAX).map_err(CatchUpError::Log)?.claim;
        let unclaimed = || CatchUpError::Log(LogError::Silent("it is claimed no more".to_owned()));
        let log = claim.ok_or_else(unclaimed)?.chain_start();
        let own = log_of(&Files::new(&self.directory))
            .map_err(|error| self.failed(io::Error::other(error.to_string())));
        let has_commands = directory::has_commands(&self.directory);
        let has_commands = has_commands.map_err(|error| self.failed(error))?;
        match own {
            _ if !has_commands => Ok(log),
            Ok(own) if own == Some(log) => Ok(log),
            Ok(own) => Err(CatchUpError::OtherLog {
                place: self.directory.clone(),
                commands,
                own,
                log,
            }),
            Err(error) => Err(error),
        }
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
}

/// Gets a copy from a place into an empty directory, and checks it. Returns how many commands it
/// has.
fn try_peer(
    (place, part): (&str, &Path),
    options: &Options,
    log: &mut dyn CommandLog,
    pause: Pause<'_>,
) -> Result<u64, CopyError> {
    let began = Instant::now();
    let tail = log
        .read(u64::MAX)
        .map_err(|error| CopyError::Halted(error.into()))?;
    let start = tail.claim.map_or(0, |claim| claim.start.commands);
    // The newest batch checks the copy.
    let until = tail.newest.unwrap_or(start);
    let storage = Files::new(part);
    let copied = peer::fetch(place, until, (&storage, options), pause)?;
    tracing::info!(
        snapshot = copied.snapshot,
        commands = copied.commands,
        bytes = copied.bytes,
        took_ms = began.elapsed().as_millis() as u64,
        "a copy of another replica was received"
    );
    check(storage, options.clone(), log)
}

#[cfg(test)]
mod tests;
