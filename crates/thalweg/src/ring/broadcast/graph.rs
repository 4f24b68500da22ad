//! The order of the readers, and the check that makes concurrent access sound (rules 3 and 4).

use super::{Access, Group, Reader, RingPublisher, Shared};
use crate::ring::sequence::{CAPACITY_MAX, fresh, slots_for};
use crate::ring::sync::Arc;

/// The id of a reader while a ring is being built. Its [`index`](Self::index) is also its index in
/// the readers that [`RingBuilder::build`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReaderId {
    /// Which builder declared it.
    of: u64,
    index: usize,
}

impl ReaderId {
    /// Returns the reader's index, counted from 0 in the order of declaration.
    pub fn index(self) -> usize {
        self.index
    }
}

/// The reason why a ring can't be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// The capacity is outside 1 to [`CAPACITY_MAX`](crate::ring::CAPACITY_MAX).
    Capacity(usize),
    /// No reader was declared; at least 1 is needed.
    NoReader,
    /// A group of shards has 0 shards; at least 1 is needed.
    NoShard,
    /// Two readers are not ordered, and at least one of them writes.
    Conflict(ReaderId, ReaderId),
    /// A reader was declared to depend on a reader of another builder.
    Foreign(ReaderId),
}

errors!(GraphError {
    Self::Capacity(asked) => "ring capacity {asked} is outside 1 to {CAPACITY_MAX} elements";
    Self::NoReader => "a broadcast ring needs at least one reader";
    Self::NoShard => "a group of shards needs at least one shard";
    Self::Conflict(a, b) =>
        "readers {} and {} are not ordered, and at least one of them writes", a.index, b.index;
    Self::Foreign(reader) =>
        "a reader is to come after reader {} of another ring", reader.index;
});

#[derive(Debug)]
struct Declared {
    access: Access,
    after: Vec<usize>,
}

/// Declares the readers of a ring and their order.
///
/// A reader can only depend on readers declared before it, so the graph has no cycle by
/// construction. With a [`ReaderId`] of another builder, [`build`](Self::build) returns
/// [`GraphError::Foreign`].
///
/// ```
/// use thalweg::ring::broadcast::RingBuilder;
///
/// let mut builder = RingBuilder::<u64>::new(8);
/// let double = builder.reader_mut(&[]);
/// builder.reader(&[double]);
/// let (mut publisher, mut readers) = builder.build(|| 0)?;
/// publisher.publish(|slot| *slot = 21)?;
/// let done = readers[0].visit_mut(8, |_, value| {
///     *value *= 2;
///     true
/// });
/// readers[0].release(done);
/// readers[1].visit(8, |_, value| *value == 42);
/// readers[1].release(1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RingBuilder<T> {
    capacity: usize,
    declared: Vec<Declared>,
    groups: Vec<Group<T>>,
    /// Distinguishes its readers from those of others.
    id: u64,
    /// A reader of another builder that was named.
    foreign: Option<ReaderId>,
}

shown!([T] RingBuilder<T>, "RingBuilder", this,
    "capacity": this.capacity, "declared": this.declared);

