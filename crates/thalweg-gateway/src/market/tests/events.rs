//! Events of streams, from what the drop copy has.

use std::sync::Arc;

use thalweg_exchange::Action;
use thalweg_exchange::market::{
    Body, Channels, Epoch, FeedSequence, LevelDelta, Message, Snapshot, SymbolSequence,
};

use super::{SYMBOL, label, trade};
use crate::market::stream::StreamEvent;
use crate::market::topics::Progress;
use crate::market::{Candles, Item, Kind, Market, Outbox, Subscription};
use crate::time_unit::TimeUnit;

const START_US: i64 = 1_796_000_000_000_000;

fn level(side: Action, price: i64, volume: i64) -> Message {
    Message {
        epoch: Epoch(1),
        sequence: FeedSequence(1),
        symbol_sequence: SymbolSequence(1),
        channels: Channels::default(),
        symbol: SYMBOL,
        is_last: true,
        body: Body::Level(LevelDelta {
            side,
            price,
            volume,
            orders: 1,
        }),
    }
}

fn publish(market: &Market, events: &[StreamEvent]) {
    let mut progress = Progress::default();
    while !market.topics.publish(events, &mut progress) {}
}

/// Ends a command, and has its events published.
fn end(market: &Market, number: u64, time_us: i64) {
    market.end(number, time_us);
    publish(market, &market.flush(time_us));
}

fn tick(market: &Market, time_us: i64) {
    publish(market, &market.tick(time_us));
}

struct Follower<'m> {
    market: &'m Market,
    outbox: Arc<Outbox>,
    subscriptions: Vec<(Kind, u64)>,
}

impl<'m> Follower<'m> {
    fn of(market: &'m Market, streams: &[&str]) -> Self {
        let outbox = Arc::<Outbox>::default();
        let follow = |name: &&str| {
            let kind = Kind::parse(name).expect("a stream");
            let subscription = Arc::new(Subscription::new(name, false));
            (
                kind,
                market.follow((SYMBOL, kind), label(), &outbox, &subscription),
            )
        };
        let subscriptions = streams.iter().map(follow).collect();
        Self {
            market,
            outbox,
            subscriptions,
        }
    }

    fn texts(&self) -> Vec<String> {
        let items = std::iter::from_fn(|| self.outbox.take());
        let texts = items.map(|item| match item {
            Item::Event(_, event) => event.text(TimeUnit::Milliseconds).to_string(),
            Item::Text(text) => text.to_string(),
            Item::Ping => String::new(),
        });
        texts.collect()
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        for (kind, id) in &self.subscriptions {
            self.market.leave((SYMBOL, *kind), *id);
        }
    }
}

#[test]
fn a_command_becomes_events_of_the_streams_that_are_followed() {
    let market = Market::new();
    let book = Snapshot {
        symbol: SYMBOL,
        ..Snapshot::default()
    };
    market.restart();
    market.book(&book);
    end(&market, 9, START_US);
    let streams = [
        "depth@0ms",
        "depth5@100ms",
        "trade",
        "aggTrade",
        "bookTicker",
    ];
    let follower = Follower::of(&market, &streams);
    market.message(&level(Action::Ask, 12_345, 7));
    end(&market, 14, START_US);
    assert_eq!(
        follower.texts(),
        [
            concat!(
                r#"{"e":"depthUpdate","E":1796000000000,"s":"BTCUSDT","U":11,"u":15,"#,
                r#""b":[],"a":[["123.45","0.0070"]]}"#,
            ),
            r#"{"u":15,"s":"BTCUSDT","b":"0.00","B":"0.0000","a":"123.45","A":"0.0070"}"#,
        ]
    );
    for (id, lots) in [(1, 2), (2, 3)] {
        market.trade(&super::Trade {
            id,
            lots,
            command: 15,
            ..trade(1, START_US, 12_345, 1)
        });
    }
    market.message(&level(Action::Ask, 12_345, 2));
    end(&market, 15, START_US + 5_000);
    assert_eq!(
        follower.texts(),
        [
            concat!(
                r#"{"e":"trade","E":1796000000005,"s":"BTCUSDT","t":1,"p":"123.45","#,
                r#""q":"0.0020","T":1796000000000,"m":false,"M":true}"#,
            ),
            concat!(
                r#"{"e":"trade","E":1796000000005,"s":"BTCUSDT","t":2,"p":"123.45","#,
                r#""q":"0.0030","T":1796000000000,"m":false,"M":true}"#,
            ),
            concat!(
                r#"{"e":"aggTrade","E":1796000000005,"s":"BTCUSDT","a":1,"p":"123.45","#,
                r#""q":"0.0050","f":1,"l":2,"T":1796000000000,"m":false,"M":true}"#,
            ),
            concat!(
                r#"{"e":"depthUpdate","E":1796000000005,"s":"BTCUSDT","U":16,"u":16,"#,
                r#""b":[],"a":[["123.45","0.0020"]]}"#,
            ),
            r#"{"u":16,"s":"BTCUSDT","b":"0.00","B":"0.0000","a":"123.45","A":"0.0020"}"#,
        ]
    );
}

