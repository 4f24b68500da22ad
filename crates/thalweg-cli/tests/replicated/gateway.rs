//! The gateway of each machine: the primary's takes orders, those of followers show what was
//! executed, and after a take-over all that was acknowledged is there once, with the ids that its
//! clients gave.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::machines::{MACHINES, Machines};
use super::{Scene, compared, undisturbed};
use crate::archive::shell;
use crate::served_kills::clients::set_up;
use crate::served_kills::served::Folder;

/// The gateway of each machine lists this.
const SYMBOLS: &str = "\
[assets]
BTC = { currency = 10, decimals = 4 }
USDT = { currency = 20, decimals = 4 }
[symbols.BTCUSDT]
symbol = 1
base = \"BTC\"
quote = \"USDT\"
";
/// How long a response is waited for.
const TIME: Duration = Duration::from_secs(20);
/// Orders before the primary is killed, and during that.
const FIRST: usize = 10;
const MEANWHILE: usize = 40;

/// A user's API key.
#[derive(Clone)]
struct ApiKey {
    api_key: String,
    secret: String,
}

impl ApiKey {
    /// Makes a key of a user, as an operator does.
    fn new(place: &Folder, user: i64) -> Self {
        let program = env!("CARGO_BIN_EXE_thalweg");
        let line =
            format!("{program} exchange key new --api hmac --user {user} --key-file api-keys.toml");
        let ended = shell(&place.within, &line);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let field = |name: &str| {
            let found = ended
                .stdout
                .lines()
                .find_map(|line| line.strip_prefix(name));
            found.expect("it is printed").to_owned()
        };
        Self {
            api_key: field("apiKey="),
            secret: field("secretKey="),
        }
    }

    /// Sends a signed request. Returns the status and the body.
    fn call(
        &self,
        address: &str,
        method: &str,
        path: &str,
        query: &str,
    ) -> io::Result<(u16, Value)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_millis();
        let mut query = format!("{query}&timestamp={now}&recvWindow=60000");
        query = query.trim_start_matches('&').to_owned();
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, self.secret.as_bytes());
        let signature = ring::hmac::sign(&key, query.as_bytes());
        query.push_str("&signature=");
        for byte in signature.as_ref() {
            let _ = write!(query, "{byte:02x}");
        }
        request(address, method, &format!("{path}?{query}"), &self.api_key)
    }

    /// Places an order. Returns its id, or the error's status and body.
    fn place(&self, address: &str, name: &str) -> io::Result<Result<i64, (u16, Value)>> {
        let query = format!(
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=3&price=7&\
             newClientOrderId={name}"
        );
        let (status, body) = self.call(address, "POST", "/api/v3/order", &query)?;
        Ok(match status {
            200 => Ok(body["orderId"].as_i64().expect("an id")),
            _ => Err((status, body)),
        })
    }

    /// Returns the open orders: ids by the names that the client gave. No name is there twice.
    fn open(&self, address: &str) -> Option<BTreeMap<String, i64>> {
        let (status, body) = self.call(address, "GET", "/api/v3/openOrders", "").ok()?;
        if status != 200 {
            return None;
        }
        let orders = body.as_array().expect("a list");
        let order = |order: &Value| {
            let name = order["clientOrderId"].as_str().expect("a name").to_owned();
            (name, order["orderId"].as_i64().expect("an id"))
        };
        let open: BTreeMap<String, i64> = orders.iter().map(order).collect();
        assert_eq!(open.len(), orders.len(), "a name is there twice: {body}");
        Some(open)
    }
}

fn request(address: &str, method: &str, target: &str, key: &str) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIME))?;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: t\r\nX-MBX-APIKEY: {key}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let cut_off = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut_off)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = serde_json::from_str(body).map_err(|_| cut_off())?;
    Ok((status.ok_or_else(cut_off)?, body))
}

/// Waits until the gateway of a machine lists the symbol.
fn wait_for_symbol(place: &Folder, address: &str) {
    place.wait("a gateway", || {
        let depth = request(address, "GET", "/api/v3/depth?symbol=BTCUSDT", "");
        let is_there = depth.is_ok_and(|(status, _)| status == 200);
        is_there.then_some(()).ok_or(0)
    });
}

