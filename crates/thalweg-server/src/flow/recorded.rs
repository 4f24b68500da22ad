//! The events of a recording.
//!
//! Its orders enter the book as they were recorded and take what the book has, by price and time,
//! users' orders included. Where a user's order has traded in place of a recorded one, that one is
//! larger than the recording says; [`FlowEvent::Lower`] takes off what was executed or cancelled
//! in the recording.

use thalweg_exchange::{Command, CurrencyId, OrderId, State, SymbolId, UserId};

use super::Step;

/// An event of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowEvent {
    /// A command.
    Command(Command),
    /// An order has `left` lots in the recording from now on: what it has more is cancelled.
    Lower {
        /// Its owner.
        uid: UserId,
        /// Its symbol.
        symbol: SymbolId,
        /// The order.
        order_id: OrderId,
        /// The lots that are left of it; 0 where it is gone.
        left: i64,
    },
    /// A user has this balance at the beginning of a further lap.
    Restore {
        /// The user.
        uid: UserId,
        /// The currency.
        currency: CurrencyId,
        /// The balance.
        balance: i64,
    },
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedEvent {
    /// Nanoseconds since the beginning.
    pub due_ns: u64,
    /// The event.
    pub event: FlowEvent,
}

/// A recording in memory.
#[derive(Debug)]
pub struct Recorded {
    /// Its events, in order.
    pub events: Vec<TimedEvent>,
    /// The events between two laps: its orders are cancelled, its money is restored. Empty where
    /// it ends with its events.
    pub between: Vec<FlowEvent>,
}

impl Recorded {
    /// Returns the lap and the position in it.
    fn at(&self, event: u64) -> (u64, usize) {
        let lap = (self.events.len() + self.between.len()).max(1) as u64;
        (event / lap, (event % lap) as usize)
    }

    fn event(&self, at: usize) -> Option<&FlowEvent> {
        let timed = self.events.get(at).map(|timed| &timed.event);
        timed.or_else(|| self.between.get(at - self.events.len()))
    }

    /// Returns in which lap an event is.
    pub(super) fn lap(&self, event: u64) -> u64 {
        self.at(event).0
    }

    pub(super) fn step(&self, event: u64) -> Step {
        let (lap, at) = self.at(event);
        if lap > 0 && self.between.is_empty() {
            return Step::End;
        }
        match self.event(at) {
            None => Step::End,
            Some(FlowEvent::Command(command)) if lap > 0 && is_set_up(command) => Step::Skip,
            Some(FlowEvent::Command(command)) => Step::Command(command.clone()),
            Some(_) => Step::Resolve,
        }
    }

    pub(super) fn resolve(&self, event: u64, state: &State) -> Option<Command> {
        match *self.event(self.at(event).1)? {
            FlowEvent::Command(ref command) => Some(command.clone()),
            FlowEvent::Lower {
                uid,
                symbol,
                order_id,
                left,
            } => {
                let order = state.matching.book(symbol)?.order(uid, order_id)?;
                let more = order.size - order.filled - left;
                (more > 0).then(|| match left {
                    0 => Command::cancel(uid, symbol, order_id),
                    _ => Command::reduce(uid, symbol, order_id, more),
                })
            }
            FlowEvent::Restore {
                uid,
                currency,
                balance,
            } => {
                let now = state.risk.balance(uid, currency).unwrap_or_default();
                let more = balance.checked_sub(now).filter(|more| *more != 0)?;
                let last = state.risk.user(uid)?.last_transaction_id;
                let transaction = last.checked_add(1)?;
                Some(Command::deposit(uid, currency, more, transaction))
            }
        }
    }

    pub(super) fn due_ns(&self, event: u64) -> u64 {
        let (lap, at) = self.at(event);
        let last = self.events.last().map_or(0, |timed| timed.due_ns);
        let in_lap = self.events.get(at).map_or(last, |timed| timed.due_ns);
        lap.saturating_mul(last).saturating_add(in_lap)
    }
}

/// Returns whether a command sets users and symbols up, which a further lap has already.
const fn is_set_up(command: &Command) -> bool {
    matches!(
        command,
        Command::AddSymbols(_)
            | Command::AddAccounts(_)
            | Command::AddUser { .. }
            | Command::Balance { .. }
            | Command::SetLimits { .. }
    )
}
