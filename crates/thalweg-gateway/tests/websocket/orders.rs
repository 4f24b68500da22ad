//! Orders by REST: signed requests over sockets.

use ring::hmac;
use serde_json::{Value, json};
use thalweg_exchange::{Action, Command};
use thalweg_gateway::keys::{KeyKind, NewKey};

use crate::api::{WINDOW_MS, now_ms};
use crate::fixture::{Fixture, SYMBOL, parts, respond};

pub(crate) fn sign(secret: &str, payload: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, payload.as_bytes());
    tag.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Sends a request as it is. Returns its status, head and body.
pub(crate) async fn send(
    fixture: &Fixture,
    (method, path): (&str, &str),
    key: &str,
    body: &str,
) -> (u16, String, Value) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nX-MBX-APIKEY: {key}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let response = respond(fixture.gateway.address(), head + body).await;
    let (status, head, body) = parts(&response);
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    (status, head.to_owned(), body)
}

/// Signs parameters, with the longest window where they have none, and sends them in the query.
pub(crate) async fn ask(
    fixture: &Fixture,
    key: &NewKey,
    request: (&str, &str),
    params: &str,
) -> (u16, Value) {
    let mut payload = format!("{params}&timestamp={}", now_ms());
    if !params.contains("recvWindow=") {
        payload += &format!("&recvWindow={WINDOW_MS}");
    }
    let signature = sign(&key.secret, &payload);
    let (method, path) = request;
    let path = format!("/api/v3/{path}?{payload}&signature={signature}");
    let (status, _, body) = send(fixture, (method, &path), &key.api_key, "").await;
    (status, body)
}

