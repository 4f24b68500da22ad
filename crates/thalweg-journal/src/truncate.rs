//! Truncates a journal: removes an end that is damaged, or should not have been written.

use crate::error::Error;
use crate::fault::Faults;
use crate::format::{PAGE_BYTES, is_spare, segment_name, spare_name};
use crate::lsn::Lsn;
use crate::pages::Pages;
use crate::recovery::segment_numbers;
use crate::scan::{Found, Segment, open_segment};
use crate::storage::{Storage, StorageFile, WriteSync, write_fully};

/// Zeros are written in pieces of this.
const PIECE_BYTES: u64 = 1 << 20;
/// Files that a truncation keeps to be used again.
const SPARES_MAX: usize = 2;

/// The outcome of a truncation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncation {
    /// The last record that is left.
    pub last: Lsn,
    /// The segment that is the last one now.
    pub file: String,
    /// The end of the records in that file, bytes.
    pub offset_bytes: u64,
    /// The number of segments behind it that were removed.
    pub segments_removed: usize,
}

/// Truncates a journal that no process writes: before record `at`, which must be the first of a
/// block, or if `at` is `None` before the first damage, which is in a block, or a segment that is
/// missing or of another journal.
///
/// The records that are removed are lost, and their numbers are used again. It removes later
/// segments, the last one first, and then overwrites the rest of the segment; so a truncation that
/// was interrupted can be repeated. Until then, the journal may be reported as damaged there.
///
/// # Errors
/// Another journal writes there; there is no record `at`, or it is inside a block; the first
/// segment is damaged, so that nothing would be left; one is of a newer version; the file system.
pub fn truncate<S: Storage>(storage: &S, at: Option<Lsn>) -> Result<Truncation, Error> {
    truncate_with(storage, at, Faults::default())
}

pub(crate) fn truncate_with<S: Storage>(
    storage: &S,
    at: Option<Lsn>,
    faults: Faults,
) -> Result<Truncation, Error> {
    let location = storage.location();
    // Before the lock, which would leave a file in a directory that is none of ours.
    if segment_numbers(storage)?.is_empty() {
        return Err(Error::NoJournal { location });
    }
    let lock = storage.lock();
    let lock = lock.map_err(|error| Error::io(&location, "be locked", error))?;
    let Some(_lock) = lock else {
        return Err(Error::InUse { location });
    };
    let numbers = segment_numbers(storage)?;
    let segment = find(storage, &numbers, at, faults)?;
    let behind = numbers.iter().rev();
    let mut segments_removed = 0;
    for number in behind.take_while(|number| **number > segment.header.number) {
        segments_removed += usize::from(give_up(storage, *number, faults)?);
    }
    wipe(&segment).map_err(|error| Error::io(&segment.name, "be written", error))?;
    Ok(Truncation {
        last: segment.next.before(),
        offset_bytes: segment.offset,
        segments_removed,
        file: segment.name,
    })
}

/// Returns the segment that becomes the last one, at its new end.
fn find<S: Storage>(
    storage: &S,
    numbers: &[u64],
    at: Option<Lsn>,
    faults: Faults,
) -> Result<Segment<S::File>, Error> {
    let mut pages = Pages::new(PAGE_BYTES);
    let mut first = Lsn::ZERO;
    let mut found: Option<Segment<S::File>> = None;
    for number in numbers {
        let mut segment = match open_segment(storage, *number, true, faults) {
            Ok(segment) if goes_on(found.as_ref(), &segment) => segment,
            Err(error) if found.is_none() || !matches!(error, Error::BadSegment { .. }) => {
                return Err(error);
            }
            _ => break,
        };
        if found.is_none() {
            first = segment.next;
        }
        while let Found::Next(block) = segment.find_next(&mut pages)? {
            if at == Some(segment.next) {
                return Ok(segment);
            }
            if at.is_some_and(|at| block.first < at && at <= block.last()) {
                return Err(Error::InsideBlock {
                    lsn: at.unwrap_or_default(),
                    first: block.first,
                    next: block.last().after(1),
                });
            }
            segment.pass(&block);
        }
        found = Some(segment);
    }
    let location = || storage.location();
    let segment = found.ok_or_else(|| Error::NoJournal {
        location: location(),
    })?;
    match at {
        Some(lsn) if lsn != segment.next => {
            let last = segment.next.before();
            Err(Error::NoRecord { lsn, first, last })
        }
        _ => Ok(segment),
    }
}

/// Returns whether a segment has records, and continues the one before it, which ends where it is.
fn goes_on<F: StorageFile>(before: Option<&Segment<F>>, segment: &Segment<F>) -> bool {
    let is_next = |before: &Segment<F>| {
        before.header.number + 1 == segment.header.number
            && before.header.is_of_journal(&segment.header)
            && before.check_successor(&segment.header).is_ok()
    };
    segment.header.first.is_some() && before.is_none_or(is_next)
}

/// Removes a segment, or keeps its file to be used again; says whether it may have had records.
fn give_up<S: Storage>(storage: &S, number: u64, faults: Faults) -> Result<bool, Error> {
    let name = segment_name(number);
    let full = format!("{}/{name}", storage.location());
    let spares = storage.list();
    let spares = spares.map_err(|error| Error::io(storage.location(), "be read", error))?;
    let has_room = spares.iter().filter(|name| is_spare(name)).count() < SPARES_MAX;
    let header = open_segment(storage, number, false, faults).map(|segment| segment.header);
    let done = match &header {
        Ok(header) if has_room => storage.rename(&name, &spare_name(header.epoch)),
        _ => storage.remove(&name),
    };
    done.and_then(|()| storage.sync_names())
        .map_err(|error| Error::io(full, "be given up", error))?;
    Ok(!header.is_ok_and(|header| header.first.is_none()))
}

fn wipe<F: StorageFile>(segment: &Segment<F>) -> std::io::Result<()> {
    // It may say that the log goes on in the next one.
    write_fully(
        &segment.file,
        0,
        &segment.header.encode(),
        WriteSync::Deferred,
    )?;
    let zeros = vec![0; PIECE_BYTES.min(segment.room()) as usize];
    let mut offset = segment.offset;
    while offset < segment.header.segment_bytes {
        let bytes = (segment.header.segment_bytes - offset).min(PIECE_BYTES);
        write_fully(
            &segment.file,
            offset,
            &zeros[..bytes as usize],
            WriteSync::Deferred,
        )?;
        offset += bytes;
    }
    segment.file.sync()
}
