//! Reading a state and waiting for another.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Instant;

use thalweg_measure::clock::Clock;

use super::declare::{Group, States, is_sound, reachable};
use super::error::{Unreachable, WaitError};
use super::log::{Book, Change, LOGGED};
use crate::ring::sync::{AtomicU64, Mutex, fault, lock, order};
use crate::wait::{Listed, Mode, Pace, Signal, block, wait_on};

/// One change, in the word of a cell. The state is below.
pub(super) const VERSION: u64 = 1 << 8;

/// A state and the number of changes before it: the same again only if nothing has changed
/// meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<S> {
    word: u64,
    of: PhantomData<S>,
}

impl<S: States> Version<S> {
    #[inline(always)]
    pub(super) fn new(word: u64) -> Self {
        let of = PhantomData;
        Self { word, of }
    }

    /// Returns the state.
    #[inline(always)]
    pub fn state(self) -> S {
        S::from_number(self.word as u8)
    }

    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        self.word
    }

    pub(super) fn number(self) -> u64 {
        self.word / VERSION
    }

    pub(super) fn next(self, to: S) -> Self {
        Self::new((self.number() + 1) * VERSION + u64::from(to.number()))
    }
}

/// The word that every reader reads, on a line of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Front {
    pub(super) word: AtomicU64,
}

/// A state, for threads that read it or wait for another; see [`StateCell`](super::StateCell).
pub struct StateView<S: States> {
    pub(super) front: Front,
    pub(super) book: Mutex<Book<S>>,
    pub(super) signal: Signal,
    of: &'static str,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl<S: States> fmt::Debug for StateView<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateView({}: {:?})", self.of, self.get())
    }
}

impl<S: States> StateView<S> {
    pub(super) fn new(of: &'static str, initial: S) -> Self {
        assert!(
            is_sound::<S>(),
            "the states of the {of} are numbered as they are declared"
        );
        let clock = Clock::global();
        let word = AtomicU64::new(initial.number().into());
        Self {
            front: Front { word },
            book: Mutex::new(Book::new(LOGGED)),
            signal: Signal::new(),
            of,
            clock: Box::new(move || clock.ns(clock.ticks())),
        }
    }

    pub(super) fn log_last(&mut self, changes: usize) {
        self.book = Mutex::new(Book::new(changes));
    }

    pub(super) fn set_clock(&mut self, clock: Box<dyn Fn() -> u64 + Send + Sync>) {
        self.clock = clock;
    }

    pub(super) fn now_ns(&self) -> u64 {
        (self.clock)()
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        // ORDERING: Acquire (order::changed), pairs with the Release in `StateCell::transit` and
        // `touch`: what was done before the change is visible.
        self.front.word.load(order::changed())
    }

    /// Returns the name of the thing whose state it is.
    pub fn of(&self) -> &'static str {
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

    /// Returns whether the present state is one of a group.
    #[inline(always)]
    pub fn is_within(&self, group: Group<S>) -> bool {
        group.has(self.word() as u8)
    }

    /// Returns the present state with the number of changes so far. A thread that keeps a version,
    /// with what it has found out, checks by one comparison that all of it still holds.
    #[inline(always)]
    pub fn version(&self) -> Version<S> {
        Version::new(self.word())
    }

    /// Returns the last changes, oldest first. Allocates, and takes the lock that changes take.
    pub fn changes(&self) -> Vec<Change<S>> {
        lock(&self.book).changes()
    }

    /// Waits until the state is one of `wanted` (a state or a [`Group`]), or has been one since the
    /// call: it may be another one again when this returns. The thread sleeps meanwhile.
    ///
    /// # Errors
    /// No declared transitions lead there any more.
    pub fn wait_for(&self, wanted: impl Into<Group<S>>) -> Result<(), Unreachable<S>> {
        let looking = self.looking_for(wanted.into());
        let outcome = block(&self.signal, &mut Pace::new(Mode::Power), None, looking);
        outcome.expect("without a deadline it does not time out")
    }

    /// Works as [`wait_for`](Self::wait_for) up to a deadline.
    ///
    /// # Errors
    /// The deadline was reached, or no declared transitions lead there any more.
    pub fn wait_for_until(
        &self,
        wanted: impl Into<Group<S>>,
        deadline: Instant,
    ) -> Result<(), WaitError<S>> {
        let (wanted, pace) = (wanted.into(), &mut Pace::new(Mode::Power));
        match block(&self.signal, pace, Some(deadline), self.looking_for(wanted)) {
            Ok(outcome) => outcome.map_err(WaitError::Unreachable),
            Err(_) => Err(WaitError::TimedOut {
                of: self.of,
                found: self.get(),
                wanted,
            }),
        }
    }

    /// Works as [`wait_for`](Self::wait_for) for a task; what counts is what happens after this
    /// call, not after the first poll. Dropping the future ends the wait.
    ///
    /// # Errors
    /// No declared transitions lead there any more.
    pub fn reached(
        &self,
        wanted: impl Into<Group<S>>,
    ) -> impl Future<Output = Result<(), Unreachable<S>>> + Send + Unpin {
        wait_on(
            &self.signal,
            Listed::default(),
            self.looking_for(wanted.into()),
        )
    }

    /// Returns the check of a waiter, which gives something once the wait is over.
    pub(super) fn looking_for(
        &self,
        wanted: Group<S>,
    ) -> impl FnMut() -> Option<Result<(), Unreachable<S>>> + Send + Unpin {
        let since = self.version();
        // The last version that was looked at in vain.
        let mut in_vain = None;
        move || {
            let now = self.version();
            if wanted.contains(now.state()) {
                return Some(Ok(()));
            }
            if in_vain.replace(now) == Some(now) {
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
            (!wanted.meets(reachable(found))).then_some(Err(Unreachable { of, found, wanted }))
        }
    }
}
