//! Open orders, as they are counted and as they are.

use std::collections::BTreeMap;

use thalweg_exchange::{Action, State, UserId};

/// Open orders as they are counted, by user, and as the books have them.
pub(crate) fn open_orders(state: &State) -> [BTreeMap<UserId, u64>; 2] {
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
