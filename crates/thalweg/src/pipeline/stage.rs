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

/// A stage whose event and closure types are forgotten.
pub(super) trait Stage: Send {
    /// Works on up to `limit` events.
    fn turn(&mut self, limit: usize, mark: &mut Mark) -> Turn;
    /// Whether a turn would find something, be it the end.
    fn is_ready(&mut self) -> bool;
    /// Writes what was measured into the histograms.
    fn flush(&mut self);
    /// Whose bells to ring after each chunk, and whether to flush after each.
    fn seat(&mut self, bells: Box<[usize]>, is_alone: bool);
}

/// The part of a reader that does not depend on its kind.
pub(super) trait Reach: Send {
    fn waiting(&mut self) -> usize;
    fn poll(&mut self) -> Polled;
    fn next_sequence(&self) -> u64;
    fn owns(&self, sequence: u64) -> bool;
    fn release(&mut self, count: usize);
}

impl<T: Send + Sync> Reach for ReadOnly<T> {
    #[inline(always)]
    fn waiting(&mut self) -> usize {
        ReadOnly::waiting(self)
    }
    #[inline]
    fn poll(&mut self) -> Polled {
        ReadOnly::poll(self)
    }
    #[inline]
    fn next_sequence(&self) -> u64 {
        ReadOnly::next_sequence(self)
    }
    #[inline]
    fn owns(&self, _: u64) -> bool {
        true
    }
    #[inline]
    fn release(&mut self, count: usize) {
        ReadOnly::release(self, count);
    }
}

impl<T: Send + Sync> Reach for ReadWrite<T> {
    #[inline(always)]
    fn waiting(&mut self) -> usize {
        ReadWrite::waiting(self)
    }
    #[inline]
    fn poll(&mut self) -> Polled {
        ReadWrite::poll(self)
    }
    #[inline]
    fn next_sequence(&self) -> u64 {
        ReadWrite::next_sequence(self)
    }
    #[inline]
    fn owns(&self, sequence: u64) -> bool {
        ReadWrite::owns(self, sequence)
    }
    #[inline]
    fn release(&mut self, count: usize) {
        ReadWrite::release(self, count);
    }
}

/// Work on a chunk through a reader; gives how many events are done.
pub(super) trait Work<R>: Send {
    fn chunk(&mut self, reader: &mut R, count: usize, batch_end: u64) -> usize;
}

/// A closure called for each event.
pub(super) struct Each<F>(pub(super) F);

/// A closure called for each chunk.
pub(super) struct Whole<F>(pub(super) F);

impl<T, F: FnMut(&mut T, Context) + Send> Work<ReadWrite<T>> for Each<F> {
    #[inline(always)]
    fn chunk(&mut self, reader: &mut ReadWrite<T>, count: usize, batch_end: u64) -> usize {
        Chunk::new(reader, count, batch_end)
            .for_each(&mut self.0)
            .count()
    }
}

impl<T, F: FnMut(&T, Context) + Send> Work<ReadOnly<T>> for Each<F> {
    #[inline(always)]
    fn chunk(&mut self, reader: &mut ReadOnly<T>, count: usize, batch_end: u64) -> usize {
        View::new(reader, count, batch_end)
            .for_each(&mut self.0)
            .count()
    }
}

impl<T, F: FnMut(Chunk<'_, T>) -> Handled + Send> Work<ReadWrite<T>> for Whole<F> {
    #[inline(always)]
    fn chunk(&mut self, reader: &mut ReadWrite<T>, count: usize, batch_end: u64) -> usize {
        let handled = (self.0)(Chunk::new(reader, count, batch_end));
        handled.count().min(count)
    }
}

impl<T, F: FnMut(View<'_, T>) -> Handled + Send> Work<ReadOnly<T>> for Whole<F> {
    #[inline(always)]
    fn chunk(&mut self, reader: &mut ReadOnly<T>, count: usize, batch_end: u64) -> usize {
        let handled = (self.0)(View::new(reader, count, batch_end));
        handled.count().min(count)
    }
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
    /// Nobody comes after this stage.
    is_last: bool,
    /// Neither bells nor flushing.
    is_quiet: bool,
}

impl<R, W> Member<R, W> {
    pub(super) fn new(
        reader: R,
        work: W,
        meter: Meter,
        progress: usize,
        control: Arc<Control>,
    ) -> Self {
        let is_last = meter.is_last();
        Self {
            reader,
            work,
            meter,
            progress,
            control,
            bells: Box::default(),
            flush_each: false,
            is_last,
            is_quiet: true,
        }
    }
}

impl<R: Reach, W: Work<R>> Member<R, W> {
    /// One chunk: measure, work, publish the progress; gives how many of `count` events are done.
    #[inline(always)]
    fn chunk(&mut self, count: usize, batch: usize, batch_end: u64, mark: &mut Mark) -> usize {
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

    /// After a chunk, where other threads wait for it, or nobody flushes later.
    #[inline(never)]
    fn tell(&mut self, done: usize) {
        if done > 0 && self.is_last {
            let released = self.reader.next_sequence();
            self.control.ring_from_last(&self.bells, released);
        } else if done > 0 {
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

    /// A batch of several chunks.
    #[inline(never)]
    fn chunks(&mut self, batch: usize, batch_end: u64, mark: &mut Mark) -> Turn {
        let mut left = batch;
        while left > 0 {
            let chunk = left.min(self.progress);
            let done = self.chunk(chunk, batch, batch_end, mark);
            left -= done;
            if done < chunk {
                let worked = if left < batch {
                    Turn::WORKED
                } else {
                    Turn::IDLE
                };
                return worked.or(Turn::BLOCKED);
            }
        }
        Turn::WORKED
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
        let batch_end = self.reader.next_sequence() + batch as u64;
        let turn = if batch > self.progress {
            self.chunks(batch, batch_end, mark)
        } else {
            match self.chunk(batch, batch, batch_end, mark) {
                done if done == batch => Turn::WORKED,
                0 => Turn::BLOCKED,
                _ => Turn::WORKED.or(Turn::BLOCKED),
            }
        };
        if batch < waiting {
            turn.or(Turn::MORE)
        } else {
            turn
        }
    }

    fn is_ready(&mut self) -> bool {
        self.reader.poll() != Polled::Empty
    }

    fn flush(&mut self) {
        self.meter.flush();
    }

    fn seat(&mut self, bells: Box<[usize]>, is_alone: bool) {
        self.is_quiet = bells.is_empty() && !is_alone;
        self.bells = bells;
        self.flush_each = is_alone;
    }
}
