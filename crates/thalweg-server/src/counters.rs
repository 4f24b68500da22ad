//! The server's counters, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_exchange::codec::session::CloseReason;
use thalweg_exchange::session::Refusal;

/// Counters that any thread may raise.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    refusals: [AtomicU64; Refusal::ALL.len()],
    endings: [AtomicU64; CloseReason::ALL.len()],
    pub(crate) accepted: AtomicU64,
    pub(crate) hellos_refused: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) market_bytes_out: AtomicU64,
    pub(crate) audit_lines: AtomicU64,
    pub(crate) audit_lost: AtomicU64,
}

/// Raises a counter.
pub(crate) fn raise(counter: &AtomicU64, by: u64) {
    // ORDERING: Relaxed, pairs with the load in read(); a number and nothing else.
    counter.fetch_add(by, Ordering::Relaxed);
}

/// Lowers a counter that was raised too far.
pub(crate) fn lower(counter: &AtomicU64, by: u64) {
    // ORDERING: Relaxed, as in raise().
    counter.fetch_sub(by, Ordering::Relaxed);
}

/// Returns a counter's value.
pub(crate) fn read(counter: &AtomicU64) -> u64 {
    // ORDERING: Relaxed, pairs with raise().
    counter.load(Ordering::Relaxed)
}

impl Counters {
    /// A command or a query was refused.
    pub(crate) fn refuse(&self, why: Refusal) {
        let at = usize::from(why.code()).saturating_sub(1);
        if let Some(counter) = self.refusals.get(at) {
            raise(counter, 1);
        }
    }

    /// A connection ended.
    pub(crate) fn end(&self, why: CloseReason) {
        let at = CloseReason::ALL.iter().position(|ending| *ending == why);
        if let Some(counter) = at.and_then(|at| self.endings.get(at)) {
            raise(counter, 1);
        }
    }

    /// Names of reasons, and how often each refused something.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.refusals.iter().map(read);
        Refusal::ALL.iter().map(|why| why.name()).zip(counts)
    }

    /// Endings, and how often each ended a connection.
    pub(crate) fn endings(&self) -> impl Iterator<Item = (CloseReason, u64)> + '_ {
        CloseReason::ALL
            .iter()
            .copied()
            .zip(self.endings.iter().map(read))
    }
}
