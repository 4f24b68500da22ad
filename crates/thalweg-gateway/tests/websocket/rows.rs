//! Endpoints of the market and the account that have few users.

use serde_json::{Value, json};
use thalweg_exchange::{Action, Command, UserId, UserLimits};

use crate::api::signed;
use crate::fixture::Fixture;

/// Trades 0.0002 BTC at 10 USDT and 0.0006 at 20.
async fn trade(fixture: &Fixture) {
    for (price, lots) in [(1_000, 2), (2_000, 6)] {
        fixture.place(1, Action::Ask, price, lots).await;
        fixture.place(2, Action::Bid, price, lots).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tickers_have_the_window_that_is_asked_for() {
    let fixture = Fixture::new().await;
    trade(&fixture).await;
    for path in [
        "ticker?symbol=BTCUSDT",
        "ticker?symbol=BTCUSDT&windowSize=1m",
        "ticker?symbol=BTCUSDT&windowSize=23h",
        "ticker?symbol=BTCUSDT&windowSize=7d",
        "ticker/tradingDay?symbol=BTCUSDT&timeZone=0",
    ] {
        let row = fixture.json(&format!("/api/v3/{path}")).await;
        for (name, value) in [
            ("symbol", json!("BTCUSDT")),
            ("openPrice", json!("10.000000")),
            ("highPrice", json!("20.000000")),
            ("lastPrice", json!("20.000000")),
            ("priceChange", json!("10.000000")),
            ("priceChangePercent", json!("100.000")),
            ("weightedAvgPrice", json!("17.500000")),
            ("volume", json!("0.0008")),
            ("quoteVolume", json!("0.014000")),
            ("count", json!(2)),
        ] {
            assert_eq!(row[name], value, "{path} {name}");
        }
        let length = row["closeTime"].as_i64().zip(row["openTime"].as_i64());
        let length = length.map(|(close, open)| close - open).expect("times");
        let (least, most) = match path {
            _ if path.ends_with("1m") => (60_000, 120_000),
            _ if path.ends_with("23h") => (23 * 3_600_000, 23 * 3_600_000 + 60_000),
            _ if path.ends_with("7d") => (168 * 3_600_000, 169 * 3_600_000),
            _ if path.contains("tradingDay") => (86_399_999, 86_400_000),
            _ => (86_400_000, 86_460_000),
        };
        assert!((least..most).contains(&length), "{path}: {length}");
    }
    let list = "/api/v3/ticker?symbols=[%22BTCUSDT%22]&type=MINI";
    let list = fixture.json(list).await;
    assert_eq!(list[0]["count"], 2);
    assert_eq!(list[0].get("priceChange"), None);
    for (path, code) in [
        ("ticker", -1102),
        ("ticker/tradingDay", -1102),
        ("ticker/tradingDay?symbol=BTCUSDT&timeZone=5", -1020),
        ("ticker?symbol=BTCUSDT&windowSize=60m", -1130),
        ("ticker?symbol=BTCUSDT&windowSize=24h", -1130),
        ("ticker?symbol=BTCUSDT&windowSize=0d", -1130),
        ("ticker?symbol=BTCUSDT&windowSize=8d", -1130),
        ("ticker?symbol=BTCUSDT&windowSize=%2B1d", -1130),
        ("ticker?symbol=BTCUSDT&windowSize=d", -1130),
        ("ticker?symbol=BTCUSDT&windowSize=%C3%A9", -1130),
        ("avgPrice", -1102),
    ] {
        let path = format!("/api/v3/{path}");
        let (status, body) = fixture.get(&path).await;
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!((status, &body["code"]), (400, &json!(code)), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_average_price_is_weighted_by_quantity_as_answer_and_as_stream() {
    let fixture = Fixture::new().await;
    let before = fixture.json("/api/v3/avgPrice?symbol=BTCUSDT").await;
    let none = json!({ "mins": 5, "price": "0.000000", "closeTime": 0 });
    assert_eq!(before, none);
    trade(&fixture).await;
    let average = fixture.json("/api/v3/avgPrice?symbol=BTCUSDT").await;
    let trades = fixture.json("/api/v3/trades?symbol=BTCUSDT").await;
    assert_eq!(average["price"], "17.500000");
    assert_eq!(average["closeTime"], trades[1]["time"]);
    let mut client = fixture.connect("/ws/btcusdt@avgPrice").await;
    let event = client.json().await;
    for (name, value) in [
        ("e", json!("avgPrice")),
        ("s", json!("BTCUSDT")),
        ("i", json!("5m")),
        ("w", json!("17.500000")),
        ("T", average["closeTime"].clone()),
    ] {
        assert_eq!(event[name], value, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn symbols_are_listed_by_permission_and_status() {
    let fixture = Fixture::new().await;
    for (query, count) in [
        ("", 1),
        ("?permissions=SPOT", 1),
        ("?permissions=[%22SPOT%22,%22MARGIN%22]", 1),
        ("?permissions=MARGIN", 0),
        ("?permissions=[%22LEVERAGED%22]", 0),
        ("?symbolStatus=TRADING", 1),
        ("?symbolStatus=BREAK", 0),
    ] {
        let info = fixture.json(&format!("/api/v3/exchangeInfo{query}")).await;
        assert_eq!(
            info["symbols"].as_array().map(Vec::len),
            Some(count),
            "{query}"
        );
    }
    let info = fixture
        .json("/api/v3/exchangeInfo?showPermissionSets=false")
        .await;
    assert_eq!(info["symbols"][0]["permissionSets"], json!([]));
    for (query, code) in [
        ("symbol=BTCUSDT&permissions=SPOT", "-1128"),
        ("symbols=[%22BTCUSDT%22]&symbolStatus=TRADING", "-1128"),
        ("symbolStatus=OPEN", "-1130"),
        ("permissions=[SPOT]", "-1130"),
    ] {
        let (status, body) = fixture.get(&format!("/api/v3/exchangeInfo?{query}")).await;
        assert!(status == 400 && body.contains(code), "{query}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_commissions_and_no_prevented_matches() {
    let (fixture, key) = Fixture::with_key().await;
    let mut client = fixture.connect("/ws-api/v3").await;
    for (method, params, expected) in [
        (
            "myPreventedMatches",
            json!({ "symbol": "BTCUSDT", "orderId": 1 }),
            Ok(json!([])),
        ),
        (
            "myPreventedMatches",
            json!({ "symbol": "BTCUSDT" }),
            Err(-1128),
        ),
        (
            "myPreventedMatches",
            json!({ "symbol": "NONE", "orderId": 1 }),
            Err(-1121),
        ),
        ("account.commission", json!({}), Err(-1102)),
    ] {
        let request = json!({ "id": 1, "method": method, "params": signed(&key, params) });
        let answer = client.ask(&request).await;
        match expected {
            Ok(result) => assert_eq!(answer["result"], result),
            Err(code) => assert_eq!(answer["error"]["code"], code, "{answer}"),
        }
    }
    let params = signed(&key, json!({ "symbol": "BTCUSDT" }));
    let request = json!({ "id": 1, "method": "account.commission", "params": params });
    let rates = client.ask(&request).await["result"].clone();
    assert_eq!(rates["standardCommission"]["taker"], "0.00000000");
    assert_eq!(rates["discount"]["enabledForSymbol"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn symbols_are_named_once_and_as_many_as_binance_takes() {
    let fixture = Fixture::new().await;
    trade(&fixture).await;
    let list = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("%22{name}%22")).collect();
        format!("symbols=[{}]", names.join(","))
    };
    for path in [
        "exchangeInfo",
        "ticker",
        "ticker/tradingDay",
        "ticker/24hr",
        "ticker/price",
        "ticker/bookTicker",
    ] {
        let once = list(&["BTCUSDT"]);
        let (status, body) = fixture.get(&format!("/api/v3/{path}?{once}")).await;
        assert_eq!(status, 200, "{path}: {body}");
        let twice = list(&["BTCUSDT", "BTCUSDT"]);
        let (status, body) = fixture.get(&format!("/api/v3/{path}?{twice}")).await;
        let text = r#"{"code":-1101,"msg":"Duplicate values for a parameter detected."}"#;
        assert_eq!((status, &*body), (400, text), "{path}");
    }
    let many = list(&["BTCUSDT"; 101]);
    let (status, body) = fixture.get(&format!("/api/v3/ticker?{many}")).await;
    let text = "Too many values sent for parameter 'symbols', maximum allowed up to 100.";
    let text = format!(r#"{{"code":-1101,"msg":"{text}"}}"#);
    assert_eq!((status, body), (400, text));
    let last = fixture.json("/api/v3/ticker/price?symbol=BTCUSDT").await;
    assert_eq!(last, json!({ "symbol": "BTCUSDT", "price": "20.000000" }));
}

/// Returns the open orders that `exchangeInfo` says a user may have.
async fn orders_max(fixture: &Fixture) -> Option<u64> {
    let info = fixture.json("/api/v3/exchangeInfo").await;
    let filters = info["symbols"][0]["filters"].as_array().expect("filters");
    let filter = filters
        .iter()
        .find(|filter| filter["filterType"] == "MAX_NUM_ORDERS");
    filter.map(|filter| filter["maxNumOrders"].as_u64().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_orders_that_are_shown_are_those_that_are_taken() {
    let fixture = Fixture::with(|config| config.sessions.open_orders_max = 2).await;
    assert_eq!(orders_max(&fixture).await, Some(2));
    for limits in [Some(UserLimits::NONE.with_open_orders(7)), None] {
        let command = Command::SetLimits { uid: None, limits };
        fixture.run(command).await;
        // The limits of one user are not shown.
        let limits = Some(UserLimits::NONE.with_open_orders(1));
        let uid = Some(UserId(1));
        fixture.run(Command::SetLimits { uid, limits }).await;
        fixture.place(2, Action::Ask, 3_000, 1).await;
    }
    // The gateway has followed all commands before the last order.
    assert_eq!(orders_max(&fixture).await, None);
    let limits = Some(UserLimits::NONE.with_open_orders(9));
    fixture.run(Command::SetLimits { uid: None, limits }).await;
    fixture.place(2, Action::Ask, 3_000, 1).await;
    assert_eq!(orders_max(&fixture).await, Some(9));
    let fixture = fixture.restart().await;
    assert_eq!(orders_max(&fixture).await, Some(9));
}
