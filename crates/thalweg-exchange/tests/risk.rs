//! The promises of the risk check: refusals and bounds.

use thalweg_exchange::report::currency_totals;
use thalweg_exchange::{
    AccountSpec, Action, AdjustmentKind, Command, CurrencyId, OrderId, OrderType, Place,
    ResultCode, Rules, State, SymbolId, SymbolSpec, SymbolType, UserId,
};

use crate::one_state::{answers, done, run, text};

const BASE: CurrencyId = CurrencyId(10);
const QUOTE: CurrencyId = CurrencyId(20);
const SYMBOL: SymbolId = SymbolId(1);

fn spec(taker_fee: i64, maker_fee: i64) -> SymbolSpec {
    SymbolSpec::pair(SYMBOL, BASE, QUOTE)
        .with_scales(5, 2)
        .with_fees(taker_fee, maker_fee)
}

/// A market with users 1 and 2, who have `money` of both currencies.
fn market(rules: Rules, spec: SymbolSpec, money: i64) -> State {
    let mut state = State::new(rules);
    let balances = vec![(BASE, money), (QUOTE, money)];
    let account = |uid| AccountSpec::new(UserId(uid), balances.clone());
    for command in [
        Command::AddSymbols([spec].into()),
        Command::AddAccounts([account(1), account(2)].into()),
    ] {
        done(&mut state, &command);
    }
    state
}

fn order(uid: i64, order_type: OrderType, action: Action, price: i64, size: i64) -> Command {
    Command::Place(
        Place::limit((UserId(uid), OrderId(uid)), SYMBOL, action, (price, size))
            .with_type(order_type),
    )
}

fn moved(uid: i64, price: i64) -> Command {
    Command::move_to(UserId(uid), SYMBOL, OrderId(uid), price)
}

/// Budgets without bounds, so that a seller may lose by one.
const LOOSE: Rules = Rules {
    bound_budgets: false,
    ..Rules::MENDED
};

#[test]
fn a_maker_fee_over_the_taker_fee_costs_the_maker_and_is_refused_when_mended() {
    let mut state = State::default();
    let add = Command::AddSymbols([spec(3, 4)].into());
    answers(&mut state, &add, ResultCode::SymbolMakerFeeOverTakerFee);
    assert!(state.matching.book(SYMBOL).is_none());

    let mut state = market(Rules::REFERENCE, spec(3, 9), 1_000);
    let bid = order(1, OrderType::Gtc, Action::Bid, 10, 4);
    done(&mut state, &bid);
    let before = state.risk.balance(UserId(1), QUOTE);
    let ask = order(2, OrderType::Ioc, Action::Ask, 10, 4);
    done(&mut state, &ask);
    assert_eq!(
        state.risk.balance(UserId(1), QUOTE),
        before.map(|money| money - 4 * 6)
    );
}

#[test]
fn a_budget_ask_costs_its_owner_the_fees_that_its_budget_does_not_cover() {
    let mut state = market(LOOSE, spec(7, 3), 1_000);
    run(&mut state, &order(1, OrderType::Gtc, Action::Bid, 1, 8));
    let before = state.risk.balance(UserId(2), QUOTE);
    let ask = order(2, OrderType::FokBudget, Action::Ask, 8, 8);
    done(&mut state, &ask);
    assert_eq!(
        state.risk.balance(UserId(2), QUOTE),
        before.map(|money| money + 8 * 2 - 8 * 7)
    );
}

#[test]
fn an_ask_moved_under_the_fee_is_refused_when_mended() {
    let ask = order(2, OrderType::Gtc, Action::Ask, 50, 4);
    let mut state = market(Rules::REFERENCE, spec(7, 3), 1_000);
    run(&mut state, &ask);
    done(&mut state, &moved(2, 4));
    done(&mut state, &moved(2, 3));

    let mut state = market(Rules::default(), spec(7, 3), 1_000);
    run(&mut state, &ask);
    let under = ResultCode::MatchingMoveFailedPriceLowerThanFee;
    answers(&mut state, &moved(2, 3), under);
    answers(&mut state, &moved(2, 0), ResultCode::RiskPriceNotPositive);
    done(&mut state, &moved(2, 4));
    let unknown = moved(1, 0);
    answers(&mut state, &unknown, ResultCode::MatchingUnknownOrderId);
}

