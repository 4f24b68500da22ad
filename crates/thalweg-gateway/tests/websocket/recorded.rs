//! Requests of trading programs, recorded by dev/clients/record.py: their responses and events have
//! the names and types that they had then.

use std::collections::HashMap;

use serde_json::{Value, json};
use thalweg_exchange::{AccountSpec, Action, Command, CurrencyId, SymbolId, SymbolSpec, UserId};
use thalweg_gateway::keys::{KeyKind, NewKey};

use crate::api::{now_ms, signature};
use crate::fixture::{Client, Fixture, parts, respond};

const RECORDED: &str = include_str!("recorded.jsonl");
const SYMBOLS: &str = r#"[assets]
BTC = { currency = 11, decimals = 5 }
SOL = { currency = 13, decimals = 5 }
USDT = { currency = 20, decimals = 7 }
[symbols.BTCUSDT]
symbol = 1
base = "BTC"
quote = "USDT"
[symbols.SOLUSDT]
symbol = 3
base = "SOL"
quote = "USDT"
"#;
const PROGRAMS: i64 = 5;
const USER_FIRST: i64 = 21;

/// A trading program, with its key.
struct Program(NewKey);

/// A connection, and the events that it got and that no check has taken yet.
struct Connection {
    client: Client,
    events: Vec<Value>,
}

struct Replay {
    fixture: Fixture,
    programs: Vec<Program>,
    connections: HashMap<u64, Connection>,
    /// The events of each connection in the recording.
    expected: HashMap<u64, Vec<Value>>,
}

impl Replay {
    async fn new(entries: &[Value]) -> Self {
        let fixture = Fixture::listing(SYMBOLS, |_| ()).await;
        let pair = SymbolSpec {
            taker_fee: 10,
            maker_fee: 4,
            ..SymbolSpec::pair(SymbolId(3), CurrencyId(13), CurrencyId(20))
        };
        fixture.run(Command::AddSymbols([pair].into())).await;
        let money = || vec![(CurrencyId(13), 1 << 40), (CurrencyId(20), 1 << 50)];
        let users = USER_FIRST..USER_FIRST + PROGRAMS;
        let accounts = users
            .clone()
            .map(|user| AccountSpec::new(UserId(user), money()));
        fixture.run(Command::AddAccounts(accounts.collect())).await;
        fixture.place(1, Action::Ask, 10_100, 10).await;
        fixture.place(2, Action::Bid, 10_100, 5).await;
        fixture.place(2, Action::Bid, 9_900, 5).await;
        fixture.json("/api/v3/depth?symbol=SOLUSDT").await;
        let key = |user| fixture.new_key(KeyKind::Hmac, user);
        let programs = users.map(|user| Program(key(user)));
        let events = |entry: &Value| {
            let events = entry["events"].as_array()?.clone();
            Some((entry["connection"].as_u64()?, events))
        };
        Self {
            programs: programs.collect(),
            connections: HashMap::new(),
            expected: entries.iter().filter_map(events).collect(),
            fixture,
        }
    }

    async fn run(&mut self, entry: &Value) {
        let program = &self.programs[entry["program"].as_u64().expect("a number") as usize];
        if let Some(method) = entry["method"].as_str() {
            let (head, body) = program.rest(method, entry);
            let (status, answer) = request(&self.fixture, &head, &body).await;
            assert_eq!(status, entry["status"], "{entry}: {answer}");
            return check(entry, &answer);
        }
        let number = entry["connection"].as_u64().expect("a number");
        if let Some(path) = entry["open"].as_str() {
            let client = self.fixture.connect(path).await;
            let events = Vec::new();
            let connection = Connection { client, events };
            self.connections.insert(number, connection);
            return;
        }
        let text = program.message(entry["send"].as_str().expect("a message"));
        let connection = self.connections.get_mut(&number).expect("it was opened");
        connection.client.send(&text).await;
        let request: Value = serde_json::from_str(&text).expect("JSON");
        let answer = loop {
            let message = connection.client.json().await;
            match message.get("id") == request.get("id") {
                true => break message,
                false => connection.events.push(message),
            }
        };
        check(entry, &answer);
    }

    /// Waits until a connection has got an event of each kind that it had in the recording.
    async fn see(&mut self, number: u64) {
        let Some(expected) = self.expected.remove(&number) else {
            return;
        };
        // Books change, so that those who follow them see an event.
        self.fixture.place(1, Action::Ask, 10_200, 1).await;
        let connection = self.connections.get_mut(&number).expect("it was opened");
        for mut event in expected {
            let name = kind(&event).map(str::to_owned);
            let same_kind = |other: &Value| kind(other) == name.as_deref();
            let got = loop {
                if let Some(got) = connection.events.iter().find(|other| same_kind(other)) {
                    break got;
                }
                let next = connection.client.json().await;
                connection.events.push(next);
            };
            // A book may have changed on one side.
            for side in ["/a", "/b", "/data/a", "/data/b"] {
                if got.pointer(side).is_some_and(|levels| *levels == json!([])) {
                    *event.pointer_mut(side).expect("as the other") = json!([]);
                }
            }
            let same = structure(&event, got);
            assert!(same.is_ok(), "{same:?}: {got} instead of {event}");
        }
    }
}

impl Program {
    /// Returns a recorded text with this program's key and the time.
    fn fill(&self, text: &str) -> String {
        text.replace("{key}", &self.0.api_key)
            .replace("{timestamp}", &now_ms().to_string())
    }

