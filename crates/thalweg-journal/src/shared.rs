//! Group commit: several threads append, and one of those that wait writes for all.
//!
//! Rules
//! 1. Records are appended under the lock, into the open block, in the order of their numbers.
//! 2. The thread that takes the tail out of the lock leads. There is one leader, and it alone
//!    writes.
//! 3. A leader puts the tail back and wakes all threads that wait, however it ends: `Leading` sees
//!    to that.
//! 4. A thread that waits looks again at the durable number, at the error that stopped the journal,
//!    and at whether there is a leader; one of the three changes with every wake-up, or it leads
//!    itself. So no thread waits for a write that no thread makes.
//! 5. Where there is no room for a further segment, the leader leaves its block to the next leader,
//!    and every thread that waits by then gets the error. A leader finds either a spare block or
//!    such a one.

#[cfg(all(test, shuttle))]
mod models;
#[cfg(all(test, not(shuttle)))]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
#[cfg(not(shuttle))]
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[cfg(shuttle)]
use shuttle::sync::{Condvar, Mutex, MutexGuard};

use crate::error::Error;
use crate::fault::Seeded;
use crate::format::LENGTH_BYTES;
use crate::lsn::{Durable, Lsn};
use crate::options::JournalOptions;
use crate::pages::OpenBlock;
use crate::reader::Reader;
use crate::record::{Record, RecordType, content_in, record_in};
use crate::storage::{Storage, WriteSync};
use crate::tail::{Tail, give_up};
use crate::watermark::Watermark;

/// The limits of a group of records: it is written as soon as one of them is reached and a thread
/// waits.
///
/// While a group is being written, the next one gathers in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCommit {
    /// The longest time that the first thread that waits may wait for others to join [0: not at
    /// all].
    pub delay_max: Duration,
    /// The number of records that is enough; by default 256.
    pub records_max: u32,
    /// The number of bytes that is enough [64 KiB].
    pub bytes_max: usize,
}

impl Default for GroupCommit {
    fn default() -> GroupCommit {
        GroupCommit {
            delay_max: Duration::ZERO,
            records_max: 256,
            bytes_max: 64 << 10,
        }
    }
}

impl GroupCommit {
    fn is_enough(&self, block: &OpenBlock) -> bool {
        block.count() >= self.records_max || block.length() >= self.bytes_max
    }
}

#[derive(Debug)]
struct State<S: Storage> {
    open: OpenBlock,
    /// The other block, unless a leader is writing it.
    spare: Option<OpenBlock>,
    /// The other block, if there was no room for it: its records come before those of `open`.
    unwritten: Option<OpenBlock>,
    /// Why there was none, and how often.
    refused: Option<Error>,
    refusals: u64,
    /// The tail; none while a thread leads. Boxed, since every leader moves it twice.
    tail: Option<Box<Tail<S>>>,
    next: Lsn,
    durable: Durable<Lsn>,
    stopped: Option<Error>,
    /// Leads, and waits for its group to gather: it is woken when the group is large enough.
    gathering: bool,
    /// Whether the record of some thread did not fit.
    is_full: bool,
}

impl<S: Storage> State<S> {
    /// Returns the error that stopped the journal, or a refusal since their number was `refusals`.
    fn check(&self, refusals: u64) -> Result<(), Error> {
        match (&self.stopped, &self.refused) {
            (Some(error), _) => Err(error.stopped()),
            (None, Some(error)) if self.refusals > refusals => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Inner<S: Storage> {
    state: Mutex<State<S>>,
    /// The thread that runs a closure under the lock; 0: none.
    building: AtomicU64,
    /// A leader has finished.
    finished: Condvar,
    /// The group is large enough.
    gathered: Condvar,
    group: GroupCommit,
    options: JournalOptions,
    storage: S,
    watermark: Arc<Watermark>,
}

impl<S: Storage> Inner<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // A panic of a closure that fills a record leaves the state as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lock, unless this thread has it: then it is in a closure that builds a record.
    fn enter(&self) -> Result<MutexGuard<'_, State<S>>, Error> {
        // ORDERING: Relaxed; this thread's number is stored and cleared by this thread only.
        match self.building.load(Ordering::Relaxed) == this_thread() {
            true => Err(Error::Reentrant),
            false => Ok(self.lock()),
        }
    }

    /// Wakes a leader that gathers, where there is enough now.
    fn note_appended(&self, state: &State<S>) {
        let skips = self.options.faults.has(Seeded::SkipEnoughNotification);
        if state.gathering && self.group.is_enough(&state.open) && !skips {
            self.gathered.notify_one();
        }
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State<S>>) -> MutexGuard<'s, State<S>> {
        let woken = self.finished.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }
}

