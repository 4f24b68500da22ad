//! Attacks that hostile users could once make. Each test failed before it was mended.

use thalweg_exchange::{Action, Command, OrderType, ResultCode, Rules, UserId};

use crate::money::market::{
    FUTURES, GOODS, MONEY, Market, PAIR, buy, cancelled, iceberg, moved, of_type, sell,
};

const SUCCESS: ResultCode = ResultCode::Success;
const NSF: ResultCode = ResultCode::RiskNsf;

/// 1,000 lots that show one, moved up and cancelled: what was reserved for 999 lots drifted away,
/// and a trade left 64 bits. Under every rule set.
#[test]
fn a_moved_iceberg_is_reserved_for_with_all_its_lots() {
    for rules in [Rules::default(), Rules::REFERENCE] {
        let mut market = Market::new(rules);
        market.pay(1, MONEY, 1_000_000_000);
        market.pay(2, MONEY, 1_000_000_000);
        market.band(FUTURES, 1, 9_000_000_000_000_000);
        for id in 0..8 {
            market.run(&iceberg(&buy(1, id, FUTURES, 1, 1_000), 1));
            market.run(&moved(1, id, FUTURES, 9_000_000_000_000_000));
            market.run(&cancelled(1, id, FUTURES));
        }
        for round in 0..3 {
            let price = 9_000_000_000_000_000;
            market.run(&buy(1, 100 + round, FUTURES, price, 1_000));
            market.run(&sell(2, 100 + round, FUTURES, price, 1_000));
        }
        market.done(&Command::Nop);
    }
}

/// The loser of a trade far from the market had margin for a lot, and nothing else.
#[test]
fn two_users_make_no_money_between_them() {
    let mut market = Market::new(Rules::default());
    market.pay(1, MONEY, 100);
    market.pay(2, MONEY, 100);
    for (low, high) in [(1, 1_000_000_000_000_000), (1, 68_000_000_000), (1, 1_000)] {
        market.band(FUTURES, low, high);
        for (buyer, seller, price) in [(1, 2, 1), (2, 1, high), (1, 2, high), (2, 1, 1)] {
            market.run(&buy(buyer, 7, FUTURES, price, 1));
            market.run(&sell(seller, 7, FUTURES, price, 1));
            market.run(&cancelled(buyer, 7, FUTURES));
            market.run(&cancelled(seller, 7, FUTURES));
        }
        let both = market.withdrawable(1, MONEY) + market.withdrawable(2, MONEY);
        assert!(both <= 200, "{both} of 200 in a band up to {high}");
    }
}

#[test]
fn a_budget_ask_never_pays_more_fees_than_it_brings_in() {
    for order_type in [OrderType::IocBudget, OrderType::FokBudget] {
        let mut market = Market::new(Rules::default());
        market.pay(1, MONEY, 11_000);
        market.pay(2, GOODS, 1_000);
        market.done(&buy(1, 1, PAIR, 1, 1_000));
        market.run(&of_type(&sell(2, 2, PAIR, 10, 1_000), order_type));
        assert_eq!(market.balance(2, MONEY), 0, "{order_type:?}");
        assert_eq!(market.balance(2, GOODS), 1_000, "{order_type:?}");
    }
}

/// Bought at 100: with an empty book, margin counted as profit; with a bid at 190 of a friend
/// without money, 90 a lot could be spent.
#[test]
fn profit_that_was_not_paid_in_pays_for_nothing() {
    let mut market = Market::new(Rules::default());
    market.band(FUTURES, 50, 200);
    for uid in 1..4 {
        market.pay(uid, MONEY, 2_000);
    }
    market.done(&buy(1, 1, FUTURES, 100, 10));
    market.done(&sell(2, 1, FUTURES, 100, 10));
    let locked = |market: &Market| 2_000 - market.withdrawable(1, MONEY);
    let before = locked(&market);
    assert!(before >= 500, "{before} for a loss of 500");
    market.done(&buy(3, 2, FUTURES, 190, 1));
    assert_eq!(locked(&market), before);
    assert_eq!(market.run(&buy(1, 9, PAIR, 1_500, 1)), NSF);
    // The loser's deposit is the winner's.
    market.done(&cancelled(3, 2, FUTURES));
    market.done(&sell(1, 3, FUTURES, 150, 10));
    market.done(&buy(2, 3, FUTURES, 150, 10));
    assert_eq!(market.withdrawable(1, MONEY), 2_500);
    assert_eq!(market.withdrawable(2, MONEY), 1_500);
}

#[test]
fn an_order_of_one_keeps_no_other_from_paying_in() {
    let mut market = Market::new(Rules::default());
    market.pay(1, MONEY, 1_000_000);
    market.band(FUTURES, 1, 68_000_000_000);
    market.run(&buy(1, 1, FUTURES, i64::MAX / 2, 1));
    market.run(&buy(1, 2, FUTURES, 68_000_000_000, 1));
    market.run(&buy(1, 3, FUTURES, 1, 1 << 24));
    assert_eq!(market.pay(2, MONEY, i64::MAX - 1_000_000), SUCCESS);
    assert_eq!(market.withdrawable(2, MONEY), i64::MAX - 1_000_000);
}

