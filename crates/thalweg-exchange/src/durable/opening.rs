//! Opening a durable exchange: what is there is found, executed again, and goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::pipeline::Placement;
use thalweg_journal::{Journal, Lsn, Reader, Recovery, Storage, TornWrite};

use super::committer::{Committer, Committing, Gate};
use super::error::OpenError;
use super::exchange::{Exchange, Owner, Reported};
use super::faults::Faults;
use super::in_flight::{Admission, InFlight};
use super::options::{KEPT_MAX, Options, SyncMode};
use super::published::Published;
use super::replay::{Image, Replayer};
use super::replication::LOG_FILE;
use super::replication::leading::Replication;
use super::snapshots::{
    Skipped, SnapshotHeader, Snapshots, Writer, header_of, newest, snapshot_commands,
};
use super::stats::{Meters, StageTimes};
use super::tables::Reports;
use crate::command::UserLimits;
use crate::digest::Digest;
use crate::service::{Prefetcher, Stamping};
use crate::snapshot::state_hash;

/// How an exchange is opened, beside its options.
pub(super) struct Opening<'p> {
    pub(super) progress: &'p mut dyn FnMut(u64, u64),
    pub(super) faults: Faults,
}

/// The findings when an exchange was opened.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Commands that the exchange has executed, ever.
    pub commands: u64,
    /// The number of them that were executed again now.
    pub replayed: u64,
    /// The digest of all of them and of what came of them.
    pub digest: Digest,
    /// The snapshot from which on they were executed; none of a new exchange, and none where all
    /// are damaged, and the whole journal was executed.
    pub snapshot: Option<SnapshotHeader>,
    /// Newer ones that are damaged.
    pub skipped: Vec<Skipped>,
    /// The unfinished write at the end of the journal, if there was one.
    pub torn: Option<TornWrite>,
    /// The exchange's time, if it was ever set.
    pub time: Option<i64>,
    /// The limits of users without their own.
    pub limits: UserLimits,
    /// How long it took.
    pub took: Duration,
}

