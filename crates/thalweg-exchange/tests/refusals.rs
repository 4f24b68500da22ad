//! Bad input: the right code, no events, and the same state as before, by its hash; where risk
//! refuses, also by all that its text does not show. (What only matching finds out, risk may have
//! taken into account: which prices were asked for in a symbol.)

use std::sync::Arc;

use thalweg_exchange::report::state_text::{StateHash, state_text_hash};
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, Events, OrderId, Place, ResultCode,
    Rules, State, SymbolId, SymbolSpec, SymbolType, UserId, apply,
};

const PAIR: SymbolId = SymbolId(1);
const FUTURES: SymbolId = SymbolId(2);
const OPTION: SymbolId = SymbolId(3);
const BASE: CurrencyId = CurrencyId(10);
const QUOTE: CurrencyId = CurrencyId(20);
/// The deposit of user 3; the withdrawal after it has the next number.
const LAST_TRANSACTION: i64 = 50;

fn spec(id: SymbolId, symbol_type: SymbolType) -> SymbolSpec {
    SymbolSpec::pair(id, BASE, QUOTE)
        .with_scales(10, 5)
        .with_type(symbol_type)
        .with_fees(30, 20)
        .with_margins(7, 8)
}

fn place(uid: i64, symbol: SymbolId, order: i64, action: Action, price: i64, size: i64) -> Place {
    Place::limit((UserId(uid), OrderId(order)), symbol, action, (price, size))
}

fn balance(uid: i64, amount: i64, transaction_id: i64) -> Command {
    Command::deposit(UserId(uid), QUOTE, amount, transaction_id)
}

/// Two users with money, two without; an ask and a bid rest in the pair and in the
/// futures contract.
fn state(rules: Rules) -> State {
    let mut state = State::new(rules);
    let symbols = [
        spec(PAIR, SymbolType::CurrencyPair),
        spec(FUTURES, SymbolType::Futures),
        spec(OPTION, SymbolType::Option),
    ];
    let rich = |uid| AccountSpec::new(UserId(uid), vec![(BASE, 100_000), (QUOTE, 100_000)]);
    let mut commands = vec![
        Command::AddSymbols(symbols.into()),
        Command::AddAccounts([rich(1), rich(2)].into()),
        Command::AddUser { uid: UserId(3) },
        balance(3, 5, LAST_TRANSACTION),
        balance(3, -5, LAST_TRANSACTION + 1),
        Command::AddUser { uid: UserId(4) },
        Command::set_price_band(FUTURES, 1, 200),
    ];
    for symbol in [PAIR, FUTURES] {
        commands.push(Command::Place(place(1, symbol, 1, Action::Ask, 120, 5)));
        let mut bid = place(2, symbol, 2, Action::Bid, 100, 5);
        bid.reserve_price = 110;
        commands.push(Command::Place(bid));
    }
    let mut events = Events::new();
    for command in commands {
        let result = apply(&mut state, &command, &mut events);
        assert!(!result.is_refusal(), "{command:?}: {result}");
    }
    state
}

/// The hash of a state, and all of its risk part if a refusal with this code must leave that alone.
fn image(state: &State, code: ResultCode) -> (StateHash, String) {
    let is_of_risk = !code.name().starts_with("MATCHING");
    let risk = is_of_risk.then(|| format!("{:?}", state.risk));
    (state_text_hash(state), risk.unwrap_or_default())
}

/// The command is refused with this code under these rules, twice, and leaves everything as it was.
fn refused_by(rules: Rules, command: &Command, code: ResultCode) {
    let mut state = state(rules);
    let before = image(&state, code);
    let mut events = Events::new();
    for _ in 0..2 {
        let result = apply(&mut state, command, &mut events);
        assert_eq!(result, code, "{command:?}");
        assert_eq!(events, Events::new(), "{command:?}");
        assert!(
            image(&state, code) == before,
            "{command:?} changed the state"
        );
    }
}

fn refused(command: &Command, code: ResultCode) {
    refused_by(Rules::default(), command, code);
}

fn refused_place(change: impl Fn(&mut Place), code: ResultCode) {
    for action in [Action::Ask, Action::Bid] {
        let mut order = place(1, PAIR, 9, action, 110, 1);
        change(&mut order);
        refused(&Command::Place(order), code);
        let conditional = ConditionalOrder::from(order).with_trigger(115);
        refused(&Command::PlaceConditional(Arc::new(conditional)), code);
    }
}

fn cancel(uid: i64, symbol: SymbolId, order: i64) -> Command {
    Command::cancel(UserId(uid), symbol, OrderId(order))
}

fn move_to(uid: i64, symbol: SymbolId, order: i64, price: i64) -> Command {
    Command::move_to(UserId(uid), symbol, OrderId(order), price)
}

fn reduce(uid: i64, symbol: SymbolId, order: i64, by: i64) -> Command {
    Command::reduce(UserId(uid), symbol, OrderId(order), by)
}

