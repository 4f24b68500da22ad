//! A stage: a reader of the ring, the user's closure, and a meter.

use std::sync::Arc;

use super::chunk::{Chunk, Context, Handled, View};
use super::control::Control;
use super::meter::{Begun, Mark, Meter};
use crate::ring::broadcast::{Polled, ReadOnly, ReadWrite};

/// What came of a stage's turn; turns of several stages are combined bit by
/// bit. No bit: no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(u8);

impl Turn {
    pub(super) const IDLE: Self = Self(0);
    /// Events went through.
    pub(super) const WORKED: Self = Self(1);
    /// Events are surely left.
    pub(super) const MORE: Self = Self(2);
    /// The first event left must be offered again.
    pub(super) const BLOCKED: Self = Self(4);
    /// No event any more.
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

/// What came of `done` events of a batch, with `waiting` in all.
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

/// A stage whose event and closure types are forgotten.
pub(super) trait Stage: Send {
    /// Works on up to `limit` events.
    fn turn(&mut self, limit: usize, mark: &mut Mark) -> Turn;
    /// Whether a turn would find something, be it the end.
    fn is_ready(&mut self) -> bool;
    /// How many events wait for it, looked at anew.
    fn backlog(&mut self) -> usize;
    /// Writes what was measured into the histograms.
    fn flush(&mut self);
    /// Whose bells to ring after each chunk, and whether to flush after each. `is_away`: the stage
    /// is on another thread than the caller.
    fn seat(&mut self, bells: Box<[usize]>, is_alone: bool, is_away: bool);
}

/// The part of a reader that does not depend on its kind.
pub(super) trait Reach: Send {
    fn waiting(&mut self) -> usize;
    fn waiting_now(&mut self) -> usize;
    fn poll(&mut self) -> Polled;
    fn next_sequence(&self) -> u64;
    fn owns(&self, sequence: u64) -> bool;
    fn release(&mut self, count: usize);
}

macro_rules! reach {
    ($reader:ident, $owns:expr) => {
        impl<T: Send + Sync> Reach for $reader<T> {
            #[inline(always)]
            fn waiting(&mut self) -> usize {
                $reader::waiting(self)
            }
            #[inline]
            fn waiting_now(&mut self) -> usize {
                $reader::waiting_now(self)
            }
            #[inline]
            fn poll(&mut self) -> Polled {
                $reader::poll(self)
            }
            #[inline(always)]
            fn next_sequence(&self) -> u64 {
                $reader::next_sequence(self)
            }
            #[inline]
            fn owns(&self, sequence: u64) -> bool {
                $owns(self, sequence)
            }
            #[inline(always)]
            fn release(&mut self, count: usize) {
                $reader::release(self, count);
            }
        }
    };
}

reach!(ReadOnly, |_: &Self, _| true);
reach!(ReadWrite, ReadWrite::owns);

/// Work on a chunk through a reader; gives how many events are done.
pub(super) trait Work<R>: Send {
    /// Whether an event is done when its call returns, and not only the chunk.
    const EACH: bool;
    fn chunk(&mut self, reader: &mut R, count: usize, batch_end: u64) -> usize;
    /// As [`chunk`](Self::chunk), and releases each event as soon as it is done, then calls
    /// `released`. Only where [`EACH`](Self::EACH) holds.
    fn one_by_one(&mut self, reader: &mut R, count: usize, batch_end: u64, released: impl FnMut());
}

/// A closure called for each event.
pub(super) struct Each<F>(pub(super) F);

/// A closure called for each chunk.
pub(super) struct Whole<F>(pub(super) F);

impl<T, F: FnMut(&mut T, Context) + Send> Work<ReadWrite<T>> for Each<F> {
    const EACH: bool = true;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut ReadWrite<T>, count: usize, batch_end: u64) -> usize {
        Chunk::new(reader, count, batch_end)
            .for_each(&mut self.0)
            .count()
    }

