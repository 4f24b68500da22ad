//! A durable exchange: executes on the thread that owns it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::wait::Pace;
use thalweg_journal::{DefaultStorage, Error as JournalError, Lsn, Shared, Storage};

use super::committer::{Committer, Gate, pace};
use super::error::{ExchangeError, SnapshotWriteError};
use super::faults::Faults;
use super::in_flight::{Admission, InFlight};
use super::options::{Options, SyncMode};
use super::published::Published;
use super::replication::leading::Replication;
use super::snapshots::Snapshots;
use super::stats::{JournalStats, Meters, SnapshotMade, SnapshotStats, StageTimes, Stats};
use super::tables::{ReportFrame, Reports};
use crate::command::Command;
use crate::digest::Digest;
use crate::engine::state::State;
use crate::service::{self, EVENTS_IN_FLIGHT, Prefetcher, Stamping};
use crate::session::Refusal;

/// Acknowledged commands that the local disk may lag behind by: nothing more is handed over to the
/// sequencer then.
const LAG_MAX: u64 = 1 << 20;

/// How often an owner that is idle flushes at most.
const FLUSH_EVERY: Duration = Duration::from_millis(5);

/// The number of reports for which room is kept from one call to the next.
const REPORTS_ROOM: usize = 4096;

/// The results of an exchange that was closed.
#[derive(Debug)]
pub struct Finished {
    /// How many commands it has executed, ever.
    pub commands: u64,
    /// State and figures of the service.
    pub service: service::ServiceResults,
    /// The digest of all commands and their outcomes.
    pub digest: Digest,
    /// The last snapshot; none where there was one of the same commands. If it was not written,
    /// everything is in the journal all the same.
    pub snapshot: Result<Option<SnapshotMade>, SnapshotWriteError>,
}

/// The closure that publishes.
pub(super) type Publish = Box<dyn FnMut(Published<'_>) + Send>;

/// A durable exchange: see the [module](super). One thread owns it.
pub struct Exchange<S: Storage = DefaultStorage> {
    pub(super) state: State,
    /// The digest of all that was published.
    pub(super) digest: Digest,
    pub(super) in_flight: InFlight,
    pub(super) stamping: Stamping,
    pub(super) prefetcher: Prefetcher,
    pub(super) committer: Committer<S>,
    pub(super) journal: Shared<[u8], S>,
    pub(super) identity: u64,
    pub(super) gate: Arc<Gate>,
    pub(super) meters: Arc<Meters>,
    pub(super) stage_times: StageTimes,
    pub(super) reports: Reports,
    pub(super) reported: Reported,
    pub(super) admission: Admission,
    pub(super) replication: Replication,
    pub(super) options: Options,
    pub(super) snapshots: Snapshots<S>,
    pub(super) owner: Owner,
    pub(super) faults: Faults,
    pub(super) publish: Publish,
}

impl<S: Storage> fmt::Debug for Exchange<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

/// The state that only the owner's thread uses.
#[derive(Debug)]
pub(super) struct Owner {
    /// The number of the next command.
    pub(super) number: u64,
    /// Commands and bytes since it was opened.
    pub(super) commands: u64,
    pub(super) bytes: u64,
    /// Whether something was appended since the last flush, and when that was.
    pub(super) is_unflushed: bool,
    pub(super) flushed_at: Option<Instant>,
    /// When the journal is asked for room again.
    pub(super) refused_until: Option<(Instant, Refusal)>,
    pub(super) pace: Pace,
    /// The work of all that was executed.
    pub(super) work: u64,
    pub(super) is_failure_published: bool,
    /// The note of the next record of the log that is executed.
    pub(super) note: Option<Arc<[u8]>>,
    /// Commands in the journal that are not durable.
    pub(super) lag: u64,
    /// The lag from which on it waits for the disk.
    pub(super) lag_max: u64,
}

impl Owner {
    /// Returns the state for an exchange whose next command has this number.
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            commands: 0,
            bytes: 0,
            is_unflushed: false,
            flushed_at: None,
            refused_until: None,
            pace: pace(),
            work: 0,
            is_failure_published: false,
            note: None,
            lag: 0,
            lag_max: LAG_MAX,
        }
    }

    /// Counts a command whose record of this many bytes was appended. Returns its number.
    #[inline]
    pub(super) const fn note_taken(&mut self, bytes: usize) -> u64 {
        let number = self.number;
        self.note_run(1, bytes);
        number
    }

    /// Counts commands whose records have this many bytes together.
    #[inline]
    pub(super) const fn note_run(&mut self, count: u64, bytes: usize) {
        self.number += count;
        self.commands += count;
        self.bytes += bytes as u64;
        self.is_unflushed |= count > 0;
    }
}

