//! Futures: margin, mended quirks, bounds, waiting, and reports.

use thalweg_exchange::report::{book_report, currency_totals, open_interest, orders_of};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Events, OrderId, Place, ResultCode, Rules, State,
    SymbolId, SymbolSpec, SymbolType, UserId, WORK_MAX, apply,
};

const QUOTE: CurrencyId = CurrencyId(20);
const PAIR: SymbolId = SymbolId(1);
const FUTURES: SymbolId = SymbolId(2);

/// Margin is asked for against the best prices, as the reference does.
const MARGIN: Rules = Rules {
    cover_futures: false,
    ..Rules::MENDED
};

/// A pair and a futures contract in one currency; users 1 to 3 with `money` of it.
fn market(rules: Rules, money: i64, margin: i64) -> State {
    let mut state = State::new(rules);
    let pair = SymbolSpec::pair(PAIR, CurrencyId(10), QUOTE);
    let futures = SymbolSpec {
        id: FUTURES,
        symbol_type: SymbolType::Futures,
        margin_buy: margin,
        margin_sell: margin,
        ..pair
    };
    let account = |uid| AccountSpec::new(UserId(uid), vec![(QUOTE, money)]);
    run(&mut state, &Command::AddSymbols([pair, futures].into()));
    let accounts = (1..4).map(account).collect();
    let added = run(&mut state, &Command::AddAccounts(accounts));
    assert_eq!(added, ResultCode::Success);
    state
}

fn run(state: &mut State, command: &Command) -> ResultCode {
    let result = apply(state, command, &mut Events::new());
    for total in currency_totals(state) {
        assert_eq!(total.sum(), 0, "{command:?}: {total:?}");
    }
    result
}

#[track_caller]
fn done(state: &mut State, command: &Command) {
    assert_eq!(run(state, command), ResultCode::Success, "{command:?}");
}

fn order(uid: i64, symbol: SymbolId, action: Action, price: i64, size: i64) -> Command {
    Command::Place(Place::limit(
        (UserId(uid), OrderId(uid)),
        symbol,
        action,
        (price, size),
    ))
}

fn withdraw(uid: i64, amount: i64, transaction_id: i64) -> Command {
    Command::deposit(UserId(uid), QUOTE, -amount, i64::MAX - 100 + transaction_id)
}

#[test]
fn a_withdrawal_leaves_the_margin_only_when_mended() {
    const NSF: ResultCode = ResultCode::UserMgmtAccountBalanceAdjustmentNsf;
    for (rules, over) in [(Rules::REFERENCE, ResultCode::Success), (MARGIN, NSF)] {
        let mut state = market(rules, 1_000, 100);
        run(&mut state, &order(1, FUTURES, Action::Bid, 50, 6));
        assert_eq!(run(&mut state, &withdraw(1, 401, 1)), over);
        assert_eq!(run(&mut state, &withdraw(2, 1_001, 1)), NSF);
    }
    let mut state = market(MARGIN, 1_000, 100);
    run(&mut state, &order(1, FUTURES, Action::Bid, 50, 6));
    done(&mut state, &withdraw(1, 400, 1));
    assert_eq!(run(&mut state, &withdraw(1, 1, 2)), NSF);
}

#[test]
fn profit_covers_a_pair_order_and_losses_block_it() {
    let mut state = market(MARGIN, 1_000, 10);
    run(&mut state, &order(1, FUTURES, Action::Bid, 100, 10));
    run(&mut state, &order(2, FUTURES, Action::Ask, 100, 10));
    run(&mut state, &order(3, FUTURES, Action::Bid, 190, 1));
    // Bought at 100, the best bid is 190: profit 900, margin 100.
    let bid = |price| order(1, PAIR, Action::Bid, price, 1);
    assert_eq!(run(&mut state, &bid(1_801)), ResultCode::RiskNsf);
    done(&mut state, &bid(1_800));
    assert_eq!(state.risk.balance(UserId(1), QUOTE), Some(-800));
    assert_eq!(
        run(&mut state, &withdraw(1, 1, 1)),
        ResultCode::UserMgmtAccountBalanceAdjustmentNsf
    );
    // Sold at 100, and there is no ask: the price is unknown, and margin counts for the missing
    // profit.
    let suspended = run(&mut state, &Command::Suspend { uid: UserId(2) });
    assert_eq!(
        suspended,
        ResultCode::UserMgmtUserNotSuspendableHasPositions
    );
    let interest = open_interest(&state);
    assert_eq!(
        (interest[0].symbol, interest[0].long, interest[0].short),
        (FUTURES, 10, 10)
    );
    let user = state.risk.user(UserId(1));
    assert_eq!(user.map(|user| user.positions().len()), Some(1));
    let resting = orders_of(&state, UserId(1)).resting;
    assert_eq!(resting.len(), 1);
    assert_eq!((resting[0].0, resting[0].1.price), (PAIR, 1_800));
    let book = book_report(&state, FUTURES, 1).expect("a symbol");
    assert_eq!((book.asks.len(), book.bids[0].price), (0, 190));
    assert!(book_report(&state, SymbolId(9), 1).is_none());
}

