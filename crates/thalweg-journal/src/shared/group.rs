//! When a group is large enough.

use std::time::Duration;

use crate::pages::OpenBlock;

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
    pub(super) fn is_enough(&self, block: &OpenBlock) -> bool {
        block.count() >= self.records_max || block.length() >= self.bytes_max
    }
}
