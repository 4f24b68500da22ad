//! No message has private information: worlds that differ only in that have equal messages.

use std::sync::Arc;

use thalweg_exchange::market::{Builder, Channels, Epoch, Message};
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, OrderId, State, UserId,
};

use crate::market::numbers::{SYMBOL, feed, order, setup};

fn of_user(uid: i64, mut command: Command) -> Command {
    if let Command::Place(place) = &mut command {
        place.uid = UserId(uid);
    }
    command
}

/// Users 1 and 2 use the same ids, and both have money.
fn start() -> (Builder, State) {
    let mut builder = Builder::new(Epoch(1), Channels::default());
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

fn iceberg(id: i64, price: i64, size: i64, display: i64) -> Command {
    let Command::Place(place) = order(id, Action::Ask, price, size) else {
        unreachable!("an order");
    };
    Command::PlaceConditional(Arc::new(
        ConditionalOrder::from(place).with_display(display),
    ))
}

fn moved(id: i64, price: i64) -> Command {
    Command::move_to(UserId(1), SYMBOL, OrderId(id), price)
}

fn messages(commands: &[Command]) -> Vec<Message> {
    let (mut builder, mut state) = start();
    feed(&mut builder, &mut state, commands)
}

#[test]
fn a_move_does_not_show_whether_lots_are_hidden() {
    let plain = messages(&[order(1, Action::Ask, 10, 2), moved(1, 11)]);
    let hides = messages(&[iceberg(1, 10, 5, 2), moved(1, 11)]);
    assert_eq!(plain, hides);
}

/// Stop orders that wait, lots that leave the hidden ones, refusals and deposits.
#[test]
fn hidden_commands_leave_no_gap() {
    let Command::Place(place) = of_user(2, order(2, Action::Bid, 13, 1)) else {
        unreachable!("an order");
    };
    let stop = Command::PlaceConditional(Arc::new(ConditionalOrder::from(place).with_trigger(12)));
    let reduced = Command::reduce(UserId(1), SYMBOL, OrderId(1), 1);
    let without = messages(&[iceberg(1, 10, 5, 2), order(2, Action::Ask, 11, 1)]);
    let with = messages(&[
        iceberg(1, 10, 5, 2),
        stop,
        reduced,
        moved(77, 1),
        Command::Nop,
        order(2, Action::Ask, 11, 1),
    ]);
    assert_eq!(without, with);
}
