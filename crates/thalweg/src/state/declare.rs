//! States, their transitions and their sets, as data; and the states of what is started, runs and
//! ends.

use std::fmt;
use std::marker::PhantomData;

/// The largest number of states of one kind: a set has a bit for each.
pub const STATES_MAX: usize = 64;

/// The declaration of a state.
#[derive(Debug, Clone, Copy)]
pub struct StateInfo<S> {
    /// The state.
    pub state: S,
    /// The name of the state in errors, logs and pages.
    pub name: &'static str,
    /// The states to which it may change next.
    pub next: StateSet<S>,
}

/// The states of something. [`states!`](crate::states) declares an enum of them.
pub trait States: Copy + Eq + fmt::Debug + Send + Sync + Unpin + 'static {
    /// All states by their numbers, which begin at 0: up to [`STATES_MAX`].
    const TABLE: &'static [StateInfo<Self>];

    /// Returns the index of the state in [`TABLE`](Self::TABLE).
    fn number(self) -> u8;

    /// Returns the state at an index of [`TABLE`](Self::TABLE), or any state if the index is beyond
    /// it.
    fn from_number(number: u8) -> Self;

    /// Returns the name of the state.
    fn name(self) -> &'static str {
        declared(self).name
    }

    /// Returns whether the transition from this state to `to` is declared.
    fn can_change_to(self, to: Self) -> bool {
        declared(self).next.contains(to)
    }
}

pub(super) fn declared<S: States>(state: S) -> &'static StateInfo<S> {
    &S::TABLE[usize::from(state.number())]
}

/// Returns whether a table is consistent: the number of each state is its index, and transitions
/// lead to states of the table.
pub(super) fn is_sound<S: States>() -> bool {
    let count = S::TABLE.len();
    let known = u64::MAX.checked_shr(STATES_MAX.saturating_sub(count) as u32);
    let mut states = (0_u8..).zip(S::TABLE);
    (1..=STATES_MAX).contains(&count)
        && states.all(|(number, declared)| {
            declared.state.number() == number
                && S::from_number(number) == declared.state
                && declared.next.bits & !known.unwrap_or(0) == 0
        })
}

/// Returns the states that can be reached from a state, in any number of transitions.
pub(super) fn reachable<S: States>(from: S) -> StateSet<S> {
    let mut found = declared(from).next;
    loop {
        let reached = S::TABLE.iter().filter(|next| found.contains(next.state));
        let more = reached.fold(found, |more, declared| more.union(declared.next));
        if more == found {
            return found;
        }
        found = more;
    }
}

/// A set of states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateSet<S> {
    bits: u64,
    of: PhantomData<S>,
}

impl<S> StateSet<S> {
    /// Returns the states whose numbers are the bits that are set: for constants. Elsewhere,
    /// collect states into a set.
    pub const fn from_bits(bits: u64) -> Self {
        let of = PhantomData;
        Self { bits, of }
    }

    /// Returns the union of two sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self::from_bits(self.bits | other.bits)
    }

    /// Returns whether two sets have a state in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.bits & other.bits != 0
    }
}

impl<S: States> StateSet<S> {
    /// Returns whether a state is in the set.
    #[inline(always)]
    pub fn contains(self, state: S) -> bool {
        self.has(state.number())
    }

    #[inline(always)]
    pub(super) fn has(self, number: u8) -> bool {
        self.bits >> (number & 63) & 1 != 0
    }

    /// Returns the states, by number.
    pub fn states(self) -> impl Iterator<Item = S> {
        let states = S::TABLE.iter().map(|declared| declared.state);
        states.filter(move |&state| self.contains(state))
    }
}

impl<S: States> From<S> for StateSet<S> {
    #[inline(always)]
    fn from(state: S) -> Self {
        Self::from_bits(1 << (state.number() & 63))
    }
}

impl<S: States> FromIterator<S> for StateSet<S> {
    fn from_iter<I: IntoIterator<Item = S>>(states: I) -> Self {
        let states = states.into_iter();
        states.fold(Self::from_bits(0), |all, state| all.union(state.into()))
    }
}

/// As in a sentence: "paused, draining or stopped".
impl<S: States> fmt::Display for StateSet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.bits.count_ones();
        if left == 0 {
            return f.write_str("nothing");
        }
        for state in self.states() {
            left -= 1;
            f.write_str(state.name())?;
            f.write_str(match left {
                0 => "",
                1 => " or ",
                _ => ", ",
            })?;
        }
        Ok(())
    }
}

