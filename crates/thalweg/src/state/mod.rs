//! Control state: the data path reads it by one load; transitions are declared and logged.
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
//! States are flat. Where several have something in common they are members of a [`StateSet`],
//! which asks no more of the data path than a single state: [`Lifecycle::OPEN`] holds *running* and
//! *paused*. A state may be in any number of sets, which a tree of states would not allow.
//!
//! # State
//! `word` is the number of the present state plus `VERSION` times the number of changes so far.
//! The log and the version at which each state was entered last are behind a lock.
//!
//! # Rules
//! 1. `word` changes under the lock only, and each change makes another word of it.
//! 2. A change stores the word with a release; a read of the word acquires it.
//! 3. A thread that changes the state notifies the event count afterwards. A waiter checks the
//!    state after it has registered.
//! 4. A waiter keeps the version that it began with. It is done if the state that it sees is one
//!    that it waits for, or if one of those was entered at a later version.
//!
//! # Why it works
//! By rule 1 transitions have an order, and each was checked against the state that it left. By
//! rule 2 what was done before a change is visible to every thread that sees it or a later one,
//! since the lock hands on what came before the earlier ones. By rule 3 and the argument of
//! [`EventCount`] no waiter sleeps through a change; by rule 4 none misses a state
//! that is left again before the waiter checks.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Instant;

use thalweg_measure::clock::Clock;

use crate::ring::sync::{AtomicU64, Mutex, Ordering, fault, lock, order};
use crate::wait::{EventCount, Pace, Registration, WaitMode, block, wait_until};
use declare::{declared, is_sound, reachable};

pub use declare::{Lifecycle, STATES_MAX, StateInfo, StateSet, States};

mod declare;
#[cfg(all(test, loom))]
mod models;

/// A cell that holds a state, for the part of the program that changes it. Others get a
/// [`StateView`].
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
    /// Returns a cell in the state `initial`. `of` is the name of the thing whose state it is, for
    /// errors: "pipeline". The cell logs the last [`LOG_CAPACITY_DEFAULT`] changes with the time of
    /// the process's clock, in ns.
    ///
    /// # Panics
    /// If the declaration of `S` is inconsistent. One by [`states!`](crate::states) never is.
    pub fn new(of: &'static str, initial: S) -> Self {
        Self(StateView::new(of, initial))
    }

    /// Sets the number of changes that are logged.
    #[must_use]
    pub fn with_log_capacity(mut self, changes: usize) -> Self {
        self.0.log_last(changes);
        self
    }

    /// Sets the clock of the log, in ns, which is called outside of the lock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.0.set_clock(Box::new(clock));
        self
    }

    /// Returns a view for other threads, which can do everything but change the state.
    pub fn view(&self) -> &StateView<S> {
        &self.0
    }

    /// Changes the state from `from` to `to`. `why` is for the log.
    ///
    /// # Errors
    /// [`ChangeError`] if the transition is not declared, or the present state is not `from`. If
    /// several threads change from the same state, one of them succeeds.
    pub fn change(&self, from: S, to: S, why: &'static str) -> Result<(), ChangeError<S>> {
        if !from.can_change_to(to) {
            return Err(self.not_declared(from, to));
        }
        self.transit(Some(from), to, why).map(drop)
    }

    /// Changes the state from the present one to `to`, and returns the former state.
    ///
    /// # Errors
    /// [`ChangeError`] if the transition is not declared. A change to the present state has to be
    /// declared, too.
    pub fn change_to(&self, to: S, why: &'static str) -> Result<S, ChangeError<S>> {
        self.transit(None, to, why)
    }

    /// Increments the [`version`](StateView::version) without changing the state: readers that have
    /// cached something under the old version see that they must read it again. It is no
    /// transition, is not logged, and wakes no waiter.
    pub fn bump_version(&self) {
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
            return Err(ChangeError::WrongState {
                of: view.name(),
                expected,
                found: from,
                to,
            });
        }
        if !from.can_change_to(to) {
            return Err(self.not_declared(from, to));
        }
        let new = old.next(to);
        book.enter(new.number(), from, to, at_ns, why);
        // ORDERING: Release (order::change), pairs with the Acquire in `StateView::word`: what was
        // done before the change is visible to a thread that sees it.
        view.front.word.store(new.word(), order::change());
        drop(book);
        if !fault::is("change_unnotified") {
            view.event_count.notify_all();
        }
        #[cfg(feature = "tracing")]
        tracing::event!(
            target: "thalweg::state",
            tracing::Level::INFO,
            of = view.name(),
            from = from.name(),
            to = to.name(),
            why,
            "the state changed"
        );
        Ok(from)
    }

    #[cold]
    fn not_declared(&self, from: S, to: S) -> ChangeError<S> {
        let of = self.name();
        ChangeError::NotDeclared { of, from, to }
    }
}

/// One change, in the word of a cell. The state is below.
const VERSION: u64 = 1 << 8;

/// A state and the number of changes before it. Two of one cell are equal only if nothing has
/// changed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<S> {
    word: u64,
    of: PhantomData<S>,
}

