//! What must be true after every command, whatever is asked for.

use std::collections::BTreeMap;

use proptest::prelude::*;
use thalweg_exchange::report::currency_totals;
use thalweg_exchange::{
    Action, Command, Event, OrderFlags, OrderId, ResultCode, SelfTrade, State, SymbolId, UserId,
};

use crate::world::{SYMBOLS, World};

/// Who takes, as far as the checks must know.
#[derive(Clone, Copy, Debug)]
struct Taker {
    uid: UserId,
    flags: OrderFlags,
}

/// A world that is looked at after every command.
pub(crate) struct Watched {
    pub(crate) world: World,
    /// How often something of interest happened, by name.
    pub(crate) seen: BTreeMap<&'static str, usize>,
}

impl Watched {
    pub(crate) fn new(world: World) -> Self {
        Self {
            world,
            seen: BTreeMap::new(),
        }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// The order that takes first when this command is executed.
    fn taker(&self, command: &Command) -> Option<Taker> {
        match command {
            Command::Place(place) => Some(Taker {
                uid: place.uid,
                flags: place.flags,
            }),
            Command::Move {
                uid,
                symbol,
                order_id,
                ..
            } => {
                let order = self.world.order(*symbol, order_id.0)?;
                Some(Taker {
                    uid: *uid,
                    flags: order.flags,
                })
            }
            _ => None,
        }
    }

    pub(crate) fn execute(&mut self, command: &Command) -> Result<ResultCode, TestCaseError> {
        let taker = self.taker(command);
        let result = self.world.apply(command);
        prop_assert!(!result.is_refusal() || self.world.events.is_empty());
        self.look_at_events(taker, command)?;
        let state = &self.world.state;
        money_is_conserved(state)?;
        for symbol in SYMBOLS {
            is_not_crossed(state, symbol)?;
        }
        Ok(result)
    }

    fn look_at_events(&mut self, taker: Option<Taker>, of: &Command) -> Result<(), TestCaseError> {
        for event in self.world.events.to_vec() {
            match event {
                Event::Trade { maker_uid, .. } => {
                    let Taker { uid, flags } = taker.expect("somebody takes");
                    prop_assert!(!flags.is_post_only(), "post-only took: {:?}", of);
                    let may_meet = flags.self_trade() == SelfTrade::Allow;
                    prop_assert!(may_meet || uid != maker_uid, "self-trade: {:?}", of);
                    self.saw(if uid == maker_uid {
                        "self-trade"
                    } else {
                        "trade"
                    });
                }
                Event::Reject { .. } => {
                    let flags = taker.expect("somebody was rejected").flags;
                    if flags.is_post_only() {
                        self.saw("post-only reject");
                    }
                }
                Event::Removed { order, symbol, .. } => {
                    // A new order may take over the id of one that it removed.
                    let is_gone = !self.rests(symbol, order) || places(of) == Some(order);
                    prop_assert!(is_gone, "{order} rests after {:?}", of);
                    self.saw("removed");
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn rests(&self, symbol: SymbolId, order: OrderId) -> bool {
        self.world.order(symbol, order.0).is_some()
    }
}

/// The id of a new order.
fn places(command: &Command) -> Option<OrderId> {
    match command {
        Command::Place(place) => Some(place.order_id),
        _ => None,
    }
}

pub(crate) fn money_is_conserved(state: &State) -> Result<(), TestCaseError> {
    for total in currency_totals(state) {
        prop_assert_eq!(total.sum(), 0, "{:?}", total);
    }
    Ok(())
}

fn is_not_crossed(state: &State, symbol: SymbolId) -> Result<(), TestCaseError> {
    let book = state.matching.book(symbol).expect("it was added");
    if let (Some(ask), Some(bid)) = (book.best(Action::Ask), book.best(Action::Bid)) {
        prop_assert!(bid.price < ask.price, "crossed: {bid:?} {ask:?}");
    }
    Ok(())
}