impl<T> RingBuilder<T> {
    /// Returns a builder of a ring of at least `capacity` elements; the number of slots is the next
    /// power of two.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            declared: Vec::new(),
            groups: Vec::new(),
            id: fresh(),
            foreign: None,
        }
    }

    fn declare(&mut self, access: Access, after: &[ReaderId]) -> ReaderId {
        let is_foreign = |reader: &&ReaderId| reader.of != self.id;
        self.foreign = self.foreign.or(after.iter().find(is_foreign).copied());
        let after = after.iter().map(|reader| reader.index).collect();
        self.declared.push(Declared { access, after });
        self.id_of(self.declared.len() - 1)
    }

    fn id_of(&self, index: usize) -> ReaderId {
        ReaderId { of: self.id, index }
    }

    /// Declares a reader that only reads elements (by [`Reader::visit`]), and depends on the
    /// readers in `after`, or on the publisher if there are none.
    pub fn reader(&mut self, after: &[ReaderId]) -> ReaderId {
        self.declare(Access::Read, after)
    }

    /// Declares a reader that changes elements in place (by [`Reader::visit_mut`]).
    pub fn reader_mut(&mut self, after: &[ReaderId]) -> ReaderId {
        self.declare(Access::Write, after)
    }

    /// Declares a group of `shards` readers that change elements in place, each only those whose
    /// route, modulo `shards`, is its index in the group. `route` is called once per element, when
    /// it is published; if it panics, the element is not published.
    pub fn shards(
        &mut self,
        shards: usize,
        route: impl Fn(&T) -> usize + Send + 'static,
        after: &[ReaderId],
    ) -> Vec<ReaderId> {
        let group = self.groups.len();
        self.groups.push(Group {
            route: Box::new(route),
            shards,
        });
        (0..shards.min(u32::MAX as usize))
            .map(|shard| {
                let shard = shard as u32;
                self.declare(Access::Shard { group, shard }, after)
            })
            .collect()
    }

    /// Checks the graph and makes the ring. `factory` is called once for each slot; the number of
    /// slots is the capacity, rounded up to a power of two.
    ///
    /// # Errors
    /// See [`GraphError`].
    ///
    /// # Panics
    /// If `factory` panics.
    pub fn build(
        self,
        factory: impl FnMut() -> T,
    ) -> Result<(RingPublisher<T>, Vec<Reader<T>>), GraphError> {
        let slots = slots_for(self.capacity).map_err(|_| GraphError::Capacity(self.capacity))?;
        if self.groups.iter().any(|group| group.shards == 0) {
            return Err(GraphError::NoShard);
        }
        if self.declared.is_empty() {
            return Err(GraphError::NoReader);
        }
        if let Some(reader) = self.foreign {
            return Err(GraphError::Foreign(reader));
        }
        let ancestors = self.ancestors();
        self.check(&ancestors)?;

        let shared = Shared::new(slots, self.declared.len(), self.groups.len(), factory);
        let ring = Arc::new(shared);
        let last = self.last();
        let readers = self
            .declared
            .into_iter()
            .enumerate()
            .map(|(id, declared)| {
                let ring = Arc::clone(&ring);
                Reader::new(ring, id, declared.after, declared.access)
            })
            .collect();
        Ok((RingPublisher::new(ring, &last, self.groups), readers))
    }

    /// For every reader, which readers it comes after, directly or through others.
    fn ancestors(&self) -> Vec<Vec<bool>> {
        let count = self.declared.len();
        let mut ancestors: Vec<Vec<bool>> = Vec::with_capacity(count);
        for declared in &self.declared {
            let mut mine = vec![false; count];
            for &before in &declared.after {
                mine[before] = true;
                for (mine, theirs) in mine.iter_mut().zip(&ancestors[before]) {
                    *mine |= theirs;
                }
            }
            ancestors.push(mine);
        }
        ancestors
    }

    fn check(&self, ancestors: &[Vec<bool>]) -> Result<(), GraphError> {
        for (b, later) in self.declared.iter().enumerate() {
            for (a, earlier) in self.declared[..b].iter().enumerate() {
                let apart = match (earlier.access, later.access) {
                    (Access::Read, Access::Read) => true,
                    (Access::Shard { group: a, .. }, Access::Shard { group: b, .. }) => a == b,
                    _ => false,
                };
                if !apart && !ancestors[b][a] {
                    return Err(GraphError::Conflict(self.id_of(a), self.id_of(b)));
                }
            }
        }
        Ok(())
    }

    /// Returns the readers that no other comes after: the publisher waits for these.
    fn last(&self) -> Vec<usize> {
        (0..self.declared.len())
            .filter(|id| !self.declared.iter().any(|other| other.after.contains(id)))
            .collect()
    }
}