/// Declares an enum of states: their names, where each may go next, and sets of them.
///
/// ```
/// use thalweg::state::{StateCell, States};
///
/// thalweg::states! {
///     /// What a door is.
///     pub enum Door {
///         /// Anybody may come in.
///         Open "open" => [Shut],
///         /// No one may.
///         Shut "shut" => [Open, Locked],
///         /// Nor may anybody open it.
///         Locked "locked" => [Shut],
///     }
///     /// No one comes in.
///     pub set CLOSED = [Shut, Locked];
/// }
///
/// assert!(Door::Open.can_change_to(Door::Shut) && !Door::Open.can_change_to(Door::Locked));
/// let door = StateCell::new("door", Door::Locked);
/// assert!(door.is_within(Door::CLOSED));
/// let error = door.change_to(Door::Open, "a push").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the door cannot change from locked to open: from locked it may change to shut",
/// );
/// ```
///
/// The numbers are the variants' own. A transition to an unknown state, and one state more than
/// [`STATES_MAX`](crate::state::STATES_MAX), do not compile.
#[macro_export]
macro_rules! states {
    (
        $(#[$meta:meta])*
        $vis:vis enum $States:ident {
            $(
                $(#[$state_meta:meta])*
                $State:ident $name:literal => [$($next:ident),* $(,)?]
            ),+ $(,)?
        }
        $($(#[$set_meta:meta])* $set_vis:vis set $SET:ident = [$($member:ident),+ $(,)?];)*
    ) => {
        $(#[$meta])*
        #[derive(
            ::core::fmt::Debug, ::core::clone::Clone, ::core::marker::Copy,
            ::core::cmp::PartialEq, ::core::cmp::Eq,
            ::core::cmp::PartialOrd, ::core::cmp::Ord, ::core::hash::Hash,
        )]
        #[repr(u8)]
        $vis enum $States {
            $($(#[$state_meta])* $State,)+
        }

        impl $States {
            $(
                $(#[$set_meta])*
                $set_vis const $SET: $crate::state::StateSet<Self> =
                    $crate::state::StateSet::from_bits(
                        0 $(| 1 << Self::$member as ::core::primitive::u8)+
                    );
            )*
        }

        const _: () = ::core::assert!(
            [$($States::$State),+].len() <= $crate::state::STATES_MAX,
            "too many states",
        );

        impl $crate::state::States for $States {
            const TABLE: &'static [$crate::state::StateInfo<Self>] = &[$(
                $crate::state::StateInfo {
                    state: Self::$State,
                    name: $name,
                    next: $crate::state::StateSet::from_bits(
                        0 $(| 1 << Self::$next as ::core::primitive::u8)*
                    ),
                },
            )+];

            #[inline(always)]
            fn number(self) -> ::core::primitive::u8 {
                self as ::core::primitive::u8
            }

            #[inline(always)]
            fn from_number(number: ::core::primitive::u8) -> Self {
                $(if number == Self::$State as ::core::primitive::u8 {
                    return Self::$State;
                })+
                <Self as $crate::state::States>::TABLE[0].state
            }
        }
    };
}

crate::states! {
    /// The lifecycle of something that runs, from its start to its end: a pipeline, a bus, a
    /// server.
    pub enum Lifecycle {
        /// It is not ready yet, and accepts nothing.
        Starting "starting" => [Running, Draining, Stopped],
        /// It accepts new work.
        Running "running" => [Paused, Draining, Stopped],
        /// It accepts nothing for now, and finishes the work that was accepted. (A paused pipeline
        /// accepts events of its owner all the same: see `Handle::pause` of the pipeline.)
        Paused "paused" => [Running, Draining, Stopped],
        /// It accepts nothing any more, and finishes the work that was accepted.
        Draining "draining" => [Stopped],
        /// All work is finished, or was discarded.
        Stopped "stopped" => [],
    }
    /// The states in which it has started, and is not ending.
    pub set OPEN = [Running, Paused];
    /// The states in which it accepts nothing any more.
    pub set ENDING = [Draining, Stopped];
    /// The states in which new work is either accepted, or refused for ever. A thread that finds
    /// the state starting or paused may wait for this set.
    pub set RUNNING_OR_ENDING = [Running, Draining, Stopped];
}