#[test]
fn books_that_are_not_there_after_a_restart_are_gone() {
    let market = Market::new();
    let streams = ["depth@0ms", "depth5@100ms"];
    let follower = Follower::of(&market, &streams);
    market.message(&level(Action::Ask, 12_345, 2));
    end(&market, 15, START_US);
    assert_eq!(follower.texts().len(), 1);
    tick(&market, START_US + 100_000);
    let depth = r#"{"lastUpdateId":16,"bids":[],"asks":[["123.45","0.0020"]]}"#;
    assert_eq!(follower.texts(), [depth]);
    tick(&market, START_US + 200_000);
    assert!(follower.texts().is_empty());
    // The books that are there come over some commands; none is gone until all have come.
    market.restart();
    end(&market, 19, START_US + 300_000);
    assert!(follower.texts().is_empty());
    market.restarted();
    end(&market, 20, START_US + 300_000);
    let gone = concat!(
        r#"{"e":"depthUpdate","E":1796000000300,"s":"BTCUSDT","U":17,"u":21,"#,
        r#""b":[],"a":[["123.45","0.00000000"]]}"#,
    );
    assert_eq!(follower.texts()[0], gone);
    assert_eq!(market.followed(), (2, 2));
    drop(follower);
    assert_eq!(market.followed(), (0, 0));
}

#[test]
fn the_event_after_a_snapshot_has_the_next_number() {
    let market = Market::new();
    let follower = Follower::of(&market, &["depth", "depth@100ms"]);
    for number in 0..50 {
        market.message(&level(Action::Bid, 100 + number % 3, number + 1));
        market.end(number as u64, START_US);
        // At most once a tick.
        let snapshot = market.depth(SYMBOL, 5, START_US);
        assert_eq!(snapshot.number, number as u64 + 1);
        let next = format!("\"U\":{},", number + 1);
        let events = follower.texts();
        // One for each speed, which come when the next command ends; here with the tick.
        assert!(events.is_empty());
        tick(&market, START_US + number * 100_000);
        let events = follower.texts();
        assert_eq!(events.len(), 2, "{events:?}");
        assert!(
            events.iter().all(|event| event.contains(&next)),
            "{events:?}"
        );
    }
}

#[test]
fn candles_are_sent_when_they_are_complete_and_when_they_change() {
    let market = Market::new();
    let follower = Follower::of(&market, &["kline_1s"]);
    let tick = |ms: i64| {
        tick(&market, START_US + ms * 1_000);
        let field = |text: &str, name: &str| {
            let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
            value["k"][name].to_string()
        };
        let show = |text: &String| format!("{} {}", field(text, "L"), field(text, "x"));
        follower
            .texts()
            .iter()
            .map(show)
            .collect::<Vec<_>>()
            .join(", ")
    };
    // Ticks 0, 10 and so on are those of a second.
    assert_eq!(tick(0), "");
    market.trade(&trade(1, START_US, 10, 1));
    end(&market, 1, START_US);
    assert_eq!(tick(100), "1 false");
    market.trade(&trade(2, START_US + 200_000, 11, 1));
    end(&market, 2, START_US + 200_000);
    let ticks = (2..10).map(|tenth| tick(tenth * 100)).collect::<String>();
    assert_eq!(ticks, "");
    // The first one is complete, and the next one has no trade.
    // A new follower changes nothing of that for the others.
    let _other = Follower::of(&market, &["kline_1s"]);
    assert_eq!(tick(1_000), "2 true");
    assert_eq!(tick(1_100), "-1 false");
    let ticks = (12..20).map(|tenth| tick(tenth * 100)).collect::<String>();
    assert_eq!(ticks, "");
    assert_eq!(tick(2_000), "-1 true");
}

