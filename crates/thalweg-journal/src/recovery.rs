//! Recovery: the content of a directory, and the end of its log.

use std::collections::VecDeque;
use std::io;

use crate::error::Error;
use crate::fault::Faults;
use crate::format::{NUMBER_LIMIT, PAGE_BYTES, is_spare, padded, segment_name, segment_number};
use crate::lsn::Lsn;
use crate::pages::Pages;
use crate::scan::{Behind, Found, Segment, open_segment, read_header};
use crate::storage::{Storage, StorageFile, WriteSync, read_fully, write_fully};

/// A torn write: a crash interrupted it, and it was never reported as durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornWrite {
    /// The segment.
    pub file: String,
    /// The offset at which the unfinished block begins, bytes.
    pub offset_bytes: u64,
    /// The first record that it would have held.
    pub lsn: Lsn,
}

impl std::fmt::Display for TornWrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TornWrite {
            file,
            offset_bytes,
            lsn,
        } = self;
        write!(
            f,
            "{file}: an unfinished write at byte {offset_bytes} (record {lsn}) was left out"
        )
    }
}

/// The findings when a journal was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The first record that is kept; if there is none, the one that comes next.
    pub first: Lsn,
    /// The last record; the one before `first` if there is none.
    pub last: Lsn,
    /// The number of segments with records, or that are next to have some.
    pub segments: usize,
    /// The unfinished write at the end, if there was one.
    pub torn: Option<TornWrite>,
}

/// A segment that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) number: u64,
    pub(crate) first: Lsn,
}

/// The segments of a directory, by their headers.
#[derive(Debug)]
pub(crate) struct Directory<F> {
    /// Those in use, in order; at least one.
    pub(crate) used: VecDeque<Known>,
    /// Numbers of those that are prepared.
    pub(crate) prepared: Vec<u64>,
    /// Epochs above this are free.
    pub(crate) epoch_max: u64,
    /// The last one in use.
    pub(crate) last: Segment<F>,
    /// Segments that are missing, or cannot be read, with their numbers, in order. The other fields
    /// are as if these were not there.
    pub(crate) flaws: Vec<(u64, Error)>,
}

/// Returns the numbers of all segments, in order.
pub(crate) fn segment_numbers<S: Storage>(storage: &S) -> Result<Vec<u64>, Error> {
    let mut numbers: Vec<u64> = names(storage)?
        .iter()
        .filter_map(|n| segment_number(n))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn names<S: Storage>(storage: &S) -> Result<Vec<String>, Error> {
    let names = storage.list();
    names.map_err(|error| Error::io(storage.location(), "be read", error))
}

/// Reads all headers; none if the directory has no segment.
///
/// # Errors
/// There is no segment with records, or the directory cannot be read. Flaws of single segments are
/// among the [`flaws`](Directory::flaws).
pub(crate) fn survey<S: Storage>(
    storage: &S,
    faults: Faults,
) -> Result<Option<Directory<S::File>>, Error> {
    let numbers = segment_numbers(storage)?;
    let (mut used, mut prepared) = (VecDeque::new(), Vec::new());
    let (mut last, mut epoch_max): (Option<Segment<S::File>>, u64) = (None, 0);
    let mut flaws = Vec::new();
    let full = |number| format!("{}/{}", storage.location(), segment_name(number));
    let missing = |number, next| Error::MissingSegment {
        file: full(number),
        next: segment_name(next),
    };
    for (at, number) in numbers.iter().copied().enumerate() {
        if at > 0 && numbers[at - 1] + 1 != number {
            let absent = numbers[at - 1] + 1;
            flaws.push((absent, missing(absent, number)));
        }
        let segment = match open_segment(storage, number, false, faults) {
            Ok(segment) => segment,
            Err(error) => {
                flaws.push((number, error));
                continue;
            }
        };
        let header = segment.header;
        epoch_max = epoch_max.max(header.epoch);
        let why = match (header.first, &last) {
            (_, Some(before)) if !before.header.is_of_journal(&header) => {
                "belongs to another journal"
            }
            (None, _) => {
                prepared.push(number);
                continue;
            }
            (Some(_), _) if !prepared.is_empty() => "the segment before it was never used",
            (Some(first), Some(before)) if before.header.first > Some(first) => {
                "begins before the segment before it"
            }
            (Some(first), _) => {
                used.push_back(Known { number, first });
                last = Some(segment);
                continue;
            }
        };
        let file = full(number);
        flaws.push((number, Error::BadSegment { file, why }));
    }
    let Some(last) = last else {
        let flaw = flaws.into_iter().next().map(|(_, error)| error);
        let unused = prepared.first().map(|&number| match number {
            0 | 1 => unused(full(number)),
            number => missing(number - 1, number),
        });
        return flaw.or(unused).map_or(Ok(None), Err);
    };
    let next = last.header.number + 1;
    if !flaws.iter().any(|(number, _)| *number == next) && is_lost(storage, &last, faults)? {
        flaws.push((next, lost(full(next))));
    }
    epoch_max = epoch_max.max(spare_epoch_max(storage)?);
    Ok(Some(Directory {
        used,
        prepared,
        epoch_max,
        last,
        flaws,
    }))
}

/// Returns the error of a first segment that was never used.
const fn unused(file: String) -> Error {
    let why = "it was never used, and there is none before it";
    Error::BadSegment { file, why }
}

/// Returns the error of a segment that was used, and is not any more.
const fn lost(file: String) -> Error {
    let why = "it is missing, or was never used, and the segment before it says that it was";
    Error::BadSegment { file, why }
}

/// Returns whether the segment behind the last one in use is lost. While a journal is written, it
/// may have come into use since its header was read.
fn is_lost<S: Storage>(
    storage: &S,
    last: &Segment<S::File>,
    faults: Faults,
) -> Result<bool, Error> {
    let is_used = || {
        let next = open_segment(storage, last.header.number + 1, false, faults);
        next.is_ok_and(|next| next.header.first.is_some())
    };
    Ok(last.is_continued()? && !is_used())
}

/// Works as [`survey`], of a journal that is to be written: all of its segments must be whole.
pub(crate) fn survey_to_write<S: Storage>(
    storage: &S,
    faults: Faults,
) -> Result<Option<Directory<S::File>>, Error> {
    let Some(mut found) = survey(storage, faults)? else {
        return Ok(None);
    };
    if !found.flaws.is_empty() {
        return Err(found.flaws.swap_remove(0).1);
    }
    found.last = open_segment(storage, found.last.header.number, true, faults)?;
    Ok(Some(found))
}

/// Returns the first record of the first segment behind this record that has records and a whole
/// header: a reader can begin there, where what is before cannot be read. None if there is no such
/// segment.
///
/// # Errors
/// The directory cannot be read, or no segment of it.
pub fn first_readable_after<S: Storage>(storage: &S, lsn: Lsn) -> Result<Option<Lsn>, Error> {
    let found = survey(storage, Faults::default())?;
    let used = found.map(|found| found.used).unwrap_or_default();
    let mut firsts = used.iter().map(|known| known.first);
    Ok(firsts.find(|first| *first > lsn))
}

/// Returns the last epoch of the files that wait to be used again; 0 if there is none.
pub(crate) fn spare_epoch_max<S: Storage>(storage: &S) -> Result<u64, Error> {
    let names = names(storage)?;
    let epochs = names.iter().filter(|name| is_spare(name)).map(|name| {
        // A spare file that cannot be read does not matter: it is made anew or removed.
        let header = storage.open(name, false);
        let header = header.ok().and_then(|file| read_header(&file, name).ok());
        header.map_or(0, |header| header.epoch)
    });
    Ok(epochs.max().unwrap_or(0))
}

/// A block that may be in the page cache only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Doubtful {
    offset: u64,
    length: usize,
    last: Lsn,
}