#[test]
fn unknown_symbols_users_and_orders() {
    for symbol in [0, 7, -1, i32::MAX, i32::MIN].map(SymbolId) {
        let code = ResultCode::MatchingInvalidOrderBookId;
        refused_place(|order| order.symbol = symbol, code);
        refused(&cancel(1, symbol, 1), code);
        refused(&move_to(1, symbol, 1, 121), code);
        refused(&reduce(1, symbol, 1, 1), code);
    }
    for uid in [0, 77, -1, i64::MAX, i64::MIN] {
        let unknown = ResultCode::AuthInvalidUser;
        refused_place(|order| order.uid = UserId(uid), unknown);
        refused(&balance(uid, 5, 1), unknown);
        let code = ResultCode::UserMgmtUserNotFound;
        refused(&Command::Suspend { uid: UserId(uid) }, code);
        // An unknown user has no orders either.
        let code = ResultCode::MatchingUnknownOrderId;
        refused(&cancel(uid, PAIR, 1), code);
        refused(&move_to(uid, PAIR, 1, 121), code);
        refused(&reduce(uid, PAIR, 1, 1), code);
    }
    for symbol in [PAIR, FUTURES] {
        for order in [0, 3, -1, i64::MAX, i64::MIN] {
            let code = ResultCode::MatchingUnknownOrderId;
            refused(&cancel(1, symbol, order), code);
            refused(&move_to(1, symbol, order, 121), code);
            refused(&reduce(1, symbol, order, 1), code);
        }
        // The order of another user.
        refused(&cancel(2, symbol, 1), ResultCode::MatchingUnknownOrderId);
        refused(
            &move_to(2, symbol, 1, 121),
            ResultCode::MatchingUnknownOrderId,
        );
        refused(&reduce(2, symbol, 1, 1), ResultCode::MatchingUnknownOrderId);
    }
}

#[test]
fn sizes_and_prices_that_make_no_sense() {
    for bad in [0, -1, i64::MIN] {
        refused_place(|order| order.size = bad, ResultCode::RiskSizeNotPositive);
        let price = |order: &mut Place| (order.price, order.reserve_price) = (bad, bad);
        refused_place(price, ResultCode::RiskPriceNotPositive);
        let code = ResultCode::MatchingReduceFailedWrongSize;
        refused(&reduce(1, PAIR, 1, bad), code);
        refused(&reduce(1, FUTURES, 1, bad), code);
    }
    for huge in [i64::MAX, i64::MAX / 5 + 1] {
        let code = ResultCode::RiskArithmeticOverflow;
        refused_place(|order| order.size = huge, code);
        for price in [huge, i64::MAX] {
            let mut bid = place(1, PAIR, 9, Action::Bid, price, 1);
            refused(&Command::Place(bid), code);
            bid.size = huge;
            refused(&Command::Place(bid), code);
        }
    }
    // Large, but counted: there is too little money for it.
    let mut bid = place(1, PAIR, 9, Action::Bid, i64::MAX / 6, 1);
    refused(&Command::Place(bid), ResultCode::RiskNsf);
    bid.price = 110;
    bid.reserve_price = 109;
    refused(&Command::Place(bid), ResultCode::RiskNsf);
    // An ask that its own fee of 30 eats up: 5 is 25 of quote.
    let ask = place(1, PAIR, 9, Action::Ask, 5, 1);
    refused(&Command::Place(ask), ResultCode::RiskNsf);
}

#[test]
fn sizes_and_prices_that_make_no_sense_in_futures() {
    for action in [Action::Ask, Action::Bid] {
        for bad in [0, -1, i64::MIN] {
            let order = place(1, FUTURES, 9, action, 110, bad);
            refused(&Command::Place(order), ResultCode::RiskSizeNotPositive);
            let order = place(1, FUTURES, 9, action, bad, 1);
            refused(&Command::Place(order), ResultCode::RiskPriceOutsideBand);
        }
        let order = place(1, FUTURES, 9, action, 110, i64::MAX);
        refused(&Command::Place(order), ResultCode::RiskTooManyLots);
        let order = place(3, FUTURES, 9, action, 110, 1);
        refused(&Command::Place(order), ResultCode::RiskNsf);
        let order = place(1, OPTION, 9, action, 110, 1);
        refused(&Command::Place(order), ResultCode::RiskNsf);
    }
}

#[test]
fn moves_that_make_no_sense() {
    for bad in [0, -1, i64::MIN] {
        refused(
            &move_to(1, FUTURES, 1, bad),
            ResultCode::RiskPriceOutsideBand,
        );
        refused(&move_to(1, PAIR, 1, bad), ResultCode::RiskPriceNotPositive);
        refused(&move_to(2, PAIR, 2, bad), ResultCode::RiskPriceNotPositive);
    }
    for price in [111, i64::MAX] {
        let code = ResultCode::MatchingMoveFailedPriceOverRiskLimit;
        refused(&move_to(2, PAIR, 2, price), code);
    }
    let code = ResultCode::MatchingMoveFailedPriceLowerThanFee;
    refused(&move_to(1, PAIR, 1, 5), code);
}

