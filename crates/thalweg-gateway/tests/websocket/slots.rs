//! Clients that take connections: others are served.

use serde_json::json;
use thalweg_exchange::UserId;
use thalweg_gateway::keys::{KeyKind, create};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::client_async;

use crate::api::signed;
use crate::fixture::{Client, Fixture};

const REQUEST: &[u8] = b"GET /api/v3/ping HTTP/1.1\r\nHost: g\r\n\r\n";
/// The connection slots of the gateway.
const SLOTS: usize = 16;

async fn fixture() -> Fixture {
    Fixture::with(|config| config.gateway.connections_max = SLOTS).await
}

/// Connects from an address of this machine.
pub(crate) async fn connect_from(fixture: &Fixture, host: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    let from = ([127, 0, 0, host], 0).into();
    socket
        .bind(from)
        .expect("all of 127.0.0.0/8 is this machine");
    let connected = socket.connect(fixture.gateway.address()).await;
    connected.expect("a connection")
}

/// Returns whether a connection is answered.
async fn is_answered(socket: &mut TcpStream) -> bool {
    if socket.write_all(REQUEST).await.is_err() {
        return false;
    }
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.is_ok() && answer.ends_with(b"200")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_takes_all_connections_leaves_half_of_them() {
    let fixture = fixture().await;
    let mut idle = Vec::new();
    for _ in 0..3 * SLOTS {
        idle.push(connect_from(&fixture, 2).await);
    }
    // Its own newest ones are served, and those of others.
    assert!(is_answered(idle.last_mut().expect("some")).await);
    assert!(!is_answered(&mut idle[0]).await);
    for host in [3, 4, 5] {
        assert!(is_answered(&mut connect_from(&fixture, host).await).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_of_an_address_have_half_of_the_slots_and_do_not_go() {
    let fixture = fixture().await;
    let mut clients = Vec::new();
    for _ in 0..SLOTS / 2 {
        let socket = connect_from(&fixture, 2).await;
        let (socket, _) = client_async("ws://g/ws", socket)
            .await
            .expect("a WebSocket");
        clients.push(Client(socket));
    }
    assert!(!is_answered(&mut connect_from(&fixture, 2).await).await);
    let mut others = Vec::new();
    for host in 10..40 {
        let mut other = connect_from(&fixture, host).await;
        assert!(is_answered(&mut other).await);
        others.push(other);
    }
    for client in &mut clients {
        let list = json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 });
        assert_eq!(client.ask(&list).await["result"], json!([]));
    }
}

/// Connects a WebSocket from an address of this machine; `None` where it has no slot.
async fn websocket_from(fixture: &Fixture, host: u8, path: &str) -> Option<Client> {
    let socket = connect_from(fixture, host).await;
    let socket = client_async(format!("ws://g{path}"), socket).await;
    socket.ok().map(|(socket, _)| Client(socket))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_addresses_do_not_keep_others_out_and_who_has_shown_a_key_stays() {
    let fixture = fixture().await;
    let key = fixture.new_key(KeyKind::Hmac, 1);
    let mut trader = websocket_from(&fixture, 9, "/ws-api/v3")
        .await
        .expect("room");
    let logon = json!({ "id": 1, "method": "session.logon", "params": signed(&key, json!({})) });
    assert_eq!(trader.ask(&logon).await["status"], 200);
    let mut taken = Vec::new();
    for number in 0..SLOTS {
        taken.push(websocket_from(&fixture, 2 + (number % 2) as u8, "/ws").await);
    }
    let mut others = Vec::new();
    for host in 20..23 {
        let other = websocket_from(&fixture, host, "/ws").await;
        others.push(other.expect("one of an address that has many goes"));
    }
    let list = json!({ "method": "LIST_SUBSCRIPTIONS", "id": 1 });
    for other in &mut others {
        assert_eq!(other.ask(&list).await["result"], json!([]));
    }
    let status = json!({ "id": 2, "method": "session.status" });
    assert_eq!(trader.ask(&status).await["status"], 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_reads_has_an_eighth_of_the_slots_from_any_addresses() {
    let fixture = fixture().await;
    let reader = create(&fixture.keys, KeyKind::Hmac, UserId(2), true).expect("a key");
    let trader = fixture.new_key(KeyKind::Hmac, 1);
    let mut taken = Vec::new();
    for number in 0..3 * SLOTS {
        let path = "/ws-api/v3";
        let mut client = websocket_from(&fixture, 2 + (number % 2) as u8, path)
            .await
            .expect("one of its own goes");
        let params = signed(&reader, json!({}));
        let logon = json!({ "id": 1, "method": "session.logon", "params": params });
        assert_eq!(client.ask(&logon).await["status"], 200);
        taken.push(client);
    }
    let mut client = websocket_from(&fixture, 9, "/ws-api/v3")
        .await
        .expect("room");
    let params = signed(&trader, json!({}));
    let logon = json!({ "id": 1, "method": "session.logon", "params": params });
    assert_eq!(client.ask(&logon).await["status"], 200);
    let gone = taken.len() - SLOTS / 8;
    for client in &mut taken[..gone] {
        assert_eq!(client.closed_code().await, 0);
    }
    let status = json!({ "id": 2, "method": "session.status" });
    for client in taken[gone..].iter_mut().chain([&mut client]) {
        assert_eq!(client.ask(&status).await["status"], 200);
    }
}

/// A body that never ends has its connection wait, and so go first.
#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_and_heads_leave_their_slots_to_others() {
    let fixture = fixture().await;
    let mut slow = Vec::new();
    for number in 0..2 * SLOTS {
        let mut socket = connect_from(&fixture, 2 + (number % 8) as u8).await;
        let head: &[u8] = match number % 2 {
            0 => b"POST /api/v3/order HTTP/1.1\r\nHost: g\r\nContent-Length: 60000\r\n\r\nsymbol=",
            _ => b"GET /api/v3/ping HTTP/1.1\r\nHost",
        };
        socket.write_all(head).await.expect("a beginning");
        slow.push(socket);
    }
    for host in 20..40 {
        assert!(is_answered(&mut connect_from(&fixture, host).await).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_closes_every_websocket_with_1001() {
    let fixture = Fixture::new().await;
    let mut clients = Vec::new();
    for path in [
        "/ws",
        "/stream?streams=btcusdt@trade",
        "/ws/btcusdt@depth",
        "/ws-api/v3",
    ] {
        clients.push(fixture.connect(path).await);
    }
    fixture.gateway.drain();
    let closed = async {
        for client in &mut clients {
            let notice = client.json().await;
            assert!(notice.to_string().contains("serverShutdown"), "{notice}");
            assert_eq!(client.closed_code().await, 1001);
            let _ = client.0.close(None).await;
        }
    };
    let ((), ()) = tokio::join!(closed, fixture.gateway.drained());
    // It takes no more connections.
    while TcpStream::connect(fixture.gateway.address()).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
