//! Numbers that tie a token to where it came from.

use std::sync::atomic::{AtomicU64, Ordering};

/// Returns a number that this process has not given before. Also in a model, where nothing follows
/// from its value.
pub(crate) fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // ORDERING: Relaxed; a counter.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
