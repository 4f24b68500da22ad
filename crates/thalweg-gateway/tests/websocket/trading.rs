//! Orders by the WebSocket API, and the events of users.

use serde_json::{Value, json};
use thalweg_exchange::{Action, AdjustmentKind, Command, CurrencyId, UserId};
use thalweg_gateway::keys::{KeyKind, NewKey};

use crate::api::{WINDOW_MS, now_ms, signed};
use crate::fixture::{Client, Fixture};

/// A connection that has logged on, and one that follows the same user.
struct Trader {
    api: Client,
    events: Client,
}

impl Trader {
    async fn new(fixture: &Fixture, user: i64) -> Self {
        let key = fixture.new_key(KeyKind::Hmac, user);
        let mut api = fixture.connect("/ws-api/v3?returnRateLimits=false").await;
        log_on(&mut api, &key).await;
        let mut events = fixture.connect("/ws-api/v3").await;
        let params = signed(&key, json!({}));
        let subscribe = json!({
            "id": 1, "method": "userDataStream.subscribe.signature", "params": params,
        });
        assert_eq!(events.ask(&subscribe).await["result"]["subscriptionId"], 0);
        Self { api, events }
    }

    /// Sends a request of a session that has logged on.
    async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        in_time(&mut params);
        let request = json!({ "id": method, "method": method, "params": params });
        self.api.ask(&request).await
    }

    /// Returns the next event.
    async fn event(&mut self) -> Value {
        let event = self.events.json().await;
        assert_eq!(event["subscriptionId"], 0);
        event["event"].clone()
    }
}

/// Adds the time to parameters of a session that has logged on, and the longest window.
fn in_time(params: &mut Value) {
    params["timestamp"] = now_ms().into();
    params["recvWindow"] = WINDOW_MS.into();
}

pub(crate) async fn log_on(client: &mut Client, key: &NewKey) {
    let request = json!({ "id": 1, "method": "session.logon", "params": signed(key, json!({})) });
    assert_eq!(client.ask(&request).await["status"], 200);
}

