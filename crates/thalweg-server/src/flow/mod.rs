//! A market to trade against: commands of a recording or of a generator, which the exchange's
//! thread submits beside the sessions of users.
//!
//! Each event of a flow has a number. The command that is made of an event has the event's number,
//! and 1, as the sequence of the flow's one session. So the journal says which events were executed
//! and a flow goes on behind the last one after a restart, without a file of its own. What is
//! submitted depends on the flow, the state of the exchange and nothing else: the same flow and the
//! same commands of users at the same events lead to the same trades. `docs/market.md` is for
//! users.

mod generated_market;
mod recorded;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg_exchange::durable::Executed;
use thalweg_exchange::session::{Role, SessionKey};
use thalweg_exchange::{Command, Event, ResultCode, State, UserId};

use crate::conditions::NetworkConditions;
use crate::counters::{raise, read};

pub use self::generated_market::{GeneratedMarket, funded_users};
pub use self::recorded::{FlowEvent, Recorded, TimedEvent};
pub(crate) use self::run::FlowRun;

/// The first id of a flow's users; those below are for others.
pub const FLOW_USERS: i64 = 1_000_000_000_000;

/// The speed of a flow, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How many times as fast as recorded; `None` for as fast as the exchange takes it.
    pub speed: Option<f64>,
    /// The events before this one are executed at once.
    pub from: u64,
}

impl Pace {
    /// Returns when an event is due. `origin` is an event with its time, and when it was executed.
    pub(crate) fn due(self, event: u64, due_ns: u64, origin: (u64, Instant)) -> Option<Instant> {
        let speed = self.speed.filter(|_| event >= self.from)?;
        let after_ns = due_ns.saturating_sub(origin.0) as f64 / speed;
        // Beyond a century it waits for the end of the server.
        let after = Duration::from_nanos(after_ns.min(3e18) as u64);
        Some(origin.1 + after)
    }
}

/// The events of a market.
#[derive(Debug)]
pub enum Source {
    /// A recording.
    Recorded(Recorded),
    /// A generator, without end.
    GeneratedMarket(GeneratedMarket),
}

/// The outcome of looking at an event of a flow.
pub(crate) enum Step {
    /// This command, whatever the state.
    Command(Command),
    /// [`Source::resolve`] says what, by the state after all events before it.
    Resolve,
    /// Nothing.
    Skip,
    /// There are no more.
    End,
}

impl Source {
    /// Returns what an event comes to.
    pub(crate) fn step(&self, event: u64) -> Step {
        match self {
            Self::Recorded(recorded) => recorded.step(event),
            Self::GeneratedMarket(made_up) => made_up.step(event),
        }
    }

    /// Returns the command of an event that depends on the state.
    pub(crate) fn resolve(&self, event: u64, state: &State) -> Option<Command> {
        match self {
            Self::Recorded(recorded) => recorded.resolve(event, state),
            Self::GeneratedMarket(made_up) => made_up.resolve(event, state),
        }
    }

    /// Returns when an event is due at normal speed, in nanoseconds since the first.
    pub(crate) fn due_ns(&self, event: u64) -> u64 {
        match self {
            Self::Recorded(recorded) => recorded.due_ns(event),
            Self::GeneratedMarket(made_up) => made_up.due_ns(event),
        }
    }

    const fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded(_))
    }

    /// Returns whether an event is in the first lap of a recording: what depends on the state there
    /// is nothing while no other commands come.
    pub(crate) const fn is_first_lap(&self, event: u64) -> bool {
        match self {
            Self::Recorded(recorded) => event < recorded.events.len() as u64,
            Self::GeneratedMarket(_) => false,
        }
    }

    /// Returns in which lap of a recording an event is.
    pub(crate) fn lap(&self, event: u64) -> u64 {
        match self {
            Self::Recorded(recorded) => recorded.lap(event),
            Self::GeneratedMarket(_) => 0,
        }
    }

    /// Returns the specifications of its symbols.
    pub(crate) fn symbols(&self) -> Vec<thalweg_exchange::SymbolSpec> {
        let mut found = Vec::new();
        for event in 0.. {
            match self.step(event) {
                Step::Command(Command::AddSymbols(specs)) => found.extend_from_slice(&specs),
                Step::Command(command) if command.place().is_none() && event < 1 << 10 => {}
                _ => break,
            }
        }
        found
    }
}

