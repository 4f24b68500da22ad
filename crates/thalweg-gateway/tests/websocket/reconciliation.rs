//! A gateway that was off while its users traded by the exchange's own protocol.

use serde_json::{Value, json};
use thalweg_exchange::codec::session::TradeCommand;
use thalweg_exchange::{Action, OrderId, Place, UserId};
use thalweg_gateway::keys::KeyKind;
use thalweg_server::config::Config;

use crate::fixture::{Fixture, SYMBOL};
use crate::orders::ask;

fn few_reports(config: &mut Config) {
    config.sessions.reports_kept = 2;
}

fn texts(orders: &Value, names: [&str; 4]) -> Vec<[String; 4]> {
    let orders = orders.as_array().expect("a list").iter();
    let text = |value: &Value| value.to_string().trim_matches('"').to_owned();
    let texts = orders.map(|order| names.map(|name| text(&order[name])));
    texts.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_was_off_shows_the_orders_that_the_exchange_has_open() {
    let fixture = Fixture::with(few_reports).await;
    let key = fixture.new_key(KeyKind::Hmac, 1);
    let mut ids = Vec::new();
    for price in ["10", "11", "12"] {
        let order = format!("symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&price={price}");
        let order = format!("{order}&quantity=1&newClientOrderId=c{price}");
        let (status, placed) = ask(&fixture, &key, ("POST", "order"), &order).await;
        assert_eq!(status, 200, "{placed}");
        ids.push(placed["orderId"].as_i64().expect("an id"));
    }
    // 0.01 USDT, 0.0001 BTC: the first is cancelled, the best one trades in part, and the user has
    // more orders than reports are kept of.
    let limit =
        |id, side, price, lots| Place::limit((UserId(1), OrderId(id)), SYMBOL, side, (price, lots));
    let mut commands = vec![
        TradeCommand::cancel(UserId(1), SYMBOL, OrderId(ids[0])),
        limit(1, Action::Ask, 1_200, 2_500).into(),
    ];
    commands.extend((2..8).map(|id| limit(id, Action::Bid, 100 + id, 10_000).into()));
    let fixture = fixture.without_gateway(commands, few_reports).await;
    let open = ask(&fixture, &key, ("GET", "openOrders"), "symbol=BTCUSDT").await;
    let names = ["clientOrderId", "price", "executedQty", "status"];
    let mut expected = vec![
        ["c11", "11.000000", "0.0000", "NEW"].map(str::to_owned),
        ["c12", "12.000000", "0.2500", "PARTIALLY_FILLED"].map(str::to_owned),
    ];
    expected.extend((2..8).map(|id| {
        let price = format!("1.0{id}0000");
        [
            format!("session-{id}"),
            price,
            "0.0000".into(),
            "NEW".into(),
        ]
    }));
    let mut found = texts(&open.1, names);
    found.sort_unstable();
    assert_eq!(found, expected);
    let query = format!("symbol=BTCUSDT&orderId={}", ids[0]);
    let (status, ended) = ask(&fixture, &key, ("GET", "order"), &query).await;
    assert_eq!((status, &ended["status"]), (200, &json!("EXPIRED")));
    // They can be cancelled, and the client order id of the one that has ended be used again.
    let (status, all) = ask(&fixture, &key, ("DELETE", "openOrders"), "symbol=BTCUSDT").await;
    assert_eq!((status, all.as_array().map(Vec::len)), (200, Some(8)));
    let again = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&price=9&quantity=1";
    let again = format!("{again}&newClientOrderId=c10");
    let (status, placed) = ask(&fixture, &key, ("POST", "order"), &again).await;
    assert_eq!(status, 200, "{placed}");
    let fixture = fixture.restart().await;
    let (_, open) = ask(&fixture, &key, ("GET", "openOrders"), "symbol=BTCUSDT").await;
    assert_eq!(texts(&open, names).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_whose_first_key_comes_late_has_the_orders_of_before() {
    let fixture = Fixture::new().await;
    let id = fixture.place(2, Action::Bid, 1_000, 10_000).await;
    let key = fixture.new_key(KeyKind::Hmac, 2);
    let (status, open) = ask(&fixture, &key, ("GET", "openOrders"), "symbol=BTCUSDT").await;
    assert_eq!(status, 200, "{open}");
    assert_eq!(open[0]["clientOrderId"], json!(format!("session-{id}")));
}
