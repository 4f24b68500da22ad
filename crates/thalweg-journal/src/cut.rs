//! Giving up the end of a journal: what is damaged, or what should not have been written.

use crate::error::Error;
use crate::fault::Faults;
use crate::format::{PAGE_BYTES, is_spare, segment_name, spare_name};
use crate::lsn::Lsn;
use crate::pages::Pages;
use crate::recovery::{Directory, survey};
use crate::scan::{Found, Segment, open_segment};
use crate::storage::{Storage, StorageFile, Syncing, write_fully};

/// Zeros are written in pieces of this.
const PIECE_BYTES: u64 = 1 << 20;
/// Files that a cut keeps to be used again.
const SPARES_MAX: usize = 2;

/// What a cut did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// The last record that is left.
    pub last: Lsn,
    /// The segment that ends now where the cut is.
    pub file: String,
    /// Where that is, bytes.
    pub offset_bytes: u64,
    /// Segments behind it that were removed.
    pub segments_removed: usize,
}

/// Cuts a journal that nobody writes: before record `at`, which must be the first of a block, or
/// without it before the first damage.
///
/// What is behind the cut is lost, and its record numbers are given again. Later segments go from
/// the last one on, and then the rest of the segment with the cut is overwritten; so a cut that was
/// interrupted can be repeated.
///
/// # Errors
/// Another journal writes there; there is no record `at`, or it is inside a block; the file system.
pub fn cut<S: Storage>(storage: &S, at: Option<Lsn>) -> Result<Cut, Error> {
    cut_with(storage, at, Faults::default())
}

pub(crate) fn cut_with<S: Storage>(
    storage: &S,
    at: Option<Lsn>,
    faults: Faults,
) -> Result<Cut, Error> {
    let place = storage.place();
    let lock = storage.lock();
    let lock = lock.map_err(|error| Error::io(&place, "be locked", error))?;
    let Some(_lock) = lock else {
        return Err(Error::InUse { place });
    };
    let Some(directory) = survey(storage, true, faults)? else {
        return Err(Error::NoJournal { place });
    };
    let segment = find(storage, &directory, at, faults)?;
    let behind = (directory.used.iter().map(|known| known.number))
        .chain(directory.prepared.iter().copied())
        .filter(|number| *number > segment.header.number);
    let behind: Vec<u64> = behind.collect();
    for number in behind.iter().rev() {
        give_up(storage, *number, faults)?;
    }
    wipe(&segment).map_err(|error| Error::io(&segment.name, "be written", error))?;
    Ok(Cut {
        last: segment.next.before(),
        offset_bytes: segment.offset,
        segments_removed: directory.used.len()
            - 1
            - (directory.used.iter())
                .position(|known| known.number == segment.header.number)
                .unwrap_or(0),
        file: segment.name,
    })
}

/// The segment with the cut, at that place.
fn find<S: Storage>(
    storage: &S,
    directory: &Directory<S::File>,
    at: Option<Lsn>,
    faults: Faults,
) -> Result<Segment<S::File>, Error> {
    let mut pages = Pages::new(PAGE_BYTES);
    let first = directory.used[0].first;
    let mut numbers = directory.used.iter().map(|known| known.number).peekable();
    let mut found = None;
    while let Some(number) = numbers.next() {
        let mut segment = open_segment(storage, number, true, faults)?;
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
        let goes_on = match numbers.peek() {
            None => false,
            Some(next) => {
                let next = open_segment(storage, *next, false, faults)?;
                segment.check_successor(&next.header).is_ok()
            }
        };
        if !goes_on {
            found = Some(segment);
            break;
        }
    }
    let place = || storage.place();
    let segment = found.ok_or_else(|| Error::NoJournal { place: place() })?;
    match at {
        Some(lsn) if lsn != segment.next => {
            let last = segment.next.before();
            Err(Error::NoRecord { lsn, first, last })
        }
        _ => Ok(segment),
    }
}

fn give_up<S: Storage>(storage: &S, number: u64, faults: Faults) -> Result<(), Error> {
    let name = segment_name(number);
    let full = format!("{}/{name}", storage.place());
    let spares = storage.list();
    let spares = spares.map_err(|error| Error::io(storage.place(), "be read", error))?;
    let has_room = spares.iter().filter(|name| is_spare(name)).count() < SPARES_MAX;
    let done = match open_segment(storage, number, false, faults) {
        Ok(segment) if has_room => storage.rename(&name, &spare_name(segment.header.epoch)),
        _ => storage.remove(&name),
    };
    done.and_then(|()| storage.sync_names())
        .map_err(|error| Error::io(full, "be given up", error))
}

fn wipe<F: StorageFile>(segment: &Segment<F>) -> std::io::Result<()> {
    let zeros = vec![0; PIECE_BYTES.min(segment.room()) as usize];
    let mut offset = segment.offset;
    while offset < segment.header.segment_bytes {
        let bytes = (segment.header.segment_bytes - offset).min(PIECE_BYTES);
        write_fully(
            &segment.file,
            offset,
            &zeros[..bytes as usize],
            Syncing::Later,
        )?;
        offset += bytes;
    }
    segment.file.sync()
}
