//! Clients that want to do harm: nothing grows beyond its bound, and others are served.

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use thalweg_exchange::Action;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::fixture::{Client, Fixture, respond};
use crate::slots::connect_from;

async fn is_served(fixture: &Fixture) {
    let mut client = fixture.connect("/ws").await;
    let response = client
        .ask(&json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 }))
        .await;
    assert_eq!(response["result"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_1024_streams_at_most() {
    let fixture = Fixture::new().await;
    let mut client = fixture.connect("/ws").await;
    let names = |from: usize, to: usize| -> Vec<String> {
        (from..to)
            .map(|number| format!("s{number}@trade"))
            .collect()
    };
    for (from, to, is_taken) in [(0, 1_024, true), (0, 1_024, true), (1_023, 1_025, false)] {
        let request = json!({ "method": "SUBSCRIBE", "params": names(from, to), "id": 1 });
        let response = client.ask(&request).await;
        assert_eq!(
            response.get("code").is_none(),
            is_taken,
            "{from} {to}: {response}"
        );
    }
    let response = client
        .ask(&json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 }))
        .await;
    assert_eq!(response["result"].as_array().expect("names").len(), 1_024);
    // A name is kept, also one that is not known: it has 128 bytes at most.
    let mut client = fixture.connect("/ws").await;
    for (bytes, is_taken) in [(128, true), (129, false)] {
        let request = json!({ "method": "SUBSCRIBE", "params": ["s".repeat(bytes)], "id": 1 });
        let response = client.ask(&request).await;
        assert_eq!(response.get("code").is_none(), is_taken, "{response}");
    }
    // 10,000 in a path: too long for a head, or too many.
    let path = format!("/stream?streams={}", names(0, 1_025).join("/"));
    let mut client = fixture.connect(&path).await;
    assert_eq!(client.closed().await, "too many streams");
    let path = names(0, 10_000).join("/").repeat(5);
    let head = format!(
        "GET /stream?streams={path} HTTP/1.1\r\nHost: g\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
    );
    let answer = respond(fixture.gateway.address(), head).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
        "{answer}"
    );
    is_served(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_follows_a_stream_by_one_name_only() {
    let fixture = Fixture::new().await;
    let mut client = fixture.connect("/stream").await;
    // All ways to write the symbol; at Binance, too, the others than lower case send nothing.
    let spelled = |bits: usize| -> String {
        let letters = "btcusdt".char_indices();
        let letters = letters.map(|(at, letter)| match bits >> at & 1 {
            0 => letter,
            _ => letter.to_ascii_uppercase(),
        });
        letters.collect()
    };
    for kind in ["@trade", "@trade@1000ms"] {
        let params: Vec<String> = (0..128).map(|bits| spelled(bits) + kind).collect();
        let request = json!({ "method": "SUBSCRIBE", "params": params, "id": 1 });
        assert_eq!(client.ask(&request).await.get("code"), None);
    }
    for id in 1..=2 {
        fixture.place(1, Action::Ask, 1_000, 1).await;
        fixture.place(2, Action::Bid, 1_000, 1).await;
        assert_eq!(client.json().await["data"]["t"], id);
    }
    // Two names of one stream: the second one is refused, until the first is left.
    let one = |method: &str, name: &str| json!({ "method": method, "params": [name], "id": 1 });
    for (method, name, is_taken) in [
        ("SUBSCRIBE", "btcusdt@depth5@1000ms", true),
        ("SUBSCRIBE", "btcusdt@depth5@1000ms", true),
        ("SUBSCRIBE", "btcusdt@depth5", false),
        ("UNSUBSCRIBE", "btcusdt@depth5@1000ms", true),
        ("SUBSCRIBE", "btcusdt@depth5", true),
    ] {
        client.send(&one(method, name).to_string()).await;
        let response = loop {
            let event = client.json().await;
            if event.get("stream").is_none() {
                break event;
            }
        };
        assert_eq!(response.get("code").is_none(), is_taken, "{response}");
    }
    let path = "/stream?streams=btcusdt@depth/btcusdt@depth@1000ms";
    let mut client = fixture.connect(path).await;
    assert_eq!(client.closed().await, "a stream by two names");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connections_of_an_address_have_65536_streams_or_64_each() {
    let fixture = Fixture::new().await;
    let mut clients = Vec::new();
    let names: Vec<String> = (0..1_024)
        .map(|number| format!("s{number}@trade"))
        .collect();
    let request = json!({ "method": "SUBSCRIBE", "params": names, "id": 1 });
    for _ in 0..64 {
        let mut client = fixture.connect("/ws").await;
        assert_eq!(client.ask(&request).await.get("code"), None);
        clients.push(client);
    }
    let mut last = fixture.connect("/ws").await;
    let few = json!({ "method": "SUBSCRIBE", "params": names[..64], "id": 1 });
    assert_eq!(last.ask(&few).await.get("code"), None);
    let one = json!({ "method": "SUBSCRIBE", "params": ["btcusdt@trade"], "id": 1 });
    let response = last.ask(&one).await;
    let text =
        "Invalid request: at most 65536 streams an address, of all 524288, or 64 a connection";
    assert_eq!(response["msg"], text);
    // Others may have the streams that a connection leaves.
    let request = json!({ "method": "UNSUBSCRIBE", "params": names, "id": 1 });
    let mut first = clients.swap_remove(0);
    first.ask(&request).await;
    assert_eq!(last.ask(&one).await.get("code"), None);
    drop((first, clients, last));
    is_served(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_messages_and_pings_are_cut() {
    let fixture = Fixture::new().await;
    for (path, message) in [
        (
            "/ws",
            Message::text(r#"{"method":"SUBSCRIBE","params":["btcusdt@trade"],"id":1}"#),
        ),
        ("/ws", Message::Ping("x".into())),
        ("/ws", Message::Pong("x".into())),
        ("/ws", Message::text("{")),
        ("/ws-api/v3", Message::text("{")),
        ("/ws-api/v3", Message::text(r#"{"id":[],"method":"ping"}"#)),
        ("/ws-api/v3", Message::Ping("x".into())),
    ] {
        let mut client = fixture.connect(path).await;
        let (mut sink, stream) = client.0.split();
        // It is cut while it sends.
        for _ in 0..1_000 {
            if sink.send(message.clone()).await.is_err() {
                break;
            }
        }
        client.0 = sink.reunite(stream).expect("both are of one");
        let reason = client.closed().await;
        assert!(["too many messages", ""].contains(&&*reason), "{reason}");
    }
    is_served(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_streams_of_ten_connections_leave_others_served() {
    let fixture = Fixture::new().await;
    let intervals = [
        "1s", "1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "1M",
    ];
    let known = [
        "trade",
        "aggTrade",
        "depth@0ms",
        "depth@100ms",
        "depth",
        "bookTicker",
        "ticker",
    ];
    let known = known.iter().map(|name| (*name).to_owned());
    let candles = intervals.iter().map(|interval| format!("kline_{interval}"));
    let names: Vec<String> = known
        .chain(candles)
        .map(|name| format!("btcusdt@{name}"))
        .collect();
    let mut clients = Vec::new();
    for number in 0..10 {
        let mut client = fixture.connect("/stream").await;
        let unknown = (0..1_000 - names.len()).map(|other| format!("x{number}x{other}@trade"));
        let params: Vec<String> = names.iter().cloned().chain(unknown).collect();
        let request = json!({ "method": "SUBSCRIBE", "params": params, "id": 1 });
        assert_eq!(client.ask(&request).await.get("code"), None);
        clients.push(client);
    }
    for round in 0..3 {
        fixture.place(1, Action::Ask, 1_000, 1).await;
        fixture.place(2, Action::Bid, 1_000, 1).await;
        for client in &mut clients {
            loop {
                let event = client.json().await;
                if event["stream"] == "btcusdt@trade" {
                    assert_eq!(event["data"]["t"], round + 1);
                    break;
                }
            }
        }
    }
    drop(clients);
    is_served(&fixture).await;
}

/// Sends a frame as it is, and returns the reason for which the connection is closed.
async fn closed_by(fixture: &Fixture, message: Message) -> (u16, String) {
    let mut client = fixture.connect("/ws-api/v3").await;
    let _ = client.0.send(message).await;
    loop {
        match client.next().await {
            Ok(_) => {}
            Err(Some(frame)) => return (frame.code.into(), frame.reason.to_string()),
            Err(None) => return (0, String::new()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_are_wrong_or_too_long_end_their_connection() {
    let fixture = Fixture::new().await;
    let text = OpCode::Data(Data::Text);
    let not_utf8 = Frame::message(vec![0xff, 0xfe, b'"'], text, true);
    let reserved = Frame::message(vec![1], OpCode::Data(Data::Reserved(3)), true);
    let orphan = Frame::message(vec![1], OpCode::Data(Data::Continue), true);
    for (message, code) in [
        (Message::Frame(not_utf8), 1007),
        (Message::Frame(reserved), 1002),
        (Message::Frame(orphan), 1002),
        (Message::binary(vec![0; 10]), 1003),
        (Message::text("x".repeat(65_537)), 1009),
        (Message::text("x".repeat(10 << 20)), 1009),
    ] {
        let length = message.len();
        let (closed, reason) = closed_by(&fixture, message).await;
        // The system may tell the client that the connection is gone before it has read why.
        assert!([code, 0].contains(&closed), "{length}: {closed} {reason}");
    }
    is_served(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_many_pieces_has_the_same_bound() {
    let fixture = Fixture::new().await;
    let mut client = fixture.connect("/ws").await;
    let piece = |first: bool| {
        let code = if first { Data::Text } else { Data::Continue };
        Message::Frame(Frame::message(vec![b' '; 1_000], OpCode::Data(code), false))
    };
    let mut sent = 0;
    while client.0.send(piece(sent == 0)).await.is_ok() && sent < 10_000 {
        sent += 1;
    }
    let reason = client.closed().await;
    assert!(
        ["a message is too long", ""].contains(&&*reason),
        "{reason}"
    );
    is_served(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_never_read_do_not_slow_others() {
    let fixture = Fixture::new().await;
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let names = [
            "depth@0ms",
            "bookTicker",
            "depth20@100ms",
            "ticker",
            "trade",
        ];
        let names = names.map(|name| format!("btcusdt@{name}"));
        stalled.push(
            fixture
                .connect(&format!("/stream?streams={}", names.join("/")))
                .await,
        );
    }
    let mut other = fixture.connect("/ws/btcusdt@trade").await;
    other
        .ask(&json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 }))
        .await;
    for id in 1..=200 {
        fixture.place(1, Action::Ask, 1_000, 1).await;
        fixture.place(2, Action::Bid, 1_000, 1).await;
        assert_eq!(other.json().await["t"], id);
    }
    drop(stalled);
    is_served(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_their_answers_read_are_bounded() {
    let fixture = Fixture::new().await;
    for price in 0..1_000 {
        fixture.place(1, Action::Ask, 10_000 + price, 1).await;
    }
    // Each answer has 30 kB, and none is read.
    let Client(mut socket) = fixture.connect("/ws-api/v3").await;
    let params = json!({ "symbol": "BTCUSDT", "limit": 1_000 });
    let request = json!({ "id": 1, "method": "depth", "params": params }).to_string();
    // It is cut, since 4 MiB wait.
    while socket.send(Message::text(&*request)).await.is_ok() {}
    is_served(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_offers_http_2_is_answered() {
    let fixture = Fixture::new().await;
    let address = fixture.gateway.address();
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    let head = "GET /api/v3/ping HTTP/1.1\r\nHost: g\r\nConnection: Upgrade, HTTP2-Settings\r\n\
                Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n";
    socket.write_all(head.as_bytes()).await.expect("a request");
    let mut answer = [0; 15];
    socket.read_exact(&mut answer).await.expect("a response");
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_are_wrong_are_refused() {
    let fixture = Fixture::new().await;
    for (path, headers, status) in [
        (
            "/ws",
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13",
            "426",
        ),
        (
            "/ws",
            "Connection: Upgrade\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AA==",
            "426",
        ),
        (
            "/ws",
            "Connection: close\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AA==",
            "426",
        ),
        (
            "/other",
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AA==",
            "404",
        ),
        (
            "/wsx",
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AA==",
            "404",
        ),
        (
            "/ws/%ff",
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AA==",
            "400",
        ),
        (
            "/ws?timeUnit=DAY",
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AA==",
            "400",
        ),
    ] {
        let mut socket = TcpStream::connect(fixture.gateway.address())
            .await
            .expect("a connection");
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: g\r\nUpgrade: websocket\r\n{headers}\r\n\r\n");
        socket.write_all(head.as_bytes()).await.expect("a request");
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).await.expect("a response");
        assert_eq!(&answer[9..], status.as_bytes(), "{path} {headers}");
    }
}

/// Returns the status of the next response by HTTP; `None` where the connection has ended.
async fn next_status(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<u16> {
    let (mut status, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok()?;
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.trim().parse().expect("a number");
        }
        status = status.or_else(|| line.get(9..12)?.parse().ok());
        if line.trim().is_empty() {
            reader.read_exact(&mut vec![0; length]).await.ok()?;
            return status;
        }
    }
}

/// Requests that are refused whatever they weigh, and files of the page, have a bound as well; one
/// beyond it ends the connection.
#[tokio::test(flavor = "multi_thread")]
async fn requests_without_an_endpoint_have_the_bound_of_all() {
    let weight_max = 400;
    let fixture = Fixture::with(|config| config.gateway.weight_per_minute = weight_max).await;
    for (host, line, status) in [
        (10, "GET /", 200),
        (11, "GET /nowhere", 404),
        (12, "OPTIONS /api/v3/order", 204),
        (13, "PATCH /api/v3/order", 405),
        (14, "GET /api/v3/ping?x=%", 400),
        (15, "GET /api/v3/depth", 400),
    ] {
        let mut socket = BufReader::new(connect_from(&fixture, host).await);
        let request = format!("{line} HTTP/1.1\r\nHost: g\r\n\r\n");
        let mut answered = 0;
        let last = loop {
            let sent = socket.write_all(request.as_bytes()).await;
            sent.expect("it takes a request");
            match next_status(&mut socket).await {
                Some(same) if same == status => answered += 1,
                last => break last,
            }
            // A new minute may have begun.
            assert!(answered <= 2 * weight_max, "{line}");
        };
        assert_eq!(last, Some(429), "{line}: {answered}");
        let _ = socket.write_all(request.as_bytes()).await;
        assert_eq!(next_status(&mut socket).await, None, "{line}");
    }
}
