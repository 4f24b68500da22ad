//! A stage: a reader of the ring, the user's closure, of one of three kinds, and a meter. The
//! arguments of a closure are one event with its context, or a chunk of events.

use std::sync::Arc;

use super::control::{Control, ROUND};
use super::meter::{Chunked, Mark, Meter, Span};
use crate::ring::broadcast::{Availability, Reader};

/// The context that a stage's closure gets with each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    sequence: u64,
    end_of_batch: bool,
}

impl Context {
    #[inline(always)]
    pub(super) fn new(sequence: u64, batch_end: u64) -> Self {
        Self {
            sequence,
            end_of_batch: sequence + 1 == batch_end,
        }
    }

    /// Returns the event's number, counted from 0 in the order of publishing.
    pub fn sequence(self) -> u64 {
        self.sequence
    }

    /// Returns whether this is the last of the events that the stage found waiting: the time to
    /// flush a batch that it gathers.
    pub fn end_of_batch(self) -> bool {
        self.end_of_batch
    }
}

/// The outcome of an event in [`Chunk::try_for_each`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The event is done, and the next one follows.
    Next,
    /// The event can't be done yet: it is offered again, after other stages have run.
    Retry,
}

/// The events of one call of a chunked stage, at most its progress interval of them: to do
/// something once for many events, such as taking a lock.
#[derive(Debug)]
pub struct Chunk<'c, T> {
    reader: &'c mut Reader<T>,
    count: usize,
    batch_end: u64,
    /// How many of its events are done.
    done: &'c mut usize,
}

/// The number of events of a chunk that are done, which the closure of a chunked stage must return.
/// A stage panics if its closure returns that of another chunk.
#[derive(Debug)]
pub struct Processed(usize);

impl Processed {
    /// Returns the number of the chunk's events that are done: all but those that are to be offered
    /// again.
    pub fn count(&self) -> usize {
        self.0
    }
}

impl<'c, T> Chunk<'c, T> {
    #[inline(always)]
    fn new(reader: &'c mut Reader<T>, count: usize, batch_end: u64, done: &'c mut usize) -> Self {
        Self {
            reader,
            count,
            batch_end,
            done,
        }
    }

    /// Has `work` work on a chunk, and returns how many events are done: by what was called on the
    /// chunk, whatever `work` returns.
    #[inline(always)]
    fn handle(
        reader: &mut Reader<T>,
        count: usize,
        batch_end: u64,
        work: impl FnOnce(Chunk<'_, T>) -> Processed,
    ) -> usize {
        let mut done = 0;
        let handled = work(Chunk::new(reader, count, batch_end, &mut done));
        assert!(handled.0 == done, "it returned what another chunk gave");
        done
    }

    /// Returns the number of events in the chunk.
    #[expect(clippy::len_without_is_empty, reason = "a chunk is never empty")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of the first event. Events that are offered again have the numbers that
    /// they had.
    pub fn first_sequence(&self) -> u64 {
        self.reader.next_sequence()
    }

    /// Calls `inspect` with every event, before any of them is handled: to prefetch the memory that
    /// they will need, for example.
    #[inline(always)]
    pub fn inspect(&mut self, mut inspect: impl FnMut(&T)) {
        self.reader.visit_mut(self.count, |_, event| {
            inspect(event);
            true
        });
    }

    /// Calls `work` for every event.
    #[inline(always)]
    pub fn for_each(self, mut work: impl FnMut(&mut T, Context)) -> Processed {
        self.try_for_each(|event, context| {
            work(event, context);
            Flow::Next
        })
    }

    /// Calls `work` for the events until it returns [`Flow::Retry`]. The events before that one are
    /// passed to the next stages; that one and later ones are offered again.
    #[inline(always)]
    pub fn try_for_each(self, mut work: impl FnMut(&mut T, Context) -> Flow) -> Processed {
        let batch_end = self.batch_end;
        *self.done = self.reader.visit_mut(self.count, |sequence, event| {
            work(event, Context::new(sequence, batch_end)) == Flow::Next
        });
        Processed(*self.done)
    }
}

/// The user's closure, of any kind.
pub(super) trait Work<T>: Send {
    /// Whether an event is done when its call returns, and not only the chunk.
    const EACH: bool;
    /// Works on a chunk through a reader; returns how many events are done.
    fn chunk(&mut self, reader: &mut Reader<T>, count: usize, batch_end: u64) -> usize;
    /// Reads one event. Only where [`EACH`](Self::EACH) holds and the reader only reads.
    #[inline(always)]
    fn observe(&mut self, _: &T, _: Context) {}
    /// Changes one event. Only where [`EACH`](Self::EACH) holds and the reader writes.
    #[inline(always)]
    fn change(&mut self, _: &mut T, _: Context) {}
}

/// A closure that changes each event.
pub(super) struct Change<F>(pub(super) F);

/// A closure that reads each event.
pub(super) struct Observe<F>(pub(super) F);

/// A closure that changes the events of a chunk.
pub(super) struct ChangeChunks<F>(pub(super) F);

impl<T: Send + Sync, F: FnMut(&mut T, Context) + Send> Work<T> for Change<F> {
    const EACH: bool = true;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut Reader<T>, count: usize, batch_end: u64) -> usize {
        Chunk::handle(reader, count, batch_end, |chunk| {
            chunk.for_each(&mut self.0)
        })
    }

