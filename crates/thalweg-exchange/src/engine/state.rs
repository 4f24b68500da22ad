//! The whole exchange, and the one function that changes it.

use crate::command::Command;
use crate::event::Events;
use crate::matching::{Ahead, Matching};
use crate::result_code::ResultCode;
use crate::risk::Risk;
use crate::rules::Rules;

/// The state of the exchange.
#[derive(Clone, Debug)]
pub struct State {
    /// Users, balances, symbols, fees: for the risk check and settlement.
    pub risk: Risk,
    /// Order books.
    pub matching: Matching,
}

impl State {
    /// Returns an empty exchange under these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            risk: Risk::new(rules),
            matching: Matching::new(rules),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new(Rules::default())
    }
}

/// Executes one command: checks it, matches it, settles it. Fills `events` (cleared first).
///
/// Never fails: a command that cannot be done is refused by its result, and changes nothing.
///
/// ```
/// use thalweg_exchange::{Command, Events, ResultCode, State, UserId, apply};
///
/// let mut state = State::default();
/// let mut events = Events::new();
/// let command = Command::AddUser { uid: UserId(7) };
/// assert_eq!(apply(&mut state, &command, &mut events), ResultCode::Success);
/// let code = apply(&mut state, &command, &mut events);
/// assert_eq!(code, ResultCode::UserMgmtUserAlreadyExists);
/// assert!(events.is_empty());
/// ```
#[inline(always)]
pub fn apply(state: &mut State, command: &Command, events: &mut Events) -> ResultCode {
    if events.has_levels() {
        return state.apply_listed(command, events);
    }
    state.apply(command, events)
}

/// Executes all that earlier commands have [left over](State::left_over), and calls `on_outcome`
/// with each command that does, its result and its events.
///
/// ```
/// use thalweg_exchange::{Command, Events, State, apply, apply_left_over};
///
/// let (mut state, mut events) = (State::default(), Events::new());
/// apply(&mut state, &Command::cancel_all(None, None), &mut events);
/// // There were fewer than 1,024 orders.
/// apply_left_over(&mut state, &mut events, |_, _, _| panic!("nothing is left over"));
/// ```
pub fn apply_left_over(
    state: &mut State,
    events: &mut Events,
    mut on_outcome: impl FnMut(&Command, ResultCode, &Events),
) {
    while let Some(command) = state.left_over() {
        let result = apply(state, &command, events);
        on_outcome(&command, result, events);
    }
}

/// Executes one command as [`apply`] does, with the same result, events and state, and calls
/// `end_of_part` when it was checked, when it was matched, and when it was settled: for a look at
/// the clock. Cost: that of the slow path of [`apply`], which only some commands take there.
///
/// ```
/// use thalweg_exchange::{Command, Events, State, UserId, apply_in_parts};
///
/// let (mut state, mut events, mut parts) = (State::default(), Events::new(), 0);
/// let command = Command::AddUser { uid: UserId(7) };
/// apply_in_parts(&mut state, &command, &mut events, || parts += 1);
/// assert_eq!(parts, 3);
/// ```
#[inline(always)]
pub fn apply_in_parts(
    state: &mut State,
    command: &Command,
    events: &mut Events,
    end_of_part: impl FnMut(),
) -> ResultCode {
    let result = state.apply_in_parts(command, events, end_of_part);
    if events.has_levels() {
        state.list_levels(command, result, events);
    }
    result
}

/// The largest part of a batch over which a book is taken to stay as large as it was.
pub(crate) const PART: usize = 4096;

/// Executes commands one after another, as [`apply`] does each, and calls `on_outcome`
/// with every outcome: the command's place in `commands`, its result and its events.
///
/// Gives the results and the state that [`apply`] gives. Where books or users are too many for the
/// nearer caches, the memory of later commands is asked for while earlier ones are executed, which
/// makes a command on a million resting orders several times as fast; where they are not, it costs
/// nothing.
///
/// ```
/// use thalweg_exchange::{Command, Events, ResultCode, State, UserId, apply_batch};
///
/// let mut state = State::default();
/// let commands = [1, 2, 3].map(|uid| Command::AddUser { uid: UserId(uid) });
/// let mut done = 0;
/// apply_batch(&mut state, &commands, &mut Events::new(), |_, result, _| {
///     done += usize::from(result == ResultCode::Success);
/// });
/// assert_eq!(done, 3);
/// ```
pub fn apply_batch(
    state: &mut State,
    commands: &[Command],
    events: &mut Events,
    mut on_outcome: impl FnMut(usize, ResultCode, &Events),
) {
    let mut first = 0;
    for part in commands.chunks(PART) {
        if state.matching.is_large(part) || state.risk.is_large() {
            let mut ahead = Ahead::default();
            let mut at = first;
            for group in part.chunks(Ahead::ROOM) {
                state.fetch(group, &mut ahead);
                for command in group {
                    let result = apply(state, command, events);
                    on_outcome(at, result, events);
                    at += 1;
                }
            }
        } else {
            for (at, command) in part.iter().enumerate() {
                let result = apply(state, command, events);
                on_outcome(first + at, result, events);
            }
        }
        first += part.len();
    }
}

impl State {
    /// Returns the command that goes on with what earlier ones have left over, which had as many
    /// events as one may: a mass cancel, the end of an auction, a price band of futures, orders
    /// that have expired, or stop orders that were triggered. The owner of the state applies it
    /// before long, and asks again then. `None` where nothing is left over, or only in symbols
    /// that are halted or in an auction. Cost: no more than a few steps in trees.
    #[must_use]
    pub fn left_over(&self) -> Option<Command> {
        let Self { risk, matching } = self;
        if let Some(symbol) = matching.cancelling().next() {
            return Some(Command::cancel_all(None, Some(symbol)));
        }
        let unfinished = matching.unfinished();
        if let Some(command) = unfinished.and_then(|symbol| risk.next_step(symbol)) {
            return Some(command);
        }
        let stops = matching
            .left_over()
            .map(|symbol| Command::RunStops { symbol });
        stops.or_else(|| {
            Some(Command::Clock {
                time: matching.expired_by()?,
            })
        })
    }

    /// Returns whether something is [left over](Self::left_over).
    #[inline(always)]
    pub(crate) fn may_go_on(&self) -> bool {
        self.matching.may_go_on()
    }

    /// Asks for what these commands will need.
    #[inline(never)]
    fn fetch(&self, commands: &[Command], ahead: &mut Ahead) {
        for command in commands {
            self.fetch_one(command, ahead);
        }
        ahead.ask(&self.matching);
    }

    /// Notes what a command will need of the books, and asks for what it needs of the rest.
    #[inline(always)]
    pub(crate) fn fetch_one(&self, command: &Command, ahead: &mut Ahead) {
        ahead.note(&self.matching, command);
        self.risk.fetch(command);
    }
}
