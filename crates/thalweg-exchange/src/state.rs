//! The whole exchange, and the one function that changes it.

use crate::command::{Command, Place};
use crate::event::{Events, UserHint};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::matching::{Matching, Step};
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
    match *command {
        Command::Place(ref place) => state.place(place, command, events),
        Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } => state.move_order((uid, order_id), (symbol, price), command, events),
        Command::Cancel {
            uid,
            symbol,
            order_id,
        } => state.cancel((uid, order_id), symbol, command, events),
        Command::Reduce {
            uid,
            symbol,
            order_id,
            by,
        } => state.reduce((uid, order_id), (symbol, by), command, events),
        _ => state.apply_other(command, events),
    }
}

/// Each of the usual commands has a way of its own, so that what a command is is asked once. All
/// are check, execution and settlement, as the stages of a pipeline do them.
impl State {
    #[inline(never)]
    fn apply_other(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let (checked, user) = self.risk.check_other(command);
        events.clear();
        let result = self.matching.execute_other(command, checked, user, events);
        self.risk.settle_closely(command, result, events);
        result
    }

    #[inline(never)]
    fn place(&mut self, place: &Place, command: &Command, events: &mut Events) -> ResultCode {
        let Some(owner) = self.risk.place_calmly::<true>(place) else {
            return self.place_otherwise(place, command, events);
        };
        events.clear();
        let checked = ResultCode::ValidForMatchingEngine;
        let user = UserHint(owner);
        let result = self.matching.place(place, checked, user, events);
        self.risk.settle_place(place, command, result, events);
        result
    }

    #[inline(never)]
    fn place_otherwise(
        &mut self,
        place: &Place,
        command: &Command,
        events: &mut Events,
    ) -> ResultCode {
        let (checked, user) = self.risk.check_other(command);
        events.clear();
        let result = self.matching.place(place, checked, user, events);
        self.risk.settle_place(place, command, result, events);
        result
    }

    #[inline(never)]
    fn move_order(
        &mut self,
        order: (UserId, OrderId),
        (symbol, price): (SymbolId, i64),
        command: &Command,
        events: &mut Events,
    ) -> ResultCode {
        let checked = if self.risk.passes_move(order.0, symbol, price) {
            ResultCode::ValidForMatchingEngine
        } else {
            self.risk.check_other(command).0
        };
        events.clear();
        let books = &mut self.matching;
        let result = books.move_order(symbol, order, price, checked, events);
        let owner = (order.0, symbol);
        self.risk.settle_move(owner, command, result, events);
        result
    }

    #[inline(never)]
    fn cancel(
        &mut self,
        order: (UserId, OrderId),
        symbol: SymbolId,
        command: &Command,
        events: &mut Events,
    ) -> ResultCode {
        events.clear();
        let result = self.matching.cancel(symbol, order, events);
        let owner = (order.0, symbol);
        self.risk.settle_reduced(owner, command, result, events);
        result
    }

    #[inline(never)]
    fn reduce(
        &mut self,
        order: (UserId, OrderId),
        (symbol, by): (SymbolId, i64),
        command: &Command,
        events: &mut Events,
    ) -> ResultCode {
        events.clear();
        let result = self.matching.reduce(symbol, order, by, events);
        let owner = (order.0, symbol);
        self.risk.settle_reduced(owner, command, result, events);
        result
    }
}

/// How many commands before its turn a command's memory is asked for, step by step: far enough for
/// a line to come from memory each time.
const AHEAD: [(usize, Step); 3] = [(12, Step::Place), (8, Step::Order), (4, Step::Neighbours)];
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
    let mut at = 0;
    while at < commands.len() {
        let end = commands.len().min(at + PART);
        if state.matching.is_large(&commands[at..end]) || state.risk.is_large() {
            for at in at..end {
                state.fetch(commands, at);
                let result = apply(state, &commands[at], events);
                told(at, result, events);
            }
        } else {
            for (at, command) in (at..end).zip(&commands[at..end]) {
                let result = apply(state, command, events);
                told(at, result, events);
            }
        }
        at = end;
    }
}

impl State {
    /// Asks for what the commands after the one at `at` will need.
    #[inline]
    fn fetch(&self, commands: &[Command], at: usize) {
        for (ahead, step) in AHEAD {
            if let Some(command) = commands.get(at + ahead) {
                self.matching.fetch(command, step);
                if let (Step::Place, Some(uid)) = (step, command.uid()) {
                    self.risk.fetch(uid);
                }
            }
        }
    }
}