/// A journal for several threads; clones are handles to the same one. Made by
/// [`Journal::share`](crate::Journal::share).
///
/// ```
/// use std::thread;
/// use thalweg_journal::{GroupCommit, Journal, JournalOptions, SimDisk};
///
/// # fn main() -> Result<(), thalweg_journal::Error> {
/// # let disk = SimDisk::new();
/// let journal = Journal::<u64, _>::open_in(disk, JournalOptions::default())?;
/// let journal = journal.share(GroupCommit::default());
/// thread::scope(|scope| {
///     for client in 0..4 {
///         let journal = journal.clone();
///         scope.spawn(move || {
///             let lsn = journal.append_with(|slot| *slot = client)?;
///             let durable = journal.commit(lsn)?; // waits; one write for all that wait
///             assert_eq!(durable.get(), lsn);
///             Ok::<(), thalweg_journal::Error>(())
///         });
///     }
/// });
/// # Ok(())
/// # }
/// ```
pub struct Shared<K: RecordType + ?Sized, S: Storage = crate::DefaultStorage> {
    inner: Arc<Inner<S>>,
    kind: PhantomData<fn(&K)>,
}

/// Until it is dropped, this thread runs a closure that builds a record.
#[derive(Debug)]
struct Building<'i>(&'i AtomicU64);

impl<'i> Building<'i> {
    fn begin(building: &'i AtomicU64) -> Self {
        // ORDERING: Relaxed, as in `Inner::enter`.
        building.store(this_thread(), Ordering::Relaxed);
        Self(building)
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        // ORDERING: Relaxed, as in `Inner::enter`.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Returns a number that no other thread has, and not 0.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        // ORDERING: Relaxed; a counter.
        static HERE: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    HERE.with(|number| *number)
}

impl<K: RecordType + ?Sized, S: Storage> Clone for Shared<K, S> {
    fn clone(&self) -> Self {
        Shared {
            inner: Arc::clone(&self.inner),
            kind: PhantomData,
        }
    }
}

impl<K: RecordType + ?Sized, S: Storage> fmt::Debug for Shared<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Shared");
        debug.field("location", &self.inner.storage.location());
        debug.field("durable", &self.inner.watermark.get());
        debug.finish_non_exhaustive()
    }
}

/// A leader at work (rules 2 and 3).
struct Leading<'i, S: Storage> {
    inner: &'i Inner<S>,
    tail: Option<Box<Tail<S>>>,
    block: OpenBlock,
    result: Option<Result<(), Error>>,
}

impl<S: Storage> Drop for Leading<'_, S> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        let block = mem::replace(&mut self.block, OpenBlock::new(0));
        state.tail = self.tail.take();
        let is_well = state.tail.as_ref().is_some_and(|tail| tail.check().is_ok());
        match self.result.take() {
            Some(Ok(())) => state.spare = Some(block),
            Some(Err(error)) if is_well => {
                state.refused = Some(error);
                state.refusals += 1;
                state.unwritten = Some(block);
            }
            Some(Err(error)) => state.stopped = Some(error),
            // The storage panicked.
            None => state.stopped = state.tail.as_ref().and_then(|tail| tail.check().err()),
        }
        if let Some(tail) = &state.tail {
            state.durable = tail.durable();
        }
        drop(state);
        match self.inner.options.faults.has(Seeded::NotifyOne) {
            true => self.inner.finished.notify_one(),
            false => self.inner.finished.notify_all(),
        }
    }
}

