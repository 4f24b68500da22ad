//! The rules that trading programs depend on: a test for each, named after it. What they cover in
//! breadth is tested besides, where the last column says.
//!
//! | rule | | besides |
//! |---|---|---|
//! | 1 | what REST signs | `orders`, `rsa`, `params`, `signature` |
//! | 2 | what the WebSocket API signs | `api`, `recorded` |
//! | 3 | responses, events and errors of the WebSocket API | `api`, `trading` |
//! | 4 | times and their units | `orders`, `signature` |
//! | 5 | numbers of depth events | `streams`, `market` |
//! | 6 | ids of trades | `trading`, `trade_ids` |
//! | 7 | errors | `orders`, `error`, `orders::request` |
//! | 8 | fields that must be there | `api`, `rows` |
//! | 9 | market orders by `quoteOrderQty` | `cargo dev clients` |
//! | 10 | headers and weights | `orders`, `limits` |
//! | 11 | pings, streams, the end of a server | `hostile`, `streams`, `websocket::connection` |
//! | 12 | keys on public calls | `recorded` |

use serde_json::{Value, json};
use thalweg_exchange::{Action, Command};
use thalweg_gateway::keys::{KeyKind, NewKey};

use crate::api::{WINDOW_MS, now_ms, signature, signed};
use crate::fixture::{Fixture, SYMBOL};
use crate::orders::{ask, send, sign};
use crate::trading::log_on;

const ORDER: (&str, &str) = ("POST", "order");
const BUY: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC";

/// Sends a signed order: a query and a body, signed as they are or as `signature` says.
async fn post(fixture: &Fixture, key: &NewKey, query: &str, body: &str) -> (u16, Value) {
    let path = format!("/api/v3/order?{query}");
    let (status, _, body) = send(fixture, ("POST", &path), &key.api_key, body).await;
    (status, body)
}

