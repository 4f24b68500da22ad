//! Orders have references of the feed's own: nobody's client id is public.

use std::sync::Arc;

use thalweg_exchange::market::{
    Body, Builder, Epoch, Message, Options, OrderChange, OrderReference, ShownOrder, Snapshot,
};
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, OrderId, State, SymbolId, UserId,
};

use crate::market::numbers::{SYMBOL, feed, order, setup};

pub(crate) fn changes(messages: &[Message]) -> Vec<OrderChange> {
    let change = |message: &Message| match message.body {
        Body::Order(change) => Some(change),
        _ => None,
    };
    messages.iter().filter_map(change).collect()
}

pub(crate) fn of_user(uid: i64, mut command: Command) -> Command {
    if let Command::Place(place) = &mut command {
        place.uid = UserId(uid);
    }
    command
}

/// Users 1 and 2 use the same ids, and both have money.
pub(crate) fn start() -> (Builder, State) {
    let mut builder = Builder::new(Epoch(1), Options::default());
    let mut state = State::default();
    feed(&mut builder, &mut state, &setup());
    let account = AccountSpec {
        uid: UserId(2),
        balances: vec![(CurrencyId(1), 1_000_000), (CurrencyId(2), 1_000_000)],
    };
    feed(
        &mut builder,
        &mut state,
        &[Command::AddAccounts([account].into())],
    );
    (builder, state)
}

fn added(change: &OrderChange) -> OrderReference {
    match *change {
        OrderChange::Added { order, .. } => order,
        other => panic!("{other:?}"),
    }
}

#[test]
fn orders_of_one_client_id_are_two_in_the_feed() {
    const CLIENT_ID: i64 = 0x0012_3456;
    let (mut builder, mut state) = start();
    let orders = [1, 2].map(|uid| of_user(uid, order(CLIENT_ID, Action::Ask, 10, 3)));
    let told = changes(&feed(&mut builder, &mut state, &orders));
    let references: Vec<_> = told.iter().map(added).collect();
    assert_eq!(references, [OrderReference(1), OrderReference(2)]);
    // All that happens to the second is told of the second.
    let (uid, symbol, order_id) = (UserId(2), SYMBOL, OrderId(CLIENT_ID));
    let commands = [
        Command::reduce(uid, symbol, order_id, 1),
        Command::move_to(uid, symbol, order_id, 9),
        of_user(1, order(7, Action::Bid, 9, 1)),
        Command::cancel(uid, symbol, order_id),
    ];
    let messages = feed(&mut builder, &mut state, &commands);
    let (second, moved) = (references[1], OrderReference(3));
    let removed = |order, left| OrderChange::Removed { order, left };
    let expected = [
        OrderChange::Reduced {
            order: second,
            by: 1,
            left: 2,
        },
        // Another place in another queue: another order.
        removed(second, 2),
        OrderChange::Added {
            order: moved,
            side: Action::Ask,
            price: 9,
            size: 2,
        },
        OrderChange::Filled {
            order: moved,
            size: 1,
            left: 1,
        },
        removed(moved, 1),
    ];
    assert_eq!(changes(&messages), expected);
    let makers: Vec<_> = (messages.iter())
        .filter_map(|message| match message.body {
            Body::Trade { maker, .. } => Some(maker),
            _ => None,
        })
        .collect();
    assert_eq!(makers, [moved]);
    // A client id that is used again is another order.
    let again = [of_user(2, order(CLIENT_ID, Action::Ask, 10, 3))];
    let told = changes(&feed(&mut builder, &mut state, &again));
    assert_eq!(
        told.iter().map(added).collect::<Vec<_>>(),
        [OrderReference(4)]
    );
}

#[test]
fn a_refill_has_another_reference() {
    let (mut builder, mut state) = start();
    let Command::Place(place) = order(1, Action::Ask, 10, 5) else {
        unreachable!("an order");
    };
    let iceberg = ConditionalOrder {
        display: Some(2),
        ..ConditionalOrder::from(place)
    };
    let place = Command::PlaceWith(Arc::new(iceberg));
    let told = changes(&feed(&mut builder, &mut state, &[place]));
    assert_eq!(
        told.iter().map(added).collect::<Vec<_>>(),
        [OrderReference(1)]
    );
    let take = of_user(2, order(1, Action::Bid, 10, 2));
    let told = changes(&feed(&mut builder, &mut state, &[take]));
    let expected = [
        OrderChange::Filled {
            order: OrderReference(1),
            size: 2,
            left: 0,
        },
        OrderChange::Added {
            order: OrderReference(2),
            side: Action::Ask,
            price: 10,
            size: 2,
        },
    ];
    assert_eq!(told, expected);
}

/// An owner is told privately; nobody else sees whose a reference is.
#[test]
fn an_owner_is_told_the_references_of_his_orders() {
    let (mut builder, mut state) = start();
    let orders = [1, 2].map(|uid| of_user(uid, order(7, Action::Ask, 10, 3)));
    feed(&mut builder, &mut state, &orders);
    let of = |builder: &Builder, uid| builder.reference(SYMBOL, UserId(uid), OrderId(7));
    assert_eq!(of(&builder, 1), Some(OrderReference(1)));
    assert_eq!(of(&builder, 2), Some(OrderReference(2)));
    let moved = Command::move_to(UserId(1), SYMBOL, OrderId(7), 11);
    feed(&mut builder, &mut state, &[moved]);
    assert_eq!(of(&builder, 1), Some(OrderReference(3)));
    assert_eq!(of(&builder, 3), None);
    assert_eq!(builder.reference(SymbolId(6), UserId(1), OrderId(7)), None);
    // The feed starts again: they have other references, and owners can ask for them at once.
    let again = Builder::from_books(&state.matching, Epoch(2), Options::default());
    assert_eq!(of(&again, 1), Some(OrderReference(2)));
    assert_eq!(of(&again, 2), Some(OrderReference(1)));
    let mut snapshot = Snapshot::default();
    assert!(again.order_snapshot(SYMBOL, &mut snapshot));
    let shown = |order, price| ShownOrder {
        order: OrderReference(order),
        price,
        left: 3,
    };
    assert_eq!(snapshot.selling, [shown(1, 10), shown(2, 11)]);
    assert_eq!(snapshot.orders(Action::Bid), []);
    assert!(!again.order_snapshot(SymbolId(6), &mut snapshot));
    // Without orders it says nothing of them.
    assert!(again.snapshot(SYMBOL, 9, &mut snapshot));
    assert_eq!(snapshot.selling, []);
}