#[test]
fn what_futures_could_move_beyond_64_bits_is_refused_and_room_comes_back() {
    const OVERFLOW: ResultCode = ResultCode::RiskArithmeticOverflow;
    let mut state = market(MARGIN, 1_000, 0);
    // Deposits are 3,000; a resting lot takes its price, and one more.
    let most = i64::MAX - 3_000 - 1;
    let big = |price| order(1, FUTURES, Action::Ask, price, 1);
    assert_eq!(run(&mut state, &big(most + 1)), OVERFLOW);
    done(&mut state, &big(most));
    assert_eq!(
        run(&mut state, &order(2, FUTURES, Action::Bid, 5, 1)),
        OVERFLOW
    );
    let shift = |price| Command::move_to(UserId(1), FUTURES, OrderId(1), price);
    assert_eq!(run(&mut state, &shift(10)), OVERFLOW);
    let cancel = Command::cancel(UserId(1), FUTURES, OrderId(1));
    done(&mut state, &cancel);
    for (price, moved) in [(most / 2, 7), (most / 2, most / 2 - 9)] {
        done(&mut state, &big(price));
        done(&mut state, &shift(moved));
        done(&mut state, &cancel);
    }
    // A move needs room for its new price beside the old one: the order is not known yet.
    done(&mut state, &big(most / 2 + 1));
    assert_eq!(run(&mut state, &shift(most / 2 + 2)), OVERFLOW);
    done(&mut state, &cancel);
    // Much of it changes hands, and back.
    let much = most / 2 - 9;
    done(&mut state, &big(much));
    done(&mut state, &order(2, FUTURES, Action::Bid, much, 1));
    done(&mut state, &order(1, FUTURES, Action::Bid, 3, 1));
    done(&mut state, &order(2, FUTURES, Action::Ask, 3, 1));
    assert!(open_interest(&state).is_empty());
    let lost = state.risk.balance(UserId(2), QUOTE).expect("a user");
    assert_eq!(lost, 1_000 - (much - 3));
    assert_eq!(run(&mut state, &big(most)), OVERFLOW);
}

#[test]
fn sizes_and_margins_out_of_range_are_refused_and_change_nothing() {
    for rules in [MARGIN, Rules::REFERENCE] {
        let mut state = market(rules, 1_000, i64::MAX);
        for size in [i64::MIN, -1, 2, i64::MAX] {
            let result = run(&mut state, &order(1, FUTURES, Action::Bid, 5, size));
            assert!(result.is_refusal(), "{size}");
            assert!(
                state
                    .risk
                    .user(UserId(1))
                    .expect("a user")
                    .positions()
                    .is_empty()
            );
        }
    }
}

/// An order visits each record of its owner in futures: where work is bounded, there are 1,024.
#[test]
fn a_user_has_orders_in_as_many_futures_as_one_command_may_visit() {
    const MOST: i32 = WORK_MAX as i32;
    for rules in [Rules::default(), MARGIN, Rules::REFERENCE] {
        let mut state = market(rules, 1_000_000_000, 10);
        let futures = SymbolSpec::pair(FUTURES, CurrencyId(10), QUOTE)
            .with_type(SymbolType::Futures)
            .with_margins(10, 10);
        let ids = (100..=100 + MOST).map(SymbolId);
        let specs = ids.clone().map(|id| SymbolSpec { id, ..futures });
        let mut apply = |command: &Command| apply(&mut state, command, &mut Events::new());
        assert_eq!(
            apply(&Command::AddSymbols(specs.collect())),
            ResultCode::Success
        );
        for id in ids.clone() {
            apply(&Command::set_price_band(id, 1, 1_000));
        }
        for id in ids.clone().take(WORK_MAX) {
            assert_eq!(
                apply(&order(1, id, Action::Bid, 50, 6)),
                ResultCode::Success
            );
        }
        let (first, last) = (SymbolId(100), SymbolId(100 + MOST));
        let another = order(1, last, Action::Ask, 70, 1);
        if rules.bound_work {
            assert_eq!(apply(&another), ResultCode::RiskTooManyPositions);
            // Where there are orders, there may be more of them; others are not concerned.
            let more = Place::limit((UserId(1), OrderId(2)), first, Action::Ask, (70, 6));
            assert_eq!(apply(&Command::Place(more)), ResultCode::Success);
            assert_eq!(
                apply(&order(2, last, Action::Ask, 70, 1)),
                ResultCode::Success
            );
            for id in [1, 2].map(OrderId) {
                assert_eq!(apply(&another), ResultCode::RiskTooManyPositions);
                let cancelled = apply(&Command::cancel(UserId(1), first, id));
                assert_eq!(cancelled, ResultCode::Success);
            }
        }
        assert_eq!(apply(&another), ResultCode::Success);
        let user = state.risk.user(UserId(1)).expect("added");
        let most = if rules.bound_work {
            WORK_MAX
        } else {
            WORK_MAX + 1
        };
        assert_eq!(user.positions().len(), most);
    }
}
