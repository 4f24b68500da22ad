//! Segments are made ready before they are needed: all their bytes written and on disk, so that a
//! later write changes data only and no metadata of the file system.
//!
//! A load without commits has no use for that, and is faster than a disk that writes everything
//! twice. For it, the zeros stay in the page cache, where its blocks replace them; and if it has to
//! wait for a segment, the rest of them is left out. A file reads as zeros all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::error::Error;
use crate::fault::{Faults, Seeded};
use crate::format::{NEW_NAME, PAGE_BYTES, SegmentHeader, is_spare, part_name, segment_name};
use crate::options::JournalOptions;
use crate::scan::read_header;
use crate::storage::{Storage, StorageFile, WriteSync, write_fully};

/// Zeros are written in pieces of this, and made durable so where others commit meanwhile: the disk
/// would else be busy with all of a segment, while they wait for it.
const PIECE_BYTES: u64 = 256 << 10;

/// The caller for which a segment is made ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand<'a> {
    /// A load that leaves segments before they are durable.
    pub(crate) is_load: bool,
    /// A flag that is set where a thread waits for the segment. Without it, the segment is made
    /// while the caller waits.
    pub(crate) asked: Option<&'a AtomicBool>,
}

impl Demand<'_> {
    /// The demand of a caller that will commit, and waits.
    pub(crate) const COMMIT: Demand<'static> = Demand {
        is_load: false,
        asked: None,
    };

    fn is_hurried(&self) -> bool {
        // ORDERING: Relaxed, pairs with the store in take(); a hint that changes no contents.
        let is_asked = |asked: &AtomicBool| asked.load(Ordering::Relaxed);
        self.asked.map_or(self.is_load, is_asked)
    }
}

/// A segment that is ready, open to write.
#[derive(Debug)]
pub(crate) struct Prepared<F> {
    pub(crate) file: F,
    /// Opened once more, where the file has no segment's name yet and nothing of it is durable:
    /// a load has no time to wait for that.
    pub(crate) part: Option<F>,
}

/// Makes the segment that `header` describes. A file that was used before is taken if there is one
/// of the same length.
pub(crate) fn prepare<S: Storage>(
    storage: &S,
    header: &SegmentHeader,
    demand: Demand<'_>,
    faults: Faults,
) -> Result<Prepared<S::File>, Error> {
    let location = storage.location();
    let name = segment_name(header.number);
    let failed = |what| {
        let file = format!("{location}/{name}");
        move |error| Error::io(file, what, error)
    };
    let prepared = match spare(storage, header, demand)? {
        Some(prepared) => prepared,
        None => new(storage, header, demand)?,
    };
    if prepared.part.is_none() && !faults.has(Seeded::LeaveNameUnsynced) {
        storage
            .sync_names()
            .map_err(failed("be made durable in its directory"))?;
    }
    Ok(prepared)
}

/// Uses a file again. Its blocks have another epoch from here on.
fn spare<S: Storage>(
    storage: &S,
    header: &SegmentHeader,
    demand: Demand<'_>,
) -> Result<Option<Prepared<S::File>>, Error> {
    let location = storage.location();
    let names = storage.list();
    let names = names.map_err(|error| Error::io(&location, "be read", error))?;
    let name = match demand.is_load {
        true => part_name(header.number),
        false => segment_name(header.number),
    };
    for spare in names.iter().filter(|name| is_spare(name)) {
        let full = format!("{location}/{spare}");
        let file = match storage.open(spare, true) {
            // Not ours to remove, and no obstacle.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => continue,
            file => file.map_err(|error| Error::io(&full, "be opened", error))?,
        };
        let old = read_header(&file, &full);
        // Its blocks are of its epoch at most; they must be older than those that are to come.
        let fits = |old: SegmentHeader| {
            old.segment_bytes == header.segment_bytes && old.epoch < header.epoch
        };
        if !old.is_ok_and(fits) {
            let removed = storage.remove(spare);
            removed.map_err(|error| Error::io(&full, "be removed", error))?;
            continue;
        }
        // The file may still have its old name on disk, and must not get another header under it.
        let synced = storage.sync_names();
        synced.map_err(|error| Error::io(&location, "be synced", error))?;
        write_fully(&file, 0, &header.encode(), WriteSync::Immediate)
            .map_err(|error| Error::io(&full, "be written", error))?;
        let renamed = storage.rename(spare, &name);
        renamed.map_err(|error| Error::io(&full, "be renamed", error))?;
        let mut part = None;
        if demand.is_load {
            let opened = storage.open(&name, true);
            part = Some(opened.map_err(|error| Error::io(&full, "be opened", error))?);
            // The file gets a third name soon, and must not keep the first one beside that.
            let synced = storage.sync_names();
            synced.map_err(|error| Error::io(&location, "be synced", error))?;
        }
        return Ok(Some(Prepared { file, part }));
    }
    Ok(None)
}

fn new<S: Storage>(
    storage: &S,
    header: &SegmentHeader,
    demand: Demand<'_>,
) -> Result<Prepared<S::File>, Error> {
    let part = match demand.is_load {
        true => part_name(header.number),
        false => NEW_NAME.to_owned(),
    };
    let full = format!("{}/{part}", storage.location());
    let failed = |what| {
        let full = full.clone();
        move |error| Error::io(full, what, error)
    };
    let names = storage.list().map_err(failed("be looked for"))?;
    if names.contains(&part) {
        storage.remove(&part).map_err(failed("be removed"))?;
    }
    let file = storage.create(&part).map_err(failed("be made"))?;
    let filled = fill(&file, header, demand).and_then(|is_durable| match is_durable {
        true => Ok(None),
        false => storage.open(&part, true).map(Some),
    });
    let filled = filled.map_err(failed("be written"));
    if filled.is_err() {
        // Half a segment is of no use, and takes room on a disk that may be full.
        let _ = storage.remove(&part);
    }
    let second = filled?;
    if second.is_none() {
        let renamed = storage.rename(&part, &segment_name(header.number));
        renamed.map_err(failed("be renamed"))?;
    }
    Ok(Prepared { file, part: second })
}

