//! RSA keys, as openssl makes them: orders by REST, a session of the WebSocket API.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use crate::api::{WINDOW_MS, now_ms};
use crate::fixture::Fixture;
use crate::orders::send;

const PRIVATE: &str = include_str!("../rsa/private.pem");
const PUBLIC: &str = include_str!("../rsa/public.pem");
const API_KEY: &str = "RsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsaRsa1";

/// Returns the signature of a payload, in base64.
fn sign(payload: &str) -> String {
    let lines: Vec<&str> = PRIVATE.lines().collect();
    let der = STANDARD.decode(lines[1..lines.len() - 1].concat());
    let pair = RsaKeyPair::from_pkcs8(&der.expect("base64")).expect("a key");
    let mut signature = vec![0; pair.public().modulus_len()];
    let (random, payload) = (SystemRandom::new(), payload.as_bytes());
    let signed = pair.sign(&RSA_PKCS1_SHA256, &random, payload, &mut signature);
    signed.expect("randomness");
    STANDARD.encode(signature)
}

fn add_key(fixture: &Fixture, public: &str) -> Result<(), String> {
    let entry = format!(
        "[[key]]\napi_key = \"{API_KEY}\"\nuser = 1\nkind = \"rsa\"\npublic_key = \"\"\"\n{public}\
         \"\"\"\n"
    );
    std::fs::write(&fixture.keys, entry).expect("a file");
    let loaded = fixture.gateway.reload_keys();
    loaded.map_err(|error| error.to_string())
}

/// Signs parameters and sends them in the query, with the signature escaped.
async fn ask(fixture: &Fixture, request: (&str, &str), params: &str, signed: &str) -> (u16, Value) {
    let signature = sign(&format!("{params}{signed}"));
    let escaped = signature
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    let path = format!("/api/v3/{}?{params}&signature={escaped}", request.1);
    let (status, _, body) = send(fixture, (request.0, &path), API_KEY, "").await;
    (status, body)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_rsa_key_trades_by_rest_and_by_websocket() {
    let fixture = Fixture::new().await;
    add_key(&fixture, PUBLIC).expect("a key of openssl");
    let order = |price: &str| {
        format!(
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.0005&price={price}\
             &timestamp={}&recvWindow={WINDOW_MS}",
            now_ms()
        )
    };
    let (status, placed) = ask(&fixture, ("POST", "order"), &order("9"), "").await;
    assert_eq!(
        (status, &placed["status"]),
        (200, &json!("NEW")),
        "{placed}"
    );
    let (status, refused) = ask(&fixture, ("POST", "order"), &order("8"), "0").await;
    assert_eq!(
        (status, &refused["code"]),
        (400, &json!(-1022)),
        "{refused}"
    );

    let mut client = fixture.connect("/ws-api/v3").await;
    let now = now_ms();
    let window = format!("apiKey={API_KEY}&recvWindow={WINDOW_MS}");
    for (payload, status) in [
        (format!("{window}&timestamp={now}1"), 400),
        (format!("{window}&timestamp={now}"), 200),
    ] {
        let params = json!({
            "apiKey": API_KEY, "recvWindow": WINDOW_MS, "timestamp": now,
            "signature": sign(&payload),
        });
        let request = json!({ "id": 1, "method": "session.logon", "params": params });
        let answer = client.ask(&request).await;
        assert_eq!(answer["status"], status, "{answer}");
    }
    let params = json!({ "symbol": "BTCUSDT", "timestamp": now_ms() });
    let request = json!({ "id": 2, "method": "openOrders.status", "params": params });
    let open = client.ask(&request).await;
    assert_eq!(open["result"][0]["orderId"], placed["orderId"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_too_short_or_of_another_kind_is_refused_when_it_is_read() {
    let fixture = Fixture::new().await;
    for public in [
        include_str!("../rsa/public-1024.pem"),
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
         -----END PUBLIC KEY-----\n",
    ] {
        let refused = add_key(&fixture, public).expect_err(public);
        assert!(refused.contains("is not of that kind"), "{refused}");
    }
}
