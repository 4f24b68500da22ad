//! The whole exchange, and the one function that changes it.

use crate::command::Command;
use crate::event::Events;
use crate::matching::{Ahead, Matching};
use crate::result_code::ResultCode;
use crate::risk::Risk;
use crate::rules::Rules;

/// The state of the exchange, in the parts that the stages of a pipeline own: take it apart to
/// give each its own.
#[derive(Clone, Debug)]
pub struct State {
    /// Users, balances, symbols, fees: for the risk check and settlement.
    pub risk: Risk,
    /// Order books.
    pub matching: Matching,
}

impl State {
    /// An empty exchange under these rules.
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
/// Never fails: what cannot be done is told by the result, and changes nothing.
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
    // Most commands are moves.
    if matches!(command, Command::Move { .. }) {
        return state.move_order(command, events);
    }
    state.apply_but_moves(command, events)
}

/// The largest part of a batch over which a book is taken to stay as large as it was.
const PART: usize = 4096;

/// Executes commands one after another, as [`apply`] does each, and tells every outcome: the
/// command's place in `commands`, its result and its events.
///
/// The same results and state as [`apply`]. Where books or users are too many for the nearer
/// caches, the memory of later commands is asked for while earlier ones are executed, which makes
/// a command on a million resting orders several times as fast; where they are not, it costs
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
    mut told: impl FnMut(usize, ResultCode, &Events),
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
                    told(at, result, events);
                    at += 1;
                }
            }
        } else {
            for (at, command) in part.iter().enumerate() {
                let result = apply(state, command, events);
                told(first + at, result, events);
            }
        }
        first += part.len();
    }
}

impl State {
    /// Asks for what these commands will need.
    #[inline(never)]
    fn fetch(&self, commands: &[Command], ahead: &mut Ahead) {
        for command in commands {
            ahead.note(&self.matching, command);
            self.risk.fetch(command);
        }
        ahead.ask(&self.matching);
    }
}