    #[inline(always)]
    fn change(&mut self, event: &mut T, context: Context) {
        (self.0)(event, context);
    }
}

impl<T: Send + Sync, F: FnMut(&T, Context) + Send> Work<T> for Observe<F> {
    const EACH: bool = true;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut Reader<T>, count: usize, batch_end: u64) -> usize {
        reader.visit(count, |sequence, event| {
            (self.0)(event, Context::new(sequence, batch_end));
            true
        })
    }

    #[inline(always)]
    fn observe(&mut self, event: &T, context: Context) {
        (self.0)(event, context);
    }
}

impl<T: Send + Sync, F: FnMut(Chunk<'_, T>) -> Processed + Send> Work<T> for ChangeChunks<F> {
    const EACH: bool = false;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut Reader<T>, count: usize, batch_end: u64) -> usize {
        Chunk::handle(reader, count, batch_end, &mut self.0)
    }
}

/// The outcome of a stage's turn; turns of several stages are combined bit by bit. No bit: no
/// event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(u8);

impl Turn {
    pub(super) const IDLE: Self = Self(0);
    /// Events were processed.
    pub(super) const WORKED: Self = Self(1);
    /// More events are known to wait.
    pub(super) const MORE: Self = Self(2);
    /// The next event must be offered again.
    pub(super) const BLOCKED: Self = Self(4);
    /// No event will come any more.
    pub(super) const DONE: Self = Self(8);

    #[inline(always)]
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline(always)]
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[inline(always)]
    pub(super) fn is(self, bit: Self) -> bool {
        self.0 & bit.0 != 0
    }
}

/// Returns the turn in which `done` events of a batch were done, with `waiting` in all.
#[inline(always)]
fn outcome(done: usize, batch: usize, waiting: usize) -> Turn {
    let more = if batch < waiting {
        Turn::MORE
    } else {
        Turn::IDLE
    };
    match done {
        _ if done == batch => Turn::WORKED.or(more),
        0 => Turn::BLOCKED.or(more),
        _ => Turn::WORKED.or(Turn::BLOCKED).or(more),
    }
}

/// A stage, whatever the type of its closure. Its reader is in the chain of its group.
pub(super) trait Stage<T>: Send {
    /// Works on up to `limit` events.
    fn turn(&mut self, reader: &mut Reader<T>, limit: usize, mark: &mut Mark) -> Turn;
    /// Reads one event. Only where it has a [`notify_interval`](Self::notify_interval).
    fn observe(&mut self, event: &T, context: Context);
    /// Works as [`observe`](Self::observe) where the stage changes events.
    fn change(&mut self, event: &mut T, context: Context);
    /// Records the time of the last calls of [`observe`](Self::observe) or
    /// [`change`](Self::change), with a sampled event among theirs, before the events are released.
    /// `batch` events were waiting, and the work on `chunk` began at `begin`.
    fn measured(&mut self, begin: u64, chunk: Chunked, batch: usize, mark: &mut Mark);
    /// Returns the number of events after which other threads must be notified of them, which
    /// [`notify`](Self::notify) does for those that sleep; `usize::MAX` if there are no others, and
    /// `None` if the stage takes events by the chunk, not one by one.
    fn notify_interval(&self) -> Option<usize>;
    /// Returns the threads to notify after each event, if the stage releases each event's slot at
    /// once.
    fn eager_waiters(&self) -> Option<&[usize]>;
    /// Wakes the threads that wait for events that were processed one by one.
    fn notify(&mut self);
    /// Writes what was measured into the histograms.
    fn flush(&mut self);
    /// Returns the time that the stage worked, in ticks, by samples that are not counted yet.
    fn owed(&self) -> u64;
    /// Counts those samples, up to what fits the thread's time.
    fn count(&mut self, span: Span);
    /// Attaches the stage to a thread: sets which threads it notifies after each chunk
    /// (`waiters`), and whether it flushes its meter after each (`is_alone`). `is_watched`: stages
    /// on other threads wait for the events that it releases, also those that never sleep and so
    /// are not among `waiters`. `is_away`: the thread is not the caller's.
    fn attach(&mut self, waiters: Box<[usize]>, is_watched: bool, is_alone: bool, is_away: bool);
}