impl<K: RecordType + ?Sized, S: Storage> Shared<K, S> {
    pub(crate) fn new(tail: Tail<S>, open: OpenBlock, next: Lsn, group: GroupCommit) -> Self {
        let bytes = tail.options().block_bytes_max as usize;
        let inner = Inner {
            group,
            options: tail.options().clone(),
            storage: tail.storage().clone(),
            watermark: Arc::clone(tail.watermark()),
            building: AtomicU64::new(0),
            finished: Condvar::new(),
            gathered: Condvar::new(),
            state: Mutex::new(State {
                open,
                spare: Some(OpenBlock::new(bytes)),
                unwritten: None,
                refused: None,
                refusals: 0,
                next,
                durable: tail.durable(),
                tail: Some(Box::new(tail)),
                stopped: None,
                gathering: false,
                is_full: false,
            }),
        };
        Shared {
            inner: Arc::new(inner),
            kind: PhantomData,
        }
    }

    /// Takes the tail and the block that is due, and writes without the lock.
    fn lead<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<S>>,
        write: impl FnOnce(&mut Tail<S>, &mut OpenBlock) -> Result<(), Error>,
    ) -> MutexGuard<'s, State<S>> {
        let inner = &*self.inner;
        let block = match (state.unwritten.take(), state.spare.take()) {
            (Some(block), _) => block,
            (None, Some(spare)) => {
                state.is_full = false;
                mem::replace(&mut state.open, spare)
            }
            (None, None) => return state,
        };
        let mut leading = Leading {
            inner,
            tail: state.tail.take(),
            block,
            result: None,
        };
        drop(state);
        if let Some(tail) = &mut leading.tail {
            leading.result = Some(write(tail, &mut leading.block));
        }
        drop(leading);
        inner.lock()
    }

    fn append_raw(&self, bytes: usize, fill: impl FnOnce(&mut [u8])) -> Result<Lsn, Error> {
        let bytes_max = self.inner.options.record_bytes_max();
        if bytes > bytes_max {
            return Err(Error::RecordTooLong { bytes, bytes_max });
        }
        let mut state = self.inner.enter()?;
        let refusals = state.refusals;
        loop {
            state.check(refusals)?;
            if let Some(slot) = state.open.claim(bytes) {
                let _building = Building::begin(&self.inner.building);
                fill(slot);
                break;
            }
            state = match state.tail {
                Some(_) if !state.gathering => {
                    self.lead(state, |tail, block| tail.write(block, WriteSync::Deferred))
                }
                _ => self.wait_while_full(state),
            };
        }
        state.open.finish();
        let lsn = state.next;
        state.next = lsn.after(1);
        self.inner.note_appended(&state);
        Ok(lsn)
    }

    /// A leader that gathers has enough now; one that writes will have finished.
    fn wait_while_full<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<S>>,
    ) -> MutexGuard<'s, State<S>> {
        state.is_full = true;
        if !self.inner.options.faults.has(Seeded::SkipFullNotification) {
            self.inner.gathered.notify_one();
        }
        self.inner.wait(state)
    }

    /// Waits until this record is durable.
    ///
    /// # Errors
    /// It was never appended. Or writing failed, and it is not known what is on disk: every thread
    /// that waits gets the error, and the journal has stopped. Or there is no room for another
    /// segment: every thread that waits gets that error too, nothing has changed, and the call may
    /// be repeated.
    pub fn commit(&self, lsn: Lsn) -> Result<Durable<Lsn>, Error> {
        let mut state = self.inner.enter()?;
        if lsn >= state.next {
            let (first, last) = (Lsn::FIRST, state.next.before());
            return Err(Error::NoRecord { lsn, first, last });
        }
        let refusals = state.refusals;
        loop {
            if let Some(durable) = state.durable.covering(lsn) {
                return Ok(durable);
            }
            state.check(refusals)?;
            state = match state.tail {
                None => self.inner.wait(state),
                // Another thread gathers, and then leads or finds a leader: either wakes this
                // thread.
                Some(_) if state.gathering => self.inner.wait(state),
                Some(_) => {
                    let state = self.gather(state);
                    match state.tail {
                        // A thread whose record did not fit leads.
                        None => state,
                        Some(_) => {
                            self.lead(state, |tail, block| tail.write(block, WriteSync::Immediate))
                        }
                    }
                }
            };
        }
    }

    /// Waits for the group of this leader to gather, at most as long as it may.
    fn gather<'s>(&'s self, mut state: MutexGuard<'s, State<S>>) -> MutexGuard<'s, State<S>> {
        let group = &self.inner.group;
        if group.delay_max.is_zero() || state.unwritten.is_some() {
            return state;
        }
        let begin = Instant::now();
        state.gathering = true;
        while !(state.is_full || group.is_enough(&state.open)) && state.tail.is_some() {
            let Some(left) = group.delay_max.checked_sub(begin.elapsed()) else {
                break;
            };
            let woken = self.inner.gathered.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.gathering = false;
        state
    }

    /// Writes what was appended, without waiting for the disk. Returns whether all of it is there
    /// if the program ends, as after [`Journal::flush`](crate::Journal::flush); if not, because the
    /// segment before it is being made durable, or another thread is writing, call it again later.
    ///
    /// # Errors
    /// As [`Shared::commit`].
    pub fn flush(&self) -> Result<bool, Error> {
        let state = self.inner.enter()?;
        let refusals = state.refusals;
        state.check(u64::MAX)?;
        if state.tail.is_none() || state.gathering {
            return Ok(false);
        }
        let mut is_there = false;
        let write = |tail: &mut Tail<S>, block: &mut OpenBlock| {
            is_there = tail.begin_flush(block)?;
            Ok(())
        };
        self.lead(state, write).check(refusals)?;
        Ok(is_there)
    }

    /// Calls `ask` with the tail, under the lock, and returns its result; waits while a thread
    /// leads.
    fn with_tail<T>(&self, ask: impl FnOnce(&mut Tail<S>) -> T) -> Result<T, Error> {
        let mut state = self.inner.enter()?;
        loop {
            state.check(u64::MAX)?;
            match &mut state.tail {
                Some(tail) => return Ok(ask(tail)),
                None => state = self.inner.wait(state),
            }
        }
    }

    /// Gives up segments that hold only records before `lsn`: see
    /// [`Journal::truncate_before`](crate::Journal::truncate_before). One that is not durable yet
    /// stays. Others append and commit meanwhile.
    ///
    /// # Errors
    /// The file system.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<Lsn, Error> {
        let Inner {
            storage, options, ..
        } = &*self.inner;
        loop {
            let asked = self.with_tail(|tail| tail.dispensable(lsn).ok_or_else(|| tail.first()))?;
            let number = match asked {
                Ok(number) => number,
                Err(first) => return Ok(first),
            };
            // Two threads may be at the same one: it goes once, and is forgotten once.
            give_up(storage, options, number)?;
            self.with_tail(|tail| tail.forget(number))?;
        }
    }

    /// Returns the last record that is durable.
    pub fn durable(&self) -> Durable<Lsn> {
        Durable::promise(self.inner.watermark.get())
    }

    /// Returns a reader that follows this journal: see [`Journal::follow`](crate::Journal::follow).
    ///
    /// # Errors
    /// As there.
    pub fn follow(&self, from: Lsn) -> Result<Reader<S>, Error> {
        let watermark = Arc::clone(&self.inner.watermark);
        Reader::following(self.inner.storage.clone(), from, watermark)
    }
}

