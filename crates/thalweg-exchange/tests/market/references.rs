//! Orders have references of the feed's own: nobody's client id is public.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_exchange::market::{
    Body, Builder, Epoch, Message, Options, OrderChange, OrderReference,
};
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, Events, OrderId, State, UserId,
    apply,
};

use crate::numbers::{SYMBOL, feed, order, setup};

fn changes(messages: &[Message]) -> Vec<OrderChange> {
    let change = |message: &Message| match message.body {
        Body::Order(change) => Some(change),
        _ => None,
    };
    messages.iter().filter_map(change).collect()
}

fn of_user(uid: i64, mut command: Command) -> Command {
    if let Command::Place(place) = &mut command {
        place.uid = UserId(uid);
    }
    command
}

/// Users 1 and 2 use the same ids, and both have money.
fn start() -> (Builder, State) {
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
    let (uid, order_id) = (UserId(2), OrderId(CLIENT_ID));
    let symbol = SYMBOL;
    let commands = [
        Command::Reduce {
            uid,
            symbol,
            order_id,
            by: 1,
        },
        Command::Move {
            uid,
            symbol,
            order_id,
            price: 9,
        },
        of_user(1, order(7, Action::Bid, 9, 1)),
        Command::Cancel {
            uid,
            symbol,
            order_id,
        },
    ];
    let messages = feed(&mut builder, &mut state, &commands);
    let second = references[1];
    let expected = [
        OrderChange::Reduced {
            order: second,
            by: 1,
            left: 2,
        },
        OrderChange::Moved {
            order: second,
            price: 9,
            left: 2,
        },
        OrderChange::Filled {
            order: second,
            size: 1,
            left: 1,
        },
        OrderChange::Removed {
            order: second,
            left: 1,
        },
    ];
    assert_eq!(changes(&messages), expected);
    let makers: Vec<_> = (messages.iter())
        .filter_map(|message| match message.body {
            Body::Trade { maker, .. } => Some(maker),
            _ => None,
        })
        .collect();
    assert_eq!(makers, [second]);
    // A client id that is used again is another order.
    let again = [of_user(2, order(CLIENT_ID, Action::Ask, 10, 3))];
    let told = changes(&feed(&mut builder, &mut state, &again));
    assert_eq!(
        told.iter().map(added).collect::<Vec<_>>(),
        [OrderReference(3)]
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

/// How an owner finds his order: the number of his command is in the message.
#[test]
fn an_owner_finds_his_order_by_the_number_of_his_command() {
    let (mut builder, mut state) = start();
    let mut events = Events::new();
    let mut own = BTreeMap::new();
    let mut found = BTreeMap::new();
    for number in 1..20 {
        let uid = 1 + number as i64 % 2;
        let command = of_user(uid, order(number as i64, Action::Ask, 10, 1));
        let result = apply(&mut state, &command, &mut events);
        let told = builder.apply(number, &command, result, &events);
        for message in told.expect("in step") {
            if let Body::Order(change) = message.body {
                found.insert(message.command, added(&change));
            }
        }
        own.insert(number, OrderReference(number));
    }
    assert_eq!(found, own);
}
