//! Latency and faults of the gateway.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thalweg_exchange::{AccountSpec, Command, CurrencyId, UserId};
use thalweg_gateway::keys::{KeyKind, NewKey};
use thalweg_server::conditions::{DELAY_MAX, Delay, Delays, Faults, NetworkConditions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::signed;
use crate::fixture::Fixture;

const MS: Duration = Duration::from_millis(1);

fn delays(inbound: u32, outbound: u32) -> Delays {
    Delays {
        inbound: Delay::Fixed(inbound * MS),
        outbound: Delay::Fixed(outbound * MS),
    }
}

fn test_order() -> Value {
    json!({
        "symbol": "BTCUSDT", "side": "SELL", "type": "LIMIT", "timeInForce": "GTC",
        "price": "10", "quantity": "0.0005", "recvWindow": 60_000,
    })
}

fn place(key: &NewKey) -> Value {
    json!({ "id": 1, "method": "order.place", "params": signed(key, test_order()) })
}

/// Returns what is answered to an order by REST.
fn post(fixture: &Fixture, key: &NewKey) -> impl Future<Output = String> + use<> {
    let address = fixture.gateway.address();
    let params = signed(key, test_order());
    let params = params.as_object().expect("an object").iter();
    let (last, rest): (Vec<_>, Vec<_>) = params.partition(|(name, _)| *name == "signature");
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    let pairs = rest.into_iter().chain(last);
    let query: Vec<_> = pairs
        .map(|(name, value)| format!("{name}={}", text(value)))
        .collect();
    let (query, api_key) = (query.join("&"), &key.api_key);
    let head = format!(
        "POST /api/v3/order?{query} HTTP/1.1\r\nHost: gateway\r\nX-MBX-APIKEY: {api_key}\r\n\
        Connection: close\r\nContent-Length: 0\r\n\r\n"
    );
    async move {
        let mut socket = TcpStream::connect(address).await.expect("a connection");
        let _ = socket.set_nodelay(true);
        // Its headers may come in parts.
        let (first, second) = head.split_at(head.len() - 80);
        socket.write_all(first.as_bytes()).await.expect("a request");
        tokio::time::sleep(MS).await;
        socket
            .write_all(second.as_bytes())
            .await
            .expect("a request");
        let mut text = String::new();
        // Where it is cut, the end may be an error.
        let _ = socket.read_to_string(&mut text).await;
        text
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_responses_take_their_time_by_key() {
    let fixture = Fixture::behind(NetworkConditions {
        general: Some(delays(5, 10)),
        by_key: [("2".to_owned(), delays(60, 40))].into(),
        ..NetworkConditions::default()
    })
    .await;
    let (key, slow) = (
        fixture.new_key(KeyKind::Hmac, 1),
        fixture.new_key(KeyKind::Hmac, 2),
    );
    for (key, least) in [(&key, 15 * MS), (&slow, 100 * MS)] {
        let begun = Instant::now();
        let answer = post(&fixture, key).await;
        assert!(begun.elapsed() >= least);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let mut client = fixture.connect("/ws-api/v3").await;
    // Its user is known from the first signed request on.
    assert_eq!(client.ask(&place(&slow)).await["status"], 200);
    let begun = Instant::now();
    assert_eq!(client.ask(&place(&slow)).await["status"], 200);
    assert!(begun.elapsed() >= 100 * MS);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_on_a_line_is_delivered_when_the_gateway_stops() {
    let longest = Delays {
        inbound: Delay::default(),
        outbound: Delay::Fixed(DELAY_MAX),
    };
    let fixture = Fixture::behind(NetworkConditions {
        by_key: [("4".to_owned(), longest)].into(),
        ..NetworkConditions::default()
    })
    .await;
    let account = AccountSpec::new(UserId(4), vec![(CurrencyId(11), 1 << 40)]);
    fixture.run(Command::AddAccounts([account].into())).await;
    let key = fixture.new_key(KeyKind::Hmac, 4);
    let mut client = fixture.connect("/ws-api/v3").await;
    client.send(&place(&key).to_string()).await;
    let posting = tokio::spawn(post(&fixture, &key));
    // Both are placed, and their responses wait.
    let depth = || fixture.get("/api/v3/depth?symbol=BTCUSDT");
    while !depth().await.1.contains("\"0.0010\"") {}
    assert!(!posting.is_finished());
    fixture.gateway.drain();
    fixture.gateway.drained().await;
    // Bytes that are not delivered now are lost.
    drop(fixture);
    let answer = posting.await.expect("no panic");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(client.json().await["status"], 200);
    assert_eq!(client.closed_code().await, 1001);
}

async fn with_faults(faults: Faults) -> (Fixture, NewKey) {
    let fixture = Fixture::behind(NetworkConditions {
        faults,
        ..NetworkConditions::default()
    })
    .await;
    let key = fixture.new_key(KeyKind::Hmac, 1);
    (fixture, key)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_order_has_an_error_and_is_not_placed() {
    let (fixture, key) = with_faults(Faults {
        reject: 1.0,
        ..Faults::default()
    })
    .await;
    let answer = post(&fixture, &key).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("-1008"), "{answer}");
    let mut client = fixture.connect("/ws-api/v3").await;
    assert_eq!(client.ask(&place(&key)).await["error"]["code"], -1008);
    let asked =
        json!({ "id": 2, "method": "openOrders.status", "params": signed(&key, json!({})) });
    assert_eq!(client.ask(&asked).await["result"], json!([]));
}

/// Faults are drawn before parameters are checked; without one, the checks are the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_order_has_its_error_behind_a_line_unless_it_meets_a_fault() {
    let mut wrong = test_order();
    wrong["timeInForceX"] = "1".into();
    for (reject, code, status) in [(0.0, -1104, 400), (1.0, -1008, 503)] {
        let fixture = Fixture::behind(NetworkConditions {
            general: Some(delays(2, 1)),
            faults: Faults {
                reject,
                ..Faults::default()
            },
            ..NetworkConditions::default()
        })
        .await;
        let key = fixture.new_key(KeyKind::Hmac, 1);
        let params = signed(&key, wrong.clone());
        let asked = json!({ "id": 1, "method": "order.place", "params": params });
        let mut client = fixture.connect("/ws-api/v3").await;
        let answer = client.ask(&asked).await;
        let error = &answer["error"]["code"];
        assert_eq!((error, &answer["status"]), (&json!(code), &json!(status)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_order_has_no_response() {
    let (fixture, key) = with_faults(Faults {
        drop: 1.0,
        ..Faults::default()
    })
    .await;
    assert_eq!(post(&fixture, &key).await, "");
    let mut client = fixture.connect("/ws-api/v3").await;
    client.send(&place(&key).to_string()).await;
    let asked =
        json!({ "id": 2, "method": "openOrders.status", "params": signed(&key, json!({})) });
    let answer = client.ask(&asked).await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(2), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_may_cut_its_connection() {
    let (fixture, key) = with_faults(Faults {
        disconnect: 1.0,
        ..Faults::default()
    })
    .await;
    assert_eq!(post(&fixture, &key).await, "");
    let mut client = fixture.connect("/ws-api/v3").await;
    client.send(&place(&key).to_string()).await;
    assert!(client.next().await.is_err());
}
