//! The states of what is started, runs and ends, where each may go next, and sets of them.

use std::fmt;

/// The lifecycle of something that runs, from its start to its end: a pipeline, a bus, a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lifecycle {
    /// It is not ready yet, and accepts nothing.
    Starting,
    /// It accepts new work.
    Running,
    /// It accepts nothing for now, and finishes the work that was accepted. (A paused pipeline
    /// accepts events of its owner all the same: see `Handle::pause` of the pipeline.)
    Paused,
    /// It accepts nothing any more, and finishes the work that was accepted.
    Draining,
    /// All work is finished, or was discarded.
    Stopped,
}

use Lifecycle::{Draining, Paused, Running, Starting, Stopped};

impl Lifecycle {
    pub(super) const ALL: [Self; 5] = [Starting, Running, Paused, Draining, Stopped];
    /// The states in which it has started, and is not ending.
    pub const OPEN: StateSet = StateSet::of(&[Running, Paused]);
    /// The states in which it accepts nothing any more.
    pub const ENDING: StateSet = StateSet::of(&[Draining, Stopped]);
    /// The states in which new work is either accepted, or refused for ever. A thread that finds
    /// the state starting or paused may wait for this set.
    pub const RUNNING_OR_ENDING: StateSet = StateSet::of(&[Running, Draining, Stopped]);

    #[inline(always)]
    pub(super) fn from_number(number: u8) -> Self {
        match number {
            0 => Starting,
            1 => Running,
            2 => Paused,
            3 => Draining,
            _ => Stopped,
        }
    }

    /// Returns the name of the state in errors, logs and pages.
    pub fn name(self) -> &'static str {
        ["starting", "running", "paused", "draining", "stopped"][self as usize]
    }

    /// Returns the states to which it may change next.
    pub fn next(self) -> StateSet {
        match self {
            Starting => Self::RUNNING_OR_ENDING,
            Running => StateSet::of(&[Paused, Draining, Stopped]),
            Paused => Self::RUNNING_OR_ENDING,
            Draining => Stopped.into(),
            Stopped => StateSet::of(&[]),
        }
    }

    /// Returns whether the transition from this state to `to` is declared.
    pub fn can_change_to(self, to: Self) -> bool {
        self.next().contains(to)
    }

    /// Returns the states that can be reached from this one, in any number of transitions.
    pub(super) fn reachable(self) -> StateSet {
        match self {
            Starting | Running | Paused => StateSet::of(&Self::ALL[1..]),
            Draining | Stopped => self.next(),
        }
    }
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateSet(u8);

impl StateSet {
    /// Returns the set of these states.
    pub const fn of(states: &[Lifecycle]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < states.len() {
            bits |= 1 << states[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    pub(super) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether a state is in the set.
    #[inline(always)]
    pub fn contains(self, state: Lifecycle) -> bool {
        self.0 >> state as u8 & 1 != 0
    }

    #[inline(always)]
    pub(super) fn has(self, number: u8) -> bool {
        self.0 >> (number & 7) & 1 != 0
    }

    /// Returns the states, in the order of their declaration.
    pub fn states(self) -> impl Iterator<Item = Lifecycle> {
        let states = Lifecycle::ALL.into_iter();
        states.filter(move |&state| self.contains(state))
    }
}

impl From<Lifecycle> for StateSet {
    #[inline(always)]
    fn from(state: Lifecycle) -> Self {
        Self(1 << state as u8)
    }
}

/// As in a sentence: "paused, draining or stopped".
impl fmt::Display for StateSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.states().map(Lifecycle::name).collect();
        match names.split_last() {
            None => f.write_str("nothing"),
            Some((last, [])) => f.write_str(last),
            Some((last, others)) => write!(f, "{} or {last}", others.join(", ")),
        }
    }
}
