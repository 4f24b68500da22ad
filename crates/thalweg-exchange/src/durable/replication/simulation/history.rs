//! The history of an order that several sessions of a user place, cancel and look for: what each
//! client has seen, and no one else.

use std::collections::BTreeMap;

use thalweg_testkit::linearizable::{Call, Presence, PresenceCall, is_linearizable};

use crate::command::{Action, Command, Place};
use crate::durable::simulation::traffic::REGISTER_USER;
use crate::durable::simulation::{Verdict, must};
use crate::engine::state::State;
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;
use crate::session::{Role, SessionKey};

const USER: UserId = UserId(REGISTER_USER);
const SYMBOL: SymbolId = SymbolId(1);
const ORDER: OrderId = OrderId(1_000);
/// A buyer's, at which nobody sells.
const PRICE: i64 = 1;
pub(super) const SESSIONS: u32 = 4;

/// The sessions that make calls.
pub(super) fn sessions() -> impl Iterator<Item = SessionKey> {
    (0..SESSIONS).map(|number| SessionKey::new(Role::Trade, REGISTER_USER, number))
}

pub(super) fn is_ours(key: SessionKey) -> bool {
    key.holder == REGISTER_USER && key.role == Role::Trade
}

/// Returns the command of a call. A look is a move to where the order is.
pub(super) fn command(call: PresenceCall) -> Command {
    match call {
        PresenceCall::Place => {
            Command::Place(Place::limit((USER, ORDER), SYMBOL, Action::Bid, (PRICE, 1)))
        }
        PresenceCall::Cancel => Command::cancel(USER, SYMBOL, ORDER),
        PresenceCall::Look => Command::move_to(USER, SYMBOL, ORDER, PRICE),
    }
}

/// Returns whether the order is there.
pub(super) fn is_in(state: &State) -> bool {
    let book = state.matching.book(SYMBOL);
    book.is_some_and(|book| {
        book.orders_of(USER)
            .iter()
            .any(|order| order.order_id == ORDER)
    })
}

#[derive(Debug, Default)]
pub(super) struct History {
    calls: Vec<Call<Presence>>,
    /// By session and sequence: which call has no answer.
    open: BTreeMap<(SessionKey, u64), usize>,
    /// Counts what happens.
    now: u64,
}

impl History {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    pub(super) fn called(&mut self, key: SessionKey, sequence: u64, operation: PresenceCall) {
        self.open.insert((key, sequence), self.calls.len());
        let called = self.tick();
        self.calls.push(Call {
            operation,
            called,
            answer: None,
        });
    }

    /// A client has heard the result of a command, which may be another one's.
    pub(super) fn answered(
        &mut self,
        key: SessionKey,
        sequence: u64,
        result: ResultCode,
    ) -> Verdict {
        let Some(at) = self.open.remove(&(key, sequence)) else {
            return Ok(());
        };
        let has_failed = matches!(
            result,
            ResultCode::MatchingUnknownOrderId | ResultCode::MatchingRejectedDuplicateId
        );
        must(has_failed || result == ResultCode::Success, || {
            format!("{:?} came to {result}", self.calls[at].operation)
        })?;
        self.calls[at].answer = Some((self.tick(), !has_failed));
        Ok(())
    }

    /// A client has looked, and no command was sent.
    pub(super) fn seen(&mut self, is_there: bool) {
        let called = self.tick();
        let answer = Some((self.tick(), is_there));
        self.calls.push(Call {
            operation: PresenceCall::Look,
            called,
            answer,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn check(&self) -> Verdict {
        must(is_linearizable(&Presence(false), &self.calls), || {
            format!("it is not linearizable: {:?}", self.calls)
        })
    }
}