#[test]
fn symbols_that_make_no_sense_are_refused_with_their_whole_batch() {
    for wrong in [
        SymbolSpec {
            base_scale: 0,
            ..spec(0, 0)
        },
        SymbolSpec {
            quote_scale: -1,
            ..spec(0, 0)
        },
        SymbolSpec {
            margin_sell: -1,
            ..spec(0, 0)
        },
        spec(-1, -2),
    ] {
        let mut state = State::new(Rules::REFERENCE);
        let good = SymbolSpec {
            id: SymbolId(2),
            ..spec(0, 0)
        };
        let add = Command::AddSymbols([good, wrong].into());
        assert_eq!(
            run(&mut state, &add),
            ResultCode::SymbolInvalidSpec,
            "{wrong:?}"
        );
        assert!(state.matching.books().is_empty());
    }
}

#[test]
fn what_could_leave_64_bits_is_refused_whole() {
    const OVERFLOW: ResultCode = ResultCode::RiskArithmeticOverflow;
    let mut state = market(Rules::default(), spec(7, 3), i64::MAX / 2);
    let before = text(&state);
    let deposit = |amount, kind| Command::Balance {
        uid: UserId(1),
        currency: QUOTE,
        amount,
        transaction_id: i64::MAX,
        kind,
    };
    let newcomer = |uid, amount| AccountSpec::new(UserId(uid), vec![(QUOTE, amount)]);
    for command in [
        order(1, OrderType::Gtc, Action::Bid, i64::MAX, 1),
        order(1, OrderType::Gtc, Action::Bid, 1, i64::MAX),
        order(1, OrderType::FokBudget, Action::Bid, i64::MAX, 1),
        order(1, OrderType::FokBudget, Action::Bid, 1, i64::MAX / 6),
        order(1, OrderType::Gtc, Action::Ask, i64::MAX, 1),
        order(1, OrderType::Gtc, Action::Ask, 10, i64::MAX / 4),
        deposit(2, AdjustmentKind::Adjustment),
        deposit(2, AdjustmentKind::Suspend),
        Command::AddAccounts([newcomer(8, 1), newcomer(9, 1)].into()),
    ] {
        answers(&mut state, &command, OVERFLOW);
        assert_eq!(text(&state), before);
    }
    let ok = Command::AddAccounts([newcomer(8, 1), newcomer(8, 1), newcomer(1, 9)].into());
    done(&mut state, &ok);
    for total in currency_totals(&state) {
        assert_eq!(total.sum(), 0);
    }
}

#[test]
fn a_loss_that_would_let_the_rest_grow_over_64_bits_is_refused() {
    // Everything that fits is deposited; if a seller could fall below zero, fees would grow over.
    let mut state = market(LOOSE, spec(7, 3), i64::MAX / 2);
    let all = Command::deposit(UserId(1), QUOTE, 1, i64::MAX);
    done(&mut state, &all);
    let ask = order(2, OrderType::FokBudget, Action::Ask, 8, 8);
    answers(&mut state, &ask, ResultCode::RiskArithmeticOverflow);
    let ask = order(2, OrderType::FokBudget, Action::Ask, 28, 8);
    let rejected = ResultCode::MatchingRejectedFillOrKill;
    answers(&mut state, &ask, rejected);
}

/// A market where `room` more of the quote currency fits.
fn market_with_room(rules: Rules, spec: SymbolSpec, room: i64) -> State {
    let mut state = market(rules, spec, 1_000);
    let deposit = AccountSpec::new(UserId(3), vec![(QUOTE, i64::MAX - 2_000 - room)]);
    done(&mut state, &Command::AddAccounts([deposit].into()));
    state
}