/// Writes the header and zeros, and says whether the file is durable.
fn fill(
    file: &impl StorageFile,
    header: &SegmentHeader,
    demand: Demand<'_>,
) -> std::io::Result<bool> {
    let bytes = header.segment_bytes;
    // Where room is not reserved, only zeros make sure that a block finds some.
    let may_stop = file.allocate(bytes)?;
    write_fully(file, 0, &header.encode(), WriteSync::Deferred)?;
    if may_stop && !demand.is_load && demand.asked.is_some() {
        // Before there are zeros that would have to be written: from here on it can be used.
        file.sync()?;
    }
    let is_hurried = || may_stop && demand.is_hurried();
    let sync = match demand.asked.is_some() && !demand.is_load {
        true => WriteSync::Immediate,
        false => WriteSync::Deferred,
    };
    let zeros = vec![0; PIECE_BYTES.min(bytes) as usize];
    let mut offset = PAGE_BYTES as u64;
    while offset < bytes && !is_hurried() {
        let piece = (bytes - offset).min(PIECE_BYTES);
        write_fully(file, offset, &zeros[..piece as usize], sync)?;
        offset += piece;
    }
    if may_stop && demand.is_load {
        return Ok(false);
    }
    if !is_hurried() {
        file.sync()?;
    }
    Ok(true)
}

type Answer<S> = Result<Prepared<<S as Storage>::File>, Error>;

/// The preparer of the next segment: the caller when it asks, or a thread ahead of it.
#[derive(Debug)]
pub(crate) enum Preparer<S: Storage> {
    Here(S, Faults),
    Thread {
        storage: S,
        orders: Option<Sender<(SegmentHeader, bool)>>,
        done: Receiver<Answer<S>>,
        /// The segment that the thread prepares, or has prepared.
        ordered: Option<SegmentHeader>,
        /// A load waits for it.
        asked: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    },
}

impl<S: Storage> Preparer<S> {
    pub(crate) fn new(storage: &S, options: &JournalOptions) -> Preparer<S> {
        let here = Preparer::Here(storage.clone(), options.faults);
        if !options.in_background {
            return here;
        }
        let (orders, inbox) = channel::<(SegmentHeader, bool)>();
        let (outbox, done) = channel();
        let asked = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&asked);
        let (owned, faults) = (storage.clone(), options.faults);
        let thread = thread::Builder::new().name("journal-prepare".to_owned());
        let thread = thread.spawn(move || {
            for (header, is_load) in inbox {
                let asked = Some(&*heard);
                let demand = Demand { is_load, asked };
                if outbox
                    .send(prepare(&owned, &header, demand, faults))
                    .is_err()
                {
                    return;
                }
            }
        });
        match thread {
            Ok(thread) => Preparer::Thread {
                storage: storage.clone(),
                orders: Some(orders),
                done,
                ordered: None,
                asked,
                thread: Some(thread),
            },
            // Without a thread it works as well, only later.
            Err(_) => here,
        }
    }

    /// Asks for a segment that will be needed, by a load or by a caller that commits.
    pub(crate) fn order(&mut self, header: SegmentHeader, is_load: bool) {
        if let Preparer::Thread {
            orders: Some(orders),
            ordered,
            asked,
            ..
        } = self
            && ordered.is_none()
        {
            // ORDERING: Relaxed, pairs with the load in is_hurried(); sending it publishes it.
            asked.store(false, Ordering::Relaxed);
            *ordered = orders.send((header, is_load)).is_ok().then_some(header);
        }
    }

    /// Returns the segment, now.
    pub(crate) fn take(&mut self, header: &SegmentHeader, is_load: bool) -> Answer<S> {
        let (storage, faults) = match self {
            Preparer::Here(storage, faults) => (&*storage, *faults),
            Preparer::Thread {
                storage,
                done,
                ordered,
                asked,
                ..
            } => {
                // ORDERING: Relaxed, pairs with the load in is_hurried(); a hint.
                asked.store(is_load, Ordering::Relaxed);
                if ordered.take().as_ref() == Some(header)
                    && let Ok(Ok(prepared)) = done.recv()
                {
                    return Ok(prepared);
                }
                (&*storage, Faults::default())
            }
        };
        // Not ordered, or it failed: the cause may be over, and is reported elsewhere.
        let asked = None;
        prepare(storage, header, Demand { is_load, asked }, faults)
    }
}

impl<S: Storage> Drop for Preparer<S> {
    fn drop(&mut self) {
        let Preparer::Thread {
            storage,
            orders,
            done,
            ordered,
            thread,
            ..
        } = self
        else {
            return;
        };
        *orders = None;
        if let Some(thread) = thread.take() {
            // It has no panic of its own; one of the storage was seen by the thread that waited for
            // it.
            let _ = thread.join();
        }
        if let Some(header) = ordered
            && let Ok(Ok(Prepared { part: Some(_), .. })) = done.try_recv()
        {
            // Worthless from here on. If it stays, the next open of the journal removes it.
            let _ = storage.remove(&part_name(header.number));
        }
    }
}
