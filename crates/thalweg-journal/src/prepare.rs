//! Segments are made ready before they are needed: all their bytes written and on disk, so that a
//! later write changes data only and no metadata of the file system.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::error::Error;
use crate::fault::{Faults, Seeded};
use crate::format::{NEW_NAME, SegmentHeader, is_spare, segment_name};
use crate::options::Options;
use crate::scan::read_header;
use crate::storage::{Storage, StorageFile, Syncing, write_fully};

/// Zeros are written in pieces of this.
const PIECE_BYTES: u64 = 1 << 20;

/// Makes the segment that `header` describes, and gives it open to write. A file that was used
/// before is taken if there is one of the same length.
pub(crate) fn prepare<S: Storage>(
    storage: &S,
    header: &SegmentHeader,
    faults: Faults,
) -> Result<S::File, Error> {
    let place = storage.place();
    let name = segment_name(header.number);
    let failed = |what| {
        let file = format!("{place}/{name}");
        move |error| Error::io(file, what, error)
    };
    let file = match spare(storage, header)? {
        Some(file) => file,
        None => new(storage, header)?,
    };
    if !faults.has(Seeded::LeaveNameUnsynced) {
        storage
            .sync_names()
            .map_err(failed("be made durable in its directory"))?;
    }
    Ok(file)
}

/// Uses a file again. Its blocks have another epoch from here on.
fn spare<S: Storage>(storage: &S, header: &SegmentHeader) -> Result<Option<S::File>, Error> {
    let place = storage.place();
    let names = storage.list();
    let names = names.map_err(|error| Error::io(&place, "be read", error))?;
    let name = segment_name(header.number);
    for spare in names.iter().filter(|name| is_spare(name)) {
        let full = format!("{place}/{spare}");
        let file = storage.open(spare, true);
        let file = file.map_err(|error| Error::io(&full, "be opened", error))?;
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
        synced.map_err(|error| Error::io(&place, "be synced", error))?;
        write_fully(&file, 0, &header.encode(), Syncing::Now)
            .map_err(|error| Error::io(&full, "be written", error))?;
        let renamed = storage.rename(spare, &name);
        renamed.map_err(|error| Error::io(&full, "be renamed", error))?;
        return Ok(Some(file));
    }
    Ok(None)
}

fn new<S: Storage>(storage: &S, header: &SegmentHeader) -> Result<S::File, Error> {
    let full = format!("{}/{NEW_NAME}", storage.place());
    let failed = |what| {
        let full = full.clone();
        move |error| Error::io(full, what, error)
    };
    let names = storage.list().map_err(failed("be looked for"))?;
    if names.iter().any(|name| name == NEW_NAME) {
        storage.remove(NEW_NAME).map_err(failed("be removed"))?;
    }
    let file = storage.create(NEW_NAME).map_err(failed("be made"))?;
    let written = fill(&file, header).map_err(failed("be written"));
    if written.is_err() {
        // Half a segment is of no use to anybody, and takes room on a disk that may be full.
        let _ = storage.remove(NEW_NAME);
    }
    written?;
    let renamed = storage.rename(NEW_NAME, &segment_name(header.number));
    renamed.map_err(failed("be renamed"))?;
    Ok(file)
}

fn fill(file: &impl StorageFile, header: &SegmentHeader) -> std::io::Result<()> {
    let bytes = header.segment_bytes;
    file.allocate(bytes)?;
    let zeros = vec![0; PIECE_BYTES.min(bytes) as usize];
    let mut offset = 0;
    while offset < bytes {
        let piece = (bytes - offset).min(PIECE_BYTES);
        write_fully(file, offset, &zeros[..piece as usize], Syncing::Later)?;
        offset += piece;
    }
    write_fully(file, 0, &header.encode(), Syncing::Later)?;
    file.sync()
}

type Prepared<S> = Result<<S as Storage>::File, Error>;

/// Who makes the next segment ready: the caller when it asks, or a thread ahead of it.
#[derive(Debug)]
pub(crate) enum Preparer<S: Storage> {
    Here(S, Faults),
    Thread {
        storage: S,
        orders: Option<Sender<SegmentHeader>>,
        done: Receiver<Prepared<S>>,
        /// What the thread is at, or has done.
        ordered: Option<SegmentHeader>,
        thread: Option<JoinHandle<()>>,
    },
}

impl<S: Storage> Preparer<S> {
    pub(crate) fn new(storage: &S, options: &Options) -> Preparer<S> {
        let here = Preparer::Here(storage.clone(), options.faults);
        if !options.in_background {
            return here;
        }
        let (orders, inbox) = channel::<SegmentHeader>();
        let (outbox, done) = channel();
        let (place, faults) = (storage.clone(), options.faults);
        let thread = thread::Builder::new().name("thalweg-journal".to_owned());
        let thread = thread.spawn(move || {
            for header in inbox {
                if outbox.send(prepare(&place, &header, faults)).is_err() {
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
                thread: Some(thread),
            },
            // Without a thread it works as well, only later.
            Err(_) => here,
        }
    }

    /// Asks for a segment that will be needed.
    pub(crate) fn order(&mut self, header: SegmentHeader) {
        if let Preparer::Thread {
            orders: Some(orders),
            ordered,
            ..
        } = self
            && ordered.is_none()
            && orders.send(header).is_ok()
        {
            *ordered = Some(header);
        }
    }

    /// The segment, now.
    pub(crate) fn take(&mut self, header: &SegmentHeader) -> Result<S::File, Error> {
        let (storage, faults) = match self {
            Preparer::Here(storage, faults) => (&*storage, *faults),
            Preparer::Thread {
                storage,
                done,
                ordered,
                ..
            } => {
                if ordered.take().as_ref() == Some(header)
                    && let Ok(Ok(file)) = done.recv()
                {
                    return Ok(file);
                }
                (&*storage, Faults::default())
            }
        };
        // Not ordered, or it failed: what made it fail may be over, and is told otherwise.
        prepare(storage, header, faults)
    }
}

impl<S: Storage> Drop for Preparer<S> {
    fn drop(&mut self) {
        if let Preparer::Thread { orders, thread, .. } = self {
            *orders = None;
            if let Some(thread) = thread.take() {
                // It has no panic of its own; one of the storage was seen by whoever waited for it.
                let _ = thread.join();
            }
        }
    }
}
