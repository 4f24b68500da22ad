//! Control state: one atomic read where data flows, declared and logged transitions elsewhere.
//!
//! The states of a thing, and where each of them may go next, are data ([`states!`](crate::states),
//! or [`States`] by hand). A [`StateCell`] holds the present one. The data path reads it, which is
//! one load; the control path changes it, which takes a lock, checks the transition against the
//! declaration, logs it, and wakes the threads and tasks that wait for it.
//!
//! ```
//! use thalweg::state::{Lifecycle, StateCell};
//!
//! let state = StateCell::new("gateway", Lifecycle::Starting);
//! state.change(Lifecycle::Starting, Lifecycle::Running, "the port is open")?;
//! assert!(state.is(Lifecycle::Running));          // the data path's question
//!
//! let error = state.change_to(Lifecycle::Starting, "again").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "the gateway cannot change from running to starting: from running it may change to paused, \
//!      draining or stopped",
//! );
//! let view = state.view();                        // reads, waits for states, changes nothing
//! assert_eq!(view.changes()[0].why, "the port is open");
//! # Ok::<(), thalweg::state::ChangeError<Lifecycle>>(())
//! ```
//!
//! States are flat. Where several have something in common they are members of a [`Group`], which
//! asks no more of the data path than a single state: [`Lifecycle::OPEN`] holds *running* and
//! *paused*. A state may be in any number of groups, which a tree of states would not allow.
//!
//! # State
//! `word` is the number of the present state plus `VERSION` times the number of changes so far.
//! The log and the version at which each state was entered last are behind a lock.
//!
//! # Rules
//! 1. `word` changes under the lock only, and each change makes another word of it.
//! 2. A change stores the word with a release; a read of the word acquires it.
//! 3. A thread that changes the state notifies the signal afterwards. A waiter looks after it is
//!    listed.
//! 4. A waiter keeps the version that it began with. It is done if the state that it sees is one
//!    that it waits for, or if one of those was entered at a later version.
//!
//! # Why it works
//! By rule 1 transitions have an order, and each was checked against the state that it left. By
//! rule 2 what was done before a change is visible to every thread that sees it or a later one,
//! since the lock hands on what came before the earlier ones. By rule 3 and the argument of
//! [`Signal`](crate::wait::Signal) no waiter sleeps through a change; by rule 4 none misses a state
//! that is left again before the waiter looks.

mod declare;
mod error;
mod lifecycle;
mod log;
#[cfg(all(test, loom))]
mod models;
mod view;

pub use declare::{Declared, Group, STATES_MAX, States};
pub use error::{ChangeError, Unreachable, WaitError};
pub use lifecycle::Lifecycle;
pub use log::{Change, LOGGED};
pub use view::{StateView, Version};

use std::ops::Deref;

use crate::ring::sync::{Ordering, fault, lock, order};
use view::VERSION;

/// A state, for the part of the program that changes it. Others get a [`StateView`].
///
/// # Memory ordering
/// A read ([`get`](StateView::get), [`is`](StateView::is)…) is an acquire load, a change a release:
/// a thread that sees a state sees what was done before the change to it, and before all earlier
/// ones. No order goes the other way: what a reader does after a read may come after the next
/// change. A thread that changes a state and must know that no reader acts on the old one any more
/// has to ask the readers.
///
/// # Cost
/// A read is a load of a line that only changes write (on x86-64 the same instruction as a relaxed
/// one). A change takes a lock, reads the clock, and wakes all waiters. Nothing is allocated after
/// construction.
#[derive(Debug)]
pub struct StateCell<S: States>(StateView<S>);

impl<S: States> Deref for StateCell<S> {
    type Target = StateView<S>;

    #[inline(always)]
    fn deref(&self) -> &StateView<S> {
        &self.0
    }
}

impl<S: States> StateCell<S> {
    /// Returns the state of `of` (a word for errors: "pipeline"), which begins as `initial`. Logs
    /// the last [`LOGGED`] changes with the time of the process's clock, in ns.
    ///
    /// # Panics
    /// If the declaration of `S` contradicts itself; one by [`states!`](crate::states) does not.
    pub fn new(of: &'static str, initial: S) -> Self {
        Self(StateView::new(of, initial))
    }

    /// Logs the last `changes` instead.
    #[must_use]
    pub fn logging(mut self, changes: usize) -> Self {
        self.0.log_last(changes);
        self
    }

    /// Takes the times in the log from `clock`, in ns, which is called outside of the lock.
    #[must_use]
    pub fn timed_by(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.0.set_clock(Box::new(clock));
        self
    }

    /// Returns the view for other threads, which can do everything but change the state.
    pub fn view(&self) -> &StateView<S> {
        &self.0
    }

    /// Changes from one state to another. `why` is for the log.
    ///
    /// # Errors
    /// The transition is not declared, or the present state is not `from`: of several that change
    /// from the same state, one does.
    pub fn change(&self, from: S, to: S, why: &'static str) -> Result<(), ChangeError<S>> {
        if !from.may(to) {
            return Err(self.not_declared(from, to));
        }
        self.transit(Some(from), to, why).map(drop)
    }

    /// Changes from whatever the state is; gives what it was.
    ///
    /// # Errors
    /// The transition is not declared. That holds for one to the present state, too, unless it is.
    pub fn change_to(&self, to: S, why: &'static str) -> Result<S, ChangeError<S>> {
        self.transit(None, to, why)
    }

    /// Makes another [`version`](StateView::version) of the present state, for something that
    /// readers of the version keep a copy of and must read again. Neither a transition nor logged.
    pub fn touch(&self) {
        let book = lock(&self.0.book);
        // ORDERING: Relaxed; the word changes under the lock only.
        let word = self.0.front.word.load(Ordering::Relaxed);
        // ORDERING: Release (order::change), pairs with the Acquire in `StateView::word`.
        self.0.front.word.store(word + VERSION, order::change());
        drop(book);
    }

    fn transit(&self, expected: Option<S>, to: S, why: &'static str) -> Result<S, ChangeError<S>> {
        let view = &self.0;
        let at_ns = view.now_ns();
        let seen = fault::is("change_unlocked").then(|| view.get());
        let mut book = lock(&view.book);
        // ORDERING: Relaxed; the word changes under the lock only.
        let old = Version::new(view.front.word.load(Ordering::Relaxed));
        let from = seen.unwrap_or(old.state());
        if let Some(expected) = expected.filter(|&expected| expected != from) {
            return Err(ChangeError::Elsewhere {
                of: view.of(),
                expected,
                found: from,
                to,
            });
        }
        if !from.may(to) {
            return Err(self.not_declared(from, to));
        }
        let new = old.next(to);
        book.enter(new.number(), from, to, at_ns, why);
        // ORDERING: Release (order::change), pairs with the Acquire in `StateView::word`: what was
        // done before the change is visible to a thread that sees it.
        view.front.word.store(new.word(), order::change());
        drop(book);
        if !fault::is("change_unnotified") {
            view.signal.notify_all();
        }
        Ok(from)
    }

    #[cold]
    fn not_declared(&self, from: S, to: S) -> ChangeError<S> {
        let of = self.of();
        ChangeError::NotDeclared { of, from, to }
    }
}
