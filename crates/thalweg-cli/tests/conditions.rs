//! Tests `thalweg exchange serve --latency --faults`: a slow network that loses commands, as its
//! clients see it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ring::hmac;
use thalweg_exchange::codec::session::{ClientFrame, Hello, QueryFrame, SessionQuery};
use thalweg_exchange::execution::Execution;
use thalweg_exchange::session::{Refusal, Role};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, ResultCode, SymbolId,
    UserId,
};
use thalweg_gateway::keys::{KeyKind, NewKey, create};

use crate::market::wait_until;
use crate::program::{Scratch, command, signal};
use crate::serve::Serving;
use crate::serve::client::{Client, Received, bytes_of, hello, submit_of};

const MS: Duration = Duration::from_millis(1);

const SYMBOLS: &str = r#"[assets]
BTC = { currency = 11, decimals = 5 }
USDT = { currency = 20, decimals = 7 }
[symbols.BTCUSDT]
symbol = 1
base = "BTC"
quote = "USDT"
"#;

/// A made-up market behind a network, in which users 7 and 8 have money, and an API key each.
struct Network {
    serving: Serving,
    keys: [NewKey; 2],
    _scratch: Scratch,
}

impl Network {
    /// `options` gets the API keys of users 7 and 8.
    fn start(options: impl FnOnce(&[NewKey; 2]) -> Vec<String>) -> Network {
        let scratch = Scratch::new();
        let symbols = scratch.file("symbols.toml", SYMBOLS.as_bytes());
        let file = scratch.path("api-keys.toml");
        let keys = [7, 8].map(|user| create(Path::new(&file), KeyKind::Hmac, UserId(user), false));
        let keys = keys.map(|made| made.expect("there is room"));
        let gateway = ["--gateway", "127.0.0.1:0", "--symbols", &symbols];
        let mut more = [&["--market", "made-up", "--api-keys", &file], &gateway[..]].concat();
        let options = options(&keys);
        more.extend(options.iter().map(String::as_str));
        let serving = Serving::start_as(command(&[]), &scratch.path("exchange"), &more);
        let (mut admin, _) = Client::connect(serving.admin, hello(Role::Admin, 1));
        let money = || vec![(CurrencyId(11), 1 << 40), (CurrencyId(20), 1 << 50)];
        let accounts = [7, 8].map(|user| AccountSpec::new(UserId(user), money()));
        admin.write(&submit_of(1, &Command::AddAccounts(accounts.into())));
        admin.succeeds(1);
        wait_until(&serving, "commands", 1_000);
        Network {
            serving,
            keys,
            _scratch: scratch,
        }
    }

    fn connect(&self, user: i64) -> Client {
        let to = self.serving.trade.parse().expect("an address");
        // A new connection does not repeat the reports of the one before.
        let last_report = None;
        let hello = Hello {
            last_report,
            ..hello(Role::Trade, user)
        };
        Client::connect(to, hello).0
    }

    /// Buys a lot of what is offered, by REST. Returns the response; none where it is cut.
    fn buy(&self, key: &NewKey) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.expect("it is after 1970").as_millis();
        let query = format!(
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=IOC&price=120&quantity=0.00001\
             &timestamp={now}&recvWindow=60000"
        );
        let secret = hmac::Key::new(hmac::HMAC_SHA256, key.secret.as_bytes());
        let tag = hmac::sign(&secret, query.as_bytes());
        let signature: String = tag.as_ref().iter().map(|b| format!("{b:02x}")).collect();
        let api_key = &key.api_key;
        let request = format!(
            "POST /api/v3/order?{query}&signature={signature} HTTP/1.1\r\nHost: g\r\n\
             X-MBX-APIKEY: {api_key}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        let address = self.serving.gateway.as_deref().expect("it has a gateway");
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut response = String::new();
        let _ = stream.read_to_string(&mut response);
        response
    }
}

/// The fates of a client's orders.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    answered: u64,
    trades: u64,
    dropped: u64,
    rejected: u64,
    disconnected: u64,
}

/// An order of user 7 that buys a lot of what is offered, and a query behind it.
fn order_and_query(number: u64) -> Vec<u8> {
    let id = (UserId(7), OrderId(number as i64));
    let place = Place::limit(id, SymbolId(1), Action::Bid, (12_000, 1));
    let place = place.with_type(OrderType::Ioc);
    let query = QueryFrame {
        id: number,
        query: SessionQuery::OpenOrders(UserId(7)),
    };
    let order = submit_of(number, &Command::Place(place));
    [order, bytes_of(&ClientFrame::Query(query))].concat()
}

