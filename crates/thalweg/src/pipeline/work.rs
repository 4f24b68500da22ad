//! The work of stages: the four kinds of closures.

use super::chunk::{Chunk, Context, Handled, View};
use crate::ring::broadcast::Reader;

/// Work on a chunk through a reader; returns how many events are done.
pub(super) trait Work<T>: Send {
    /// Whether an event is done when its call returns, and not only the chunk.
    const EACH: bool;
    fn chunk(&mut self, reader: &mut Reader<T>, count: usize, batch_end: u64) -> usize;
    /// Looks at one event. Only where [`EACH`](Self::EACH) holds and the reader only looks.
    #[inline(always)]
    fn look(&mut self, _: &T, _: Context) {}
    /// Changes one event. Only where [`EACH`](Self::EACH) holds and the reader writes.
    #[inline(always)]
    fn change(&mut self, _: &mut T, _: Context) {}
}

/// A closure that changes each event.
pub(super) struct Change<F>(pub(super) F);

/// A closure that looks at each event.
pub(super) struct Look<F>(pub(super) F);

/// A closure that changes the events of a chunk.
pub(super) struct ChangeChunks<F>(pub(super) F);

/// A closure that looks at the events of a chunk.
pub(super) struct LookChunks<F>(pub(super) F);

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

impl<T: Send + Sync, F: FnMut(&T, Context) + Send> Work<T> for Look<F> {
    const EACH: bool = true;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut Reader<T>, count: usize, batch_end: u64) -> usize {
        Chunk::handle(reader, count, batch_end, |chunk| {
            View::new(chunk).for_each(&mut self.0)
        })
    }

    #[inline(always)]
    fn look(&mut self, event: &T, context: Context) {
        (self.0)(event, context);
    }
}

impl<T: Send + Sync, F: FnMut(Chunk<'_, T>) -> Handled + Send> Work<T> for ChangeChunks<F> {
    const EACH: bool = false;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut Reader<T>, count: usize, batch_end: u64) -> usize {
        Chunk::handle(reader, count, batch_end, &mut self.0)
    }
}

impl<T: Send + Sync, F: FnMut(View<'_, T>) -> Handled + Send> Work<T> for LookChunks<F> {
    const EACH: bool = false;

    #[inline(always)]
    fn chunk(&mut self, reader: &mut Reader<T>, count: usize, batch_end: u64) -> usize {
        Chunk::handle(reader, count, batch_end, |chunk| (self.0)(View::new(chunk)))
    }
}