impl<R: Record, S: Storage> Shared<R, S> {
    /// Appends a record that is built in place, under the lock. The slot is zeroed. `build` can't
    /// use this journal, and must not wait for a thread that does.
    ///
    /// # Errors
    /// [`Error::Reentrant`], within such a closure. The journal has stopped, or there is no room
    /// for another segment: see [`Shared::commit`].
    pub fn append_with(&self, build: impl FnOnce(&mut R)) -> Result<Lsn, Error> {
        self.append_raw(size_of::<R>(), |slot| build(record_in(slot)))
    }
}

impl<S: Storage> Shared<[u8], S> {
    /// Appends a record of `bytes` bytes, built in place, under the lock. The slot is zeroed.
    /// `build` can't use this journal, and must not wait for a thread that does.
    ///
    /// # Errors
    /// It is too long; or as [`Shared::append_with`].
    pub fn append_bytes_with(
        &self,
        bytes: usize,
        build: impl FnOnce(&mut [u8]),
    ) -> Result<Lsn, Error> {
        let room = bytes.saturating_add(LENGTH_BYTES);
        let appended = self.append_raw(room, |slot| build(content_in(slot)));
        appended.map_err(|error| error.of_content(bytes))
    }

    /// Takes the lock for several records. Until it is given back, this thread cannot use this
    /// journal otherwise, and must not wait for a thread that does.
    ///
    /// ```
    /// use thalweg_journal::{GroupCommit, Journal, JournalOptions, Lsn, SimDisk};
    ///
    /// # fn main() -> Result<(), thalweg_journal::Error> {
    /// let journal = Journal::<[u8], _>::open_in(SimDisk::new(), JournalOptions::default())?;
    /// let journal = journal.share(GroupCommit::default());
    /// let mut guard = journal.lock_appends()?;
    /// for number in 1..=3 {
    ///     guard.claim(5).expect("there is room").fill(7);
    ///     assert_eq!(guard.finish(), Lsn::new(number));
    /// }
    /// assert_eq!(guard.claim(1 << 30), None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The journal has stopped, or this thread has the lock already.
    pub fn lock_appends(&self) -> Result<AppendGuard<'_, S>, Error> {
        let inner = &*self.inner;
        let state = inner.enter()?;
        state.check(u64::MAX)?;
        Ok(AppendGuard {
            inner,
            _building: Building::begin(&inner.building),
            state,
        })
    }
}