fn percent(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'+' | b'/' | b'=' => format!("%{byte:02X}"),
        byte => char::from(byte).to_string(),
    });
    escaped.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_1_the_signed_payload_is_the_raw_query_and_then_the_raw_body() {
    let (fixture, key) = Fixture::with_key().await;
    let time = || format!("timestamp={}&recvWindow={WINDOW_MS}", now_ms());
    let body = format!("price=9&quantity=0.0%3101&{}", time());
    // Without a separator, nothing escaped anew or sorted, digits in any case, signed in either.
    let code = sign(&key.secret, &format!("{BUY}{body}")).to_uppercase();
    let (query, signed_body) = (format!("{BUY}&signature={code}"), &*body);
    let (status, placed) = post(&fixture, &key, &query, signed_body).await;
    assert_eq!((status, &placed["origQty"]), (200, &json!("0.0101")));
    let signed_body = format!("signature={code}&{body}");
    assert_eq!(post(&fixture, &key, BUY, &signed_body).await.0, 200);
    let separated = sign(&key.secret, &format!("{BUY}&{body}"));
    let signed_body = format!("{body}&signature={separated}");
    assert_eq!(
        post(&fixture, &key, BUY, &signed_body).await.1["code"],
        -1022
    );
    // A name that is in both has the value of the query.
    let query = format!("{BUY}&price=8");
    let code = sign(&key.secret, &format!("{query}{body}"));
    let signed_body = format!("{body}&signature={code}");
    let (_, placed) = post(&fixture, &key, &query, &signed_body).await;
    assert_eq!(placed["price"], "8.000000", "{placed}");
    // Ed25519 in base64, escaped. RSA: see `rsa`.
    let key = fixture.new_key(KeyKind::Ed25519, 2);
    let payload = format!("{BUY}&price=9&quantity=0.01&{}", time());
    let code = signature(&key, &payload);
    assert!(code.ends_with('='), "{code}");
    let query = format!("{payload}&signature={}", percent(&code));
    assert_eq!(post(&fixture, &key, &query, "").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_2_the_websocket_api_signs_sorted_parameters_as_they_were_sent() {
    let (fixture, key) = Fixture::with_key().await;
    let mut client = fixture.connect("/ws-api/v3").await;
    let time = now_ms();
    let payload = format!(
        "apiKey={}&newClientOrderId=a:b/c&price=9.50&quantity=0.0100&recvWindow={WINDOW_MS}\
         &returnRateLimits=false&side=BUY&symbol=BTCUSDT&timeInForce=GTC&timestamp={time}\
         &type=LIMIT",
        key.api_key
    );
    let params = format!(
        r#""symbol":"BTCUSDT","side":"BUY","type":"LIMIT","timeInForce":"GTC","price":9.50,
        "quantity":0.0100,"newClientOrderId":"a:b/c","returnRateLimits":false,
        "timestamp":{time},"recvWindow":{WINDOW_MS},"apiKey":"{}","signature":"{}""#,
        key.api_key,
        sign(&key.secret, &payload)
    );
    client
        .send(&format!(
            r#"{{"id":"x","method":"order.place","params":{{{params}}}}}"#
        ))
        .await;
    let placed = client.json().await;
    assert_eq!(placed["id"], "x");
    assert_eq!(placed["result"]["clientOrderId"], "a:b/c", "{placed}");
    assert_eq!(placed.get("rateLimits"), None);
    // The id of an order as a text, and ids of requests with their type.
    let order = placed["result"]["orderId"].to_string();
    for id in [json!(7), json!("7"), json!(null)] {
        let params = json!({ "symbol": "BTCUSDT", "orderId": order });
        let request = json!({ "id": id, "method": "order.status", "params": signed(&key, params) });
        let status = client.ask(&request).await;
        assert_eq!((&status["id"], &status["status"]), (&id, &json!(200)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_3_responses_have_limits_events_their_subscription_and_errors_their_code() {
    let (fixture, key) = Fixture::with_key().await;
    let mut client = fixture.connect("/ws-api/v3").await;
    log_on(&mut client, &key).await;
    let subscribe = json!({ "id": 1, "method": "userDataStream.subscribe" });
    let subscribed = client.ask(&subscribe).await;
    assert_eq!(subscribed["result"]["subscriptionId"], 0);
    assert_eq!(
        subscribed["rateLimits"][0]["rateLimitType"],
        "REQUEST_WEIGHT"
    );
    fixture.place(1, Action::Bid, 900, 5).await;
    let event = client.json().await;
    let names: Vec<&String> = event.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["event", "subscriptionId"]);
    assert_eq!(event["event"]["e"], "executionReport");
    let request = json!({ "id": 3, "method": "depth", "params": { "symbol": "NONE" } });
    let mut refused = client.ask(&request).await;
    let limits = refused
        .as_object_mut()
        .and_then(|one| one.remove("rateLimits"));
    assert!(limits.is_some_and(|limits| limits.is_array()));
    let error = json!({ "code": -1121, "msg": "Invalid symbol." });
    assert_eq!(refused, json!({ "id": 3, "status": 400, "error": error }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_4_a_request_is_of_now_within_its_window_in_either_unit() {
    let (fixture, key) = Fixture::with_key().await;
    let account = async |query: String| {
        let code = sign(&key.secret, &query);
        let path = format!("/api/v3/account?{query}&signature={code}");
        let (status, _, body) = send(&fixture, ("GET", &path), &key.api_key, "").await;
        (status, body)
    };
    let late = "Timestamp for this request is outside of the recvWindow.";
    let ahead = "Timestamp for this request was 1000ms ahead of the server's time.";
    // Each has a time of its own: without another window it is one of now for 5 s.
    for (since_ms, unit, window, refused) in [
        (0, 1, "", None),
        (0, 1_000, "", None),
        (-6_000, 1, "", Some(late)),
        (-30_000, 1, "&recvWindow=60000", None),
        (-30_000, 1, "&recvWindow=59999.999", None),
        (-1_000, 1, "&recvWindow=100.5", Some(late)),
        (30_000, 1, "", Some(ahead)),
    ] {
        let time = now_ms().saturating_add_signed(since_ms) * unit;
        let query = format!("timestamp={time}{window}");
        let (status, body) = account(query.clone()).await;
        let expected = refused.map(|msg| json!({ "code": -1021, "msg": msg }));
        assert_eq!(status, if refused.is_some() { 400 } else { 200 }, "{query}");
        assert_eq!(Some(body).filter(|_| refused.is_some()), expected);
    }
    let (_, body) = account(format!("timestamp={}&recvWindow=60001", now_ms())).await;
    assert!(body["code"].as_i64() < Some(-1_000), "{body}");
    let times = ["/api/v3/time", "/api/v3/time?timeUnit=MICROSECOND"];
    let [millis, micros] = times.map(|path| fixture.json(path));
    let (millis, micros) = (millis.await, micros.await);
    let time = |value: &Value| value["serverTime"].as_i64().expect("a time");
    assert!((0..60_000).contains(&(time(&micros) / 1_000 - time(&millis))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_5_depth_events_count_on_from_each_other_and_from_the_snapshot() {
    let mut fixture = Fixture::new().await;
    let mut last = 0;
    for _ in 0..2 {
        let mut client = fixture.connect("/ws/btcusdt@depth@0ms").await;
        let list = json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 });
        client.ask(&list).await;
        let snapshot = fixture.json("/api/v3/depth?symbol=BTCUSDT").await;
        let mut before = snapshot["lastUpdateId"].as_u64().expect("a number");
        assert!(before >= last, "{before} after {last}");
        for price in 0..20 {
            fixture.place(1, Action::Bid, 900 - price, 5).await;
        }
        let first = before;
        // A command for each level.
        while before < first + 20 {
            let event = client.json().await;
            let [from, to] = ["U", "u"].map(|name| event[name].as_u64().expect("a number"));
            assert_eq!(from, before + 1, "{event}");
            assert!(to >= from, "{event}");
            before = to;
        }
        last = before;
        fixture = fixture.restart().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_6_ids_of_trades_count_by_symbol_and_go_on_after_a_restart() {
    let mut fixture = Fixture::new().await;
    for round in 1..=2 {
        fixture.place(1, Action::Ask, 1_000, 30).await;
        for _ in 0..10 {
            fixture.place(2, Action::Bid, 1_000, 3).await;
        }
        let trades = fixture.json("/api/v3/trades?symbol=BTCUSDT").await;
        let trades = trades.as_array().expect("a list").iter();
        let ids: Vec<i64> = trades
            .map(|trade| trade["id"].as_i64().expect("an id"))
            .collect();
        assert_eq!(ids, (1..=round * 10).collect::<Vec<i64>>());
        fixture = fixture.restart().await;
    }
}

/// Returns orders that are refused, each with its code and text.
fn refused() -> Vec<(String, i32, &'static str)> {
    let one = "type=LIMIT&timeInForce=GTC&quantity=1";
    let of = |rest: &str| format!("symbol=BTCUSDT&{rest}");
    vec![
        (
            of("side=BUY"),
            -1102,
            "Mandatory parameter 'type' was not sent, was empty/null, or malformed.",
        ),
        (of("side=UP&type=LIMIT"), -1117, "Invalid side."),
        (of("side=BUY&type=X"), -1116, "Invalid orderType."),
        (
            of(&format!("side=BUY&{one}&price=1&timeInForceX=1")),
            -1104,
            "Not all sent parameters were read; read '9' parameter(s) but was sent '10'.",
        ),
        (
            of(&format!("side=BUY&{one}&price=")),
            -1105,
            "Parameter 'price' was empty.",
        ),
        (
            of(&format!("side=BUY&{one}&price=1.0000001")),
            -1111,
            "Parameter 'price' has too much precision.",
        ),
        (
            of(&format!("side=BUY&{one}&price=1.001")),
            -1013,
            "Filter failure: PRICE_FILTER",
        ),
        (
            of("side=BUY&type=MARKET&quantity=1&price=1"),
            -1106,
            "Parameter 'price' sent when not required.",
        ),
        (
            of("side=BUY&type=MARKET&quantity=1&timeInForce=GTC"),
            -1114,
            "TimeInForce parameter sent when not required.",
        ),
        (
            of("side=BUY&type=LIMIT&timeInForce=X&quantity=1&price=1"),
            -1115,
            "Invalid timeInForce.",
        ),
        (
            of("side=BUY&type=MARKET&quantity=1&quoteOrderQty=1"),
            -1128,
            "Combination of optional parameters invalid.",
        ),
        (
            of(&format!("side=BUY&{one}&price=1&selfTradePreventionMode=X")),
            -1130,
            "Data sent for parameter 'selfTradePreventionMode' is not valid.",
        ),
        (
            of("side=BUY&type=LIMIT_MAKER&quantity=1&price=10"),
            -2010,
            "Order would immediately match and take.",
        ),
        (
            of("side=SELL&type=LIMIT&timeInForce=GTC&quantity=1000000000&price=1"),
            -2010,
            "Account has insufficient balance for requested action.",
        ),
        ("symbol=NONE&side=BUY".to_owned(), -1121, "Invalid symbol."),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_7_errors_have_their_status_code_and_exact_text() {
    let fixture = Fixture::with(|config| config.gateway.orders_per_10s = 12).await;
    let key = fixture.new_key(KeyKind::Hmac, 1);
    fixture.place(2, Action::Ask, 1_000, 30).await;
    for (params, code, text) in refused() {
        let (status, body) = ask(&fixture, &key, ORDER, &params).await;
        let expected = json!({ "code": code, "msg": text });
        assert_eq!((status, body), (400, expected), "{params}");
    }
    let unknown = "symbol=BTCUSDT&orderId=5";
    for (method, code, text) in [
        ("DELETE", -2011, "Unknown order sent."),
        ("GET", -2013, "Order does not exist."),
    ] {
        let (status, body) = ask(&fixture, &key, (method, "order"), unknown).await;
        assert_eq!((status, body), (400, json!({ "code": code, "msg": text })));
    }
    let many = format!("{unknown}&a=1&b=2&c=3");
    let (_, body) = ask(&fixture, &key, ("GET", "order"), &many).await;
    let text = "Too many parameters; expected '6' and received '8'.";
    assert_eq!(body, json!({ "code": -1101, "msg": text }));
    let (_, body) = fixture.get("/api/v3/depth?symbol=BTCUSDT&depth=5").await;
    assert!(
        body.contains("read '1' parameter(s) but was sent '2'"),
        "{body}"
    );
    let (_, head, _) = send(&fixture, ("GET", "/api/v3/depth"), "", "").await;
    assert!(head.contains("content-type: application/json"), "{head}");
    let symbol = SYMBOL;
    fixture.run(Command::Halt { symbol }).await;
    let halted = format!("{BUY}&price=9&quantity=1");
    loop {
        let (status, body) = ask(&fixture, &key, ORDER, &halted).await;
        if status == 429 {
            let text = "Too many new orders; current limit is 12 orders per 10 SECOND.";
            assert_eq!(body, json!({ "code": -1015, "msg": text }));
            break;
        }
        assert_eq!(body, json!({ "code": -2010, "msg": "Market is closed." }));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_8_answers_have_the_fields_that_programs_without_defaults_read() {
    let (fixture, key) = Fixture::with_key().await;
    let info = fixture.json("/api/v3/exchangeInfo").await;
    for name in [
        "timezone",
        "serverTime",
        "rateLimits",
        "exchangeFilters",
        "symbols",
    ] {
        assert!(info.get(name).is_some(), "{name}");
    }
    let symbol = &info["symbols"][0];
    let names = "status baseAssetPrecision quotePrecision quoteAssetPrecision orderTypes \
        icebergAllowed ocoAllowed quoteOrderQtyMarketAllowed allowTrailingStop \
        isSpotTradingAllowed isMarginTradingAllowed filters permissions";
    for name in names.split_whitespace() {
        assert!(symbol.get(name).is_some(), "{name}");
    }
    assert_eq!(symbol["permissionSets"], json!([["SPOT"]]));
    let types = [
        "LIMIT",
        "LIMIT_MAKER",
        "MARKET",
        "STOP_LOSS",
        "STOP_LOSS_LIMIT",
    ];
    assert_eq!(symbol["orderTypes"], json!(types));
    let filters = symbol["filters"].as_array().expect("a list").iter();
    let filters: Vec<&Value> = filters.map(|filter| &filter["filterType"]).collect();
    for name in ["PRICE_FILTER", "LOT_SIZE", "NOTIONAL"] {
        assert!(filters.contains(&&json!(name)), "{name}");
    }
    let (_, account) = ask(&fixture, &key, ("GET", "account"), "recvWindow=5000").await;
    assert_eq!(account["permissions"], json!(["SPOT"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_9_a_market_order_by_quote_quantity_spends_no_more_than_that() {
    let (fixture, key) = Fixture::with_key().await;
    fixture.place(2, Action::Ask, 1_000, 30).await;
    fixture.place(2, Action::Ask, 1_100, 30).await;
    let order = "symbol=BTCUSDT&side=BUY&type=MARKET&quoteOrderQty=0.0452";
    let (status, placed) = ask(&fixture, &key, ORDER, order).await;
    assert_eq!(status, 200, "{placed}");
    // 30 lots at 10, and of what is left 13 at 11.
    let [filled, spent, state] = ["executedQty", "cummulativeQuoteQty", "status"];
    assert_eq!(
        json!([placed[filled], placed[spent], placed[state]]),
        json!(["0.0043", "0.044300", "FILLED"]),
        "{placed}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_10_headers_say_what_is_used_and_weights_are_binances() {
    let fixture = Fixture::with(|config| config.gateway.weight_per_minute = 2_000).await;
    let key = fixture.new_key(KeyKind::Hmac, 1);
    let used = async |path: &str| {
        let (_, head, _) = send(&fixture, ("GET", path), &key.api_key, "").await;
        let line = head
            .lines()
            .find_map(|line| line.strip_prefix("x-mbx-used-weight-1m: "));
        line.expect("a header").parse::<u32>().expect("a number")
    };
    let mut before = used("/api/v3/ping").await;
    let query = |rest: &str| {
        let payload = format!("{rest}timestamp={}&recvWindow={WINDOW_MS}", now_ms());
        format!("{payload}&signature={}", sign(&key.secret, &payload))
    };
    let symbol = "symbol=BTCUSDT&";
    for (path, weight) in [
        ("exchangeInfo".to_owned(), 20),
        (format!("depth?{symbol}limit=100"), 5),
        (format!("depth?{symbol}limit=500"), 25),
        (format!("depth?{symbol}limit=1000"), 50),
        (format!("depth?{symbol}limit=5000"), 250),
        (format!("account?{}", query("")), 20),
        (format!("openOrders?{}", query(symbol)), 6),
        (format!("openOrders?{}", query("")), 80),
        (format!("myTrades?{}", query(symbol)), 20),
        (
            format!("myTrades?{}", query(&format!("{symbol}orderId=1&"))),
            5,
        ),
    ] {
        let after = used(&format!("/api/v3/{path}")).await;
        // A new minute begins with less.
        assert!(
            after == before + weight || after <= weight,
            "{path}: {before}, {after}"
        );
        before = after;
    }
    let order = query(&format!("{BUY}&price=9&quantity=1&"));
    let path = format!("/api/v3/order?{order}");
    let (status, head, _) = send(&fixture, ("POST", &path), &key.api_key, "").await;
    assert_eq!(status, 200);
    for name in ["x-mbx-order-count-10s: ", "x-mbx-order-count-1d: "] {
        assert!(head.contains(name), "{head}");
    }
    loop {
        let request = ("GET", "/api/v3/depth?symbol=BTCUSDT&limit=5000");
        let (status, head, body) = send(&fixture, request, "", "").await;
        if status == 429 {
            assert!(head.contains("retry-after: "), "{head}");
            assert_eq!(body["code"], -1003);
            break;
        }
    }
}

/// The pings, and the minute after which a connection without a pong is cut, are tested by a clock
/// of their own, in `websocket::connection`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_11_unknown_streams_are_accepted_and_a_stop_is_said_before() {
    let fixture = Fixture::new().await;
    let mut client = fixture.connect("/ws/whatever").await;
    let names: Vec<String> = (1..1_024).map(|at| format!("s{at}@trade")).collect();
    for (names, is_taken) in [(names, true), (vec!["one@more".to_owned()], false)] {
        let request = json!({ "method": "SUBSCRIBE", "params": names, "id": 1 });
        let answer = client.ask(&request).await;
        assert_eq!(
            answer == json!({ "id": 1, "result": null }),
            is_taken,
            "{answer}"
        );
    }
    fixture.gateway.drain();
    assert_eq!(client.json().await["e"], "serverShutdown");
    assert_eq!(client.closed_code().await, 1001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_a_key_on_a_public_call_is_neither_needed_nor_refused() {
    let (fixture, key) = Fixture::with_key().await;
    let path = "/api/v3/depth?symbol=BTCUSDT";
    let mut client = fixture.connect("/ws-api/v3").await;
    for api_key in ["", "no key", &"x".repeat(64), &key.api_key] {
        let (status, _, body) = send(&fixture, ("GET", path), api_key, "").await;
        assert_eq!(status, 200, "{body}");
        let params = json!({ "symbol": "BTCUSDT", "apiKey": api_key });
        let request = json!({ "id": 1, "method": "depth", "params": params });
        assert_eq!(client.ask(&request).await["status"], 200);
    }
    assert_eq!(fixture.get(path).await.0, 200);
}
