//! Limits of the configuration, and those that an administrator sets.

use thalweg_exchange::{Action, Command, ResultCode, UserId, UserLimits};

use crate::client::order;
use crate::house::House;

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
