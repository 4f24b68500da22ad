//! Fees of the value, rebates, and the account that fees are paid out of.

use thalweg_exchange::report::currency_totals;
use thalweg_exchange::snapshot::{decode_state, encode_state, state_hash};
use thalweg_exchange::{
    Command, FeeUnit, OrderType, ResultCode, Rules, SymbolId, SymbolSpec, SymbolType, UserId,
};

use crate::money::market::{BASE, Market, QUOTE, buy, cancelled, of_type, sell};
use crate::properties::commands::BEFORE_LATER_RULES;

const TRADED: SymbolId = SymbolId(7);

/// A lot is worth 3 at a price of 1.
fn terms(fee_unit: FeeUnit, taker_fee: i64, maker_fee: i64) -> SymbolSpec {
    SymbolSpec::pair(TRADED, BASE, QUOTE)
        .with_scales(2, 3)
        .with_fees(taker_fee, maker_fee)
        .with_fee_unit(fee_unit)
}

/// Users 1 to 3 have 1,000,000 of each.
fn market(spec: SymbolSpec) -> Market {
    let mut market = Market::new(Rules::default());
    market.done(&Command::AddSymbols([spec].into()));
    for uid in 1..=3 {
        for currency in [BASE, QUOTE] {
            assert_eq!(market.pay(uid, currency, 1_000_000), ResultCode::Success);
        }
    }
    market
}

/// Returns how much money a user has won.
fn won(market: &Market, uid: i64) -> i64 {
    market.balance(uid, QUOTE) - 1_000_000
}

fn fees(market: &Market) -> i64 {
    for total in currency_totals(&market.state) {
        assert_eq!(total.sum(), 0, "{total:?}");
    }
    let totals = market.state.risk.currencies();
    totals
        .iter()
        .find(|total| total.id == QUOTE)
        .map_or(0, |total| total.fees)
}

#[test]
fn a_taker_pays_for_all_its_trades_together_and_a_maker_for_each() {
    // 25 and 10 basis points.
    let mut market = market(terms(FeeUnit::Millionth, 2_500, 1_000));
    market.done(&sell(1, 1, TRADED, 101, 1));
    market.done(&sell(1, 2, TRADED, 101, 1));
    market.done(&buy(2, 1, TRADED, 110, 2));
    // 606 in all, of which 1.515; 303 twice, of each 0.303.
    assert_eq!((won(&market, 2), won(&market, 1)), (-606 - 2, 606 - 2));
    assert_eq!(fees(&market), 4);
    // The hold: for each lot of 330 a fee of 0.825.
    market.done(&buy(3, 1, TRADED, 110, 10));
    assert_eq!(won(&market, 3), -10 * 331);
    market.done(&sell(1, 3, TRADED, 110, 4));
    // 1,320: the taker pays 3.3, the maker 1.32.
    assert_eq!(won(&market, 1), 604 + 1_320 - 4);
    assert_eq!(won(&market, 3), -6 * 331 - 1_320 - 2);
    market.done(&cancelled(3, 1, TRADED));
    assert_eq!(won(&market, 3), -1_322);
    assert_eq!(fees(&market), 4 + 6);
}

#[test]
fn a_budget_pays_its_fee_beside_it_and_gets_back_what_is_left() {
    let mut market = market(terms(FeeUnit::Millionth, 10_000, 0));
    market.done(&sell(1, 1, TRADED, 100, 2));
    let budget = of_type(&buy(2, 1, TRADED, 1_000, 5), OrderType::IocBudget);
    market.done(&budget);
    assert_eq!((won(&market, 2), fees(&market)), (-606, 6));
    market.done(&sell(1, 1, TRADED, 100, 5));
    market.done(&of_type(&buy(2, 2, TRADED, 500, 5), OrderType::FokBudget));
    assert_eq!((won(&market, 2), fees(&market)), (-606 - 1_515, 21));
}

#[test]
fn a_rebate_is_paid_out_of_the_same_trade() {
    for (unit, taker, maker, paid, got) in [
        (FeeUnit::PerLot, 5, -5, 10, 10),
        (FeeUnit::PerLot, 5, -2, 10, 4),
        // 606: 1.212, and of 303 twice 0.303.
        (FeeUnit::Millionth, 2_000, -1_000, 2, 0),
        (FeeUnit::Millionth, 20_000, -20_000, 13, 12),
    ] {
        let mut market = market(terms(unit, taker, maker));
        for id in 1..=2 {
            market.done(&buy(1, id, TRADED, 101, 1));
        }
        market.done(&sell(2, 1, TRADED, 90, 2));
        assert_eq!(
            (won(&market, 2), won(&market, 1)),
            (606 - paid, got - 606),
            "{taker}, {maker}"
        );
        assert_eq!(fees(&market), paid - got);
    }
}

