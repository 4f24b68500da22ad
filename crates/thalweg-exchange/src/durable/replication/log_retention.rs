//! Which batches the log keeps, as far as this replica knows, and which are to be given up.

use std::collections::VecDeque;

/// The cost of a batch in the log beside its bytes: its key, and its place in an index.
const ENTRY_BYTES: usize = 512;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct LogRetention {
    /// The index and the cost of each, ascending.
    batches: VecDeque<(u64, usize)>,
    bytes: usize,
    bytes_max: usize,
}

impl LogRetention {
    /// Returns an empty list of batches that cost at most this together.
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            batches: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Returns the index of the oldest batch that is known.
    pub(super) fn first(&self) -> Option<u64> {
        self.batches.front().map(|(index, _)| *index)
    }

    /// Adds batches before the first, whose lengths are not known: pages of them, ascending, each
    /// with its first index and their number. Each counts as much as those that are known do on
    /// average.
    pub(super) fn add_older(&mut self, pages: &[(u64, usize)]) {
        let known = self.batches.len().max(1);
        let each = (self.bytes / known).max(ENTRY_BYTES);
        let first = self.first().unwrap_or(u64::MAX);
        for (index, count) in pages.iter().rev().filter(|(index, _)| *index < first) {
            self.batches.push_front((*index, count * each));
            self.bytes += count * each;
        }
    }

    /// Notes the newest batch. Where they are too many, takes an eighth out, and returns the index
    /// of the oldest that is left: those before it are to be given up.
    pub(super) fn push(&mut self, index: u64, bytes: usize) -> Option<u64> {
        self.batches.push_back((index, bytes + ENTRY_BYTES));
        self.bytes += bytes + ENTRY_BYTES;
        if self.bytes <= self.bytes_max {
            return None;
        }
        while self.bytes > self.bytes_max / 8 * 7
            && self.batches.len() > 1
            && let Some((_, bytes)) = self.batches.pop_front()
        {
            self.bytes -= bytes;
        }
        self.batches.front().map(|(index, _)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_given_up_and_never_the_newest() {
        let mut kept = LogRetention::new(8 * (ENTRY_BYTES + 100));
        for index in 0..8 {
            assert_eq!(kept.push(index, 100), None, "{index}");
        }
        assert_eq!(kept.push(8, 100), Some(2));
        assert_eq!(kept.push(9, 100), None);
        assert_eq!(kept.push(10, 1 << 20), Some(10));
    }

    #[test]
    fn batches_that_others_have_written_are_given_up_as_well() {
        let mut kept = LogRetention::new(8 * (ENTRY_BYTES + 100));
        assert_eq!((kept.push(70, 100), kept.first()), (None, Some(70)));
        // One page was given up meanwhile, or is none.
        kept.add_older(&[(0, 2), (40, 4), (70, 3)]);
        assert_eq!((kept.first(), kept.push(80, 100)), (Some(0), None));
        assert_eq!(kept.push(90, 100), Some(40));
        let mut empty = LogRetention::new(4 * ENTRY_BYTES);
        empty.add_older(&[(3, 5)]);
        assert_eq!(empty.push(9, 1), Some(9));
    }
}