/// The one implementation of [`Stage`].
pub(super) struct Member<W> {
    work: W,
    meter: Meter,
    progress: usize,
    control: Arc<Control>,
    waiters: Box<[usize]>,
    /// Other threads wait for what this stage releases.
    is_watched: bool,
    flush_each: bool,
    /// Only the caller waits for this stage, on another thread: it releases each event's slot at
    /// once, since its work on the next event may wait for something that the caller does when it
    /// has a free slot.
    is_eager: bool,
    /// It neither notifies threads nor flushes.
    is_quiet: bool,
    /// The number of events that may be done without further checks, if none is sampled.
    plain_max: usize,
}

/// The events that a stage found waiting in one turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    /// The number of events.
    pub(super) count: usize,
    /// The sequence behind the last of them.
    pub(super) end: u64,
}

impl<W> Member<W> {
    pub(super) fn new(work: W, meter: Meter, progress: usize, control: Arc<Control>) -> Self {
        Self {
            work,
            meter,
            progress,
            control,
            waiters: Box::default(),
            is_watched: false,
            flush_each: false,
            is_eager: false,
            is_quiet: true,
            plain_max: progress,
        }
    }

    /// Works on one chunk: it measures, works, and publishes the progress; returns how many of
    /// `count` events are done.
    fn chunk<T>(
        &mut self,
        reader: &mut Reader<T>,
        count: usize,
        batch: Batch,
        mark: &mut Mark,
    ) -> usize
    where
        W: Work<T>,
    {
        #[cfg(shuttle)]
        let is_late = crate::ring::sync::fault::is("room_late");
        #[cfg(not(shuttle))]
        let is_late = false;
        if self.is_eager && !is_late {
            self.one_by_one(reader, count, batch, mark);
            return count;
        }
        let first = reader.next_sequence();
        let begun = self.meter.before(first, count, mark);
        let done = self.work.chunk(reader, count, batch.end);
        if let Some(begin) = begun {
            self.measure(reader, begin, done, batch.count, mark);
        }
        reader.release(done);
        if !self.is_quiet {
            self.notify_done(done);
        }
        done
    }

    /// Works on `count` events, and releases each at once.
    #[inline(never)]
    fn one_by_one<T>(&mut self, reader: &mut Reader<T>, count: usize, batch: Batch, mark: &mut Mark)
    where
        W: Work<T>,
    {
        for _ in 0..count {
            let begun = self.meter.before(reader.next_sequence(), 1, mark);
            self.work.chunk(reader, 1, batch.end);
            if let Some(begin) = begun {
                self.measure(reader, begin, 1, batch.count, mark);
            }
            reader.release_early();
            self.notify_room();
        }
        reader.release(0);
        if self.flush_each {
            self.meter.flush();
        }
    }

    /// Notifies the threads that wait for the slot of an event that was released.
    #[inline(always)]
    fn notify_room(&self) {
        #[cfg(shuttle)]
        if crate::ring::sync::fault::is("room_unnotified") {
            return;
        }
        self.control.notify(&self.waiters);
    }