    /// Returns head and body of a request by REST.
    fn rest(&self, method: &str, entry: &Value) -> (String, String) {
        let text = |name: &str| self.fill(entry[name].as_str().expect("a text"));
        let (path, body) = (text("path"), text("body"));
        let unsigned = |part: &str| {
            let pairs = part.split('&');
            let pairs: Vec<&str> = pairs.filter(|p| !p.starts_with("signature=")).collect();
            pairs.join("&")
        };
        let query = path.split_once('?').map_or("", |(_, query)| query);
        let signed = signature(&self.0, &(unsigned(query) + &unsigned(&body)));
        let put = |text: &str| text.replace("{signature}", &signed);
        let body = put(&body);
        let length = body.len();
        let mut head = format!("{method} {} HTTP/1.1\r\nHost: gateway\r\n", put(&path));
        head += &format!("Connection: close\r\nContent-Length: {length}\r\n");
        for header in entry["headers"].as_array().expect("a list") {
            head += &format!("{}\r\n", self.fill(header.as_str().expect("a text")));
        }
        (head + "\r\n", body)
    }

    /// Returns a message of a WebSocket.
    fn message(&self, text: &str) -> String {
        let text = self.fill(text);
        let parsed: Value = serde_json::from_str(&text).expect("JSON");
        let Some(params) = parsed["params"].as_object() else {
            return text;
        };
        let params = params.iter().filter(|(name, _)| *name != "signature");
        let pairs = params.map(|(name, value)| {
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            format!("{name}={text}")
        });
        let payload = pairs.collect::<Vec<_>>().join("&");
        text.replace("{signature}", &signature(&self.0, &payload))
    }
}

/// Compares an answer with that of the recording. Orders have the ids that they had then, since
/// these count the user's commands.
fn check(entry: &Value, answer: &Value) {
    let same = structure(&entry["answer"], answer);
    assert!(same.is_ok(), "{same:?}: {answer} to {entry}");
    let mut orders = Vec::new();
    orders_of(answer, &mut orders);
    assert_eq!(json!(orders), entry["orders"], "{answer} to {entry}");
}

async fn request(fixture: &Fixture, head: &str, body: &str) -> (u16, Value) {
    let response = respond(fixture.gateway.address(), head.to_owned() + body).await;
    let (status, _, body) = parts(&response);
    (status, serde_json::from_str(body).expect("JSON"))
}

/// Returns the kind of an event, which those of `depth20` and `bookTicker` have not.
fn kind(event: &Value) -> Option<&str> {
    let inner = event.get("event").or(event.get("data")).unwrap_or(event);
    inner.get("e")?.as_str()
}

/// Adds the ids of the orders in a value, in their order.
fn orders_of(value: &Value, orders: &mut Vec<i64>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| orders_of(item, orders)),
        Value::Object(items) => {
            orders.extend(items.get("orderId").and_then(Value::as_i64));
            items.values().for_each(|item| orders_of(item, orders));
        }
        _ => {}
    }
}

/// Compares names and types of two values, of lists those of the first items. A value that is not
/// blank in the recording is equal, and one that is null in either may be anything.
///
/// # Errors
/// What differs.
fn structure(recorded: &Value, other: &Value) -> Result<(), String> {
    let differ = || Err(format!("{recorded} is {other}"));
    match (recorded, other) {
        (Value::Null, _) | (_, Value::Null) => Ok(()),
        (Value::Object(one), Value::Object(two)) => {
            if !one.keys().eq(two.keys()) {
                return differ();
            }
            let pairs = one.values().zip(two.values());
            pairs
                .into_iter()
                .try_for_each(|(one, two)| structure(one, two))
        }
        (Value::Array(one), Value::Array(two)) => match (&one[..], &two[..]) {
            ([], _) => Ok(()),
            ([_, ..], []) => differ(),
            ([one, ..], [two, ..]) => structure(one, two),
        },
        (Value::String(one), Value::String(two)) if one.is_empty() || one == two => Ok(()),
        (Value::Number(one), Value::Number(two)) if one.as_i64() == Some(0) || one == two => Ok(()),
        (Value::Bool(_), Value::Bool(_)) => Ok(()),
        _ => differ(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_of_trading_programs_are_answered_as_they_were() {
    let lines = RECORDED.lines().map(serde_json::from_str::<Value>);
    let entries: Vec<Value> = lines.map(|line| line.expect("JSON")).collect();
    let mut replay = Replay::new(&entries).await;
    let mut run = 0;
    for entry in entries.iter().filter(|entry| entry["events"].is_null()) {
        replay.run(entry).await;
        run += 1;
    }
    assert!(run > 80, "{run} entries");
    for number in 0..replay.connections.len() as u64 {
        replay.see(number).await;
    }
}

#[test]
fn another_structure_is_found() {
    let value = |text| serde_json::from_str::<Value>(text).expect("JSON");
    let recorded = value(r#"{"e":"trade","a":[[0,""]],"n":null,"b":false}"#);
    for text in [
        r#"{"e":"trade","a":[[5,"1"],[2,"3"]],"n":1,"b":true}"#,
        r#"{"e":"trade","a":[[5,"1"]],"n":"x","b":true}"#,
    ] {
        assert_eq!(structure(&recorded, &value(text)), Ok(()));
    }
    for text in [
        r#"{"e":"kline","a":[[5,"1"]],"n":1,"b":true}"#,
        r#"{"e":"trade","a":[],"n":1,"b":true}"#,
        r#"{"e":"trade","a":[["5","1"]],"n":1,"b":true}"#,
        r#"{"e":"trade","a":[[5,"1"]],"n":1,"b":0}"#,
        r#"{"e":"trade","a":[[5,"1"]],"b":true}"#,
        r#"{"e":"trade","a":[[5,"1"]],"n":1,"b":true,"x":1}"#,
    ] {
        assert!(structure(&recorded, &value(text)).is_err(), "{text}");
    }
}
