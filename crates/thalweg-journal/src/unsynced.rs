//! Segments that are continued in the next one before all of their blocks are durable: a load is
//! not held up by the disk at the end of each.
//!
//! A segment gets its name only once everything before it is durable. Until then its blocks are
//! written under another name, and after a crash the file is worthless. The segment before it is
//! synced later; then the header is written that says where the next one begins, and the file gets
//! its name. A commit and a flush wait for that.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::error::Error;
use crate::fault::{Faults, Seeded};
use crate::format::{SegmentHeader, part_name, segment_name};
use crate::lsn::Lsn;
use crate::scan::Segment;
use crate::storage::{Storage, StorageFile, WriteSync, write_fully};

/// A file, and its name in messages.
#[derive(Debug)]
pub(crate) struct Named<F> {
    pub(crate) file: F,
    pub(crate) name: String,
}

/// A segment that is not synced yet, with the one behind it.
#[derive(Debug)]
pub(crate) struct UnsyncedSegment<S: Storage> {
    pub(crate) storage: S,
    pub(crate) segment: Segment<S::File>,
    /// Its last record.
    pub(crate) last: Lsn,
    pub(crate) next: Named<S::File>,
    /// The header for the next segment.
    pub(crate) header: SegmentHeader,
    pub(crate) faults: Faults,
}

impl<S: Storage> UnsyncedSegment<S> {
    /// Makes the segment durable, and the next one a used one. Gives the last durable record.
    fn finish(self) -> Result<Lsn, Error> {
        let UnsyncedSegment {
            segment,
            next,
            storage,
            ..
        } = self;
        if !self.faults.has(Seeded::LeaveUnsynced) {
            let synced = segment.file.sync();
            synced.map_err(|error| Error::io(&segment.name, "be synced", error))?;
        }
        // Neither are the next one's length and name durable.
        write_fully(&next.file, 0, &self.header.encode(), WriteSync::Deferred)
            .and_then(|()| next.file.sync())
            .map_err(|error| Error::io(&next.name, "be written", error))?;
        let number = self.header.number;
        let renamed = storage.rename(&part_name(number), &segment_name(number));
        renamed.map_err(|error| Error::io(next.name, "be renamed", error))?;
        let synced = storage.sync_names();
        synced.map_err(|error| Error::io(storage.location(), "be synced", error))?;
        segment.mark_continued()?;
        Ok(self.last)
    }
}

#[derive(Debug)]
struct Worker<S: Storage> {
    inbox: Option<Sender<UnsyncedSegment<S>>>,
    done: Receiver<Result<Lsn, Error>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Storage> Worker<S> {
    /// None where the system has no thread left.
    fn spawn() -> Option<Worker<S>> {
        let (inbox, orders) = channel::<UnsyncedSegment<S>>();
        let (outbox, done) = channel();
        let work = move || {
            for segment in orders {
                let finished = segment.finish();
                // No header is written behind a segment that may not be durable.
                let is_over = finished.is_err();
                if outbox.send(finished).is_err() || is_over {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("journal-sync".to_owned());
        let thread = thread.spawn(work).ok()?;
        Some(Worker {
            inbox: Some(inbox),
            done,
            thread: Some(thread),
        })
    }
}

impl<S: Storage> Drop for Worker<S> {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the storage was seen by the thread that waited for it.
            let _ = thread.join();
        }
    }
}

/// Finishes unsynced segments, in order: when a caller waits for them, or in a thread where
/// there are too many.
///
/// Not at once, since a load has better use for the cores: measured in
/// `docs/notes/results-journal.md`.
#[derive(Debug)]
pub(crate) struct UnsyncedSegments<S: Storage> {
    /// How many may rest before the thread takes the first; none has it where there is no thread.
    resting_max: Option<usize>,
    resting: VecDeque<UnsyncedSegment<S>>,
    worker: Option<Worker<S>>,
    /// The segments that the thread has, and whose end was not collected yet.
    handed_over: usize,
}

impl<S: Storage> UnsyncedSegments<S> {
    pub(crate) fn new(resting_max: Option<usize>) -> UnsyncedSegments<S> {
        UnsyncedSegments {
            resting_max,
            resting: VecDeque::new(),
            worker: None,
            handed_over: 0,
        }
    }

    /// Returns the number of segments that are not finished, or whose end was not collected yet.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.resting.len() + self.handed_over
    }

    pub(crate) fn push(&mut self, segment: UnsyncedSegment<S>) {
        self.resting.push_back(segment);
        if self.resting_max.is_some_and(|max| self.resting.len() > max) {
            self.hand_over(1);
        }
    }

    /// Hands all that rest over to the thread. Returns whether nothing rests now: there may be no
    /// thread.
    pub(crate) fn hand_over_all(&mut self) -> bool {
        if self.resting_max.is_some() {
            self.hand_over(self.resting.len());
        }
        self.resting.is_empty()
    }

    fn hand_over(&mut self, count: usize) {
        if self.worker.is_none() {
            self.worker = Worker::spawn();
        }
        let worker = self.worker.as_ref();
        if let Some(inbox) = worker.and_then(|worker| worker.inbox.as_ref()) {
            for segment in self.resting.drain(..count) {
                // A thread that has ended has failed, and its error is yet to be collected.
                let _ = inbox.send(segment);
            }
            self.handed_over += count;
        }
    }

    /// Returns the last record of the next segment that is durable. If it `must_wait`, there is an
    /// answer as long as one is waiting.
    pub(crate) fn finished(&mut self, must_wait: bool) -> Option<Result<Lsn, Error>> {
        let Some(worker) = self.worker.as_ref().filter(|_| self.handed_over > 0) else {
            return must_wait
                .then(|| self.resting.pop_front())??
                .finish()
                .into();
        };
        let finished = match must_wait {
            false => worker.done.try_recv().ok()?,
            true => worker.done.recv().unwrap_or_else(|_| {
                let error = std::io::Error::other("the thread that syncs has panicked");
                Err(Error::io("a segment", "be synced", error))
            }),
        };
        self.handed_over -= 1;
        Some(finished)
    }
}