/// Returns the open orders, once the gateway of a machine answers.
fn opened(place: &Folder, key: &ApiKey, address: &str) -> BTreeMap<String, i64> {
    place.wait("open orders", || key.open(address).ok_or(0))
}

/// Waits until the gateway of a machine answers a query of the account. The session that this
/// opens has orders of the claim's sequences all the same.
fn wait_for_account(place: &Folder, key: &ApiKey, address: &str) {
    place.wait("the account", || {
        let answer = key.call(address, "GET", "/api/v3/account", "");
        let is_there = answer.is_ok_and(|(status, _)| status == 200);
        is_there.then_some(()).ok_or(0)
    });
}

/// Waits until the gateway of a machine shows these open orders.
fn wait_for_open(place: &Folder, key: &ApiKey, address: &str, expected: &BTreeMap<String, i64>) {
    place.wait("open orders", || {
        let open = key.open(address).unwrap_or_default();
        (open == *expected).then_some(()).ok_or(open.len() as u64)
    });
}

/// Places an order again until it is known to be there once, as a client does that got no answer.
fn place_again(place: &Folder, key: &ApiKey, address: &str, name: &str) {
    place.wait("an order", || match key.place(address, name) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err((_, body))) if body["msg"] == "Duplicate order sent." => Ok(()),
        Ok(Err((429 | 500.., _))) | Err(_) => Err(0),
        Ok(Err(other)) => panic!("{name}: {other:?}"),
    });
}

/// A follower shows what the primary has acknowledged, and takes no orders.
fn check_follower(
    place: &Folder,
    machines: &Machines<'_>,
    key: &ApiKey,
    [primary, at]: [usize; 2],
) {
    let [leads, follows] = [primary, at].map(|at| machines.address("gateway", at));
    let open = opened(place, key, &leads);
    wait_for_open(place, key, &follows, &open);
    let same = [
        "account",
        "allOrders?symbol=BTCUSDT",
        "myTrades?symbol=BTCUSDT",
    ];
    for path in same {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let both = [&leads, &follows].map(|address| {
            let path = format!("/api/v3/{path}");
            let (status, mut body) = key.call(address, "GET", &path, query).expect("it answers");
            assert_eq!(status, 200, "{body}");
            // Times are those at which each gateway has read an execution.
            for time in ["updateTime", "time", "workingTime"] {
                let all = body.as_array_mut().into_iter().flatten();
                all.for_each(|one| one[time] = Value::Null);
            }
            if body["updateTime"].is_number() {
                body["updateTime"] = Value::Null;
            }
            body
        });
        assert_eq!(both[0], both[1], "{path}");
    }
    let depth = |address: &str| {
        let depth = request(address, "GET", "/api/v3/depth?symbol=BTCUSDT", "");
        depth.expect("it answers").1
    };
    assert_eq!(depth(&follows), depth(&leads));
    let (status, body) = key
        .place(&follows, "refused")
        .expect("it answers")
        .expect_err("a follower");
    assert_eq!(
        (status, &body["code"]),
        (503, &Value::from(-1001)),
        "{body}"
    );
    let name = machines.address("trade", primary);
    assert!(
        body["msg"]
            .as_str()
            .is_some_and(|text| text.contains(&name)),
        "{body}"
    );
    let query = "symbol=BTCUSDT&origClientOrderId=first-0";
    let (status, body) = key
        .call(&follows, "DELETE", "/api/v3/order", query)
        .expect("it answers");
    assert_eq!(
        (status, &body["code"]),
        (503, &Value::from(-1001)),
        "{body}"
    );
}

/// Each order is open once, but the first, which was filled, and has an id of its own.
fn check_names(open: &BTreeMap<String, i64>, names: &[String]) {
    let first = (1..FIRST).map(|number| format!("first-{number}"));
    let names = names.iter().cloned().chain(["last".to_owned()]);
    let expected: BTreeSet<String> = first.chain(names).collect();
    let found: BTreeSet<String> = open.keys().cloned().collect();
    assert_eq!(found, expected);
    let ids: BTreeSet<i64> = open.values().copied().collect();
    assert_eq!(ids.len(), open.len(), "no id is given twice");
}

