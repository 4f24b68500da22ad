//! The arguments of a stage's closure: one event with its context, or a chunk of events.

use crate::ring::broadcast::Reader;

/// The context that a stage's closure gets beside the event.
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

    /// Returns whether this is the last of the events that the stage found waiting: the moment to
    /// flush what it gathers.
    pub fn end_of_batch(self) -> bool {
        self.end_of_batch
    }
}

/// The next step of [`Chunk::try_for_each`] after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The event is done.
    Next,
    /// The event can't be done yet: offer it again, after other stages had a turn.
    Retry,
}

/// Up to a progress interval of events, for a closure that wants to do something once around many
/// of them (take a lock, say).
#[derive(Debug)]
pub struct Chunk<'c, T> {
    reader: &'c mut Reader<T>,
    count: usize,
    batch_end: u64,
    /// How many of its events are done.
    done: &'c mut usize,
}

/// Says that a chunk was worked on, for the closure to return. To return that of another chunk is a
/// panic of the stage.
#[derive(Debug)]
pub struct Handled(usize);

impl Handled {
    /// Returns how many of the chunk's events are done: all, but for those that are to be offered
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
    pub(super) fn handle(
        reader: &mut Reader<T>,
        count: usize,
        batch_end: u64,
        work: impl FnOnce(Chunk<'_, T>) -> Handled,
    ) -> usize {
        let mut done = 0;
        let handled = work(Chunk::new(reader, count, batch_end, &mut done));
        assert!(handled.0 == done, "it returned what another chunk gave");
        done
    }

    /// Returns the number of events in the chunk, those of other shards included.
    #[expect(clippy::len_without_is_empty, reason = "a chunk is never empty")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of the first event. Events that are offered again have the numbers that
    /// they had.
    pub fn first_sequence(&self) -> u64 {
        self.reader.next_sequence()
    }

    /// Calls `look` for every event (of this shard), before any of them is worked on: to ask for
    /// the memory that they will need, say.
    #[inline(always)]
    pub fn look(&mut self, mut look: impl FnMut(&T)) {
        self.reader.visit_mut(self.count, |_, event| {
            look(event);
            true
        });
    }

    /// Calls `work` for every event (of this shard).
    #[inline(always)]
    pub fn for_each(self, mut work: impl FnMut(&mut T, Context)) -> Handled {
        self.try_for_each(|event, context| {
            work(event, context);
            Flow::Next
        })
    }

    /// Calls `work` for the events (of this shard) until it says [`Flow::Retry`]. The events before
    /// that one go on to the next stages; that one and those behind it are offered again.
    #[inline(always)]
    pub fn try_for_each(self, mut work: impl FnMut(&mut T, Context) -> Flow) -> Handled {
        let batch_end = self.batch_end;
        *self.done = self.reader.visit_mut(self.count, |sequence, event| {
            work(event, Context::new(sequence, batch_end)) == Flow::Next
        });
        Handled(*self.done)
    }
}

/// A [`Chunk`] for a stage that only reads.
#[derive(Debug)]
pub struct View<'c, T>(Chunk<'c, T>);

impl<'c, T> View<'c, T> {
    #[inline(always)]
    pub(super) fn new(chunk: Chunk<'c, T>) -> Self {
        Self(chunk)
    }

    /// Returns the number of events in the chunk.
    #[expect(clippy::len_without_is_empty, reason = "a chunk is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Calls `look` for every event.
    #[inline(always)]
    pub fn for_each(self, mut look: impl FnMut(&T, Context)) -> Handled {
        let Chunk {
            reader,
            count,
            batch_end,
            done,
        } = self.0;
        *done = reader.visit(count, |sequence, event| {
            look(event, Context::new(sequence, batch_end));
            true
        });
        Handled(*done)
    }
}