/// Reports of the commands that are being published.
#[derive(Debug, Default)]
pub(super) struct Reported {
    pub(super) reports: Vec<ReportFrame>,
    /// Holds, of what is published by itself, which slot it is of those that are published
    /// together, and the number of reports before it.
    pub(super) apart: Vec<(usize, usize)>,
}

impl Reported {
    /// Removes the reports, and frees room beyond [`REPORTS_ROOM`], which one long sweep would
    /// otherwise keep.
    pub(super) fn clear(&mut self) {
        self.apart.clear();
        self.reports.clear();
        self.reports.shrink_to(REPORTS_ROOM);
    }
}

impl<S: Storage> Exchange<S> {
    /// Publishes what has become durable. Returns whether anything is still in flight. For an owner
    /// that has nothing to submit: commands may else wait for the next one. Does not wait for the
    /// disk, unless the caller commits.
    ///
    /// # Errors
    /// The exchange has stopped.
    pub fn idle(&mut self) -> Result<bool, ExchangeError> {
        self.publish()?;
        if self.snapshots.is_due_now() {
            self.snapshot_now();
        }
        let is_busy = self.in_flight.len() > 0;
        if !is_busy && self.options.sync == SyncMode::Never && self.owner.is_unflushed {
            self.flush_now_and_then()?;
        }
        Ok(is_busy)
    }

    /// A flush takes a block of its own, so one for each command would fill segments with nothing.
    fn flush_now_and_then(&mut self) -> Result<(), ExchangeError> {
        let now = Instant::now();
        let flushed_at = self.owner.flushed_at;
        if flushed_at.is_some_and(|at| now.saturating_duration_since(at) < FLUSH_EVERY) {
            return Ok(());
        }
        self.owner.flushed_at = Some(now);
        self.flush()
    }

    /// Has the system write what was appended, without waiting for the disk. Where there is no
    /// room, it stays where it is.
    fn flush(&mut self) -> Result<(), ExchangeError> {
        self.owner.is_unflushed = false;
        match self.journal.flush() {
            Ok(is_there) => {
                self.owner.is_unflushed = !is_there;
                Ok(())
            }
            Err(error @ JournalError::Stopped { .. }) => {
                let failed = ExchangeError::Journal(Arc::new(error));
                self.gate.fail(failed.clone());
                Err(failed)
            }
            _ => Ok(()),
        }
    }

    /// Waits until everything that was submitted is durable and published; while the disk is full,
    /// until it has room.
    ///
    /// # Errors
    /// The exchange has stopped.
    pub fn drain(&mut self) -> Result<(), ExchangeError> {
        while self.idle()? {
            self.wait_until(|_| false);
        }
        Ok(())
    }

    /// Drains as [`drain`](Self::drain) does, but stops waiting where the disk has no room for the
    /// commands in flight, and ends where the command log does not acknowledge them for 5 s.
    ///
    /// # Errors
    /// The exchange has stopped.
    pub fn drain_while_room(&mut self) -> Result<(), ExchangeError> {
        while !self.is_settled()? {
            self.give_up_on_log();
            self.wait_until(|gate| gate.lack().is_some());
        }
        Ok(())
    }

    /// Waits for a while, until more can be published, the exchange has stopped, or `is_enough`.
    pub(super) fn wait_until(&mut self, is_enough: impl Fn(&Gate) -> bool) {
        let end = self.journaled();
        let durable = self.committer.commit(end);
        let (gate, committer) = (&self.gate, &mut self.committer);
        let is_over =
            || committer.commit(end) != durable || gate.failed().is_some() || is_enough(gate);
        gate.wait(&mut self.owner.pace, is_over);
    }

    /// Publishes what has become durable. Returns true if everything that was submitted is
    /// published, or waits for room on the disk.
    ///
    /// # Errors
    /// The exchange has stopped.
    pub fn is_settled(&mut self) -> Result<bool, ExchangeError> {
        Ok(!self.idle()? || self.gate.lack().is_some())
    }

    /// Returns how many commands and queries can be submitted now without blocking; `usize::MAX`
    /// while the disk has no room, since all are refused then at once. It may be more after a call
    /// of [`idle`](Self::idle).
    ///
    /// # Errors
    /// The exchange has stopped.
    pub fn room(&mut self) -> Result<usize, ExchangeError> {
        self.gate.check()?;
        if self.gate.lack().is_some() {
            return Ok(usize::MAX);
        }
        Ok(self.capacity() - self.in_flight.len())
    }

