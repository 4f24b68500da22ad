//! Opening a durable exchange: what is there is found, executed again, and goes on.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thalweg_journal::{Journal, Lsn, Reader, Recovery, Shared, Storage, Torn};

use super::admission::Admission;
use super::error::OpenError;
use super::exchange::{Exchange, Owner};
use super::faults::Faults;
use super::gate::{Gate, pace};
use super::options::{KEPT_MAX, Options};
use super::publishing::{ChunkNotes, Committing, Published};
use super::replay::{Image, Replayer};
use super::stats::Meters;
use super::tables::{Reports, Tables};
use crate::digest::Digest;
use crate::engine::state::State;
use crate::service::{self, start_chunks};

/// What was found when an exchange was opened.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Commands that the exchange has executed, ever.
    pub commands: u64,
    /// Those of them that were executed again now.
    pub replayed: u64,
    /// The digest of all of them and of what came of them.
    pub digest: Digest,
    /// The unfinished write at the end of the journal, if there was one.
    pub torn: Option<Torn>,
    /// How long it took.
    pub took: Duration,
}

#[cfg(unix)]
impl Exchange {
    /// Opens the exchange in this directory, or makes one. Everything that is in its journal is
    /// executed again; then `publish` is called for what comes, by the publish stage.
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
    /// [`open`](Exchange::open) in any storage.
    ///
    /// # Errors
    /// As there.
    pub fn open_in(
        storage: S,
        options: Options,
        publish: impl FnMut(Published<'_>) + Send + 'static,
    ) -> Result<(Self, Recovered), OpenError> {
        Self::open_with(storage, options, publish, Faults::default())
    }

    pub(super) fn open_with(
        storage: S,
        options: Options,
        publish: impl FnMut(Published<'_>) + Send + 'static,
        faults: Faults,
    ) -> Result<(Self, Recovered), OpenError> {
        let began = Instant::now();
        check_limits(&options)?;
        check_ours(&storage)?;
        let journal = Journal::<[u8], S>::open_in(storage.clone(), options.journal.clone())?;
        let identity = journal.identity();
        let recovery = journal.recovery().clone();
        let mut image = Image {
            state: State::new(options.rules),
            tables: Tables::new(&options.sessions),
            digest: Digest::new(),
            number: 0,
        };
        let replayed = replay(&storage, &recovery, &mut image)?;
        let recovered = Recovered {
            commands: image.number,
            replayed,
            digest: image.digest,
            torn: recovery.torn,
            took: began.elapsed(),
        };
        let journal = journal.share(thalweg_journal::GroupCommit::default());
        let exchange = Self::start((journal, identity), image, options, publish, faults)?;
        Ok((exchange, recovered))
    }

    /// Goes on after the image.
    fn start(
        (journal, identity): (Shared<[u8], S>, u64),
        image: Image,
        options: Options,
        mut publish: impl FnMut(Published<'_>) + Send + 'static,
        faults: Faults,
    ) -> Result<Self, OpenError> {
        publish(Published::Started {
            state: &image.state,
            number: image.number,
        });
        let gate = Arc::new(Gate::new());
        let meters = Arc::new(Meters::default());
        let admission = Admission::new(&image.tables.sessions, options.sessions);
        let reports = Reports::new(image.tables);
        let inquiries = Arc::new(Mutex::default());
        let committing = Committing {
            journal: journal.clone(),
            sync: options.sync,
            room_pause: options.room_pause,
            gate: Arc::clone(&gate),
            meters: Arc::clone(&meters),
            reports: reports.clone(),
            inquiries: Arc::clone(&inquiries),
            faults,
            publish,
            chunk: ChunkNotes::new(image.number),
        };
        let service = service::Options {
            digest: Some(image.digest),
            first_sequence: image.number,
            ..options.service.clone()
        };
        let service = start_chunks(image.state, service, committing)?;
        Ok(Self {
            service: Some(service),
            journal,
            identity,
            gate,
            meters,
            reports,
            inquiries,
            admission,
            options,
            owner: Owner {
                number: image.number,
                commands: 0,
                bytes: 0,
                is_unflushed: false,
                refused_until: None,
                pace: pace(),
                buffer: Vec::new(),
            },
        })
    }
}

/// Executes what comes after the image; gives how many commands.
fn replay<S: Storage>(
    storage: &S,
    recovery: &Recovery,
    image: &mut Image,
) -> Result<u64, OpenError> {
    let place = storage.place();
    let (first, last) = (recovery.first.number(), recovery.last.number());
    if first > image.number + 1 {
        return Err(OpenError::Gap {
            place,
            missing: image.number,
            first: first - 1,
        });
    }
    if last == image.number {
        return Ok(0);
    }
    let mut reader = Reader::open_in(storage.clone(), Lsn::new(image.number + 1))?;
    let mut replayer = Replayer::default();
    let mut replayed = 0;
    while let Some(commands) = replayer.block(image, &mut reader, &place)? {
        replayed += commands;
    }
    Ok(replayed)
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
    let place = storage.place();
    // What cannot be read is told by the journal.
    let names = storage.list().unwrap_or_default();
    if names.iter().any(|name| name.ends_with(".segment")) {
        return Ok(());
    }
    let is_ours =
        |name: &&String| ["lock", "new.part"].contains(&name.as_str()) || name.ends_with(".spare");
    match names.iter().find(|name| !is_ours(name)) {
        Some(file) => Err(OpenError::NotOurs {
            place,
            file: file.clone(),
        }),
        None => Ok(()),
    }
}