impl<S: States> Version<S> {
    #[inline(always)]
    fn new(word: u64) -> Self {
        let of = PhantomData;
        Self { word, of }
    }

    /// Returns the state.
    #[inline(always)]
    pub fn state(self) -> S {
        S::from_number(self.word as u8)
    }

    #[inline(always)]
    fn word(self) -> u64 {
        self.word
    }

    fn number(self) -> u64 {
        self.word / VERSION
    }

    fn next(self, to: S) -> Self {
        Self::new((self.number() + 1) * VERSION + u64::from(to.number()))
    }
}

/// The word that every reader reads, on a line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Front {
    word: AtomicU64,
}

/// A view of a state, for threads that read it or wait for another; see [`StateCell`].
pub struct StateView<S: States> {
    front: Front,
    book: Mutex<Book<S>>,
    event_count: EventCount,
    of: &'static str,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl<S: States> fmt::Debug for StateView<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateView({}: {:?})", self.of, self.get())
    }
}

impl<S: States> StateView<S> {
    fn new(of: &'static str, initial: S) -> Self {
        assert!(
            is_sound::<S>(),
            "the states of the {of} are numbered as they are declared"
        );
        let clock = Clock::global();
        let word = AtomicU64::new(initial.number().into());
        Self {
            front: Front { word },
            book: Mutex::new(Book::new(LOG_CAPACITY_DEFAULT)),
            event_count: EventCount::new(),
            of,
            clock: Box::new(move || clock.ns(clock.ticks())),
        }
    }

    fn log_last(&mut self, changes: usize) {
        self.book = Mutex::new(Book::new(changes));
    }

    fn set_clock(&mut self, clock: Box<dyn Fn() -> u64 + Send + Sync>) {
        self.clock = clock;
    }

    fn now_ns(&self) -> u64 {
        (self.clock)()
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        // ORDERING: Acquire (order::changed), pairs with the Release in `StateCell::transit` and
        // `bump_version`: what was done before the change is visible.
        self.front.word.load(order::changed())
    }

    /// Returns the name of the thing whose state it is.
    pub fn name(&self) -> &'static str {
        self.of
    }

    /// Returns the present state.
    #[inline(always)]
    pub fn get(&self) -> S {
        self.version().state()
    }

    /// Returns whether this is the present state.
    #[inline(always)]
    pub fn is(&self, state: S) -> bool {
        self.word() as u8 == state.number()
    }

    /// Returns whether the present state is one of a set.
    #[inline(always)]
    pub fn is_within(&self, set: StateSet<S>) -> bool {
        set.has(self.word() as u8)
    }

    /// Returns the present state with the number of changes so far. A thread that caches something
    /// under a version checks by one comparison that it is still valid.
    #[inline(always)]
    pub fn version(&self) -> Version<S> {
        Version::new(self.word())
    }

    /// Returns the last changes, oldest first. Allocates, and takes the lock that changes take.
    pub fn changes(&self) -> Vec<Change<S>> {
        lock(&self.book).changes()
    }

    /// Blocks the thread until the state is one of `wanted` (a state or a [`StateSet`]), or has
    /// been one since the call: it may be another one again when this returns.
    ///
    /// # Errors
    /// No declared transitions lead there any more.
    pub fn wait_for(&self, wanted: impl Into<StateSet<S>>) -> Result<(), Unreachable<S>> {
        let check = self.check_for(wanted.into());
        let outcome = block(
            &self.event_count,
            &mut Pace::new(WaitMode::LowPower),
            None,
            check,
        );
        outcome.expect("without a deadline it does not time out")
    }

    /// Works as [`wait_for`](Self::wait_for), but waits no longer than until `deadline`.
    ///
    /// # Errors
    /// [`WaitError`]: the deadline was reached, or no declared transitions lead there any more.
    pub fn wait_for_deadline(
        &self,
        wanted: impl Into<StateSet<S>>,
        deadline: Instant,
    ) -> Result<(), WaitError<S>> {
        let (wanted, pace) = (wanted.into(), &mut Pace::new(WaitMode::LowPower));
        match block(
            &self.event_count,
            pace,
            Some(deadline),
            self.check_for(wanted),
        ) {
            Ok(outcome) => outcome.map_err(WaitError::Unreachable),
            Err(_) => Err(WaitError::TimedOut {
                of: self.of,
                found: self.get(),
                wanted,
            }),
        }
    }

    /// Works as [`wait_for`](Self::wait_for), as a future. It counts the changes after this call,
    /// not after the first poll. It is cancel-safe.
    ///
    /// # Errors
    /// No declared transitions lead there any more.
    pub fn wait_for_async(
        &self,
        wanted: impl Into<StateSet<S>>,
    ) -> impl Future<Output = Result<(), Unreachable<S>>> + Send + Unpin {
        wait_until(
            &self.event_count,
            Registration::default(),
            self.check_for(wanted.into()),
        )
    }

    /// Returns the check of a waiter, which returns `Some` once the wait is over.
    fn check_for(
        &self,
        wanted: StateSet<S>,
    ) -> impl FnMut() -> Option<Result<(), Unreachable<S>>> + Send + Unpin {
        let since = self.version();
        // The last version that was checked without success.
        let mut last_checked = None;
        move || {
            let now = self.version();
            if wanted.contains(now.state()) {
                return Some(Ok(()));
            }
            if last_checked.replace(now) == Some(now) {
                return None;
            }
            let has_passed = now != since
                && lock(&self.book).has_entered(wanted, since.number())
                && !fault::is("passing_unseen");
            if has_passed {
                return Some(Ok(()));
            }
            let found = now.state();
            let of = self.of;
            (!wanted.intersects(reachable(found))).then_some(Err(Unreachable { of, found, wanted }))
        }
    }
}