#[test]
fn the_budget_of_a_seller_is_a_floor() {
    let mut market = Market::new(Rules::default());
    market.pay(1, MONEY, 1_000_000);
    market.pay(2, GOODS, 100);
    market.done(&buy(1, 1, PAIR, 100, 4));
    market.done(&buy(1, 2, PAIR, 60, 4));
    let fok = |budget, size| of_type(&sell(2, 5, PAIR, budget, size), OrderType::FokBudget);
    let ioc = |budget, size| of_type(&sell(2, 5, PAIR, budget, size), OrderType::IocBudget);
    // 4 at 100 and 2 at 60 bring in 520: 86 and more a lot.
    market.run(&fok(521, 6));
    assert_eq!(market.balance(2, GOODS), 100);
    // 5 of 8 lots for 720, 90 a lot, bring in 460; a sixth would make it 520, which is below 540.
    market.run(&ioc(720, 8));
    assert_eq!(market.balance(2, GOODS), 95);
    assert_eq!(market.balance(2, MONEY), 460 - 50);
    market.run(&ioc(61 * 3, 3));
    assert_eq!(market.balance(2, GOODS), 95);
    market.run(&fok(60 * 3, 3));
    assert_eq!(market.balance(2, GOODS), 92);
}

#[test]
fn budget_orders_obey_the_price_band() {
    for order_type in [OrderType::IocBudget, OrderType::FokBudget] {
        let mut market = Market::new(Rules::default());
        market.pay(1, MONEY, 1_000_000);
        market.pay(1, GOODS, 1_000);
        market.pay(2, MONEY, 1_000_000);
        market.pay(2, GOODS, 1_000);
        market.done(&buy(1, 1, PAIR, 20, 5));
        market.done(&sell(1, 2, PAIR, 900, 5));
        market.band(PAIR, 50, 200);
        market.run(&of_type(&sell(2, 3, PAIR, 100, 5), order_type));
        market.run(&of_type(&buy(2, 4, PAIR, 10_000, 5), order_type));
        assert_eq!(market.balance(2, MONEY), 1_000_000, "{order_type:?}");
        assert_eq!(market.balance(2, GOODS), 1_000, "{order_type:?}");
    }
}

#[test]
fn a_user_who_comes_back_has_no_old_deposits_again() {
    let deposit = Command::deposit(UserId(1), MONEY, 500, 7_000_000_000);
    for back in [
        Command::Resume { uid: UserId(1) },
        Command::AddUser { uid: UserId(1) },
    ] {
        let mut market = Market::new(Rules::default());
        market.done(&deposit);
        market.done(&Command::deposit(UserId(1), MONEY, -500, 7_000_000_001));
        market.done(&Command::Suspend { uid: UserId(1) });
        market.done(&back);
        assert_eq!(
            market.run(&deposit),
            ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedMany,
            "{back:?}"
        );
    }
}

#[test]
fn no_user_can_take_another_users_order_ids() {
    let mut market = Market::new(Rules::default());
    market.pay(1, MONEY, 1_000_000);
    market.pay(2, MONEY, 1_000_000);
    for id in 0..100 {
        market.done(&buy(1, id, PAIR, 1, 1));
    }
    market.done(&buy(2, 50, PAIR, 2, 1));
    let best = market
        .state
        .matching
        .book(PAIR)
        .expect("it is there")
        .best(Action::Bid);
    assert_eq!(best.map(|level| level.price), Some(2));
    market.done(&moved(2, 50, PAIR, 1));
    market.done(&cancelled(2, 50, PAIR));
    assert_eq!(
        market.run(&cancelled(2, 51, PAIR)),
        ResultCode::MatchingUnknownOrderId
    );
    market.done(&cancelled(1, 50, PAIR));
}

/// A user who had bought as many lots as a user may have could place nothing, and so never close.
#[test]
fn a_position_of_any_size_can_be_closed() {
    let most = thalweg_exchange::risk::FUTURES_LOTS_MAX;
    let mut market = Market::new(Rules::default());
    market.band(FUTURES, 10, 12);
    for uid in 1..4 {
        market.pay(uid, MONEY, 1 << 40);
    }
    market.done(&buy(1, 1, FUTURES, 11, most));
    market.done(&sell(2, 1, FUTURES, 11, most));
    assert_eq!(
        market.run(&buy(1, 2, FUTURES, 11, 1)),
        ResultCode::RiskTooManyLots
    );
    market.done(&sell(1, 3, FUTURES, 12, most));
    market.done(&buy(3, 3, FUTURES, 12, most));
    market.done(&buy(2, 4, FUTURES, 10, most));
    market.done(&sell(3, 4, FUTURES, 10, most));
    for user in market.state.risk.users() {
        assert_eq!(user.positions(), [], "{}", user.uid);
    }
}

/// An order remembers where its owner was kept, and another user is there now.
#[test]
fn who_gets_the_place_of_a_removed_user_gets_nothing_of_his_orders() {
    for (comes_back, is_cancelled) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut market = Market::new(Rules::default());
        let [owner, other] = [2, 50].map(UserId);
        market.pay(1, MONEY, 10_000);
        market.pay(owner.0, GOODS, 5);
        market.done(&sell(owner.0, 7, PAIR, 100, 5));
        // All that the owner has is held for the order.
        market.done(&Command::Suspend { uid: owner });
        market.done(&Command::AddUser { uid: other });
        market.pay(other.0, GOODS, 1);
        market.pay(other.0, MONEY, 1);
        if comes_back {
            market.done(&Command::AddUser { uid: owner });
        }
        market.done(&match is_cancelled {
            true => cancelled(owner.0, 7, PAIR),
            false => buy(1, 8, PAIR, 100, 5),
        });
        let has = |uid: UserId| [GOODS, MONEY].map(|currency| market.balance(uid.0, currency));
        let expected = if is_cancelled {
            [5, 0]
        } else {
            [0, 5 * (100 - 1)]
        };
        assert_eq!([has(owner), has(other)], [expected, [1, 1]]);
    }
}