/// Holds the lock of a journal for several records, until it is dropped: made by
/// [`Shared::lock_appends`]. Threads that append, flush or commit wait meanwhile.
#[derive(Debug)]
pub struct AppendGuard<'j, S: Storage> {
    inner: &'j Inner<S>,
    // Before the lock goes, so that no other thread has it yet.
    _building: Building<'j>,
    state: MutexGuard<'j, State<S>>,
}

impl<S: Storage> AppendGuard<'_, S> {
    /// Returns room for a record of `bytes` bytes, all zero, if it fits into the block that is
    /// open: else it is for [`Shared::append_bytes_with`]. What is not
    /// [finished](Self::finish) before the next one is claimed is no record.
    #[inline(always)]
    pub fn claim(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let room = bytes.checked_add(LENGTH_BYTES)?;
        self.state.open.claim(room).map(content_in)
    }

    /// Makes what was claimed a record. Returns its number.
    ///
    /// # Panics
    /// Nothing was claimed since the last one.
    #[inline(always)]
    pub fn finish(&mut self) -> Lsn {
        let state = &mut *self.state;
        assert!(state.open.is_claimed(), "a record is claimed first");
        state.open.finish();
        let lsn = state.next;
        state.next = lsn.after(1);
        lsn
    }
}

impl<S: Storage> Drop for AppendGuard<'_, S> {
    fn drop(&mut self) {
        self.inner.note_appended(&self.state);
    }
}
