//! The memory of a market has a bound, however long it runs.

use std::sync::Arc;

use thalweg_exchange::Action;
use thalweg_testkit::counting::held;

use super::{SYMBOL, label, trade};
use crate::market::candle::Candles;
use crate::market::interval::Interval;
use crate::market::symbol_market::SymbolMarket;
use crate::market::trade::Trades;
use crate::market::{Kind, Market, Subscription};

#[test]
fn trades_and_candles_take_4_4_megabytes_at_most() {
    let before = held();
    let mut market = SymbolMarket::new(1);
    // A trade each two hours: all but the longest intervals have a candle for each.
    for id in 1..20_000 {
        market.trade(trade(
            id,
            1_796_000_000_000_000 + id * 7_200_000_000,
            100 + id % 7,
            1,
        ));
        assert!(held() - before <= 4_400_000, "{}", held() - before);
    }
    assert_eq!(market.trades.from(0).count(), Trades::KEPT);
    assert_eq!(market.trades.aggregate_from(0).count(), Trades::KEPT);
    assert_eq!(market.candles.traded(Interval::MINUTE).len(), Candles::KEPT);
    assert_eq!(market.trades.from(19_998).count(), 2);
}

#[test]
fn a_book_without_streams_holds_its_levels_only() {
    let before = held();
    let mut market = SymbolMarket::new(1);
    for number in 1..100_000 {
        let price = (number % 50) as i64;
        market
            .depth
            .set(number, Action::Bid, price, (number % 3) as i64);
    }
    assert!(market.depth.bids().count() <= 50);
    assert!(held() - before < 8_192, "{}", held() - before);
}

#[test]
fn a_follower_takes_0_4_kilobytes() {
    let market = Market::new();
    let outbox = market.outbox([127, 0, 0, 1].into());
    let label = label();
    let topic = (SYMBOL, Kind::Trade);
    let name = "x".repeat(128);
    market.follow(
        topic,
        label.clone(),
        &outbox,
        &Arc::new(Subscription::new(&name, false)),
    );
    let before = held();
    for _ in 0..1_000 {
        let subscription = Arc::new(Subscription::new(&name, false));
        market.follow(topic, label.clone(), &outbox, &subscription);
    }
    let each = (held() - before) / 1_000;
    assert!(each <= 400, "{each}");
}
