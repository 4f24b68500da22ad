//! Users whose ids do not follow one another: none is found by its id alone.

use counts::venue::{RESERVE, setup};
use thalweg_exchange::{Command, OrderType, Place, SymbolType, UserId};

use super::{Action, Cases, Exchange, ROUNDS, USERS, Work, ask, cancel_of, place, rounds};

pub(super) fn add(cases: &mut Cases) {
    let mut add = |name: &str, work: fn() -> Work| {
        cases.insert(format!("exchange/{name}-scattered-users"), work);
    };
    add("place-cancel", place_cancel);
    add("sweep-10", || sweep(OrderType::Ioc, 10));
    add("fok-10", || sweep(OrderType::Fok, 10));
}

/// Returns another id for a user, one to one.
const fn scattered(UserId(uid): UserId) -> UserId {
    UserId(uid * uid * 7_919)
}

/// Returns the command with its user's other id.
fn of_scattered(mut command: Command) -> Command {
    match &mut command {
        Command::AddAccounts(accounts) => {
            let mut all = accounts.to_vec();
            all.iter_mut()
                .for_each(|account| account.uid = scattered(account.uid));
            *accounts = all.into();
        }
        Command::Place(Place { uid, .. }) | Command::Cancel { uid, .. } => *uid = scattered(*uid),
        _ => {}
    }
    command
}

fn exchange() -> Exchange {
    let setup = setup(SymbolType::CurrencyPair, USERS);
    let setup: Vec<Command> = setup.into_iter().map(of_scattered).collect();
    Exchange::of(&setup)
}

/// An order that rests, and its cancel.
fn place_cancel() -> Work {
    let mut exchange = exchange();
    let mut next = 0;
    rounds(move |_| {
        exchange.apply(&of_scattered(ask(next)));
        exchange.apply(&of_scattered(cancel_of(next)));
        next += 1;
    })
}

/// A bid that takes this many makers whole.
fn sweep(order_type: OrderType, makers: i64) -> Work {
    let mut exchange = exchange();
    let all = ROUNDS * makers as u64;
    (0..all).for_each(|number| exchange.apply(&of_scattered(ask(number))));
    let mut next = all;
    rounds(move |_| {
        let taker = Place {
            order_type,
            ..place(next, Action::Bid, RESERVE, makers)
        };
        exchange.apply(&of_scattered(Command::Place(taker)));
        assert_eq!(exchange.events.len(), makers as usize);
        next += 1;
    })
}
