//! Elements whose drops are counted one by one.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

pub(crate) struct Ledger(Arc<Vec<AtomicU32>>);

/// An element with an entry in a ledger.
pub(crate) struct Item {
    pub(crate) id: usize,
    entries: Arc<Vec<AtomicU32>>,
}

impl Drop for Item {
    fn drop(&mut self) {
        // ORDERING: SeqCst, a test's count; nothing depends on it.
        self.entries[self.id].fetch_add(1, SeqCst);
    }
}

impl Ledger {
    pub(crate) fn new(items: usize) -> Self {
        Self(Arc::new((0..items).map(|_| AtomicU32::new(0)).collect()))
    }

    pub(crate) fn item(&self, id: usize) -> Item {
        Item {
            id,
            entries: Arc::clone(&self.0),
        }
    }

    pub(crate) fn items(&self, ids: std::ops::Range<usize>) -> impl Iterator<Item = Item> {
        ids.map(|id| self.item(id))
    }

    /// For tests that leak an element on purpose: what it points to stays where a leak checker
    /// finds it.
    pub(crate) fn keep(&self) {
        static KEPT: Mutex<Vec<Arc<Vec<AtomicU32>>>> = Mutex::new(Vec::new());
        KEPT.lock().expect("no panic").push(Arc::clone(&self.0));
    }

    /// Returns how often each was dropped.
    pub(crate) fn dropped(&self) -> Vec<u32> {
        // ORDERING: SeqCst, a test's count; nothing depends on it.
        self.0.iter().map(|count| count.load(SeqCst)).collect()
    }
}