fn limit(side: &str, price: &str, quantity: &str) -> Value {
    json!({
        "symbol": "BTCUSDT", "side": side, "type": "LIMIT", "timeInForce": "GTC",
        "price": price, "quantity": quantity,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_placed_filled_and_reported_with_all_fields() {
    let fixture = Fixture::new().await;
    let mut trader = Trader::new(&fixture, 1).await;
    let mut order = limit("SELL", "10", "0.0005");
    order["newClientOrderId"] = "mine".into();
    let placed = trader.ask("order.place", order).await["result"].clone();
    assert_eq!(placed["status"], "NEW");
    let new = trader.event().await;
    let names = "eEscSofqpPFgCxXrilzLnNTtIwmMOZYQWV";
    for name in names.chars() {
        assert!(new.get(name.to_string()).is_some(), "{name} of {new}");
    }
    for (name, value) in [
        ("e", json!("executionReport")),
        ("x", json!("NEW")),
        ("X", json!("NEW")),
        ("c", json!("mine")),
        ("i", placed["orderId"].clone()),
        ("q", json!("0.0005")),
        ("p", json!("10.000000")),
        ("w", json!(true)),
        ("t", json!(-1)),
        ("N", Value::Null),
        ("r", json!("NONE")),
        ("V", json!("NONE")),
    ] {
        assert_eq!(new[name], value, "{name}");
    }
    let position = trader.event().await;
    assert_eq!(position["e"], "outboundAccountPosition");
    let assets: Vec<&Value> = position["B"].as_array().expect("a list").iter().collect();
    let names: Vec<&Value> = assets.iter().map(|asset| &asset["a"]).collect();
    assert_eq!(names, [&json!("BTC"), &json!("USDT")]);
    assert_eq!(assets[0]["l"], "0.0005");

    fixture.place(2, Action::Bid, 1_000, 2).await;
    let trade = trader.event().await;
    for (name, value) in [
        ("x", json!("TRADE")),
        ("X", json!("PARTIALLY_FILLED")),
        ("l", json!("0.0002")),
        ("z", json!("0.0002")),
        ("L", json!("10.000000")),
        ("Z", json!("0.002000")),
        ("Y", json!("0.002000")),
        ("m", json!(true)),
        ("t", json!(1)),
        ("N", json!("USDT")),
    ] {
        assert_eq!(trade[name], value, "{name}");
    }
    assert_eq!(trader.event().await["e"], "outboundAccountPosition");
    let trades = fixture.json("/api/v3/trades?symbol=BTCUSDT").await;
    assert_eq!(
        (&trades[0]["id"], &trades[0]["time"]),
        (&trade["t"], &trade["T"])
    );
    let mine = trader.ask("myTrades", json!({ "symbol": "BTCUSDT" })).await;
    assert_eq!(mine["result"][0]["id"], 1);
    assert_eq!(mine["result"][0]["orderId"], placed["orderId"]);
}

/// Orders of another session of the user with low ids, a cancel-all right behind a placement, and a
/// retry that is refused: each hid or kept an order that it must not.
#[tokio::test(flavor = "multi_thread")]
async fn orders_are_not_hidden_by_others_of_the_user() {
    let fixture = Fixture::new().await;
    let mut trader = Trader::new(&fixture, 1).await;
    let symbol = json!({ "symbol": "BTCUSDT" });
    for price in [900, 901, 902] {
        fixture.place(1, Action::Bid, price, 2).await;
    }
    for price in ["8.1", "8.2", "8.3"] {
        let placed = trader
            .ask("order.place", limit("BUY", price, "0.0002"))
            .await;
        let id = placed["result"]["orderId"].as_i64().expect("an id");
        assert!(id > 1 << 52, "{id}");
    }
    let open = trader.ask("openOrders.status", symbol.clone()).await;
    assert_eq!(open["result"].as_array().expect("a list").len(), 6);
    let mut place = limit("BUY", "8.4", "0.0002");
    in_time(&mut place);
    let place = json!({ "id": 1, "method": "order.place", "params": place });
    trader.api.send(&place.to_string()).await;
    let gone = trader.ask("openOrders.cancelAll", symbol.clone()).await;
    let (placed, gone) = match gone["id"] == 1 {
        true => (gone, trader.api.json().await),
        false => (trader.api.json().await, gone),
    };
    assert_eq!(placed["status"], 200, "{placed}");
    assert_eq!(gone["result"].as_array().expect("a list").len(), 7);
    let open = trader.ask("openOrders.status", symbol.clone()).await;
    assert_eq!(open["result"], json!([]));
    fixture.place(2, Action::Ask, 1_000, 5).await;
    let mut order = limit("BUY", "10", "0.0005");
    order["newClientOrderId"] = "mine".into();
    let filled = trader.ask("order.place", order.clone()).await;
    assert_eq!(filled["result"]["status"], "FILLED");
    order["quantity"] = "900000000".into();
    let refused = trader.ask("order.place", order).await;
    assert_eq!(refused["error"]["code"], -2010, "{refused}");
    let named = json!({ "symbol": "BTCUSDT", "origClientOrderId": "mine" });
    let status = trader.ask("order.status", named).await;
    assert_eq!(status["result"]["status"], "FILLED", "{status}");
}

/// Both amends were computed from the size before, and the order lost twice as much as anybody
/// wanted.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_amends_in_flight_one_counts() {
    let fixture = Fixture::new().await;
    let mut trader = Trader::new(&fixture, 1).await;
    let placed = trader.ask("order.place", limit("BUY", "9", "0.0010")).await;
    let id = &placed["result"]["orderId"];
    let amend = |quantity: &str| {
        json!({
            "symbol": "BTCUSDT", "orderId": id, "newQty": quantity,
            "timestamp": now_ms(), "recvWindow": WINDOW_MS,
        })
    };
    for number in [1, 2] {
        let method = "order.amend.keepPriority";
        let request = json!({ "id": number, "method": method, "params": amend("0.0008") });
        trader.api.send(&request.to_string()).await;
    }
    let mut statuses = Vec::new();
    for _ in 0..2 {
        let answer = trader.api.json().await;
        match answer["status"].as_i64() {
            Some(200) => assert_eq!(answer["result"]["amendedOrder"]["qty"], "0.0008"),
            _ => assert_eq!(answer["error"]["code"], -2038, "{answer}"),
        }
        statuses.push(answer["status"].clone());
    }
    assert!(statuses.contains(&json!(200)), "{statuses:?}");
    let named = json!({ "symbol": "BTCUSDT", "orderId": id });
    let status = trader.ask("order.status", named).await;
    assert_eq!(status["result"]["origQty"], "0.0008");
    for (quantity, code) in [("0.0008", -2038), ("0.0009", -2038)] {
        let refused = trader
            .ask("order.amend.keepPriority", amend(quantity))
            .await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
    }
    let stop = json!({
        "symbol": "BTCUSDT", "side": "BUY", "type": "STOP_LOSS_LIMIT", "timeInForce": "GTC",
        "price": "12", "stopPrice": "11", "quantity": "0.0010",
    });
    let placed = trader.ask("order.place", stop).await;
    let amend = json!({
        "symbol": "BTCUSDT", "orderId": placed["result"]["orderId"], "newQty": "0.0004",
    });
    let amended = trader.ask("order.amend.keepPriority", amend).await;
    assert_eq!(
        amended["result"]["amendedOrder"]["qty"], "0.0004",
        "{amended}"
    );
}

/// A cancel by the client's id comes behind the placement that it names.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_on_its_way_is_cancelled() {
    let fixture = Fixture::new().await;
    let mut trader = Trader::new(&fixture, 1).await;
    let mut place = limit("BUY", "9", "0.0002");
    place["newClientOrderId"] = "mine".into();
    in_time(&mut place);
    let place = json!({ "id": 1, "method": "order.place", "params": place });
    trader.api.send(&place.to_string()).await;
    let named = json!({ "symbol": "BTCUSDT", "origClientOrderId": "mine" });
    let gone = trader.ask("order.cancel", named.clone()).await;
    let gone = match gone["id"] == 1 {
        true => trader.api.json().await,
        false => gone,
    };
    assert_eq!(gone["result"]["status"], "CANCELED", "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_asked_for_cancelled_and_replaced() {
    let fixture = Fixture::new().await;
    let mut trader = Trader::new(&fixture, 1).await;
    let symbol = json!({ "symbol": "BTCUSDT" });
    let test = trader.ask("order.test", limit("BUY", "9", "0.0005")).await;
    assert_eq!(test["result"], json!({}));
    let mut ids = Vec::new();
    for price in ["9", "8", "7"] {
        let placed = trader
            .ask("order.place", limit("BUY", price, "0.0005"))
            .await;
        ids.push(placed["result"]["orderId"].clone());
    }
    let open = trader.ask("openOrders.status", symbol.clone()).await["result"].clone();
    let open: Vec<&Value> = open.as_array().expect("a list").iter().collect();
    assert_eq!(open.len(), 3);
    // The id as a text, as ccxt sends it.
    let first = json!({ "symbol": "BTCUSDT", "orderId": ids[0].to_string() });
    let status = trader.ask("order.status", first.clone()).await;
    assert_eq!(status["result"]["status"], "NEW");
    let cancelled = trader.ask("order.cancel", first.clone()).await;
    assert_eq!(cancelled["result"]["status"], "CANCELED");
    assert_eq!(
        trader.ask("order.cancel", first.clone()).await["error"]["code"],
        -2011
    );
    let mut replace = limit("BUY", "6", "0.0007");
    replace["cancelReplaceMode"] = "STOP_ON_FAILURE".into();
    replace["cancelOrderId"] = ids[1].clone();
    let replaced = trader.ask("order.cancelReplace", replace.clone()).await["result"].clone();
    assert_eq!(replaced["cancelResult"], "SUCCESS");
    assert_eq!(replaced["newOrderResponse"]["price"], "6.000000");
    let failed = trader.ask("order.cancelReplace", replace).await;
    assert_eq!(
        (&failed["status"], &failed["error"]["code"]),
        (&json!(400), &json!(-2022))
    );
    assert_eq!(failed["error"]["data"]["newOrderResult"], "NOT_ATTEMPTED");
    let all = trader.ask("openOrders.cancelAll", symbol.clone()).await["result"].clone();
    assert_eq!(all.as_array().expect("a list").len(), 2);
    let all = trader.ask("allOrders", symbol.clone()).await["result"].clone();
    let all: Vec<&Value> = all.as_array().expect("a list").iter().collect();
    assert_eq!(all.len(), 4);
    assert!(
        all.iter().all(|order| order["status"] == "CANCELED"),
        "{all:?}"
    );
    let account = trader.ask("account.status", json!({})).await;
    assert_eq!(account["result"]["balances"][0]["locked"], "0.0000");
    let refused = trader.ask("order.place", limit("BUY", "1e3", "1")).await;
    assert_eq!(refused["error"]["code"], -1100);
    let wrong = trader
        .ask("order.place", limit("BUY", "9.0000001", "1"))
        .await;
    assert_eq!(wrong["error"]["code"], -1111);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_sent_together_are_executed_in_order() {
    let fixture = Fixture::new().await;
    let mut trader = Trader::new(&fixture, 1).await;
    for round in 0..20 {
        let mut order = limit("BUY", "9", "0.0005");
        order["newClientOrderId"] = format!("c{round}").into();
        let cancel = json!({ "symbol": "BTCUSDT", "origClientOrderId": format!("c{round}") });
        for (method, mut params) in [("order.place", order), ("order.cancel", cancel)] {
            in_time(&mut params);
            let request = json!({ "id": method, "method": method, "params": params });
            trader.api.send(&request.to_string()).await;
        }
        let mut answers = [trader.api.json().await, trader.api.json().await];
        answers.sort_by_key(|answer| answer["id"] == "order.cancel");
        assert_eq!(answers[0]["status"], 200, "{answers:?}");
    }
}

/// Each asks for the balance before the others have traded.
#[tokio::test(flavor = "multi_thread")]
async fn market_orders_to_buy_that_are_sent_together_are_all_filled() {
    let fixture = Fixture::new().await;
    let mut maker = Trader::new(&fixture, 2).await;
    let asked = maker.ask("order.place", limit("SELL", "10", "0.005"));
    assert_eq!(asked.await["status"], 200);
    let mut trader = Trader::new(&fixture, 1).await;
    for id in 0..16 {
        let params = json!({
            "symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.0001",
            "timestamp": now_ms(), "recvWindow": WINDOW_MS,
        });
        let request = json!({ "id": id, "method": "order.place", "params": params });
        trader.api.send(&request.to_string()).await;
    }
    for _ in 0..16 {
        let response = trader.api.json().await;
        assert_eq!(response["result"]["status"], "FILLED", "{response}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deposits_are_events_of_their_user_alone() {
    let fixture = Fixture::new().await;
    let mut one = Trader::new(&fixture, 1).await;
    let mut other = Trader::new(&fixture, 2).await;
    for user in [1, 2] {
        fixture
            .run(Command::Balance {
                uid: UserId(user),
                currency: CurrencyId(20),
                amount: 1_500_000 * user,
                transaction_id: 1 << 40,
                kind: AdjustmentKind::Adjustment,
            })
            .await;
    }
    for (trader, delta) in [(&mut one, "1.500000"), (&mut other, "3.000000")] {
        let event = trader.event().await;
        let [kind, asset, amount] = ["e", "a", "d"].map(|name| event[name].clone());
        assert_eq!(
            json!([kind, asset, amount]),
            json!(["balanceUpdate", "USDT", delta])
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_gone_or_another_users_ends_its_streams_and_its_session() {
    let fixture = Fixture::new().await;
    for (id, successor) in [(1, None), (2, Some("user = 2"))] {
        let mut trader = Trader::new(&fixture, 1).await;
        fixture.gateway.reload_keys().expect("the keys");
        let placed = trader.ask("order.place", limit("BUY", "9", "0.0005")).await;
        assert_eq!(placed["status"], 200, "the key is as before: {placed}");
        while trader.event().await["e"] != "outboundAccountPosition" {}
        let text = std::fs::read_to_string(&fixture.keys).expect("a file");
        let text = successor.map_or_else(String::new, |user| text.replace("user = 1", user));
        std::fs::write(&fixture.keys, text).expect("a file");
        fixture.gateway.reload_keys().expect("the keys");
        let refused = trader.ask("order.place", limit("BUY", "9", "0.0005")).await;
        assert_eq!(
            (&refused["status"], &refused["error"]["code"]),
            (&json!(401), &json!(-2015))
        );
        let deposit = Command::deposit(UserId(1), CurrencyId(20), 5, id << 40);
        fixture.run(deposit).await;
        assert_eq!(trader.event().await["e"], "eventStreamTerminated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trades_candles_and_numbers_go_on_after_a_restart() {
    let fixture = Fixture::new().await;
    for _ in 0..5 {
        fixture.place(1, Action::Ask, 1_000, 3).await;
        fixture.place(2, Action::Bid, 1_000, 2).await;
    }
    let paths = [
        "/api/v3/trades?symbol=BTCUSDT",
        "/api/v3/aggTrades?symbol=BTCUSDT",
        "/api/v3/klines?symbol=BTCUSDT&interval=1M",
        "/api/v3/depth?symbol=BTCUSDT",
    ];
    let mut before = Vec::new();
    for path in paths {
        before.push(fixture.json(path).await);
    }
    let count = before[0].as_array().expect("a list").len();
    assert!(count >= 5);
    let fixture = fixture.restart().await;
    let number = |depth: &Value| depth["lastUpdateId"].as_u64();
    for (path, before) in paths.iter().zip(&before) {
        let after = fixture.json(path).await;
        match number(before) {
            None => assert_eq!(after, *before, "{path}"),
            Some(_) => {
                assert!(number(&after) >= number(before));
                assert_eq!(
                    (&after["asks"], &after["bids"]),
                    (&before["asks"], &before["bids"])
                );
            }
        }
    }
    let mut client = fixture.connect("/ws/btcusdt@depth@0ms").await;
    client
        .ask(&json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 }))
        .await;
    let snapshot = fixture.json("/api/v3/depth?symbol=BTCUSDT").await;
    fixture.place(2, Action::Bid, 1_000, 2).await;
    let event = client.json().await;
    assert_eq!(
        event["U"].as_u64(),
        number(&snapshot).map(|number| number + 1)
    );
    let trades = fixture.json("/api/v3/trades?symbol=BTCUSDT&limit=1").await;
    assert_eq!(trades[0]["id"], count + 1);
}