#[test]
fn money_that_is_not_there_or_was_moved_before() {
    let (same, many) = (
        ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedSame,
        ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedMany,
    );
    let last = LAST_TRANSACTION + 1;
    refused(&balance(3, 5, last), same);
    refused(&balance(3, -5, last), same);
    for id in [last - 1, 0, -1, i64::MIN] {
        refused(&balance(3, 5, id), many);
    }
    let nsf = ResultCode::UserMgmtAccountBalanceAdjustmentNsf;
    refused(&balance(3, -1, last + 1), nsf);
    refused(&balance(1, -100_001, 2_000_000_000), nsf);
    let overflow = ResultCode::RiskArithmeticOverflow;
    refused(&balance(1, i64::MAX, 2_000_000_000), overflow);
    // More than all money of a currency can be, though this user has none.
    refused(&balance(3, i64::MAX, i64::MAX), overflow);
}

#[test]
fn users_that_are_there_or_not() {
    let exists = ResultCode::UserMgmtUserAlreadyExists;
    for uid in [1, 3, 4] {
        refused(&Command::AddUser { uid: UserId(uid) }, exists);
        let code = ResultCode::UserMgmtUserNotSuspended;
        refused(&Command::Resume { uid: UserId(uid) }, code);
    }
    let uid = UserId(1);
    let code = ResultCode::UserMgmtUserNotSuspendableHasPositions;
    refused(&Command::Suspend { uid }, code);
}

#[test]
fn symbols_with_impossible_terms() {
    let good = spec(SymbolId(8), SymbolType::CurrencyPair);
    let changes: [fn(&mut SymbolSpec, i64); 6] = [
        |spec, value| spec.base_scale = value,
        |spec, value| spec.quote_scale = value,
        |spec, value| spec.taker_fee = value,
        |spec, value| spec.maker_fee = value,
        |spec, value| spec.margin_buy = value,
        |spec, value| spec.margin_sell = value,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let worst_scale = if at < 2 { Some(0) } else { None };
        for value in [-1, i64::MIN].into_iter().chain(worst_scale) {
            let mut bad = spec(SymbolId(8), SymbolType::Futures);
            change(&mut bad, value);
            // One bad symbol refuses all of its batch.
            for batch in [vec![bad], vec![good, bad]] {
                let command = Command::AddSymbols(batch.into());
                refused(&command, ResultCode::SymbolInvalidSpec);
                refused_by(Rules::REFERENCE, &command, ResultCode::SymbolInvalidSpec);
            }
        }
    }
    let mut draining = good;
    draining.maker_fee = 31;
    let command = Command::AddSymbols([good, draining].into());
    refused(&command, ResultCode::SymbolMakerFeeOverTakerFee);
    draining.maker_fee = i64::MAX;
    let command = Command::AddSymbols([draining].into());
    refused(&command, ResultCode::SymbolMakerFeeOverTakerFee);
}

/// Fees and scales as large as they get: the symbol is possible, an order in it is not.
#[test]
fn orders_where_scales_and_fees_are_extreme() {
    for terms in 0..3 {
        let mut state = state(Rules::default());
        let mut symbol = spec(SymbolId(8), SymbolType::CurrencyPair);
        match terms {
            0 => symbol.base_scale = i64::MAX,
            1 => symbol.quote_scale = i64::MAX,
            _ => (symbol.taker_fee, symbol.maker_fee) = (i64::MAX, i64::MAX),
        }
        let mut events = Events::new();
        let add = Command::AddSymbols([symbol].into());
        assert_eq!(apply(&mut state, &add, &mut events), ResultCode::Success);
        let before = state_text_hash(&state);
        for action in [Action::Ask, Action::Bid] {
            for (price, size) in [(1, 1), (2, 2), (i64::MAX, 1), (1, i64::MAX)] {
                let order = place(1, symbol.id, 9, action, price, size);
                let result = apply(&mut state, &Command::Place(order), &mut events);
                let is_reason = matches!(
                    result,
                    ResultCode::RiskNsf | ResultCode::RiskArithmeticOverflow
                );
                // With a base scale of 10, an ask may well be good.
                if result == ResultCode::Success {
                    let cancelled = apply(&mut state, &cancel(1, symbol.id, 9), &mut events);
                    assert_eq!(cancelled, ResultCode::Success);
                } else {
                    assert!(is_reason, "{terms}: {order:?}: {result}");
                }
                assert_eq!(state_text_hash(&state), before, "{terms}: {order:?}");
            }
        }
    }
}

#[test]
fn commands_for_symbols_that_are_not_there() {
    let code = ResultCode::InvalidSymbol;
    for symbol in [0, 7, -1, i32::MAX, i32::MIN].map(SymbolId) {
        refused(&Command::Halt { symbol }, code);
        refused(&Command::Unhalt { symbol }, code);
        refused(&Command::RemoveSymbol { symbol }, code);
        let (low, high) = (1, 2);
        refused(&Command::SetPriceBand { symbol, low, high }, code);
    }
}