const PLACE: (&str, &str) = ("POST", "order");
const LIMIT: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_lives_as_its_responses_say() {
    let (fixture, key) = Fixture::with_key().await;
    fixture.place(2, Action::Ask, 10_050, 30).await;
    let order = format!("{LIMIT}&price=100.60&quantity=0.005&newClientOrderId=one");
    let (status, placed) = ask(&fixture, &key, PLACE, &order).await;
    assert_eq!(
        (status, &placed["status"]),
        (200, &json!("PARTIALLY_FILLED")),
        "{placed}"
    );
    assert_eq!(placed["executedQty"], "0.0030");
    assert_eq!(placed["cummulativeQuoteQty"], "0.301500");
    let fill = json!({
        "price": "100.500000", "qty": "0.0030", "commission": "0.000000",
        "commissionAsset": "USDT", "tradeId": 1,
    });
    assert_eq!(placed["fills"], json!([fill]));
    let (status, again) = ask(&fixture, &key, PLACE, &order).await;
    assert_eq!(
        (status, again),
        (400, json!({"code": -2010, "msg": "Duplicate order sent."}))
    );
    let open = ("GET", "openOrders");
    let (_, list) = ask(&fixture, &key, open, "symbol=BTCUSDT").await;
    assert_eq!(list[0]["orderId"], placed["orderId"]);
    let (_, account) = ask(&fixture, &key, ("GET", "account"), "omitZeroBalances=true").await;
    // Two thousandths rest at 100.60.
    assert_eq!(account["balances"][1]["locked"], "0.201200");
    let cancel = "symbol=BTCUSDT&origClientOrderId=one&newClientOrderId=two";
    let (status, gone) = ask(&fixture, &key, ("DELETE", "order"), cancel).await;
    assert_eq!(
        (status, &gone["status"]),
        (200, &json!("CANCELED")),
        "{gone}"
    );
    let names = (&gone["origClientOrderId"], &gone["clientOrderId"]);
    assert_eq!(names, (&json!("one"), &json!("two")));
    let (status, gone) = ask(&fixture, &key, ("DELETE", "order"), cancel).await;
    assert_eq!(
        (status, gone),
        (400, json!({"code": -2011, "msg": "Unknown order sent."}))
    );
    let (_, trades) = ask(&fixture, &key, ("GET", "myTrades"), "symbol=BTCUSDT").await;
    assert_eq!(
        (&trades[0]["id"], &trades[0]["isBuyer"]),
        (&json!(1), &json!(true))
    );
    let public = fixture.json("/api/v3/trades?symbol=BTCUSDT").await;
    assert_eq!(public[0]["id"], trades[0]["id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_times_of_a_new_order_are_one_and_of_the_servers_clock() {
    let (fixture, key) = Fixture::with_key().await;
    let server_time = async || {
        let time = fixture.json("/api/v3/time").await;
        time["serverTime"].as_i64().expect("a time")
    };
    let order = format!("{LIMIT}&price=9&quantity=0.005&newOrderRespType=FULL");
    let before = server_time().await;
    let (_, placed) = ask(&fixture, &key, PLACE, &order).await;
    let after = server_time().await;
    let time = placed["transactTime"].as_i64().expect("a time");
    assert!((before..=after).contains(&time), "{before} {time} {after}");
    let query = format!("symbol=BTCUSDT&orderId={}", placed["orderId"]);
    let (_, shown) = ask(&fixture, &key, ("GET", "order"), &query).await;
    for name in ["time", "updateTime", "workingTime"] {
        assert_eq!(shown[name], placed["transactTime"], "{name}");
    }
    let open = ("GET", "openOrders");
    let (_, open) = ask(&fixture, &key, open, "symbol=BTCUSDT").await;
    assert_eq!(open[0]["time"], placed["transactTime"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_that_do_not_fit_are_refused_with_exact_texts() {
    let (fixture, key) = Fixture::with_key().await;
    fixture.place(2, Action::Ask, 10_050, 30).await;
    let range = r"^([0-9]{1,20})(\.[0-9]{1,20})?$";
    let illegal =
        format!("Illegal characters found in parameter 'price'; legal range is '{range}'.");
    let digits = "1".repeat(40);
    let balance = "Account has insufficient balance for requested action.";
    for (params, code, text) in [
        ("price=-1&quantity=1", -1100, &*illegal),
        ("price=NaN&quantity=1", -1100, &illegal),
        ("price=1e2&quantity=1", -1100, &illegal),
        (&format!("price={digits}&quantity=1"), -1100, &illegal),
        (
            "price=1.0000001&quantity=1",
            -1111,
            "Parameter 'price' has too much precision.",
        ),
        (
            "price=1.001&quantity=1",
            -1013,
            "Filter failure: PRICE_FILTER",
        ),
        ("price=1&quantity=0", -1013, "Filter failure: LOT_SIZE"),
        ("price=100&quantity=50000000", -2010, balance),
    ] {
        let (status, body) = ask(&fixture, &key, PLACE, &format!("{LIMIT}&{params}")).await;
        assert_eq!(
            (status, body),
            (400, json!({"code": code, "msg": text})),
            "{params}"
        );
    }
    let maker = "symbol=BTCUSDT&side=BUY&type=LIMIT_MAKER&price=101&quantity=0.001";
    let (_, body) = ask(&fixture, &key, PLACE, maker).await;
    assert_eq!(body["msg"], "Order would immediately match and take.");
    let fok = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=FOK&price=101&quantity=1";
    let (status, body) = ask(&fixture, &key, PLACE, fok).await;
    assert_eq!((status, &body["status"]), (200, &json!("EXPIRED")));
    let (_, body) = ask(
        &fixture,
        &key,
        ("GET", "order"),
        "symbol=BTCUSDT&orderId=9999",
    )
    .await;
    assert_eq!(body, json!({"code": -2013, "msg": "Order does not exist."}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_hold_for_each_type_and_what_cannot_be_done_is_refused() {
    let symbols = include_str!("../symbols.toml").to_owned() + "min_notional = \"5\"\n";
    let fixture = Fixture::listing(&symbols, |_| ()).await;
    let key = fixture.new_key(KeyKind::Hmac, 1);
    fixture.place(2, Action::Ask, 10_050, 10_000).await;
    fixture.place(3, Action::Bid, 10_050, 1).await;
    let price = "/api/v3/ticker/price?symbol=BTCUSDT";
    while fixture.json(price).await["price"] != "100.500000" {
        tokio::task::yield_now().await;
    }
    let refused = |text: &str| json!({ "code": -1013, "msg": format!("Filter failure: {text}") });
    // 4.02 USDT.
    let market = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0.04";
    for path in ["order", "order/test"] {
        let (_, body) = ask(&fixture, &key, ("POST", path), market).await;
        assert_eq!(body, refused("NOTIONAL"), "{path}");
    }
    let (status, _) = ask(&fixture, &key, PLACE, &market.replace("0.04", "0.05")).await;
    assert_eq!(status, 200);
    let (symbol, low, high) = (SYMBOL, 9_000, 11_000);
    fixture
        .run(Command::SetPriceBand { symbol, low, high })
        .await;
    for price in ["89.99", "110.01"] {
        let order = format!("{LIMIT}&quantity=1&price={price}");
        let (_, body) = ask(&fixture, &key, PLACE, &order).await;
        assert_eq!(body, refused("PRICE_FILTER"), "{price}");
    }
    let stop = "symbol=BTCUSDT&side=SELL&type=STOP_LOSS&quantity=1&stopPrice=80";
    let (status, body) = ask(&fixture, &key, PLACE, stop).await;
    assert_eq!(status, 200, "{body}");
    let order = format!("{LIMIT}&quantity=1&price=95&newClientOrderId=one");
    let (_, placed) = ask(&fixture, &key, PLACE, &order).await;
    assert_eq!(placed["status"], "NEW", "{placed}");
    let unsupported = json!({ "code": -1020, "msg": "This operation is not supported." });
    let amend = ("PUT", "order/amend/keepPriority");
    let amended = "symbol=BTCUSDT&origClientOrderId=one&newQty=0.5&newClientOrderId=";
    let (_, body) = ask(&fixture, &key, amend, &format!("{amended}two")).await;
    assert_eq!(body, unsupported);
    let (status, body) = ask(&fixture, &key, amend, &format!("{amended}one")).await;
    assert_eq!(status, 200, "{body}");
    let replace = format!(
        "{LIMIT}&quantity=1&price=96&cancelReplaceMode=STOP_ON_FAILURE&cancelOrigClientOrderId=one"
    );
    let mode = "&orderRateLimitExceededMode=";
    let replacing = ("POST", "order/cancelReplace");
    let (_, body) = ask(
        &fixture,
        &key,
        replacing,
        &format!("{replace}{mode}CANCEL_ONLY"),
    )
    .await;
    assert_eq!(body, unsupported);
    let (status, body) = ask(
        &fixture,
        &key,
        replacing,
        &format!("{replace}{mode}DO_NOTHING"),
    )
    .await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_times_and_keys_are_checked() {
    let (fixture, key) = Fixture::with_key().await;
    let other = fixture.new_key(KeyKind::Hmac, 2);
    let try_with = async |payload: &str, sent: &str, api_key: &str| {
        let signature = sign(&key.secret, payload);
        let path = format!("/api/v3/account?{sent}&signature={signature}");
        let (_, _, body) = send(&fixture, ("GET", &path), api_key, "").await;
        body["code"].as_i64()
    };
    let now = now_ms();
    let time = format!("timestamp={now}&recvWindow={WINDOW_MS}");
    let payload = format!("omitZeroBalances=true&{time}");
    assert_eq!(try_with(&payload, &payload, &key.api_key).await, None);
    let sorted = format!("{time}&omitZeroBalances=true");
    assert_eq!(try_with(&payload, &sorted, &key.api_key).await, Some(-1022));
    let escaped = format!("omitZeroBalances=tru%65&{time}");
    assert_eq!(
        try_with(&payload, &escaped, &key.api_key).await,
        Some(-1022)
    );
    assert_eq!(
        try_with(&payload, &payload, &other.api_key).await,
        Some(-1022)
    );
    assert_eq!(
        try_with(&payload, &payload, &"x".repeat(64)).await,
        Some(-2015)
    );
    assert_eq!(try_with(&payload, &payload, "short").await, Some(-2014));
    for at in [now - 60_000, now + 60_000] {
        let payload = format!("timestamp={at}");
        assert_eq!(
            try_with(&payload, &payload, &key.api_key).await,
            Some(-1021)
        );
    }
    assert_eq!(try_with("a=1", "a=1", &key.api_key).await, Some(-1102));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_too_long_or_no_text_are_refused_and_headers_count() {
    let (fixture, key) = Fixture::with_key().await;
    let long = "a".repeat(10 << 20);
    let (status, _, _) = send(&fixture, ("POST", "/api/v3/order"), &key.api_key, &long).await;
    assert_eq!(status, 413);
    let time = format!("timestamp={}&recvWindow={WINDOW_MS}", now_ms());
    let payload = format!("{LIMIT}&price=1&quantity=0.001&{time}");
    let body = format!("{payload}&signature={}", sign(&key.secret, &payload));
    let (status, head, body) = send(&fixture, ("POST", "/api/v3/order"), &key.api_key, &body).await;
    assert_eq!((status, &body["status"]), (200, &json!("NEW")), "{body}");
    for header in [
        "x-mbx-order-count-10s: 1",
        "x-mbx-order-count-1d: 1",
        "x-mbx-used-weight-1m",
    ] {
        assert!(head.contains(header), "{head}");
    }
    let (status, _, _) = send(&fixture, ("GET", "/api/v3/nothing"), &key.api_key, "").await;
    assert_eq!(status, 404);
    let request = b"POST /api/v3/order HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\
        Content-Length: 8\r\n\r\nsymbol=\xff";
    let answer = respond(fixture.gateway.address(), request).await;
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("-1100"),
        "{answer}"
    );
}