#[test]
fn of_futures_what_is_opened_pays_and_is_covered_at_the_end_of_the_band() {
    let futures = terms(FeeUnit::Millionth, 10_000, 5_000).with_type(SymbolType::Futures);
    let mut market = market(futures);
    assert_eq!(market.band(TRADED, 1_000, 1_199), ResultCode::Success);
    // A lot that is bought at most can lose 199 and a fee of 11.99.
    assert_eq!(market.pay(4, QUOTE, 210), ResultCode::Success);
    assert_eq!(
        market.run(&buy(4, 1, TRADED, 1_150, 1)),
        ResultCode::RiskNsf
    );
    assert_eq!(market.pay(4, QUOTE, 1), ResultCode::Success);
    market.done(&buy(4, 1, TRADED, 1_150, 1));
    market.done(&sell(1, 1, TRADED, 1_100, 1));
    // At 1,150: the maker pays 5.75, the taker 11.5.
    assert_eq!((market.balance(4, QUOTE), won(&market, 1)), (205, -12));
    // The seller closes, and pays nothing; who opens against that does.
    market.done(&sell(2, 1, TRADED, 1_150, 1));
    market.done(&buy(1, 2, TRADED, 1_150, 1));
    assert_eq!((won(&market, 1), won(&market, 2)), (-12, -6));
    assert_eq!(fees(&market), 6 + 12 + 6);
}

#[test]
fn an_exchange_that_is_older_than_a_rule_keeps_its_symbols() {
    for (taker, maker) in [(2_500, 1_000), (2_000, -1_000)] {
        let mut market = Market::new(BEFORE_LATER_RULES);
        let symbol = terms(FeeUnit::Millionth, taker, maker);
        market.done(&Command::AddSymbols([symbol].into()));
        for uid in 1..=2 {
            for currency in [BASE, QUOTE] {
                assert_eq!(market.pay(uid, currency, 1_000_000), ResultCode::Success);
            }
        }
        market.done(&sell(1, 1, TRADED, 101, 2));
        market.done(&buy(2, 1, TRADED, 101, 2));
        // 606, of which 1 to 2.5 thousandths, rounded against the user.
        let [taker, maker] = [taker, maker].map(|fee| (606 * fee + 999_999).div_euclid(1_000_000));
        assert_eq!(
            (won(&market, 2), won(&market, 1)),
            (-606 - taker, 606 - maker)
        );
        assert_eq!(fees(&market), taker + maker);
        let mut bytes = Vec::new();
        encode_state(&market.state, &mut bytes);
        let read = decode_state(&bytes).expect("its symbols are allowed");
        assert_eq!(state_hash(&read), state_hash(&market.state));
    }
}

/// However the other side is split, in one command or when a stop order is triggered.
#[test]
fn a_taker_of_futures_pays_one_rounded_fee() {
    for parts in [1, 4, 100] {
        let futures = terms(FeeUnit::Millionth, 100, 0).with_type(SymbolType::Futures);
        let mut market = market(futures);
        assert_eq!(market.band(TRADED, 10, 20), ResultCode::Success);
        for id in 0..parts {
            market.done(&sell(1, id, TRADED, 10, 100 / parts));
        }
        // 1,000, of which 0.1.
        market.done(&buy(2, 1, TRADED, 10, 100));
        assert_eq!(
            (fees(&market), won(&market, 2)),
            (1, -1),
            "of {parts} makers"
        );
    }
}