/// The end of the last segment.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) torn: Option<TornWrite>,
    doubtful: Vec<Doubtful>,
    /// Where blocks begin behind it that are no part of the log.
    begun: Vec<u64>,
}

impl<F: StorageFile> Directory<F> {
    /// Checks that there are numbers left for further records and segments.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        let header = &self.last.header;
        let used = header.first.map_or(0, Lsn::number);
        if used.max(header.number).max(self.epoch_max) < NUMBER_LIMIT / 2 {
            return Ok(());
        }
        Err(Error::BadSegment {
            file: self.last.name.clone(),
            why: "its numbers leave no room for further records",
        })
    }

    /// Reads the last segment to its end.
    ///
    /// # Errors
    /// Durable records are damaged, or the disk fails.
    pub(crate) fn recover(&mut self) -> Result<(Recovery, End), Error> {
        let end = run_to_end(&mut self.last)?;
        let first = self.used.front().map_or(Lsn::FIRST, |known| known.first);
        let recovery = Recovery {
            first,
            last: self.last.next.before(),
            segments: self.used.len(),
            torn: end.torn.clone(),
        };
        Ok((recovery, end))
    }
}

/// Passes all blocks of the last segment, and judges its end.
pub(crate) fn run_to_end<F: StorageFile>(segment: &mut Segment<F>) -> Result<End, Error> {
    let mut pages = Pages::new(PAGE_BYTES);
    let mut doubtful: Vec<Doubtful> = Vec::new();
    loop {
        let found = segment.find_next(&mut pages)?;
        if let Found::Next(block) = found {
            doubtful.retain(|earlier| earlier.last > block.durable);
            doubtful.push(Doubtful {
                offset: segment.offset,
                length: padded(block.length_bytes as usize),
                last: block.last(),
            });
            segment.pass(&block);
            continue;
        }
        let Behind { is_torn, begun } = segment.judge_end(found)?;
        let torn = is_torn.then(|| TornWrite {
            file: segment.name.clone(),
            offset_bytes: segment.offset,
            lsn: segment.next,
        });
        return Ok(End {
            torn,
            doubtful,
            begun,
        });
    }
}

/// Makes durable what was recovered, before anything is reported of it.
///
/// It may have been in the page cache only: of a program that was killed, or, worse, of a sync that
/// failed, after which the system takes what it holds for written. So it is not enough to sync:
/// what no later block vouches for is written once more, over itself.
pub(crate) fn settle<F: StorageFile>(segment: &Segment<F>, end: &End) -> io::Result<()> {
    let mut pages = Pages::new(PAGE_BYTES);
    for block in &end.doubtful {
        pages.grow(block.length);
        let bytes = &mut pages.bytes_mut()[..block.length];
        read_fully(&segment.file, block.offset, bytes)?;
        write_fully(&segment.file, block.offset, bytes, WriteSync::Deferred)?;
    }
    let header = segment.header.encode();
    write_fully(&segment.file, 0, &header, WriteSync::Deferred)?;
    for offset in &end.begun {
        // Wiped: an unfinished one is reported once, and a whole one would be part of the log again
        // behind a block with the same bytes as the one that the crash took.
        write_fully(
            &segment.file,
            *offset,
            &[0; PAGE_BYTES],
            WriteSync::Deferred,
        )?;
    }
    segment.file.sync()
}