#[test]
fn the_room_for_losses_is_exact_and_shrinks_with_balances_below_zero() {
    let sell = order(2, OrderType::FokBudget, Action::Ask, 8, 8); // loses 8·7 − 8·2 = 40
    for (room, expected) in [
        (39, ResultCode::RiskArithmeticOverflow),
        (40, ResultCode::Success),
    ] {
        let mut state = market_with_room(LOOSE, spec(7, 3), room);
        run(&mut state, &order(1, OrderType::Gtc, Action::Bid, 1, 50));
        answers(&mut state, &sell, expected);
    }
    // The seller has 1,000, so that only what is lost below zero takes room, and stays taken.
    let mut state = market_with_room(LOOSE, spec(7, 3), 60);
    run(&mut state, &order(1, OrderType::Gtc, Action::Bid, 1, 50));
    run(&mut state, &order(2, OrderType::Ioc, Action::Bid, 1, 1));
    let withdraw = Command::deposit(UserId(2), QUOTE, -990, i64::MAX);
    done(&mut state, &withdraw);
    let refill = AccountSpec::new(UserId(4), vec![(QUOTE, 990)]);
    done(&mut state, &Command::AddAccounts([refill].into()));
    done(&mut state, &sell);
    assert_eq!(state.risk.balance(UserId(2), QUOTE), Some(-30));
    answers(&mut state, &sell, ResultCode::RiskArithmeticOverflow);
}

#[test]
fn the_room_that_quirks_of_the_reference_take_is_taken_for_good() {
    const OVERFLOW: ResultCode = ResultCode::RiskArithmeticOverflow;
    // A maker fee 6 above the taker fee: 24 for four lots, for each of the orders; and as much
    // again, as that may be owed while it is reserved.
    let mut state = market_with_room(Rules::REFERENCE, spec(3, 9), 2 * 48 - 1);
    let bid = |uid| order(uid, OrderType::Gtc, Action::Bid, 1, 4);
    done(&mut state, &bid(1));
    answers(&mut state, &bid(2), OVERFLOW);
    // An ask moved to −3: four lots may each lose 3·2 and a fee of 7, and one for good measure.
    for (room, expected) in [(2 * 56 - 1, OVERFLOW), (2 * 56, ResultCode::Success)] {
        let mut state = market_with_room(Rules::REFERENCE, spec(7, 3), room);
        run(&mut state, &order(1, OrderType::Gtc, Action::Ask, 50, 4));
        answers(&mut state, &moved(1, -3), expected);
    }
    // A bid at a price below zero is paid for resting: two lots of 6·2 and 11.
    for (room, expected) in [(2 * 46 - 1, OVERFLOW), (2 * 46, ResultCode::Success)] {
        let mut state = market_with_room(Rules::REFERENCE, spec(7, 3), room);
        let bid = order(1, OrderType::Gtc, Action::Bid, -3, 2);
        answers(&mut state, &bid, expected);
    }
}

#[test]
fn symbols_that_cannot_be_traded_are_refused_with_a_code() {
    let of_type = |symbol_type| spec(0, 0).with_type(symbol_type);
    let bid = order(1, OrderType::Gtc, Action::Bid, 1, 1);
    for (margin, symbol_type, expected) in [
        (
            true,
            SymbolType::Futures,
            ResultCode::SymbolWithoutPriceBand,
        ),
        (false, SymbolType::Futures, ResultCode::InvalidSymbol),
        (true, SymbolType::Option, ResultCode::RiskNsf),
        (false, SymbolType::Option, ResultCode::InvalidSymbol),
    ] {
        let rules = Rules::default().with_margin_trading(margin);
        let mut state = market(rules, of_type(symbol_type), 100);
        assert_eq!(run(&mut state, &bid), expected, "{symbol_type:?}");
        answers(&mut state, &moved(2, 2), ResultCode::MatchingUnknownOrderId);
    }
}