/// Kills the primary while orders of these names come. Returns each with its id, if that was
/// answered.
fn place_until_killed(
    place: &Folder,
    machines: &mut Machines<'_>,
    key: &ApiKey,
    (primary, names): (usize, &[String]),
) -> Vec<(String, Option<i64>)> {
    let (sent, address) = (AtomicUsize::new(0), machines.address("gateway", primary));
    thread::scope(|scope| {
        let (sent, address) = (&sent, &address);
        let placing = scope.spawn(move || {
            let place = |name: &String| {
                // ORDERING: Relaxed; a count alone.
                sent.fetch_add(1, Ordering::Relaxed);
                let id = key.place(address, name).ok().and_then(Result::ok);
                (name.clone(), id)
            };
            names.iter().map(place).collect()
        });
        place.wait("orders", || {
            // ORDERING: Relaxed; a count alone.
            let sent = sent.load(Ordering::Relaxed);
            (sent >= MEANWHILE / 2).then_some(()).ok_or(sent as u64)
        });
        machines.kill(primary);
        placing.join().expect("no panic")
    })
}

#[test]
fn a_take_over_keeps_the_orders_of_the_gateway_and_doubles_none() {
    let write_symbols = |place: &Folder| {
        std::fs::write(place.within.join("symbols.toml"), SYMBOLS).expect("there is room");
        [1, 2].map(|user| ApiKey::new(place, user))
    };
    undisturbed("gateways", 256 << 20, write_symbols, take_over);
}

fn take_over(scene: &Scene<'_, [ApiKey; 2]>, mut machines: Machines<'_>, epoch: &mut u64) {
    let place = scene.place;
    let [key, other] = &scene.prepared;
    let primary = machines.wait_for_primary(None);
    set_up(&machines.addresses("admin"));
    let gateways: Vec<String> = (0..MACHINES)
        .map(|at| machines.address("gateway", at))
        .collect();
    gateways
        .iter()
        .for_each(|address| wait_for_symbol(place, address));
    wait_for_account(place, key, &gateways[primary]);
    for number in 0..FIRST {
        place_again(place, key, &gateways[primary], &format!("first-{number}"));
    }
    let sell = "symbol=BTCUSDT&side=SELL&type=MARKET&quantity=3";
    let (status, body) = other
        .call(&gateways[primary], "POST", "/api/v3/order", sell)
        .expect("it answers");
    assert_eq!(
        (status, &body["status"]),
        (200, &Value::from("FILLED")),
        "{body}"
    );
    for at in (0..MACHINES).filter(|at| *at != primary) {
        check_follower(place, &machines, key, [primary, at]);
    }

    let names: Vec<String> = (0..MEANWHILE)
        .map(|number| format!("then-{number}"))
        .collect();
    let answered = place_until_killed(place, &mut machines, key, (primary, &names));
    *epoch += 1;
    let next = machines.wait_for_primary(Some(primary));
    let address = &gateways[next];
    wait_for_account(place, key, address);
    // Its gateway takes orders once it has applied all before.
    place_again(place, key, address, "last");
    let open = opened(place, key, address);
    let acknowledged = answered.iter().filter(|(_, id)| id.is_some());
    for (name, id) in acknowledged.clone() {
        assert_eq!(open.get(name), id.as_ref(), "{name} was acknowledged");
    }
    // Those without an answer are placed again, as trading programs do.
    for (name, _) in answered.iter().filter(|(_, id)| id.is_none()) {
        place_again(place, key, address, name);
    }
    let open = opened(place, key, address);
    check_names(&open, &names);
    println!(
        "machine {primary} had acknowledged {} of {MEANWHILE} orders, machine {next} has the rest",
        acknowledged.count()
    );

    // The former primary shows the same once it follows, whatever it had sent.
    machines.start_again(primary);
    wait_for_symbol(place, &gateways[primary]);
    wait_for_open(place, key, &gateways[primary], &open);
    machines.end();
    compared(&machines);
}
