//! Candles and figures are those of the list of all trades.

use super::{SYMBOL, trade};
use crate::market::Trade;
use crate::market::candle::{Candle, Candles, Range};
use crate::market::interval::Interval;
use crate::market::symbol_market::SymbolMarket;
use crate::market::trade::AggregateTrade;
use proptest::prelude::*;
use thalweg_exchange::Action;

const START: i64 = 1_796_000_000_000;

/// Trades with pauses from nothing to weeks.
fn trades() -> impl Strategy<Value = Vec<Trade>> {
    let pause = prop_oneof![
        4 => Just(0_i64),
        4 => 0_i64..2_000,
        4 => 0_i64..200_000,
        2 => 0_i64..90_000_000,
        1 => 0_i64..3_000_000_000,
    ];
    let trade = (pause, 1_i64..50, 1_i64..9, any::<bool>(), any::<bool>());
    prop::collection::vec(trade, 1..60).prop_map(|list| {
        let (mut time, mut command) = (START, 10);
        let numbered = (1_i64..).zip(list);
        let made = numbered.map(|(id, (pause, price, lots, buys, is_next))| {
            time += pause;
            command += u64::from(is_next || pause > 0);
            Trade {
                id,
                command,
                symbol: SYMBOL,
                price,
                lots,
                taker_side: if buys { Action::Bid } else { Action::Ask },
                time_us: time * 1_000 + id % 1_000,
            }
        });
        made.collect()
    })
}

/// Returns the candle of one interval, from all trades.
fn naive(trades: &[Trade], interval: Interval, open_time: i64) -> Option<Candle> {
    let close = interval.next(open_time);
    let own: Vec<&Trade> = (trades.iter())
        .filter(|trade| (open_time..close).contains(&(trade.time_us / 1_000)))
        .collect();
    let Some(first) = own.first() else {
        let before = trades
            .iter()
            .rfind(|trade| trade.time_us / 1_000 < open_time)?;
        return Some(Candle::flat(open_time, before.price));
    };
    let sum = |of: &dyn Fn(&&&Trade) -> bool, quote: bool| -> i128 {
        let factor = |trade: &Trade| if quote { i128::from(trade.price) } else { 1 };
        let own = own.iter().filter(of);
        own.map(|trade| i128::from(trade.lots) * factor(trade))
            .sum()
    };
    let all = |_: &&&Trade| true;
    let bought = |trade: &&&Trade| !trade.is_buyer_maker();
    Some(Candle {
        open_time,
        open: first.price,
        high: own.iter().map(|trade| trade.price).max()?,
        low: own.iter().map(|trade| trade.price).min()?,
        close: own.last()?.price,
        first: first.id,
        last: own.last()?.id,
        volume: sum(&all, false),
        quote_volume: sum(&all, true),
        taker_volume: sum(&bought, false),
        taker_quote_volume: sum(&bought, true),
    })
}

proptest! {
    #[test]
    fn candles_are_those_of_all_trades(trades in trades(), later in 0_i64..4_000_000) {
        let mut candles = Candles::default();
        trades.iter().for_each(|trade| candles.add(trade));
        let now = trades.last().expect("one at least").time_us / 1_000 + later;
        for interval in Interval::all() {
            let last = interval.open(now);
            let range = |start, end, limit| {
                candles.range(interval, Range { start, end, limit }, now)
            };
            let newest = range(None, None, 100);
            let expected: Vec<Candle> = (0..100)
                .rev()
                .filter_map(|count| naive(&trades, interval, interval.back(last, count)))
                .collect();
            prop_assert_eq!(&newest, &expected, "{}", interval);
            prop_assert_eq!(candles.at(interval, now), newest.last().copied());
            let second = newest.len().checked_sub(2).map(|at| newest[at]);
            prop_assert_eq!(candles.before(interval, last), second);

            let start = trades[trades.len() / 2].time_us / 1_000;
            let oldest = range(Some(start), Some(now), 7);
            let first = match interval.open(start) {
                open if open == start => open,
                open => interval.next(open),
            };
            let mut open = first;
            for candle in &oldest {
                prop_assert_eq!(Some(*candle), naive(&trades, interval, open));
                open = interval.next(open);
            }
            prop_assert!(oldest.len() == 7 || open > last);
        }
    }

    #[test]
    fn the_ticker_is_that_of_the_trades_in_its_window(
        trades in trades(),
        later in 0_i64..90_000_000,
    ) {
        let mut market = SymbolMarket::new(1);
        trades.iter().for_each(|trade| market.trade(*trade));
        let now = trades.last().expect("one at least").time_us / 1_000 + later;
        let ticker = market.ticker(now);
        let open = (now - 86_400_000) / 60_000 * 60_000;
        prop_assert_eq!((ticker.open_time, ticker.close_time), (open, now));
        let in_window: Vec<Trade> =
            trades.iter().filter(|trade| trade.time_us / 1_000 >= open).copied().collect();
        let before = trades.iter().rfind(|trade| trade.time_us / 1_000 < open);
        let window = &ticker.window;
        prop_assert_eq!(window.count(), in_window.len() as i64);
        let volume: i128 = in_window.iter().map(|trade| i128::from(trade.lots)).sum();
        prop_assert_eq!(window.volume, volume);
        let first = in_window.first().or(before).expect("one of both").price;
        prop_assert_eq!(window.open, first);
        prop_assert_eq!(window.close, trades.last().expect("one at least").price);
        let highest = in_window.iter().map(|trade| trade.price).max();
        prop_assert_eq!(window.high, highest.unwrap_or(first));
        prop_assert_eq!(ticker.previous_close, before.map_or(first, |trade| trade.price));
        prop_assert_eq!(ticker.last_size, trades.last().expect("one at least").lots);
    }

    #[test]
    fn aggregate_trades_are_those_of_a_command_at_a_price(trades in trades()) {
        let mut market = SymbolMarket::new(1);
        trades.iter().for_each(|trade| market.trade(*trade));
        let key = |trade: &Trade| (trade.command, trade.price, trade.taker_side);
        let groups = trades.chunk_by(|one, other| key(one) == key(other));
        let expected: Vec<AggregateTrade> = groups
            .map(|group| AggregateTrade {
                first: group[0],
                last: group.last().unwrap().id,
                lots: group.iter().map(|trade| i128::from(trade.lots)).sum(),
            })
            .collect();
        let made: Vec<AggregateTrade> = market.trades.aggregate_from(0).copied().collect();
        prop_assert_eq!(made, expected);
    }
}

#[test]
fn ranges_beyond_all_times_are_empty_or_all() {
    let mut market = SymbolMarket::new(1);
    let candles = |market: &SymbolMarket, start, end, limit| {
        let range = Range { start, end, limit };
        market.candles.range(Interval::MINUTE, range, START).len()
    };
    assert_eq!(candles(&market, None, None, 10), 0);
    market.trade(trade(1, START * 1_000, 10, 3));
    for (start, end, limit, expected) in [
        (None, None, 10, 1),
        (Some(i64::MIN), Some(i64::MAX), 10, 1),
        (Some(i64::MAX), Some(i64::MIN), 10, 0),
        (None, Some(i64::MIN), 10, 0),
        (Some(i64::MAX), None, usize::MAX, 0),
        (None, None, 0, 0),
    ] {
        assert_eq!(
            candles(&market, start, end, limit),
            expected,
            "{start:?} {end:?} {limit}"
        );
    }
}