/// The default number of changes that are logged.
pub const LOG_CAPACITY_DEFAULT: usize = 32;

/// One transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<S> {
    /// The number of the transition, from 1 on. Transitions that the log does not hold are missing.
    pub number: u64,
    /// The state before.
    pub from: S,
    /// The state after.
    pub to: S,
    /// The time of the change, in ns of the cell's clock. It does not decrease.
    pub at_ns: u64,
    /// The cause of the change, or the part of the program that made it.
    pub why: &'static str,
}

/// The part of a cell that is behind its lock.
#[derive(Debug)]
struct Book<S> {
    /// For each state, at which version it was entered last; the initial one at 0.
    entered: Box<[u64]>,
    changes: u64,
    last_ns: u64,
    log: VecDeque<Change<S>>,
    log_max: usize,
}

impl<S: States> Book<S> {
    fn new(log_max: usize) -> Self {
        Self {
            entered: S::TABLE.iter().map(|_| 0).collect(),
            changes: 0,
            last_ns: 0,
            log: VecDeque::with_capacity(log_max),
            log_max,
        }
    }

    fn enter(&mut self, version: u64, from: S, to: S, at_ns: u64, why: &'static str) {
        self.entered[usize::from(to.number())] = version;
        self.changes += 1;
        // The clock was read before the lock was taken, and may have been overtaken.
        self.last_ns = self.last_ns.max(at_ns);
        if self.log.len() == self.log_max {
            self.log.pop_front();
        }
        if self.log_max > 0 {
            self.log.push_back(Change {
                number: self.changes,
                from,
                to,
                at_ns: self.last_ns,
                why,
            });
        }
    }

    /// Returns whether one of these states was entered after a version.
    fn has_entered(&self, set: StateSet<S>, since: u64) -> bool {
        let mut states = set.states();
        states.any(|state| self.entered[usize::from(state.number())] > since)
    }

    fn changes(&self) -> Vec<Change<S>> {
        self.log.iter().copied().collect()
    }
}

/// The reason why a state was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError<S> {
    /// No such transition is declared.
    NotDeclared {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// The present state, from which it was to change.
        from: S,
        /// The state that it was to change to.
        to: S,
    },
    /// The present state is not the one from which it was to change.
    WrongState {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// The state from which it was to change.
        expected: S,
        /// The state in which it is.
        found: S,
        /// The state that it was to change to.
        to: S,
    },
}

impl<S: States> fmt::Display for ChangeError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotDeclared { of, from, to } => {
                let (name, next) = (from.name(), declared(from).next);
                let to = to.name();
                write!(
                    f,
                    "the {of} cannot change from {name} to {to}: from {name} "
                )?;
                write!(f, "it may change to {next}")
            }
            Self::WrongState {
                of,
                expected,
                found,
                to,
            } => {
                let (expected, found, to) = (expected.name(), found.name(), to.name());
                write!(
                    f,
                    "the {of} is {found}, not {expected}: it did not change to {to}"
                )
            }
        }
    }
}

impl<S: States> std::error::Error for ChangeError<S> {}

/// The error where no declared transitions lead from the present state to one that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable<S> {
    /// The name of the thing whose state it is.
    pub of: &'static str,
    /// The state in which it is.
    pub found: S,
    /// The states that were waited for.
    pub wanted: StateSet<S>,
}

impl<S: States> fmt::Display for Unreachable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, found, wanted } = self;
        let (name, reachable) = (found.name(), reachable(*found));
        write!(
            f,
            "the {of} is {name} and will never be {wanted}: from {name} "
        )?;
        write!(f, "it gets to {reachable}")
    }
}

impl<S: States> std::error::Error for Unreachable<S> {}

/// The reason why a wait with a deadline ended before a wanted state was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError<S> {
    /// No declared transitions lead to a wanted state any more.
    Unreachable(Unreachable<S>),
    /// No wanted state was entered before the deadline.
    TimedOut {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// The state in which it is.
        found: S,
        /// The states that were waited for.
        wanted: StateSet<S>,
    },
}

impl<S: States> fmt::Display for WaitError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(unreachable) => unreachable.fmt(f),
            Self::TimedOut { of, found, wanted } => {
                let found = found.name();
                write!(
                    f,
                    "the {of} was still {found}, not {wanted}, at the deadline"
                )
            }
        }
    }
}

impl<S: States> std::error::Error for WaitError<S> {}
