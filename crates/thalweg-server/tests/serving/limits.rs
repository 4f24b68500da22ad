//! Limits of the configuration, and those that an administrator sets.

use thalweg_exchange::codec::session::Ending;
use thalweg_exchange::{Action, Command, ResultCode, UserId, UserLimits};

use crate::client::{order, submit_of};
use crate::house::{House, symbols};

/// How many orders user 1 may have, of three.
fn taken(house: &House) -> usize {
    let (mut client, welcome) = house.trade(1);
    let after = welcome.last_executed.0;
    let mut results = Vec::new();
    for at in 1..=3 {
        client.submit(
            after + at,
            &order(1, (after + at) as i64, Action::Bid, 10, 1),
        );
        results.push(client.answer().result);
    }
    let cancel_all = Command::cancel_all(Some(UserId(1)), None);
    client.submit(after + 4, &cancel_all);
    assert_eq!(client.answer().result, ResultCode::Success);
    let is_taken = |result: &&ResultCode| **result == ResultCode::Success;
    results.iter().filter(is_taken).count()
}

#[test]
fn an_administrators_limit_outlives_a_start_with_another_in_the_configuration() {
    let mut house = House::with_market(|config| config.sessions.open_orders_max = 1);
    assert_eq!(taken(&house), 1);
    house.stop();
    house.start();
    assert_eq!(taken(&house), 1);
    let (mut admin, welcome) = house.admin();
    let limits = Some(UserLimits {
        open_orders: 2,
        ..UserLimits::NONE
    });
    let sequence = welcome.last_executed.0 + 1;
    admin.submit(sequence, &Command::SetLimits { uid: None, limits });
    admin.succeeds(sequence);
    house.stop();
    house.start();
    assert_eq!(taken(&house), 2);
}

/// A batch of so many symbols, none of which is there.
fn batch(count: i32) -> Command {
    let ids: Vec<i32> = (1_000..1_000 + count).collect();
    symbols(&ids)
}

#[test]
fn a_frame_of_an_administrator_may_be_as_long_as_the_welcome_says() {
    let house = House::new(|_| ());
    let (mut admin, welcome) = house.admin();
    let max = welcome.frame_bytes_max as usize;
    let bytes_of = |count| submit_of(1, &batch(count)).len();
    let each = bytes_of(2) - bytes_of(1);
    let most = ((max - bytes_of(0)) / each) as i32;
    assert!(bytes_of(most) <= max && max < bytes_of(most + 1));
    admin.submit(1, &batch(most));
    admin.succeeds(1);
    admin.write(&submit_of(2, &batch(most + 1)));
    let (why, text) = admin.bye();
    assert_eq!(why, Ending::FrameTooLong);
    assert!(text.ends_with(&format!("the limit is {max}")), "{text}");
}

#[test]
fn a_user_has_as_many_open_orders_as_the_default_says() {
    let default = thalweg_server::config::Config::default()
        .sessions
        .open_orders_max;
    let house = House::with_market(|config| config.sessions.open_orders_max = default);
    let (mut client, _) = house.trade(1);
    for id in 1..=u64::from(default) {
        client.submit(id, &order(1, id as i64, Action::Bid, 10, 1));
        client.succeeds(id);
    }
    let next = u64::from(default) + 1;
    client.submit(next, &order(1, next as i64, Action::Bid, 10, 1));
    assert_eq!(client.answer().result, ResultCode::RiskTooManyOrders);
    // Those of others are not counted.
    let (mut other, _) = house.trade(2);
    other.submit(1, &order(2, 1, Action::Bid, 10, 1));
    other.succeeds(1);
}
