//! Why a state was not changed, or not waited for.

use std::fmt;

use super::declare::{Group, States, declared, reachable};

/// The reason why a state was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError<S> {
    /// No such transition is declared.
    NotDeclared {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// From this state,
        from: S,
        /// to this one.
        to: S,
    },
    /// It is in another state than the one that it was to leave.
    Elsewhere {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// The state that it was to leave.
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
            Self::Elsewhere {
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
    pub wanted: Group<S>,
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

/// The reason why a wait with a deadline ended without what it was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError<S> {
    /// It will never come.
    Unreachable(Unreachable<S>),
    /// It had not come when the deadline was reached.
    TimedOut {
        /// The name of the thing whose state it is.
        of: &'static str,
        /// The state in which it is.
        found: S,
        /// The states that were waited for.
        wanted: Group<S>,
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
