//! Pieces that lie apart in memory, brought to a kernel as one flow of groups.

use crate::Kernel;
use crate::accumulator::Accumulators;
use crate::kernel::{GROUP_BYTES, Group};

/// Groups that a kernel is given at a time: the products wait for nobody for so long.
const LIST: usize = 32;
/// Groups of these that may be put together from several pieces.
const STAGED: usize = 8;

static NOTHING: Group = [0; GROUP_BYTES];

/// Collects groups of four stripes, where they lie or, if one is cut by a gap, in a copy.
pub(crate) struct Feed<'a, 's> {
    kernel: Kernel,
    accumulators: &'s mut Accumulators,
    groups: [&'a Group; LIST],
    count: usize,
    /// Copies, each standing for the group of the number beside it; the last one, which has no
    /// number yet, is filled so far.
    staged: [Group; STAGED],
    staged_for: [usize; STAGED],
    staged_count: usize,
    filled_bytes: usize,
}

impl<'a, 's> Feed<'a, 's> {
    pub(crate) fn new(kernel: Kernel, accumulators: &'s mut Accumulators) -> Self {
        Self {
            kernel,
            accumulators,
            groups: [&NOTHING; LIST],
            count: 0,
            staged: [NOTHING; STAGED],
            staged_for: [0; STAGED],
            staged_count: 0,
            filled_bytes: 0,
        }
    }

    /// The next piece.
    #[inline]
    pub(crate) fn push(&mut self, mut piece: &'a [u8]) {
        if self.filled_bytes > 0 {
            let copied = self.push_copied(piece);
            piece = &piece[copied..];
        }
        let (whole, rest) = piece.as_chunks::<GROUP_BYTES>();
        for group in whole {
            self.groups[self.count] = group;
            self.group_added();
        }
        if !rest.is_empty() {
            self.push_copied(rest);
        }
    }

    /// Copies what the unfinished group has room for, and gives its length.
    pub(crate) fn push_copied(&mut self, piece: &[u8]) -> usize {
        let room = &mut self.staged[self.staged_count][self.filled_bytes..];
        let now = room.len().min(piece.len());
        room[..now].copy_from_slice(&piece[..now]);
        self.filled_bytes += now;
        if self.filled_bytes == GROUP_BYTES {
            self.filled_bytes = 0;
            self.staged_for[self.staged_count] = self.count;
            self.staged_count += 1;
            self.group_added();
        }
        now
    }

    #[inline]
    fn group_added(&mut self) {
        self.count += 1;
        if self.count == LIST || self.staged_count == STAGED {
            self.flush();
        }
    }

    /// All groups into the accumulators. None is unfinished, or no copy is.
    fn flush(&mut self) {
        let mut groups: [&Group; LIST] = self.groups;
        let staged = self.staged.iter().zip(&self.staged_for);
        for (copy, &at) in staged.take(self.staged_count) {
            groups[at] = copy;
        }
        self.kernel.groups(self.accumulators, &groups[..self.count]);
        (self.count, self.staged_count) = (0, 0);
    }

    /// Ends the flow. What does not fill a group is given back, with its length.
    pub(crate) fn end(mut self) -> (Group, usize) {
        let rest = self.staged[self.staged_count];
        self.flush();
        (rest, self.filled_bytes)
    }
}
