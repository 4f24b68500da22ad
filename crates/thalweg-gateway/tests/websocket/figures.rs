//! The operator's view: figures on the server's page, and lines in its audit log.

use std::net::SocketAddr;

use futures_util::SinkExt;
use serde_json::{Value, json};
use thalweg_exchange::Action;
use thalweg_gateway::keys::KeyKind;
use tokio_tungstenite::tungstenite::Message;

use crate::api::signed;
use crate::fixture::{Fixture, respond};

/// Returns the whole response to a request by GET.
async fn get(address: SocketAddr, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n");
    respond(address, head).await
}

async fn page(fixture: &Fixture) -> String {
    let server = fixture.server.as_ref().expect("it runs");
    get(server.addresses().http.expect("one"), "/metrics").await
}

/// Waits until the page, which may be 200 ms old, has a line.
async fn shows(fixture: &Fixture, line: &str) {
    let mut last = String::new();
    for _ in 0..600 {
        last = page(fixture).await;
        if last.lines().any(|found| found == line) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("`{line}` is not in\n{last}");
}

async fn with_page() -> Fixture {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    Fixture::with(|config| config.http.listen = Some(any)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_of_the_gateways_page_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway.md");
    let text = std::fs::read_to_string(path).expect("docs/gateway.md is there");
    let (_, figures) = text
        .split_once("\n## Figures and logs\n")
        .expect("it has them");
    let rows = figures.lines();
    let rows = rows.filter_map(|line| line.strip_prefix("| `thalweg_gateway_"));
    let names: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert!(names.len() > 10, "{names:?}");
    let fixture = with_page().await;
    let page = page(&fixture).await;
    for name in &names {
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        let name = format!("thalweg_gateway_{name}");
        let has = |line: &str, label: &str| line.starts_with(&name) && line.contains(label);
        for label in labels.trim_end_matches('}').split(", ") {
            let is_there = page.lines().any(|line| has(line, label));
            assert!(is_there, "{name}, {label}: {page}");
        }
    }
    // The table names all that are there.
    let families = page.lines().filter_map(|line| {
        line.strip_prefix("# TYPE thalweg_gateway_")?
            .split(' ')
            .next()
    });
    for family in families {
        let is_named = |name: &&str| {
            let name = name.split('{').next().unwrap_or_default();
            name.trim_end_matches("_total") == family
        };
        assert!(names.iter().any(is_named), "{family}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_count_by_class_and_status_and_streams_and_lag_are_shown() {
    let fixture = with_page().await;
    let key = fixture.new_key(KeyKind::Hmac, 1);
    let mut client = fixture.connect("/ws-api/v3").await;
    let params = signed(&key, json!({ "symbol": "BTCUSDT" }));
    let request = json!({ "id": 1, "method": "openOrders.status", "params": params });
    assert_eq!(client.ask(&request).await["status"], 200);
    let request = json!({ "id": 2, "method": "no.such", "params": {} });
    assert_eq!(client.ask(&request).await["status"], 400);
    let stream = "/stream?streams=btcusdt@trade/btcusdt@depth";
    let _streams = fixture.connect(stream).await;
    assert_eq!(fixture.get("/api/v3/account").await.0, 401);
    assert_eq!(fixture.get("/nothing").await.0, 404);
    fixture.place(1, Action::Bid, 1_000, 2).await;
    for line in [
        "thalweg_gateway_requests_total{class=\"account\",status=\"4xx\"} 1",
        "thalweg_gateway_requests_total{class=\"websocket-api\",status=\"2xx\"} 1",
        "thalweg_gateway_requests_total{class=\"websocket-api\",status=\"4xx\"} 1",
        "thalweg_gateway_requests_total{class=\"other\",status=\"4xx\"} 1",
        "thalweg_gateway_requests_total{class=\"other\",status=\"1xx\"} 2",
        "thalweg_gateway_request_seconds_count{class=\"account\"} 1",
        "thalweg_gateway_websockets 2.0",
        "thalweg_gateway_streams 2.0",
        "thalweg_gateway_lag_commands 0.0",
        "thalweg_gateway_weight_refusals_total 0",
    ] {
        shows(&fixture, line).await;
    }
    client
        .0
        .send(Message::binary(vec![1]))
        .await
        .expect("it is open");
    assert_eq!(client.closed_code().await, 1003);
    let why = "binary messages are not supported";
    let line = format!("thalweg_gateway_connections_cut_total{{reason=\"{why}\"}} 1");
    shows(&fixture, &line).await;
    shows(&fixture, "thalweg_gateway_websockets 1.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_refused_log_ons_are_in_the_audit_log_without_secrets() {
    let name = format!("gateway-audit-{}.json", std::process::id());
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&file);
    let mut fixture = Fixture::with(|config| config.admin.audit_file = Some(file.clone())).await;
    let key = fixture.new_key(KeyKind::Hmac, 1);
    let mut client = fixture.connect("/ws-api/v3").await;
    let mut params = signed(&key, json!({}));
    params["signature"] = "00".repeat(32).into();
    let request = json!({ "id": 1, "method": "session.logon", "params": params });
    assert_eq!(client.ask(&request).await["error"]["code"], -1022);
    // Somebody who takes the secret for the key.
    let mut params = signed(&key, json!({}));
    params["apiKey"] = key.secret.clone().into();
    let request = json!({ "id": 2, "method": "account.status", "params": params });
    assert_eq!(client.ask(&request).await["error"]["code"], -2015);
    for id in 0..100 {
        let request = json!({ "id": id, "method": "account.status", "params": params });
        assert_eq!(client.ask(&request).await["error"]["code"], -2015);
    }
    // The file has all lines when the server has stopped, though the gateway is there still.
    let server = fixture.server.take().expect("it runs");
    server.stop().await.expect("it stops in order");
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::remove_file(&file).expect("it is there");
    assert!(!text.contains(&key.secret), "{text}");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    let of = |event: &str| -> Vec<&Value> {
        lines.iter().filter(|line| line["event"] == event).collect()
    };
    assert_eq!(of("keys read")[0]["result"], "0");
    assert_eq!(
        of("keys changed")[0]["result"],
        "1 added, 0 removed, 0 changed"
    );
    let refused = of("log-on refused");
    assert_eq!(refused[0]["key"], key.api_key);
    assert_eq!(refused[0]["address"], "127.0.0.1");
    assert_eq!(refused[1].get("key"), None);
    assert!((50..102).contains(&refused.len()), "{}", refused.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_have_the_id_of_their_line() {
    let fixture = Fixture::new().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let response = get(fixture.gateway.address(), "/api/v3/ping").await;
        let id = response
            .lines()
            .find_map(|line| line.strip_prefix("x-mbx-uuid: "));
        ids.push(id.expect("it has one").to_owned());
    }
    assert_ne!(ids[0], ids[1]);
}
