//! Pieces that lie apart in memory, brought to a kernel as one flow of groups.

use crate::Kernel;
use crate::accumulator::Accumulators;
use crate::kernel::{GROUP_BYTES, Group, scalar};

/// The number of groups that a kernel is given at a time: for this long the products wait for
/// nothing.
const LIST: usize = 32;
/// Groups of these that may be put together from several pieces.
const STAGED: usize = 4;

static NOTHING: Group = [0; GROUP_BYTES];

/// Collects groups of four stripes, where they lie or, if one is cut by a gap, in a copy.
pub(crate) struct Feed<'a> {
    groups: [&'a Group; LIST],
    count: usize,
    /// Copies, each standing for the group of the number beside it; the last one, which has no
    /// number yet, is filled so far.
    staged: [Group; STAGED],
    staged_for: [usize; STAGED],
    staged_count: usize,
    filled_bytes: usize,
}

/// Where the groups go.
pub(crate) struct Sink<'s> {
    pub(crate) kernel: Kernel,
    pub(crate) accumulators: &'s mut Accumulators,
}

impl<'a> Feed<'a> {
    pub(crate) fn new() -> Self {
        Self {
            groups: [&NOTHING; LIST],
            count: 0,
            staged: [NOTHING; STAGED],
            staged_for: [0; STAGED],
            staged_count: 0,
            filled_bytes: 0,
        }
    }

    /// Returns whether a group begins with the next piece.
    pub(crate) fn is_even(&self) -> bool {
        self.filled_bytes == 0
    }

    /// The next piece.
    pub(crate) fn push(&mut self, sink: &mut Sink<'_>, mut piece: &'a [u8]) {
        if self.filled_bytes > 0 {
            let copied = self.push_copied(sink, piece);
            piece = &piece[copied..];
        }
        let (mut whole, rest) = piece.as_chunks::<GROUP_BYTES>();
        while !whole.is_empty() {
            // Counted once, not for each group: a counter in memory costs more than its group.
            let room = &mut self.groups[self.count..];
            let now = room.len().min(whole.len());
            for (place, group) in room.iter_mut().zip(whole) {
                *place = group;
            }
            whole = &whole[now..];
            self.groups_added(sink, now);
        }
        if !rest.is_empty() {
            self.push_copied(sink, rest);
        }
    }

    /// Copies what the unfinished group has room for, and gives its length.
    pub(crate) fn push_copied(&mut self, sink: &mut Sink<'_>, piece: &[u8]) -> usize {
        let room = &mut self.staged[self.staged_count][self.filled_bytes..];
        let now = room.len().min(piece.len());
        room[..now].copy_from_slice(&piece[..now]);
        self.filled_bytes += now;
        if self.filled_bytes == GROUP_BYTES {
            self.filled_bytes = 0;
            self.staged_for[self.staged_count] = self.count;
            self.staged_count += 1;
            self.groups_added(sink, 1);
        }
        now
    }

    fn groups_added(&mut self, sink: &mut Sink<'_>, groups: usize) {
        self.count += groups;
        if self.count == LIST || self.staged_count == STAGED {
            self.flush(sink);
        }
    }

    /// All groups into the accumulators. The one that is not whole yet is none of them.
    pub(crate) fn flush(&mut self, sink: &mut Sink<'_>) {
        // A list that was just written is slow to copy: the processor waits until it has left the
        // store buffer. So only where copies have to get into it.
        if self.staged_count == 0 {
            let groups = &self.groups[..self.count];
            sink.kernel.groups(sink.accumulators, groups);
        } else {
            let mut groups: [&Group; LIST] = self.groups;
            let staged = self.staged.iter().zip(&self.staged_for);
            for (copy, &at) in staged.take(self.staged_count) {
                groups[at] = copy;
            }
            let groups = &groups[..self.count];
            sink.kernel.groups(sink.accumulators, groups);
        }
        (self.count, self.staged_count) = (0, 0);
    }

    /// Ends the flow, and gives what does not fill a stripe.
    pub(crate) fn end(&mut self, sink: &mut Sink<'_>) -> &[u8] {
        let rest = self.staged_count;
        self.flush(sink);
        let (stripes, tail) = self.staged[rest][..self.filled_bytes].as_chunks();
        scalar::stripes(sink.accumulators, stripes);
        tail
    }
}