    /// Returns the [work](crate::Events::work) of all commands and queries that were executed since
    /// the exchange was opened.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.owner.work
    }

    /// Returns the command that goes on with what earlier ones have left over: see
    /// [`State::left_over`]. Submitted as [`Origin::Engine`](super::Origin::Engine).
    #[must_use]
    pub fn left_over(&self) -> Option<Command> {
        self.state.left_over()
    }

    /// Returns how many commands and queries may be in flight: none while long ones hold as many
    /// events as all may.
    pub(super) fn capacity(&self) -> usize {
        match self.in_flight.waiting_events() >= EVENTS_IN_FLIGHT {
            true => self.in_flight.len(),
            false => self.in_flight.capacity(),
        }
    }

    /// Returns how many commands and queries are in flight: submitted and not published.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the state after all that was submitted, which is what was published where nothing is
    /// [in flight](Self::in_flight).
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Has the events of commands from now on list the [levels](crate::Events::levels) that each
    /// has changed, as with [`service::ServiceOptions::levels`].
    pub fn list_levels(&mut self) {
        self.in_flight.list_levels();
    }

    /// Returns after how long [`idle`](Self::idle) is to be called again where nothing is submitted
    /// until then; none where there is nothing left for it to do.
    #[must_use]
    pub fn idle_again(&self) -> Option<Duration> {
        let waits = self.options.sync == SyncMode::Never && self.owner.is_unflushed;
        waits.then_some(FLUSH_EVERY)
    }

    /// Has a snapshot made of what is published by now, or by the moment when it is made, if there
    /// is anything new: see [`Stats::snapshots`] for what came of it.
    pub fn snapshot_now(&mut self) {
        let commands = self.digest.outcomes();
        (self.snapshots).ask(commands, &self.reports, self.owner.bytes);
    }

    /// Returns figures of the snapshots so far.
    #[must_use]
    pub fn snapshots(&self) -> SnapshotStats {
        self.snapshots.stats()
    }

    /// Returns a handle to the sessions and the reports, for other threads.
    #[must_use]
    pub fn reports(&self) -> Reports {
        self.reports.clone()
    }

    /// Returns the number of the next command.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.owner.number
    }

    /// Returns the number of the journal, which identifies the exchange.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns figures. Takes some 100 µs on the calling thread.
    #[must_use]
    pub fn stats(&self) -> Option<Stats> {
        Some(Stats {
            number: self.owner.number,
            in_flight: self.in_flight.len(),
            sessions: self.admission.sessions(),
            reports: self.reports.lock().reports.total(),
            journal: JournalStats {
                commands: self.owner.commands,
                bytes: self.owner.bytes,
                commits: self.meters.commits(),
                commit_ns: self.meters.wait_ns(),
                group: self.meters.group(),
                lack: self.gate.lack(),
            },
            snapshots: self.snapshots.stats(),
            stages: self.stage_times.stats(self.owner.commands),
        })
    }

    /// Executes and publishes what was taken, makes it durable, writes a snapshot, and ends.
    ///
    /// # Errors
    /// The exchange has stopped; with [`ExchangeError::NoRoom`] since the disk is full, with
    /// [`ExchangeError::LogSilent`] since the command log has not answered for 5 s. Commands that
    /// were not published may then be in the journal or not.
    pub fn close(mut self) -> Result<Finished, ExchangeError> {
        self.gate.close();
        while self.idle()? {
            self.give_up_on_log();
            self.wait_until(|_| false);
        }
        // The snapshot takes long.
        self.leave_log();
        self.committer = Committer::None;
        if self.owner.number > 0 {
            let committed = self.journal.commit(Lsn::new(self.owner.number));
            committed
                .map(drop)
                .map_err(|error| ExchangeError::Journal(Arc::new(error)))?;
        }
        self.snapshots.end();
        let tables = self.reports.lock();
        let (state, digest) = (std::mem::take(&mut self.state), self.digest);
        let snapshot = self.snapshots.writer.last(&state, &tables, digest);
        drop(tables);
        let stats = self.stage_times.stats(self.owner.commands);
        Ok(Finished {
            commands: self.owner.number,
            service: service::ServiceResults { state, stats },
            digest,
            snapshot,
        })
    }
}

impl<S: Storage> Drop for Exchange<S> {
    fn drop(&mut self) {
        // The thread that commits may wait for room.
        self.gate.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::REPORT_BYTES;
    use crate::ids::UserId;
    use crate::session::ReportNumber;

    #[test]
    fn room_for_the_reports_of_a_sweep_is_not_kept() {
        let numbered = ReportFrame {
            number: ReportNumber(1),
            owner: UserId(7),
            frame: [0; REPORT_BYTES],
        };
        let mut reported = Reported::default();
        reported.reports.resize(100, numbered);
        let before = reported.reports.capacity();
        reported.clear();
        assert_eq!(reported.reports.capacity(), before);
        reported.reports.resize(100_000, numbered);
        reported.clear();
        assert!(reported.reports.is_empty());
        assert!(reported.reports.capacity() <= 2 * REPORTS_ROOM);
    }
}
