//! The receiver of a copy.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_journal::{Error as JournalError, Journal, Lsn, Storage};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::{CHUNK_BYTES_MAX, ChunkForm, Copied, CopyError, HeadForm, check_fields};
use crate::durable::exchange::Exchange;
use crate::durable::options::Options;
use crate::durable::replication::batch::Batch;
use crate::durable::replication::follower::Follower;
use crate::durable::replication::log::{CommandLog, LogError};
use crate::durable::replication::packing::split_record;
use crate::durable::snapshots::{Part, SnapshotHeader, whole_header};

/// How long a log that does not answer is asked again when a copy is checked.
const LOG_SILENT_MAX: Duration = Duration::from_secs(30);
/// Bytes of a snapshot that are received at once.
const PIECE_BYTES: usize = 256 << 10;
const AGAIN: Duration = Duration::from_millis(20);

/// Returns how many commands a directory has, which no exchange has open.
///
/// # Errors
/// The journal does not open.
pub fn commands_in<S: Storage>(storage: &S, options: &Options) -> Result<u64, JournalError> {
    let names = storage.list().unwrap_or_default();
    if !names.iter().any(|name| name.ends_with(".segment")) {
        return Ok(0);
    }
    let journal = Journal::<[u8], S>::open_in(storage.clone(), options.journal.clone())?;
    Ok(journal.recovery().last.number())
}

/// Returns the number of the first command that the log has, where a replica with this number of
/// commands needs earlier ones: then it needs a copy.
///
/// # Errors
/// The log does not answer, or what is there is not ours.
pub fn gap(log: &mut dyn CommandLog, commands: u64) -> Result<Option<u64>, LogError> {
    let tail = log.read(commands)?;
    let Some(claim) = tail.claim else {
        return Ok(None);
    };
    if commands < claim.start.commands {
        return Ok(Some(claim.start.commands));
    }
    let Some(first) = tail.batches.first().filter(|first| first.index > commands) else {
        return Ok(None);
    };
    // It may be in the middle of a batch.
    let goes_on = match log.find(commands)? {
        Some(stored) => Batch::read(&stored.bytes)?.end() > commands,
        None => false,
    };
    Ok((!goes_on).then_some(first.index))
}

/// Receives a copy into an empty directory. Nothing may rely on it before it is [checked](check).
///
/// # Errors
/// The stream ends early, its bytes were changed, or the directory takes no files.
pub fn receive<S: Storage>(
    storage: &S,
    input: &mut impl Read,
    options: &Options,
) -> Result<Copied, CopyError> {
    let head: HeadForm = form_from(input)?;
    head.check()?;
    let (snapshot, mut bytes) = (head.commands.get(), head.snapshot_bytes.get());
    let journal = (options.journal.clone())
        .journal_number(head.journal.get())
        .first(Lsn::new(snapshot.saturating_add(1)));
    // It makes the directory.
    let mut journal = Journal::<[u8], S>::open_in(storage.clone(), journal)?;
    let header = receive_snapshot(storage, input, (snapshot, bytes))?;
    check_fields(&[(
        "journal of the snapshot",
        header.journal,
        head.journal.get(),
    )])?;
    let mut records = Vec::new();
    let mut next = snapshot;
    loop {
        let chunk: ChunkForm = form_from(input)?;
        let length = chunk.bytes.get() as usize;
        // Before memory is taken for it.
        let most = length.min(CHUNK_BYTES_MAX);
        check_fields(&[("length of a chunk", length as u64, most as u64)])?;
        records.resize(length, 0);
        input.read_exact(&mut records)?;
        chunk.check(next, &records)?;
        let mut rest = &records[..];
        for _ in 0..chunk.count.get() {
            let (record, others) = split_record(rest)
                .ok_or_else(|| CopyError::Stream("a chunk ends within a record".to_owned()))?;
            journal.append_bytes_with(record.len(), |slot| slot.copy_from_slice(record))?;
            rest = others;
        }
        check_fields(&[("rest of a chunk", rest.len() as u64, 0)])?;
        if chunk.count.get() == 0 {
            break;
        }
        next += u64::from(chunk.count.get());
        bytes += length as u64;
    }
    let _durable = journal.commit()?;
    let commands = next;
    Ok(Copied {
        snapshot,
        commands,
        bytes,
    })
}

/// Receives the file of a snapshot, with this number of commands and of bytes.
fn receive_snapshot<S: Storage>(
    storage: &S,
    input: &mut impl Read,
    (commands, bytes): (u64, u64),
) -> Result<SnapshotHeader, CopyError> {
    let mut part = Part::new(storage)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let piece = &mut piece[..left.min(PIECE_BYTES as u64) as usize];
        input.read_exact(piece)?;
        part.write(piece)?;
        left -= piece.len() as u64;
    }
    part.finish(commands)?;
    let whole = whole_header(storage, commands);
    whole.map_err(|(file, why)| CopyError::Snapshot { file, why })
}

fn form_from<F: FromBytes + FromZeros + IntoBytes>(input: &mut impl Read) -> Result<F, CopyError> {
    let mut form = F::new_zeroed();
    input.read_exact(form.as_mut_bytes())?;
    Ok(form)
}

/// Checks a copy: opens it, executes what the log has after it, at least one batch, or, where that
/// has none yet, compares its start, and closes it. Returns how many commands it has then. The copy
/// may be relied on.
///
/// # Errors
/// The copy does not open, the log does not continue it, or does not answer for 30 s.
pub fn check<S: Storage>(
    storage: S,
    options: Options,
    log: &mut dyn CommandLog,
) -> Result<u64, CopyError> {
    let (exchange, _) = Exchange::open_in(storage, options, |_| ())?;
    let mut follower = Follower::new(exchange, usize::MAX);
    let mut answered = Instant::now();
    loop {
        match follower.poll(log) {
            Ok(polled) if polled.is_complete || polled.revision.is_none() => break,
            Ok(_) => {}
            Err(halted) if halted.is_transient() && answered.elapsed() < LOG_SILENT_MAX => {
                thread::park_timeout(AGAIN);
                continue;
            }
            Err(halted) => return Err(halted.into()),
        }
        answered = Instant::now();
    }
    let start = follower.seen().map(|claim| claim.start.commands);
    let commands = follower.exchange().number();
    if !follower.is_compared() && start != Some(commands) {
        return Err(CopyError::Unchecked { commands });
    }
    let finished = follower.into_exchange().close()?;
    Ok(finished.commands)
}
