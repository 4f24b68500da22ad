//! The parts of the state that the stages share, each under a lock that a stage takes once a chunk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ledger::Ledger;
use super::waits::Waits;
use crate::command::Command;
use crate::engine::state::State;
use crate::matching::{Matching, Reach};
use crate::risk::{Risk, share_of};

/// Up to here commands are settled, on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Settled(AtomicU64);

/// What the stages share.
#[derive(Debug)]
pub(super) struct Shards {
    risk: Box<[Mutex<Ledger>]>,
    settled: Box<[Settled]>,
    /// None while a stage has it on loan.
    books: Box<[Mutex<Option<Matching>>]>,
}

/// A lock whose holders stop the pipeline if they panic, so that nobody builds on what they left.
fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shards {
    pub(super) fn new(state: State, risk: usize, books: usize) -> Self {
        let ledger = |risk: Risk| Mutex::new(Ledger::new(risk));
        let book = |matching: Matching| Mutex::new(Some(matching));
        Self {
            risk: state.risk.split(risk).into_iter().map(ledger).collect(),
            settled: (0..risk).map(|_| Settled::default()).collect(),
            books: state.matching.split(books).into_iter().map(book).collect(),
        }
    }

    pub(super) const fn risk_shards(&self) -> usize {
        self.risk.len()
    }

    pub(super) const fn match_shards(&self) -> usize {
        self.books.len()
    }

    pub(super) fn risk(&self, shard: usize) -> MutexGuard<'_, Ledger> {
        lock(&self.risk[shard])
    }

    /// A shard's books, locked.
    pub(super) fn books(&self, shard: usize) -> Books<'_> {
        Books(lock(&self.books[shard]))
    }

    /// The books of all symbols, for the stage that owns them until it ends.
    pub(super) fn borrow_books(self: &Arc<Self>) -> Loan {
        Loan {
            books: lock(&self.books[0]).take(),
            shards: Arc::clone(self),
        }
    }

    /// A settle stage has settled everything below `sequence`, and still has its shard's lock.
    pub(super) fn set_settled(&self, shard: usize, sequence: u64) {
        // ORDERING: Release, pairs with the Acquire in `are_settled`: the books that made the
        // events, and the bookings, come before.
        self.settled[shard].0.store(sequence, Ordering::Release);
    }

    /// Whether everything below `sequence` is settled in all shards.
    pub(super) fn are_settled(&self, sequence: u64) -> bool {
        // ORDERING: Acquire, pairs with the Release in `set_settled`.
        let settled = |settled: &Settled| settled.0.load(Ordering::Acquire);
        self.settled.iter().all(|shard| settled(shard) >= sequence)
    }

    /// The state, put together; and how often commands waited. All stages must have ended.
    pub(super) fn into_state(self) -> (State, Waits) {
        let mut waits = Waits::default();
        let ledger = |part: Mutex<Ledger>| {
            let ledger = part.into_inner().unwrap_or_else(PoisonError::into_inner);
            waits += ledger.waits();
            ledger.into_risk()
        };
        let risk = self.risk.into_iter().map(ledger).collect();
        let books = |part: Mutex<Option<Matching>>| {
            let books = part.into_inner().unwrap_or_else(PoisonError::into_inner);
            books.expect("the match stage has ended and returned its books")
        };
        let matching = self.books.into_iter().map(books).collect();
        let state = State {
            risk: Risk::merge(risk),
            matching: Matching::merge(matching),
        };
        (state, waits)
    }
}

/// Where a command's risk check belongs.
pub(super) fn risk_shard(command: &Command, of: usize) -> usize {
    command.uid().map_or(0, |uid| share_of(uid, of))
}

/// Where a command is matched; one that concerns all books never gets there.
pub(super) fn match_shard(command: &Command, of: usize) -> usize {
    match Reach::of(command, of) {
        Reach::Shard(shard) => shard,
        Reach::Every => 0,
    }
}

/// Books under a lock that is held.
#[derive(Debug)]
pub(super) struct Books<'l>(MutexGuard<'l, Option<Matching>>);

impl Books<'_> {
    #[inline]
    pub(super) fn get(&mut self) -> &mut Matching {
        self.0
            .as_mut()
            .expect("on loan only where there is no other stage that wants them")
    }
}

/// All books, until dropped.
#[derive(Debug)]
pub(super) struct Loan {
    books: Option<Matching>,
    shards: Arc<Shards>,
}

impl Loan {
    #[inline]
    pub(super) fn get(&mut self) -> &mut Matching {
        self.books.as_mut().expect("taken only by drop")
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        *lock(&self.shards.books[0]) = self.books.take();
    }
}
