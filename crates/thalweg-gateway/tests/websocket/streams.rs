//! Market streams.

use std::collections::HashMap;

use serde_json::{Value, json};
use thalweg_exchange::Action;

use crate::fixture::{Client, Fixture};

/// Reads until each of these streams has sent something, and returns what each sent first.
async fn first_of_each(client: &mut Client, names: &[String]) -> HashMap<String, Value> {
    let mut first = HashMap::new();
    while !names.iter().all(|name| first.contains_key(name)) {
        let event = client.json().await;
        let name = event["stream"].as_str().expect("a name").to_owned();
        first.entry(name).or_insert_with(|| event["data"].clone());
    }
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raw_stream_has_events_as_they_are_and_a_combined_one_with_names() {
    let fixture = Fixture::new().await;
    let mut raw = fixture.connect("/ws/btcusdt@trade").await;
    let streams = "/stream?streams=btcusdt%40trade/btcusdt@aggTrade&timeUnit=microsecond";
    let mut combined = fixture.connect(streams).await;
    // Answered after the streams are followed.
    for client in [&mut raw, &mut combined] {
        client
            .ask(&json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 }))
            .await;
    }
    fixture.place(1, Action::Ask, 1_000, 5).await;
    fixture.place(2, Action::Bid, 1_000, 3).await;
    let event = raw.json().await;
    let [e, s, t, p, q, m] = ["e", "s", "t", "p", "q", "m"].map(|name| event[name].clone());
    assert_eq!(
        json!([e, s, t, p, q, m]),
        json!(["trade", "BTCUSDT", 1, "10.000000", "0.0003", false])
    );
    let first = combined.json().await;
    assert_eq!(first["stream"], "btcusdt@trade");
    assert_eq!(first["data"]["t"], 1);
    let micros = first["data"]["T"].as_i64().expect("a time");
    assert_eq!(Some(micros / 1_000), event["T"].as_i64());
    let second = combined.json().await;
    assert_eq!(second["stream"], "btcusdt@aggTrade");
    assert_eq!(second["data"]["a"], 1);
    let trades = fixture.json("/api/v3/trades?symbol=BTCUSDT").await;
    assert_eq!(trades[0]["quoteQty"], "0.003000");
    assert_eq!(trades[0]["time"], event["T"]);
}

