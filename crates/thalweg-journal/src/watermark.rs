//! How far a log is durable, for readers in the same process.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::lsn::Lsn;

/// The last durable record, for those who follow a journal in the same process.
#[derive(Debug, Default)]
pub(crate) struct Watermark(AtomicU64);

/// Nothing becomes durable any more. Numbers stay below this bit.
const CLOSED: u64 = 1 << 63;

impl Watermark {
    pub(crate) fn set(&self, lsn: Lsn) {
        // ORDERING: Release, pairs with the Acquire in load(); what the number promises was written
        // before it.
        self.0.store(lsn.number(), Ordering::Release);
    }

    pub(crate) fn close(&self) {
        // ORDERING: Release, pairs with the Acquire in load(); the last number was set before.
        self.0.fetch_or(CLOSED, Ordering::Release);
    }

    fn load(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release in set() and close(); a thread that sees the
        // number can read up to it.
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self) -> Lsn {
        Lsn::new(self.load() & !CLOSED)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.load() & CLOSED != 0
    }
}