    #[inline(always)]
    fn one_by_one(
        &mut self,
        reader: &mut ReadWrite<T>,
        count: usize,
        batch_end: u64,
        released: impl FnMut(),
    ) {
        let work = |sequence, event: &mut T| (self.0)(event, Context::new(sequence, batch_end));
        reader.for_each_released(count, work, released);
    }
}

impl<T, F: FnMut(&T, Context) + Send> Work<ReadOnly<T>> for Each<F> {
    const EACH: bool = true;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut ReadOnly<T>, count: usize, batch_end: u64) -> usize {
        View::new(reader, count, batch_end)
            .for_each(&mut self.0)
            .count()
    }

    #[inline(always)]
    fn one_by_one(
        &mut self,
        reader: &mut ReadOnly<T>,
        count: usize,
        batch_end: u64,
        released: impl FnMut(),
    ) {
        let work = |sequence, event: &T| (self.0)(event, Context::new(sequence, batch_end));
        reader.for_each_released(count, work, released);
    }
}

impl<T, F: FnMut(Chunk<'_, T>) -> Handled + Send> Work<ReadWrite<T>> for Whole<F> {
    const EACH: bool = false;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut ReadWrite<T>, count: usize, batch_end: u64) -> usize {
        let handled = (self.0)(Chunk::new(reader, count, batch_end));
        handled.count().min(count)
    }

    fn one_by_one(&mut self, _: &mut ReadWrite<T>, _: usize, _: u64, _: impl FnMut()) {}
}

impl<T, F: FnMut(View<'_, T>) -> Handled + Send> Work<ReadOnly<T>> for Whole<F> {
    const EACH: bool = false;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut ReadOnly<T>, count: usize, batch_end: u64) -> usize {
        let handled = (self.0)(View::new(reader, count, batch_end));
        handled.count().min(count)
    }

    fn one_by_one(&mut self, _: &mut ReadOnly<T>, _: usize, _: u64, _: impl FnMut()) {}
}

/// The one implementation of [`Stage`].
pub(super) struct Member<R, W> {
    reader: R,
    work: W,
    meter: Meter,
    progress: usize,
    control: Arc<Control>,
    bells: Box<[usize]>,
    flush_each: bool,
    /// Nobody comes after this stage but the caller, on another thread: each event's slot goes back
    /// at once, since the call for the next event may wait for something that the caller does when
    /// it has room.
    is_eager: bool,
    /// Neither bells nor flushing.
    is_quiet: bool,
    /// Up to so many events may be done without more ado, if none is sampled.
    plain_max: usize,
}

impl<R, W> Member<R, W> {
    pub(super) fn new(
        reader: R,
        work: W,
        meter: Meter,
        progress: usize,
        control: Arc<Control>,
    ) -> Self {
        Self {
            reader,
            work,
            meter,
            progress,
            control,
            bells: Box::default(),
            flush_each: false,
            is_eager: false,
            is_quiet: true,
            plain_max: progress,
        }
    }
}

impl<R: Reach, W: Work<R>> Member<R, W> {
    /// One chunk: measure, work, publish the progress; gives how many of `count` events are done.
    #[inline(always)]
    fn chunk(&mut self, count: usize, batch: usize, batch_end: u64, mark: &mut Mark) -> usize {
        #[cfg(shuttle)]
        let is_late = crate::ring::sync::fault::is("room_late");
        #[cfg(not(shuttle))]
        let is_late = false;
        if self.is_eager && !is_late {
            return self.one_by_one(count, batch, batch_end, mark);
        }
        let first = self.reader.next_sequence();
        let begun = self.meter.before(first, count, mark);
        let done = self.work.chunk(&mut self.reader, count, batch_end);
        if let Some(begun) = begun {
            self.measured(begun, done, batch, mark);
        }
        self.reader.release(done);
        if !self.is_quiet {
            self.tell(done);
        }
        done
    }