/// A market that trades beside the users of a server.
#[derive(Debug)]
pub struct Flow {
    /// Its name, for messages.
    pub name: String,
    /// A number that belongs to its events: that of other events differs.
    pub identity: u64,
    /// Its events.
    pub source: Source,
    /// When they are executed.
    pub pace: Pace,
    /// The network between users and the exchange, where it is slow or loses commands.
    pub conditions: Option<Arc<NetworkConditions>>,
}

impl Flow {
    /// Returns the session in which its commands are sent; no user has a number below 0.
    pub(crate) const fn session(&self) -> SessionKey {
        SessionKey::new(Role::Trade, -1 - (self.identity >> 2) as i64, 0)
    }
}

/// Returns whether a session is that of a flow.
pub(crate) const fn is_flow(key: SessionKey) -> bool {
    key.holder < 0
}

/// Counts of what a flow has done since the server was started.
#[derive(Debug, Default)]
pub struct FlowCounts {
    submitted: AtomicU64,
    executed: AtomicU64,
    orders_gone: AtomicU64,
    sizes_reduced: AtomicU64,
    refused: AtomicU64,
    trades: AtomicU64,
    trades_with_users: AtomicU64,
    laps: AtomicU64,
    ended: AtomicU64,
}

impl FlowCounts {
    /// Returns the counts with their names.
    #[must_use]
    pub fn all(&self) -> [(&'static str, u64); 8] {
        [
            ("commands", read(&self.executed)),
            ("orders_gone", read(&self.orders_gone)),
            ("sizes_reduced", read(&self.sizes_reduced)),
            ("refused", read(&self.refused)),
            ("trades", read(&self.trades)),
            ("trades_with_users", read(&self.trades_with_users)),
            ("laps", read(&self.laps)),
            ("ended", read(&self.ended)),
        ]
    }

    /// Returns how many commands are in flight.
    fn in_flight(&self) -> u64 {
        read(&self.submitted) - read(&self.executed)
    }

    /// Returns the command of an event that depends on the state, and counts one that takes lots
    /// off an order.
    fn resolve(&self, source: &Source, event: u64, state: &State) -> Option<Command> {
        let command = source.resolve(event, state)?;
        let lowers = matches!(command, Command::Cancel { .. } | Command::Reduce { .. });
        if lowers && source.is_recorded() {
            raise(&self.sizes_reduced, 1);
        }
        Some(command)
    }

    fn set_laps(&self, laps: u64) {
        // ORDERING: Relaxed, pairs with read(); a number and nothing else.
        self.laps.store(laps, Ordering::Relaxed);
    }

    /// Takes an outcome in: of a command of the flow, where `is_own`.
    pub(crate) fn note(&self, executed: &Executed<'_>, is_own: bool) {
        let outcome = &executed.outcome;
        if is_own {
            raise(&self.executed, 1);
            match outcome.result {
                ResultCode::Success => {}
                ResultCode::MatchingUnknownOrderId => raise(&self.orders_gone, 1),
                _ => raise(&self.refused, 1),
            }
        }
        let mut taker = outcome.command.uid();
        for event in outcome.events {
            match *event {
                Event::Triggered { uid, .. } | Event::Uncrossed { uid, .. } => taker = Some(uid),
                Event::Trade { maker_uid, .. } => {
                    let taken_by_flow = taker.is_some_and(is_flow_user);
                    match (is_flow_user(maker_uid), taken_by_flow) {
                        (true, true) => raise(&self.trades, 1),
                        (false, false) => {}
                        _ => raise(&self.trades_with_users, 1),
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns whether a user belongs to a flow.
const fn is_flow_user(user: UserId) -> bool {
    user.0 >= FLOW_USERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_due_by_speed_and_at_once_before_the_first_that_is_wanted() {
        let now = Instant::now();
        let due = |speed, from, due_ns| {
            let due = Pace { speed, from }.due(7, due_ns, (1_000, now));
            due.map(|due| due.duration_since(now).as_nanos())
        };
        assert_eq!(due(Some(1.0), 0, 3_000), Some(2_000));
        assert_eq!(due(Some(10.0), 7, 3_000), Some(200));
        assert_eq!(due(Some(0.5), 7, 3_000), Some(4_000));
        assert_eq!(due(Some(1.0), 7, 500), Some(0));
        assert_eq!(due(Some(1.0), 8, 3_000), None);
        assert_eq!(due(None, 0, 3_000), None);
    }
}