    /// Notifies other threads after a chunk, where they wait for it or no one flushes later.
    #[inline(never)]
    fn notify_done(&mut self, done: usize) {
        #[cfg(shuttle)]
        let done = if crate::ring::sync::fault::is("stage_unnotified") {
            0
        } else {
            done
        };
        if done > 0 {
            self.control.notify(&self.waiters);
        }
        if self.flush_each {
            self.meter.flush();
        }
    }

    #[inline(never)]
    fn measure<T>(
        &mut self,
        reader: &Reader<T>,
        begin: u64,
        done: usize,
        batch: usize,
        mark: &mut Mark,
    ) {
        mark.ticks = None;
        if done > 0 {
            let first = reader.next_sequence();
            let owns = |sequence| reader.owns(sequence);
            let chunk = Chunked {
                first,
                count: done,
                own: if reader.is_shard() {
                    let all = first..first + done as u64;
                    all.filter(|&sequence| owns(sequence)).count()
                } else {
                    done
                },
            };
            self.meter.after(begin, chunk, batch, owns, mark);
        }
    }

    /// Takes a turn with a sampled event, notifications, or several chunks.
    #[inline(never)]
    fn turn_slow<T>(
        &mut self,
        reader: &mut Reader<T>,
        batch: Batch,
        waiting: usize,
        mark: &mut Mark,
    ) -> Turn
    where
        W: Work<T>,
    {
        let mut left = batch.count;
        while left > 0 {
            let chunk = left.min(self.progress);
            let done = self.chunk(reader, chunk, batch, mark);
            left -= done;
            if done < chunk {
                break;
            }
        }
        outcome(batch.count - left, batch.count, waiting)
    }
}

#[cold]
fn nothing<T>(reader: &mut Reader<T>, mark: &mut Mark) -> Turn {
    mark.ticks = None;
    match reader.poll() {
        // It was published just now: the next turn processes it.
        Availability::Ready(_) => Turn::MORE,
        Availability::Empty => Turn::IDLE,
        Availability::Closed => Turn::DONE,
    }
}

impl<T, W: Work<T>> Stage<T> for Member<W> {
    #[inline]
    fn turn(&mut self, reader: &mut Reader<T>, limit: usize, mark: &mut Mark) -> Turn {
        let waiting = reader.waiting();
        if waiting == 0 {
            return nothing(reader, mark);
        }
        let count = waiting.min(limit);
        let next = reader.next_sequence();
        let end = next + count as u64;
        // The slow path is for rare cases, and for counts large enough to pay for it.
        if count > self.plain_max || self.meter.is_sampled(next, count) {
            return self.turn_slow(reader, Batch { count, end }, waiting, mark);
        }
        mark.ticks = None;
        let done = self.work.chunk(reader, count, end);
        reader.release(done);
        outcome(done, count, waiting)
    }

    fn observe(&mut self, event: &T, context: Context) {
        self.work.observe(event, context);
    }

    fn change(&mut self, event: &mut T, context: Context) {
        self.work.change(event, context);
    }

    fn measured(&mut self, begin: u64, chunk: Chunked, batch: usize, mark: &mut Mark) {
        self.meter.after(begin, chunk, batch, |_| true, mark);
    }

    fn notify_interval(&self) -> Option<usize> {
        W::EACH.then_some(if self.is_watched {
            // Also where the interval is `usize::MAX` events.
            self.progress.min(ROUND)
        } else {
            usize::MAX
        })
    }

    fn eager_waiters(&self) -> Option<&[usize]> {
        self.is_eager.then_some(&*self.waiters)
    }

    fn notify(&mut self) {
        if !self.is_quiet {
            self.notify_done(1);
        }
    }

    fn flush(&mut self) {
        self.meter.flush();
    }

    fn owed(&self) -> u64 {
        self.meter.owed()
    }

    fn count(&mut self, span: Span) {
        self.meter.count(span);
    }

    fn attach(&mut self, waiters: Box<[usize]>, is_watched: bool, is_alone: bool, is_away: bool) {
        let is_last_away = is_away && self.meter.is_last();
        // The caller waits for free slots.
        self.is_watched = is_watched || is_last_away;
        self.is_quiet = waiters.is_empty() && !is_alone;
        self.waiters = waiters;
        self.flush_each = is_alone;
        self.is_eager = W::EACH && is_last_away;
        self.plain_max = if self.is_quiet && !self.is_eager {
            self.progress
        } else {
            0
        };
    }
}
