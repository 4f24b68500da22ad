//! The whole exchange, and the one function that changes it.

use crate::command::Command;
use crate::event::Events;
use crate::matching::Matching;
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
pub fn apply(state: &mut State, command: &Command, events: &mut Events) -> ResultCode {
    let checked = state.risk.check(command);
    let result = state.matching.execute(command, checked, events);
    state.risk.settle(command, result, events);
    result
}