/// Requests about streams, in this order on one connection, and their responses.
const REQUESTS: &[(&str, &str)] = &[
    (
        concat!(
            r#"{"method":"SUBSCRIBE","params":["btcusdt@depth@100ms","nothing@trade","#,
            r#""x"],"id":"a-1"}"#,
        ),
        r#"{"id":"a-1","result":null}"#,
    ),
    (
        r#"{"method":"LIST_SUBSCRIPTIONS","id":-3}"#,
        r#"{"id":-3,"result":["0","btcusdt@depth@100ms","nothing@trade","x"]}"#,
    ),
    (
        r#"{"method":"UNSUBSCRIBE","params":["x","never@was"],"id":null}"#,
        r#"{"id":null,"result":null}"#,
    ),
    (
        r#"{"method":"GET_PROPERTY","params":["combined"],"id":2}"#,
        r#"{"id":2,"result":false}"#,
    ),
    (
        r#"{"method":"SET_PROPERTY","params":["combined",true],"id":3}"#,
        r#"{"id":3,"result":null}"#,
    ),
    (
        r#"{"method":"GET_PROPERTY","params":["combined"],"id":2}"#,
        r#"{"id":2,"result":true}"#,
    ),
    (
        r#"{"method":"SET_PROPERTY","params":["combined",1],"id":4}"#,
        r#"{"code":1,"id":4,"msg":"Invalid value type: expected Boolean"}"#,
    ),
    (
        r#"{"method":"SET_PROPERTY","params":["other",true],"id":5}"#,
        r#"{"code":0,"id":5,"msg":"Unknown property"}"#,
    ),
    (
        r#"{"method":"GET_PROPERTY","params":[],"id":6}"#,
        r#"{"code":2,"id":6,"msg":"Invalid request: property name must be a string"}"#,
    ),
    (
        r#"{"method":"LIST_SUBSCRIPTIONS","params":["a"],"id":7}"#,
        r#"{"code":2,"id":7,"msg":"Invalid request: too many parameters"}"#,
    ),
    (
        r#"{"method":"subscribe","params":["a"],"id":8}"#,
        concat!(
            r#"{"code":2,"msg":"Invalid request: unknown variant `subscribe`,"#,
            r#" expected one of `SUBSCRIBE`, `UNSUBSCRIBE`, `LIST_SUBSCRIPTIONS`,"#,
            r#" `SET_PROPERTY`, `GET_PROPERTY` at line 1 column 21"}"#,
        ),
    ),
    (
        r#"{"id":8}"#,
        r#"{"code":2,"msg":"Invalid request: missing field `method` at line 1 column 8"}"#,
    ),
    (
        "sub",
        r#"{"code":3,"msg":"Invalid JSON: expected value at line 1 column 1"}"#,
    ),
    (
        r#"{"method":"LIST_SUBSCRIPTIONS","id":1.5}"#,
        r#"{"code":2,"msg":"Invalid request: request ID must be an unsigned integer"}"#,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_streams_are_answered_as_documented() {
    let fixture = Fixture::new().await;
    let mut client = fixture.connect("/ws/0").await;
    for (request, response) in REQUESTS {
        client.send(request).await;
        assert_eq!(client.json().await.to_string(), *response, "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_book_kept_by_each_stream_is_the_snapshot_of_its_number() {
    let fixture = Fixture::new().await;
    for name in ["btcusdt@depth@0ms", "btcusdt@depth@100ms", "btcusdt@depth"] {
        let mut client = fixture.connect(&format!("/ws/{name}")).await;
        client
            .ask(&json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 }))
            .await;
        fixture.place(1, Action::Ask, 1_000, 5).await;
        fixture.place(2, Action::Bid, 900, 4).await;
        let start = fixture
            .json("/api/v3/depth?symbol=BTCUSDT&limit=5000")
            .await;
        let mut number = start["lastUpdateId"].as_u64().expect("a number");
        let mut books = [Default::default(), Default::default()];
        take(&mut books, [&start["bids"], &start["asks"]]);
        for lots in 1..30 {
            fixture.place(1, Action::Ask, 1_000 + lots, lots).await;
            fixture.place(2, Action::Bid, 1_001, lots).await;
        }
        let end = fixture
            .json("/api/v3/depth?symbol=BTCUSDT&limit=5000")
            .await;
        let mut expected = [Default::default(), Default::default()];
        take(&mut expected, [&end["bids"], &end["asks"]]);
        let mut has_begun = false;
        while Some(number) != end["lastUpdateId"].as_u64() {
            let event = client.json().await;
            let [first, last] = ["U", "u"].map(|name| event[name].as_u64().expect("a number"));
            if last <= number {
                continue;
            }
            assert!(
                first == number + 1 || !has_begun && first <= number,
                "{event}"
            );
            has_begun = true;
            take(&mut books, [&event["b"], &event["a"]]);
            number = last;
        }
        assert_eq!(books, expected, "{name}");
    }
}

type Side = std::collections::BTreeMap<String, String>;

fn take(books: &mut [Side; 2], levels: [&Value; 2]) {
    for (book, levels) in books.iter_mut().zip(levels) {
        for level in levels.as_array().expect("levels") {
            let [price, lots] = [0, 1].map(|at| level[at].as_str().expect("a text").to_owned());
            match lots.bytes().all(|digit| digit == b'0' || digit == b'.') {
                true => book.remove(&price),
                false => book.insert(price, lots),
            };
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_other_streams_have_what_rest_answers() {
    let fixture = Fixture::new().await;
    let names = [
        "depth5@100ms",
        "depth20",
        "bookTicker",
        "kline_1M",
        "miniTicker",
        "ticker",
    ];
    let names = names.map(|name| format!("btcusdt@{name}"));
    fixture.place(1, Action::Ask, 1_000, 5).await;
    fixture.place(2, Action::Bid, 1_000, 2).await;
    fixture.place(2, Action::Bid, 990, 2).await;
    let depth = fixture.json("/api/v3/depth?symbol=BTCUSDT&limit=5").await;
    let ticker = fixture.json("/api/v3/ticker/24hr?symbol=BTCUSDT").await;
    let candles = fixture
        .json("/api/v3/klines?symbol=BTCUSDT&interval=1M")
        .await;
    let mut one = fixture.connect("/stream").await;
    let request = json!({ "method": "SUBSCRIBE", "params": names, "id": 1 });
    assert_eq!(one.ask(&request).await["result"], Value::Null);
    let path = format!("/stream?streams={}", names.join("/"));
    let mut other = fixture.connect(&path).await;
    for client in [&mut one, &mut other] {
        let first = first_of_each(client, &names).await;
        let [few, many, book, candle, mini, full] = names.each_ref().map(|name| &first[name]);
        assert_eq!((few, many), (&depth, &depth));
        assert_eq!(
            (&book["b"], &book["A"]),
            (&ticker["bidPrice"], &ticker["askQty"])
        );
        let (candle, last) = (&candle["k"], &candles[0]);
        assert_eq!(
            (&candle["t"], &candle["q"], &candle["n"]),
            (&last[0], &last[7], &last[8])
        );
        assert_eq!(
            (&mini["v"], &mini["h"]),
            (&ticker["volume"], &ticker["highPrice"])
        );
        assert_eq!(
            (&full["w"], &full["L"]),
            (&ticker["weightedAvgPrice"], &ticker["lastId"])
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_all_symbols_send_arrays() {
    let fixture = Fixture::new().await;
    let mut raw = fixture.connect("/ws/!ticker@arr").await;
    assert_eq!(raw.json().await[0]["e"], "24hrTicker");
    let mut combined = fixture.connect("/stream?streams=!miniTicker@arr").await;
    let event = combined.json().await;
    assert_eq!(event["stream"], "!miniTicker@arr");
    assert_eq!(event["data"][0]["s"], "BTCUSDT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_says_so() {
    let mut fixture = Fixture::new().await;
    let mut raw = fixture.connect("/ws").await;
    let mut combined = fixture.connect("/stream").await;
    let mut api = fixture.connect("/ws-api/v3").await;
    for client in [&mut raw, &mut combined] {
        client
            .ask(&json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 }))
            .await;
    }
    api.ask(&json!({ "method": "ping", "id": 1 })).await;
    fixture.gateway.drain();
    assert_eq!(raw.json().await["e"], "serverShutdown");
    assert_eq!(combined.json().await["stream"], "!serverShutdown");
    assert_eq!(api.json().await["event"]["e"], "serverShutdown");
    for client in [&mut raw, &mut combined, &mut api] {
        assert_eq!(client.closed().await, "the server stops");
    }
    let server = fixture.server.take().expect("it runs");
    server.stop().await.expect("it stops in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn instruments_say_where_the_time_of_commands_went() {
    let fixture = Fixture::new().await;
    let name = "thalweg@instruments";
    let path = format!("/stream?streams={name}");
    let mut client = fixture.connect(&path).await;
    let first = client.json().await;
    assert_eq!(first["stream"], name);
    let [event, count] = ["e", "capacity"].map(|name| first["data"][name].clone());
    assert_eq!(event, "instruments");
    assert!(count.as_u64().is_some_and(|count| count > 0));
    // One command in 16 is timed.
    for _ in 0..40 {
        fixture.place(1, Action::Ask, 1_000, 1).await;
    }
    let timed = loop {
        let event = client.json().await["data"].clone();
        if event["total"]["count"]
            .as_u64()
            .is_some_and(|count| count > 0)
        {
            break event;
        }
    };
    let parts = timed["parts"].as_array().expect("parts");
    let named = parts
        .iter()
        .map(|part| part["stage"].as_str().expect("a name"));
    let stages: Vec<&str> = named.collect();
    let all = ["execute", "risk", "match", "settle", "journal", "publish"];
    assert_eq!(stages, all);
    let slowest = &timed["slowest"];
    assert_eq!(slowest["kind"], "place");
    let spent = slowest["parts"].as_array().expect("parts").iter();
    let spent: u64 = spent.map(|part| part.as_u64().expect("a time")).sum();
    assert_eq!(Some(spent), slowest["total"].as_u64());
    assert_eq!(timed["tail"]["count"], 1);
    let leave = json!({ "method": "UNSUBSCRIBE", "params": [name], "id": 1 });
    client.ask(&leave).await;
}