#[cfg(unix)]
impl Exchange {
    /// Opens the exchange in this directory, or makes one. Everything that is in its journal is
    /// executed again; then `publish` is called for what comes, by calls of the exchange.
    ///
    /// # Errors
    /// Another process has it open; the directory is none of an exchange; what is there is damaged,
    /// or of another version; options that are out of range; the file system.
    pub fn open(
        directory: impl AsRef<std::path::Path>,
        options: Options,
        publish: impl FnMut(Published<'_>) + Send + 'static,
    ) -> Result<(Self, Recovered), OpenError> {
        Self::open_in(thalweg_journal::Files::new(directory), options, publish)
    }
}

impl<S: Storage> Exchange<S> {
    /// Opens as [`open`](Exchange::open) does, in any storage.
    ///
    /// # Errors
    /// As there.
    pub fn open_in(
        storage: S,
        options: Options,
        publish: impl FnMut(Published<'_>) + Send + 'static,
    ) -> Result<(Self, Recovered), OpenError> {
        let open = Opening {
            progress: &mut |_, _| (),
            faults: Faults::default(),
        };
        Self::open_with(storage, options, publish, open)
    }

    /// Opens as [`open_in`](Self::open_in) does, and reports on the way how many bytes of the
    /// journal were read, of how many at most.
    ///
    /// # Errors
    /// As there.
    pub fn open_showing(
        storage: S,
        options: Options,
        publish: impl FnMut(Published<'_>) + Send + 'static,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Self, Recovered), OpenError> {
        let faults = Faults::default();
        Self::open_with(storage, options, publish, Opening { progress, faults })
    }

    pub(super) fn open_with(
        storage: S,
        options: Options,
        publish: impl FnMut(Published<'_>) + Send + 'static,
        Opening { progress, faults }: Opening<'_>,
    ) -> Result<(Self, Recovered), OpenError> {
        let began = Instant::now();
        check_limits(&options)?;
        check_ours(&storage)?;
        let journal = Journal::<[u8], S>::open_in(storage.clone(), options.journal.clone())?;
        let (identity, recovery) = (journal.identity(), journal.recovery().clone());
        let found = newest(&storage, identity, &options.sessions);
        let (mut image, snapshot, skipped) = match found {
            Ok(Some(found)) => (found.image, Some(found.header), found.skipped),
            Ok(None) if recovery.last == Lsn::ZERO => (Image::new(&options), None, Vec::new()),
            Ok(None) => return Err(no_rules(storage.location())),
            // The journal has all, and a header that is whole says what it must give.
            Err(OpenError::NoSnapshot { skipped })
                if recovery.first <= Lsn::FIRST
                    && !headers_of(&storage, identity, &skipped).is_empty() =>
            {
                (Image::new(&options), None, skipped)
            }
            Err(error) => return Err(error),
        };
        let (from, place) = (image.number, storage.location());
        let reached = skipped.first().map_or(from, |newest| newest.commands);
        if recovery.last.number() < reached {
            return Err(OpenError::Behind {
                place,
                commands: recovery.last.number(),
                snapshot: reached,
            });
        }
        let rebuilt = || headers_of(&storage, identity, &skipped);
        let headers = snapshot.map_or_else(rebuilt, |_| Vec::new());
        let bytes = replay(&storage, &recovery, (&mut image, &headers), progress)?;
        let recovered = Recovered {
            commands: image.number,
            replayed: image.number - from,
            digest: image.digest,
            snapshot,
            skipped,
            torn: recovery.torn,
            time: image.state.risk.clock(),
            limits: image.state.risk.default_limits(),
            took: began.elapsed(),
        };
        let writer = Writer {
            storage,
            journal: journal.share(thalweg_journal::GroupCommit::default()),
            identity,
            limits: options.sessions,
            kept: options.snapshot.kept,
            faults,
            damaged: Arc::default(),
            archive: Arc::default(),
            is_closing: Arc::default(),
        };
        writer.note_damaged(&recovered.skipped);
        if recovered.snapshot.is_none() {
            // It has the rules.
            let first = writer.last(&image.state, &image.tables, image.digest);
            first.map_err(OpenError::First)?;
        }
        let mut snapshots = Snapshots::new(writer, options.snapshot, from);
        snapshots.count(bytes);
        Self::start(snapshots, image, options, publish).map(|exchange| (exchange, recovered))
    }

    /// Goes on after the image.
    fn start(
        snapshots: Snapshots<S>,
        mut image: Image,
        options: Options,
        mut publish: impl FnMut(Published<'_>) + Send + 'static,
    ) -> Result<Self, OpenError> {
        // No command may wait for that while the exchange runs.
        image.state.matching.keep_owners();
        publish(Published::Started {
            state: &image.state,
            number: image.number,
        });
        let Writer {
            journal,
            identity,
            faults,
            ..
        } = snapshots.writer.clone();
        let gate = Arc::new(Gate::default());
        let meters = Arc::new(Meters::default());
        let committing = Committing {
            journal: journal.clone(),
            room_pause: options.room_pause,
            gate: Arc::clone(&gate),
            meters: Arc::clone(&meters),
            durable: image.number,
        };
        let is_on_caller = options.service.placement == Placement::inline();
        let committer = match options.sync {
            SyncMode::Never => Committer::None,
            SyncMode::Always => Committer::start(committing, is_on_caller, options.wake.clone())
                .map_err(|error| OpenError::Thread(error.to_string()))?,
        };
        let service = &options.service;
        let stamping = Stamping::new(service);
        image.tables.noted = image.digest;
        Ok(Self {
            digest: image.digest,
            in_flight: InFlight::new(service.capacity, service.events, service.levels),
            stage_times: StageTimes::new(stamping.every()),
            stamping,
            prefetcher: Prefetcher::default(),
            admission: Admission::new(&image.tables.sessions, options.sessions),
            reports: Reports::new(image.tables),
            reported: Reported::default(),
            replication: Replication::default(),
            state: image.state,
            committer,
            journal,
            identity,
            gate,
            meters,
            options,
            snapshots,
            owner: Owner::new(image.number),
            faults,
            publish: Box::new(publish),
        })
    }
}

fn no_rules(place: String) -> OpenError {
    OpenError::NoRules { place }
}

/// Returns the headers of damaged snapshots, where they are whole: the journal must give the same;
/// ascending.
fn headers_of<S: Storage>(storage: &S, journal: u64, skipped: &[Skipped]) -> Vec<SnapshotHeader> {
    let headers = skipped.iter().rev();
    let headers = headers.filter_map(|one| header_of(storage, one.commands).ok());
    let headers = headers.filter(|header| header.journal == journal);
    headers.collect()
}

/// Executes what comes after the image, which must lead to what these headers say on the way; gives
/// how many bytes the commands have.
fn replay<S: Storage>(
    storage: &S,
    recovery: &Recovery,
    (image, headers): (&mut Image, &[SnapshotHeader]),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, OpenError> {
    let place = storage.location();
    let (first, last) = (recovery.first.number(), recovery.last.number());
    if first > image.number + 1 {
        return Err(OpenError::Gap {
            place,
            missing: image.number,
            first: first - 1,
        });
    }
    let mut replayer = Replayer::default();
    let ends = headers.iter().map(|header| header.commands).chain([last]);
    for (at, end) in ends.enumerate() {
        if image.number < end {
            let reader = Reader::open_in(storage.clone(), Lsn::new(image.number + 1))?;
            replayer.run(image, reader, end, &place, progress)?;
        }
        if headers.get(at).is_some_and(|header| !is_of(image, header)) {
            let commands = image.number;
            return Err(OpenError::OtherRules { place, commands });
        }
    }
    Ok(replayer.bytes())
}

/// The digest says what came of the commands, the state's hash under which rules.
fn is_of(image: &Image, header: &SnapshotHeader) -> bool {
    image.digest == header.digest && state_hash(&image.state) == header.state_hash
}

fn check_limits(options: &Options) -> Result<(), OpenError> {
    let sessions = &options.sessions;
    let kept_max = u64::from(KEPT_MAX);
    let in_range = |what, asked: u64, most| {
        let least = 1;
        let error = OpenError::Limit {
            what,
            asked,
            least,
            most,
        };
        (least..=most).contains(&asked).then_some(()).ok_or(error)
    };
    in_range("answers_kept", sessions.answers_kept.into(), kept_max)?;
    in_range("reports_kept", sessions.reports_kept.into(), kept_max)?;
    let many = u64::from(u32::MAX - 1);
    in_range("sessions_per_user", sessions.sessions_per_user.into(), many)?;
    in_range("sessions_max", sessions.sessions_max.into(), many)?;
    in_range("kept snapshots", options.snapshot.kept as u64, 1 << 10)
}

/// Refuses a directory that holds something else: a journal would be made there.
fn check_ours<S: Storage>(storage: &S) -> Result<(), OpenError> {
    let place = storage.location();
    // If it cannot be read, opening the journal reports why.
    let names = storage.list().unwrap_or_default();
    if names.iter().any(|name| name.ends_with(".segment")) {
        return Ok(());
    }
    let is_other = |name: &String| {
        let is_ours = ["lock", LOG_FILE].contains(&name.as_str());
        !is_ours && !name.ends_with(".part") && !name.ends_with(".spare")
    };
    let Some(file) = names.into_iter().find(is_other) else {
        return Ok(());
    };
    Err(match snapshot_commands(&file) {
        Some(_) => OpenError::NoJournal { place },
        None => OpenError::NotOurs { place, file },
    })
}
