//! Elements whose drops are counted one by one, and the check that all is as it should be.

use shuttle::thread::{self, JoinHandle};
use std::sync::Arc;
// Not the model's: what counts is not what is modelled.
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Elements that one sender can have at most.
const EACH_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct Ledger(Arc<Vec<AtomicU32>>);

/// An element with an entry in a ledger.
pub(crate) struct Item {
    pub(crate) sender: usize,
    pub(crate) number: usize,
    ledger: Ledger,
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.sender, self.number)
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        let entry = &self.ledger.0[self.sender * EACH_MAX + self.number];
        // ORDERING: SeqCst, a test's count; nothing depends on it.
        assert_eq!(entry.fetch_add(1, SeqCst), 0, "{self:?} is dropped twice");
    }
}

impl Ledger {
    pub(crate) fn new(senders: usize) -> Self {
        let entries = (0..senders * EACH_MAX).map(|_| AtomicU32::new(0));
        Self(Arc::new(entries.collect()))
    }

    /// The elements of a sender, as many as are taken.
    pub(crate) fn items(&self, sender: usize) -> impl Iterator<Item = Item> + use<> {
        let ledger = self.clone();
        (0..EACH_MAX).map(move |number| ledger.item(sender, number))
    }

    pub(crate) fn item(&self, sender: usize, number: usize) -> Item {
        let ledger = self.clone();
        Item {
            sender,
            number,
            ledger,
        }
    }

    /// Returns how many were dropped, each once.
    pub(crate) fn dropped(&self) -> usize {
        // ORDERING: SeqCst, a test's count; nothing depends on it.
        let counts = self.0.iter().map(|entry| entry.load(SeqCst) as usize);
        counts.sum()
    }

    /// Waits for all threads: receivers have seen each of the elements made once, and none is left.
    pub(crate) fn check_all_received(
        self,
        senders: Vec<JoinHandle<()>>,
        receivers: Vec<JoinHandle<Seen>>,
        made: usize,
    ) {
        joined(senders);
        assert_eq!(seen_once(&joined(receivers)), made);
        self.check_all_gone(made);
    }

    /// Checks that no element is left: as many were dropped as were made.
    pub(crate) fn check_all_gone(self, made: usize) {
        assert_eq!(self.dropped(), made, "elements dropped");
        assert_eq!(Arc::strong_count(&self.0), 1, "elements leaked");
    }
}

/// Starts a thread for each end, which gets its number.
pub(crate) fn on_threads<T: Send + 'static, R: Send + 'static>(
    ends: Vec<T>,
    work: impl Fn(usize, T) -> R + Clone + Send + 'static,
) -> Vec<JoinHandle<R>> {
    let spawn = |(n, end)| {
        let work = work.clone();
        thread::spawn(move || work(n, end))
    };
    ends.into_iter().enumerate().map(spawn).collect()
}

/// Returns the results of the threads, when all have ended.
pub(crate) fn joined<R>(threads: Vec<JoinHandle<R>>) -> Vec<R> {
    let threads = threads.into_iter();
    threads.map(|thread| thread.join().unwrap()).collect()
}

/// The elements that a receiver saw: sender and number of each; those of a sender came in order.
#[derive(Default)]
pub(crate) struct Seen {
    all: Vec<(usize, usize)>,
    is_unordered: bool,
}

impl Seen {
    /// Elements of one sender may come in any order.
    pub(crate) fn in_any_order() -> Self {
        Self {
            all: Vec::new(),
            is_unordered: true,
        }
    }

    pub(crate) fn see(&mut self, item: &Item) {
        let of_same = self.all.iter().rev().find(|seen| seen.0 == item.sender);
        if let Some(last) = of_same {
            let is_later = last.1 < item.number || self.is_unordered;
            assert!(is_later, "{item:?} after {last:?}");
        }
        self.all.push((item.sender, item.number));
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Returns how many elements several receivers saw, no element twice.
pub(crate) fn seen_once(all: &[Seen]) -> usize {
    let mut seen: Vec<_> = all.iter().flat_map(|seen| &seen.all).collect();
    let sum = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), sum, "an element was received twice");
    sum
}