#[test]
fn a_budget_that_is_filled_in_part_gives_back_exactly_the_rest() {
    // 4 lots at 5 and 4 at 8, a scale of 2, a taker fee of 7 a lot.
    let mut state = market(Rules::default(), spec(7, 3), 1_000);
    for (id, price) in [(8, 5), (9, 8)] {
        let ask =
            Place::limit((UserId(2), OrderId(id)), SYMBOL, Action::Ask, (price, 4)).with_reserve(0);
        done(&mut state, &Command::Place(ask));
    }
    for (budget, bought, cost) in [(43, 6, 36), (17, 2, 16), (7, 0, 0)] {
        let before = state.risk.balance(UserId(1), QUOTE).expect("a user");
        let bid = order(1, OrderType::IocBudget, Action::Bid, budget, 9);
        done(&mut state, &bid);
        let paid = before - state.risk.balance(UserId(1), QUOTE).expect("a user");
        assert_eq!(paid, cost * 2 + bought * 7, "{budget}");
    }
    // Fill or kill: all within the limit, or nothing.
    let before = state.risk.balance(UserId(1), QUOTE);
    let bid = order(1, OrderType::Fok, Action::Bid, 90, 1);
    let rejected = ResultCode::MatchingRejectedFillOrKill;
    answers(&mut state, &bid, rejected);
    assert_eq!(state.risk.balance(UserId(1), QUOTE), before);
    for total in currency_totals(&state) {
        assert_eq!(total.sum(), 0);
    }
}

/// Under the quirk that rejects it always: its price came back once per lot.
#[test]
fn a_rejected_budget_order_gets_back_what_it_held() {
    let rules = Rules {
        refuse_rejected: true,
        ..Rules::REFERENCE
    };
    let balance = |state: &State| state.risk.balance(UserId(1), QUOTE);
    for (budget, size) in [(43, 9), (5, 1), (-7, 2), (3, 0)] {
        let mut state = market(rules, spec(2, 5), 1_000);
        let before = balance(&state);
        let bid = order(1, OrderType::IocBudget, Action::Bid, budget, size);
        done(&mut state, &bid);
        assert_eq!(balance(&state), before, "{size} for {budget}");
        let resting = order(1, OrderType::Gtc, Action::Bid, 5, 1);
        done(&mut state, &resting);
        let before = balance(&state);
        let code = run(&mut state, &bid);
        if size != 0 {
            assert_eq!(code, ResultCode::MatchingRejectedDuplicateId);
        }
        assert_eq!(
            balance(&state),
            before,
            "{size} for {budget}, its id in use"
        );
    }
}

#[test]
fn a_suspended_user_neither_places_nor_moves_when_mended() {
    let uid = UserId(1);
    for (rules, place, shift) in [
        (Rules::REFERENCE, ResultCode::Success, ResultCode::Success),
        (
            Rules::default(),
            ResultCode::AuthUserSuspended,
            ResultCode::AuthUserSuspended,
        ),
    ] {
        let mut state = market(rules, spec(0, 0), 10);
        let cancel = Command::cancel(uid, SYMBOL, OrderId(9));
        for command in [
            order(1, OrderType::Gtc, Action::Bid, 5, 1),
            Command::Place(
                Place::limit((uid, OrderId(9)), SYMBOL, Action::Ask, (7, 2)).with_reserve(0),
            ),
            Command::Suspend { uid },
        ] {
            done(&mut state, &command);
        }
        // The record is gone, the orders rest: the owner counts as suspended.
        assert!(state.risk.user(uid).is_none());
        answers(&mut state, &moved(1, 4), shift);
        // Money comes back, and the record with it.
        done(&mut state, &cancel);
        answers(
            &mut state,
            &order(1, OrderType::Ioc, Action::Ask, 9, 1),
            place,
        );
        answers(&mut state, &moved(1, 3), shift);
        done(&mut state, &Command::Resume { uid });
        done(&mut state, &moved(1, 2));
    }
}