/// Sends orders of user 7, one after the other, and connects again where a connection is lost.
fn trade(network: &Network, orders: u64, least: Duration) -> Seen {
    let mut client = network.connect(7);
    let mut seen = Seen::default();
    for number in 1..=orders {
        let begun = Instant::now();
        client.write(&order_and_query(number));
        let mut is_lost = true;
        loop {
            match client.receive() {
                Received::Answer(answer) => {
                    assert_eq!(
                        (answer.sequence.0, answer.result),
                        (number, ResultCode::Success)
                    );
                    seen.answered += 1;
                    is_lost = false;
                }
                Received::Refused(refused) => {
                    assert_eq!(
                        (refused.sequence.0, refused.why),
                        (number, Refusal::Resources)
                    );
                    seen.rejected += 1;
                    is_lost = false;
                }
                Received::Report(report) => {
                    let is_trade = matches!(report.report.kind, Execution::Trade { .. });
                    seen.trades += u64::from(is_trade);
                }
                Received::QueryAnswer(answer) => {
                    assert_eq!(answer.id, number);
                    seen.dropped += u64::from(is_lost);
                    break;
                }
                Received::Closed => {
                    seen.disconnected += 1;
                    client = network.connect(7);
                    break;
                }
                Received::Heartbeat => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(
            begun.elapsed() >= least,
            "an answer came after {:?}",
            begun.elapsed()
        );
    }
    seen
}

#[test]
fn a_client_of_both_protocols_meets_what_the_metrics_count() {
    let options = "--faults drop=0.1,reject=0.2,disconnect=0.05 --seed 3 \
                   --latency in=4ms,out=normal:6ms:0ms";
    let network = Network::start(|_| options.split_whitespace().map(str::to_owned).collect());
    let faults = || {
        let of = |fault| format!("thalweg_faults_total{{fault=\"{fault}\"}} ");
        ["drop", "reject", "disconnect"].map(|fault| network.serving.metric(&of(fault)))
    };
    // A page may be 200 ms old.
    let counted = |least: u64| {
        loop {
            let faults = faults();
            if faults.iter().sum::<u64>() >= least {
                return faults;
            }
        }
    };
    let seen = trade(&network, 60, 10 * MS);
    let met = [seen.dropped, seen.rejected, seen.disconnected];
    assert!(met.iter().all(|count| *count > 0), "{seen:?}");
    assert!(seen.answered > 20 && seen.trades > 0, "{seen:?}");
    assert_eq!(counted(met.iter().sum()), met);
    let refused = "thalweg_refusals_total{reason=\"RESOURCES\"} ";
    assert_eq!(network.serving.metric(refused), seen.rejected);
    // By the gateway, another user's first commands meet other faults.
    let (mut filled, mut busy, mut lost) = (0, 0, 0);
    for _ in 0..40 {
        let begun = Instant::now();
        let response = network.buy(&network.keys[1]);
        assert!(
            begun.elapsed() >= 4 * MS,
            "it ends after {:?}",
            begun.elapsed()
        );
        match response.get(..12) {
            Some("HTTP/1.1 200") => {
                filled += u64::from(response.contains("\"status\":\"FILLED\""));
                assert!(begun.elapsed() >= 10 * MS, "{:?}", begun.elapsed());
            }
            Some("HTTP/1.1 503") => {
                assert!(response.contains("\"code\":-1008"), "{response}");
                busy += 1;
            }
            None => lost += 1,
            Some(_) => panic!("{response}"),
        }
    }
    assert!(
        filled > 0 && busy > 0 && lost > 0,
        "{filled}, {busy}, {lost}"
    );
    let before: u64 = met.iter().sum();
    let [dropped, rejected, disconnected] = counted(before + busy + lost);
    assert_eq!(rejected, seen.rejected + busy);
    assert_eq!(
        dropped + disconnected,
        seen.dropped + seen.disconnected + lost
    );
    wait_until(&network.serving, "trades_with_users", seen.trades + filled);
}

#[test]
fn each_user_and_each_api_key_has_its_delay() {
    let network = Network::start(|[seven, _]| {
        let key = &seven.api_key;
        let values = [
            "in=2ms,out=3ms".to_owned(),
            "key=8:in=40ms,out=50ms".to_owned(),
            format!("key={key}:in=20ms,out=lognormal:100ms:0"),
        ];
        let option = |value| ["--latency".to_owned(), value];
        values.into_iter().flat_map(option).collect()
    });
    for (user, least) in [(7, 5 * MS), (8, 90 * MS)] {
        let mut client = network.connect(user);
        let begun = Instant::now();
        client.query(1, SessionQuery::Account(UserId(user)));
        let answered = client.receive();
        assert!(matches!(answered, Received::QueryAnswer(_)), "{answered:?}");
        assert!(
            begun.elapsed() >= least,
            "user {user}: {:?}",
            begun.elapsed()
        );
    }
    // An API key's own delay comes before its user's.
    for (key, least) in network.keys.iter().zip([120 * MS, 90 * MS]) {
        let begun = Instant::now();
        let response = network.buy(key);
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_delay_that_heartbeats_do_not_survive_is_warned_of() {
    let scratch = Scratch::new();
    let log = |latency: &str, name: &str| {
        let more = ["--market", "made-up", "--latency", latency];
        let serving = Serving::start_as(command(&[]), &scratch.path(name), &more);
        wait_until(&serving, "commands", 1);
        signal(serving.id(), 15);
        let (code, log) = serving.ended();
        assert_eq!(code, Some(0), "{log}");
        log
    };
    let warning = "ends sessions of the client library";
    let late = log("key=7:in=lognormal:3s:0.5", "late");
    assert!(late.contains(warning), "{late}");
    let early = log("in=2.9s,out=60s", "early");
    assert!(!early.contains(warning), "{early}");
}