    /// A chunk whose events go back one by one.
    #[inline(never)]
    fn one_by_one(&mut self, count: usize, batch: usize, batch_end: u64, mark: &mut Mark) -> usize {
        let first = self.reader.next_sequence();
        let Self { reader, work, .. } = self;
        if let Some(begun) = self.meter.before(first, count, mark) {
            let mut samples = 0;
            for sequence in first..first + count as u64 {
                work.chunk(reader, 1, batch_end);
                samples += self
                    .meter
                    .event(begun, sequence, |sequence| reader.owns(sequence));
                reader.release(1);
                self.control.ring(&self.bells);
            }
            self.meter.over(begun, count, samples, batch, mark);
        } else {
            let (control, bells) = (&self.control, &self.bells);
            work.one_by_one(reader, count, batch_end, || {
                #[cfg(shuttle)]
                if crate::ring::sync::fault::is("room_unrung") {
                    return;
                }
                control.ring(bells);
            });
        }
        if self.flush_each {
            self.meter.flush();
        }
        count
    }

    /// After a chunk, where other threads wait for it, or nobody flushes later.
    #[inline(never)]
    fn tell(&mut self, done: usize) {
        #[cfg(shuttle)]
        let done = if crate::ring::sync::fault::is("stage_unrung") {
            0
        } else {
            done
        };
        if done > 0 {
            self.control.ring(&self.bells);
        }
        if self.flush_each {
            self.meter.flush();
        }
    }

    #[inline(never)]
    fn measured(&mut self, begun: Begun, done: usize, batch: usize, mark: &mut Mark) {
        mark.ticks = None;
        if done > 0 {
            let first = self.reader.next_sequence();
            let owns = |sequence| self.reader.owns(sequence);
            self.meter.after(begun, first, done, batch, owns, mark);
        }
    }

    /// A turn with measuring, bells, or several chunks.
    #[inline(never)]
    fn careful(&mut self, batch: usize, waiting: usize, batch_end: u64, mark: &mut Mark) -> Turn {
        let mut left = batch;
        while left > 0 {
            let chunk = left.min(self.progress);
            let done = self.chunk(chunk, batch, batch_end, mark);
            left -= done;
            if done < chunk {
                break;
            }
        }
        outcome(batch - left, batch, waiting)
    }

    #[cold]
    fn nothing(&mut self, mark: &mut Mark) -> Turn {
        mark.ticks = None;
        match self.reader.poll() {
            // It came just now: the next turn has it.
            Polled::Ready(_) => Turn::MORE,
            Polled::Empty => Turn::IDLE,
            Polled::Closed => Turn::DONE,
        }
    }
}

impl<R: Reach, W: Work<R>> Stage for Member<R, W> {
    #[inline]
    fn turn(&mut self, limit: usize, mark: &mut Mark) -> Turn {
        let waiting = self.reader.waiting();
        if waiting == 0 {
            return self.nothing(mark);
        }
        let batch = waiting.min(limit);
        let next = self.reader.next_sequence();
        let batch_end = next + batch as u64;
        // The rest is for what is rare, or large enough to pay for it.
        if batch > self.plain_max || self.meter.is_sampled(next, batch) {
            return self.careful(batch, waiting, batch_end, mark);
        }
        mark.ticks = None;
        let done = self.work.chunk(&mut self.reader, batch, batch_end);
        self.reader.release(done);
        outcome(done, batch, waiting)
    }

    fn backlog(&mut self) -> usize {
        self.reader.waiting_now()
    }

    fn is_ready(&mut self) -> bool {
        self.reader.poll() != Polled::Empty
    }

    fn flush(&mut self) {
        self.meter.flush();
    }

    fn seat(&mut self, bells: Box<[usize]>, is_alone: bool, is_away: bool) {
        self.is_quiet = bells.is_empty() && !is_alone;
        self.bells = bells;
        self.flush_each = is_alone;
        self.is_eager = W::EACH && is_away && self.meter.is_last();
        self.plain_max = if self.is_quiet && !self.is_eager {
            self.progress
        } else {
            0
        };
    }
}
