//! What nobody should see is in no message: worlds that differ only in that have the same ones.

use std::sync::Arc;

use thalweg_exchange::market::{Body, Message, OrderChange, OrderReference};
use thalweg_exchange::{Action, Command, ConditionalOrder, OrderId, UserId};

use crate::market::numbers::{SYMBOL, feed, order};
use crate::market::references::{changes, of_user, start};

fn iceberg(id: i64, price: i64, size: i64, display: i64) -> Command {
    let Command::Place(place) = order(id, Action::Ask, price, size) else {
        unreachable!("an order");
    };
    Command::PlaceWith(Arc::new(ConditionalOrder {
        display: Some(display),
        ..place.into()
    }))
}

fn moved(id: i64, price: i64) -> Command {
    Command::move_to(UserId(1), SYMBOL, OrderId(id), price)
}

fn told(commands: &[Command]) -> Vec<Message> {
    let (mut builder, mut state) = start();
    feed(&mut builder, &mut state, commands)
}

#[test]
fn a_move_does_not_tell_whether_lots_are_hidden() {
    let plain = told(&[order(1, Action::Ask, 10, 2), moved(1, 11)]);
    let hides = told(&[iceberg(1, 10, 5, 2), moved(1, 11)]);
    assert_eq!(plain, hides);
}

/// It leaves, takes, and comes as another order.
#[test]
fn a_moved_order_that_takes_is_told_as_removed_and_added() {
    let (mut builder, mut state) = start();
    let bid = of_user(2, order(1, Action::Bid, 9, 4));
    feed(&mut builder, &mut state, &[iceberg(1, 10, 9, 2), bid]);
    let told = feed(&mut builder, &mut state, &[moved(1, 9)]);
    let maker = OrderReference(2);
    let trades: i64 = (told.iter())
        .map(|message| match message.body {
            Body::Trade { size, .. } => size,
            _ => 0,
        })
        .sum();
    assert_eq!(trades, 4);
    let told = changes(&told);
    let removed = OrderChange::Removed {
        order: OrderReference(1),
        left: 2,
    };
    assert_eq!(told.first(), Some(&removed));
    let added = OrderChange::Added {
        order: OrderReference(3),
        side: Action::Ask,
        price: 9,
        size: 2,
    };
    assert_eq!(told.last(), Some(&added));
    for change in &told[1..told.len() - 1] {
        assert!(matches!(change, OrderChange::Filled { order, .. } if *order == maker));
    }
}

/// Stop orders that wait, lots that leave the hidden ones, refusals and deposits.
#[test]
fn hidden_commands_leave_no_gap() {
    let Command::Place(place) = of_user(2, order(2, Action::Bid, 13, 1)) else {
        unreachable!("an order");
    };
    let stop = Command::PlaceWith(Arc::new(ConditionalOrder {
        trigger: Some(12),
        ..place.into()
    }));
    let reduced = Command::reduce(UserId(1), SYMBOL, OrderId(1), 1);
    let without = told(&[iceberg(1, 10, 5, 2), order(2, Action::Ask, 11, 1)]);
    let with = told(&[
        iceberg(1, 10, 5, 2),
        stop,
        reduced,
        moved(77, 1),
        Command::Nop,
        order(2, Action::Ask, 11, 1),
    ]);
    assert_eq!(without, with);
}
