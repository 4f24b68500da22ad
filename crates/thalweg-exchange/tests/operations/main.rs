//! Commands of those who run the market: mass cancel, halts, price bands, removal of symbols.

mod cancelling;
#[path = "../properties/commands.rs"]
#[allow(dead_code)] // made for the properties; this file needs a part of it
mod commands;
mod decoded;
mod gates;
#[path = "../properties/late.rs"]
mod late;
mod pipelines;
mod removal;
mod stream;
mod twin;

use std::collections::BTreeMap;

use proptest::test_runner::TestCaseError;
use thalweg_exchange::report::currency_totals;
use thalweg_exchange::state_text::write_state;
use thalweg_exchange::{Action, Command, Events, ResultCode, State, UserId, apply};

fn text(state: &State) -> String {
    let mut text = String::new();
    write_state(state, &mut text).expect("a String takes everything");
    text
}

fn run(state: &mut State, command: &Command) -> ResultCode {
    apply(state, command, &mut Events::new())
}

/// Open orders as they are counted, by user, and as the books have them.
fn open_orders(state: &State) -> [BTreeMap<UserId, u64>; 2] {
    let mut found: BTreeMap<UserId, u64> = BTreeMap::new();
    for book in state.matching.books() {
        let orders = book.orders(Action::Ask).chain(book.orders(Action::Bid));
        let waiting = book.waiting().map(|stop| stop.place.uid);
        for uid in orders.map(|order| order.uid).chain(waiting) {
            *found.entry(uid).or_default() += 1;
        }
    }
    for user in state.risk.users() {
        found.entry(user.uid).or_default();
    }
    let counted = found.keys().map(|&uid| (uid, state.risk.open_orders(uid)));
    [counted.collect(), found]
}

fn money_is_conserved(state: &State, after: &Command) -> Result<(), TestCaseError> {
    for total in currency_totals(state) {
        proptest::prop_assert_eq!(total.sum(), 0, "{:?} after {:?}", total, after);
    }
    let [counted, open] = open_orders(state);
    proptest::prop_assert_eq!(counted, open, "after {:?}", after);
    Ok(())
}
