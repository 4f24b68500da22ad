//! The WebSocket API.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};
use thalweg_exchange::Action;
use thalweg_gateway::keys::{KeyKind, NewKey};

use crate::fixture::Fixture;
use crate::orders::sign;

pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("it is later").as_millis() as u64
}

/// The longest time for which a request is valid: that without this parameter is 5 s, after which a
/// busy machine may come to it.
pub(crate) const WINDOW_MS: u64 = 60_000;

/// Adds key, time and signature to parameters, and the longest window where they have none.
pub(crate) fn signed(key: &NewKey, mut params: Value) -> Value {
    params["apiKey"] = key.api_key.clone().into();
    params["timestamp"] = now_ms().into();
    if params.get("recvWindow").is_none() {
        params["recvWindow"] = WINDOW_MS.into();
    }
    let sorted = params.as_object().expect("an object").iter();
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    let pairs = sorted.map(|(name, value)| format!("{name}={}", text(value)));
    let payload = pairs.collect::<Vec<_>>().join("&");
    params["signature"] = signature(key, &payload).into();
    params
}

/// Returns the signature of a text: an HMAC in hex, or an Ed25519 signature in base64.
pub(crate) fn signature(key: &NewKey, payload: &str) -> String {
    let lines: Vec<&str> = key.secret.lines().collect();
    match &lines[..] {
        [_, body @ .., _] => {
            let der = STANDARD.decode(body.concat()).expect("base64");
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).expect("a key");
            STANDARD.encode(pair.sign(payload.as_bytes()))
        }
        _ => sign(&key.secret, payload),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ed25519_key_logs_on_and_another_signature_does_not() {
    let fixture = Fixture::new().await;
    let key = fixture.new_key(KeyKind::Ed25519, 1);
    let other = fixture.new_key(KeyKind::Ed25519, 1);
    let mut client = fixture.connect("/ws-api/v3").await;
    let mut wrong = signed(&other, json!({}));
    wrong["apiKey"] = key.api_key.clone().into();
    for (params, status) in [(wrong, 400), (signed(&key, json!({})), 200)] {
        let request = json!({ "id": 1, "method": "session.logon", "params": params });
        let response = client.ask(&request).await;
        assert_eq!(response["status"], status, "{response}");
    }
    // A request of the past is refused in a session that has logged on, too.
    let mut late = signed(&key, json!({}));
    late["timestamp"] = (now_ms() - 70_000).into();
    let request = json!({ "id": 1, "method": "session.logon", "params": late });
    assert_eq!(client.ask(&request).await["error"]["code"], -1021);
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_have_the_id_as_it_was_sent_and_the_limits_unless_not_wanted() {
    let fixture = Fixture::new().await;
    let mut client = fixture.connect("/ws-api/v3").await;
    for id in [
        json!(1),
        json!("a \"b\""),
        json!(null),
        json!(-7),
        json!(1.5),
    ] {
        let response = client.ask(&json!({ "id": id, "method": "ping" })).await;
        assert_eq!((&response["id"], &response["status"]), (&id, &json!(200)));
        let limits = &response["rateLimits"][0];
        assert_eq!(limits["rateLimitType"], "REQUEST_WEIGHT");
        assert!(limits["count"].as_u64().expect("a count") > 0);
    }
    let quiet = json!({ "returnRateLimits": false });
    let response = client
        .ask(&json!({ "id": 2, "method": "v3/time", "params": quiet }))
        .await;
    assert!(response["result"]["serverTime"].as_u64().expect("a time") <= now_ms());
    assert_eq!(response.get("rateLimits"), None);
    let mut client = fixture
        .connect("/ws-api/v3?returnRateLimits=false&timeUnit=MICROSECOND")
        .await;
    let response = client.ask(&json!({ "id": 2, "method": "time" })).await;
    assert_eq!(response.get("rateLimits"), None);
    assert!(response["result"]["serverTime"].as_u64().expect("a time") > now_ms() * 500);
    let wanted = json!({ "returnRateLimits": true });
    let response = client
        .ask(&json!({ "id": 2, "method": "time", "params": wanted }))
        .await;
    assert!(response.get("rateLimits").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_of_the_market_answer_as_rest_does() {
    let fixture = Fixture::new().await;
    fixture.place(1, Action::Ask, 1_000, 5).await;
    fixture.place(2, Action::Bid, 1_000, 2).await;
    let mut client = fixture.connect("/ws-api/v3").await;
    for (method, path) in [
        ("depth", "depth?symbol=BTCUSDT"),
        ("trades.recent", "trades?symbol=BTCUSDT"),
        (
            "trades.historical",
            "historicalTrades?symbol=BTCUSDT&fromId=1",
        ),
        ("trades.aggregate", "aggTrades?symbol=BTCUSDT&limit=1"),
        ("klines", "klines?symbol=BTCUSDT&interval=1M"),
        ("ticker.price", "ticker/price"),
        ("ticker.book", "ticker/bookTicker?symbol=BTCUSDT"),
        ("ticker.tradingDay", "ticker/tradingDay?symbol=BTCUSDT"),
        ("avgPrice", "avgPrice?symbol=BTCUSDT"),
    ] {
        let pairs = path
            .split_once('?')
            .map_or("", |(_, query)| query)
            .split('&');
        let pairs = pairs.filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.into()));
        let params: serde_json::Map<String, Value> = pairs.collect();
        let request = json!({ "id": method, "method": method, "params": params });
        let expected = fixture.json(&format!("/api/v3/{path}")).await;
        let response = client.ask(&request).await;
        assert_eq!(response["result"], expected, "{method}");
        assert!(response["result"].to_string().len() > 20, "{response}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_wrong_have_errors() {
    let fixture = Fixture::new().await;
    let mut client = fixture.connect("/ws-api/v3").await;
    for (text, id, code) in [
        ("{", json!(null), -1135),
        (r#"{"id":1}"#, json!(null), -1135),
        (r#"{"id":1,"method":"no.such"}"#, json!(1), -1020),
        (
            r#"{"id":{"a":1},"method":"ping"}"#,
            json!({ "a": 1 }),
            -1100,
        ),
        (r#"{"id":2,"method":"depth"}"#, json!(2), -1102),
        (
            r#"{"id":2,"method":"depth","params":{"symbol":"NONE"}}"#,
            json!(2),
            -1121,
        ),
        (
            r#"{"id":2,"method":"klines","params":{"symbol":"BTCUSDT","interval":"7m"}}"#,
            json!(2),
            -1120,
        ),
        (
            r#"{"id":2,"method":"depth","params":{"symbol":"BTCUSDT","limit":-1}}"#,
            json!(2),
            -1100,
        ),
        (
            r#"{"id":2,"method":"depth","params":{"symbol":{}}}"#,
            json!(2),
            -1100,
        ),
        (
            r#"{"id":3,"method":"userDataStream.subscribe"}"#,
            json!(3),
            -1002,
        ),
        (r#"{"id":3,"method":"session.logon"}"#, json!(3), -1102),
        (
            r#"{"id":3,"method":"session.logon","params":{"apiKey":"short"}}"#,
            json!(3),
            -2014,
        ),
    ] {
        client.send(text).await;
        let response = client.json().await;
        assert_eq!(response["error"]["code"], code, "{text}");
        assert_eq!(response["id"], id, "{text}");
        assert!(response["status"].as_u64().expect("a status") >= 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_the_key_that_it_logged_on_with() {
    let (fixture, key) = Fixture::with_key().await;
    let other = fixture.new_key(KeyKind::Hmac, 2);
    let mut client = fixture.connect("/ws-api/v3").await;
    let ask = |method: &str, params: Value| json!({ "id": 1, "method": method, "params": params });
    let status = client.ask(&ask("session.status", json!({}))).await;
    assert_eq!(status["result"]["apiKey"], Value::Null);
    assert_eq!(status["result"]["userDataStream"], false);

    let mut wrong = signed(&key, json!({ "recvWindow": 5_000.25 }));
    let right = wrong.clone();
    wrong["recvWindow"] = json!(5_000.5);
    assert_eq!(
        client.ask(&ask("session.logon", wrong)).await["error"]["code"],
        -1022
    );
    let logged_on = client.ask(&ask("session.logon", right)).await;
    assert_eq!(logged_on["result"]["apiKey"], *key.api_key);
    let first = client
        .ask(&ask("userDataStream.subscribe", json!({})))
        .await;
    assert_eq!(first["result"]["subscriptionId"], 0);
    let again = client
        .ask(&ask("userDataStream.subscribe", json!({})))
        .await;
    assert_eq!(again["error"]["code"], -2035);
    let params = signed(&other, json!({}));
    let second = client
        .ask(&ask("userDataStream.subscribe.signature", params))
        .await;
    assert_eq!(second["result"]["subscriptionId"], 1);
    let all = client.ask(&ask("session.subscriptions", json!({}))).await;
    assert_eq!(
        all["result"],
        json!([{ "subscriptionId": 0 }, { "subscriptionId": 1 }])
    );

    // Logging out ends the stream of the session only.
    client
        .send(&ask("session.logout", json!({})).to_string())
        .await;
    let ended = client.json().await;
    assert_eq!(
        (&ended["subscriptionId"], &ended["event"]["e"]),
        (&json!(0), &json!("eventStreamTerminated"))
    );
    let status = client.json().await;
    assert_eq!(status["result"]["authorizedSince"], Value::Null);
    assert_eq!(status["result"]["userDataStream"], true);
    let gone = ask("userDataStream.unsubscribe", json!({ "subscriptionId": 0 }));
    assert_eq!(client.ask(&gone).await["error"]["code"], -2036);
    assert_eq!(
        client
            .ask(&ask("userDataStream.unsubscribe", json!({})))
            .await["result"],
        json!({})
    );
    let all = client.ask(&ask("session.subscriptions", json!({}))).await;
    assert_eq!(all["result"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_16_followers_whatever_their_connections() {
    let (fixture, key) = Fixture::with_key().await;
    let subscribe = || {
        let params = signed(&key, json!({}));
        json!({ "id": 1, "method": "userDataStream.subscribe.signature", "params": params })
    };
    let mut clients = Vec::new();
    for at in 0..17 {
        let mut client = fixture.connect("/ws-api/v3").await;
        let answer = client.ask(&subscribe()).await;
        match at {
            16 => assert_eq!(answer["error"]["code"], -1034),
            _ => assert_eq!(answer["result"]["subscriptionId"], 0),
        }
        clients.push(client);
    }
    // Each gets the events of the user.
    fixture.place(1, Action::Ask, 1_000, 1).await;
    for client in &mut clients[..16] {
        let event = client.json().await;
        assert_eq!(event["subscriptionId"], 0);
        assert_eq!(event["event"]["e"], "executionReport");
    }
    // One that ends leaves its place.
    let end = json!({ "id": 2, "method": "userDataStream.unsubscribe", "params": {} });
    clients[3].send(&end.to_string()).await;
    while clients[3].json().await.get("id").is_none() {}
    let answer = clients[16].ask(&subscribe()).await;
    assert_eq!(answer["result"]["subscriptionId"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_symbol_fit_programs_whose_numbers_have_nine_decimals_in_64_bits() {
    let fixture = Fixture::new().await;
    let information = fixture.json("/api/v3/exchangeInfo").await;
    let filters = information["symbols"][0]["filters"].as_array();
    for name in ["maxPrice", "maxQty", "maxNotional"] {
        let mut found = filters
            .expect("a list")
            .iter()
            .filter_map(|f| f[name].as_str());
        let shown: f64 = found.next().expect(name).parse().expect("a number");
        assert!(
            shown > 1e9 && shown < i64::MAX as f64 / 1e9,
            "{name}: {shown}"
        );
    }
}