/// Profit that waits covers losses; fees need money in the balance, which stays there for them.
#[test]
fn fees_of_futures_are_not_paid_by_profit_that_waits() {
    const PAIR: SymbolId = SymbolId(8);
    let futures = terms(FeeUnit::PerLot, 10, 10).with_type(SymbolType::Futures);
    let mut market = market(futures);
    let pair = SymbolSpec::pair(PAIR, BASE, QUOTE);
    market.done(&Command::AddSymbols([pair].into()));
    assert_eq!(market.band(TRADED, 100, 200), ResultCode::Success);
    assert_eq!(market.pay(4, QUOTE, 2_000), ResultCode::Success);
    market.done(&sell(1, 1, TRADED, 100, 10));
    market.done(&buy(4, 1, TRADED, 100, 10));
    market.done(&buy(2, 1, TRADED, 200, 10));
    market.done(&sell(4, 2, TRADED, 200, 10));
    // 1,000 wait, for which nobody has paid yet.
    assert_eq!((market.balance(4, QUOTE), fees(&market)), (1_900, 300));
    assert_eq!(market.pay(4, QUOTE, -1_900), ResultCode::Success);
    let opens = buy(4, 3, TRADED, 100, 9);
    assert_eq!(market.run(&opens), ResultCode::RiskNsf);
    assert_eq!(market.pay(4, QUOTE, 89), ResultCode::Success);
    assert_eq!(market.run(&opens), ResultCode::RiskNsf);
    assert_eq!(market.pay(4, QUOTE, 1), ResultCode::Success);
    market.done(&opens);
    assert_eq!(market.withdrawable(4, QUOTE), 0);
    let spends = buy(4, 4, PAIR, 1, 1);
    assert_eq!(market.run(&spends), ResultCode::RiskNsf);
    let more = buy(4, 5, TRADED, 100, 1);
    assert_eq!(market.run(&more), ResultCode::RiskNsf);
    market.done(&sell(3, 1, TRADED, 100, 9));
    assert_eq!((market.balance(4, QUOTE), fees(&market)), (0, 300 + 180));
}

#[test]
fn fees_that_make_no_sense_are_refused() {
    use FeeUnit::{Millionth, PerLot};
    let pair = |unit, taker, maker| terms(unit, taker, maker);
    let futures = |unit, taker, maker| terms(unit, taker, maker).with_type(SymbolType::Futures);
    let (fine, wrong) = (ResultCode::Success, ResultCode::SymbolInvalidSpec);
    for (spec, code, under_reference) in [
        (pair(PerLot, 5, 5), fine, fine),
        (pair(PerLot, 5, -5), fine, wrong),
        (pair(PerLot, 5, -6), wrong, wrong),
        (pair(PerLot, 0, i64::MIN), wrong, wrong),
        (pair(Millionth, 1_000_000, -1_000_000), fine, wrong),
        (pair(Millionth, 1_000_001, 0), wrong, wrong),
        (
            pair(Millionth, 5, 6),
            ResultCode::SymbolMakerFeeOverTakerFee,
            wrong,
        ),
        (futures(PerLot, 5, -1), wrong, wrong),
        (futures(Millionth, 5, 6), fine, wrong),
        (futures(Millionth, 5, 1_000_001), wrong, wrong),
    ] {
        for (rules, code) in [
            (Rules::default(), code),
            (Rules::REFERENCE, under_reference),
        ] {
            let mut market = Market::new(rules);
            let add = Command::AddSymbols([spec].into());
            assert_eq!(market.run(&add), code, "{spec:?}");
        }
    }
}

#[test]
fn fees_are_paid_out_once_and_never_more_than_were_collected() {
    let mut market = market(terms(FeeUnit::PerLot, 30, 10));
    market.done(&sell(1, 1, TRADED, 100, 2));
    market.done(&buy(2, 1, TRADED, 100, 2));
    assert_eq!(fees(&market), 80);
    let pay = |uid, currency, amount, transaction_id| Command::PayFees {
        uid: UserId(uid),
        currency,
        amount,
        transaction_id,
    };
    let id = 3_000_000_000;
    for (command, code) in [
        (pay(99, QUOTE, 1, id), ResultCode::AuthInvalidUser),
        (pay(3, QUOTE, 81, id), ResultCode::FeesNsf),
        (pay(3, BASE, 1, id), ResultCode::FeesNsf),
        (pay(3, QUOTE, 0, id), ResultCode::FeesAmountNotPositive),
        (pay(3, QUOTE, -5, id), ResultCode::FeesAmountNotPositive),
        (
            pay(3, QUOTE, 50, 1),
            ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedMany,
        ),
        (pay(3, QUOTE, 50, id), ResultCode::Success),
        (
            pay(3, QUOTE, 30, id),
            ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedSame,
        ),
        (pay(3, QUOTE, 31, id + 1), ResultCode::FeesNsf),
        (pay(3, QUOTE, 30, id + 1), ResultCode::Success),
        (pay(3, QUOTE, 1, id + 2), ResultCode::FeesNsf),
    ] {
        assert_eq!(market.run(&command), code, "{command:?}");
    }
    assert_eq!((won(&market, 3), fees(&market)), (80, 0));
}