#[test]
fn a_candle_is_complete_when_the_trades_that_are_on_their_way_are_in_it() {
    let market = Market::new();
    let follower = Follower::of(&market, &["kline_1s"]);
    let sent = || {
        let texts = follower.texts();
        let complete = texts.iter().filter(|text| text.contains(r#""x":true"#));
        complete.cloned().collect::<String>()
    };
    market.trade(&trade(1, START_US, 10, 1));
    end(&market, 1, START_US);
    tick(&market, START_US);
    // It is read in the first second, and in the log in the next one.
    let time_us = market.begin(|| START_US + 999_000);
    tick(&market, START_US + 1_000_000);
    assert_eq!(sent(), "");
    market.trade(&trade(2, time_us, 11, 1));
    // Its command goes on.
    market.settle();
    market.begin(|| START_US + 1_050_000);
    tick(&market, START_US + 1_100_000);
    assert_eq!(sent(), "");
    end(&market, 2, START_US + 1_100_000);
    market.settle();
    tick(&market, START_US + 1_200_000);
    let candle = sent();
    assert!(candle.contains(r#""L":2,"#), "{candle}");
}

#[test]
fn candles_that_are_complete_at_once_come_one_by_one() {
    let market = Market::new();
    let follower = Follower::of(&market, &["kline_1s"]);
    let tick = |ms: i64| tick(&market, START_US + ms * 1_000);
    market.trade(&trade(1, START_US, 10, 1));
    end(&market, 1, START_US);
    tick(0);
    follower.texts();
    // The log waits for its disk for more than two seconds.
    let time_us = market.begin(|| START_US + 999_000);
    [1_000, 2_000, 3_200].into_iter().for_each(tick);
    assert!(follower.texts().is_empty());
    market.trade(&trade(2, time_us, 11, 1));
    end(&market, 2, START_US + 3_250_000);
    market.settle();
    let mut shown = Vec::new();
    for ms in [3_300, 3_400, 3_500, 3_600] {
        tick(ms);
        for text in follower.texts() {
            let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let candle = &value["k"];
            let since = candle["t"].as_i64().expect("a time") - START_US / 1_000;
            shown.push(format!("{since} {} {}", candle["L"], candle["x"]));
        }
    }
    let expected = ["0 2 true", "1000 -1 true", "2000 -1 true", "3000 -1 false"];
    assert_eq!(shown, expected);
    // After a pause without end, those come that would be kept.
    tick(1_000_000_000_000);
    let texts = follower.texts().concat();
    let kept = Candles::KEPT as i64 * 1_000;
    let first = START_US / 1_000 + 1_000_000_000_000 - kept;
    assert!(texts.contains(&format!(r#""t":{first},"#)), "{texts}");
}

#[test]
fn streams_that_were_left_have_no_place_in_what_waits() {
    let market = Market::new();
    let outbox = market.outbox([127, 0, 0, 1].into());
    let follow = |name| {
        let kind = Kind::parse(name).expect("a stream");
        let subscription = Arc::new(Subscription::new(name, false));
        let id = market.follow((SYMBOL, kind), label(), &outbox, &subscription);
        (kind, id)
    };
    for number in 0..10_000 {
        let streams = ["bookTicker", "depth20@100ms"].map(follow);
        tick(&market, START_US + number);
        for (kind, id) in streams {
            market.leave((SYMBOL, kind), id);
        }
        assert!(outbox.waiting().0 <= 1, "{}", outbox.waiting().0);
    }
    // One that stays comes in its turn.
    let streams = ["bookTicker", "depth20@100ms"].map(follow);
    tick(&market, START_US);
    market.leave((SYMBOL, streams[0].0), streams[0].1);
    let Some(Item::Event(stream, _)) = outbox.take() else {
        panic!("an event");
    };
    assert_eq!(stream.name, "depth20@100ms");
    assert!(outbox.take().is_none());
    assert_eq!(market.waiting(), 0);
}

#[test]
fn followers_leave_while_those_of_a_stream_that_lost_events_are_cut() {
    let market = Market::new();
    let follower = Follower::of(&market, &["trade"]);
    for id in 1..=70_000 {
        market.trade(&trade(id, START_US, 10, 1));
        market.end(id as u64, START_US);
    }
    let entry = market.entry(SYMBOL).expect("it is there");
    let kind = Kind::BookTicker;
    let subscription = Arc::new(Subscription::new("bookTicker", false));
    std::thread::scope(|scope| {
        let watch = || {
            // It waits for the lock of the streams, which this thread has.
            scope.spawn(|| market.tick(START_US));
            while !crate::lock(&entry).events.is_empty() {
                std::thread::yield_now();
            }
            assert!(market.entries.try_write().is_ok());
        };
        let topics = &market.topics;
        topics.follow((SYMBOL, kind), &follower.outbox, &subscription, watch);
    });
}

#[test]
fn tickers_are_sent_once_until_something_changes() {
    let market = Market::new();
    let follower = Follower::of(&market, &["ticker", "miniTicker"]);
    market.trade(&trade(1, START_US, 200, 1));
    market.trade(&trade(2, START_US, 100, 3));
    end(&market, 1, START_US);
    tick(&market, START_US + 1_000_000);
    let [mini, full] = <[String; 2]>::try_from(follower.texts()).expect("both");
    assert_eq!(
        mini,
        concat!(
            r#"{"e":"24hrMiniTicker","E":1796000001000,"s":"BTCUSDT","c":"1.00","#,
            r#""o":"2.00","h":"2.00","l":"1.00","v":"0.0040","q":"0.005000"}"#,
        )
    );
    assert_eq!(
        full,
        concat!(
            r#"{"e":"24hrTicker","E":1796000001000,"s":"BTCUSDT","c":"1.00","#,
            r#""o":"2.00","h":"2.00","l":"1.00","v":"0.0040","q":"0.005000","#,
            r#""b":"0.00","B":"0.0000","a":"0.00","A":"0.0000","p":"-1.00","#,
            r#""P":"-50.000","w":"1.25","x":"2.00","Q":"0.0030","O":1795913580000,"#,
            r#""C":1796000001000,"F":1,"L":2,"n":2}"#,
        )
    );
    for tenth in 1..=10 {
        tick(&market, START_US + 1_000_000 + tenth * 100_000);
    }
    assert!(follower.texts().is_empty());
}

#[test]
fn a_follower_that_takes_nothing_is_cut_or_has_the_newest() {
    let market = Market::new();
    let slow = Follower::of(&market, &["bookTicker", "depth20@100ms"]);
    for number in 0..100_000 {
        market.message(&level(Action::Bid, 1 + number % 50, number + 1));
        end(&market, number as u64, START_US + number);
        if number % 100 == 0 {
            tick(&market, START_US + number);
        }
    }
    assert_eq!(slow.outbox.waiting(), (2, 0));
    let texts = slow.texts();
    assert!(texts[0].contains("\"u\":100000,"), "{texts:?}");

    let cut = Follower::of(&market, &["depth@0ms", "bookTicker"]);
    let other = Follower::of(&market, &["depth@0ms"]);
    for number in 100_000..200_000 {
        market.message(&level(Action::Bid, 1 + number % 50, number + 1));
        end(&market, number as u64, START_US + number);
        assert_eq!(other.texts().len(), 1);
        assert!(cut.outbox.waiting().1 <= 4 << 20);
    }
    assert_eq!(cut.outbox.waiting(), (0, 0));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let why = runtime.expect("a runtime").block_on(cut.outbox.cut());
    assert_eq!(why, "too slow: more than 4 MiB wait to be read");
}

#[test]
fn trades_of_the_log_are_there_before_the_first_command() {
    let market = Market::new();
    for id in 1..=3 {
        market.trade(&trade(id, START_US + id, 10, 1));
    }
    let last = || market.read(SYMBOL, |market| market.trades.last().map(|trade| trade.id));
    assert_eq!(last(), Some(3));
    end(&market, 7, START_US);
    market.trade(&trade(4, START_US, 10, 1));
    assert_eq!(last(), Some(3));
    end(&market, 8, START_US);
    assert_eq!(last(), Some(4));
}

#[test]
fn events_that_none_publishes_are_bounded_and_their_followers_cut() {
    let market = Market::new();
    let follower = Follower::of(&market, &["trade"]);
    for id in 1..=70_000 {
        market.trade(&trade(id, START_US, 10, 1));
        market.end(id as u64, START_US);
    }
    publish(&market, &market.flush(START_US));
    assert!(follower.texts().is_empty());
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let why = runtime.expect("a runtime").block_on(follower.outbox.cut());
    assert_eq!(why, "events were lost");
}
